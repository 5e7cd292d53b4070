"""Tables: private ones, with what their owner declares about them, and public ones.

Everything here is public metadata. Nothing is read from the rows: types come from the file's or
database's schema, or are declared; bounds, keys and contribution bounds are declared.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from deniable.errors import ParameterError, ParameterTypeError
from deniable.held import Held, held_table, opened
from deniable.privacy.exact import Number, positive, read_bounds, whole
from deniable.privacy.units import ROW, Relation, Unit, read_relation

Bounds = tuple[Fraction, Fraction]


class ColumnType(StrEnum):
    """What a column holds."""

    INTEGER = "integer"
    NUMBER = "number"
    TEXT = "text"
    BOOLEAN = "boolean"
    DATE = "date"
    TIMESTAMP = "timestamp"


SQL_TYPES = {
    ColumnType.INTEGER: "BIGINT",
    ColumnType.NUMBER: "DOUBLE",
    ColumnType.TEXT: "VARCHAR",
    ColumnType.BOOLEAN: "BOOLEAN",
    ColumnType.DATE: "DATE",
    ColumnType.TIMESTAMP: "TIMESTAMP",
}
"""How questions write the types: in the words of DuckDB."""

NUMERIC = frozenset({ColumnType.INTEGER, ColumnType.NUMBER})
"""The types that have bounds."""


@runtime_checkable
class EngineTable(Protocol):
    """A table that lives in an engine: `dp.duckdb("clinic.db").table("visits")`."""

    @property
    def label(self) -> str:
        """Where it is and what it is called, without secrets."""


Source = str | Path | Any
"""A path or glob of CSV or Parquet files; an Arrow, pandas or polars table; an engine's table.

A table in memory is held: neither it nor what holds it shows a row."""


@dataclass(frozen=True, init=False, eq=False)
class PublicTable:
    """A table that holds nothing private: it may be joined, and its values may show."""

    source: Source
    columns: Mapping[str, ColumnType] | None
    version: str

    def __init__(
        self, source: Source, *, columns: Mapping[str, str] | None = None, version: str = ""
    ) -> None:
        source = hold(source)
        object.__setattr__(self, "source", read_source(source))
        object.__setattr__(self, "columns", read_columns(columns))
        object.__setattr__(self, "version", version)


@dataclass(frozen=True, init=False, eq=False)
class PrivateTable:
    """A table about people, with what its owner declares.

    Args:
        source: a path or glob (CSV, Parquet), an Arrow, pandas or polars table, an engine's table.
        unit: the column that says whose row it is, or `dp.ROW` where every row is one person.
        population: whose budget is spent, "clinic/patient"; all tables of one population share it.
        columns: names and types (integer, number, text, boolean, date, timestamp); needed for CSV.
        bounds: (low, high) of numeric columns; values beyond are clamped, never refused.
        keys: the values of a column that may be grouped by and shown without selection.
        max_rows: how many rows of one unit count in full; more are scaled down together. Where it
            is left out, the bound is bought with the first question.
        max_groups: in how many groups one unit counts, where groups are selected privately; bought
            likewise.
        cap_rows: a promise about the data: no unit has more rows. Total intervals rest on it.
        grid: the step of the fixed-point numbers in which a column is summed.
        size: the number of rows, if that is public; it helps to foresee errors.
        version: a public label of the data; a new one makes old answers stale, not free.
        relation: "add_remove" (one unit more or less), or "replace".
    """

    source: Source
    unit: str | Unit
    population: str
    columns: Mapping[str, ColumnType] | None
    bounds: Mapping[str, Bounds]
    keys: Mapping[str, tuple[Any, ...]]
    max_rows: int | None
    max_groups: int | None
    cap_rows: int | None
    grid: Mapping[str, Fraction]
    size: int | None
    version: str
    relation: Relation

    def __init__(
        self,
        source: Source,
        *,
        unit: str | Unit,
        population: str,
        columns: Mapping[str, str] | None = None,
        bounds: Mapping[str, tuple[Number, Number]] | None = None,
        keys: Mapping[str, Sequence[Any]] | None = None,
        max_rows: int | None = None,
        max_groups: int | None = None,
        cap_rows: int | None = None,
        grid: Mapping[str, Number] | None = None,
        size: int | None = None,
        version: str = "",
        relation: Relation | str = Relation.ADD_REMOVE,
    ) -> None:
        source = hold(source)
        named: object = unit
        if named is not ROW and not (isinstance(named, str) and named):
            raise ParameterTypeError(
                "unit", unit, "must name the column that says whose row it is, or be dp.ROW"
            )
        people: object = population
        if not (isinstance(people, str) and re.fullmatch(r"[^\x00-\x1f]{1,200}", people)):
            raise ParameterError("population", population, "must be a short name: 'clinic/patient'")
        if not isinstance(version, str):
            raise ParameterTypeError("version", version, "must be text")
        for name, value in {
            "source": read_source(source),
            "unit": unit,
            "population": population,
            "columns": read_columns(columns),
            "bounds": _each("bounds", bounds, read_bounds),
            "keys": _each("keys", keys, read_keys),
            "max_rows": 1 if unit is ROW else _optional(max_rows, "max_rows"),
            "max_groups": _optional(max_groups, "max_groups"),
            "cap_rows": _optional(cap_rows, "cap_rows"),
            "grid": _each("grid", grid, lambda step: positive(step, "grid")),
            "size": _optional(size, "size"),
            "version": version,
            "relation": read_relation(relation),
        }.items():
            object.__setattr__(self, name, value)

    def describe(self) -> dict[str, object]:
        """The public metadata that an answer depends on, for the ledger."""
        return {
            "source": label_of(self.source),
            "unit": str(self.unit),
            "bounds": {name: [str(low), str(high)] for name, (low, high) in self.bounds.items()},
            "keys": {name: [repr(key) for key in keys] for name, keys in self.keys.items()},
            "max_rows": self.max_rows,
            "max_groups": self.max_groups,
            "cap_rows": self.cap_rows,
            "grid": {name: str(step) for name, step in self.grid.items()},
            "version": self.version,
            "relation": str(self.relation),
        }


@dataclass(frozen=True)
class Schema:
    """Names and types of a table's columns, in order; `exact` ones are read as they stand."""

    columns: Mapping[str, ColumnType] = field(default_factory=dict)
    exact: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        lowered: dict[str, str] = {}
        for name in self.columns:
            other = lowered.setdefault(name.lower(), name)
            if other != name:
                raise ParameterError("column", name, f"is one with {other}, but for its case")

    def find(self, name: str) -> str:
        """The column of this name, whatever its case."""
        for column in self.columns:
            if column.lower() == name.lower():
                return column
        raise ParameterError("column", name, f"is unknown; {nearest(name, self.columns)}")


def nearest(name: str, known: Any) -> str:
    """A hint at names that look alike."""
    names = [str(each) for each in known]
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    if close:
        return f"did you mean {' or '.join(close)}?"
    return f"there are {', '.join(names[:10])}" + (" and others" if len(names) > 10 else "")


def check_metadata(table: PrivateTable, schema: Schema) -> None:
    """Refuse metadata about columns that do not exist or are of the wrong type."""
    for name in schema.columns:
        if name.lower().startswith("deniable_"):
            raise ParameterError("column", name, "names that begin with deniable_ are reserved")
    if isinstance(table.unit, str):
        unit = schema.find(table.unit)
        if unit not in schema.exact or schema.columns[unit] not in _UNIT_TYPES:
            raise ParameterError(
                "unit",
                unit,
                "must hold whole numbers of 64 bits, text or dates as they stand, or two people "
                "may become one; declare it as text: columns={..., 'id': 'text'}",
            )
    for argument in ("bounds", "keys", "grid"):
        for name in getattr(table, argument):
            kind = schema.columns.get(name)
            if kind is None:
                raise ParameterError(
                    argument, name, f"no such column; {nearest(name, schema.columns)}"
                )
            if argument == "keys":
                check_keys(name, table.keys[name], kind)
            elif kind not in NUMERIC:
                raise ParameterError(argument, name, f"the column holds {kind}, not numbers")


_UNIT_TYPES = frozenset({ColumnType.INTEGER, ColumnType.TEXT, ColumnType.DATE})


def grid_of(bounds: Bounds, step: Fraction | None, *, integer: bool) -> Fraction:
    """The declared step; else 1 for integers and the power of two just below span/2^24."""
    low, high = bounds
    if step is not None:
        return step
    if integer:
        return Fraction(1)
    span, power = (high - low) / (1 << 24), Fraction(1)
    while power > span:
        power /= 2
    while power * 2 <= span:
        power *= 2
    return power


def hold(source: Source) -> Source:
    """A path or an engine's table as it is; whatever is in memory held, so that no frame shows it.

    What a class does not have is no engine's: a pandas table answers to the names of its columns.
    """
    if isinstance(source, str | Path | Held) or hasattr(type(source), "label"):
        return source
    return held_table(source)


def read_source(source: Source) -> Source:
    """A path as text; tables in memory held; whatever else as it is."""
    source = hold(source)
    if isinstance(source, str | Path):
        text = str(source)
        if not re.search(r"\.(parquet|csv|csv\.gz|tsv)$", text.lower()):
            raise ParameterError("source", text, "must end in .parquet, .csv, .csv.gz or .tsv")
        return text
    if isinstance(opened(source), int | float | bytes | list | dict | set | None):
        raise ParameterTypeError(
            "source",
            type(opened(source)).__name__,
            "must be a path, an Arrow, pandas or polars table, or dp.duckdb(...).table(name)",
        )
    return source


def label_of(source: Source) -> str:
    """Which table it is: its path, or its name in an engine; those in memory have none."""
    if isinstance(source, str):
        return str(Path(source).absolute())
    return source.label if isinstance(source, EngineTable) else ""


def read_columns(columns: Mapping[str, str] | None) -> Mapping[str, ColumnType] | None:
    """Declared types by column."""
    if columns is None:
        return None
    found = {}
    for name, kind in _mapping("columns", columns).items():
        try:
            found[str(name)] = ColumnType(kind)
        except ValueError:
            allowed = ", ".join(ColumnType)
            raise ParameterError("columns", kind, f"types are {allowed}") from None
    return found


def read_keys(values: Sequence[Any]) -> tuple[Any, ...]:
    """Declared values of a column: different, plain, in the order in which they will show."""
    if isinstance(values, str | bytes) or not isinstance(values, Sequence | range):
        raise ParameterTypeError("keys", type(values).__name__, "must be a list of values")
    keys = tuple(values)
    for key in keys:
        if not isinstance(key, bool | int | str | date | None):
            raise ParameterTypeError(
                "keys", type(key).__name__, "are whole numbers, text, booleans, dates or None"
            )
        if isinstance(key, datetime) and key.tzinfo is not None:
            raise ParameterError("keys", key, "times have no zone here; give them in UTC, without")
        if isinstance(key, int) and abs(key) >= 1 << 63:
            raise ParameterError("keys", key, "whole numbers have 64 bits")
        if isinstance(key, str) and key.encode(errors="replace").decode() != key:
            raise ParameterError("keys", "a text", "must be text in UTF-8")
    if not keys or len({(type(key), key) for key in keys}) != len(keys):
        raise ParameterError("keys", len(keys), "must be one or more different values")
    return keys


def check_keys(name: str, keys: tuple[Any, ...], kind: ColumnType | None) -> None:
    """Refuse keys that the column cannot hold: they would never be met."""
    fits = {
        ColumnType.INTEGER: lambda key: isinstance(key, int) and not isinstance(key, bool),
        ColumnType.TEXT: lambda key: isinstance(key, str),
        ColumnType.BOOLEAN: lambda key: isinstance(key, bool),
        ColumnType.DATE: lambda key: isinstance(key, date) and not isinstance(key, datetime),
        ColumnType.TIMESTAMP: lambda key: isinstance(key, datetime),
    }.get(kind or ColumnType.TEXT)
    if kind is not None and fits is not None:
        for key in keys:
            if key is not None and not fits(key):
                raise ParameterError("keys", key, f"{name} holds {kind}; give values of that type")


def _optional(value: int | None, argument: str) -> int | None:
    return None if value is None else whole(value, argument)


def _mapping(argument: str, given: object) -> Mapping[Any, Any]:
    if not isinstance(given, Mapping):
        raise ParameterTypeError(argument, type(given).__name__, "must map columns to values")
    return given


def _each(argument: str, given: Mapping[str, Any] | None, read: Any) -> dict[str, Any]:
    return {str(name): read(value) for name, value in _mapping(argument, given or {}).items()}
