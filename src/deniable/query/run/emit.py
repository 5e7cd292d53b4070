"""The statements of a plan: exact whole numbers by group, every unit bounded.

A unit with at most `rows` rows cannot exceed the bound and is never looked at again. Of the others
the sums by group are made, their joint norm is taken in whole numbers, and what lies beyond the
bound is scaled down by f = bound·SCALE² // (norm rounded up): v' = v·f // SCALE, toward zero. So
the totals are the plain ones, less what was cut off of a few heavy units, and no unit's part has a
norm above bound·SCALE, in machine arithmetic, whatever the order of rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

from sqlglot import exp

from deniable.engines.alike import Alike, added
from deniable.engines.base import Step
from deniable.engines.literals import data_type, double_literal
from deniable.mechanisms.keys import WEIGHT
from deniable.query.plan.counted import Statistic, names
from deniable.query.plan.keys import answered, held, one_of
from deniable.query.plan.plan import FACTOR_BITS, SCALE, Plan
from deniable.query.run.emit_keys import GroupPlaces, selected, where_declared

KEY_PLACEHOLDER = "<secret key>"
_ROW_STEPS = float(1 << 20)
_HALF = 2.0**63


ROWS, COUNTS, UNITS = "deniable_rows", "deniable_counts", "deniable_units"
HEAVY, PAIRS, BASE = "deniable_heavy", "deniable_pairs", "deniable_base"
# Common table expressions are named deniable_..., too: a table of the session has no such name.
# floor(sqrt(q)(1 + 2^-50)) + 2 is above the root of any 126-bit q, however sqrt rounds.
_ROOT = "(FLOOR(SQRT(q::DOUBLE) * (1 + 8.881784197001252e-16)) + 2)::HUGEINT"


def totals_step(plan: Plan, *, l2: bool) -> Step:
    """SELECT groups, SCALE times each bounded statistic; units with many rows are found first."""
    step = step_of(plan, _totals(plan, l2=l2), tables_of(plan, pairs=True, l2=l2))
    return replace(step, alike=_alike(plan, l2=l2))


def _alike(plan: Plan, *, l2: bool) -> Alike | None:
    """The step with one sum, where the library makes the rows: its sums differ in nothing.

    Neither weights nor bounds follow from the other sums, unless the norm was estimated.
    """
    counted, staged = plan.counted, plan.counted.staged
    if staged is None or plan.contribution.floor is not None:
        return None
    one = replace(plan, counted=counted.alone(0))
    return Alike(
        tuple(counted.summed),
        _totals(one, l2=l2),
        {**staged.tables, **tables_of(one, pairs=True, l2=l2)},
        BASE,
        _base(plan, every_group=True),
    )


def heavy_step(plan: Plan, *, l2: bool) -> Step:
    """SELECT groups, SCALE times what is kept of each statistic of units beyond the bound."""
    keys, stats = plan.counted.grouped, plan.counted.summed
    grouped = f" GROUP BY {', '.join(keys)}" if keys else ""
    kept = ", ".join(f"SUM({_kept(plan, name)})::HUGEINT AS {name}" for name in stats)
    places = GroupPlaces(plan)
    select = (
        f"SELECT {''.join(f'{key}, ' for key in keys)}{kept} FROM deniable_each "
        f"JOIN deniable_above USING (u){grouped}"
    )
    select = (
        f"WITH {norms_of(plan, l2=l2)}, {beyond_of(plan, l2=l2)}{places.lists} "
        f"{places.shown(select)}"
    )
    return step_of(plan, select, tables_of(plan, pairs=True, l2=l2))


def cut_step(plan: Plan, cap: int, *, l2: bool) -> Step:
    """SELECT how many rows were cut off at most, in steps; of one unit no more than its cap.

    Of a pair of a unit and a group, the largest of its counts, and one step for rounding.
    """
    pairs = zip(plan.counted.summed, plan.counted.statistics, strict=True)
    counts = [name for name, each in pairs if each.counts and not each.missing]
    most = f"GREATEST({', '.join(counts)})" if len(counts) > 1 else counts[0]
    select = (
        f"WITH {norms_of(plan, l2=l2)}, {beyond_of(plan, l2=l2)}, "
        f"deniable_counted AS (SELECT deniable_each.u, {most} AS n, f "
        "FROM deniable_each JOIN deniable_above ON deniable_each.u = deniable_above.u), "
        f"deniable_lost AS (SELECT u, SUM({cut_of(plan, 'n')} + 1)::HUGEINT AS n "
        "FROM deniable_counted GROUP BY u) "
        f"SELECT COALESCE(SUM(CASE WHEN n > {cap} THEN {cap} ELSE n END), 0)::HUGEINT AS n "
        "FROM deniable_lost"
    )
    return step_of(plan, select, tables_of(plan, pairs=True, l2=l2))


def step_of(plan: Plan, select: str, tables: dict[str, str]) -> Step:
    """A statement about the rows of a plan."""
    dense = frozenset({UNITS, COUNTS})
    staged = {} if plan.counted.staged is None else plan.counted.staged.tables
    rows = next(iter(staged.values()), None) or _base(plan.whole or plan)
    return Step(
        select, rows, {**staged, **tables}, dense, plan.resources.constants, plan.resources.veiled
    )


def tables_of(
    plan: Plan,
    *,
    counts: bool = False,
    heavy: bool = False,
    pairs: bool = False,
    units: bool = False,
    l2: bool = True,
) -> dict[str, str]:
    """The tables that a step needs: rows where they are kept, how many rows units have, their sums.

    Heavy units have more rows than count in full. Where the norm was bought, they are those whose
    upper bound on it is above the floor, by a margin for what floats lose.
    """
    tables = {ROWS: _base(plan.whole or plan, every_group=True)} if plan.stored else {}
    if counts:
        tables[COUNTS] = _counts(plan)
    if plan.fits:
        return tables
    bought = pairs and plan.contribution.floor is not None
    if units or bought:
        tables[UNITS] = _units_table(plan, l2=l2)
    if bought:
        tables[HEAVY] = f"SELECT u FROM {UNITS} WHERE {is_heavy(plan)}"
    elif heavy or pairs:
        tables[COUNTS] = _counts(plan)
        tables[HEAVY] = f"SELECT u FROM {COUNTS} WHERE n > {plan.contribution.rows}"
    if pairs:
        tables[PAIRS] = _pairs(plan)
    return tables


def is_heavy(plan: Plan) -> str:
    """Whether the upper bound on a unit's norm is above the floor, or about there."""
    assert plan.contribution.floor is not None
    return f"b > {double_text(plan.contribution.floor**2 * 0.999)}"


def _counts(plan: Plan) -> str:
    """For each unit, how many of its rows count, whatever is summed of them.

    Marginals of the same rows share one table: who has few of them has few in any marginal.
    """
    if plan.whole is not None:
        return f"SELECT u, COUNT(*) AS n FROM {ROWS} GROUP BY u"
    if not plan.stored:
        plan = replace(plan, counted=plan.counted.bare)
    return f"{with_base(plan)} SELECT u, COUNT(*) AS n FROM deniable_base GROUP BY u"


def _units_table(plan: Plan, *, l2: bool) -> str:
    """For each unit, the square of an upper bound on its joint norm.

    The sum of the norms of its rows: by the triangle inequality, no vector of sums is longer. Each
    is a whole number of steps, rounded up: a sum of other doubles would depend on the order in
    which rows come, that is on other people's. A row has 2^20 steps at most, so that those of 2^33
    rows are a whole number below 2^53, and exact.
    """
    most = _largest_row(plan, l2=l2)
    parts, counted = [], plan.counted
    for name, statistic, weight in zip(
        counted.summed, counted.statistics, plan.weights, strict=True
    ):
        if statistic.counts or statistic.per_unit:
            size = weight * weight if l2 else weight
            parts.append(f"CASE WHEN {name} IS NULL THEN 0e0 ELSE {double_text(size)} END")
        else:
            part = f"{double_text(weight)} * COALESCE({name}, 0)::DOUBLE"
            parts.append(f"({part}) * ({part})" if l2 else f"ABS({part})")
    row = f"SQRT({' + '.join(parts)})" if l2 else f"({' + '.join(parts)})"
    base = with_base(plan, every_group=True)
    steps = f"CEIL({row} * {double_text(_ROW_STEPS / most)})"
    return (
        f"{base}, deniable_sized AS (SELECT u, SUM({steps}) * {double_text(most / _ROW_STEPS)} "
        f"AS s FROM deniable_base{where_declared(plan)} GROUP BY u) "
        "SELECT u, s * s AS b FROM deniable_sized"
    )


def _largest_row(plan: Plan, *, l2: bool) -> float:
    """The largest norm of one row, and a little more, as floats round."""
    sizes = [
        weight * each.size
        for weight, each in zip(plan.weights, plan.counted.statistics, strict=True)
    ]
    most = math.sqrt(sum(size**2 for size in sizes)) if l2 else float(sum(sizes))
    return most * (1 + 2.0**-18)


@lru_cache(maxsize=1024)
def double_text(value: float) -> str:
    """A double as the engine reads it."""
    return double_literal(Fraction(value)).sql("duckdb")


def _pairs(plan: Plan) -> str:
    """The sums of heavy units, by declared group."""
    places = GroupPlaces(plan)
    sums = ", ".join(
        f"MAX(CASE WHEN {name} IS NOT NULL THEN 1 ELSE 0 END)::HUGEINT AS {name}"
        if statistic.per_unit
        else f"{_total(name, statistic)}::HUGEINT AS {name}"
        for name, statistic in zip(plan.counted.summed, plan.counted.statistics, strict=True)
    )
    return (
        f"{with_base(plan, every_group=True)}{places.lists} SELECT u, {places.picked}{sums} FROM "
        f"{places.rows(f'u IN (SELECT u FROM {HEAVY})')} "
        f"GROUP BY {', '.join(['u', *places.columns])}"
    )


def with_base(plan: Plan, *, every_group: bool = False) -> str:
    """The rows as the first common table expression."""
    if plan.stored:
        where = "" if every_group else where_declared(plan)
        return f"WITH deniable_base AS (SELECT * FROM {_stored(plan)}{where})"
    rows = _base(plan, every_group=every_group)
    if plan.counted.selected is not None and not every_group:
        rows = f"SELECT * FROM ({rows}) AS every_group WHERE {selected(plan)}"
    return f"WITH deniable_base AS NOT MATERIALIZED ({rows})"


def _stored(plan: Plan) -> str:
    """The rows that were made once; of those of a plan by more groups, the columns of this one."""
    if plan.whole is None:
        return ROWS
    groups = [f"g{place} AS g{new}" for new, place in enumerate(plan.places)]
    listed = ", ".join(["u", *groups, *plan.counted.summed])
    return f"(SELECT {listed} FROM {ROWS}) AS rows"


def _totals(plan: Plan, *, l2: bool) -> str:
    keys, stats = plan.counted.grouped, plan.counted.summed
    grouped = f" GROUP BY {', '.join(keys)}" if keys else ""
    picked = "".join(f"{key}, " for key in keys)
    sums = ", ".join(
        f"{_total(name, statistic)} AS {name}"
        for name, statistic in zip(stats, plan.counted.statistics, strict=True)
    )
    places = GroupPlaces(plan)
    base = f"{with_base(plan, every_group=True)}{places.lists}"
    by = f" GROUP BY {', '.join(places.columns)}" if keys else ""
    totals = f"SELECT {places.picked}{sums} FROM {places.rows()}{by}"
    plain = ", ".join(f"{1 << plan.bits} * {name}::HUGEINT AS {name}" for name in stats)
    bounded = f"SELECT {picked}{plain} FROM deniable_totals"
    if plan.fits:
        return f"{base}, deniable_totals AS MATERIALIZED ({totals}) {places.shown(bounded)}"
    less = ", ".join(f"-{name} AS {name}" for name in stats)
    cut = ", ".join(f"SUM({cut_of(plan, name)})::HUGEINT AS {name}" for name in stats)
    answer = ", ".join(f"SUM({name})::HUGEINT AS {name}" for name in stats)
    summed = (
        f"SELECT {picked}{answer} FROM ({bounded} "
        f"UNION ALL SELECT {picked}{less} FROM deniable_cut) AS summed{grouped}"
    )
    return (
        f"{base}, {norms_of(plan, l2=l2)}, {beyond_of(plan, l2=l2)}, "
        f"deniable_cut AS (SELECT {picked}{cut} FROM deniable_each "
        f"JOIN deniable_above USING (u){grouped}), "
        f"deniable_totals AS ({totals}) {places.shown(summed)}"
    )


def _base(plan: Plan, *, every_group: bool = False) -> str:
    """One row for each row that counts; several steps of a plan have the same text."""
    written, which = plan.counted.written, (plan.resources.promised, every_group)
    if which not in written:
        written[which] = _written(plan, every_group=every_group)
    return written[which]


def _written(plan: Plan, *, every_group: bool) -> str:
    """Whose each row is, in which group, with what numbers."""
    counted = plan.counted
    sql = counted.source.copy()
    sql.where(*counted.only, copy=False)
    for group in counted.groups:
        if group.keys is None:
            sql.where(answered(group), copy=False)
        elif not every_group:
            sql.where(one_of(exp.paren(group.sql.copy()), group.keys), copy=False)
    columns = [exp.alias_(counted.unit.copy(), "u", copy=False)]
    for name, group in zip(counted.grouped, counted.groups, strict=True):
        key = held(group) if plan.resources.promised else group.sql.copy()
        columns.append(exp.alias_(key, name, copy=False))
    for name, statistic in zip(counted.summed, counted.statistics, strict=True):
        value = statistic.sql.copy()
        if counted.staged is None and not statistic.counts and not statistic.per_unit:
            # Whatever its type: only whole numbers are summed.
            value = exp.TryCast(this=value, to=data_type("BIGINT"))
        columns.append(exp.alias_(value, name, copy=False))
    others = {"d": counted.distinct, "c": [grid.sql for grid in counted.grids]}
    for letter, values in others.items():
        for name, value in zip(names(letter, values), values, strict=True):
            columns.append(exp.alias_(value.copy(), name, copy=False))
    return str(sql.select(*columns, copy=False).sql("duckdb", copy=False))


def _total(name: str, statistic: Statistic) -> str:
    if statistic.per_unit:
        return f"COUNT(DISTINCT CASE WHEN {name} IS NOT NULL THEN u END)"
    if statistic.counts:
        return f"COUNT({name})"
    return f"COALESCE(SUM({name}), 0)"


def norms_of(plan: Plan, *, l2: bool) -> str:
    """The pairs of units that may be beyond the bound, and the norms of those units.

    Floats only say which units are surely within it, by a margin far above their rounding. For one
    of several groupings, a unit has the upper bound on its norm in any of them, a billionth more
    than floats say: scaled by one factor, its sums by groups still add up to its totals.
    """
    stats = plan.counted.summed
    if plan.contribution.jointly:
        norm = f"CEIL({'b' if l2 else 'SQRT(b)'} * {double_text(1 + 1e-9)})"
        # In two parts of 63 bits: not every engine makes a longer whole number of a double.
        high = f"FLOOR(x / {double_text(_HALF)})"
        low = f"(x - {high} * {double_text(_HALF)})::HUGEINT"
        whole = f"({high}::HUGEINT * {int(_HALF)}::HUGEINT + {low})::HUGEINT"
        return (
            f"deniable_each AS MATERIALIZED (SELECT * FROM {PAIRS}), "
            f"deniable_sizes AS (SELECT u, {norm} AS x FROM {UNITS} "
            f"WHERE u IN (SELECT u FROM {HEAVY})), "
            f"deniable_norms AS (SELECT u, {whole} AS q FROM deniable_sizes)"
        )
    most = float(plan.bound(l2=l2) ** (2 if l2 else 1)) * 0.999
    return (
        f"deniable_maybe AS (SELECT u FROM {PAIRS} GROUP BY u "
        f"HAVING SUM({size_of(plan, stats, 'DOUBLE', l2=l2)}) > {most!r}), "
        f"deniable_each AS MATERIALIZED (SELECT * FROM {PAIRS} WHERE u IN (SELECT u "
        "FROM deniable_maybe)), "
        f"deniable_norms AS (SELECT u, SUM({size_of(plan, stats, 'HUGEINT', l2=l2)})::HUGEINT AS q "
        f"FROM deniable_each GROUP BY u)"
    )


def beyond_of(plan: Plan, *, l2: bool) -> str:
    """The factor of each unit beyond the bound: f <= SCALE·SCALE·bound/norm.

    One division for each unit: those of 128 bits are slow.
    """
    scaled, norm = plan.bound(l2=l2) << FACTOR_BITS, _ROOT if l2 else "q"
    if l2 and plan.coarse:
        norm = f"({norm} * {1 << plan.coarse})"
    return (
        f"deniable_above AS (SELECT u, ({scaled}::HUGEINT // {norm}) AS f "
        f"FROM deniable_norms WHERE q > {_limit(plan, l2=l2)})"
    )


def _limit(plan: Plan, *, l2: bool) -> int:
    """The largest norm that is within the bound, in the steps that norms are taken in."""
    bound = plan.bound(l2=l2)
    return (bound >> plan.coarse) ** 2 if l2 else bound


def cut_of(plan: Plan, name: str) -> str:
    """What is cut off of one sum."""
    return f"{1 << plan.bits} * {name} - {_kept(plan, name)}"


def _kept(plan: Plan, name: str) -> str:
    """What is kept of one sum."""
    return f"SIGN({name})::HUGEINT * ((ABS({name}) * f) >> {FACTOR_BITS - plan.bits})"


def size_of(plan: Plan, stats: Sequence[str], kind: str, *, l2: bool) -> str:
    """What one group adds to a unit's norm: squares, or absolute values."""
    if l2 and plan.coarse and kind == "HUGEINT":
        stats = [f"((ABS({name}) >> {plan.coarse}) + 1)" for name in stats]
    scaled = [f"{w} * {name}::{kind}" for name, w in zip(stats, plan.weights, strict=True)]
    return added([f"({each}) * ({each})" if l2 else f"ABS({each})" for each in scaled])


def units_step(plan: Plan, max_groups: int, secret: str) -> Step:
    """SELECT groups, the weight of units in each, every unit in at most `max_groups` of them.

    Which are kept is decided by a keyed hash of the unit and the group: the same on every run, and
    nothing that data of others could change. A unit of g groups adds ⌊2^16/√g⌋ to each. Doubles
    give that: 2^32/g is no square of a whole number k, or is one and exact; if not, it is 1/g or
    more apart from k², and so its root 2^-28 or more from k where g <= 2^20, while quotient and
    root are rounded by less than 2^-35.
    """
    keys = plan.counted.grouped
    text = _hashed([*_name(plan), *keys], secret)
    return step_of(
        plan,
        f"{with_base(plan)}, deniable_each AS (SELECT DISTINCT u, {', '.join(keys)} "
        "FROM deniable_base), "
        f"deniable_ranked AS (SELECT *, ROW_NUMBER() OVER (PARTITION BY u ORDER BY {text}, "
        f"{', '.join(keys)}) AS n, COUNT(*) OVER (PARTITION BY u) AS g FROM deniable_each), "
        f"deniable_kept AS (SELECT {', '.join(keys)}, CASE WHEN g > {max_groups} "
        f"THEN {max_groups} ELSE g END AS g FROM deniable_ranked WHERE n - 1 < {max_groups}) "
        f"SELECT {', '.join(keys)}, SUM(FLOOR(SQRT({double_text(float(WEIGHT**2))} / g::DOUBLE))"
        f"::BIGINT)::HUGEINT AS steps FROM deniable_kept GROUP BY {', '.join(keys)}",
        tables_of(plan),
    )


def distinct_step(plan: Plan, number: int, secret: str) -> Step:
    """SELECT groups, COUNT(DISTINCT value), every unit with at most `rows` values in all."""
    keys, value = plan.counted.grouped, f"d{number}"
    listed = "".join(f"{key}, " for key in keys)
    text = _hashed([*_name(plan), *keys, value], secret)
    return step_of(
        plan,
        f"{with_base(plan)}, "
        f"deniable_each AS (SELECT DISTINCT u, {listed}{value} FROM deniable_base "
        f"WHERE {value} IS NOT NULL), "
        "deniable_ranked AS (SELECT *, ROW_NUMBER() OVER (PARTITION BY u "
        f"ORDER BY {text}, {listed}{value}) "
        f"AS n FROM deniable_each) "
        f"SELECT {listed}COUNT(DISTINCT {value}) AS {value} FROM deniable_ranked "
        f"WHERE n - 1 < {plan.contribution.rows}"
        f"{' GROUP BY ' + ', '.join(keys) if keys else ''}",
        tables_of(plan),
    )


def cells_step(plan: Plan, number: int, *, l2: bool) -> Step:
    """SELECT groups, a cell, the weight in it: SCALE for each row, less for those of heavy units.

    The rows of a unit in groups g make weights w_g. With all of one weight, they have the norm of
    the unit's counts by group times that; `rows` rows reach the norm `rows` in one group.
    """
    keys, cell = plan.counted.grouped, f"c{number}"
    listed = "".join(f"{key}, " for key in keys)
    kept = "".join(f"deniable_kept.{key}, " for key in keys)
    base = (
        f"{with_base(plan)}, deniable_kept AS (SELECT u, {listed}{cell} FROM deniable_base "
        f"WHERE NOT {cell} IS NULL)"
    )
    if plan.contribution.one_row:
        return step_of(
            plan,
            f"{base} SELECT {listed}{cell}, {SCALE} * COUNT(*) AS n FROM deniable_kept "
            f"GROUP BY {listed}{cell}",
            tables_of(plan),
        )
    size = "n::HUGEINT * n::HUGEINT" if l2 else "n::HUGEINT"
    rows = plan.contribution.rows
    limit = rows**2 if l2 else rows
    # The root in steps, rounded up: a unit keeps its bound but for a step a row.
    fine = _ROOT.replace("SQRT(q::DOUBLE)", f"SQRT(q::DOUBLE) * {SCALE}")
    norm = fine if l2 else f"(q * {SCALE})"
    grouped = "".join(f", {key}" for key in keys)
    return step_of(
        plan,
        f"{base}, deniable_each AS (SELECT u{grouped}, COUNT(*) AS n FROM deniable_kept "
        f"WHERE u IN (SELECT u FROM {HEAVY}) GROUP BY u{grouped}), "
        f"deniable_norms AS (SELECT u, SUM({size})::HUGEINT AS q FROM deniable_each GROUP BY u), "
        f"deniable_above AS (SELECT u, ({rows * SCALE**2}::HUGEINT // {norm})::BIGINT AS w "
        "FROM deniable_norms "
        f"WHERE q > {limit}) "
        f"SELECT {kept}deniable_kept.{cell}, SUM(COALESCE(deniable_above.w, {SCALE})) AS n "
        "FROM deniable_kept "
        "LEFT JOIN deniable_above ON deniable_kept.u = deniable_above.u "
        f"GROUP BY {kept}deniable_kept.{cell}",
        tables_of(plan, heavy=True),
    )


def _name(plan: Plan) -> list[str]:
    """The unit's name, where it has one: rows are numbered as they come, which others decide."""
    return ["u"] if plan.contribution.unit_has_name else []


def _hashed(columns: Sequence[str], secret: str) -> str:
    parts = " || '|' || ".join(f"COALESCE({name}::VARCHAR, '')" for name in columns)
    return f"MD5('{secret}' || {parts})"
