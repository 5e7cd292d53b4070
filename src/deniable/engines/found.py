"""The files that a pattern finds: plain files in plain folders below its fixed part.

A file or folder may be one person's. So links are not followed, for they could bring in others'
files again, or no end of them; what cannot be looked at is not there; and no depth of folders is
too deep. The part of the pattern before its first sign is the owner's, links and all.

What was a plain file when it was looked at may be a link when it is read. So folders and files are
opened one from the other, never by a path, and none of them through a link.
"""

from __future__ import annotations

import contextlib
import errno
import glob
import os
import re
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from fnmatch import translate
from pathlib import Path

ANY_DEPTH = "**"
"""The sign of a pattern for no folder, one, or one in the other."""

READING = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
"""How files are opened: a pipe, which may have taken a file's place, is not waited for."""

OURS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOSPC, errno.EDQUOT})
"""What is wrong with this process or machine, and not with a file or folder that it opens."""

_FOLDER = READING | os.O_DIRECTORY
_LONGEST = 4096
"""Bytes of a path below which folders are looked at: systems take no longer ones by name."""

Names = tuple[str, ...]
Kind = Callable[..., bool]


class Folders:
    """Folders below a fixed one, each opened from the one above it; the last one stays open."""

    def __init__(self, fixed: Path) -> None:
        self._fixed = os.open(fixed, _FOLDER)
        self._last: Names = ()
        self._opened = self._fixed

    def folder(self, below: Names) -> int:
        """The descriptor of one of them, good until the next one is asked for."""
        if below[: len(self._last)] != self._last:
            self._leave()
        for name in below[len(self._last) :]:
            opened = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=self._opened)
            last = (*self._last, name)
            self._leave()
            self._last, self._opened = last, opened
        return self._opened

    def file(self, below: Names) -> int:
        """A file, opened to be read."""
        *folder, name = below
        return os.open(name, READING | os.O_NOFOLLOW, dir_fd=self.folder(tuple(folder)))

    def names(self, below: Names, kind: Kind) -> list[str]:
        """What lies in one of them and is of a kind; nothing, if that cannot be looked at."""
        if len(os.fsencode("/".join(below))) > _LONGEST:
            return []
        try:
            with os.scandir(self.folder(below)) as listed:
                return [entry.name for entry in listed if _is(kind, entry)]
        except OSError as error:
            if error.errno in OURS:
                raise
            return []

    def _leave(self) -> None:
        if self._opened != self._fixed:
            os.close(self._opened)
        self._last, self._opened = (), self._fixed

    def close(self) -> None:
        self._leave()
        os.close(self._fixed)


@dataclass(frozen=True)
class Found:
    """A file: its path from the root, which names it, and the folders through which it is read."""

    path: str
    below: Names
    folders: Folders

    def open(self) -> int:
        """Its descriptor: of a plain file, or of whatever else has taken its place but a link."""
        return self.folders.file(self.below)


def found(pattern: str) -> Generator[Found]:
    """Those that are there now, in the order of their paths; open until the last was given."""
    parts = Path(pattern).absolute().parts
    fixed = next(place for place, part in enumerate(parts) if glob.has_magic(part))
    above = Path(*parts[:fixed])
    try:
        folders = Folders(above)
    except OSError as error:
        if error.errno in OURS:
            raise
        return
    with contextlib.closing(folders):
        listed = ((str(above.joinpath(*below)), below) for below in _files(folders, parts[fixed:]))
        for path, below in sorted(listed):
            yield Found(path, below, folders)


def _files(folders: Folders, parts: Names) -> Iterator[Names]:
    """The names of folders and file below the fixed part, of each file that fits."""
    *between, last = parts if parts[-1] != ANY_DEPTH else (*parts, "*")
    reached: Iterable[Names] = [()]
    for part in between:
        step = _below if part == ANY_DEPTH else _folders_named(part)
        reached = list(dict.fromkeys(each for above in reached for each in step(folders, above)))
    matches = _named(last)
    for above in reached:
        for name in filter(matches, folders.names(above, os.DirEntry.is_file)):
            yield (*above, name)


def _folders_named(part: str) -> Callable[[Folders, Names], Iterator[Names]]:
    matches = _named(part)

    def step(folders: Folders, above: Names) -> Iterator[Names]:
        for name in filter(matches, folders.names(above, os.DirEntry.is_dir)):
            yield (*above, name)

    return step


def _below(folders: Folders, above: Names) -> Iterator[Names]:
    """A folder and all below it, but hidden ones."""
    left = [above]
    while left:
        here = left.pop()
        yield here
        inner = folders.names(here, os.DirEntry.is_dir)
        left += [(*here, name) for name in inner if not name.startswith(".")]


def _named(part: str) -> Callable[[str], bool]:
    """Whether a name fits; hidden ones only where the pattern begins with a dot."""
    form, hidden = re.compile(translate(part)), part.startswith(".")

    def matches(name: str) -> bool:
        return form.match(name) is not None and (hidden or not name.startswith("."))

    return matches


def _is(kind: Kind, entry: os.DirEntry[str]) -> bool:
    try:
        return kind(entry, follow_symlinks=False)
    except OSError:
        return False
