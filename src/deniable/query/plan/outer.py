"""The outer SELECT: groups, aggregates, and what is computed from them once they are released."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import sqlglot
from sqlglot import exp

from deniable.errors import QueryError
from deniable.query.plan.aggregates import Statistics, counted_rows, settle
from deniable.query.plan.counted import Counted, Group
from deniable.query.plan.keys import held_bytes
from deniable.query.plan.measures import Measure
from deniable.query.plan.plan import Contribution, Output, Plan, Resources, Shown
from deniable.query.read.catalogue import Options
from deniable.query.read.checks import no_unit
from deniable.query.read.columns import CELL, bytes_of
from deniable.query.read.excluded import split
from deniable.query.read.expressions import known_values
from deniable.query.read.fan import STORED_GROWTH
from deniable.query.read.grouping import Set
from deniable.query.read.released import bare, check_public, whole_number
from deniable.query.read.sources import Sources
from deniable.query.read.values.operators import Resolve, read_column
from deniable.query.read.values.value import finished
from deniable.tables import ColumnType, check_keys

_MOST_WEIGHTS = 50_000_000

Measured = Callable[[exp.Expr], exp.Expr]


def plan_of(
    select: exp.Select,
    read: Sources,
    find: Resolve,
    grouped: tuple[list[exp.Expr], list[Set]],
    options: Options,
) -> Plan:
    """The plan of a SELECT of aggregates."""
    groups, sets = grouped
    made = tuple(_group(group, select, find, options) for group in groups)
    cells = 1
    for group in made:
        cells *= len(group.keys) if group.keys else 1
    statistics = Statistics(
        find,
        counted_rows(select),
        options.centres,
        options.reaches,
        several=not (read.merged.single and read.merged.rows == 1),
        grouped=bool(groups),
    )
    measures: dict[str, Measure] = {}

    def measured(node: exp.Expr) -> exp.Expr:
        text = text_of(node)
        if text not in measures:
            measures[text] = statistics.measure(node)
        return exp.column(f"m{list(measures).index(text)}")

    keys = {text_of(group): number for number, group in enumerate(groups)}
    outputs = tuple(_output(projection, keys, measured) for projection in select.expressions)
    having = select.args.get("having")
    names = {output.name: output.sql for output in outputs}
    condition = None if having is None else _released(having.this, keys, measured, {})
    ordered = _order(select, keys, measured, names)
    if not measures:
        raise QueryError("a question asks for at least one aggregate: COUNT(*), SUM(x), ...")
    if select.args.get("distinct"):
        raise QueryError("SELECT DISTINCT of aggregates is not answered; groups differ anyway")
    statistic = tuple(statistics.found)
    settled = tuple(settle(m, len(statistic), len(statistics.distinct)) for m in measures.values())
    widest = max((grid.cells for grid in statistics.grids), default=0)
    if cells * widest > _MOST_WEIGHTS:
        raise QueryError(
            f"quantiles of {cells:,} groups in {widest:,} cells each are too many; declare "
            "fewer keys, or a coarser grid"
        )
    if len(sets) > 1:
        _check_groupings(made, statistics)
    merged = read.merged
    assert merged.population is not None
    return Plan(
        counted=Counted(
            source=read.sql,
            unit=merged.sql,
            groups=made,
            sets=tuple(sets),
            statistics=statistic,
            distinct=tuple(statistics.distinct),
            grids=tuple(statistics.grids),
            ranks=tuple(statistics.ranks),
        ),
        contribution=Contribution(
            rows=merged.rows,
            single=merged.single,
            unit_has_name=merged.unit_has_name,
            cap=merged.cap,
            max_groups=merged.max_groups,
            fan=merged.fan,
            most=merged.most,
            left_out=merged.left_out,
            unbounded=tuple(statistics.unbounded.values()),
            reaches=options.reaches,
        ),
        shown=Shown(
            measures=settled,
            outputs=outputs,
            having=condition,
            order=ordered,
            limit=whole_number(select, "limit"),
            offset=whole_number(select, "offset") or 0,
            notes=tuple(group.note for group in made if group.note),
        ),
        resources=Resources(
            simple=merged.simple and (not merged.joined or merged.growth > STORED_GROWTH),
            growth=merged.growth,
            kept=merged.kept,
            width=_width(made, statistics, merged.unit_width),
        ),
        population=merged.population,
        tables=merged.tables,
        text="",
    )


def _width(groups: Sequence[Group], statistics: Statistics, unit: int) -> int:
    """Bytes of a row that is counted, at the worst."""
    numbers = CELL * (len(statistics.found) + len(statistics.grids))
    return unit + sum(map(held_bytes, groups)) + bytes_of(statistics.kinds) + numbers


def _group(node: exp.Expr, select: exp.Select, find: Resolve, options: Options) -> Group:
    if isinstance(node, exp.Literal):
        raise QueryError("GROUP BY a constant is not answered")
    if isinstance(node, exp.Column) and find(node).is_unit:
        raise QueryError("grouping by the unit shows people one by one; it is not answered")
    no_unit(node, find, "GROUP BY")
    text = text_of(node.unnest())
    name = next((e.alias for e in select.expressions if text_of(bare(e).unnest()) == text), None)
    name = name or (node.name if isinstance(node, exp.Column) else text)
    value = read_column(node, find, "GROUP BY")
    if value.kind == ColumnType.NUMBER:
        raise QueryError(
            f"GROUP BY {node.sql('duckdb')[:40]}: fractions are no groups; use FLOOR(...), a "
            "CASE, or CAST to INTEGER"
        )
    keys, note = options.keys.get(name, known_values(node, find)), ""
    if keys is not None:
        check_keys(name, keys, value.kind)
        keys, note = _kept(name, keys, node, select, find)
    return Group(name, finished(value), value.kind, keys, note)


def _kept(
    name: str, keys: tuple[Any, ...], node: exp.Expr, select: exp.Select, find: Resolve
) -> tuple[tuple[Any, ...], str]:
    """The keys that WHERE does not exclude, and what is to be said of the others.

    Those have no rows on any data: nothing but noise would be shown of them.
    """
    where, text = select.args.get("where"), text_of(node)
    below = find(node).excluded if isinstance(node, exp.Column) else frozenset()
    kept = tuple(key for key in keys if key not in below)
    if where is not None:
        kept, _ = split(kept, where.this, lambda each: text_of(each) == text)
    left = set(kept)
    excluded = [key for key in keys if key not in left]
    if not excluded:
        return keys, ""
    if not kept:
        raise QueryError(
            f"WHERE excludes every declared key of {name[:40]}: no row would be counted; ask for "
            "other keys, or without that condition"
        )
    shown = ["".join(char for char in str(key)[:40] if char.isprintable()) for key in excluded[:5]]
    more = f" and {len(excluded) - 5:,} others" if len(excluded) > 5 else ""
    return kept, f"WHERE excludes these keys of {name[:40]}: {', '.join(shown)}{more}"


def _output(projection: exp.Expr, keys: Mapping[str, int], measured: Measured) -> Output:
    name, node = projection.alias, bare(projection)
    if text_of(node) in keys:
        return Output(name, exp.column(f"g{keys[text_of(node)]}"), keys[text_of(node)])
    return Output(name, _released(node, keys, measured, {}), None)


def _released(
    node: exp.Expr,
    keys: Mapping[str, int],
    measured: Measured,
    names: Mapping[str, exp.Expr],
) -> exp.Expr:
    """An expression of aggregates and groups, over the released table."""
    shapes = {type(sqlglot.parse_one(text, read="duckdb")) for text in keys}

    def put_in(each: exp.Expr) -> exp.Expr:
        if type(each) in shapes and text_of(each) in keys:
            return exp.column(f"g{keys[text_of(each)]}")
        if isinstance(each, exp.Grouping):
            texts = [text_of(part) for part in each.expressions]
            if len(texts) != 1 or texts[0] not in keys:
                raise QueryError("GROUPING takes one expression that is grouped by")
            return exp.column(f"s{keys[texts[0]]}")
        if isinstance(each, exp.AggFunc) or (
            isinstance(each, exp.Filter) and isinstance(each.this, exp.AggFunc)
        ):
            return measured(each)
        if isinstance(each, exp.Column):
            if not each.table and each.name in names:
                return exp.paren(names[each.name].copy())
            text = each.sql("duckdb")
            raise QueryError(f"{text} is neither grouped by nor inside an aggregate")
        if isinstance(each, exp.Window | exp.Subquery | exp.Select | exp.Exists):
            raise QueryError(f"{each.key.upper()} over aggregates is not answered")
        return each

    made = _replaced(node.copy(), put_in).transform(_whole_division)
    check_public(made)
    return made


def _order(
    select: exp.Select,
    keys: Mapping[str, int],
    measured: Measured,
    names: Mapping[str, exp.Expr],
) -> tuple[exp.Expr, ...]:
    order = select.args.get("order")
    if order is None:
        return ()
    made = []
    for each in order.expressions:
        inner = _released(each.this, keys, measured, names)
        made.append(
            exp.Ordered(
                this=inner, desc=each.args.get("desc"), nulls_first=each.args.get("nulls_first")
            )
        )
    return tuple(made)


def _check_groupings(groups: Sequence[Group], statistics: Statistics) -> None:
    """Several groupings at once need public groups and sums."""
    for group in groups:
        if group.keys is None:
            raise QueryError(
                f"ROLLUP, CUBE and GROUPING SETS need public groups; declare keys="
                f"{{'{group.name}': [...]}}"
            )
    if statistics.distinct or statistics.ranks:
        raise QueryError(
            "COUNT(DISTINCT column) and quantiles are not answered in several groupings at once; "
            "ask for each grouping"
        )


def _replaced(node: exp.Expr, put_in: Measured) -> exp.Expr:
    """The tree with parts put in, from the top; what was put in is not looked into."""
    new = put_in(node)
    if new is not node:
        return new
    for child in list(node.iter_expressions()):
        found = _replaced(child, put_in)
        if found is not child:
            child.replace(found)
    return node


def _whole_division(node: exp.Expr) -> exp.Expr:
    """Released numbers have fractions, which // would keep."""
    if isinstance(node, exp.IntDiv):
        return exp.Floor(this=exp.Div(this=node.this, expression=node.expression))
    return node


def text_of(node: exp.Expr) -> str:
    """The text by which expressions are told apart."""
    return str(bare(node).sql("duckdb"))
