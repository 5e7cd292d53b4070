"""Rows in this process, for tests and for sessions that need no more."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

from deniable.errors import LedgerError
from deniable.ledger.entries import Row
from deniable.ledger.stores.base import Decide


class MemoryStore:
    """Nothing survives the process."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._rows: dict[str, list[Row]] = {}
        self._questions: dict[tuple[str, str], list[int]] = {}
        self._referring: dict[tuple[str, int], list[int]] = {}

    def append(self, population: str, decide: Decide) -> Row:
        """Under a lock."""
        if self._process != os.getpid():
            raise LedgerError("a ledger in memory is not shared with a forked process")
        with self._lock:
            rows = self._rows.get(population, [])
            row = decide(rows[-1] if rows else None, self)
            rows.append(row)
            self._rows[population] = rows
            if row.question is not None:
                self._questions.setdefault((population, row.question), []).append(row.number)
            if row.refers is not None:
                self._referring.setdefault((population, row.refers), []).append(row.number)
            return row

    def last(self, population: str) -> Row | None:
        """The last row."""
        rows = self._rows.get(population)
        return rows[-1] if rows else None

    @property
    def place(self) -> str:
        """Nowhere."""
        return ""

    def rows(self, population: str, after: int = 0) -> Iterator[Row]:
        """All rows after one, in order."""
        return iter(self._rows.get(population, [])[after:])

    def row(self, population: str, number: int) -> Row | None:
        """One row."""
        rows = self._rows.get(population, [])
        return rows[number - 1] if 0 < number <= len(rows) else None

    def asked(self, population: str, question: str) -> list[Row]:
        """The reservations for a question, and the rows that refer to them."""
        numbers = list(self._questions.get((population, question), []))
        found = {number for first in numbers for number in [first, *self._refer(population, first)]}
        return [self._rows[population][number - 1] for number in sorted(found)]

    def referring(self, population: str, number: int) -> list[Row]:
        """The rows that refer to a row."""
        return [self._rows[population][each - 1] for each in self._refer(population, number)]

    def _refer(self, population: str, number: int) -> list[int]:
        return list(self._referring.get((population, number), []))

    def populations(self) -> list[str]:
        """The names of all populations."""
        return sorted(self._rows)

    def close(self) -> None:
        """Nothing to let go of."""
