"""The statements of what is estimated privately about units: each unit is counted once."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from deniable.engines.base import Step
from deniable.engines.literals import double_literal
from deniable.query.plan.levels import LEAST, level_of
from deniable.query.plan.plan import Plan
from deniable.query.plan.reach import Unbounded
from deniable.query.run.emit import (
    COUNTS,
    PAIRS,
    UNITS,
    double_text,
    is_heavy,
    size_of,
    step_of,
    tables_of,
    with_base,
)


def rows_step(plan: Plan) -> Step:
    """SELECT a number of rows, and how many units have that many."""
    select = f"SELECT n, COUNT(*) AS units FROM {COUNTS} GROUP BY n"
    return step_of(plan, select, tables_of(plan, counts=True))


def above_step(plan: Plan, *, l2: bool) -> Step:
    """SELECT a number of rows, and how many units add as much as so many rows of one group can.

    Units that may be scaled down by their norm, rounded up; the others, which are within the bound
    whatever their rows are, by their number of rows. A unit is counted once, by its own rows.
    """
    rows, bound = plan.contribution.rows, plan.bound(l2=l2)
    stats = plan.counted.summed
    norm = "SQRT(q::DOUBLE)" if l2 else "q::DOUBLE"
    hair = 1 - 1e-12  # a norm that is the bound is not above it
    select = (
        f"WITH deniable_norms AS (SELECT u, SUM({size_of(plan, stats, 'HUGEINT', l2=l2)})::HUGEINT "
        f"AS q FROM {PAIRS} GROUP BY u), "
        f"deniable_counted AS (SELECT n FROM {COUNTS} WHERE NOT n > {rows} UNION ALL "
        f"SELECT CEIL({norm} * {double_text(rows / bound * hair)})::BIGINT AS n "
        "FROM deniable_norms WHERE q > 0) "
        "SELECT n, COUNT(*) AS units FROM deniable_counted GROUP BY n"
    )
    return step_of(plan, select, tables_of(plan, pairs=True, l2=l2))


def once_step(plan: Plan) -> Step:
    """SELECT how many units each statistic of `once` counts, whatever their norms."""
    counts = ", ".join(
        f"COUNT(DISTINCT CASE WHEN NOT t{place} IS NULL THEN u END) AS t{place}"
        for place in plan.once
    )
    select = f"{with_base(plan)} SELECT {counts} FROM deniable_base"
    return step_of(plan, select, tables_of(plan))


def upper_step(plan: Plan, least: int, *, l2: bool) -> Step:
    """SELECT a level, and the units whose norm is at most there by the sizes of their rows."""
    select = (
        f"WITH deniable_levels AS (SELECT {level_of('b', least, l2=True)} AS c FROM {UNITS} "
        "WHERE b > 0) SELECT c, COUNT(*) AS units FROM deniable_levels GROUP BY c"
    )
    return step_of(plan, select, tables_of(plan, units=True, l2=l2))


def levels_step(plan: Plan, least: int, *, l2: bool) -> Step:
    """SELECT a level, and the units whose norm is there: its upper bound below the plan's floor.

    Norms are whole numbers; a unit is on one level, whatever the others have.
    """
    stats = plan.counted.summed
    select = (
        f"WITH deniable_norms AS (SELECT u, SUM({size_of(plan, stats, 'HUGEINT', l2=l2)})::HUGEINT "
        f"AS q FROM {PAIRS} GROUP BY u), "
        f"deniable_levels AS (SELECT {level_of('b', least, l2=True)} AS c FROM {UNITS} "
        f"WHERE b > 0 AND NOT {is_heavy(plan)} "
        f"UNION ALL SELECT {level_of('q::DOUBLE', least, l2=l2)} AS c FROM deniable_norms "
        "WHERE q > 0) "
        "SELECT c, COUNT(*) AS units FROM deniable_levels GROUP BY c"
    )
    return step_of(plan, select, tables_of(plan, pairs=True, l2=l2))


def values_step(plan: Plan, place: int, cells: int) -> Step:
    """SELECT a cell between the bounds of a sum's column, and the units whose mean lies in it.

    One unit in sixteen is looked at, by a hash of its name.
    """
    marks, name = plan.counted.statistics[place].marks, f"t{place}"
    assert marks is not None
    if not plan.stored:  # one column of its own, or many sums would be written many times
        plan, name = replace(plan, counted=plan.counted.alone(place)), "t0"
    low, centre, high = marks
    above = f"(s + n::HUGEINT * {centre - low}) // n::HUGEINT"
    some = "WHERE HASH(u) % 16 = 0 " if plan.contribution.unit_has_name else ""
    select = (
        f"{with_base(plan, every_group=True)}, "
        f"deniable_totals AS (SELECT u, SUM({name})::HUGEINT AS s, COUNT({name}) AS n "
        f"FROM deniable_base {some}GROUP BY u), "
        f"deniable_means AS (SELECT ({above}) * {cells} // {high - low + 1}::HUGEINT AS c "
        "FROM deniable_totals "
        "WHERE n > 0) SELECT c, COUNT(*) AS units FROM deniable_means GROUP BY c"
    )
    return step_of(plan, select, tables_of(plan))


def signed_step(plan: Plan, column: Unbounded) -> Step:
    """SELECT a cell, and the units whose values lie there: on average, of whole cells.

    Cells are levels of what a value is without its sign, with the sign: 0, ±1, ±2, ... Sums of
    whole numbers do not depend on the order of rows.
    """
    level = level_of("ABS(d0)", LEAST, l2=False)
    cell = f"(1 + {level}) * CASE WHEN d0 < 0 THEN -1 ELSE 1 END"
    return _by_unit(plan, column, cell, "SUM(c)::HUGEINT // COUNT(*)")


def distances_step(plan: Plan, column: Unbounded, centre: Fraction) -> Step:
    """SELECT 2·(1 + level) + side, and the units whose farthest value from the centre is there.

    The side is 0 above the centre, and 1 below it.
    """
    middle = double_literal(centre).sql("duckdb")
    level = level_of(f"ABS(d0 - {middle})", LEAST, l2=False)
    cell = f"2 * (1 + {level}) + CASE WHEN d0 < {middle} THEN 1 ELSE 0 END"
    return _by_unit(plan, column, cell, "MAX(c)")


def _by_unit(plan: Plan, column: Unbounded, cell: str, of_unit: str) -> Step:
    """One cell for each unit, by its own rows alone."""
    counted = replace(plan.counted, statistics=(), distinct=(column.double,), grids=(), ranks=())
    alone = replace(plan, counted=counted)
    cells = f"SELECT u, {cell} AS c FROM deniable_base WHERE d0 IS NOT NULL"
    if not plan.contribution.one_row:
        cells = f"SELECT u, {of_unit} AS c FROM ({cells}) AS cells GROUP BY u"
    select = (
        f"{with_base(alone)}, deniable_cells AS ({cells}) "
        "SELECT c, COUNT(*) AS units FROM deniable_cells GROUP BY c"
    )
    return step_of(alone, select, tables_of(alone))
