"""MEDIAN, PERCENTILE, QUANTILE, MIN and MAX: ranks among values that are counted in cells."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from sqlglot import exp

from deniable.engines.literals import cast_to, double_literal, whole_literal
from deniable.engines.trees import clamped
from deniable.errors import DeniableError, QueryError
from deniable.mechanisms.grid_quantile import read_share
from deniable.tables import Bounds

Floats = npt.NDArray[np.float64]

CELLS = 1024
_MOST_CELLS = 1 << 16
_FARTHEST = 1 << 62  # differences of whole numbers fit
_FINEST = 1 << 45  # what doubles of their size tell apart, and cells of them do
_SHARES = (exp.PercentileCont, exp.PercentileDisc, exp.Quantile, exp.ApproxQuantile)
QUANTILES = (exp.Median, exp.Min, exp.Max, *_SHARES)


@dataclass(frozen=True)
class Grid:
    """Cells of one width between the bounds of an expression, and the cell of each row."""

    sql: exp.Expr
    low: Fraction
    high: Fraction
    step: Fraction
    cells: int
    whole: bool

    def value(self, cell: int) -> float:
        """What stands for a cell: its middle; the bounds for what lies beyond all cells."""
        if cell < 0:
            return float(self.low)
        if cell >= self.cells:
            return float(self.high)
        first = self.low + cell * self.step
        if self.whole:
            return float(min(first + (self.step - 1) // 2, self.high))
        return float(min(first + self.step / 2, self.high))

    def ends(self, cell: int) -> tuple[float, float]:
        """The least and the greatest value of a cell."""
        if not 0 <= cell < self.cells:
            return self.value(cell), self.value(cell)
        first = self.low + cell * self.step
        last = first + self.step - (1 if self.whole else 0)
        return float(first), float(min(last, self.high))


@dataclass(frozen=True)
class Rank:
    """The value of a grid below which this share lies; 0 is MIN, 1 is MAX."""

    grid: int
    share: Fraction


def share_of(node: exp.Expr) -> Fraction:
    """Which quantile is asked for."""
    if isinstance(node, exp.Median):
        return Fraction(1, 2)
    if isinstance(node, exp.Min | exp.Max):
        return Fraction(1 if isinstance(node, exp.Max) else 0)
    given = node.args.get("quantile") or node.args.get("expression")
    if not isinstance(given, exp.Literal) or given.is_string:
        raise QueryError(
            f"{node.key.upper()} takes one constant share between 0 and 1; write a column for each"
        )
    try:
        return read_share(Fraction(Decimal(given.name)))
    except (DeniableError, ArithmeticError, ValueError):
        raise QueryError(
            f"{node.key.upper()} takes a share between 0 and 1, with six decimals at most"
        ) from None


def in_order(ranks: Sequence[Rank], drawn: Sequence[Floats]) -> list[list[float]]:
    """Values and ends of quantiles, so that those of larger shares are no smaller.

    Post-processing: values of one grid are sorted, and an interval is made to hold its value.
    """
    columns: list[list[float]] = []
    for rank, (_, low, high) in zip(ranks, drawn, strict=True):
        same = [n for n, other in enumerate(ranks) if other.grid == rank.grid]
        place = sum(ranks[n].share < rank.share for n in same)
        value = np.sort(np.stack([drawn[n][0] for n in same]), axis=0)[place]
        ends = np.minimum(low, value), np.maximum(high, value)
        columns += [each.tolist() for each in (value, *ends)]
    return columns


def grid(number: exp.Expr, bounds: Bounds, declared: Fraction | None, *, whole: bool) -> Grid:
    """Cells for an expression: its declared grid, if that has not too many, or 1,024 of them."""
    low, high = bounds
    span = high - low
    far = max(abs(low), abs(high))
    if far >= _FARTHEST or (not whole and span < far / _FINEST):
        raise QueryError(
            "the bounds are too wide, or too close for numbers of their size; declare others"
        )
    if whole:
        low, high = Fraction(math.floor(low)), Fraction(math.ceil(high))
        step = Fraction(math.ceil((high - low + 1) / CELLS))
        if declared is not None and declared.denominator == 1 and span / declared <= _MOST_CELLS:
            step = declared
        cells = math.ceil((high - low + 1) / step)
    else:
        step = span / CELLS
        if declared is not None and span / declared <= _MOST_CELLS:
            step = max(declared, far / _FINEST)
        cells = math.ceil(span / step)
    sql = _cell(number, low, step, cells, whole=whole)
    return Grid(sql, low, high, step, cells, whole)


def _cell(number: exp.Expr, low: Fraction, step: Fraction, cells: int, *, whole: bool) -> exp.Expr:
    """The number of the cell; NULL for NULL and NaN."""
    last = low + (cells - 1) * step  # where the last cell begins
    least = whole_literal(int(low)) if whole else double_literal(low)
    most = whole_literal(int(last)) if whole else double_literal(last)
    above = exp.Sub(this=number.copy(), expression=least)
    if whole:
        inside: exp.Expr = exp.IntDiv(this=exp.paren(above), expression=whole_literal(int(step)))
    else:
        part = exp.Div(this=exp.paren(above), expression=double_literal(step))
        inside = cast_to(exp.Floor(this=part), "BIGINT")
    values = (whole_literal(0), inside, whole_literal(cells - 1))
    return clamped(number, (least.copy(), most), values, whole=whole)
