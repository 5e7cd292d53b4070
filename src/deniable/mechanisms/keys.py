"""Choosing which groups may be named: those with enough units, under noise."""

from __future__ import annotations

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
from deniable.privacy.losses.generic import ApproxLoss
from deniable.privacy.units import Relation, read_relation
from deniable.randomness.noise import GaussianLaw, noise
from deniable.trace import traced

_NOTHING = Fraction(1, 10**30)  # the ε of a part that has only a δ


@dataclass(frozen=True, init=False, repr=False)
class KeySelection:
    """Name the groups whose number of units, under Gaussian noise, reaches a threshold.

    Formal guarantee. For counts of units each of which is counted in at most `max_groups` groups:

    * one selection is δ-approximately ρ-zCDP (Bun & Steinke 2016, Def. 8.1): groups that both
      neighbours have get discrete Gaussian noise with σ² = max_groups/2ρ (a unit replaced: twice
      that), and what is shown of them is post-processing; a group that only one neighbour has holds
      a single unit, and shows with probability δ/max_groups at most (twice as many groups, half of
      it each, for a unit replaced);
    * the threshold is the least whole number t with P(1 + Z >= t) at most that, by a bound on the
      tail of the noise Z that is drawn;
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
    def _changed(self) -> int:
        """How many counts one unit moves, by one each."""
        return self.max_groups * self.relation.changed

    @property
    def _law(self) -> GaussianLaw:
        return GaussianLaw(self._changed / (2 * self.rho))

    @lazy
    def threshold(self) -> int:
        """A group shows iff its noisy count reaches this."""
        return 1 + gaussian_tail_threshold(self._law.variance, self.delta / self._changed)

    @lazy
    def loss(self) -> Loss:
        """What one selection costs."""
        moved = sqrt_up(Fraction(self._changed), 30)
        counts = DiscreteGaussianLoss(
            variance=moved**2 / (2 * self.rho), sensitivity=moved, relation=self.relation
        )
        shown = ApproxLoss(bound=_NOTHING, slack=self.delta, relation=self.relation)
        return compose(counts, shown)

    @traced
    def release(self, value: Mapping[Any, int]) -> list[Hashable]:
        """The groups that may be named, from the number of units in each."""
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
    """A whole t >= 1 with P(Z >= t) <= δ for discrete Gaussian noise Z.

    Terms e^(-x²/2σ²) shrink by e^(-(2x+1)/2σ²) from one to the next, so that those from t on sum
    to at most the first over 1 - e^(-(2t+1)/2σ²); the normaliser is at least max(1, σ sqrt(2π))
    (Canonne, Kamath & Steinke 2020, Fact 18).
    """

    def small(t: int) -> bool:
        with localcontext(high_precision()):
            s2 = decimal(variance)
            shrink = (-(2 * decimal(Fraction(t)) + 1) / (2 * s2)).exp()
            first = (-(decimal(Fraction(t)) ** 2) / (2 * s2)).exp()
            two_pi = decimal(Fraction(6283185307179586, 10**15))  # below 2π
            whole_sum = max(decimal(Fraction(1)), (s2 * two_pi).sqrt())
            bound = first / (1 - shrink) / whole_sum
            return bool(bound * (1 + decimal(Fraction(1, 10**30))) <= decimal(delta))

    high = 1
    while not small(high):
        high *= 2
        if high > 1 << 60:
            raise CalibrationError("no threshold hides single units under so much noise")
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if small(middle) else (middle, high)
    return high
