"""What a ledger hands out: a price that is spent, an answer that is kept, and what is left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from deniable.ledger.entries import Row, head_of, state_of
from deniable.ledger.filters import Budget, Totals
from deniable.privacy.losses.base import Loss


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
    """The second part of a question, as the released value of its first part decides it."""

    loss: Loss
    """What it costs; what was held for it must cover that."""
    question: Mapping[str, object]
    """All that its answer depends on but the data."""
    purpose: str


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
