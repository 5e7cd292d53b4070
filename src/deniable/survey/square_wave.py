"""The square wave: the whole distribution of a number, not only its mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from deniable.errors import ParameterError
from deniable.lazy import lazy
from deniable.privacy.channel import Channel
from deniable.privacy.exact import whole
from deniable.survey.adjust import AdjustedShares, iterate_bayes
from deniable.survey.answers import Answers, read_places
from deniable.survey.averages import MeanProtocol, MeanTally, linear_tally
from deniable.survey.frequency import Pair, Reports, numbers
from deniable.survey.reports import Json, integers
from deniable.survey.thresholds import exp_decimal
from deniable.survey.windows import Window
from deniable.trace import traced

_MOST_STEPS = 1 << 16
_MOST_CELLS = 1 << 24


@dataclass(frozen=True, kw_only=True)
class SquareWave(MeanProtocol):
    """Report a whole number that is e^ε times likelier within a window around the answer.

    The square wave (Li et al. 2020) on a grid of `steps`: bounds 0 and 1 are `steps` cells apart,
    the window is 2b wide with b = (ε e^ε - e^ε + 1)/(2 e^ε (e^ε - 1 - ε)), rounded to cells. The
    mean is unbiased, with its error; `reconstruct` gives the distribution by iterative Bayes,
    which is no unbiased estimate and is labelled so.
    """

    kind: ClassVar[str] = "square wave"
    steps: int = 1024

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 2 <= whole(self.steps, "steps") <= _MOST_STEPS:
            raise ParameterError("steps", self.steps, f"must be 2 to {_MOST_STEPS:,}")

    @property
    def half_width(self) -> float:
        """b, before it is rounded to cells."""
        return float(half_width(self.asked))

    @lazy
    def window(self) -> Window:
        """The exact law."""
        width = max(1, round(2 * half_width(self.asked) * self.steps))
        return Window(self.asked, self.steps, width)

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

    def channel(self) -> Channel:
        """P(output | start of the window), for few steps."""
        return self.window.channel(range(self.steps + 1))

    @traced
    def randomize(self, values: Answers) -> Reports:
        """One whole number for each number."""
        return self.window.draw(read_places(values, *self.ends, self.steps))

    def aggregate(self, reports: Reports) -> MeanTally:
        """Add up the outputs, straightened by a line."""
        return linear_tally(self, integers(reports, self.window.outputs), *self.window.line)

    def reconstruct(
        self, reports: Reports, *, bins: int = 64, iterations: int = 1000
    ) -> AdjustedShares:
        """The distribution over equal bins of the bounds, by iterative Bayes (EM)."""
        if not 2 <= whole(bins, "bins") <= self.steps:
            raise ParameterError("bins", bins, f"must be 2 to the number of steps, {self.steps}")
        checked = integers(reports, self.window.outputs)
        counts = np.bincount(checked, minlength=self.window.outputs)
        return iterate_bayes(self._laws(bins), counts, iterations=iterations)

    def _laws(self, bins: int) -> npt.NDArray[np.float64]:
        """P(output | bin), answers spread evenly within a bin: one column a bin."""
        if self.window.outputs * bins > _MOST_CELLS:
            raise ParameterError(
                "bins", bins, f"must be {_MOST_CELLS // self.window.outputs} at most for the steps"
            )
        near, far = (float(p) for p in self.window.each)
        member = np.minimum(np.arange(self.steps + 1) * bins // self.steps, bins - 1)
        edges = np.searchsorted(member, np.arange(bins + 1))
        # An output lies in the windows of the starts from output - width + 1 to itself.
        outputs = np.arange(self.window.outputs)[:, None]
        last = np.minimum(outputs + 1, edges[1:])
        covered = np.maximum(last - np.maximum(outputs - self.window.width + 1, edges[:-1]), 0)
        laws: npt.NDArray[np.float64] = far + (near - far) * covered / np.diff(edges)
        return laws

    def to_wire(self, reports: Reports) -> list[Json]:
        """A whole number each."""
        return [*numbers(integers(reports, self.window.outputs))]

    def from_wire(self, payloads: Sequence[Json]) -> Reports:
        """Whole numbers below the number of outputs."""
        return integers(list(payloads), self.window.outputs)


def half_width(epsilon: Fraction) -> Fraction:
    """The b of Li et al. 2020, Section 5.3, to more digits than its rounding to cells needs."""
    e = exp_decimal(epsilon)
    return (epsilon * e - e + 1) / (2 * e * (e - 1 - epsilon))
