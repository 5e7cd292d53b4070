"""How far two private values lie apart, beside what is charged for: replay and audit ask."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from deniable.mechanisms.values import is_scalar, read_integer, read_integers, read_real, read_reals
from deniable.privacy.exact import float_above, sqrt_up
from deniable.privacy.units import Relation

_FAR = Fraction(10) ** 300


@dataclass(frozen=True)
class Gap:
    """How far the values moved, how far they may, and in what measure.

    `directions` says which ways numbers moved, for promises that all move the same way.
    """

    moved: float
    allowed: float
    measure: str
    ok: bool
    directions: frozenset[int] = frozenset()


def moved_by(moved: Fraction | int, allowed: Fraction | int, measure: str) -> Gap:
    """So far, where so much is charged."""
    short = float_above(Fraction(moved)) if moved < _FAR else float("inf")
    return Gap(short, float_above(min(Fraction(allowed), _FAR)), measure, moved <= allowed)


def misshapen(measure: str) -> Gap:
    """Values of two shapes, which no noise hides."""
    return Gap(float("inf"), 0.0, f"{measure}: the two differ in shape", ok=False)


def integer_moves(x: Any, y: Any) -> list[Fraction] | None:
    """The non-zero differences of two integers or integer arrays; None if shapes differ."""
    if is_scalar(x) != is_scalar(y):
        return None
    if is_scalar(x):
        return [Fraction(read_integer(y) - read_integer(x))]
    return _array_moves(read_integers(x), read_integers(y))


def _array_moves(before: Any, after: Any) -> list[Fraction] | None:
    if before.shape != after.shape:
        return None
    at = np.flatnonzero(before.ravel() != after.ravel())
    pairs = zip(before.ravel()[at].tolist(), after.ravel()[at].tolist(), strict=True)
    return [Fraction(b) - Fraction(a) for a, b in pairs]


def real_moves(x: Any, y: Any) -> list[Fraction] | None:
    """The differences of two reals or arrays of reals, exactly; None if shapes differ."""
    if is_scalar(x) != is_scalar(y):
        return None
    if is_scalar(x):
        return [Fraction(read_real(y)) - Fraction(read_real(x))]
    before, after = read_reals(x), read_reals(y)
    if before.shape != after.shape:
        return None
    if before.doubles is not None and after.doubles is not None:
        return _array_moves(before.doubles, after.doubles)
    return [b - a for a, b in zip(before.exactly(), after.exactly(), strict=True)]


def by_norm(moves: list[Fraction] | None, order: int, allowed: Fraction) -> Gap:
    """The L1 or L2 norm of the differences."""
    measure = f"L{order}"
    if moves is None:
        return misshapen(measure)
    if order == 1:
        return moved_by(sum(map(abs, moves), Fraction(0)), allowed, measure)
    square = sum((move**2 for move in moves), Fraction(0))
    found = moved_by(sqrt_up(square), allowed, measure)
    return Gap(found.moved, found.allowed, measure, square <= allowed**2)


def largest(moves: list[Fraction], allowed: Fraction, measure: str, *, monotone: bool) -> Gap:
    """The largest difference; where all were promised to move one way, that they do."""
    found = moved_by(max(map(abs, moves), default=Fraction(0)), allowed, measure)
    ways = frozenset(1 if move > 0 else -1 for move in moves if move) if monotone else frozenset()
    if len(ways) > 1:
        measure = f"{measure}: some rise while others fall, though monotone was promised"
        return Gap(found.moved, found.allowed, measure, ok=False)
    return Gap(found.moved, found.allowed, measure, found.ok, ways)


def count_moves(x: Mapping[Any, int], y: Mapping[Any, int]) -> list[int]:
    """By how much each cell moves that does."""
    moves = (abs(x.get(cell, 0) - y.get(cell, 0)) for cell in {*x, *y})
    return [move for move in moves if move]


def records_apart(
    x: Iterable[Any], y: Iterable[Any], relation: Relation, reach: int, measure: str
) -> Gap:
    """Lists as bags: how many entries are added or removed, or exchanged."""
    one, other = Counter(x), Counter(y)
    gone, come = (one - other).total(), (other - one).total()
    if relation == Relation.REPLACE:
        if gone != come:
            return misshapen(measure)
        return moved_by(gone, reach, f"{measure} exchanged")
    return moved_by(gone + come, reach, f"{measure} added or removed")


def rows_apart(x: Iterable[Any], y: Iterable[Any], relation: Relation) -> Gap:
    """The same of rows that count: one may be exchanged for one that does not, or the other way."""
    one, other = Counter(x), Counter(y)
    gone, come = (one - other).total(), (other - one).total()
    moved = max(gone, come) if relation == Relation.REPLACE else gone + come
    return moved_by(moved, 1, "rows")
