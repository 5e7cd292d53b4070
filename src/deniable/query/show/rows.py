"""Numbers of rows, as text: no more is said than holds."""

from __future__ import annotations

import math


def number_of(rows: float) -> str:
    """A number of rows, rounded down."""
    return f"{math.floor(rows):,}" if rows >= 10 else f"{math.floor(100 * rows) / 100:.3g}"


def many(rows: float) -> str:
    """The same with the word behind it."""
    number = number_of(rows)
    return f"{number} row" if number == "1" else f"{number} rows"
