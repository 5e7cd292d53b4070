"""Choosing which groups may be named: those with enough units, under noise."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from decimal import localcontext
from fractions import Fraction
from typing import Any

from deniable.errors import CalibrationError, PrivateValueError
from deniable.lazy import lazy
from deniable.mechanisms.base import represent
from deniable.mechanisms.histogram import read_counts
from deniable.privacy.composition import compose
from deniable.privacy.exact import (
    Number,
    decimal,
    high_precision,
    positive,
    probability,
    sqrt_up,
    whole,
)
from deniable.privacy.losses.base import Loss
from deniable.privacy.losses.gaussian import DiscreteGaussianLoss
from deniable.privacy.losses.generic import only_delta
from deniable.privacy.units import Relation, read_relation
from deniable.randomness.noise import GaussianLaw, noise
from deniable.trace import traced

WEIGHT = 1 << 16
"""Steps that a unit of one group adds to it."""


def weight(groups: int) -> int:
    """Steps that a unit adds to each of so many groups: ⌊2^16/√g⌋, so that their norm is 2^16."""
    return math.isqrt(WEIGHT**2 // groups)


@dataclass(frozen=True, init=False, repr=False)
class KeySelection:
    """Name the groups in which units weigh, under Gaussian noise, as much as a threshold.

    Formal guarantee. For sums of weights, where a unit of g groups, `max_groups` at most, adds
    `weight(g)` steps to each of them:

    * one selection is δ-approximately ρ-zCDP (Bun & Steinke 2016, Def. 8.1). What a unit adds has
      an L2 norm of √(g·⌊2^16/√g⌋²) <= 2^16 steps; of two units, whose weights are not negative, the
      difference has √2·2^16 at most. So groups that both neighbours have get discrete Gaussian
      noise with σ² = 2^32/2ρ (a unit replaced: twice that), and what is shown of them is
      post-processing;
    * a group that only one neighbour has holds a single unit, and its g groups of that kind show
      with probability δ at most, by a union bound: the threshold is the least t found with
      P(weight(g) + Z >= t) <= δ/g for every g up to `max_groups`, by a bound on the tail of the
      noise Z that is drawn (Gopi et al. 2020, Thm 5.1; a unit replaced: half of it each);
    * nothing is said of groups that are not named; those that are come in an order of their own.

    A bare selection is unledgered: the caller keeps the budget.
    """

    rho: Fraction
    delta: Fraction
    max_groups: int
    relation: Relation

    def __init__(
        self,
        *,
        rho: Number,
        delta: Number,
        max_groups: int,
        relation: Relation | str = Relation.ADD_REMOVE,
    ) -> None:
        object.__setattr__(self, "rho", positive(rho, "rho"))
        object.__setattr__(self, "delta", probability(delta, "delta"))
        object.__setattr__(self, "max_groups", whole(max_groups, "max_groups"))
        object.__setattr__(self, "relation", read_relation(relation))
        self._law.check()
        _ = self.threshold

    def __repr__(self) -> str:
        return represent(self)

    @property
    def _law(self) -> GaussianLaw:
        return GaussianLaw(self.relation.changed * WEIGHT**2 / (2 * self.rho))

    @lazy
    def threshold(self) -> int:
        """A group shows iff its noisy weight reaches this, in steps.

        What a unit of g groups needs is largest for one group, or for as many as there can be:
        its weight falls and δ/g asks for more. Every g is looked at all the same; beyond 16, some
        neighbouring ones together, with the weight of the least and the δ/g of the most.
        """
        variance, each = self._law.variance, self.delta / self.relation.changed

        def needed(least: int, most: int) -> int:
            return weight(least) + gaussian_tail_threshold(variance, each / most)

        ends, least = list[tuple[int, int]](), 1
        while least <= self.max_groups:
            ends.append((least, min(self.max_groups, least + least // 16)))
            least = ends[-1][1] + 1
        found = max(needed(*ends[0]), needed(*ends[-1]))
        for least, most in ends[1:-1]:
            if not gaussian_tail_is_small(found - weight(least), variance, each / most):
                found = needed(least, most)
        return found

    @lazy
    def counted(self) -> Loss:
        """What the noise of one selection costs, beside its δ."""
        moved = sqrt_up(Fraction(self.relation.changed * WEIGHT**2), 30)
        return DiscreteGaussianLoss(
            variance=moved**2 / (2 * self.rho), sensitivity=moved, relation=self.relation
        )

    @lazy
    def loss(self) -> Loss:
        """What one selection costs."""
        return compose(self.counted, only_delta(self.delta, self.relation))

    @traced
    def release(self, value: Mapping[Any, int]) -> list[Hashable]:
        """The groups that may be named, from the weight in each, in steps."""
        counts = [(cell, count) for cell, count in read_counts(value).items() if count > 0]
        if not all(isinstance(cell, tuple | str | int | float | bool) for cell, _ in counts):
            raise PrivateValueError("groups are text, numbers or tuples of them")
        drawn = noise(self._law).many(len(counts)).tolist()
        shown = [
            cell
            for (cell, count), z in zip(counts, drawn, strict=True)
            if count + z >= self.threshold
        ]
        return sorted(shown, key=repr)


def gaussian_tail_threshold(variance: Fraction, delta: Fraction) -> int:
    """A whole t >= 1 with P(Z >= t) <= δ for discrete Gaussian noise Z."""
    high = 1
    while not gaussian_tail_is_small(high, variance, delta):
        high *= 2
        if high > 1 << 60:
            raise CalibrationError("no threshold hides single units under so much noise")
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        small = gaussian_tail_is_small(middle, variance, delta)
        low, high = (low, middle) if small else (middle, high)
    return high


def gaussian_tail_is_small(t: int, variance: Fraction, delta: Fraction) -> bool:
    """Whether P(Z >= t) <= δ for discrete Gaussian noise Z, by a bound.

    Terms e^(-x²/2σ²) shrink by e^(-(2x+1)/2σ²) from one to the next, so that those from t on sum
    to at most the first over 1 - e^(-(2t+1)/2σ²); the normaliser is at least max(1, σ sqrt(2π))
    (Canonne, Kamath & Steinke 2020, Fact 18).
    """
    if t < 1:
        return False
    with localcontext(high_precision()):
        s2 = decimal(variance)
        shrink = (-(2 * decimal(Fraction(t)) + 1) / (2 * s2)).exp()
        first = (-(decimal(Fraction(t)) ** 2) / (2 * s2)).exp()
        two_pi = decimal(Fraction(6283185307179586, 10**15))  # below 2π
        whole_sum = max(decimal(Fraction(1)), (s2 * two_pi).sqrt())
        bound = first / (1 - shrink) / whole_sum
        return bool(bound * (1 + decimal(Fraction(1, 10**30))) <= decimal(delta))
