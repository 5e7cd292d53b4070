"""Intervals as data: what their ends are made of, from which they follow at any confidence."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from statistics import NormalDist
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]
Interval: TypeAlias = tuple[Floats, Floats]


class Ends(Protocol):
    """The intervals of one column, as frozen data; `same` tells whether two are equal."""

    def at(self, confidence: float) -> Interval:
        """The lower and the upper ends, row by row, for this confidence."""


@dataclass(frozen=True, eq=False)
class Normal:
    """Numbers with normal noise: the middles and the standard deviations, row by row.

    Where it is not `gaussian`, tails are those of Laplace noise.
    """

    middle: Floats
    deviation: Floats
    gaussian: bool = True

    def at(self, confidence: float) -> Interval:
        with np.errstate(invalid="ignore"):
            laplace = -math.log1p(-confidence) / math.sqrt(2)
            wide = self.deviation * (normal_quantile(confidence) if self.gaussian else laplace)
            return self.middle - wide, self.middle + wide


@dataclass(frozen=True, eq=False)
class Mended:
    """Intervals of numbers that were cut at 0, or rounded: ends are cut, and rounded outwards."""

    before: Ends
    non_negative: bool
    integer: bool

    def at(self, confidence: float) -> Interval:
        low, high = self.before.at(confidence)
        return self.cut(low, np.floor), self.cut(high, np.ceil)

    def cut(self, values: Floats, rounding: Callable[[Floats], Floats]) -> Floats:
        """Numbers cut at 0 and rounded, as is wanted."""
        made = np.maximum(values, 0.0) if self.non_negative else values
        return rounding(made) if self.integer else made


@dataclass(frozen=True, eq=False)
class Holding:
    """Intervals of numbers that were moved afterwards: as they were, stretched to hold these."""

    before: Ends
    numbers: Floats

    def at(self, confidence: float) -> Interval:
        low, high = self.before.at(confidence)
        return np.fmin(low, self.numbers), np.fmax(high, self.numbers)


def normal_quantile(confidence: float) -> float:
    """z with P(|Z| <= z) = confidence."""
    return -NormalDist().inv_cdf((1 - confidence) / 2)


def same(one: object, other: object) -> bool:
    """Whether data are equal, part by part: arrays as wholes, names in order, NaN being NaN."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return np.array_equal(one, other, equal_nan=True)
    if isinstance(one, float) and isinstance(other, float):
        return one == other or (math.isnan(one) and math.isnan(other))
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if is_dataclass(one):
        return all(same(getattr(one, f.name), getattr(other, f.name)) for f in fields(one))
    return one == other
