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
from bisect import bisect_right
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from deniable.engines.base import LazySnapshot, Step
from deniable.mechanisms.grid_quantile import GridQuantile
from deniable.mechanisms.joint import additive
from deniable.privacy.amount import Amount
from deniable.privacy.composition import compose
from deniable.privacy.losses.base import Loss
from deniable.query.plan.levels import BELOW, BINS, LEVELS, Norms
from deniable.query.plan.plan import SCALE, Plan
from deniable.query.plan.tail import Profile, chosen
from deniable.query.price.estimate import NoisyHistogram, less, rounded_share
from deniable.query.price.profile import (
    LEVELS_SHARE,
    PLACE_SHARE,
    WIDEST,
    binned,
    candidates,
    first_candidate,
    place_of,
)
from deniable.query.run.emit_profile import rows_step
from deniable.release import Door

ENDS_SHARE = Fraction(1, 25)  # of a quantile's price, for each end of its interval
ROWS_SHARE = Fraction(1, 10)  # of a MIN's or MAX's price, for how many rows there are
_Z95 = 1.96


@dataclass(frozen=True)
class ProfileOfRows:
    """How many units have how many rows: the number up to which they count in full."""

    plan: Plan
    place: GridQuantile
    levels: NoisyHistogram
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
        noise = NoisyHistogram(additive(levels, 1))
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
        return compose(self.place.loss, self.levels.noise.loss)

    def steps(self) -> list[Step]:
        """Rows are counted."""
        return [rows_step(self.plan)]

    def draw(self, door: Door, snapshot: LazySnapshot, secret: str) -> object:
        """A place and noisy bins."""
        del secret

        def by_level() -> list[int]:
            counts = [0] * (len(LEVELS) + 1)
            for rows, units in snapshot.run(rows_step(self.plan)):
                counts[bisect_right(LEVELS, int(rows))] += int(units)
            return counts

        found: Any = door.draw(self.place, lambda: [by_level()[1:]])
        place = int(found[0])
        drawn: Any = door.draw(
            self.levels.noise, lambda: [[count] for count in binned(by_level(), place)]
        )
        return {"place": place, "bins": [int(row[0]) for row in drawn]}

    def applied(self, stored: Any) -> Plan:
        """With the number of rows whose interval is the narrowest."""
        place, (below, *bins) = stored["place"], stored["bins"]
        deviation = self.levels.noise.deviation(0)
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
