"""What was drawn so far, kept in a file, so that an interrupted run can go on from there."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from deniable.errors import ParameterError

Entry = dict[str, Any]


class Journal:
    """Released values, in the order of their release; with a path, each is on disk at once.

    A journal holds only what was released: it is as public as the answer.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self._path = None if path is None else Path(path)
        self._entries: list[Entry] = []
        if self._path is not None and self._path.exists():
            self._entries = _read(self._path)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """What is known."""
        return tuple(self._entries)

    def append(self, entry: Entry) -> None:
        """Keep one more, durably."""
        self._entries.append(entry)
        if self._path is None:
            return
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")
            file.flush()
            os.fsync(file.fileno())


def _read(path: Path) -> list[Entry]:
    """All whole lines; a last one that was cut off was never used."""
    lines = path.read_text(encoding="utf-8").split("\n")
    try:
        found = [json.loads(line) for line in lines[:-1]]
    except ValueError:
        raise ParameterError("resume", path.name, "is no journal of a synthesis") from None
    if lines[-1]:  # cut off: what follows must begin on a line of its own
        path.write_text("".join(f"{line}\n" for line in lines[:-1]), encoding="utf-8")
    if not all(isinstance(entry, dict) and "draw" in entry for entry in found):
        raise ParameterError("resume", path.name, "is no journal of a synthesis")
    return found
