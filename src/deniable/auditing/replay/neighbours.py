"""Pairs of neighbouring tables on which private pipelines tend to break.

Tables are lists of rows, rows are dicts: what a pipeline reads them into is its own affair.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from deniable.errors import ParameterError, ParameterTypeError
from deniable.privacy.exact import Number, read_bounds, whole
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
    columns = _read("bounds", bounds)
    if not columns:
        raise ParameterError("bounds", "empty", "name one numeric column or more")
    for given in columns.values():
        read_bounds(given)
    listed = _read("keys", keys or {})
    if not all(isinstance(some, Sequence) for some in listed.values()):
        raise ParameterTypeError("keys", "a value", "must map columns to lists of values")
    table = _Table(columns, {name: list(some) for name, some in listed.items()}, unit)
    return _pairs(table, read_relation(relation), whole(rows_per_unit, "rows_per_unit"))


def _pairs(table: _Table, relation: Relation, many: int) -> Iterator[NeighbourPair]:
    for name, base, added in table.cases(many):
        if relation == Relation.ADD_REMOVE:
            yield NeighbourPair(name, base, base + added)
        elif base and all(table.unit is None or row[table.unit] is not None for row in added):
            before = [*base, table.row("replaced")]
            after = base + _renamed(added, table.unit, "replaced")
            if repr(before) != repr(after):
                yield NeighbourPair(name, before, after)


def _read(argument: str, given: object) -> dict[str, Any]:
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise ParameterTypeError(argument, type(given).__name__, "must map columns to values")
    return dict(given)


def _renamed(rows: list[Row], unit: str | None, name: str) -> list[Row]:
    if unit is None:
        return rows
    return [{**row, unit: name} for row in rows]


@dataclass(frozen=True)
class _Table:
    bounds: dict[str, tuple[Number, Number]]
    keys: dict[str, list[Any]]
    unit: str | None

    def row(self, whose: object, changed: Mapping[str, Any] | None = None) -> Row:
        """An ordinary row: the middle of the bounds, the first of the keys."""
        made: Row = {} if self.unit is None else {self.unit: whose}
        for column, (low, high) in self.bounds.items():
            made[column] = (float(low) + float(high)) / 2
        for column, some in self.keys.items():
            made[column] = some[0] if some else "a"
        return {**made, **(changed or {})}

    def cases(self, many: int) -> Iterator[tuple[str, list[Row], list[Row]]]:
        """What there is already, and what one more unit adds."""
        usual = [self.row(f"u{i}") for i in range(20)]
        yield "empty against one record", [], [self.row("new")]
        yield "one record against two", usual[:1], [self.row("new")]
        for column, (low, high) in self.bounds.items():
            for name, value in _values(low, high):
                added = [self.row("new", {column: value})]
                yield f"{column}: {name}", usual, added
                yield f"{column}: {name}, alone", [], added
            extremes = [self.row(f"u{i}", {column: low}) for i in range(20)]
            yield f"{column}: all at one end", extremes, [self.row("new", {column: high})]
        for column, some in self.keys.items():
            for key in (*some[1:2], "nobody declared this", None, "", 0):
                added = [self.row("new", {column: key})]
                yield f"{column}: the group {key!r} appears", usual, added
        if self.unit is not None:
            yield from self._units(usual, many)

    def _units(self, usual: list[Row], many: int) -> Iterator[tuple[str, list[Row], list[Row]]]:
        high = {column: ends[1] for column, ends in self.bounds.items()}
        heavy = [self.row("new", high) for _ in range(many)]
        yield f"a unit with {many:,} rows", usual, heavy
        yield f"a unit with {many:,} rows, alone", [], heavy
        for column, some in self.keys.items():
            spread = [self.row("new", {column: key}) for key in some]
            yield f"a unit in every group of {column}", usual, spread
            unknown = [self.row("new", {column: f"own group {i}"}) for i in range(many)]
            yield f"a unit in {many:,} groups of its own by {column}", usual, unknown
        yield "a unit without a name", usual, [self.row(None)]


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
