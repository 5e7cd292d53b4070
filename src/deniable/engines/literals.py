"""Constants in SQL: the only way by which a public number, text, day or time reaches an engine.

A constant is canonical, like the values it stands beside: 64-bit whole numbers, finite doubles with
one zero, UTF-8 text, days and times of the years 1 to 9999. What is none of these is refused before
anything is charged: beside the wrong constant an engine could raise for one row and not for others.
"""

from __future__ import annotations

import math
from datetime import date, datetime
from fractions import Fraction

from sqlglot import exp

from deniable.errors import QueryError
from deniable.tables import ColumnType

LEAST_DOUBLE, MOST_DOUBLE = Fraction(1, 10**290), Fraction(10**300)
"""What a double in a statement is at least and at most, but for 0: steps and ends follow from it
by a few products, and must not become 0 or infinite."""

MOMENT = "^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([ T][0-9]{1,2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,6})?)?)?$"
"""What a text looks like that is read as a day or time, on every engine."""

LONGEST_TEXT = 1_000  # bytes
_MOST_WHOLE = (1 << 63) - 1


def literal(kind: ColumnType, value: object) -> exp.Expr:
    """A constant of a type, or QueryError."""
    if kind == ColumnType.BOOLEAN and isinstance(value, bool):
        return exp.Boolean(this=value)
    if kind == ColumnType.INTEGER and isinstance(value, int) and not isinstance(value, bool):
        return exp.cast(whole_literal(value), "BIGINT")
    if kind == ColumnType.NUMBER and isinstance(value, int | float | Fraction):
        if not math.isfinite(value):
            raise QueryError("a number in a question is finite")
        return double_literal(Fraction(value))
    if kind == ColumnType.TEXT and isinstance(value, str):
        return _text_literal(value)
    if kind == ColumnType.TIMESTAMP and isinstance(value, datetime) and value.tzinfo is None:
        return exp.cast(exp.Literal.string(_iso(value)), "TIMESTAMP")
    if kind == ColumnType.DATE and isinstance(value, date) and not isinstance(value, datetime):
        return exp.cast(exp.Literal.string(value.isoformat()), "DATE")
    raise QueryError(f"a constant of type {kind} is needed, not {type(value).__name__}")


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
    if abs(value) > _MOST_WHOLE:
        raise QueryError(f"a whole number lies between -{_MOST_WHOLE:,} and {_MOST_WHOLE:,}")
    written = exp.Literal.number(abs(value))
    return exp.Neg(this=written) if value < 0 else written


def fitting_double(value: Fraction) -> float:
    """The nearest double of a number that follows from a question or from bounds."""
    if value and not LEAST_DOUBLE <= abs(value) <= MOST_DOUBLE:
        raise QueryError(
            "a number is 0, or between 1e-290 and 1e300 in size, and so is each step or end that "
            "follows from the bounds; scale the values"
        )
    return float(value)


def double_literal(value: Fraction) -> exp.Expr:
    """The nearest double; without an exponent it would be a decimal."""
    text = repr(abs(fitting_double(value)))
    written = exp.Literal.number(text if "e" in text else f"{text}e0")
    return exp.Neg(this=written) if value < 0 else written


def _text_literal(value: str) -> exp.Expr:
    try:
        size = len(value.encode())
    except UnicodeError:
        raise QueryError("a text in a question is in UTF-8") from None
    if "\0" in value or size > LONGEST_TEXT:
        raise QueryError(f"a text in a question has {LONGEST_TEXT:,} bytes at most, and no NUL")
    return exp.Literal.string(value)


def _iso(value: datetime) -> str:
    """With four digits of the year on every platform."""
    return value.isoformat(sep=" ")
