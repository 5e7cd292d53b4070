"""The intervals of an answer's columns, as data: a measure, released statistics, laws of noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from deniable.intervals import Floats, Interval
from deniable.query.plan.measures import ColumnNoise, Linear, Measure, Ratio


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
