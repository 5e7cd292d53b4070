"""The statements of what is estimated privately about units: each unit is counted once."""

from __future__ import annotations

from dataclasses import replace

from deniable.engines.base import Step
from deniable.query.plan.counted import names
from deniable.query.plan.levels import level_of
from deniable.query.plan.plan import Plan
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
    stats = names("t", plan.counted.statistics)
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
    stats = names("t", plan.counted.statistics)
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
        plan, name = _alone(plan, place), "t0"
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


def _alone(plan: Plan, place: int) -> Plan:
    """The plan of one of its statistics."""
    return replace(plan, counted=plan.counted.alone(place))
