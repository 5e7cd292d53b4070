"""Files, as DuckDB is to read them."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Sequence

import duckdb as driver

from deniable.engines.csv_format import PLAIN, CSVFormat, decoded
from deniable.errors import ParameterError

_LONGEST_HEADER = 1 << 18
"""Bytes: a packed file of a few bytes may begin with a line that no memory holds."""


def string_literal(text: str) -> str:
    """A text in quotes."""
    return "'" + text.replace("'", "''") + "'"


def csv_header(path: str, link: str | None = None, form: CSVFormat = PLAIN) -> list[str]:
    """The names of the columns of a CSV file: declared, or in its first line, maybe by a link."""
    if form.names is not None:
        return list(form.names)
    names, ended = first_line(path, link, form)
    if not names or len({name.lower() for name in names}) != len(names) or not ended:
        raise ParameterError(
            "source",
            path,
            "the first line of a CSV file names its columns, "
            f"in fewer than {_LONGEST_HEADER:,} characters",
        )
    return names


def first_line(path: str, link: str | None, form: CSVFormat) -> tuple[list[str], bool]:
    """The cells of the first line, and whether it ends where a line of names should have.

    A link is to a file in UTF-8: one in another encoding is copied into that.
    """
    opener = gzip.open if (link or path).lower().endswith(".gz") else open
    encoding = form.encoding if link is None else "utf-8"
    try:
        with opener(link or path, "rb") as file:
            stored = file.read(_LONGEST_HEADER)
        start = io.StringIO(text := decoded(stored, encoding), newline="")
        names = next(csv.reader(start, delimiter=form.separator(path)), [])
    except FileNotFoundError:
        raise ParameterError("source", path, "no such file") from None
    except (csv.Error, OSError, EOFError, zlib.error):
        return [], False
    return names, start.tell() < len(text) or len(stored) < _LONGEST_HEADER


def csv_options(names: Sequence[str], source: str, form: CSVFormat = PLAIN) -> str:
    """Text only, nothing sniffed; columns of these names, which are the file's schema.

    Lines that do not fit are dropped, whatever is wrong with them.
    """
    columns = ", ".join(f"{string_literal(name)}: 'VARCHAR'" for name in names)
    return (
        f"columns={{{columns}}}, header={str(form.names is None).lower()}, auto_detect=false, "
        f"delim={string_literal(form.separator(source))}, quote='\"', escape='\"', "
        "null_padding=true, ignore_errors=true, strict_mode=false, parallel=false, nullstr=''"
    )


def unreadable(connection: driver.DuckDBPyConnection, place: str) -> dict[str, str]:
    """Columns of a Parquet file that DuckDB fails to read where one cell lies too far, and why.

    That is below any cast of ours. They are left out: a single value could make every question
    fail. Times in units that are widened, and decimals in more bytes than the engine's have. Names
    that differ by their case alone are refused, as the engine would rename one of them.
    """
    found = connection.execute(
        "SELECT name, COALESCE(num_children, 0), converted_type = 'TIMESTAMP_MILLIS' "
        "OR logical_type LIKE '%MILLIS=MilliSeconds%', "
        "(converted_type = 'DECIMAL' OR logical_type LIKE '%Decimal%') "
        "AND (type = 'BYTE_ARRAY' OR TRY_CAST(type_length AS BIGINT) > 16) "
        f"FROM parquet_schema({place})"
    ).fetchall()
    check_names(_outermost([(str(name), int(inner)) for name, inner, _, _ in found[1:]]))
    times = {str(name): MILLISECONDS for name, _, time, _ in found if time}
    return times | {str(name): WIDE_DECIMAL for name, _, _, decimal in found if decimal}


MILLISECONDS = "its times count milliseconds, and one that lies too far would end every question; "
MILLISECONDS += "store microseconds"
WIDE_DECIMAL = "its decimals have more than 16 bytes, and one would end every question; store fewer"


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
