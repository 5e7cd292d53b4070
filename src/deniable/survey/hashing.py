"""Hash functions drawn at random, whose collisions have a known probability, exactly.

h(v) = ((a v + b mod 2^64) >> 32) * g >> 32, for a and b uniform below 2^64. For two different
v below 2^32 the pair of 32-bit words before the last step is uniform (multiply-shift;
Dietzfelbinger 1996), so they meet in one of g buckets with probability Σ (c_r/2^32)², c_r being
the number of words of bucket r: exactly 1/g where g is a power of two, and within g 2^-64 of it
otherwise, the same for every pair. That makes estimates unbiased. Privacy does
not rest on it: whatever function is drawn, it is drawn without looking at the answer.

A few functions that serve all clients of a survey are polynomials of degree 2 modulo 2^31 - 1
instead: any three values fall independently (Wegman & Carter 1981), so that the collisions of a
value with two others are uncorrelated.
"""

from __future__ import annotations

import hashlib
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from deniable.randomness.source import SECURE, words

Words = npt.NDArray[np.uint64]
Integers = npt.NDArray[np.int64]

_HALF = np.uint64(32)
_AT_ONCE = 1 << 13
_PRIME = np.uint64(2**31 - 1)


def fresh_seeds(count: int) -> Words:
    """`count` rows (a, b)."""
    return words(SECURE, 2 * count).reshape(count, 2)


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


def bucket(seeds: Words, values: npt.NDArray[Any], buckets: int) -> Integers:
    """The bucket of each value, under the function of its own row of seeds."""
    mixed = seeds[..., 0] * values.astype(np.uint64) + seeds[..., 1]
    return (((mixed >> _HALF) * np.uint64(buckets)) >> _HALF).astype(np.int64)


def collision(buckets: int) -> Fraction:
    """The probability that two different values share a bucket."""
    edges = [-(-(number << 32) // buckets) for number in range(buckets + 1)]
    return Fraction(sum((high - low) ** 2 for low, high in pairwise(edges)), 1 << 64)


def spoken_for(
    seeds: Words, buckets_reported: Integers, buckets: int, candidates: Integers
) -> Integers:
    """For each candidate, how many reports name the bucket it falls into.

    A bucket is a range of words, so membership is one multiplication, one addition and one
    comparison modulo 2^64.
    """
    edges = np.array([-(-(number << 32) // buckets) for number in range(buckets)], dtype=np.uint64)
    ends = np.append(edges[1:], np.uint64(1 << 32))
    total = np.zeros(candidates.size, dtype=np.int64)
    consecutive = bool((np.diff(candidates) == 1).all())
    for at in range(0, buckets_reported.size, _AT_ONCE):
        part = slice(at, at + _AT_ONCE)
        named = buckets_reported[part]
        step = np.ascontiguousarray(seeds[part, 0])
        start = seeds[part, 1] - (edges[named] << _HALF)
        width = (ends[named] - edges[named]) << _HALF
        word = step * np.uint64(candidates[0]) + start
        inside = np.empty(word.size, dtype=np.bool_)
        for place, candidate in enumerate(candidates.tolist()):
            if place:
                if consecutive:
                    np.add(word, step, out=word)
                else:
                    word = step * np.uint64(candidate) + start
            np.less(word, width, out=inside)
            total[place] += np.count_nonzero(inside)
    return total
