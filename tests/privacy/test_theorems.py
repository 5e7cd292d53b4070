import math

import mpmath
import numpy as np
import pytest

import deniable as dp
from deniable.privacy.accountants import zcdp


def test_basic_composition_adds():
    assert dp.losses.basic_composition(epsilon=0.1, count=10) == (1, 0)
    assert dp.losses.basic_composition(epsilon=0.1, count=10, delta=1e-6) == (
        1,
        mpmath.mpf(0) + 1e-5,
    )


def test_kairouz_closed_form():
    found = dp.losses.kairouz_composition(epsilon=0.1, count=100, slack=1e-6)
    assert found == pytest.approx(5.75610551933573, rel=1e-10)
    assert dp.losses.kairouz_composition(epsilon=1, count=2, slack=1e-6) == 2


def test_the_filter_of_whitehouse_is_the_textbook_conversion():
    """sqrt(2 ln(1/δ) S) + S/2, S = Σ ε²: zCDP with ρ = ε²/2 each."""
    assert zcdp.epsilon_bun_steinke(0.5, 1e-6) == pytest.approx(5.75652176975693, rel=1e-10)


def test_optimal_composition():
    found = dp.losses.optimal_composition([0.1] * 1000, delta=1e-6)
    assert found == pytest.approx(19.344671447993, rel=1e-7)
    loss = dp.repeat(dp.losses.ApproxLoss(bound=0.1, slack=1e-8), 30)
    assert loss.delta(epsilon=1) == pytest.approx(0.010561973170084, rel=1e-6)
    both = dp.losses.optimal_composition([0.1] * 30, slacks=[1e-8] * 30, delta=0.0105619732)
    assert both == pytest.approx(1, rel=1e-6)


def test_optimal_composition_of_different_losses():
    """Murtagh & Vadhan 2016, Thm 1.5, summed over all subsets."""
    epsilons, delta = [0.1, 0.25, 0.37, 0.5, 0.61, 0.9], 1e-3
    found = dp.losses.optimal_composition(epsilons, delta=delta)

    def true(at):
        terms = []
        for subset in range(2 ** len(epsilons)):
            inside = sum(e for i, e in enumerate(epsilons) if subset >> i & 1)
            outside = sum(epsilons) - inside
            terms.append(max(math.exp(inside) - math.exp(at) * math.exp(outside), 0))
        return math.fsum(terms) / math.prod(1 + math.exp(e) for e in epsilons)

    assert true(found) <= delta * (1 + 1e-9)
    assert true(found * 0.999) > delta


def test_theorems_are_ordered():
    for epsilon, count in ((0.05, 400), (0.1, 100), (0.3, 50)):
        best = dp.losses.optimal_composition([epsilon] * count, delta=1e-6)
        kairouz = dp.losses.kairouz_composition(epsilon=epsilon, count=count, slack=1e-6)
        advanced = dp.losses.advanced_composition(epsilon=epsilon, count=count, slack=1e-6)
        assert best <= kairouz <= advanced
        assert kairouz <= dp.losses.basic_composition(epsilon=epsilon, count=count)[0]


@pytest.mark.parametrize(
    "call",
    [
        lambda: dp.losses.basic_composition(epsilon=-1, count=2),
        lambda: dp.losses.basic_composition(epsilon=1, count=0),
        lambda: dp.losses.advanced_composition(epsilon=math.nan, count=2, slack=1e-6),
        lambda: dp.losses.advanced_composition(epsilon=1e4, count=2, slack=1e-6),
        lambda: dp.losses.kairouz_composition(epsilon=1, count=2, slack=0),
        lambda: dp.losses.optimal_composition([], delta=1e-6),
        lambda: dp.losses.optimal_composition([0.1, 0.1], slacks=[1e-6], delta=1e-6),
        lambda: dp.losses.optimal_composition([0.1, math.inf], delta=1e-6),
    ],
)
def test_bad_input(call):
    with pytest.raises(dp.ParameterError):
        call()


def clones(epsilon, people, at):
    """δ of the pair that shuffling reduces to (Feldman, McMillan & Talwar 2021, Thm 3.2).

    C ~ Bin(n-1, e^-ε0) others answer at random, A ~ Bin(C, 1/2) of them like the first input. The
    pair is (A + 1, C - A) with probability e^ε0/(e^ε0+1) and (A, C - A + 1) otherwise, against the
    same with the probabilities exchanged.
    """
    from scipy.stats import binom

    truth = 1 / (1 + math.exp(-epsilon))
    total = 0.0
    share = math.exp(-epsilon)
    spread = 12 * math.sqrt(people * share) + 30
    middle = (people - 1) * share
    for c in range(max(0, int(middle - spread)), min(people - 1, int(middle + spread)) + 1):
        a = np.arange(c + 2)
        one, other = binom.pmf(a - 1, c, 0.5), binom.pmf(a, c, 0.5)
        p, q = truth * one + (1 - truth) * other, (1 - truth) * one + truth * other
        worst = np.maximum(p - math.exp(at) * q, 0).sum()
        total += binom.pmf(c, people - 1, share) * worst
    return total


@pytest.mark.parametrize(("epsilon", "people"), [(0.5, 1000), (1.0, 2000), (2.0, 5000)])
def test_shuffling_is_safe(epsilon, people):
    local = dp.RandomizedResponse(epsilon=epsilon).loss
    loss = dp.losses.shuffled(local, people=people, delta=1e-6)
    assert loss.relation == dp.Relation.REPLACE
    assert loss.bound < local.pure
    assert clones(epsilon, people, float(loss.bound)) <= 1e-6
    assert clones(epsilon, people, float(loss.bound) / 8) > 1e-6  # the oracle does see violations


def test_shuffling_refuses_what_it_cannot_hide():
    local = dp.RandomizedResponse(epsilon=1).loss
    with pytest.raises(dp.ParameterError, match="people"):
        dp.losses.shuffled(local, people=100, delta=1e-6)
    with pytest.raises(dp.ParameterError, match="people"):
        dp.losses.shuffled(local, people=1, delta=1e-6)
    with pytest.raises(dp.errors.RelationError, match="replace"):
        dp.losses.shuffled(dp.losses.PureLoss(bound=1), people=10**6, delta=1e-6)
    with pytest.raises(dp.ParameterError, match="pure"):
        dp.losses.shuffled(
            dp.losses.GaussianLoss(sigma=1, sensitivity=1, relation="replace"),
            people=10**6,
            delta=1e-6,
        )
    with pytest.raises(dp.errors.ParameterTypeError, match="loss"):
        dp.losses.shuffled(1.0, people=10**6, delta=1e-6)
