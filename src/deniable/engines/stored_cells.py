"""What stands in files before it is read as values: for their owner, who may see it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb as driver

from deniable.engines.base import quoted
from deniable.engines.files import Files, Stored
from deniable.engines.leaves import Reader
from deniable.engines.linked import Linked
from deniable.tables import ColumnType

_SHORT, _LOST = "deniable_rejected_scans", "deniable_rejected"


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


def stored_cells(files: Files, columns: Mapping[str, ColumnType]) -> StoredCells:
    """Count the cells of the declared columns as they are stored."""
    cells, left_out = Counter(dict.fromkeys(columns, 0)), dict[str, str]()
    unread = dropped = 0
    with TemporaryDirectory() as folder:
        for path in files.paths():
            try:
                found = _file(files, path, columns, Path(folder))
            except (driver.Error, OSError):
                unread += 1
                continue
            cells.update(found.cells)
            dropped += found.dropped
            left_out |= found.left_out
    return StoredCells(dict(cells), unread, dropped, left_out)


def left_out(files: Files, path: str, columns: Mapping[str, ColumnType]) -> dict[str, str]:
    """The columns of one file that questions would not read, and why; no row is read."""
    connection = driver.connect()
    try:
        return files.stored(connection, path).left_out(columns)
    finally:
        connection.close()


def _file(files: Files, path: str, columns: Mapping[str, ColumnType], folder: Path) -> StoredCells:
    link = files.link(path, folder)
    connection = driver.connect()
    try:
        return _counted(files, path, columns, connection, link)
    finally:
        connection.close()
        if link is not None:
            link.let_go()


def _counted(
    files: Files,
    path: str,
    columns: Mapping[str, ColumnType],
    connection: driver.DuckDBPyConnection,
    link: Linked | None,
) -> StoredCells:
    stored = files.stored(connection, path, None, None if link is None else str(link.place))
    names = [name for name in columns if name in stored.found]
    counts = ", ".join(["COUNT(*)", *(f"COUNT({quoted(name)})" for name in names)])
    relation = _noting(stored)
    ((_, *found),) = connection.execute(f"SELECT {counts} FROM {relation}").fetchall()
    dropped = 0
    if stored.reader == Reader.CSV:
        lost = f"SELECT COUNT(*) FROM (SELECT DISTINCT scan_id, line FROM {_LOST})"
        ((dropped,),) = connection.execute(lost).fetchall()
    left_out = stored.left_out(columns)
    return StoredCells(dict(zip(names, found, strict=True)), 0, int(dropped), left_out)


def _noting(stored: Stored) -> str:
    """The relation, with a note of each line that a CSV reader drops."""
    if stored.reader != Reader.CSV:
        return stored.relation
    before, option, after = stored.relation.rpartition("ignore_errors=true")
    noted = f", store_rejects=true, rejects_table='{_LOST}', rejects_scan='{_SHORT}'"
    return f"{before}{option}{noted}{after}"
