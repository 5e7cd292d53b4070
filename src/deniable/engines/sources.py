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


def coarse_times(connection: driver.DuckDBPyConnection, source: Source) -> set[str]:
    """Columns of times in units that DuckDB widens as it reads, and fails on what lies too far.

    They are left out: a single value could make every question fail.
    """
    if isinstance(source, str):
        if not source.lower().endswith(".parquet"):
            return set()
        rows = connection.execute(
            f"SELECT DISTINCT name FROM parquet_schema({string_literal(source)}) "
            "WHERE converted_type = 'TIMESTAMP_MILLIS' OR logical_type LIKE '%MILLIS=MilliSeconds%'"
        ).fetchall()
        return {str(row[0]) for row in rows}
    if not hasattr(source, "__arrow_c_stream__"):
        return set()
    import pyarrow  # noqa: PLC0415  (slow to import, and there already with such a table)

    schema = pyarrow.RecordBatchReader.from_stream(as_arrow(source)).schema
    return {
        field.name
        for field in schema
        if pyarrow.types.is_timestamp(field.type)
        and field.type.tz
        and field.type.unit in {"s", "ms"}
    }
