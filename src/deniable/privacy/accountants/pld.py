"""Numerical composition: certified bounds on δ(ε) and ε(δ) of a fixed list of releases.

Each pair becomes a ladder that is proved worse and one that is proved better (`ladder`), and the
laws of the sums are found with the error of every step on the right side (`tower`). The answers
hold for releases chosen adaptively as long as the list of pairs was fixed beforehand. They are no
filter: a list that grows by what was seen needs the ledger's own rules.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from deniable.privacy.accountants.ladder import TooLongError, read
from deniable.privacy.accountants.law import DominatingPair, Floats, Rest
from deniable.privacy.accountants.tower import Side, Tower

MOST_LAWS = 1000
_MOST_WORK = 1 << 26  # laws times points
_MOST_RUNGS = 1 << 18
_MOST_RELEASES = 10**9
_FINEST = 1e-140
_LEAST_TAIL = 1e-300
_COARSEST = 300.0


class EpsilonRange(NamedTuple):
    """A number that is certified to lie between the two."""

    lower: float
    upper: float


@dataclass(frozen=True)
class Resolution:
    """Step of the ladders, in standard deviations of a log ratio, and the most points to use."""

    fineness: float
    points: int


ROUGH = Resolution(0.06, 1 << 19)
QUICK = Resolution(0.02, 1 << 19)
FINE = Resolution(0.003, 1 << 20)

Laws = Sequence[tuple[DominatingPair, int]]
"""Each pair and how often it occurs; an empty list stands for what is not known."""


def epsilon_bounds(laws: Laws, floors: Laws, delta: float) -> EpsilonRange:
    """EpsilonRange on ε(δ): from above for the worst pairs, from below for pairs that are met."""
    upper = epsilon_at(laws, delta, 1, QUICK)
    return EpsilonRange(min(epsilon_at(floors, delta, -1, QUICK), upper), upper)


def delta_bounds(laws: Laws, floors: Laws, epsilon: float) -> EpsilonRange:
    """EpsilonRange on δ(ε)."""
    upper = min(1.0, delta_at(laws, epsilon, 1, QUICK))
    return EpsilonRange(min(delta_at(floors, epsilon, -1, QUICK), upper), upper)


def epsilon_at(laws: Laws, delta: float, side: Side, resolution: Resolution) -> float:
    """ε(δ), δ > 0, of all releases together: never too small (side 1) or too large (side -1)."""
    tail = delta * 1e-7 / _count(laws)

    def answer(tower: Tower) -> float:
        left = delta - tower.beyond * (1 + side * 1e-12)
        if left <= 0:
            return math.inf
        # δ of the finite parts is at most their mass.
        if math.log(left) >= tower.tilted(0.0)[1].log + 1e-9:
            return 0.0
        tilt, centre = tower.tilt_for_delta(-math.log(left))
        return tower.sums(tilt, centre, side).epsilon(left)

    return max(0.0, _worse_way(laws, tail, side, resolution, answer))


def delta_at(laws: Laws, epsilon: float, side: Side, resolution: Resolution) -> float:
    """δ(ε), ε >= 0, of all releases together: never too small (side 1) or too large (side -1)."""
    count = _count(laws)
    tail = 1e-16 / count

    def answer(tower: Tower) -> float:
        tilt, log_bound = tower.tilt_for_epsilon(epsilon)
        estimate = math.exp(min(0.0, log_bound))
        if tail > _LEAST_TAIL and estimate * 1e-6 < tail * count:
            raise _TailError(estimate * 1e-8 / count)
        found = tower.sums(tilt, epsilon, side).delta(epsilon)
        return min(1.0, found + tower.beyond * (1 + side * 1e-12))

    while True:
        try:
            return _worse_way(laws, tail, side, resolution, answer)
        except _TailError as better:
            tail = max(better.tail, _LEAST_TAIL)


Points = tuple[Floats, Floats]


def points(laws: Laws) -> list[Points]:
    """ε and δ(ε), never too small, over the bulk of the curve, negative ε too; for both ways."""
    tail = 1e-16 / _count(laws)
    found: list[Points] = []

    def answer(tower: Tower) -> float:
        sums = tower.sums(0.0, tower.tilted(0.0)[1].mean, 1)
        delta = math.exp(sums.scale) * sums.values() + tower.beyond * (1 + 1e-12)
        found.append((sums.x, np.minimum(delta, 1.0)))
        return 0.0

    if laws:
        _coarser_until_it_fits(laws, tail, 1, FINE, answer)
        if not all(law.symmetric for law, _ in laws):
            reverse = [(law.reversed(), count) for law, count in laws]
            _coarser_until_it_fits(reverse, tail, 1, FINE, answer)
    return found


def type_two(curves: list[Points], alpha: float) -> float:
    """max over ε of 1 - δ(ε) - e^ε α, the worse of both ways (Dong, Roth & Su 2022, Prop. 2.12)."""
    if not curves:
        return 0.0
    found = []
    for x, delta in curves:
        grown = np.exp(np.minimum(x, 700.0)) * alpha
        found.append(float(np.max(1 - delta - grown - 1e-15 * (1 + grown))))
    return max(0.0, min(found))


class _TailError(Exception):
    """What was cut off is not small beside the answer."""

    def __init__(self, tail: float) -> None:
        super().__init__(tail)
        self.tail = tail


def _worse_way(
    laws: Laws, tail: float, side: Side, resolution: Resolution, answer: Callable[[Tower], float]
) -> float:
    """The worse answer of the two directions: a unit taken away, a unit added.

    One direction is usually far ahead. The other is looked at roughly, and again if need be.
    """
    if not laws:
        return _trivial(side)
    first = _coarser_until_it_fits(laws, tail, side, resolution, answer)
    if all(law.symmetric for law, _ in laws):
        return first
    reverse = [(law.reversed(), count) for law, count in laws]
    second = _coarser_until_it_fits(reverse, tail, side, ROUGH, answer)
    if second > first:
        second = _coarser_until_it_fits(reverse, tail, side, resolution, answer)
    return max(first, second)


def _coarser_until_it_fits(
    laws: Laws, tail: float, side: Side, resolution: Resolution, answer: Callable[[Tower], float]
) -> float:
    step = _step(laws, resolution)
    points = min(resolution.points, _MOST_WORK // len(laws))
    rungs = min(_MOST_RUNGS, _MOST_WORK // 4 // len(laws))
    if not step > _FINEST or _count(laws) > _MOST_RELEASES:
        return _trivial(side)
    for _ in range(12):
        try:
            rungwise = [read(law, step, max(tail, _LEAST_TAIL), rungs) for law, _ in laws]
            ladders = tuple(each.above() if side == 1 else each.below() for each in rungwise)
            if not all(ladder.mass.any() for ladder in ladders):
                return _trivial(side)
            counts = tuple(count for _, count in laws)
            return answer(Tower(ladders, counts, points))
        except TooLongError as too_long:
            step *= 1.05 * too_long.excess
            if step > _COARSEST:
                break
    return _trivial(side)


def _count(laws: Laws) -> int:
    return max(1, sum(count for _, count in laws))


def _trivial(side: Side) -> float:
    return math.inf if side == 1 else 0.0


def _step(laws: Laws, resolution: Resolution) -> float:
    """A step fine enough, on which the atoms lie if that can be."""
    total = sum(count * _spread(law) ** 2 for law, count in laws)
    wanted = resolution.fineness * math.sqrt(total / sum(count for _, count in laws))
    if not wanted > 0:
        return 0.0
    grain = _common([law.grain for law, _ in laws if law.grain is not None])
    if grain is not None and all(law.rest is None and law.grain for law, _ in laws):
        # Everything lies on this grain: no step is better, unless it asks for too many points.
        step = grain if 24 * math.sqrt(total) < grain * resolution.points else wanted
    else:
        if any(law.atoms and not (law.grain and law.symmetric) for law, _ in laws):
            wanted /= 4  # atoms between the rungs cost the lower bound most
        aligned = grain is not None and grain > wanted / 8
        step = grain / math.ceil(grain / wanted) if grain and aligned else wanted
    # A hair less, so that atoms lie just beyond their rungs.
    return min(step, _COARSEST) * (1 - 1e-13)


def _common(spacings: list[float]) -> float | None:
    """The greatest number of which all are nearly multiples (Euclid); None for none."""
    common: float | None = None
    for spacing in spacings:
        if common is None:
            common = spacing
            continue
        larger, smaller = max(common, spacing), min(common, spacing)
        while smaller > 1e-9 * larger and smaller > 0:
            rest = math.remainder(larger, smaller)
            larger, smaller = smaller, abs(rest) if abs(rest) > 1e-9 * smaller else 0.0
        common = larger
    return common


def _spread(law: DominatingPair) -> float:
    """About the standard deviation of a log ratio: sqrt(2 KL), which is exact for Gaussians."""
    divergence = apart = 0.0
    if law.atoms is not None:
        atoms = law.atoms(1e-9)
        divergence += float((atoms.mass * atoms.x).sum())
        apart += float((atoms.mass * -np.expm1(-np.maximum(atoms.x, 0.0))).sum())
    if law.rest is not None:
        divergence += _divergence_of_rest(law.rest)
    return max(math.sqrt(2 * max(divergence, 0.0)), 2 * apart)


def _divergence_of_rest(rest: Rest) -> float:
    """KL = ∫ H(ε) dε + ∫ e^-ε H'(ε) dε over ε >= 0, roughly."""
    start = float(rest.forward(np.zeros(1)).values[0])
    if start == 0:
        return 0.0
    end = start
    while float(rest.forward(np.array([end])).values[0]) > 1e-9 * start and end < 1e15:
        end *= 2
    x = np.append(0.0, np.geomspace(1e-3 * start, end, 200))
    inside = rest.forward(x).values + np.exp(-x) * rest.backward(x).values
    return float(np.trapezoid(inside, x))
