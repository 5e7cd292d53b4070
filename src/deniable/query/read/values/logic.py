"""Comparisons, conditions and branches: operands of one type, which no engine has to cast."""

from __future__ import annotations

from sqlglot import exp

from deniable.errors import QueryError
from deniable.query.read.values.value import WORDS, Read, Value, closed, made, one_kind
from deniable.tables import ColumnType

_B = ColumnType.BOOLEAN


def truth(value: Value, where: str) -> exp.Expr:
    """A value as a condition."""
    if value.kind in {_B, None}:
        return value.sql
    if value.kind in {ColumnType.INTEGER, ColumnType.NUMBER}:
        zero = exp.Literal.number("0" if value.kind == ColumnType.INTEGER else "0e0")
        return exp.NEQ(this=closed(value.sql), expression=zero)
    raise QueryError(f"a {WORDS[value.kind]} in {where} is no condition; compare it with something")


def negated(node: exp.Expr, value: Value) -> Value:
    """NOT LIKE, NOT IN and NOT BETWEEN, where a parser keeps NOT inside."""
    if not node.args.get("negate"):
        return value
    return made(_B, exp.Not(this=exp.paren(value.sql)), value)


def compared(node: exp.Binary, read: Read) -> Value:
    """= <> < <= > >=."""
    parts = [read(node.left), read(node.right)]
    _, (left, right) = one_kind(parts, "a comparison", read.where)
    return made(_B, type(node)(this=closed(left), expression=closed(right)), *parts)


def between(node: exp.Between, read: Read) -> Value:
    """BETWEEN."""
    if node.args.get("symmetric"):
        raise QueryError("BETWEEN SYMMETRIC is not answered; put the lower end first")
    parts = [read(node.this), read(node.args["low"]), read(node.args["high"])]
    _, (value, low, high) = one_kind(parts, "BETWEEN", read.where)
    sql = exp.Between(this=closed(value), low=closed(low), high=closed(high))
    return negated(node, made(_B, sql, *parts))


def listed(node: exp.In, read: Read) -> Value:
    """IN a list."""
    if node.args.get("query") is not None or node.args.get("unnest") or node.args.get("field"):
        raise QueryError(
            f"a subquery in {read.where} is not answered; join the tables (private ones through "
            "the unit), or list the values"
        )
    if not node.expressions:
        raise QueryError("IN takes a list of values")
    parts = [read(node.this), *map(read, node.expressions)]
    _, (value, *others) = one_kind(parts, "IN", read.where)
    return negated(node, made(_B, exp.In(this=closed(value), expressions=others), *parts))


def is_(node: exp.Is, read: Read) -> Value:
    """IS NULL, IS TRUE, IS FALSE."""
    value, other = read(node.this), node.expression
    if isinstance(other, exp.Null):
        return made(_B, exp.Is(this=closed(value.sql), expression=exp.Null()), value)
    if not isinstance(other, exp.Boolean):
        raise QueryError(f"IS in {read.where} takes NULL, TRUE or FALSE")
    sql = exp.Is(this=exp.paren(truth(value, read.where)), expression=other.copy())
    return made(_B, sql, value)


def both(node: exp.Connector, read: Read) -> Value:
    """AND, OR."""
    parts = [read(node.left), read(node.right)]
    left, right = (truth(part, read.where) for part in parts)
    left = left if type(left) is type(node) else _grouped(left)  # read from the left anyway
    return made(_B, type(node)(this=left, expression=_grouped(right)), *parts)


def _grouped(sql: exp.Expr) -> exp.Expr:
    return exp.paren(sql) if isinstance(sql, exp.And | exp.Or) else sql


def not_(node: exp.Not, read: Read) -> Value:
    """NOT."""
    value = read(node.this)
    inner = truth(value, read.where)
    return made(
        _B, exp.Not(this=inner if isinstance(inner, exp.Paren) else exp.paren(inner)), value
    )


def bracket(node: exp.Paren, read: Read) -> Value:
    """Brackets: constants stay constants."""
    value = read(node.this)
    if value.constant is not None or value.kind is None:
        return value
    sql = value.sql if isinstance(value.sql, exp.Paren) else exp.paren(value.sql)
    return Value(value.kind, sql, None, value.guarded, value.wild, value.copies)


def case(node: exp.Expr, read: Read) -> Value:
    """CASE and IF."""
    branches = node.args.get("ifs") or [node]
    operand = node.this if isinstance(node, exp.Case) else None
    tests = [read(branch.this) for branch in branches]
    parts, conditions = list(tests), list[exp.Expr]()
    compared_to: exp.Expr | None = None
    if operand is not None:
        parts.append(read(operand))
        _, (compared_to, *conditions) = one_kind([parts[-1], *tests], "CASE", read.where)
    else:
        conditions = [truth(test, read.where) for test in tests]
    other = node.args.get("default") or node.args.get("false")
    given = [branch.args["true"] for branch in branches] + ([] if other is None else [other])
    values = [read(each) for each in given]
    kind, sqls = one_kind(values, "CASE", read.where)
    ifs = [
        exp.If(this=condition, true=value)
        for condition, value in zip(conditions, sqls, strict=False)
    ]
    default = sqls[-1] if other is not None else None
    return made(kind, exp.Case(this=compared_to, ifs=ifs, default=default), *parts, *values)


def alike(node: exp.Expr, read: Read) -> Value:
    """COALESCE, GREATEST, LEAST."""
    parts = [read(each) for each in (node.this, *node.expressions)]
    kind, (first, *others) = one_kind(parts, node.key.upper(), read.where)
    sql = type(node)(this=first, expressions=others)
    if not isinstance(node, exp.Coalesce):
        sql.set("ignore_nulls", True)  # as DuckDB has them
    return made(kind, sql, *parts)


def nullif(node: exp.Nullif, read: Read) -> Value:
    """NULLIF."""
    parts = [read(node.this), read(node.expression)]
    kind, (value, other) = one_kind(parts, "NULLIF", read.where)
    return made(kind, exp.Nullif(this=value, expression=other), *parts)
