"""The rules that gate, and a brute-force look at what adaptive analysts can reach."""

import math
import zlib
from decimal import (
    ROUND_DOWN,
    Context,
    DefaultContext,
    FloatOperation,
    Inexact,
    InvalidOperation,
    localcontext,
)
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings, strategies as st

import deniable as dp
from deniable.ledger import policy
from deniable.ledger.filters import Budget, Totals, charge
from deniable.privacy.accountants import zcdp
from deniable.privacy.exact import log_up, rounded_up
from deniable.privacy.losses.generic import ConcentratedLoss

TENTH = dp.losses.PureLoss(bound=0.1)


def spend(budget, losses):
    """How many of the losses pass, one after another, refused ones left out."""
    totals, passed = Totals(), 0
    for loss in losses:
        after = totals + budget.charge(loss)
        if budget.admits(after):
            totals, passed = after, passed + 1
    return passed


def test_ten_tenths_fit_exactly():
    budget = Budget(dp.PureDP(1))
    assert spend(budget, [TENTH] * 11) == 10
    assert spend(Budget(dp.PureDP(0.3)), [TENTH] * 5) == 3


def test_a_million_small_spends_are_exactly_one():
    budget, small = Budget(dp.PureDP(1)), charge(dp.losses.PureLoss(bound=1e-6))
    totals = Totals()
    for _ in range(10**6):
        totals = totals + small
    assert totals.epsilon == 10**18
    assert budget.admits(totals)
    assert not budget.admits(totals + small)


def test_pure_budgets_refuse_what_is_not_pure():
    assert spend(Budget(dp.PureDP(100)), [dp.losses.GaussianLoss(sigma=100, sensitivity=1)]) == 0


def test_zcdp_adds_rho_and_refuses_delta():
    gaussian = dp.losses.GaussianLoss(sigma=10, sensitivity=1)  # ρ = 1/200
    assert spend(Budget(dp.ZCDP(0.05)), [gaussian] * 12) == 10
    assert spend(Budget(dp.ZCDP(5)), [dp.losses.ApproxLoss(bound=0.1, slack=1e-9)]) == 0


def test_gdp_adds_squares_of_proved_mu():
    gaussian = dp.losses.GaussianLoss(sigma=10, sensitivity=1)
    assert spend(Budget(dp.GDP(1)), [gaussian] * 101) == 100
    coarse = dp.losses.DiscreteGaussianLoss(variance=1, sensitivity=1)  # no μ is proved
    assert spend(Budget(dp.GDP(10)), [coarse]) == 0
    assert spend(Budget(dp.GDP(1)), [TENTH] * 100) == 63  # μ of a pure tenth is 0.1253


def test_either_pure_or_by_rho():
    budget = Budget(dp.ApproxDP(3, 1e-6))
    assert float(budget.largest_rho) == pytest.approx(0.1757, abs=1e-4)
    assert zcdp.epsilon(float(budget.largest_rho), 5e-7) <= 3
    halves = [dp.losses.PureLoss(bound=0.5)] * 10
    assert spend(budget, halves) == 6  # by ε; ρ alone would stop at 1
    gaussian = dp.losses.GaussianLoss(sigma=10, sensitivity=1)
    assert spend(budget, [gaussian] * 50) == 35
    # One release that is not pure ends the first branch for all.
    assert spend(budget, [gaussian, *halves]) == 2


def test_parts_of_delta_have_their_own_limit():
    budget = Budget(dp.ApproxDP(3, 1e-6), keys_delta=1e-7)
    loss = dp.losses.ApproxLoss(bound=0.01, slack=4e-8)
    assert spend(budget, [loss] * 5) == 2
    with pytest.raises(dp.ParameterError, match="keys_delta"):
        Budget(dp.ApproxDP(3, 1e-6), keys_delta=1e-6)
    with pytest.raises(dp.ParameterError, match="keys_delta"):
        Budget(dp.PureDP(3), keys_delta=1e-9)
    nearly = dp.ApproxDP(3, 1e-6).delta * (
        1 - Fraction(1, 10**400)
    )  # of the rest, no float is left
    with pytest.raises(dp.ParameterError, match="keys_delta"):
        Budget(dp.ApproxDP(3, 1e-6), keys_delta=nearly)


def test_relations_do_not_mix():
    with pytest.raises(dp.errors.RelationError, match="replace"):
        Budget(dp.PureDP(1), relation="replace").charge(TENTH)
    with pytest.raises(dp.errors.ParameterTypeError, match="loss"):
        Budget(dp.PureDP(1)).charge(0.1)
    with pytest.raises(dp.errors.ParameterTypeError, match="budget"):
        Budget(1.0)


def test_what_is_left():
    budget = Budget(dp.ApproxDP(3, 1e-6))
    spent = charge(dp.losses.GaussianLoss(sigma=10, sensitivity=1)).times(10)
    left = budget.remaining(spent)
    assert set(left) == {"rho", "delta"}
    assert 2.4 < budget.largest_epsilon(spent) < 2.5  # as `epsilon=` of a question
    assert budget.largest_epsilon(Totals()) == pytest.approx(3, rel=1e-9)
    assert Budget(dp.PureDP(1)).largest_epsilon(charge(TENTH).times(4)) == 0.6


@settings(deadline=None)
@given(
    st.sampled_from(
        [
            dp.PureDP(1),
            dp.ApproxDP(1, 1e-6),
            dp.ZCDP(0.3),
            dp.GDP(0.7),
            dp.GDP(1e-6),
            dp.ZCDP(1e-17),
        ]
    ),
    st.fractions(0, Fraction(1, 3)),
    st.booleans(),
)
def test_the_largest_epsilon_is_affordable_and_hardly_more_is(guarantee, size, noisy):
    budget, spent = Budget(guarantee), Totals()
    for loss in [dp.losses.PureLoss(bound=size)] if size > Fraction(1, 10**12) else []:
        spent = spent + budget.charge(loss)
    if noisy:
        spent = spent + budget.charge(dp.losses.GaussianLoss(sigma=100, sensitivity=1))
    largest = budget.largest_epsilon(spent)

    def one_more(epsilon):
        if isinstance(guarantee, dp.ApproxDP):  # what `epsilon=` of a question costs
            rho = budget.rho_for(Fraction(epsilon))
            return budget.admits(spent + charge(ConcentratedLoss(bound=rho)))
        return budget.admits(spent + charge(dp.losses.PureLoss(bound=epsilon)))

    if largest > 0:
        assert one_more(largest)
    if largest > 1e-6 and not isinstance(guarantee, dp.GDP):
        assert not one_more(largest * 1.0001)


def test_the_odometer_is_sound_and_never_above_the_budget():
    budget = Budget(dp.ApproxDP(3, 1e-6))
    assert budget.spent(charge(TENTH).times(5)) == pytest.approx(0.5)
    few = charge(dp.losses.GaussianLoss(sigma=100, sensitivity=1))
    assert 0 < budget.spent(few) < budget.spent(few.times(50)) <= 3
    assert budget.spent(charge(dp.losses.GaussianLoss(sigma=10, sensitivity=1)).times(35)) == 3


RESPONSES = {
    price: dp.losses.PureLoss(bound=price)
    for price in (Fraction(1, 4), Fraction(1, 2), Fraction(1))
}
APPROX = dp.losses.ApproxLoss(bound=Fraction(1, 4), slack=Fraction(1, 100))


def worst_delta(budget, policy, depth, epsilon):
    """δ(ε) of the transcript when `policy` chooses each price from the answers so far.

    Every release is its worst case: randomised response, with a part that tells all. The transcript
    is a tree; P and Q follow the two inputs along it. Brute force.
    """
    grown = math.exp(epsilon)

    def walk(history, totals, p, q):
        if len(history) == depth:
            return max(p - grown * q, 0.0)
        loss = policy(history)
        if loss is None or not budget.admits(after := totals + budget.charge(loss)):
            return walk((*history, None), totals, p, q)
        bound = float(loss.bound)
        slack = float(getattr(loss, "slack", 0))
        truth = (1 - slack) / (1 + math.exp(-bound))
        lie = (1 - slack) - truth
        outcomes = [("yes", truth, lie), ("no", lie, truth)]
        if slack:
            outcomes += [("surely", slack, 0.0), ("never", 0.0, slack)]
        return sum(walk((*history, o), after, p * a, q * b) for o, a, b in outcomes)

    return walk((), Totals(), 1.0, 1.0)


@settings(deadline=None, max_examples=150)
@given(
    st.integers(0, 2**32),
    st.sampled_from([dp.PureDP(1), dp.ApproxDP(1, 0.05), dp.ApproxDP(0.5, 0.2)]),
)
def test_adaptive_analysts_never_exceed_the_budget(seed, guarantee):
    """A random policy: the next price is any function of the answers so far."""
    budget = Budget(guarantee)
    choices = [None, APPROX, *RESPONSES.values()]

    def policy(history):
        return choices[zlib.crc32(repr((seed, history)).encode()) % len(choices)]

    epsilon = float(guarantee.epsilon)
    allowed = float(guarantee.delta) if isinstance(guarantee, dp.ApproxDP) else 0.0
    assert worst_delta(budget, policy, 5, epsilon) <= allowed + 1e-12


def test_the_brute_force_sees_a_broken_filter():
    """Tallies kept apart for pure and for other releases overspend."""

    class Apart:
        def __init__(self, budget):
            self.budget = budget

        def charge(self, loss):
            return self.budget.charge(loss)

        def admits(self, _):
            return True

    budget = Apart(Budget(dp.ApproxDP(0.5, 0.01)))
    found = worst_delta(budget, lambda _: RESPONSES[Fraction(1, 2)], 4, 0.5)
    assert found > 0.01


def test_greedy_analysts_reach_no_more_than_the_budget():
    for guarantee in (dp.ApproxDP(1, 0.05), dp.ApproxDP(2, 0.1)):
        budget = Budget(guarantee)
        for pattern in product([APPROX, *RESPONSES.values()], repeat=3):
            found = worst_delta(
                budget, lambda h, p=pattern: p[len(h) % 3], 6, float(guarantee.epsilon)
            )
            assert found <= float(guarantee.delta)


def test_a_refusal_says_what_is_left_whatever_the_callers_decimals_do():
    state = policy.opened(Budget(dp.PureDP(1)))
    theirs = Context(prec=1, traps=[Inexact, FloatOperation, InvalidOperation])
    with localcontext(theirs), pytest.raises(dp.BudgetError, match="ε = 1 is left"):
        policy.spent(state, dp.losses.PureLoss(bound=2), "ana")


def test_decimals_are_the_same_whatever_a_program_has_made_the_default(monkeypatch):
    epsilon = Fraction(1, 3)
    expected = log_up(epsilon), rounded_up(epsilon)
    monkeypatch.setitem(DefaultContext.traps, Inexact, True)
    monkeypatch.setattr(DefaultContext, "rounding", ROUND_DOWN)
    assert (log_up(epsilon), rounded_up(epsilon)) == expected
