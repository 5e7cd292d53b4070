"""Noise on several statistics of many groups at once, for contributions of a bounded joint norm."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from deniable.errors import ParameterError, PrivateValueError
from deniable.lazy import lazy
from deniable.mechanisms.base import exactly_one, read_confidence, represent
from deniable.mechanisms.gaussian import gaussian_quantile
from deniable.mechanisms.laplace import laplace_quantile
from deniable.privacy.amount import Amount
from deniable.privacy.exact import Number, positive, sqrt_up, whole
from deniable.privacy.losses.base import Loss
from deniable.privacy.losses.gaussian import DiscreteGaussianLoss
from deniable.privacy.losses.generic import ConcentratedLoss, PureLoss
from deniable.privacy.units import Relation, read_relation
from deniable.randomness.noise import GaussianLaw, LaplaceLaw, Noise, noise
from deniable.trace import traced

Table = npt.NDArray[Any]


class Norm(StrEnum):
    """How contributions are bounded, and so which noise covers them."""

    L1 = "l1"
    L2 = "l2"


def amount_of(norm: Norm, amount: Fraction) -> dict[str, Fraction]:
    """The argument by which an amount was given."""
    return {{Norm.L1: "epsilon", Norm.L2: "rho"}[norm]: amount}


@dataclass(frozen=True, init=False, repr=False)
class JointNoise:
    """Integer noise on a table of statistics, one row a group, one column a statistic.

    Formal guarantee. For integer tables that move, between neighbours under `relation`, by D with
    sum over groups and columns of |weight·D| at most `bound` (norm "l1"), or of (weight·D)² at most
    `bound`² (norm "l2"):

    * "l1": one release is ε-DP, each column having discrete Laplace noise of scale
      bound/(ε·weight), for the log ratios of all entries add up to ε;
    * "l2": one release is ρ-zCDP, each column having discrete Gaussian noise with
      σ = bound/(weight·sqrt(2ρ)), for the divergences D²/2σ² of all entries add up to ρ (Canonne,
      Kamath & Steinke 2020, Thm 4);
    * sums are exact integers of any size: nothing wraps or saturates.

    A bare release is unledgered: the caller keeps the budget.
    """

    norm: Norm
    bound: int
    weights: tuple[int, ...]
    amount: Fraction
    relation: Relation

    def __init__(
        self,
        *,
        epsilon: Number | None = None,
        rho: Number | None = None,
        bound: int,
        weights: Sequence[int],
        relation: Relation | str = Relation.ADD_REMOVE,
    ) -> None:
        name, given = exactly_one(epsilon=epsilon, rho=rho)
        object.__setattr__(self, "norm", Norm.L1 if name == "epsilon" else Norm.L2)
        object.__setattr__(self, "amount", positive(given, name))
        object.__setattr__(self, "bound", whole(bound, "bound"))
        read = tuple(whole(weight, "weights") for weight in weights)
        if not read:
            raise ParameterError("weights", "empty", "name one statistic or more")
        object.__setattr__(self, "weights", read)
        object.__setattr__(self, "relation", read_relation(relation))
        for column in range(len(read)):
            self.law(column).check()

    @classmethod
    def of_fields(
        cls,
        *,
        norm: Norm,
        bound: int,
        weights: tuple[int, ...],
        amount: Fraction,
        relation: Relation,
    ) -> JointNoise:
        """Made again of what another one holds."""
        return cls(**amount_of(norm, amount), bound=bound, weights=weights, relation=relation)

    def __repr__(self) -> str:
        return represent(self)

    @lazy
    def _spread(self) -> Fraction:
        """The scale, or σ rounded up, of a column of weight 1."""
        if self.norm == Norm.L1:
            return self.bound / self.amount
        return sqrt_up(self.bound**2 / (2 * self.amount), 30)

    @lazy
    def loss(self) -> Loss:
        """What one release costs.

        Curves of discrete noise other than ρ hang on how wide it is on the integers, and the column
        of the largest weight W has the narrowest: σ/W, moved by bound/W. In μ² = Σ D²/(v - 25) of
        entries of weight w the term is (wD)²/(σ² - 25 w²), which is largest for W. Where W moves by
        less than two steps, columns of smaller weights may move by several: of those, ρ is known.
        """
        if self.norm == Norm.L1:
            return PureLoss(bound=self.amount, relation=self.relation)
        largest = max(self.weights)
        if min(self.weights) < largest and self.bound**2 < 2 * largest**2:
            return ConcentratedLoss(bound=self.amount, relation=self.relation)
        return DiscreteGaussianLoss(
            variance=(self._spread / largest) ** 2,
            sensitivity=Fraction(self.bound, largest),
            relation=self.relation,
        )

    def law(self, column: int) -> LaplaceLaw | GaussianLaw:
        """The noise on one statistic."""
        wide = self._spread / self.weights[column]
        return LaplaceLaw(wide) if self.norm == Norm.L1 else GaussianLaw(wide**2)

    def deviation(self, column: int) -> float:
        """The standard deviation of the noise on one statistic, to float precision."""
        wide = float(self._spread / self.weights[column])
        return wide * math.sqrt(2) if self.norm == Norm.L1 else wide

    def error(self, column: int, *, confidence: Number) -> int:
        """A w for which the noise of one entry is within ±w with this probability."""
        return error_of(self.law(column), confidence)

    @traced
    def release(self, value: Any) -> Table:
        """Add noise to a table of integers, given as rows of one entry for each statistic."""
        table = read_table(value, len(self.weights))
        noisy = table.copy()
        for column in range(len(self.weights)):
            noisy[:, column] += self._noise(column).many(len(table)).astype(object)
        return noisy

    def _noise(self, column: int) -> Noise:
        return noise(self.law(column))


def additive(amount: Amount, contribution: int, weights: tuple[int, ...] = (1,)) -> JointNoise:
    """Noise for numbers to which one unit adds so much at most, all of them together."""
    return JointNoise(
        epsilon=amount.epsilon,
        rho=amount.rho,
        bound=amount.relation.changed * contribution,
        weights=weights,
        relation=amount.relation,
    )


def error_of(law: LaplaceLaw | GaussianLaw, confidence: Number) -> int:
    """A w for which noise of this law is within ±w with this probability."""
    level = read_confidence(confidence)
    if isinstance(law, LaplaceLaw):
        return laplace_quantile(law.scale, level)
    return gaussian_quantile(law.variance, level)


def read_table(value: Any, columns: int) -> Table:
    """Read rows of integers of any size."""
    table = np.array(value, dtype=object)
    if table.ndim != 2 or table.shape[1] != columns or table.shape[0] == 0:
        raise PrivateValueError(
            f"a table of one row or more, with {columns} integers each, is needed"
        )
    if not all(type(entry) is int for entry in table.flat):
        raise PrivateValueError("the table must hold whole numbers (int)")
    return table
