"""How the state of a budget changes, as plain functions.

The ledger decides by them, and `verify` computes every entry again by them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction

from deniable.errors import BudgetError, DoorError, ParameterError
from deniable.ledger.entries import EntryKind, Hold, State, Tranche
from deniable.ledger.filters import Budget, Totals, charge
from deniable.privacy.composition import compose
from deniable.privacy.exact import decimals
from deniable.privacy.guarantees import ZCDP, PureDP
from deniable.privacy.losses.base import Loss
from deniable.privacy.losses.generic import only_delta
from deniable.privacy.price import GRID, Price

_FIRST_SELECTIONS = 10  # so many have about the same δ: later ones have less and less
_SIGNS = {"epsilon": "ε", "rho": "ρ", "delta": "δ", "mu_squared": "μ²"}


def opened(budget: Budget) -> State:
    """A population with its first budget."""
    return State((Tranche(budget),), {}, budget)


def changed(state: State, kind: EntryKind, budget: Budget, analyst: str | None) -> State:
    """The state after a top-up, a lowering, a share or a renewal."""
    if kind == EntryKind.TOP_UP:
        return _topped_up(state, budget)
    if kind == EntryKind.LOWER:
        return _lowered(state, budget)
    if kind == EntryKind.RENEW:
        fresh = {
            who: Tranche(each.budget)
            for who, each in state.shares.items()
            if each.budget.relation == budget.relation
        }
        # What is held stays charged to the promise before, for good.
        return replace(
            state, tranches=(Tranche(budget),), shares=fresh, named=budget, holds={}, selections=0
        )
    if budget.relation != state.tranches[0].budget.relation:
        raise BudgetError("a share protects under the same relation as the budget")
    known = state.shares.get(analyst or "")
    totals = Totals() if known is None else known.totals
    return replace(state, shares={**state.shares, analyst or "": Tranche(budget, totals)})


def _topped_up(state: State, budget: Budget) -> State:
    last = state.tranches[-1]
    if budget.relation != last.budget.relation:
        raise BudgetError("a top-up protects under the same relation as the budget")
    if type(budget.guarantee) is not type(last.budget.guarantee):
        raise BudgetError(f"{budget.guarantee} cannot be added to {last.budget.guarantee}")
    grown = _sum(last.budget, budget)
    if grown is None:
        return replace(state, tranches=(*state.tranches, Tranche(budget)))
    return replace(state, tranches=(*state.tranches[:-1], replace(last, budget=grown)))


def _lowered(state: State, budget: Budget) -> State:
    if len(state.tranches) > 1:
        raise BudgetError("a budget that was topped up is not lowered")
    only = state.tranches[0]
    if not _smaller(budget, only.budget):
        raise BudgetError(f"{budget} is not smaller than {only.budget}; use top_up")
    return replace(state, tranches=(replace(only, budget=budget),), named=budget)


def door_drawn(state: State, number: int, whole: Loss, loss: Loss) -> State:
    """One more draw from a resumable door, if so much is left of it."""
    if str(number) not in state.doors:
        raise DoorError(f"reservation {number} is no open, resumable door")
    if loss.relation != whole.relation:
        raise DoorError("a draw must be stated under the relation of its door")
    total = state.doors[str(number)] + charge(loss)
    if not charge(whole).covers(total):
        raise BudgetError(
            f"a draw of {loss.price} does not fit what is left of a door of {whole.price}; "
            "nothing was drawn"
        )
    return replace(state, doors={**state.doors, str(number): total})


def door_ended(state: State, number: int) -> State:
    """A resumable door that gave its answer, or failed."""
    if str(number) not in state.doors:
        raise DoorError(f"reservation {number} has ended already")
    return replace(
        state, doors={name: drawn for name, drawn in state.doors.items() if name != str(number)}
    )


def reserved(
    state: State,
    number: int,
    loss: Loss,
    who: str,
    *,
    rest: Loss | None = None,
    selects: bool = False,
    resumable: bool = False,
) -> tuple[State, Loss]:
    """The state after a reservation that is the entry of this number, and what that takes.

    Of one that selects keys, `loss` is without its δ, which is taken besides.
    """
    taken = loss
    if selects:
        state, taken = selecting(state, loss, who)
    after = spent(state, taken, who) if rest is None else held(state, number, taken, rest, who)
    if resumable:  # what its door draws is kept in the state until that ends
        after = replace(after, doors={**after.doors, str(number): Totals()})
    return after, taken


def selecting(state: State, counted: Loss, who: str) -> tuple[State, Loss]:
    """A selection of keys about to be charged: the state that counts it, and its loss with a δ.

    The k-th selection takes δ_k = ⌊δ_left/(k + 10)⌋ on the grid, of what is left of the tranche
    that pays, or of the analyst's share if that is less. No top-up starts the series again. Where
    nothing else takes δ, δ_k is δ_keys·10/((k + 9)(k + 10)) but for rounding, and all of them
    together stay below δ_keys: after k of them at least δ_keys·10/(k + 10) is left. Whatever
    else takes δ, each is a part of what is left when it is charged, and the filter is asked as for
    any loss.
    """
    number = state.selections + 1
    share = state.counted_share(who)
    tranches = state.counted()
    cost = tranches[0].budget.charge(counted)
    payers = [each for each in tranches if each.budget.admits(each.totals + cost)]
    if not payers or (share is not None and not share.budget.admits(share.totals + cost)):
        spent(state, counted, who)  # refuses, and says what is missing
    for each in payers:
        left = [one.budget.delta_left(one.totals) for one in (each, share) if one is not None]
        if (units := min(left) // (number + _FIRST_SELECTIONS)) > 0:
            delta = only_delta(units * GRID, counted.relation)
            return replace(state, selections=number), compose(counted, delta)
    raise BudgetError(
        "choosing groups takes δ, and no δ is left for that; declare the groups, keys={...}, which "
        "takes none, or have the owner top the budget up; nothing was spent"
    )


def afford(state: State, losses: Sequence[Loss], who: str) -> None:
    """Refuse what could not all be spent, and say what all of it costs."""
    if losses:
        _places(state, losses, who)


def spent(state: State, loss: Loss, who: str) -> State:
    """The state after a release, or a refusal that says what is left."""
    (place,) = _places(state, (loss,), who)
    return _charged(state, place, who, charge(loss))


def held(state: State, number: int, first: Loss, rest: Loss, who: str) -> State:
    """The state after a release of a first part, the rest held; refused unless both fit."""
    place, other = _places(state, (first, rest), who)
    after = _charged(state, place, who, charge(first))
    return replace(after, holds={**after.holds, str(number): Hold(who, other, charge(rest))})


def settled(
    state: State, number: int, second: Loss | None, rest: Loss | None = None, *, at: int = 0
) -> State:
    """A hold turned into the charge of the next part, and a hold for what follows; or let go.

    It must cover both. No filter is asked: what is charged and held was counted when it was held.
    `at` is the number of the entry, which is the reservation of that part.
    """
    hold = state.holds.get(str(number))
    if hold is None:
        raise DoorError(f"nothing is held for reservation {number}")
    after = _without_hold(state, number)
    if second is None:
        return after
    budget = state.tranches[hold.tranche].budget
    cost, later = budget.charge(second), Totals() if rest is None else budget.charge(rest)
    if not hold.totals.covers(cost + later):
        raise DoorError(
            f"a second part of {second.price} costs more than what reservation {number} holds for "
            "it; nothing is let go"
        )
    after = _charged(after, hold.tranche, hold.who, cost)
    if rest is None:
        return after
    return replace(after, holds={**after.holds, str(at): replace(hold, totals=later)})


def hold_kept(state: State, number: int) -> State:
    """What is held, if anything, charged for good: its reservation ended without settling it."""
    hold = state.holds.get(str(number))
    if hold is None:
        return state
    after = _charged(_without_hold(state, number), hold.tranche, hold.who, hold.totals)
    return replace(after, releases=state.releases)


def _without_hold(state: State, number: int) -> State:
    holds = {name: each for name, each in state.holds.items() if name != str(number)}
    return replace(state, holds=holds)


def _charged(state: State, place: int, who: str, cost: Totals) -> State:
    """One more release, charged to a tranche and to the analyst's share, if there is one."""
    tranches, shares = list(state.tranches), dict(state.shares)
    tranches[place] = replace(tranches[place], totals=tranches[place].totals + cost)
    if who in shares:
        shares[who] = replace(shares[who], totals=shares[who].totals + cost)
    return replace(state, tranches=tuple(tranches), shares=shares, releases=state.releases + 1)


def _places(state: State, losses: Sequence[Loss], who: str) -> list[int]:
    """The tranche that takes each loss, counting what is held; refused unless all are taken."""
    tranches = state.counted()
    costs = [tranches[0].budget.charge(loss) for loss in losses]  # all are under one relation
    price = sum((loss.price for loss in losses[1:]), losses[0].price)
    share = state.counted_share(who)
    if share is not None and not share.budget.admits(sum(costs, share.totals)):
        raise BudgetError(_refusal(share.budget, share.totals, price, who))
    totals = [each.totals for each in tranches]
    places: list[int] = []
    for cost in costs:
        admitting = (
            place for place, each in enumerate(tranches) if each.budget.admits(totals[place] + cost)
        )
        if (place := next(admitting, None)) is None:
            best = max(tranches, key=lambda each: each.budget.largest_epsilon(each.totals))
            raise BudgetError(_refusal(best.budget, best.totals, price))
        totals[place] += cost
        places.append(place)
    return places


def _refusal(budget: Budget, totals: Totals, price: Price, who: str | None = None) -> str:
    """What was asked for, what is left for it, and what to do."""
    left = budget.remaining(totals)
    whose, remedy = "the budget", "have the owner top it up"
    if who is not None:
        whose, remedy = f"{who!r}'s share", "have the owner give a larger share"
    spent = "nothing was spent"
    if "delta" in left and price.rho <= left["rho"] and price.delta > left["delta"]:
        return (
            f"choosing groups takes δ = {float(price.delta):.3g}, and {whose} has δ = "
            f"{float(left['delta']):.3g} left for that; declare the groups, keys={{...}}, which "
            f"takes none, or {remedy}; {spent}"
        )
    epsilon = budget.asked(price)
    if epsilon is None:
        listed = " and ".join(f"{_SIGNS[name]} = {float(v):.4g}" for name, v in left.items())
        asked = f"asked for {price}; {listed or 'no pure ε'} is left of {whose} of {budget}"
        pure = isinstance(budget.guarantee, PureDP)
        return f"{asked}; {'ask with epsilon=' if pure else 'ask for less'}, or {remedy}; {spent}"
    largest, smaller = budget.largest_epsilon(totals), epsilon / 10
    has = ""
    if largest:
        has = f"ε = {_shortened(largest)} is left of {whose} for a question like this"
    if more := _more(budget, totals, smaller):
        has += f", or {more:,} more at {smaller:.4g}"
    asked = f"asked for ε = {epsilon:.6g}; {has or f'nothing is left of {whose} for a question'}"
    return f"{asked}; ask for less, or {remedy}; {spent}"


def _shortened(value: float) -> str:
    """Four digits, rounded down: what is said to be left can be asked for."""
    with localcontext(decimals(40)):
        exact = Decimal(value)
        short = exact.quantize(Decimal(1).scaleb(exact.adjusted() - 3), ROUND_FLOOR)
    return f"{float(short):.4g}"


def _more(budget: Budget, totals: Totals, epsilon: float) -> int:
    """How many more questions a smaller `epsilon=` buys."""
    left = budget.remaining(totals)
    if isinstance(budget.guarantee, PureDP):
        return int(left.get("epsilon", Fraction(0)) / Fraction(epsilon)) if epsilon > 0 else 0
    try:
        return int(left["rho"] / budget.rho_for(Fraction(epsilon)))
    except ParameterError:  # so little that it buys nothing
        return 0


def _sum(one: Budget, other: Budget) -> Budget | None:
    """The two budgets as one, where adding their totals is the same; None where it is not."""
    first, second = one.guarantee, other.guarantee
    if isinstance(first, PureDP) and isinstance(second, PureDP):
        return Budget(PureDP(first.epsilon + second.epsilon), relation=one.relation)
    if isinstance(first, ZCDP) and isinstance(second, ZCDP):
        return Budget(ZCDP(first.rho + second.rho), relation=one.relation)
    return None


def _smaller(one: Budget, other: Budget) -> bool:
    if type(one.guarantee) is not type(other.guarantee) or one.relation != other.relation:
        return False
    numbers = zip(vars(one.guarantee).values(), vars(other.guarantee).values(), strict=True)
    # Both parts of δ shrink, or ρ* might grow.
    parts = (one.keys_delta, other.keys_delta), (one.conversion_delta, other.conversion_delta)
    return all(a <= b for a, b in [*numbers, *parts])
