"""Pairs of neighbouring tables on which private pipelines tend to break.

Tables are lists of rows, rows are dicts: what a pipeline reads them into is its own affair.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from deniable.errors import ParameterError, ParameterTypeError
from deniable.privacy.exact import Number, read_bounds
from deniable.privacy.units import Relation, read_relation

Row = dict[str, Any]

_MANY = 1000


@dataclass(frozen=True)
class NeighbourPair:
    """Two tables that differ in one unit, and what is nasty about it."""

    name: str
    data: list[Row]
    neighbour: list[Row]


def nasty_neighbours(
    *,
    bounds: Mapping[str, tuple[Number, Number]],
    keys: Mapping[str, Sequence[Any]] | None = None,
    unit: str | None = None,
    relation: Relation | str = Relation.ADD_REMOVE,
    rows_per_unit: int = _MANY,
) -> Iterator[NeighbourPair]:
    """Pairs of neighbours for a table with these numeric columns, keys and unit.

    An empty table against one record; records at the ends of the bounds and far beyond; NaN,
    infinities and NULL; numbers that overflow; text where a number belongs; a group that appears;
    a key that nobody declared; and, where there is a `unit`, one with very many rows, one in every
    group, and one whose identifier is missing. Without a unit every row is one.
    """
    if not bounds:
        raise ParameterError("bounds", "empty", "name one numeric column or more")
    for column, given in bounds.items():
        if not isinstance(column, str):
            raise ParameterTypeError("bounds", column, "must map columns to (low, high)")
        read_bounds(given)
    kind = read_relation(relation)
    table = _Table(dict(bounds), {name: list(some) for name, some in (keys or {}).items()}, unit)
    for name, base, added in table.cases(rows_per_unit):
        if kind == Relation.ADD_REMOVE:
            yield NeighbourPair(name, base, base + added)
        elif base:
            plain = [table.row(unit_id="replaced")]
            yield NeighbourPair(name, base + plain, base + _renamed(added, unit, "replaced"))


def _renamed(rows: list[Row], unit: str | None, name: str) -> list[Row]:
    if unit is None:
        return rows
    return [{**row, unit: row[unit] if row[unit] is None else name} for row in rows]


@dataclass(frozen=True)
class _Table:
    bounds: dict[str, tuple[Number, Number]]
    keys: dict[str, list[Any]]
    unit: str | None

    def row(self, *, unit_id: object, **changed: Any) -> Row:
        """An ordinary row: the middle of the bounds, the first of the keys."""
        made: Row = {} if self.unit is None else {self.unit: unit_id}
        for column, (low, high) in self.bounds.items():
            made[column] = (float(low) + float(high)) / 2
        for column, some in self.keys.items():
            made[column] = some[0] if some else "a"
        return {**made, **changed}

    def cases(self, many: int) -> Iterator[tuple[str, list[Row], list[Row]]]:
        """What there is already, and what one more unit adds."""
        usual = [self.row(unit_id=f"u{i}") for i in range(20)]
        yield "empty against one record", [], [self.row(unit_id="new")]
        yield "one record against two", usual[:1], [self.row(unit_id="new")]
        for column, (low, high) in self.bounds.items():
            for name, value in _values(low, high):
                added = [self.row(unit_id="new", **{column: value})]
                yield f"{column}: {name}", usual, added
                yield f"{column}: {name}, alone", [], added
            extremes = [self.row(unit_id=f"u{i}", **{column: low}) for i in range(20)]
            yield f"{column}: all at one end", extremes, [self.row(unit_id="new", **{column: high})]
        for column, some in self.keys.items():
            for key in (*some[1:2], "nobody declared this", None, "", 0):
                added = [self.row(unit_id="new", **{column: key})]
                yield f"{column}: the group {key!r} appears", usual, added
        if self.unit is not None:
            yield from self._units(usual, many)

    def _units(self, usual: list[Row], many: int) -> Iterator[tuple[str, list[Row], list[Row]]]:
        high = {column: ends[1] for column, ends in self.bounds.items()}
        heavy = [self.row(unit_id="new", **high) for _ in range(many)]
        yield f"a unit with {many:,} rows", usual, heavy
        yield f"a unit with {many:,} rows, alone", [], heavy
        for column, some in self.keys.items():
            spread = [self.row(unit_id="new", **{column: key}) for key in some]
            yield f"a unit in every group of {column}", usual, spread
            unknown = [self.row(unit_id="new", **{column: f"own group {i}"}) for i in range(many)]
            yield f"a unit in {many:,} groups of its own by {column}", usual, unknown
        yield "a unit without a name", usual, [self.row(unit_id=None)]


def _values(low: Number, high: Number) -> Iterator[tuple[str, Any]]:
    span = float(high) - float(low)
    yield "the lower bound", low
    yield "the upper bound", high
    yield "below the bounds", float(low) - 1000 * span
    yield "above the bounds", float(high) + 1000 * span
    yield "NaN", math.nan
    yield "infinity", math.inf
    yield "minus infinity", -math.inf
    yield "NULL", None
    yield "minus zero", -0.0
    yield "the least positive double", 5e-324
    yield "the largest double", 1.7976931348623157e308
    yield "beyond 64 bits", 2**63
    yield "beyond any double", 10**400
    yield "text", "not a number"
    yield "empty text", ""
