"""Numerical composition against closed forms, brute force and its own other side."""

import math
import pickle
from fractions import Fraction
from functools import reduce
from itertools import pairwise, product

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import deniable as dp
from deniable.privacy.accountants import pld
from deniable.privacy.accountants.ladder import Ladder, read
from deniable.privacy.accountants.tower import Tower

DELTA = 1e-6

GAUSSIAN = dp.losses.GaussianLoss(sigma=10, sensitivity=1)
LAPLACE = dp.losses.LaplaceLoss(scale=10, sensitivity=1)
SAMPLED = dp.losses.poisson_sampled(dp.losses.GaussianLoss(sigma=1, sensitivity=1), rate=0.01)

# ε at δ = 1e-6, by closed form or by contour integration in many digits
TRUTHS = [
    (dp.repeat(GAUSSIAN, 100), 4.88655411746221),
    (dp.repeat(GAUSSIAN, 10_000), 96.7172719638677),
    (dp.repeat(dp.losses.GaussianLoss(sigma=1000, sensitivity=1), 10**6), 4.88655411746221),
    (dp.repeat(LAPLACE, 100), 4.69266741281215),
    (dp.repeat(LAPLACE, 1000), 18.9502874),
    (
        dp.compose(
            dp.repeat(LAPLACE, 100),
            dp.repeat(GAUSSIAN, 100),
            dp.repeat(dp.losses.PureLoss(bound=0.1), 50),
        ),
        8.19264301,
    ),
    (dp.repeat(SAMPLED, 10_000), 6.90738450),
    (dp.repeat(dp.losses.DiscreteGaussianLoss(variance=1, sensitivity=1), 10), 19.4916385),
    (dp.repeat(dp.losses.DiscreteLaplaceLoss(scale=10, sensitivity=1), 1000), 19.344671447993),
]


@pytest.mark.parametrize(("loss", "truth"), TRUTHS)
def test_the_truth_lies_between(loss, truth):
    quick = pld.epsilon_bounds(loss.laws(), loss.floors(), DELTA)
    assert truth * (1 - 5e-9) <= quick.upper <= truth * (1 + 2e-4)
    assert truth * (1 + 5e-9) >= quick.lower >= truth * (1 - 1e-3)
    assert truth * (1 - 5e-9) <= loss.epsilon(delta=DELTA) <= truth * (1 + 1e-6)
    low, high = pld.delta_bounds(loss.laws(), loss.floors(), truth)
    assert low * (1 - 1e-5) <= DELTA <= high * (1 + 1e-5)
    assert high < 1.03 * low


def brute(atoms, counts):
    """All sums of log ratios with their probabilities, in 60 digits."""
    laws = [pair for pair, count in zip(atoms, counts, strict=True) for _ in range(count)]

    def convolve(left, right):
        sums = {}
        for (x, p), (y, q) in product(left.items(), right.items()):
            at = mpmath.nstr(x + y, 40)
            old = sums.get(at, (x + y, 0))[1]
            sums[at] = (x + y, old + p * q)
        return dict(sums.values())

    return reduce(convolve, laws)


def brute_delta(law, epsilon):
    grown = mpmath.mpf(epsilon)
    return float(mpmath.fsum(p * (1 - mpmath.exp(grown - x)) for x, p in law.items() if x > grown))


def response_atoms(loss):
    """Log ratios of randomised response and their probabilities."""
    truth, lie = (mpmath.mpf(p.numerator) / p.denominator for p in (loss.truth, loss.lie))
    top = mpmath.log(truth / lie)
    atoms = {top: truth, -top: lie}
    if loss.categories > 2:
        atoms[mpmath.mpf(0)] = 1 - truth - lie
    return atoms


responses = st.builds(
    dp.losses.RandomizedResponseLoss,
    truth=st.fractions(Fraction(26, 50), Fraction(49, 50), max_denominator=50),
    categories=st.integers(2, 4),
)


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.tuples(responses, st.integers(1, 4)), min_size=1, max_size=3),
    st.sampled_from([1e-1, 1e-3, 1e-6]),
)
def test_small_discrete_laws_agree_with_brute_force(parts, delta):
    loss = dp.compose(*(dp.repeat(each, count) for each, count in parts))
    with mpmath.workdps(60):
        law = brute([response_atoms(each) for each, _ in parts], [count for _, count in parts])
        for epsilon in (0.0, 0.3, 1.7):
            true = brute_delta(law, epsilon)
            low, high = pld.delta_bounds(loss.laws(), loss.floors(), epsilon)
            assert low * (1 - 1e-12) <= true <= high * (1 + 1e-12)
            assert loss.delta(epsilon=epsilon) >= true * (1 - 1e-12)
        bounds = pld.epsilon_bounds(loss.laws(), loss.floors(), delta)
        assert brute_delta(law, bounds.upper) <= delta * (1 + 1e-12)
        if bounds.lower > 1e-9:
            assert brute_delta(law, bounds.lower * (1 - 1e-9)) >= delta * (1 - 1e-12)


def test_a_planted_error_is_seen():
    """Half the noise claimed would put the truth outside."""
    claimed = dp.repeat(dp.losses.GaussianLoss(sigma=10.05, sensitivity=1), 100)
    assert pld.epsilon_bounds(claimed.laws(), claimed.floors(), DELTA).upper < TRUTHS[0][1]


@pytest.mark.parametrize("epsilon", [0.05, 0.3, 2.0])
def test_randomised_responses_on_their_own_lattice_are_exact(epsilon):
    """Kairouz, Oh & Viswanath 2015, Thm 3.3, summed in 60 digits."""
    count = 40
    loss = dp.repeat(dp.losses.PureLoss(bound=epsilon), count)
    with mpmath.workdps(60):
        e = mpmath.mpf(str(epsilon))
        for at in (0, 3, 10, 39):
            target = at * e
            terms = (
                mpmath.binomial(count, i)
                * (mpmath.exp((count - i) * e) - mpmath.exp(target + i * e))
                / (1 + mpmath.exp(e)) ** count
                for i in range(count + 1)
                if (count - 2 * i) * e > target
            )
            true = float(mpmath.fsum(terms))
            low, high = pld.delta_bounds(loss.laws(), loss.floors(), at * epsilon)
            assert low * (1 - 1e-10) <= true <= high * (1 + 1e-10)
            assert high <= low * (1 + 1e-7) + 1e-300


@pytest.mark.parametrize("delta", [0.3, 1e-3, 1e-12, 1e-30, 1e-100, 1e-250])
@pytest.mark.parametrize("count", [2, 50, 3000])
def test_gaussians_agree_with_their_closed_form_however_small_delta_is(delta, count):
    loss = dp.repeat(dp.losses.GaussianLoss(sigma=5, sensitivity=1), count)
    exact = loss.epsilon(delta=delta)  # by μ
    low, high = pld.epsilon_bounds(loss.laws(), loss.floors(), delta)
    assert low <= exact * (1 + 1e-11)
    assert exact <= high * (1 + 1e-11)
    assert high <= exact * (1 + 3e-4) + 1e-9
    assert low >= exact * (1 - 2e-3) - 1e-9


LOSSES = [
    LAPLACE,
    GAUSSIAN,
    SAMPLED,
    dp.losses.DiscreteLaplaceLoss(scale=3, sensitivity=2),
    dp.losses.DiscreteGaussianLoss(variance=9, sensitivity=1),
    dp.losses.DiscreteGaussianLoss(variance=300, sensitivity=3),
    dp.losses.ExponentialLoss(bound=0.3),
    dp.losses.PureLoss(bound=0.2),
    dp.losses.ApproxLoss(bound=0.1, slack=1e-9),
    dp.losses.RandomizedResponseLoss(truth=0.6, categories=3, relation="add_remove"),
    dp.losses.ChannelLoss(rows=((0.5, 0.3, 0.2), (0.3, 0.3, 0.4)), relation="add_remove"),
    dp.parallel(LAPLACE, GAUSSIAN),
    dp.losses.poisson_sampled(dp.losses.LaplaceLoss(scale=1, sensitivity=1), rate=0.05),
]
some = st.lists(st.tuples(st.sampled_from(LOSSES), st.integers(1, 30)), min_size=1, max_size=3)


@settings(deadline=None, max_examples=25)
@given(some, st.sampled_from([1e-2, 1e-6, 1e-10]))
def test_routes_are_ordered(parts, delta):
    """lower <= upper, and upper <= every closed route up to the width of a rung."""
    loss = dp.compose(*(dp.repeat(each, count) for each, count in parts))
    low, high = loss.bounds(delta=delta)
    assert 0 <= low <= high
    assert loss.epsilon(delta=delta) == high
    rho, slack = loss.concentrated
    if slack < delta and loss.kind == "composed":
        from deniable.privacy.accountants import zcdp

        by_rho = zcdp.epsilon(float(rho), delta - float(slack))
        assert high <= by_rho * (1 + 1e-9)
    if loss.pure is not None:
        assert high <= float(loss.pure) * (1 + 1e-9)


@settings(deadline=None, max_examples=15)
@given(some, st.randoms())
def test_neither_order_nor_grouping_matters(parts, random):
    losses = [dp.repeat(each, count) for each, count in parts]
    mixed = list(losses)
    random.shuffle(mixed)
    assert dp.compose(*losses).epsilon(delta=DELTA) == dp.compose(*mixed).epsilon(delta=DELTA)
    halves = dp.compose(dp.compose(*losses), dp.compose(*losses))
    doubled = dp.compose(*(dp.repeat(each, 2) for each in losses))
    assert halves.bounds(delta=DELTA) == doubled.bounds(delta=DELTA)


@pytest.mark.slow
@settings(deadline=None, max_examples=10)
@given(some)
def test_delta_falls_with_epsilon_and_rises_with_every_release(parts):
    loss = dp.compose(*(dp.repeat(each, count) for each, count in parts))
    deltas = [loss.delta(epsilon=e) for e in np.linspace(0, 3, 13)]
    assert all(a >= b * (1 - 1e-9) for a, b in pairwise(deltas))
    more = dp.compose(loss, dp.losses.PureLoss(bound=0.2))
    for epsilon in (0.0, 0.7, 2.0):
        assert more.bounds(epsilon=epsilon).upper >= loss.bounds(epsilon=epsilon).lower


def test_sampling_is_worse_one_way_than_the_other_and_both_are_looked_at():
    law = SAMPLED.law()
    away = pld.epsilon_at([(law, 1000)], DELTA, 1, pld.QUICK)
    added = pld.epsilon_at([(law.reversed(), 1000)], DELTA, 1, pld.QUICK)
    assert away == added  # each call takes the worse of both
    assert not law.symmetric


def test_the_ladders_stand_above_and_below():
    """δ of one release read from its own ladders encloses the profile."""
    for loss in [*LOSSES, dp.losses.LaplaceLoss(scale=0.5, sensitivity=1)]:
        step = 0.01 * loss.advantage
        found = read(loss.law(), step, 1e-14, 1 << 18)
        for epsilon in np.linspace(0, 4 * loss.advantage, 23):
            above, below = (one_delta(ladder, epsilon) for ladder in (found.above(), found.below()))
            true = loss.delta(epsilon=float(epsilon))
            assert below <= true * (1 + 1e-9) + 1e-14
            if loss.kind != "sampled":  # whose profile is the worse of two directions
                assert above >= true * (1 - 1e-9) - 1e-14


def one_delta(ladder: Ladder, epsilon: float) -> float:
    gain = np.maximum(-np.expm1(epsilon - ladder.places()), 0.0)
    return ladder.beyond + float((ladder.mass * gain).sum())


def test_wrap_around_is_paid_for():
    """However small the window, the answer stays on its side."""
    loss = dp.repeat(GAUSSIAN, 100)
    ladder = read(loss.parts[0].loss.law(), 0.002, 1e-16, 1 << 18).above()
    tower = Tower((ladder,), (100,), 1 << 20)
    tilt, centre = tower.tilt_for_delta(-math.log(DELTA))
    for off in (0.25, 1.0, 4.0):  # tilts that put the window elsewhere
        assert tower.sums(off * tilt, centre, 1).epsilon(DELTA) >= TRUTHS[0][1]


def test_memory_is_bounded_whatever_the_parameters():
    for loss in (
        dp.repeat(dp.losses.GaussianLoss(sigma=1e-6, sensitivity=1), 10**6),
        dp.repeat(dp.losses.LaplaceLoss(scale=1e-6, sensitivity=1), 10**6),
        dp.repeat(dp.losses.LaplaceLoss(scale=1e90, sensitivity=1), 10**6),
        dp.compose(
            dp.losses.PureLoss(bound=1e6),
            dp.repeat(dp.losses.LaplaceLoss(scale=1e50, sensitivity=1), 7),
        ),
        dp.repeat(
            dp.losses.poisson_sampled(
                dp.losses.GaussianLoss(sigma=1e-3, sensitivity=1), rate=1e-12
            ),
            10**6,
        ),
        dp.repeat(
            dp.losses.poisson_sampled(dp.losses.LaplaceLoss(scale=1e-3, sensitivity=1), rate=1e-9),
            1000,
        ),
        dp.compose(
            dp.repeat(dp.losses.PureLoss(bound=0.1), 1000),
            dp.repeat(dp.losses.PureLoss(bound=math.pi / 31), 1000),
        ),
    ):
        low, high = loss.bounds(delta=DELTA)
        assert 0 <= low <= high


def test_tiny_probabilities_get_a_sound_answer():
    loss = dp.repeat(LAPLACE, 100)
    assert 0 < loss.epsilon(delta=1e-300) <= 10
    assert loss.epsilon(delta=0) == 10
    assert loss.bounds(delta=0) == (10, 10)
    with pytest.raises(dp.ParameterError, match="either"):
        loss.bounds()
    with pytest.raises(dp.ParameterError, match="either"):
        loss.bounds(delta=1e-6, epsilon=1)
    for bad in (-1e-6, 1.0, math.nan, math.inf):
        with pytest.raises(dp.ParameterError, match="delta"):
            loss.bounds(delta=bad)


def test_thousands_of_different_losses_are_answered_by_formula():
    losses = [dp.losses.GaussianLoss(sigma=1000 + i, sensitivity=1) for i in range(1500)]
    mixed = dp.compose(*losses, dp.losses.PureLoss(bound=0.01))
    low, high = mixed.bounds(delta=DELTA)
    assert low == 0
    assert mixed.closed_profile(high) <= DELTA


def test_trade_off_advantage_and_bayes_risk():
    loss = dp.repeat(LAPLACE, 100)
    assert loss.advantage == loss.delta(epsilon=0)
    assert loss.bayes_risk(prior=0.5) == pytest.approx((1 - loss.advantage) / 2, rel=1e-9)
    assert loss.bayes_risk(prior=0.01) <= 0.01
    for prior in (0.03, 0.5, 0.9):
        alphas = np.linspace(0, 1, 200)
        tests = [prior * a + (1 - prior) * loss.tradeoff(float(a)) for a in alphas]
        assert -1e-9 <= min(tests) - loss.bayes_risk(prior=prior) <= 1e-3
    for bad in (0, 1, math.nan):
        with pytest.raises(dp.ParameterError, match="prior"):
            loss.bayes_risk(prior=bad)


def test_releases_that_nearly_tell_all():
    """The certain parts multiply however large they are."""
    twice = dp.repeat(dp.losses.ApproxLoss(bound=0.1, slack=0.9), 2)
    assert twice.delta(epsilon=5) >= 0.99
    assert twice.epsilon(delta=0.8) == math.inf
    assert twice.tradeoff(0.001) <= 0.01
    assert twice.bayes_risk(prior=0.5) <= 0.005
    assert not twice.satisfies(dp.ApproxDP(0.01, 0.8))
    mixed = dp.compose(
        dp.losses.ApproxLoss(bound=0.1, slack=0.7), dp.losses.LaplaceLoss(scale=1, sensitivity=1)
    )
    assert mixed.delta(epsilon=10) >= 0.7
    assert (
        dp.losses.most_releases(dp.losses.ApproxLoss(bound=0.01, slack=0.6), dp.ApproxDP(1, 0.9))
        == 2
    )


@pytest.mark.parametrize("size", [1e-10, 1e-15, 1e-20])
def test_tiny_losses_do_not_cancel(size):
    """δ(0) of a response and a Gaussian of the same size s is s E|±1 + Z|/2 in the limit."""
    small = dp.compose(
        dp.losses.PureLoss(bound=size), dp.losses.GaussianLoss(sigma=1, sensitivity=size)
    )
    true = size * 0.5 * (2 * math.exp(-0.5) / math.sqrt(2 * math.pi) + math.erf(1 / math.sqrt(2)))
    assert small.delta(epsilon=0) >= true * (1 - 1e-6)


@pytest.mark.parametrize("pure", [1e-10, 1e-4, 0.3])
def test_replaced_laplace_samples_do_not_cancel(pure):
    base = dp.losses.LaplaceLoss(scale=1, sensitivity=pure)
    loss = dp.losses.poisson_sampled(base, rate=1e-4, relation="replace")
    true = -1e-4 * math.expm1(-pure)
    assert true <= loss.delta(epsilon=0) <= true * (1 + 1e-9)
    low, high = pld.delta_bounds(loss.laws(), loss.floors(), 0.0)
    assert low * (1 - 1e-9) <= true <= high * (1 + 1e-9)


def test_answers_far_from_the_mass():
    """ε far below what the releases lose, and far above."""
    for loss in (
        dp.repeat(dp.losses.LaplaceLoss(scale=1, sensitivity=1), 10_000),
        dp.repeat(
            dp.losses.poisson_sampled(dp.losses.GaussianLoss(sigma=1, sensitivity=1), rate=0.5),
            10_000,
        ),
    ):
        low, high = loss.bounds(epsilon=0)
        assert 0.999 < low <= high <= 1
        assert loss.delta(epsilon=1e9) < 1e-300


@pytest.mark.parametrize("order", [50.0, 200.0])
def test_divergences_of_samples_at_high_orders(order):
    """At least those of the sampled part alone: α/2 + α ln q/(α-1)."""
    loss = dp.losses.poisson_sampled(dp.losses.GaussianLoss(sigma=1, sensitivity=1), rate=0.5)
    least = order / 2 + order * math.log(0.5) / (order - 1)
    assert least <= loss.renyi(order) <= order / 2
    rare = dp.losses.poisson_sampled(dp.losses.GaussianLoss(sigma=1, sensitivity=1), rate=1e-4)
    assert rare.renyi(2) == pytest.approx(math.log1p(1e-8 * math.expm1(1)), rel=1e-6)


def test_an_epsilon_read_back_as_a_decimal_still_holds():
    assert Fraction(
        repr(dp.losses.LaplaceLoss(scale=3, sensitivity=1).epsilon(delta=0))
    ) >= Fraction(1, 3)
    for loss in LOSSES:
        for delta in (1e-3, 1e-9):
            epsilon = loss.epsilon(delta=delta)
            if epsilon < math.inf:
                assert loss.delta(epsilon=epsilon) <= delta


def test_pickles_carry_no_caches():
    loss = dp.repeat(SAMPLED, 100)
    before = len(pickle.dumps(loss))
    loss.tradeoff(0.1)
    assert len(pickle.dumps(loss)) == before
    assert pickle.loads(pickle.dumps(loss)) == loss
    for each in LOSSES:
        assert pickle.loads(pickle.dumps(each)) == each


def test_a_delta_below_which_the_finite_part_lies():
    """The finite masses sum to less than δ, or nearly: what is left of δ counts, not δ."""
    twice = dp.repeat(dp.losses.ApproxLoss(bound=1, slack=0.6), 2)
    assert twice.delta(epsilon=0) > 0.9
    epsilon = twice.epsilon(delta=0.9)
    assert 0 < epsilon < 2
    assert twice.delta(epsilon=epsilon) <= 0.9
    assert 0 < dp.repeat(dp.losses.ApproxLoss(bound=1, slack=0.5), 2).epsilon(delta=0.8) < 2
    assert 0 < dp.repeat(dp.losses.ApproxLoss(bound=1, slack=0.001), 1000).epsilon(delta=0.7) < 1000


def test_losses_beyond_all_sense():
    assert dp.repeat(dp.losses.PureLoss(bound=10**6), 70_000).delta(epsilon=0) > 0.999
    assert dp.repeat(dp.losses.PureLoss(bound=10**4), 10**8).delta(epsilon=1000) > 0.999


@pytest.mark.parametrize(
    ("mu", "rate", "order", "true"),
    [
        ("1", "1e-9", 2, 1.718281828459045e-18),
        ("0.00169", "2.1e-5", 1.5, 9.447e-16),
        ("1.16", "3.25e-6", 8, 1.2002365311e-10),
    ],
)
def test_small_divergences_of_samples_do_not_cancel(mu, rate, order, true):
    base = dp.losses.GaussianLoss(sigma=1, sensitivity=Fraction(mu))
    found = dp.losses.poisson_sampled(base, rate=Fraction(rate)).renyi(order)
    assert found == pytest.approx(true, rel=1e-4)


@pytest.mark.parametrize(
    ("mu", "rate", "order", "true"),
    [
        ("0.1", "0.999", 300, 5.7403),
        ("0.03", "0.9", 1000, 1.37055),
        ("0.3", "0.999999", 70, 12.425),
    ],
)
def test_divergences_of_replaced_samples_reach_far(mu, rate, order, true):
    base = dp.losses.GaussianLoss(sigma=1, sensitivity=Fraction(mu))
    loss = dp.losses.poisson_sampled(base, rate=Fraction(rate), relation="replace")
    assert loss.renyi(order) == pytest.approx(true, rel=1e-4)


@pytest.mark.parametrize(("mu", "rate"), [("1e-17", "0.01"), ("1e-16", "0.1"), ("1e-9", "0.5")])
def test_tiny_replaced_samples_are_not_lost(mu, rate):
    base = dp.losses.GaussianLoss(sigma=1, sensitivity=Fraction(mu))
    loss = dp.losses.poisson_sampled(base, rate=Fraction(rate), relation="replace")
    true = float(Fraction(rate) * 2 * Fraction(mu)) / math.sqrt(2 * math.pi)
    assert loss.delta(epsilon=0) >= true * (1 - 1e-9)
    assert dp.repeat(loss, 3).delta(epsilon=0) >= true
    assert loss.delta(epsilon=1e200) < 1e-300


def test_calibration_beside_releases_that_stay():
    """Only the numerical route reaches this target."""
    fixed = dp.repeat(dp.losses.PureLoss(bound=0.1), 100)
    target = dp.ApproxDP(4, 8.15567e-5)

    def make(sigma):
        return dp.compose(dp.losses.GaussianLoss(sigma=sigma, sensitivity=1), fixed)

    assert make(dp.losses.least_noise(make, target)).satisfies(target)
