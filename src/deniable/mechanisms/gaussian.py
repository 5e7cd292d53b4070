"""Gaussian noise: `DiscreteGaussian` on the integers, `Gaussian` on the lattice of reals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from deniable.errors import ParameterError
from deniable.lazy import lazy
from deniable.mechanisms.additive import (
    LatticeNoise,
    coordinates_charged,
    integer_points,
    release_integers,
    same_length,
)
from deniable.mechanisms.base import exactly_one, read_confidence
from deniable.mechanisms.values import Floats, Integers
from deniable.privacy.calibrate import Calibration, discrete_gaussian_sigma, gaussian_sigma
from deniable.privacy.exact import Number, positive, show
from deniable.privacy.guarantees import ZCDP, ApproxDP
from deniable.privacy.losses.base import check_ratio
from deniable.privacy.losses.gaussian import DiscreteGaussianLoss
from deniable.privacy.search import least
from deniable.privacy.units import Relation, read_relation
from deniable.randomness.lattice import Lattice, lattice_for
from deniable.randomness.noise import GaussianLaw, Noise, noise
from deniable.trace import traced


@dataclass(frozen=True, init=False, repr=False)
class DiscreteGaussian:
    """Discrete Gaussian noise on integers: P(z) proportional to exp(-z²/2σ²).

    Formal guarantee. For integer values, or integer vectors, that move by at most `sensitivity` in
    L2 between neighbours under `relation`:

    * one release is ρ-zCDP with ρ = sensitivity²/2σ² (Canonne, Kamath & Steinke 2020, Thm 4);
    * one release is (ε, δ)-DP for every point of `loss.delta`, the curve of this discrete law and
      not of the continuous one, which understates it;
    * it is ε-DP for no ε;
    * calibrated by (ε, δ) or ρ, the noise keeps the target by that curve, and would miss it if it
      were a millionth narrower;
    * the noise has exactly this law and is independent of everything else;
    * 64-bit arrays saturate instead of wrapping, which is post-processing.

    A bare release is unledgered: the caller keeps the budget.
    """

    sigma: Fraction
    sensitivity: Fraction
    relation: Relation

    def __init__(
        self,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        sigma: Number | None = None,
        sensitivity: Number,
        relation: Relation | str = Relation.ADD_REMOVE,
    ) -> None:
        moved = positive(sensitivity, "sensitivity")
        if moved < 1:
            raise ParameterError("sensitivity", sensitivity, "integers move by 1 or more")
        target = _read_target(epsilon, delta, rho, sigma)
        wide = target if isinstance(target, Fraction) else discrete_gaussian_sigma(moved, target)
        _store(self, wide, moved, relation)
        check_ratio("sensitivity/sigma", self.sensitivity / self.sigma)
        GaussianLaw(self.sigma**2).check()

    def __repr__(self) -> str:
        return _represent(self)

    @lazy
    def loss(self) -> DiscreteGaussianLoss:
        """What one release costs."""
        return DiscreteGaussianLoss(
            variance=self.sigma**2, sensitivity=self.sensitivity, relation=self.relation
        )

    @lazy
    def _noise(self) -> Noise:
        return noise(GaussianLaw(self.sigma**2))

    @traced
    def release(self, value: Any) -> int | Integers:
        """Release an integer, or an array of them, with noise."""
        return release_integers(value, self._noise)

    def error(self, *, confidence: Number) -> int:
        """A w for which the noise of one number is within ±w with this probability.

        The least one up to σ = 10^5, and at most a part in 10^9 wider above.
        """
        return gaussian_quantile(self.sigma**2, read_confidence(confidence))

    def privacy_loss(self, output: Any, x: Any, y: Any) -> float:
        """ln of P(output | x) / P(output | y)."""
        places = integer_points(output), integer_points(x), integer_points(y)
        return log_ratio(*places, self.sigma**2)


@dataclass(frozen=True, init=False, repr=False)
class Gaussian:
    """Gaussian noise on real numbers: N(0, σ²).

    Formal guarantee. For real values, or vectors, that move by at most `sensitivity` in L2 between
    neighbours under `relation`:

    * one release is ρ-zCDP with ρ = sensitivity²/2σ² (Bun & Steinke 2016, Prop. 1.6);
    * one release is (ε, δ)-DP for every point of `loss.delta` (Balle & Wang 2018, Thm 8);
    * it is ε-DP for no ε;
    * calibrated by (ε, δ), σ is the least by that theorem, to twelve digits, unless another
      `calibration` is named; `"classical"` and `"lecture"` are the textbook formulas for ε <= 1;
    * what is drawn is discrete Gaussian noise on a lattice of 2^k, 2^30 steps to σ or more, and
      `loss` is that law's own; rounding is charged: for σ up to 10,000 times the sensitivity, σ
      grows by a share of at most 2^-39 for a number and 2^-39 sqrt(d) for a vector of d
      coordinates, and by more where σ is larger and the lattice coarser; the loss never does;
    * every output is a multiple of the lattice's step, so its low-order bits tell nothing.

    A bare release is unledgered: the caller keeps the budget. NaN and infinities are errors;
    results beyond the largest double saturate.
    """

    sigma: Fraction
    sensitivity: Fraction
    relation: Relation

    def __init__(
        self,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        sigma: Number | None = None,
        sensitivity: Number,
        relation: Relation | str = Relation.ADD_REMOVE,
        calibration: Calibration | str = Calibration.ANALYTIC,
    ) -> None:
        moved = positive(sensitivity, "sensitivity")
        target = _read_target(epsilon, delta, rho, sigma)
        way = _read_calibration(calibration)
        if way != Calibration.ANALYTIC and not isinstance(target, ApproxDP):
            raise ParameterError("calibration", str(way), "needs epsilon and delta to calibrate to")
        wide = target if isinstance(target, Fraction) else gaussian_sigma(moved, target, way)
        _store(self, wide, moved, relation)
        check_ratio("sensitivity/sigma", self.sensitivity / self.sigma)
        self._law(1).check()

    def __repr__(self) -> str:
        return _represent(self)

    @lazy
    def lattice(self) -> Lattice:
        """The multiples of a power of two on which releases live."""
        return lattice_for(sensitivity=self.sensitivity, scale=self.sigma)

    @lazy
    def loss(self) -> DiscreteGaussianLoss:
        """What one release costs."""
        return DiscreteGaussianLoss(
            variance=self._law(1).variance,
            sensitivity=Fraction(self.lattice.l2_steps(self.sensitivity, 1)),
            relation=self.relation,
        )

    def _law(self, coordinates: int) -> GaussianLaw:
        """The noise, in steps, that keeps the loss when this many coordinates are rounded."""
        steps = self.lattice.l2_steps(self.sensitivity, coordinates)
        return GaussianLaw((steps * self.sigma / self.sensitivity) ** 2)

    @lazy
    def _noise(self) -> LatticeNoise:
        return LatticeNoise(self.lattice, self._law)

    @traced
    def release(self, value: Any) -> float | Floats:
        """Release a real number, or an array of them, with noise."""
        return self._noise.release(value)

    def error(self, *, confidence: Number) -> float:
        """A half-width within which the noise of one number stays with this probability.

        Beside it stands the rounding of the result to a double, of values beyond 2^52 steps.
        """
        steps = gaussian_quantile(self._law(1).variance, read_confidence(confidence))
        return self._noise.half_width(steps)

    def privacy_loss(self, output: Any, x: Any, y: Any) -> float:
        """ln of P(output | x) / P(output | y)."""
        places = self._noise.places(output, x, y)
        return log_ratio(*places, self._law(coordinates_charged(len(places[0]))).variance)


@lru_cache(maxsize=1024)  # an answer asks for the same ones each time that it is shown
def gaussian_quantile(variance: Fraction, confidence: Fraction) -> int:
    """A w >= 0 with P(|Z| <= w) >= confidence for the discrete Gaussian, the least up to σ = 10^5.

    Above, the sum over |x| <= w is bounded from below by the integral to w + 1/2, that is by
    erf((w + 1/2)/σ sqrt 2): the corrections of the midpoint rule have the right sign.
    """
    sigma, miss = math.sqrt(variance), float(1 - confidence)
    if sigma > 1e5:
        reach = _inverse_erf(float(confidence), miss) * math.sqrt(2) * sigma
        return max(0, math.ceil(reach * (1 + 1e-14) - 0.5))
    sizes = np.arange(math.ceil(40 * sigma) + 40)
    weights = np.exp(-(sizes**2) / (2 * sigma**2))
    weights[1:] *= 2
    # beyond[w] = P(|Z| > w), summed from the far end so that small tails keep their digits
    beyond = np.append(np.cumsum(weights[::-1])[::-1][1:], 0.0) / weights.sum()
    return int(np.argmax(beyond * (1 + 1e-12) <= miss))


def _inverse_erf(value: float, rest: float) -> float:
    """An x with erf(x) >= value = 1 - rest, by whichever of the two has more digits."""
    if value < 0.5:
        return least(lambda x: math.erf(x) >= value * (1 + 1e-15), 0.0, 1.0)
    return least(lambda x: math.erfc(x) <= rest * (1 - 1e-15), 0.0, 30.0)


def log_ratio(output: list[int], x: list[int], y: list[int], variance: Fraction) -> float:
    """The privacy loss of one output of Gaussian noise."""
    same_length(output, x, y)
    moved = sum((o - b) ** 2 - (o - a) ** 2 for o, a, b in zip(output, x, y, strict=True))
    return float(moved / (2 * variance))


def _read_target(
    epsilon: Number | None, delta: Number | None, rho: Number | None, sigma: Number | None
) -> Fraction | ApproxDP | ZCDP:
    """σ itself, or the guarantee it is calibrated to."""
    name, given = exactly_one(epsilon=epsilon, rho=rho, sigma=sigma)
    if name == "epsilon":
        if delta is None:
            raise ParameterError("delta", None, "Gaussian noise needs delta beside epsilon")
        return ApproxDP(given, delta)
    if delta is not None:
        raise ParameterError("delta", delta, f"goes with epsilon, not with {name}")
    return positive(given, "sigma") if name == "sigma" else ZCDP(given)


def _read_calibration(value: Calibration | str) -> Calibration:
    try:
        return Calibration(value)
    except ValueError:
        names = ", ".join(repr(str(way)) for way in Calibration)
        raise ParameterError("calibration", value, f"must be one of {names}") from None


def _store(
    mechanism: DiscreteGaussian | Gaussian,
    sigma: Fraction,
    sensitivity: Fraction,
    relation: Relation | str,
) -> None:
    object.__setattr__(mechanism, "sigma", sigma)
    object.__setattr__(mechanism, "sensitivity", sensitivity)
    object.__setattr__(mechanism, "relation", read_relation(relation))


def _represent(mechanism: DiscreteGaussian | Gaussian) -> str:
    name, sigma = type(mechanism).__name__, show(mechanism.sigma)
    relation = "" if mechanism.relation == Relation.ADD_REMOVE else ", relation='replace'"
    return f"{name}(sigma={sigma}, sensitivity={show(mechanism.sensitivity)}{relation})"
