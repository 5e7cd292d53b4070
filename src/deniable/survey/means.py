"""Means of numbers: from one bit a person, from a number near the answer, or from either."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar

from deniable.errors import ReportError
from deniable.lazy import lazy
from deniable.privacy.channel import Channel
from deniable.privacy.parameters import parameters
from deniable.survey.averages import MeanProtocol
from deniable.survey.formats import Tuples
from deniable.survey.number_laws import INPUTS, OneBit, OneOfTwo
from deniable.survey.protocol import Reports
from deniable.survey.thresholds import exp_decimal, keep, rounded_down
from deniable.survey.windows import Window

_TURN = Fraction(61, 100)  # below this ε the one-bit report is always better


@parameters
class OneBitMean(MeanProtocol):
    """Report one of two values: the high one the likelier, the higher the number is.

    (Duchi, Jordan & Wainwright 2018.) The number is first rounded at random to one of the bounds,
    then that bit is told with probability e^ε/(e^ε + 1). The better choice for ε up to about 1.3.
    """

    kind: ClassVar[str] = "one-bit mean"

    @lazy
    def law(self) -> OneBit:
        return OneBit(keep(self.epsilon))

    def channel(self, shares: Sequence[Fraction]) -> Channel:
        """P(bit | number), numbers given as shares of the way from low to high."""
        ones = [self.law.ones(share) for share in shares]
        return Channel(tuple(shares), (0, 1), tuple((1 - one, one) for one in ones))


@parameters
class PiecewiseMean(MeanProtocol):
    """Report a whole number that is e^ε times likelier within a window around the answer.

    The piecewise mechanism (Wang et al. 2019) on a grid: the window is e^(-ε/2) of the inputs' grid
    wide. The better choice for ε above about 1.3.
    """

    kind: ClassVar[str] = "piecewise mean"

    @lazy
    def law(self) -> Window:
        return _window(self.epsilon)

    def channel(self, starts: Sequence[int]) -> Channel:
        """P(output | start of the window): too large to be written down, see `Window`."""
        return self.law.channel(starts)


def _window(epsilon: Fraction) -> Window:
    # In sixty digits: every platform rounds alike, and the width is part of the question.
    return Window(epsilon, INPUTS, max(1, round(INPUTS / exp_decimal(epsilon / 2))))


@parameters
class HybridMean(MeanProtocol):
    """Toss a coin between the piecewise and the one-bit report (Wang et al. 2019, Section III-C).

    Piecewise with probability 1 - e^(-ε/2) above ε = 0.61, never below. The coin does not look at
    the number, and both are ε-DP, so the report is. Its worst-case variance is the least of the
    three. A report names its part, 0 for one bit or 1, before its output.
    """

    kind: ClassVar[str] = "hybrid mean"

    @lazy
    def law(self) -> OneOfTwo:
        wide = self.epsilon > _TURN
        share = rounded_down(1 - 1 / exp_decimal(self.epsilon / 2)) if wide else Fraction(0)
        return OneOfTwo(OneBit(keep(self.epsilon)), _window(self.epsilon), share)

    @property
    def format(self) -> Tuples:
        return Tuples((2, self.law.outputs))

    def check(self, reports: Reports) -> Reports:
        """The reports, if each is one of its part."""
        rows = super().check(reports)
        if bool((rows[rows[:, 0] == 0, 1] > 1).any()):
            raise ReportError("a one-bit report is 0 or 1")
        if self.law.share == 0 and bool(rows[:, 0].any()):
            raise ReportError("this survey takes one-bit reports only")
        return rows
