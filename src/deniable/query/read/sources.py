"""FROM: tables, subqueries, joins and unions, and whose rows come out of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from deniable.engines.leaves import MOST_BYTES
from deniable.engines.trees import named as aliased
from deniable.errors import QueryError
from deniable.query.read.columns import (
    BOUGHT,
    UNIT,
    Column,
    Kept,
    RowSet,
    columns_in,
    no_unit,
    resolver,
)
from deniable.query.read.expressions import most_places
from deniable.query.read.fan import (
    MOST_FAN,
    MOST_ROWS,
    Count,
    FanOut,
    Met,
    conjuncts,
    first_rows,
    spread,
)
from deniable.query.read.values.operators import condition as read_condition


@dataclass(frozen=True)
class Released:
    """A relation that was released: noisy aggregates, about which anything may be computed."""

    plan: object
    names: tuple[str, ...]


Named = dict[str, "RowSet | Released"]
Compile = Callable[[exp.Expr, Named], "RowSet | Released"]


@dataclass(frozen=True)
class Sources:
    """What a SELECT reads from: the FROM clause, and its columns by alias."""

    sql: exp.Select
    columns: Mapping[str, Mapping[str, Column]]
    merged: RowSet


def read_sources(
    select: exp.Select, named: Named, compile_: Compile, count: Count
) -> Sources | Released:
    """Read FROM and JOIN; public tables that are joined are counted."""
    origin = select.args.get("from_")
    if origin is None:
        raise QueryError("a question needs FROM and a table")
    first = source(origin.this, named, compile_)
    alias = origin.this.alias_or_name
    joins = select.args.get("joins") or []
    if isinstance(first, Released):
        if joins:
            raise QueryError("a released answer is not joined; compute with its columns")
        return first
    sql = exp.Select().from_(aliased(first.sql.copy(), alias))
    columns = {alias: first.columns}
    merged, holder = first, (alias if first.private else None)
    met = {alias: Met(first, None, left=False)}
    for join in joins:
        right = source(join.this, named, compile_)
        if isinstance(right, Released):
            raise QueryError("a released answer is not joined; compute with its columns")
        name = join.this.alias_or_name
        if name in columns:
            raise QueryError(f"the name {name} is used twice in FROM; give aliases")
        columns[name] = right.columns
        condition = join.args.get("on")
        _check_side(join, merged, right)
        met[name] = Met(right, condition, (join.side or "").upper() == "LEFT")
        if merged.private and right.private:
            assert holder is not None
            condition = _through_the_unit(condition, columns, holder, name)
        elif condition is not None:
            condition = read_condition(condition, resolver(columns), "ON")
        rows = aliased(right.sql.copy(), name)
        if condition is None:
            sql.append("joins", exp.Join(this=rows, kind="CROSS"))
        else:
            sql.append("joins", exp.Join(this=rows, on=condition, side=join.side or None))
        if met[name].left:
            # NULL where nothing matched: no name of anybody, and so not to be grouped by.
            columns[name] = {n: c for n, c in right.columns.items() if not c.is_unit}
        holder = holder if merged.private else (name if right.private else None)
        merged = _merge(merged, right)
    where = select.args.get("where")
    found = spread(met, None if where is None else where.this, resolver(columns), count)
    for name, most in found.kept.items():
        _side(sql, name).set("this", first_rows(met[name].relation, most).sql)
    merged = _spread(merged, met, found)
    located = replace(
        merged, sql=exp.column(UNIT, table=holder, quoted=True) if holder else merged.sql
    )
    return Sources(sql, columns, located)


def _side(sql: exp.Select, alias: str) -> exp.Expr:
    """The subquery of this name in FROM."""
    sides: list[exp.Expr] = [
        sql.args["from_"].this,
        *(join.this for join in sql.args.get("joins") or []),
    ]
    return next(side for side in sides if side.alias == alias)


def _spread(merged: RowSet, met: Mapping[str, Met], found: FanOut) -> RowSet:
    """What joins make of a relation: how many rows count in full, and how many there can be."""
    if len(met) == 1 or not merged.private:
        return merged
    private = [each.relation for each in met.values() if each.relation.private]
    compared = sum(_computed(each.on) for each in met.values())
    sides = [Kept(side.width + compared * MOST_BYTES, side.growth) for side in private]
    kept = (*(n for side in private for n in side.left_out), *found.kept.values())
    promised = None  # what a cut leaves out is not promised by anybody
    if len(private) == 1 and merged.cap is not None and merged.cap * found.fan <= MOST_ROWS:
        promised = merged.cap * found.fan
    return replace(
        merged,
        rows=merged.rows * found.fan,
        fan=found.fan * math.prod(side.fan for side in private),
        most=found.most,
        growth=found.growth,
        joined=True,
        simple=all(side.simple for side in private),
        left_out=kept,
        cap=promised,
        kept=(*(each for side in private for each in side.kept), *sides),
    )


def _computed(condition: exp.Expr | None) -> int:
    """How many values are computed to be compared in a join, which may hold them."""
    parts = [part for part in conjuncts(condition) if isinstance(part, exp.EQ)]
    ends = [end for part in parts for end in (part.left, part.right)]
    return sum(not isinstance(end, exp.Column | exp.Literal) for end in ends)


def source(node: exp.Expr, named: Named, compile_: Compile) -> RowSet | Released:
    """One table, common table expression, subquery or union."""
    if isinstance(node, exp.Table):
        if node.args.get("db") or node.args.get("catalog"):
            raise QueryError(f"{node.sql('duckdb')}: name the session's tables without a schema")
        for clause in ("sample", "pivots", "joins", "laterals", "version"):
            if node.args.get(clause):
                raise QueryError(f"{clause.upper()} of a table is not answered")
        if not isinstance(node.this, exp.Identifier):
            raise QueryError("functions in FROM are not answered; name a table of the session")
        return compile_(node, named)
    if isinstance(node, exp.Subquery):
        return compile_(node.this, named)
    raise QueryError(f"{node.key.upper()} in FROM is not answered; name a table or a subquery")


def _check_side(join: exp.Join, left: RowSet, right: RowSet) -> None:
    side, kind = (join.side or "").upper(), (join.kind or "").upper()
    if kind not in {"", "INNER", "CROSS", "OUTER"} or join.method:
        raise QueryError(f"{join.method or kind} JOIN is not answered; use INNER or LEFT JOIN")
    if side in {"RIGHT", "FULL"} or (side == "LEFT" and right.private and not left.private):
        raise QueryError(
            "an outer join that keeps rows of the public side is not answered; put the private "
            "table first: private LEFT JOIN public"
        )


def _through_the_unit(
    condition: exp.Expr | None,
    columns: Mapping[str, Mapping[str, Column]],
    left: str,
    right: str,
) -> exp.Expr:
    """Rows of two private tables meet only within one unit."""
    find = resolver(columns)
    parts = conjuncts(condition)
    units: list[exp.Expr] = []
    rest: list[exp.Expr] = []
    for part in parts:
        sides = [part.left, part.right] if isinstance(part, exp.EQ) else []
        named = [side for side in sides if isinstance(side, exp.Column) and find(side).is_unit]
        both = len(named) == 2 and (named[0].table == right) != (named[1].table == right)
        if both:
            units.append(part)
        else:
            rest.append(part)
    kinds = {find(side).kind for part in units for side in columns_in(part)}
    if len(kinds) > 1:
        raise QueryError("units of different types are not joined; make them alike at the source")
    if not units:
        raise QueryError(
            "private tables are joined through the unit: ON a.unit = b.unit (AND ...); other joins "
            "would mix rows of different people"
        )
    made: exp.Expr = exp.EQ(
        this=exp.column(UNIT, table=left, quoted=True),
        expression=exp.column(UNIT, table=right, quoted=True),
    )
    for part in rest:
        no_unit(part, find, "ON")
        made = exp.And(this=made, expression=exp.paren(read_condition(part, find, "ON")))
    return made


def _merge(left: RowSet, right: RowSet) -> RowSet:
    if not right.private:
        return replace(left, single=False)
    if not left.private:
        return replace(right, single=False)
    if left.unit_kind != right.unit_kind:
        raise QueryError("units of different types are not joined; make them alike at the source")
    if left.population != right.population:
        raise QueryError(
            f"tables of different populations ({left.population}, {right.population}) are not "
            "joined: nobody's budget covers both"
        )
    return replace(
        left,
        tables=tuple(dict.fromkeys(left.tables + right.tables)),
        rows=left.rows * right.rows,
        single=left.single and right.single,
        cap=None,
        max_groups=left.max_groups or right.max_groups,
    )


def union(node: exp.Expr, named: Named, compile_: Compile) -> RowSet:
    """UNION ALL of relations with the same columns and population."""
    if not isinstance(node, exp.Union) or node.args.get("distinct"):
        raise QueryError(f"{node.key.upper()} is not answered; UNION ALL of like tables is")
    if node.args.get("by_name") or node.args.get("order") or node.args.get("limit"):
        raise QueryError("a UNION ALL of private rows has no BY NAME, ORDER BY or LIMIT")
    parts = [compile_(side, named) for side in (node.left, node.right)]
    left, right = parts
    if isinstance(left, Released) or isinstance(right, Released):
        raise QueryError("released answers are not united; ask one question with more groups")
    if left.private != right.private or left.population != right.population:
        raise QueryError("UNION ALL needs tables of one population on both sides")
    if len(left.columns) != len(right.columns):
        raise QueryError("both sides of a UNION ALL have the same number of columns")
    columns = {
        name: _both(one, other)
        for (name, one), other in zip(left.columns.items(), right.columns.values(), strict=True)
    }
    if left.unit_has_name != right.unit_has_name:
        raise QueryError("tables whose rows are the units are not united with others")
    if left.unit_kind != right.unit_kind:
        raise QueryError("units of different types are not united; make them alike at the source")
    if left.private and not left.unit_has_name and set(left.tables) & set(right.tables):
        raise QueryError("a table whose rows are the units is not united with itself")
    sides = []
    for number, relation in enumerate((left, right)):
        picked: list[exp.Expr] = [exp.column(name, quoted=True) for name in relation.columns]
        if relation.private:
            picked.append(_whose(relation, number))
        sides.append(exp.select(*picked).from_(aliased(relation.sql.copy(), "side")))
    return replace(
        left,
        sql=exp.Union(this=sides[0], expression=sides[1], distinct=False),
        columns=columns,
        tables=tuple(dict.fromkeys(left.tables + right.tables)),
        rows=_united(left, right),
        single=not left.unit_has_name and left.single and right.single,
        simple=False,
        cap=None,
        fan=_together(left, right),
        most=None if left.most is None or right.most is None else left.most + right.most,
        growth=left.growth + right.growth,
        left_out=left.left_out + right.left_out,
        kept=left.kept + right.kept,
    )


def _together(left: RowSet, right: RowSet) -> int:
    """What a row becomes on both sides together, if it can be on both."""
    if not left.private:
        return 1
    fan = max(left.fan, right.fan)
    if set(left.tables) & set(right.tables):
        fan = left.fan + right.fan
    if fan > MOST_FAN:
        raise QueryError(
            f"this UNION ALL makes up to {fan:,} rows of each row; {MOST_FAN:,} are the most"
        )
    return fan


def _united(left: RowSet, right: RowSet) -> int:
    if BOUGHT in {left.rows, right.rows}:
        return BOUGHT
    return left.rows + right.rows if left.unit_has_name else max(left.rows, right.rows)


def _whose(relation: RowSet, number: int) -> exp.Expr:
    """The unit; rows that are units of their own are numbered apart on both sides."""
    unit: exp.Expr = exp.column(UNIT, quoted=True)
    if not relation.unit_has_name:
        twice = exp.Mul(this=unit, expression=exp.Literal.number(2))
        unit = exp.Add(this=twice, expression=exp.Literal.number(number))
    return exp.alias_(unit, UNIT, quoted=True)


def _both(one: Column, other: Column) -> Column:
    if one.kind is None or one.kind != other.kind or one.is_unit != other.is_unit:
        raise QueryError("columns of a UNION ALL have the same types, and the unit in one place")
    bounds = None
    if one.bounds is not None and other.bounds is not None:
        bounds = (min(one.bounds[0], other.bounds[0]), max(one.bounds[1], other.bounds[1]))
    keys = None
    if one.keys is not None and other.keys is not None:
        keys = tuple(dict.fromkeys(one.keys + other.keys))
    return replace(
        one,
        bounds=bounds,
        keys=keys,
        grid=one.grid if one.grid == other.grid else None,
        places=most_places([one.places, other.places]),
        excluded=one.excluded & other.excluded,
    )
