"""Rows of bits, packed eight to a byte: exact coins, and sums of columns."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from deniable.randomness.noise import ChoiceLaw, noise
from deniable.randomness.source import SECURE

Bytes = npt.NDArray[np.uint8]
Coins = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.int64]
Keys = npt.NDArray[np.uint32]

_AT_ONCE = 1 << 21
_ROWS_IN_A_BYTE = 255  # so many bits add up to at most a byte


def coins(probability: Fraction, count: int) -> Coins:
    """Exact coins that are True with this probability, for release."""
    heads: Coins = noise(ChoiceLaw((1 - probability, probability))).many(count) == 1
    return heads


def blocks(rows: int, width: int) -> list[slice]:
    """Slices of rows that fit the cache and the memory, whatever their number."""
    step = max(1, _AT_ONCE // width)
    return [slice(at, min(at + step, rows)) for at in range(0, rows, step)]


def one_hot_coins(truth: Integers, width: int, on: Fraction, off: Fraction) -> Bytes:
    """Packed rows of coins: 1 with probability `on` at the true place and `off` elsewhere."""
    out = np.empty((truth.size, -(-width // 8)), dtype=np.uint8)
    for part in blocks(truth.size, width):
        here = truth[part]
        flips = coins(off, here.size * width).reshape(here.size, width)
        flips[np.arange(here.size), here] = coins(on, here.size)
        out[part] = np.packbits(flips, axis=1)
    return out


def flipped(rows: Bytes, width: int, kept: Fraction) -> Bytes:
    """Each bit stays as it is with probability `kept`."""
    out = np.empty_like(rows)
    for part in blocks(rows.shape[0], width):
        flips = coins(1 - kept, rows[part].shape[0] * width).reshape(-1, width)
        out[part] = rows[part] ^ np.packbits(flips, axis=1)
    return out


def random_sets(
    count: int, k: int, size: int, place: Callable[[Keys, Integers], None] | None = None
) -> Coins:
    """So many uniform sets of `size` of k places, below k, as rows: those of the least random keys.

    A row whose key at the border is met twice is drawn again: given that it is not, every set is
    equally likely, because keys of different places may be exchanged. `place` may set keys of the
    rows it is told before they are compared.
    """
    chosen = np.empty((count, k), dtype=np.bool_)
    rows = np.arange(count)
    while rows.size:
        keys = SECURE.draw(4 * rows.size * k).view(np.uint32).reshape(rows.size, k)
        if place is not None:
            place(keys, rows)
        border = np.partition(keys, (size - 1, size), axis=1)[:, size - 1 : size + 1]
        chosen[rows] = keys <= border[:, :1]
        rows = rows[border[:, 0] == border[:, 1]]
    return chosen


def column_sums(rows: Bytes, width: int) -> Integers:
    """How many rows have each bit set."""
    total = np.zeros(width, dtype=np.int64)
    for at in range(0, rows.shape[0], _ROWS_IN_A_BYTE):
        bits = np.unpackbits(rows[at : at + _ROWS_IN_A_BYTE], axis=1, count=width)
        total += np.add.reduce(bits, axis=0, dtype=np.uint8)
    return total
