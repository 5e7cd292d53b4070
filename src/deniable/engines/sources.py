"""Files, as DuckDB is to read them."""

from __future__ import annotations

import csv
import gzip
import io
import zlib

import duckdb as driver

from deniable.errors import ParameterError

_LONGEST_HEADER = 1 << 18
"""Characters: a packed file of a few bytes may begin with a line that no memory holds."""


def string_literal(text: str) -> str:
    """A text in quotes."""
    return "'" + text.replace("'", "''") + "'"


def csv_header(path: str, link: str | None = None) -> list[str]:
    """The names in the first line of a CSV file, read through a link to it or not."""
    opener = gzip.open if path.lower().endswith(".gz") else open
    try:
        with opener(link or path, "rt", encoding="utf-8-sig", errors="replace", newline="") as file:
            start = io.StringIO(file.read(_LONGEST_HEADER), newline="")
        names = next(csv.reader(start, delimiter=_separator(path)), [])
    except FileNotFoundError:
        raise ParameterError("source", path, "no such file") from None
    except (csv.Error, OSError, EOFError, zlib.error):
        names = []
    if (
        not names
        or len({name.lower() for name in names}) != len(names)
        or start.tell() == _LONGEST_HEADER
    ):
        raise ParameterError(
            "source",
            path,
            "the first line of a CSV file names its columns, "
            f"in fewer than {_LONGEST_HEADER:,} characters",
        )
    return names


def csv_options(source: str, link: str | None = None) -> str:
    """Text only, nothing sniffed; names from the first line, which is the file's schema.

    Lines that do not fit are dropped, whatever is wrong with them.
    """
    columns = ", ".join(f"{string_literal(name)}: 'VARCHAR'" for name in csv_header(source, link))
    return (
        f"columns={{{columns}}}, header=true, auto_detect=false, "
        f"delim={string_literal(_separator(source))}, quote='\"', escape='\"', null_padding=true, "
        "ignore_errors=true, strict_mode=false, parallel=false, nullstr=''"
    )


def _separator(source: str) -> str:
    return "\t" if source.lower().endswith(".tsv") else ","


def unreadable(connection: driver.DuckDBPyConnection, place: str) -> set[str]:
    """Columns of a Parquet file that DuckDB fails to read where one cell lies too far.

    That is below any cast of ours. They are left out: a single value could make every question
    fail. Times in units that are widened, and decimals in more bytes than the engine's have; by
    their names in lower case. Names that differ by their case alone are refused, as the engine
    would rename one of them.
    """
    found = connection.execute(
        "SELECT name, COALESCE(num_children, 0), converted_type = 'TIMESTAMP_MILLIS' "
        "OR logical_type LIKE '%MILLIS=MilliSeconds%' "
        "OR ((converted_type = 'DECIMAL' OR logical_type LIKE '%Decimal%') "
        "AND (type = 'BYTE_ARRAY' OR TRY_CAST(type_length AS BIGINT) > 16)) "
        f"FROM parquet_schema({place})"
    ).fetchall()
    check_names(_outermost([(str(name), int(inner)) for name, inner, _ in found[1:]]))
    return {str(name).lower() for name, _, hidden in found if hidden}


def _outermost(listed: list[tuple[str, int]]) -> list[str]:
    """The names of columns among those of all that is in them, each before its own parts."""
    names, skipped = [], 0
    for name, inner in listed:
        if skipped:
            skipped += inner - 1
        else:
            names.append(name)
            skipped = inner
    return names


def check_names(names: list[str]) -> None:
    """Refuse names that an engine takes for one."""
    if len({name.lower() for name in names}) != len(names):
        raise ParameterError("source", "a table", "has two columns of one name, but for its case")
