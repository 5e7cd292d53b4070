"""Recorded answers: found by the digest of their question, and checked before they are told."""

from __future__ import annotations

from collections.abc import Iterator

from deniable.errors import LedgerTamperedError
from deniable.ledger.entries import ANSWERS, Row, day_of, head_of
from deniable.ledger.reservation import Recorded
from deniable.ledger.stores.base import LedgerStore
from deniable.ledger.watch import Watch


def recorded(
    watch: Watch, store: LedgerStore, population: str, digest: str
) -> Iterator[tuple[Row, Recorded]]:
    """The answers to a question, with the entries that reserved their prices, in order."""
    watch.settle(population)
    for row in store.asked(population, digest):
        second = row.question == digest  # it asks this, and answers something else
        if row.kind in ANSWERS and row.refers is not None and not second:
            asked = store.row(population, row.refers)
            if asked is None or watch.authentic(asked, store).question != digest:
                raise LedgerTamperedError(f"entry {row.number} of {population!r} answers nothing")
            kept = watch.authentic(row, store)
            day = day_of(asked.data["state"]["time"])
            yield asked, Recorded(kept.data["answer"], row.refers, head_of(row), True, day)
