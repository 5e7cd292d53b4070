"""What bounds of columns that were estimated took away, group by group: draws for intervals.

Everything here is post-processing of released numbers: the profiles of how far values lie from a
centre, and, for groups, how many values are clipped there, under noise.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from deniable.intervals import Floats, Interval
from deniable.query.plan.draws import HashedDraws
from deniable.query.plan.measures import ColumnNoise, Measure
from deniable.query.plan.plan import Plan
from deniable.query.plan.reach import Clips, Factor, Reach
from deniable.query.show.beyond import DRAWS, Beyond
from deniable.query.show.truth import possible

_MOST_DRAWN = 40
_STEEPEST = 5.0
_UPPER = 0.6  # of a tail's chance: bounds are chosen where draws look good
_UPPER_OF_FEW = 0.1  # the same of small tables
_SEVERAL = 6  # statistics of one measure whose ends are tried in all ways


@dataclass(frozen=True, eq=False)
class Side:
    """What values on one side of a centre lose, by group and draw: at least and at most.

    `sums` are of distances from the centre, `squares` of their squares.
    """

    sums: tuple[Floats, Floats]
    squares: tuple[Floats, Floats]


def beyond_columns(plan: Plan, x: Floats, noise: Sequence[ColumnNoise]) -> Beyond:
    """What is lost of each statistic, by group and draw."""
    sides = {
        text: tuple(_side(plan, (text, side), reach, x, noise) for side in (0, 1))
        for text, reach in plan.contribution.reaches.items()
        if reach.sides is not None
    }
    draws = next(iter(sides.values()))[0].sums[0].shape[1]
    shape = (len(x), len(plan.counted.statistics))
    least, most = np.zeros((*shape, draws)), np.zeros((*shape, draws))
    for place, each in enumerate(plan.counted.statistics):
        if each.clips is not None:
            ends = _lost(each.clips, plan, sides)
            least[:, place], most[:, place] = (end / each.clips.unit for end in ends)
    likely = (np.median(least, axis=2) + np.median(most, axis=2)) / 2
    for place, each in enumerate(plan.counted.statistics):
        if each.clips is not None:
            low, high = _open(each.clips, plan)
            least[:, place] = np.where(low, -math.inf, least[:, place])
            most[:, place] = np.where(high, math.inf, most[:, place])
    few = any(reach.few for reach in plan.contribution.reaches.values())
    return Beyond(least, most, likely, one_sided=False, few=few)


def _open(clips: Clips, plan: Plan) -> tuple[bool, bool]:
    """Whether nothing bounds what a statistic loses below, and above."""
    opened = [
        plan.contribution.reaches[factor.text].open if factor.text is not None else (False, False)
        for factor in clips.factors
    ]
    if len(opened) == 1:
        above, below = opened[0]
        return below, above
    anywhere = any(any(each) for each in opened)
    squares = len({factor.text for factor in clips.factors}) == 1
    return anywhere and not squares, anywhere


def _side(
    plan: Plan, which: tuple[str, int], reach: Reach, x: Floats, noise: Sequence[ColumnNoise]
) -> Side:
    """One column, above or below."""
    text, side = which
    one, two = reach.lost(side), reach.lost(side, 2)
    draws = HashedDraws(text, side, x.tolist())
    order = draws.order(len(one.most))
    places = [n for n, each in enumerate(plan.counted.statistics) if each.beyond == which]
    if not places:
        return Side(
            (one.least[None, order], one.most[None, order]),
            (two.least[None, order], two.most[None, order]),
        )
    (place,) = places
    picked, groups = order[:DRAWS], len(x)
    spread = noise[place].deviation * draws.normal(groups, DRAWS)
    number = draws.poisson(np.maximum(x[:, place][:, None] + spread, 0.0))
    beyond = np.maximum(one.beyond[picked], 1e-3) * max(one.bound, 1e-300)
    chances = [draws.uniform(groups, DRAWS) for _ in range(_MOST_DRAWN)]

    def drawn(ratio: Floats, power: int, whole: Floats) -> Floats:
        """Values beyond the bound, by a power law of the right mean; no more than all lose."""
        index, total = 1 + 1 / np.clip(ratio, 1e-3, _STEEPEST), np.zeros((groups, DRAWS))
        for unit, chance in enumerate(chances):
            far = one.bound**power * (chance ** (-power / index) - 1)
            total += np.where(unit < number, np.minimum(far, whole), 0.0)
        return np.asarray(np.minimum(total * np.maximum(number / _MOST_DRAWN, 1.0), whole))

    up, low = one.most[picked] / beyond, one.least[picked] / beyond
    some = low > 0
    return Side(
        (
            np.where(some, drawn(low, 1, one.least[picked]), 0.0),
            drawn(up, 1, one.most[picked]),
        ),
        (
            np.where(some, drawn(low, 2, two.least[picked]), 0.0),
            drawn(up, 2, two.most[picked]),
        ),
    )


def _lost(clips: Clips, plan: Plan, sides: dict[str, tuple[Side, ...]]) -> tuple[Floats, Floats]:
    """At least, and at most, what a sum of products loses."""
    if len(clips.factors) == 1:
        (factor,) = clips.factors
        assert factor.text is not None
        above, below = sides[factor.text]
        return above.sums[0] - below.sums[1], above.sums[1] - below.sums[0]
    if len({factor.text for factor in clips.factors}) == 1:
        return _of_squares(clips.factors[0], plan, sides)
    return _of_products(clips.factors, sides)


def _of_squares(
    factor: Factor, plan: Plan, sides: dict[str, tuple[Side, ...]]
) -> tuple[Floats, Floats]:
    """Of squares about the middle m of the bounds, where distances d are from the centre c.

    A value beyond the radius r loses (d² - r²) + 2(c - m)(d - r) above, and with the other sign of
    c - m below. Both parts grow with d, and so does their sum: r and d are beyond m.
    """
    assert factor.text is not None
    apart = float(plan.contribution.reaches[factor.text].centre) - factor.centre
    ends = []
    for end in (0, 1):
        lost = [
            side.squares[end] + 2 * sign * apart * side.sums[end]
            for side, sign in zip(sides[factor.text], (1, -1), strict=True)
        ]
        ends.append(np.maximum(lost[0], 0.0) + np.maximum(lost[1], 0.0))
    return ends[0], ends[1]


def _of_products(
    factors: tuple[Factor, ...], sides: dict[str, tuple[Side, ...]]
) -> tuple[Floats, Floats]:
    """Of x·y, no farther than h and k from their middles, either way.

    With x' and y' clipped, xy - x'y' = (x-x')y' + x'(y-y') + (x-x')(y-y'), and the last is at most
    ((x-x')²k/h + (y-y')²h/k)/2, where (x-x')² is at most what squares about the centre lose.
    """
    one, two = factors
    far: list[Floats] = []
    for factor, other in ((one, two), (two, one)):
        if factor.text is not None:
            both = sides[factor.text]
            sums = reduce(np.add, (side.sums[1] for side in both))
            squares = reduce(np.add, (side.squares[1] for side in both))
            far.append(other.half * sums + squares * other.half / factor.half / 2)
    most = reduce(np.add, far)
    return -most, most


@dataclass(frozen=True, eq=False)
class TruthOfColumns:
    """A measure of values that were clipped: noise, and what was clipped on either side."""

    measure: Measure
    x: Floats
    noise: tuple[ColumnNoise, ...]
    beyond: Beyond

    def at(self, confidence: float) -> Interval:
        """Where the truth lies; open where values stand out beyond all that was looked at."""
        low, high = self.measure.interval(self.x, self.noise, confidence)
        risk = _UPPER_OF_FEW if self.beyond.few else _UPPER
        middle, tail = self.measure.value(self.x), risk * (1 - confidence) / 2
        down, up = self._moved(middle)
        below = middle - _together(middle - low, -down, 1 - tail)
        above = middle + _together(high - middle, up, 1 - tail)
        least, most = possible(self.measure)
        return np.clip(below, least, most), np.clip(above, least, most)

    def _moved(self, middle: Floats) -> tuple[Floats, Floats]:
        """How far the measure moves at the least and the most, by group and draw."""
        groups, _, draws = self.beyond.most.shape
        used = [
            column
            for column in self.measure.columns()
            if column < self.beyond.most.shape[1] and self.beyond.most[:, column].any()
        ][:_SEVERAL]
        down, up = np.full((groups, draws), math.inf), np.full((groups, draws), -math.inf)
        for ends in itertools.product((self.beyond.least, self.beyond.most), repeat=len(used)):
            made = np.repeat(self.x[:, None], draws, axis=1)
            for column, end in zip(used, ends, strict=True):
                made[:, :, column] += end[:, column]
            with np.errstate(invalid="ignore"):  # of two infinite ends nothing is known
                moved = self.measure.value(made.reshape(groups * draws, -1))
                moved = moved.reshape(groups, draws) - middle[:, None]
            unknown = np.isnan(moved)
            down = np.minimum(down, np.where(unknown, -math.inf, moved))
            up = np.maximum(up, np.where(unknown, math.inf, moved))
        return down, up


def _together(noise: Floats, draws: Floats, level: float) -> Floats:
    """How far noise and draws reach together, as if both were normal; open where either is."""
    known = np.isfinite(draws).all(axis=1) & np.isfinite(noise)
    kept = np.where(known[:, None], draws, 0.0)
    middle, far = np.quantile(kept, [0.5, level], axis=1)
    both = middle + np.hypot(np.where(known, noise, 0.0), far - middle)
    return np.asarray(np.where(known, both, math.inf))
