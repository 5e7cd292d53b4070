"""Levels of norms: 1, 2, 3, 4, 6, 8, 12, ... times the norm of one row."""

from __future__ import annotations

import math
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache

import numpy as np

from deniable.engines.literals import double_literal
from deniable.intervals import Floats

MOST_OCTAVES = 33  # no table that an engine can read has more than 2^33 rows
_COLUMN_OCTAVES = 94
FAR_LEVELS = (1, *(c << j >> 1 for j in range(1, _COLUMN_OCTAVES + 1) for c in (2, 3)))
"""For values of columns, in steps of `LEAST`."""
LEVELS = FAR_LEVELS[: 1 + 2 * MOST_OCTAVES]
LEAST = Fraction(1, 1 << 32)
"""What is smaller counts as 0 while it is looked where values lie."""
BINS = 14
BELOW = 8  # how far below the place of the heaviest units bins begin


class Norms(StrEnum):
    """Which numbers the norms of units can be, in rows."""

    WHOLE = "whole"
    ROOTS = "roots of whole numbers"
    ANY = "any"


def positions(norms: Norms, first: int, many: int) -> Floats:
    """Where the number of units above a norm is read: half a step below, where norms have steps."""
    levels = np.array(FAR_LEVELS[first : first + many], dtype=float)
    if norms == Norms.WHOLE:
        return levels - 0.5
    return np.sqrt(levels**2 - 0.5) if norms == Norms.ROOTS else levels


def level_of(square: str, least: Fraction | int, *, l2: bool) -> str:
    """The level of a norm as SQL, of its square where `l2`; -1 below the first.

    Octaves by logarithms, halves of them by comparison. A hair is added, so that no power of two
    falls short of itself.
    """
    hair = Fraction(1) + Fraction(1, 10**9)
    one, base, half = (least**2, 4, Fraction(9, 4)) if l2 else (least, 2, Fraction(3, 2))
    value = f"({square} * {_double(hair / one)})"
    octave = f"FLOOR(LN({value}) * {_double(Fraction(1 / math.log(base)))})"
    power = f"POWER({_double(Fraction(base))}, {octave})"
    upper = f"CASE WHEN {value} >= {_double(half)} * {power} THEN 1 ELSE 0 END"
    return (
        f"CASE WHEN {value} < 1e0 THEN -1 WHEN {value} < {_double(Fraction(base))} THEN 0 "
        f"ELSE CAST(2 * {octave} AS BIGINT) - 1 + {upper} END"
    )


@lru_cache(maxsize=1024)
def _double(value: Fraction) -> str:
    return double_literal(Fraction(float(value))).sql("duckdb")
