"""Exact numbers at the privacy boundary.

A public parameter is a rational number. A float means the shortest decimal that prints it: 0.1 is
one tenth, so ten releases at 0.1 cost exactly 1. Whatever must be rounded afterwards is rounded
against the library: noise up, prices up.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from numbers import Rational

import numpy as np

from deniable.errors import ParameterError, ParameterTypeError

Number = int | float | Fraction | Decimal

_LARGEST_BITS = 1 << 13
_DIGITS = 60


def exact(value: Number, argument: str) -> Fraction:
    """Read a public number as the rational it stands for."""
    if isinstance(value, bool | np.bool_):
        raise _wrong_type(value, argument)
    if isinstance(value, Rational | np.integer):
        return _sane(Fraction(int(value.numerator), int(value.denominator)), value, argument)
    if isinstance(value, float | np.floating | Decimal):
        decimal_value = value if isinstance(value, Decimal) else Decimal(str(value))
        if not decimal_value.is_finite():
            raise ParameterError(argument, value, "must be a finite number")
        if abs(decimal_value.adjusted()) > 2000 and decimal_value != 0:
            raise ParameterError(argument, value, "must lie between 1e-2000 and 1e2000")
        return _sane(Fraction(decimal_value), value, argument)
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
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise ParameterTypeError(argument, value, "must be a whole number (int)")
    if value < least:
        raise ParameterError(argument, value, f"must be {least} or more")
    return int(value)


def sqrt_up(value: Fraction, digits: int = 40) -> Fraction:
    """A rational at or above the square root, within a relative 10^-digits."""
    scale = 10**digits * value.denominator
    root = math.isqrt(value.numerator * value.denominator * 10 ** (2 * digits))
    if root * root == value.numerator * value.denominator * 10 ** (2 * digits):
        return Fraction(root, scale)
    return Fraction(root + 1, scale)


def high_precision(smallest: Fraction = Fraction(1)) -> Context:
    """A decimal context that keeps 60 digits where terms as small as `smallest`^4 cancel."""
    lost = 4 * len(str(int(1 / smallest)))
    return Context(prec=_DIGITS + lost, Emax=10**9, Emin=-(10**9))


def decimal(value: Fraction) -> Decimal:
    """The rational as a decimal of the current context."""
    return Decimal(value.numerator) / Decimal(value.denominator)


def log_up(value: Fraction) -> Fraction:
    """A rational at or above ln(value), within 10^-40 of it."""
    with localcontext(high_precision()):
        return Fraction(decimal(value).ln()) + Fraction(1, 10**40)


def show(value: Fraction) -> str:
    """A short decimal where the number is one, a fraction or a rounded decimal otherwise."""
    number = float(value)
    if Fraction(repr(number)) == value:
        return f"{number:g}" if number == float(f"{number:g}") else repr(number)
    return str(value) if len(str(value)) <= 12 else repr(number)


def _sane(number: Fraction, value: Number, argument: str) -> Fraction:
    if max(number.numerator.bit_length(), number.denominator.bit_length()) > _LARGEST_BITS:
        raise ParameterError(argument, value, "must lie between 1e-2000 and 1e2000")
    return number


def _wrong_type(value: object, argument: str) -> ParameterTypeError:
    return ParameterTypeError(argument, value, "must be a number (int, float, Fraction or Decimal)")
