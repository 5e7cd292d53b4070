"""Hash functions drawn at random, whose collisions have a known probability, exactly.

All are polynomials of degree 2 with coefficients uniform modulo a prime, so that any three values
fall independently (Wegman & Carter 1981). Two of them meet in one of g buckets with probability
Σ (c_r/p)², c_r being the number of residues of bucket r: within g/p of 1/g, the same for every
pair. That makes shares unbiased. A value's collisions with two others are uncorrelated, which makes
the errors of sums of shares honest. Privacy rests on neither: whatever function is drawn, it is
drawn without looking at the answer.

A client's own function is taken modulo 2^61 - 1: h(v) = ((c0 + c1 v + c2 v² mod 2^61 - 1) >> 29)
g >> 32. The few functions that serve all clients of a survey are taken modulo 2^31 - 1.
"""

from __future__ import annotations

import hashlib
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from deniable.randomness.bernoulli import uniform_below
from deniable.randomness.source import SECURE

Words = npt.NDArray[np.uint64]
Integers = npt.NDArray[np.int64]

PRIME = 2**61 - 1
_LARGE = np.uint64(PRIME)
_BITS, _REST, _HALF = np.uint64(61), np.uint64(29), np.uint64(32)
_LOW_HALF, _LOW_REST = np.uint64(2**32 - 1), np.uint64(2**29 - 1)
_AT_ONCE = 1 << 13
_PRIME = np.uint64(2**31 - 1)


def fresh_functions(count: int) -> Words:
    """`count` rows (c0, c1, c2)."""
    return uniform_below(PRIME, 3 * count, SECURE).astype(np.uint64).reshape(count, 3)


def public_polynomials(salt: str, count: int) -> Words:
    """Rows of three coefficients that belong to a public text: anybody can compute them."""
    rows = [hashlib.sha256(f"{salt}\n{number}".encode()).digest()[:24] for number in range(count)]
    drawn = np.frombuffer(b"".join(rows), dtype=">u8").astype(np.uint64).reshape(count, 3)
    return drawn % _PRIME


def polynomial_bucket(coefficients: Words, values: npt.NDArray[Any], buckets: int) -> Integers:
    """The bucket of each value below 2^31 - 1, under the polynomial of its own row."""
    point = values.astype(np.uint64)
    inner = (coefficients[..., 2] * point + coefficients[..., 1]) % _PRIME
    mixed = (inner * point + coefficients[..., 0]) % _PRIME
    return ((mixed * np.uint64(buckets)) >> np.uint64(31)).astype(np.int64)


def polynomial_collision(buckets: int) -> Fraction:
    """The probability that two different values share a bucket under a random polynomial."""
    prime = int(_PRIME)
    edges = [min(prime, -(-(number << 31) // buckets)) for number in range(buckets + 1)]
    return Fraction(sum((high - low) ** 2 for low, high in pairwise(edges)), prime**2)


def bucket(functions: Words, values: npt.NDArray[Any], buckets: int) -> Integers:
    """The bucket of each value below 2^32, under the function of its own row."""
    mixed = _polynomial(functions[..., 0], functions, values.astype(np.uint64))
    return (((mixed >> _REST) * np.uint64(buckets)) >> _HALF).astype(np.int64)


def collision(buckets: int) -> Fraction:
    """The probability that two different values share a bucket."""
    return Fraction(sum((high - low) ** 2 for low, high in pairwise(_edges(buckets))), PRIME**2)


def spoken_for(
    functions: Words, buckets_reported: Integers, buckets: int, candidates: Integers
) -> Integers:
    """For each candidate, how many reports name the bucket it falls into.

    A bucket is a range of residues: with its start taken from c0, membership is one comparison.
    From one candidate to the next a polynomial of degree 2 moves by a difference that itself
    moves by 2 c2, so that runs of neighbours need two additions each.
    """
    edges = np.array(_edges(buckets), dtype=np.uint64)
    total = np.zeros(candidates.size, dtype=np.int64)
    breaks = np.flatnonzero(np.diff(candidates) != 1) + 1
    runs = [*pairwise([0, *breaks.tolist(), candidates.size])]
    for at in range(0, buckets_reported.size, _AT_ONCE):
        part = slice(at, at + _AT_ONCE)
        named = buckets_reported[part]
        rows = functions[part]
        start = _folded(rows[:, 0] + (_LARGE - edges[named]))
        width = edges[named + 1] - edges[named]
        second = _folded(rows[:, 2] << np.uint64(1))
        word, spare, inside = start, np.empty_like(start), np.empty(start.size, dtype=np.bool_)
        for first, last in runs:
            value = np.uint64(candidates[first])
            word = _polynomial(start, rows, value)
            total[first] += np.count_nonzero(np.less(word, width, out=inside))
            if last - first == 1:
                continue
            # P(v + 1) - P(v) = c1 + c2 (2 v + 1)
            step = _folded(_polynomial(start, rows, value + np.uint64(1)) + (_LARGE - word))
            for place in range(first + 1, last):
                _add(word, step, spare)
                _add(step, second, spare)
                total[place] += np.count_nonzero(np.less(word, width, out=inside))
    return total


def _edges(buckets: int) -> list[int]:
    """Where buckets begin, and where the last one ends."""
    return [min(PRIME, -(-(number << 32) // buckets) << 29) for number in range(buckets + 1)]


def _polynomial(constant: Words, functions: Words, values: Words | np.uint64) -> Words:
    inner = _folded(_times(functions[..., 2], values) + functions[..., 1])
    return _folded(_times(inner, values) + constant)


def _times(residues: Words, values: Words | np.uint64) -> Words:
    """residue * value for values below 2^32, below 2^63 and right modulo the prime."""
    high = (residues >> _HALF) * values  # below 2^61; 2^61 is 1, so its 2^32-fold is a rotation
    low = (residues & _LOW_HALF) * values
    turned = ((high & _LOW_REST) << _HALF) + (high >> _REST)
    out: Words = turned + (low & _LARGE) + (low >> _BITS)
    return out


def _folded(sums: Words) -> Words:
    """The residue of a number below 2^64."""
    once = (sums & _LARGE) + (sums >> _BITS)
    return np.minimum(once, once - _LARGE)  # what is below the prime wraps to something huge


def _add(residues: Words, more: Words, spare: Words) -> None:
    """Add residues in place."""
    np.add(residues, more, out=residues)
    np.subtract(residues, _LARGE, out=spare)
    np.minimum(residues, spare, out=residues)
