"""Searches on the line. Bisection ends on the side that was tested."""

from __future__ import annotations

import math
from collections.abc import Callable


def least(holds: Callable[[float], bool], low: float, high: float, tolerance: float = 0.0) -> float:
    """The least float in (low, high] at which `holds`, which is false below and true above.

    The answer itself was tested, unless it is `high`, which the caller vouches for. It may exceed
    the least by the relative `tolerance`.
    """
    while True:
        middle = _between(low, high)
        if not low < middle < high or high - low <= tolerance * abs(high):
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


def falling_root(f: Callable[[float], float], low: float, high: float, tolerance: float) -> float:
    """Where a function falls to 0: f <= 0 there, and f > 0 a relative `tolerance` below.

    By the Illinois rule, for functions that are dear. f(low) > 0 >= f(high).
    """
    at_low, at_high = f(low), f(high)
    while high - low > tolerance * high:
        middle = low + (high - low) * at_low / (at_low - at_high)
        # Never so near an end that the other end stays where it is.
        margin = max(tolerance * high / 4, 1e-3 * (high - low))
        middle = min(max(middle, low + margin), high - margin)
        value = f(middle)
        if value > 0:
            low, at_low, at_high = middle, value, at_high / 2
        else:
            high, at_high, at_low = middle, value, at_low / 2
    return high


def maximum(f: Callable[[float], float], reach: float) -> float:
    """The greatest value found of a function on [-reach, reach].

    Looks at zero and at a geometric grid on either side, then narrows in around the best place.
    """
    side = [reach * 0.75**k for k in range(96)]
    grid = [*(-x for x in side), 0.0, *reversed(side)]
    values = [f(x) for x in grid]
    best = values.index(max(values))
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    return max(values[best], golden(f, low, high))


def golden(f: Callable[[float], float], low: float, high: float) -> float:
    """The greatest value of a function that rises and then falls on [low, high]."""
    share = (math.sqrt(5) - 1) / 2
    left, right = high - share * (high - low), low + share * (high - low)
    at_left, at_right = f(left), f(right)
    for _ in range(80):
        if at_left < at_right:
            low, left, at_left = left, right, at_right
            right = low + share * (high - low)
            at_right = f(right)
        else:
            high, right, at_right = right, left, at_left
            left = high - share * (high - low)
            at_left = f(left)
    return max(at_left, at_right)


def _between(low: float, high: float) -> float:
    """The geometric middle for numbers far apart, the arithmetic one for close ones."""
    if low > 0 and high / low > 4:
        return math.sqrt(low) * math.sqrt(high)
    if high < 0 and low / high > 4:
        return -math.sqrt(-low) * math.sqrt(-high)
    if low == 0 and high > 1e-300:
        return high / 1024
    return low + (high - low) / 2
