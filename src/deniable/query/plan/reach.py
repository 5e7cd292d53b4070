"""Columns without declared bounds: how far their values reach, estimated privately.

Everything here follows from released numbers: a cell that holds the median, a place, and, where a
unit has one row, noisy bins of how far values lie above the centre, and below it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from sqlglot import exp

from deniable.engines.literals import cast_to, double_literal
from deniable.engines.trees import clamped
from deniable.query.plan.distances import Distances
from deniable.query.plan.levels import FAR_LEVELS, LEAST
from deniable.query.plan.tail import Lost
from deniable.tables import MOST_WHOLE, Bounds, power_of_two_below

FARTHEST = 1 << 61
"""Values beyond are taken for that while it is looked where they lie."""

_STEPS = 1 << 18  # of a column's grid between its bounds, at least
_SUPPOSED_STEPS = 1 << 24  # what is foreseen is wider than what is found, so that it fits
_USUAL_STEPS = 1 << 11  # of what most values keep within
_ROWS_REACH = 1 << 16  # times that: so far single rows of a unit with several count
_CLOSEST = Fraction(1, 1 << 20)  # of the centre: what doubles of its size surely tell apart
_MANY = 40.0  # noise of one bin: from so many units on, draws of a tail are as good as they look
_ANYBODY = 10.0  # noise of one bin: fewer units than that are as good as none
_PLENTY = 400.0  # noise of one bin: of more units noise hides little of the tail


@dataclass(frozen=True)
class Unbounded:
    """A number in each row that has no declared bounds, NULL where it does not count."""

    sql: exp.Expr
    name: str
    """As the question writes it."""
    whole: bool
    ranked: bool
    """Whether it is ranked, not summed."""

    @property
    def text(self) -> str:
        """What it is found by."""
        return f"{'ranks' if self.ranked else 'sums'} {self.sql.sql('duckdb')}"

    @property
    def double(self) -> exp.Expr:
        """As a double within ± 2^61, NULL where there is no number: a function of the row alone."""
        number = cast_to(self.sql.copy(), "DOUBLE") if self.whole else self.sql
        far, near = double_literal(Fraction(FARTHEST)), double_literal(Fraction(-FARTHEST))
        values = (near.copy(), number.copy(), far.copy())
        return clamped(number, (near, far), values, whole=False)


@dataclass(frozen=True)
class Reach:
    """Between which values a column counts, on which grid.

    Where units have one row each, two profiles tell how far values lie above the centre and below
    it: what is clipped is lost. Where they have several, rows are all but free, and what a unit
    adds is bounded by its norm; `usual` is what few values are farther from the centre than.
    """

    name: str
    centre: Fraction
    bounds: Bounds
    step: Fraction
    usual: Fraction | None = None
    sides: tuple[Distances, Distances] | None = None
    """Above the centre, and below it."""
    ranked: bool = False
    """Whether values are ranked between the bounds, not summed."""
    again: Unbounded | None = None
    """The column, where a second look at how far values lie is still to come."""
    twice: bool = False
    """Whether both looks are done: that there are enough units was told by the first."""

    @property
    def seen(self) -> bool:
        """Whether there are so many units that anything can be told of their values."""
        return self.twice or self._units >= self.needed

    @property
    def plenty(self) -> bool:
        """Whether there are so many units that a second look would tell little more."""
        return self.sides is None or self._units >= _PLENTY * self.sides[0].deviation

    @property
    def few(self) -> bool:
        """Whether their tail is told by so few that it takes more caution."""
        return self.sides is not None and self._units < _MANY * self.sides[0].deviation

    @property
    def needed(self) -> float:
        """How many units that takes."""
        return 0.0 if self.sides is None else _ANYBODY * self.sides[0].deviation

    @property
    def _units(self) -> float:
        """How many there are, under noise."""
        return float(sum(each.units for each in self.sides or ()))

    def lost(self, side: int, power: int = 1) -> Lost:
        """What is clipped on a side, in the column's unit or its square: distances from centre."""
        assert self.sides is not None
        low, high = self.bounds
        radius = float((high - self.centre, self.centre - low)[side] / LEAST)
        found = self.sides[side].beyond(radius, power)
        unit = float(LEAST) ** power
        return replace(
            found,
            bound=found.bound * float(LEAST),
            most=found.most * unit,
            least=found.least * unit,
        )

    @property
    def open(self) -> tuple[bool, bool]:
        """On which sides values stand out beyond all bins: nothing tells how far they reach."""
        assert self.sides is not None
        return self.sides[0].open_above, self.sides[1].open_above


Reaches = Mapping[str, Reach]
"""What was estimated, by the text of the column."""


@dataclass(frozen=True)
class Factor:
    """A column that is multiplied, about a centre and no farther from it than `half`."""

    text: str | None
    """What its reach is found by; None where bounds are declared."""
    centre: float
    half: float


@dataclass(frozen=True)
class Clips:
    """What one row adds to a statistic: the product of these, in steps of `unit`."""

    factors: tuple[Factor, ...]
    unit: float


def supposed(column: Unbounded, *, several: bool) -> Reach:
    """Bounds of a column that are not known yet: as wide, in steps, as any that are found."""
    one = Fraction(1)
    if several:
        usual = 2 * one - one / _USUAL_STEPS
        return _several(column, Fraction(0), usual * (_USUAL_STEPS if column.whole else 1))
    step = one if column.whole else 2 * one / _SUPPOSED_STEPS
    far = step * _SUPPOSED_STEPS / 2
    again = None if column.ranked else column
    return Reach(column.name, Fraction(0), (-far, far), step, again=again)


def found(
    column: Unbounded,
    centre: Fraction,
    place: int,
    sides: tuple[Distances, Distances] | None,
    *,
    noise: float,
    share: float,
) -> Reach:
    """The bounds whose interval for the truth is the narrowest; of what is ranked, where it ends.

    `noise` is that of a sum for a bound of one.
    """
    if sides is None:
        usual = FAR_LEVELS[min(place + 1, len(FAR_LEVELS) - 1)] * LEAST
        return _several(column, centre, max(usual, abs(centre) * _CLOSEST))
    if column.ranked:
        radius = [Fraction(math.ceil(each.seen)) * LEAST for each in sides]
    else:
        radius = [Fraction(each.radius(noise, share)) * LEAST for each in sides]
    least = max(abs(centre) * _CLOSEST, 2 * LEAST)
    above, below = (max(each, least) for each in radius)
    step = power_of_two_below((above + below) / _STEPS)
    step = max(step, Fraction(1)) if column.whole else step
    bounds = _on(column, centre - below, centre + above)
    return Reach(column.name, centre, bounds, step, sides=sides, ranked=column.ranked)


def _several(column: Unbounded, centre: Fraction, usual: Fraction) -> Reach:
    """Of units with several rows: rows count as they are, but for what no sum could hold."""
    usual = max(usual, Fraction(1)) if column.whole else usual
    far = usual * _ROWS_REACH
    step = power_of_two_below(usual / _USUAL_STEPS)
    step = max(step, Fraction(1)) if column.whole else step
    return Reach(column.name, centre, _on(column, centre - far, centre + far), step, usual)


def _on(column: Unbounded, low: Fraction, high: Fraction) -> Bounds:
    """Bounds within what can be; of whole numbers, whole."""
    low, high = max(low, Fraction(-FARTHEST)), min(high, Fraction(FARTHEST))
    if not column.whole:
        return low, high
    low, high = Fraction(math.floor(low)), Fraction(math.ceil(high))
    return max(low, Fraction(-MOST_WHOLE)), min(high, Fraction(MOST_WHOLE))
