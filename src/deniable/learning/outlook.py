"""Whether a budget can support a model, said before anything is spent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from deniable.learning.noise import Mechanism
from deniable.learning.rows import GRID
from deniable.learning.sums import Gradients, GroupSums, Moments, Sums

_TYPICAL_LENGTH = 0.5  # of a row, where the longest is 1


@dataclass(frozen=True)
class Outlook:
    """How large the noise is beside what rows of typical length add up to.

    Below 0.1 the model hardly feels it; above 1 there is little left to learn.
    """

    noise_to_signal: float
    size: int

    @property
    def supported(self) -> bool:
        return self.noise_to_signal < 1

    def __str__(self) -> str:
        if self.supported:
            return f"{self.size:,} rows: noise is {self.noise_to_signal:.2g} of the signal"
        more = math.ceil(self.size * self.noise_to_signal)
        return (
            f"{self.size:,} rows: noise is {self.noise_to_signal:.2g} times the signal; this "
            f"budget needs about {more:,} rows, or fewer columns, or a smaller norm"
        )


def foreseen(parts: Sequence[tuple[Sums, Mechanism, int]], size: int, features: int) -> Outlook:
    """The part of a fit that hears most noise decides."""
    return Outlook(max(_ratio(*part, size, features) for part in parts), size)


def _ratio(sums: Sums, mechanism: Mechanism, times: int, size: int, features: int) -> float:
    spread = mechanism.deviation
    match sums:
        case Moments():
            # The noise matrix has eigenvalues up to 2s sqrt(k); the rows' k eigenvalues share
            # their squared length.
            k = sums.width(features)
            signal = sums.row**2 * size * _TYPICAL_LENGTH**2 / k
            return 2 * sums.noise(spread, features) * math.sqrt(k) / signal
        case GroupSums():
            length = sums.noise(spread, features) * math.sqrt(features) / math.sqrt(times)
            return length * sums.groups / (sums.row * size * _TYPICAL_LENGTH)
        case Gradients():
            numbers = len(sums.weights) * (features + 1)
            length = spread / GRID * math.sqrt(numbers / times)
            return length / (size * _TYPICAL_LENGTH)
    return 0.0
