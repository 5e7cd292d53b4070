"""What a plan lacks before it can be priced: keys, columns, what is above, profile, rows."""

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
    Keys,
    PrivateEstimate,
    less,
    rounded_share,
)
from deniable.query.price.profile import ProfileOfUnits
from deniable.query.price.rows import ProfileOfRows, RowsAbove
from deniable.query.price.values import ValuesAgain, ValuesOfColumn

_FIRST_DELTA = Fraction(1, 11)  # of what is kept for keys, for the first selection
_MOST_GROUPS = 64  # in which a unit counts while they are chosen, where nothing is declared


def needed(plan: Plan, amount: Amount, budget: Budget) -> PrivateEstimate | None:
    """What is to be estimated next, out of an amount for all of the rest."""
    if not plan.counted.known_keys:  # first: the ledger gives a selection its δ as it begins
        price = rounded_share(amount, KEYS_SHARE)
        return Keys(plan, _selection(plan, budget, price), less(amount, price))
    if plan.counted.selected == () or unseen(plan):
        return None
    if plan.contribution.unbounded:
        if isinstance(budget.guarantee, GDP):
            name = plan.contribution.unbounded[0].name
            raise QueryError(
                f"where the values of {name} lie is estimated by a choice that has no proved μ; "
                f"declare bounds={{'{name}': (low, high)}}, or keep a budget of another kind"
            )
        return ValuesOfColumn.of(plan, amount)
    if any(each.again for each in plan.contribution.reaches.values()):
        return ValuesAgain.of(plan, amount)
    if plan.asks_above and not plan.buys_norm:
        return RowsAbove.of(plan, amount)
    profiled = plan.counted.statistics and plan.contribution.profile is None
    by_norm = profiled and (plan.buys_rows or plan.buys_norm)
    if not by_norm and not plan.buys_rows:
        return None
    if isinstance(budget.guarantee, GDP):
        raise QueryError(
            "how many rows a person counts with is estimated by a choice that has no proved μ; "
            "declare max_rows=, or keep a budget of another kind"
        )
    if by_norm:
        return ProfileOfUnits.of(plan, amount)
    return ProfileOfRows.of(plan, amount)


def unseen(plan: Plan) -> bool:
    """Whether a profile was made, and nobody stands out of the noise of the first."""
    if not all(each.seen for each in plan.contribution.reaches.values()):
        return True
    first = plan.contribution.profile or plan.contribution.by_rows
    return first is not None and not first.anybody


def chain(
    plan: Plan, amount: Amount, budget: Budget
) -> tuple[tuple[PrivateEstimate, ...], Plan, Amount]:
    """All that is to be estimated, one after the other, with made-up results.

    And the plan with all of these, and what is left of the amount.
    """
    found: list[PrivateEstimate] = []
    while (estimate := needed(plan, amount, budget)) is not None:
        found.append(estimate)
        plan, amount = estimate.assumed(), estimate.left
    return tuple(found), plan, amount


def _selection(plan: Plan, budget: Budget, amount: Amount) -> KeySelection:
    unknown = ", ".join(group.name for group in plan.counted.groups if group.keys is None)
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
        delta=budget.keys_delta * _FIRST_DELTA,
        max_groups=plan.contribution.max_groups or _MOST_GROUPS,
        relation=budget.relation,
    )
