"""Leaves of Spark: how a stored column becomes a canonical one; see `leaves.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import types as native
from sqlglot import exp, parse_one

from deniable.engines.frames import arrow_types
from deniable.engines.leaves import FIRST_DAY, FIRST_TIME, LAST_DAY, LAST_TIME, MOST_BYTES
from deniable.engines.spark_plans import Form, StoredRows
from deniable.tables import ColumnType, Schema

_TYPES: dict[type[native.DataType], ColumnType] = {
    **dict.fromkeys(
        (native.ByteType, native.ShortType, native.IntegerType, native.LongType), ColumnType.INTEGER
    ),
    **dict.fromkeys((native.FloatType, native.DoubleType, native.DecimalType), ColumnType.NUMBER),
    **dict.fromkeys((native.StringType, native.VarcharType, native.CharType), ColumnType.TEXT),
    native.BooleanType: ColumnType.BOOLEAN,
    native.DateType: ColumnType.DATE,
    **dict.fromkeys((native.TimestampType, native.TimestampNTZType), ColumnType.TIMESTAMP),
}
_WHOLE = (native.ByteType, native.ShortType, native.IntegerType, native.LongType)
_TIMES = (native.TimestampType, native.TimestampNTZType)
_DIGITS = 18
"""Of a decimal that Parquet keeps as a whole number: longer ones fail where a cell has more."""
_ROUNDED = (native.FloatType, native.DecimalType, native.TimestampType)
_LARGEST = "1.7976931348623157E308"
NATIVE: dict[ColumnType, native.DataType] = {
    ColumnType.INTEGER: native.LongType(),
    ColumnType.NUMBER: native.DoubleType(),
    ColumnType.TEXT: native.StringType(),
    ColumnType.BOOLEAN: native.BooleanType(),
    ColumnType.DATE: native.DateType(),
    ColumnType.TIMESTAMP: native.TimestampNTZType(),
}
"""The types of canonical columns. A leaf of one of these is itself: shadows hold them."""


def kind_of(found: native.DataType) -> ColumnType | None:
    """The canonical type of a native one; None where nothing can be asked about it."""
    return _TYPES.get(type(found))


def is_exact(name: str, found: native.DataType, stored: StoredRows | None) -> bool:
    """Whether different values stay different, or are NULL.

    In names of folders 7 and 007 are one, or %41 and A; as texts of JSON, 7 and "7".
    """
    if stored is not None and name in stored.folders:
        return False
    if stored is not None and stored.form == Form.JSON and not isinstance(found, _WHOLE):
        return False
    return not isinstance(found, _ROUNDED)


def is_total(found: native.DataType, stored: StoredRows | None) -> bool:
    """Whether no cell makes Spark fail as it reads files, or give up the rest of a file.

    Times that count milliseconds are widened, and fail where they lie too far; Spark does not tell
    in what they count. It then skips what is left of the file, which may be other people's rows.
    """
    if stored is None or stored.form == Form.MEMORY:
        return True
    if isinstance(found, native.DecimalType):
        return stored.form == Form.PARQUET and found.precision <= _DIGITS
    return not isinstance(found, _TIMES)


def places_of(fields: Sequence[native.StructField]) -> dict[str, int]:
    """The decimal places of columns that have them."""
    return {
        each.name: each.dataType.scale
        for each in fields
        if isinstance(each.dataType, native.DecimalType)
    }


def as_arrow(columns: Mapping[str, Sequence[Any]], schema: Schema) -> Any:
    """Canonical values as Spark takes them fastest."""
    import pyarrow  # noqa: PLC0415  (slow to import)

    kinds = arrow_types()
    return pyarrow.table(
        {name: pyarrow.array(columns[name], kinds[kind]) for name, kind in schema.columns.items()}
    )


def leaf(name: str, found: native.DataType) -> exp.Expr:
    """A column as its canonical type; what does not fit is NULL."""
    column = "`" + name.replace("`", "``") + "`"
    return parse_one(_LEAVES[_TYPES[type(found)]].format(c=column), read="spark")


_LEAVES = {
    ColumnType.INTEGER: "CAST({c} AS BIGINT)",
    ColumnType.NUMBER: (
        f"CASE WHEN CAST({{c}} AS DOUBLE) >= CAST(-{_LARGEST} AS DOUBLE) "
        f"AND CAST({{c}} AS DOUBLE) <= CAST({_LARGEST} AS DOUBLE) "
        "THEN CAST({c} AS DOUBLE) + CAST(0 AS DOUBLE) END"
    ),
    ColumnType.TEXT: (
        f"CASE WHEN OCTET_LENGTH(CAST({{c}} AS STRING)) <= {MOST_BYTES} "
        "THEN TRY_VALIDATE_UTF8(CAST({c} AS STRING)) END"
    ),
    ColumnType.BOOLEAN: "{c}",
    ColumnType.DATE: (
        f"CASE WHEN {{c}} >= CAST('{FIRST_DAY}' AS DATE) AND {{c}} <= CAST('{LAST_DAY}' AS DATE) "
        "THEN {c} END"
    ),
    ColumnType.TIMESTAMP: (
        f"CASE WHEN CAST({{c}} AS TIMESTAMP_NTZ) >= CAST('{FIRST_TIME}' AS TIMESTAMP_NTZ) "
        f"AND CAST({{c}} AS TIMESTAMP_NTZ) <= CAST('{LAST_TIME}' AS TIMESTAMP_NTZ) "
        "THEN CAST({c} AS TIMESTAMP_NTZ) END"
    ),
}
