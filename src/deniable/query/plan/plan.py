"""The plan of a question: what is counted, how far one unit can move it, what is made of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sqlglot import exp

from deniable.errors import QueryError
from deniable.lazy import lazy
from deniable.query.plan.counted import Counted, Statistic
from deniable.query.plan.measures import Measure, measure_form
from deniable.query.plan.moments import Centres
from deniable.query.plan.reach import Reaches, Unbounded
from deniable.query.plan.tail import Above, Profile
from deniable.query.read.columns import BOUGHT, Kept, RowSet

SCALE_BITS = 16
SCALE = 1 << SCALE_BITS
"""Steps to one: what is left of a unit that is scaled down is rounded to such steps."""

FACTOR_BITS = 2 * SCALE_BITS
"""Steps to one of the factor by which a unit is scaled down."""

_MOST_BITS = 126
_ROW_BITS = 33  # no table that an engine can read has more than 2^33 rows


@dataclass(frozen=True)
class Output:
    """A column of the answer: a group's value, or an expression of measures m0, m1, ...

    Its `name` is as typed once the plan is whole; names that differ by case only are one.
    """

    name: str
    sql: exp.Expr
    group: int | None


@dataclass(frozen=True)
class Shown:
    """What is made of the released numbers, and what an answer says of itself."""

    measures: tuple[Measure, ...] = ()
    """What is computed from noisy statistics: m0, m1, ..."""
    outputs: tuple[Output, ...] = ()
    """The columns of the answer, made of measures and groups."""
    having: exp.Expr | None = None
    """Which groups are shown, by released numbers."""
    order: tuple[exp.Expr, ...] = ()
    """In which order."""
    limit: int | None = None
    """How many at most."""
    offset: int = 0
    """How many are passed over."""
    notes: tuple[str, ...] = ()
    """What an answer is to say of itself, from public facts alone."""

    @property
    def picks_by_noise(self) -> bool:
        """Whether noisy numbers decide which rows are shown."""
        deciding = [] if self.having is None else [self.having]
        deciding += self.order if self.limit is not None or self.offset else ()
        names = {f"m{place}" for place in range(len(self.measures))}
        names |= {each.name for each in self.outputs if each.group is None}
        columns = (column for each in deciding for column in each.find_all(exp.Column))
        return any(column.name in names for column in columns)

    def measure_of(self, output: Output) -> Measure | None:
        """The measure behind a column, if its interval is known."""
        return measure_form(output.sql, self.measures)


@dataclass(frozen=True)
class Contribution:
    """What one unit adds at most: by declaration, by promise, or as it was estimated privately."""

    rows: int
    """Rows of a unit that count in full; BOUGHT where that is not known yet."""
    single: bool
    """Whether no unit can have more rows than one."""
    unit_has_name: bool
    """Whether a column says whose a row is; else each row is a unit."""
    cap: int | None
    """The owner's promise: no unit has more rows."""
    max_groups: int | None
    """In how many groups a unit counts while they are chosen; None where not known."""
    fan: int = 1
    """How many rows one row becomes by public tables, at most."""
    most: int | None = None
    """How many rows a unit has at most; None: as many as the table."""
    left_out: tuple[int, ...] = ()
    """To how many rows of a unit the sides of joins are cut."""
    floor: int | None = None
    """The least norm that is looked at: units below it count in full."""
    norm: int | None = None
    """The joint norm to which units are scaled down."""
    profile: Profile | None = None
    """How many units have which norms, under noise."""
    above: Above | None = None
    """How many units have more rows than `rows`, which was declared, under noise."""
    by_rows: Profile | None = None
    """How many units have how many rows, under noise, where `rows` was estimated from that."""
    jointly: bool = False
    """Whether this is one of several groupings, in all of which a unit is scaled by one factor."""
    unbounded: tuple[Unbounded, ...] = ()
    """Columns without bounds of which nothing is known yet."""
    reaches: Reaches = field(default_factory=dict)
    """How far other columns without bounds reach."""

    @classmethod
    def of(cls, relation: RowSet) -> Contribution:
        """Of rows that can be asked about: what was declared of them, and what joins make."""
        return cls(
            rows=relation.rows,
            single=relation.single,
            unit_has_name=relation.unit_has_name,
            cap=relation.cap,
            max_groups=relation.max_groups,
            fan=relation.fan,
            most=relation.most,
            left_out=relation.left_out,
        )

    @property
    def one_row(self) -> bool:
        """Whether every unit has one row at most, and that counts in full: no norm was bought."""
        return self.single and self.rows == 1 and self.norm is None

    @property
    def row_bits(self) -> int:
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


@dataclass(frozen=True)
class Resources:
    """What an engine holds and may do to make the rows; of public facts alone."""

    simple: bool
    """Whether rows come out alike however often they are computed."""
    growth: int = 1
    """How many times as many rows there are as in the tables, at most."""
    kept: tuple[Kept, ...] = ()
    """Rows that an engine holds to make them."""
    width: int = 0
    """Bytes of a counted row at the worst."""
    constants: tuple[Any, ...] = ()
    """The public values in the question, to be tried."""
    veiled: bool = False
    """Whether an engine must not choose functions by statistics of columns."""
    promised: bool = False
    """Whether all tables declare how many rows they have: room is counted, long keys are cut."""


@dataclass(frozen=True)
class Plan:
    """Everything about a question but its price and the data."""

    counted: Counted
    """The rows, and what is counted of them."""
    contribution: Contribution
    """What one unit adds."""
    shown: Shown
    """What is made of released numbers."""
    resources: Resources
    """What an engine needs for it."""
    population: str
    """Whose budget is spent."""
    tables: tuple[str, ...]
    """The private tables."""
    text: str
    """The question with all names resolved."""
    whole: Plan | None = None
    """The plan by more groups whose rows are made once; this one reads some columns of them."""
    places: tuple[int, ...] = ()
    """Which groups of `whole` these are."""
    again: Callable[[Centres, Reaches], Plan] | None = field(
        default=None, compare=False, repr=False
    )
    """Plans the same question about columns of which more is known."""

    def replanned(self, centres: Centres, reaches: Reaches) -> Plan:
        """With columns centred elsewhere, or as far as they reach; the groups stay selected."""
        assert self.again is not None
        made = self.again(centres, reaches)
        return replace(
            made,
            counted=replace(made.counted, selected=self.counted.selected),
            shown=replace(made.shown, notes=self.shown.notes),
            again=self.again,
        )

    def by(self, places: Sequence[int]) -> Plan:
        """The same rows by some of the groups, in this order."""
        return replace(self, counted=self.counted.by(places), whole=self, places=tuple(places))

    @property
    def buys_rows(self) -> bool:
        """Whether the contribution bound is still to be estimated."""
        return self.contribution.rows == BOUGHT and not self.counted.counts_units

    @property
    def buys_norm(self) -> bool:
        """Whether no row bounds what a unit adds: its norm is looked at, whatever is declared."""
        return any(each.usual is not None for each in self.contribution.reaches.values())

    @property
    def clips(self) -> bool:
        """Whether values of sums are clipped to bounds that were estimated."""
        return any(each.clips is not None for each in self.counted.statistics)

    @property
    def once(self) -> tuple[int, ...]:
        """The statistics that count units, of all rows together, beside others with a bought norm.

        Nobody adds more than one to them: they need no norm, and have noise of their own.
        """
        counted = self.counted
        if self.contribution.profile is None or counted.groups or len(counted.sets) > 1:
            return ()
        places = tuple(n for n, each in enumerate(counted.statistics) if each.per_unit)
        return places if len(places) < len(counted.statistics) else ()

    @property
    def fits(self) -> bool:
        """Whether every unit is within its bound as it stands."""
        return self.contribution.one_row or self.counted.counts_units

    @property
    def stored(self) -> bool:
        """Whether rows are made once and kept.

        Rows that are computed from several (windows, aggregates, numbers of rows) could come out
        otherwise a second time, by the order of threads; a unit must not look light in one place
        and be heavy in another. And functions of text and times are not computed three times.
        """
        if self.counted.staged is not None:  # they are kept already
            return False
        if self.whole is not None:
            return True
        unit, rows = self.contribution, self.resources
        return not unit.one_row and (rows.veiled or not (rows.simple and unit.unit_has_name))

    @property
    def held(self) -> tuple[Kept, ...]:
        """The rows that an engine holds: those it makes them of, and those that are counted.

        These are stored, or grouped by what they are grouped by; where they are only summed, there
        is one sum for each unit.
        """
        rows, staged = self.resources, self.counted.staged
        if staged is not None:
            return (*rows.kept, Kept(rows.width + staged.width, rows.growth))
        summed = not (self.stored or self.counted.groups or self.counted.distinct)
        return (*rows.kept, Kept(rows.width, 1 if summed else rows.growth))

    @lazy
    def groupings(self) -> tuple[Plan, ...]:
        """The same question for each of its groupings."""
        sets = self.counted.sets
        if len(sets) == 1:
            return (self,)
        jointly = self.contribution.profile is not None
        unit = replace(self.contribution, jointly=jointly)
        return tuple(
            replace(self, counted=self.counted.grouping(each), contribution=unit) for each in sets
        )

    @lazy
    def weights(self) -> tuple[int, ...]:
        """Whole weights under which the error of what is shown is least.

        Noise on statistic j has deviation proportional to size_j sqrt(Σ (αρ)²)/α_j with
        α = weight·size and ρ what is typical of it; the sum of squared errors, each relative to its
        own size and importance A, is least for α_j² proportional to sqrt(A_j)/ρ_j. Staged rows have
        their weights in them.

        Where columns are too wide for that, α is cut to what has room: if any weights fit, these
        do. Bounds that are estimated must not make a question fail that was charged.
        """
        statistics = self.counted.statistics
        if self.counted.staged is not None:
            return (1,) * len(statistics)
        shares = [
            max(s.importance, 1e-6) ** 0.25 / math.sqrt(s.typical) / s.size for s in statistics
        ]
        for fine in (16, 4, 1):  # coarser weights, so that wide columns still fit
            found = tuple(max(1, round(fine * share / min(shares))) for share in shares)
            if self._has_room(found):
                return found
        most = max(w * s.size for w, s in zip(found, statistics, strict=True))
        while not self._has_room(found) and max(found) > 1:
            most //= 2
            pairs = zip(found, statistics, strict=True)
            found = tuple(max(1, min(weight, most // s.size)) for weight, s in pairs)
        return found

    def _has_room(self, weights: Sequence[int]) -> bool:
        """Whether the square of the norm of a unit with as many rows as can be has room."""
        pairs = zip(weights, self.counted.statistics, strict=True)
        norm = sum((weight * each.size) ** 2 for weight, each in pairs)
        return norm.bit_length() + 2 * self.contribution.row_bits <= _MOST_BITS

    def bound(self, *, l2: bool) -> int:
        """The largest joint norm that a unit of `rows` rows can reach, as a whole number.

        With its rows in g groups the norm is largest at one end of g: all in one group, or as many
        groups as there can be. A norm that was bought is no smaller than `floor`. Where units alone
        are counted, nobody is scaled down, whatever was bought for other groupings.
        """
        rows, counted = self.contribution.rows, self.counted
        pairs = list(zip(self.weights, counted.statistics, strict=True))
        if counted.counts_units:
            sizes = [w * s.size for w, s in pairs]
            return math.isqrt(sum(size**2 for size in sizes) - 1) + 1 if l2 else sum(sizes)
        if self.contribution.norm is not None:
            return self.contribution.norm
        if counted.staged is not None:
            return rows * counted.staged.row
        most = rows if counted.cells is None else min(rows, counted.cells)
        if not l2:
            by_row = _by_row([(w * s.size, s) for w, s in pairs])
            return rows * by_row + most * sum(w * s.size for w, s in pairs if s.per_unit)
        by_row = _by_row([((w * s.size) ** 2, s) for w, s in pairs])
        by_group = sum((w * s.size) ** 2 for w, s in pairs if s.per_unit)
        ends = [by_row * ((rows - g + 1) ** 2 + g - 1) + by_group * g for g in {1, most}]
        return math.isqrt(max(ends) - 1) + 1 if max(ends) else 0

    @property
    def asks_above(self) -> bool:
        """Whether it is to be estimated how many rows a declared bound cuts off.

        Not where it cuts off none, by structure or by promise; and not of quantiles alone.
        """
        unit, counted = self.contribution, self.counted
        if self.fits or not (counted.statistics or counted.distinct) or counted.staged is not None:
            return False
        known = unit.rows == BOUGHT or unit.by_rows is not None or unit.norm is not None
        return not known and unit.above is None and (unit.cap is None or unit.cap > unit.rows)

    def with_rows(self, rows: int) -> Plan:
        """Of units with so many rows, however their norm is bounded."""
        return replace(self, contribution=replace(self.contribution, rows=rows, norm=None))

    def with_norm(self, norm: int, floor: int | None = None) -> Plan:
        """Of units that are scaled down to a norm that was estimated.

        They are looked at from there, or from a floor below it.
        """
        floor = norm if floor is None else min(floor, norm)
        return replace(self, contribution=replace(self.contribution, floor=floor, norm=norm))

    def cuts(self, *, l2: bool) -> bool:
        """Whether a unit with as many rows as there can be is scaled down, as far as is known."""
        unit = self.contribution
        if self.fits or not self.counted.statistics:
            return False
        if unit.cap is None:
            return True
        return (
            unit.cap > unit.rows
            if unit.norm is None
            else self.with_rows(unit.cap).bound(l2=l2) > unit.norm
        )

    @property
    def bits(self) -> int:
        """Steps to one in its sums, as a power of two; staged rows are in steps of their own."""
        return SCALE_BITS if self.counted.staged is None else 0

    @property
    def coarse(self) -> int:
        """How many bits of a unit's sums its norm is taken without, so that the square has room.

        The sums are rounded up there: a norm is never found too small.
        """
        staged = self.counted.staged
        if staged is None:  # what is too wide is refused
            return 0
        return max(0, staged.row.bit_length() + self.contribution.row_bits + 1 - _MOST_BITS // 2)

    def check_sizes(self) -> None:
        """Refuse what could overflow 127 bits at the largest table an engine can hold."""
        counted = self.counted
        squares = counted.staged is not None or self._has_room(self.weights)
        largest = max((s.size for s in counted.statistics), default=1)
        rows = _ROW_BITS + (self.resources.growth - 1).bit_length()
        product = max(largest << rows, self.bound(l2=False) + 1) << FACTOR_BITS
        if not squares or product.bit_length() > _MOST_BITS:
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
