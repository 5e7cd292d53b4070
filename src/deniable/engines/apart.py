"""A DuckDB apart from the session's, for files that one person may have written.

A damaged file makes a reader fail, or ends its DuckDB for good. So the session's connection, which
may be the owner's, never opens the files of a pattern. They are read here, to their last cell, and
only decoded rows go over: all rows of a file, or none.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb as driver
import pyarrow as pa

from deniable.engines.found import OURS, Found
from deniable.engines.linked import Linked, taken
from deniable.engines.statements import PINNED, set_to
from deniable.errors import is_stop

_CONFIGURATION: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "enable_external_file_cache": "false",
    "arrow_large_buffer_size": "true",
}
_ROWS = 1 << 14  # of the longest texts that is a gigabyte
_BYTES = 1 << 26
_COPIES = 16
"""Of what is free on a disk, the part that the copy of one file in another encoding may take."""
_PASSED = "deniable_passed_rows"

Select = Callable[[driver.DuckDBPyConnection, str], str]
"""Writes the SELECT that reads a file, through a link: it looks at the file's own columns."""


class Apart:
    """Reads files; opened when the first one is, and anew after one that failed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        # DuckDB is told to leave a tenth of what is free. Once, as rows of others fill it later.
        self._most = 1 << max(1, shutil.disk_usage(folder).free // _COPIES).bit_length() - 1
        self._opened: driver.DuckDBPyConnection | None = None

    def take(self, file: Found, encoding: str) -> Linked | None:
        """Open a file; None if that cannot be done, which follows from the file alone."""
        try:
            return taken(file.open(), file.path, self._folder, encoding, self._most)
        except OSError as error:
            if error.errno in OURS:
                raise
            return None

    def add(
        self, connection: driver.DuckDBPyConnection, table: str, link: Linked, select: Select
    ) -> None:
        """Add the rows of one file to a table of a connection; none if it cannot be read.

        Whether it can follows from the file alone. What fails on the connection itself, as it has
        no more room, would follow from other people's files, and fails the question.
        """
        connection.execute("BEGIN TRANSACTION")
        kept = False
        try:
            for rows in self._decoded(select, str(link.place)):
                connection.register(_PASSED, rows)
                connection.execute(f"INSERT INTO {table} SELECT * FROM {_PASSED}")
            kept = not link.has_changed()
        except _UnreadableError:
            self.close()
        finally:
            connection.execute("COMMIT" if kept else "ROLLBACK")
            connection.unregister(_PASSED)

    def _decoded(self, select: Select, place: str) -> Iterator[pa.Table]:
        """All rows of a file, some at a time."""
        try:
            connection = self._connection()
            reader = iter(connection.sql(select(connection, place)).to_arrow_reader(_ROWS))
            kept: list[pa.RecordBatch] = []
            while (batch := next(reader, None)) is not None:
                kept.append(batch)
                if sum(each.nbytes for each in kept) >= _BYTES:
                    yield pa.Table.from_batches(kept)
                    kept = []
            if kept:
                yield pa.Table.from_batches(kept)
        except Exception as error:
            if is_stop(error):
                raise
            raise _UnreadableError from None

    def _connection(self) -> driver.DuckDBPyConnection:
        if self._opened is None:
            made = driver.connect(
                config={**_CONFIGURATION, "temp_directory": str(self._folder / "apart")}
            )
            set_to(made, "python_enable_replacements", "false")
            for name, value in PINNED.items():
                set_to(made, name, value)
            self._opened = made
        return self._opened

    def close(self) -> None:
        """Let go of it; the next file opens another one."""
        with contextlib.suppress(Exception):  # one that has ended
            if self._opened is not None:
                self._opened.close()
        self._opened = None


class _UnreadableError(Exception):
    """A file cannot be read."""
