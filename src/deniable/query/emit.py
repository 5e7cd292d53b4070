"""The statements of a plan: exact whole numbers by group, every unit bounded.

A unit with at most `rows` rows cannot exceed the bound and is never looked at again. Of the others
the sums by group are made, their joint norm is taken in whole numbers, and what lies beyond the
bound is scaled down by f = bound·SCALE² // (norm rounded up): v' = v·f // SCALE, toward zero. So
the totals are the plain ones, less what was cut off of a few heavy units, and no unit's part has a
norm above bound·SCALE, in machine arithmetic, whatever the order of rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from deniable.engines.base import Step
from deniable.query.plan import SCALE, SCALE_BITS, Plan, Statistic, declared, names

KEY_PLACEHOLDER = "<secret key>"


HEAVY = "deniable_heavy"
ROWS = "deniable_rows"
# floor(sqrt(q)(1 + 2^-50)) + 2 is above the root of any 126-bit q, however sqrt rounds.
_ROOT = "(FLOOR(SQRT(q::DOUBLE) * (1 + 8.881784197001252e-16)) + 2)::HUGEINT"


def totals_step(plan: Plan, *, l2: bool) -> Step:
    """SELECT groups, SCALE times each bounded statistic; units with many rows are found first."""
    return Step(_totals(plan, l2=l2), _base(plan), _tables(plan, heavy=True))


def _stored(plan: Plan) -> bool:
    """Whether rows are made once and kept.

    Rows that are computed from several (windows, aggregates, numbers of rows) could come out
    otherwise a second time, by the order of threads; a unit must not look light in one place and
    be heavy in another.
    """
    return not plan.one_row and not (plan.simple and plan.unit_has_name)


def _tables(plan: Plan, *, heavy: bool) -> dict[str, str]:
    """The tables that a step needs: rows where they are kept, and units with many of them.

    Those have more rows than count in full, undeclared groups included: more units than need be.
    """
    tables = {ROWS: _base(plan, every_group=True)} if _stored(plan) else {}
    if not heavy or plan.one_row:
        return tables
    rows = ROWS
    if not _stored(plan):
        rows = f"({plan.source.select(exp.alias_(plan.unit.copy(), 'u')).sql('duckdb')})"
    tables[HEAVY] = f"SELECT u FROM {rows} GROUP BY u HAVING COUNT(*) > {plan.rows}"
    return tables


def _with_base(plan: Plan, *, every_group: bool = False) -> str:
    """The rows as the first common table expression."""
    if _stored(plan):
        where = "" if every_group else _where_declared(plan)
        return f"WITH base AS (SELECT * FROM {ROWS}{where})"
    return f"WITH base AS NOT MATERIALIZED ({_base(plan, every_group=every_group)})"


def _totals(plan: Plan, *, l2: bool) -> str:
    keys, stats = names("g", plan.groups), names("t", plan.statistics)
    grouped = f" GROUP BY {', '.join(keys)}" if keys else ""
    picked = "".join(f"{key}, " for key in keys)
    sums = ", ".join(
        f"{_total(name, statistic)} AS {name}"
        for name, statistic in zip(stats, plan.statistics, strict=True)
    )
    base = _with_base(plan, every_group=True)
    totals = f"SELECT {picked}{sums} FROM base{grouped}"
    if plan.one_row:  # one row a unit: bounded as it stands
        scaled = ", ".join(f"{SCALE} * {name}::HUGEINT AS {name}" for name in stats)
        return (
            f"{base}, totals AS MATERIALIZED ({totals}) "
            f"SELECT {picked}{scaled} FROM totals{_where_declared(plan)}"
        )
    plain = ", ".join(f"{SCALE} * {name}::HUGEINT AS {name}" for name in stats)
    less = ", ".join(f"-{name} AS {name}" for name in stats)
    answer = ", ".join(f"SUM({name})::HUGEINT AS {name}" for name in stats)
    return (
        f"{base}, {_heavy(plan, keys, stats, l2=l2)}, totals AS ({totals}) "
        f"SELECT {picked}{answer} FROM (SELECT {picked}{plain} FROM totals{_where_declared(plan)} "
        f"UNION ALL SELECT {picked}{less} FROM cut) AS summed{grouped}"
    )


def _where_declared(plan: Plan) -> str:
    """Keep the declared groups, once the many rows have become few groups."""
    conditions = [
        declared(exp.column(name), group.keys).sql("duckdb")
        for name, group in zip(names("g", plan.groups), plan.groups, strict=True)
        if group.keys is not None
    ]
    return f" WHERE {' AND '.join(conditions)}" if conditions else ""


def _base(plan: Plan, *, every_group: bool = False) -> str:
    """One row for each row that counts: whose, in which group, with what numbers."""
    sql = plan.source.where(*plan.only)
    for group in plan.groups:
        if group.keys is None or not every_group:
            sql = sql.where(declared(exp.paren(group.sql.copy()), group.keys))
    sql = sql.select(exp.alias_(plan.unit.copy(), "u"))
    for name, group in zip(names("g", plan.groups), plan.groups, strict=True):
        sql = sql.select(exp.alias_(group.sql.copy(), name))
    for name, statistic in zip(names("t", plan.statistics), plan.statistics, strict=True):
        value = statistic.sql.copy()
        if not statistic.counts and not statistic.per_unit:
            # Whatever its type: only whole numbers are summed.
            value = exp.TryCast(this=value, to=exp.DataType.build("BIGINT"))
        sql = sql.select(exp.alias_(value, name))
    for name, value in zip(names("d", plan.distinct), plan.distinct, strict=True):
        sql = sql.select(exp.alias_(value.copy(), name))
    for name, grid in zip(names("c", plan.grids), plan.grids, strict=True):
        sql = sql.select(exp.alias_(grid.sql.copy(), name))
    return str(sql.sql("duckdb"))


def _total(name: str, statistic: Statistic) -> str:
    if statistic.per_unit:
        return f"COUNT(DISTINCT CASE WHEN {name} IS NOT NULL THEN u END)"
    if statistic.counts:
        return f"COUNT({name})"
    return f"COALESCE(SUM({name}), 0)"


def _heavy(plan: Plan, keys: Sequence[str], stats: Sequence[str], *, l2: bool) -> str:
    """What is cut off of units with too many rows, by group."""
    picked = "".join(f"{key}, " for key in keys)
    grouped = "".join(f", {key}" for key in keys)
    sums = ", ".join(
        (
            f"MAX(CASE WHEN {name} IS NOT NULL THEN 1 ELSE 0 END)::HUGEINT AS {name}"
            if statistic.per_unit
            else f"{_total(name, statistic)}::HUGEINT AS {name}"
        )
        for name, statistic in zip(stats, plan.statistics, strict=True)
    )
    bound = plan.bound(l2=l2)
    limit = bound * bound if l2 else bound
    norm = _ROOT if l2 else "q"
    # One division for each unit: those of 128 bits are slow. f <= SCALE·SCALE·bound/norm.
    cut = ", ".join(
        f"SUM({SCALE} * {name} - SIGN({name})::HUGEINT * ((ABS({name}) * f) >> {SCALE_BITS}))"
        f"::HUGEINT AS {name}"
        for name in stats
    )
    where = f"{_where_declared(plan)} AND" if plan.declares_keys else " WHERE"
    # Floats only say which units are surely within the bound, by a margin far above their rounding.
    return (
        f"every_pair AS MATERIALIZED (SELECT u{grouped}, {sums} FROM base "
        f"WHERE u IN (SELECT u FROM {HEAVY}) GROUP BY u{grouped}), "
        f"maybe AS (SELECT u FROM every_pair GROUP BY u "
        f"HAVING SUM({_size(plan, stats, 'DOUBLE', l2=l2)}) > {float(limit) * 0.999!r}), "
        f"pairs AS MATERIALIZED (SELECT * FROM every_pair{where} u IN (SELECT u FROM maybe)), "
        f"norms AS (SELECT u, SUM({_size(plan, stats, 'HUGEINT', l2=l2)})::HUGEINT AS q "
        f"FROM pairs GROUP BY u), "
        f"beyond AS (SELECT u, ({bound * SCALE * SCALE}::HUGEINT // {norm}) AS f FROM norms "
        f"WHERE q > {limit}), "
        f"cut AS (SELECT {picked}{cut} FROM pairs JOIN beyond USING (u)"
        f"{' GROUP BY ' + ', '.join(keys) if keys else ''})"
    )


def _size(plan: Plan, stats: Sequence[str], kind: str, *, l2: bool) -> str:
    """What one group adds to a unit's norm: squares, or absolute values."""
    scaled = [f"{w} * {name}::{kind}" for name, w in zip(stats, plan.weights, strict=True)]
    return " + ".join(f"({each}) * ({each})" if l2 else f"ABS({each})" for each in scaled)


def units_step(plan: Plan, max_groups: int, secret: str) -> Step:
    """SELECT groups, the number of units in each, every unit in at most `max_groups` of them.

    Which are kept is decided by a keyed hash of the unit and the group: the same on every run, and
    nothing that data of others could change.
    """
    keys = names("g", plan.groups)
    text = _hashed([*_name(plan), *keys], secret)
    return Step(
        f"{_with_base(plan)}, pairs AS (SELECT DISTINCT u, {', '.join(keys)} FROM base), "
        f"ranked AS (SELECT *, ROW_NUMBER() OVER (PARTITION BY u ORDER BY {text}, "
        f"{', '.join(keys)}) AS n FROM pairs) "
        f"SELECT {', '.join(keys)}, COUNT(*) AS units FROM ranked WHERE n - 1 < {max_groups} "
        f"GROUP BY {', '.join(keys)}",
        _base(plan),
        _tables(plan, heavy=False),
    )


def distinct_step(plan: Plan, number: int, secret: str) -> Step:
    """SELECT groups, COUNT(DISTINCT value), every unit with at most `rows` values in all."""
    keys, value = names("g", plan.groups), f"d{number}"
    listed = "".join(f"{key}, " for key in keys)
    text = _hashed([*_name(plan), *keys, value], secret)
    return Step(
        f"{_with_base(plan)}, "
        f"pairs AS (SELECT DISTINCT u, {listed}{value} FROM base WHERE {value} IS NOT NULL), "
        f"ranked AS (SELECT *, ROW_NUMBER() OVER (PARTITION BY u ORDER BY {text}, {listed}{value}) "
        f"AS n FROM pairs) "
        f"SELECT {listed}COUNT(DISTINCT {value}) AS {value} FROM ranked WHERE n - 1 < {plan.rows}"
        f"{' GROUP BY ' + ', '.join(keys) if keys else ''}",
        _base(plan),
        _tables(plan, heavy=False),
    )


def cells_step(plan: Plan, number: int, *, l2: bool) -> Step:
    """SELECT groups, a cell, the weight in it: SCALE for each row, less for those of heavy units.

    The rows of a unit in groups g make weights w_g. With all of one weight, they have the norm of
    the unit's counts by group times that; `rows` rows reach the norm `rows` in one group.
    """
    keys, cell = names("g", plan.groups), f"c{number}"
    listed = "".join(f"{key}, " for key in keys)
    kept = "".join(f"kept.{key}, " for key in keys)
    base = (
        f"{_with_base(plan)}, kept AS (SELECT u, {listed}{cell} FROM base WHERE NOT {cell} IS NULL)"
    )
    if plan.one_row:
        return Step(
            f"{base} SELECT {listed}{cell}, {SCALE} * COUNT(*) AS n FROM kept "
            f"GROUP BY {listed}{cell}",
            _base(plan),
        )
    size = "n::HUGEINT * n::HUGEINT" if l2 else "n::HUGEINT"
    limit = plan.rows**2 if l2 else plan.rows
    norm = _ROOT if l2 else "q"
    grouped = "".join(f", {key}" for key in keys)
    return Step(
        f"{base}, pairs AS (SELECT u{grouped}, COUNT(*) AS n FROM kept "
        f"WHERE u IN (SELECT u FROM {HEAVY}) GROUP BY u{grouped}), "
        f"norms AS (SELECT u, SUM({size})::HUGEINT AS q FROM pairs GROUP BY u), "
        f"beyond AS (SELECT u, ({plan.rows * SCALE}::HUGEINT // {norm})::BIGINT AS w FROM norms "
        f"WHERE q > {limit}) "
        f"SELECT {kept}kept.{cell}, SUM(COALESCE(beyond.w, {SCALE})) AS n FROM kept "
        f"LEFT JOIN beyond ON kept.u = beyond.u GROUP BY {kept}kept.{cell}",
        _base(plan),
        _tables(plan, heavy=True),
    )


def _name(plan: Plan) -> list[str]:
    """The unit's name, where it has one: rows are numbered as they come, which others decide."""
    return ["u"] if plan.unit_has_name else []


def _hashed(columns: Sequence[str], secret: str) -> str:
    parts = " || '|' || ".join(f"COALESCE({name}::VARCHAR, '')" for name in columns)
    return f"MD5('{secret}' || {parts})"
