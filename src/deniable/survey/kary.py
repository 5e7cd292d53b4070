"""k-ary randomised response, also called direct or generalised: the true category, or another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from deniable.lazy import lazy
from deniable.privacy.channel import Channel
from deniable.privacy.losses.base import Loss
from deniable.privacy.losses.response import RandomizedResponseLoss
from deniable.randomness.bernoulli import uniform_below
from deniable.randomness.source import SECURE
from deniable.survey.answers import Answers, Integers, read_answers, read_size
from deniable.survey.bits import coins
from deniable.survey.frequency import Frequency, Pair, Reports, enumerable, numbers
from deniable.survey.reports import Json, integers
from deniable.survey.shares import Support, Tally
from deniable.survey.thresholds import WORD, keep
from deniable.trace import traced

MOST_COUNTED = 1 << 24


@dataclass(frozen=True, kw_only=True)
class KaryResponse(Frequency):
    """Report the true category with probability e^ε/(e^ε + k - 1), each other one equally often.

    (Kairouz, Bonawitz & Ramage 2016.) The best choice for few categories: k < 3 e^ε + 2.
    """

    kind: ClassVar[str] = "k-ary response"

    def __post_init__(self) -> None:
        super().__post_init__()
        read_size(self.k, most=MOST_COUNTED)

    @lazy
    def truth(self) -> Fraction:
        """The probability of the truth."""
        return keep(self.asked, Fraction(1, self.k - 1))

    @property
    def lie(self) -> Fraction:
        """The probability of each other category."""
        return (1 - self.truth) / (self.k - 1)

    @property
    def thresholds(self) -> Mapping[str, int]:
        """Tell the truth below this."""
        return {"truth": int(self.truth * WORD)}

    @property
    def pair(self) -> Pair:
        """The one answer, the other, the rest."""
        rest = (self.k - 2) * self.lie
        return (self.truth, self.lie, rest), (self.lie, self.truth, rest)

    @lazy
    def loss(self) -> Loss:
        """What one report costs its sender."""
        return RandomizedResponseLoss(truth=self.truth, categories=self.k)

    @property
    def support(self) -> Support:
        """A report speaks for the category it names."""
        return Support(float(self.truth), float(self.lie))

    @property
    def report_bits(self) -> int:
        """One category's number."""
        return (self.k - 1).bit_length()

    def channel(self) -> Channel:
        """P(report | answer)."""
        places = range(enumerable(self.k))
        rows = tuple(tuple(self.truth if i == j else self.lie for j in places) for i in places)
        return Channel(tuple(places), tuple(places), rows)

    @traced
    def randomize(self, values: Answers) -> Reports:
        """One category's number for each true answer."""
        return respond(read_answers(values, self.k), self.k, self.truth)

    def aggregate(self, reports: Reports) -> Tally:
        """Count the reports of each category."""
        checked = integers(reports, self.k)
        return Tally(self, np.bincount(checked, minlength=self.k), checked.size)

    def to_wire(self, reports: Reports) -> list[Json]:
        """A whole number each."""
        return [*numbers(integers(reports, self.k))]

    def from_wire(self, payloads: Sequence[Json]) -> Reports:
        """Whole numbers below k."""
        return integers(list(payloads), self.k)


def respond(truth: Integers, k: int, told: Fraction) -> Integers:
    """The truth with probability `told`, else one of the k - 1 others, uniformly."""
    others = uniform_below(k - 1, truth.size, SECURE) if k > 2 else np.zeros_like(truth)
    others += others >= truth
    answers: Integers = np.where(coins(told, truth.size), truth, others)
    return answers
