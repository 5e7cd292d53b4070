"""What a plan lacks before it can be priced, in order: groups of units, keys, profile, rows."""

from __future__ import annotations

from fractions import Fraction

from deniable.errors import QueryError
from deniable.ledger.filters import Budget
from deniable.mechanisms.keys import KeySelection
from deniable.privacy.amount import Amount
from deniable.privacy.guarantees import GDP, ApproxDP
from deniable.query.plan.plan import Plan
from deniable.query.price.estimate import (
    KEYS_SHARE,
    Estimate,
    GroupsOfUnits,
    Keys,
    RowsOfUnits,
    less,
    rounded_share,
)
from deniable.query.price.profile import ProfileOfUnits, Recentre

_KEYS_DELTA = Fraction(1, 10)


def needed(plan: Plan, amount: Amount, budget: Budget, centred: Recentre) -> Estimate | None:
    """What is to be estimated next, out of an amount for all of the rest."""
    if not plan.known_keys:
        price = rounded_share(amount, KEYS_SHARE)
        selection = _selection(plan, budget, price)
        if plan.max_groups is None:
            return GroupsOfUnits.of(plan, amount)
        return Keys(plan, selection, less(amount, price))
    if not plan.buys_rows or plan.selected == () or unseen(plan):
        return None
    if plan.statistics and plan.profile is None:
        if isinstance(budget.guarantee, GDP):
            raise QueryError(
                "how many rows a person counts with is estimated by a choice that has no proved μ; "
                "declare max_rows=, or keep a budget of another kind"
            )
        return ProfileOfUnits.of(plan, amount, centred)
    return RowsOfUnits.of(plan, amount)


def unseen(plan: Plan) -> bool:
    """Whether a profile was made, and nobody stands out of its noise."""
    return plan.profile is not None and not plan.profile.anybody


def chain(plan: Plan, amount: Amount, budget: Budget, centred: Recentre) -> list[Estimate]:
    """All that is to be estimated, one after the other, with made-up results."""
    found: list[Estimate] = []
    while (estimate := needed(plan, amount, budget, centred)) is not None:
        found.append(estimate)
        plan, amount = estimate.assumed(), estimate.left
    return found


def _selection(plan: Plan, budget: Budget, amount: Amount) -> KeySelection:
    unknown = ", ".join(group.name for group in plan.groups if group.keys is None)
    if amount.is_stated:
        raise QueryError(
            f"the groups of {unknown} are not public, and choosing them takes a δ beside the "
            f"guarantee; declare keys={{'{unknown.split(', ')[0]}': [...]}}, or say the price as "
            "epsilon= or rho="
        )
    if amount.rho is None or not isinstance(budget.guarantee, ApproxDP) or not budget.keys_delta:
        raise QueryError(
            f"the groups of {unknown} are not public, and choosing them takes a δ that this budget "
            f"does not have; declare keys={{'{unknown.split(', ')[0]}': [...]}}"
        )
    return KeySelection(
        rho=amount.rho,
        delta=budget.keys_delta * _KEYS_DELTA,
        max_groups=plan.max_groups or 1,
        relation=budget.relation,
    )
