"""Noise on several statistics of many groups at once, for contributions of a bounded joint norm."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from deniable.errors import ParameterError, PrivateValueError
from deniable.lazy import lazy
from deniable.mechanisms.base import ByAmount, Pairs, read_confidence
from deniable.mechanisms.gaps import Gap, by_norm, misshapen
from deniable.mechanisms.laws import AdditiveLaw, Norm, quantile
from deniable.privacy.amount import Amount
from deniable.privacy.exact import Number, sqrt_up, whole
from deniable.privacy.losses.base import Loss
from deniable.privacy.parameters import Parameter, parameter, parameters
from deniable.randomness.noise import noise
from deniable.trace import traced

Table = npt.NDArray[Any]


def _read_weights(weights: Sequence[int], argument: str) -> tuple[int, ...]:
    read = tuple(whole(weight, argument) for weight in weights)
    if not read:
        raise ParameterError(argument, "empty", "name one statistic or more")
    return read


@parameters
class JointNoise(ByAmount):
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

    bound: Parameter[int, int] = parameter(whole)
    weights: Parameter[Sequence[int], tuple[int, ...]] = parameter(_read_weights)

    def __post_init__(self) -> None:
        super().__post_init__()
        for column in range(len(self.weights)):
            self.law(column).check()

    @lazy
    def _spread(self) -> Fraction:
        """The scale, or σ rounded up, of a column of weight 1."""
        if self.norm == Norm.L1:
            return self.bound / self.amount.value
        return sqrt_up(self.bound**2 / (2 * self.amount.value), 30)

    @lazy
    def loss(self) -> Loss:
        """What one release costs.

        Curves of discrete noise other than ρ hang on how wide it is on the integers, and the column
        of the largest weight W has the narrowest: σ/W, moved by bound/W. In μ² = Σ D²/(v - 25) of
        entries of weight w the term is (wD)²/(σ² - 25 w²), which is largest for W. Where W moves by
        less than two steps, columns of smaller weights may move by several: of those, ρ is known.
        """
        largest = max(self.weights)
        if self.amount.pure or (min(self.weights) < largest and self.bound**2 < 2 * largest**2):
            return self.amount.loss
        return Norm.L2.loss(self._spread / largest, Fraction(self.bound, largest), self.relation)

    def law(self, column: int) -> AdditiveLaw:
        """The noise on one statistic."""
        return self.norm.law(self._spread / self.weights[column])

    def deviation(self, column: int) -> float:
        """The standard deviation of the noise on one statistic, to float precision."""
        wide = float(self._spread / self.weights[column])
        return wide * math.sqrt(2) if self.norm == Norm.L1 else wide

    def error(self, column: int, *, confidence: Number) -> int:
        """A w for which the noise of one entry is within ±w with this probability."""
        return quantile(self.law(column), read_confidence(confidence))

    @traced
    def release(self, value: Any) -> Table:
        """Add noise to a table of integers, given as rows of one entry for each statistic."""
        table = read_table(value, len(self.weights))
        noisy = table.copy()
        for column in range(len(self.weights)):
            noisy[:, column] += noise(self.law(column)).many(len(table)).astype(object)
        return noisy

    def gap(self, x: Any, y: Any) -> Gap:
        before, after = (read_table(value, len(self.weights)) for value in (x, y))
        if before.shape != after.shape:
            return misshapen(str(self.norm))
        moves = [
            Fraction(weight * int(move))
            for weight, column in zip(self.weights, (after - before).T, strict=True)
            for move in column
            if move
        ]
        return by_norm(moves, self.norm.order, Fraction(self.bound))

    def neighbours(self) -> Pairs:
        """One statistic that takes all of the bound."""
        rest = [0] * (len(self.weights) - 1)
        return [([[0, *rest]], [[self.bound // self.weights[0], *rest]])]


def additive(amount: Amount, contribution: int, weights: tuple[int, ...] = (1,)) -> JointNoise:
    """Noise for numbers to which one unit adds so much at most, all of them together."""
    return JointNoise(
        epsilon=amount.epsilon,
        rho=amount.rho,
        bound=amount.relation.changed * contribution,
        weights=weights,
        relation=amount.relation,
    )


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
