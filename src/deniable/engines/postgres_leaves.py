"""Leaves of Postgres: how a stored column becomes a canonical one; see `leaves.py`."""

from __future__ import annotations

from deniable.engines.leaves import FIRST_DAY, FIRST_TIME, LAST_DAY, LAST_TIME, MOST_BYTES
from deniable.tables import ColumnType

_TYPES = {
    **dict.fromkeys(("int2", "int4", "int8"), ColumnType.INTEGER),
    **dict.fromkeys(("float4", "float8", "numeric"), ColumnType.NUMBER),
    **dict.fromkeys(("text", "varchar", "bpchar", "name", "uuid", "enum"), ColumnType.TEXT),
    "bool": ColumnType.BOOLEAN,
    "date": ColumnType.DATE,
    **dict.fromkeys(("timestamp", "timestamptz"), ColumnType.TIMESTAMP),
}
_NAMING = frozenset({"enum", "int2", "int4", "int8", "text", "varchar", "uuid", "date"})
_EXACT = _NAMING | {"float8", "bool", "timestamp"}
_LARGEST = "1.7976931348623157e308"
NATIVE = {
    ColumnType.INTEGER: "int8",
    ColumnType.NUMBER: "float8",
    ColumnType.TEXT: 'text COLLATE "C"',
    ColumnType.BOOLEAN: "bool",
    ColumnType.DATE: "date",
    ColumnType.TIMESTAMP: "timestamp",
}
"""The types of canonical columns."""


def kind_of(native: str) -> ColumnType | None:
    """The canonical type of a native one; None where nothing can be asked about it."""
    return _TYPES.get(native)


def is_exact(native: str) -> bool:
    """Whether different values stay different, or are NULL."""
    return native in _EXACT


def can_name(native: str) -> bool:
    """Whether its values may say whose row it is."""
    return native in _NAMING


def leaf(column: str, native: str) -> str:
    """A column as its canonical type; what does not fit is NULL."""
    if _TYPES[native] == ColumnType.TEXT:
        # The owner of an enumeration may make a cast of it; its output is the server's own.
        written = f"CASE WHEN {column} IS NOT NULL THEN format('%s', {column}) END"
        text = written if native == "enum" else f"CAST({column} AS text)"
        return f'CASE WHEN octet_length({text}) <= {MOST_BYTES} THEN {text} END COLLATE "C"'
    if native == "numeric":
        # Before the cast: 1e-400 raises there. NaN is larger than any number.
        return (
            f"CASE WHEN abs({column}) BETWEEN 1e-307 AND {_LARGEST} THEN {column}::float8 "
            f"WHEN abs({column}) < 1e-307 THEN 0::float8 END"
        )
    if native in {"float4", "float8"}:
        ends = f"-{_LARGEST}::float8 AND {_LARGEST}::float8"
        value = column if native == "float8" else f"{column}::float8"
        return f"CASE WHEN {value} BETWEEN {ends} THEN {value} + 0::float8 END"
    if native == "date":
        ends = f"DATE '{FIRST_DAY}' AND DATE '{LAST_DAY}'"
        return f"CASE WHEN {column} BETWEEN {ends} THEN {column} END"
    if native == "timestamp":
        ends = f"TIMESTAMP '{FIRST_TIME}' AND TIMESTAMP '{LAST_TIME}'"
        return f"CASE WHEN {column} BETWEEN {ends} THEN {column} END"
    if native == "timestamptz":
        ends = f"TIMESTAMPTZ '{FIRST_TIME}+00' AND TIMESTAMPTZ '{LAST_TIME}+00'"
        return f"CASE WHEN {column} BETWEEN {ends} THEN {column} AT TIME ZONE 'UTC' END"
    return column if native in {"int8", "bool"} else f"CAST({column} AS int8)"
