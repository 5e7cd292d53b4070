"""Private answers on their way into a client: read, or refused without being quoted."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from deniable.errors import ParameterError, PrivateValueError
from deniable.mechanisms.values import Reals, read_integers, read_reals
from deniable.privacy.exact import whole

Integers = npt.NDArray[np.int64]
Answers = Sequence[Any] | npt.NDArray[Any]

MOST_CATEGORIES = 1 << 32


def read_size(k: int, argument: str = "k", most: int = MOST_CATEGORIES) -> int:
    """Read the number of categories, which are numbered 0, ..., k - 1."""
    if whole(k, argument) == 1:
        raise ParameterError(argument, k, "one category says nothing; give 2 or more")
    if k > most:
        raise ParameterError(argument, k, f"must be {most:,} at most; hash or group the categories")
    return int(k)


def within(least: int, most: int) -> Callable[[int, str], int]:
    """Reads a whole number from the one to the other."""

    def read(value: int, argument: str) -> int:
        number = whole(value, argument, least=least)
        if number > most:
            raise ParameterError(argument, value, f"must be {least} to {most:,}")
        return number

    return read


def read_answers(values: Answers, k: int) -> Integers:
    """Read true answers, each a category's number."""
    numbers = read_integers(np.asarray(values) if isinstance(values, range) else values)
    if numbers.ndim != 1:
        raise PrivateValueError("answers are a flat list, one category's number to a person")
    if numbers.min() < 0 or numbers.max() >= k:
        raise PrivateValueError(f"an answer is none of the categories 0 to {k - 1}")
    return numbers


def read_places(values: Answers, low: Fraction, high: Fraction, cells: int) -> Integers:
    """Read numbers as places 0, ..., cells on the grid from `low` to `high`, rounded to nearest.

    What lies outside the bounds is moved to the nearer end, infinities too: an answer is never
    refused for its size, which would tell it.
    """
    reals = read_numbers(values, low, high)
    if reals.doubles is None or not _wide_in_floats(low, high):
        scaled = [(min(max(x, low), high) - low) / (high - low) * cells for x in reals.exactly()]
        return np.array([round(x) for x in scaled], dtype=np.int64)
    inside = np.clip(reals.doubles, float(low), float(high))
    # Floats choose only the place; whatever they choose is the input of the exact law.
    share = (inside - float(low)) / (float(high) - float(low))
    return np.clip(np.rint(share * cells), 0, cells).astype(np.int64)


def read_numbers(values: Answers, low: Fraction, high: Fraction) -> Reals:
    """Read a flat list of numbers, those beyond all floats held within the bounds."""
    reals = read_reals(_finite(values, low, high))
    if len(reals.shape) != 1:
        raise PrivateValueError("answers are a flat list, one number to a person")
    return reals


def _finite(values: Answers, low: Fraction, high: Fraction) -> Answers:
    """The same, with infinities and decimals beyond the range of floats at the nearer bound."""
    if isinstance(values, np.ndarray) and not isinstance(values, np.ma.MaskedArray):
        if values.dtype.kind != "f" or values.dtype.itemsize > 8:
            return values
        ends = [min(max(float(end), -_LARGEST), _LARGEST) for end in (low, high)]
        doubles = values.astype(np.float64)
        return np.where(np.isinf(doubles), np.where(doubles > 0, ends[1], ends[0]), doubles)
    if isinstance(values, list | tuple):
        return [_held(value, low, high) for value in values]
    return values


def _held(value: Any, low: Fraction, high: Fraction) -> Any:
    if isinstance(value, float | np.floating) and math.isinf(value):
        return high if value > 0 else low
    if isinstance(value, Decimal) and not value.is_nan():
        if value.is_infinite() or value.adjusted() > _DIGITS:
            return high if value > 0 else low
        if value.adjusted() < -_DIGITS:
            return Fraction(0)
    return value


def _wide_in_floats(low: Fraction, high: Fraction) -> bool:
    """Whether floats tell a millionth part of the bounds from the next."""
    return (high - low) * 2**30 > max(abs(low), abs(high))


_DIGITS = 310  # decimals of more digits, before or after the point, are beyond all bounds, or 0
_LARGEST = sys.float_info.max
