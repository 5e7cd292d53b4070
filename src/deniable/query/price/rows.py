"""The profile of rows: how many rows units have, where values are ranked or told apart.

Formal guarantee. As that of the profile of norms: the place is chosen by an exponential mechanism
over public levels, with scores that one unit moves by one at most; given the place, a unit is in
one bin, decided by its own rows.

What is lost. A unit of n rows that counts with B of them loses n - B at most, of all groups
together: rows of quantiles weigh B/ν with a norm ν <= n, so that a group of n_g <= ν rows loses
n_g (1 - B/ν) <= ν - B; of different values, at most n - B are not counted. So ℓ, the upper end of
Σ (n - B)₊ that the profile gives, bounds what any group loses.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from deniable.engines.base import LazySnapshot, Step
from deniable.mechanisms.grid_quantile import GridQuantile
from deniable.mechanisms.joint import JointNoise, additive
from deniable.privacy.amount import Amount
from deniable.privacy.composition import compose
from deniable.privacy.losses.base import Loss
from deniable.query.plan.levels import BELOW, BINS, LEVELS, Norms
from deniable.query.plan.plan import SCALE, Plan
from deniable.query.plan.tail import Above, Profile, chosen, edges_about
from deniable.query.price.estimate import by_edges, draw_counts, draw_place, less, rounded_share
from deniable.query.price.profile import (
    LEVELS_SHARE,
    PLACE_SHARE,
    WIDEST,
    binned,
    candidates,
    first_candidate,
    place_of,
)
from deniable.query.run.emit_profile import above_step, rows_step
from deniable.release import Door

ENDS_SHARE = Fraction(1, 25)  # of a quantile's price, for each end of its interval
ROWS_SHARE = Fraction(1, 10)  # of a MIN's or MAX's price, for how many rows there are
_Z95 = 1.96
_ABOVE_SHARE = Fraction(1, 16)  # for how many units have more rows than are declared


@dataclass(frozen=True)
class ProfileOfRows:
    """How many units have how many rows: the number up to which they count in full."""

    plan: Plan
    place: GridQuantile
    levels: JointNoise
    left: Amount
    noise: float
    """How far noise moves an answer, for a bound of one row, as a standard deviation."""
    most: int
    """The most rows for which noise can be drawn at this price."""
    parts = ("rows",)
    subject = ""
    by_statistics = False

    @classmethod
    def of(cls, plan: Plan, amount: Amount) -> ProfileOfRows:
        """For a quarter of an amount, or less."""
        levels, place = (rounded_share(amount, each) for each in (LEVELS_SHARE, PLACE_SHARE))
        left = less(amount, place, levels)
        noise = additive(levels, 1)
        counted = plan.counted
        asked = len(counted.distinct) + bool(counted.statistics) + len(counted.ranks)
        each = left.part(Fraction(1, asked))
        widest = SCALE * amount.relation.changed * each.part(ROWS_SHARE).deviation
        return cls(
            plan=plan,
            place=place_of(place, noise),
            levels=noise,
            left=left,
            noise=_noise(plan, each),
            most=max(1, math.floor(min(WIDEST[not amount.pure] / widest, LEVELS[-1]))),
        )

    @property
    def loss(self) -> Loss:
        """That of the place and of the bins."""
        return compose(self.place.loss, self.levels.loss)

    def steps(self) -> list[Step]:
        """Rows are counted."""
        return [rows_step(self.plan)]

    def draw(self, door: Door, snapshot: LazySnapshot, secret: str) -> object:
        """A place and noisy bins."""
        del secret

        (step,) = self.steps()

        def by_level() -> list[int]:
            return by_edges(snapshot.run(step), (0, *LEVELS))

        place = draw_place(door, self.place, lambda: by_level()[1:])
        bins = draw_counts(door, self.levels, lambda: binned(by_level(), place))
        return {"place": place, "bins": bins}

    def applied(self, stored: Any) -> Plan:
        """With the number of rows whose interval is the narrowest."""
        place, (below, *bins) = stored["place"], stored["bins"]
        deviation = self.levels.deviation(0)
        first = max(0, place - BELOW)
        profile = Profile(Norms.WHOLE, first, below, tuple(bins), deviation, 1, 1)
        if not profile.anybody:
            return self._with(profile, 1)
        counted, cap = self.plan.counted, self.plan.contribution.cap
        share = 1.0 if counted.ranks else float(max(1, counted.cells or 1) ** -0.75)
        offered = candidates(profile, first_candidate(place))
        offered = [rows for rows in offered if rows <= self.most] or [float(self.most)]
        most = math.inf if cap is None else cap
        return self._with(profile, round(chosen(profile, offered, self.noise, share, most).bound))

    def assumed(self) -> Plan:
        """One row a unit."""
        somebody = (1000, *[0] * (BINS - 1))
        profile = Profile(Norms.WHOLE, 0, 0, somebody, 1.0, 1, 1)
        return self._with(profile, 1)

    def _with(self, profile: Profile, rows: int) -> Plan:
        unit = replace(self.plan.contribution, rows=rows, by_rows=profile)
        return replace(self.plan, contribution=unit)


def _noise(plan: Plan, each: Amount) -> float:
    """The deviation of noise for one row; of ranks, that of which their ends are so far apart."""
    changed = each.relation.changed
    if not plan.counted.ranks:
        return changed * each.deviation
    end = each.part(ENDS_SHARE)
    law = GridQuantile(
        epsilon=end.epsilon,
        rho=end.rho,
        share=Fraction(1, 2),
        bound=changed,
        cells=max(plan.counted.grids[rank.grid].cells for rank in plan.counted.ranks),
        ends=True,
        relation=end.relation,
    )
    return law.rank_error(confidence=Fraction(39, 40)) / _Z95


@dataclass(frozen=True)
class RowsAbove:
    """How many units add as much as how many rows, about the number that was declared.

    Formal guarantee. A unit is in one bin, decided by its own rows: a unit that comes or goes moves
    one bin by one, a unit that is replaced two bins by one each, L1 2 and L2 below 2. That is what
    the histogram's noise is for, under ρ and under pure ε. What is made of it is post-processing.
    """

    plan: Plan
    noise: JointNoise
    left: Amount
    parts = ("norms", "rows above what is declared")
    subject = ""
    by_statistics = True

    @classmethod
    def of(cls, plan: Plan, amount: Amount) -> RowsAbove:
        """For a sixteenth of an amount, or less."""
        price = rounded_share(amount, _ABOVE_SHARE)
        return cls(plan, additive(price, 1), less(amount, price))

    @property
    def loss(self) -> Loss:
        """That of one histogram."""
        return self.noise.loss

    def steps(self) -> list[Step]:
        """Norms are counted, in rows; of several groupings, and of different values, rows."""
        plan = self.plan
        if len(plan.counted.sets) > 1 or not plan.counted.statistics:
            return [rows_step(plan)]
        return [above_step(plan, l2=self.noise.norm == "l2")]

    def draw(self, door: Door, snapshot: LazySnapshot, secret: str) -> object:
        """The noisy histogram; its first bin is of units with fewer rows than matter."""
        del secret
        (step,) = self.steps()
        edges = [0, *self._edges]
        return draw_counts(door, self.noise, lambda: by_edges(snapshot.run(step), edges))

    def applied(self, stored: Any) -> Plan:
        """With what is known of the units beyond."""
        return self._with(tuple(int(each) for each in stored))

    def assumed(self) -> Plan:
        """Many units, and none of them beyond."""
        return self._with((10**6, *[0] * len(self._edges)))

    @property
    def _edges(self) -> tuple[int, ...]:
        unit = self.plan.contribution
        return edges_about(unit.rows, unit.cap)

    def _with(self, bins: tuple[int, ...]) -> Plan:
        unit = self.plan.contribution
        above = Above(unit.rows, unit.cap, bins, self.noise.deviation(0))
        return replace(self.plan, contribution=replace(unit, above=above))
