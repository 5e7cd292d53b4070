"""Aggregates as statistics: whole numbers summed by the engine, from which answers are made.

A column is clamped to its bounds, put on its grid and centred there; COUNT, SUM, AVG and VARIANCE
of one column share the same sums.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from sqlglot import exp

from deniable.engines.literals import fitting_double
from deniable.errors import QueryError
from deniable.query.plan.measures import Cross, Linear, Located, Measure, Ratio
from deniable.query.plan.moments import Centres, Squares, Values, held, read_number, wide
from deniable.query.plan.plan import Statistic
from deniable.query.plan.quantiles import QUANTILES, Grid, Rank, grid, share_of
from deniable.query.read.checks import no_unit
from deniable.query.read.columns import Column
from deniable.query.read.expressions import bounds_of
from deniable.query.read.values.operators import Resolve, read_column
from deniable.query.read.values.operators import condition as read_condition
from deniable.query.read.values.value import finished
from deniable.tables import ColumnType

_VARIANCES = (exp.Variance, exp.VariancePop, exp.Stddev, exp.StddevPop, exp.StddevSamp)

_ONE = (0.0, 1.0)


class Statistics:
    """Collects the statistics of a question; equal ones are summed once."""

    def __init__(self, find: Resolve, counted: Collection[str], centres: Centres) -> None:
        self._find = find
        self._counted, self._centres = counted, centres
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
            return Linear(((self._rows(both, 1.0), 1.0),), row=_ONE)
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
        argument = node.this
        if node.args.get("expressions"):
            raise QueryError("COUNT of several columns is not answered; count one")
        if argument is None or isinstance(argument, exp.Star):
            return Linear(((self._rows(condition, 1.0), 1.0),), row=_ONE)
        if not isinstance(argument, exp.Distinct):
            value, kind = self._column(argument, "COUNT(...)")
            if isinstance(argument, exp.Literal):
                return Linear(((self._rows(condition, 1.0), 1.0),), row=_ONE)
            if kind == ColumnType.TEXT:  # rows keep a number, and no text
                missing = exp.Is(this=exp.paren(value), expression=exp.Null())
                value = _when(exp.Not(this=missing), exp.Literal.number(1))
            place = self._add_count(_when(self._condition(condition), value), 1.0)
            return Linear(((place, 1.0),), row=_ONE)
        if len(argument.expressions) != 1:
            raise QueryError("COUNT(DISTINCT ...) of several columns is not answered; count one")
        (value,) = argument.expressions
        if isinstance(value, exp.Column) and self._find(value).is_unit:
            return Linear(((self._units(condition), 1.0),))
        kept, kind = self._column(value, "COUNT(DISTINCT ...)")
        self.kinds.append(kind)
        self.distinct.append(_when(self._condition(condition), kept))
        return Linear(((-len(self.distinct), 1.0),))  # placed after the other statistics

    def _numeric(self, node: exp.Expr, condition: exp.Expr | None) -> Measure:
        name = node.key.upper()
        if isinstance(node.this, exp.Distinct):
            raise QueryError(f"{name}(DISTINCT ...) is not answered; COUNT(DISTINCT ...) is")
        no_unit(node.this, self._find, f"{name}(...)")
        values = Values.of(node.this, self._find, self._centres, f"{name}(...)")
        size = max(abs(values.low), abs(values.high), 1)
        total = isinstance(node, exp.Sum)
        count_matters = (values.centre / size) ** 2 if total else 0.25
        sum_matters = (values.half / size) ** 2 if total else 1.0
        given = self._condition(condition)
        column = values.number.sql("duckdb")
        count = self._numbers(values, condition, count_matters)
        summed = self._add(
            _when(given, values.centred.copy()),
            values.half,
            sum_matters,
            column=column,
            marks=(values.low, values.centre, values.high),
            typical=values.typical,
        )
        unit = float(values.step)
        low, high = map(float, values.bounds)
        middle = float(values.centre * values.step)
        step = float(values.step)  # what is cut off is rounded, to less than a step
        sums = Linear(((summed, unit),), row=(min(low - middle, -step), max(high - middle, step)))
        if total:
            made = sums.plus(count.times(unit * values.centre))
            return replace(made, row=(min(low, -step), max(high, step)))
        if isinstance(node, exp.Avg):
            return Ratio(sums, count, middle, low, high)
        squared = Squares.of(values)
        place = self._add(
            _when(given, squared.sql), squared.size, 1.0, column=column, typical=squared.typical
        )
        return squared.spread(node, place, sums, count)

    def _numbers(self, values: Values, condition: exp.Expr | None, importance: float) -> Linear:
        """How many rows have a number.

        Where all rows are counted as well, those without one are counted instead: there are few,
        and a row has either a number or none, so that both share the bound.
        """
        given = self._condition(condition)
        if condition_text(condition) not in self._counted:
            place = self._add_count(_when(given, values.seen), importance)
            return Linear(((place, 1.0),), row=_ONE)
        rows = self._rows(condition, importance)
        none = exp.Case(
            ifs=[
                exp.If(
                    this=exp.Is(this=exp.paren(values.seen), expression=exp.Null()),
                    true=exp.Literal.number(1),
                )
            ]
        )
        column = values.number.sql("duckdb")
        missing = self._add(
            _when(given, none), 1, importance, counts=True, column=column, missing=True
        )
        return Linear(((rows, 1.0), (missing, -1.0)), row=_ONE)

    def _crossed(self, node: exp.Expr, condition: exp.Expr | None) -> Measure:
        """CORR and COVAR: moments of the rows that have both numbers."""
        sides = [node.this, node.expression]
        for side in sides:
            no_unit(side, self._find, f"{node.key.upper()}(...)")
        (x, most_x, unit_x), (y, most_y, unit_y) = (
            Values.of(side, self._find, self._centres, f"{node.key.upper()}(...)").coarse()
            for side in sides
        )
        given = self._condition(condition, _and(_present(x), _present(y)))
        product = exp.Mul(this=x.copy(), expression=y.copy())
        count = Linear(((self._add_count(_when(given, exp.Literal.number(1)), 0.25), 1.0),))
        places = [
            self._add(_when(given, sql.copy()), size, 1.0)
            for sql, size in ((product, most_x * most_y), (x, most_x), (y, most_y))
        ]
        products, sum_x, sum_y = (
            Linear(((place, fitting_double(unit)),))
            for place, unit in zip(places, (unit_x * unit_y, unit_x, unit_y), strict=True)
        )
        squares = None
        if isinstance(node, exp.Corr):
            squared = [exp.Mul(this=side.copy(), expression=side.copy()) for side in (x, y)]
            found = [
                self._add(_when(given, sql), size**2, 1.0)
                for sql, size in zip(squared, (most_x, most_y), strict=True)
            ]
            squares = (
                Linear(((found[0], fitting_double(unit_x**2)),)),
                Linear(((found[1], fitting_double(unit_y**2)),)),
            )
        return Cross(
            products=products,
            sums=(sum_x, sum_y),
            count=count,
            squares=squares,
            sample=isinstance(node, exp.CovarSamp),
            most=fitting_double(unit_x * most_x * unit_y * most_y),
        )

    def _quantile(self, node: exp.Expr, condition: exp.Expr | None) -> Measure:
        name = node.key.upper()
        no_unit(node.this, self._find, f"{name}(...)")
        value = read_number(node.this, self._find, f"{name}(...)")
        declared = self._find(node.this) if isinstance(node.this, exp.Column) else Column(None)
        whole = value.kind == ColumnType.INTEGER
        bounds = wide(held(bounds_of(node.this, self._find), whole=whole))
        cells = grid(finished(value), bounds, declared.grid, whole=whole)
        cells = replace(cells, sql=_when(self._condition(condition), cells.sql))
        texts = [each.sql.sql("duckdb") for each in self.grids]
        text = cells.sql.sql("duckdb")
        if text not in texts:
            self.grids.append(cells)
            texts.append(text)
        self.ranks.append(Rank(texts.index(text), share_of(node)))
        return Located(len(self.ranks) - 1, float(bounds[0]), float(bounds[1]))

    def _rows(self, condition: exp.Expr | None, importance: float) -> int:
        kept = _when(self._condition(condition), exp.Literal.number(1))
        return self._add_count(kept, importance)

    def _units(self, condition: exp.Expr | None) -> int:
        one = _when(self._condition(condition), exp.Literal.number(1))
        return self._add(one, 1, 1.0, per_unit=True)

    def _add_count(self, sql: exp.Expr, importance: float) -> int:
        """How often something is not NULL."""
        return self._add(sql, 1, importance, counts=True)

    def _add(
        self,
        sql: exp.Expr,
        size: int,
        importance: float,
        *,
        per_unit: bool = False,
        counts: bool = False,
        column: str = "",
        missing: bool = False,
        marks: tuple[int, int, int] | None = None,
        typical: float = 1.0,
    ) -> int:
        text = f"{per_unit} {counts} {sql.sql('duckdb')}"
        if text in self._places:
            place = self._places[text]
            known = self.found[place]
            self.found[place] = replace(known, importance=known.importance + importance)
            return place
        self._places[text] = len(self.found)
        made = Statistic(sql, size, per_unit, importance, counts, column, missing, marks, typical)
        self.found.append(made)
        return self._places[text]


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


def linear_form(node: exp.Expr, measures: Callable[[str], Measure | None]) -> Linear | None:
    """An expression of measures as a weighted sum of statistics, if it is one."""
    if isinstance(node, exp.Paren):
        return linear_form(node.this, measures)
    if isinstance(node, exp.Column):
        found = measures(node.name)
        return found if isinstance(found, Linear) else None
    if isinstance(node, exp.Literal) and not node.is_string:
        return Linear((), float(node.name))
    if isinstance(node, exp.Neg):
        inner = linear_form(node.this, measures)
        return None if inner is None else inner.times(-1.0)
    if not isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Div):
        return None
    left, right = linear_form(node.left, measures), linear_form(node.right, measures)
    if left is None or right is None:
        return None
    if isinstance(node, exp.Add | exp.Sub):
        return left.plus(right, 1.0 if isinstance(node, exp.Add) else -1.0)
    if isinstance(node, exp.Mul) and not (left.columns() and right.columns()):
        factor, rest = (left, right) if not left.columns() else (right, left)
        return rest.times(factor.constant)
    if isinstance(node, exp.Div) and not right.columns() and right.constant:
        return left.times(1 / right.constant)
    return None


def measure_form(node: exp.Expr, measures: Callable[[str], Measure | None]) -> Measure | None:
    """A measure whose interval is known, for a column of the answer; None for other expressions."""
    if isinstance(node, exp.Paren):
        return measure_form(node.this, measures)
    if isinstance(node, exp.Column):
        return measures(node.name)
    straight = linear_form(node, measures)
    if straight is not None:
        return straight
    if isinstance(node, exp.Div):
        top, bottom = linear_form(node.left, measures), linear_form(_divisor(node), measures)
        if top is not None and bottom is not None and bottom.columns():
            return Ratio(top, bottom)
    return None


def _divisor(node: exp.Div) -> exp.Expr:
    right = node.right
    while isinstance(right, exp.Nullif | exp.Paren):
        right = right.this
    return right


def _present(value: exp.Expr) -> exp.Expr:
    return exp.Not(this=exp.Is(this=value.copy(), expression=exp.Null()))


def _when(condition: exp.Expr | None, value: exp.Expr) -> exp.Expr:
    if condition is None:
        return value
    return exp.Case(ifs=[exp.If(this=condition, true=value)])


def _and(one: exp.Expr | None, other: exp.Expr | None) -> exp.Expr | None:
    if one is None or other is None:
        return one if other is None else other
    return exp.And(this=exp.paren(one.copy()), expression=exp.paren(other.copy()))
