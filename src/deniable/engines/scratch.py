"""A DuckDB of our own in memory, from which no file, network or other database can be reached.

Questions are tried on it before they are charged, and arithmetic on released numbers runs there. It
takes a while to open, so a process has one. Its settings are those of all who use it: whoever does
holds its lock.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import duckdb as driver

from deniable.engines.statements import UNSHARED
from deniable.randomness.fork import process_mark

_CONFIGURATION: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "temp_directory": "",
    "threads": "1",
}
_SETTINGS = (
    "SET ieee_floating_point_ops = true",
    "SET python_enable_replacements = false",
    "SET TimeZone = 'UTC'",
    f"SET disabled_optimizers = '{UNSHARED}'",
)


@dataclass(frozen=True, eq=False)
class Scratch:
    """The database, and the lock of those who use it."""

    connection: driver.DuckDBPyConnection
    lock: threading.Lock = field(default_factory=threading.Lock)


_KEPT: dict[tuple[int, int], Scratch] = {}
"""By process. A forked child keeps its parent's, unused: to close it would wait for threads
that it does not have."""


def _opened() -> Scratch:
    connection = driver.connect(config=_CONFIGURATION)
    for setting in _SETTINGS:
        connection.execute(setting)
    return Scratch(connection)


def scratch() -> Scratch:
    """The database of this process: a child that was forked has its own."""
    process = process_mark()
    return _KEPT.get(process) or _KEPT.setdefault(process, _opened())


def forget() -> None:
    """Open another one next time: after a failure that outlasts its statement."""
    _KEPT.pop(process_mark(), None)


@contextlib.contextmanager
def borrowed() -> Iterator[driver.DuckDBPyConnection]:
    """A connection whose temporary tables are gone afterwards; one user at a time."""
    found = scratch()
    with found.lock, found.connection.cursor() as connection:
        yield connection
