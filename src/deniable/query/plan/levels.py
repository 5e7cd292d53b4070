"""Levels of norms: 1, 2, 3, 4, 6, 8, 12, ... times the norm of one row."""

from __future__ import annotations

from enum import StrEnum

import numpy as np

from deniable.intervals import Floats

MOST_OCTAVES = 33  # no table that an engine can read has more than 2^33 rows
LEVELS = (1, *(c << j >> 1 for j in range(1, MOST_OCTAVES + 1) for c in (2, 3)))
BINS = 14
BELOW = 8  # how far below the place of the heaviest units bins begin


class Norms(StrEnum):
    """Which numbers the norms of units can be, in rows."""

    WHOLE = "whole"
    ROOTS = "roots of whole numbers"
    ANY = "any"


def positions(norms: Norms, first: int, many: int) -> Floats:
    """Where the number of units above a norm is read: half a step below, where norms have steps."""
    levels = np.array(LEVELS[first : first + many], dtype=float)
    if norms == Norms.WHOLE:
        return levels - 0.5
    return np.sqrt(levels**2 - 0.5) if norms == Norms.ROOTS else levels


def level_of(square: str, least: float, *, l2: bool) -> str:
    """The level of a norm as SQL, of its square where `l2`; -1 below the first.

    Octaves by logarithms, halves of them by comparison. A hair is added, so that no power of two
    falls short of itself.
    """
    size = least**2 if l2 else least
    value = f"({square} * {(1 + 1e-9) / size!r})"
    base, half = (4.0, 2.25) if l2 else (2.0, 1.5)
    octave = f"FLOOR(LN({value}) * {float(1 / np.log(base))!r})"
    upper = f"CASE WHEN {value} >= {half!r} * POWER({base!r}, {octave}) THEN 1 ELSE 0 END"
    return (
        f"CASE WHEN {value} < 1e0 THEN -1 WHEN {value} < {base!r} THEN 0 "
        f"ELSE CAST(2 * {octave} AS BIGINT) - 1 + {upper} END"
    )
