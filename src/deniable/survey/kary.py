"""k-ary randomised response, also called direct or generalised: the true category, or another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from deniable.lazy import lazy
from deniable.privacy.channel import Channel
from deniable.privacy.losses.base import Loss
from deniable.survey.answers import Answers, read_answers
from deniable.survey.formats import Numbers
from deniable.survey.frequency import Frequency
from deniable.survey.laws import OneOf
from deniable.survey.protocol import Pair, Reports
from deniable.survey.shares import Support
from deniable.survey.thresholds import WORD, keep
from deniable.trace import traced

MOST_COUNTED = 1 << 24


@dataclass(frozen=True, kw_only=True)
class KaryResponse(Frequency):
    """Report the true category with probability e^ε/(e^ε + k - 1), each other one equally often.

    (Kairouz, Bonawitz & Ramage 2016.) The best choice for few categories: k < 3 e^ε + 2.
    """

    kind: ClassVar[str] = "k-ary response"
    most: ClassVar[int] = MOST_COUNTED

    @lazy
    def law(self) -> OneOf:
        return OneOf(self.k, keep(self.asked, Fraction(1, self.k - 1)))

    @property
    def truth(self) -> Fraction:
        """The probability of the truth."""
        return self.law.truth

    @property
    def lie(self) -> Fraction:
        """The probability of each other category."""
        return self.law.lie

    @property
    def thresholds(self) -> Mapping[str, int]:
        """Tell the truth below this."""
        return {"truth": int(self.truth * WORD)}

    @property
    def format(self) -> Numbers:
        return Numbers(self.k)

    @property
    def pair(self) -> Pair:
        """The one answer, the other, the rest."""
        return self.law.pair

    @lazy
    def loss(self) -> Loss:
        return self.law.loss

    @property
    def support(self) -> Support:
        """A report speaks for the category it names."""
        return self.law.support

    def channel(self) -> Channel:
        """P(report | answer)."""
        return self.law.channel()

    @traced
    def randomize(self, values: Answers) -> Reports:
        """One category's number for each true answer."""
        return self.law.draw(read_answers(values, self.k))
