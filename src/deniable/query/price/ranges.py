"""Bounds of columns that are bought: where the values of units lie, told by noisy histograms.

The histograms are questions like any other, with public groups: in how many units the largest (and
the smallest) value lies in each cell of a scale that grows by the root of two. A unit lies in one
cell of each. What is made of the noisy counts is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from sqlglot import exp

from deniable.answer import Answer
from deniable.errors import NotAnsweredError
from deniable.privacy.amount import Amount
from deniable.privacy.composition import compose
from deniable.query.plan.asked import Asked, Unknown
from deniable.query.plan.plan import Plan
from deniable.query.price.price import price
from deniable.query.read.catalogue import Catalogue, Options
from deniable.query.read.columns import UnboundedError
from deniable.query.read.compile import compile_tree
from deniable.query.read.expressions import SUPPOSED
from deniable.query.read.resolve import parse
from deniable.tables import MOST_WHOLE, Bounds, ColumnType

_SHARE = Fraction(1, 20)
_FAR = 1e300
_STEPS = 2  # cells to an octave
_OCTAVES = range(-32, 63)
_MOST = _STEPS * len(_OCTAVES)
_SURE = 1 - 1e-4 / (2 * _MOST + 1)  # of one cell: noise alone does not make it count


@dataclass(frozen=True)
class Range:
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


@dataclass(frozen=True)
class Offered:
    """A question whose columns lack bounds: what finds those, and the question, with its rest.

    `main` has bounds that are made up, to see whether it can be asked.
    """

    ends: Mapping[Range, Sequence[Asked]]
    rest: Amount
    main: Asked

    def unknown(self, known: Mapping[Range, Sequence[Answer | None]]) -> Unknown | None:
        """What is not known yet and bought first, for what."""
        asked = [
            (each, end)
            for each, ends in self.ends.items()
            for end, found in zip(ends, known[each], strict=True)
            if found is None
        ]
        if not asked:
            return None
        return Unknown(
            tuple(dict.fromkeys(f"the values of {each.column}" for each, _ in asked)),
            compose(*(price(end.plan, end.amount).loss for _, end in asked)),
        )


def planned(
    tree: exp.Expr, catalogue: Catalogue, options: Options
) -> tuple[Plan, tuple[Range, ...]]:
    """The plan of a question, and the columns that it needs bounds of and that have none.

    Those have made-up bounds in the plan.
    """
    found: dict[Range, Bounds] = {}
    while True:
        try:
            plan = compile_tree(tree, catalogue, with_bounds(options, found))
        except UnboundedError as missing:
            found |= {_range(catalogue, *place): SUPPOSED for place in missing.places}
        else:
            return plan, tuple(found)


def with_bounds(options: Options, bounds: Mapping[Range, Bounds]) -> Options:
    """What a question declares, and bounds that were bought."""
    found = {(each.table, each.column): pair for each, pair in bounds.items()}
    return replace(options, bought={**options.bought, **found})


def seen_cells(histogram: Answer) -> list[bool]:
    """Which cells stand out of the noise."""
    ends = histogram.noise["units"].at(_SURE)
    return [bool(low > 0) for low in ends[0]]


def label(bounds: Mapping[Range, Bounds]) -> str:
    """What an answer says of bounds that were bought."""
    listed = (
        f"{each.column} {float(low):,.10g} to {float(high):,.10g}"
        for each, (low, high) in bounds.items()
    )
    return f"bounds bought: {', '.join(listed)} (values beyond are clamped)"


def price_of_end(ranges: Sequence[Range], amount: Amount) -> Amount:
    """What one histogram costs: a twentieth of the question's price for all of them, or less.

    Prices are powers of two, so that questions of similar prices share what they buy.
    """
    ends = sum(len(each.questions()) for each in ranges)
    return amount.of(Fraction(2) ** math.floor(math.log2(amount.value * _SHARE / ends) - 1e-9))


def _range(catalogue: Catalogue, table: str, column: str) -> Range:
    unit, schema = catalogue.private[table].unit, catalogue.schemas[table]
    kind = schema.columns[schema.find(column)]
    return Range(table, column, kind, unit.lower() if isinstance(unit, str) else None)
