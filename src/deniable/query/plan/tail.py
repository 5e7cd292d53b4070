"""What lies beyond a bound: draws of how many units are as heavy as that, from released bins.

Everything here is post-processing: it sees noisy bins and public numbers. Norms are in rows, that
is in multiples of the norm of one row.

What cannot be seen has to be assumed, for one unit with a billion rows is invisible under any
guarantee: beyond the last level at which units stand out of the noise, their number falls, in
log-log, at least as fast as just before and as x^-1.2, and nobody has more than a quarter of all.
Lower ends assume nothing: they take credit for what is seen alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import ndtr, ndtri

from deniable.intervals import Floats
from deniable.lazy import lazy
from deniable.query.plan.draws import HashedDraws
from deniable.query.plan.levels import Norms, positions

PARTICLES = 800
LEAST_INDEX = 1.2
LARGEST_PART = 0.25
_BACK = 2  # levels over which slopes are taken: one is noisy, three are wider by a tenth
_STRAIGHT = 0.7  # how likely the next level lies on the line through the last ones
_STANDS_OUT = 3.0
_HUMP = 4.0  # the same of neighbouring bins that end before the last: there are a hundred such
_ANYBODY = 4.0
UPPER_END = 30.0  # noise of one bin: fewer units than that have no upper end
UPPER_RISK = 0.6  # of a tail's chance, for upper ends: bounds are chosen where draws look good
_MOST_DRAWN = 120
_TAIL = 0.025
_LEAST = 1e-6
_BELOW, _ABOVE = 6, 4  # octaves of bins below what was declared, and above


def stands_out(count: float, deviation: float) -> bool:
    """Whether a noisy count is more than chance makes of nobody.

    Noise is whole numbers: a count of k is a normal number from k - 1/2 on. Without that half one
    of fifty empty bins stands out where the deviation is a third.
    """
    return count - 0.5 >= _STANDS_OUT * deviation


@dataclass(frozen=True)
class Profile:
    """How many units lie between neighbouring levels, under noise; the last bin is open above."""

    norms: Norms
    first: int
    """The level at which the first bin begins."""
    below: int
    """How many units lie below the first bin."""
    bins: tuple[int, ...]
    deviation: float
    """The standard deviation of the noise of each bin."""
    least_row: int
    """The norm of one row, in that of the plan."""
    largest_row: int
    """The largest norm of one row."""
    slack: int = 0
    """For how many levels beyond what is seen numbers of units may stay, and fall after that."""

    @property
    def anybody(self) -> bool:
        """Whether any unit stands out of the noise."""
        upto = np.cumsum((self.below, *self.bins)) / np.sqrt(np.arange(1, len(self.bins) + 2))
        return bool(upto.max() >= _ANYBODY * self.deviation)

    @property
    def few(self) -> bool:
        """Whether there are too few units for an upper end."""
        return max(self.below, 0) + self.tail.size < UPPER_END * self.deviation

    @property
    def open_above(self) -> bool:
        """Whether units stand out in the last bin, so that nothing tells how heavy they are."""
        return stands_out(self.bins[-1], self.deviation)

    @property
    def open_from(self) -> float:
        """The number of rows from which the last bin is open above."""
        return float(positions(self.norms, self.first, len(self.bins))[-1])

    @property
    def tail(self) -> Tail:
        """Draws of the numbers of units, given these bins."""
        x = positions(self.norms, self.first, len(self.bins))
        released = (self.first, self.below, self.bins)
        return tail_of(tuple(x.tolist()), self.bins, self.deviation, released, self.slack)


@dataclass(frozen=True, eq=False)
class Lost:
    """What is beyond one bound, draw by draw."""

    bound: float
    most: Floats
    """What may be lost, in rows."""
    least: Floats
    """What surely is lost, by what is seen."""
    beyond: Floats
    """How many units are beyond it."""

    def ends(self, share: float) -> tuple[float, float, float, float]:
        """Of a share of the most: middle and far end; of the least: near end and middle."""
        if share not in self._ends:
            middle, far = np.quantile(share * self.most, [0.5, 0.975])
            near, least = np.quantile(share * self.least, [0.025, 0.5])
            self._ends[share] = (middle, far, near, least)
        return self._ends[share]

    @lazy
    def _ends(self) -> dict[float, tuple[float, float, float, float]]:
        return {}

    @lazy
    def usual(self) -> float:
        """How many units are beyond it, in the middle."""
        return float(np.median(self.beyond))


class Tail:
    """Draws of S(x), the number of units at or above a norm of x rows, for x on levels."""

    def __init__(
        self, x: Floats, units: Floats, end: int, draws: HashedDraws, sure: int | None = None
    ) -> None:
        self.x, self.units, self.end = x, units, end
        self._sure = end - 1 if sure is None else sure  # the last level at which units stand out
        back = max(0, end - _BACK)
        fall = np.log(np.maximum(units[:, back], _LEAST) / np.maximum(units[:, end], 1e-9))
        index = np.clip(fall / math.log(x[end] / x[back]), LEAST_INDEX, 60.0)
        number = draws.poisson(np.minimum(units[:, end], 1e6))
        heavy = x[end] * draws.uniform(len(units), _MOST_DRAWN) ** (-1 / index[:, None])
        heavy[np.arange(_MOST_DRAWN)[None] >= number[:, None]] = 0
        self._heavy, self._largest = heavy, dict[int, Floats]()
        self._times = np.maximum(number / _MOST_DRAWN, 1.0)

    @property
    def seen(self) -> float:
        """The number of rows up to which units stand out of the noise."""
        return float(self.x[self.end])

    @lazy
    def size(self) -> float:
        """How many units there are, of those with a norm in some bin."""
        return float(np.median(self.units[:, 0]))

    def beyond(self, bound: float, cap: float = math.inf, power: int = 1) -> Lost:
        """What lies beyond a bound, if nobody has more rows than `cap`: of norms, or their squares.

        Units are at the tops of their bins for the most, and at their feet for the least. It is
        found out once.
        """
        which = (bound, cap, power)
        if which not in self._lost:
            self._lost[which] = self._beyond(bound, cap, power)
        return self._lost[which]

    @lazy
    def _lost(self) -> dict[tuple[float, float, int], Lost]:
        return {}

    def _beyond(self, bound: float, cap: float, power: int) -> Lost:
        heavy = np.minimum(self._heaviest(power), cap)
        top = float(self.x[self.end])
        most = self._area(bound, self.end, 0, power)
        far = np.maximum(heavy, max(bound, top)) ** power - max(bound, top) ** power
        most = most + self._times * far.sum(1)
        least = self._area(bound, self._sure, 1, power)
        beyond = self._at(bound) if bound < top else self._times * (heavy > bound).sum(1)
        return Lost(bound, most, least, beyond)

    def _heaviest(self, power: int) -> Floats:
        """Units beyond what is seen, none of which has more than a quarter of all."""
        if power not in self._largest:
            x, end = self.x**power, self.end
            whole = self.units[:, 0] * x[0]
            whole = whole + (self.units[:, 1 : end + 1] * np.diff(x[: end + 1])).sum(1)
            most = np.maximum(x[end], LARGEST_PART * whole) ** (1 / power)
            self._largest[power] = np.minimum(self._heavy, most[:, None])
        return self._largest[power]

    def _area(self, bound: float, end: int, side: int, power: int) -> Floats:
        """∫ of S from a bound to a position; S is that of the lower, or the upper end of a bin."""
        x, bound = self.x**power, bound**power
        total = np.zeros(len(self.units))
        if end > 0 and bound < x[0]:
            total = self.units[:, 0] * (x[0] - bound)
        for j in range(end):
            wide = x[j + 1] - max(bound, x[j])
            if wide > 0:
                total = total + wide * self.units[:, j + side]
        return total

    def _at(self, bound: float) -> Floats:
        """S at a bound, by a power law within its bin."""
        j = int(np.searchsorted(self.x, bound, side="right")) - 1
        if j < 0:
            return self.units[:, 0]
        above = np.maximum(self.units[:, j], _LEAST)
        upto = np.clip(self.units[:, j + 1], _LEAST, above)
        slope = np.log(above / upto) / math.log(self.x[j + 1] / self.x[j])
        return np.asarray(above * (bound / self.x[j]) ** -slope)


@lru_cache(maxsize=64)
def tail_of(
    x: tuple[float, ...],
    bins: tuple[int, ...],
    deviation: float,
    released: tuple[object, ...],
    slack: int = 0,
) -> Tail:
    """Draws of the numbers of units at or above these positions, given noisy bins between them.

    The draws follow from what was released.
    """
    draws, at, last = HashedDraws(*released), np.array(x), len(x) - 1
    units, seen = _drawn(at, np.array(bins, dtype=float), deviation, draws, slack)
    return Tail(at, units, min(seen + 1 + slack, last), draws, min(seen, last - 1))


def _drawn(
    x: Floats, bins: Floats, sd: float, draws: HashedDraws, slack: int
) -> tuple[Floats, int]:
    """Particles of S at each position, and the last level at which units stand out.

    A particle filter from the first level up: the next S lies on the line through the last ones,
    or anywhere below; beyond what is seen and the slack, not above that line but by chance.
    """
    size, many, seen = PARTICLES, len(bins), _last_seen(bins, sd)
    free_up_to = seen + slack
    s = np.zeros((size, many))
    spread = 2 * sd * math.sqrt(many) * np.linspace(-1, 1, size)[draws.order(size)]
    s[:, 0] = np.maximum(bins.sum() + spread, 1)
    weight, slope = np.ones(size), np.zeros(size)
    for j in range(many - 1):
        now, back, step = s[:, j], max(0, j - _BACK), math.log(x[j + 1] / x[j])
        if j > back:
            fall = np.log(np.maximum(s[:, back], _LEAST) / np.maximum(now, _LEAST))
            slope = np.maximum(fall / math.log(x[j] / x[back]), 0)
        keep = np.exp(-slope * step)
        line = now * keep
        top = now if j + 1 <= free_up_to else np.minimum(now, line + np.sqrt(line * (1 - keep)))
        mean = now - bins[j]
        low, high = ndtr(-mean / sd), ndtr((top - mean) / sd)
        straight = np.where((line < sd) & (j + 1 > free_up_to), 1.0, _STRAIGHT if j else 0.0)
        on = straight * np.exp(-0.5 * ((mean - line) / sd) ** 2) / (sd * math.sqrt(2 * math.pi))
        off = (1 - straight) * np.maximum(high - low, 0) / np.maximum(top, 1e-9)
        both = on + off + 1e-300
        free = mean + sd * ndtri(
            np.clip(low + (high - low) * draws.uniform(size), 1e-14, 1 - 1e-14)
        )
        free = np.clip(free, _LEAST, np.maximum(top, _LEAST))
        s[:, j + 1] = np.where(draws.uniform(size) < on / both, np.maximum(line, _LEAST), free)
        weight = weight * both
        weight /= weight.max()
        if j == many - 2:
            weight = weight * np.exp(-0.5 * ((s[:, -1] - bins[-1]) / sd) ** 2) + 1e-300
        if j == many - 2 or weight.sum() ** 2 / (weight**2).sum() < size / 2:
            ends = np.cumsum(weight / weight.sum())
            picked = np.searchsorted(ends, (np.arange(size) + float(draws.uniform(1)[0])) / size)
            s, weight = s[np.minimum(picked, size - 1)], np.ones(size)
    return s, seen


def _last_seen(bins: Floats, sd: float) -> int:
    """The last level from which on units stand out: in all bins together, or in neighbouring ones.

    A hump far out is plain in its own bins, and lost among the noise of many empty ones.
    """
    many = len(bins)
    upto = np.concatenate(([0.0], np.cumsum(bins)))
    first, last = np.triu_indices(many)
    needed = np.where(last == many - 1, _STANDS_OUT, _HUMP) * sd * np.sqrt(last - first + 1)
    return int(first[upto[last + 1] - upto[first] - 0.5 >= needed].max(initial=0))


def chosen(
    profile: Profile, candidates: Sequence[float], noise: float, share: float, cap: float = math.inf
) -> Lost:
    """The bound with the narrowest interval, and what is lost beyond it.

    `noise` is that of the answer for a bound of one row, `share` how much of what is lost tells in
    one number. Where that is not all of it, no bound that more than a twentieth of units exceed.
    """
    tail = profile.tail
    found = [tail.beyond(bound, cap) for bound in candidates]
    most = 0.05 * tail.size
    within = [each for each in found if share == 1 or each.usual <= most]
    return min(within or found[-1:], key=lambda each: width(each, 1.96 * noise * each.bound, share))


def lost_rows(profile: Profile, bound: float, cap: int | None, confidence: float) -> float | None:
    """What a bound takes away at most, in rows; None where nothing bounds it above."""
    if profile.few or profile.open_above:
        return None
    lost = profile.tail.beyond(bound, math.inf if cap is None else cap).most
    return float(np.quantile(lost, 1 - UPPER_RISK * (1 - confidence) / 2))


def width(lost: Lost, noise: float, share: float) -> float:
    """How wide an interval will be, noise being within ± `noise` with 95 %."""
    middle, far, near, least = lost.ends(share)
    return float(middle - least + math.hypot(noise, far - middle) + math.hypot(noise, least - near))


def farther_end(lost: Lost, noise: float, share: float) -> float:
    """How far the farther end of a 95 % interval will be from the number that is shown.

    That is with half of what may be lost put back, and half of what surely is.
    """
    middle, _, near, least = lost.ends(share)
    level = 1 - UPPER_RISK * _TAIL
    far = float(np.quantile(share * lost.most, level))
    above = math.hypot(noise * float(ndtri(level) / ndtri(1 - _TAIL)), far - middle)
    return float((middle - least) / 2 + max(above, math.hypot(noise, least - near)))


def edges_about(rows: int, cap: int | None) -> tuple[int, ...]:
    """Where bins begin: half octaves about the least number of rows that is cut, which is one.

    No bin begins beyond what is promised.
    """
    first = rows + 1
    steps = [(1 << octave, half) for octave in range(1, _BELOW + 1) for half in (2, 3)]
    below = {math.ceil(first * half / (2 * whole)) for whole, half in steps}
    above = {first * half * (1 << octave) // 2 for octave in range(_ABOVE) for half in (2, 3)}
    found = sorted(below | above | {first << _ABOVE})
    return tuple(each for each in found if cap is None or each <= max(cap, first))


@dataclass(frozen=True)
class Above:
    """Noisy numbers of units by their rows: below all edges, and from each to the next.

    A declared bound says where to look, so no place has to be found: bins of rows lie around it. A
    unit is in one of them, so that many bins cost no more than one.
    """

    rows: int
    """What was declared: so many count in full."""
    cap: int | None
    """What was promised: nobody has more."""
    bins: tuple[int, ...]
    deviation: float
    """The standard deviation of the noise of each bin."""

    @property
    def units(self) -> float:
        """How many units there are, nearly."""
        return max(1.0, float(sum(self.bins)))

    @property
    def unknown(self) -> bool:
        """Whether nothing bounds what is lost: too few units, or heavy ones beyond all bins."""
        far = stands_out(self.bins[-1], self.deviation) and self.cap is None
        return far or self.units < UPPER_END * self.deviation

    @property
    def tail(self) -> Tail:
        """Draws of how many units have so many rows, given these bins."""
        edges = edges_about(self.rows, self.cap)
        x = tuple(edge - 0.5 for edge in edges)  # whole numbers are read half a step below
        return tail_of(x, self.bins[1:], self.deviation, (x, self.bins[1:]))

    @property
    def lost(self) -> Lost:
        """What is lost of units with more rows, draw by draw."""
        cap = math.inf if self.cap is None else float(self.cap)
        return self.tail.beyond(self.rows + 0.5, cap)
