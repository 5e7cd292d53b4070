"""The exact inverse of a channel: what turns reported shares back into true ones."""

from __future__ import annotations

import math
from fractions import Fraction

from deniable.errors import ParameterError

Rows = tuple[tuple[Fraction, ...], ...]

_LARGEST = Fraction(10**100)


def same_for_all(rows: Rows) -> Fraction | None:
    """The probability of the truth where all others are equally likely, for every answer alike."""
    if len(rows) != len(rows[0]):
        return None
    told, other = rows[0][0], rows[0][1]
    alike = all(
        p == (told if i == j else other) for i, row in enumerate(rows) for j, p in enumerate(row)
    )
    return told if alike else None


def symmetric(told: Fraction, size: int, other: Fraction | None = None) -> Rows:
    """One number on the diagonal, another everywhere else; rows sum to 1 unless it is given."""
    rest = (1 - told) / (size - 1) if other is None else other
    places = range(size)
    return tuple(tuple(told if i == j else rest for j in places) for i in places)


def left_inverse(rows: Rows) -> Rows:
    """L with L Rᵀ = 1 for the rows R of a channel: L = (R Rᵀ)^-1 R, in rationals.

    Row i holds the weight of each report in the estimated share of answer i. For a square channel
    it is the only one; for one with more reports than answers it is that of least squares.
    """
    size = len(rows)
    told = same_for_all(rows)
    if told is not None and told * size != 1:
        other = (1 - told) / (size - 1)
        inverse = symmetric((1 - other) / (told - other), size, -other / (told - other))
    else:
        inverse = _solved(rows)
    if max(abs(weight) for row in inverse for weight in row) > _LARGEST:
        raise ParameterError(
            "channel", "all but singular", "its answers differ by less than 1e-100; raise ε"
        )
    return inverse


def _solved(rows: Rows) -> Rows:
    units = [math.lcm(*(p.denominator for p in row)) for row in rows]
    whole = [[int(p * unit) for p in row] for row, unit in zip(rows, units, strict=True)]
    size = len(rows)
    if size == len(rows[0]):  # (Rᵀ)^-1, at half the digits
        matrix = [list(column) for column in zip(*whole, strict=True)]
        right = [[int(i == j) for j in range(size)] for i in range(size)]
    else:
        matrix = [[sum(x * y for x, y in zip(a, b, strict=True)) for b in whole] for a in whole]
        right = whole
    solved, divisor = _solve(matrix, right)
    return tuple(
        tuple(Fraction(unit * x, divisor) for x in row)
        for row, unit in zip(solved, units, strict=True)
    )


def _solve(matrix: list[list[int]], right: list[list[int]]) -> tuple[list[list[int]], int]:
    """X and d with matrix X = d right, in integers; every division is exact (Bareiss 1968)."""
    size, before = len(matrix), 1
    work = [[*matrix[i], *right[i]] for i in range(size)]
    for place in range(size):
        pivot = next((i for i in range(place, size) if work[i][place]), None)
        if pivot is None:
            raise ParameterError(
                "channel",
                "singular",
                "different true shares give the same reports (p = q), so nothing can be "
                "estimated; choose probabilities that tell the answers apart",
            )
        work[place], work[pivot] = work[pivot], work[place]
        lead, line = work[place][place], work[place]
        for i in range(size):
            if i != place:
                factor = work[i][place]
                work[i] = [
                    (lead * x - factor * y) // before for x, y in zip(work[i], line, strict=True)
                ]
        before = lead
    return [row[size:] for row in work], before


def kronecker(first: Rows, second: Rows) -> Rows:
    """All products: the channel, or the inverse, of two items answered independently."""
    return tuple(tuple(x * y for x in a for y in b) for a in first for b in second)
