"""Sums of a table, computed where it is: the same whole numbers as `sums.py` makes of arrays.

A statement reads bounded rows u0, u1, ... (and t, or the class k), makes whole numbers of them, and
checks their squared length in whole numbers before they are summed: the sensitivity holds whatever
an engine's floats do. What is NULL, NaN or infinite makes a row count as nothing.

Some engines raise an error where a product, a quotient or EXP of doubles that are not 0 becomes 0,
or leaves the doubles; the error would tell of a row. So whatever is multiplied or divided is 0 or
at least `TINY` in size, factors are `1/TINY` at most, and scores are cut at `_SCORE`: no product of
three leaves the doubles.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, singledispatch
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from deniable.engines.base import Rows as EngineRows
from deniable.engines.base import Step, quoted
from deniable.engines.literals import double_literal, literal, whole_literal
from deniable.learning.rows import GRID, SQUARE_GRID, Floats, Ranges, steps
from deniable.learning.sums import (
    DIAGONAL,
    OFF_DIAGONAL,
    CellCounts,
    Gradients,
    GroupSums,
    Integers,
    Moments,
)
from deniable.tables import LEAST_DOUBLE, ColumnType

_FINITE = "BETWEEN -1.7976931348623157e308 AND 1.7976931348623157e308"
BOUNDED, KEPT = "deniable_bounded", "deniable_kept"
AT_LEAST_1 = "CASE WHEN length > 1e0 THEN length ELSE 1e0 END"
TINY = 1e-100  # far below one step of any grid
_SCORE = 100.0  # the square of e to the power of -100 is a double yet


@dataclass(frozen=True)
class Source:
    """Columns of a private table that are learned from, with what is declared about them.

    `rows` is how many rows of one unit count; others are left out, by the unit's own rows alone:
    the first in the order of `columns`, which are all that the table has. Rows that tie are equal
    in every column, so that no engine, plan or other row decides which of them count.
    """

    table: str
    columns: tuple[str, ...]
    x: tuple[str, ...]
    kinds: tuple[ColumnType, ...]
    y: str | None
    y_kind: ColumnType | None
    unit: str | None
    rows: int
    ranges: Ranges
    classes: tuple[Any, ...]
    y_ends: tuple[float, float] | None

    @property
    def constants(self) -> tuple[Any, ...]:
        """The public values that statements compare columns with."""
        return (*self.ranges.low, *self.ranges.high, *self.classes, *(self.y_ends or ()))

    def tables(self) -> dict[str, str]:
        """By name, the SELECTs that make BOUNDED: u0, u1, ... of length 1 at most, and t or k.

        Each is a table of its own: a planner that put one into the next would write out every
        number as often as it is used. Absent rows are left out.
        """
        middle, scale = self.ranges.middle, self.ranges.scale
        centred, units, whole = [], [], []
        for place, (low, high) in enumerate(zip(self.ranges.low, self.ranges.high, strict=True)):
            value = f"{clamped(f'c{place}', low, high)} - {number(middle[place])}"
            centred.append(f"{value} AS m{place}")
            units.append(f"{_quotient(f'm{place}', scale[place])} AS v{place}")
            whole.append(f"c{place} {_FINITE}")
        kept = ""
        if self.classes:
            whole.append("k IS NOT NULL")
            centred.append("k")
            units.append("k")
            kept = ", k"
        elif self.y_ends is not None:
            low, high = self.y_ends
            value = f"{clamped('y', low, high)} - {number((low + high) / 2)}"
            centred.append(f"{value} AS my")
            units.append(f"{_quotient('my', (high - low) / 2)} AS t")
            whole.append(f"y {_FINITE}")
            kept = ", t"
        square = " + ".join(f"v{place} * v{place}" for place in range(len(self.x)))
        shortened = ", ".join(
            f"v{place} / {AT_LEAST_1} AS u{place}" for place in range(len(self.x))
        )
        about = f"SELECT {', '.join(centred)} FROM deniable_taken WHERE {' AND '.join(whole)}"
        return {
            "deniable_taken": self.taken(),
            "deniable_centred": about,
            "deniable_scaled": f"SELECT {', '.join(units)} FROM deniable_centred",
            "deniable_measured": f"SELECT *, SQRT({square}) AS length FROM deniable_scaled",
            BOUNDED: f"SELECT {shortened}{kept} FROM deniable_measured",
        }

    def rows_step(self) -> Step:
        """SELECT the bounded rows themselves."""
        return _step(self, f"SELECT * FROM {BOUNDED}", {})

    def taken(self) -> str:
        """SELECT the columns as doubles, of so many rows of each unit."""
        columns = [
            f"{_double(quoted(name), kind)} AS c{place}"
            for place, (name, kind) in enumerate(zip(self.x, self.kinds, strict=True))
        ]
        if self.classes:
            columns.append(f"{self._class()} AS k")
        elif self.y is not None:
            columns.append(f"CAST({quoted(self.y)} AS DOUBLE) AS y")
        if self.unit is None:
            return f"SELECT {', '.join(columns)} FROM {quoted(self.table)}"
        unit = quoted(self.unit)
        order = ", ".join(f"{quoted(name)} ASC NULLS LAST" for name in self.columns)
        columns.append(f"ROW_NUMBER() OVER (PARTITION BY {unit} ORDER BY {order}) AS turn")
        inner = f"SELECT {', '.join(columns)} FROM {quoted(self.table)} WHERE {unit} IS NOT NULL"
        return f"SELECT * FROM ({inner}) AS numbered WHERE turn <= {_whole(self.rows)}"

    def _class(self) -> str:
        assert self.y is not None
        assert self.y_kind is not None
        cases = " ".join(
            f"WHEN {quoted(self.y)} = {literal(self.y_kind, label).sql('duckdb')} THEN {place}"
            for place, label in enumerate(self.classes)
        )
        return f"CASE {cases} END"


@lru_cache(1024)
def number(value: float) -> str:
    """A double as SQL."""
    return f"({double_literal(Fraction(value)).sql('duckdb')})"


def _whole(value: int) -> str:
    return whole_literal(value).sql("duckdb")


def _released(values: Floats | float, most: float = 1 / TINY) -> Floats:
    """Released numbers within the limits of constants: whatever noise made of them, it is taken."""
    found = np.nan_to_num(np.asarray(values, np.float64), nan=0.0)
    return np.where(np.abs(found) < TINY, 0.0, np.clip(found, -most, most))


def clamped(value: str, low: float, high: float) -> str:
    """A column held within its bounds."""
    below, above = f"{value} < {number(low)}", f"{value} > {number(high)}"
    return f"CASE WHEN {below} THEN {number(low)} WHEN {above} THEN {number(high)} ELSE {value} END"


def _quotient(name: str, by: float) -> str:
    """A column divided by a public number; 0 where that would be tiny."""
    least = max(TINY * float(by), float(LEAST_DOUBLE))
    return f"CASE WHEN ABS({name}) < {number(least)} THEN 0e0 ELSE {name} / {number(by)} END"


def _not_tiny(name: str) -> str:
    return f"CASE WHEN ABS({name}) < {number(TINY)} THEN 0e0 ELSE {name} END AS {name}"


def _double(column: str, kind: ColumnType) -> str:
    if kind == ColumnType.BOOLEAN:
        return f"CASE WHEN {column} THEN 1e0 WHEN NOT {column} THEN 0e0 END"
    return f"CAST({column} AS DOUBLE)"


@dataclass(frozen=True)
class Pushed:
    """A statement with the tables that it needs, and how its rows become the flat sums."""

    step: Step
    width: int
    groups: int = 1
    grouped: bool = False
    weights: tuple[int, ...] = ()

    def totals(self, rows: EngineRows) -> Integers:
        """The flat sums; groups without rows are zero, and what is beyond 64 bits saturates."""
        found = np.zeros((self.groups, self.width), dtype=object)
        for row in rows:
            place, values = (int(row[0]), row[1:]) if self.grouped else (0, row)
            found[place] = [int(value or 0) for value in values]
        if self.weights:
            found = found * np.array(self.weights, dtype=object)
        limits = np.iinfo(np.int64)
        made: Integers = np.clip(found.ravel(), limits.min, limits.max).astype(np.int64)
        return made


@singledispatch
def pushed(sums: object, source: Source) -> Pushed:
    """What the engine runs for a sum."""
    raise TypeError(f"{type(sums).__name__} of {source.table} is not summed in an engine")


@pushed.register
def _(sums: Moments, source: Source) -> Pushed:
    width = len(source.x)
    parts = [f"{number(sums.row)} * u{place}" for place in range(width)] + [number(sums.one)]
    if sums.target > 0:
        parts.append(f"{number(sums.target)} * t")
    pairs = list(combinations_with_replacement(range(len(parts)), 2))
    weights = tuple(DIAGONAL if i == j else OFF_DIAGONAL for i, j in pairs)
    select = f"SELECT {', '.join(f'SUM(z{i} * z{j})' for i, j in pairs)} FROM {KEPT}"
    step = _step(source, select, _rounded(BOUNDED, parts, SQUARE_GRID, sums.most(width)))
    return Pushed(step, len(pairs), weights=weights)


@pushed.register
def _(sums: GroupSums, source: Source) -> Pushed:
    width = len(source.x)
    parts = [number(sums.one)]
    if sums.row > 0:
        parts += [f"{number(sums.row)} * u{place}" for place in range(width)]
    tables, rows, label = dict[str, str](), BOUNDED, "k" if source.classes else "0"
    if sums.square > 0:
        squares = [f"{number(2 * width)} * u{p} * u{p} - 1e0 AS q{p}" for p in range(width)]
        tables["deniable_squares"] = f"SELECT *, {', '.join(squares)} FROM {rows}"
        rows = "deniable_squares"
        root = number(sums.square / math.sqrt(width))
        parts += [f"{root} * {clamped(f'q{p}', -1.0, 1.0)}" for p in range(width)]
    if sums.centres:
        tables |= _nearest(np.array(sums.centres), rows)
        rows, label = "deniable_nearest", "nearest"
    tables |= _rounded(rows, parts, GRID, sums.most(width), label)
    summed = ", ".join(f"SUM(z{place})" for place in range(len(parts)))
    step = _step(source, f"SELECT g, {summed} FROM {KEPT} GROUP BY g", tables)
    return Pushed(step, len(parts), sums.groups, grouped=True)


@pushed.register
def _(sums: CellCounts, source: Source) -> Pushed:
    bins, cells = [], []
    for place, (axis, width) in enumerate(zip(sums.axes, sums.width, strict=True)):
        along = _dot(axis / width, [f"u{p}" for p in range(len(axis))])
        shift = number(float(_released(sums.bins / 2 - axis @ sums.origin / width)))
        bins.append(f"FLOOR({along} + {shift}) AS b{place}")
        inside = clamped(f"b{place}", 0.0, float(sums.bins - 1))
        cells.append(f"{_whole(sums.bins**place)} * CAST({inside} AS BIGINT)")
    tables = {
        "deniable_bins": f"SELECT {', '.join(bins)} FROM {BOUNDED}",
        "deniable_cells": f"SELECT {' + '.join(cells)} AS g FROM deniable_bins",
    }
    select = f"SELECT g, {_whole(GRID)} * COUNT(*) FROM deniable_cells GROUP BY g"
    return Pushed(_step(source, select, tables), 1, sums.size, grouped=True)


@pushed.register
def _(sums: Gradients, source: Source) -> Pushed:
    directions, width = sums.weights.shape
    names = [*(f"u{p}" for p in range(width - 1)), "1e0"]
    raw = ", ".join(f"{_dot(column, names)} AS r{p}" for p, column in enumerate(sums.transform.T))
    square = " + ".join(f"r{p} * r{p}" for p in range(width))
    inputs = [f"w{p}" for p in range(width)]
    turned = ", ".join(_not_tiny(f"r{p}") for p in range(width))
    short = ", ".join(f"r{p} / {AT_LEAST_1} AS w{p}" for p in range(width))
    clipped = ", ".join(_not_tiny(name) for name in inputs)
    scores = ", ".join(f"{_dot(row, inputs)} AS s{d}" for d, row in enumerate(sums.weights))
    tables = {
        "deniable_raw": f"SELECT k, {raw} FROM {BOUNDED}",
        "deniable_turned": f"SELECT k, {turned} FROM deniable_raw",
        "deniable_sized": f"SELECT *, SQRT({square}) AS length FROM deniable_turned",
        "deniable_short": f"SELECT k, {short} FROM deniable_sized",
        "deniable_clipped": f"SELECT k, {clipped} FROM deniable_short",
        "deniable_scored": f"SELECT *, {scores} FROM deniable_clipped",
        **_residuals(directions, ", ".join(inputs)),
    }
    parts = [f"e{d} / {AT_LEAST_1} * w{p}" for d in range(directions) for p in range(width)]
    tables |= _rounded("deniable_missed", parts, GRID, sums.most(width - 1))
    summed = ", ".join(f"SUM(z{place})" for place in range(len(parts)))
    return Pushed(_step(source, f"SELECT {summed} FROM {KEPT}", tables), len(parts))


def _residuals(directions: int, inputs: str) -> dict[str, str]:
    """Tables that lead to e0, e1, ... of p - e_y, and their length."""
    every = range(directions)
    length = f"SQRT({' + '.join(f'e{d} * e{d}' for d in every)}) AS length"
    if directions == 1:
        bounded = clamped("s0", -_SCORE, _SCORE)
        residual = "1e0 / (1e0 + EXP(-s0)) - CASE WHEN k = 1 THEN 1e0 ELSE 0e0 END AS e0"
        first = {"deniable_odds": f"SELECT k, {inputs}, {bounded} AS s0 FROM deniable_scored"}
    else:
        top = f"GREATEST({', '.join(f's{d}' for d in every)}) AS top"
        below = ", ".join(f"{clamped(f's{d} - top', -_SCORE, 0.0)} AS a{d}" for d in every)
        odds = ", ".join(f"EXP(a{d}) AS p{d}" for d in every)
        total = " + ".join(f"p{d}" for d in every)
        residual = ", ".join(
            f"p{d} / total - CASE WHEN k = {d} THEN 1e0 ELSE 0e0 END AS e{d}" for d in every
        )
        first = {
            "deniable_top": f"SELECT *, {top} FROM deniable_scored",
            "deniable_below": f"SELECT k, {inputs}, {below} FROM deniable_top",
            "deniable_shares": f"SELECT k, {inputs}, {odds} FROM deniable_below",
            "deniable_odds": f"SELECT *, {total} AS total FROM deniable_shares",
        }
    return first | {
        "deniable_gaps": f"SELECT {inputs}, {residual} FROM deniable_odds",
        "deniable_missed": f"SELECT *, {length} FROM deniable_gaps",
    }


def _step(source: Source, select: str, tables: dict[str, str]) -> Step:
    made = {**source.tables(), **tables}
    return Step(select, source.taken(), made, constants=source.constants)


def _rounded(
    rows: str, parts: Sequence[str], grid: int, most: int, label: str = ""
) -> dict[str, str]:
    """The table KEPT of z0, z1, ...: whole numbers, of rows that are short enough."""
    many = steps(len(parts), grid)
    rounded = ", ".join(
        f"CAST(FLOOR({number(many)} * ({part}) + 0.5e0) AS BIGINT) AS z{place}"
        for place, part in enumerate(parts)
    )
    square = " + ".join(f"z{place} * z{place}" for place in range(len(parts)))
    size = " + ".join(f"ABS(z{place})" for place in range(len(parts)))
    group = f", {label} AS g" if label else ""
    return {
        "deniable_whole": f"SELECT {rounded}{group} FROM {rows}",
        KEPT: f"SELECT * FROM deniable_whole WHERE {square} <= {_whole(grid**2)} "
        f"AND {size} <= {_whole(most)}",
    }


def _dot(row: Floats, names: Sequence[str]) -> str:
    factors = zip(_released(row).tolist(), names, strict=True)
    return "(" + " + ".join(f"{number(factor)} * {name}" for factor, name in factors) + ")"


def _nearest(centres: Floats, rows: str) -> dict[str, str]:
    """The table with the place of the nearest centre, the first of those that are equally near."""
    centres = _released(centres)
    names = [f"u{place}" for place in range(centres.shape[1])]
    far = ", ".join(
        f"{number(float(_released(c @ c, TINY**-2)))} + {_dot(-2 * c, names)} AS d{place}"
        for place, c in enumerate(centres)
    )
    every = [f"d{place}" for place in range(len(centres))]
    least = f"LEAST({', '.join(every)})" if len(every) > 1 else "d0"
    cases = " ".join(f"WHEN {name} <= least THEN {place}" for place, name in enumerate(every))
    return {
        "deniable_far": f"SELECT *, {far} FROM {rows}",
        "deniable_least": f"SELECT *, {least} AS least FROM deniable_far",
        "deniable_nearest": f"SELECT *, CASE {cases} ELSE 0 END AS nearest FROM deniable_least",
    }
