"""Histograms: over cells that are known, and over cells that only the data know."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from deniable.errors import PrivateValueError
from deniable.lazy import lazy
from deniable.mechanisms.base import Pairs, read_confidence, read_labels
from deniable.mechanisms.gaps import Gap, count_moves, moved_by
from deniable.mechanisms.laws import quantile, tail_threshold
from deniable.mechanisms.values import read_integer
from deniable.privacy.exact import Number, probability, whole
from deniable.privacy.losses.base import ratio
from deniable.privacy.losses.generic import ApproxLoss
from deniable.privacy.losses.laplace import DiscreteLaplaceLoss
from deniable.privacy.parameters import Parameter, Related, parameter, parameters
from deniable.privacy.units import Relation, read_relation
from deniable.randomness.noise import LaplaceLaw, noise
from deniable.trace import traced

MOST_APPEARING = 5
"""Cells that one unit brings, in suggested neighbours."""


@parameters
class Histogram:
    """Counts in known cells, each with geometric noise.

    Formal guarantee. For counts of units each of which lies in one cell:

    * one release of all cells is ε-DP: a unit added or removed moves one count by one, a unit
      replaced moves two, so the scale is 1/ε, or 2/ε under "replace" (Dwork, McSherry, Nissim &
      Smith 2006, Example 1), however many cells there are;
    * every cell is released, empty ones too; counts in other cells are ignored.

    A bare release is unledgered: the caller keeps the budget.
    """

    epsilon: Parameter[Number, Fraction] = parameter(ratio)
    cells: Parameter[Sequence[Hashable], tuple[Hashable, ...]] = parameter(read_labels)
    relation: Related = parameter(read_relation, default=Relation.ADD_REMOVE)

    def __post_init__(self) -> None:
        self._law.check()

    @property
    def _law(self) -> LaplaceLaw:
        return LaplaceLaw(self.relation.changed / self.epsilon)

    @lazy
    def loss(self) -> DiscreteLaplaceLoss:
        return DiscreteLaplaceLoss(
            scale=self._law.scale,
            sensitivity=Fraction(self.relation.changed),
            relation=self.relation,
        )

    @traced
    def release(self, value: Mapping[Any, int]) -> dict[Hashable, int]:
        """Release the counts of all cells; cells that are missing count as 0."""
        counts = read_counts(value)
        drawn = noise(self._law).many(len(self.cells)).tolist()
        return {cell: counts.get(cell, 0) + z for cell, z in zip(self.cells, drawn, strict=True)}

    def error(self, *, confidence: Number) -> int:
        """The least w for which one count's noise is within ±w with this probability."""
        return quantile(self._law, read_confidence(confidence))

    @property
    def labels(self) -> tuple[Hashable, ...]:
        return self.cells

    def gap(self, x: Any, y: Any) -> Gap:
        """The L1 norm of the difference, in the known cells."""
        before, after = read_counts(x), read_counts(y)
        moved = sum(abs(before.get(cell, 0) - after.get(cell, 0)) for cell in self.cells)
        return moved_by(moved, self.relation.changed, "counts, L1")

    def neighbours(self) -> Pairs:
        """One unit more, or in another cell."""
        first, last = self.cells[0], self.cells[-1]
        if self.relation == Relation.REPLACE:
            return [({first: 5, last: 5}, {first: 6, last: 4})]
        return [({first: 5}, {first: 6}), ({}, {last: 1})]


@parameters
class StabilityHistogram:
    """Counts in cells that nobody listed beforehand; small cells stay hidden.

    Formal guarantee. For counts of units each of which adds one to at most `max_cells` cells:

    * one release is (ε, δ)-DP (Korolova et al. 2009; Bun, Nissim & Stemmer 2016, Thm 3.5): noise of
      scale max_cells/ε (twice that under "replace") on every non-empty cell, and a cell is shown
      only if its noisy count reaches `threshold` + 1;
    * the threshold is the least whole number t with P(Z >= t) <= δ/max_cells for the noise Z that
      is drawn, so that a cell with a single unit shows with at most that probability;
    * nothing is said of cells that are not shown; those that are come in an order of their own,
      whatever the order of the data. Cells are text, whole numbers or tuples of them, which look
      the same however they were made.

    A bare release is unledgered: the caller keeps the budget.
    """

    epsilon: Parameter[Number, Fraction] = parameter(ratio)
    delta: Parameter[Number, Fraction] = parameter(probability)
    max_cells: Parameter[int, int] = parameter(whole, default=1)
    relation: Related = parameter(read_relation, default=Relation.ADD_REMOVE)

    def __post_init__(self) -> None:
        self._law.check()

    @property
    def _law(self) -> LaplaceLaw:
        return LaplaceLaw(self.max_cells * self.relation.changed / self.epsilon)

    @lazy
    def threshold(self) -> int:
        """A cell shows iff count - 1 + noise reaches this."""
        return tail_threshold(self._law, self.delta / self.max_cells)

    @lazy
    def loss(self) -> ApproxLoss:
        return ApproxLoss(bound=self.epsilon, slack=self.delta, relation=self.relation)

    @traced
    def release(self, value: Mapping[Any, int]) -> dict[Hashable, int]:
        """Release the noisy counts of the cells that are large enough to show."""
        counts: dict[Hashable, int] = {}
        for cell, count in read_counts(value).items():
            if count > 0:
                counts[_label(cell)] = count
        drawn = noise(self._law).many(len(counts)).tolist()
        noisy = {cell: count + z for (cell, count), z in zip(counts.items(), drawn, strict=True)}
        shown = {cell: count for cell, count in noisy.items() if count - 1 >= self.threshold}
        return dict(sorted(shown.items(), key=lambda item: repr(item[0])))

    def error(self, *, confidence: Number) -> int:
        """The least w for which one count's noise, before hiding, is within ±w so often."""
        return quantile(self._law, read_confidence(confidence))

    def gap(self, x: Any, y: Any) -> Gap:
        """How many cells move; one that moves by more than one unit is too much."""
        moves = count_moves(read_counts(x), read_counts(y))
        if max(moves, default=0) > 1:
            return moved_by(max(moves), 1, "one count")
        return moved_by(sum(moves), self.max_cells * self.relation.changed, "cells")

    def neighbours(self) -> Pairs:
        """A unit alone in its cells, and one who brings some of them."""
        return appearing(self.max_cells)


def appearing(most: int, each: int = 1) -> Pairs:
    """Cells that one unit alone is in, with so much in each."""
    cells = [f"cell {number}" for number in range(min(most, MOST_APPEARING))]
    common = {"a": 9 * each}
    return [({}, dict.fromkeys(cells, each)), (common, common | dict.fromkeys(cells[:-1], each))]


def read_counts(value: Any) -> dict[Hashable, int]:
    """Read counts by cell."""
    if not isinstance(value, Mapping):
        raise PrivateValueError("a histogram is released from a mapping of cells to counts")
    try:
        given = dict(value.items())
    except Exception:  # a mapping's own message may quote what it holds
        raise PrivateValueError("the counts cannot be read") from None
    counts = {cell: read_integer(count) for cell, count in given.items()}
    if any(count < 0 for count in counts.values()):
        raise PrivateValueError("counts are not negative")
    if any(count > np.iinfo(np.int64).max for count in counts.values()):
        raise PrivateValueError("counts fit 64 bits")
    return counts


def _label(cell: Hashable) -> Hashable:
    """A label without history: 1, True and 1.0 are equal but look different."""
    if isinstance(cell, tuple):
        return tuple(_label(part) for part in cell)
    if isinstance(cell, str):
        return str(cell)
    if isinstance(cell, int | np.integer) and not isinstance(cell, bool | np.timedelta64):
        return int(cell)
    raise PrivateValueError("cells are text, whole numbers or tuples of them")
