"""The mean from a number near the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from deniable.errors import ReportError
from deniable.lazy import lazy
from deniable.privacy.channel import Channel
from deniable.survey.answers import Answers, Integers, read_places
from deniable.survey.averages import MeanProtocol, MeanTally, linear_tally
from deniable.survey.bits import coins
from deniable.survey.duchi import OneBitMean, told_bits
from deniable.survey.frequency import Pair, Reports, numbers
from deniable.survey.reports import Json, columns_of, integers
from deniable.survey.thresholds import WORD, exp_decimal, rounded_down
from deniable.survey.windows import Window
from deniable.trace import traced

_STEPS = 1 << 30
_TURN = Fraction(61, 100)  # below this ε the one-bit report is always better


@dataclass(frozen=True, kw_only=True)
class PiecewiseMean(MeanProtocol):
    """Report a whole number that is e^ε times likelier within a window around the answer.

    The piecewise mechanism (Wang et al. 2019) on a grid: the window is e^(-ε/2) of the inputs' grid
    wide. The better choice for ε above about 1.3.
    """

    kind: ClassVar[str] = "piecewise mean"

    @lazy
    def window(self) -> Window:
        """The exact law."""
        # In sixty digits: every platform rounds alike, and the width is part of the question.
        width = max(1, round(_STEPS / exp_decimal(self.asked / 2)))
        return Window(self.asked, _STEPS, width)

    @property
    def thresholds(self) -> Mapping[str, int]:
        """Fall into the window below this, which is so wide on a grid of so many steps."""
        return self.window.thresholds

    @property
    def pair(self) -> Pair:
        """The first and the last window."""
        return self.window.pair

    @property
    def largest(self) -> Fraction:
        """Half the reach of the outputs."""
        return self.window.line[0] * (self.window.outputs - 1) / 2

    def spread(self, share: Fraction) -> Fraction:
        """That of the window's law."""
        return self.window.spread(share)

    def channel(self, starts: Sequence[int]) -> Channel:
        """P(output | start of the window): too large to be written down, see `Window`."""
        return self.window.channel(starts)

    @traced
    def randomize(self, values: Answers) -> Reports:
        """One whole number for each number."""
        return self.window.draw(read_places(values, *self.ends, _STEPS))

    def aggregate(self, reports: Reports) -> MeanTally:
        """Add up the outputs, straightened by a line."""
        return linear_tally(self, integers(reports, self.window.outputs), *self.window.line)

    def to_wire(self, reports: Reports) -> list[Json]:
        """A whole number each."""
        return [*numbers(integers(reports, self.window.outputs))]

    def from_wire(self, payloads: Sequence[Json]) -> Reports:
        """Whole numbers below the number of outputs."""
        return integers(list(payloads), self.window.outputs)


@dataclass(frozen=True, kw_only=True)
class HybridMean(MeanProtocol):
    """Toss a coin between the piecewise and the one-bit report (Wang et al. 2019, Section III-C).

    Piecewise with probability 1 - e^(-ε/2) above ε = 0.61, never below. The coin does not look at
    the number, and both are ε-DP, so the report is. Its worst-case variance is the least of the
    three.
    """

    kind: ClassVar[str] = "hybrid mean"

    @lazy
    def parts(self) -> tuple[OneBitMean, PiecewiseMean]:
        """The two protocols; a report names its part 0 or 1."""
        low, high = self.ends
        return (
            OneBitMean(epsilon=self.asked, bounds=(low, high)),
            PiecewiseMean(epsilon=self.asked, bounds=(low, high)),
        )

    @lazy
    def piecewise(self) -> Fraction:
        """The probability of a piecewise report."""
        if self.asked <= _TURN:
            return Fraction(0)
        return rounded_down(1 - 1 / exp_decimal(self.asked / 2))

    @property
    def thresholds(self) -> Mapping[str, int]:
        """Piecewise below the first, then as the parts say."""
        one_bit, wide = self.parts
        return {
            "piecewise": int(self.piecewise * WORD),
            **one_bit.thresholds,
            **wide.thresholds,
        }

    @property
    def pair(self) -> Pair:
        """The parts side by side."""
        one_bit, wide = self.parts
        share = self.piecewise
        first, second = (
            (*((1 - share) * p for p in a), *(share * p for p in b))
            for a, b in zip(one_bit.pair, wide.pair, strict=True)
        )
        return first, second

    @property
    def largest(self) -> Fraction:
        """The larger of the two."""
        return max(part.largest for part in self.parts)

    def spread(self, share: Fraction) -> Fraction:
        """The mean of the two, since both are unbiased."""
        one_bit, wide = (part.spread(share) for part in self.parts)
        return (1 - self.piecewise) * one_bit + self.piecewise * wide

    @traced
    def randomize(self, values: Answers) -> Reports:
        """One row (part, output) for each number."""
        one_bit, wide = self.parts
        places = read_places(values, *self.ends, _STEPS)
        chosen = coins(self.piecewise, places.size) if self.piecewise else places < 0
        out = np.where(chosen, wide.window.draw(places), told_bits(places, one_bit.truth))
        return np.column_stack([chosen.astype(np.int64), out])

    def aggregate(self, reports: Reports) -> MeanTally:
        """Add up what the parts add up."""
        rows = self._check(reports)
        total, squares = Fraction(0), Fraction(0)
        for number, part in enumerate(self.parts):
            mine = rows[rows[:, 0] == number, 1]
            if mine.size:
                tally = part.aggregate(mine)
                total, squares = total + tally.total, squares + tally.squares
        return MeanTally(self, total, squares, len(rows))

    def to_wire(self, reports: Reports) -> list[Json]:
        """Two whole numbers each."""
        return [*self._check(reports).tolist()]

    def from_wire(self, payloads: Sequence[Json]) -> Reports:
        """A part and its output."""
        return self._check([*map(list, zip(*columns_of(payloads, 2), strict=True))])

    def _check(self, reports: Reports | list[list[Json]]) -> Integers:
        rows = integers(reports, self.parts[1].window.outputs, columns=2)
        integers(rows[:, 0], 2)
        if bool((rows[rows[:, 0] == 0, 1] > 1).any()):
            raise ReportError("a one-bit report is 0 or 1")
        if self.piecewise == 0 and bool(rows[:, 0].any()):
            raise ReportError("this survey takes one-bit reports only")
        return rows
