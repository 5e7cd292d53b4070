"""Rows of probabilities, two neighbours at a time: exactly in rationals, or fast in floats."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from deniable.privacy.exact import float_above

Places = tuple[tuple[int, int], ...]
Worst = tuple[Fraction | float, int, int, int]
Row = Sequence[Fraction]
Floats = npt.NDArray[np.float64]

_MOST_BENDS = 500


@dataclass(frozen=True, eq=False)
class Pairs(ABC):
    """What pairs of neighbouring rows tell; without `places` every two rows are neighbours."""

    rows: Any
    places: Places | None
    exact: ClassVar[bool]
    """Whether answers are rationals."""

    @property
    def count(self) -> int:
        """How many pairs there are."""
        n = len(self.rows)
        return n * (n - 1) // 2 if self.places is None else len(self.places)

    def ordered(self) -> Iterator[tuple[int, int]]:
        """All pairs, both ways."""
        for x, y in self.places or combinations(range(len(self.rows)), 2):
            yield x, y
            yield y, x

    @abstractmethod
    def worst(self) -> Worst:
        """The largest ratio, its output, and the rows above and below."""

    @abstractmethod
    def delta(self, ratio: Fraction) -> Fraction | float:
        """The worst sum of positive parts P - ratio·Q over ordered pairs, never rounded down."""

    @abstractmethod
    def beyond(self, ratio: Fraction) -> Fraction | float:
        """The largest probability, under either, of outputs whose ratio is above `ratio`."""

    @abstractmethod
    def tradeoff(self, alpha: Fraction) -> Fraction | float:
        """The least type-II error at this level over ordered pairs, never rounded up."""

    @abstractmethod
    def ratios(self) -> list[Fraction]:
        """Finite ratios above 1 at which a curve bends; the largest ones of very many."""

    @abstractmethod
    def as_floats(self) -> FloatPairs:
        """The same in floats, to be drawn."""


@dataclass(frozen=True, eq=False)
class RationalPairs(Pairs):
    """Exact answers, for tables of rationals."""

    rows: Sequence[Row]

    exact = True

    def worst(self) -> Worst:
        if self.places is None:
            return self._worst_of_columns()
        found: Worst = (Fraction(1), 0, *self.places[0])
        for x, y in self.ordered():
            for output, (p, q) in enumerate(zip(self.rows[x], self.rows[y], strict=True)):
                if p > 0 and q == 0:
                    return math.inf, output, x, y
                if p > found[0] * q:
                    found = p / q, output, x, y
        return found

    def _worst_of_columns(self) -> Worst:
        """With every pair a neighbour: the largest over the least of each column."""
        found: Worst = (Fraction(1), 0, 0, 1)
        rows = range(len(self.rows))
        for output, column in enumerate(zip(*self.rows, strict=True)):
            x, y = max(rows, key=column.__getitem__), min(rows, key=column.__getitem__)
            if column[x] > 0 and column[y] == 0:
                return math.inf, output, x, y
            if column[x] > found[0] * column[y]:
                found = column[x] / column[y], output, x, y
        return found

    def delta(self, ratio: Fraction) -> Fraction:
        return max(
            sum(
                (p - ratio * q for p, q in self._both(x, y) if p > ratio * q),
                Fraction(0),
            )
            for x, y in self.ordered()
        )

    def beyond(self, ratio: Fraction) -> Fraction:
        return max(
            sum((p for p, q in self._both(x, y) if p > ratio * q or q > ratio * p), Fraction(0))
            for x, y in self.ordered()
        )

    def tradeoff(self, alpha: Fraction) -> Fraction:
        return min(_type_two(list(self._both(x, y)), alpha) for x, y in self.ordered())

    def ratios(self) -> list[Fraction]:
        found = {p / q for x, y in self.ordered() for p, q in self._both(x, y) if p > q > 0}
        return sorted(found)[-_MOST_BENDS:]

    def as_floats(self) -> FloatPairs:
        return FloatPairs(np.array([[float(p) for p in row] for row in self.rows]), self.places)

    def _both(self, x: int, y: int) -> Iterator[tuple[Fraction, Fraction]]:
        return zip(self.rows[x], self.rows[y], strict=True)


def _type_two(both: list[tuple[Fraction, Fraction]], alpha: Fraction) -> Fraction:
    """Reject the outputs likeliest under Q for their probability under P, up to level alpha."""
    possible = [(p, q) for p, q in both if p or q]
    left, missed = alpha, Fraction(1)
    for p, q in sorted(possible, key=lambda pq: Fraction(pq[0], 1) / (pq[0] + pq[1])):
        if p > left:
            return missed - q * left / p
        left -= p
        missed -= q
    return missed


@dataclass(frozen=True, eq=False)
class FloatPairs(Pairs):
    """Fast answers, for tables of floats, rounded against the mechanism."""

    rows: Floats

    exact = False

    @property
    def _rounding(self) -> float:
        """How wrong a sum can be.

        Where P > ratio·Q both are at most 1: each term is wrong by a few last places of 1, and
        numpy's pairwise sum by less than one for each term.
        """
        missing = float(np.abs(self.rows.sum(axis=1) - 1).max())
        return float(self.rows.shape[1]) * 2.0**-51 + missing

    def ratios(self) -> list[Fraction]:
        found: set[float] = set()
        for x, y in self.ordered():
            ratios = _ratios(self.rows[x], self.rows[y])
            found.update(ratios[np.isfinite(ratios) & (ratios > 1)].tolist())
        return [Fraction(ratio) for ratio in sorted(found)[-_MOST_BENDS:]]

    def as_floats(self) -> FloatPairs:
        return self

    def worst(self) -> Worst:
        if self.places is None:
            high, low = self.rows.argmax(axis=0), self.rows.argmin(axis=0)
            ratios = _ratios(self.rows.max(axis=0), self.rows.min(axis=0))
            output = int(ratios.argmax())
            return _up(ratios[output]), output, int(high[output]), int(low[output])
        found: Worst = (1.0, 0, *self.places[0])
        for x, y in self.ordered():
            ratios = _ratios(self.rows[x], self.rows[y])
            output = int(ratios.argmax())
            if _up(ratios[output]) > found[0]:
                found = _up(ratios[output]), output, x, y
        return found

    def delta(self, ratio: Fraction) -> float:
        grown = float(min(ratio, Fraction(10**300)))
        with np.errstate(over="ignore"):
            raised = self.rows * grown
        found = 0.0
        if self.places is None:
            space = np.empty_like(raised)
            for row in self.rows:
                np.subtract(row, raised, out=space)
                np.maximum(space, 0.0, out=space)
                found = max(found, float(space.sum(axis=1).max()))
        else:
            for x, y in self.ordered():
                found = max(found, float(np.maximum(self.rows[x] - raised[y], 0.0).sum()))
        return min(1.0, found + self._rounding)

    def beyond(self, ratio: Fraction) -> float:
        grown = float(min(ratio, Fraction(10**300))) * (1 - 2.0**-50)
        found = 0.0
        for x, y in self.ordered():
            p, q = self.rows[x], self.rows[y]
            with np.errstate(over="ignore"):
                far = (p > grown * q) | (q > grown * p)
            found = max(found, float(p[far].sum()))
        return min(1.0, found + self._rounding)

    def tradeoff(self, alpha: Fraction) -> float:
        level = float_above(alpha)
        least = min(self._type_two(x, y, level) for x, y in self.ordered())
        return max(0.0, least - self._rounding)

    def _type_two(self, x: int, y: int, alpha: float) -> float:
        p, q = self.rows[x], self.rows[y]
        with np.errstate(invalid="ignore", divide="ignore"):
            order = np.argsort(np.where(p + q > 0, p / (p + q), 1.0), kind="stable")
        level = np.concatenate([[0.0], np.cumsum(p[order])])
        missed = 1 - np.concatenate([[0.0], np.cumsum(q[order])])
        at = int(np.searchsorted(level, alpha, side="right")) - 1
        if at == p.size:
            return float(missed[-1])
        share = (alpha - level[at]) / (level[at + 1] - level[at])
        return float(missed[at] - share * (missed[at] - missed[at + 1]))


def _ratios(p: Floats, q: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratios = p / q
    ratios[(p == 0) & (q == 0)] = 1.0
    return ratios


def _up(ratio: float) -> float:
    return float(ratio) if ratio == math.inf else float(ratio) * (1 + 2.0**-52)
