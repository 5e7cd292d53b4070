"""A file that is kept open: what takes its place under its name is another file.

All statements of a question read the one that was opened first, its first line and its rows alike,
without a copy. Whether somebody writes into that one is looked at after each statement. DuckDB sees
a name of ours: in that of the file it may find signs, a home folder or a protocol.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import stat
import time
import zlib
from dataclasses import dataclass
from pathlib import Path

from deniable.engines.csv_format import recode

Standing = tuple[tuple[int, ...] | None, ...]

_RECENT = 2.0
"""Seconds within which a second change may bear the same time as the first."""


_ENDINGS = {".parquet", ".csv", ".tsv", ".gz"}
"""Of names, by which DuckDB knows how a file is packed."""


@dataclass(frozen=True)
class Linked:
    """An open file, under a name of our own, and how it was when it was opened."""

    place: Path
    descriptor: int
    seen: tuple[int, ...]
    is_recent: bool  # written into a moment ago, and perhaps again

    def has_changed(self) -> bool:
        """Whether somebody has written into it since.

        Who writes may put the time of writing back, and not that of the change. A file that has
        lost a name, as another took its place, bears the time of that.
        """
        names, changed, *rest = _seen(self.descriptor)
        if rest != list(self.seen[2:]):
            return True
        return names == self.seen[0] and changed != self.seen[1]

    def let_go(self) -> None:
        """Close it."""
        with contextlib.suppress(OSError):
            self.place.unlink()
        with contextlib.suppress(OSError):
            os.close(self.descriptor)


def linked(path: str, folder: Path) -> Linked | None:
    """A file under a new name in a folder; None where the system has no such names."""
    descriptor = _opened(path)
    opened = Path(f"/proc/self/fd/{descriptor}")
    if not opened.exists():
        os.close(descriptor)
        return None
    ending = Path(path).suffix.lower()
    place = folder / f"{descriptor}-{time.monotonic_ns()}{ending if ending in _ENDINGS else ''}"
    place.symlink_to(opened)
    return _linked(place, descriptor)


def recoded(path: str, folder: Path, encoding: str) -> Linked:
    """A copy of a file in UTF-8 in a folder; it has changed where the file has."""
    descriptor = _opened(path)
    link = _linked(folder / f"{descriptor}-{time.monotonic_ns()}.csv", descriptor)
    try:
        recode(descriptor, path.lower().endswith(".gz"), encoding, link.place)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        link.let_go()
        raise OSError("a packed file is damaged") from None
    except BaseException:
        link.let_go()
        raise
    return link


def _opened(path: str) -> int:
    # A pipe, which may have taken the file's place, would be waited for.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise FileNotFoundError(path)
    return descriptor


def _linked(place: Path, descriptor: int) -> Linked:
    found = os.fstat(descriptor)
    recent = time.time() - max(found.st_mtime, found.st_ctime) < _RECENT
    return Linked(place, descriptor, _seen(descriptor), recent)


def _seen(descriptor: int) -> tuple[int, ...]:
    found = os.fstat(descriptor)
    return found.st_nlink, found.st_ctime_ns, found.st_mtime_ns, found.st_size


def standing(path: str) -> Standing:
    """Which file lies under a name, and which log of a database beside it, and since when."""
    return tuple(_stood(name) for name in (path, f"{path}.wal"))


def _stood(path: str) -> tuple[int, ...] | None:
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
