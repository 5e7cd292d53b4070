"""The losses of Gaussian noise, continuous and on the integers.

Both hold for vectors, `sensitivity` being in L2. For the continuous law that is its rotational
symmetry. For the discrete law three sound curves are known, and the least is taken:

* **Exact**, when no integer vector moves by more than one step in one coordinate (sensitivity
  below sqrt 2): the sum of the positive parts over the integers.
* **zCDP**: the Rényi divergence of order α is at most α Δ²/2v for every integer shift (Canonne,
  Kamath & Steinke 2020, Thm 4), then the tight conversion.
* **Smoothing**: add to a draw y of N(0, v - τ²) the integer x - y, x drawn with weights
  exp(-(x-y)²/2τ²). Those weights sum to τ sqrt(2π) (1 + θ), |θ| < 3 e^(-2π²τ²), by Poisson
  summation, whatever y is; so the outcome's law is the discrete Gaussian of variance v, each
  probability within a factor 1 ± 10^-200 for τ² = 25. The discrete pair is thus a post-processing
  of the continuous pair with variance v - 25, up to that factor, in any dimension below 10^10.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from deniable.privacy.accountants import gdp, zcdp
from deniable.privacy.accountants.law import (
    TELLS_NOTHING,
    Atoms,
    DominatingPair,
    Floats,
    Reading,
    Rest,
    mirrored,
)
from deniable.privacy.exact import Number, positive, sqrt_up, whole
from deniable.privacy.losses.base import Concentrated, Loss, check_ratio, law_of_profile, trade_off
from deniable.privacy.parameters import Parameter, parameter, parameters

_SMOOTHING = 25  # τ²
_LIST_ATOMS = 1 << 14  # σ up to which atoms are listed one by one
_SUM_DIRECTLY = 1 << 10  # σ up to which the lattice sum is taken term by term


@parameters
class GaussianLoss(Loss):
    """N(0, sigma²) noise, moved by at most `sensitivity` in L2."""

    kind: ClassVar[str] = "gaussian"
    sigma: Parameter[Number, Fraction] = parameter(positive)
    sensitivity: Parameter[Number, Fraction] = parameter(positive)

    def __post_init__(self) -> None:
        check_ratio("sensitivity/sigma", self.sensitivity / self.sigma)

    @property
    def concentrated(self) -> Concentrated:
        """Δ²/2σ² (Bun & Steinke 2016, Prop. 1.6)."""
        return Concentrated((self.sensitivity / self.sigma) ** 2 / 2, Fraction(0))

    @property
    def mu(self) -> float:
        """Δ/σ (Dong, Roth & Su 2022, Thm 2.7)."""
        return float(self.sensitivity / self.sigma)

    def _keeps_mu(self, mu: Fraction) -> bool:
        return self.sensitivity <= mu * self.sigma

    def profile(self, epsilon: Fraction | float) -> float:
        """Φ(-ε/μ + μ/2) - e^ε Φ(-ε/μ - μ/2) (Balle & Wang 2018, Thm 8)."""
        return gdp.delta(self.mu, float(epsilon))

    def law(self) -> DominatingPair:
        return gaussian_law(self.mu)

    def divergence(self, order: float) -> float:
        """α μ²/2."""
        return order * float(self.concentrated.rho)

    def type_two(self, alpha: float) -> float:
        """Φ(Φ^-1(1-α) - μ)."""
        return gdp.tradeoff(self.mu, alpha)

    def group(self, size: int) -> GaussianLoss:
        """k units move the value k times as far."""
        return replace(self, sensitivity=self.sensitivity * whole(size, "size"))


@parameters
class DiscreteGaussianLoss(Loss):
    """P(x) proportional to exp(-x²/2 variance) on the integers, moved by `sensitivity` in L2."""

    kind: ClassVar[str] = "discrete_gaussian"
    variance: Parameter[Number, Fraction] = parameter(positive)
    sensitivity: Parameter[Number, Fraction] = parameter(positive)

    def __post_init__(self) -> None:
        check_ratio("sensitivity/sigma", sqrt_up(self.sensitivity**2 / self.variance))

    @property
    def concentrated(self) -> Concentrated:
        """Δ²/2v (Canonne, Kamath & Steinke 2020, Thm 4)."""
        return Concentrated(self.sensitivity**2 / (2 * self.variance), Fraction(0))

    @property
    def mu(self) -> float:
        """Δ/sqrt(v - 25) by smoothing; infinity for variances of 50 or less.

        Holds up to 10^-200 in total variation. The plain Δ/σ does not hold.
        """
        if self.variance <= 2 * _SMOOTHING:
            return math.inf
        squared = self.sensitivity**2 / (self.variance - _SMOOTHING)
        return math.sqrt(squared) * (1 + 1e-15)

    @property
    def moves_one_step(self) -> bool:
        """Whether only one coordinate can move, by one."""
        return self.sensitivity**2 < 2

    def profile(self, epsilon: Fraction | float) -> float:
        """The exact lattice sum for single steps, the least sound bound otherwise."""
        if self.moves_one_step:
            return lattice_delta(self.variance, epsilon)
        bound = zcdp.delta(float(self.concentrated.rho), float(epsilon))
        return min(bound, gdp.delta(self.mu, float(epsilon))) if self.mu < math.inf else bound

    def law(self) -> DominatingPair:
        """The lattice law for single steps, otherwise the least sound curve."""
        if self.moves_one_step:
            return lattice_law(self.variance, 1)
        return gaussian_law(self.mu) if self.mu < math.inf else law_of_profile(self.profile)

    def floor(self) -> DominatingPair:
        """One coordinate that moves as far as it can."""
        return lattice_law(self.variance, math.floor(self.sensitivity))

    def type_two(self, alpha: float) -> float:
        """The greatest lower bound that one of the curves proves."""
        if self.moves_one_step:
            return trade_off(self.profile, alpha)
        by_rho = trade_off(lambda e: zcdp.delta(float(self.concentrated.rho), float(e)), alpha)
        return max(by_rho, gdp.tradeoff(self.mu, alpha)) if self.mu < math.inf else by_rho

    def divergence(self, order: float) -> float:
        """α Δ²/2v: exact for whole orders and shifts, an upper bound otherwise."""
        return order * float(self.concentrated.rho)

    def group(self, size: int) -> DiscreteGaussianLoss:
        """k units move the value k times as far."""
        return replace(self, sensitivity=self.sensitivity * whole(size, "size"))


def gaussian_law(mu: float) -> DominatingPair:
    """N(0, 1) against N(mu, 1)."""

    def curve(epsilon: Floats) -> Reading:
        return gdp.curve(mu, epsilon)

    return DominatingPair(rest=Rest(curve, curve))


def lattice_law(variance: Fraction, shift: int) -> DominatingPair:
    """The discrete Gaussian against itself moved by a whole number: log ratios (2ys + s²)/2v."""
    v, sigma = float(variance), math.sqrt(variance)
    if shift == 0:
        return TELLS_NOTHING
    if sigma > _LIST_ATOMS:
        return law_of_profile(lambda e: lattice_delta(variance, e)) if shift == 1 else TELLS_NOTHING

    def atoms(tail: float) -> Atoms:
        # P(|y| > n) < 2 e^(-n²/2v): sub-Gaussian (Canonne, Kamath & Steinke 2020, Lemma 26).
        reach = math.ceil(sigma * math.sqrt(2 * math.log(2 / tail)))
        y = np.arange(-reach - shift, reach + 1)
        mass = np.exp(-(y * y) / (2 * v)) / _normaliser(sigma)
        return mirrored(shift * (2 * y + shift) / (2 * v), mass, tail)

    return DominatingPair(atoms=atoms, grain=shift / (2 * v) if shift % 2 else shift / v)


def lattice_delta(variance: Fraction, epsilon: Fraction | float) -> float:
    """δ(ε) of the discrete Gaussian moved by one: Σ P(y) (1 - e^(ε - loss(y)))_+.

    y has loss (2y + 1)/2v, so the sum runs over whole y > y0 = εv - 1/2, with terms
    P(y) (1 - e^(-(y - y0)/v)): all positive, nothing cancels.
    """
    y0 = Fraction(epsilon) * variance - Fraction(1, 2)
    first = math.floor(y0) + 1
    ahead = float((first - y0) / variance)
    log_first = -float(Fraction(first * first) / (2 * variance))
    if log_first < -745:
        return 0.0
    sigma = math.sqrt(variance)
    z = float(first / Fraction(sigma))
    series = _sum_terms if sigma <= _SUM_DIRECTLY else _euler_maclaurin
    found = math.exp(log_first) * series(z, sigma, ahead) / _normaliser(sigma)
    return min(1.0, found * (1 + 1e-12))


def _sum_terms(z: float, sigma: float, ahead: float) -> float:
    """Σ over t >= 0 of e^(-zt/σ - t²/2v) (1 - e^(-t/v - ahead)), term by term."""
    reach = sigma * (math.sqrt(z * z + 90) - z)
    t = np.arange(math.ceil(reach) + 2) / sigma
    return float(np.sum(np.exp(-z * t - t * t / 2) * -np.expm1(-t / sigma - ahead)))


def _euler_maclaurin(z: float, sigma: float, ahead: float) -> float:
    """The same sum as an integral, with the corrections F(0)/2 - F'(0)/12 + F'''(0)/720."""
    a, w, keep = z / sigma, 1 / sigma**2, math.exp(-ahead)
    value = -math.expm1(-ahead)
    first = -a * value + w * keep
    third = (3 * a * w - a**3) * value + (3 * (a * a - w) * w + 3 * a * w * w + w**3) * keep
    integral = sigma * gdp.overlap(z, 1 / sigma, ahead)
    return integral + value / 2 - first / 12 + third / 720


def _normaliser(sigma: float) -> float:
    """Σ over all integers of e^(-y²/2v)."""
    if sigma > 4:  # Poisson summation: the relative error is 2 e^(-2π²v) < 10^-136
        return sigma * math.sqrt(2 * math.pi)
    y = np.arange(1, 40 * math.ceil(sigma) + 1)
    return float(1 + 2 * np.sum(np.exp(-y * y / (2 * sigma**2))))
