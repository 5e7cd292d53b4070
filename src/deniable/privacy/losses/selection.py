"""The loss of the exponential mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

from deniable.privacy.exact import positive, whole
from deniable.privacy.losses.base import Concentrated, Loss
from deniable.privacy.search import golden


@dataclass(frozen=True, kw_only=True)
class ExponentialLoss(Loss):
    """A choice whose log ratios on neighbours span at most `bound`: bounded range.

    The worst case for a given δ is one of the two-outcome pairs with log ratios t and t - bound
    (Dong, Durfee & Rogers 2020, Lemma 3.2 and Thm 1); every curve here is the worst over t.
    """

    kind: ClassVar[str] = "exponential"
    bound: Fraction

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "bound", positive(self.bound, "bound"))

    @property
    def pure(self) -> Fraction:
        """The bound (McSherry & Talwar 2007, Thm 6)."""
        return self.bound

    @property
    def concentrated(self) -> Concentrated:
        """bound²/8 (Cesar & Rogers 2021)."""
        return Concentrated(self.bound**2 / 8, Fraction(0))

    def profile(self, epsilon: float) -> float:
        """(1 - e^(-(bound-ε)/2))² / (1 - e^-bound), reached at t = (bound + ε)/2."""
        left = float(self.bound) - epsilon
        if left <= 0:
            return 0.0
        return math.expm1(-left / 2) ** 2 / -math.expm1(-float(self.bound))

    def divergence(self, order: float) -> float:
        """The largest over t, and never above α bound²/8."""
        bound = float(self.bound)

        def of_pair(t: float) -> float:
            up = math.expm1(bound - t) / math.expm1(bound)  # under Q, the outcome with log ratio t
            if order == 1:
                return up * math.exp(t) * t + (1 - up) * math.exp(t - bound) * (t - bound)
            # ln[up e^(αt) + (1-up) e^(α(t-bound))], the larger exponent taken out
            rest = up + (1 - up) * math.exp(-order * bound)
            return (order * t + math.log(rest)) / (order - 1)

        worst = golden(of_pair, bound * 1e-12, bound * (1 - 1e-12)) * (1 + 1e-9)
        return min(worst, bound, order * float(self.concentrated.rho))

    def group(self, size: int) -> ExponentialLoss:
        """k units move every score k times as far."""
        return replace(self, bound=self.bound * whole(size, "size"))
