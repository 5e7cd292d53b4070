"""Columns: what is known of them, how a name finds one, and where the unit's own may not stand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from sqlglot import exp

from deniable.engines.leaves import MOST_BYTES
from deniable.errors import QueryError
from deniable.tables import LONGEST_TEXT, Bounds, ColumnType

BOUGHT = 0
"""A contribution bound that is not declared: it is bought with the first question."""

UNIT = "deniable_unit"
"""The hidden column that says whose row it is, in every private relation."""


@dataclass(frozen=True)
class Column:
    """A column of a relation."""

    kind: ColumnType | None
    bounds: Bounds | None = None
    grid: Fraction | None = None
    keys: tuple[Any, ...] | None = None
    least: Fraction | None = None
    """Without bounds: what it is not below."""
    is_unit: bool = False
    private: bool = False
    excluded: frozenset[Any] = frozenset()
    """Keys that no row has, as conditions exclude them; NULL is never among them."""
    places: int | None = None
    """Its values are whole numbers of 10^-places, as far as a double tells; None if not known."""


Resolve = Callable[[exp.Column], Column]
"""How a name of a SELECT finds its column."""

CELL = 16
"""Bytes of a number, a day or a time that an engine holds."""


def bytes_of(kinds: Iterable[ColumnType | None]) -> int:
    """What values of these types take at the worst."""
    return sum(MOST_BYTES if kind in {ColumnType.TEXT, None} else CELL for kind in kinds)


@dataclass(frozen=True)
class Kept:
    """Rows that an engine holds as it works, of so many bytes at the worst.

    There are at most `growth` of them for each row of the tables.
    """

    width: int
    growth: int


@dataclass(frozen=True)
class RowSet:
    """Rows that can be asked about: the SQL that makes them, and whose they are.

    A private relation has the hidden column UNIT. Rows of one unit depend on that unit's own rows
    and on public tables alone: whatever bounds a unit's rows bounds all that it adds. `rows` is
    the number of rows that count in full; `single` says that no unit can have more. `simple` rows
    come out alike however often they are computed.

    One row of a table becomes at most `fan` rows by public tables, one unit has at most `most` rows
    (None: as many as the table has), and there are at most `growth` times as many rows as in the
    tables. `left_out` are the numbers of rows to which sides of joins were cut. `kept` are the rows
    that an engine holds to make them: sides of joins, what windows and groups of a unit are of.
    """

    sql: exp.Expr
    columns: Mapping[str, Column] = field(default_factory=dict)
    population: str | None = None
    tables: tuple[str, ...] = ()
    rows: int = 1
    single: bool = False
    max_groups: int | None = None
    simple: bool = True
    unit_has_name: bool = True
    cap: int | None = None
    unit_kind: ColumnType | None = None
    fan: int = 1
    most: int | None = None
    growth: int = 1
    joined: bool = False
    left_out: tuple[int, ...] = ()
    kept: tuple[Kept, ...] = ()

    @property
    def unit_width(self) -> int:
        """Bytes of a unit's name at the worst: rows of longer ones are left out."""
        return LONGEST_TEXT if self.unit_kind == ColumnType.TEXT else CELL

    @property
    def width(self) -> int:
        """Bytes of a row at the worst."""
        return self.unit_width + bytes_of(column.kind for column in self.columns.values())

    @property
    def private(self) -> bool:
        """Whether it holds rows of people."""
        return self.population is not None


def columns_in(node: exp.Expr) -> list[exp.Column]:
    """The columns that an expression reads."""
    return list(node.find_all(exp.Column))


def no_unit(node: exp.Expr, find: Resolve, where: str) -> None:
    """Refuse the unit's column where it could tell people apart."""
    for column in columns_in(node):
        if find(column).is_unit:
            raise QueryError(
                f"the unit column {column.name} in {where} is not answered: it may stand in "
                "COUNT(DISTINCT ...), in an inner GROUP BY and in join keys only"
            )


def resolver(columns: Mapping[str, Mapping[str, Column]]) -> Resolve:
    """Find a qualified column among the sources of a SELECT."""

    def find(column: exp.Column) -> Column:
        source = columns.get(column.table)
        if source is None or column.name not in source:
            raise QueryError(f"the column {column.sql('duckdb')} is unknown here")
        return source[column.name]

    return find
