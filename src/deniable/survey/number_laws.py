"""The laws of protocols for numbers: a place on a grid becomes a whole number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from deniable.randomness.bernoulli import uniform_below
from deniable.randomness.source import SECURE
from deniable.survey.bits import coins
from deniable.survey.protocol import Pair
from deniable.survey.thresholds import WORD
from deniable.survey.windows import Straightened, Window

Integers = npt.NDArray[np.int64]

INPUTS = 1 << 30


@dataclass(frozen=True)
class OneBit(Straightened):
    """Places 0, ..., 2^30 are rounded at random to 0 or 1, which is told with this probability."""

    steps: ClassVar[int] = INPUTS
    truth: Fraction

    @property
    def outputs(self) -> int:
        return 2

    @property
    def thresholds(self) -> Mapping[str, int]:
        """Tell the bit below this."""
        return {"truth": int(self.truth * WORD)}

    @property
    def pair(self) -> Pair:
        return (self.truth, 1 - self.truth), (1 - self.truth, self.truth)

    @property
    def line(self) -> tuple[Fraction, Fraction]:
        """Slope and offset that make a bit an unbiased estimate of the share of the way."""
        slope = 1 / (2 * self.truth - 1)
        return slope, -(1 - self.truth) * slope

    def ones(self, share: Fraction) -> Fraction:
        """P(1) of those who are this share of the way from low to high."""
        return share * self.truth + (1 - share) * (1 - self.truth)

    def spread(self, share: Fraction) -> Fraction:
        """A bit of known rate has this variance, however the answers are spread."""
        rate = self.ones(share)
        return rate * (1 - rate) * self.line[0] ** 2

    def draw(self, places: Integers) -> Integers:
        bit = uniform_below(INPUTS, places.size, SECURE) < places
        told: Integers = (bit ^ ~coins(self.truth, places.size)).astype(np.int64)
        return told


@dataclass(frozen=True)
class OneOfTwo:
    """A window's output with probability `share`, one bit otherwise; the draw is told beside it."""

    one_bit: OneBit
    window: Window
    share: Fraction
    steps: ClassVar[int] = INPUTS

    @property
    def outputs(self) -> int:
        return self.window.outputs

    @property
    def largest(self) -> Fraction:
        return max(self.one_bit.largest, self.window.largest)

    @property
    def thresholds(self) -> Mapping[str, int]:
        """Piecewise below the first, then as the parts say."""
        own = {"piecewise": int(self.share * WORD)}
        return {**own, **self.one_bit.thresholds, **self.window.thresholds}

    @property
    def pair(self) -> Pair:
        first, second = (
            (*((1 - self.share) * p for p in a), *(self.share * p for p in b))
            for a, b in zip(self.one_bit.pair, self.window.pair, strict=True)
        )
        return first, second

    def spread(self, share: Fraction) -> Fraction:
        """The mean of the two, since both are unbiased."""
        one_bit, wide = self.one_bit.spread(share), self.window.spread(share)
        return (1 - self.share) * one_bit + self.share * wide

    def draw(self, places: Integers) -> Integers:
        """One row (part, output) for each place."""
        wide = coins(self.share, places.size) if self.share else places < 0
        out = np.where(wide, self.window.draw(places), self.one_bit.draw(places))
        return np.column_stack([wide.astype(np.int64), out])

    def sums(self, reports: Integers) -> tuple[Fraction, Fraction]:
        part, out = reports.T
        one_bit, wide = self.one_bit.sums(out[part == 0]), self.window.sums(out[part == 1])
        return one_bit[0] + wide[0], one_bit[1] + wide[1]


NumberLaw = OneBit | OneOfTwo | Window
