"""The file of a database: the one that was opened, under its only name.

Who has a file open goes on writing to it when it was moved away or replaced, and nobody finds that
again. Under a second name SQLite does not see what a crash left half done under the first: it
writes on, and the first name, opened again, undoes pages of what was written since.
"""

from __future__ import annotations

from pathlib import Path


class OneFile:
    """A file that exists, as it is found when this is made."""

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
