"""Bounds of columns that are bought: where the values of units lie, told by noisy histograms.

The histograms are questions like any other, with public groups: in how many units the largest (and
the smallest) value lies in each cell of a scale that grows by the root of two. A unit lies in one
cell of each. What is made of the noisy counts is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from sqlglot import exp

from deniable.answer import Answer
from deniable.errors import NotAnsweredError
from deniable.query.read.catalogue import Options
from deniable.query.read.resolve import parse
from deniable.tables import MOST_WHOLE, Bounds, ColumnType

_SHARE = Fraction(1, 20)
_FAR = 1e300
_STEPS = 2  # cells to an octave
_OCTAVES = range(-32, 63)
_MOST = _STEPS * len(_OCTAVES)
_SURE = 1 - 1e-4 / (2 * _MOST + 1)  # of one cell: noise alone does not make it count


@dataclass(frozen=True)
class UnboundedColumn:
    """A column of a private table, whose bounds are to be bought."""

    table: str
    column: str
    kind: ColumnType
    unit: str | None

    def questions(self) -> list[tuple[exp.Expr, Options]]:
        """How many units have their largest, and their smallest, value in which cell."""
        name = "place" if self.unit == "cell" else "cell"
        keys = Options(keys={name: tuple(range(-_MOST, _MOST + 1))})
        table, column = (exp.to_identifier(n, quoted=True) for n in (self.table, self.column))
        cell = _CELL.format(x=column.sql("duckdb"))
        if self.unit is None:
            asked = [f"SELECT {cell} AS {name} FROM {table.sql('duckdb')}"]
        else:
            unit = exp.to_identifier(self.unit, quoted=True).sql("duckdb")
            rows = f"SELECT {unit}, {cell} AS {name} FROM {table.sql('duckdb')}"
            asked = [
                f"SELECT {unit}, {end}({name}) AS {name} FROM ({rows}) AS cells GROUP BY {unit}"
                for end in ("MAX", "MIN")
            ]
        return [
            (parse(f"SELECT {name}, COUNT(*) AS units FROM ({each}) AS ends GROUP BY {name}"), keys)
            for each in asked
        ]

    def bounds(self, histograms: Sequence[Sequence[bool]]) -> Bounds:
        """From the first to the last cell that stands out of the noise."""
        ends = [[place - _MOST for place, seen in enumerate(each) if seen] for each in histograms]
        if not all(ends):
            raise NotAnsweredError(
                f"the bounds of {self.column} cannot be seen at this price: no cell of values "
                "stands out of the noise. What was charged to look for them stays charged; declare "
                f"them, bounds={{'{self.column}': (low, high)}}, or ask with a larger epsilon"
            )
        low, high = _edges(ends[-1][0])[0], _edges(ends[0][-1])[1]
        if self.kind == ColumnType.INTEGER:
            low = Fraction(max(math.floor(low), -MOST_WHOLE))
            high = Fraction(min(math.ceil(high), MOST_WHOLE))
        return (low, high) if low < high else (min(low, high), min(low, high) + 1)


# A cell for each sign and size; what is smaller than all lies in the first, and so on. Infinities,
# and NaN, which is larger than any number to an engine, have no cell.
_SIZE = (
    f"GREATEST(1, LEAST({_MOST}, CAST(FLOOR(LN({{x}}) * {_STEPS / math.log(2)!r}) AS BIGINT) "
    f"+ {1 - _STEPS * _OCTAVES[0]}))"
)
_CELL = (
    f"CASE WHEN {{x}} > 0 AND {{x}} < {_FAR!r} THEN {_SIZE.format(x='{x}')} "
    f"WHEN {{x}} < 0 AND {{x}} > -{_FAR!r} THEN -{_SIZE.format(x='(-{x})')} "
    "WHEN {x} = 0 THEN 0 END"
)


def _edges(cell: int) -> Bounds:
    """The values in a cell, rounded outward to three digits."""
    if not cell:
        return Fraction(0), Fraction(0)
    first = abs(cell) - 1 + _STEPS * _OCTAVES[0]
    near, far = _rounded(first, math.floor), _rounded(first + 1, math.ceil)
    return (near, far) if cell > 0 else (-far, -near)


def _rounded(step: int, direction: object) -> Fraction:
    """2^(step/2) to three digits."""
    value = 2.0 ** (step / _STEPS)
    unit = Fraction(10) ** (math.floor(math.log10(value)) - 2)
    exact = Fraction(value) / unit
    # A power of two is a whole number of halves; floats may be off by their last digit.
    near = round(exact)
    if abs(exact - near) < Fraction(1, 10**9):
        return near * unit
    return Fraction(math.floor(exact) if direction is math.floor else math.ceil(exact)) * unit


def seen_cells(histogram: Answer) -> list[bool]:
    """Which cells stand out of the noise."""
    ends = histogram.noise["units"].at(_SURE)
    return [bool(low > 0) for low in ends[0]]
