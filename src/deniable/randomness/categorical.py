"""Exact choice among candidates with weights exp(factor * score), for any finite scores.

Candidates are thrown into buckets by how far they fall below the best: bucket k holds candidates
whose deficit e = factor * (best - score) is at least k. A bucket is drawn with probability
proportional to its size times exp(-k), a candidate uniformly from it, and kept with probability
exp(-(e - k)). Floats choose only the bucket, which any k <= e makes right; the law is exact
whatever they say. `PROOF.md`, section 6.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from deniable.randomness.bernoulli import below_exp, uniform_below
from deniable.randomness.brackets import Bracket, coarser, exp_minus, ratio
from deniable.randomness.inversion import InversionTable
from deniable.randomness.source import Source, words

ScoreList = npt.NDArray[np.float64] | npt.NDArray[np.int64] | Sequence[Fraction]

_LAST = 127
_GUARD = 64
_FLOAT_FACTORS = (Fraction(1, 2**900), Fraction(2**500))


@dataclass(frozen=True)
class _Buckets:
    """P(bucket) proportional to size * exp(-k)."""

    levels: tuple[int, ...]
    sizes: tuple[int, ...]

    def brackets(self, count: int, precision: int) -> list[Bracket]:
        work = precision + _GUARD + sum(self.sizes).bit_length()
        low = high = 0
        sums = []
        for level, size in zip(self.levels, self.sizes, strict=True):
            weight = _exp_minus_whole(level, work)
            low, high = low + size * weight.low, high + size * weight.high
            sums.append(Bracket(low, high))
        upto = [coarser(ratio(s, sums[-1], work), work - precision) for s in sums[:-1]]
        return ([*upto, Bracket(1 << precision, 1 << precision)])[:count]


@lru_cache(maxsize=4096)
def _exp_minus_whole(k: int, precision: int) -> Bracket:
    return exp_minus(Fraction(k), precision)


class Deficits:
    """How far each score falls below the best: factor * (best - score), exactly and in floats."""

    def __init__(self, scores: ScoreList, factor: Fraction) -> None:
        self._scores = scores
        self._factor = factor
        self._best = _best(scores)
        self.floats = _deficits(scores, factor, self._best)

    def exact(self, index: int) -> Fraction:
        """The deficit of one candidate."""
        return self._factor * (self._best - exact_score(self._scores[index]))


class CategoricalSampler:
    """Draws index i with probability proportional to sizes[i] * exp(factor * scores[i]).

    `sizes` are whole numbers, each 1 if not given, with a sum below 2^62; factor > 0.
    """

    def __init__(
        self, scores: ScoreList, factor: Fraction, sizes: npt.NDArray[np.int64] | None = None
    ) -> None:
        self._deficits = Deficits(scores, factor)
        level = np.minimum(self._deficits.floats, _LAST).astype(np.int8)
        self._order = np.argsort(level, kind="stable")
        self._levels, first = np.unique(level[self._order], return_index=True)
        each = np.ones(level.size, dtype=np.int64) if sizes is None else sizes
        # ends[i]: how much size lies at or before the i-th candidate in the order of levels
        self._ends = np.cumsum(each[self._order])
        self._starts = np.concatenate([[0], self._ends])[np.append(first, level.size)]
        weights = np.diff(self._starts)
        law = _Buckets(tuple(self._levels.tolist()), tuple(weights.tolist()))
        self._table = InversionTable(law, self._levels.size)

    def sample(self, count: int, source: Source) -> npt.NDArray[np.int64]:
        slot = self._table.draw(count, source)
        chosen = np.empty(count, dtype=np.int64)
        for s in np.unique(slot):
            at = np.flatnonzero(slot == s)
            start, stop = int(self._starts[s]), int(self._starts[s + 1])
            place = start + uniform_below(stop - start, at.size, source)
            chosen[at] = self._order[np.searchsorted(self._ends, place, side="right")]
        level = self._levels[slot]
        kept = below_exp(
            words(source, count),
            np.maximum(self._deficits.floats[chosen] - level, 0.0),
            lambda at, precision: exp_minus(
                self._deficits.exact(int(chosen[at])) - int(level[at]), precision
            ),
            source,
        )
        again = np.flatnonzero(~kept)
        if again.size:
            chosen[again] = self.sample(again.size, source)
        return chosen


def permute_and_flip(scores: ScoreList, factor: Fraction, source: Source) -> int:
    """Flip a coin of probability exp(-deficit) for each candidate; one of the heads, uniformly.

    Going through a random permutation and stopping at the first head gives the same law, because
    the coins do not depend on the order (McKenna & Sheldon 2020, Alg. 1).
    """
    deficits = Deficits(scores, factor)
    heads = np.flatnonzero(
        below_exp(
            words(source, deficits.floats.size),
            deficits.floats,
            lambda at, precision: exp_minus(deficits.exact(at), precision),
            source,
        )
    )
    return int(heads[uniform_below(heads.size, 1, source)[0]])


def exact_score(score: float | int | Fraction) -> Fraction:
    """A score's exact value: scores are data, a float means its binary value."""
    return Fraction(score.item() if isinstance(score, np.generic) else score)


def _best(scores: ScoreList) -> Fraction:
    return exact_score(scores.max() if isinstance(scores, np.ndarray) else max(scores))


def _deficits(scores: ScoreList, factor: Fraction, best: Fraction) -> npt.NDArray[np.float64]:
    """Factor * (best - score), never above the true deficit, and within a relative 2^-48 of it."""
    if not isinstance(scores, np.ndarray) or not _FLOAT_FACTORS[0] <= factor <= _FLOAT_FACTORS[1]:
        return np.array([_below(factor * (best - exact_score(score))) for score in scores])
    if np.issubdtype(scores.dtype, np.integer):
        gap = (scores.max().astype(np.uint64) - scores.astype(np.uint64)).astype(np.float64)
        deficit: npt.NDArray[np.float64] = gap * float(factor)
    else:
        scores = scores.astype(np.float64)
        # Halves: the difference of two doubles may exceed the largest one. Infinity is an honest
        # product: it lands on the last level. What is too small for doubles is as good as nothing.
        with np.errstate(over="ignore", under="ignore"):
            deficit = (scores.max() / 2 - scores / 2) * float(2 * factor)
    return np.maximum(deficit * (1 - 2.0**-49) - 2.0**-49, 0.0)


def _below(deficit: Fraction) -> float:
    return max(0.0, math.nextafter(float(min(deficit, Fraction(2**60))), 0.0))
