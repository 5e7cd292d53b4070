"""A second look at how far values lie from a centre, where noise of the first hides their tail.

Formal guarantee. Centre and place were released before; given both, a unit is in one of all bins
on both sides together, decided by its own rows. That is paid for before anything is read, and what
is made of both looks together is post-processing. Who cannot be answered never pays for it: that
is told by the first look.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

from deniable.engines.base import LazySnapshot, Step
from deniable.lazy import lazy
from deniable.mechanisms.joint import additive
from deniable.privacy.amount import Amount
from deniable.privacy.losses.base import Loss
from deniable.query.plan.plan import Plan
from deniable.query.plan.reach import Reach, Unbounded, found
from deniable.query.price.estimate import NoisyHistogram, finer_share, less
from deniable.query.price.profile import Recompile, recompiled
from deniable.query.price.values import draw_bins, noise_of_side, share_of_side
from deniable.query.run.emit_columns import distances_step
from deniable.release import Door


@dataclass(frozen=True)
class ValuesAgain:
    """How many values of a column lie how far from its centre, once more."""

    plan: Plan
    column: Unbounded
    levels: NoisyHistogram
    left: Amount
    noise: float
    """That of a sum's side, for a bound of one."""
    compiled: Recompile

    @classmethod
    def of(cls, plan: Plan, amount: Amount, compiled: Recompile) -> ValuesAgain:
        """Of the first column that waits for it; all of them have two fifths of what is left."""
        summed = [each for each in plan.contribution.reaches.values() if not each.ranked]
        waiting = [each.again for each in summed if each.again is not None]
        price = finer_share(amount, Fraction(2, 3 * len(summed) + 2 * len(waiting)))
        left = less(amount, price)
        return cls(
            plan,
            waiting[0],
            NoisyHistogram(additive(price, 1)),
            left,
            noise_of_side(left),
            compiled,
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
        return self.levels.noise.loss

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
        return draw_bins(door, self.levels, partial(snapshot.run, self._distances), place)

    def applied(self, stored: Any) -> Plan:
        """With bounds by both looks."""
        before = self._reach
        assert before.sides is not None
        half, deviation = len(stored) // 2, self.levels.noise.deviation(0)
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
            share=share_of_side(self.plan),
        )
        return self._with(replace(reach, twice=True))

    def assumed(self) -> Plan:
        """As it was."""
        return self._with(replace(self._reach, again=None))

    def _with(self, reach: Reach) -> Plan:
        reaches = {**self.plan.contribution.reaches, self.column.text: reach}
        return recompiled(self.plan, self.compiled({}, reaches))
