"""Heavy hitters: the frequent values of a domain too large to be counted through."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from deniable.errors import ReportError
from deniable.lazy import lazy
from deniable.privacy.exact import Number
from deniable.privacy.parameters import Parameter, parameter, parameters
from deniable.survey.answers import Answers, read_answers, within
from deniable.survey.local_hashing import LocalHashing
from deniable.survey.several import Drawn, ReportParts, SampleOne, part_sizes
from deniable.survey.shares import ShareEstimate
from deniable.survey.thresholds import read_epsilon
from deniable.trace import traced

Integers = npt.NDArray[np.int64]


@parameters
class HeavyHitters(Drawn):
    """Frequent values of `bits` bits, by prefixes that grow (Wang, Li & Jha 2019, PEM).

    Formal guarantee: each person draws a length without looking at the value and reports the
    prefix of that length by local hashing with all of ε, so that one report is ε-DP. The server
    keeps the `keep` likeliest prefixes of each length and extends them by `step` bits.
    """

    kind: ClassVar[str] = "heavy hitters"
    bits: int = parameter(within(1, 32))
    epsilon: Parameter[Number, Fraction] = parameter(read_epsilon)
    first: int = parameter(within(1, 16), default=8)
    step: int = parameter(within(1, 16), default=4)
    keep: int = parameter(within(1, 1 << 14), default=64)

    def __post_init__(self) -> None:
        within(1, self.bits)(self.first, "first")

    @lazy
    def lengths(self) -> tuple[int, ...]:
        """How long the prefixes are, round by round."""
        between = range(self.first, self.bits, self.step)
        return (*between, self.bits)

    @lazy
    def drawn(self) -> SampleOne:
        """One protocol for each length."""
        return SampleOne(
            tuple(LocalHashing(k=1 << length, epsilon=self.epsilon) for length in self.lengths)
        )

    @traced
    def randomize(self, values: Answers) -> ReportParts:
        """The reports of each length, by those who drew it."""
        truth = read_answers(values, 1 << self.bits)
        return self.drawn.randomize([truth >> (self.bits - length) for length in self.lengths])

    def find(self, reports: ReportParts) -> HeavyValues:
        """Check all reports, then grow the likeliest prefixes to whole values."""
        sizes = part_sizes(reports)
        if len(sizes) != len(self.lengths) or not all(sizes):
            raise ReportError("some length has no report; more people are needed")
        candidates = np.arange(1 << self.lengths[0])
        before = self.lengths[0]
        for number, length in enumerate(self.lengths):
            if number:
                suffixes = np.arange(1 << (length - before))
                candidates = ((candidates[:, None] << (length - before)) + suffixes).ravel()
            part = self.drawn.parts[number]
            assert isinstance(part, LocalHashing)
            tally = part.aggregate(reports[number], candidates.tolist())
            estimate = tally.estimate()
            best = np.argsort(-estimate.shares, kind="stable")[: self.keep]
            candidates, before = candidates[best], length
        return HeavyValues(candidates, estimate.among(best))


@dataclass(frozen=True, eq=False)
class HeavyValues:
    """Values in falling order of their estimated shares, which rest on the last round alone.

    The shares of values found by their size are biased upwards by having been found. They are
    asked for by value: `estimate.share(values[0])`.
    """

    values: Integers
    estimate: ShareEstimate

    def above(self, share: float) -> Integers:
        """The values whose estimated share is above this."""
        return self.values[self.estimate.shares > share]
