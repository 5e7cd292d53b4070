"""The mean from one bit a person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from deniable.lazy import lazy
from deniable.privacy.channel import Channel
from deniable.randomness.bernoulli import uniform_below
from deniable.randomness.source import SECURE
from deniable.survey.answers import Answers, Integers, read_places
from deniable.survey.averages import MeanProtocol, MeanTally, linear_tally
from deniable.survey.bits import coins
from deniable.survey.frequency import Pair, Reports, numbers
from deniable.survey.reports import Json, integers
from deniable.survey.thresholds import WORD, keep
from deniable.trace import traced

INPUTS = 1 << 30


@dataclass(frozen=True, kw_only=True)
class OneBitMean(MeanProtocol):
    """Report one of two values: the high one the likelier, the higher the number is.

    (Duchi, Jordan & Wainwright 2018.) The number is first rounded at random to one of the bounds,
    then that bit is told with probability e^ε/(e^ε + 1). The better choice for ε up to about 1.3.
    """

    kind: ClassVar[str] = "one-bit mean"

    @lazy
    def truth(self) -> Fraction:
        """The probability that the bit is told as it is."""
        return keep(self.asked)

    @property
    def thresholds(self) -> Mapping[str, int]:
        """Tell the bit below this."""
        return {"truth": int(self.truth * WORD)}

    @property
    def pair(self) -> Pair:
        """The two bounds."""
        return (self.truth, 1 - self.truth), (1 - self.truth, self.truth)

    @property
    def _line(self) -> tuple[Fraction, Fraction]:
        slope = 1 / (2 * self.truth - 1)
        return slope, -(1 - self.truth) * slope

    @property
    def largest(self) -> Fraction:
        """Half the distance of the two values."""
        return self._line[0] / 2

    def spread(self, share: Fraction) -> Fraction:
        """A bit of known rate has this variance, however the answers are spread."""
        rate = share * self.truth + (1 - share) * (1 - self.truth)
        return rate * (1 - rate) * self._line[0] ** 2

    def channel(self, shares: Sequence[Fraction]) -> Channel:
        """P(bit | number), numbers given as shares of the way from low to high."""
        ones = [share * self.truth + (1 - share) * (1 - self.truth) for share in shares]
        return Channel(tuple(shares), (0, 1), tuple((1 - one, one) for one in ones))

    @traced
    def randomize(self, values: Answers) -> Reports:
        """One bit for each number."""
        return told_bits(read_places(values, *self.ends, INPUTS), self.truth)

    def aggregate(self, reports: Reports) -> MeanTally:
        """Add up the bits."""
        return linear_tally(self, integers(reports, 2), *self._line)

    def to_wire(self, reports: Reports) -> list[Json]:
        """0 or 1 each."""
        return [*numbers(integers(reports, 2))]

    def from_wire(self, payloads: Sequence[Json]) -> Reports:
        """0 or 1 each."""
        return integers(list(payloads), 2)


def told_bits(places: Integers, told: Fraction) -> Integers:
    """Places 0, ..., 2^30 rounded at random to 0 or 1, and each bit told with this probability."""
    bit = uniform_below(INPUTS, places.size, SECURE) < places
    return (bit ^ ~coins(told, places.size)).astype(np.int64)
