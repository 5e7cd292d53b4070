"""The Gaussian curve: δ(ε) and trade-off of N(0, 1) against N(μ, 1).

δ(ε) = Φ(-z) - e^ε Φ(-z-μ) with z = ε/μ - μ/2 (Balle & Wang 2018, Thm 8; Dong, Roth & Su 2022,
Cor. 2.13). It is read as φ(z) ∫_0^∞ e^(-zt - t^2/2) (1 - e^(-μt)) dt where the difference would
cancel. ln δ is rounded up by 1e-12 and by what rounding z can do, which together cover the error
for every μ from 1e-100 to 1e6; for μ up to 1000 and δ down to 1e-300 eleven digits are right.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import pairwise
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from deniable.privacy.accountants.law import ULP, Floats, Reading
from deniable.privacy.search import greatest

_LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)
_SMALL = 1e-6  # μ below which δ is taken from the integral
_BLOCK = 1 << 12


def log_delta(mu: float, epsilon: float) -> float:
    """ln δ(ε) of a μ-GDP release, ε >= 0, rounded up."""
    z = epsilon / mu - mu / 2
    if z > 1e6:
        return -z * z / 2  # Φ(-z) <= e^(-z²/2), beyond all floats
    lost = 1e-15 * (abs(z) + 1) * (epsilon / mu + mu / 2)
    return min(0.0, _log_delta(mu, z) + 1e-12 + lost)


def _log_delta(mu: float, z: float) -> float:
    if z < -1:
        # Here δ is of order one: the plain difference is harmless.
        inner = _upper_tail(z) - math.exp(_log_density(z)) * mills_ratio(z + mu)
        return math.log(inner)
    # Where e^(-μt) falls too fast for the quadrature, the Mills ratios differ by far.
    far = mu * _reach(z) > 1000
    inside = mills_ratio(z) - mills_ratio(z + mu) if far else overlap(z, mu)
    return _log_density(z) + math.log(inside) if inside > 0 else -math.inf


def delta(mu: float, epsilon: float) -> float:
    """δ(ε) of a μ-GDP release, ε >= 0."""
    return math.exp(log_delta(mu, epsilon))


def curve(mu: float, epsilon: Floats) -> Reading:
    """δ at many ε >= 0, rounded to nearest, and how far each value may be off."""
    from scipy.special import erfcx, ndtr  # noqa: PLC0415  (slow to import, and seldom needed)

    z = np.minimum(np.minimum(epsilon, 1e150 * mu) / mu, 1e6 + mu) - mu / 2  # beyond, δ is 0
    if mu < _SMALL:
        return _small_curve(mu, z)
    density = np.exp(-z * z / 2)
    near, far = ndtr(-z), density * erfcx((z + mu) / math.sqrt(2)) / 2
    # Φ is right to 3(2 + z²) units, the other product to 10 + z²; μ is rounded, and ε off by 8.
    moved = far * (20 * np.minimum(epsilon, 1e150) + 3 * mu * np.abs(z)) + mu * density
    error = ULP * ((6 + 3 * z * z) * near + (10 + z * z) * far + moved) + 1e-305
    return Reading(np.maximum(near - far, 0.0), error)


def _small_curve(mu: float, z: Floats) -> Reading:
    """The same for a small μ, whose two terms would cancel: by the integral, z >= -1."""
    nodes, weights = _legendre()
    values = np.zeros(len(z))
    for start in range(0, len(z), _BLOCK):
        at = z[start : start + _BLOCK, None]
        reach = np.where(at < 1, np.sqrt(at * at + 90) - at, 90 / (np.sqrt(at * at + 90) + at))
        t = reach * nodes
        inside = np.exp(-at * t - t * t / 2) * -np.expm1(-mu * t)
        values[start : start + _BLOCK] = (inside * weights).sum(axis=1) * reach[:, 0]
    values *= np.exp(-z * z / 2 - _LOG_SQRT_2PI)
    return Reading(values, 1e-13 * (1 + z * z) * values + 1e-305)


def tradeoff(mu: float, alpha: float) -> float:
    """Least type-II error at type-I error alpha: Φ(Φ^-1(1-α) - μ)."""
    if alpha in (0.0, 1.0):
        return 1.0 - alpha
    normal = NormalDist()
    return _upper_tail(mu + normal.inv_cdf(alpha)) * (1 - 1e-12)


def largest_mu(epsilon: float, delta: float) -> float:
    """The greatest μ whose release is (ε, δ)-DP: the analytic calibration."""
    target = math.log(delta)
    mu = greatest(lambda mu: log_delta(mu, epsilon) <= target, 1e-100, 1e9)
    # A hair below, so that the least rounding of μ later does not spoil it.
    return mu * (1 - 1e-12)


def mills_ratio(x: float) -> float:
    """Φ(-x) / φ(x), to full precision for x > -35."""
    if x < 5:
        return math.sqrt(math.pi / 2) * math.exp(x * x / 2) * math.erfc(x / math.sqrt(2))
    # Laplace's continued fraction 1/(x + 1/(x + 2/(x + 3/(x + ...)))), from the inside.
    tail = x
    for k in range(120, 0, -1):
        tail = x + k / tail
    return 1 / tail


def overlap(z: float, mu: float, ahead: float = 0.0) -> float:
    """∫_0^∞ e^(-zt - t²/2) (1 - e^(-μt - ahead)) dt for z >= -1; the integrand is positive."""
    reach = _reach(z)
    nodes, weights = _legendre()
    t = reach * nodes
    return reach * float(weights @ (np.exp(-z * t - t * t / 2) * -np.expm1(-mu * t - ahead)))


def _reach(z: float) -> float:
    """Where e^(-zt - t²/2) has fallen to e^-45."""
    return math.sqrt(z * z + 90) - z if z < 1 else 90 / (math.sqrt(z * z + 90) + z)


@lru_cache(maxsize=1)
def _legendre() -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Gauss-Legendre on [0, 1], in four panels of 64 nodes, shorter towards 0."""
    x, w = np.polynomial.legendre.leggauss(64)
    edges = [0.0, 0.05, 0.2, 0.5, 1.0]
    panels = list(pairwise(edges))
    nodes = np.concatenate([a + (b - a) * (x + 1) / 2 for a, b in panels])
    weights = np.concatenate([(b - a) * w / 2 for a, b in panels])
    return nodes, weights


def _log_density(x: float) -> float:
    return -x * x / 2 - _LOG_SQRT_2PI


def _upper_tail(x: float) -> float:
    return math.erfc(x / math.sqrt(2)) / 2
