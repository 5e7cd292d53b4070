"""Intervals for a mean of decoded reports.

A share is the mean of z = weight of the report in the inverse channel. Where z takes two values
only, as in every yes/no design and in symmetric k-ary ones, the count of the larger one is binomial
and its interval can be exact.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from deniable.mechanisms.base import read_confidence
from deniable.mechanisms.values import Floats
from deniable.privacy.exact import Number


def quantile(confidence: Number) -> float:
    """The two-sided normal quantile."""
    return -NormalDist().inv_cdf(float(1 - read_confidence(confidence)) / 2)


def clopper_pearson(
    count: npt.ArrayLike, n: npt.ArrayLike, confidence: Number
) -> tuple[Floats, Floats]:
    """Covers any binomial probability at least this often (Clopper & Pearson 1934)."""
    from scipy.special import betainccinv, betaincinv  # noqa: PLC0415  (slow to import)

    tail = float(1 - read_confidence(confidence)) / 2
    hits = np.asarray(count, dtype=np.float64)
    misses = np.asarray(n, dtype=np.float64) - hits
    low = np.where(hits > 0, betaincinv(np.maximum(hits, 1), misses + 1, tail), 0.0)
    high = np.where(misses > 0, betainccinv(hits + 1, np.maximum(misses, 1), tail), 1.0)
    return low, high


def score(
    z: Floats, shares: Floats, n: float, prior: Floats, confidence: Number
) -> tuple[float, float]:
    """All t with n (mean - t)² <= c² V(t): Wilson's interval (1927) for two values.

    V(t) = M + β (t - μ) - t² is the variance if the mean were t: the mean of z² follows the line
    of its regression on z. For two values that line is exact. For more it is fitted to the reports,
    to which one report spread like `prior` is added, so that it exists when all are alike.
    """
    c2 = quantile(confidence) ** 2
    mean = float(z @ shares)
    smooth = (n * shares + prior) / (n + 1)
    middle = float(z @ smooth)
    off = z - middle
    within = float(off**2 @ smooth)
    slope = float(z**2 @ (off * smooth)) / within
    # V at the mean, written so that nothing large cancels.
    spread = max(0.0, within + (mean - middle) * (slope - middle - mean))
    lean = c2 * (slope - 2 * mean)
    root = math.sqrt(lean * lean + 4 * (n + c2) * c2 * spread)
    return mean + (lean - root) / (2 * (n + c2)), mean + (lean + root) / (2 * (n + c2))


Mean = TypeVar("Mean", float, Floats)


def wald(mean: Mean, standard_error: Mean, confidence: Number) -> tuple[Mean, Mean]:
    """The mean plus and minus a normal quantile of standard errors; misses too often when few."""
    width = quantile(confidence) * standard_error
    return mean - width, mean + width


def bounded(
    z: Floats, counts: Floats, within: tuple[float, float], least: float, confidence: Number
) -> tuple[float, float]:
    """Covers the mean of decoded reports at least this often, at every size and law.

    A gambler who bets the share θ of a fortune on each z lying above m multiplies it by
    1 - θ + θ (z - a)/(m - a), a being the smallest z: one on average if the mean is m. By Markov's
    inequality the fortune exceeds 2/α with probability α/2 at most, and so does the average over
    several θ (Waudby-Smith & Ramdas 2024, section 4). The ends are the m at which it does.

    θ is about the best, c (m - a)/σ with c² = 2 ln(2/α)/n, over all means `within` these bounds and
    all σ² from `least` up; any θ is valid, a good one gives a short interval.
    """
    tail = float(1 - read_confidence(confidence)) / 2
    floor, ceiling = float(z.min()), float(z.max())
    pace = math.sqrt(-2 * math.log(tail) / float(counts.sum()))
    broad, narrow = (ceiling - floor) / 2, math.sqrt(least)
    low, high = within
    above = _stakes(pace * (low - floor) / broad, pace * (high - floor) / narrow)
    below = _stakes(pace * (ceiling - high) / broad, pace * (ceiling - low) / narrow)
    return (
        floor + _end(z - floor, counts, above, tail),
        ceiling - _end(ceiling - z, counts, below, tail),
    )


def _stakes(least: float, most: float) -> Floats:
    """Shares to bet, each twice the one before."""
    first, last = min(1.0, least), min(1.0, most)
    steps = math.floor(math.log2(last / first)) + 1
    return np.array([min(1.0, 1.4 * first * 2**step) for step in range(steps)])


def _end(above: Floats, counts: Floats, stakes: Floats, tail: float) -> float:
    """The smallest mean of z >= 0 against which the bets have not won 1/tail."""
    seen = counts > 0
    values, times = above[seen], counts[seen]
    mean = float(values @ times / times.sum())
    low, high = 0.0, mean
    for _ in range(60):
        middle = (low + high) / 2
        if middle <= 0:
            break
        with np.errstate(divide="ignore"):
            won = np.log(1 + np.outer(stakes, values / middle - 1)) @ times
        most = float(won.max())
        fortune = most + math.log(float(np.exp(won - most).mean())) if most > -math.inf else most
        low, high = (middle, high) if fortune > -math.log(tail) else (low, middle)
    return low
