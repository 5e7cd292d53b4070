"""The files that a pattern finds: plain files in plain folders below its fixed part.

A file or folder may be one person's. So links are not followed, for they could bring in others'
files again, or no end of them; what cannot be looked at is not there; and no depth of folders is
too deep. The part of the pattern before its first sign is the owner's, links and all.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Iterator
from fnmatch import translate
from pathlib import Path

_ANY_DEPTH = "**"


def found(pattern: str) -> list[str]:
    """Their paths from the root, in order."""
    parts = Path(pattern).absolute().parts
    fixed = next(place for place, part in enumerate(parts) if glob.has_magic(part))
    folders = [str(Path(*parts[:fixed]))]
    *between, last = parts[fixed:]
    for part in between:
        step = _below if part == _ANY_DEPTH else _folders_named(part)
        folders = list(dict.fromkeys(path for folder in folders for path in step(folder)))
    if last == _ANY_DEPTH:
        folders = list(dict.fromkeys(path for folder in folders for path in _below(folder)))
    matches = _named("*" if last == _ANY_DEPTH else last)
    return sorted(
        entry.path
        for folder in folders
        for entry in _entries(folder)
        if matches(entry.name) and _is(entry.is_file)
    )


def _folders_named(part: str) -> Callable[[str], Iterator[str]]:
    matches = _named(part)

    def folders(folder: str) -> Iterator[str]:
        for entry in _entries(folder):
            if matches(entry.name) and _is(entry.is_dir):
                yield entry.path

    return folders


def _below(folder: str) -> Iterator[str]:
    """A folder and all below it, but hidden ones."""
    left = [folder]
    while left:
        here = left.pop()
        yield here
        left += [
            entry.path
            for entry in _entries(here)
            if not entry.name.startswith(".") and _is(entry.is_dir)
        ]


def _named(part: str) -> Callable[[str], bool]:
    """Whether a name fits; hidden ones only where the pattern begins with a dot."""
    form, hidden = re.compile(translate(part)), part.startswith(".")

    def matches(name: str) -> bool:
        return form.match(name) is not None and (hidden or not name.startswith("."))

    return matches


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as listed:
            return list(listed)
    except OSError:
        return []


def _is(kind: Callable[..., bool]) -> bool:
    try:
        return kind(follow_symlinks=False)
    except OSError:
        return False
