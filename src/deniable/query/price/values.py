"""Where the values of a column lie that has no declared bounds.

Formal guarantee. A unit has one cell of the column's values, and one distance from a released
centre, each decided by its own rows. The centre is the cell of the median, chosen by an exponential
mechanism whose scores one unit moves by a half at most; the place of the farthest values is chosen
by one whose scores one unit moves by one at most (`GridQuantile`); given both, a unit is in one of
all bins on both sides together. All three are paid for before anything is read, and what is made of
them is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

from deniable.engines.base import LazySnapshot, Rows, Step
from deniable.lazy import lazy
from deniable.mechanisms.grid_quantile import GridQuantile
from deniable.mechanisms.joint import JointNoise, additive
from deniable.privacy.amount import Amount
from deniable.privacy.composition import compose
from deniable.privacy.losses.base import Loss
from deniable.query.plan.distances import Distances, binned
from deniable.query.plan.levels import FAR_LEVELS, LEAST
from deniable.query.plan.plan import Plan
from deniable.query.plan.reach import FARTHEST, Reach, Unbounded, found, supposed
from deniable.query.price.estimate import draw_counts, draw_place, finer_share, less
from deniable.query.run.emit_profile import distances_step, signed_step
from deniable.release import Door

_CENTRE, _LEVELS = Fraction(1, 32), Fraction(5, 32)
_PLACE = {True: Fraction(1, 16), False: Fraction(1, 32)}  # where bins follow, and where not
_TARGET = 10.0  # noise of one bin: so many units lie beyond the place, or more
_SURE = 6.0  # over the rate of the choice: of fewer units than that, an empty place is too likely
_JOINT = math.sqrt(1.5) / 2  # noise of a sum beside a count, for each side of its centre
_MANY = len(FAR_LEVELS)
_ONE = FAR_LEVELS.index(LEAST.denominator)


def _likely(near: int, levels: int = 2) -> tuple[int, ...]:
    """A public guess: about as large as there, half as likely every so many levels from it."""
    return tuple(max(1, round(2 ** (40 - abs(level - near) / levels))) for level in range(_MANY))


_PRIOR = _likely(_ONE, 6)  # where nothing is known of the scale
_SIGNED_PRIOR = (*reversed(_likely(_ONE, 4)), 1 << 40, *_likely(_ONE, 4))


@dataclass(frozen=True)
class ValuesOfColumn:
    """The centre of a column's values, and how many of them lie how far from it."""

    plan: Plan
    column: Unbounded
    centre: GridQuantile
    place: GridQuantile
    levels: JointNoise | None
    """None where units have several rows and sums are asked: their norms are looked at later."""
    left: Amount
    noise: float
    """That of a sum's side, for a bound of one."""

    @classmethod
    def of(cls, plan: Plan, amount: Amount) -> ValuesOfColumn:
        """Of the first column that lacks bounds, for its part of a quarter of the whole."""
        column = plan.contribution.unbounded[0]
        done, many = (
            len(plan.contribution.reaches),
            len(plan.contribution.reaches) + len(plan.contribution.unbounded),
        )

        def share(part: Fraction) -> Fraction:
            return part / (many - done * (_CENTRE + _PLACE[True] + _LEVELS))

        whole = plan.contribution.one_row or column.ranked
        parts = (_CENTRE, _PLACE[whole], _LEVELS)
        centre, place, bins = (finer_share(amount, share(part)) for part in parts)
        levels = additive(bins, 1)
        left = less(amount, centre, place, *([bins] if whole else []))
        changed = amount.relation.changed
        rate = float(place.choice_epsilon) / 2  # what one unit is worth, if it moves scores by one
        aim = math.ceil(max(_TARGET * levels.deviation(0), _SURE * changed / rate))
        return cls(
            plan=plan,
            column=column,
            centre=GridQuantile(
                epsilon=centre.epsilon,
                rho=centre.rho,
                share=Fraction(1, 2),
                bound=changed,
                cells=len(_SIGNED_PRIOR),
                relation=amount.relation,
                prior=_SIGNED_PRIOR,
            ),
            place=GridQuantile(
                epsilon=place.epsilon,
                rho=place.rho,
                share=1,
                offset=-aim,
                bound=changed,
                cells=_MANY,
                relation=amount.relation,
            ),
            levels=levels if whole else None,
            left=left,
            noise=_noise_of_side(left),
        )

    @property
    def parts(self) -> tuple[str, ...]:
        """In words."""
        return (f"values of {self.column.name}",)

    by_statistics = False

    @property
    def subject(self) -> str:
        """The column."""
        return self.column.text

    @property
    def loss(self) -> Loss:
        """What all of it costs."""
        bins = [] if self.levels is None else [self.levels.loss]
        return compose(self.centre.loss, self.place.loss, *bins)

    def steps(self) -> list[Step]:
        """What the engine runs, with a made-up centre."""
        there = distances_step(self.plan, self.column, Fraction(0))
        return [signed_step(self.plan, self.column), there]

    def draw(self, door: Door, snapshot: LazySnapshot, secret: str) -> object:
        """A cell, a place, and noisy bins above and below."""
        del secret
        signed = partial(snapshot.run, signed_step(self.plan, self.column))
        cell = draw_place(door, self.centre, lambda: _by_cell(signed()))
        step = distances_step(self.plan, self.column, self._middle(cell))
        distances = partial(snapshot.run, step)
        farthest = self._farthest(cell)
        place = draw_place(door, farthest, lambda: _both(_by_side(distances())))
        made: dict[str, object] = {"centre": cell, "place": place}
        if self.levels is not None:
            made["bins"] = _draw_bins(door, self.levels, distances, place)
        return made

    def _farthest(self, cell: int) -> GridQuantile:
        """With a prior: values lie about as far from a released centre as that is large.

        About 1 where it is 0. Whatever the data, going too far out is ever less likely.
        """
        level, place = abs(cell - _MANY) - 1, self.place
        return replace(place, prior=_PRIOR if level < 0 else _likely(level))

    def applied(self, stored: Any) -> Plan:
        """With bounds for the column."""
        sides = None
        if self.levels is not None:
            bins, deviation = stored["bins"], self.levels.deviation(0)
            half = len(bins) // 2
            above, below = (
                Distances(stored["place"], tuple(part), deviation)
                for part in (bins[:half], bins[half:])
            )
            sides = (above, below)
        centre, share = self._middle(stored["centre"]), _share_of_side(self.plan)
        reach = found(self.column, centre, stored["place"], sides, noise=self.noise, share=share)
        once = reach.ranked or reach.plenty or not reach.seen
        return _with(self, reach if once else replace(reach, again=self.column))

    def assumed(self) -> Plan:
        """Bounds as wide as any, in steps."""
        return self._supposed

    @lazy
    def _supposed(self) -> Plan:
        return _with(self, supposed(self.column, several=self.levels is None))

    def _middle(self, cell: int) -> Fraction:
        """What stands for a cell of signed levels."""
        level = abs(cell - _MANY) - 1
        if level < 0:
            return Fraction(0)
        ends = FAR_LEVELS[level : level + 2]
        size = min(Fraction(sum(ends), len(ends)) * LEAST, Fraction(FARTHEST, 2))
        middle = size * (1 if cell > _MANY else -1)
        return Fraction(round(middle)) if self.column.whole else middle


def _draw_bins(
    door: Door, levels: JointNoise, distances: Callable[[], Rows], place: int
) -> list[int]:
    """Noisy bins about a place, above the centre and below it."""

    def counts() -> list[int]:
        return [each for side in _by_side(distances()) for each in binned(side, place)]

    return draw_counts(door, levels, counts)


def _noise_of_side(left: Amount) -> float:
    """The noise of a sum's side, for a bound of one, if that is left for the answer."""
    return left.relation.changed * left.deviation * _JOINT


def _share_of_side(plan: Plan) -> float:
    """The part of what is lost that tells in one number: each of many groups has some of it."""
    return float(max(1, plan.counted.cells or 1) ** -0.75)


def _by_cell(rows: Rows) -> list[int]:
    """How many units are in each signed cell."""
    counts = [0] * len(_SIGNED_PRIOR)
    for cell, units in rows:
        counts[min(max(int(cell) + _MANY, 0), 2 * _MANY)] += int(units)
    return counts


def _by_side(rows: Rows) -> tuple[list[int], list[int]]:
    """How many units are on each level, above and below; those nearer than all are first."""
    counts = ([0] * (_MANY + 1), [0] * (_MANY + 1))
    for cell, units in rows:
        level, side = divmod(int(cell), 2)
        counts[side][min(level, _MANY)] += int(units)
    return counts


def _both(sides: tuple[list[int], list[int]]) -> list[int]:
    """On levels, whichever the side; what is nearer than all is on the first."""
    near, *rest = (above + below for above, below in zip(*sides, strict=True))
    return [near + rest[0], *rest[1:]]


@dataclass(frozen=True)
class ValuesAgain:
    """How many values of a column lie how far from its centre, once more: noise hid their tail.

    Formal guarantee. Centre and place were released before; given both, a unit is in one of all
    bins on both sides together, decided by its own rows. That is paid for before anything is read,
    and what is made of both looks together is post-processing. Who cannot be answered never pays
    for it: that is told by the first look.
    """

    plan: Plan
    column: Unbounded
    levels: JointNoise
    left: Amount
    noise: float
    """That of a sum's side, for a bound of one."""

    @classmethod
    def of(cls, plan: Plan, amount: Amount) -> ValuesAgain:
        """Of the first column that waits for it; all of them have two fifths of what is left."""
        summed = [each for each in plan.contribution.reaches.values() if not each.ranked]
        waiting = [each.again for each in summed if each.again is not None]
        price = finer_share(amount, Fraction(2, 3 * len(summed) + 2 * len(waiting)))
        left = less(amount, price)
        return cls(
            plan,
            waiting[0],
            additive(price, 1),
            left,
            _noise_of_side(left),
        )

    @property
    def parts(self) -> tuple[str, ...]:
        """In words."""
        return (f"the farthest values of {self.column.name}",)

    by_statistics = False

    @property
    def subject(self) -> str:
        """The column, and where it was looked before."""
        sides = self._reach.sides
        place = None if sides is None else sides[0].place
        return f"{self.column.text} about {self._reach.centre}, {place}"

    @property
    def loss(self) -> Loss:
        """That of one histogram."""
        return self.levels.loss

    @property
    def _reach(self) -> Reach:
        return self.plan.contribution.reaches[self.column.text]

    @lazy
    def _distances(self) -> Step:
        return distances_step(self.plan, self.column, self._reach.centre)

    def steps(self) -> list[Step]:
        """What the engine runs."""
        return [self._distances]

    def draw(self, door: Door, snapshot: LazySnapshot, secret: str) -> object:
        """Noisy bins above and below."""
        del secret
        assert self._reach.sides is not None
        place = self._reach.sides[0].place
        return _draw_bins(door, self.levels, partial(snapshot.run, self._distances), place)

    def applied(self, stored: Any) -> Plan:
        """With bounds by both looks."""
        before = self._reach
        assert before.sides is not None
        half, deviation = len(stored) // 2, self.levels.deviation(0)
        above, below = (
            side.with_more(part, deviation)
            for side, part in zip(before.sides, (stored[:half], stored[half:]), strict=True)
        )
        reach = found(
            self.column,
            before.centre,
            above.place,
            (above, below),
            noise=self.noise,
            share=_share_of_side(self.plan),
        )
        return _with(self, replace(reach, twice=True))

    def assumed(self) -> Plan:
        """As it was."""
        return _with(self, replace(self._reach, again=None))


def _with(estimate: ValuesOfColumn | ValuesAgain, reach: Reach) -> Plan:
    """The plan again, with bounds for the column."""
    reaches = {**estimate.plan.contribution.reaches, estimate.column.text: reach}
    return estimate.plan.replanned({}, reaches)
