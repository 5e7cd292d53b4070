"""What is computed within one unit's rows: inner GROUP BY and window functions.

Sums of floats are made in fixed point, and orders are made total: a unit's result must not depend
on the order in which an engine happens to read its rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from deniable.errors import QueryError
from deniable.query.columns import Column
from deniable.query.expressions import Resolve, check, is_integer, safe
from deniable.tables import ColumnType

_FIXED = 1 << 20  # steps of a float sum within one unit
_FARTHEST = 2.0**42
_RANKS = (exp.RowNumber, exp.Rank, exp.DenseRank)
_SHIFTS = (exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue)
_AGGREGATES = (exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max, exp.CountIf)


def aggregate(node: exp.Expr, find: Resolve) -> tuple[exp.Expr, Column]:
    """One aggregate of a unit's rows: its SQL, and what is known of it."""
    if isinstance(node, exp.Filter):
        inner, known = aggregate(node.this, find)
        condition = node.expression.this
        check(condition, "FILTER")
        return exp.Filter(this=inner, expression=exp.Where(this=safe(condition))), known
    if not isinstance(node, _AGGREGATES):
        raise QueryError(
            f"{node.key.upper()} within a unit is not answered; COUNT, SUM, AVG, MIN and MAX are"
        )
    if isinstance(node, exp.Count):
        return _count(node), Column(ColumnType.INTEGER, private=True)
    check(node.this, f"{node.key.upper()}(...)")
    argument = safe(node.this)
    if isinstance(node, exp.CountIf):
        return exp.CountIf(this=argument), Column(ColumnType.INTEGER, private=True)
    source = find(node.this) if isinstance(node.this, exp.Column) else Column(None, private=True)
    if isinstance(node, exp.Min | exp.Max):
        return type(node)(this=argument), replace(source, is_unit=False)
    whole = is_integer(node.this, find)
    total = _exact_sum(argument, whole=whole)
    if isinstance(node, exp.Sum):
        kind = ColumnType.INTEGER if whole else ColumnType.NUMBER
        return _as_number(total, whole=whole), Column(kind, private=True)
    counted = exp.Nullif(this=exp.Count(this=argument.copy()), expression=exp.Literal.number(0))
    mean = exp.Div(this=exp.cast(_as_number(total, whole=whole), "DOUBLE"), expression=counted)
    return mean, Column(ColumnType.NUMBER, bounds=source.bounds, private=True)


def _count(node: exp.Count) -> exp.Expr:
    argument = node.this
    if isinstance(argument, exp.Star):
        return node.copy()
    values = argument.expressions if isinstance(argument, exp.Distinct) else [argument]
    for value in values:
        check(value, "COUNT(...)")
    if isinstance(argument, exp.Distinct):
        return exp.Count(this=exp.Distinct(expressions=[safe(value) for value in values]))
    return exp.Count(this=safe(argument))


def _exact_sum(argument: exp.Expr, *, whole: bool) -> exp.Expr:
    """A sum that does not depend on the order of rows."""
    if whole:
        return exp.Sum(this=exp.TryCast(this=argument, to=exp.DataType.build("BIGINT")))
    number = exp.TryCast(this=argument, to=exp.DataType.build("DOUBLE"))
    least = exp.Anonymous(this="LEAST", expressions=[number, exp.Literal.number(_FARTHEST)])
    ends = [least, exp.Neg(this=exp.Literal.number(_FARTHEST))]
    inside = exp.Anonymous(this="GREATEST", expressions=ends)
    steps = exp.Round(this=exp.Mul(this=inside, expression=exp.Literal.number(_FIXED)))
    return exp.Sum(this=exp.TryCast(this=steps, to=exp.DataType.build("BIGINT")))


def _as_number(total: exp.Expr, *, whole: bool) -> exp.Expr:
    if whole:
        return exp.TryCast(this=total, to=exp.DataType.build("BIGINT"))
    return exp.Div(this=exp.cast(total, "DOUBLE"), expression=exp.Literal.number(_FIXED))


def window(
    node: exp.Window, find: Resolve, columns: Mapping[str, Mapping[str, Column]]
) -> tuple[exp.Window, Column]:
    """A window function over one unit's rows."""
    parts = node.args.get("partition_by") or []
    if not any(isinstance(part, exp.Column) and find(part).is_unit for part in parts):
        raise QueryError(
            "a window function looks at one unit's rows only: add PARTITION BY the unit column"
        )
    for part in parts:
        check(part, "PARTITION BY")
    made = node.copy()
    made.set("partition_by", [safe(part) for part in parts])
    made.set("order", _total_order(node, columns))
    function = node.this
    if isinstance(function, _RANKS):
        return made, Column(ColumnType.INTEGER, private=True)
    if isinstance(function, _SHIFTS):
        for child in function.iter_expressions():
            check(child, f"{function.key.upper()}(...)")
        shifted = function.copy()
        shifted.set("this", safe(function.this))
        made.set("this", shifted)
        known = find(function.this) if isinstance(function.this, exp.Column) else Column(None)
        return made, replace(known, is_unit=False, private=True)
    inner, known = aggregate(function, find)
    if isinstance(function, exp.Sum) and known.kind == ColumnType.INTEGER:
        inner = inner.this  # the sum, without the cast around it
    if not isinstance(inner, exp.AggFunc):
        raise QueryError(
            f"{function.key.upper()} of fractions in a window is not answered; sum whole numbers, "
            "or aggregate by the unit in a subquery"
        )
    made.set("this", inner)
    return made, known


def _total_order(node: exp.Window, columns: Mapping[str, Mapping[str, Column]]) -> exp.Order | None:
    """The given order, ties broken by all columns, so that equal rows are all that is left."""
    given = node.args.get("order")
    if given is None and not isinstance(node.this, _RANKS + _SHIFTS):
        return None
    keys = [] if given is None else given.expressions
    for key in keys:
        check(key.this if isinstance(key, exp.Ordered) else key, "ORDER BY")
    ties = [
        exp.Ordered(this=exp.column(name, table=table, quoted=True), desc=False)
        for table, known in columns.items()
        for name in known
    ]
    ordered = [
        exp.Ordered(
            this=safe(key.this), desc=key.args.get("desc"), nulls_first=key.args.get("nulls_first")
        )
        for key in keys
    ]
    if isinstance(node.this, exp.Rank | exp.DenseRank):
        return exp.Order(expressions=ordered)  # equal keys share a rank, whatever their order
    return exp.Order(expressions=ordered + ties)
