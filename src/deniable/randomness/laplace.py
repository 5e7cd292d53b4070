"""Discrete Laplace and geometric draws for any rational scale, exact.

exp(-m/s) factorises over the binary digits of m, so the digit groups of a geometric variable are
independent: each is drawn from a small table of its own. The sign needs no rejection: a negative
value -1-m has weight exp(-(m+1)/s), a constant times that of m, so the side joins the law of the
top digit. `PROOF.md`, section 3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from deniable.errors import RandomnessError
from deniable.randomness.brackets import Bracket, coarser, complement, exp_minus, ratio, times
from deniable.randomness.inversion import InversionTable
from deniable.randomness.source import Source

_GUARD = 64
_TOP_SCALE = 16  # the top digit's scale at most: some 1,400 thresholds
_DIGIT_BITS = 10
CHUNK = 1 << 16


@dataclass(frozen=True)
class _Geometric:
    """F(i) = 1 - q^(i+1), q = exp(-rate)."""

    rate: Fraction

    def brackets(self, count: int, precision: int) -> list[Bracket]:
        return [complement(p, precision) for p in _powers(self.rate, count + 1, precision)[1:]]


@dataclass(frozen=True)
class _Digit:
    """F(i) = (1 - q^(i+1)) / (1 - q^size) on 0 <= i < size."""

    rate: Fraction
    size: int

    def brackets(self, count: int, precision: int) -> list[Bracket]:
        # 1 - q^size may be as small as rate: that many bits are lost in the division.
        work = precision + _GUARD + max(0, -_log2(self.rate))
        powers = _powers(self.rate, self.size + 1, work)
        whole = complement(exp_minus(self.rate * self.size, work), work)
        upto = [ratio(complement(p, work), whole, work) for p in powers[1 : self.size]]
        one = 1 << precision
        return ([coarser(b, work - precision) for b in upto] + [Bracket(one, one)])[:count]


@dataclass(frozen=True)
class _TwoSided:
    """Top digit h and side in zigzag order: weight Q^h on the right, Q^h q on the left.

    F(2h) = 1 - Q^h (q + Q)/(1 + q) and F(2h+1) = 1 - Q^(h+1), Q = exp(-rate), q = exp(-step).
    """

    rate: Fraction
    step: Fraction

    def brackets(self, count: int, precision: int) -> list[Bracket]:
        work = precision + _GUARD
        one = 1 << work
        q, big_q = exp_minus(self.step, work), exp_minus(self.rate, work)
        share = ratio(
            Bracket(q.low + big_q.low, q.high + big_q.high),
            Bracket(one + q.low, one + q.high),
            work,
        )
        upto: list[Bracket] = []
        powers = _powers(self.rate, count // 2 + 2, work)
        for here, after in pairwise(powers):
            upto += [complement(times(here, share, work), work), complement(after, work)]
        return [coarser(b, work - precision) for b in upto[:count]]


def _powers(rate: Fraction, count: int, precision: int) -> list[Bracket]:
    """Bracket exp(-rate)^0, ..., exp(-rate)^(count-1)."""
    work = precision + _GUARD
    q = exp_minus(rate, work)
    power = Bracket(1 << work, 1 << work)
    out = []
    for _ in range(count):
        out.append(coarser(power, _GUARD))
        power = times(power, q, work)
    return out


def _log2(x: Fraction) -> int:
    return x.numerator.bit_length() - x.denominator.bit_length()


class LaplaceSampler:
    """P(x) proportional to exp(-|x|/scale) on the integers; on the naturals if `one_sided`."""

    def __init__(self, scale: Fraction, *, one_sided: bool = False) -> None:
        self._widths = _digit_widths(scale)
        below, self._digits = 0, []
        for width in self._widths:
            digit = _Digit(Fraction(1 << below) / scale, 1 << width)
            self._digits.append(InversionTable(digit, 1 << width))
            below += width
        self._low_bits = below
        rate = Fraction(1 << below) / scale
        count = 2 * math.ceil(46 / float(min(rate, Fraction(46)))) + 2
        law = _Geometric(rate) if one_sided else _TwoSided(rate, 1 / scale)
        self._top = InversionTable(law, count, signed=not one_sided)

    def sample(self, count: int, source: Source) -> npt.NDArray[np.int64]:
        out = np.empty(count, dtype=np.int64)
        for start in range(0, count, CHUNK):
            self._fill(out[start : start + CHUNK], source)
        return out

    def _fill(self, out: npt.NDArray[np.int64], source: Source) -> None:
        top = self._top.draw(out.size, source)
        check_width(top, self._low_bits)
        out[:] = top
        for width, digit in zip(reversed(self._widths), reversed(self._digits), strict=True):
            out <<= width
            out |= digit.draw(out.size, source)
        if self._low_bits:
            # The digits were drawn for the magnitude m; on the left side the value is -1-m = ~m.
            out ^= (out >> 63) & ((1 << self._low_bits) - 1)


def check_width(top: npt.NDArray[np.int16], low_bits: int) -> None:
    """Refuse draws that would not fit 62 bits, whose top parts are `top`."""
    if (
        low_bits > 47
        and top.size
        and int(np.abs(top.astype(np.int32)).max()) >= 1 << (62 - low_bits)
    ):
        raise RandomnessError("a draw fell beyond 62 bits; draw again")


def _digit_widths(scale: Fraction) -> list[int]:
    """Split the bits below the top digit, lowest first, into equal groups of at most ten."""
    total = max(0, math.ceil(math.log2(scale / _TOP_SCALE)))
    groups = math.ceil(total / _DIGIT_BITS)
    return [total // groups + (i < total % groups) for i in range(groups)]
