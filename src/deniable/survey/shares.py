"""What a server makes of reports: tallies that add up, and shares with their errors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from deniable.errors import ParameterError, ReportError
from deniable.mechanisms.share_intervals import clopper_pearson, wald
from deniable.privacy.exact import Number, whole

if TYPE_CHECKING:
    from deniable.survey.frequency import Frequency

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


class Support(NamedTuple):
    """How often a report speaks for a category: that of its sender, and any other."""

    own: float
    other: float


@dataclass(frozen=True, eq=False)
class Spoken:
    """How many reports speak for each category, out of how many: each number is binomial."""

    counts: Integers
    n: int | Integers
    support: Support

    @property
    def shares(self) -> Floats:
        """(r - q)/(p - q), r being the rate at which reports speak for a category; NaN of none."""
        rate = self.counts / np.maximum(self.n, 1)
        gap = self.support.own - self.support.other
        return np.where(np.asarray(self.n) == 0, np.nan, (rate - self.support.other) / gap)

    @property
    def standard_errors(self) -> Floats:
        """Of the shares.

        The true rate lies between q and p whatever the answers are, so the plug-in variance is
        taken there: it is never zero, not even when all reports are alike.
        """
        rate = np.clip(self.counts / np.maximum(self.n, 1), min(self.support), max(self.support))
        variance = rate * (1 - rate) / np.maximum(self.n, 1)
        gap = self.support.own - self.support.other
        return np.where(np.asarray(self.n) == 0, math.inf, np.sqrt(variance) / abs(gap))

    def estimate(self, n: int, candidates: tuple[int, ...] | None = None) -> ShareEstimate:
        """All of it, with exact intervals."""
        return ShareEstimate(self.shares, self.standard_errors, n, candidates, self)

    def interval(self, confidence: Number) -> tuple[Floats, Floats]:
        """Of all shares: the exact intervals of the rates, through the support."""
        low, high = clopper_pearson(self.counts, self.n, confidence)
        gap = self.support.own - self.support.other
        return (low - self.support.other) / gap, (high - self.support.other) / gap


@dataclass(frozen=True, eq=False)
class Tally:
    """Counts of reports; tallies of one protocol add up, in any order, on any machine."""

    protocol: Frequency
    counts: Integers
    n: int
    candidates: tuple[int, ...] | None = None  # None: all categories

    def __add__(self, other: Tally) -> Tally:
        if not isinstance(other, Tally):
            raise ReportError(f"a tally adds up with a tally, not {type(other).__name__}")
        if (other.protocol, other.candidates) != (self.protocol, self.candidates):
            raise ReportError("tallies of different protocols or candidates do not add up")
        counts = self.counts + other.counts
        return Tally(self.protocol, counts, self.n + other.n, self.candidates)

    def estimate(self) -> ShareEstimate:
        """Unbiased shares of all categories, with standard errors."""
        return self.protocol.estimate(self)


@dataclass(frozen=True, eq=False)
class ShareEstimate:
    """Unbiased shares, each possibly below 0 or above 1, with standard errors.

    The errors are those of people drawn from a large population. Shares that were made to look
    like shares (`clipped`, `norm_sub`, `on_simplex`) are biased; they say so.

    Where a share depends on one count, `spoken` has it, and intervals are exact (Clopper & Pearson
    through the support): each covers at least as often as it says, at every share and size. Of
    sketches, and of Hadamard response in several blocks, they are normal, and cover about as often.

    Where only some categories were asked for, `candidates` names them in the order of `shares`.
    """

    shares: Floats
    standard_errors: Floats
    n: int
    candidates: tuple[int, ...] | None = None  # None: all categories
    spoken: Spoken | None = None

    def share(self, category: int) -> float:
        """The estimated share of one category."""
        return float(self.shares[self._place(category)])

    def standard_error(self, category: int) -> float:
        """The estimated standard deviation of that share."""
        return float(self.standard_errors[self._place(category)])

    def interval(self, category: int, *, confidence: Number = 0.95) -> tuple[float, float]:
        """An interval around one share."""
        low, high = self.among([self._place(category)]).intervals(confidence=confidence)
        return float(low[0]), float(high[0])

    def intervals(self, *, confidence: Number = 0.95) -> tuple[Floats, Floats]:
        """Intervals around all shares, each for itself."""
        if self.spoken is not None:
            return self.spoken.interval(confidence)
        return wald(self.shares, self.standard_errors, confidence)

    def among(self, places: Sequence[int] | Integers) -> ShareEstimate:
        """Of some categories only, given by their places here."""
        at = np.asarray(places)
        names = at.tolist() if self.candidates is None else [self.candidates[i] for i in at]
        spoken = self.spoken
        if spoken is not None:
            n = spoken.n[at] if isinstance(spoken.n, np.ndarray) else spoken.n
            spoken = Spoken(spoken.counts[at], n, spoken.support)
        return ShareEstimate(
            self.shares[at], self.standard_errors[at], self.n, tuple(names), spoken
        )

    @property
    def counts(self) -> Floats:
        """The shares times the number of people."""
        return self.shares * self.n

    def _place(self, category: int) -> int:
        number = whole(category, "category", least=0)
        if self.candidates is not None:
            if number not in self.candidates:
                raise ParameterError("category", category, "is none of the candidates asked for")
            return self.candidates.index(number)
        if number >= self.shares.size:
            raise ParameterError("category", category, f"must be below {self.shares.size}")
        return number


def chosen(candidates: Sequence[int] | None) -> tuple[int, ...] | None:
    """Candidates that were read, as they are kept beside their shares."""
    return None if candidates is None else tuple(int(each) for each in candidates)
