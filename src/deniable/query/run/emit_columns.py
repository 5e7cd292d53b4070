"""The statements by which it is looked where values of a column lie: each unit is counted once."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from deniable.engines.base import Step
from deniable.engines.literals import double_literal
from deniable.query.plan.levels import LEAST, level_of
from deniable.query.plan.plan import Plan
from deniable.query.plan.reach import Unbounded
from deniable.query.run.emit import step_of, tables_of, with_base


def signed_step(plan: Plan, column: Unbounded) -> Step:
    """SELECT a cell, and the units whose values lie there: on average, of whole cells.

    Cells are levels of what a value is without its sign, with the sign: 0, ±1, ±2, ... Sums of
    whole numbers do not depend on the order of rows.
    """
    level = level_of("ABS(d0)", LEAST, l2=False)
    cell = f"(1 + {level}) * CASE WHEN d0 < 0 THEN -1 ELSE 1 END"
    return _counted(plan, column, cell, "SUM(c)::HUGEINT // COUNT(*)")


def distances_step(plan: Plan, column: Unbounded, centre: Fraction) -> Step:
    """SELECT 2·(1 + level) + side, and the units whose farthest value from the centre is there.

    The side is 0 above the centre, and 1 below it.
    """
    middle = double_literal(centre).sql("duckdb")
    level = level_of(f"ABS(d0 - {middle})", LEAST, l2=False)
    cell = f"2 * (1 + {level}) + CASE WHEN d0 < {middle} THEN 1 ELSE 0 END"
    return _counted(plan, column, cell, "MAX(c)")


def _counted(plan: Plan, column: Unbounded, cell: str, of_unit: str) -> Step:
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
