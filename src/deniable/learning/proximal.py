"""The proximal sampler, and the regularised exponential mechanism that it samples.

**Mechanism** (Gopi, Lee & Liu 2022). π(x) proportional to exp(-a Σ l(x; z) - Λ/2 |x|²), each l
convex and 1-Lipschitz. Two such laws that differ in one record are as hard to tell apart as N(0, 1)
and N(m, 1), m = moved·a/sqrt(Λ): both exponents are Λ-strongly convex, and their difference is
moved·a-Lipschitz. So m is the μ of GDP, and it is read from (ε, δ).

**Sampler** (Lee, Shen & Tian 2021; Chen, Chewi, Salim & Wibisono 2022). In turns y = x + sqrt(h) ξ
and x from exp(-g(x) - |x - y|²/2h). The second is drawn exactly by rejection: for *any* point p
with gradient v, convexity gives a Gaussian below which the density never rises, so the optimiser's
accuracy decides about speed alone. KL falls by (1 + hΛ)^-2 in each turn, from at most R₀ at the
start, so the number of turns is computed in advance, and does not depend on the data.

**What it costs.** KL <= 2 (δ_s/(1 + e^ε))² makes the total variation η = sqrt(KL/2) at most
δ_s/(1 + e^ε), and sampling adds (1 + e^ε) η <= δ_s to δ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from deniable.errors import ParameterError
from deniable.lazy import lazy
from deniable.learning.exponential import ForRows, Label
from deniable.learning.reals import normals, uniforms
from deniable.learning.rows import Floats
from deniable.learning.solver import GRADIENT, minimum
from deniable.privacy.accountants import gdp
from deniable.privacy.guarantees import ApproxDP
from deniable.privacy.losses.base import Loss
from deniable.privacy.losses.generic import ApproxLoss

_SMOOTH = 0.25
_MOST_PROPOSALS = 100_000
_BATCH = 256


@dataclass(frozen=True)
class RegularisedExponential(ForRows):
    """Weights of a logistic loss from the regularised exponential mechanism.

    Formal guarantee. For `size` rows of length 1 at most of which one is exchanged, (ε, δ)-DP in
    real arithmetic, half of δ being the mechanism's own and half the sampler's. The relation is
    "replace": the number of turns rests on the number of rows.
    """

    label: ClassVar[Label] = Label.SAMPLED
    guarantee: ApproxDP
    size: int
    width: int
    radius: float

    @property
    def loss(self) -> Loss:
        return ApproxLoss(
            bound=self.guarantee.epsilon, slack=self.guarantee.delta, relation=self.relation
        )

    @property
    def sampling_delta(self) -> float:
        """δ_s: what sampling may cost."""
        return float(self.guarantee.delta) / 2

    @lazy
    def mu(self) -> float:
        """The m of GDP that (ε, δ/2) allows."""
        return gdp.largest_mu(float(self.guarantee.epsilon), float(self.guarantee.delta) / 2)

    @lazy
    def curvature(self) -> float:
        """Λ, for which the excess risk d/k + Λ/k·D²/2 is least: Λ = 2d/D²."""
        return 2 * self.width / self.radius**2

    @lazy
    def weight(self) -> float:
        """a = m·sqrt(Λ)/moved, a hair less."""
        return self.mu * math.sqrt(self.curvature) / self.relation.changed * (1 - 1e-12)

    @property
    def smoothness(self) -> float:
        """β: the most that the exponent curves."""
        return self.weight * self.size * _SMOOTH + self.curvature

    @property
    def step(self) -> float:
        """h = 1/βd: the rejection accepts with probability e^(-1/2) or more."""
        return 1 / (self.smoothness * self.width)

    @lazy
    def turns(self) -> int:
        """How many turns bring KL down to 2 (δ_s/(1 + e^ε))².

        The start N(p, 1/2β) about a point with gradient v has the density of π at most e^R₀ times,
        R₀ = d/2 ln(2β/Λ) + |v|²/Λ.
        """
        penalty = self.curvature / self.weight
        # A point within γ of a zero gradient, rounded to doubles: |p| is n over the penalty at most
        rounded = 2.0**-52 * (self.size * _SMOOTH + penalty) * self.size / penalty
        slope = self.weight * (GRADIENT + rounded)
        start = self.width / 2 * math.log(2 * self.smoothness / self.curvature)
        start += slope**2 / self.curvature
        target = 2 * (self.sampling_delta / (1 + math.exp(float(self.guarantee.epsilon)))) ** 2
        return math.ceil(
            math.log(start / target) / (2 * math.log1p(self.step * self.curvature)) * (1 + 1e-9)
        )

    def draw(self, rows: Floats) -> Floats:
        start = minimum(rows, np.zeros(self.width), self.curvature / self.weight)
        target = Exponent(rows, self.weight, self.curvature)
        x = start + normals(self.width) / math.sqrt(2 * self.smoothness)
        oracle = _Oracle(target, self.step, self.width)
        for _ in range(self.turns):
            x = oracle.draw(x + math.sqrt(self.step) * oracle.normal())
        return x


@dataclass(frozen=True, eq=False)
class Exponent:
    """g(x) = a Σ ln(1 + exp(-x·z)) + Λ/2 |x|²."""

    signed: Floats
    weight: float
    curvature: float

    def value(self, x: Floats) -> float:
        losses = float(np.logaddexp(0, -(self.signed @ x)).sum())
        return self.weight * losses + self.curvature / 2 * float(x @ x)

    def slope(self, x: Floats) -> Floats:
        wrong = 1 / (1 + np.exp(np.clip(self.signed @ x, -700, 700)))
        return -self.weight * (wrong @ self.signed) + self.curvature * x


class _Oracle:
    """Draws from exp(-g(x) - |x - y|²/2h), exactly, with normal numbers made in batches."""

    def __init__(self, target: Exponent, step: float, width: int) -> None:
        self._target, self._step, self._width = target, step, width
        self._normals: list[Floats] = []
        self._logs: list[float] = []

    def normal(self) -> Floats:
        """The next vector of standard normal numbers."""
        if not self._normals:
            made = normals(self._width * _BATCH).reshape(_BATCH, self._width)
            self._normals = list(made)
        return self._normals.pop()

    def _log(self) -> float:
        if not self._logs:
            self._logs = np.log(uniforms(_BATCH)).tolist()
        return self._logs.pop()

    def draw(self, y: Floats) -> Floats:
        """The envelope at p: G(p) + v·(x - p) + c/2|x - p|² <= G(x), c = 1/h + Λ."""
        inverse = 1 / self._step
        curve = inverse + self._target.curvature
        point = y - self._target.slope(y) / curve
        slope = self._target.slope(point) + (point - y) * inverse
        centre = point - slope / curve
        floor = self._target.value(point) + inverse / 2 * float((point - y) @ (point - y))
        floor -= float(slope @ slope) / (2 * curve)
        for _ in range(_MOST_PROPOSALS):
            x = centre + self.normal() / math.sqrt(curve)
            height = self._target.value(x) + inverse / 2 * float((x - y) @ (x - y))
            envelope = floor + curve / 2 * float((x - centre) @ (x - centre))
            if self._log() <= envelope - height:
                return x
        raise ParameterError("step", self._step, "no draw was accepted")
