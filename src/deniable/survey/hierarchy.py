"""Ranges and quantiles: a tree over the categories, of which each person reports one level."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from deniable.errors import ParameterError, ReportError
from deniable.lazy import lazy
from deniable.mechanisms.share_intervals import quantile
from deniable.privacy.exact import Number, probability, whole
from deniable.privacy.parameters import Parameter, parameter, parameters
from deniable.survey.answers import Answers, Integers, read_answers, read_size, within
from deniable.survey.best import best_protocol
from deniable.survey.frequency import Frequency
from deniable.survey.several import Drawn, ReportParts, SampleOne
from deniable.survey.shares import ShareEstimate, Tally
from deniable.survey.thresholds import read_epsilon
from deniable.trace import traced

Floats = npt.NDArray[np.float64]

_TYPICAL = 100_000


@parameters
class Hierarchy(Drawn):
    """Shares of all ranges of k ordered categories, from a tree of the given branching.

    Formal guarantee: each person draws a level without looking at the answer and reports its node
    there with all of ε, so that one report is ε-DP (Cormode, Kulkarni & Srivastava 2019). A range
    is a sum of at most 2 (branching - 1) log k nodes, each estimated without bias.
    """

    kind: ClassVar[str] = "hierarchy"
    k: int = parameter(partial(read_size, most=1 << 20))
    epsilon: Parameter[Number, Fraction] = parameter(read_epsilon)
    branching: int = parameter(within(2, 64), default=4)

    @lazy
    def widths(self) -> tuple[int, ...]:
        """How many categories a node of each level spans, from the top: the root is left out."""
        height = 1
        while self.branching**height < self.k:
            height += 1
        return tuple(self.branching ** (height - level) for level in range(1, height + 1))

    @lazy
    def drawn(self) -> SampleOne:
        """One protocol for each level."""
        sizes = [-(-self.k // width) for width in self.widths]
        return SampleOne(tuple(best_protocol(size, self.epsilon, _TYPICAL) for size in sizes))

    @traced
    def randomize(self, values: Answers) -> ReportParts:
        """The reports of each level, by those who drew it."""
        truth = read_answers(values, self.k)
        return self.drawn.randomize([truth // width for width in self.widths])

    def aggregate(self, reports: ReportParts) -> HierarchyEstimate:
        """Check all reports, then estimate every node."""
        tallies = self.drawn.aggregate(reports)
        found = [tally.estimate() for tally in tallies if isinstance(tally, Tally)]
        if len(found) != len(self.widths):
            raise ReportError("some level has no report; more people are needed")
        return HierarchyEstimate(self, tuple(found))


@dataclass(frozen=True, eq=False)
class HierarchyEstimate:
    """Estimated nodes of all levels, from the top."""

    hierarchy: Hierarchy
    levels: tuple[ShareEstimate, ...]

    def range(self, low: int, high: int) -> tuple[float, float]:
        """The share of low <= category < high, unbiased, and its standard error."""
        k = self.hierarchy.k
        if not 0 <= whole(low, "low", least=0) < whole(high, "high") <= k:
            raise ParameterError("low, high", (low, high), f"must rise within 0 and {k}")
        if (low, high) == (0, k):
            return 1.0, 0.0
        share = variance = 0.0
        for level, node in self._nodes(low, high):
            share += float(self.levels[level].shares[node])
            # Nodes of one level are not positively correlated: the sum is an upper bound.
            variance += float(self.levels[level].standard_errors[node]) ** 2
        return share, math.sqrt(variance)

    def _nodes(self, low: int, high: int) -> list[tuple[int, int]]:
        """The fewest nodes that make up a range; one that reaches k ends with the last node."""
        k, widths = self.hierarchy.k, self.hierarchy.widths
        found, at = [], low
        while at < high:
            for level, width in enumerate(widths):
                if at % width == 0 and (at + width <= high or (high == k and at + width > k)):
                    found.append((level, at // width))
                    at += width
                    break
        return found

    def quantile(self, q: Number, *, confidence: Number = 0.95) -> tuple[int, int, int]:
        """The least category at or below which a share q lies, with an interval (low, high).

        Read from the distribution function after least squares on the tree (Hay et al. 2010) and
        a running maximum; the interval from the errors of the ranges that start at 0.
        """
        wanted, width = float(probability(q, "q")), quantile(confidence)
        last = self.hierarchy.k - 1
        rising = np.maximum.accumulate(np.cumsum(self.consistent()))
        middle = min(int(np.searchsorted(rising, wanted)), last)
        shares, errors = self._from_zero()
        below, above = (shares + side * width * errors >= wanted for side in (1, -1))
        low, high = int(np.argmax(below)), _first_lasting(above)
        return middle, min(low, middle), max(high, middle)

    def _from_zero(self) -> tuple[Floats, Floats]:
        """`range(0, end)` for every end, at once: the nodes left of it on each level."""
        ends = np.arange(1, self.hierarchy.k + 1)
        shares, variances = np.zeros(ends.size), np.zeros(ends.size)
        for level, width in zip(self.levels, self.hierarchy.widths, strict=True):
            node = ends // width
            first = ends // (width * self.hierarchy.branching) * self.hierarchy.branching
            shares += _between(level.shares, first, node)
            variances += _between(level.standard_errors**2, first, node)
        shares[-1], variances[-1] = 1.0, 0.0
        return shares, np.sqrt(variances)

    def consistent(self) -> Floats:
        """Shares of the categories after least squares on the tree: unbiased, they sum to 1.

        Upwards, a node is combined with the sum of its children, each weighted by its precision;
        downwards, what is missing is handed out by variance (Hay et al. 2010, Section 4.2, with
        the variances of the levels).
        """
        b = self.hierarchy.branching
        merged: list[Floats] = []
        spread: list[Floats] = []
        for number in reversed(range(len(self.levels))):
            level, part = self.levels[number], self.hierarchy.drawn.parts[number]
            assert isinstance(part, Frequency)
            best, variance = level.shares, np.full(level.shares.size, part.variance(level.n))
            if merged:
                parents = np.arange(merged[-1].size) // b
                below = np.bincount(parents, merged[-1])
                weight = (noise := np.bincount(parents, spread[-1])) / (noise + variance)
                best = weight * best + (1 - weight) * below
                variance = weight * variance
            merged.append(best)
            spread.append(variance)
        above = np.array([1.0])
        for best, variance in zip(reversed(merged), reversed(spread), strict=True):
            parents = np.arange(best.size) // (b if above.size > 1 else best.size)
            rest = (above - np.bincount(parents, best)) / np.bincount(parents, variance)
            above = best + variance * rest[parents]
        return above


def _between(values: Floats, first: Integers, last: Integers) -> Floats:
    """The sums of values[first:last]."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    found: Floats = sums[last] - sums[np.minimum(first, values.size)]
    return found


def _first_lasting(holds: npt.NDArray[np.bool_]) -> int:
    """The first place from which on it holds to the end."""
    return int(np.flatnonzero(~holds)[-1]) + 1 if not holds.all() else 0
