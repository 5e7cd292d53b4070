"""Choosing which groups may be named: those with enough units, under noise."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from fractions import Fraction
from typing import Any

from deniable.errors import PrivateValueError
from deniable.lazy import lazy
from deniable.mechanisms.base import Pairs
from deniable.mechanisms.gaps import Gap, count_moves, moved_by
from deniable.mechanisms.histogram import MOST_APPEARING, appearing, read_counts
from deniable.mechanisms.laws import gaussian_tail_is_small, tail_threshold
from deniable.privacy.composition import compose
from deniable.privacy.exact import Number, positive, probability, sqrt_up, whole
from deniable.privacy.losses.base import Loss
from deniable.privacy.losses.gaussian import DiscreteGaussianLoss
from deniable.privacy.losses.generic import only_delta
from deniable.privacy.parameters import Parameter, Related, parameter, parameters
from deniable.privacy.units import Relation, read_relation
from deniable.randomness.noise import GaussianLaw, noise
from deniable.trace import traced

WEIGHT = 1 << 16
"""Steps that a unit of one group adds to it."""


def weight(groups: int) -> int:
    """Steps that a unit adds to each of so many groups: ⌊2^16/√g⌋, so that their norm is 2^16."""
    return math.isqrt(WEIGHT**2 // groups)


@parameters
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

    rho: Parameter[Number, Fraction] = parameter(positive)
    delta: Parameter[Number, Fraction] = parameter(probability)
    max_groups: Parameter[int, int] = parameter(whole)
    relation: Related = parameter(read_relation, default=Relation.ADD_REMOVE)

    def __post_init__(self) -> None:
        self._law.check()
        _ = self.threshold

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
            return weight(least) + tail_threshold(GaussianLaw(variance), each / most)

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

    def gap(self, x: Any, y: Any) -> Gap:
        """The L2 norm of what moves, in as many groups as a unit may be in."""
        moves, changed = count_moves(read_counts(x), read_counts(y)), self.relation.changed
        if len(moves) > self.max_groups * changed:
            return moved_by(len(moves), self.max_groups * changed, "groups")
        squares = Fraction(sum(move**2 for move in moves))
        return moved_by(sqrt_up(squares, 30), sqrt_up(Fraction(changed * WEIGHT**2), 30), "weights")

    def neighbours(self) -> Pairs:
        """A unit alone in its groups, one who brings some, and one at the threshold."""
        level, many = self.threshold, min(self.max_groups, MOST_APPEARING)
        return [*appearing(many, weight(many)), ({"a": level}, {"a": level - WEIGHT})]
