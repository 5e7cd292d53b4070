"""Every table threshold against 600-bit arithmetic that shares no code with the sampler."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from deniable.randomness.gaussian import CellSampler
from deniable.randomness.laplace import LaplaceSampler

TOP = (1 << 64) - 1
LAPLACE = [
    Fraction(s)
    for s in (
        "1/1000000",
        "1/50",
        "1/3",
        "3/7",
        "1",
        "10",
        "15.9",
        "16.1",
        "200/3",
        "1000",
        "1000000/7",
        "1000000",
        str(2**40),
        str(2**56),
    )
]
GAUSSIAN = [
    Fraction(s)
    for s in ("1/50", "1/2", "1", "10", "47.9", "48.1", "300", "1000000/7", str(2**40), str(2**56))
]


def mp(x: Fraction) -> mpmath.mpf:
    return mpmath.mpf(x.numerator) / x.denominator


def floors(weights: list[mpmath.mpf], total: mpmath.mpf, count: int) -> list[int]:
    running, out = mpmath.mpf(0), []
    for weight in weights[:count]:
        running += weight
        out.append(min(int(mpmath.floor(mpmath.ldexp(running / total, 64))), TOP))
    return out


def laplace_tables(scale: Fraction, one_sided: bool):
    """Each table of the sampler beside its weights and their sum, straight from the definition."""
    sampler = LaplaceSampler(scale, one_sided=one_sided)
    below = 0
    for width, table in zip(sampler._widths, sampler._digits, strict=True):
        weights = [mpmath.exp(-d * mp(Fraction(1 << below) / scale)) for d in range(1 << width)]
        yield table, weights, mpmath.fsum(weights)
        below += width
    cell = mp(Fraction(1 << below) / scale)
    count = sampler._top._thresholds.size + 2
    if one_sided:
        weights = [mpmath.exp(-h * cell) for h in range(count)]
        yield sampler._top, weights, 1 / (1 - mpmath.exp(-cell))
    else:
        left = mpmath.exp(-1 / mp(scale))
        weights = [mpmath.exp(-(i // 2) * cell) * (left if i % 2 else 1) for i in range(count)]
        yield sampler._top, weights, (1 + left) / (1 - mpmath.exp(-cell))


def gaussian_table(sigma: Fraction, per_sigma: int):
    sampler = CellSampler(sigma**2, per_sigma)
    rate = mp(Fraction(1 << (2 * sampler._bits)) / (2 * sigma**2))
    places = [(i + 1) // 2 if sampler._bits == 0 else i // 2 for i in range(120 * per_sigma)]
    weights = [mpmath.exp(-rate * j * j) for j in places]
    yield sampler._cells, weights, mpmath.fsum(weights)


def all_tables():
    for scale in LAPLACE:
        yield from laplace_tables(scale, one_sided=False)
        yield from laplace_tables(scale, one_sided=True)
    for sigma in GAUSSIAN:
        yield from gaussian_table(sigma, 32)
        yield from gaussian_table(sigma, 4)


@pytest.mark.slow
def test_twenty_thousand_thresholds_are_right():
    checked = 0
    with mpmath.workprec(600):
        for table, weights, total in all_tables():
            stored = [int(t) for t in table._thresholds]
            assert stored == floors(weights, total, len(stored))
            assert stored[-1] == TOP
            checked += len(stored)
    assert checked > 20_000


@pytest.mark.parametrize("sampler", [LaplaceSampler(Fraction(10)), CellSampler(Fraction(100), 32)])
def test_the_lookup_agrees_with_the_thresholds_in_every_cell(sampler):
    table = sampler._top if isinstance(sampler, LaplaceSampler) else sampler._cells
    lookup, thresholds = table._lookup, table._thresholds
    for cell in range(1 << 16):
        first, last = np.searchsorted(
            thresholds, np.array([cell << 48, (cell << 48) | ((1 << 48) - 1)], dtype=np.uint64)
        )
        holds_threshold = bool(((thresholds >> np.uint64(48)) == cell).any())
        if holds_threshold:
            assert lookup[cell] == np.iinfo(np.int16).min
        else:
            assert first == last
            assert lookup[cell] == (first >> 1) ^ -(first & 1)
