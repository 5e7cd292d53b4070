"""Hadamard response: a report is a column at which the row of the true category is likely +1."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import partial
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from deniable.errors import ParameterError
from deniable.lazy import lazy
from deniable.privacy.channel import Channel
from deniable.privacy.exact import whole
from deniable.privacy.parameters import parameter, parameters
from deniable.randomness.bernoulli import uniform_below
from deniable.randomness.source import SECURE
from deniable.survey.answers import Answers, Integers, read_answers, read_size
from deniable.survey.bits import coins
from deniable.survey.formats import Numbers
from deniable.survey.frequency import Frequency
from deniable.survey.laws import enumerable
from deniable.survey.protocol import Pair, Reports
from deniable.survey.shares import ShareEstimate, Spoken, Support, Tally
from deniable.survey.thresholds import WORD, keep
from deniable.trace import traced

_MOST = 1 << 24


@parameters
class HadamardResponse(Frequency):
    """Report one of K columns: those in the true category's set weigh e^ε, the others 1.

    Categories are put into `blocks` of one less than `width` each; the set of a category are the
    columns of its block at which its row of the Hadamard matrix is +1 (Acharya, Sun & Zhang 2019).
    One block is the version for high privacy. The number of blocks is the best power of two
    unless given. Servers need n + K log K steps: the fastest for many categories.
    """

    kind: ClassVar[str] = "Hadamard response"
    k: int = parameter(partial(read_size, most=_MOST))
    blocks: int = 0

    def __post_init__(self) -> None:
        blocks = self.blocks or _best_blocks(self.k, float(self.epsilon))
        if whole(blocks, "blocks") & (blocks - 1) or blocks > self.k:
            raise ParameterError("blocks", blocks, "must be a power of two, k at most")
        object.__setattr__(self, "blocks", int(blocks))

    @property
    def width(self) -> int:
        """The columns of a block; the all-ones row is not used."""
        return _width(self.k, self.blocks)

    @property
    def columns(self) -> int:
        """All columns."""
        return self.blocks * self.width

    @lazy
    def holds(self) -> Fraction:
        """The probability that the report is in the true category's set."""
        half = self.width // 2
        return keep(self.epsilon, Fraction(half, self.columns - half))

    @property
    def _other(self) -> Fraction:
        """The probability of each column outside the set."""
        return (1 - self.holds) / (self.columns - self.width // 2)

    @property
    def thresholds(self) -> Mapping[str, int]:
        """Report a column of the set below this."""
        return {"holds": int(self.holds * WORD)}

    @property
    def pair(self) -> Pair:
        """Two categories of one block share half of their sets; of two blocks, none."""
        half, own, other = self.width // 2, 2 * self.holds / self.width, self._other
        shared = half // 2 if self.width > 2 and self.blocks == 1 else 0
        only = half - shared
        rest = self.columns - shared - 2 * only
        one = (shared * own, only * own, only * other, rest * other)
        return one, (one[0], one[2], one[1], one[3])

    @property
    def support(self) -> Support:
        """How often a report is in its sender's set, and in that of another of the block."""
        half = self.width // 2
        shared = half // 2 if self.width > 2 else 0
        inside = shared * 2 * self.holds / self.width + (half - shared) * self._other
        return Support(float(self.holds), float(inside))

    @property
    def format(self) -> Numbers:
        return Numbers(self.columns)

    def channel(self) -> Channel:
        """P(column | answer)."""
        columns = range(enumerable(self.columns))
        own, other = 2 * self.holds / self.width, self._other
        inside = self._sets(np.arange(self.k))
        rows = tuple(tuple(own if inside[x, y] else other for y in columns) for x in range(self.k))
        return Channel(tuple(range(self.k)), tuple(columns), rows)

    def _sets(self, categories: Integers) -> npt.NDArray[np.bool_]:
        """Which columns are in the set of each category."""
        block, row = self._rows(categories)
        columns = np.arange(self.columns)
        plus = ~parity(row[:, None] & (columns % self.width)[None, :])
        inside: npt.NDArray[np.bool_] = plus & (columns // self.width == block[:, None])
        return inside

    def _rows(self, categories: Integers) -> tuple[Integers, Integers]:
        """Block and row of each category; row 0 is all ones and tells nothing."""
        return categories // (self.width - 1), categories % (self.width - 1) + 1

    @traced
    def randomize(self, values: Answers) -> Reports:
        """One column's number for each true answer."""
        block, row = self._rows(read_answers(values, self.k))
        n, half = block.size, self.width // 2
        held = coins(self.holds, n)
        # Outside the set: the other half of the block, or a column of another block.
        place = uniform_below(self.columns - half, n, SECURE) - half
        away = ~held & (place >= 0)
        place += np.where(place >= block * self.width, self.width, 0)
        column = uniform_below(self.width, n, SECURE)
        # Turning the lowest bit of the row changes the sign: both halves stay uniform.
        column ^= np.where(parity(row & column) == held, row & -row, 0)
        return np.where(away, place, block * self.width + column)

    def estimate(self, tally: Tally) -> ShareEstimate:
        """Unbiased shares: set minus the rest of the block, one transform for all categories."""
        table = tally.counts.reshape(self.blocks, self.width).astype(np.float64)
        block, row = self._rows(np.arange(self.k))
        signs = transform(table)[block, row]
        if self.blocks == 1:  # every report is in the set or in the rest
            inside = (tally.n + np.rint(signs).astype(np.int64)) // 2
            return Spoken(inside, tally.n, self.support).estimate(tally.n)
        difference = signs / tally.n
        in_block = table.sum(axis=1)[block] / tally.n
        scale = self._scale
        least = float(self.width * self._other)
        square = scale**2 * np.clip(in_block, least, None)
        shares = scale * difference
        # A share lies between 0 and 1, and a report's weight is within its scale.
        variance = square - np.clip(shares, 0.0, 1.0) ** 2
        return ShareEstimate(shares, np.sqrt(np.maximum(variance, 0.0) / tally.n), tally.n)

    @property
    def _scale(self) -> float:
        return float(1 / (self.holds - self.width // 2 * self._other))

    def variance(self, n: int, share: float = 0.0) -> float:
        """The variance in a fixed population of n whose other answers are spread evenly."""
        half = self.width // 2
        own = float(self.holds + half * self._other)
        other = float(self.width * self._other) if self.blocks > 1 else own
        alike = (min(self.width - 1, self.k) - 1) / (self.k - 1)
        square = share * own + (1 - share) * (alike * own + (1 - alike) * other)
        return (self._scale**2 * square - share) / whole(n, "n")


def parity(values: Integers) -> npt.NDArray[np.bool_]:
    """Whether the number of set bits is odd."""
    odd: npt.NDArray[np.bool_] = (np.bitwise_count(values) & 1).astype(np.bool_)
    return odd


def transform(table: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Each row times the Hadamard matrix, by the fast transform."""
    out = table.copy()
    rows, width = out.shape
    step = 1
    while step < width:
        halves = out.reshape(rows, width // (2 * step), 2, step)
        out = np.stack(
            [halves[:, :, 0] + halves[:, :, 1], halves[:, :, 0] - halves[:, :, 1]], axis=2
        ).reshape(rows, width)
        step *= 2
    return out


def _width(k: int, blocks: int) -> int:
    """The least power of two, 2 or more, whose blocks hold all categories."""
    return max(2, 1 << (-(-k // blocks)).bit_length())


def _best_blocks(k: int, epsilon: float) -> int:
    odds = np.exp(min(epsilon, 50.0))
    choices = [1 << power for power in range((k - 1).bit_length())]
    return min(choices, key=lambda blocks: _variance(k, blocks, float(odds)))


def _variance(k: int, blocks: int, odds: float) -> float:
    """n times the variance at share 0, the others spread evenly."""
    width = _width(k, blocks)
    scale = (2 * blocks - 1 + odds) / (odds - 1)
    own, other = (odds + 1) / (2 * blocks - 1 + odds), 2 / (2 * blocks - 1 + odds)
    alike = (min(width - 1, k) - 1) / (k - 1)
    return scale**2 * (alike * own + (1 - alike) * (other if blocks > 1 else own))
