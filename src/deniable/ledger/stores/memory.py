"""Rows in this process, for tests and for sessions that need no more."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from deniable.errors import LedgerError
from deniable.ledger.entries import Row
from deniable.ledger.stores.base import Decide
from deniable.randomness.fork import process_mark


class MemoryStore:
    """Nothing survives the process."""

    place = ""

    def __init__(self) -> None:
        self._mark = process_mark()
        self._lock = threading.Lock()
        self._rows: dict[str, list[Row]] = {}
        self._indexed: dict[str, int] = {}
        self._questions: dict[tuple[str, str], dict[int, None]] = {}
        self._referring: dict[tuple[str, int], dict[int, None]] = {}

    def append(self, population: str, decide: Decide) -> Row:
        if self._mark != process_mark():
            raise LedgerError("a ledger in memory is not shared with a forked process")
        with self._lock:
            rows = self._rows.get(population, [])
            row = decide(rows[-1] if rows else None, self)
            rows.append(row)  # all or nothing, whenever an interrupt comes
            self._rows[population] = rows
            return row

    def _index(self, population: str) -> None:
        """Find what rows ask and refer to. Done twice, or by half and again, it is the same."""
        for row in self._rows.get(population, [])[self._indexed.get(population, 0) :]:
            if row.question is not None:
                self._questions.setdefault((population, row.question), {})[row.number] = None
            if row.refers is not None:
                self._referring.setdefault((population, row.refers), {})[row.number] = None
            self._indexed[population] = row.number

    def rows(self, population: str, after: int = 0) -> Iterator[Row]:
        return iter(self._rows.get(population, [])[after:])

    def row(self, population: str, number: int) -> Row | None:
        rows = self._rows.get(population, [])
        return rows[number - 1] if 0 < number <= len(rows) else None

    def asked(self, population: str, question: str) -> list[Row]:
        self._index(population)
        numbers = list(self._questions.get((population, question), ()))
        found = {number for first in numbers for number in [first, *self._refer(population, first)]}
        return [self._rows[population][number - 1] for number in sorted(found)]

    def referring(self, population: str, number: int) -> list[Row]:
        return [self._rows[population][each - 1] for each in self._refer(population, number)]

    def _refer(self, population: str, number: int) -> list[int]:
        self._index(population)
        return list(self._referring.get((population, number), ()))

    def populations(self) -> list[str]:
        return sorted(self._rows)

    def close(self) -> None:
        """Nothing to let go of."""
