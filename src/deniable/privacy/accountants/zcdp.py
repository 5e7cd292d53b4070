"""Zero-concentrated DP: tight conversion, and the least ρ of the Laplace laws.

Conversion: Canonne, Kamath & Steinke 2020, Prop. 12. Any order α gives a sound bound;
the best one solves (2α - 1) ρ - ε + ln(1 - 1/α) = 0.
"""

from __future__ import annotations

import math
from decimal import localcontext
from fractions import Fraction
from functools import lru_cache

from deniable.privacy.exact import decimal, high_precision, rounded_up
from deniable.privacy.search import bracket_up, greatest, least


def delta(rho: float, epsilon: float) -> float:
    """The δ that ρ-zCDP proves at ε by its best Rényi order."""
    return math.exp(log_delta(rho, epsilon))


def log_delta(rho: float, epsilon: float) -> float:
    """ln of min over α > 1 of exp((α-1)(αρ-ε)) / (α-1) * (1 - 1/α)^α, rounded up, 0 at most."""
    above_one = least(lambda a: (2 * a + 1) * rho - epsilon - math.log1p(1 / a) >= 0, 1e-15, 1e150)
    order = 1 + above_one
    rest = -above_one * math.log1p(1 / above_one) - math.log(order)
    lost = 1e-15 * (above_one * order * rho + above_one * epsilon)
    return min(0.0, above_one * (order * rho - epsilon) + rest + lost + 1e-12)


@lru_cache(maxsize=256)
def epsilon(rho: float, delta: float) -> float:
    """The ε that ρ-zCDP proves at δ by its best Rényi order."""
    target = math.log(delta)
    if log_delta(rho, 0.0) <= target:
        return 0.0
    high = bracket_up(lambda e: log_delta(rho, e) <= target, epsilon_bun_steinke(rho, delta))
    return least(lambda e: log_delta(rho, e) <= target, 0.0, high)


def epsilon_bun_steinke(rho: float, delta: float) -> float:
    """The textbook conversion ρ + 2 sqrt(ρ ln(1/δ)) (Bun & Steinke 2016, Prop. 1.3), looser."""
    return rho + 2 * math.sqrt(rho * -math.log(delta))


@lru_cache(maxsize=256)
def largest_rho(epsilon: float, delta: float) -> float:
    """The greatest ρ that proves (ε, δ)-DP."""
    target = math.log(delta)
    return greatest(lambda rho: log_delta(rho, epsilon) <= target, 1e-200, 1e12)


def laplace_rho(pure: Fraction) -> Fraction:
    """The least ρ of Laplace noise with Δ/b = ε: ε - 1 + e^-ε, rounded up.

    (Harrison & Manurangsi 2026 prove it; a short way:) with s = α - 1/2,
    exp((α-1) D_α) = e^(-ε/2) (cosh sε + sinh(sε)/2s) =: e^(-ε/2) F(s^2). F is entire of order 1/2
    and its zeros w = -y^2 are the eigenvalues of u'' = -y^2 u, u'(0) = u(0)/2, u(ε) = 0: all real
    and negative. So ln F is concave in w = s^2, D_α/α is its slope from w = 1/4, and the supremum
    is the limit α -> 1, the Kullback-Leibler divergence.
    """
    with localcontext(high_precision(pure)):
        e = decimal(pure)
        value = e - 1 + (-e).exp()
    return rounded_up(Fraction(value) * (1 + Fraction(1, 10**35)))


def discrete_laplace_rho(scale: Fraction, shift: int) -> Fraction:
    """The least ρ of discrete Laplace noise moved by a whole `shift`, rounded up.

    As above with F(s^2) = 2 cosh(sε) + (1-q) Σ cosh(s(ε-2th)), h = 1/scale, q = e^-h. Its zeros
    s = iy are those of a Blaschke product: (1-qζ) = ζ^Δ (ζ-q) at ζ = e^(2iyh) has solutions only on
    the unit circle, so every y is real, and the supremum is again the divergence
    ε - (1 - e^-ε) h / sinh h, which is below ε.
    """
    pure = shift / scale
    with localcontext(high_precision(min(pure, 1 / scale))):
        e, h = decimal(pure), decimal(1 / scale)
        value = e - (1 - (-e).exp()) * 2 * h / (h.exp() - (-h).exp())
    return min(pure, rounded_up(Fraction(value) * (1 + Fraction(1, 10**35))))
