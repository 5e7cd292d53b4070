"""The outer SELECT: groups, aggregates, and what is computed from them once they are released."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlglot import exp

from deniable.engines.trees import is_aggregate, ordered
from deniable.errors import QueryError
from deniable.query.plan.aggregates import Statistics, counted_rows, settle
from deniable.query.plan.counted import Counted
from deniable.query.plan.keys import Group, held_bytes
from deniable.query.plan.measures import Measure
from deniable.query.plan.plan import Contribution, Output, Plan, Resources, Shown
from deniable.query.read.catalogue import Options
from deniable.query.read.columns import CELL, Resolve, bytes_of, no_unit
from deniable.query.read.excluded import possible
from deniable.query.read.expressions import known_values
from deniable.query.read.fan import STORED_GROWTH
from deniable.query.read.grouping import Set
from deniable.query.read.released import bare, check_public, whole_number
from deniable.query.read.sources import Sources
from deniable.query.read.values.operators import read_column
from deniable.query.read.values.value import finished
from deniable.tables import ColumnType, check_keys

_MOST_WEIGHTS = 50_000_000


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
    cells = math.prod(len(group.keys) if group.keys else 1 for group in made)
    statistics = Statistics(
        find,
        counted_rows(select),
        options.centres,
        options.reaches,
        several=not (read.merged.single and read.merged.rows == 1),
        grouped=bool(groups),
    )
    over = _Over(groups, statistics)
    outputs = tuple(map(over.output, select.expressions))
    having, order = select.args.get("having"), select.args.get("order")
    names = {output.name: output.sql for output in outputs}
    condition = None if having is None else over.expression(having.this)
    by = [] if order is None else order.expressions
    sorts = tuple(ordered(over.expression(each.this, names), each) for each in by)
    measures = tuple(over.measures.values())
    if not measures:
        raise QueryError("a question asks for at least one aggregate: COUNT(*), SUM(x), ...")
    if select.args.get("distinct"):
        raise QueryError("SELECT DISTINCT of aggregates is not answered; groups differ anyway")
    statistic = tuple(statistics.found)
    settled = tuple(settle(m, len(statistic), len(statistics.distinct)) for m in measures)
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
        contribution=replace(
            Contribution.of(merged),
            unbounded=tuple(statistics.unbounded.values()),
            reaches=options.reaches,
        ),
        shown=Shown(
            measures=settled,
            outputs=outputs,
            having=condition,
            order=sorts,
            limit=whole_number(select, "limit"),
            offset=whole_number(select, "offset") or 0,
            notes=tuple(group.note for group in made if group.note),
        ),
        resources=Resources(
            simple=merged.simple and (not merged.joined or merged.growth > STORED_GROWTH),
            growth=merged.growth,
            kept=merged.kept,
            width=merged.unit_width
            + sum(map(held_bytes, made))
            + bytes_of(statistics.kinds)
            + CELL * (len(statistics.found) + len(statistics.grids)),
        ),
        population=merged.population,
        tables=merged.tables,
        text="",
    )


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
        kept = possible(kept, where.this, lambda each: text_of(each) == text)
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


class _Over:
    """What is made of the released table: of groups g0, g1, ..., and of measures m0, m1, ..."""

    def __init__(self, groups: Sequence[exp.Expr], statistics: Statistics) -> None:
        self._statistics = statistics
        self._keys = {text_of(group): number for number, group in enumerate(groups)}
        self._shapes = {type(bare(group)) for group in groups}
        self.measures: dict[str, Measure] = {}

    def output(self, projection: exp.Expr) -> Output:
        """A column of the answer."""
        name, node = projection.alias, bare(projection)
        group = self._keys.get(text_of(node))
        sql = self.expression(node) if group is None else exp.column(f"g{group}")
        return Output(name, sql, group)

    def expression(self, node: exp.Expr, names: Mapping[str, exp.Expr] | None = None) -> exp.Expr:
        """An expression of aggregates, groups and columns of these names."""
        made = self._replaced(node.copy(), names or {}).transform(_whole_division)
        check_public(made)
        return made

    def _replaced(self, node: exp.Expr, names: Mapping[str, exp.Expr]) -> exp.Expr:
        """The tree with parts put in, from the top; what was put in is not looked into."""
        new = self._put_in(node, names)
        if new is not node:
            return new
        for child in list(node.iter_expressions()):
            found = self._replaced(child, names)
            if found is not child:
                child.replace(found)
        return node

    def _put_in(self, each: exp.Expr, names: Mapping[str, exp.Expr]) -> exp.Expr:
        if type(each) in self._shapes and text_of(each) in self._keys:
            return exp.column(f"g{self._keys[text_of(each)]}")
        if isinstance(each, exp.Grouping):
            texts = [text_of(part) for part in each.expressions]
            if len(texts) != 1 or texts[0] not in self._keys:
                raise QueryError("GROUPING takes one expression that is grouped by")
            return exp.column(f"s{self._keys[texts[0]]}")
        if is_aggregate(each):
            text = text_of(each)
            if text not in self.measures:
                self.measures[text] = self._statistics.measure(each)
            return exp.column(f"m{list(self.measures).index(text)}")
        if isinstance(each, exp.Column):
            if not each.table and each.name in names:
                return exp.paren(names[each.name].copy())
            text = each.sql("duckdb")
            raise QueryError(f"{text} is neither grouped by nor inside an aggregate")
        if isinstance(each, exp.Window | exp.Subquery | exp.Select | exp.Exists):
            raise QueryError(f"{each.key.upper()} over aggregates is not answered")
        return each


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


def _whole_division(node: exp.Expr) -> exp.Expr:
    """Released numbers have fractions, which // would keep."""
    if isinstance(node, exp.IntDiv):
        return exp.Floor(this=exp.Div(this=node.this, expression=node.expression))
    return node


def text_of(node: exp.Expr) -> str:
    """The text by which expressions are told apart."""
    return str(bare(node).sql("duckdb"))
