"""Searches on the line. Bisection ends on the side that was tested."""

from __future__ import annotations

import math
from collections.abc import Callable


def least(holds: Callable[[float], bool], low: float, high: float) -> float:
    """The least float in (low, high] at which `holds`, which is false below and true above.

    The answer itself was tested, unless it is `high`, which the caller vouches for.
    """
    while True:
        middle = _between(low, high)
        if not low < middle < high:
            return high
        if holds(middle):
            high = middle
        else:
            low = middle


def greatest(holds: Callable[[float], bool], low: float, high: float) -> float:
    """The greatest float in [low, high) at which `holds`, which is true below and false above."""
    return -least(lambda x: holds(-x), -high, -low)


def bracket_up(holds: Callable[[float], bool], start: float) -> float:
    """Double `start` until `holds`; infinity if it never does."""
    while start < 1e300:
        if holds(start):
            return start
        start *= 2
    return math.inf


def maximum(f: Callable[[float], float], low: float, high: float) -> float:
    """The greatest value found of a function that rises and then falls on [low, high]."""
    golden = (math.sqrt(5) - 1) / 2
    for _ in range(100):
        left, right = high - golden * (high - low), low + golden * (high - low)
        if f(left) < f(right):
            low = left
        else:
            high = right
    return f(low + (high - low) / 2)


def _between(low: float, high: float) -> float:
    """The geometric middle for numbers far apart, the arithmetic one for close ones."""
    if low > 0 and high / low > 4:
        return math.sqrt(low) * math.sqrt(high)
    if high < 0 and low / high > 4:
        return -math.sqrt(-low) * math.sqrt(-high)
    if low == 0 and high > 1e-300:
        return high / 1024
    return low + (high - low) / 2
