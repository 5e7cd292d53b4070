"""Before a question with a declared `max_rows`: how many units add more than so many rows can."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from deniable.engines.base import LazySnapshot, Step
from deniable.mechanisms.joint import additive
from deniable.privacy.amount import Amount
from deniable.privacy.losses.base import Loss
from deniable.query.plan.above import Above, edges_about
from deniable.query.plan.plan import Plan
from deniable.query.price.estimate import NoisyHistogram, less, rounded_share
from deniable.query.run.emit_profile import above_step, rows_step
from deniable.release import Door

_SHARE = Fraction(1, 16)


@dataclass(frozen=True)
class RowsAbove:
    """How many units add as much as how many rows, about the number that was declared.

    Formal guarantee. A unit is in one bin, decided by its own rows: a unit that comes or goes moves
    one bin by one, a unit that is replaced two bins by one each, L1 2 and L2 below 2. That is what
    the histogram's noise is for, under ρ and under pure ε. What is made of it is post-processing.
    """

    plan: Plan
    histogram: NoisyHistogram
    left: Amount
    parts = ("norms", "rows above what is declared")
    subject = ""
    by_statistics = True

    @classmethod
    def of(cls, plan: Plan, amount: Amount) -> RowsAbove:
        """For a sixteenth of an amount, or less."""
        price = rounded_share(amount, _SHARE)
        return cls(plan, NoisyHistogram(additive(price, 1)), less(amount, price))

    @property
    def loss(self) -> Loss:
        """That of one histogram."""
        return self.histogram.noise.loss

    def steps(self) -> list[Step]:
        """Norms are counted, in rows; of several groupings, and of different values, rows."""
        plan = self.plan
        if len(plan.counted.sets) > 1 or not plan.counted.statistics:
            return [rows_step(plan)]
        return [above_step(plan, l2=self.histogram.noise.norm == "l2")]

    def draw(self, door: Door, snapshot: LazySnapshot, secret: str) -> object:
        """The noisy histogram; its first bin is of units with fewer rows than matter."""
        del secret
        (step,) = self.steps()
        return self.histogram.draw(door, [0, *self._edges], lambda: snapshot.run(step))

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
        above = Above(unit.rows, unit.cap, bins, self.histogram.noise.deviation(0))
        return replace(self.plan, contribution=replace(unit, above=above))
