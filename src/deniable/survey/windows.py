"""Noise that prefers a window around the answer: one of N whole numbers, W of them likelier.

The answer is the start s of a window of W neighbouring outputs among N. An output of the window is
e^ε times as likely as one outside. The mean of the output is linear in s, so a line through it is
unbiased. Both the piecewise mechanism and the square wave are such laws with different windows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from deniable.lazy import lazy
from deniable.privacy.channel import Channel
from deniable.randomness.bernoulli import uniform_below
from deniable.randomness.source import SECURE
from deniable.survey.bits import coins
from deniable.survey.laws import enumerable
from deniable.survey.protocol import Pair
from deniable.survey.thresholds import WORD, keep

Integers = npt.NDArray[np.int64]


class Straightened(ABC):
    """A law whose outputs lie on one line."""

    @property
    @abstractmethod
    def outputs(self) -> int:
        """How many outputs there are."""

    @property
    @abstractmethod
    def line(self) -> tuple[Fraction, Fraction]:
        """Slope and offset that make an output an unbiased estimate of place/steps."""

    @property
    def largest(self) -> Fraction:
        """Half the reach of the outputs."""
        return self.line[0] * (self.outputs - 1) / 2

    def sums(self, reports: Integers) -> tuple[Fraction, Fraction]:
        """The sums of slope * report + offset, and of its square, exactly."""
        slope, offset = self.line
        n, plain = reports.size, int(reports.sum())
        # Outputs are below 2^32: halves of a square's sum stay below 2^63 for 2^31 reports.
        square = (int(((reports * reports) >> 32).sum()) << 32) + int(
            ((reports * reports) & (2**32 - 1)).sum()
        )
        squares = slope**2 * square + 2 * slope * offset * plain + n * offset**2
        return slope * plain + n * offset, squares


@dataclass(frozen=True)
class Window(Straightened):
    """Starts 0, ..., `steps`; outputs 0, ..., steps + width - 1."""

    epsilon: Fraction
    steps: int
    width: int

    @property
    def outputs(self) -> int:
        return self.steps + self.width

    @lazy
    def inside(self) -> Fraction:
        """The probability that the output falls into the window."""
        return keep(self.epsilon, Fraction(self.width, self.steps))

    @property
    def thresholds(self) -> Mapping[str, int]:
        """Fall into the window below `inside`; all that a client needs to draw."""
        return {"inside": int(self.inside * WORD), "steps": self.steps, "width": self.width}

    @property
    def each(self) -> tuple[Fraction, Fraction]:
        """The probability of one output in the window, and of one outside."""
        return self.inside / self.width, (1 - self.inside) / self.steps

    @property
    def pair(self) -> Pair:
        """The first and the last window; where they overlap, outputs have one ratio."""
        shared = max(0, self.width - self.steps)
        only = self.width - shared
        near, far = self.each
        rest = self.outputs - shared - 2 * only
        one = (shared * near, only * near, only * far, rest * far)
        return one, (one[0], one[2], one[1], one[3])

    @property
    def line(self) -> tuple[Fraction, Fraction]:
        """Slope and offset that make an output an unbiased estimate of start/steps."""
        near, far = self.each
        gain = self.width * (near - far)
        # E[output] = far * Σ outputs + (near - far) * (W s + W(W - 1)/2)
        at_zero = far * Fraction(self.outputs * (self.outputs - 1), 2) + (near - far) * Fraction(
            self.width * (self.width - 1), 2
        )
        return 1 / (gain * self.steps), -at_zero / (gain * self.steps)

    def spread(self, share: Fraction) -> Fraction:
        """The variance of a straightened output at a start of share * steps, convex in it."""
        near, far = self.each
        start, n, w = share * self.steps, self.outputs, self.width
        everywhere = Fraction((n - 1) * n * (2 * n - 1), 6)
        within = w * start**2 + start * w * (w - 1) + Fraction((w - 1) * w * (2 * w - 1), 6)
        slope, offset = self.line
        mean = (share - offset) / slope
        return slope**2 * (far * everywhere + (near - far) * within - mean**2)

    def channel(self, starts: Sequence[int]) -> Channel:
        """P(output | start)."""
        near, far = self.each
        outputs = range(enumerable(self.outputs))
        rows = tuple(
            tuple(near if start <= y < start + self.width else far for y in outputs)
            for start in starts
        )
        return Channel(tuple(starts), tuple(outputs), rows)

    def draw(self, starts: Integers) -> Integers:
        """One output for each start."""
        near = starts + uniform_below(self.width, starts.size, SECURE)
        far = uniform_below(self.steps, starts.size, SECURE)
        far += np.where(far >= starts, self.width, 0)
        drawn: Integers = np.where(coins(self.inside, starts.size), near, far)
        return drawn
