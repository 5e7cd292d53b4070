"""Exact coins: probability p/q, probability exp(-x), and uniform integers.

Each compares a lazily revealed uniform U with the exact probability. 64 bits settle nearly all;
the rest are settled by integers. `PROOF.md`, section 4.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache, partial

import numpy as np
import numpy.typing as npt

from deniable.randomness.brackets import Bracket, exp_minus
from deniable.randomness.source import Source, bits, words

Coins = npt.NDArray[np.bool_]

# Probabilities in floats are right to within 2^-41, of which the exponential itself takes 2^-44
# (PROOF.md, section 4).
SLACK = 2.0**-40
_TERMS = 22
_NOTHING = 2.0**-60
_WHOLE = 64


def bernoulli(probability: Fraction, count: int, source: Source) -> Coins:
    """Draw `count` coins that come up True with exactly this probability."""
    if probability <= 0:
        return np.zeros(count, dtype=np.bool_)
    if probability >= 1:
        return np.ones(count, dtype=np.bool_)
    floor, rest = divmod(probability.numerator << 64, probability.denominator)
    word = words(source, count)
    out = word < np.uint64(floor)
    for at in np.flatnonzero(word == np.uint64(floor)):
        out[at] = _next_digits(rest, probability.denominator, source)
    return out


def _next_digits(rest: int, denominator: int, source: Source) -> bool:
    """Compare further 64-bit digits of U with those of rest/denominator."""
    while rest:
        floor, rest = divmod(rest << 64, denominator)
        word = bits(source, 64)
        if word != floor:
            return word < floor
    return False


def below_exp(
    word: npt.NDArray[np.uint64],
    approximate: npt.NDArray[np.float64],
    bracket: Callable[[int, int], Bracket],
    source: Source,
) -> Coins:
    """Decide U < exp(-x) for each place, U's first 64 bits being `word`; more bits as needed.

    `approximate` holds x so that exp(-x) is right to within 2^-42; `bracket(at, precision)`
    encloses exp(-x) as closely as one likes.
    """
    probability = exp_minus_floats(approximate)
    uniform = word.astype(np.float64) * 2.0**-64
    out = uniform < probability
    for at in np.flatnonzero(np.abs(uniform - probability) <= SLACK):
        out[at] = settle(partial(bracket, int(at)), int(word[at]), source)
    return out


def settle(bracket: Callable[[int], Bracket], word: int, source: Source) -> bool:
    """Decide U < p exactly, `bracket(precision)` enclosing p and `word` being U's first 64 bits."""
    precision = 64
    while True:
        probability = bracket(precision)
        if word + 1 <= probability.low:
            return True
        if word >= probability.high:
            return False
        word = (word << 64) | bits(source, 64)
        precision += 64


def exp_minus_floats(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """exp(-x) for x >= 0 to within 2^-44, by IEEE additions and multiplications alone.

    No libm is trusted: whole parts come from a table rounded from certified brackets, the rest
    from the Taylor polynomial on [0, 1), evaluated by Horner's rule.
    """
    whole = np.minimum(np.floor(x), _WHOLE)
    rest = np.minimum(x - whole, 1.0)
    # So little moves nothing, and its products would be too small for doubles.
    rest = np.where(rest < _NOTHING, 0.0, rest)
    value = np.ones_like(rest)
    for order in range(_TERMS, 0, -1):
        value = 1.0 - rest * value / order
    return value * _whole_powers()[whole.astype(np.intp)]


@lru_cache(maxsize=1)
def _whole_powers() -> npt.NDArray[np.float64]:
    """exp(-0), exp(-1), ..., and 0 in the last place: exp(-64) is below 2^-92."""
    powers = [exp_minus(Fraction(k), 128).low / 2**128 for k in range(_WHOLE)]
    return np.array([*powers, 0.0])


def uniform_below(bound: int, count: int, source: Source) -> npt.NDArray[np.int64]:
    """Draw `count` integers uniform on 0, ..., bound - 1, for 1 <= bound <= 2^63."""
    limit = (1 << 64) - (1 << 64) % bound
    out = words(source, count)
    if limit < 1 << 64:
        while (again := np.flatnonzero(out >= np.uint64(limit))).size:
            out[again] = words(source, again.size)
    return (out % np.uint64(bound)).astype(np.int64)
