"""The least noise for a guarantee."""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import StrEnum
from fractions import Fraction

from deniable.errors import CalibrationError, ParameterError
from deniable.privacy.accountants import gdp
from deniable.privacy.exact import exact, sqrt_up
from deniable.privacy.guarantees import GDP, ZCDP, ApproxDP, Guarantee, PureDP
from deniable.privacy.losses.base import Loss
from deniable.privacy.losses.gaussian import DiscreteGaussianLoss
from deniable.privacy.search import bracket_up, least


class Calibration(StrEnum):
    """How the standard deviation of a Gaussian follows from (ε, δ)."""

    ANALYTIC = "analytic"  # the least one (Balle & Wang 2018, Thm 8)
    CLASSICAL = "classical"  # Δ sqrt(2 ln(1.25/δ))/ε (Dwork & Roth 2014, Thm A.1), ε < 1
    LECTURE = "lecture"  # Δ sqrt(2 ln(2/δ))/ε, ε <= 1


def gaussian_sigma(
    sensitivity: Fraction, guarantee: Guarantee, calibration: Calibration = Calibration.ANALYTIC
) -> Fraction:
    """The standard deviation of continuous Gaussian noise for a guarantee, rounded up."""
    match guarantee:
        case ApproxDP():
            return sensitivity * _up(_noise_multiplier(guarantee, calibration))
        case ZCDP():
            return sensitivity * sqrt_up(1 / (2 * guarantee.rho))
        case GDP():
            return sensitivity / guarantee.mu
        case PureDP():
            raise CalibrationError(
                "Gaussian noise is never pure: ask for ApproxDP(epsilon, delta), or use Laplace"
            )


def _noise_multiplier(guarantee: ApproxDP, calibration: Calibration) -> float:
    epsilon, delta = float(guarantee.epsilon), float(guarantee.delta)
    if not 1e-90 <= epsilon <= 1e6:
        raise ParameterError("epsilon", epsilon, "noise is calibrated from 1e-90 to 1e6")
    if calibration == Calibration.ANALYTIC:
        return 1 / gdp.largest_mu(epsilon, delta)
    if epsilon > 1:
        raise ParameterError(
            "epsilon",
            epsilon,
            f"the {calibration} formula is proved for epsilon <= 1; use calibration='analytic'",
        )
    factor = 2.0 if calibration == Calibration.LECTURE else 1.25
    return math.sqrt(2 * math.log(factor / delta)) / epsilon


def discrete_gaussian_sigma(sensitivity: Fraction, guarantee: Guarantee) -> Fraction:
    """The standard deviation of discrete Gaussian noise for a guarantee, rounded up."""
    if isinstance(guarantee, ZCDP | PureDP):
        return gaussian_sigma(sensitivity, guarantee)
    return least_noise(
        lambda sigma: DiscreteGaussianLoss(variance=sigma**2, sensitivity=sensitivity), guarantee
    )


def least_noise(make_loss: Callable[[Fraction], Loss], guarantee: Guarantee) -> Fraction:
    """A scale whose loss keeps the guarantee, while a hair below it does not.

    The least one where the loss falls with the scale; coarse discrete noise does not quite, and may
    keep a guarantee again further down. What is returned was itself tested.
    """

    def holds(scale: float) -> bool:
        try:
            return make_loss(exact(scale, "scale")).satisfies(guarantee)
        except ParameterError:  # so little noise that there is no loss to speak of
            return False

    high = bracket_up(holds, 1e-3)
    if high == math.inf:
        raise CalibrationError(f"no amount of this noise reaches {guarantee}")
    return exact(least(holds, high / 1e6, high), "scale")


def _up(value: float) -> Fraction:
    return exact(math.nextafter(value, math.inf), "sigma")
