"""Releasing the minimum of a convex loss: perturb the output, the objective, or both.

The loss is F(w) = Σ ln(1 + exp(-y w·z)) + Λ/2 |w|² + b·w, with rows |z| <= 1, so that one row's
gradient has length 1 at most and its second derivative is c zz' with c <= 1/4. `moved` is 1 for a
row added or removed and 2 for a row exchanged.

* **Output.** F is Λ-strongly convex, so its minimum moves by moved/Λ at most (Chaudhuri, Monteleoni
  & Sarwate 2011, Lemma 7). The solver comes within γ/Λ of it, on every data set (`solver.py`).
  Lattice noise for the sum of both is added.
* **Objective.** b is noise. w -> b = -∇L(w) - Λw is a bijection, so the densities of w on
  neighbours have the ratio of the noise at two b's that are `moved` apart, times the ratio of two
  determinants, which differ by one zz' each way and so by a factor of 1 + 1/4Λ at most (matrix
  determinant lemma). With density exp(-|b|/s): ε = moved/s + ln(1 + 1/4Λ). With b normal of
  deviation σ: the log ratio of the noise is (2 b·g + |g|²)/2σ², g = cz or cz - c'z' with |c| <= 1,
  so |b·g| <= moved·t·σ but with probability 2Φ(-t) for each row involved, and beyond that δ pays.
* **Approximate minima** (Iyengar et al. 2019). Both: the objective is perturbed, solved to within
  γ/Λ, and lattice noise for 2γ/Λ covers the gap, which composes with the first: given the exact
  minimum and the data, b is known, so what the solver adds is a function of the two.
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
from deniable.learning.rows import Floats, Rows, signed
from deniable.learning.solver import GRADIENT, minimum
from deniable.mechanisms.gaps import Gap, rows_apart
from deniable.mechanisms.gaussian import Gaussian
from deniable.mechanisms.laplace import Laplace
from deniable.privacy.exact import float_up
from deniable.privacy.guarantees import ApproxDP, Guarantee, PureDP
from deniable.privacy.losses.base import Loss
from deniable.privacy.losses.generic import ApproxLoss, PureLoss
from deniable.privacy.units import Relation
from deniable.trace import traced

_SMOOTH = 0.25
_OUTPUT_PART = Fraction(5, 100)
_LARGEST_SCALE = 1e6  # noise b stays far below 10^10, as the solver's certificate needs
_SLACK = 1 + 2.0**-40  # rows of length 1 in floats


class Way(StrEnum):
    """What is perturbed."""

    OUTPUT = "output"
    OBJECTIVE = "objective"
    APPROXIMATE = "approximate"


@dataclass(frozen=True)
class PrivateMinimum:
    """The minimum of a penalised logistic loss, released as the module says.

    Formal guarantee: `guarantee`, for rows that differ in one under `relation`: for "output" in
    machine arithmetic, for fewer than 10¹⁰ rows, by the certificate of `solver.minimum`; for the
    others in real arithmetic ("real-arithmetic model"), and for "objective" as if its minimum were
    exact. No data set of that size is left unsolved; beyond it zero stands in for the minimum.
    """

    way: Way
    guarantee: PureDP | ApproxDP
    penalty: float
    relation: Relation

    @property
    def label(self) -> str:
        kind = "pure" if isinstance(self.guarantee, PureDP) else "(ε, δ)"
        return kind if self.way == Way.OUTPUT else f"{kind}, real-arithmetic model"

    @property
    def loss(self) -> Loss:
        if isinstance(self.guarantee, PureDP):
            return PureLoss(bound=self.guarantee.epsilon, relation=self.relation)
        return ApproxLoss(
            bound=self.guarantee.epsilon, slack=self.guarantee.delta, relation=self.relation
        )

    def scale(self) -> float:
        """s of the spherical noise, or σ of the normal noise, on the objective."""
        share = 1 if self.way == Way.OBJECTIVE else 1 - _OUTPUT_PART
        left = float(self.guarantee.epsilon * share) - math.log1p(_SMOOTH / self.penalty)
        if left <= 0:
            least = _SMOOTH / math.expm1(float(self.guarantee.epsilon * share))
            raise ParameterError(
                "penalty", self.penalty, f"{self.guarantee} needs a penalty above {least:.3g}"
            )
        moved = self.relation.changed * _SLACK
        if isinstance(self.guarantee, PureDP):
            return _checked(float_up(moved / left), self.guarantee)
        delta = float(self.guarantee.delta) / (1 if self.way == Way.OBJECTIVE else 2)
        t = -float(ndtri(delta / (2 * self.relation.changed)))
        # moved·t/σ + moved²/2σ² = left, solved for 1/σ
        root = (math.sqrt(t * t + 2 * left) - t) / moved
        return _checked(float_up(1 / root), self.guarantee)

    def _output_noise(self, width: int) -> Gaussian | Laplace:
        share = Fraction(1) if self.way == Way.OUTPUT else _OUTPUT_PART
        gap = 2 * GRADIENT + (self.relation.changed * _SLACK if self.way == Way.OUTPUT else 0.0)
        far = float_up(gap / self.penalty)
        epsilon = self.guarantee.epsilon * share
        if isinstance(self.guarantee, PureDP):
            wide = float_up(far * math.sqrt(width))
            return Laplace(epsilon=epsilon, sensitivity=wide, relation=self.relation)
        delta = self.guarantee.delta / (1 if self.way == Way.OUTPUT else 2)
        return Gaussian(epsilon=epsilon, delta=delta, sensitivity=far, relation=self.relation)

    def deviation(self, width: int) -> float:
        """The deviation that noise gives each weight, at most: noise on the slope moves it by 1/Λ.

        An entry of the spherical noise has the variance (width + 1) s².
        """
        added = 0.0
        if self.way != Way.OBJECTIVE:
            added = self._output_noise(width).deviation
        if self.way == Way.OUTPUT:
            return added
        wide = math.sqrt(width + 1) if isinstance(self.guarantee, PureDP) else 1.0
        return math.hypot(added, wide * self.scale() / self.penalty)

    @traced
    def release(self, value: Rows) -> Floats:
        rows = signed(value)
        width = rows.shape[1]
        tilt = np.zeros(width)
        if self.way != Way.OUTPUT:
            pure = isinstance(self.guarantee, PureDP)
            tilt = spherical_laplace(width, self.scale()) if pure else normals(width) * self.scale()
        found = minimum(rows, tilt, self.penalty)
        if self.way == Way.OBJECTIVE:
            return found
        return np.asarray(self._output_noise(width).release(found), np.float64)

    def gap(self, x: Rows, y: Rows) -> Gap:
        """How many rows that are there are added or removed, or exchanged."""
        return rows_apart(_there(x), _there(y), self.relation)

    def neighbours(self) -> None:
        """What rows are is the caller's to say."""


def _there(rows: Rows) -> list[tuple[float, ...]]:
    """The rows that count, each with its label."""
    assert rows.label is not None
    whole = np.column_stack([rows.units, rows.label])[rows.present]
    return [tuple(row) for row in whole.tolist()]


def _checked(scale: float, guarantee: Guarantee) -> float:
    if scale > _LARGEST_SCALE:
        raise ParameterError("guarantee", str(guarantee), "is too small for a perturbed objective")
    return scale
