"""Asked again and again: a permanent noisy answer, and fresh noise on each report of it.

The permanent answer is kept by question, never by truth: whoever collects all reports of a client,
for ever, learns at most what the permanent answer tells, even if the truth changes meanwhile.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from fractions import Fraction
from functools import partial
from typing import ClassVar

from deniable.errors import ParameterError
from deniable.lazy import lazy
from deniable.privacy.exact import Number, show
from deniable.privacy.losses.base import Loss
from deniable.privacy.parameters import Parameter, parameter, parameters
from deniable.survey.answers import Answers, read_answers, read_size
from deniable.survey.frequency import OneLaw
from deniable.survey.kary import MOST_COUNTED
from deniable.survey.laws import OneHot, OneOf
from deniable.survey.protocol import Reports
from deniable.survey.thresholds import WORD, exp_decimal, keep, read_epsilon, rounded_down
from deniable.survey.unary import MOST_BITS
from deniable.trace import traced


@parameters
class Lasting(OneLaw):
    """A law twice: once for good, then afresh on each report.

    Formal guarantee, beside that of every protocol:

    * all reports on one question together are `permanent`-DP, however many there are and whatever
      happens to the truth: `lasting_loss`;
    * a single report, seen alone, is `epsilon`-DP: `loss`.
    """

    permanent: Parameter[Number, Fraction] = parameter(read_epsilon)
    """The ε that is asked for all reports together."""

    def __post_init__(self) -> None:
        if self.epsilon >= self.permanent:
            most = show(self.permanent)
            raise ParameterError(
                "epsilon",
                show(self.epsilon),
                f"one report must tell less than all of them: give less than {most}",
            )

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
        first, whole_way = self.told(self.permanent), self.told(self.epsilon)
        other = (1 - first) / self.lies
        return first, rounded_down((whole_way - other) / (first - other))

    @lazy
    def law(self) -> OneOf | OneHot:
        """That of the whole way."""
        first, again = self.levels
        return self.law_of(first * again + (1 - first) * (1 - again) / self.lies)

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


@parameters
class Rappor(Lasting):
    """RAPPOR on one bit for each category (Erlingsson, Pihur & Korolova 2014, basic RAPPOR).

    Each bit of the row is kept for good with probability e^(ε∞/2)/(e^(ε∞/2) + 1), that is 1 - f/2;
    each report keeps the bits of the permanent row with a probability p = 1 - q such that the
    whole way from the truth to a report is ε-DP.
    """

    kind: ClassVar[str] = "RAPPOR"
    k: int = parameter(partial(read_size, most=MOST_BITS))

    def told(self, epsilon: Fraction) -> Fraction:
        return keep(epsilon, root=2)

    def law_of(self, told: Fraction) -> OneHot:
        return OneHot(self.k, told, 1 - told)

    @property
    def lies(self) -> int:
        return 1


@parameters
class LastingResponse(Lasting):
    """k-ary response twice: once for good, then afresh on each report.

    (L-GRR; Arcolezi et al. 2022.) The second probability is the one for which a single report has
    exactly ε. The published formula drops the ways through third categories and adds more noise
    than it needs for k > 2: `published=True` keeps it, and the loss says what it really is.
    """

    kind: ClassVar[str] = "lasting response"
    k: int = parameter(partial(read_size, most=MOST_COUNTED))
    published: bool = False

    def told(self, epsilon: Fraction) -> Fraction:
        return keep(epsilon, Fraction(1, self.lies))

    def law_of(self, told: Fraction) -> OneOf:
        return OneOf(self.k, told)

    @property
    def lies(self) -> int:
        return self.k - 1

    @lazy
    def levels(self) -> tuple[Fraction, Fraction]:
        if not self.published:
            return super().levels
        first, e = self.told(self.permanent), exp_decimal(self.epsilon)
        other = (1 - first) / self.lies
        bottom = self.lies * other * e - first * e - self.lies * first + other
        return first, rounded_down((other - e * first) / bottom)
