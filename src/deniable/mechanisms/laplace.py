"""Laplace noise: `Geometric` on the integers, `Laplace` on the lattice of real numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import localcontext
from fractions import Fraction
from typing import Any

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
from deniable.privacy.exact import Number, decimal, high_precision, positive, show
from deniable.privacy.losses.base import check_ratio
from deniable.privacy.losses.laplace import DiscreteLaplaceLoss
from deniable.privacy.units import Relation, read_relation
from deniable.randomness.lattice import Lattice, lattice_for
from deniable.randomness.noise import LaplaceLaw, Noise, noise
from deniable.trace import traced


@dataclass(frozen=True, init=False, repr=False)
class Geometric:
    """Two-sided geometric noise on integers: P(z) proportional to exp(-|z|/scale).

    Formal guarantee. For integer values, or integer vectors, that move by at most `sensitivity` in
    L1 between neighbours under `relation`:

    * one release is ε-DP with ε = sensitivity/scale (Ghosh, Roughgarden & Sundararajan 2009);
    * no smaller ε holds;
    * the noise has exactly this law, is symmetric, and is independent of everything else;
    * 64-bit arrays saturate instead of wrapping, which is post-processing.

    A bare release is unledgered: the caller keeps the budget.
    """

    scale: Fraction
    sensitivity: Fraction
    relation: Relation

    def __init__(
        self,
        *,
        epsilon: Number | None = None,
        scale: Number | None = None,
        sensitivity: Number,
        relation: Relation | str = Relation.ADD_REMOVE,
    ) -> None:
        _read_parameters(self, epsilon, scale, sensitivity, relation)
        if self.sensitivity.denominator != 1:
            raise ParameterError(
                "sensitivity", sensitivity, "integers move by whole numbers; round it up"
            )
        LaplaceLaw(self.scale).check()
        check_ratio("epsilon", self.sensitivity / self.scale)

    def __repr__(self) -> str:
        return _represent(self)

    @lazy
    def loss(self) -> DiscreteLaplaceLoss:
        """What one release costs."""
        return DiscreteLaplaceLoss(
            scale=self.scale, sensitivity=self.sensitivity, relation=self.relation
        )

    @lazy
    def _noise(self) -> Noise:
        return noise(LaplaceLaw(self.scale))

    @traced
    def release(self, value: Any) -> int | Integers:
        """Release an integer, or an array of them, with noise."""
        return release_integers(value, self._noise)

    def error(self, *, confidence: Number) -> int:
        """The least w for which the noise of one number is within ±w with this probability."""
        return laplace_quantile(self.scale, read_confidence(confidence))

    def privacy_loss(self, output: Any, x: Any, y: Any) -> float:
        """ln of P(output | x) / P(output | y); never beyond ±ε for neighbours."""
        places = integer_points(output), integer_points(x), integer_points(y)
        return log_ratio(*places, self.scale)


@dataclass(frozen=True, init=False, repr=False)
class Laplace:
    """Laplace noise on real numbers: density proportional to exp(-|z|/scale).

    Formal guarantee. For real values, or vectors, that move by at most `sensitivity` in L1 between
    neighbours under `relation`:

    * one release is ε-DP with ε = sensitivity/scale (Dwork, McSherry, Nissim & Smith 2006,
      Prop. 1), exactly, in machine arithmetic;
    * what is drawn is discrete Laplace noise on a lattice of 2^k, 2^30 steps to the scale or more;
      rounding to it is charged: for ε of 1e-4 or more the scale grows by a share of at most 2^-39
      for a number and d/2^39 for a vector of d coordinates, and by more for smaller ε, where the
      lattice is coarser; ε never grows;
    * every output is a multiple of the lattice's step, so its low-order bits tell nothing;
    * `loss` is the lattice law's own. For vectors the law is finer: its ε is the same, its ρ no
      larger, its δ(ε) at most 2^-50 larger for ε up to 10.

    A bare release is unledgered: the caller keeps the budget. NaN and infinities are errors;
    results beyond the largest double saturate.
    """

    scale: Fraction
    sensitivity: Fraction
    relation: Relation

    def __init__(
        self,
        *,
        epsilon: Number | None = None,
        scale: Number | None = None,
        sensitivity: Number,
        relation: Relation | str = Relation.ADD_REMOVE,
    ) -> None:
        _read_parameters(self, epsilon, scale, sensitivity, relation)
        check_ratio("epsilon", self.sensitivity / self.scale)
        self._law(1).check()

    def __repr__(self) -> str:
        return _represent(self)

    @lazy
    def lattice(self) -> Lattice:
        """The multiples of a power of two on which releases live."""
        return lattice_for(sensitivity=self.sensitivity, scale=self.scale)

    @lazy
    def loss(self) -> DiscreteLaplaceLoss:
        """What one release costs."""
        return DiscreteLaplaceLoss(
            scale=self._law(1).scale,
            sensitivity=Fraction(self.lattice.l1_steps(self.sensitivity, 1)),
            relation=self.relation,
        )

    def _law(self, coordinates: int) -> LaplaceLaw:
        """The noise, in steps, that keeps ε when this many coordinates are rounded."""
        steps = self.lattice.l1_steps(self.sensitivity, coordinates)
        return LaplaceLaw(steps * self.scale / self.sensitivity)

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
        steps = laplace_quantile(self._law(1).scale, read_confidence(confidence))
        return self._noise.half_width(steps)

    def privacy_loss(self, output: Any, x: Any, y: Any) -> float:
        """ln of P(output | x) / P(output | y); never beyond ±ε for neighbours."""
        places = self._noise.places(output, x, y)
        return log_ratio(*places, self._law(coordinates_charged(len(places[0]))).scale)


def laplace_quantile(scale: Fraction, confidence: Fraction) -> int:
    """The least w >= 0 with P(|Z| > w) = 2 q^(w+1)/(1+q) <= 1 - confidence, q = exp(-1/scale)."""
    with localcontext(high_precision(min(1 / scale, 1 - confidence))):
        s, miss = decimal(scale), decimal(1 - confidence)
        reach = s * (2 / (miss * (1 + (-1 / s).exp()))).ln() - 1
        return max(0, math.ceil(reach))


def laplace_tail_threshold(scale: Fraction, chance: Fraction) -> int:
    """The least t >= 1 with P(Z >= t) = q^t/(1+q) <= chance, q = exp(-1/scale)."""
    with localcontext(high_precision(min(1 / scale, chance, Fraction(1)))):
        s, rare = decimal(scale), decimal(chance)
        reach = -s * (rare * (1 + (-1 / s).exp())).ln()
        return max(1, math.ceil(reach))


def log_ratio(output: list[int], x: list[int], y: list[int], scale: Fraction) -> float:
    """The privacy loss of one output of Laplace noise."""
    same_length(output, x, y)
    moved = sum(abs(o - b) - abs(o - a) for o, a, b in zip(output, x, y, strict=True))
    return float(moved / scale)


def _read_parameters(
    mechanism: Geometric | Laplace,
    epsilon: Number | None,
    scale: Number | None,
    sensitivity: Number,
    relation: Relation | str,
) -> None:
    name, given = exactly_one(epsilon=epsilon, scale=scale)
    moved = positive(sensitivity, "sensitivity")
    wide = positive(given, name) if name == "scale" else moved / positive(given, name)
    object.__setattr__(mechanism, "scale", wide)
    object.__setattr__(mechanism, "sensitivity", moved)
    object.__setattr__(mechanism, "relation", read_relation(relation))


def _represent(mechanism: Geometric | Laplace) -> str:
    name = type(mechanism).__name__
    epsilon = show(mechanism.sensitivity / mechanism.scale)
    relation = "" if mechanism.relation == Relation.ADD_REMOVE else ", relation='replace'"
    return f"{name}(epsilon={epsilon}, sensitivity={show(mechanism.sensitivity)}{relation})"
