"""Exact planar Laplace draws on the integer plane: P(a, b) proportional to exp(-|(a, b)|/scale).

The Euclidean norm is at least (|a| + |b|)/sqrt 2, so a pair of discrete Laplace draws with a scale
of sqrt 2 times `scale`, or a little more, is an envelope: the pair is kept with probability
exp(-(|(a, b)|/scale - (|a| + |b|)/wide)). About 78 in 100 are kept. `PROOF.md`, section 7.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from deniable.randomness.bernoulli import below_exp
from deniable.randomness.brackets import Bracket, exp_minus
from deniable.randomness.noise import LaplaceLaw, noise
from deniable.randomness.source import Source, words

_SQRT2_UP = Fraction(math.isqrt(2 * 10**40) + 1, 10**20)


def draw_planar(scale: Fraction, count: int, source: Source) -> npt.NDArray[np.int64]:
    """Draw `count` integer pairs, one to a row."""
    wide = scale * _SQRT2_UP
    pairs = noise(LaplaceLaw(wide)).many(2 * count).reshape(count, 2)
    sizes = np.abs(pairs)

    def exponent(at: int, precision: int) -> tuple[Fraction, Fraction]:
        """Bounds of |(a, b)|/scale - (|a| + |b|)/wide, which is never negative."""
        a, b = (int(size) for size in sizes[at])
        root = math.isqrt((a * a + b * b) << (2 * precision))
        envelope = (a + b) / wide
        low, high = (Fraction(root + up, 1 << precision) / scale - envelope for up in (0, 1))
        return max(low, Fraction(0)), high

    def bracket(at: int, precision: int) -> Bracket:
        low, high = exponent(at, precision)
        return Bracket(exp_minus(high, precision).low, exp_minus(low, precision).high)

    norms = np.hypot(*sizes.astype(np.float64).T)
    approximate = norms / float(scale) - sizes.sum(axis=1) / float(wide)
    kept = below_exp(words(source, count), np.maximum(approximate, 0.0), bracket, source)
    again = np.flatnonzero(~kept)
    if again.size:
        pairs[again] = draw_planar(scale, again.size, source)
    return pairs
