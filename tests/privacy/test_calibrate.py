import math
from fractions import Fraction

import mpmath
import pytest

import deniable as dp
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
        return dp.DiscreteGaussianLoss(variance=s**2, sensitivity=sensitivity)

    assert loss(sigma).satisfies(target)
    assert not loss(sigma * (1 - Fraction(1, 10**6))).satisfies(target)


def test_the_continuous_curve_would_have_understated_coarse_noise():
    """σ = 1/2 needs μ = 2.49, not 2: the discrete law is accounted, not its idealisation."""
    discrete = dp.DiscreteGaussianLoss(variance=0.25, sensitivity=1)
    continuous = dp.GaussianLoss(sigma=0.5, sensitivity=1)
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
        with pytest.raises(dp.CalibrationError, match="never pure"):
            calibrate(Fraction(1), dp.PureDP(1))


def test_least_noise_of_any_family():
    scale = least_noise(lambda s: dp.LaplaceLoss(scale=s, sensitivity=1), dp.PureDP(0.5))
    assert scale == 2
    with pytest.raises(dp.CalibrationError, match="no amount"):
        least_noise(lambda s: dp.GaussianLoss(sigma=s, sensitivity=1), dp.PureDP(1))
