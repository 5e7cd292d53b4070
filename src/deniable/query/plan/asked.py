"""A question with its price, before anything is spent."""

from __future__ import annotations

from dataclasses import dataclass

from deniable.engines.base import Step
from deniable.privacy.amount import Amount
from deniable.privacy.losses.base import Loss
from deniable.query.plan.plan import Plan
from deniable.query.price.estimate import Estimate
from deniable.query.price.profile import Recentre


@dataclass(frozen=True)
class Asked:
    """A question with its price: what is estimated before it, and what is left for it."""

    plan: Plan
    amount: Amount
    """What all of it may cost."""
    centred: Recentre
    """Compiles the plan again, with columns centred elsewhere."""
    estimates: tuple[Estimate, ...]
    """What is estimated privately first, one after the other, with made-up results."""
    steps: tuple[Step, ...]
    """The statements of the question itself, with made-up bounds where none are known yet."""

    @property
    def assumed(self) -> Plan:
        """The plan with made-up results where something is still to be estimated."""
        return self.estimates[-1].assumed() if self.estimates else self.plan

    @property
    def left(self) -> Amount:
        """What is left for the question itself."""
        return self.estimates[-1].left if self.estimates else self.amount


@dataclass(frozen=True)
class Unknown:
    """What is still to be estimated before a question can be answered, and its price."""

    parts: tuple[str, ...]
    loss: Loss
