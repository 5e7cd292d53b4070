"""The builder: a question step by step. It makes the same plan as SQL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal, localcontext
from typing import Any, Protocol

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from deniable.answer import Answer
from deniable.closed import REAL, exactly, frozen, read_mapping
from deniable.errors import ParameterError, ParameterTypeError, QueryError
from deniable.mechanisms.grid_quantile import read_share
from deniable.privacy.exact import Number, decimals, whole
from deniable.privacy.guarantees import Guarantee, read_guarantee
from deniable.query.read.catalogue import Options
from deniable.query.show.explain import Explanation
from deniable.tables import read_column_bounds, read_keys


@dataclass(frozen=True)
class Aggregate:
    """An aggregate of the builder, as SQL: `dp.count()`, `dp.mean("cost")`."""

    sql: str

    def where(self, condition: str) -> Aggregate:
        """The same, of rows that meet a condition."""
        return Aggregate(f"{self.sql} FILTER (WHERE {_expression(condition)})")


def count(expression: str | None = None) -> Aggregate:
    """How many rows; or in how many an expression is not NULL."""
    return Aggregate("COUNT(*)" if expression is None else f"COUNT({_expression(expression)})")


def count_distinct(expression: str) -> Aggregate:
    """How many different values; of the unit's column, how many units."""
    return Aggregate(f"COUNT(DISTINCT {_expression(expression)})")


def total(expression: str) -> Aggregate:
    """The sum."""
    return Aggregate(f"SUM({_expression(expression)})")


def mean(expression: str) -> Aggregate:
    """The mean."""
    return Aggregate(f"AVG({_expression(expression)})")


def variance(expression: str) -> Aggregate:
    """The variance of the sample."""
    return Aggregate(f"VAR_SAMP({_expression(expression)})")


def stddev(expression: str) -> Aggregate:
    """The standard deviation of the sample."""
    return Aggregate(f"STDDEV_SAMP({_expression(expression)})")


def median(expression: str) -> Aggregate:
    """The median."""
    return Aggregate(f"MEDIAN({_expression(expression)})")


def quantile(expression: str, share: Number) -> Aggregate:
    """The value below which a share of the rows lies: 0.25 for the first quartile."""
    millionths = read_share(share) * 10**6
    if millionths.denominator != 1:
        raise ParameterError("share", share, "has six decimals at most")
    with localcontext(decimals(60)):
        text = format(Decimal(millionths.numerator).scaleb(-6).normalize(), "f")
    return Aggregate(f"QUANTILE_CONT({_expression(expression)}, {text})")


def minimum(expression: str) -> Aggregate:
    """The least value, or nearly: nobody's own value is the answer."""
    return Aggregate(f"MIN({_expression(expression)})")


def maximum(expression: str) -> Aggregate:
    """The largest value, or nearly: nobody's own value is the answer."""
    return Aggregate(f"MAX({_expression(expression)})")


@dataclass(frozen=True)
class Spend:
    """What a question may cost, or how wrong it may be."""

    epsilon: Number | None = None
    rho: Number | None = None
    guarantee: Guarantee | None = None
    error: Mapping[str, Number] | None = None

    def __post_init__(self) -> None:
        """Copied: what is priced first is what is paid later."""
        for name in ("epsilon", "rho"):
            if (given := getattr(self, name)) is not None:
                exactly(given, REAL, name, "must be a number (int, float, Fraction or Decimal)")
        if self.guarantee is not None:
            wanted = "must be one, as dp.ApproxDP(1.0, 1e-6)"
            object.__setattr__(
                self, "guarantee", read_guarantee(self.guarantee, "guarantee", wanted)
            )
        if self.error is not None:
            read = read_mapping(self.error, "error", "names columns: {'n': 50}")
            object.__setattr__(self, "error", frozen(read, "error"))


class Asks(Protocol):
    """What a session does with a finished question."""

    def __call__(self, tree: exp.Expr, options: Options, spend: Spend) -> Any:
        """Answer or explain it."""


@dataclass(frozen=True)
class Question:
    """A question about one table. Every step gives a new one; `release` asks it."""

    table: str
    ask: Asks = field(repr=False)
    tell: Asks = field(repr=False)
    conditions: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    aggregates: tuple[tuple[str, Aggregate], ...] = ()
    joins: tuple[tuple[str, str, str], ...] = ()
    having_: str | None = None
    order: tuple[str, ...] = ()
    most: int | None = None
    options: Options = field(default_factory=Options)

    def where(self, condition: str) -> Question:
        """Only rows that meet a condition: `"age >= 18 AND ward <> 'C'"`."""
        return replace(self, conditions=(*self.conditions, _expression(condition)))

    def join(self, table: str, on: str, *, how: str = "inner") -> Question:
        """Join another table of the session: a public one, or a private one through the unit."""
        if how not in {"inner", "left"}:
            raise ParameterError("how", how, "must be 'inner' or 'left'")
        return replace(self, joins=(*self.joins, (table, _expression(on), how)))

    def group_by(self, *columns: str) -> Question:
        """Group by columns or expressions."""
        return replace(self, groups=(*self.groups, *(_expression(each) for each in columns)))

    def agg(
        self,
        aggregates: Mapping[str, Aggregate] | None = None,
        /,
        **named: Aggregate,
    ) -> Question:
        """What to ask for, by name: `.agg(n=dp.count(), mean_cost=dp.mean("cost"))`."""
        given: object = aggregates or {}
        if not isinstance(given, Mapping):
            raise ParameterTypeError(
                "aggregates", type(given).__name__, "maps names to dp.count() and the like"
            )
        every = {**given, **named}
        for name, each in every.items():
            if type(name) is not str or type(each) is not Aggregate:
                raise ParameterTypeError(
                    name, type(each).__name__, "must be dp.count() or the like"
                )
        return replace(self, aggregates=(*self.aggregates, *every.items()))

    def having(self, condition: str) -> Question:
        """Show only groups whose released numbers meet a condition."""
        return replace(self, having_=_expression(condition))

    def order_by(self, *columns: str) -> Question:
        """Order the answer by released columns: `"n DESC"`."""
        return replace(self, order=(*self.order, *columns))

    def limit(self, most: int) -> Question:
        """Show so many rows of the answer."""
        return replace(self, most=whole(most, "limit"))

    def keys(self, **values: Any) -> Question:
        """Declare the values of a group: exactly these are shown, in this order."""
        read = {name.lower(): read_keys(given) for name, given in values.items()}
        return replace(self, options=replace(self.options, keys={**self.options.keys, **read}))

    def new_keys(self) -> Question:
        """Select the groups again, whatever was selected before."""
        return replace(self, options=replace(self.options, new_keys=True))

    def profile(self) -> Question:
        """Estimate what one person adds, whatever was declared, and where the truth lies."""
        return replace(self, options=replace(self.options, profile=True))

    def bounds(self, **pairs: tuple[Number, Number]) -> Question:
        """Declare bounds of columns for this question."""
        read = {name.lower(): read_column_bounds(pair) for name, pair in pairs.items()}
        return replace(self, options=replace(self.options, bounds={**self.options.bounds, **read}))

    def sql(self) -> str:
        """The same question as SQL."""
        return str(self._tree().sql("duckdb"))

    def release(
        self,
        *,
        epsilon: Number | None = None,
        rho: Number | None = None,
        guarantee: Guarantee | None = None,
        error: Mapping[str, Number] | None = None,
    ) -> Answer:
        """Ask it."""
        answer: Answer = self.ask(self._tree(), self.options, Spend(epsilon, rho, guarantee, error))
        return answer

    def explain(
        self,
        *,
        epsilon: Number | None = None,
        rho: Number | None = None,
        guarantee: Guarantee | None = None,
        error: Mapping[str, Number] | None = None,
    ) -> Explanation:
        """What it would cost and how wrong it would be."""
        spend = Spend(epsilon, rho, guarantee, error)
        explanation: Explanation = self.tell(self._tree(), self.options, spend)
        return explanation

    def _tree(self) -> exp.Expr:
        if not self.aggregates:
            raise QueryError("ask for something: .agg(n=dp.count())")
        chosen = [*self.groups, *(f'{each.sql} AS "{_name(n)}"' for n, each in self.aggregates)]
        try:
            made = exp.select(*chosen, dialect="duckdb").from_(self.table)
            for table, on, how in self.joins:
                made = made.join(table, on=on, join_type=how, dialect="duckdb")
            for condition in self.conditions:
                made = made.where(condition, dialect="duckdb")
            made = made.group_by(*self.groups, dialect="duckdb")
            made = made.having(self.having_, dialect="duckdb")
            if self.order:
                made = made.order_by(*self.order, dialect="duckdb")
        except SqlglotError as error:
            raise QueryError(
                f"this cannot be read as SQL: {str(error).splitlines()[0][:150]}"
            ) from None
        return made if self.most is None else made.limit(self.most)


def _expression(text: str) -> str:
    """The text of one expression, which must not hold anything else."""
    given: object = text
    if not (type(given) is str and text.strip()):
        raise ParameterTypeError("expression", text, "must be the text of a column or expression")
    try:
        return str(sqlglot.parse_one(text, read="duckdb").sql("duckdb"))
    except SqlglotError:
        raise QueryError(f"this is no expression: {text[:60]}") from None


def _name(name: str) -> str:
    if '"' in name or not name:
        raise ParameterError("agg", name, "names of columns have no quotes")
    return name
