"""Tables: private ones, with what their owner declares about them, and public ones.

Everything here is public metadata. Nothing is read from the rows: types come from the file's or
database's schema, or are declared; bounds, keys and contribution bounds are declared.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, fields
from datetime import date, datetime
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from deniable.closed import exactly, frozen, is_engine_table, read_text
from deniable.errors import ParameterError, ParameterTypeError
from deniable.held import Held, frameless, held_table
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

LEAST_DOUBLE = min(Fraction(1, 10**290), Fraction(1e-290))
MOST_DOUBLE = max(Fraction(10**300), Fraction(1e300))
"""What a double in a statement is at least and at most, but for 0: steps and ends follow from it
by a few products, and must not become 0 or infinite."""

MOST_WHOLE = (1 << 63) - 1
LONGEST_TEXT = 1_000  # bytes
_SIZES = (
    "a number is 0, or between 1e-290 and 1e300 in size, and so is each step or end that follows "
    "from the bounds; scale the values"
)


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
    """A table that holds nothing private: it may be joined, and its values may show.

    A view runs what its owner wrote with the rights of who asks. It is refused unless `row_by_row`
    is said: it is computed from public rows alone, without code of people who are not trusted.
    """

    source: Source
    columns: Mapping[str, ColumnType] | None
    version: str
    row_by_row: bool

    @frameless
    def __init__(
        self,
        source: Source,
        *,
        columns: Mapping[str, str] | None = None,
        version: str = "",
        row_by_row: bool = False,
    ) -> None:
        source = hold(source)
        object.__setattr__(self, "source", read_source(source))
        object.__setattr__(self, "columns", read_columns(columns))
        object.__setattr__(self, "version", read_text(version, "version"))
        object.__setattr__(self, "row_by_row", _truth(row_by_row, "row_by_row"))


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
        most_rows: a promise about the data: the table has no more rows. A question that could fill
            the engine's memory and disk with so many is refused.
        grid: the step of the fixed-point numbers in which a column is summed.
        size: the number of rows, if that is public; it helps to foresee errors.
        version: a public label of the data; a new one makes old answers stale, not free.
        relation: "add_remove" (one unit more or less), or "replace".
        row_by_row: a promise about a view: each of its rows comes from one row of the same unit, by
            nothing that can fail and without chance. Views are refused without it.
        looked: bounds, keys or max_rows were chosen by looking at the data. Answers say so.
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
    most_rows: int | None
    grid: Mapping[str, Fraction]
    size: int | None
    version: str
    relation: Relation
    row_by_row: bool
    looked: bool

    @frameless
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
        most_rows: int | None = None,
        grid: Mapping[str, Number] | None = None,
        size: int | None = None,
        version: str = "",
        relation: Relation | str = Relation.ADD_REMOVE,
        row_by_row: bool = False,
        looked: bool = False,
    ) -> None:
        source = hold(source)
        named: object = unit
        if named is not ROW and not (isinstance(named, str) and named):
            raise ParameterTypeError(
                "unit", unit, "must name the column that says whose row it is, or be dp.ROW"
            )
        people = read_text(population, "population")
        if not re.fullmatch(r"[^\x00-\x1f]{1,200}", people):
            raise ParameterError("population", population, "must be a short name: 'clinic/patient'")
        if not isinstance(version, str):
            raise ParameterTypeError("version", version, "must be text")
        for name, value in {
            "source": read_source(source),
            "unit": unit if named is ROW else read_text(unit, "unit"),
            "population": people,
            "columns": read_columns(columns),
            "bounds": _each("bounds", bounds, read_column_bounds),
            "keys": _each("keys", keys, read_keys),
            "max_rows": 1 if unit is ROW else _optional(max_rows, "max_rows"),
            "max_groups": _optional(max_groups, "max_groups"),
            "cap_rows": _optional(cap_rows, "cap_rows"),
            "most_rows": _optional(most_rows, "most_rows"),
            "grid": _each("grid", grid, _read_step),
            "size": _optional(size, "size"),
            "version": read_text(version, "version"),
            "relation": read_relation(relation),
            "row_by_row": _truth(row_by_row, "row_by_row"),
            "looked": _truth(looked, "looked"),
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
            "most_rows": self.most_rows,
            "grid": {name: str(step) for name, step in self.grid.items()},
            "version": self.version,
            "relation": str(self.relation),
        }


@dataclass(frozen=True)
class Schema:
    """Names and types of a table's columns, in order; `exact` ones are read as they stand.

    `places` are those of decimal columns: their values are whole numbers of 10^-k.
    """

    columns: Mapping[str, ColumnType] = field(default_factory=dict)
    exact: frozenset[str] = frozenset()
    places: Mapping[str, int] = field(default_factory=dict)

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


def grid_of(bounds: Bounds, step: Fraction | None, *, integer: bool) -> Fraction:
    """The declared step; else 1 for integers and the power of two just below span/2^24."""
    low, high = bounds
    if step is not None:
        return step
    if integer:
        return Fraction(1)
    return power_of_two_below((high - low) / (1 << 24))


def power_of_two_below(value: Fraction) -> Fraction:
    """The largest power of two that is no larger."""
    step = Fraction(1)
    while step > value:
        step /= 2
    while step * 2 <= value:
        step *= 2
    return step


def read_table(value: object, wanted: str) -> PrivateTable | PublicTable:
    """A table, no subclass, with a copy of what is declared: nobody else can change it."""
    made = copy(exactly(value, (PrivateTable, PublicTable), "tables", wanted))
    assert isinstance(made, PrivateTable | PublicTable)
    object.__setattr__(made, "source", hold(made.source))
    for each in fields(made):
        if each.name not in ("source", "unit"):
            object.__setattr__(made, each.name, frozen(getattr(value, each.name), each.name))
    return made


def hold(source: Source) -> Source:
    """A path or an engine's table as it is; a table in memory held, so that no frame shows it."""
    if isinstance(source, str | Path) or type(source) is Held or is_engine_table(source):
        return source
    return held_table(source)


def unfit(kind: ColumnType, value: object) -> str:
    """Why a value cannot stand in a statement beside a column of a type; empty if it can.

    Beside what does not fit, an engine could raise for one row and not for others.
    """
    fits = {
        ColumnType.INTEGER: isinstance(value, int) and not isinstance(value, bool),
        ColumnType.NUMBER: isinstance(value, int | float | Fraction)
        and not isinstance(value, bool),
        ColumnType.TEXT: isinstance(value, str),
        ColumnType.BOOLEAN: isinstance(value, bool),
        ColumnType.DATE: isinstance(value, date) and not isinstance(value, datetime),
        ColumnType.TIMESTAMP: isinstance(value, datetime),
    }[kind]
    if not fits:
        return "give values of that type"
    if isinstance(value, str):
        return _unfit_text(value)
    if isinstance(value, datetime) and value.tzinfo is not None:
        return "times have no zone here; give them in UTC, without"
    if kind == ColumnType.INTEGER and isinstance(value, int) and abs(value) > MOST_WHOLE:
        return f"a whole number lies between -{MOST_WHOLE:,} and {MOST_WHOLE:,}"
    if kind == ColumnType.NUMBER and isinstance(value, int | float | Fraction):
        if isinstance(value, float) and not math.isfinite(value):
            return "a number is finite"
        if value and not LEAST_DOUBLE <= abs(Fraction(value)) <= MOST_DOUBLE:
            return _SIZES
    return ""


def _unfit_text(value: str) -> str:
    try:
        size = len(value.encode())
    except UnicodeError:
        return "a text is in UTF-8"
    if "\0" in value or size > LONGEST_TEXT:
        return f"a text has {LONGEST_TEXT:,} bytes at most, and no NUL"
    return ""


def read_column_bounds(value: tuple[Number, Number]) -> Bounds:
    """Read the bounds (low, high) of a column."""
    bounds = read_bounds(value)
    for end in bounds:
        if wrong := unfit(ColumnType.NUMBER, end):
            raise ParameterError("bounds", _shown(bounds), wrong)
    return bounds


def check_bounds(
    name: str, bounds: Bounds, kind: ColumnType | None, step: Fraction | None = None
) -> None:
    """Refuse bounds that a column of the type cannot have, or whose grid no statement can hold."""
    if kind == ColumnType.INTEGER:
        wrong = next(filter(None, (unfit(kind, int(end)) for end in bounds)), "")
    elif kind == ColumnType.NUMBER:
        wrong = unfit(kind, grid_of(bounds, step, integer=False))
    else:
        return
    if wrong:
        raise ParameterError("bounds", _shown(bounds), f"{name} holds {kind}; {wrong}")


def _shown(bounds: Bounds) -> tuple[float, float]:
    return float(bounds[0]), float(bounds[1])


def _read_step(value: Number) -> Fraction:
    step = positive(value, "grid")
    if wrong := unfit(ColumnType.NUMBER, step):
        raise ParameterError("grid", float(step), wrong)
    return step


def read_source(source: Source) -> Source:
    """A path as text; tables in memory held; whatever else as it is."""
    source = hold(source)
    if isinstance(source, str | Path):
        text = str(source)
        if not re.search(r"\.(parquet|csv|csv\.gz|tsv)$", text.lower()):
            raise ParameterError("source", text, "must end in .parquet, .csv, .csv.gz or .tsv")
        return text
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
    if isinstance(values, str | bytes) or not issubclass(type(values), Sequence):
        raise ParameterTypeError("keys", type(values).__name__, "must be a list of values")
    keys = tuple(map(_own, values))  # one that is equal to another is the same one
    for key in keys:
        if not isinstance(key, bool | int | str | date | None):
            raise ParameterTypeError(
                "keys", type(key).__name__, "are whole numbers, text, booleans, dates or None"
            )
        if isinstance(key, int) and abs(key) > MOST_WHOLE:
            raise ParameterError("keys", key, "whole numbers have 64 bits")
        if isinstance(key, str) and (wrong := unfit(ColumnType.TEXT, key)):
            raise ParameterError("keys", "a text", wrong)
        if isinstance(key, datetime) and (wrong := unfit(ColumnType.TIMESTAMP, key)):
            raise ParameterError("keys", key, wrong)
    if not keys or len({(type(key), key) for key in keys}) != len(keys):
        raise ParameterError("keys", len(keys), "must be one or more different values")
    return keys


def _own(key: Any) -> Any:
    """A value of Python's own type: of subclasses, two that are equal would be two keys."""
    try:
        if isinstance(key, datetime):
            return datetime.combine(date(*key.timetuple()[:3]), key.timetz())
        if isinstance(key, date):
            return date(key.year, key.month, key.day)
    except (TypeError, ValueError):  # no time at all
        raise ParameterTypeError("keys", type(key).__name__, "is no value of a column") from None
    if isinstance(key, str):
        return str.__str__(key)
    return int.__int__(key) if isinstance(key, int) and not isinstance(key, bool) else key


def check_keys(
    name: str, keys: Sequence[Any], kind: ColumnType | None, argument: str = "keys"
) -> None:
    """Refuse values that the column cannot hold: they would never be met."""
    if kind is None:
        return
    for key in keys:
        if key is not None and (wrong := unfit(kind, key)):
            raise ParameterError(argument, _plain(key), f"{name} holds {kind}; {wrong}")


def _plain(key: object) -> object:
    """As it may stand in a message."""
    return "a text" if isinstance(key, str) and _unfit_text(key) else key


def _optional(value: int | None, argument: str) -> int | None:
    return None if value is None else whole(value, argument)


def _truth(value: object, argument: str) -> bool:
    if not isinstance(value, bool):
        raise ParameterTypeError(argument, type(value).__name__, "must be True or False")
    return value


def _mapping(argument: str, given: object) -> Mapping[Any, Any]:
    if not isinstance(given, Mapping):
        raise ParameterTypeError(argument, type(given).__name__, "must map columns to values")
    return given


def _each(argument: str, given: Mapping[str, Any] | None, read: Any) -> dict[str, Any]:
    return {str(name): read(value) for name, value in _mapping(argument, given or {}).items()}
