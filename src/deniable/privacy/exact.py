"""Exact numbers at the privacy boundary.

A public parameter is a rational number. A float means the shortest decimal that prints it: 0.1 is
one tenth, so ten releases at 0.1 cost exactly 1. Whatever must be rounded afterwards is rounded
against the library: noise up, prices up.
"""

from __future__ import annotations

import math
from decimal import (
    ROUND_CEILING,
    ROUND_HALF_EVEN,
    Context,
    Decimal,
    DivisionByZero,
    InvalidOperation,
    Overflow,
    localcontext,
)
from fractions import Fraction

import numpy as np

from deniable.closed import REAL, WHOLE, read_fraction
from deniable.errors import ParameterError, ParameterTypeError

Number = int | float | Fraction | Decimal

_LARGEST = Fraction(10) ** 300
_DIGITS = 60
_MOST = 10**18
_SUM_EXACTLY = 1000
_MOST_BITS = 13_000


def exact(value: Number, argument: str) -> Fraction:
    """Read a public number as the rational it stands for."""
    if type(value) not in REAL:
        raise _wrong_type(value, argument)
    if isinstance(value, Fraction):
        number = read_fraction(value, argument)
        return _in_range(number, number, argument)
    if isinstance(value, int | np.integer):
        return _in_range(Fraction(int(value)), value, argument)
    if isinstance(value, float | np.floating | Decimal):
        decimal_value = value if isinstance(value, Decimal) else Decimal(str(value))
        if not decimal_value.is_finite():
            raise ParameterError(argument, value, "must be a finite number")
        if abs(decimal_value.adjusted()) > 400 and decimal_value != 0:
            raise _too_far(value, argument)
        return _in_range(Fraction(decimal_value), value, argument)
    raise _wrong_type(value, argument)


def positive(value: Number, argument: str) -> Fraction:
    """Read a number that must be above zero."""
    number = exact(value, argument)
    if number <= 0:
        raise ParameterError(argument, value, "must be greater than 0")
    return number


def not_negative(value: Number, argument: str) -> Fraction:
    """Read a number that must not be below zero."""
    number = exact(value, argument)
    if number < 0:
        raise ParameterError(argument, value, "must be 0 or more")
    return number


def probability(value: Number, argument: str) -> Fraction:
    """Read a number that must lie strictly between zero and one."""
    number = exact(value, argument)
    if not 0 < number < 1:
        raise ParameterError(argument, value, "must lie strictly between 0 and 1")
    return number


def whole(value: int, argument: str, *, least: int = 1) -> int:
    """Read a count."""
    if type(value) not in WHOLE:
        raise ParameterTypeError(argument, value, "must be a whole number (int)")
    count = int(value)  # a plain one: what is checked is what is used
    if not least <= count <= _MOST:
        raise ParameterError(argument, count, f"must be from {least} to 1e18")
    return count


def read_bounds(
    value: tuple[Number, Number], argument: str = "bounds"
) -> tuple[Fraction, Fraction]:
    """Read a pair (low, high) that rises."""
    pair: object = value
    if type(pair) not in (tuple, list) or len(value) != 2:
        raise ParameterError(argument, value, "must be a pair (low, high)")
    low, high = (exact(end, argument) for end in value)
    if low >= high:
        raise ParameterError(argument, (float(low), float(high)), "must rise from low to high")
    return low, high


def sqrt_up(value: Fraction, digits: int = 40) -> Fraction:
    """A rational at or above the square root, within a relative 10^-digits."""
    scale = 10**digits * value.denominator
    root = math.isqrt(value.numerator * value.denominator * 10 ** (2 * digits))
    if root * root == value.numerator * value.denominator * 10 ** (2 * digits):
        return Fraction(root, scale)
    return Fraction(root + 1, scale)


def decimals(digits: int, rounding: str = ROUND_HALF_EVEN) -> Context:
    """A decimal context in which nothing is the caller's, whose own may round, or trap, anything.

    What a `Context` is not told it takes from defaults that every program may change.
    """
    return Context(
        prec=digits,
        rounding=rounding,
        Emin=-(10**9),
        Emax=10**9,
        capitals=1,
        clamp=0,
        flags=[],
        traps=[InvalidOperation, DivisionByZero, Overflow],
    )


def high_precision(smallest: Fraction = Fraction(1)) -> Context:
    """A decimal context that keeps 60 digits where terms as small as `smallest`^4 cancel."""
    lost = 4 * len(str(int(1 / smallest)))
    return decimals(_DIGITS + lost)


def decimal(value: Fraction) -> Decimal:
    """The rational as a decimal of the current context."""
    return Decimal(value.numerator) / Decimal(value.denominator)


def log_up(value: Fraction) -> Fraction:
    """A rational at or above ln(value), within 10^-40 of it."""
    with localcontext(high_precision()):
        return Fraction(decimal(value).ln()) + Fraction(1, 10**40)


def rounded_up(value: Fraction, digits: int = 40) -> Fraction:
    """The number at or above `value` with so many significant digits."""
    with localcontext(decimals(digits, ROUND_CEILING)):
        return Fraction(decimal(value))


def sum_up(values: list[Fraction]) -> Fraction:
    """The exact sum; of very many values one that exceeds it by less than a part in 10^40.

    A common denominator of a million fractions has millions of digits.
    """
    if len(values) <= _SUM_EXACTLY:
        return sum(values, Fraction(0))
    grid = 10**45 * max(1, math.ceil(len(values) / max(values))) if max(values) > 0 else 1
    return Fraction(sum(-(-value.numerator * grid // value.denominator) for value in values), grid)


def float_above(value: Fraction) -> float:
    """The least float at or above `value`."""
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def decimal_above(value: Fraction) -> float:
    """A float near `value` whose shortest decimal, which is how it will be read, is not below."""
    nearest = float(value)
    if nearest == math.inf or Fraction(repr(nearest)) >= value:
        return nearest
    return math.nextafter(nearest, math.inf)


def float_up(value: float) -> float:
    """A float above `value` by a few units in the last place: an upper bound stays one."""
    return value * (1 + 2.0**-50)


def log_float(value: Fraction) -> float:
    """The float nearest to ln(value), for rationals of any size."""
    with localcontext(high_precision()):
        return float(decimal(value).ln())


def show(value: Fraction) -> str:
    """A short decimal where the number is one, a fraction or a rounded decimal otherwise."""
    number = float(value)
    if Fraction(repr(number)) == value:
        return f"{number:g}" if number == float(f"{number:g}") else repr(number)
    return str(value) if len(str(value)) <= 12 else repr(number)


def _in_range(number: Fraction, value: Number, argument: str) -> Fraction:
    if number and not 1 / _LARGEST <= abs(number) <= _LARGEST:
        raise _too_far(value, argument)
    if max(abs(number.numerator), number.denominator).bit_length() > _MOST_BITS:
        raise ParameterError(argument, "a fraction", "must have fewer than 3,900 digits; round it")
    return number


def _too_far(value: Number, argument: str) -> ParameterError:
    return ParameterError(argument, value, "sizes run from 1e-300 to 1e300; change the unit")


def _wrong_type(value: object, argument: str) -> ParameterTypeError:
    return ParameterTypeError(argument, value, "must be a number (int, float, Fraction or Decimal)")
