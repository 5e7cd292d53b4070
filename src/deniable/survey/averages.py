"""What a server makes of reports about numbers: means with errors, and tallies that add up."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from deniable.errors import ReportError
from deniable.mechanisms.share_intervals import wald
from deniable.privacy.exact import Number, read_bounds
from deniable.privacy.parameters import Parameter, parameter, parameters
from deniable.survey.answers import Answers, read_places
from deniable.survey.formats import Format, Numbers
from deniable.survey.number_laws import NumberLaw
from deniable.survey.protocol import Pair, Protocol, Reports
from deniable.trace import traced

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
        low, high = self.protocol.bounds
        mean = self.total / self.n
        spread = (self.squares - self.n * mean**2) / max(1, self.n - 1)
        # Far outputs may be too rare to have come in. Whatever the answers are, reports spread at
        # least as if all were their mean (Jensen: the variance is convex in the answer).
        held = min(max(mean, Fraction(0)), Fraction(1))
        spread = max(spread, self.protocol.law.spread(held))
        if self.n == 1:
            spread = self.protocol.law.largest**2
        error = float(high - low) * (float(spread) / self.n) ** 0.5
        return MeanEstimate(float(low + mean * (high - low)), error, self.n)


@parameters
class MeanProtocol(Protocol):
    """A client that randomises one number, and a server that takes the mean.

    Formal guarantee, of each protocol below:

    * one report is ε-DP for its sender (relation "replace"), for any two numbers; ε is that of the
      probabilities that are drawn, rounded to 64-bit thresholds, never above what was asked;
    * reports lie on a finite grid of whole numbers and have exactly the channel's probabilities;
    * the estimated mean is unbiased for the mean of the answers, held within the bounds and
      rounded to the grid of inputs (a 2^-30th part of the bounds, unless said otherwise).
    """

    bounds: Parameter[tuple[Number, Number], tuple[Fraction, Fraction]] = parameter(read_bounds)

    @property
    @abstractmethod
    def law(self) -> NumberLaw:
        """How the place of a number between the bounds is told."""

    @property
    def pair(self) -> Pair:
        return self.law.pair

    @property
    def thresholds(self) -> Mapping[str, int]:
        return self.law.thresholds

    @property
    def format(self) -> Format:
        return Numbers(self.law.outputs)

    @traced
    def randomize(self, values: Answers) -> Reports:
        """The clients' part: one report for each number."""
        return self.law.draw(read_places(values, *self.bounds, self.law.steps))

    def aggregate(self, reports: Reports) -> MeanTally:
        """The server's part: check all reports, then add them up, straightened by a line."""
        checked = self.check(reports)
        return MeanTally(self, *self.law.sums(checked), len(checked))
