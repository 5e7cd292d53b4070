"""What an owner declares about columns, held against those that a table has."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any

from deniable.errors import ParameterError
from deniable.tables import (
    NUMERIC,
    ColumnType,
    PrivateTable,
    Schema,
    check_bounds,
    check_keys,
    nearest,
)

_UNIT_TYPES = frozenset({ColumnType.INTEGER, ColumnType.TEXT, ColumnType.DATE})
_BY_COLUMN = ("bounds", "keys", "grid")


def fitted(table: PrivateTable, schema: Schema) -> PrivateTable:
    """The table with what is declared under the names of its columns, found whatever their case.

    Metadata about columns that do not exist or are of the wrong type are refused.
    """
    for name in schema.columns:
        if name.lower().startswith("deniable_"):
            raise ParameterError("column", name, "names that begin with deniable_ are reserved")
    if isinstance(table.unit, str):
        _check_unit(schema.find(table.unit), schema)
    made = copy(table)
    for argument in _BY_COLUMN:
        object.__setattr__(made, argument, _named(argument, getattr(table, argument), schema))
    for name, keys in made.keys.items():
        check_keys(name, keys, schema.columns[name])
    for argument in ("bounds", "grid"):
        for name in getattr(made, argument):
            if schema.columns[name] not in NUMERIC:
                kind = schema.columns[name]
                raise ParameterError(argument, name, f"the column holds {kind}, not numbers")
    for name, bounds in made.bounds.items():
        check_bounds(name, bounds, schema.columns[name], made.grid.get(name))
    return made


def _check_unit(unit: str, schema: Schema) -> None:
    if unit not in schema.exact or schema.columns[unit] not in _UNIT_TYPES:
        raise ParameterError(
            "unit",
            unit,
            "must hold whole numbers of 64 bits, text or dates as they stand, or two people "
            "may become one; declare it as text: columns={..., 'id': 'text'}",
        )


def _named(argument: str, given: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    """By the names that columns have; no two of those that were given are of one column."""
    known = {column.lower(): column for column in schema.columns}
    found: dict[str, Any] = {}
    for name, value in given.items():
        column = known.get(name.lower())
        if column is None:
            raise ParameterError(argument, name, f"no such column; {nearest(name, known.values())}")
        if column in found:
            raise ParameterError(argument, name, "is declared twice, but for its case")
        found[column] = value
    return found
