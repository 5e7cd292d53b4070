"""Mironov's attack: with floating-point noise the low bits of an output give the input away."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

import deniable as dp

N = 100_000
FALSE_ALARM = 1e-9


def lowest_set_bit(values: np.ndarray) -> np.ndarray:
    """The exponent of the lowest set bit of each double."""
    mantissa, exponent = np.frexp(values)
    whole = np.abs(np.ldexp(mantissa, 53)).astype(np.int64)
    lowest = np.where(whole == 0, 2000, np.log2(np.maximum(whole & -whole, 1)))
    return (lowest + exponent - 53).astype(int)


def certified_epsilon(here: np.ndarray, there: np.ndarray) -> float:
    """The largest ε that events "lowest set bit at or below k" certify, Clopper-Pearson."""
    levels = np.unique(np.concatenate([here, there]))
    alpha = FALSE_ALARM / (4 * levels.size)
    best = 0.0
    for k in levels:
        for p, q in (
            (here <= k, there <= k),
            (here > k, there > k),
            (there <= k, here <= k),
            (there > k, here > k),
        ):
            low = stats.beta.ppf(alpha, p.sum(), N - p.sum() + 1) if p.any() else 0.0
            high = stats.beta.isf(alpha, q.sum() + 1, N - q.sum()) if not q.all() else 1.0
            if low > high:
                best = max(best, math.log(low / high))
    return best


def attack(release: Callable[[np.ndarray], np.ndarray], x: float, y: float) -> float:
    here, there = (lowest_set_bit(release(np.full(N, value))) for value in (x, y))
    return certified_epsilon(here, there)


PAIRS = [(0.0, 1.0), (0.0, 1 / 3), (1.0, 1 + 2**-20), (0.1, 0.9)]


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 3.0, 10.0])
@pytest.mark.parametrize("pair", PAIRS)
def test_the_lowest_set_bit_shows_nothing(epsilon, pair):
    laplace = dp.Laplace(epsilon=epsilon, sensitivity=1)
    gaussian = dp.Gaussian(epsilon=epsilon, delta=1e-6, sensitivity=1)
    for mechanism in (laplace, gaussian):
        assert attack(mechanism.release, *pair) < 0.05


def test_the_attack_has_power():
    """The same noise in floating point, as textbooks write it, is torn open."""
    generator = np.random.default_rng()

    def naive(values: np.ndarray) -> np.ndarray:
        return values + generator.laplace(scale=10, size=values.size)

    assert attack(naive, 0.0, 1.0) > 1.0  # claimed: 0.1


def test_the_grid_is_the_same_for_every_input():
    """The set of possible outputs does not depend on the input at all."""
    for mechanism in (dp.Laplace(epsilon=0.5, sensitivity=1), dp.Gaussian(rho=0.1, sensitivity=1)):
        step = float(mechanism.lattice.step)
        for value in (0.0, 1 / 3, 0.1, 2**-60, 1e6 / 7):
            out = mechanism.release(np.full(1000, value)) / step
            assert (out == np.round(out)).all()
