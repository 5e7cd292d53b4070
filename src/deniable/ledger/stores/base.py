"""What a store must do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from deniable.ledger.entries import Row

Referring = Callable[[int], list[Row]]
Decide = Callable[[Row | None, Referring], Row]


class LedgerStore(Protocol):
    """Append-only rows, in one chain per population."""

    def append(self, population: str, decide: Decide) -> Row:
        """Let `decide` make the next row from the last one, and keep it for good.

        It may look up the rows that refer to a row. Nobody else appends to the population in
        between. When this returns, the row survives a crash. What `decide` raises is raised, and
        nothing is kept.
        """

    def last(self, population: str) -> Row | None:
        """The last row."""

    def rows(self, population: str) -> Iterator[Row]:
        """All rows, in order."""

    def row(self, population: str, number: int) -> Row | None:
        """One row."""

    def asked(self, population: str, question: str) -> list[Row]:
        """The reservations for a question, and the rows that refer to them, in order."""

    def referring(self, population: str, number: int) -> list[Row]:
        """The rows that refer to a row, in order."""

    def populations(self) -> list[str]:
        """The names of all populations."""

    def close(self) -> None:
        """Let go of files and connections."""
