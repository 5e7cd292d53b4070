"""How the values of a real column become codes, and codes become values again.

All of it is declared: keys, bounds, edges. Nothing is looked up in the data.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from deniable.closed import read_mapping
from deniable.engines.base import quoted
from deniable.engines.literals import literal
from deniable.errors import ParameterError, ParameterTypeError
from deniable.privacy.exact import whole
from deniable.synthesis.domain import Codes
from deniable.synthesis.model.rounding import uniforms
from deniable.tables import (
    MOST_DOUBLE,
    NUMERIC,
    Bounds,
    ColumnType,
    PrivateTable,
    Schema,
    check_keys,
    read_keys,
)

BINS = 16
_MOST_CODES = 2000

Bins = int | Sequence[Any]


@dataclass(frozen=True)
class Coding:
    """A column: its declared values, or the edges of its bins; and whether it may be missing.

    Of k values or bins, code k means missing, where that is a category. Values that no code means
    are outside of the domain. Numbers and dates beyond the outer edges count in the outer bins. NaN
    and what lies beyond ±1e300 are missing, as NULL is. Values and edges are of the column's type,
    within the limits of constants.
    """

    name: str
    kind: ColumnType
    values: tuple[Any, ...] = ()
    edges: tuple[Any, ...] = ()
    missing: bool = False

    @property
    def size(self) -> int:
        return self._known + self.missing

    @property
    def _known(self) -> int:
        return len(self.values) if self.values else len(self.edges) - 1

    def sql(self) -> str:
        """The code of a row as an expression; NULL outside of the domain."""
        column = quoted(self.name.lower())
        none = f"WHEN {self._absent()} THEN {self._known if self.missing else 'NULL'}"
        if self.values:
            cases = [
                f"WHEN {column} = {self._written(value)} THEN {code}"
                for code, value in enumerate(self.values)
            ]
            return f"CASE {none} {' '.join(cases)} ELSE NULL END"
        cases = [
            f"WHEN {column} < {self._written(edge)} THEN {code}"
            for code, edge in enumerate(self.edges[1:-1])
        ]
        return f"CASE {none} {' '.join(cases)} ELSE {self._known - 1} END"

    def inside(self) -> str:
        """The condition that a row is inside of the domain; empty where every row is."""
        column = quoted(self.name.lower())
        if not self.values:
            return "" if self.missing else f"NOT ({self._absent()})"
        listed = ", ".join(map(self._written, self.values))
        return f"({column} IN ({listed}){f' OR {self._absent()}' if self.missing else ''})"

    def _absent(self) -> str:
        column = quoted(self.name.lower())
        if self.kind != ColumnType.NUMBER:
            return f"{column} IS NULL"
        low, high = (self._written(end) for end in (-MOST_DOUBLE, MOST_DOUBLE))
        return f"{column} IS NULL OR NOT ({column} BETWEEN {low} AND {high})"

    def _written(self, value: Any) -> str:
        return str(literal(self.kind, value).sql("duckdb"))

    def code(self, value: Any) -> int:
        """The code of a public value."""
        if isinstance(value, np.generic):
            value = plain_value(value)
        if isinstance(value, float) and not math.isfinite(value):
            value = None  # as in the data
        if value is None and self.missing:
            return self._known
        if self.values:
            for code, each in enumerate(self.values):
                if type(each) is type(value) and each == value:
                    return code
        elif value is not None and not isinstance(value, str | bool):
            try:
                return sum(value >= edge for edge in self.edges[1:-1])
            except TypeError:
                pass
        raise ParameterError(self.name, value, "is not in the declared domain of the column")

    def codes(self, given: Any) -> list[int]:
        """The codes of one public value, or of several."""
        values = given if isinstance(given, list | tuple | set) else [given]
        if not values:
            raise ParameterError("conditions", self.name, "name one value or more")
        return [self.code(value) for value in values]

    def decoded(self, codes: Codes) -> list[Any]:
        """Values of codes; within a bin any value is as good as another."""
        if self.values:
            known = [*self.values, None]
            return [known[code] for code in codes.tolist()]
        return [
            None if code == self._known else self._within(code, share)
            for code, share in zip(codes.tolist(), uniforms(codes.size).tolist(), strict=True)
        ]

    def _within(self, code: int, share: float) -> Any:
        low, high = self.edges[code], self.edges[code + 1]
        if self.kind == ColumnType.INTEGER:
            return int(low) + math.floor(share * (int(high) - int(low)))
        if self.kind == ColumnType.NUMBER:
            return float(low) + share * (float(high) - float(low))
        if self.kind == ColumnType.DATE:
            return low + timedelta(days=math.floor(share * (high - low).days))
        return low + timedelta(seconds=math.floor(share * (high - low).total_seconds()))

    def label(self, code: int) -> str:
        if code == self._known:
            return "missing"
        if self.values:
            return str(self.values[code])
        return f"{_shown(self.edges[code])} to {_shown(self.edges[code + 1])}"


def frozen(given: object) -> Coding:
    """A coding, made again of plain values that were read once: its SQL is the library's own."""
    if type(given) is not Coding:
        raise ParameterTypeError(
            "codings", type(given).__name__, "must be what dp.synthesize makes"
        )
    values, edges = ([plain_value(each) for each in part] for part in (given.values, given.edges))
    name, kind = plain_value(given.name), ColumnType(str.__str__(given.kind))
    check_keys(name, [*values, *edges], kind, "codings")
    return Coding(name, kind, tuple(values), tuple(edges), bool(given.missing))


def plain_value(value: Any, argument: str = "values") -> Any:
    """A declared value or edge in the plain type of Python, whatever class it came in."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return int.__int__(value) if isinstance(value, int) else float.__float__(value)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, datetime):
        whole_seconds = (value.hour, value.minute, value.second, value.microsecond)
        return datetime(value.year, value.month, value.day, *whole_seconds, value.tzinfo)
    if isinstance(value, date):
        return date(value.year, value.month, value.day)
    raise ParameterTypeError(argument, type(value).__name__, "are numbers, text, booleans or dates")


def read_bins(given: Mapping[str, Bins] | None) -> dict[str, Bins]:
    """Numbers of bins, or lists of edges, by column: read once."""
    read = read_mapping(given or {}, "bins", "map columns to a number of bins, or edges")
    return {
        name: tuple(each) if isinstance(each, list | tuple | np.ndarray) else each
        for name, each in read.items()
    }


def read_declared(given: Mapping[str, Sequence[Any]] | None) -> dict[str, tuple[Any, ...]]:
    """Declared values by column: read once."""
    read = read_mapping(given or {}, "keys", "map columns to values")
    return {name: read_keys(values) for name, values in read.items()}


def codings(
    table: PrivateTable,
    schema: Schema,
    *,
    columns: Sequence[str] | None,
    bins: Mapping[str, Bins],
    keys: Mapping[str, tuple[Any, ...]],
    bounds: Mapping[str, Bounds],
    missing: Sequence[str],
) -> tuple[Coding, ...]:
    """The codings of columns, from what the owner and the analyst declare, and bounds bought.

    All columns but the unit, unless some are named.
    """
    unit = table.unit.lower() if isinstance(table.unit, str) else None
    names = [name for name in schema.columns if name.lower() != unit]
    if columns is not None:
        names = list(dict.fromkeys(schema.find(name) for name in columns))
    if unit in {name.lower() for name in names}:
        raise ParameterError("columns", unit, "says whose row it is; it is not synthesised")
    for argument, given in (
        ("bins", bins),
        ("missing", missing),
        ("keys", keys),
        ("discover", bounds),
    ):
        for name in given:
            if schema.find(name) not in names:
                raise ParameterError(argument, name, "is not among the columns to synthesise")
    wanted = {schema.find(name): each for name, each in bins.items()}
    known = {**table.keys, **{schema.find(name): each for name, each in keys.items()}}
    absent = {schema.find(name) for name in missing}
    ends = {**table.bounds, **bounds}
    found = tuple(
        _coding(name, schema.columns[name], ends, wanted.get(name), known.get(name), name in absent)
        for name in names
    )
    if sum(each.size for each in found) > _MOST_CODES:
        largest = max(found, key=lambda each: each.size)
        raise ParameterError(
            "columns",
            len(found),
            f"have {sum(each.size for each in found):,} codes together, {_MOST_CODES:,} are the "
            f"most; {largest.name} has {largest.size:,}: group its values or leave it out",
        )
    return found


def _coding(  # noqa: PLR0917
    name: str,
    kind: ColumnType,
    bounds: Mapping[str, Bounds],
    bins: Bins | None,
    keys: tuple[Any, ...] | None,
    missing: bool,
) -> Coding:
    if bins is None and (keys is not None or kind == ColumnType.BOOLEAN):
        given = (False, True) if keys is None else keys
        check_keys(name, given, kind)
        values = tuple(value for value in given if value is not None)
        if not values:
            raise ParameterError("keys", name, "name a value beside None, or leave the column out")
        return Coding(name, kind, values=values, missing=missing or None in given)
    if bins is not None and not isinstance(bins, int | np.integer):
        return Coding(name, kind, edges=_read_edges(name, kind, bins), missing=missing)
    if kind in NUMERIC:
        ends = bounds.get(name)
        if ends is None:
            raise ParameterError(
                "columns",
                name,
                "has no declared bounds; declare bounds=, keys=, edges in bins=, or discover=",
            )
        edges = _even(ends, BINS if bins is None else bins, kind)
        check_keys(name, edges[:-1], kind, "bins")  # values beyond the last count below it
        return Coding(name, kind, edges=edges, missing=missing)
    raise ParameterError(
        "columns",
        name,
        f"holds {kind}, and its values are not public; declare keys=, "
        + ("or discover=" if kind == ColumnType.TEXT else "or give edges in bins="),
    )


def _even(ends: tuple[Fraction, Fraction], bins: int, kind: ColumnType) -> tuple[Any, ...]:
    low, high = ends
    count = whole(bins, "bins")
    if count > _MOST_CODES:
        raise ParameterError("bins", count, f"{_MOST_CODES:,} are the most")
    if kind == ColumnType.INTEGER:
        first, last = math.ceil(low), math.floor(high) + 1
        count = min(count, last - first)
        return tuple(first + (last - first) * place // count for place in range(count + 1))
    return tuple(float(low + (high - low) * place / count) for place in range(count + 1))


def _read_edges(name: str, kind: ColumnType, given: Sequence[Any]) -> tuple[Any, ...]:
    if isinstance(given, str | bytes) or not isinstance(given, Sequence | np.ndarray):
        raise ParameterTypeError("bins", name, "give a number of bins, or a list of edges")
    if kind in (ColumnType.TEXT, ColumnType.BOOLEAN):
        raise ParameterTypeError("bins", name, f"the column holds {kind}; it has no edges")
    edges = tuple(plain_value(edge, "bins") for edge in given)
    if any(edge is None for edge in edges):
        raise ParameterTypeError("bins", name, f"the column holds {kind}; give edges of that type")
    check_keys(name, edges, kind, "bins")
    if kind == ColumnType.NUMBER:
        edges = tuple(float(edge) + 0.0 for edge in edges)  # with one zero
    if len(edges) < 2 or any(a >= b for a, b in pairwise(edges)):
        raise ParameterError("bins", name, "edges must rise, and be two or more")
    return edges


def _shown(edge: Any) -> str:
    return f"{edge:g}" if isinstance(edge, float) else str(edge)
