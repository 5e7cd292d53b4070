"""What a pure loss, or an (ε, δ) loss, says about everything else.

Randomised response with parameter ε is the worst ε-DP mechanism (Kairouz, Oh & Viswanath 2015,
section 3; Murtagh & Vadhan 2016, Lemma 3.2): every curve below is that of this one pair of laws.
"""

from __future__ import annotations

import math
from decimal import localcontext
from fractions import Fraction
from statistics import NormalDist

from deniable.privacy.exact import decimal, float_up, high_precision, rounded_up


def delta(pure: Fraction, slack: float, epsilon: Fraction | float) -> float:
    """δ(ε) of the worst (pure, slack)-DP mechanism, ε >= 0, rounded up."""
    gap = float(pure - Fraction(epsilon))  # the difference is exact, so its sign is
    if gap <= 0:
        return slack
    # (e^p - e^ε) / (1 + e^p), without overflow.
    spread = -math.expm1(-gap) / (1 + math.exp(-float(pure)))
    return min(1.0, float_up(slack + (1 - slack) * spread))


def tradeoff(pure: float, slack: float, alpha: float) -> float:
    """Least type-II error at type-I error alpha: max(0, 1-δ-e^ε α, e^-ε (1-δ-α))."""
    grown = math.exp(min(pure + math.log(alpha), 1.0)) if alpha > 0 else 0.0
    straight = 1 - slack - grown - 4e-16
    return max(0.0, straight, math.exp(-pure) * (1 - slack - alpha - 2e-16) * (1 - 1e-15))


def rho(pure: Fraction) -> Fraction:
    """The least ρ that every ε-DP mechanism satisfies: ε tanh(ε/2) <= ε^2/2, rounded up.

    Randomised response has (α-1) D_α = ln cosh((α-1/2) ε) - ln cosh(ε/2). With w = (α-1/2)^2 the
    ratio D_α/α is the slope of the concave function w -> ln cosh(ε sqrt w) between 1/4 and w; it
    is largest as α -> 1, where it is the Kullback-Leibler divergence ε tanh(ε/2).

    It is below ε. Rounded to ε at most, so that large parts of an ε have no more than all of it.
    """
    with localcontext(high_precision(pure)):
        shrink = (-decimal(pure)).exp()
        value = decimal(pure) * (1 - shrink) / (1 + shrink)
    return min(pure, rounded_up(Fraction(value) * (1 + Fraction(1, 10**35))))


def mu(pure: float) -> float:
    """The least μ for which every ε-DP mechanism is μ-GDP: 2 Φ^-1(e^ε / (1 + e^ε)).

    The Gaussian trade-off curve is convex and meets the kink of the pure one at α = 1/(1 + e^ε);
    by convexity it lies below the two chords, which are the pure curve.
    """
    if pure > 700:
        return math.inf
    if pure > 0.1:
        return -2 * NormalDist().inv_cdf(1 / (1 + math.exp(pure))) * (1 + 1e-13)
    # erf(μ/sqrt 8) = tanh(ε/2), by Newton's method: no cancelling near one half.
    wanted = math.tanh(pure / 2)
    x = wanted * math.sqrt(math.pi) / 2
    for _ in range(4):
        x -= (math.erf(x) - wanted) * math.sqrt(math.pi) / 2 * math.exp(x * x)
    return math.sqrt(8) * x * (1 + 1e-13)
