"""Discrete Gaussian draws for any rational variance, exact.

Small variances: one table. Large ones: the line is cut into cells of 2^b integers, a signed cell
is drawn from the step envelope exp(-(k 2^b)^2 / 2v), the place within it is raw bits, and the
value x is kept with probability exp(-(x^2 - (k 2^b)^2) / 2v). `PROOF.md`, section 5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from deniable.lazy import lazy
from deniable.randomness.bernoulli import below_exp
from deniable.randomness.brackets import Bracket, divide_up, exp_minus, times
from deniable.randomness.inversion import InversionTable
from deniable.randomness.laplace import CHUNK, check_width
from deniable.randomness.source import Source, words

_CELLS_PER_SIGMA = 32
_FEW_CELLS = 4
_MANY = 512  # draws from which the larger table pays
_GUARD = 64
_KEEP_BITS = 96

# Places in the output and the first 16 bits of their coins.
_Doubt = tuple[npt.NDArray[np.int64], npt.NDArray[np.uint16]]
_NO_DOUBT: _Doubt = (np.empty(0, dtype=np.int64), np.empty(0, dtype=np.uint16))


@dataclass(frozen=True)
class _Squares:
    """Cells in zigzag order 0, -1, 1, -2, ... with weight exp(-rate * j^2).

    j is |x| when cells are single integers (`exact`), and the distance of the cell's near end,
    in cells, when they are an envelope: 0, 0, 1, 1, 2, 2, ...
    """

    rate: Fraction
    exact: bool

    def brackets(self, count: int, precision: int) -> list[Bracket]:
        work = precision + _GUARD
        lows, highs = self._squares(count, work)
        # Both sides: 2*sum - 1 for single integers, 2*sum for an envelope.
        low, high = sum(lows), sum(highs) + self._tail(work)
        whole = Bracket(2 * low, 2 * high)
        if self.exact:
            whole = Bracket(whole.low - (1 << work), whole.high - (1 << work))
        # One division for all of them, rounded outwards; products are shifted likewise.
        share_low, share_high = (1 << 2 * work) // whole.high, divide_up(1 << 2 * work, whole.low)
        one, drop = 1 << precision, 2 * work - precision
        first = 1 if self.exact else 0
        places = [(index + first) // 2 for index in range(count)]
        below = accumulate([lows[j] for j in places])
        above = accumulate([highs[j] for j in places])
        return [
            Bracket(low * share_low >> drop, min(one, -(-high * share_high >> drop)))
            for low, high in zip(below, above, strict=True)
        ]

    def _squares(self, count: int, precision: int) -> tuple[list[int], list[int]]:
        """Bracket exp(-rate j^2) until it is below one unit and `count` cells are covered.

        Lower and upper ends apart: thousands of small objects would cost more than the numbers.
        """
        step = exp_minus(self.rate, precision)  # exp(-rate (2j+1)), from j to j+1
        square = times(step, step, precision)
        low = high = 1 << precision
        (step_low, step_high), (square_low, square_high) = step, square
        lows: list[int] = []
        highs: list[int] = []
        while high > 1 or len(lows) <= count // 2 + 1:
            lows.append(low)
            highs.append(high)
            low, high = low * step_low >> precision, -(-high * step_high >> precision)
            step_low = step_low * square_low >> precision
            step_high = -(-step_high * square_high >> precision)
        return lows, highs

    def _tail(self, precision: int) -> int:
        """The terms left out sum to at most 1 + Q + Q^2 + ... units, Q = exp(-rate)."""
        q = exp_minus(self.rate, precision)
        one = 1 << precision
        return divide_up(one, max(1, one - q.high)) + 1


class GaussianSampler:
    """P(x) proportional to exp(-x^2 / (2 variance)) on the integers.

    Few draws come from wide cells, whose table is made sooner; the law is the same for any width.
    """

    def __init__(self, variance: Fraction) -> None:
        self._variance = variance

    @lazy
    def _few(self) -> CellSampler:
        return CellSampler(self._variance, _FEW_CELLS)

    @lazy
    def _many(self) -> CellSampler:
        return CellSampler(self._variance, _CELLS_PER_SIGMA)

    def sample(self, count: int, source: Source) -> npt.NDArray[np.int64]:
        return (self._few if count < _MANY else self._many).sample(count, source)


class CellSampler:
    """The same, from cells of which `per_sigma` to twice as many are as wide as sigma."""

    def __init__(self, variance: Fraction, per_sigma: int) -> None:
        sigma = math.sqrt(variance)
        self._bits = max(0, math.floor(math.log2(sigma / per_sigma)))
        self._two_variances = 2 * variance
        width = 1 << self._bits
        cells = _Squares(Fraction(width * width) / self._two_variances, exact=self._bits == 0)
        reach = int(9.6 * sigma / width) + 2
        self._cells = InversionTable(cells, 2 * reach, signed=True)
        self._surely_kept = self._keep_bounds(reach)

    def _keep_bounds(self, reach: int) -> npt.NDArray[np.uint16]:
        """floor(2^16 * least keeping probability) for each 16-bit cell number; 0 where unknown."""
        width = 1 << self._bits
        bounds = np.zeros(1 << 16, dtype=np.uint16)
        # exp(-r (2k + 1)), one from the other by exp(-2r), always rounded down.
        least = exp_minus(Fraction(width * width) / self._two_variances, _KEEP_BITS).low
        step = least * least >> _KEEP_BITS
        kept: list[int] = []
        for _ in range(reach):
            kept.append(min(least >> (_KEEP_BITS - 16), 0xFFFF))
            least = least * step >> _KEEP_BITS
        bounds[:reach] = kept
        bounds[: -reach - 1 : -1] = kept
        return bounds

    def sample(self, count: int, source: Source) -> npt.NDArray[np.int64]:
        out = np.empty(count, dtype=np.int64)
        doubts = [
            self._fill(out[start : start + CHUNK], start, source)
            for start in range(0, count, CHUNK)
        ]
        if self._bits and doubts:
            at = np.concatenate([doubt[0] for doubt in doubts])
            coin = np.concatenate([doubt[1] for doubt in doubts])
            again = at[~self._keep(out[at], coin, source)]
            if again.size:
                out[again] = self.sample(again.size, source)
        return out

    def _fill(self, out: npt.NDArray[np.int64], start: int, source: Source) -> _Doubt:
        """Fill one chunk; return the places that are not surely kept, with their coins."""
        cell = self._cells.draw(out.size, source)
        check_width(cell, self._bits)
        out[:] = cell
        if self._bits == 0:
            return _NO_DOUBT
        out <<= self._bits
        coin = self._add_offsets(out, source)
        surely = self._surely_kept.take(cell.view(np.uint16), mode="clip")
        doubtful = np.flatnonzero(coin >= surely)
        return doubtful + start, coin[doubtful]

    def _add_offsets(self, out: npt.NDArray[np.int64], source: Source) -> npt.NDArray[np.uint16]:
        """Set the low bits to raw bits; return 16 independent bits more for each value."""
        mask = (1 << self._bits) - 1
        if self._bits <= 16:
            raw = source.draw(4 * out.size).view(np.uint16)
            out |= raw[: out.size] & np.uint16(mask)
            return raw[out.size :]
        out |= (words(source, out.size) & np.uint64(mask)).view(np.int64)
        return source.draw(2 * out.size).view(np.uint16)

    def _keep(
        self, value: npt.NDArray[np.int64], coin: npt.NDArray[np.uint16], source: Source
    ) -> npt.NDArray[np.bool_]:
        """Keep x with probability exp(-(x^2 - near^2)/2v); `coin` is U's first 16 bits."""
        low = words(source, coin.size) >> np.uint64(16)
        word = (coin.astype(np.uint64) << np.uint64(48)) | low
        cell = value >> self._bits
        near = np.maximum(cell, ~cell) << self._bits
        beyond, total = np.abs(value) - near, np.abs(value) + near
        return below_exp(
            word,
            beyond.astype(np.float64) * total.astype(np.float64) / float(self._two_variances),
            lambda at, precision: exp_minus(
                Fraction(int(beyond[at]) * int(total[at])) / self._two_variances, precision
            ),
            source,
        )
