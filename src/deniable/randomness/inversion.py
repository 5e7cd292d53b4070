"""Lazy inversion: exact draws from a law on 0, 1, 2, ... at table-lookup speed.

A draw is the index of the cell, cut by the exact real values F(0) < F(1) < ..., that holds a
uniform U whose bits are revealed only as far as they are needed: 16 bits and one lookup for most
draws, 64 bits and a binary search for those whose 16-bit cell holds a threshold, and as many more
as it takes, against certified integer brackets, when 64 bits tie. `PROOF.md`, section 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import Protocol

import numpy as np
import numpy.typing as npt

from deniable.errors import RandomnessError
from deniable.lazy import lazy
from deniable.randomness.brackets import Bracket, divide_up
from deniable.randomness.source import Source, bits, words

Indices = npt.NDArray[np.int16]

_CELLS = 1 << 16
_TOP = (1 << 64) - 1
_MAX_PRECISION = 1 << 16
_MAX_INDEX = (1 << 15) - 1
_OPEN = np.int16(np.iinfo(np.int16).min)
_LOOKUP_PAYS = 512  # draws below which building the lookup costs more than it saves


class Cumulative(Protocol):
    """The exact distribution function of a law on the naturals, known through brackets."""

    def brackets(self, count: int, precision: int) -> list[Bracket]:
        """Bracket F(0), ..., F(count - 1); fewer where the law ends earlier."""


class InversionTable:
    """Draws indices from the exact law of `cumulative`; zigzag-signed values if `signed`."""

    def __init__(self, cumulative: Cumulative, count: int, *, signed: bool = False) -> None:
        self._cumulative = cumulative
        self._signed = signed
        self._thresholds = np.array(_floors(cumulative, count), dtype=np.uint64)

    @lazy
    def _lookup(self) -> Indices:
        """The value for each 16-bit cell that holds no threshold, `_OPEN` for the others."""
        cell = np.arange(_CELLS)
        cell_of_threshold = (self._thresholds >> np.uint64(48)).astype(np.int64)
        first = np.searchsorted(cell_of_threshold, cell, side="left").astype(np.int16)
        last = np.searchsorted(cell_of_threshold, cell, side="right")
        return np.where(first == last, self._value(first), _OPEN)

    def _value(self, index: Indices) -> Indices:
        return zigzag(index) if self._signed else index

    def draw(self, count: int, source: Source) -> Indices:
        high = source.draw(2 * count).view(np.uint16)
        if count < _LOOKUP_PAYS:
            return self._refine(high, source)
        out = self._lookup.take(high, mode="clip")
        open_at = np.flatnonzero(out == _OPEN)
        if open_at.size:
            out[open_at] = self._refine(high[open_at], source)
        return out

    def _refine(self, high: npt.NDArray[np.uint16], source: Source) -> Indices:
        """Settle draws whose first 16 bits, `high`, leave the index open."""
        low = words(source, high.size) >> np.uint64(16)
        word = (high.astype(np.uint64) << np.uint64(48)) | low
        index = np.searchsorted(self._thresholds, word, side="left")
        for at in np.flatnonzero(self._thresholds[index] == word):
            index[at] = self._settle(int(word[at]), source)
        return self._value(index.astype(np.int16))

    def _settle(self, word: int, source: Source) -> int:
        index = locate(self._cumulative, word, source)
        if index > _MAX_INDEX:
            raise RandomnessError("a draw fell beyond the range of the sampler; draw again")
        return index


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


def zigzag(index: Indices) -> Indices:
    """Map 0, 1, 2, 3, 4, ... to 0, -1, 1, -2, 2, ..."""
    return (index >> 1) ^ -(index & 1)


def locate(cumulative: Cumulative, word: int, source: Source) -> int:
    """Return the exact index of the cell that holds U, of which `word` is the first 64 bits.

    Draws 64 bits more at a time until every comparison on the way is certain.
    """
    precision = 64
    while precision <= _MAX_PRECISION:
        word = (word << 64) | bits(source, 64)
        precision += 64
        index = _certain_index(cumulative, word, precision)
        if index is not None:
            return index
    raise RandomnessError("a draw stayed undecided; the random source is broken")


def _certain_index(cumulative: Cumulative, word: int, precision: int) -> int | None:
    """The index i with F(i-1) <= U < F(i) if the brackets prove it, None if bits are missing."""
    count = 64
    while count <= 2 * _MAX_INDEX:
        for index, bracket in enumerate(cumulative.brackets(count, precision)):
            if word + 1 <= bracket.low:
                return index
            if word < bracket.high:
                return None
        count *= 2
    return _MAX_INDEX + 1


def _floors(cumulative: Cumulative, count: int) -> list[int]:
    """floor(2^64 F(i)), each proved by a bracket that lies within one unit, capped at 2^64 - 1.

    The list ends with the first capped floor: an all-ones word always ties there and is settled
    exactly, which covers the infinite tail.
    """
    precision = 128
    while precision <= _MAX_PRECISION:
        brackets = cumulative.brackets(count, precision)
        low = [min(b.low >> (precision - 64), _TOP) for b in brackets]
        high = [min(b.high >> (precision - 64), _TOP) for b in brackets]
        if low == high:
            if _TOP not in low:
                return _floors(cumulative, 2 * count)
            return low[: low.index(_TOP) + 1]
        precision *= 2
    raise RandomnessError("the thresholds of this law could not be certified")
