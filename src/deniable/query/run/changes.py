"""Files that were written after an answer about them was recorded, of which a session warns.

The ledger keeps no time of day, as how long a question took would show. But no answer is younger
than the end of its day, than the last writing of the ledger's file, or, if this session drew it,
than its drawing. A file that was written after the first of these has changed since. One that was
written before it may have: silence is no promise.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from deniable.engines.csv_format import CSVFiles
from deniable.engines.duckdb import DuckDBTable
from deniable.engines.files import Files
from deniable.ledger.ledger import Ledger
from deniable.release import Release
from deniable.tables import Source

MESSAGE = (
    "{}: written after this answer was recorded, which is given again as it was. If the data have "
    "changed, give the table a new version (version=), and questions are answered anew at their "
    "price"
)


@dataclass(frozen=True)
class Changes:
    """What is known of the files of a session, and of the answers that it drew."""

    sources: Mapping[str, Source]
    """By table, what it is read from."""
    ledger: Ledger
    drawn: dict[str, float] = field(default_factory=dict)
    """By head, when answers of this session were drawn."""
    stale: list[str] = field(default_factory=list)
    """Tables that have changed since an answer that was just repeated."""

    def note(self, recorded: Release, tables: Sequence[str]) -> None:
        """Remember when an answer was drawn; or find tables that changed since it was recorded."""
        if not recorded.repeated:
            self.drawn[recorded.head] = time.time()
            return
        latest = self._latest(recorded)
        self.stale.extend(
            name
            for name in tables
            if name not in self.stale and _written(self.sources[name]) > latest
        )

    def _latest(self, recorded: Release) -> float:
        """When the answer was recorded at the latest."""
        ends = datetime.fromisoformat(recorded.day).replace(tzinfo=UTC) + timedelta(days=1)
        known = [ends.timestamp(), self.ledger.written, self.drawn.get(recorded.head)]
        return min(each for each in known if each is not None)

    def told(self) -> list[str]:
        """The tables that have changed, once."""
        found = list(self.stale)
        self.stale.clear()
        return found


def _written(source: Source) -> float:
    """When the youngest file of a source was written; long ago, where there is none."""
    if isinstance(source, str | CSVFiles):
        paths = list(Files.of(source).paths())
    elif isinstance(source, DuckDBTable) and isinstance(source.database.where, str):
        paths = [source.database.where, f"{source.database.where}.wal"]
    else:
        return float("-inf")
    return max(map(_time_of, paths), default=float("-inf"))


def _time_of(path: str) -> float:
    try:
        return Path(path).stat().st_mtime
    except OSError:
        return float("-inf")
