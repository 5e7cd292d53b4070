"""Intervals about the truth: plain SQL on clamped values, no row cut.

Noise and what a bound took away together. Counts and sums have what was taken put back; means and
other ratios need no such thing, and are only less certain by it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from deniable.intervals import Ends, Floats, Interval
from deniable.query.plan.measures import ColumnNoise, Linear, Measure
from deniable.query.show.beyond import Beyond

_UPPER = 0.6  # of a tail's chance, for upper ends: bounds are chosen where draws look good
_WIDE = 4.0  # times the number itself: an interval that says nothing


@dataclass(frozen=True, eq=False)
class TruthOfSum:
    """A weighted sum of statistics, with what was taken away put back."""

    measure: Linear
    x: Floats
    noise: tuple[ColumnNoise, ...]
    beyond: Beyond

    def at(self, confidence: float) -> Interval:
        """Where the truth lies; above is open where nothing is known of the heaviest."""
        kept = self.measure.value(self.x)
        draws = self.beyond.most.shape[-1]
        low, high = np.zeros((len(kept), draws)), np.zeros((len(kept), draws))
        for column, weight in self.measure.terms:
            if column < self.beyond.most.shape[1]:
                ends = weight * self.beyond.least[:, column], weight * self.beyond.most[:, column]
                low, high = low + np.minimum(*ends), high + np.maximum(*ends)
        spread, tail = self.measure.deviation(self.noise), (1 - confidence) / 2
        gaussian = all(self.noise[column].gaussian for column in self.measure.columns())
        below = kept + _quantile(low, spread, tail, gaussian=gaussian)
        above = kept + _quantile(high, spread, 1 - _UPPER * tail, gaussian=gaussian)
        silent = above - below > _WIDE * np.abs(self.value())
        unknown = self.beyond.one_sided | silent
        if self._is_signed:  # what is lost may be on either side
            below = np.where(unknown, -math.inf, below)
        return below, np.where(unknown, math.inf, above)

    @property
    def _is_signed(self) -> bool:
        """Whether a row may take away from it, by more than rounding."""
        if self.measure.row is None:
            return True
        low, high = self.measure.row
        return low < -1e-3 * high

    def value(self) -> Floats:
        """The number that is shown."""
        made = self.x.copy()
        columns = self.beyond.likely.shape[1]
        made[:, :columns] += self.beyond.likely
        return self.measure.value(made)


@dataclass(frozen=True, eq=False)
class TruthOfRatio:
    """What is no sum: the interval of noise, and how far what was taken away could move it."""

    measure: Measure
    x: Floats
    noise: tuple[ColumnNoise, ...]
    beyond: Beyond

    def at(self, confidence: float) -> Interval:
        """Where the truth lies, as far as heavy units are like those that are seen."""
        low, high = self.measure.interval(self.x, self.noise, confidence)
        middle, tail = self.measure.value(self.x), (1 - confidence) / 2
        columns, draws = self.beyond.most.shape[1:]
        moved = np.zeros((len(self.x), draws))
        for draw in range(draws):
            made = self.x.copy()
            made[:, :columns] += self.beyond.most[:, :, draw]
            moved[:, draw] = self.measure.value(made) - middle
        moved = np.where(np.isfinite(moved), moved, 0.0)
        below, above = np.quantile(moved, [tail, 1 - _UPPER * tail], axis=1)
        return low + np.minimum(below, 0.0), high + np.maximum(above, 0.0)


@dataclass(frozen=True, eq=False)
class Moved:
    """Intervals of arithmetic on noisy numbers, widened to where it would be with what was lost."""

    before: Ends
    below: Floats
    above: Floats

    def at(self, confidence: float) -> Interval:
        """The interval of noise, and how far what was taken away moves the number."""
        low, high = self.before.at(confidence)
        return low - self.below, high + self.above


@dataclass(frozen=True, eq=False)
class AtLeast:
    """Lower ends alone: some of what is counted was left out, and nothing tells how much."""

    before: Ends

    def at(self, confidence: float) -> Interval:
        """The lower ends of noise; above is open."""
        low, _ = self.before.at(confidence)
        return low, np.full_like(low, math.inf)


def _quantile(draws: Floats, spread: float, level: float, *, gaussian: bool) -> Floats:
    """Quantiles of draws plus noise, row by row, by bisection of the mixture's distribution."""
    far = 12 * spread + 1e-9
    low, high = draws.min(axis=1) - far, draws.max(axis=1) + far
    for _ in range(60):
        middle = (low + high) / 2
        apart = (middle[:, None] - draws) / max(spread, 1e-300)
        inside = (ndtr(apart) if gaussian else _laplace(apart)).mean(axis=1) < level
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    return np.asarray((low + high) / 2)


def _laplace(deviations: Floats) -> Floats:
    """The distribution of Laplace noise; a sum of several has tails that are no heavier."""
    scaled = math.sqrt(2) * np.clip(deviations, -700, 700)
    far = np.exp(-np.abs(scaled)) / 2
    return np.asarray(np.where(scaled < 0, far, 1 - far))
