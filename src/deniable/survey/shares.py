"""What a server makes of reports: tallies that add up, and shares with their errors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from deniable.errors import ParameterError, ReportError
from deniable.mechanisms.base import read_confidence
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

    Where only some categories were asked for, `candidates` names them in the order of `shares`.
    """

    shares: Floats
    standard_errors: Floats
    n: int
    candidates: tuple[int, ...] | None = None  # None: all categories

    def share(self, category: int) -> float:
        """The estimated share of one category."""
        return float(self.shares[self._place(category)])

    def standard_error(self, category: int) -> float:
        """The estimated standard deviation of that share."""
        return float(self.standard_errors[self._place(category)])

    def interval(self, category: int, *, confidence: Number = 0.95) -> tuple[float, float]:
        """A normal interval around one share."""
        low, high = self.intervals(confidence=confidence)
        at = self._place(category)
        return float(low[at]), float(high[at])

    def intervals(self, *, confidence: Number = 0.95) -> tuple[Floats, Floats]:
        """Normal intervals around all shares, each for itself."""
        width = normal_width(confidence) * self.standard_errors
        return self.shares - width, self.shares + width

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


def normal_width(confidence: Number) -> float:
    """How many standard errors an interval reaches to each side."""
    return -NormalDist().inv_cdf(float(1 - read_confidence(confidence)) / 2)


def shares_from_support(
    spoken: Integers, n: int | Integers, support: Support, extra: float = 0.0
) -> tuple[Floats, Floats]:
    """(r - q)/(p - q), r being the rate at which reports speak for a category.

    The true rate lies between q and p whatever the answers are, so the plug-in variance is taken
    there: it is never zero, not even when all reports are alike. `extra` is added to it.
    """
    rate = spoken / np.maximum(n, 1)
    gap = support.own - support.other
    inside = np.clip(rate, min(support), max(support))
    variance = inside * (1 - inside) / np.maximum(n, 1) / gap**2
    missing = np.broadcast_to(np.asarray(n) == 0, rate.shape)
    shares = np.where(missing, np.nan, (rate - support.other) / gap)
    return shares, np.where(missing, math.inf, np.sqrt(variance + extra))
