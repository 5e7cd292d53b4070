import math
from fractions import Fraction

import mpmath
import pytest

import deniable as dp
from deniable.privacy.accountants.zcdp import largest_rho
from deniable.privacy.calibrate import (
    Calibration,
    discrete_gaussian_sigma,
    gaussian_sigma,
    least_noise,
)


def true_sigma(epsilon: float, delta: float) -> float:
    """Balle & Wang's theorem solved in forty digits."""
    with mpmath.workdps(40):

        def gap(sigma):
            mu = 1 / mpmath.mpf(sigma)
            tail = mpmath.ncdf(-epsilon / mu + mu / 2)
            return (
                tail - mpmath.exp(epsilon) * mpmath.ncdf(-epsilon / mu - mu / 2) - mpmath.mpf(delta)
            )

        return float(mpmath.findroot(gap, (1e-3, 5000), solver="anderson", tol=1e-60, maxsteps=500))


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.5, 1.0, 3.0, 10.0, 20.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-9, 1e-12])
def test_the_analytic_calibration_is_exact(epsilon, delta):
    sigma = gaussian_sigma(Fraction(1), dp.ApproxDP(epsilon, delta))
    with mpmath.workdps(50):
        # δ at the found σ is at the target, and a hair less noise would miss it.
        def delta_at(s):
            mu = 1 / mpmath.mpf(s.numerator) * s.denominator
            e = mpmath.mpf(Fraction(str(epsilon)).numerator) / Fraction(str(epsilon)).denominator
            return mpmath.ncdf(-e / mu + mu / 2) - mpmath.exp(e) * mpmath.ncdf(-e / mu - mu / 2)

        assert delta_at(sigma) <= mpmath.mpf(str(delta))
        assert delta_at(sigma * (1 - Fraction(1, 10**9))) > mpmath.mpf(str(delta))


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.0])
def test_the_textbook_formulas_are_larger(epsilon):
    target = dp.ApproxDP(epsilon, 1e-6)
    least, classical, lecture = (gaussian_sigma(Fraction(3), target, way) for way in Calibration)
    assert least < classical < lecture
    assert float(classical) == pytest.approx(3 * math.sqrt(2 * math.log(1.25e6)) / epsilon)
    assert float(lecture) == pytest.approx(3 * math.sqrt(2 * math.log(2e6)) / epsilon)
    for way in Calibration:
        mechanism = dp.Gaussian(epsilon=epsilon, delta=1e-6, sensitivity=3, calibration=way)
        assert mechanism.loss.satisfies(target)


@pytest.mark.parametrize("way", ["classical", "lecture"])
def test_the_textbook_formulas_end_at_one(way):
    with pytest.raises(dp.ParameterError, match="analytic"):
        dp.Gaussian(epsilon=1.01, delta=1e-6, sensitivity=1, calibration=way)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-9])
@pytest.mark.parametrize("sensitivity", [1, 3])
def test_discrete_noise_is_calibrated_on_its_own_curve(epsilon, delta, sensitivity):
    target = dp.ApproxDP(epsilon, delta)
    sigma = discrete_gaussian_sigma(Fraction(sensitivity), target)

    def loss(s):
        return dp.losses.DiscreteGaussianLoss(variance=s**2, sensitivity=sensitivity)

    assert loss(sigma).satisfies(target)
    assert not loss(sigma * (1 - Fraction(1, 10**6))).satisfies(target)


def test_the_continuous_curve_would_have_understated_coarse_noise():
    """σ = 1/2 needs μ = 2.49, not 2: the discrete law is accounted, not its idealisation."""
    discrete = dp.losses.DiscreteGaussianLoss(variance=0.25, sensitivity=1)
    continuous = dp.losses.GaussianLoss(sigma=0.5, sensitivity=1)
    assert discrete.delta(epsilon=0) > continuous.delta(epsilon=0) * 1.1


@pytest.mark.parametrize("rho", [1e-6, 0.1, 0.5, 3])
def test_zcdp_targets_are_met_exactly(rho):
    for mechanism in (
        dp.Gaussian(rho=rho, sensitivity=2),
        dp.DiscreteGaussian(rho=rho, sensitivity=2),
    ):
        assert mechanism.loss.satisfies(dp.ZCDP(rho))
        assert mechanism.loss.rho == pytest.approx(rho, rel=1e-12)


def test_gdp_targets():
    assert gaussian_sigma(Fraction(3), dp.GDP(1.5)) == 2
    sigma = discrete_gaussian_sigma(Fraction(1), dp.GDP(0.05))
    assert 20 < sigma < 21


def test_gaussian_noise_is_never_pure():
    for calibrate in (gaussian_sigma, discrete_gaussian_sigma):
        with pytest.raises(dp.errors.CalibrationError, match="never pure"):
            calibrate(Fraction(1), dp.PureDP(1))


def test_least_noise_of_any_family():
    scale = least_noise(lambda s: dp.losses.LaplaceLoss(scale=s, sensitivity=1), dp.PureDP(0.5))
    assert scale == 2
    with pytest.raises(dp.errors.CalibrationError, match="no amount"):
        least_noise(lambda s: dp.losses.GaussianLoss(sigma=s, sensitivity=1), dp.PureDP(1))


def test_least_noise_of_many_releases():
    target = dp.ApproxDP(1, 1e-6)

    def hundred(scale):
        return dp.repeat(dp.losses.LaplaceLoss(scale=scale, sensitivity=1), 100)

    scale = dp.losses.least_noise(hundred, target)
    assert hundred(scale).satisfies(target)
    assert not hundred(scale * (1 - Fraction(1, 10**5))).satisfies(target)
    by_rho = dp.losses.least_noise(hundred, dp.ZCDP(largest_rho(1, 1e-6)))
    assert scale < 0.98 * by_rho


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rate", "steps", "epsilon", "sigma"),
    [(0.01, 1000, 1, 1.564), (0.1, 100, 1, 4.453)],
)
def test_least_noise_of_sampled_gaussians(rate, steps, epsilon, sigma):
    """Figures of the literature's PLD accountants at δ = 1e-6."""
    target = dp.ApproxDP(epsilon, 1e-6)

    def training(noise):
        base = dp.losses.GaussianLoss(sigma=noise, sensitivity=1)
        return dp.repeat(dp.losses.poisson_sampled(base, rate=rate), steps)

    found = dp.losses.least_noise(training, target)
    assert float(found) == pytest.approx(sigma, rel=1e-3)
    assert training(found).satisfies(target)


@pytest.mark.parametrize(
    ("guarantee", "count"),
    [(dp.PureDP(1), 10), (dp.ZCDP(0.05), 10), (dp.PureDP(0.05), 0)],
)
def test_most_releases_by_adding(guarantee, count):
    assert (
        dp.losses.most_releases(dp.losses.LaplaceLoss(scale=10, sensitivity=1), guarantee) == count
    )


def test_most_releases_under_a_curve():
    loss, target = dp.losses.LaplaceLoss(scale=10, sensitivity=1), dp.ApproxDP(4.69267, 1e-6)
    assert dp.losses.most_releases(loss, target) == 100
    assert (
        dp.losses.most_releases(dp.losses.GaussianLoss(sigma=10, sensitivity=1), dp.GDP(1)) == 100
    )
    with pytest.raises(dp.errors.CalibrationError, match="more than"):
        dp.losses.most_releases(dp.losses.PureLoss(bound=1e-50), dp.PureDP(1))
    with pytest.raises(dp.errors.ParameterTypeError, match="loss"):
        dp.losses.most_releases(1.0, target)


def test_epsilon_for_an_error():
    found = dp.losses.least_epsilon(
        lambda e: dp.Laplace(epsilon=e, sensitivity=1), error=10, confidence=0.95
    )
    assert found == pytest.approx(math.log(20) / 10, rel=1e-3)
    assert dp.Laplace(epsilon=found, sensitivity=1).error(confidence=0.95) <= 10
    counts = dp.losses.least_epsilon(
        lambda e: dp.Geometric(epsilon=e, sensitivity=1), error=6, confidence=0.95
    )
    assert dp.Geometric(epsilon=counts, sensitivity=1).error(confidence=0.95) <= 6
    assert dp.Geometric(epsilon=counts * 0.999, sensitivity=1).error(confidence=0.95) > 6
    with pytest.raises(dp.ParameterError, match="error"):
        dp.losses.least_epsilon(
            lambda e: dp.Geometric(epsilon=e, sensitivity=1), error=-1, confidence=0.95
        )
