"""The exponential mechanism for a penalised logistic loss on a ball, drawn exactly by rejection."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import stats

from deniable.errors import ParameterError
from deniable.learning.exponential import ForRows, Label
from deniable.learning.proximal import Exponent
from deniable.learning.reals import normals, uniforms
from deniable.learning.rows import Floats
from deniable.learning.solver import GRADIENT, minimum
from deniable.privacy.exact import positive
from deniable.privacy.losses.base import Loss
from deniable.privacy.losses.generic import PureLoss

LEAST_ACCEPTANCE = 1e-4
_SMOOTH = 0.25
_BATCH = 64


@dataclass(frozen=True)
class PerfectExponential(ForRows):
    """Weights w, |w| <= radius, with density proportional to exp(-k Σ ln(1 + e^(-w·z)) - Λ/2|w|²).

    Formal guarantee. For `size` rows |z| <= 1 of which one is exchanged, ε-DP in real arithmetic
    ("pure, real-arithmetic model"): on the ball w·z lies within ±radius, over which a logistic loss
    changes by radius exactly, so k = ε/(2·radius); the penalty Λ is public and free.

    The draw is exact for any point p with gradient v that the solver gives: by strong convexity
    exp(-g) is nowhere above the Gaussian of curvature Λ that touches it there, which proposes. How
    often it is accepted, at least, is known from public numbers (`acceptance`); where that is less
    than 1 in 10,000 the mechanism is refused. It proposes until it accepts, so running time depends
    on the data.
    """

    label: ClassVar[Label] = Label.PURE_REAL
    epsilon: float
    size: int
    width: int
    radius: float
    penalty: float

    def __post_init__(self) -> None:
        for name in ("epsilon", "radius", "penalty"):
            positive(getattr(self, name), name)
        if self.acceptance < LEAST_ACCEPTANCE:
            raise ParameterError(
                "penalty",
                self.penalty,
                "draws would hardly ever be accepted; raise it, or use RegularisedExponential",
            )

    @property
    def loss(self) -> Loss:
        return PureLoss(bound=positive(self.epsilon, "epsilon"), relation=self.relation)

    @property
    def rate(self) -> float:
        """k, a hair less."""
        return self.epsilon / (self.relation.changed * self.radius) * (1 - 1e-12)

    @property
    def acceptance(self) -> float:
        """How often a proposal is accepted, at least.

        exp(-g) is nowhere below the Gaussian of curvature β = kn/4 + Λ that touches it at p, whose
        mass within the ball is least where |p| is largest: Λ|p| <= kn, and Λ|p|²/2 <= kn ln 2.
        """
        all_rows = self.rate * self.size
        curve = all_rows * _SMOOTH + self.penalty
        far = min(all_rows / self.penalty, math.sqrt(2 * all_rows * math.log(2) / self.penalty))
        slack = self.rate * GRADIENT / self.penalty
        left = self.radius - far - 2 * slack
        if left <= 0:
            return 0.0
        inside = float(stats.chi2.cdf(curve * left**2, self.width))
        return inside * math.exp(
            self.width / 2 * math.log(self.penalty / curve) - self.penalty * slack**2
        )

    def draw(self, rows: Floats) -> Floats:
        target = Exponent(rows, self.rate, self.penalty)
        point = minimum(rows, np.zeros(self.width), self.penalty / self.rate)
        slope = target.slope(point)
        centre = point - slope / self.penalty
        floor = target.value(point) - float(slope @ slope) / (2 * self.penalty)
        while True:
            away = normals(self.width * _BATCH).reshape(_BATCH, self.width)
            logs = np.log(uniforms(_BATCH))
            for step, log in zip(away / math.sqrt(self.penalty), logs.tolist(), strict=True):
                x: Floats = centre + step
                if float(x @ x) > self.radius**2:
                    continue
                envelope = floor + self.penalty / 2 * float(step @ step)
                if log <= envelope - target.value(x):
                    return x
