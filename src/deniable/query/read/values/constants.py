"""Constants of a question, read by us and not by an engine."""

from __future__ import annotations

import re
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

from deniable.errors import QueryError
from deniable.tables import ColumnType

_MOST_WHOLE = (1 << 63) - 1
_FARTHEST = 400  # exponents of ten: beyond any double, and small enough to be written out
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIME = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d{1,6})?)?)?", re.ASCII)
_WHOLE = re.compile(r"[-+]?\d{1,19}", re.ASCII)
_NUMBER = re.compile(r"[-+]?(\d{1,99}\.?\d{0,99}|\.\d{1,99})([eE][-+]?\d{1,3})?", re.ASCII)
_TRUTHS = {"true": True, "t": True, "false": False, "f": False}


def number(text: str) -> int | Fraction:
    """A number as it is written: whole, or with a fraction."""
    if text.isdigit():
        if len(text) > _FARTHEST or int(text) > _MOST_WHOLE:
            raise QueryError("a whole number in a question is below 2^63; write 1e30 for more")
        return int(text)
    try:
        value = Decimal(text)
    except InvalidOperation:
        raise QueryError(f"{text[:30]!r} is no number that is understood") from None
    if not value.is_finite() or abs(value.adjusted()) > _FARTHEST or len(text) > _FARTHEST:
        raise QueryError("a number in a question is 0, or between 1e-290 and 1e300 in size")
    return Fraction(value)


def as_kind(value: Any, kind: ColumnType) -> Any:
    """A constant read as one of another type; None where it is none."""
    if isinstance(value, str):
        return _text_as(value, kind)
    if kind == ColumnType.NUMBER and isinstance(value, int | Fraction):
        return None if isinstance(value, bool) else Fraction(value)
    if kind == ColumnType.INTEGER and isinstance(value, Fraction):
        whole = value.denominator == 1 and abs(value) <= _MOST_WHOLE
        return int(value) if whole else None
    if kind == ColumnType.BOOLEAN and isinstance(value, int):
        return {0: False, 1: True}.get(value)
    if kind == ColumnType.TIMESTAMP and isinstance(value, date):
        return value if isinstance(value, datetime) else datetime.combine(value, time())
    if kind == ColumnType.DATE and isinstance(value, datetime):
        return value.date() if value.time() == time() else None
    return None


def _text_as(text: str, kind: ColumnType) -> Any:
    try:
        if kind == ColumnType.DATE and _DAY.fullmatch(text):
            return date.fromisoformat(text)
        if kind == ColumnType.TIMESTAMP and _TIME.fullmatch(text):
            whole, _, fraction = text.partition(".")
            return datetime.fromisoformat(f"{whole}.{fraction:0<6}" if fraction else whole)
    except ValueError:
        return None  # no day of the calendar
    if kind == ColumnType.INTEGER and _WHOLE.fullmatch(text):
        value = int(text)
        return value if abs(value) <= _MOST_WHOLE else None
    if kind == ColumnType.NUMBER and _NUMBER.fullmatch(text):
        return Fraction(Decimal(text))
    if kind == ColumnType.BOOLEAN:
        return _TRUTHS.get(text.lower())
    return text if kind == ColumnType.TEXT else None
