"""The file of a database and its connections: one that was inherited by a fork is never used.

Two processes on one socket read each other's answers, and SQLite keeps its locks by process. So a
child makes connections of its own, and forks wait until no thread is in the middle of a
transaction: the child would have its locks, and nobody who lets go of them.

Nor is one used again that was interrupted, or has failed: in Postgres it may wait for an answer, in
SQLite a statement that was not read to its end keeps its lock as long as a frame keeps its cursor,
and whoever writes next, be it who was interrupted, would wait for that.
"""

from __future__ import annotations

import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from deniable.errors import DeniableError
from deniable.randomness.fork import process_mark, unforked

PATIENCE = 60  # seconds that a writer waits for others


class OwnEngine:
    """An engine, from which each process has its own connections."""

    def __init__(self, engine: sa.Engine) -> None:
        self.engine = engine
        self._mark = process_mark()
        self._taken: dict[sa.pool.ConnectionPoolEntry, int] = {}  # with the thread that has it
        sa.event.listen(engine, "checkout", self._note_taken)
        sa.event.listen(engine, "checkin", self._note_returned)

    @contextmanager
    def connect(self) -> Iterator[sa.Connection]:
        """A connection, with which nobody forks."""
        try:
            with unforked(), self.ours().connect() as connection:
                yield connection
        except DeniableError:
            raise
        except BaseException as error:
            self._give_up(error)
            raise

    def _give_up(self, error: BaseException) -> None:
        """Close what this thread has, were it in the middle of being returned, and what waits."""
        traceback.clear_frames(error.__traceback__)
        mine = threading.get_ident()
        for entry in [entry for entry, thread in list(self._taken.items()) if thread == mine]:
            entry.invalidate()
            self._taken.pop(entry, None)
        self.close()

    def _note_taken(self, _: object, entry: sa.pool.ConnectionPoolEntry, *__: object) -> None:
        self._taken[entry] = threading.get_ident()

    def _note_returned(self, _: object, entry: sa.pool.ConnectionPoolEntry) -> None:
        self._taken.pop(entry, None)

    def close(self) -> None:
        """Close the connections of this process; those of its parent are left alone."""
        self.ours().dispose()

    def ours(self) -> sa.Engine:
        """The engine, without connections of another process."""
        if self._mark != (mark := process_mark()):
            self._taken.clear()
            self.engine.dispose(close=False)
            self._mark = mark
        return self.engine


def durable(url: sa.URL) -> sa.Engine:
    """An SQLite database whose commits are synced, their folder too; writers wait for others."""
    engine = sa.create_engine(url, connect_args={"timeout": PATIENCE})

    @sa.event.listens_for(engine, "connect")
    def configure(connection: Any, _: object) -> None:
        connection.isolation_level = None  # the driver must not open transactions itself
        connection.execute("PRAGMA synchronous = EXTRA")

    @sa.event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        writes = connection.get_execution_options().get("deniable_write")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


class OneFile:
    """A file that exists, as it is found when this is made: under its only name.

    Who has a file open goes on writing to it when it was moved away or replaced, and nobody finds
    that again. Under a second name SQLite does not see what a crash left half done under the first:
    it writes on, and the first name, opened again, undoes pages of what was written since.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._opened, _ = self._found()

    def fault(self) -> str | None:
        """Why nothing may be written to it now; None if nothing speaks against that."""
        found, names = self._found()
        if found is None or found != self._opened:
            return f"{self.path} was removed or replaced"
        if names > 1:
            return (
                f"{self.path} has a second name, a hard link, and after a crash the two would not "
                "be one database: remove the other name, or put a copy in its place"
            )
        return None

    def _found(self) -> tuple[tuple[int, int] | None, int]:
        """Which file it is, and how many names it has."""
        try:
            found = self.path.stat()
        except OSError:
            return None, 0
        return (found.st_dev, found.st_ino), found.st_nlink
