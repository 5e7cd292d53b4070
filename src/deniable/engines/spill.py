"""Where DuckDB puts rows that do not fit in memory: a folder that nobody else may look into.

It goes with the session. What a killed process left behind is swept when the next one opens.
"""

from __future__ import annotations

import contextlib
import fcntl
import shutil
import tempfile
import weakref
from pathlib import Path
from typing import IO

import duckdb as driver

from deniable.engines.sources import string_literal
from deniable.randomness.fork import process_mark

_PREFIX, _LOCK = "deniable-spill-", "in-use"


class Spill:
    """A folder of one session, made when it opens."""

    def __init__(self) -> None:
        _sweep_left()
        self.folder, held = _made()
        self._lasts = False
        self.sweep = weakref.finalize(self, _remove, self.folder, held, process_mark())

    def take(self, connection: driver.DuckDBPyConnection) -> None:
        """Have a connection spill here."""
        connection.execute(f"SET temp_directory = {string_literal(str(self.folder))}")

    def take_from_owner(self, connection: driver.DuckDBPyConnection) -> None:
        """An owner's connection would spill where it works, or beside its database, for all to see.

        It may go on to spill here after the session: the folder goes with the process.
        """
        self._lasts = True
        with contextlib.suppress(driver.Error):  # it has spilt there already: the owner's affair
            self.take(connection)

    def close(self) -> None:
        if not self._lasts:
            self.sweep()


def _made() -> tuple[Path, IO[str]]:
    """A folder of mode 0700, and a lock that is held as long as the process lives."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        held = (folder / _LOCK).open("w")
        fcntl.flock(held, fcntl.LOCK_EX)
        if (folder / _LOCK).exists():  # nobody swept it before it was locked
            return folder, held
        held.close()


def _remove(folder: Path, held: IO[str], made_by: tuple[int, int]) -> None:
    if process_mark() == made_by:  # no forked child's affair
        shutil.rmtree(folder, ignore_errors=True)
    held.close()


def _sweep_left() -> None:
    """Remove folders whose process is gone: nobody holds their locks."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError), (folder / _LOCK).open("r+") as held:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
