"""Columns in whole steps: clamped to their bounds, put on their grid, centred; their squares."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from sqlglot import exp

from deniable.engines.literals import cast_to, double_literal, fitting_double, whole_literal
from deniable.engines.trees import case, clamped, half_up, is_number
from deniable.errors import QueryError
from deniable.query.plan.measures import Linear, Spread
from deniable.query.plan.reach import Reach
from deniable.query.read.columns import Resolve
from deniable.query.read.expressions import places_of
from deniable.query.read.values.casts import as_type
from deniable.query.read.values.operators import read_value
from deniable.query.read.values.value import Value
from deniable.tables import MOST_DOUBLE, NUMERIC, Bounds, ColumnType, grid_of, power_of_two_below

Centres = Mapping[str, tuple[int, float]]
"""For columns, by their text: a centre in steps, and the usual share of the farthest from it."""

_MOST_STEPS = 1 << 50
_MOST_WHOLE = (1 << 63) - 1
_SQUARE_STEPS = 1 << 12
_MONEY_STEPS = 1 << 40
_USUAL_SQUARES = 3  # bits: coarse steps of what is usual for a column without bounds
_FAR_SQUARES = 1 << 11  # the most of them
_FAR_USUAL = 1 << 8  # times what is usual: no farther, where steps of one are coarse already


@dataclass(frozen=True)
class Values:
    """A number in each row: its bounds, its grid, and whole steps from the centre."""

    number: exp.Expr
    centred: exp.Expr
    bounds: Bounds
    step: Fraction
    low: int
    centre: int
    high: int
    whole: bool

    typical: float = 1.0
    reach: Reach | None = None
    """Where nothing is declared: what was estimated."""
    text: str = ""
    """What that is found by."""

    @classmethod
    def of(
        cls,
        number: exp.Expr,
        bounds: Bounds,
        grid: Fraction | None,
        centres: Centres,
        *,
        whole: bool,
    ) -> Values:
        """The values of an expression with known bounds, centred where most are known to be.

        Any centre within the bounds is right: it is added back for every row.
        """
        step = grid_of(wide(bounds), grid, integer=whole)
        fitting_double(step)
        low, high = math.floor(bounds[0] / step), math.ceil(bounds[1] / step)
        centre, typical = centres.get(number.sql("duckdb"), ((low + high) // 2, 1.0))
        centred = _on_grid(number, (low, centre, high), step, whole=whole)
        return cls(number, centred, bounds, step, low, centre, high, whole, typical)

    @classmethod
    def within(cls, number: exp.Expr, reach: Reach, text: str, *, whole: bool) -> Values:
        """The values of an expression without bounds, as far as they are estimated to reach.

        Weights go by what is usual: where one row may be far from that, sizes say nothing.
        """
        step, bounds, typical = reach.step, reach.bounds, 1.0
        low, high = math.floor(bounds[0] / step), math.ceil(bounds[1] / step)
        centre = (low + high) // 2
        if reach.usual is not None:
            centre = min(max(math.floor(reach.centre / step), low), high)
            typical = float(reach.usual / step / max(high - centre, centre - low)) ** 2
        centred = _on_grid(number, (low, centre, high), step, whole=whole)
        made = cls(number, centred, bounds, step, low, centre, high, whole, typical)
        return replace(made, reach=reach, text=text)

    @property
    def half(self) -> int:
        """The farthest from the centre."""
        return max(self.high - self.centre, self.centre - self.low, 1)

    @property
    def seen(self) -> exp.Expr:
        """Not NULL where there is a number."""
        if self.whole:
            return self.number.copy()
        return case((is_number(self.number), exp.Literal.number(1)))

    def coarse(self) -> tuple[exp.Expr, int, Fraction]:
        """Steps of about span/2^12, so that sums of products fit; their most, and their size.

        Where values are all but free, steps go by what is usual, and few of them are farther.
        """
        most = self.half
        size = math.ceil(power_of_two_below(Fraction(2 * most, _SQUARE_STEPS)))
        steps = self.centred.copy()
        if self.reach is not None and self.reach.usual is not None:
            usual = self.reach.usual / self.step / (1 << _USUAL_SQUARES)
            size = math.ceil(power_of_two_below(usual))
            far_away = math.ceil(self.reach.usual / self.step) * _FAR_USUAL
            most = min(most, size * _FAR_SQUARES, far_away)
            near, far = whole_literal(-most), whole_literal(most)
            steps = case(
                (exp.GT(this=exp.paren(steps), expression=far), far.copy()),
                (exp.LT(this=exp.paren(steps.copy()), expression=near), near.copy()),
                otherwise=steps.copy(),
            )
        double = cast_to(exp.paren(steps), "DOUBLE")
        scaled = exp.Div(this=double, expression=whole_literal(size))
        return cast_to(half_up(scaled), "BIGINT"), math.ceil(most / size), self.step * size


@dataclass(frozen=True)
class Squares:
    """(x - c)² on the coarser grid; centred itself."""

    sql: exp.Expr
    size: int
    middle: int
    unit: float
    correction: float
    most: float
    typical: float

    @classmethod
    def of(cls, values: Values) -> Squares:
        """The squares of values, centred near where most are known to be.

        Any middle is right: it is added back for every row.
        """
        steps, farthest, size = values.coarse()
        most, share = farthest**2, min(0.5, 2 * values.typical**2)
        middle = most // 2 if share == 0.5 else math.floor(most * share)
        typical = 2 * share
        if values.reach is not None and values.reach.usual is not None:
            middle, typical = 0, float((values.reach.usual / size) ** 2 / most) ** 2
        square = exp.Mul(this=steps, expression=steps.copy())
        unit = fitting_double(size**2)
        return cls(
            sql=exp.Sub(this=square, expression=whole_literal(middle)),
            size=max(most - middle, 1),
            middle=middle,
            unit=unit,
            correction=unit / 12 if size > values.step else 0.0,  # Sheppard's, for the coarse grid
            most=fitting_double((values.half * values.step) ** 2)
            if values.reach is None
            else math.inf,
            typical=typical,
        )

    def moment(self, place: int, count: Linear) -> Linear:
        """The sum of squares, from the statistic at a place."""
        return Linear(((place, self.unit),)).plus(count.times(self.unit * self.middle))

    def spread(self, node: exp.Expr, place: int, sums: Linear, count: Linear) -> Spread:
        """VARIANCE or STDDEV."""
        return Spread(
            squares=self.moment(place, count),
            sums=sums,
            count=count,
            correction=self.correction,
            sample=isinstance(node, exp.Variance | exp.Stddev | exp.StddevSamp),
            root=isinstance(node, exp.Stddev | exp.StddevPop | exp.StddevSamp),
            most=self.most,
        )


def money_step(node: exp.Expr, bounds: Bounds, find: Resolve) -> Fraction | None:
    """The step of decimals, where bounds have not too many: their sums are exact then."""
    places = places_of(node, find)
    step = None if places is None else Fraction(1, 10**places)
    return step if step is not None and bounds[1] - bounds[0] <= _MONEY_STEPS * step else None


def held(bounds: Bounds, *, whole: bool) -> Bounds:
    """Bounds of what can be: beyond 64 bits there are no whole numbers, nor doubles past 1e300."""
    most = Fraction(_MOST_WHOLE) if whole else MOST_DOUBLE
    low, high = max(bounds[0], -most), min(bounds[1], most)
    if low > high:
        raise QueryError("no value of the column lies within these bounds; declare others")
    return low, high


def wide(bounds: Bounds) -> Bounds:
    """Bounds that are not one point."""
    low, high = bounds
    return (low, high) if low < high else (low, low + 1)


def read_number(node: exp.Expr, find: Resolve, where: str) -> Value:
    """An expression that is summed or ranked: a double of it may be wild, and is clamped."""
    value = read_value(node, find, where)
    if value.kind == ColumnType.BOOLEAN:
        value = as_type(value, ColumnType.INTEGER, where)
    if value.kind not in NUMERIC:
        raise QueryError(f"{where} is of numbers; CAST it, or count with CASE WHEN ... THEN 1 END")
    return value


def _on_grid(
    number: exp.Expr, marks: tuple[int, int, int], step: Fraction, *, whole: bool
) -> exp.Expr:
    """Whole steps from the centre, clamped: `marks` are the least, the centre and the most."""
    low, centre, high = marks
    if whole and step == 1:
        value, least, most = number, whole_literal(low), whole_literal(high)
        inside: exp.Expr = exp.Sub(this=value.copy(), expression=whole_literal(centre))
    else:
        if max(abs(low), abs(high)) >= _MOST_STEPS:
            raise QueryError("the grid is too fine for its bounds; declare a coarser one (grid=)")
        # Below 2^50 steps, an end that is rounded to a double rounds to the step it stands for.
        value = cast_to(number.copy(), "DOUBLE") if whole else number
        least, most = double_literal(low * step), double_literal(high * step)
        scaled = exp.Div(this=value.copy(), expression=double_literal(step))
        steps = cast_to(half_up(scaled), "BIGINT")
        inside = exp.Sub(this=steps, expression=whole_literal(centre))
    values = (whole_literal(low - centre), inside, whole_literal(high - centre))
    return clamped(value, (least, most), values, whole=whole)
