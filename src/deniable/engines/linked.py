"""A file that is kept open: what takes its place under its name is another file.

All statements of a question read the one that was opened first, without a copy. Whether somebody
writes into that one is looked at after each statement; then the question fails.
"""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass
from pathlib import Path

_RECENT = 2.0
"""Seconds within which a second change may bear the same time as the first."""


@dataclass(frozen=True)
class Linked:
    """An open file, under a name of our own, and how it was when it was opened."""

    place: Path
    descriptor: int
    seen: tuple[int, int]
    is_recent: bool  # written into a moment ago, and perhaps again

    def has_changed(self) -> bool:
        """Whether somebody has written into it since."""
        return _seen(self.descriptor) != self.seen

    def let_go(self) -> None:
        """Close it."""
        with contextlib.suppress(OSError):
            self.place.unlink()
        with contextlib.suppress(OSError):
            os.close(self.descriptor)


def linked(path: str, folder: Path, name: str) -> Linked | None:
    """A file under a new name in a folder; None where the system has no such names."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    opened = Path(f"/proc/self/fd/{descriptor}")
    if not opened.exists():
        os.close(descriptor)
        return None
    place = folder / f"{name}-{time.monotonic_ns()}{Path(path).suffix}"
    place.symlink_to(opened)
    recent = time.time() - os.fstat(descriptor).st_mtime < _RECENT
    return Linked(place, descriptor, _seen(descriptor), recent)


def _seen(descriptor: int) -> tuple[int, int]:
    found = os.fstat(descriptor)
    return found.st_mtime_ns, found.st_size
