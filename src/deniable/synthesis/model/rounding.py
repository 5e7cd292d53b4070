"""Fair rounding: rows whose counts are the expected ones, rounded up or down without bias.

Which rows a synthesis prints is post-processing, and costs nothing; the randomness is the house's.
"""

from __future__ import annotations

import numpy as np

from deniable.randomness.source import SECURE, words
from deniable.synthesis.domain import Codes, Floats


def uniforms(count: int) -> Floats:
    """Uniform numbers in [0, 1)."""
    return (words(SECURE, count) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def shuffled(count: int) -> Codes:
    """A random order of 0, ..., count - 1."""
    return np.argsort(words(SECURE, count), kind="stable")


def rounded_fairly(expected: Floats, totals: Codes) -> Codes:
    """Whole numbers with these expectations, in rows with these sums.

    Each is its expectation rounded down or up. Systematic sampling of the remainders: a comb of
    teeth one apart is laid at a random place on the remainders, put end to end in a random order; a
    cell is rounded up if a tooth falls on it, which has probability its remainder exactly.
    """
    order = shuffled(expected.shape[1])
    down = np.floor(expected[:, order])
    ends = np.cumsum(expected[:, order] - down, axis=1)
    # The remainders sum to a whole number, but for what floats lose; a cell without a remainder
    # keeps none.
    more = totals - down.sum(axis=1).astype(np.int64)
    last = ends[:, -1:]
    scaled = ends * (more[:, None] / np.where(last > 0, last, 1.0))
    ends = np.where(ends >= last, more[:, None], scaled)
    teeth = np.floor(ends + uniforms(len(ends))[:, None]).astype(np.int64)
    counts = down.astype(np.int64) + np.diff(teeth, axis=1, prepend=0)
    found: Codes = np.empty_like(counts)
    found[:, order] = counts
    return found


def sample_conditionally(table: Floats, group: Codes) -> Codes:
    """For each row a cell, by the conditional distribution of the row's group.

    The cells of one group are dealt out in random order: what else is drawn for the same rows from
    their group is independent of it.
    """
    if group.size == 0:
        return np.zeros(0, dtype=np.int64)
    present, inverse, sizes = np.unique(group, return_inverse=True, return_counts=True)
    chances = np.maximum(table[present], 0.0)
    sums = chances.sum(axis=1, keepdims=True)
    # A group that the model gives no chance has no law of its own; any will do.
    chances = np.where(sums > 0, chances / np.where(sums > 0, sums, 1), 1 / chances.shape[1])
    counts = rounded_fairly(chances * sizes[:, None], sizes)
    cells = np.repeat(np.tile(np.arange(counts.shape[1]), len(counts)), counts.ravel())
    rows = np.lexsort((words(SECURE, group.size), inverse.ravel()))
    found = np.empty(group.size, dtype=np.int64)
    found[rows] = cells
    return found
