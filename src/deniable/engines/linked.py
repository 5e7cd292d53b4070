"""A file that is kept open: what takes its place under its name is another file.

All statements of a question read the one that was opened first, its first line and its rows alike,
without a copy. Whether somebody writes into that one is looked at after each statement. DuckDB sees
a name of ours: in that of the file it may find signs, a home folder or a protocol.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import shutil
import stat
import time
import zlib
from dataclasses import dataclass
from pathlib import Path

from deniable.engines.csv_format import recode
from deniable.engines.found import READING

Standing = tuple[tuple[int, ...] | None, ...]

_RECENT = 2.0
"""Seconds within which a second change may bear the same time as the first."""


_OPEN = Path("/proc/self/fd")
"""Where a process finds its open files by name."""

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
        names, changed, *rest = _seen_of(os.fstat(self.descriptor))
        if rest != list(self.seen[2:]):
            return True
        return names == self.seen[0] and changed != self.seen[1]

    @property
    def inode(self) -> tuple[int, int]:
        """Which file of the system it is, whatever its names are."""
        found = os.fstat(self.descriptor)
        return found.st_dev, found.st_ino

    @property
    def has_other_names(self) -> bool:
        """Whether it may be found again; the number of a file that is gone may be another's."""
        return os.fstat(self.descriptor).st_nlink > 1

    def let_go(self) -> None:
        with contextlib.suppress(OSError):
            self.place.unlink()
        with contextlib.suppress(OSError):
            os.close(self.descriptor)


def linked(path: str, folder: Path, encoding: str = "utf-8") -> Linked | None:
    """The owner's file under a new name in a folder; None where the system has no such names."""
    if encoding == "utf-8" and not _OPEN.exists():
        return None
    return taken(os.open(path, READING), path, folder, encoding)


def taken(
    descriptor: int, path: str, folder: Path, encoding: str = "utf-8", most: int | None = None
) -> Linked:
    """An open file under a new name in a folder; a copy, where open files have no names.

    What is written otherwise than in UTF-8 is copied into that, if it has no more than `most`
    bytes there.
    """
    ending = Path(path).suffix.lower()
    place = folder / f"{descriptor}-{time.monotonic_ns()}{ending if ending in _ENDINGS else ''}"
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise FileNotFoundError(path)
        if encoding != "utf-8":
            place = place.with_suffix(".csv")
            _recoded(descriptor, path, encoding, place, most)
        elif _OPEN.exists():
            place.symlink_to(_OPEN / str(descriptor))
        else:
            with open(descriptor, "rb", closefd=False) as file, place.open("xb") as copy:
                shutil.copyfileobj(file, copy)
    except BaseException:
        os.close(descriptor)
        place.unlink(missing_ok=True)
        raise
    recent = time.time() - max(found.st_mtime, found.st_ctime) < _RECENT
    return Linked(place, descriptor, _seen_of(found), recent)


def _recoded(descriptor: int, path: str, encoding: str, place: Path, most: int | None) -> None:
    try:
        recode(descriptor, path.lower().endswith(".gz"), encoding, place, most)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise OSError("a packed file is damaged") from None


def _seen_of(found: os.stat_result) -> tuple[int, ...]:
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
