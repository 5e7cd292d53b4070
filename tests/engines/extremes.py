"""Cells at the ends of their types and beyond, as Arrow columns, and what becomes of them."""

import math
import struct
from datetime import date, datetime, timedelta

import pyarrow as pa

from deniable.tables import ColumnType

LARGEST, SMALLEST = 1.7976931348623157e308, 5e-324
TEXTS = [
    b"", b"a", b"A", b" ax ", "ßİﬁ😀".encode(), "é".encode(), "e\u0301".encode(), b"a\0b", b"%",
    b"\\", b"[(", b"nan", b"1e400", b"infinity", b"now", b"2024-02-30", b"2024-02-29", b"12", b"?",
    b"x" * 5_000, b"x" * 65_536, b"x" * 70_000, b"\xff\xfe", b"a\xc3", b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80", b"\xc0\x80",
]  # fmt: skip
DOUBLES = [
    0.0, -0.0, 1.0, -0.5, 2.5, LARGEST, -LARGEST, SMALLEST, -SMALLEST, 2.0**63, 2.0**-63,
    4503599627370495.5, math.nan, math.inf, -math.inf,
]  # fmt: skip
WHOLE = [0, 1, -1, 2**31 - 1, -(2**31), 2**53 + 1, 2**62, 2**63 - 1, 1 - 2**63, -(2**63)]
DAYS = [
    0,
    19_782,
    -719_162,
    -719_163,
    2_932_896,
    2_932_897,
    2**31 - 1,
    -(2**31),
    1 - 2**31,
    2 - 2**31,
]
_FIRST, _LAST = -62_135_596_800_000_000, 253_402_300_799_999_999
TIMES = [
    0, 1, -1, _FIRST, _FIRST - 1, _LAST, _LAST + 1, 2**63 - 1, 2**63 - 2, -(2**63), 1 - 2**63,
    2 - 2**63, 3 - 2**63, -9_223_372_022_400_000_000, -9_223_372_022_400_000_001, 2**62,
]  # fmt: skip


def texts(kind=None, cells=None):
    """An Arrow column of texts whose bytes nobody has checked."""
    cells = TEXTS if cells is None else cells
    ends = [0]
    for cell in cells:
        ends.append(ends[-1] + len(cell))
    kind = kind or pa.string()
    form = "q" if kind == pa.large_string() else "i"
    places = pa.py_buffer(struct.pack(f"<{len(ends)}{form}", *ends))
    return pa.Array.from_buffers(kind, len(cells), [None, places, pa.py_buffer(b"".join(cells))])


def raw(kind, cells, form="q"):
    """A column of a type, from its stored numbers."""
    stored = pa.py_buffer(struct.pack(f"<{len(cells)}{form}", *cells))
    return pa.Array.from_buffers(kind, len(cells), [None, stored])


def read_text(cell):
    """What a text becomes: itself, or None."""
    try:
        return cell.decode() if len(cell) <= 65_536 else None
    except UnicodeError:
        return None


def read_double(cell):
    return cell + 0.0 if math.isfinite(cell) else None


def read_time(microseconds):
    if not _FIRST <= microseconds <= _LAST:
        return None
    days, rest = divmod(microseconds, 86_400_000_000)
    return datetime.fromordinal(719_163 + days) + timedelta(microseconds=rest)


def read_day(days):
    return date.fromordinal(719_163 + days) if -719_162 <= days <= 2_932_896 else None


def is_canonical(kind, value):
    """Whether a fetched value is one of its type, or NULL."""
    if value is None:
        return True
    if kind == ColumnType.NUMBER:
        return isinstance(value, float) and math.isfinite(value) and repr(value) != "-0.0"
    if kind == ColumnType.INTEGER:
        return isinstance(value, int) and -(2**63) <= value < 2**63
    if kind == ColumnType.TEXT:
        return isinstance(value, str) and len(value.encode()) <= 65_536
    wanted = {ColumnType.BOOLEAN: bool, ColumnType.DATE: date, ColumnType.TIMESTAMP: datetime}
    return type(value) is wanted[kind]
