"""The loss of the exponential mechanism."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import ClassVar

import numpy as np

from deniable.privacy.accountants import pure
from deniable.privacy.accountants.law import ULP, DominatingPair, Floats, Reading, Rest
from deniable.privacy.exact import Number, decimal, float_up, high_precision, whole
from deniable.privacy.losses.base import Concentrated, Loss, ratio
from deniable.privacy.losses.generic import response_law
from deniable.privacy.parameters import Parameter, parameter, parameters
from deniable.privacy.search import golden


@parameters
class ExponentialLoss(Loss):
    """A choice whose log ratios on neighbours span at most `bound`: bounded range.

    The worst case for a given δ is one of the two-outcome pairs with log ratios t and t - bound
    (Dong, Durfee & Rogers 2020, Lemma 3.2 and Thm 1); every curve here is the worst over t.
    """

    kind: ClassVar[str] = "exponential"
    bound: Parameter[Number, Fraction] = parameter(ratio)

    @property
    def pure(self) -> Fraction:
        """The bound (McSherry & Talwar 2007, Thm 6)."""
        return self.bound

    @property
    def concentrated(self) -> Concentrated:
        """bound²/8 (Cesar & Rogers 2021), or that of any pure loss where it is less."""
        return Concentrated(min(self.bound**2 / 8, pure.rho(self.bound)), Fraction(0))

    def profile(self, epsilon: Fraction | float) -> float:
        """(1 - e^(-(bound-ε)/2))² / (1 - e^-bound), reached at t = (bound + ε)/2."""
        gap = float(self.bound - Fraction(epsilon))
        if gap <= 0:
            return 0.0
        return min(1.0, float_up(math.expm1(-gap / 2) ** 2 / -math.expm1(-float(self.bound))))

    def law(self) -> DominatingPair:
        """The pair whose curve is `profile`; no one choice has it, but it is worse than any."""
        bound, scale = float(self.bound), -math.expm1(-float(self.bound))

        def curve(epsilon: Floats) -> Reading:
            share = -np.expm1(-np.maximum(bound - epsilon, 0.0) / 2)
            return Reading(share**2 / scale, share * ULP * (12 * share + 24 * bound) / scale)

        return DominatingPair(rest=Rest(curve, curve))

    def floor(self) -> DominatingPair:
        """The pair with t = bound/2."""
        return response_law(float(self.bound / 2))

    def divergence(self, order: float) -> float:
        """The largest over t, and never above α bound²/8."""
        worst = golden(lambda share: self._of_pair(share, order), 1e-9, 1 - 1e-9)
        return min(worst * (1 + 1e-9), order * float(self.concentrated.rho))

    def _of_pair(self, share: float, order: float) -> float:
        """Rényi divergence of the pair with log ratios t and t - bound, t = share * bound."""
        with localcontext(high_precision(self.bound)):
            b, a = decimal(self.bound), Decimal(repr(order))
            t = b * Decimal(repr(share))
            # Under Q the outcome with log ratio t has probability `up`.
            up = ((-t).exp() - (-b).exp()) / (1 - (-b).exp())
            if a == 1:
                return float(up * t.exp() * t + (1 - up) * (t - b).exp() * (t - b))
            # ln[up e^(αt) + (1-up) e^(α(t-b))], the larger exponent taken out
            return float((a * t + (up + (1 - up) * (-a * b).exp()).ln()) / (a - 1))

    def group(self, size: int) -> ExponentialLoss:
        """k units move every score k times as far."""
        return replace(self, bound=self.bound * whole(size, "size"))
