"""The profile of a question: how many units have which norms, from which its bound is chosen.

Formal guarantee. The levels of norms are public. The place is chosen by an exponential mechanism
over levels, with scores that one unit moves by one at most; given the place, a unit is in one bin
at most, decided by its own rows. What is made of the noisy bins is post-processing.

The bound is where the interval for the truth will be narrowest (`plan.tail`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from deniable.engines.base import LazySnapshot, Rows, Step
from deniable.mechanisms.grid_quantile import GridQuantile
from deniable.mechanisms.joint import JointNoise, additive
from deniable.privacy.amount import Amount
from deniable.privacy.composition import compose
from deniable.privacy.losses.base import Loss
from deniable.query.plan.levels import BELOW, BINS, LEVELS, Norms
from deniable.query.plan.measures import Linear
from deniable.query.plan.moments import Centres
from deniable.query.plan.plan import SCALE, Plan
from deniable.query.plan.tail import Profile, chosen
from deniable.query.price.estimate import (
    by_edges,
    cleaned,
    draw_counts,
    draw_place,
    less,
    rounded_share,
)
from deniable.query.run.emit_profile import levels_step, upper_step, values_step
from deniable.release import Door

PLACE_SHARE, LEVELS_SHARE, _MEANS = Fraction(1, 16), Fraction(3, 16), Fraction(1, 32)
HEAVY_SHARE = Fraction(1, 6)  # of what is left after these: an eighth of the whole
_TARGET = {True: 10, False: 20}  # noise of one bin: so many units lie above the place, by norm
_APART = 3  # levels
_BACK = 4  # levels below the place, from which norms are exact and bounds are chosen
_CELLS = 64
_LEAST_SPREAD = 0.02
WIDEST = {True: 2.0**54, False: 2.0**51}  # deviations of noise that can be drawn, by norm
_PRIOR = tuple(max(1, round(2 ** (40 - place / 2))) for place in range(len(LEVELS)))


@dataclass(frozen=True)
class ProfileOfUnits:
    """Where the heaviest units are, and how many have norms about there."""

    plan: Plan
    values: JointNoise | None
    """For where the columns of sums are centred."""
    place: GridQuantile
    levels: JointNoise
    left: Amount
    noise: float
    """The deviation of the answer's noise, for a bound of one."""
    widest: float
    """That of the widest noise of all that comes after, for a bound of one."""

    @classmethod
    def of(cls, plan: Plan, amount: Amount) -> ProfileOfUnits:
        """For a quarter of an amount, or less."""
        sums = _sums(plan)
        before = _MEANS if sums or plan.buys_norm else Fraction(0)
        levels = rounded_share(amount, LEVELS_SHARE - before)
        # Where columns were looked at, those took their part of a quarter of the whole.
        place = rounded_share(amount, PLACE_SHARE / 2 if plan.buys_norm else PLACE_SHARE)
        each = rounded_share(amount, _MEANS / len(sums)) if sums else place
        changed, noise = amount.relation.changed, additive(levels, 1)
        left = less(amount, place, levels, *([each] * len(sums)))
        asked = len(plan.counted.distinct) + len(plan.counted.ranks)
        jointly = left.part(
            Fraction(1, len(plan.counted.sets)) * (1 if single(plan) else 1 - HEAVY_SHARE)
        )
        return cls(
            plan=plan,
            values=additive(each, 1) if sums else None,
            place=place_of(place, noise),
            levels=noise,
            left=left,
            noise=changed * jointly.deviation,
            widest=changed * jointly.part(HEAVY_SHARE / (1 + asked)).deviation,
        )

    @property
    def parts(self) -> tuple[str, ...]:
        """Norms of units, and means of columns that are summed."""
        return ("norms",) if self.values is None else ("means", "norms")

    subject = ""
    by_statistics = True

    @property
    def loss(self) -> Loss:
        """What all of it costs."""
        values = [] if self.values is None else [self.values.loss] * len(_sums(self.plan))
        return compose(*values, self.place.loss, self.levels.loss)

    @property
    def l2(self) -> bool:
        """Whether norms are Euclidean."""
        return self.levels.norm == "l2"

    def steps(self) -> list[Step]:
        """What the engine runs, with made-up bounds.

        Rows that are stored are stored anew once columns are centred elsewhere: engines are to know
        that their source is read twice.
        """
        made = [values_step(self.plan, place, _CELLS) for place in _sums(self.plan)]
        if made and self.plan.stored:
            apart = [1 << 60, *[0] * (_CELLS - 1)]
            for means in (apart, apart[::-1]):  # one of them is not where they are centred now
                moved = self._recentred([means] * len(_sums(self.plan)))
                made.append(upper_step(moved, 1, l2=self.l2))
        made.append(upper_step(self.plan, 1, l2=self.l2))
        if not self._upper_is_exact:
            made.append(levels_step(self.plan.with_rows(1).with_norm(1), 1, l2=self.l2))
        return made

    @property
    def _upper_is_exact(self) -> bool:
        """Whether the norm of a unit is the sum of those of its rows, or that is all one asks.

        Several groupings have several norms, none of them above that sum.
        """
        return single(self.plan) or len(self.plan.counted.sets) > 1

    @property
    def _upper_is_loose(self) -> bool:
        """Whether units count once in a group, however many rows they have there."""
        several = len(self.plan.counted.sets) > 1
        return not several and any(each.per_unit for each in self.plan.counted.statistics)

    def draw(self, door: Door, snapshot: LazySnapshot, secret: str) -> object:
        """Means, a place and noisy bins."""
        del secret
        means = [self._drawn_means(door, snapshot, place) for place in _sums(self.plan)]
        plan = self._recentred(means)
        least = least_row(plan, l2=self.l2)
        upper = upper_step(plan, least, l2=self.l2)
        if self._upper_is_loose:
            upper = levels_step(plan.with_rows(1).with_norm(1), least, l2=self.l2)
        place = draw_place(door, self.place, lambda: _by_level(snapshot.run(upper))[1:])
        step = upper
        if not (self._upper_is_exact or self._upper_is_loose):
            floor = first_candidate(place) * least
            step = levels_step(plan.with_rows(1).with_norm(floor), least, l2=self.l2)
        bins = draw_counts(door, self.levels, lambda: binned(_by_level(snapshot.run(step)), place))
        return {"means": means, "place": place, "bins": bins}

    def _drawn_means(self, door: Door, snapshot: LazySnapshot, place: int) -> list[int]:
        """How many units have their mean of one column in which cell, under noise."""
        assert self.values is not None
        step = values_step(self.plan, place, _CELLS)
        return draw_counts(door, self.values, lambda: by_edges(snapshot.run(step), range(_CELLS)))

    def applied(self, stored: Any) -> Plan:
        """With the bound whose interval is the narrowest."""
        plan = self._with_rows(self._recentred(stored["means"]))
        least, place = least_row(plan, l2=self.l2), stored["place"]
        profile = Profile(
            norms=_norms(plan, l2=self.l2),
            first=max(0, place - BELOW),
            below=stored["bins"][0],
            bins=tuple(stored["bins"][1:]),
            deviation=self.levels.deviation(0),
            least_row=least,
            # Where columns have no bounds a row may be anything: what is usual counts as one.
            largest_row=least if plan.buys_norm else max(1, _row(plan, l2=self.l2)),
            slack=_slack(plan, l2=self.l2),
        )
        plan = _with_profile(plan, profile)
        if not profile.anybody:
            return plan.with_norm(least)
        start = first_candidate(place)
        cap = (
            math.inf
            if plan.contribution.cap is None or plan.buys_norm
            else plan.contribution.cap * profile.largest_row / least
        )
        # Noise can be drawn for norms up to this at this price, be it less than a row's.
        reach = WIDEST[self.l2] * min(plan.weights) / (SCALE * self.widest)
        most = max(1, math.floor(min(reach, 1e18)))
        offered = [each for each in candidates(profile, start) if each * least <= most]
        found = chosen(profile, offered or [most / least], self.noise, share_of_lost(plan), cap)
        norm = max(1, round(found.bound * least))
        if self._upper_is_exact or self._upper_is_loose:
            return plan.with_norm(norm)
        # The sums of these units are there already, and not made anew.
        return plan.with_norm(norm, floor=start * least)

    def assumed(self) -> Plan:
        """A bound of one row."""
        plan = self._with_rows(self.plan)
        least = least_row(plan, l2=self.l2)
        somebody = (1000, *[0] * (BINS - 1))
        profile = Profile(_norms(plan, l2=self.l2), 0, 0, somebody, 1.0, least, least)
        return _with_profile(plan, profile).with_norm(least)

    def _with_rows(self, plan: Plan) -> Plan:
        """Rows are still to be counted where more than statistics is asked."""
        return plan if plan.counted.distinct or plan.counted.ranks else plan.with_rows(1)

    def _recentred(self, means: Sequence[Sequence[int]]) -> Plan:
        return self.plan.replanned(self._centres(means), self.plan.contribution.reaches)

    def _centres(self, means: Sequence[Sequence[int]]) -> Centres:
        """Where the means of units lie, and how far from there, as a share of the farthest."""
        found = {}
        for place, noisy in zip(_sums(self.plan), means, strict=True):
            statistic = self.plan.counted.statistics[place]
            assert statistic.marks is not None
            assert self.values is not None
            low, _, high = statistic.marks
            width = (high - low + 1) / _CELLS
            counts = cleaned(self.values, noisy)
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


def _with_profile(plan: Plan, profile: Profile) -> Plan:
    return replace(plan, contribution=replace(plan.contribution, profile=profile))


def place_of(amount: Amount, bins: JointNoise) -> GridQuantile:
    """The choice of the level that so many units are above as stand out of the noise of bins."""
    return GridQuantile(
        epsilon=amount.epsilon,
        rho=amount.rho,
        share=1,
        offset=-math.ceil(_TARGET[not amount.pure] * bins.deviation(0)),
        bound=amount.relation.changed,
        cells=len(LEVELS),
        relation=amount.relation,
        prior=_PRIOR,
    )


def first_candidate(place: int) -> int:
    """The least bound that is chosen, in rows: below it norms are not exact."""
    return LEVELS[max(0, place - _BACK)]


def single(plan: Plan) -> bool:
    """Whether one count is released: what is lost of it is known without looking where."""
    counts = len(plan.counted.statistics) == 1 and plan.counted.statistics[0].counts
    return counts and not plan.counted.statistics[0].per_unit and not plan.counted.groups


def share_of_lost(plan: Plan) -> float:
    """The part of what is lost that tells in one number: each of many groups has some of it.

    Of several groupings, where heavy units are is not asked: any number may lose all of it.

    Means and other ratios lose above and below; a tenth is left of what heavy units could move.
    """
    cells = max(1, plan.counted.cells or 1) if len(plan.counted.sets) == 1 else 1
    summed = any(isinstance(each, Linear) for each in plan.shown.measures)
    return float(cells**-0.75) * (1.0 if summed else 0.1)


def least_row(plan: Plan, *, l2: bool) -> int:
    """The norm of a row that counts; of one that is only summed, a small part of the largest."""
    counted = [
        weight
        for weight, each in zip(plan.weights, plan.counted.statistics, strict=True)
        if each.size == 1 and not each.missing
    ]
    return min(counted) if counted else max(1, _row(plan, l2=l2) >> 8)


def _row(plan: Plan, *, l2: bool) -> int:
    """The largest norm of one row."""
    return plan.with_rows(1).bound(l2=l2)


def _norms(plan: Plan, *, l2: bool) -> Norms:
    if len(plan.counted.statistics) > 1 or plan.counted.statistics[0].size > 1:
        return Norms.ANY
    return (
        Norms.ROOTS if plan.counted.groups and l2 and len(plan.counted.sets) == 1 else Norms.WHOLE
    )


def _slack(plan: Plan, *, l2: bool) -> int:
    """For how many levels beyond what is seen numbers of units need not fall.

    Euclidean norms of equally many rows differ by up to the root of the number of groups: units
    that live in one group are a hump of their own, so far behind the others: half an octave for
    each doubling of groups. Of many groups an octave and a half is what most humps need, since
    rows are spread unevenly; more widens the upper ends of every table and hardly finds others.
    """
    cells = (plan.counted.cells or 1) if plan.counted.groups else 1
    if not l2 or len(plan.counted.sets) > 1:
        return 0
    return min(_APART, cells.bit_length() - 1)


def _sums(plan: Plan) -> list[int]:
    """The statistics whose columns are centred anew."""
    return [place for place, each in enumerate(plan.counted.statistics) if each.marks is not None]


def _by_level(rows: Rows) -> list[int]:
    """How many units are on each level; those below all are first."""
    counts = [0] * (len(LEVELS) + 1)
    for level, units in rows:
        counts[min(int(level), len(LEVELS) - 1) + 1] += int(units)
    return counts


def binned(counts: Sequence[int], place: int) -> list[int]:
    """Units below the bins, and in each of them; the last is open above."""
    first = max(0, place - BELOW) + 1
    bins = [sum(counts[:first]), *counts[first : first + BINS]]
    bins[-1] += sum(counts[first + BINS :])
    return bins


def candidates(profile: Profile, start: int) -> list[float]:
    """Quarters of octaves and levels, whole numbers of the plan's norm."""
    last = LEVELS[min(profile.first + len(profile.bins), len(LEVELS)) - 1]
    least = profile.least_row
    octaves = math.ceil(4 * math.log2(4 * last / start))
    free = [start * 2 ** (step / 4) for step in range(octaves + 1)]
    levels = [level for level in LEVELS if start <= level <= 4 * last]
    return sorted({math.floor(each * least) / least for each in (*free, *levels)})
