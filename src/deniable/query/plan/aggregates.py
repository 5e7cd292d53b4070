"""Aggregates as statistics: whole numbers summed by the engine, from which answers are made.

A column is clamped to its bounds, put on its grid and centred there; COUNT, SUM, AVG and VARIANCE
of one column share the same sums.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import replace
from fractions import Fraction

from sqlglot import exp

from deniable.engines.literals import cast_to, double_literal, fitting_double
from deniable.engines.trees import case, is_known, is_null, is_number, only_if
from deniable.errors import QueryError
from deniable.query.plan.counted import Statistic
from deniable.query.plan.measures import Cross, Linear, Located, Measure, Ratio
from deniable.query.plan.moments import (
    Centres,
    Squares,
    Values,
    held,
    money_step,
    read_number,
    wide,
)
from deniable.query.plan.plan import SCALE
from deniable.query.plan.quantiles import QUANTILES, Grid, Rank, grid, share_of
from deniable.query.plan.reach import Clips, Factor, Reach, Reaches, Unbounded, supposed
from deniable.query.read.columns import Column, Resolve, no_unit
from deniable.query.read.expressions import find_bounds
from deniable.query.read.per_unit import counted_by
from deniable.query.read.values.operators import condition as read_condition, read_column
from deniable.query.read.values.value import Value, finished
from deniable.tables import ColumnType

_VARIANCES = (exp.Variance, exp.VariancePop, exp.Stddev, exp.StddevPop, exp.StddevSamp)

_ONE = (0.0, 1.0)
_ROUNDED = 2.0 / SCALE  # of what is left of whole numbers that are scaled down
_BEYOND_MATTERS = 1 / 64  # how many values are clipped in a group, beside what is asked


class Statistics:
    """Collects the statistics of a question; equal ones are summed once."""

    def __init__(
        self,
        find: Resolve,
        counted: Collection[str],
        centres: Centres,
        reaches: Reaches,
        *,
        several: bool,
        grouped: bool,
    ) -> None:
        self._find = find
        self._counted, self._centres = counted, centres
        self._reaches, self._several, self._grouped = reaches, several, grouped
        self.unbounded: dict[str, Unbounded] = {}
        self._places: dict[str, int] = {}
        self.found: list[Statistic] = []
        self.distinct: list[exp.Expr] = []
        self.kinds: list[ColumnType | None] = []
        self.grids: list[Grid] = []
        self.ranks: list[Rank] = []

    def measure(self, node: exp.Expr) -> Measure:
        """What an aggregate is made of."""
        condition: exp.Expr | None = None
        if isinstance(node, exp.Filter):
            condition = node.expression.this
            no_unit(condition, self._find, "FILTER")
            node = node.this
        if isinstance(node, exp.Count):
            return self._count(node, condition)
        if isinstance(node, exp.CountIf):
            no_unit(node.this, self._find, "COUNT_IF")
            both = _and(condition, node.this)
            return Linear(((self._rows(both, 1.0), 1.0),), row=_ONE, positive=True)
        if isinstance(node, (exp.Sum, exp.Avg, *_VARIANCES)):
            return self._numeric(node, condition)
        if isinstance(node, exp.Corr | exp.CovarPop | exp.CovarSamp):
            return self._crossed(node, condition)
        if isinstance(node, QUANTILES):
            return self._quantile(node, condition)
        raise QueryError(
            f"{node.key.upper()} is not answered; COUNT, SUM, AVG, VARIANCE, STDDEV, MEDIAN, "
            "PERCENTILE_CONT, MIN, MAX, CORR and COVAR_POP are"
        )

    def _condition(self, node: exp.Expr | None, made: exp.Expr | None = None) -> exp.Expr | None:
        """A condition of the question, read, and one of ours."""
        given = None if node is None else read_condition(node, self._find, "FILTER")
        return _and(given, made)

    def _column(self, node: exp.Expr, where: str) -> tuple[exp.Expr, ColumnType | None]:
        """What is counted, and told apart."""
        no_unit(node, self._find, where)
        value = read_column(node, self._find, where)
        return finished(value), value.kind

    def _count(self, node: exp.Count, condition: exp.Expr | None) -> Measure:
        argument, distinct = counted_by(node)
        if argument is None:
            return Linear(((self._rows(condition, 1.0), 1.0),), row=_ONE, positive=True)
        if not distinct:
            value, kind = self._column(argument, "COUNT(...)")
            if isinstance(argument, exp.Literal):
                return Linear(((self._rows(condition, 1.0), 1.0),), row=_ONE, positive=True)
            if kind == ColumnType.TEXT:  # rows keep a number, and no text
                value = only_if(is_known(exp.paren(value)), exp.Literal.number(1))
            place = self._add_count(only_if(self._condition(condition), value), 1.0)
            return Linear(((place, 1.0),), row=_ONE, positive=True)
        if isinstance(argument, exp.Column) and self._find(argument).is_unit:
            one = only_if(self._condition(condition), exp.Literal.number(1))
            return Linear(((self._add(Statistic(one, 1, per_unit=True)), 1.0),))
        kept, kind = self._column(argument, "COUNT(DISTINCT ...)")
        self.kinds.append(kind)
        self.distinct.append(only_if(self._condition(condition), kept))
        return Linear(((-len(self.distinct), 1.0),))  # placed after the other statistics

    def _numeric(self, node: exp.Expr, condition: exp.Expr | None) -> Measure:
        name = node.key.upper()
        if isinstance(node.this, exp.Distinct):
            raise QueryError(f"{name}(DISTINCT ...) is not answered; COUNT(DISTINCT ...) is")
        no_unit(node.this, self._find, f"{name}(...)")
        given = self._condition(condition)
        values = self._values(node.this, f"{name}(...)", given)
        size = max(abs(values.low), abs(values.high), 1)
        total = isinstance(node, exp.Sum)
        count_matters = (values.centre / size) ** 2 if total else 0.25
        sum_matters = (values.half / size) ** 2 if total else 1.0
        if values.reach is not None and values.reach.usual is not None:
            count_matters, sum_matters = _of_usual(values) if total else (0.25, 1.0)
        column = values.number.sql("duckdb")
        count = self._numbers(values, condition, count_matters)
        summed = self._add(
            Statistic(
                only_if(given, values.centred.copy()),
                values.half,
                importance=sum_matters,
                column=column,
                marks=(values.low, values.centre, values.high) if values.reach is None else None,
                typical=values.typical,
                clips=_clips(values.step, values),
            )
        )
        self._count_beyond(given, values)
        unit = float(values.step)
        low, high = map(float, values.bounds) if values.reach is None else (-math.inf, math.inf)
        middle = float(values.centre * values.step)
        # What is cut off is rounded, to less than a step; whole numbers in steps of one are not.
        step = _ROUNDED if values.whole and values.step == 1 else float(values.step)
        row = (min(low - middle, -step), max(high - middle, step))
        sums = Linear(((summed, unit),), row=row if values.reach is None else None)
        if total:
            made = sums.plus(count.times(unit * values.centre))
            row = (min(low, -step), max(high, step))
            known = values.reach is None
            return replace(made, row=row if known else None, positive=known and low >= 0)
        if isinstance(node, exp.Avg):
            return Ratio(sums, count, middle, low, high)
        squared = Squares.of(values)
        place = self._add(
            Statistic(
                only_if(given, squared.sql),
                squared.size,
                column=column,
                typical=squared.typical,
                clips=_clips(Fraction(squared.unit), values, values),
            )
        )
        return squared.spread(node, place, sums, count)

    def _numbers(self, values: Values, condition: exp.Expr | None, importance: float) -> Linear:
        """How many rows have a number.

        Where all rows are counted as well, those without one are counted instead: there are few,
        and a row has either a number or none, so that both share the bound.
        """
        given = self._condition(condition)
        if condition_text(condition) not in self._counted:
            place = self._add_count(only_if(given, values.seen), importance)
            return Linear(((place, 1.0),), row=_ONE, positive=True)
        rows = self._rows(condition, importance)
        none = case((is_null(exp.paren(values.seen)), exp.Literal.number(1)))
        missing = Statistic(
            only_if(given, none),
            1,
            importance=importance,
            counts=True,
            column=values.number.sql("duckdb"),
            missing=True,
        )
        return Linear(((rows, 1.0), (self._add(missing), -1.0)), row=_ONE, positive=True)

    def _crossed(self, node: exp.Expr, condition: exp.Expr | None) -> Measure:
        """CORR and COVAR: moments of the rows that have both numbers."""
        sides = [node.this, node.expression]
        for side in sides:
            no_unit(side, self._find, f"{node.key.upper()}(...)")
        where = f"{node.key.upper()}(...)"
        seen = [_seen(read_number(side, self._find, where)) for side in sides]
        present = self._condition(condition, _and(*map(is_known, seen)))
        left, right = (self._values(side, where, present) for side in sides)
        (x, most_x, unit_x), (y, most_y, unit_y) = left.coarse(), right.coarse()
        given = self._condition(condition, _and(is_known(x.copy()), is_known(y.copy())))
        count = Linear(((self._add_count(only_if(given, exp.Literal.number(1)), 0.25), 1.0),))
        share_x, share_y = _shares(left, unit_x, most_x), _shares(right, unit_y, most_y)

        def moment(
            sql: exp.Expr, size: int, unit: Fraction, share: float, *columns: Values
        ) -> Linear:
            clips = _clips(unit, *columns)
            place = self._add(Statistic(only_if(given, sql), size, typical=share, clips=clips))
            return Linear(((place, fitting_double(unit)),))

        def product(one: exp.Expr, other: exp.Expr) -> exp.Expr:
            return exp.Mul(this=one.copy(), expression=other.copy())

        both = (most_x * most_y, unit_x * unit_y, share_x * share_y)
        products = moment(product(x, y), *both, left, right)
        sum_x = moment(x.copy(), most_x, unit_x, share_x, left)
        sum_y = moment(y.copy(), most_y, unit_y, share_y, right)
        squares = None
        if isinstance(node, exp.Corr):
            squares = (
                moment(product(x, x), most_x**2, unit_x**2, share_x**2, left, left),
                moment(product(y, y), most_y**2, unit_y**2, share_y**2, right, right),
            )
        free = left.reach is not None or right.reach is not None
        self._count_beyond(present, left)
        self._count_beyond(present, right)
        return Cross(
            products=products,
            sums=(sum_x, sum_y),
            count=count,
            squares=squares,
            sample=isinstance(node, exp.CovarSamp),
            most=math.inf if free else fitting_double(unit_x * most_x * unit_y * most_y),
            corrections=(_sheppard(left, unit_x), _sheppard(right, unit_y)),
        )

    def _quantile(self, node: exp.Expr, condition: exp.Expr | None) -> Measure:
        name = node.key.upper()
        no_unit(node.this, self._find, f"{name}(...)")
        value = read_number(node.this, self._find, f"{name}(...)")
        declared = self._find(node.this) if isinstance(node.this, exp.Column) else Column(None)
        whole = value.kind == ColumnType.INTEGER
        given, known, step = self._condition(condition), find_bounds(node.this, self._find), None
        reach: Reach | None = None
        if known is None:
            reach, _ = self._reach(node.this, finished(value), given, whole=whole, ranked=True)
            known = reach.bounds
        bounds = wide(held(known, whole=whole))
        if reach is None:
            step = declared.grid or (None if whole else money_step(node.this, bounds, self._find))
        cells = grid(finished(value), bounds, step, whole=whole)
        cells = replace(cells, sql=only_if(given, cells.sql))
        texts = [each.sql.sql("duckdb") for each in self.grids]
        text = cells.sql.sql("duckdb")
        if text not in texts:
            self.grids.append(cells)
            texts.append(text)
        self.ranks.append(Rank(texts.index(text), share_of(node)))
        open_ends = reach is not None
        return Located(len(self.ranks) - 1, float(bounds[0]), float(bounds[1]), open_ends)

    def _values(self, node: exp.Expr, where: str, given: exp.Expr | None) -> Values:
        """The values of an expression: within declared bounds, or as far as they are estimated."""
        value = read_number(node, self._find, where)
        number, whole = finished(value), value.kind == ColumnType.INTEGER
        bounds = find_bounds(node, self._find)
        if bounds is not None:
            declared = self._find(node) if isinstance(node, exp.Column) else Column(None)
            within = held(bounds, whole=whole)
            step = declared.grid or (None if whole else money_step(node, within, self._find))
            return Values.of(number, within, step, self._centres, whole=whole)
        reach, text = self._reach(node, number, given, whole=whole, ranked=False)
        return Values.within(number, reach, text, whole=whole)

    def _reach(
        self,
        node: exp.Expr,
        number: exp.Expr,
        given: exp.Expr | None,
        *,
        whole: bool,
        ranked: bool,
    ) -> tuple[Reach, str]:
        """How far a column without bounds reaches, made up where that is not known yet."""
        column = Unbounded(only_if(given, number.copy()), _as_written(node), whole, ranked)
        found = self._reaches.get(column.text)
        if found is None:
            self.unbounded[column.text] = column
            found = supposed(column, several=self._several and not ranked)
        return found, column.text

    def _count_beyond(self, given: exp.Expr | None, values: Values) -> None:
        """How many values are clipped above, and below, in each of several groups."""
        if values.reach is None or self._several or not self._grouped:
            return
        low, high = values.bounds
        number = cast_to(values.number.copy(), "DOUBLE") if values.whole else values.number
        above: exp.Expr = exp.GT(this=number.copy(), expression=double_literal(high))
        if not values.whole:
            above = exp.And(this=above, expression=is_number(number))
        below = exp.LT(this=number.copy(), expression=double_literal(low))
        for side, condition in enumerate((above, below)):
            one = only_if(given, only_if(condition, exp.Literal.number(1)))
            beyond = (values.text, side)
            self._add(Statistic(one, 1, importance=_BEYOND_MATTERS, beyond=beyond))

    def _rows(self, condition: exp.Expr | None, importance: float) -> int:
        kept = only_if(self._condition(condition), exp.Literal.number(1))
        return self._add_count(kept, importance)

    def _add_count(self, sql: exp.Expr, importance: float) -> int:
        """How often something is not NULL."""
        return self._add(Statistic(sql, 1, importance=importance, counts=True))

    def _add(self, made: Statistic) -> int:
        """Its place; one that is summed already matters more by it."""
        place = self._places.setdefault(
            f"{made.per_unit} {made.counts} {made.text}", len(self.found)
        )
        if place == len(self.found):
            self.found.append(made)
        else:
            known = self.found[place]
            self.found[place] = replace(known, importance=known.importance + made.importance)
        return place


def _as_written(node: exp.Expr) -> str:
    """An expression with bare names of columns, for people."""

    def bare(each: exp.Expr) -> exp.Expr:
        return exp.column(each.name) if isinstance(each, exp.Column) else each

    return node.transform(bare).sql("duckdb")[:60]


def _clips(unit: Fraction, *columns: Values) -> Clips | None:
    """What a statistic is a product of, where some of that is clipped to estimated bounds."""
    if all(each.reach is None or each.reach.usual is not None for each in columns):
        return None
    factors = (
        Factor(
            text=each.text if each.reach is not None else None,
            centre=float(each.centre * each.step),
            half=float(each.half * each.step),
        )
        for each in columns
    )
    return Clips(tuple(factors), float(unit))


def _shares(values: Values, unit: Fraction, most: int) -> float:
    """What is usual of a column without bounds, as a share of the most; 1 where that is typical."""
    if values.reach is None or values.reach.usual is None:
        return 1.0
    return float(values.reach.usual / unit / most) ** 2


def _of_usual(values: Values) -> tuple[float, float]:
    """How much a sum depends on the number of rows, and on how far from the centre they are."""
    assert values.reach is not None
    assert values.reach.usual is not None
    usual = float(values.reach.usual)
    size = abs(float(values.centre * values.step)) + usual
    return (float(values.centre * values.step) / size) ** 2, (usual / size) ** 2


def _seen(value: Value) -> exp.Expr:
    """Not NULL where there is a number."""
    number = finished(value)
    if value.kind == ColumnType.INTEGER:
        return number
    return case((is_number(number), exp.Literal.number(1)))


def condition_text(condition: exp.Expr | None) -> str:
    """The text by which conditions of aggregates are told apart."""
    return "" if condition is None else condition.sql("duckdb")


def counted_rows(select: exp.Select) -> set[str]:
    """The conditions under which a SELECT counts all rows."""
    return {
        condition_text(
            count.parent.expression.this if isinstance(count.parent, exp.Filter) else None
        )
        for count in select.find_all(exp.Count)
        if count.this is None or isinstance(count.this, exp.Star)
    }


def settle(measure: Measure, statistics: int, distinct: int) -> Measure:
    """Put counts of distinct values behind the other statistics, and quantiles behind those."""
    if isinstance(measure, Located):
        return replace(measure, place=statistics + distinct + Located.WIDTH * measure.place)
    if not isinstance(measure, Linear):
        return measure
    terms = tuple((c if c >= 0 else statistics - 1 - c, w) for c, w in measure.terms)
    return replace(measure, terms=terms)


def _and(one: exp.Expr | None, other: exp.Expr | None) -> exp.Expr | None:
    if one is None or other is None:
        return one if other is None else other
    return exp.And(this=exp.paren(one.copy()), expression=exp.paren(other.copy()))


def _sheppard(values: Values, unit: Fraction) -> float:
    """What steps that are coarser than a column's own add to its variance."""
    return fitting_double(unit**2) / 12 if unit > values.step else 0.0
