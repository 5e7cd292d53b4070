"""What a server makes of reports about numbers: means with errors, and tallies that add up."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from deniable.errors import ReportError
from deniable.lazy import lazy
from deniable.mechanisms.share_intervals import wald
from deniable.privacy.exact import Number, exact, read_bounds
from deniable.privacy.losses.base import Loss
from deniable.privacy.losses.channel import ChannelLoss
from deniable.survey.answers import Answers
from deniable.survey.frequency import Pair, Reports
from deniable.survey.reports import Json
from deniable.survey.thresholds import read_epsilon

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class MeanEstimate:
    """An unbiased mean, with the standard error of people drawn from a large population."""

    mean: float
    standard_error: float
    n: int

    def interval(self, *, confidence: Number = 0.95) -> tuple[float, float]:
        """A normal interval around the mean."""
        return wald(self.mean, self.standard_error, confidence)


@dataclass(frozen=True, eq=False)
class MeanTally:
    """Counts of the reports of each output; tallies of one protocol add up."""

    protocol: MeanProtocol
    total: Fraction
    squares: Fraction
    n: int

    def __add__(self, other: MeanTally) -> MeanTally:
        if not isinstance(other, MeanTally):
            raise ReportError(f"a tally adds up with a tally, not {type(other).__name__}")
        if other.protocol != self.protocol:
            raise ReportError("tallies of different protocols do not add up")
        return MeanTally(
            self.protocol, self.total + other.total, self.squares + other.squares, self.n + other.n
        )

    def estimate(self) -> MeanEstimate:
        """The unbiased mean in the unit of the bounds, with its standard error."""
        low, high = self.protocol.ends
        mean = self.total / self.n
        spread = (self.squares - self.n * mean**2) / max(1, self.n - 1)
        # Far outputs may be too rare to have come in. Whatever the answers are, reports spread at
        # least as if all were their mean (Jensen: the variance is convex in the answer).
        held = min(max(mean, Fraction(0)), Fraction(1))
        spread = max(spread, self.protocol.spread(held))
        if self.n == 1:
            spread = self.protocol.largest**2
        error = float(high - low) * (float(spread) / self.n) ** 0.5
        return MeanEstimate(float(low + mean * (high - low)), error, self.n)


@dataclass(frozen=True, kw_only=True)
class MeanProtocol(ABC):
    """A client that randomises one number, and a server that takes the mean.

    Formal guarantee, of each protocol below:

    * one report is ε-DP for its sender (relation "replace"), for any two numbers; ε is that of the
      probabilities that are drawn, rounded to 64-bit thresholds, never above what was asked;
    * reports lie on a finite grid of whole numbers and have exactly the channel's probabilities;
    * the estimated mean is unbiased for the mean of the answers, held within the bounds and
      rounded to the grid of inputs (a 2^-30th part of the bounds, unless said otherwise).
    """

    kind: ClassVar[str]
    epsilon: Number
    bounds: tuple[Number, Number]

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", read_epsilon(self.epsilon))
        object.__setattr__(self, "bounds", read_bounds(self.bounds))

    @property
    def asked(self) -> Fraction:
        """The ε that was asked for."""
        return exact(self.epsilon, "epsilon")

    @property
    def ends(self) -> tuple[Fraction, Fraction]:
        """The bounds."""
        low, high = self.bounds
        return exact(low, "bounds"), exact(high, "bounds")

    @property
    @abstractmethod
    def pair(self) -> Pair:
        """The laws of a report under the two answers furthest apart, in classes of one ratio."""

    @property
    @abstractmethod
    def thresholds(self) -> Mapping[str, int]:
        """What a client compares 64 random bits with."""

    @property
    @abstractmethod
    def largest(self) -> Fraction:
        """How far one report's part of the mean can lie from the middle, in spans of the bounds."""

    @abstractmethod
    def spread(self, share: Fraction) -> Fraction:
        """The variance of one report's part, in squared spans, of people who answer all alike.

        They are this share of the way from low to high; no others with that mean have less.
        """

    @abstractmethod
    def randomize(self, values: Answers) -> Reports:
        """The clients' part: one report for each number."""

    @abstractmethod
    def aggregate(self, reports: Reports) -> MeanTally:
        """The server's part: check all reports, then add them up."""

    @abstractmethod
    def to_wire(self, reports: Reports) -> list[Json]:
        """One JSON value for each report."""

    @abstractmethod
    def from_wire(self, payloads: Sequence[Json]) -> Reports:
        """Reports from their JSON values, checked."""

    @lazy
    def loss(self) -> Loss:
        """What one report costs its sender."""
        return ChannelLoss(rows=self.pair)


def linear_tally(
    protocol: MeanProtocol, reports: Integers, slope: Fraction, offset: Fraction
) -> MeanTally:
    """Add up slope * report + offset and its square, exactly."""
    n, plain = reports.size, int(reports.sum())
    # Outputs are below 2^32: halves of a square's sum stay below 2^63 for 2^31 reports.
    square = (int(((reports * reports) >> 32).sum()) << 32) + int(
        ((reports * reports) & (2**32 - 1)).sum()
    )
    total = slope * plain + n * offset
    squares = slope**2 * square + 2 * slope * offset * plain + n * offset**2
    return MeanTally(protocol, total, squares, n)
