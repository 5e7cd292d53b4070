"""What stands in files before it is read as values: for their owner, who may see it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb as driver

from deniable.engines.base import quoted
from deniable.engines.files import Files, Stored
from deniable.engines.leaves import CellReader
from deniable.engines.sources import string_literal
from deniable.errors import EngineError
from deniable.tables import SQL_TYPES, ColumnType

_SHORT, _LOST = "deniable_rejected_scans", "deniable_rejected"

MISSING = ("na", "n/a", "nan", "null", "none", "?", "-", ".")
"""Words for nothing, in lower case."""

_DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_SPELT = {
    ColumnType.INTEGER: r"[-+]?(0|[1-9][0-9]{0,18})",
    ColumnType.NUMBER: r"[-+]?(0|[1-9][0-9]*)?([.][0-9]*)?([eE][-+]?[0-9]+)?",
    ColumnType.BOOLEAN: "(?i)true|false",
    ColumnType.DATE: _DAY,
    ColumnType.TIMESTAMP: f"{_DAY}([ T][0-9]{{2}}:[0-9]{{2}}(:[0-9]{{2}}([.][0-9]{{1,6}})?)?)?",
}


@dataclass(frozen=True)
class StoredCells:
    """Counts over all files of a source."""

    cells: Mapping[str, int] = field(default_factory=dict)
    """By column, how many cells are not empty."""
    unread: int = 0
    """Files that cannot be read, and have no rows."""
    dropped: int = 0
    """Lines that are no text, or longer than can be read, and are no rows."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Columns that no question reads, and why."""


@contextmanager
def opened_file(files: Files, path: str) -> Iterator[tuple[driver.DuckDBPyConnection, Stored]]:
    """One of the files, as it is stored, in a DuckDB of its own."""
    with TemporaryDirectory() as folder:
        link = files.link(path, Path(folder))
        connection = driver.connect()
        try:
            # A bar would stand among what is printed for machines.
            connection.execute("SET enable_progress_bar = false")
            place = None if link is None else str(link.place)
            yield connection, files.stored(connection, path, None, place)
        finally:
            connection.close()
            if link is not None:
                link.let_go()


def stored_cells(files: Files, columns: Mapping[str, ColumnType]) -> StoredCells:
    """Count the cells of the declared columns as they are stored."""
    cells, hidden = Counter(dict.fromkeys(columns, 0)), dict[str, str]()
    unread = dropped = 0
    for path in files.paths():
        try:
            with opened_file(files, path) as (connection, stored):
                found = _counted(connection, stored, columns)
        except (driver.Error, OSError):
            unread += 1
            continue
        cells.update(found.cells)
        dropped += found.dropped
        hidden |= found.left_out
    return StoredCells(dict(cells), unread, dropped, hidden)


def left_out(files: Files, path: str, columns: Mapping[str, ColumnType]) -> dict[str, str]:
    """The columns of one file that questions would not read, and why; no row is read."""
    with opened_file(files, path) as (_, stored):
        return stored.left_out(columns)


def _counted(
    connection: driver.DuckDBPyConnection, stored: Stored, columns: Mapping[str, ColumnType]
) -> StoredCells:
    names = [name for name in columns if name in stored.found]
    counts = ", ".join(["COUNT(*)", *(f"COUNT({quoted(name)})" for name in names)])
    relation = _noting(stored)
    ((_, *found),) = connection.execute(f"SELECT {counts} FROM {relation}").fetchall()
    dropped = 0
    if stored.reader == CellReader.CSV:
        lost = f"SELECT COUNT(*) FROM (SELECT DISTINCT scan_id, line FROM {_LOST})"
        ((dropped,),) = connection.execute(lost).fetchall()
    return StoredCells(
        dict(zip(names, found, strict=True)), 0, int(dropped), stored.left_out(columns)
    )


def _noting(stored: Stored) -> str:
    """The relation, with a note of each line that a CSV reader drops."""
    if stored.reader != CellReader.CSV:
        return stored.relation
    before, option, after = stored.relation.rpartition("ignore_errors=true")
    noted = f", store_rejects=true, rejects_table='{_LOST}', rejects_scan='{_SHORT}'"
    return f"{before}{option}{noted}{after}"


def csv_types(files: Files, path: str) -> dict[str, ColumnType]:
    """The types of one file's columns, for the owner, who confirms them; text where cells differ.

    A column has the narrowest type that all its cells have. What is no more than spelt like a
    number has none: a code with a leading zero would lose it. Words that stand for nothing are
    passed over; questions take them for NULL, as they do every cell that is no value of its
    column's type. Where there are no cells, it is text.
    """
    try:
        with opened_file(files, path) as (connection, stored):
            return _types(connection, stored.relation, stored.found)
    except driver.Error:
        pass
    # Out here: what the engine says may quote a row.
    raise EngineError(f"{path}: the rows of the file cannot be read as such")


def _types(
    connection: driver.DuckDBPyConnection, relation: str, found: Mapping[str, str]
) -> dict[str, ColumnType]:
    listed = ", ".join(string_literal(word) for word in MISSING)
    asked = []
    for name in found:
        cell = f"trim({quoted(name)})"
        asked.append(f"COUNT({cell}) FILTER (WHERE lower({cell}) NOT IN ({listed}))")
        for kind, spelt in _SPELT.items():
            # Most cells are spared the pattern, which takes longer.
            read = f"TRY_CAST({cell} AS {SQL_TYPES[kind]}) IS NOT NULL"
            fits = f"regexp_full_match({cell}, {string_literal(spelt)})"
            asked.append(f"COUNT(CASE WHEN {read} THEN CASE WHEN {fits} THEN 1 END END)")
    (counts,) = connection.execute(f"SELECT {', '.join(asked)} FROM {relation}").fetchall()
    types, each = {}, iter(counts)
    for name in found:
        cells = next(each)
        fitting = {kind: next(each) for kind in _SPELT}
        whole = [kind for kind, count in fitting.items() if count == cells]
        types[name] = whole[0] if whole and cells else ColumnType.TEXT
    return types
