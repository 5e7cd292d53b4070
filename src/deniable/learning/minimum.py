"""Releasing the minimum of a convex loss: perturb the output, the objective, or both.

The loss is F(w) = Σ ln(1 + exp(-y w·z)) + Λ/2 |w|² + b·w, with rows |z| <= 1, so that one row's
gradient has length 1 at most and its second derivative is c zz' with c <= 1/4. `moved` is 1 for a
row added or removed and 2 for a row exchanged.

* **Output.** F is Λ-strongly convex, so its minimum moves by moved/Λ at most (Chaudhuri, Monteleoni
  & Sarwate 2011, Lemma 7). A point with |∇F| <= γ lies within γ/Λ of it. Lattice noise for the sum
  of both is added.
* **Objective.** b is noise. w -> b = -∇L(w) - Λw is a bijection, so the densities of w on
  neighbours have the ratio of the noise at two b's that are `moved` apart, times the ratio of two
  determinants, which differ by one zz' each way and so by a factor of 1 + 1/4Λ at most (matrix
  determinant lemma). With density exp(-|b|/s): ε = moved/s + ln(1 + 1/4Λ). With b normal of
  deviation σ: the log ratio of the noise is (2 b·g + |g|²)/2σ², g = cz or cz - c'z' with |c| <= 1,
  so |b·g| <= moved·t·σ but with probability 2Φ(-t) for each row involved, and beyond that δ pays.
* **Approximate minima** (Iyengar et al. 2019). Both: the objective is perturbed, solved to
  |∇F| <= γ, and lattice noise for 2γ/Λ covers the gap, which composes with the first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

import numpy as np
from scipy.special import ndtri

from deniable.errors import ParameterError
from deniable.learning.reals import normals, spherical_laplace
from deniable.learning.rows import Floats, Rows
from deniable.mechanisms.gaussian import Gaussian
from deniable.mechanisms.laplace import Laplace
from deniable.privacy.exact import float_up
from deniable.privacy.guarantees import ApproxDP, PureDP
from deniable.privacy.losses.base import Loss
from deniable.privacy.losses.generic import ApproxLoss, PureLoss
from deniable.privacy.units import Relation
from deniable.trace import traced

GRADIENT = 1e-5
"""γ: how near the minimum the solver comes."""

_SMOOTH = 0.25
_ROW_ERROR = 2.0**-45  # of one row's computed gradient, generously
_OUTPUT_PART = Fraction(5, 100)
_STEPS = 200
_SLACK = 1 + 2.0**-40  # rows of length 1 in floats


class Way(StrEnum):
    """What is perturbed."""

    OUTPUT = "output"
    OBJECTIVE = "objective"
    APPROXIMATE = "approximate"


@dataclass(frozen=True)
class PrivateMinimum:
    """The minimum of a penalised logistic loss, released as the module says.

    Formal guarantee: `budget` holds for rows that differ in one under `relation`: for "output" up
    to the rounding of the solver's certificate, for the others in real arithmetic ("real-arithmetic
    model"), and for "objective" as if its minimum were exact. Where the solver does not reach
    |∇F| <= γ, zero stands in for the minimum, whatever the data; Newton's method with backtracking
    reaches it on every strongly convex loss, so that this is a last resort.
    """

    way: Way
    budget: PureDP | ApproxDP
    penalty: float
    relation: Relation

    @property
    def moved(self) -> int:
        """How far one unit moves the gradient."""
        return 2 if self.relation == Relation.REPLACE else 1

    @property
    def label(self) -> str:
        """What the guarantee rests on."""
        kind = "pure" if isinstance(self.budget, PureDP) else "(ε, δ)"
        return kind if self.way == Way.OUTPUT else f"{kind}, real-arithmetic model"

    @property
    def loss(self) -> Loss:
        """What one release costs."""
        if isinstance(self.budget, PureDP):
            return PureLoss(bound=self.budget.epsilon, relation=self.relation)
        return ApproxLoss(
            bound=self.budget.epsilon, slack=self.budget.delta, relation=self.relation
        )

    def scale(self) -> float:
        """s of the spherical noise, or σ of the normal noise, on the objective."""
        share = 1 if self.way == Way.OBJECTIVE else 1 - _OUTPUT_PART
        left = float(self.budget.epsilon * share) - math.log1p(_SMOOTH / self.penalty)
        if left <= 0:
            least = _SMOOTH / math.expm1(float(self.budget.epsilon * share))
            raise ParameterError(
                "penalty", self.penalty, f"this budget needs a penalty above {least:.3g}"
            )
        moved = self.moved * _SLACK
        if isinstance(self.budget, PureDP):
            return float_up(moved / left)
        delta = float(self.budget.delta) / (1 if self.way == Way.OBJECTIVE else 2)
        t = -float(ndtri(delta / (2 * self.moved)))
        # moved·t/σ + moved²/2σ² = left, solved for 1/σ
        root = (math.sqrt(t * t + 2 * left) - t) / moved
        return float_up(1 / root)

    def _output_noise(self, width: int) -> Gaussian | Laplace:
        share = Fraction(1) if self.way == Way.OUTPUT else _OUTPUT_PART
        gap = 2 * GRADIENT + (self.moved * _SLACK if self.way == Way.OUTPUT else 0.0)
        far = float_up(gap / self.penalty)
        epsilon = self.budget.epsilon * share
        if isinstance(self.budget, PureDP):
            wide = float_up(far * math.sqrt(width))
            return Laplace(epsilon=epsilon, sensitivity=wide, relation=self.relation)
        delta = self.budget.delta / (1 if self.way == Way.OUTPUT else 2)
        return Gaussian(epsilon=epsilon, delta=delta, sensitivity=far, relation=self.relation)

    @traced
    def release(self, value: Rows) -> Floats:
        """Solve, and release."""
        rows = np.hstack([value.units, np.ones((len(value.units), 1))]) / math.sqrt(2)
        assert value.label is not None
        signs = np.where(value.label == 1, 1.0, -1.0) * value.present
        width = rows.shape[1]
        tilt = np.zeros(width)
        if self.way != Way.OUTPUT:
            pure = isinstance(self.budget, PureDP)
            tilt = spherical_laplace(width, self.scale()) if pure else normals(width) * self.scale()
        found = minimum(rows * value.present[:, None], signs, tilt, self.penalty)
        if self.way == Way.OBJECTIVE:
            return found
        return np.asarray(self._output_noise(width).release(found), np.float64)


def minimum(rows: Floats, signs: Floats, tilt: Floats, penalty: float) -> Floats:
    """The minimum by Newton's method with backtracking; zero where it is not reached."""
    weights = np.zeros(rows.shape[1])
    allowed = GRADIENT - len(rows) * _ROW_ERROR
    for _ in range(_STEPS):
        value, slope, curve = _derivatives(rows, signs, tilt, penalty, weights)
        if float(np.linalg.norm(slope)) <= allowed / 2:
            return weights
        step = np.linalg.solve(curve, slope)
        size, down = 1.0, float(slope @ step)
        while size > 1e-10:
            tried = _value(rows, signs, tilt, penalty, weights - size * step)
            if tried <= value - 0.25 * size * down + 1e-12 * abs(value):
                break
            size /= 2
        weights = weights - size * step
    return np.zeros(rows.shape[1])


def _value(rows: Floats, signs: Floats, tilt: Floats, penalty: float, weights: Floats) -> float:
    margin = signs * (rows @ weights)
    return float(np.logaddexp(0, -margin).sum() + penalty / 2 * weights @ weights + tilt @ weights)


def _derivatives(
    rows: Floats, signs: Floats, tilt: Floats, penalty: float, weights: Floats
) -> tuple[float, Floats, Floats]:
    margin = signs * (rows @ weights)
    wrong = 1 / (1 + np.exp(np.clip(margin, -700, 700)))
    slope = -(signs * wrong) @ rows + penalty * weights + tilt
    curve = (rows * (wrong * (1 - wrong))[:, None]).T @ rows + penalty * np.eye(len(weights))
    return _value(rows, signs, tilt, penalty, weights), slope, curve
