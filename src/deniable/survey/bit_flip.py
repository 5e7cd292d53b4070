"""dBitFlip: a few bits of the unary row, at places that never change for a client."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import ClassVar

import numpy as np

from deniable.errors import ParameterError
from deniable.lazy import lazy
from deniable.privacy.channel import Channel
from deniable.privacy.exact import whole
from deniable.privacy.parameters import parameter, parameters
from deniable.survey.answers import Answers, Integers, read_answers, read_size
from deniable.survey.bits import blocks, coins, random_sets
from deniable.survey.formats import PlacedBits, integers, rising
from deniable.survey.frequency import Frequency
from deniable.survey.laws import OneHot, bit_channel
from deniable.survey.protocol import Pair, Reports
from deniable.survey.shares import ShareEstimate, Spoken, Support, Tally
from deniable.survey.thresholds import WORD, keep
from deniable.trace import traced

_MOST = 1 << 20


@parameters
class BitFlip(Frequency):
    """Report `bits` of the k unary bits, each kept with probability e^(ε/2)/(e^(ε/2) + 1).

    Which places are reported is drawn without looking at the answer (dBitFlip; Ding, Kulkarni &
    Yekhanin 2017). With bits=1 two answers never differ in two bits of a report, so that the bit
    is kept with probability e^ε/(e^ε + 1). A report is a row of 2 * place + bit.
    """

    kind: ClassVar[str] = "bit flip"
    k: int = parameter(partial(read_size, most=_MOST))
    bits: int = parameter(whole)

    def __post_init__(self) -> None:
        if self.bits > self.k:
            raise ParameterError("bits", self.bits, "must be k at most")

    @lazy
    def kept(self) -> Fraction:
        """The probability that a bit is kept."""
        return keep(self.epsilon, root=min(self.bits, 2))

    @property
    def thresholds(self) -> Mapping[str, int]:
        """Keep a bit below this."""
        return {"kept": int(self.kept * WORD)}

    @property
    def pair(self) -> Pair:
        """Both places are reported, one of them, or none."""
        total = self.k * (self.k - 1)
        both = Fraction(self.bits * (self.bits - 1), total)
        single = Fraction(2 * self.bits * (self.k - self.bits), total)
        one, other = OneHot(self.k, self.kept, 1 - self.kept).pair
        apart = (single * self.kept, single * (1 - self.kept))
        rest = 1 - both - single
        return (
            (*(both * p for p in one), *apart, rest),
            (*(both * p for p in other), *apart[::-1], rest),
        )

    @property
    def support(self) -> Support:
        """A report that has a category's place speaks for it if the bit is 1."""
        return Support(float(self.kept), float(1 - self.kept))

    @property
    def format(self) -> PlacedBits:
        return PlacedBits((2 * self.k,) * self.bits)

    def channel(self, places: Sequence[int]) -> Channel:
        """P(bits | answer) for the places reported, which are public."""
        if len(set(places)) != self.bits or not all(0 <= place < self.k for place in places):
            raise ParameterError("places", len(places), f"must be {self.bits} different categories")
        rows = [
            [self.kept if place == x else 1 - self.kept for place in places] for x in range(self.k)
        ]
        return bit_channel(range(self.k), self.bits, rows)

    @traced
    def randomize(self, values: Answers) -> Reports:
        """One row of 2 * place + bit for each true answer."""
        truth = read_answers(values, self.k)
        return self.report(truth, self.places(truth.size))

    def places(self, people: int) -> Integers:
        """The places of new clients: a uniform set of categories each, in rising order."""
        out = np.empty((whole(people, "people"), self.bits), dtype=np.int64)
        for part in blocks(out.shape[0], self.k):
            out[part] = _distinct(out[part].shape[0], self.k, self.bits)
        return out

    @traced
    def report(self, values: Answers, places: Integers) -> Reports:
        """Reports of clients that keep their places, with fresh coins: each costs its ε anew.

        Kept places alone protect nobody who is asked again; a `Client` keeps the whole report.
        """
        truth = read_answers(values, self.k)
        rows = integers(places, self.k, columns=self.bits)
        if len(rows) != truth.size:
            raise ParameterError("places", len(rows), "must be one row for each answer")
        if not rising(rows):
            # A place reported twice has two coins of one bit: more than ε.
            raise ParameterError("places", "repeated", "must rise within a row, each place once")
        flips = ~coins(self.kept, rows.size).reshape(rows.shape)
        sent: Integers = 2 * rows + ((rows == truth[:, None]) ^ flips)
        return sent

    def estimate(self, tally: Tally) -> ShareEstimate:
        """Unbiased shares; NaN, with an infinite error, where nobody reported the place."""
        asked, ones = tally.counts
        return Spoken(ones, asked, self.support).estimate(tally.n)

    def variance(self, n: int, share: float = 0.0) -> float:
        """As if n bits/k clients had reported the place."""
        return super().variance(1, share) * self.k / (self.bits * whole(n, "n"))


def _distinct(count: int, k: int, size: int) -> Integers:
    """Uniform sets, in rising order."""
    if size == k:
        return np.tile(np.arange(k), (count, 1))
    return np.nonzero(random_sets(count, k, size))[1].reshape(-1, size)
