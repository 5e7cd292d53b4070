"""The two laws of additive noise: what covers which norm, how far it reaches, what it costs."""

from __future__ import annotations

import math
from bisect import bisect_left
from decimal import localcontext
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache, partial

import numpy as np

from deniable.errors import CalibrationError, ParameterError
from deniable.privacy.exact import decimal, high_precision
from deniable.privacy.losses.gaussian import DiscreteGaussianLoss
from deniable.privacy.losses.laplace import DiscreteLaplaceLoss
from deniable.privacy.search import least
from deniable.privacy.units import Relation
from deniable.randomness.noise import GaussianLaw, LaplaceLaw

AdditiveLaw = LaplaceLaw | GaussianLaw


class Norm(StrEnum):
    """How contributions are bounded, and so which noise covers them."""

    L1 = "l1"
    L2 = "l2"

    @property
    def order(self) -> int:
        """1 or 2."""
        return 1 if self == Norm.L1 else 2

    def law(self, spread: Fraction) -> AdditiveLaw:
        """Laplace noise of this scale, or Gaussian noise of this deviation."""
        return LaplaceLaw(spread) if self == Norm.L1 else GaussianLaw(spread**2)

    def loss(
        self, spread: Fraction, sensitivity: Fraction, relation: Relation
    ) -> DiscreteLaplaceLoss | DiscreteGaussianLoss:
        """What noise of this spread costs, on integers that move so far."""
        if self == Norm.L1:
            return DiscreteLaplaceLoss(scale=spread, sensitivity=sensitivity, relation=relation)
        return DiscreteGaussianLoss(variance=spread**2, sensitivity=sensitivity, relation=relation)


def quantile(law: AdditiveLaw, confidence: Fraction) -> int:
    """A w >= 0 with P(|Z| <= w) >= confidence.

    The least one for Laplace noise, and for Gaussian noise up to σ = 10^5.
    """
    if isinstance(law, GaussianLaw):
        return _gaussian_quantile(law.variance, confidence)
    # P(|Z| > w) = 2 q^(w+1)/(1+q), q = exp(-1/scale)
    with localcontext(high_precision(min(1 / law.scale, 1 - confidence))):
        s, miss = decimal(law.scale), decimal(1 - confidence)
        reach = s * (2 / (miss * (1 + (-1 / s).exp()))).ln() - 1
        return max(0, math.ceil(reach))


@lru_cache(maxsize=1024)  # an answer asks for the same ones each time that it is shown
def _gaussian_quantile(variance: Fraction, confidence: Fraction) -> int:
    """Above σ = 10^5, the sum over |x| <= w is bounded from below by the integral to w + 1/2.

    That is erf((w + 1/2)/σ sqrt 2): the corrections of the midpoint rule have the right sign.
    """
    sigma, miss = math.sqrt(variance), float(1 - confidence)
    if sigma > 1e5:
        reach = _inverse_erf(float(confidence), miss) * math.sqrt(2) * sigma
        return max(0, math.ceil(reach * (1 + 1e-14) - 0.5))
    sizes = np.arange(math.ceil(40 * sigma) + 40)
    weights = np.exp(-(sizes**2) / (2 * sigma**2))
    weights[1:] *= 2
    # beyond[w] = P(|Z| > w), summed from the far end so that small tails keep their digits
    beyond = np.append(np.cumsum(weights[::-1])[::-1][1:], 0.0) / weights.sum()
    return int(np.argmax(beyond * (1 + 1e-12) <= miss))


def _inverse_erf(value: float, rest: float) -> float:
    """An x with erf(x) >= value = 1 - rest, by whichever of the two has more digits."""
    if value < 0.5:
        return least(lambda x: math.erf(x) >= value * (1 + 1e-15), 0.0, 1.0)
    return least(lambda x: math.erfc(x) <= rest * (1 - 1e-15), 0.0, 30.0)


def tail_threshold(law: AdditiveLaw, chance: Fraction) -> int:
    """A whole t >= 1 with P(Z >= t) <= chance; the least one for Laplace noise."""
    if isinstance(law, LaplaceLaw):  # P(Z >= t) = q^t/(1+q), q = exp(-1/scale)
        with localcontext(high_precision(min(1 / law.scale, chance, Fraction(1)))):
            s, rare = decimal(law.scale), decimal(chance)
            reach = -s * (rare * (1 + (-1 / s).exp())).ln()
            return max(1, math.ceil(reach))
    hides = partial(gaussian_tail_is_small, variance=law.variance, chance=chance)
    high = 1
    while not hides(high):
        high *= 2
        if high > 1 << 60:
            raise CalibrationError("no threshold hides single units under so much noise")
    return bisect_left(range(high), True, lo=high // 2 + 1, key=hides) if high > 1 else 1


def gaussian_tail_is_small(t: int, variance: Fraction, chance: Fraction) -> bool:
    """Whether P(Z >= t) <= chance for discrete Gaussian noise Z, by a bound.

    Terms e^(-x²/2σ²) shrink by e^(-(2x+1)/2σ²) from one to the next, so that those from t on sum
    to at most the first over 1 - e^(-(2t+1)/2σ²); the normaliser is at least max(1, σ sqrt(2π))
    (Canonne, Kamath & Steinke 2020, Fact 18).
    """
    if t < 1:
        return False
    with localcontext(high_precision()):
        s2 = decimal(variance)
        shrink = (-(2 * decimal(Fraction(t)) + 1) / (2 * s2)).exp()
        first = (-(decimal(Fraction(t)) ** 2) / (2 * s2)).exp()
        two_pi = decimal(Fraction(6283185307179586, 10**15))  # below 2π
        whole_sum = max(decimal(Fraction(1)), (s2 * two_pi).sqrt())
        bound = first / (1 - shrink) / whole_sum
        return bool(bound * (1 + decimal(Fraction(1, 10**30))) <= decimal(chance))


def log_ratio(law: AdditiveLaw, output: list[int], x: list[int], y: list[int]) -> float:
    """The privacy loss of one output: ln of P(output | x) / P(output | y)."""
    if len({len(output), len(x), len(y)}) > 1:
        raise ParameterError("output, x, y", "different shapes", "must be of one shape")
    apart = zip(output, x, y, strict=True)
    if isinstance(law, LaplaceLaw):
        return float(sum(abs(o - b) - abs(o - a) for o, a, b in apart) / law.scale)
    return float(sum((o - b) ** 2 - (o - a) ** 2 for o, a, b in apart) / (2 * law.variance))
