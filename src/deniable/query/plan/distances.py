"""How far values lie from a centre on one side of it: noisy bins about a place, and their tail.

Bins are half octaves about the place of the farthest values and octaves beyond. The fewer bins
there are beyond, the less noise there is on what is counted there together. Everything here is
post-processing of released numbers.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

import numpy as np

from deniable.query.plan.draws import HashedDraws
from deniable.query.plan.levels import FAR_LEVELS
from deniable.query.plan.tail import Lost, Tail, stands_out, tail_of, width

_OFFSETS = (*range(-8, 3), 4, 6)  # levels from the place at which bins begin
_OCTAVE = 2  # levels
_MANY = 20.0  # noise of one bin: from so many units on a side, slopes about the place can be told
_Z95 = 1.96
_FEW = 0.05  # of the units: no more are beyond a bound where each of many groups has some of them


def levels_about(place: int) -> tuple[int, ...]:
    """The levels at which bins begin, for a place; the last bin is open above."""
    last = len(FAR_LEVELS) - 1
    return tuple(sorted({min(max(place + offset, 0), last) for offset in _OFFSETS}))


def binned(counts: Sequence[int], place: int) -> list[int]:
    """Units nearer than all bins, and in each of them; `counts` are by level, nearer ones first."""
    starts = [0, *(1 + level for level in levels_about(place)), len(counts)]
    return [sum(counts[one:two]) for one, two in pairwise(starts)]


@dataclass(frozen=True)
class Distances:
    """How many units lie how far from the centre, under noise."""

    place: int
    """The level about which bins lie."""
    counts: tuple[int, ...]
    """Nearer than all bins, and in each bin."""
    deviation: float
    """The standard deviation of the noise of each."""

    def with_more(self, counts: Sequence[int], deviation: float) -> Distances:
        """Together with a second look at the same bins, each with the weight of its noise."""
        own = deviation**2 / (self.deviation**2 + deviation**2)
        both = [
            round(own * one + (1 - own) * two) for one, two in zip(self.counts, counts, strict=True)
        ]
        return Distances(self.place, tuple(both), math.sqrt(own) * self.deviation)

    @property
    def units(self) -> int:
        """How many there are, however near."""
        return sum(self.counts)

    @property
    def open_above(self) -> bool:
        """Whether units stand out in the last bin, so that nothing tells how far they are."""
        return stands_out(self.counts[-1], self.deviation)

    @property
    def seen(self) -> float:
        """How far units stand out of the noise, in steps of `LEAST`."""
        return _tails(self)[0].seen

    def beyond(self, bound: float, power: int = 1) -> Lost:
        """What lies beyond a bound, in steps of `LEAST`: of distances, or their squares.

        At most, by draws of how many units each bin holds, and what lies beyond the place is
        extrapolated: that was chosen for the units about it, however few of them stand out.
        At least, what stands out.
        """
        near, far = (each.beyond(bound, power=power) for each in _tails(self))
        return replace(far, least=np.minimum(near.least, far.most))

    def radius(self, noise: float, share: float) -> int:
        """The bound with the narrowest interval for the truth.

        `noise` is that of a sum for a bound of one, `share` the part of what is lost that tells in
        one number.
        """
        return _radius(self, noise, share)


@lru_cache(maxsize=64)
def _tails(distances: Distances) -> tuple[Tail, Tail]:
    """Of the same draws: extrapolated from where units stand out, and from farther away.

    From an octave beyond the place, or from the last bin where there are few units.
    """
    levels = levels_about(distances.place)
    x, end = tuple(float(FAR_LEVELS[level]) for level in levels), len(levels) - 1
    bins = distances.counts[1:]
    near = tail_of(x, bins, distances.deviation, (x, bins))
    if distances.units >= _MANY * distances.deviation:
        end = max(near.end, min(bisect_right(levels, distances.place + _OCTAVE) - 1, end))
    return near, near if near.end == end else Tail(near.x, near.units, end, HashedDraws(distances))


@lru_cache(maxsize=64)
def _radius(distances: Distances, noise: float, share: float) -> int:
    levels, tail = levels_about(distances.place), _tails(distances)[1]
    first, last = FAR_LEVELS[distances.place], FAR_LEVELS[levels[-1]]
    quarters = math.ceil(4 * math.log2(4 * last / first))
    offered = {math.floor(first * 2 ** (each / 4)) for each in range(quarters + 1)}
    offered |= {FAR_LEVELS[level] for level in levels if level < distances.place}
    found = [tail.beyond(float(bound)) for bound in sorted(offered)]
    most = _FEW * tail.size
    within = [each for each in found if share == 1 or each.usual <= most]

    def wide(lost: Lost) -> float:
        return width(lost, _Z95 * noise * lost.bound, share)

    return int(min(within or found[-1:], key=wide).bound)
