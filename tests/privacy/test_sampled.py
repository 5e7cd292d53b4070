"""Losses of Poisson samples against their definitions, integrated."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

import deniable as dp
from deniable.privacy.accountants import pld
from deniable.privacy.accountants.law import DominatingPair
from deniable.privacy.losses.sampled import amplified_epsilon

EPSILONS = [0.0, 0.003, 0.02, 0.1, 0.5, 1.3]


def gaussian(x, at):
    return mpmath.npdf(x, at, 1)


def laplace(x, at):
    return mpmath.exp(-abs(x - at)) / 2


def hockey_stick(p, q, epsilon, corners):
    """∫ (p - e^ε q)+ over the line, the corners of the integrand given."""
    grown = mpmath.exp(epsilon)
    reach = 14
    inner = sorted({-reach, *(float(c) for c in corners), *np.linspace(-reach, reach, 57), reach})
    return float(mpmath.quad(lambda x: max(p(x) - grown * q(x), 0), inner))


def curve_at(law: DominatingPair, epsilon: float) -> float:
    """δ(ε) of a pair, from its atoms and the curve of the rest."""
    value = 0.0
    if law.rest is not None:
        value += float(law.rest.forward(np.array([epsilon])).values[0])
    if law.atoms is not None:
        atoms = law.atoms(1e-30)
        value += float(atoms.mass @ np.maximum(-np.expm1(epsilon - atoms.x), 0.0))
    return value


NOISES = {
    "gaussian": (gaussian, dp.losses.GaussianLoss(sigma=1, sensitivity=1)),
    "laplace": (laplace, dp.losses.LaplaceLoss(scale=1, sensitivity=1)),
}


@pytest.mark.parametrize("rate", [0.01, 0.3])
@pytest.mark.parametrize("noise", NOISES)
def test_one_unit_more_or_less_both_ways(noise, rate):
    density, base = NOISES[noise]
    loss = dp.losses.poisson_sampled(base, rate=rate)
    for epsilon in EPSILONS:
        mixed = [lambda x: (1 - rate) * density(x, 0) + rate * density(x, 1)]
        plain = [lambda x: density(x, 0)]
        away = hockey_stick(mixed[0], plain[0], epsilon, [0, 1])
        added = hockey_stick(plain[0], mixed[0], epsilon, [0, 1])
        assert curve_at(loss.law(), epsilon) == pytest.approx(away, rel=1e-4, abs=1e-9)
        assert curve_at(loss.law().reversed(), epsilon) == pytest.approx(added, rel=1e-4, abs=1e-9)
        assert loss.delta(epsilon=epsilon) == pytest.approx(max(away, added), rel=1e-4, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("rate", [0.01, 0.3])
@pytest.mark.parametrize("noise", NOISES)
def test_one_unit_replaced_has_a_pair_of_its_own(noise, rate):
    density, base = NOISES[noise]
    loss = dp.losses.poisson_sampled(base, rate=rate, relation="replace")
    for epsilon in EPSILONS:
        true = hockey_stick(
            lambda x: (1 - rate) * density(x, 0) + rate * density(x, 1),
            lambda x: (1 - rate) * density(x, 0) + rate * density(x, -1),
            epsilon,
            [-1, 0, 1],
        )
        assert loss.delta(epsilon=epsilon) == pytest.approx(true, rel=1e-4, abs=1e-9)
        assert curve_at(loss.law(), epsilon) == pytest.approx(true, rel=1e-4, abs=1e-9)


def test_replacing_costs_more_than_adding():
    base = dp.losses.GaussianLoss(sigma=1, sensitivity=1)
    steps = {
        relation: dp.repeat(dp.losses.poisson_sampled(base, rate=0.01, relation=relation), 1000)
        for relation in ("add_remove", "replace")
    }
    epsilons = {name: loss.epsilon(delta=1e-6) for name, loss in steps.items()}
    assert epsilons["replace"] > 1.5 * epsilons["add_remove"]
    assert steps["add_remove"].under("replace") == steps["replace"]


@pytest.mark.parametrize("angle", [0.0, 0.7, 1.9, math.pi])
@pytest.mark.parametrize("length", [0.4, 1.0])
def test_no_two_units_in_the_plane_are_worse_than_opposite_ones(angle, length):
    """The replace-one proof, for vectors: ((1-q)R + qP, (1-q)R + qQ) by summing over a grid."""
    rate, side = 0.3, np.linspace(-8, 9, 500)
    cell = (side[1] - side[0]) ** 2

    def density(x, y):
        inner = (side[:, None] - x) ** 2 + (side[None, :] - y) ** 2
        return np.exp(-inner / 2) / (2 * np.pi)

    nobody = (1 - rate) * density(0, 0)
    one = nobody + rate * density(1, 0)
    other = nobody + rate * density(length * math.cos(angle), length * math.sin(angle))
    worst = dp.losses.poisson_sampled(
        dp.losses.GaussianLoss(sigma=1, sensitivity=1), rate=rate, relation="replace"
    )
    for epsilon in (0.0, 0.1, 0.4):
        for p, q in ((one, other), (other, one)):
            met = float(np.maximum(p - math.exp(epsilon) * q, 0).sum() * cell)
            assert met <= worst.delta(epsilon=epsilon) + 1e-5
    if angle == math.pi and length == 1:
        met = float(np.maximum(one - other, 0).sum() * cell)
        assert met == pytest.approx(worst.delta(epsilon=0), rel=1e-4)


def test_figures_computed_elsewhere():
    """Two sources each: closed form and dp-accounting; contour integration and dp-accounting."""
    one = dp.losses.poisson_sampled(dp.losses.GaussianLoss(sigma=0.8, sensitivity=1), rate=0.01)
    assert one.delta(epsilon=0.05) == pytest.approx(0.000883119693517092, rel=1e-8)
    assert float(amplified_epsilon(Fraction(1), Fraction(1, 100))) == pytest.approx(
        0.0170368632361765, rel=1e-10
    )
    pure = dp.losses.poisson_sampled(dp.losses.PureLoss(bound=1), rate=0.01)
    assert pure.epsilon(delta=0) == pytest.approx(0.0170368632361765, rel=1e-10)


def test_pure_losses_stay_pure():
    for base in (
        dp.losses.LaplaceLoss(scale=1, sensitivity=1),
        dp.losses.DiscreteLaplaceLoss(scale=2, sensitivity=2),
        dp.losses.PureLoss(bound=1),
        dp.losses.ExponentialLoss(bound=1),
    ):
        loss = dp.losses.poisson_sampled(base, rate=0.2)
        grown = math.log1p(0.2 * math.expm1(1))
        assert float(loss.pure) == pytest.approx(grown, rel=1e-12)
        assert loss.delta(epsilon=loss.pure) == 0
        assert loss.delta(epsilon=grown * 0.999) > 0
        assert loss.price.epsilon >= loss.pure
    replaced = dp.losses.poisson_sampled(
        dp.losses.LaplaceLoss(scale=1, sensitivity=1), rate=0.2, relation="replace"
    )
    ratio = (0.8 + 0.2 * math.e) / (0.8 + 0.2 / math.e)
    assert float(replaced.pure) == pytest.approx(math.log(ratio), rel=1e-12)


def test_only_epsilon_and_delta_known():
    loss = dp.losses.poisson_sampled(dp.losses.ApproxLoss(bound=1, slack=1e-6), rate=0.1)
    assert loss.kind == "approx"
    assert float(loss.bound) == pytest.approx(math.log1p(0.1 * math.expm1(1)), rel=1e-12)
    assert loss.slack == Fraction(1, 10**7)


@pytest.mark.parametrize("order", [1.0, 1.5, 2.0, 8.0, 32.0])
def test_divergences_are_the_larger_of_both_ways(order):
    rate, loss = (
        0.1,
        dp.losses.poisson_sampled(dp.losses.GaussianLoss(sigma=1, sensitivity=1), rate=0.1),
    )

    def divergence(p, q):
        if order == 1:
            inner = mpmath.quad(lambda x: p(x) * mpmath.log(p(x) / q(x)), np.linspace(-15, 40, 56))
            return float(inner)
        inner = mpmath.quad(lambda x: p(x) ** order * q(x) ** (1 - order), np.linspace(-15, 60, 76))
        return float(mpmath.log(inner) / (order - 1))

    def mixed(x):
        return (1 - rate) * gaussian(x, 0) + rate * gaussian(x, 1)

    true = max(
        divergence(mixed, lambda x: gaussian(x, 0)), divergence(lambda x: gaussian(x, 0), mixed)
    )
    assert true * (1 - 1e-9) <= loss.renyi(order) <= true * (1 + 1e-3)


def test_sampling_discrete_noise_agrees_with_its_definition():
    base, rate = dp.losses.DiscreteLaplaceLoss(scale=3, sensitivity=2), 0.3
    loss = dp.losses.poisson_sampled(base, rate=rate)
    x = np.arange(-200, 201)
    plain, moved = (np.exp(-np.abs(x - at) / 3) for at in (0, 2))
    plain, moved = plain / plain.sum(), moved / moved.sum()
    mixed = (1 - rate) * plain + rate * moved
    for epsilon in (0.0, 0.05, 0.15):
        away = np.maximum(mixed - math.exp(epsilon) * plain, 0).sum()
        added = np.maximum(plain - math.exp(epsilon) * mixed, 0).sum()
        assert loss.delta(epsilon=epsilon) == pytest.approx(max(away, added), rel=1e-9)
    two = dp.repeat(loss, 2)
    for epsilon in (0.0, 0.1, 0.3):
        grown, both = math.exp(epsilon), (np.outer(mixed, mixed), np.outer(plain, plain))
        joint = max(np.maximum(p - grown * q, 0).sum() for p, q in (both, both[::-1]))
        low, high = pld.delta_bounds(two.laws(), two.floors(), epsilon)
        assert low <= joint * (1 + 1e-9)
        assert joint <= high * (1 + 1e-9)
        assert two.delta(epsilon=epsilon) == pytest.approx(joint, rel=1e-4)


@pytest.mark.parametrize("rate", [0, 1, -0.1, math.nan, math.inf, 1.5])
def test_rates_lie_between_0_and_1(rate):
    with pytest.raises(dp.ParameterError, match="rate"):
        dp.losses.poisson_sampled(dp.losses.PureLoss(bound=1), rate=rate)


def test_what_cannot_be_sampled_is_refused():
    gaussian_loss = dp.losses.GaussianLoss(sigma=1, sensitivity=1)
    with pytest.raises(dp.errors.RelationError, match="add_remove"):
        dp.losses.poisson_sampled(gaussian_loss.under("replace"), rate=0.1)
    with pytest.raises(dp.ParameterError, match="compose"):
        dp.losses.poisson_sampled(dp.repeat(gaussian_loss, 2), rate=0.1)
    with pytest.raises(dp.ParameterError, match="compose"):
        dp.losses.poisson_sampled(dp.losses.poisson_sampled(gaussian_loss, rate=0.1), rate=0.1)
    with pytest.raises(dp.ParameterError, match="Gaussian and Laplace"):
        dp.losses.poisson_sampled(dp.losses.PureLoss(bound=1), rate=0.1, relation="replace")
    with pytest.raises(dp.errors.ParameterTypeError, match="loss"):
        dp.losses.poisson_sampled("gaussian", rate=0.1)


def test_divergences_where_nearly_everybody_is_sampled():
    base = dp.losses.GaussianLoss(sigma=1, sensitivity=1)
    nearly = dp.losses.poisson_sampled(base, rate=1 - Fraction(1, 10**100), relation="replace")
    assert nearly.renyi(40) == pytest.approx(80)
