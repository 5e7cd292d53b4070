"""Files and tables in memory, as DuckDB is to read them."""

from __future__ import annotations

import csv
import glob
import gzip
import math
from typing import Any

import duckdb as driver

from deniable.errors import ParameterError
from deniable.tables import Source


def string_literal(text: str) -> str:
    """A text in quotes."""
    return "'" + text.replace("'", "''") + "'"


def csv_header(source: str) -> list[str]:
    """The names in the first line of a CSV file, or of the first of several."""
    separator = _separator(source)
    first = sorted(glob.glob(source))[:1] or [source]  # noqa: PTH207  (globs may be absolute)
    opener = gzip.open if first[0].lower().endswith(".gz") else open
    try:
        with opener(first[0], "rt", encoding="utf-8-sig", errors="replace", newline="") as file:
            names = next(csv.reader(file, delimiter=separator), [])
    except FileNotFoundError:
        raise ParameterError("source", source, "no such file") from None
    except csv.Error:
        names = []
    if not names or len(set(names)) != len(names):
        raise ParameterError("source", source, "the first line of a CSV file names its columns")
    return names


def csv_options(source: str) -> str:
    """Text only, nothing sniffed; names from the first line, which is the file's schema.

    Lines that do not fit are dropped, whatever is wrong with them.
    """
    columns = ", ".join(f"{string_literal(name)}: 'VARCHAR'" for name in csv_header(source))
    return (
        f"columns={{{columns}}}, header=true, auto_detect=false, "
        f"delim={string_literal(_separator(source))}, quote='\"', escape='\"', null_padding=true, "
        "ignore_errors=true, strict_mode=false, parallel=false, nullstr=''"
    )


def _separator(source: str) -> str:
    return "\t" if source.lower().endswith(".tsv") else ","


_PLAIN = frozenset("biufM")  # kinds of a dtype: booleans, numbers, times


def as_arrow(source: Any) -> Any:
    """A pandas table whose types do not follow the data: what is no plain number or time is text.

    Objects, categories and texts are read cell by cell, whatever else stands in the column.
    """
    if type(source).__module__.partition(".")[0] != "pandas":
        return source
    import pyarrow  # noqa: PLC0415  (slow to import, and needed for pandas alone)

    if len({str(name) for name in source.columns}) != len(source.columns):
        raise ParameterError("source", "a pandas table", "has two columns of one name")
    arrays = {}
    for name in source.columns:
        column = source[name]
        if column.dtype.kind in _PLAIN and not hasattr(column.dtype, "categories"):
            arrays[str(name)] = pyarrow.Array.from_pandas(column)
        else:
            arrays[str(name)] = pyarrow.array(map(_text, column), type=pyarrow.string())
    return pyarrow.table(arrays)


def _text(value: object) -> str | None:
    """A value as text; None where it has none that can be written down."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if type(value).__name__ in {"NAType", "NaTType"}:
        return None
    try:
        text = str(value)
        text.encode()
    except Exception:
        return None
    return text


def unreadable(connection: driver.DuckDBPyConnection, source: Source) -> set[str]:
    """Columns that DuckDB fails to read where one cell lies too far: below any cast of ours.

    They are left out: a single value could make every question fail. Times in units that are
    widened, and decimals in more bytes than the engine's have. Names that differ by their case
    alone are refused, as the engine would rename one of them.
    """
    if isinstance(source, str):
        if not source.lower().endswith(".parquet"):
            return set()
        place = string_literal(source)
        found = connection.execute(
            f"SELECT file_name, name, COALESCE(num_children, 0) FROM parquet_schema({place})"
        ).fetchall()
        first = [row for row in found if row[0] == found[0][0]][1:]
        _check_names([str(name) for _, name, _ in first] if not any(r[2] for r in first) else [])
        rows = connection.execute(
            f"SELECT DISTINCT name FROM parquet_schema({place}) "
            "WHERE converted_type = 'TIMESTAMP_MILLIS' OR logical_type LIKE '%MILLIS=MilliSeconds%'"
            " OR ((converted_type = 'DECIMAL' OR logical_type LIKE '%Decimal%') "
            "AND (type = 'BYTE_ARRAY' OR TRY_CAST(type_length AS BIGINT) > 16))"
        ).fetchall()
        return {str(row[0]) for row in rows}
    if not hasattr(source, "__arrow_c_stream__"):
        return set()
    import pyarrow  # noqa: PLC0415  (slow to import, and there already with such a table)

    schema = pyarrow.RecordBatchReader.from_stream(as_arrow(source)).schema
    _check_names(schema.names)
    return {field.name for field in schema if _is_coarse(pyarrow.types, field.type)}


def _check_names(names: list[str]) -> None:
    if len({name.lower() for name in names}) != len(names):
        raise ParameterError("source", "a table", "has two columns of one name, but for its case")


def _is_coarse(types: Any, kind: Any) -> bool:
    """Times in seconds or milliseconds with a zone, however they are encoded."""
    while hasattr(kind, "value_type") and not types.is_nested(kind):
        kind = kind.value_type
    if types.is_run_end_encoded(kind):
        return _is_coarse(types, kind.value_type)
    return bool(types.is_timestamp(kind) and kind.tz and kind.unit in {"s", "ms"})
