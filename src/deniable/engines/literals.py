"""Constants in SQL: the only way by which a public number, text, day or time reaches an engine.

A constant is canonical, like the values it stands beside: 64-bit whole numbers, finite doubles with
one zero, UTF-8 text, days and times of the years 1 to 9999. What is none of these is refused before
anything is charged: beside the wrong constant an engine could raise for one row and not for others.
"""

from __future__ import annotations

from datetime import date, datetime
from fractions import Fraction
from functools import cache

from sqlglot import exp

from deniable.errors import QueryError
from deniable.tables import LONGEST_TEXT, MOST_WHOLE, ColumnType, unfit

MOMENT = "^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([ T][0-9]{1,2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,6})?)?)?$"
"""What a text looks like that is read as a day or time, on every engine."""


@cache
def _named_type(name: str) -> exp.DataType:
    return exp.DataType.build(name)


def data_type(name: str) -> exp.DataType:
    """A type of SQL by its name, which is read once."""
    return _named_type(name).copy()


def cast_to(sql: exp.Expr, name: str) -> exp.Cast:
    """A cast that cannot fail."""
    return exp.Cast(this=sql, to=data_type(name))


def literal(kind: ColumnType, value: object) -> exp.Expr:
    """A constant of a type, or QueryError."""
    if wrong := unfit(kind, value):
        raise QueryError(f"a constant of type {kind}: {wrong}")
    match value:
        case bool():
            return exp.Boolean(this=value)
        case int() if kind == ColumnType.INTEGER:
            return cast_to(whole_literal(value), "BIGINT")
        case int() | float() | Fraction():
            return double_literal(Fraction(value))
        case datetime():
            return cast_to(exp.Literal.string(value.isoformat(sep=" ")), "TIMESTAMP")
        case date():
            return cast_to(exp.Literal.string(value.isoformat()), "DATE")
    assert isinstance(value, str)
    return exp.Literal.string(value)


def longer(text: exp.Expr, size: int) -> exp.Expr:
    """Whether a text has more bytes."""
    found = exp.Anonymous(this="STRLEN", expressions=[text])
    return exp.GT(this=found, expression=whole_literal(size))


def short(text: exp.Expr) -> exp.Expr:
    """Whether a text is no longer than a constant can be; NULL is not."""
    found = longer(text, LONGEST_TEXT)
    return exp.LTE(this=found.this, expression=found.expression)


def kind_of_value(value: object) -> ColumnType:
    """The type that a constant of Python has."""
    if isinstance(value, bool):
        return ColumnType.BOOLEAN
    if isinstance(value, int):
        return ColumnType.INTEGER
    if isinstance(value, float | Fraction):
        return ColumnType.NUMBER
    if isinstance(value, datetime):
        return ColumnType.TIMESTAMP
    return ColumnType.DATE if isinstance(value, date) else ColumnType.TEXT


def whole_literal(value: int) -> exp.Expr:
    """A whole number of 64 bits."""
    if abs(value) > MOST_WHOLE:
        raise QueryError(unfit(ColumnType.INTEGER, value))
    written = exp.Literal.number(abs(value))
    return exp.Neg(this=written) if value < 0 else written


def fitting_double(value: Fraction) -> float:
    """The nearest double of a number that follows from a question or from bounds."""
    if wrong := unfit(ColumnType.NUMBER, value):
        raise QueryError(wrong)
    return float(value)


def double_literal(value: Fraction) -> exp.Expr:
    """The nearest double; without an exponent it would be a decimal."""
    text = repr(abs(fitting_double(value)))
    written = exp.Literal.number(text if "e" in text else f"{text}e0")
    return exp.Neg(this=written) if value < 0 else written
