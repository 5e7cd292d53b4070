"""Certified integer brackets of exp(-x): the only transcendental the samplers need.

A bracket at precision `p` is a pair of integers with low <= 2^p * value <= high. All arithmetic
here is on integers with the rounding direction spelled out; no float is involved.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple


class Bracket(NamedTuple):
    """low <= 2^precision * value <= high, for a value in [0, 1]."""

    low: int
    high: int


def shift_up(value: int, bits: int) -> int:
    """Return ceil(value / 2^bits)."""
    return -(-value >> bits)


def divide_up(numerator: int, denominator: int) -> int:
    """Return ceil(numerator / denominator) for a positive denominator."""
    return -(-numerator // denominator)


def times(a: Bracket, b: Bracket, precision: int) -> Bracket:
    """Bracket the product of two bracketed values."""
    return Bracket(a.low * b.low >> precision, shift_up(a.high * b.high, precision))


def complement(a: Bracket, precision: int) -> Bracket:
    """Bracket one minus the bracketed value."""
    one = 1 << precision
    return Bracket(max(0, one - a.high), min(one, one - a.low))


def ratio(a: Bracket, b: Bracket, precision: int) -> Bracket:
    """Bracket a/b where the true a is at most the true b and b is known to be positive."""
    high = (
        min(1 << precision, divide_up(a.high << precision, b.low)) if b.low > 0 else 1 << precision
    )
    return Bracket((a.low << precision) // b.high, high)


def coarser(a: Bracket, drop: int) -> Bracket:
    """The same value at a precision lower by `drop` bits."""
    return Bracket(a.low >> drop, shift_up(a.high, drop))


def exp_minus(x: Fraction, precision: int) -> Bracket:
    """Bracket exp(-x) for rational x >= 0; the bracket is a few units wide.

    The argument is halved k times until it is below 2^-7, where the Taylor series alternates with
    falling terms, so that consecutive partial sums enclose the value; k squarings undo the halving.
    Each squaring at most doubles the relative width, hence the 2k guard bits.
    """
    if x == 0:
        return Bracket(1 << precision, 1 << precision)
    if x > precision:  # exp(-x) < 2^-precision
        return Bracket(0, 1)
    halvings = max(0, x.numerator.bit_length() - x.denominator.bit_length() + 8)
    work = precision + 2 * halvings + 16
    low, high = _alternating_series(x.numerator, x.denominator << halvings, work)
    for _ in range(halvings):
        low, high = low * low >> work, shift_up(high * high, work)
    drop = work - precision
    return Bracket(max(0, low >> drop), min(1 << precision, shift_up(high, drop)))


def _alternating_series(numerator: int, denominator: int, precision: int) -> tuple[int, int]:
    """Bracket exp(-y), y = numerator/denominator < 2^-7."""
    low = high = term_low = term_high = 1 << precision
    order = 0
    while term_high > 1:
        order += 1
        term_low = term_low * numerator // (denominator * order)
        term_high = divide_up(term_high * numerator, denominator * order)
        if order % 2:
            low, high = low - term_high, high - term_low
        else:
            low, high = low + term_low, high + term_high
    # The terms left out are at most y + y^2 + ... < 1 unit in the last place.
    return max(0, low - 1), high + 1  # squared, what is below 0 would not be a lower end
