"""Cells at the ends of their types and beyond, as Arrow columns."""

import math
import struct

import pyarrow as pa

from deniable.tables import ColumnType

I, F, T, B, D, S = (  # noqa: E741  (as the specification calls them)
    ColumnType.INTEGER,
    ColumnType.NUMBER,
    ColumnType.TEXT,
    ColumnType.BOOLEAN,
    ColumnType.DATE,
    ColumnType.TIMESTAMP,
)
_FIRST, _LAST = -62_135_596_800_000_000, 253_402_300_799_999_999

WHOLE = [
    *(None, 0, 1, -1, 2, -7, 2**31 - 1, -(2**31), 2**53 + 1, 2**62, 2**63 - 1, 1 - 2**63),
    *(-(2**63), 3_037_000_500),
]
DOUBLES = [
    *(None, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -3.7, 1.7976931348623157e308),
    *(-1.7976931348623157e308, 5e-324, -5e-324, 2.2250738585072014e-308, 1e-200, 2.0**63),
    *(-(2.0**63), 2.0**-63, 4503599627370495.5, 9007199254740993.0, math.nan, math.inf, -math.inf),
]
TEXTS = [
    *(None, b"", b" ", b"a", b"A", b" ax\t", b"abc\nd", b"a\0b", "ß".encode(), "İ".encode()),
    *("ﬁ".encode(), "😀x".encode(), "é".encode(), "e\u0301".encode(), b"%", b"_", b"a\\"),
    *(b"[(", b"nan", b"inf", b"1e400", b"-0", b"1e-400", b"9223372036854775808", b" 12 ", b"2.5"),
    *(b"true", b"now", b"infinity", b"2024-02-30", b"2024-02-29", b"0000-01-01", b"10000-01-01"),
    *(b"9999-12-31 23:59:59.9999999", b"x" * 5_000, b"x" * 65_536, b"x" * 70_000),
    *(b"\xff\xfe", b"a\xc3", b"\xed\xa0\x80"),
]
DAYS = [
    *(None, 0, 19_782, -719_162, -719_163, 2_932_896, 2_932_897, -141_428, 2**31 - 1, 2**31 - 2),
    *(-(2**31), 1 - 2**31, 2 - 2**31, 59),
]
TIMES = [
    *(None, 0, 1, -1, _FIRST, _FIRST - 1, _LAST, _LAST + 1, 2**63 - 1, 2**63 - 2, -(2**63)),
    *(1 - 2**63, 2 - 2**63, -9_223_372_022_400_000_001, 2**62, 1_709_210_096_789_000),
]
TRUTHS = [None, True, False]
EXTREMES = {I: WHOLE, F: DOUBLES, T: TEXTS, B: TRUTHS, D: DAYS, S: TIMES}
_STORED = {D: (pa.date32(), "i"), S: (pa.timestamp("us"), "q")}


def column(kind):
    """The extremes of a type as Arrow has them; nobody has checked the texts."""
    cells = EXTREMES[kind]
    if kind == T:
        return _raw(pa.string(), cells, _texts)
    if kind in _STORED:
        native, form = _STORED[kind]
        return _raw(native, cells, lambda given: _numbers(given, form))
    return pa.array(cells, {I: pa.int64(), F: pa.float64(), B: pa.bool_()}[kind])


def _raw(native, cells, stored):
    """A column from its bytes; only the first cell is NULL."""
    known = sum(1 << place for place, cell in enumerate(cells) if cell is not None)
    valid = pa.py_buffer(known.to_bytes((len(cells) + 7) // 8, "little"))
    return pa.Array.from_buffers(native, len(cells), [valid, *stored(cells)])


def _numbers(cells, form):
    return [pa.py_buffer(struct.pack(f"<{len(cells)}{form}", *(cell or 0 for cell in cells)))]


def _texts(cells):
    ends = [0]
    for cell in cells:
        ends.append(ends[-1] + len(cell or b""))
    places = struct.pack(f"<{len(ends)}i", *ends)
    return [pa.py_buffer(places), pa.py_buffer(b"".join(cell or b"" for cell in cells))]


def is_utf8(cell):
    """Whether a text can be stored by an engine that checks it."""
    try:
        return cell is None or bool(cell.decode() + "x")
    except UnicodeError:
        return False


def is_canonical(kind, value):
    """Whether a fetched value is one of its type; Python's days and times are of our years."""
    if value is None:
        return True
    if kind == F:
        return isinstance(value, float) and math.isfinite(value) and repr(value) != "-0.0"
    if kind == I:
        return type(value) is int and -(2**63) <= value < 2**63
    if kind == T:
        return isinstance(value, str) and len(value.encode()) <= 65_536 * 3
    return type(value).__name__ == {B: "bool", D: "date", S: "datetime"}[kind]
