"""Exact draws from finitely many rational probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from deniable.randomness.brackets import Bracket, divide_up
from deniable.randomness.inversion import InversionTable
from deniable.randomness.source import Source


@dataclass(frozen=True)
class _Rationals:
    """F(i), each an exact rational."""

    sums: tuple[Fraction, ...]

    def brackets(self, count: int, precision: int) -> list[Bracket]:
        scaled = [(s.numerator << precision, s.denominator) for s in self.sums[:count]]
        return [Bracket(top // bottom, divide_up(top, bottom)) for top, bottom in scaled]


class ChoiceSampler:
    """Index i with probability weights[i] (`PROOF.md`, section 2)."""

    def __init__(self, weights: tuple[Fraction, ...]) -> None:
        self._table = InversionTable(_Rationals(tuple(accumulate(weights))), len(weights))

    def sample(self, count: int, source: Source) -> npt.NDArray[np.int64]:
        return self._table.draw(count, source).astype(np.int64)
