"""The two laws that several protocols share: one of k answers, and a row of bits.

Each has the `pair` of laws under two answers that differ, the `support` (how often a report speaks
for its sender's answer, and for any other), the exact `channel`, the `format` of its reports, and
`draw`, one report for each answer. `again` puts fresh noise on reports.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from deniable.errors import ParameterError
from deniable.lazy import lazy
from deniable.mechanisms.inverse import symmetric
from deniable.privacy.channel import Channel
from deniable.privacy.losses.base import Loss
from deniable.privacy.losses.channel import ChannelLoss
from deniable.privacy.losses.response import RandomizedResponseLoss
from deniable.randomness.bernoulli import uniform_below
from deniable.randomness.source import SECURE
from deniable.survey.answers import Integers
from deniable.survey.bits import Bytes, coins, flipped, one_hot_coins
from deniable.survey.formats import Bits, Numbers
from deniable.survey.protocol import Pair
from deniable.survey.shares import Support
from deniable.survey.thresholds import WORD

MOST_OUTPUTS = 1 << 14


@dataclass(frozen=True)
class OneOf:
    """The truth with this probability, each of the other k - 1 answers equally often."""

    k: int
    truth: Fraction

    @property
    def lie(self) -> Fraction:
        """The probability of each other answer."""
        return (1 - self.truth) / (self.k - 1)

    @property
    def pair(self) -> Pair:
        """The one answer, the other, the rest."""
        rest = (self.k - 2) * self.lie
        return (self.truth, self.lie, rest), (self.lie, self.truth, rest)

    @property
    def support(self) -> Support:
        """A report speaks for the answer it names."""
        return Support(float(self.truth), float(self.lie))

    @property
    def format(self) -> Numbers:
        return Numbers(self.k)

    @property
    def thresholds(self) -> Mapping[str, int]:
        """Tell the truth below this."""
        return {"truth": int(self.truth * WORD)}

    @lazy
    def loss(self) -> Loss:
        return RandomizedResponseLoss(truth=self.truth, categories=self.k)

    def channel(self) -> Channel:
        """P(report | answer)."""
        places = tuple(range(enumerable(self.k)))
        return Channel(places, places, symmetric(self.truth, self.k))

    def draw(self, truth: Integers) -> Integers:
        """The truth, or one of the others, uniformly."""
        others = uniform_below(self.k - 1, truth.size, SECURE) if self.k > 2 else 0 * truth
        others += others >= truth
        answers: Integers = np.where(coins(self.truth, truth.size), truth, others)
        return answers

    again = draw


@dataclass(frozen=True)
class OneHot:
    """A row of `width` bits: 1 with probability `on` at the true place and `off` elsewhere."""

    width: int
    on: Fraction
    off: Fraction

    @property
    def pair(self) -> Pair:
        """The two bits in which two answers differ."""
        one = tuple(a * b for a in (1 - self.on, self.on) for b in (1 - self.off, self.off))
        other = tuple(a * b for a in (1 - self.off, self.off) for b in (1 - self.on, self.on))
        return one, other

    @property
    def support(self) -> Support:
        """A report speaks for the places whose bits are 1."""
        return Support(float(self.on), float(self.off))

    @property
    def format(self) -> Bits:
        return Bits(self.width)

    @property
    def thresholds(self) -> Mapping[str, int]:
        """A bit is 1 below these."""
        return {"true bit": int(self.on * WORD), "other bit": int(self.off * WORD)}

    @lazy
    def loss(self) -> Loss:
        return ChannelLoss(rows=self.pair)

    def channel(self) -> Channel:
        """P(bits | answer), for few bits."""
        places = range(min(self.width, 40))
        rows = [[self.on if i == j else self.off for j in places] for i in places]
        return bit_channel(places, self.width, rows)

    def draw(self, truth: Integers) -> Bytes:
        """One row of packed bits for each answer."""
        return one_hot_coins(truth, self.width, self.on, self.off)

    def again(self, rows: Bytes) -> Bytes:
        """Each bit stays as it is with probability `on`; this is for laws of which off = 1 - on."""
        return flipped(rows, self.width, self.on)


def enumerable(outputs: int) -> int:
    """Refuse a channel that is too large to be written down."""
    if outputs > MOST_OUTPUTS:
        raise ParameterError(
            "k", f"{outputs:.3g} outputs", f"a channel is written down up to {MOST_OUTPUTS:,}"
        )
    return outputs


def bit_channel(inputs: Sequence[int], width: int, rows: Sequence[Sequence[Fraction]]) -> Channel:
    """The channel of independent bits; rows[i][j] is the probability that bit j is 1."""
    outputs = [
        tuple((number >> (width - 1 - j)) & 1 for j in range(width))
        for number in range(enumerable(1 << min(width, 40)))
    ]
    table = []
    for ones in rows:
        law = [Fraction(1)]
        for one in ones:
            law = [p * side for p in law for side in (1 - one, one)]
        table.append(tuple(law))
    return Channel(tuple(inputs), tuple(outputs), tuple(table))
