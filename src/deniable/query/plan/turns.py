"""Sums that the library states itself: rows made in turns, and whole numbers of them.

Each turn is a table of its own: a planner that put one into the next would write out every number
as often as it is used. What is computed is read here, once, as a tree; constants are canonical.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from operator import add
from typing import Self

from sqlglot import exp

from deniable.engines import trees
from deniable.engines.literals import cast_to, double_literal, whole_literal
from deniable.engines.trees import is_known, named
from deniable.query.plan.counted import Counted, Staged, Statistic
from deniable.query.plan.keys import Group
from deniable.query.plan.plan import Contribution, Plan, Resources, Shown
from deniable.query.read.columns import CELL, UNIT
from deniable.query.read.compile import Selected
from deniable.tables import ColumnType

UNIT_COLUMN, GROUP_COLUMN = "u", "g"


@dataclass(frozen=True)
class Term:
    """What is computed in each row."""

    sql: exp.Expr

    def __add__(self, other: Term) -> Term:
        return Term(exp.Add(this=self._used(), expression=other._factor()))

    def __sub__(self, other: Term) -> Term:
        return Term(exp.Sub(this=self._used(), expression=other._factor()))

    def __mul__(self, other: Term) -> Term:
        return Term(exp.Mul(this=self._factor(), expression=other._factor()))

    def __truediv__(self, other: Term) -> Term:
        parts = self._factor(), other._factor()
        return Term(exp.Div(this=parts[0], expression=parts[1], typed=False, safe=False))

    def __lt__(self, other: Term) -> Term:
        return Term(exp.LT(this=self._used(), expression=other._used()))

    def __le__(self, other: Term) -> Term:
        return Term(exp.LTE(this=self._used(), expression=other._used()))

    def is_equal(self, other: Term) -> Term:
        """Whether both are the same."""
        return Term(exp.EQ(this=self._used(), expression=other._used()))

    def clamped(self, low: float, high: float) -> Term:
        """Held within bounds."""
        least, most = real(low), real(high)
        return case((self < least, least), (self > most, most), otherwise=self)

    def root(self) -> Term:
        """Its square root."""
        return Term(exp.Sqrt(this=self._used()))

    def power_of_e(self) -> Term:
        """E to this power."""
        return Term(exp.Exp(this=self._used()))

    def size(self) -> Term:
        """Its absolute value."""
        return Term(exp.Abs(this=self._used()))

    def floor(self) -> Term:
        """Rounded down, a double still."""
        return Term(exp.Floor(this=self._used()))

    def whole(self) -> Term:
        """A double without a fraction as a whole number of 64 bits."""
        return Term(cast_to(self._used(), "BIGINT"))

    def double(self) -> Term:
        """A number as a double."""
        return Term(cast_to(self._used(), "DOUBLE"))

    def is_finite(self) -> Term:
        """Whether it is a number at all: not NULL, not NaN, not infinite."""
        most = exp.Literal.number("1.7976931348623157e308")
        return Term(exp.Between(this=self._used(), low=exp.Neg(this=most), high=most.copy()))

    def is_known(self) -> Term:
        """Whether it is not NULL."""
        return Term(is_known(self._used()))

    def _used(self) -> exp.Expr:
        """Its tree, for one place."""
        return self.sql if self.sql.parent is None else self.sql.copy()

    def _factor(self) -> exp.Expr:
        bare = isinstance(self.sql, exp.Binary | exp.Neg)
        return exp.Paren(this=self._used()) if bare else self._used()


def column(name: str) -> Term:
    """A column of the turn before."""
    return Term(exp.column(name, quoted=True))


def columns(prefix: str, count: int) -> list[Term]:
    """u0, u1, ..."""
    return [column(f"{prefix}{place}") for place in range(count)]


def numbered(prefix: str, terms: Iterable[Term]) -> dict[str, Term]:
    """The terms as columns u0, u1, ..."""
    return {f"{prefix}{place}": term for place, term in enumerate(terms)}


def real(value: float) -> Term:
    """A double."""
    return Term(double_literal(Fraction(value)))


def whole(value: int) -> Term:
    """A whole number."""
    return Term(whole_literal(value))


def total(terms: Iterable[Term]) -> Term:
    """Their sum, from left to right."""
    return reduce(add, terms)


def added(terms: Sequence[Term]) -> Term:
    """Their sum, of whole numbers, which may be added in any order: brackets are not deep."""
    half = len(terms) // 2
    return added(terms[:half]) + added(terms[half:]) if half else terms[0]


def case(*cases: tuple[Term, Term], otherwise: Term | None = None) -> Term:
    """The value of the first condition that holds."""
    branches = ((condition._used(), value._used()) for condition, value in cases)
    return Term(trees.case(*branches, otherwise=None if otherwise is None else otherwise._used()))


def least(terms: Sequence[Term]) -> Term:
    """The smallest."""
    first, *rest = (term._used() for term in terms)
    return Term(exp.Least(this=first, expressions=rest)) if rest else Term(first)


def greatest(terms: Sequence[Term]) -> Term:
    """The largest."""
    first, *rest = (term._used() for term in terms)
    return Term(exp.Greatest(this=first, expressions=rest)) if rest else Term(first)


@dataclass(frozen=True)
class Turns:
    """Rows of a SELECT, and what was made of them, turn by turn.

    Where a unit can have several rows, every turn keeps whose a row is.
    """

    selected: Selected
    tables: Mapping[str, str]
    width: int
    last: str

    @classmethod
    def of(cls, selected: Selected, name: str, made: Mapping[str, Term]) -> Self:
        """The first turn: columns of the SELECT as they are summed."""
        first = cls(selected, {}, 0, "")
        rows = named(selected.relation.sql.copy(), "selected")
        return first._with(name, {**made, **first._whose(UNIT)}, rows, ())

    def then(self, name: str, made: Mapping[str, Term], *only: Term) -> Self:
        """One more turn: these columns, of the rows for which the conditions hold."""
        rows = exp.to_table(self.last)
        return self._with(name, {**made, **self._whose(UNIT_COLUMN)}, rows, only)

    def _whose(self, kept_as: str) -> dict[str, Term]:
        return {} if self._alone else {UNIT_COLUMN: column(kept_as)}

    @property
    def _alone(self) -> bool:
        relation = self.selected.relation
        return relation.single and relation.rows == 1

    def _with(
        self, name: str, made: Mapping[str, Term], rows: exp.Expr, only: Sequence[Term]
    ) -> Self:
        table = f"deniable_{name}"
        select = exp.Select(
            expressions=[exp.alias_(each._used(), as_, copy=False) for as_, each in made.items()]
        )
        select.from_(rows, copy=False)
        if only:
            select.where(*(each._used() for each in only), copy=False)
        tables = {**self.tables, table: select.sql("duckdb", copy=False)}
        return replace(self, tables=tables, width=self.width + CELL * len(made), last=table)

    def summed(
        self,
        statistics: Sequence[Term],
        *,
        row: int,
        grouped: bool = False,
        constants: Sequence[object] = (),
    ) -> Plan:
        """The plan of sums of whole numbers, by GROUP_COLUMN where that is said.

        One row adds `row` at most, in the norm that the sums are bounded in. `constants` are public
        values that the rows are compared with.
        """
        relation = self.selected.relation
        assert relation.population is not None
        group = Group(GROUP_COLUMN, column(GROUP_COLUMN).sql, ColumnType.INTEGER, None)
        plan = Plan(
            counted=Counted(
                source=exp.Select().from_(exp.to_table(self.last)),
                unit=whole(0).sql if self._alone else column(UNIT_COLUMN).sql,
                groups=(group,) if grouped else (),
                sets=((0,) if grouped else (),),
                statistics=tuple(Statistic(each.sql, row) for each in statistics),
                staged=Staged(self.tables, row, self.width),
            ),
            contribution=replace(Contribution.of(relation), max_groups=None),
            shown=Shown(),
            resources=Resources(
                simple=True,
                growth=relation.growth,
                kept=relation.kept,
                width=CELL * (2 + len(statistics)),
                constants=(*self.selected.constants, *constants),
                veiled=self.selected.veiled,
            ),
            population=relation.population,
            tables=relation.tables,
            text=self.selected.text,
        )
        plan.check_sizes()
        return plan
