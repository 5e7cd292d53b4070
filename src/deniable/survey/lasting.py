"""Asked again and again: a permanent noisy answer, and fresh noise on each report of it.

The permanent answer is kept by question, never by truth: whoever collects all reports of a client,
for ever, learns at most what the permanent answer tells, even if the truth changes meanwhile.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from deniable.errors import ParameterError
from deniable.lazy import lazy
from deniable.privacy.exact import Number, exact, show
from deniable.privacy.losses.base import Loss
from deniable.survey.answers import Answers, read_answers
from deniable.survey.frequency import OneLaw
from deniable.survey.kary import MOST_COUNTED
from deniable.survey.laws import OneHot, OneOf
from deniable.survey.protocol import Reports
from deniable.survey.thresholds import WORD, exp_decimal, keep, read_epsilon, rounded_down
from deniable.survey.unary import MOST_BITS
from deniable.trace import traced


@dataclass(frozen=True, kw_only=True)
class Lasting(OneLaw):
    """A law twice: once for good, then afresh on each report.

    Formal guarantee, beside that of every protocol:

    * all reports on one question together are `permanent`-DP, however many there are and whatever
      happens to the truth: `lasting_loss`;
    * a single report, seen alone, is `epsilon`-DP: `loss`.
    """

    permanent: Number

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "permanent", read_epsilon(self.permanent, "permanent"))
        if self.asked >= self.lasting:
            raise ParameterError(
                "epsilon",
                show(self.asked),
                f"one report must tell less than all of them: give less than {show(self.lasting)}",
            )

    @property
    def lasting(self) -> Fraction:
        """The ε that was asked for all reports together."""
        return exact(self.permanent, "permanent")

    @abstractmethod
    def told(self, epsilon: Fraction) -> Fraction:
        """The probability of the truth at this ε."""

    @abstractmethod
    def law_of(self, told: Fraction) -> OneOf | OneHot:
        """The law that tells the truth with this probability."""

    @property
    @abstractmethod
    def lies(self) -> int:
        """How many other outcomes there are beside the truth."""

    @lazy
    def levels(self) -> tuple[Fraction, Fraction]:
        """The probabilities of the truth: for good, and in each report.

        The second is the one for which the whole way from the truth to a report is ε-DP.
        """
        first, whole_way = self.told(self.lasting), self.told(self.asked)
        other = (1 - first) / self.lies
        return first, rounded_down((whole_way - other) / (first - other))

    @lazy
    def law(self) -> OneOf | OneHot:
        """That of the whole way."""
        return self.law_of(self._whole_way)

    @property
    def _whole_way(self) -> Fraction:
        first, again = self.levels
        return first * again + (1 - first) * (1 - again) / self.lies

    @property
    def thresholds(self) -> Mapping[str, int]:
        """Tell the truth below these."""
        first, again = self.levels
        return {"permanent": int(first * WORD), "instantaneous": int(again * WORD)}

    @lazy
    def lasting_loss(self) -> Loss:
        """What all reports on one question cost together."""
        return self.law_of(self.levels[0]).loss

    @traced
    def remember(self, values: Answers) -> Reports:
        """The permanent answers: made once for a question, kept, never sent."""
        return self.law_of(self.levels[0]).draw(read_answers(values, self.k))

    @traced
    def report(self, kept: Reports) -> Reports:
        """One report on each permanent answer, with fresh noise."""
        return self.law_of(self.levels[1]).again(self.check(kept))

    @traced
    def randomize(self, values: Answers) -> Reports:
        """First reports of new clients, who forget their permanent answers: for one wave only."""
        return self.report(self.remember(values))


@dataclass(frozen=True, kw_only=True)
class Rappor(Lasting):
    """RAPPOR on one bit for each category (Erlingsson, Pihur & Korolova 2014, basic RAPPOR).

    Each bit of the row is kept for good with probability e^(ε∞/2)/(e^(ε∞/2) + 1), that is 1 - f/2;
    each report keeps the bits of the permanent row with a probability p = 1 - q such that the
    whole way from the truth to a report is ε-DP.
    """

    kind: ClassVar[str] = "RAPPOR"
    most: ClassVar[int] = MOST_BITS

    def told(self, epsilon: Fraction) -> Fraction:
        """The probability that a bit is kept."""
        return keep(epsilon, root=2)

    def law_of(self, told: Fraction) -> OneHot:
        """Bits that are kept."""
        return OneHot(self.k, told, 1 - told)

    @property
    def lies(self) -> int:
        """The bit turned."""
        return 1

    @property
    def kept(self) -> Fraction:
        """The probability that a bit is kept on the whole way."""
        return self._whole_way


@dataclass(frozen=True, kw_only=True)
class LastingResponse(Lasting):
    """k-ary response twice: once for good, then afresh on each report.

    (L-GRR; Arcolezi et al. 2022.) The second probability is the one for which a single report has
    exactly ε. The published formula drops the ways through third categories and adds more noise
    than it needs for k > 2: `published=True` keeps it, and the loss says what it really is.
    """

    kind: ClassVar[str] = "lasting response"
    most: ClassVar[int] = MOST_COUNTED
    published: bool = False

    def told(self, epsilon: Fraction) -> Fraction:
        """The probability of the true category."""
        return keep(epsilon, Fraction(1, self.lies))

    def law_of(self, told: Fraction) -> OneOf:
        """The true category, or another."""
        return OneOf(self.k, told)

    @property
    def lies(self) -> int:
        """The other categories."""
        return self.k - 1

    @lazy
    def levels(self) -> tuple[Fraction, Fraction]:
        """The probabilities of the truth: for good, and in each report."""
        if not self.published:
            return super().levels
        first, e = self.told(self.lasting), exp_decimal(self.asked)
        other = (1 - first) / self.lies
        bottom = self.lies * other * e - first * e - self.lies * first + other
        return first, rounded_down((other - e * first) / bottom)

    @property
    def truth(self) -> Fraction:
        """The probability of the truth on the whole way."""
        return self._whole_way

    @property
    def lie(self) -> Fraction:
        """The probability of each other category on the whole way."""
        return (1 - self.truth) / self.lies
