"""The profile of a question: how many units have which norms, from which its bound is chosen.

Formal guarantee. The levels of norms are public. The place is chosen by an exponential mechanism
over levels, with scores that one unit moves by one at most; given the place, a unit is in one bin
at most, decided by its own rows. What is made of the noisy bins is post-processing.

The bound is where the interval for the truth will be narrowest (`plan.tail`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

from deniable.engines.base import LazySnapshot, Rows, Step
from deniable.mechanisms.grid_quantile import GridQuantile
from deniable.mechanisms.joint import additive
from deniable.privacy.amount import Amount
from deniable.privacy.composition import compose
from deniable.privacy.losses.base import Loss
from deniable.query.plan.levels import BELOW, BINS, LEVELS, Norms
from deniable.query.plan.measures import Linear
from deniable.query.plan.moments import Centres
from deniable.query.plan.plan import SCALE, Plan
from deniable.query.plan.tail import Profile, chosen
from deniable.query.price.estimate import Histogram, less, rounded_share
from deniable.query.run.emit_profile import levels_step, upper_step, values_step
from deniable.release import Door

_PLACE, _LEVELS, _MEANS = Fraction(1, 16), Fraction(3, 16), Fraction(1, 32)
HEAVY_SHARE = Fraction(1, 6)  # of what is left after these: an eighth of the whole
_TARGET = {True: 10, False: 20}  # noise of one bin: so many units lie above the place, by norm
_BACK = 4  # levels below the place, from which norms are exact and bounds are chosen
_CELLS = 64
_LEAST_SPREAD = 0.02
_WIDEST = {True: 2.0**54, False: 2.0**51}  # deviations of noise that can be drawn, by norm
_PRIOR = tuple(max(1, round(2 ** (40 - place / 2))) for place in range(len(LEVELS)))

Recentre = Callable[[Centres], Plan]


@dataclass(frozen=True)
class ProfileOfUnits:
    """Where the heaviest units are, and how many have norms about there."""

    plan: Plan
    values: Histogram | None
    """For where the columns of sums are centred."""
    place: GridQuantile
    levels: Histogram
    left: Amount
    noise: float
    """The deviation of the answer's noise, for a bound of one."""
    widest: float
    """That of the widest noise of all that comes after, for a bound of one."""
    centred: Recentre
    """Compiles the plan again, with columns centred elsewhere."""

    @classmethod
    def of(cls, plan: Plan, amount: Amount, centred: Recentre) -> ProfileOfUnits:
        """For a quarter of an amount, or less."""
        sums = _sums(plan)
        levels = rounded_share(amount, _LEVELS - _MEANS if sums else _LEVELS)
        place = rounded_share(amount, _PLACE)
        each = rounded_share(amount, _MEANS / len(sums)) if sums else place
        changed, noise = amount.relation.changed, Histogram(additive(levels, 1))
        left = less(amount, place, levels, *([each] * len(sums)))
        asked = len(plan.distinct) + len(plan.ranks)
        jointly = left.part(Fraction(1, len(plan.sets)) * (1 if single(plan) else 1 - HEAVY_SHARE))
        return cls(
            plan=plan,
            values=Histogram(additive(each, 1)) if sums else None,
            place=GridQuantile(
                epsilon=place.epsilon,
                rho=place.rho,
                share=1,
                offset=-math.ceil(_TARGET[not amount.pure] * noise.noise.deviation(0)),
                bound=changed,
                cells=len(LEVELS),
                relation=amount.relation,
                prior=_PRIOR,
            ),
            levels=noise,
            left=left,
            noise=changed * jointly.deviation,
            widest=changed * jointly.part(HEAVY_SHARE / (1 + asked)).deviation,
            centred=centred,
        )

    @property
    def parts(self) -> tuple[str, ...]:
        """Norms of units, and means of columns that are summed."""
        return ("norms",) if self.values is None else ("means", "norms")

    @property
    def loss(self) -> Loss:
        """What all of it costs."""
        values = [] if self.values is None else [self.values.noise.loss] * len(_sums(self.plan))
        return compose(*values, self.place.loss, self.levels.noise.loss)

    @property
    def l2(self) -> bool:
        """Whether norms are Euclidean."""
        return self.levels.noise.norm == "l2"

    def steps(self) -> list[Step]:
        """What the engine runs, with made-up bounds."""
        made = [values_step(self.plan, place, _CELLS) for place in _sums(self.plan)]
        made.append(upper_step(self.plan, 1, l2=self.l2))
        if not self._upper_is_exact:
            made.append(levels_step(replace(self.plan, rows=1, floor=1, norm=1), 1, l2=self.l2))
        return made

    @property
    def _upper_is_exact(self) -> bool:
        """Whether the norm of a unit is the sum of those of its rows, or that is all one asks.

        Several groupings have several norms, none of them above that sum.
        """
        return single(self.plan) or len(self.plan.sets) > 1

    @property
    def _upper_is_loose(self) -> bool:
        """Whether units count once in a group, however many rows they have there."""
        several = len(self.plan.sets) > 1
        return not several and any(each.per_unit for each in self.plan.statistics)

    def draw(self, door: Door, snapshot: LazySnapshot, secret: str) -> object:
        """Means, a place and noisy bins."""
        del secret
        means = []
        for place in _sums(self.plan):
            assert self.values is not None
            read = partial(snapshot.run, values_step(self.plan, place, _CELLS))
            means.append(self.values.draw(door, range(_CELLS), read))
        plan = self._recentred(means)
        least = least_row(plan, l2=self.l2)
        upper = upper_step(plan, least, l2=self.l2)
        if self._upper_is_loose:
            upper = levels_step(replace(plan, rows=1, floor=1, norm=1), least, l2=self.l2)
        (place,) = _chosen(door.draw(self.place, lambda: [_by_level(snapshot.run(upper))[1:]]))
        step = upper
        if not (self._upper_is_exact or self._upper_is_loose):
            floor = LEVELS[max(0, place - _BACK)] * least
            step = levels_step(replace(plan, rows=1, floor=floor, norm=floor), least, l2=self.l2)

        def bins() -> list[list[int]]:
            return [[count] for count in _binned(_by_level(snapshot.run(step)), place)]

        drawn: Any = door.draw(self.levels.noise, bins)
        return {"means": means, "place": place, "bins": [int(row[0]) for row in drawn]}

    def applied(self, stored: Any) -> Plan:
        """With the bound whose interval is the narrowest."""
        plan = self._with_rows(self._recentred(stored["means"]))
        least, place = least_row(plan, l2=self.l2), stored["place"]
        profile = Profile(
            norms=_norms(plan, l2=self.l2),
            first=max(0, place - BELOW),
            below=stored["bins"][0],
            bins=tuple(stored["bins"][1:]),
            deviation=self.levels.noise.deviation(0),
            least_row=least,
            largest_row=max(1, _row(plan, l2=self.l2)),
        )
        plan = replace(plan, profile=profile)
        if not profile.anybody:
            return replace(plan, floor=least, norm=least)
        start = LEVELS[max(0, place - _BACK)]
        cap = math.inf if plan.cap is None else plan.cap * profile.largest_row / least
        most = self._largest_norm(plan)
        candidates = [each for each in _candidates(profile, start) if each * least <= most]
        found = chosen(profile, candidates or [most / least], self.noise, _share(plan), cap)
        norm = round(found.bound * least)
        return replace(plan, floor=norm, norm=norm)

    def _largest_norm(self, plan: Plan) -> int:
        """The largest norm for which noise can be drawn at this price."""
        reach = _WIDEST[self.l2] * min(plan.weights) / (SCALE * self.widest)
        return max(least_row(plan, l2=self.l2), math.floor(min(reach, 1e18)))

    def assumed(self) -> Plan:
        """A bound of one row."""
        plan = self._with_rows(self.plan)
        least = least_row(plan, l2=self.l2)
        somebody = (1000, *[0] * (BINS - 1))
        profile = Profile(_norms(plan, l2=self.l2), 0, 0, somebody, 1.0, least, least)
        return replace(plan, floor=least, norm=least, profile=profile)

    def _with_rows(self, plan: Plan) -> Plan:
        """Rows are still to be counted where more than statistics is asked."""
        return plan if plan.distinct or plan.ranks else replace(plan, rows=1)

    def _recentred(self, means: Sequence[Sequence[int]]) -> Plan:
        plan, made = self.plan, self.centred(self._centres(means))
        return replace(made, max_groups=plan.max_groups, selected=plan.selected)

    def _centres(self, means: Sequence[Sequence[int]]) -> Centres:
        """Where the means of units lie, and how far from there, as a share of the farthest."""
        found = {}
        for place, noisy in zip(_sums(self.plan), means, strict=True):
            statistic = self.plan.statistics[place]
            assert statistic.marks is not None
            assert self.values is not None
            low, _, high = statistic.marks
            width = (high - low + 1) / _CELLS
            counts = self.values.cleaned(noisy)
            total = sum(counts)
            if total:
                cells = [(cell + 0.5, count) for cell, count in enumerate(counts)]
                mean = sum(cell * count for cell, count in cells) / total
                apart = sum(abs(cell - mean) * count for cell, count in cells) / total
                centre = min(max(low + math.floor(mean * width), low), high)
                farthest = max(high - centre, centre - low, 1)
                share = min(1.0, max(_LEAST_SPREAD, apart * width / farthest))
                found[statistic.column] = (centre, share)
        return found


def single(plan: Plan) -> bool:
    """Whether one count is released: what is lost of it is known without looking where."""
    counts = len(plan.statistics) == 1 and plan.statistics[0].counts
    return counts and not plan.statistics[0].per_unit and not plan.groups


def _share(plan: Plan) -> float:
    """The part of what is lost that tells in one number: each of many groups has some of it.

    Means and other ratios lose above and below; a tenth is left of what heavy units could move.
    """
    cells = max(1, plan.cells or 1)
    summed = any(isinstance(each, Linear) for each in plan.measures)
    return float(cells**-0.75) * (1.0 if summed else 0.1)


def least_row(plan: Plan, *, l2: bool) -> int:
    """The norm of a row that counts; of one that is only summed, a small part of the largest."""
    counted = [
        weight
        for weight, each in zip(plan.weights, plan.statistics, strict=True)
        if each.size == 1 and not each.missing
    ]
    return min(counted) if counted else max(1, _row(plan, l2=l2) >> 8)


def _row(plan: Plan, *, l2: bool) -> int:
    """The largest norm of one row."""
    return replace(plan, rows=1, norm=None).bound(l2=l2)


def _norms(plan: Plan, *, l2: bool) -> Norms:
    if len(plan.statistics) > 1 or plan.statistics[0].size > 1:
        return Norms.ANY
    return Norms.ROOTS if plan.groups and l2 and len(plan.sets) == 1 else Norms.WHOLE


def _sums(plan: Plan) -> list[int]:
    """The statistics whose columns are centred anew."""
    return [place for place, each in enumerate(plan.statistics) if each.marks is not None]


def _chosen(drawn: object) -> list[int]:
    assert isinstance(drawn, list)
    return [int(each) for each in drawn]


def _by_level(rows: Rows) -> list[int]:
    """How many units are on each level; those below all are first."""
    counts = [0] * (len(LEVELS) + 1)
    for level, units in rows:
        counts[min(int(level), len(LEVELS) - 1) + 1] += int(units)
    return counts


def _binned(counts: Sequence[int], place: int) -> list[int]:
    """Units below the bins, and in each of them; the last is open above."""
    first = max(0, place - BELOW) + 1
    bins = [sum(counts[:first]), *counts[first : first + BINS]]
    bins[-1] += sum(counts[first + BINS :])
    return bins


def _candidates(profile: Profile, start: int) -> list[float]:
    """Quarters of octaves and levels, whole numbers of the plan's norm."""
    last = LEVELS[min(profile.first + len(profile.bins), len(LEVELS)) - 1]
    least = profile.least_row
    octaves = math.ceil(4 * math.log2(4 * last / start))
    free = [start * 2 ** (step / 4) for step in range(octaves + 1)]
    levels = [level for level in LEVELS if start <= level <= 4 * last]
    return sorted({math.floor(each * least) / least for each in (*free, *levels)})
