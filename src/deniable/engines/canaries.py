"""Canaries: public rows on which a question is tried before anything is charged.

They hold the extremes of each type and the question's own constants, dealt over the columns with
different strides. What raises on them is refused, for everybody alike. They find faults, and prove
nothing: that no row can fail follows from canonical types and total operators.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from fractions import Fraction
from itertools import zip_longest
from typing import Any

from deniable.engines.base import quoted
from deniable.engines.leaves import MOST_BYTES
from deniable.tables import ColumnType, Schema

MOST_ROWS = 256
_MOST_PASSED = 256
_FEW_ROWS, _MOST_JOINED = 16, 1 << 16
_MOST_CONSTANTS = 100
_UNITS = 5
_LARGEST, _SMALLEST = 1.7976931348623157e308, 5e-324
_DAYS = (
    *(date(1, 1, 1), date(9999, 12, 31), date(1970, 1, 1), date(1969, 12, 31), date(2024, 2, 29)),
    *(date(1582, 10, 10), date(1900, 2, 28), date(2024, 12, 30), date(1, 12, 31)),
)
_WHOLE = (
    *(0, 1, -1, 2, 7, -7, (1 << 31) - 1, 1 << 31, -(1 << 31), (1 << 53) + 1, 1 << 62),
    *(-(1 << 62), (1 << 63) - 1, -(1 << 63), 1 - (1 << 63)),
)
_DOUBLES = (
    *(0.0, 1.0, -1.0, 0.5, -0.5, 2.5, 0.1, _LARGEST, -_LARGEST, _SMALLEST, -_SMALLEST, 1e-300),
    *(-1e-300, 1e300, 2.0**63, -(2.0**63), 2.0**-63, 4503599627370495.5, 1e17, -1e17),
)
_TEXTS = (
    *("", "a", "A", " ax ", "t", "true", "12", " 7 ", "-1", "nan", "inf", "1e400", "1e-400"),
    *("9223372036854775808", "0x1F", "1_000", "now", "today", "infinity", "epoch", "12:30"),
    *("2024-02-29", "2024-02-30", "0001-01-01", "9999-12-31 23:59:59.999999", "10000-01-01"),
    *("5877642-06-25 (BC)", "ß", "İ", "ﬁ", "😀", "é", "e\u0301", "%", "_", "\\", "[(", "a\0b"),
    *("ab\n", "x" * 5_000, "x" * MOST_BYTES, "İ" * 1_000),
)
EXTREMES: Mapping[ColumnType, tuple[Any, ...]] = {
    ColumnType.BOOLEAN: (True, False, None),
    ColumnType.INTEGER: (*_WHOLE, None),
    ColumnType.NUMBER: (*_DOUBLES, None),
    ColumnType.TEXT: (*_TEXTS, None),
    ColumnType.DATE: (*_DAYS, None),
    ColumnType.TIMESTAMP: (
        *(datetime.combine(day, time()) for day in _DAYS),
        *(datetime.combine(day, time.max) for day in _DAYS),
        datetime(2024, 2, 29, 12, 34, 56, 789012),
        None,
    ),
}
"""Canonical values that lie at the ends of their types, or look like something else."""


class Passed:
    """The latest questions that passed a check, which are not tried again."""

    def __init__(self) -> None:
        self._known: dict[object, None] = {}

    def __contains__(self, question: object) -> bool:
        return question in self._known

    def add(self, question: object) -> None:
        """Remember one, and forget the oldest of too many."""
        self._known[question] = None
        if len(self._known) > _MOST_PASSED:
            self._known.pop(next(iter(self._known)))


def rows_to_try(tables: int) -> int:
    """How many rows a table gets where a statement names so many: they may all be joined."""
    if tables <= 1:
        return MOST_ROWS
    return max(2, min(_FEW_ROWS, int(_MOST_JOINED ** (1 / tables))))


def most_named(tables: Iterable[str], texts: Iterable[str]) -> int:
    """How often one statement names tables in FROM, at most."""
    mention = mentions(tables)
    return max((len(mention.findall(text)) for text in texts), default=0)


def mentions(tables: Iterable[str]) -> re.Pattern[str]:
    """What stands where a statement reads one of these tables."""
    listed = "|".join(re.escape(quoted(name)) + "|" + re.escape(name) for name in tables)
    return re.compile(rf'(?:\b(?:FROM|JOIN)|,)\s*\(?\s*(?:{listed})(?![\w".])', re.IGNORECASE)


def canaries(
    schema: Schema, unit: str | None, constants: Iterable[Any], rows: int
) -> dict[str, list[Any]]:
    """By column, the values of so many rows; a few units have all of them."""
    named = _by_kind(constants)
    made = {}
    for place, (name, kind) in enumerate(schema.columns.items()):
        if name.lower() == unit:
            some = [value for value in EXTREMES[kind] if value is not None][:_UNITS]
            made[name] = [some[row % len(some)] for row in range(rows)]
            continue
        values = _interleaved(named.get(kind, ()), EXTREMES[kind])
        strides = [step for step in range(1, 4 * len(values)) if math.gcd(step, len(values)) == 1]
        stride = strides[place % len(strides)]  # each of them comes by all values
        made[name] = [values[(row * stride + place) % len(values)] for row in range(rows)]
    return made


def _interleaved(some: Sequence[Any], others: Sequence[Any]) -> list[Any]:
    """Both by turns, so that a few rows have some of each."""
    missing = object()
    pairs = zip_longest(some, others, fillvalue=missing)
    return [value for pair in pairs for value in pair if value is not missing]


def _by_kind(constants: Iterable[Any]) -> dict[ColumnType, list[Any]]:
    """The constants as values of each type that could meet them, and what lies beside each."""
    found: dict[ColumnType, dict[Any, None]] = {kind: {} for kind in ColumnType}
    for value in constants:
        for kind, near in _near(value):
            if len(found[kind]) < _MOST_CONSTANTS:
                found[kind][near] = None
    return {kind: list(values) for kind, values in found.items()}


def _near(value: Any) -> Iterable[tuple[ColumnType, Any]]:
    if isinstance(value, bool):
        return
    if isinstance(value, str):
        if len(value.encode(errors="replace")) <= MOST_BYTES and value.isprintable():
            yield ColumnType.TEXT, value
            yield ColumnType.TEXT, f"{value}x"
    elif isinstance(value, datetime):
        yield from ((ColumnType.TIMESTAMP, each) for each in _moved(value))
    elif isinstance(value, date):
        yield from ((ColumnType.DATE, each) for each in _moved(value))
        yield ColumnType.TIMESTAMP, datetime.combine(value, time())
    elif isinstance(value, int | float | Fraction):
        if isinstance(value, float) and not math.isfinite(value):
            return
        exact = Fraction(value)
        for each in (exact, exact - 1, exact + 1):
            if each.denominator == 1 and -(1 << 63) <= each < 1 << 63:
                yield ColumnType.INTEGER, int(each)
            if abs(each) <= _LARGEST:
                yield ColumnType.NUMBER, float(each) + 0.0


def _moved(value: date) -> Iterable[date]:
    """A day or time, and those a day before and after it, where the calendar has them."""
    for days in (0, -1, 1):
        try:
            yield value + timedelta(days=days)
        except OverflowError:
            continue
