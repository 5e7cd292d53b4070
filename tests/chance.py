"""Random checks with one stated false-alarm rate."""

from collections.abc import Callable

import numpy as np
from scipy import stats

FALSE_ALARM = 1e-9  # per check; the whole suite stays below 1e-6


def follows(draws: np.ndarray, pmf: Callable[[np.ndarray], np.ndarray], reach: int) -> bool:
    """Whether integer draws pass chi-square tests of this law: value by value, and in 40 groups.

    The first sees fine structure, the second a wrong scale. Tails beyond ±reach are one cell.
    """
    support = np.arange(-reach, reach + 1)
    expected = pmf(support) * draws.size
    observed = np.bincount(draws[np.abs(draws) <= reach] + reach, minlength=support.size)
    groups = np.minimum((np.cumsum(expected) / draws.size * 40).astype(int), 39)
    fine = _chi_square(observed, expected, draws.size)
    coarse = _chi_square(
        np.bincount(groups, observed, 40), np.bincount(groups, expected, 40), draws.size
    )
    return min(fine, coarse) > FALSE_ALARM / 2


def _chi_square(observed: np.ndarray, expected: np.ndarray, total: int) -> float:
    """p-value; cells that expect fewer than ten join what is left over."""
    full = expected >= 10
    seen = np.append(observed[full], total - observed[full].sum()).astype(float)
    wanted = np.append(expected[full], total - expected[full].sum())
    if wanted[-1] < 10:
        seen, wanted = seen[:-1], wanted[:-1] * seen[:-1].sum() / wanted[:-1].sum()
    return float(stats.chisquare(seen, wanted).pvalue)


def follows_continuous(draws: np.ndarray, cdf: Callable[[np.ndarray], np.ndarray]) -> bool:
    """Whether draws pass a Kolmogorov-Smirnov test of this distribution function."""
    return bool(stats.kstest(draws, cdf).pvalue > FALSE_ALARM)


def plausible_share(hits: int, trials: int, probability: float) -> bool:
    """Whether a count is compatible with a probability, two-sided."""
    test = stats.binomtest(int(hits), int(trials), probability)
    return bool(test.pvalue > FALSE_ALARM)


def laplace_pmf(scale: float) -> Callable[[np.ndarray], np.ndarray]:
    q = np.exp(-1 / scale)
    return lambda x: (1 - q) / (1 + q) * np.exp(-np.abs(x) / scale)


def gaussian_pmf(sigma: float) -> Callable[[np.ndarray], np.ndarray]:
    around = np.arange(-int(40 * sigma) - 40, int(40 * sigma) + 41)
    total = np.exp(-(around.astype(float) ** 2) / (2 * sigma**2)).sum()
    return lambda x: np.exp(-(x.astype(float) ** 2) / (2 * sigma**2)) / total
