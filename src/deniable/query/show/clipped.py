"""Intervals about the truth where `max_rows` was declared: what it cut off lies within them.

Noise, and the rows that people beyond the declared number have besides, by the draws of
`plan.above`. Where those are, nobody asked: all of them may be in one group. Everything here is
post-processing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from sqlglot import exp

from deniable.intervals import Ends, Floats, Interval
from deniable.query.plan.above import Above
from deniable.query.plan.measures import ColumnNoise, Linear, Measure
from deniable.query.plan.plan import Plan
from deniable.query.price.price import Priced
from deniable.query.price.profile import single
from deniable.query.show.ends import Measured
from deniable.query.show.truth import WIDE, quantile_of

FEW = 0.02  # of the people: if no more are beyond, rows that are lost are taken to be like others
_HIGH = 0.975


@dataclass(frozen=True, eq=False)
class Clipped:
    """What a declared bound cut off, as far as noisy bins tell."""

    above: Above
    restores: bool
    """Whether the one number that is shown lacks just what was cut off, which is put back."""
    counts: int | None
    """The statistic that counts rows, if there is one."""
    row: float = 1.0
    """What one row can move the norm by, over what a count of it does."""

    @property
    def people(self) -> float:
        """How many people have more rows, at most (97.5 %)."""
        return float(np.quantile(self.above.lost.beyond, _HIGH))

    @property
    def is_seldom(self) -> bool:
        """Whether so few people are beyond that their rows are taken to be like the others."""
        return not self.above.unknown and self.people <= FEW * self.above.units

    @property
    def nothing(self) -> bool:
        """Whether no draw has anybody beyond."""
        return not self.above.unknown and not self.above.lost.most.any()

    @property
    def likely(self) -> float:
        """How many rows are put back: what is seen of those that are lost."""
        if not self.restores or self.above.unknown:
            return 0.0
        return float(np.median(self.above.lost.least))

    def most(self, confidence: float) -> float:
        """How many rows are lost, at most."""
        return self.row * float(np.quantile(self.above.lost.most, confidence))


@dataclass(frozen=True, eq=False)
class ClippedSum:
    """A count or sum, with the rows that were cut off."""

    measure: Linear
    x: Floats
    noise: tuple[ColumnNoise, ...]
    clipped: Clipped

    def at(self, confidence: float) -> Interval:
        """Where the truth lies; open on a side where nothing bounds what is lost."""
        low, high = self.measure.interval(self.x, self.noise, confidence)
        if self.clipped.nothing or not self.measure.columns():
            return low, high
        row = (-math.inf, math.inf) if self.measure.row is None else self.measure.row
        if self.clipped.above.unknown or not math.isfinite(row[1] - row[0]):
            return self._open(low, high, *row)
        kept, tail = self.measure.value(self.x), (1 - confidence) / 2
        if self.clipped.restores:
            lost = self.clipped.above.lost
            low, high = kept + self._end(lost.least, tail), kept + self._end(lost.most, 1 - tail)
        else:
            least, most = self._each(row)
            middle, far = self.clipped.most(0.5), self.clipped.most(1 - tail)
            wide = self.measure.half_width(self.noise, confidence)
            low = kept + least * middle - np.hypot(wide, least * (far - middle))
            high = kept + most * middle + np.hypot(wide, most * (far - middle))
        silent = high - low > WIDE * np.abs(kept + self.clipped.likely)
        opened = self._open(low, high, *row)
        return np.where(silent, opened[0], low), np.where(silent, opened[1], high)

    def expected(self, confidence: float) -> float:
        """How far the farther end will be from the number that is shown, with what is put back."""
        lost, tail = self.clipped.above.lost, (1 - confidence) / 2
        low, high = self._end(lost.least, tail), self._end(lost.most, 1 - tail)
        return max(high - self.clipped.likely, self.clipped.likely - low)

    def _each(self, row: tuple[float, float]) -> tuple[Floats, Floats]:
        """What one row that is lost adds, at least and at most.

        Anything that bounds allow; where few people are beyond, no more than kept rows do on
        average, which is what the label says.
        """
        least, most = (np.full(len(self.x), end) for end in (min(row[0], 0.0), max(row[1], 0.0)))
        if self.clipped.counts is None or not self.clipped.is_seldom:
            return least, most
        rows = np.maximum(self.x[:, self.clipped.counts], 1.0)
        usual = (np.abs(self.measure.value(self.x)) + self.measure.deviation(self.noise)) / rows
        return np.maximum(least, -usual), np.minimum(most, usual)

    def _end(self, draws: Floats, level: float) -> float:
        """A quantile of what is lost and noise together."""
        spread = self.measure.deviation(self.noise)
        gaussian = all(self.noise[column].gaussian for column in self.measure.columns())
        return float(quantile_of(draws[None], spread, level, gaussian=gaussian)[0])

    def _open(self, low: Floats, high: Floats, least: float, most: float) -> Interval:
        small = 1e-3 * max(abs(least), abs(most))  # of bounds that are rounded
        below = np.full_like(low, -math.inf) if least < -small else low
        below = np.maximum(below, 0.0) if self.measure.positive else below
        return below, np.full_like(high, math.inf) if most > small else high


@dataclass(frozen=True, eq=False)
class OfCutRows:
    """Another number: with its noise where few people are beyond, else of rows that were cut."""

    before: Ends
    clipped: Clipped
    rises: bool
    """Whether it can only grow by what was cut off."""

    def at(self, confidence: float) -> Interval:
        """The interval of noise, or nothing that is known of the truth."""
        low, high = self.before.at(confidence)
        if self.clipped.nothing or self.clipped.is_seldom:
            return low, high
        below = low if self.rises else np.full_like(low, -math.inf)
        return below, np.full_like(high, math.inf)


def clipped_of(priced: Priced) -> Clipped | None:
    """What a declared bound took away of a question, where that was estimated."""
    plan = priced.plan
    above, counted = plan.contribution.above, plan.counted
    if above is None:
        return None
    every = [each for each in counted.statistics if isinstance(each.sql, exp.Literal)]
    alone = single(plan) and bool(every) and not (counted.distinct or counted.ranks)
    counts = next(iter(counts_of_rows(plan)), None)
    l2 = priced.joint is not None and priced.joint.norm == "l2"
    row = 1.0 if counts is None else plan.bound(l2=l2) / above.rows / plan.weights[counts]
    return Clipped(above, restores=alone, counts=counts, row=max(1.0, row))


def counts_of_rows(plan: Plan) -> list[int]:
    """The statistics that count rows."""
    listed = enumerate(plan.counted.statistics)
    return [place for place, each in listed if each.counts and not each.missing]


def about(measure: Measure, x: Floats, noise: tuple[ColumnNoise, ...], clipped: Clipped) -> Ends:
    """The intervals of one number about the truth."""
    if isinstance(measure, Linear):
        return ClippedSum(measure, x, noise, clipped)
    return OfCutRows(Measured(measure, x, noise), clipped, rises=False)
