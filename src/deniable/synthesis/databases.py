"""All databases of a few rows, one after another. Public: they are counted out, not looked up."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations, islice

import numpy as np

from deniable.synthesis.domain import Counts

MOST_DATABASES = 1_000_000
_CHUNK = 10_000


def databases(cells: int, rows: int) -> int:
    """How many different databases of so many rows over so many records there are."""
    return math.comb(rows + cells - 1, rows)


def multisets(cells: int, rows: int) -> Iterator[list[int]]:
    """Every database once: stars and bars."""
    for bars in combinations(range(rows + cells - 1), rows):
        yield [bar - place for place, bar in enumerate(bars)]


def chunks(cells: int, rows: int) -> Iterator[Counts]:
    """The counts of many databases at once."""
    every = multisets(cells, rows)
    while some := list(islice(every, _CHUNK)):
        flat = np.array(some) + np.arange(len(some))[:, None] * cells
        yield np.bincount(flat.ravel(), minlength=len(some) * cells).reshape(-1, cells)
