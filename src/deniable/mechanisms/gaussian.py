"""Gaussian noise: `DiscreteGaussian` on the integers, `Gaussian` on the lattice of reals."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

from deniable.errors import ParameterError
from deniable.mechanisms.additive import IntegerNoise, RealNoise
from deniable.mechanisms.base import exactly_one
from deniable.mechanisms.laws import Norm
from deniable.privacy.calibrate import Calibration, discrete_gaussian_sigma, gaussian_sigma
from deniable.privacy.exact import Number, positive
from deniable.privacy.guarantees import ZCDP, ApproxDP
from deniable.privacy.parameters import Parameter, keep, one_of, parameter, parameters
from deniable.privacy.units import Relation


@parameters
class DiscreteGaussian(IntegerNoise):
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

    norm: ClassVar[Norm] = Norm.L2
    sigma: Parameter[Number, Fraction] = parameter(positive)

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
        keep(self, sigma=wide, sensitivity=moved, relation=relation)

    @property
    def spread(self) -> Fraction:
        return self.sigma


@parameters
class Gaussian(RealNoise):
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

    norm: ClassVar[Norm] = Norm.L2
    sigma: Parameter[Number, Fraction] = parameter(positive)

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
        way = one_of(Calibration)(calibration, "calibration")
        if way != Calibration.ANALYTIC and not isinstance(target, ApproxDP):
            raise ParameterError("calibration", str(way), "needs epsilon and delta to calibrate to")
        wide = target if isinstance(target, Fraction) else gaussian_sigma(moved, target, way)
        keep(self, sigma=wide, sensitivity=moved, relation=relation)

    @property
    def spread(self) -> Fraction:
        return self.sigma


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
