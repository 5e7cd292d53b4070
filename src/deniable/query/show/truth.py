"""The intervals of an answer's columns, as data: a measure, released statistics, laws of noise.

Those about the truth are about plain SQL on clamped values, no row cut: noise and what a bound took
away together. Counts and sums have what was taken put back; means and other ratios need no such
thing, and are only less certain by it. Where `max_rows` was declared, the rows that people beyond
it have besides lie within them, by the draws of `plan.tail`: where those are, nobody asked, and
all of them may be in one group. Everything here is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr
from sqlglot import exp

from deniable.intervals import Ends, Floats, Interval
from deniable.query.plan.measures import ColumnNoise, Cross, Linear, Measure, Ratio, Spread
from deniable.query.plan.plan import Plan
from deniable.query.plan.tail import UPPER_RISK, Above, Profile, lost_rows
from deniable.query.price.price import Priced
from deniable.query.price.profile import single
from deniable.query.show.beyond import Beyond

WIDE = 4.0  # times the number itself: an interval that says nothing
FEW = 0.02  # of the people: if no more are beyond, rows that are lost are taken to be like others
_HIGH = 0.975


@dataclass(frozen=True, eq=False)
class Measured:
    """A measure of statistics `x`, one row a row of the answer, with the noise of each column."""

    measure: Measure
    x: Floats
    noise: tuple[ColumnNoise, ...]

    def at(self, confidence: float) -> Interval:
        """Where the exact value lies, as far as noise is concerned."""
        return self.measure.interval(self.x, self.noise, confidence)


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
        tail = (1 - confidence) / 2
        below = kept + _with_noise(self, low, tail)
        above = kept + _with_noise(self, high, 1 - UPPER_RISK * tail)
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
            least, most = self.measure.reach if self.bounded else possible(self.measure)
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


def _with_noise(total: TruthOfSum | ClippedSum, draws: Floats, level: float) -> Floats:
    """Quantiles of what is lost of a sum and of its noise together, row by row."""
    measure, noise = total.measure, total.noise
    gaussian = all(noise[column].gaussian for column in measure.columns())
    return quantile_of(draws, measure.deviation(noise), level, gaussian=gaussian)


def possible(measure: Measure) -> tuple[float, float]:
    """Between which values a measure of columns without declared bounds lies, whatever the data."""
    if isinstance(measure, Cross) and measure.squares is not None:
        return measure.reach
    return (0.0 if isinstance(measure, Spread) else -math.inf), math.inf


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
            low = kept + _with_noise(self, lost.least[None], tail)
            high = kept + _with_noise(self, lost.most[None], 1 - tail)
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
        low = float(_with_noise(self, lost.least[None], tail)[0])
        high = float(_with_noise(self, lost.most[None], 1 - tail)[0])
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


@dataclass(frozen=True, eq=False)
class Cut:
    """What is known of what bounds cut off: how many rows, and the numbers without them.

    `rows` are a noisy count, with its law; without one, it is known that there are no more.
    """

    x: Floats
    noise: tuple[ColumnNoise, ...]
    rows: float = 0.0
    law: ColumnNoise | None = None

    def most(self, confidence: float) -> float:
        """A number of rows that, with this probability, is no smaller than what was cut off."""
        return max(0.0, self.rows + (0.0 if self.law is None else self.law.half_width(confidence)))

    def picked(self, places: Sequence[int]) -> Cut:
        """Of some rows only, in this order."""
        return replace(self, x=self.x[places])


@dataclass(frozen=True, eq=False)
class Total:
    """A count, sum or mean that nothing was cut off of."""

    measure: Linear | Ratio
    cut: Cut

    def at(self, confidence: float) -> Interval:
        """Where it lies; both the rows that are lost and the number may be missed."""
        each = 1 - (1 - confidence) / 2
        return self.measure.total(self.cut.x, self.cut.noise, each, self.cut.most(each))
