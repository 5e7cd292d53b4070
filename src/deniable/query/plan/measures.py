"""Answers computed from noisy statistics, and the intervals in which their exact values lie.

`x` holds one row a group and one column a statistic, `noise` the law of each column.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from sqlglot import exp

from deniable.intervals import Floats, Interval, Normal, normal_quantile
from deniable.mechanisms.base import read_confidence
from deniable.mechanisms.laws import AdditiveLaw, quantile
from deniable.randomness.noise import GaussianLaw


@dataclass(frozen=True)
class ColumnNoise:
    """The noise on one statistic: its standard deviation, and its law in whole steps.

    There are `steps` to one. Without a law, nothing is known.
    """

    deviation: float
    law: AdditiveLaw | None
    steps: int = 1

    @property
    def gaussian(self) -> bool:
        """Whether sums of such noise are normal, nearly."""
        return isinstance(self.law, GaussianLaw)

    def half_width(self, confidence: float) -> float:
        """A w for which the noise is within ±w with this probability."""
        if self.law is None:
            return math.nan
        return quantile(self.law, read_confidence(confidence)) / self.steps


class Measure(Protocol):
    """One aggregate."""

    def value(self, x: Floats) -> Floats:
        """The estimate, group by group."""

    def interval(self, x: Floats, noise: Sequence[ColumnNoise], confidence: float) -> Interval:
        """Where the exact value lies, as far as noise is concerned."""

    def columns(self) -> tuple[int, ...]:
        """The statistics it reads."""


@dataclass(frozen=True)
class Linear:
    """A weighted sum of statistics: COUNT, SUM and what is made of them by + - and constants.

    `row` tells what one row adds, at least and at most, where that is known.
    """

    terms: tuple[tuple[int, float], ...]
    constant: float = 0.0
    row: tuple[float, float] | None = None
    positive: bool = False
    """Whether it cannot be below 0: `row` allows for rounding."""

    def value(self, x: Floats) -> Floats:
        """The weighted sum."""
        total = np.full(len(x), self.constant)
        for column, weight in self.terms:
            total = total + weight * x[:, column]
        return total

    def half_width(self, noise: Sequence[ColumnNoise], confidence: float) -> float:
        """Exact for one statistic; normal for Gaussian sums; Laplace sums by a union bound."""
        used = [(noise[column], abs(weight)) for column, weight in self.terms if weight]
        if len(used) == 1:
            return used[0][1] * used[0][0].half_width(confidence)
        if all(law.gaussian for law, _ in used):
            spread = math.sqrt(sum((law.deviation * weight) ** 2 for law, weight in used))
            return spread * normal_quantile(confidence)
        each = 1 - (1 - confidence) / max(1, len(used))
        return sum(weight * law.half_width(each) for law, weight in used)

    def deviation(self, noise: Sequence[ColumnNoise]) -> float:
        """The standard deviation of the estimate."""
        return math.sqrt(sum((noise[c].deviation * w) ** 2 for c, w in self.terms))

    def interval(self, x: Floats, noise: Sequence[ColumnNoise], confidence: float) -> Interval:
        """The estimate, give or take."""
        middle, wide = self.value(x), self.half_width(noise, confidence)
        return middle - wide, middle + wide

    def columns(self) -> tuple[int, ...]:
        """The statistics it reads."""
        return tuple(column for column, weight in self.terms if weight)

    def plus(self, other: Linear, sign: float = 1.0) -> Linear:
        """The sum, or difference, of two."""
        weights: dict[int, float] = dict(self.terms)
        for column, weight in other.terms:
            weights[column] = weights.get(column, 0.0) + sign * weight
        row = None
        if self.row is not None and other.row is not None:
            least, most = sorted((sign * other.row[0], sign * other.row[1]))
            row = (self.row[0] + least, self.row[1] + most)
        return Linear(tuple(weights.items()), self.constant + sign * other.constant, row)

    def times(self, factor: float) -> Linear:
        """A multiple."""
        row = None
        if self.row is not None:
            least, most = sorted((factor * self.row[0], factor * self.row[1]))
            row = (least, most)
        terms = tuple((column, factor * weight) for column, weight in self.terms)
        return Linear(terms, factor * self.constant, row)

    def total(
        self, x: Floats, noise: Sequence[ColumnNoise], confidence: float, lost: float
    ) -> Interval:
        """Where the value lies that nothing was cut off of, `lost` rows at most being missing."""
        low, high = self.interval(x, noise, confidence)
        if self.row is None:
            return np.full(len(x), -math.inf), np.full(len(x), math.inf)
        return low + min(self.row[0], 0.0) * lost, high + max(self.row[1], 0.0) * lost


@dataclass(frozen=True)
class Ratio:
    """offset + top/bottom, kept within public bounds: AVG, and shares of aggregates.

    The interval is Fieller's: all r for which top - r·bottom is no farther from 0 than its own
    noise reaches. It covers exactly as often as is said where the noise is normal, and is
    everything where the bottom may be 0.
    """

    top: Linear
    bottom: Linear
    offset: float = 0.0
    low: float = -math.inf
    high: float = math.inf

    @property
    def reach(self) -> tuple[float, float]:
        """Where it lies for any rows within their bounds."""
        return self.low, self.high

    def value(self, x: Floats) -> Floats:
        """The ratio; the middle of the bounds where the bottom is no positive number."""
        over, under = self.top.value(x), self.bottom.value(x)
        fallback = (self.low + self.high) / 2 if math.isfinite(self.low + self.high) else math.nan
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(under == 0, math.nan, over / under) + self.offset
        if math.isfinite(self.low + self.high):
            ratio = np.where(under <= 0, fallback, ratio)
        return np.clip(ratio, self.low, self.high)

    def interval(self, x: Floats, noise: Sequence[ColumnNoise], confidence: float) -> Interval:
        """Fieller's interval."""
        a, b = self.top.value(x), self.bottom.value(x)
        if all(noise[c].gaussian for c in (*self.top.columns(), *self.bottom.columns())):
            low, high = _fieller((a, b), self._moments(noise), normal_quantile(confidence))
        else:
            low, high = self._corners(a, b, noise, confidence)
        return (
            np.clip(low + self.offset, self.low, self.high),
            np.clip(high + self.offset, self.low, self.high),
        )

    def _moments(self, noise: Sequence[ColumnNoise]) -> tuple[float, float, float]:
        top, bottom = dict(self.top.terms), dict(self.bottom.terms)
        shared = sum(
            top[c] * bottom[c] * noise[c].deviation ** 2 for c in top.keys() & bottom.keys()
        )
        return self.top.deviation(noise) ** 2, self.bottom.deviation(noise) ** 2, shared

    def _corners(
        self, a: Floats, b: Floats, noise: Sequence[ColumnNoise], confidence: float
    ) -> Interval:
        """For other noise: both within their half-widths, by a union bound."""
        each = 1 - (1 - confidence) / 2
        wide, deep = self.top.half_width(noise, each), self.bottom.half_width(noise, each)
        with np.errstate(divide="ignore", invalid="ignore"):
            corners = np.stack([(a + i * wide) / (b + j * deep) for i in (-1, 1) for j in (-1, 1)])
        unknown = np.abs(b) <= deep
        low = np.where(unknown, -math.inf, corners.min(axis=0))
        return low, np.where(unknown, math.inf, corners.max(axis=0))

    def total(
        self, x: Floats, noise: Sequence[ColumnNoise], confidence: float, lost: float
    ) -> Interval:
        """The corners of both totals; all that is possible where the bottom may be 0."""
        each = 1 - (1 - confidence) / 2
        over = self.top.total(x, noise, each, lost)
        under = self.bottom.total(x, noise, each, lost)
        with np.errstate(divide="ignore", invalid="ignore"):
            corners = np.stack([a / b for a in over for b in under]) + self.offset
        known = (under[0] > 0) & np.isfinite(corners).all(axis=0)
        low = np.where(known, corners.min(axis=0), self.low)
        high = np.where(known, corners.max(axis=0), self.high)
        return np.clip(low, self.low, self.high), np.clip(high, self.low, self.high)

    def columns(self) -> tuple[int, ...]:
        """The statistics it reads."""
        return tuple(dict.fromkeys((*self.top.columns(), *self.bottom.columns())))


@dataclass(frozen=True)
class Spread:
    """VARIANCE or STDDEV, of the population or the sample, from centred moments.

    With e = mean of (x - c) and q = mean of (x - c)², the variance is q - e². `unit` turns grid
    steps into the column's unit; the interval is linearised, which holds where n is large.
    """

    squares: Linear
    sums: Linear
    count: Linear
    correction: float
    sample: bool
    root: bool
    most: float

    @property
    def reach(self) -> tuple[float, float]:
        """Where it lies for any rows within their bounds."""
        return 0.0, math.sqrt(self.most) if self.root else self.most

    def value(self, x: Floats) -> Floats:
        """The variance or its root, within what is possible."""
        return self._shown(self._variance(x))

    def _variance(self, x: Floats) -> Floats:
        n = np.maximum(self.count.value(x), 1.0)
        variance = self.squares.value(x) / n - (self.sums.value(x) / n) ** 2 - self.correction
        return variance * n / np.maximum(n - 1, 1.0) if self.sample else variance

    def _shown(self, variance: Floats) -> Floats:
        inside = np.clip(variance, 0.0, self.most)
        return np.sqrt(inside) if self.root else inside

    def interval(self, x: Floats, noise: Sequence[ColumnNoise], confidence: float) -> Interval:
        """Linearised; everything where there may be nobody."""
        low, high = linearised(self._variance, x, noise, self.columns()).at(confidence)
        few = self.count.value(x) <= 2 * self.count.half_width(noise, confidence)
        return (
            self._shown(np.where(few, 0.0, low)),
            self._shown(np.where(few, self.most, high)),
        )

    def columns(self) -> tuple[int, ...]:
        """The statistics it reads."""
        each = (self.squares.columns(), self.sums.columns(), self.count.columns())
        return tuple(dict.fromkeys(column for part in each for column in part))


@dataclass(frozen=True)
class Cross:
    """COVAR, or with `squares` CORR, from centred moments of two columns; intervals linearised."""

    products: Linear
    sums: tuple[Linear, Linear]
    count: Linear
    squares: tuple[Linear, Linear] | None
    sample: bool
    most: float
    corrections: tuple[float, float] = (0.0, 0.0)
    """What coarse steps add to the variance of each column (Sheppard)."""

    def value(self, x: Floats) -> Floats:
        """The covariance or correlation, within what is possible."""
        return np.clip(self._free(x), -self._most, self._most)

    @property
    def _most(self) -> float:
        return self.most if self.squares is None else 1.0

    @property
    def reach(self) -> tuple[float, float]:
        """Where it lies for any rows within their bounds."""
        return -self._most, self._most

    def _free(self, x: Floats) -> Floats:
        n = np.maximum(self.count.value(x), 1.0)
        means = [each.value(x) / n for each in self.sums]
        covariance = self.products.value(x) / n - means[0] * means[1]
        if self.squares is None:
            return covariance * n / np.maximum(n - 1, 1.0) if self.sample else covariance
        spread = [
            np.maximum(square.value(x) / n - mean**2 - added, 0.0)
            for square, mean, added in zip(self.squares, means, self.corrections, strict=True)
        ]
        scale = np.sqrt(spread[0] * spread[1])
        return np.where(scale > 0, covariance / np.where(scale > 0, scale, 1.0), 0.0)

    def interval(self, x: Floats, noise: Sequence[ColumnNoise], confidence: float) -> Interval:
        """Linearised; everything where there may be nobody."""
        low, high = linearised(self._free, x, noise, self.columns()).at(confidence)
        few = self.count.value(x) <= 2 * self.count.half_width(noise, confidence)
        low, high = np.where(few, -math.inf, low), np.where(few, math.inf, high)
        return np.clip(low, -self._most, self._most), np.clip(high, -self._most, self._most)

    def columns(self) -> tuple[int, ...]:
        """The statistics it reads."""
        parts = [self.products, *self.sums, self.count, *(self.squares or ())]
        return tuple(dict.fromkeys(column for part in parts for column in part.columns()))


@dataclass(frozen=True)
class Located:
    """A quantile: its value, and the ends of an interval that was bought with it, side by side."""

    WIDTH: ClassVar[int] = 3
    CONFIDENCE: ClassVar[float] = 0.95

    place: int
    low: float
    high: float
    estimated: bool = False
    """Whether these bounds were estimated: what lies there may lie anywhere beyond."""

    def value(self, x: Floats) -> Floats:
        """What was released."""
        return x[:, self.place]

    def interval(self, x: Floats, noise: Sequence[ColumnNoise], confidence: float) -> Interval:
        """The interval that was bought; the public bounds where more is asked of it."""
        del noise
        ends = x[:, self.place + 1], x[:, self.place + 2]
        if confidence > self.CONFIDENCE:
            ends = np.full(len(x), self.low), np.full(len(x), self.high)
        if not self.estimated:
            return ends
        below = np.where(ends[0] <= self.low, -math.inf, ends[0])
        return below, np.where(ends[1] >= self.high, math.inf, ends[1])

    def columns(self) -> tuple[int, ...]:
        """The released value."""
        return (self.place,)


def linearised(
    function: Callable[[Floats], Floats],
    x: Floats,
    noise: Sequence[ColumnNoise],
    columns: Sequence[int],
) -> Normal:
    """Approximate intervals: each statistic moved by its deviation, moves added as squares.

    Where noise is Laplace its tails are heavier than normal ones, and those of no sum are heavier.
    """
    middle, square = function(x), np.zeros(len(x))
    for column in columns:
        moved = []
        for sign in (-1, 1):
            shifted = x.copy()
            shifted[:, column] += sign * noise[column].deviation
            moved.append(function(shifted))
        with np.errstate(invalid="ignore", over="ignore"):
            half = (moved[1] - moved[0]) / 2
            square = square + np.where(np.isfinite(half), half, math.inf) ** 2
    known = np.isfinite(middle)
    gaussian = all(noise[column].gaussian for column in columns)
    return Normal(middle, np.where(known, np.sqrt(square), math.inf), gaussian)


def _fieller(
    means: tuple[Floats, Floats], moments: tuple[float, float, float], z: float
) -> Interval:
    """{r : (a - r b)² <= z² (va - 2 r vab + r² vb)}; everything where that is not an interval."""
    (a, b), (va, vb, vab) = means, moments
    lead = b**2 - z**2 * vb
    middle = a * b - z**2 * vab
    last = a**2 - z**2 * va
    under = middle**2 - lead * last
    known = (lead > 0) & (under >= 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        root = np.sqrt(np.maximum(under, 0.0))
        low, high = (middle - root) / lead, (middle + root) / lead
    return np.where(known, low, -math.inf), np.where(known, high, math.inf)


def linear_form(node: exp.Expr, measures: Sequence[Measure]) -> Linear | None:
    """An expression of measures as a weighted sum of statistics, if it is one."""
    if isinstance(node, exp.Paren):
        return linear_form(node.this, measures)
    if isinstance(node, exp.Column):
        found = _measure(node, measures)
        return found if isinstance(found, Linear) else None
    if isinstance(node, exp.Literal) and not node.is_string:
        return Linear((), float(node.name))
    if isinstance(node, exp.Neg):
        inner = linear_form(node.this, measures)
        return None if inner is None else inner.times(-1.0)
    if not isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Div):
        return None
    left, right = linear_form(node.left, measures), linear_form(node.right, measures)
    if left is None or right is None:
        return None
    if isinstance(node, exp.Add | exp.Sub):
        return left.plus(right, 1.0 if isinstance(node, exp.Add) else -1.0)
    if isinstance(node, exp.Mul) and not (left.columns() and right.columns()):
        factor, rest = (left, right) if not left.columns() else (right, left)
        return rest.times(factor.constant)
    if isinstance(node, exp.Div) and not right.columns() and right.constant:
        return left.times(1 / right.constant)
    return None


def measure_form(node: exp.Expr, measures: Sequence[Measure]) -> Measure | None:
    """A measure whose interval is known, for a column of the answer; None for other expressions."""
    if isinstance(node, exp.Paren):
        return measure_form(node.this, measures)
    if isinstance(node, exp.Column):
        return _measure(node, measures)
    straight = linear_form(node, measures)
    if straight is not None:
        return straight
    if isinstance(node, exp.Div):
        top, bottom = linear_form(node.left, measures), linear_form(_divisor(node), measures)
        if top is not None and bottom is not None and bottom.columns():
            return Ratio(top, bottom)
    return None


def _measure(node: exp.Column, measures: Sequence[Measure]) -> Measure | None:
    """One of m0, m1, ...; other columns are groups."""
    return measures[int(node.name[1:])] if node.name[0] == "m" else None


def _divisor(node: exp.Div) -> exp.Expr:
    right = node.right
    while isinstance(right, exp.Nullif | exp.Paren):
        right = right.this
    return right
