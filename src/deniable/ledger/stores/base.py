"""What a store must do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from deniable.ledger.entries import Row


class View(Protocol):
    """Rows to look up, also from inside a transaction."""

    def row(self, population: str, number: int) -> Row | None:
        """One row."""

    def referring(self, population: str, number: int) -> list[Row]:
        """The rows that refer to a row, in order."""


Decide = Callable[[Row | None, View], Row]


class LedgerStore(View, Protocol):
    """Append-only rows, in one chain per population."""

    def append(self, population: str, decide: Decide) -> Row:
        """Let `decide` make the next row from the last one, and keep it for good.

        It may look at other rows. Nobody else appends to the population in
        between. When this returns, the row survives a crash. What `decide` raises is raised, and
        nothing is kept.
        """

    @property
    def place(self) -> str:
        """Where the rows are, without secrets; empty if they end with the process."""

    def rows(self, population: str, after: int = 0) -> Iterator[Row]:
        """All rows after one, in order."""

    def asked(self, population: str, question: str) -> list[Row]:
        """The reservations for a question, and the rows that refer to them, in order."""

    def populations(self) -> list[str]:
        """The names of all populations."""

    def close(self) -> None:
        """Let go of files and connections."""
