"""Private answers on their way into a client: read, or refused without being quoted."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from deniable.errors import ParameterError, PrivateValueError
from deniable.mechanisms.values import read_integers, read_reals
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

    What lies outside the bounds is moved to the nearer end: an answer is never refused for its
    size, which would tell it.
    """
    reals = read_reals(values)
    if len(reals.shape) != 1:
        raise PrivateValueError("answers are a flat list, one number to a person")
    if reals.doubles is None:
        scaled = [(min(max(x, low), high) - low) / (high - low) * cells for x in reals.rationals]
        return np.array([round(x) for x in scaled], dtype=np.int64)
    inside = np.clip(reals.doubles, float(low), float(high))
    # Floats choose only the place; whatever they choose is the input of the exact law.
    share = (inside - float(low)) / (float(high) - float(low))
    return np.clip(np.rint(share * cells), 0, cells).astype(np.int64)
