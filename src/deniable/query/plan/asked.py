"""A question with its price, before anything is spent."""

from __future__ import annotations

from dataclasses import dataclass

from deniable.engines.base import Step
from deniable.privacy.amount import Amount
from deniable.privacy.losses.base import Loss
from deniable.query.plan.plan import Plan
from deniable.query.price.profile import Purchase


@dataclass(frozen=True)
class Asked:
    """A question with its price: what is estimated before it, and what is left for it."""

    plan: Plan
    bought: Purchase | None
    """What is estimated privately first, where bounds are not declared."""
    amount: Amount
    """What is left for the question itself."""
    steps: tuple[Step, ...]
    """The statements of the question itself, with made-up bounds where none are known yet."""


@dataclass(frozen=True)
class Unknown:
    """What is still to be estimated before a question can be answered, and its price."""

    parts: tuple[str, ...]
    loss: Loss
