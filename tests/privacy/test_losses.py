"""Each curve against its slow twin: sums and integrals from the definition, in many digits."""

import math
from fractions import Fraction
from itertools import pairwise, product

import mpmath
import numpy as np
import pytest
from hypothesis import given, strategies as st

import deniable as dp
from deniable.privacy.losses.base import trade_off

EPSILONS = [0.0, 0.01, 0.3, 1.0, 2.7]
ORDERS = [1.0, 1 + 1e-7, 1.5, 2.0, 10.0, 300.0]

EVERY_LOSS = [
    dp.losses.LaplaceLoss(scale=2, sensitivity=3),
    dp.losses.DiscreteLaplaceLoss(scale=Fraction(7, 3), sensitivity=3),
    dp.losses.GaussianLoss(sigma=1.3, sensitivity=1),
    dp.losses.DiscreteGaussianLoss(variance=2, sensitivity=1),
    dp.losses.DiscreteGaussianLoss(variance=90, sensitivity=4),
    dp.losses.RandomizedResponseLoss(truth=0.75),
    dp.losses.RandomizedResponseLoss(truth=0.5, categories=5),
    dp.losses.ExponentialLoss(bound=1.5),
    dp.losses.PureLoss(bound=1.5),
    dp.losses.ApproxLoss(bound=1, slack=1e-3),
    dp.repeat(dp.losses.LaplaceLoss(scale=5, sensitivity=1), 4),
    dp.losses.poisson_sampled(dp.losses.GaussianLoss(sigma=1, sensitivity=1), rate=0.1),
    dp.losses.poisson_sampled(dp.losses.LaplaceLoss(scale=1, sensitivity=1), rate=0.1),
    dp.losses.poisson_sampled(
        dp.losses.GaussianLoss(sigma=1, sensitivity=1), rate=0.1, relation="replace"
    ),
    dp.losses.poisson_sampled(
        dp.losses.LaplaceLoss(scale=1, sensitivity=1), rate=0.1, relation="replace"
    ),
    dp.losses.poisson_sampled(dp.losses.DiscreteLaplaceLoss(scale=3, sensitivity=2), rate=0.3),
]
by_kind = pytest.mark.parametrize("loss", EVERY_LOSS, ids=lambda loss: loss.kind)


def discrete_pair(loss):
    """The two laws of an integer loss, on a wide window, in 60 digits."""
    if loss.kind == "discrete_laplace":
        rate, shift, power = (
            mpmath.mpf(loss.scale.denominator) / loss.scale.numerator,
            loss.shift,
            1,
        )
    else:
        rate, shift, power = (
            mpmath.mpf(loss.variance.denominator) / loss.variance.numerator / 2,
            1,
            2,
        )
    reach = 260
    weight = {x: mpmath.exp(-rate * abs(x) ** power) for x in range(-reach, reach + 1)}
    total = mpmath.fsum(weight.values())
    inside = range(-reach + shift, reach - shift + 1)
    return [(weight[x - shift] / total, weight[x] / total) for x in inside]


DISCRETE = [
    dp.losses.DiscreteLaplaceLoss(scale=1, sensitivity=1),
    dp.losses.DiscreteLaplaceLoss(scale=Fraction(7, 3), sensitivity=3),
    dp.losses.DiscreteLaplaceLoss(scale=Fraction(1, 3), sensitivity=2),
    dp.losses.DiscreteLaplaceLoss(scale=2, sensitivity=2.7),
    dp.losses.DiscreteGaussianLoss(variance=Fraction(1, 4), sensitivity=1),
    dp.losses.DiscreteGaussianLoss(variance=1, sensitivity=1),
    dp.losses.DiscreteGaussianLoss(variance=17, sensitivity=1.4),
]


@pytest.mark.parametrize("loss", DISCRETE, ids=repr)
def test_discrete_profiles_are_sums_of_positive_parts(loss):
    with mpmath.workdps(60):
        pair = discrete_pair(loss)
        for epsilon in EPSILONS:
            grown = mpmath.exp(mpmath.mpf(epsilon))
            true = float(mpmath.fsum(max(p - grown * q, 0) for p, q in pair))
            assert loss.delta(epsilon=epsilon) == pytest.approx(true, rel=1e-10, abs=1e-45)


@pytest.mark.parametrize("loss", DISCRETE, ids=repr)
def test_discrete_trade_offs_are_the_best_tests(loss):
    with mpmath.workdps(60):
        pair = sorted(discrete_pair(loss), key=lambda pq: pq[0] / pq[1], reverse=True)
        for alpha in (0.0, 0.003, 0.1, 0.5, 0.9, 1.0):
            left, power = mpmath.mpf(alpha), mpmath.mpf(0)
            for p, q in pair:
                share = min(1, left / q)
                power, left = power + share * p, left - share * q
            assert loss.tradeoff(alpha) == pytest.approx(float(1 - power), rel=1e-6, abs=1e-7)


@pytest.mark.parametrize(
    "loss", [one for one in DISCRETE if one.kind == "discrete_laplace"], ids=repr
)
def test_discrete_laplace_divergences(loss):
    with mpmath.workdps(60):
        pair = discrete_pair(loss)
        kl = mpmath.fsum(p * mpmath.log(p / q) for p, q in pair)
        assert loss.renyi(1) == pytest.approx(float(kl), rel=1e-9)
        for order in (1.5, 2.0, 10.0):
            inner = mpmath.fsum(p**order * q ** (1 - order) for p, q in pair)
            assert loss.renyi(order) == pytest.approx(
                float(mpmath.log(inner) / (order - 1)), rel=1e-9
            )


def integral_pair(loss, epsilon):
    """δ and ∫ p^α q^(1-α) of a continuous loss by quadrature."""
    if loss.kind == "laplace":
        b, d = float(loss.scale), float(loss.sensitivity)
        return lambda x: mpmath.exp(-abs(x) / b) / (2 * b), d
    s, d = float(loss.sigma), float(loss.sensitivity)
    return lambda x: mpmath.npdf(x, 0, s), d


@pytest.mark.parametrize(
    "loss",
    [
        dp.losses.LaplaceLoss(scale=2, sensitivity=3),
        dp.losses.GaussianLoss(sigma=1.3, sensitivity=1),
    ],
    ids=lambda loss: loss.kind,
)
def test_continuous_curves_are_integrals(loss):
    density, shift = integral_pair(loss, 0)
    points = [-60, -10, -3, 0, shift / 2, shift, 3 + shift, 10, 60]
    with mpmath.workdps(30):
        for epsilon in EPSILONS:
            grown = mpmath.exp(epsilon)
            cut = (
                mpmath.findroot(
                    lambda x, e=epsilon: mpmath.log(density(x - shift) / density(x)) - e,
                    (0.01, shift - 0.01),
                    solver="bisect",
                    verify=False,
                    maxsteps=200,
                )
                if epsilon < loss.renyi(math.inf) and loss.kind == "laplace"
                else mpmath.mpf(
                    (epsilon * float(loss.sigma) ** 2 / shift + shift / 2)
                    if loss.kind == "gaussian"
                    else 60
                )
            )
            ends = [cut, *[x for x in points if x > cut]]
            true = mpmath.quad(lambda x, g=grown: density(x - shift) - g * density(x), ends)
            assert loss.delta(epsilon=epsilon) == pytest.approx(float(true), rel=1e-8, abs=1e-14)
        for order in (1.5, 2.0, 4.0):
            inner = mpmath.quad(
                lambda x, a=order: density(x - shift) ** a * density(x) ** (1 - a), points
            )
            assert loss.renyi(order) == pytest.approx(
                float(mpmath.log(inner) / (order - 1)), rel=1e-8
            )


@pytest.mark.parametrize(
    ("truth", "k"), [(Fraction(3, 4), 2), (Fraction(1, 2), 5), (Fraction(9, 10), 3)]
)
def test_randomised_response_is_its_channel(truth, k):
    loss = dp.losses.RandomizedResponseLoss(truth=truth, categories=k)
    lie = (1 - truth) / (k - 1)
    rows = [(truth, lie), (lie, truth), *[(lie, lie)] * (k - 2)]
    for epsilon in EPSILONS:
        true = sum(max(float(p) - math.exp(epsilon) * float(q), 0) for p, q in rows)
        assert loss.delta(epsilon=epsilon) == pytest.approx(true, rel=1e-12, abs=1e-16)
    for order in (1.5, 2.0, 10.0):
        inner = math.fsum(float(p) ** order * float(q) ** (1 - order) for p, q in rows)
        assert loss.renyi(order) == pytest.approx(math.log(inner) / (order - 1), rel=1e-9)
    assert loss.renyi(math.inf) == pytest.approx(math.log(truth / lie), rel=1e-15)


def test_the_exponential_mechanism_never_exceeds_its_curve_and_reaches_it():
    generator = np.random.default_rng(1)
    loss, factor = dp.losses.ExponentialLoss(bound=1), 0.5
    renyi = {order: loss.renyi(order) for order in (1.5, 3.0, 20.0)}
    closest = 1.0
    for _ in range(3000):
        size = int(generator.integers(2, 6))
        x = generator.normal(size=size) * 3
        y = x + generator.choice([-1.0, 1.0, generator.uniform(-1, 1)], size=size)
        p, q = (np.exp(factor * u) / np.exp(factor * u).sum() for u in (x, y))
        for epsilon in (0.0, 0.3, 0.7):
            exact = np.maximum(p - math.exp(epsilon) * q, 0).sum()
            assert exact <= loss.delta(epsilon=epsilon) * (1 + 1e-12)
            closest = min(closest, 1 - exact / loss.delta(epsilon=epsilon))
        for order, bound in renyi.items():
            exact = math.log((p**order * q ** (1 - order)).sum()) / (order - 1)
            assert exact <= bound * (1 + 1e-9)
    assert closest < 0.02


@pytest.mark.parametrize("shifts", [(1, 1), (2, 1), (1, 1, 1), (3, 2, 1), (2, 2)])
@pytest.mark.parametrize("scale", [0.7, 2.0])
def test_a_vector_of_laplace_noise_is_no_worse_than_one_coordinate(shifts, scale):
    """The claim at the top of losses/laplace.py, by enumeration."""
    loss = dp.losses.DiscreteLaplaceLoss(scale=scale, sensitivity=sum(shifts))
    reach = int(14 * scale) + 4
    for epsilon in (0.0, 0.2, 0.9):
        mass: dict[float, float] = {0.0: 1.0}
        for shift in shifts:
            step: dict[float, float] = {}
            q = math.exp(-1 / scale)
            for x in range(-reach, reach + 1):
                p = (1 - q) / (1 + q) * q ** abs(x)
                key = round((abs(x + shift) - abs(x)) / scale, 9)
                step[key] = step.get(key, 0) + p
            mass = _sum_law(mass, step)
        true = sum(p * max(0, 1 - math.exp(epsilon - level)) for level, p in mass.items())
        assert true <= loss.delta(epsilon=epsilon) + 1e-6


def _sum_law(a, b):
    out: dict[float, float] = {}
    for (x, p), (y, q) in product(a.items(), b.items()):
        key = round(x + y, 9)
        out[key] = out.get(key, 0) + p * q
    return out


@pytest.mark.parametrize("shift", [(2,), (1, 1), (1, 1, 1, 1), (2, 1), (3,), (2, 2, 1)])
@pytest.mark.parametrize("sigma", [0.6, 1.0, 3.0, 7.2, 9.0])
def test_discrete_gaussian_bounds_cover_every_integer_shift(shift, sigma):
    """Vectors that move in several coordinates, by exact convolution of the projected noise."""
    norm = math.sqrt(sum(s * s for s in shift))
    loss = dp.losses.DiscreteGaussianLoss(
        variance=Fraction(str(sigma)) ** 2, sensitivity=norm + 1e-12
    )
    reach = int(12 * sigma) + 6
    law = np.ones(1)
    for s in shift:
        x = np.arange(-reach, reach + 1)
        weights = np.exp(-(x**2) / (2 * sigma**2))
        stretched = np.zeros(2 * reach * s + 1)
        stretched[::s] = weights / weights.sum()
        law = np.convolve(law, stretched)
    places = np.arange(law.size) - law.size // 2
    level = (2 * places + norm**2) / (2 * sigma**2)
    for epsilon in (0.0, 0.1, 0.5, 1.0, 3.0):
        true = (law * np.maximum(0, -np.expm1(np.minimum(epsilon - level, 700)))).sum()
        assert true <= loss.delta(epsilon=epsilon) * (1 + 1e-9) + 1e-15


@pytest.mark.slow
def test_large_discrete_gaussians_agree_across_the_change_of_method():
    for sigma in (1024, 1025):
        for epsilon in (0.0, 1e-3, 5e-3):
            loss = dp.losses.DiscreteGaussianLoss(variance=sigma**2, sensitivity=1)
            with mpmath.workdps(40):
                y0 = mpmath.mpf(epsilon) * sigma**2 - mpmath.mpf(1) / 2
                first = int(mpmath.floor(y0)) + 1
                terms = (
                    mpmath.exp(-mpmath.mpf(y * y) / (2 * sigma**2))
                    * -mpmath.expm1(-(y - y0) / sigma**2)
                    for y in range(first, first + 12 * sigma)
                )
                true = mpmath.fsum(terms) / (sigma * mpmath.sqrt(2 * mpmath.pi))
            assert loss.delta(epsilon=epsilon) == pytest.approx(float(true), rel=1e-11)


@by_kind
def test_curves_fall_and_invert(loss):
    deltas = [loss.delta(epsilon=e) for e in np.linspace(0, 6, 60)]
    assert all(a >= b >= 0 for a, b in pairwise(deltas))
    for delta in (1e-2, 1e-6, 1e-12):
        epsilon = loss.epsilon(delta=delta)
        if epsilon < math.inf:
            assert loss.delta(epsilon=epsilon) <= delta
            if epsilon > 1e-9:
                assert loss.delta(epsilon=epsilon * (1 - 1e-6)) > delta


@by_kind
def test_divergences_rise_with_the_order_and_stay_below_rho(loss):
    found = [loss.renyi(order) for order in ORDERS]
    assert all(a <= b * (1 + 1e-9) for a, b in pairwise(found))
    assert all(r <= order * loss.rho * (1 + 1e-9) for r, order in zip(found, ORDERS, strict=True))
    assert found[-1] <= loss.renyi(math.inf) * (1 + 1e-9)


@by_kind
def test_trade_off_curves_are_convex_and_below_the_diagonal(loss):
    alphas = np.linspace(0, 1, 41)
    curve = [loss.tradeoff(float(a)) for a in alphas]
    assert all(0 <= f <= 1 - a + 1e-12 for f, a in zip(curve, alphas, strict=True))
    slopes = np.diff(curve)
    assert (np.diff(slopes) >= -1e-6).all()
    assert (slopes <= 1e-9).all()


@pytest.mark.slow
@by_kind
def test_the_trade_off_curve_says_the_same_as_the_profile(loss):
    for alpha in (0.01, 0.2, 0.6):
        generic = trade_off(loss.profile, alpha)
        assert loss.tradeoff(alpha) == pytest.approx(generic, rel=1e-3, abs=1e-6)
        assert loss.tradeoff(alpha) >= generic - 1e-7


@by_kind
def test_a_gaussian_with_the_stated_mu_dominates(loss):
    if loss.mu < math.inf:
        gaussian = dp.losses.GaussianLoss(sigma=1, sensitivity=loss.mu)
        for epsilon in EPSILONS:
            assert (
                loss.delta(epsilon=epsilon) <= gaussian.delta(epsilon=epsilon) * (1 + 1e-9) + 1e-15
            )


@by_kind
def test_groups(loss):
    assert loss.group(1) == loss
    if loss.kind == "sampled" and loss.pure is None:
        with pytest.raises(dp.ParameterError, match="pure losses only"):
            loss.group(3)
        return
    three = loss.group(3)
    if loss.pure is not None:
        assert three.pure <= 3 * loss.pure
    for epsilon in (0.3, 1.0):
        assert three.delta(epsilon=3 * epsilon) >= loss.delta(epsilon=3 * epsilon)
        bound = loss.delta(epsilon=epsilon) * math.expm1(3 * epsilon) / math.expm1(epsilon)
        if loss.kind not in ("approx", "discrete_gaussian"):  # whose groups are upper bounds
            assert three.delta(epsilon=3 * epsilon) <= bound * (1 + 1e-9) + 1e-12


def test_approximate_groups_have_the_exact_sum():
    loss = dp.losses.ApproxLoss(bound=0.5, slack=1e-6).group(3)
    assert loss.bound == Fraction(3, 2)
    assert float(loss.slack) == pytest.approx(1e-6 * math.expm1(1.5) / math.expm1(0.5), rel=1e-12)
    with pytest.raises(dp.ParameterError, match="group"):
        dp.losses.ApproxLoss(bound=5, slack=0.1).group(5)


@by_kind
def test_prices_are_on_the_grid_and_never_below(loss):
    price = loss.price
    grid = Fraction(1, 10**18)
    assert price.rho % grid == 0
    assert price.rho >= loss.concentrated.rho
    assert price.delta >= loss.concentrated.delta
    if loss.pure is None:
        assert price.epsilon is None
    else:
        assert loss.pure <= price.epsilon < loss.pure + grid


def test_prices_add_exactly():
    price = dp.losses.LaplaceLoss(scale=10, sensitivity=1).price
    total = price
    for _ in range(9):
        total = total + price
    assert total.epsilon == 1
    assert (price + dp.losses.GaussianLoss(sigma=1, sensitivity=1).price).epsilon is None
    assert "ε = 0.1" in str(price)


@by_kind
def test_the_other_relation_is_a_group_of_two(loss):
    if loss.relation == dp.Relation.REPLACE:
        with pytest.raises(dp.errors.RelationError, match="add_remove"):
            loss.under("add_remove")
        return
    swapped = loss.under("replace")
    assert swapped.relation == dp.Relation.REPLACE
    if loss.kind != "sampled":  # which has a pair of its own
        assert swapped.delta(epsilon=1) == loss.group(2).delta(epsilon=1)
    assert loss.under("add_remove") == loss


@by_kind
def test_losses_satisfy_what_they_say(loss):
    delta = loss.delta(epsilon=0.1)
    assert loss.satisfies(dp.ApproxDP(0.1, delta * (1 + 1e-9)))
    assert not loss.satisfies(dp.ApproxDP(0.1, delta * (1 - 1e-5)))
    if loss.pure is not None:
        assert loss.satisfies(dp.PureDP(loss.pure))
        assert not loss.satisfies(dp.PureDP(loss.pure * Fraction(999999, 10**6)))
    else:
        assert not loss.satisfies(dp.PureDP(100))
    if loss.rho < math.inf:
        assert loss.satisfies(dp.ZCDP(loss.concentrated.rho))
        assert not loss.satisfies(dp.ZCDP(loss.concentrated.rho * Fraction(999, 1000)))
    if loss.mu < math.inf:
        assert loss.satisfies(dp.GDP(loss.mu * 1.0001))
        assert not loss.satisfies(dp.GDP(loss.mu * 0.9999))


@given(st.floats(0.001, 20))
def test_the_least_rho_of_pure_and_laplace_losses_is_the_divergence_of_order_one(epsilon):
    for loss in (
        dp.losses.PureLoss(bound=epsilon),
        dp.losses.LaplaceLoss(scale=1, sensitivity=epsilon),
    ):
        assert loss.rho == pytest.approx(loss.renyi(1), rel=1e-12)
        for order in (1.01, 1.1, 1.5, 2, 3, 10, 100):
            assert loss.renyi(order) <= order * loss.rho * (1 + 1e-12)
    assert dp.losses.PureLoss(bound=epsilon).rho <= epsilon**2 / 2


BAD = [0, -1, math.nan, math.inf, "1", None, True]


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize(
    "make",
    [
        lambda v: dp.losses.LaplaceLoss(scale=v, sensitivity=1),
        lambda v: dp.losses.LaplaceLoss(scale=1, sensitivity=v),
        lambda v: dp.losses.DiscreteLaplaceLoss(scale=v, sensitivity=1),
        lambda v: dp.losses.GaussianLoss(sigma=v, sensitivity=1),
        lambda v: dp.losses.DiscreteGaussianLoss(variance=v, sensitivity=1),
        lambda v: dp.losses.ExponentialLoss(bound=v),
        lambda v: dp.losses.PureLoss(bound=v),
        lambda v: dp.losses.ApproxLoss(bound=1, slack=v),
        lambda v: dp.losses.RandomizedResponseLoss(truth=v),
    ],
)
def test_bad_parameters_are_refused(make, bad):
    with pytest.raises(dp.ParameterError):
        make(bad)


@pytest.mark.parametrize(("truth", "k"), [(0.5, 2), (0.2, 5), (1, 2), (0.75, 1), (0.75, 2.0)])
def test_bad_responses_are_refused(truth, k):
    with pytest.raises(dp.ParameterError):
        dp.losses.RandomizedResponseLoss(truth=truth, categories=k)


@by_kind
def test_bad_questions_are_refused(loss):
    for bad in (-1, math.nan, math.inf, "1", None):
        with pytest.raises(dp.ParameterError):
            loss.delta(epsilon=bad)
    for bad in (-1, 1, 1.5, math.nan, "1", None):
        with pytest.raises(dp.ParameterError):
            loss.epsilon(delta=bad)
    for bad in (0.5, -math.inf, math.nan, "1", None):
        with pytest.raises(dp.ParameterError):
            loss.renyi(bad)
    for bad in (-0.1, 1.1, math.nan, "1"):
        with pytest.raises(dp.ParameterError):
            loss.tradeoff(bad)
    for bad in (0, -1, 1.5, True):
        with pytest.raises(dp.ParameterError):
            loss.group(bad)
    with pytest.raises(dp.ParameterError):
        loss.under("swap")


@by_kind
def test_losses_are_frozen_and_hashable(loss):
    assert len({loss, loss}) == 1
    with pytest.raises(AttributeError):
        loss.relation = dp.Relation.REPLACE


def test_losses_that_protect_nobody_are_still_sound():
    """ε in the thousands: curves saturate, they do not wrap or come out small."""
    twice = dp.repeat(dp.losses.LaplaceLoss(scale=1, sensitivity=5000), 2)
    assert twice.delta(epsilon=9000) >= 0.25
    assert twice.epsilon(delta=1e-6) > 9000
    assert dp.losses.PureLoss(bound=1000).mu >= 89
    assert dp.losses.PureLoss(bound=1000).tradeoff(1e-300) == 0
    assert not dp.PureDP(1000) <= dp.GDP(75)
    for loss in (
        dp.losses.LaplaceLoss(scale=1e-3, sensitivity=1),
        dp.losses.DiscreteLaplaceLoss(scale=1e-3, sensitivity=1),
        dp.losses.ExponentialLoss(bound=1000),
        dp.losses.PureLoss(bound=1e6),
    ):
        assert loss.tradeoff(0) == 1
        assert loss.tradeoff(0.5) < 1e-100
        assert loss.delta(epsilon=1) == 1
        assert loss.delta(epsilon=10**7) == 0
        assert 0 < loss.renyi(2) <= float(loss.pure)
        assert loss.rho > 100
    assert dp.losses.RandomizedResponseLoss(truth=0.5, categories=3).renyi(1e10) == pytest.approx(
        math.log(2)
    )


def test_tiny_losses_are_not_rounded_away():
    """Each of these once came out below the truth."""
    for epsilon in (1e-5, 1e-8, 1e-12, 1e-15, 1e-17):
        with mpmath.workdps(60):
            true = mpmath.sqrt(8) * mpmath.erfinv(mpmath.tanh(mpmath.mpf(epsilon) / 2))
            assert (
                true
                <= mpmath.mpf(dp.losses.PureLoss(bound=epsilon).mu)
                <= true * (1 + mpmath.mpf(10) ** -11)
            )
    for bound, order in ((0.0058998, 1 + 1e-9), (5.17e-7, 2.0), (1.54e-6, 1.5), (1.11, 1 + 1e-9)):
        loss = dp.losses.ExponentialLoss(bound=bound)
        with mpmath.workdps(60):
            b, a = mpmath.mpf(repr(bound)), mpmath.mpf(repr(order))
            t = b / 2
            up = (mpmath.exp(-t) - mpmath.exp(-b)) / (1 - mpmath.exp(-b))
            inner = up * mpmath.exp(a * t) + (1 - up) * mpmath.exp(a * (t - b))
            assert loss.renyi(order) >= float(mpmath.log(inner) / (a - 1)) * (1 - 1e-12)
    laplace = dp.Laplace(epsilon=1, sensitivity=1).loss
    assert laplace.delta(epsilon=1 - 1e-9) == pytest.approx(-math.expm1(-5e-10), rel=1e-6)
    assert (
        dp.losses.DiscreteLaplaceLoss(scale=Fraction("1086335.7188770939"), sensitivity=1).delta(
            epsilon=Fraction("9.205257478070594e-07")
        )
        >= 0
    )
    wide = dp.Gaussian(sigma=1e15, sensitivity=1).loss
    assert wide.delta(epsilon=2e-14) >= 1.36e-105
    close = Fraction(1) + Fraction(1, 10**20)
    assert not dp.PureDP(close) <= dp.ApproxDP(1, 1e-300)
    assert not dp.losses.LaplaceLoss(scale=1, sensitivity=close).satisfies(dp.ApproxDP(1, 1e-300))
    assert not dp.ZCDP(Fraction("2.766e-32")) <= dp.ApproxDP(7.78e-15, 1e-300)
    assert dp.repeat(dp.losses.GaussianLoss(sigma=1, sensitivity=1e-90), 4).mu > 1e-91
    assert dp.repeat(dp.losses.PureLoss(bound=1e-17), 2).delta(epsilon=0.1) == 0


def test_the_exponential_mechanism_is_never_worse_than_any_pure_one():
    assert dp.losses.ExponentialLoss(bound=20).rho <= dp.losses.PureLoss(bound=20).rho


def test_losses_satisfy_their_own_figures():
    for loss in EVERY_LOSS:
        for epsilon in (0.013, 0.31, 0.7):
            delta = loss.delta(epsilon=epsilon)
            if 0 < delta < 1:
                assert loss.satisfies(dp.ApproxDP(epsilon, delta))
        if loss.mu < math.inf:
            assert loss.satisfies(dp.GDP(loss.mu))
    assert dp.losses.GaussianLoss(sigma=10, sensitivity=1).satisfies(dp.GDP(0.1))
    with pytest.raises(dp.errors.ParameterTypeError, match="guarantee"):
        EVERY_LOSS[0].satisfies(3)


def test_groups_of_approximate_losses_neither_pile_up_digits_nor_take_long():
    loss = dp.losses.ApproxLoss(bound=1e-50, slack=1e-60)
    for _ in range(20):
        loss = loss.group(2)
    assert loss.slack.denominator < 10**200
    with pytest.raises(dp.ParameterError, match="group"):
        dp.losses.ApproxLoss(bound=1, slack=1e-6).group(10**10)
    assert dp.losses.DiscreteLaplaceLoss(scale=1, sensitivity=2.7).group(2).shift == 4


@pytest.mark.parametrize(
    "make",
    [
        lambda: dp.losses.PureLoss(bound=2e6),
        lambda: dp.losses.PureLoss(bound=1e-200),
        lambda: dp.losses.LaplaceLoss(scale=1e-300, sensitivity=1e300),
        lambda: dp.losses.GaussianLoss(sigma=1e-9, sensitivity=1),
        lambda: dp.losses.DiscreteGaussianLoss(variance=1e-20, sensitivity=1),
        lambda: dp.losses.ExponentialLoss(bound=1e7),
    ],
)
def test_absurd_losses_are_refused(make):
    with pytest.raises(dp.ParameterError, match="protects nobody"):
        make()
