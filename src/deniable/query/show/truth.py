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
from deniable.query.plan.measures import ColumnNoise, Cross, Linear, Ratio, Spread
from deniable.query.plan.tail import UPPER_RISK, Profile, lost_rows
from deniable.query.show.beyond import Beyond

WIDE = 4.0  # times the number itself: an interval that says nothing


@dataclass(frozen=True, eq=False)
class TruthOfSum:
    """A weighted sum of statistics, with what was taken away put back."""

    measure: Linear
    x: Floats
    noise: tuple[ColumnNoise, ...]
    beyond: Beyond
    signed: bool
    """Whether a row may take away from it."""

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
        below = kept + quantile_of(low, spread, tail, gaussian=gaussian)
        above = kept + quantile_of(high, spread, 1 - UPPER_RISK * tail, gaussian=gaussian)
        silent = above - below > WIDE * np.abs(self.value())
        unknown = self.beyond.one_sided | silent
        if self.signed:  # what is lost may be on either side
            below = np.where(unknown, -math.inf, below)
        elif self.measure.positive:
            below = np.where(unknown, np.maximum(below, 0.0), below)
        return below, np.where(unknown, math.inf, above)

    def value(self) -> Floats:
        """The number that is shown."""
        made = self.x.copy()
        columns = self.beyond.likely.shape[1]
        made[:, :columns] += self.beyond.likely
        return self.measure.value(made)


@dataclass(frozen=True, eq=False)
class TruthOfRatio:
    """What is no sum: the interval of noise, and how far what was taken away could move it."""

    measure: Ratio | Spread | Cross
    x: Floats
    noise: tuple[ColumnNoise, ...]
    beyond: Beyond
    bounded: bool
    """Whether the columns it is made of have declared bounds."""

    def at(self, confidence: float) -> Interval:
        """Where the truth lies, as far as heavy units are like those that are seen.

        Where nothing tells how much is lost, almost all rows may be of units that are like no
        others: anything that bounds allow.
        """
        if self.beyond.one_sided:
            least, most = self._possible
            return np.full(len(self.x), least), np.full(len(self.x), most)
        low, high = self.measure.interval(self.x, self.noise, confidence)
        middle, tail = self.measure.value(self.x), (1 - confidence) / 2
        columns, draws = self.beyond.most.shape[1:]
        moved = np.zeros((len(self.x), draws))
        for draw in range(draws):
            made = self.x.copy()
            made[:, :columns] += self.beyond.most[:, :, draw]
            moved[:, draw] = self.measure.value(made) - middle
        moved = np.where(np.isfinite(moved), moved, 0.0)
        below, above = np.quantile(moved, [tail, 1 - UPPER_RISK * tail], axis=1)
        least, most = self.measure.reach
        return (
            np.clip(low + np.minimum(below, 0.0), least, most),
            np.clip(high + np.maximum(above, 0.0), least, most),
        )

    @property
    def _possible(self) -> tuple[float, float]:
        """Where it lies whatever the data are."""
        if self.bounded or (isinstance(self.measure, Cross) and self.measure.squares is not None):
            return self.measure.reach
        return (0.0 if isinstance(self.measure, Spread) else -math.inf), math.inf


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
class TruthOfDistinct:
    """Counts of different values, of each unit so many only: no more are lost than rows."""

    before: Ends
    profile: Profile
    rows: int
    cap: int | None
    weights: tuple[float, ...]
    """Of a weighted sum of such counts; none of anything else, of which nothing is told."""

    def at(self, confidence: float) -> Interval:
        """The interval of noise, and beyond it what may be lost; open where nothing tells, or all.

        A value is lost if every row that has it is; any of them may be in this group.
        """
        low, high = self.before.at(confidence)
        if not self.weights:
            return np.full_like(low, -math.inf), np.full_like(high, math.inf)
        found = lost_rows(self.profile, self.rows, self.cap, confidence)
        lost = math.inf if found is None else found
        rises = sum(weight for weight in self.weights if weight > 0)
        falls = -sum(weight for weight in self.weights if weight < 0)
        above = high + lost * rises if rises else high
        below = low - lost * falls if falls else low
        silent = above - below > WIDE * np.abs((low + high) / 2)
        if rises:
            above = np.where(silent, math.inf, above)
        return (np.where(silent, -math.inf, below) if falls else below), above


def quantile_of(draws: Floats, spread: float, level: float, *, gaussian: bool) -> Floats:
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
