"""What a ledger hands out: a price that is spent, an answer that is kept, and what is left.

Answers are found by the digest of their question, and checked before they are told.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from deniable.errors import LedgerTamperedError
from deniable.ledger.entries import ANSWERS, Row, day_of, head_of, state_of
from deniable.ledger.filters import Budget, Totals
from deniable.ledger.stores.base import LedgerStore
from deniable.ledger.watch import Watch
from deniable.privacy.losses.base import Loss
from deniable.privacy.price import Price
from deniable.privacy.wire import loss_from_json, loss_to_json
from deniable.trace import stated


@dataclass(frozen=True)
class Reservation:
    """A price that is spent. `head` names the end of the chain: keep it to prove this entry."""

    population: str
    number: int
    who: str
    loss: Loss
    head: str


@dataclass(frozen=True)
class Second:
    """The next part of a question, as the released value of the part before decides it."""

    loss: Loss
    """What it costs."""
    question: Mapping[str, object]
    """All that its answer depends on but the data."""
    purpose: str
    hold: Loss | None = None
    """What is held on for the parts after it. What was held must cover both."""


@dataclass(frozen=True)
class Recorded:
    """An answer from the ledger. `head` names the entry that holds it."""

    value: object
    number: int
    head: str
    repeated: bool = False
    day: str = ""
    """The day on which a repeated one was asked for, in UTC; empty for one that is new."""


@dataclass(frozen=True)
class Balance:
    """What a population's budget is, what was spent and what is left; holds count as spent."""

    population: str
    budgets: tuple[Budget, ...]
    totals: tuple[Totals, ...]
    remaining: Mapping[str, Fraction]
    largest_epsilon: float
    spent: float
    releases: int
    head: str
    holds: int
    """How many questions hold something for a second part."""

    def more(self, cost: Price) -> int:
        """How many more releases of this cost it pays for.

        δ never ends: what chooses groups takes a part of what is left of it, not the same again.
        """

        def times(name: str, price: Fraction | None) -> float:
            if name not in self.remaining or price is None:
                return 0
            return math.inf if price == 0 else self.remaining[name] // price

        delta = 0 if cost.delta and self.remaining.get("delta") == 0 else math.inf
        return int(max(times("epsilon", cost.epsilon), min(times("rho", cost.rho), delta)))


def balance_of(row: Row) -> Balance:
    """What is spent and what is left after an entry."""
    state = state_of(row)
    tranches = state.counted()
    best = max(tranches, key=lambda each: each.budget.largest_epsilon(each.totals))
    return Balance(
        row.population,
        tuple(each.budget for each in tranches),
        tuple(each.totals for each in tranches),
        best.budget.remaining(best.totals),
        best.budget.largest_epsilon(best.totals),
        sum(each.budget.spent(each.totals) for each in tranches),
        state.releases,
        head_of(row),
        len(state.holds),
    )


def read_hold(hold: Loss | None) -> tuple[Loss | None, dict[str, object]]:
    """What is held, and how an entry says it."""
    if hold is None:
        return None, {}
    text = loss_to_json(hold)
    rest = loss_from_json(text)
    stated("hold", (rest,))
    return rest, {"hold": text}


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
