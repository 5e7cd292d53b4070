"""The square wave: the whole distribution of a number, not only its mean."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from deniable.errors import ParameterError
from deniable.lazy import lazy
from deniable.privacy.channel import Channel
from deniable.privacy.exact import whole
from deniable.privacy.parameters import parameter, parameters
from deniable.survey.adjust import AdjustedShares, iterate_bayes
from deniable.survey.answers import within
from deniable.survey.averages import MeanProtocol
from deniable.survey.protocol import Reports
from deniable.survey.thresholds import exp_decimal
from deniable.survey.windows import Window

_MOST_CELLS = 1 << 24


@parameters
class SquareWave(MeanProtocol):
    """Report a whole number that is e^ε times likelier within a window around the answer.

    The square wave (Li et al. 2020) on a grid of `steps`: bounds 0 and 1 are `steps` cells apart,
    the window is 2b wide with b = (ε e^ε - e^ε + 1)/(2 e^ε (e^ε - 1 - ε)), rounded to cells. The
    mean is unbiased, with its error; `reconstruct` gives the distribution by iterative Bayes,
    which is no unbiased estimate and is labelled so.
    """

    kind: ClassVar[str] = "square wave"
    steps: int = parameter(within(2, 1 << 16), default=1024)

    @lazy
    def law(self) -> Window:
        width = max(1, round(2 * half_width(self.epsilon) * self.steps))
        return Window(self.epsilon, self.steps, width)

    def channel(self) -> Channel:
        """P(output | start of the window), for few steps."""
        return self.law.channel(range(self.steps + 1))

    def reconstruct(
        self, reports: Reports, *, bins: int = 64, iterations: int = 1000
    ) -> AdjustedShares:
        """The distribution over equal bins of the bounds, by iterative Bayes (EM)."""
        if not 2 <= whole(bins, "bins") <= self.steps:
            raise ParameterError("bins", bins, f"must be 2 to the number of steps, {self.steps}")
        counts = self.format.count(self.check(reports))
        return iterate_bayes(self._laws(bins), counts, iterations=iterations)

    def _laws(self, bins: int) -> npt.NDArray[np.float64]:
        """P(output | bin), answers spread evenly within a bin: one column a bin."""
        if self.law.outputs * bins > _MOST_CELLS:
            raise ParameterError(
                "bins", bins, f"must be {_MOST_CELLS // self.law.outputs} at most for the steps"
            )
        near, far = (float(p) for p in self.law.each)
        member = np.minimum(np.arange(self.steps + 1) * bins // self.steps, bins - 1)
        edges = np.searchsorted(member, np.arange(bins + 1))
        # An output lies in the windows of the starts from output - width + 1 to itself.
        outputs = np.arange(self.law.outputs)[:, None]
        last = np.minimum(outputs + 1, edges[1:])
        covered = np.maximum(last - np.maximum(outputs - self.law.width + 1, edges[:-1]), 0)
        laws: npt.NDArray[np.float64] = far + (near - far) * covered / np.diff(edges)
        return laws


def half_width(epsilon: Fraction) -> Fraction:
    """The b of Li et al. 2020, Section 5.3, to more digits than its rounding to cells needs."""
    e = exp_decimal(epsilon)
    return (epsilon * e - e + 1) / (2 * e * (e - 1 - epsilon))
