"""Leaves: how a stored column of DuckDB becomes a canonical one.

Between a table and a question lies one projection. A cell that is no value of its canonical type is
NULL: never an error, never a guess. What is written follows from the schema and the kind of source
alone, never from data. Of doubles, days and times the CASE also hides the stored extremes from
planners.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum

from deniable.engines.base import quoted
from deniable.errors import ParameterError
from deniable.tables import LONGEST_TEXT, SQL_TYPES, ColumnType, Schema, nearest

MOST_BYTES = 65_536
"""Of a text: longer ones are NULL, and not cut, as two must not become one."""

FIRST_DAY, LAST_DAY = "0001-01-01", "9999-12-31"
FIRST_TIME, LAST_TIME = f"{FIRST_DAY} 00:00:00", f"{LAST_DAY} 23:59:59.999999"

_WIDENED = frozenset({"TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT", "UINTEGER"})
_TOO_WIDE = frozenset({"UBIGINT", "HUGEINT", "UHUGEINT"})
_ZONED = "TIMESTAMP WITH TIME ZONE"
_ENDS = {
    _ZONED: (f"{FIRST_TIME}+00", f"{LAST_TIME}+00"),
    "TIMESTAMP_S": (FIRST_TIME, f"{LAST_DAY} 23:59:59"),
    "TIMESTAMP_MS": (FIRST_TIME, f"{LAST_DAY} 23:59:59.999"),
    "TIMESTAMP_NS": ("1677-09-22 00:00:00", "2262-04-11 00:00:00"),  # all but its last hours
}
_TYPES = {
    **dict.fromkeys(("BIGINT", *_WIDENED, *_TOO_WIDE), ColumnType.INTEGER),
    **dict.fromkeys(("FLOAT", "DOUBLE"), ColumnType.NUMBER),
    **dict.fromkeys(("VARCHAR", "UUID"), ColumnType.TEXT),
    "BOOLEAN": ColumnType.BOOLEAN,
    "DATE": ColumnType.DATE,
    **dict.fromkeys(
        ("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", _ZONED), ColumnType.TIMESTAMP
    ),
}


class CellReader(StrEnum):
    """What hands out the cells; it decides what is known about text."""

    DATABASE = "database"  # holds nothing but UTF-8
    CSV = "csv"  # drops lines that are not UTF-8
    PARQUET = "parquet"  # writes ? for each byte that is not UTF-8
    MEMORY = "memory"  # nobody has looked


def check_read(columns: Mapping[str, ColumnType] | None, hidden: Mapping[str, str]) -> None:
    """Refuse declared columns that are never read, and say why they are not."""
    reasons = {name.lower(): why for name, why in hidden.items()}
    for name in columns or {}:
        if why := reasons.get(name.lower()):
            raise ParameterError("columns", name, f"cannot be read: {why}")


def schema_of(
    found: Mapping[str, str], columns: Mapping[str, ColumnType] | None, reader: CellReader
) -> Schema:
    """The canonical schema of native types: declared, or of all that can be asked about."""
    if columns:
        natives = {name.lower(): native for name, native in found.items()}
        for name in columns:
            if name.lower() not in natives:
                hint = nearest(name, found)
                if reader == CellReader.CSV:  # the first line may be a row, and is not quoted
                    hint = "the first line of the file does not name it"
                raise ParameterError("columns", name, f"no such column; {hint}")
            if not _is_read(natives[name.lower()], columns[name]):
                raise ParameterError("columns", name, "nothing can be asked about its native type")
        exact = {name for name, kind in columns.items() if _exact(natives[name.lower()], kind)}
        own = {name: natives[name.lower()] for name in columns}
        return Schema(dict(columns), frozenset(exact), _places(own, columns))
    kinds = {name: kind for name, native in found.items() if (kind := family(native))}
    exact = {name for name, kind in kinds.items() if _exact(found[name], kind)}
    return Schema(kinds, frozenset(exact), _places(found, kinds))


def _places(found: Mapping[str, str], kinds: Mapping[str, ColumnType]) -> dict[str, int]:
    """The decimal places of columns of numbers that are stored as decimals."""
    return {
        name: _sizes(found[name])[1]
        for name, kind in kinds.items()
        if kind == ColumnType.NUMBER and found[name].startswith("DECIMAL")
    }


def _is_read(native: str, kind: ColumnType) -> bool:
    """Whether a column of a native type can be read as one of a canonical type."""
    return family(native) is not None or (native == "BLOB" and kind == ColumnType.TEXT)


def family(native: str) -> ColumnType | None:
    """The canonical type that is nearest to a native one."""
    if native.startswith("ENUM"):
        return ColumnType.TEXT
    return ColumnType.NUMBER if native.startswith("DECIMAL") else _TYPES.get(native)


def why_left_out(native: str) -> str:
    """Why a column of a native type is not read unless it is declared; empty if it is."""
    if family(native) is not None:
        return ""
    if native.endswith("]") or native.startswith(("STRUCT", "MAP", "UNION")):
        return NESTED
    if native == "BLOB":
        return "it holds bytes; declare it as text if they are letters"
    return unknown(native)


NESTED = "it is nested: a row holds several values; store one column for each"


def unknown(native: object) -> str:
    """Why a column of a type without any questions is left out."""
    return f"nothing can be asked about the type {native}"


def _exact(native: str, kind: ColumnType) -> bool:
    """Whether different values stay different, or are NULL."""
    if kind == ColumnType.TEXT:
        spelt = {ColumnType.INTEGER, ColumnType.TEXT, ColumnType.DATE}
        return family(native) in spelt or native.startswith("DECIMAL")
    return native == SQL_TYPES[kind] or (kind == ColumnType.INTEGER and native in _WIDENED)


def projection(
    schema: Schema, found: Mapping[str, str], relation: str, reader: CellReader, unit: str | None
) -> str:
    """SELECT the canonical columns, under their names in lower case, as questions are read.

    In two steps, so that what is read is read once: common parts of expressions are not shared.
    Names are found whatever their case. Columns that are not found are NULL; so is a unit of a type
    in which two might become one.
    """
    reads, seals = [], []
    stored = {name.lower(): (name, native) for name, native in found.items()}
    for name, kind in schema.columns.items():
        called = quoted(name.lower())
        own, native = stored.get(name.lower(), (name, None))
        merges = native is not None and name.lower() == unit and not _exact(native, kind)
        if native is None or merges or not _is_read(native, kind):
            read = f"CAST(NULL AS {SQL_TYPES[kind]})"
        else:
            read = _read(quoted(own), native, kind, reader)
        reads.append(f"{read} AS {called}")
        # Rows of a longer name are nobody's: a copy need not hold it.
        sealed = _seal(called, kind, reader, LONGEST_TEXT if name.lower() == unit else MOST_BYTES)
        if kind == ColumnType.TEXT and reader == CellReader.PARQUET and name.lower() == unit:
            # Two ids that are not UTF-8 may have become one text.
            sealed = f"CASE WHEN strpos({called}, '?') = 0 THEN {sealed} END"
        seals.append(f"{sealed} COLLATE C" if kind == ColumnType.TEXT else sealed)
        seals[-1] += f" AS {called}"
    return f"SELECT {', '.join(seals)} FROM (SELECT {', '.join(reads)} FROM {relation}) AS stored"


def _read(column: str, native: str, kind: ColumnType, reader: CellReader) -> str:
    """A column in the words of its canonical type, or NULL; ends are not looked at yet."""
    near = family(native)
    if native.startswith("DECIMAL"):
        # A cell beyond its digits, which no writer should make, ends the engine as it is cast.
        end = _largest(native)
        ends = f"CAST('-{end}' AS {native}) AND CAST('{end}' AS {native})"
        within = f"CASE WHEN {column} BETWEEN {ends} THEN {column} END"
        return f"TRY_CAST({within} AS {SQL_TYPES[kind]})"
    if near == kind:
        return _widened(column, native, kind)
    if near is None or near in {ColumnType.INTEGER, ColumnType.BOOLEAN}:
        return f"TRY_CAST({column} AS {SQL_TYPES[kind]})"
    # Casts of days and times beyond the years 1 to 9999, and of texts, may end the engine.
    sealed = _seal(_widened(column, native, near), near, reader)
    return f"TRY_CAST({sealed} AS {SQL_TYPES[kind]})"


def _largest(native: str) -> str:
    """The largest number of a DECIMAL type."""
    digits, places = _sizes(native)
    return f"{'9' * (digits - places) or '0'}.{'9' * places or '0'}"


def _sizes(native: str) -> tuple[int, int]:
    """How many digits a DECIMAL type has, and how many of them are places."""
    digits, places = map(int, re.findall(r"\d+", native))
    return digits, places


def _widened(column: str, native: str, kind: ColumnType) -> str:
    if kind == ColumnType.TEXT:
        return f"CAST({column} AS VARCHAR)"  # of an enumeration, a UUID, or under a collation
    if native == SQL_TYPES[kind]:
        return column
    if native in _WIDENED:
        return f"CAST({column} AS BIGINT)"
    if native in _ENDS:
        # Before the cast: DuckDB computes ends of the cast column from ends of the stored one, and
        # takes infinite times for finite ones by that.
        first, last = (f"CAST('{end}' AS {native})" for end in _ENDS[native])
        moved = f"timezone('UTC', {column})" if native == _ZONED else f"CAST({column} AS TIMESTAMP)"
        return f"CASE WHEN {column} BETWEEN {first} AND {last} THEN {moved} END"
    return f"TRY_CAST({column} AS {SQL_TYPES[kind]})"


def _seal(value: str, kind: ColumnType, reader: CellReader, longest: int = MOST_BYTES) -> str:
    """A value of a type if it is canonical, else NULL."""
    if kind == ColumnType.NUMBER:
        return f"CASE WHEN isfinite({value}) THEN {value} + 0e0 END"  # one zero
    if kind == ColumnType.DATE:
        ends = f"DATE '{FIRST_DAY}' AND DATE '{LAST_DAY}'"
        return f"CASE WHEN {value} BETWEEN {ends} THEN {value} END"
    if kind == ColumnType.TIMESTAMP:
        ends = f"TIMESTAMP '{FIRST_TIME}' AND TIMESTAMP '{LAST_TIME}'"
        return f"CASE WHEN {value} BETWEEN {ends} THEN {value} END"
    if kind == ColumnType.TEXT:
        text = f"TRY(decode(encode({value})))" if reader == CellReader.MEMORY else value
        return f"CASE WHEN strlen({value}) <= {longest} THEN {text} END"
    return value
