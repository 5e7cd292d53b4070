"""The least noise for a guarantee."""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import StrEnum
from fractions import Fraction
from typing import Protocol

from deniable.errors import CalibrationError, ParameterError, ParameterTypeError
from deniable.privacy.accountants import gdp
from deniable.privacy.composition import Composed, repeat
from deniable.privacy.exact import Number, exact, positive, sqrt_up
from deniable.privacy.guarantees import GDP, ZCDP, ApproxDP, Guarantee, PureDP
from deniable.privacy.losses.base import Loss, check_loss
from deniable.privacy.losses.gaussian import DiscreteGaussianLoss
from deniable.privacy.search import bracket_up, falling_root, least

_MOST_RELEASES = 10**12
_LARGEST = 1e9  # scale up to which the numerical route looks for a guarantee


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

    `make_loss` gives the loss for a scale of the noise, such as
    `lambda sigma: dp.repeat(dp.losses.GaussianLoss(sigma=sigma, sensitivity=1), 100)`. The answer
    is the least scale where the loss falls with it; coarse discrete noise does not quite, and may
    keep a guarantee again further down. What is returned was itself tested. The hair is the last
    digit for single releases and a part in 1e7 for composed ones.
    """
    if not callable(make_loss):
        raise ParameterTypeError("make_loss", type(make_loss).__name__, "must be a function")

    def loss_of(scale: float) -> Loss | None:
        try:
            loss = make_loss(exact(scale, "scale"))
        except ParameterError:  # so little noise that there is no loss to speak of
            return None
        if not isinstance(loss, Loss):
            raise ParameterTypeError("make_loss", type(loss).__name__, "must give a loss (m.loss)")
        return loss

    def holds(scale: float) -> bool:
        loss = loss_of(scale)
        if isinstance(loss, Composed) and isinstance(guarantee, ApproxDP):
            return loss.closed_profile(guarantee.epsilon) <= float(guarantee.delta)
        return loss is not None and loss.satisfies(guarantee)

    high = bracket_up(holds, 1e-3)
    if high == math.inf and isinstance(loss_of(1.0), Composed):

        def satisfied(scale: float) -> bool:  # by the numerical route, which is dear
            loss = loss_of(scale)
            return scale > _LARGEST or (loss is not None and loss.satisfies(guarantee))

        high = bracket_up(satisfied, 1.0)
        high = math.inf if high > _LARGEST else high
    if high == math.inf:
        make_loss(Fraction(1))  # says what is wrong, if no scale ever gave a loss
        raise CalibrationError(f"no amount of this noise reaches {guarantee}")
    while high > 1e-290 and holds(high / 2):
        high /= 2
    if isinstance(loss_of(high), Composed) and isinstance(guarantee, ApproxDP):
        return exact(_least_composed(loss_of, guarantee, high), "scale")
    return exact(least(holds, high / 2, high), "scale")


def _least_composed(
    loss_of: Callable[[float], Loss | None], guarantee: ApproxDP, high: float
) -> float:
    """The same by the numerical route, which is dear: by the root of ln δ(scale) - ln δ."""

    def excess(scale: float) -> float:
        loss = loss_of(scale)
        found = 1.0 if loss is None else loss.delta(epsilon=guarantee.epsilon)
        return _excess(found, guarantee)

    low = high / 2
    while excess(low) <= 0:
        high, low = low, low / 2
    return falling_root(excess, low, high, 1e-7)


def most_releases(loss: Loss, guarantee: Guarantee) -> int:
    """How many releases with this loss keep the guarantee together; 0 if not even one does.

    Under an (ε, δ) target a few more in a million may still keep it.
    """
    if not check_loss(loss).satisfies(guarantee):
        return 0
    # `excess` rises with the count and is 0 or less where the guarantee is kept.
    if isinstance(guarantee, ApproxDP):

        def excess(count: int) -> float:
            found = repeat(loss, count).delta(epsilon=guarantee.epsilon)
            return _excess(found, guarantee)
    else:

        def excess(count: int) -> float:
            return -1.0 if repeat(loss, count).satisfies(guarantee) else 1.0

    known, too_many = 1, 4
    at_known, at_too_many = -1.0, excess(4)
    while at_too_many <= 0:
        if too_many > _MOST_RELEASES:
            raise CalibrationError(f"more than {_MOST_RELEASES:g} releases keep {guarantee}")
        known, at_known = too_many, at_too_many
        too_many *= 4
        at_too_many = excess(too_many)
    while too_many - known > 1:
        share = -at_known / (at_too_many - at_known) if at_known < 0 else 0.5
        width = too_many - known
        middle = known + min(max(round(share * width), width // 64 + 1), width - width // 64 - 1)
        value = excess(middle)
        if value <= 0:
            known, at_known, at_too_many = middle, value, at_too_many / 2
        else:
            too_many, at_too_many, at_known = middle, value, at_known / 2
    return known


class WithError(Protocol):
    """A mechanism that states its error."""

    def error(self, *, confidence: Number) -> float:
        """The half-width that holds with at least that probability."""


def least_epsilon(
    make_mechanism: Callable[[float], WithError], *, error: Number, confidence: Number
) -> float:
    """The least ε at which a mechanism's error is at most `error`, to a part in 1e9.

    `make_mechanism` gives the mechanism for an ε, such as
    `lambda epsilon: dp.Laplace(epsilon=epsilon, sensitivity=1)`.
    """
    wanted = float(positive(error, "error"))
    if not callable(make_mechanism):
        raise ParameterTypeError("make_mechanism", type(make_mechanism).__name__, "not a function")

    def holds(epsilon: float) -> bool:
        try:
            mechanism = make_mechanism(epsilon)
            if not hasattr(mechanism, "error"):
                raise ParameterTypeError(
                    "make_mechanism", type(mechanism).__name__, "must give a mechanism with .error"
                )
            return float(mechanism.error(confidence=confidence)) <= wanted
        except CalibrationError:  # so small an ε that no noise is enough
            return False

    high = bracket_up(holds, 1e-9)
    if high == math.inf:
        raise CalibrationError(f"no ε brings the error down to {wanted:g}")
    return least(holds, high / 2, high, tolerance=1e-9)


def _excess(delta: float, guarantee: ApproxDP) -> float:
    """ln of how far δ is above what is allowed; its sign does not depend on rounding."""
    ratio = math.log(max(delta, 1e-320)) - math.log(guarantee.delta)
    return min(ratio, 0.0) if delta <= float(guarantee.delta) else max(ratio, 1e-18)


def _up(value: float) -> Fraction:
    return exact(math.nextafter(value, math.inf), "sigma")
