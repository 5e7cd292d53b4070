"""What a question counts: rows, whose they are, their groups, and what is summed of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from deniable.lazy import lazy
from deniable.query.plan.keys import Group, one_of
from deniable.query.plan.measures import Located
from deniable.query.plan.quantiles import Grid, Rank
from deniable.query.plan.reach import Clips


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
    clips: Clips | None = None
    """Where some of it is clipped to bounds that were estimated: what it is a product of."""
    beyond: tuple[str, int] | None = None
    """Where it counts what is clipped: of which column, above or below."""

    @lazy
    def text(self) -> str:
        """Its expression, as SQL that is written once."""
        return str(self.sql.sql("duckdb"))


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
class Counted:
    """The rows of a question, and the whole numbers that are made of them."""

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
    distinct: tuple[exp.Expr, ...] = ()
    """Of what different values are counted."""
    grids: tuple[Grid, ...] = ()
    """Cells in which values are counted for quantiles."""
    ranks: tuple[Rank, ...] = ()
    """The quantiles."""
    selected: tuple[tuple[Any, ...], ...] | None = None
    """The groups, where they were chosen privately."""
    only: tuple[exp.Expr, ...] = ()
    """Conditions on rows of a grouping, beside those of the source."""
    staged: Staged | None = None
    """Where the library sums rows of its own making: the tables that `source` reads."""

    @lazy
    def written(self) -> dict[tuple[bool, bool], str]:
        """The text of these rows, once it was written: with long keys cut, of every group."""
        return {}

    @lazy
    def grouped(self) -> list[str]:
        """The columns of its groups in statements: g0, g1, ..."""
        return names("g", self.groups)

    @lazy
    def summed(self) -> list[str]:
        """Those of its statistics: t0, t1, ..."""
        return names("t", self.statistics)

    @property
    def counts_units(self) -> bool:
        """Whether units are counted once, and nothing else: nobody can have more than one."""
        alone = not (self.groups or self.distinct or self.ranks)
        return alone and all(each.per_unit for each in self.statistics)

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

    def alone(self, place: int) -> Counted:
        """The rows with one of the statistics, and nothing else."""
        if place not in self._alone:
            self._alone[place] = replace(
                self, statistics=(self.statistics[place],), distinct=(), grids=(), ranks=()
            )
        return self._alone[place]

    @lazy
    def _alone(self) -> dict[int, Counted]:
        return {}

    @lazy
    def bare(self) -> Counted:
        """The rows alone: whose each is, and in which group."""
        return replace(self, statistics=(), distinct=(), grids=(), ranks=())

    def by(self, places: Sequence[int]) -> Counted:
        """The same rows by some of the groups, in this order."""
        groups = tuple(self.groups[place] for place in places)
        return replace(self, groups=groups, sets=(tuple(range(len(groups))),))

    def grouping(self, places: Sequence[int]) -> Counted:
        """One of its groupings: rows whose values are not declared count in none."""
        only = tuple(
            one_of(exp.paren(group.sql.copy()), group.keys)
            for place, group in enumerate(self.groups)
            if place not in places
        )
        return replace(self.by(places), only=only)


def names(prefix: str, items: Sequence[object]) -> list[str]:
    """g0, g1, ..."""
    return [f"{prefix}{number}" for number in range(len(items))]
