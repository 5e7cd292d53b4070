"""What a bound that was estimated took away, group by group: draws for intervals about the truth.

Everything here is post-processing of released numbers: the profile of units, what was kept, and
`heavy`, what was kept of units beyond the bound, which tells where those are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from deniable.intervals import Floats
from deniable.lazy import lazy
from deniable.query.plan.draws import HashedDraws
from deniable.query.plan.plan import Plan
from deniable.query.plan.tail import LARGEST_PART, Lost

DRAWS = 200
_MOST_DRAWN = 40
_CHUNK = 100  # groups at a time
_STEEPEST = 50.0


@dataclass(frozen=True, eq=False)
class Beyond:
    """What is lost of each statistic in each group, draw by draw: at least, and at most.

    `least` and `most` have an axis of groups, one of statistics and one of draws. `likely` is what
    is put back. `one_sided` says that nothing bounds it above.
    """

    least: Floats
    most: Floats
    likely: Floats
    one_sided: bool
    few: bool = False
    """Whether so few units are seen that draws of their tail are to be trusted less."""

    def without(self, columns: Sequence[int]) -> Beyond:
        """Nothing of these statistics is lost."""
        kept = np.array([place not in columns for place in range(self.likely.shape[1])])
        return replace(
            self,
            least=np.where(kept[None, :, None], self.least, 0.0),
            most=np.where(kept[None, :, None], self.most, 0.0),
            likely=np.where(kept[None], self.likely, 0.0),
        )

    def picked(self, places: Sequence[int]) -> Beyond:
        """Of some rows only, in this order."""
        return replace(
            self, least=self.least[places], most=self.most[places], likely=self.likely[places]
        )


@dataclass(frozen=True, eq=False)
class Heavy:
    """What was kept of units beyond the bound, under noise of these deviations."""

    kept: Floats
    deviations: Floats


def beyond_one(lost: Lost, *, one_sided: bool) -> Beyond:
    """Of one count: what the profile says."""
    likely = (np.median(lost.least) + np.median(lost.most)) / 2
    shape = (1, 1, -1)
    return Beyond(
        lost.least.reshape(shape), lost.most.reshape(shape), np.array([[likely]]), one_sided
    )


def beyond_groups(
    plan: Plan, lost: Lost, x: Floats, heavy: Heavy, *, l2: bool, one_sided: bool
) -> Beyond:
    """Of several numbers: heavy units live where what was kept of them is.

    What they lose there is drawn as if each were beyond the bound by a power law that has the right
    mean; no group loses more than all groups can together, κ times what is lost in norm.
    """
    assert plan.contribution.profile is not None
    spread = _Spread(plan, lost, x, heavy, l2)
    columns = range(x.shape[1])
    least, most, likely = (
        np.zeros((*x.shape, DRAWS)),
        np.zeros((*x.shape, DRAWS)),
        np.zeros(x.shape),
    )
    for start in range(0, len(x), _CHUNK):
        rows = slice(start, start + _CHUNK)
        up, low = spread.beyond_each(rows, spread.up), spread.beyond_each(rows, spread.low)
        for column in columns:
            least[rows, column], most[rows, column] = spread.drawn(rows, column, low, up)
    for column in columns:
        likely[:, column] = spread.likely(column)
    counted = _counted(plan)
    if counted is not None:
        for column, each in enumerate(plan.counted.statistics):
            if not each.counts and not each.per_unit:
                far = each.size * most[:, counted]
                least[:, column] = np.clip(least[:, column], -far, far)
                most[:, column] = np.clip(most[:, column], -far, far)
    return Beyond(least, most, likely, one_sided)


def beyond_groupings(plan: Plan, lost: Lost, x: Floats, *, one_sided: bool) -> Beyond:
    """Of several groupings, for which each unit is scaled by one factor.

    A unit of norm ν, the sum of those of its rows, loses the part 1 - B/ν of each of its numbers,
    none of which is above ν: what a number loses is Σ (ν - B)₊ at most, whatever its group. The
    total of a lone count loses exactly that. It is put back where the others are.
    """
    profile, counted = plan.contribution.profile, plan.counted
    assert profile is not None
    rows = np.array([profile.least_row / weight for weight in plan.weights])
    signed = np.array([not (each.counts or each.per_unit) for each in counted.statistics])
    most = np.broadcast_to(rows[:, None] * lost.most, (*x.shape, len(lost.most))).copy()
    least = np.where(signed[None, :, None], -most, 0.0)
    likely = np.zeros(x.shape)
    sizes = [math.prod(len(counted.groups[p].keys or ()) for p in each) for each in counted.sets]
    middle = float(np.median(lost.least) + np.median(lost.most)) / 2
    counts = len(counted.statistics) == 1 and counted.statistics[0].counts
    for start, size, each in zip(np.cumsum([0, *sizes]), sizes, counted.sets, strict=False):
        part = slice(int(start), int(start) + size)
        if counts:
            kept = np.maximum(x[part, 0], 0.0)
            likely[part, 0] = middle * rows[0] * kept / max(float(kept.sum()), 1e-9)
            if not each:
                least[part, 0] = rows[0] * lost.least
    return Beyond(least, most, likely, one_sided)


def _counted(plan: Plan) -> int | None:
    """A statistic that counts every row."""
    places = [
        n
        for n, s in enumerate(plan.counted.statistics)
        if s.counts and not (s.per_unit or s.missing)
    ]
    return places[0] if places else None


class _Spread:
    """How what is lost is spread over groups."""

    def __init__(self, plan: Plan, lost: Lost, x: Floats, heavy: Heavy, l2: bool) -> None:
        assert plan.contribution.profile is not None
        self._plan, self._lost, self._x, self._heavy, self._l2 = plan, lost, x, heavy, l2
        self._draws = HashedDraws(
            plan.contribution.profile, plan.contribution.norm, heavy.kept.tolist()
        )
        self._rows = np.array(
            [plan.contribution.profile.least_row / weight for weight in plan.weights]
        )
        self._picked = self._draws.order(len(lost.most))[:DRAWS]
        beyond = np.maximum(lost.beyond, 1e-3) * lost.bound
        self.up = np.minimum(lost.most / beyond, _STEEPEST)
        self.low = lost.least / beyond

    def _signed(self, column: int) -> bool:
        each = self._plan.counted.statistics[column]
        return not (each.counts or each.per_unit)

    @lazy
    def _shares(self) -> Floats:
        kept = np.abs(self._x[:, _counted(self._plan) or 0])
        return kept / max(float(kept.sum()), 1e-9)

    @lazy
    def _kappa(self) -> float:
        """How much several groups lose together of what one would: 1/|p|₂, for norms of roots."""
        if not self._l2:
            return 1.0
        return max(1.0, 1 / math.sqrt(max(float((self._shares**2).sum()), 1 / len(self._x))))

    @lazy
    def _largest(self) -> float:
        """A quarter of all, in rows."""
        counted = _counted(self._plan) or 0
        kept = np.abs(self._x[:, counted]).sum() / self._rows[counted]
        return LARGEST_PART * float(kept + np.median(self._lost.most))

    def beyond_each(self, rows: slice, ratio: Floats) -> Floats:
        """What the first 0, 1, ... heavy units of a group lose, in rows, draw by draw."""
        groups = len(self._x[rows])
        index = 1 + 1 / np.clip(ratio[self._picked], 1e-3, 5.0)
        made = np.zeros((_MOST_DRAWN + 1, groups, DRAWS))
        for unit in range(_MOST_DRAWN):
            chance = self._draws.uniform(groups, DRAWS)
            one = self._lost.bound * (chance ** (-1 / index) - 1)
            made[unit + 1] = made[unit] + np.minimum(one, self._largest)
        return made

    def drawn(self, rows: slice, column: int, low: Floats, up: Floats) -> tuple[Floats, Floats]:
        """At least, and at most, what is lost of one statistic in some groups."""
        kept = self._heavy.kept[rows, column][:, None]
        noisy = kept + self._heavy.deviations[column] * self._draws.normal(len(kept), DRAWS)
        signed = self._signed(column)
        size = np.abs(noisy) if signed else np.maximum(noisy, 0.0)
        units = self._draws.poisson(size / self._rows[column] / self._lost.bound)
        at = np.minimum(units, _MOST_DRAWN).astype(int)[None]
        times = np.maximum(units / _MOST_DRAWN, 1.0)
        most = np.take_along_axis(up, at, 0)[0] * times
        least = np.take_along_axis(low, at, 0)[0] * times
        most = np.minimum(most, self._kappa * self._lost.most[self._picked])
        least = np.where(self.low[self._picked] > 0, np.minimum(least, most), 0.0)
        if signed and _counted(self._plan) is None:
            # Rows are not counted: all of what is lost may be in this column, on either side.
            far = self._kappa * self._lost.most[self._picked] * self._rows[column]
            return np.broadcast_to(-far, most.shape), np.broadcast_to(far, most.shape)
        sign = np.sign(noisy) if signed else 1.0
        return sign * least * self._rows[column], sign * most * self._rows[column]

    def likely(self, column: int) -> Floats:
        """What is put back: where heavy units seem to be, drawn toward where the others are."""
        kept, spread = self._heavy.kept[:, column], self._heavy.deviations[column]
        prior = self._shares * self._kappa * np.median(self._lost.beyond) * self._lost.bound
        prior = np.zeros(len(kept)) if self._signed(column) else prior * self._rows[column]
        between = max(float(((kept - prior) ** 2).mean()) - spread**2, 0.0)
        between = np.maximum(between, (prior / 2) ** 2) + 1e-12
        made = (kept * between + prior * spread**2) / (between + spread**2)
        made = made if self._signed(column) else np.maximum(made, 0.0)
        return np.asarray(made * (np.median(self.up) + np.median(self.low)) / 2)
