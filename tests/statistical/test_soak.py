"""Long runs: `make soak`."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from chance import FALSE_ALARM, gaussian_pmf, laplace_pmf
from deniable.randomness.noise import GaussianLaw, LaplaceLaw, noise

DRAWS = 20_000_000
BATCH = 1_000_000


def p_value(law, pmf, reach: int) -> float:
    counts = np.zeros(2 * reach + 1)
    for _ in range(DRAWS // BATCH):
        draws = noise(law).many(BATCH)
        counts += np.bincount(draws[np.abs(draws) <= reach] + reach, minlength=2 * reach + 1)
    expected = pmf(np.arange(-reach, reach + 1)) * DRAWS
    full = expected >= 10
    seen = np.append(counts[full], DRAWS - counts[full].sum())
    wanted = np.append(expected[full], DRAWS - expected[full].sum())
    if wanted[-1] < 10:
        seen, wanted = seen[:-1], wanted[:-1] * seen[:-1].sum() / wanted[:-1].sum()
    return float(stats.chisquare(seen, wanted).pvalue)


@pytest.mark.soak
@pytest.mark.parametrize("scale", ["1/3", "1", "10", "200/3"])
def test_twenty_million_laplace_draws(scale):
    s = Fraction(scale)
    found = p_value(LaplaceLaw(s), laplace_pmf(float(s)), int(25 * float(s)) + 10)
    print(f"Laplace {scale}: p = {found:.3f}")
    assert found > FALSE_ALARM


@pytest.mark.soak
@pytest.mark.parametrize("sigma", ["1/2", "1", "10", "47", "49", "300"])
def test_twenty_million_gaussian_draws(sigma):
    s = Fraction(sigma)
    found = p_value(GaussianLaw(s**2), gaussian_pmf(float(s)), int(7 * float(s)) + 5)
    print(f"Gaussian {sigma}: p = {found:.3f}")
    assert found > FALSE_ALARM


@pytest.mark.soak
def test_the_soak_has_power():
    assert p_value(LaplaceLaw(Fraction(10)), laplace_pmf(10.1), 260) < FALSE_ALARM
    assert p_value(GaussianLaw(Fraction(100)), gaussian_pmf(10.05), 75) < FALSE_ALARM
