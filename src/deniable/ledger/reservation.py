"""What a ledger hands out: a price that is spent, an answer that is kept, and what is left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

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
    """What a population's budget is, what was spent and what is left."""

    population: str
    budgets: tuple[Budget, ...]
    totals: tuple[Totals, ...]
    remaining: Mapping[str, Fraction]
    largest_epsilon: float
    spent: float
    releases: int
    head: str
