"""The plan of a question: what is counted, how far one unit can move it, what is made of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from sqlglot import exp

from deniable.engines.literals import kind_of_value, literal
from deniable.errors import QueryError
from deniable.lazy import lazy
from deniable.query.plan.measures import Located, Measure
from deniable.query.plan.quantiles import Grid, Rank
from deniable.query.plan.tail import Profile
from deniable.query.read.columns import BOUGHT, Kept
from deniable.tables import ColumnType

SCALE_BITS = 16
SCALE = 1 << SCALE_BITS
"""Steps to one: what is left of a unit that is scaled down is rounded to such steps."""

FACTOR_BITS = 2 * SCALE_BITS
"""Steps to one of the factor by which a unit is scaled down."""

_MOST_BITS = 126
_ROW_BITS = 33  # no table that an engine can read has more than 2^33 rows


@dataclass(frozen=True)
class Group:
    """A column that is grouped by, and its values where they are public."""

    name: str
    sql: exp.Expr
    kind: ColumnType | None
    keys: tuple[Any, ...] | None
    note: str = ""
    """What an answer is to say of it."""

    def declared_as(self, column: str) -> str:
        """The condition that a column has one of its keys, as SQL that is written once."""
        if column not in self._conditions:
            self._conditions[column] = declared(exp.column(column), self.keys).sql("duckdb")
        return self._conditions[column]

    @lazy
    def _conditions(self) -> dict[str, str]:
        return {}


@dataclass(frozen=True)
class Statistic:
    """A whole number in each row, NULL or of at most `size` in absolute value, to be summed.

    `per_unit` statistics count a unit once in each group, however many rows it has there.
    `importance` is how much the answers shown depend on it; `counts` says that it is 1 or NULL.
    Of the statistics of a `column`, a row has either those that are `missing`, or the others. A sum
    has `marks`, the least, the centre and the most of its column in steps; `typical` is the share
    of its size that it usually has.
    """

    sql: exp.Expr
    size: int
    per_unit: bool = False
    importance: float = 1.0
    counts: bool = False
    column: str = ""
    missing: bool = False
    marks: tuple[int, int, int] | None = None
    typical: float = 1.0


@dataclass(frozen=True)
class Staged:
    """Rows that the library makes in several turns, and how far one of them moves the sums."""

    tables: Mapping[str, str]
    """By name, the SELECTs that make them, each of those before it; the first reads the source."""
    row: int
    """The joint norm of what one row adds, at most: looked at row by row, in whole numbers."""
    width: int
    """Bytes of a row in all of the tables."""


@dataclass(frozen=True)
class Output:
    """A column of the answer: a group's value, or an expression of measures m0, m1, ...

    Its `name` is as typed once the plan is whole; names that differ by case only are one.
    """

    name: str
    sql: exp.Expr
    group: int | None


@dataclass(frozen=True)
class Plan:
    """Everything about a question but its price and the data."""

    # What is counted.
    source: exp.Select
    """The rows, as a SELECT without columns."""
    unit: exp.Expr
    """Whose a row is."""
    groups: tuple[Group, ...]
    """What rows are grouped by."""
    sets: tuple[tuple[int, ...], ...]
    """The groupings, as places in `groups`; more than one for ROLLUP and its like."""
    statistics: tuple[Statistic, ...]
    """What is summed by group."""
    distinct: tuple[exp.Expr, ...]
    """Of what different values are counted."""
    grids: tuple[Grid, ...]
    """Cells in which values are counted for quantiles."""
    ranks: tuple[Rank, ...]
    """The quantiles."""

    # What is shown.
    measures: tuple[Measure, ...]
    """What is computed from noisy statistics: m0, m1, ..."""
    outputs: tuple[Output, ...]
    """The columns of the answer, made of measures and groups."""
    having: exp.Expr | None
    """Which groups are shown, by released numbers."""
    order: tuple[exp.Expr, ...]
    """In which order."""
    limit: int | None
    """How many at most."""
    offset: int
    """How many are passed over."""

    # What one unit adds.
    rows: int
    """Rows of a unit that count in full; BOUGHT where that is not known yet."""
    single: bool
    """Whether no unit can have more rows than one."""
    simple: bool
    """Whether rows come out alike however often they are computed."""
    unit_has_name: bool
    """Whether a column says whose a row is; else each row is a unit."""
    cap: int | None
    """The owner's promise: no unit has more rows."""
    max_groups: int | None
    """In how many groups a unit counts while they are chosen; None where not known."""

    # Whose it is, and what it is found by.
    population: str
    """Whose budget is spent."""
    tables: tuple[str, ...]
    """The private tables."""
    text: str
    """The question with all names resolved."""

    # Bounds that were estimated privately.
    floor: int | None = None
    """The least norm that is looked at: units below it count in full."""
    norm: int | None = None
    """The joint norm to which units are scaled down."""
    profile: Profile | None = None
    """How many units have which norms, under noise."""
    selected: tuple[tuple[Any, ...], ...] | None = None
    """The groups, where they were chosen privately."""
    estimated: bool = False
    """Whether `rows` was estimated privately."""

    only: tuple[exp.Expr, ...] = ()
    """Conditions on rows of a grouping, beside those of the source."""
    constants: tuple[Any, ...] = ()
    """The public values in the question, to be tried."""
    veiled: bool = False
    """Whether an engine must not choose functions by statistics of columns."""
    promised: bool = False
    """Whether all tables declare how many rows they have: room is counted, long keys are cut."""
    fan: int = 1
    """How many rows one row becomes by public tables, at most."""
    most: int | None = None
    """How many rows a unit has at most; None: as many as the table."""
    growth: int = 1
    """How many times as many rows there are as in the tables, at most."""
    left_out: tuple[int, ...] = ()
    """To how many rows of a unit the sides of joins are cut."""
    kept: tuple[Kept, ...] = ()
    """Rows that an engine holds to make them."""
    width: int = 0
    """Bytes of a counted row at the worst."""
    whole: Plan | None = None
    """The plan by more groups whose rows are made once; this one reads some columns of them."""
    places: tuple[int, ...] = ()
    """Which groups of `whole` these are."""
    notes: tuple[str, ...] = ()
    """What an answer is to say of itself, from public facts alone."""
    staged: Staged | None = None
    """Where the library sums rows of its own making: the tables that `source` reads."""

    def by(self, places: Sequence[int]) -> Plan:
        """The same rows by some of the groups, in this order."""
        groups = tuple(self.groups[place] for place in places)
        sets = (tuple(range(len(groups))),)
        return replace(self, groups=groups, sets=sets, whole=self, places=tuple(places))

    @property
    def buys_rows(self) -> bool:
        """Whether the contribution bound is still to be estimated."""
        return self.rows == BOUGHT and not self.counts_units

    @property
    def buys_groups(self) -> bool:
        """Whether the number of groups a unit counts in is still to be bought."""
        return not self.known_keys and self.max_groups is None

    @property
    def one_row(self) -> bool:
        """Whether every unit has one row at most."""
        return self.single and self.rows == 1

    @property
    def counts_units(self) -> bool:
        """Whether units are counted once, and nothing else: nobody can have more than one."""
        alone = not (self.groups or self.distinct or self.ranks)
        return alone and all(each.per_unit for each in self.statistics)

    @property
    def fits(self) -> bool:
        """Whether every unit is within its bound as it stands."""
        return self.one_row or self.counts_units

    @property
    def stored(self) -> bool:
        """Whether rows are made once and kept.

        Rows that are computed from several (windows, aggregates, numbers of rows) could come out
        otherwise a second time, by the order of threads; a unit must not look light in one place
        and be heavy in another. And functions of text and times are not computed three times.
        """
        if self.staged is not None:  # they are kept already
            return False
        if self.whole is not None:
            return True
        return not self.one_row and (self.veiled or not (self.simple and self.unit_has_name))

    @property
    def held(self) -> tuple[Kept, ...]:
        """The rows that an engine holds: those it makes them of, and those that are counted.

        These are stored, or grouped by what they are grouped by; where they are only summed, there
        is one sum for each unit.
        """
        if self.staged is not None:
            return (*self.kept, Kept(self.width + self.staged.width, self.growth))
        summed = not (self.stored or self.groups or self.distinct)
        return (*self.kept, Kept(self.width, 1 if summed else self.growth))

    @property
    def columns(self) -> int:
        """How many numbers are released for each group."""
        return len(self.statistics) + len(self.distinct) + Located.WIDTH * len(self.ranks)

    @property
    def known_keys(self) -> bool:
        """Whether the groups are public, by declaration or because they were released."""
        return self.selected is not None or all(group.keys is not None for group in self.groups)

    @property
    def cells(self) -> int | None:
        """How many groups there are, where that is public."""
        if self.selected is not None:
            return len(self.selected)
        if not self.known_keys:
            return None
        sizes = [len(group.keys or ()) for group in self.groups]
        return sum(math.prod(sizes[place] for place in each) for each in self.sets)

    @lazy
    def written(self) -> dict[bool, str]:
        """The text of its rows, of every group or of those that count, once it was written."""
        return {}

    @lazy
    def groupings(self) -> tuple[Plan, ...]:
        """The same question for each of its groupings.

        Rows whose values are not among the declared ones count in none: totals are of their parts.
        """
        if len(self.sets) == 1:
            return (self,)
        made = []
        for each in self.sets:
            only = tuple(
                declared(exp.paren(group.sql.copy()), group.keys)
                for place, group in enumerate(self.groups)
                if place not in each
            )
            groups = tuple(self.groups[place] for place in each)
            made.append(replace(self, only=only, groups=groups, sets=(tuple(range(len(each))),)))
        return tuple(made)

    @lazy
    def weights(self) -> tuple[int, ...]:
        """Whole weights under which the error of what is shown is least.

        Noise on statistic j has deviation proportional to size_j sqrt(Σ (αρ)²)/α_j with
        α = weight·size and ρ what is typical of it; the sum of squared errors, each relative to its
        own size and importance A, is least for α_j² proportional to sqrt(A_j)/ρ_j. Staged rows have
        their weights in them.
        """
        if self.staged is not None:
            return (1,) * len(self.statistics)
        shares = [
            max(s.importance, 1e-6) ** 0.25 / math.sqrt(s.typical) / s.size for s in self.statistics
        ]
        for fine in (16, 4, 1):  # coarser weights, so that wide columns still fit
            found = tuple(max(1, round(fine * share / min(shares))) for share in shares)
            pairs = zip(found, self.statistics, strict=True)
            norm = sum((w * s.size) ** 2 for w, s in pairs)
            if norm.bit_length() + 2 * self._unit_bits <= _MOST_BITS:
                break
        return found

    def bound(self, *, l2: bool) -> int:
        """The largest joint norm that a unit of `rows` rows can reach, as a whole number.

        With its rows in g groups the norm is largest at one end of g: all in one group, or as many
        groups as there can be. A norm that was bought is no smaller than `floor`.
        """
        if self.norm is not None:
            return self.norm
        if self.staged is not None:
            return self.rows * self.staged.row
        pairs = list(zip(self.weights, self.statistics, strict=True))
        if self.counts_units:
            sizes = [w * s.size for w, s in pairs]
            return math.isqrt(sum(size**2 for size in sizes) - 1) + 1 if l2 else sum(sizes)
        most = self.rows if self.cells is None else min(self.rows, self.cells)
        if not l2:
            by_row = _by_row([(w * s.size, s) for w, s in pairs])
            return self.rows * by_row + most * sum(w * s.size for w, s in pairs if s.per_unit)
        by_row = _by_row([((w * s.size) ** 2, s) for w, s in pairs])
        by_group = sum((w * s.size) ** 2 for w, s in pairs if s.per_unit)
        ends = [by_row * ((self.rows - g + 1) ** 2 + g - 1) + by_group * g for g in {1, most}]
        return math.isqrt(max(ends) - 1) + 1 if max(ends) else 0

    def cuts(self, *, l2: bool) -> bool:
        """Whether a unit with as many rows as there can be is scaled down, as far as is known."""
        if self.fits or not self.statistics:
            return False
        if self.cap is None:
            return True
        most = replace(self, rows=self.cap, norm=None).bound(l2=l2)
        return self.cap > self.rows if self.norm is None else most > self.norm

    @property
    def bits(self) -> int:
        """Steps to one in its sums, as a power of two; staged rows are in steps of their own."""
        return SCALE_BITS if self.staged is None else 0

    @property
    def coarse(self) -> int:
        """How many bits of a unit's sums its norm is taken without, so that the square has room.

        The sums are rounded up there: a norm is never found too small.
        """
        if self.staged is None:  # what is too wide is refused
            return 0
        return max(0, self.staged.row.bit_length() + self._unit_bits + 1 - _MOST_BITS // 2)

    @property
    def _unit_bits(self) -> int:
        """No unit has more rows; where joins bound them they are fewer than a table can have."""
        return _ROW_BITS if self.most is not None else _ROW_BITS + (self.fan - 1).bit_length()

    @property
    def rows_left_out(self) -> str:
        """Which rows joins leave out, in words; empty where they leave out none."""
        if not self.left_out:
            return ""
        listed = " or ".join(f"{rows:,}" for rows in sorted(set(self.left_out)))
        side = "each side" if len(self.left_out) > 1 else "its side"
        return f"rows of one person beyond {listed} on {side} of the join are left out"

    def check_sizes(self) -> None:
        """Refuse what could overflow 127 bits at the largest table an engine can hold."""
        norm = sum((w * s.size) ** 2 for w, s in zip(self.weights, self.statistics, strict=True))
        squares = 0 if self.staged is not None else norm.bit_length() + 2 * self._unit_bits
        largest = max((s.size for s in self.statistics), default=1)
        rows = _ROW_BITS + (self.growth - 1).bit_length()
        product = max(largest << rows, self.bound(l2=False) + 1) << FACTOR_BITS
        if max(squares, product.bit_length()) > _MOST_BITS:
            raise QueryError(
                "the bounds are too wide for exact sums; declare narrower ones, or a coarser grid "
                "(grid={'cost': 0.01})"
            )


def _by_row(sizes: Sequence[tuple[int, Statistic]]) -> int:
    """The most that one row adds: of a column, what is there or what is missing."""
    total, columns = 0, dict[str, list[int]]()
    for size, statistic in sizes:
        if statistic.per_unit:
            continue
        if not statistic.column:
            total += size
            continue
        columns.setdefault(statistic.column, [0, 0])[statistic.missing] += size
    return total + sum(max(sides) for sides in columns.values())


def declared(value: exp.Expr, keys: Sequence[object] | None) -> exp.Expr:
    """Only declared keys; without a declaration, anything but NULL."""
    if keys is None:
        return exp.Not(this=exp.Is(this=value, expression=exp.Null()))
    listed = [literal(kind_of_value(key), key) for key in keys if key is not None]
    inside: exp.Expr = exp.In(this=value, expressions=listed)
    if None in keys:
        missing = exp.Is(this=value.copy(), expression=exp.Null())
        inside = exp.Or(this=inside, expression=missing) if listed else missing
    return exp.paren(inside)


def power_of_two_below(value: Fraction) -> Fraction:
    """The largest power of two that is no larger."""
    step = Fraction(1)
    while step > value:
        step /= 2
    while step * 2 <= value:
        step *= 2
    return step


def names(prefix: str, items: Sequence[object]) -> list[str]:
    """g0, g1, ..."""
    return [f"{prefix}{number}" for number in range(len(items))]
