"""Noisy projected gradient descent on a ball, for convex losses of w·x."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any

import numpy as np

from deniable.errors import ParameterError
from deniable.held import frameless
from deniable.learning.noise import Mechanism, Neighbours, Share, mechanism_for, price
from deniable.learning.rows import (
    GRID,
    Floats,
    Rows,
    lengths,
    most_steps,
    on_grid,
    read_features,
    read_target,
    steps,
    times,
)
from deniable.learning.sgd import RowGradients, read_approximate, sampled_sum
from deniable.learning.sums import GradientSums
from deniable.ledger.amounts import read_alone
from deniable.mechanisms.sampled_sum import SampledSum
from deniable.privacy.composition import repeat
from deniable.privacy.exact import Number, positive, probability, whole
from deniable.privacy.guarantees import Guarantee
from deniable.privacy.losses.base import Loss
from deniable.privacy.parameters import (
    Parameter,
    Related,
    keep,
    one_of,
    optional,
    parameter,
    parameters,
)
from deniable.privacy.units import Relation, read_relation


class Objective(StrEnum):
    """A convex loss φ(w·x, y) whose slope in w·x is 1 in size at most, for |y| <= 1."""

    LOGISTIC = "logistic"  # ln(1 + exp(-y w·x))
    HINGE = "hinge"  # max(0, 1 - y w·x)
    ABSOLUTE = "absolute"  # |w·x - y|
    LINEAR = "linear"  # y w·x


@dataclass(frozen=True, eq=False)
class Slopes(GradientSums):
    """Σ φ'(w·x, y) x at released weights w."""

    objective: Objective
    weights: Floats

    def each(self, rows: Rows) -> Floats:
        assert rows.target is not None
        with np.errstate(all="ignore"):  # a warning would tell of rows
            score = times(rows.units, self.weights[:, None])[:, 0]
            slope = _slope(self.objective, score, rows.target)
            parts = slope[:, None] * rows.units
        return on_grid(parts, rows.present, GRID, self.most(self.weights.size))

    def most(self, columns: int) -> int:
        return most_steps(math.sqrt(columns), columns, GRID)


@parameters
class ProjectedDescent:
    """Weights w, |w| <= radius, at which the mean of φ(w·x, y) is small.

    Formal guarantee. For any two tables that differ in one row under `relation`:

    * a release keeps `guarantee`, and costs `loss`: `steps` sums of gradients with exact noise,
      adaptively composed (Dong, Roth & Su 2022, Cor. 3.3; Bun & Steinke 2016, Lemma 1.7); with
      `rate`, sums of Poisson samples, composed numerically;
    * rows x longer than 1 are shortened and y is clamped to [-1, 1], so that a gradient has length
      1 at most, which is checked in whole numbers; a row with anything that is no finite number
      counts as nothing;
    * sums are divided by `size`, which is public, and step lengths follow from public numbers.

    Utility. Where there are `size` rows, the mean loss is above its least on the ball by `risk` at
    most, in expectation: steps of radius/(G sqrt(T)), G² = 1 + dσ² (+ 1/(rate·size) for samples),
    and the mean of all places (Bassily, Smith & Thakurta 2014, Theorem 2.4; Shalev-Shwartz &
    Ben-David 2014, Theorem 14.8).

    A bare release is unledgered: the caller keeps the budget. A `Gate` releases it as it does any
    mechanism.

    Args:
        objective: "logistic", "hinge", "absolute" or "linear".
        epsilon: what a release may cost, as ε; or `rho`, or `guarantee`.
        rho: the same in ρ.
        guarantee: the same as a guarantee; it is kept under this name.
        width: how many columns there are.
        radius: of the ball.
        size: about how many rows there are, a public number.
        steps: how many gradients are released.
        rate: with what probability a row is in a sample; None: all rows count in each step.
        relation: "add_remove" or "replace".
    """

    objective: Parameter[Objective | str, Objective] = parameter(one_of(Objective))
    guarantee: Parameter[Guarantee, Guarantee] = parameter(
        lambda kept, _: read_alone(guarantee=kept)
    )
    width: Parameter[int, int] = parameter(whole)
    radius: Parameter[Number, Fraction] = parameter(positive)
    size: Parameter[int, int] = parameter(whole)
    steps: Parameter[int, int] = parameter(whole)
    rate: Parameter[Number | None, Fraction | None] = parameter(optional(probability))
    relation: Related = parameter(read_relation)

    def __init__(
        self,
        objective: Objective | str,
        *,
        epsilon: Number | None = None,
        rho: Number | None = None,
        guarantee: Guarantee | None = None,
        width: int,
        radius: Number,
        size: int,
        steps: int = 100,
        rate: Number | None = None,
        relation: Relation | str = Relation.ADD_REMOVE,
    ) -> None:
        keep(
            self,
            objective=objective,
            guarantee=read_alone(epsilon=epsilon, rho=rho, guarantee=guarantee),
            width=width,
            radius=radius,
            size=size,
            steps=steps,
            rate=rate,
            relation=relation,
        )

    def __post_init__(self) -> None:
        if self.rate is not None:
            read_approximate(self.guarantee)

    @property
    def loss(self) -> Loss:
        mechanism = self._mechanism()
        if isinstance(mechanism, SampledSum):
            return repeat(mechanism.loss, self.steps)
        return price([(self._slopes(), self._share)], self.guarantee, self._neighbours)

    @property
    def risk(self) -> float:
        """How far the mean loss is above its least on the ball, in expectation, at most."""
        return float(self.radius) * self._longest / math.sqrt(self.steps)

    @frameless
    def release(self, value: Any) -> Floats:
        """The weights, from (X, y)."""
        if not isinstance(value, tuple) or len(value) != 2:
            raise ParameterError("value", type(value).__name__, "must be a pair (X, y)")
        rows, mechanism = self._rows(*value), self._mechanism()
        place = mean = np.zeros(self.width)
        length = float(self.radius) / (self._longest * math.sqrt(self.steps))
        for turn in range(self.steps):
            mean = mean + (place - mean) / (turn + 1)
            slopes = Slopes(self.objective, place)
            if isinstance(mechanism, SampledSum):
                heard = slopes.read(mechanism.release(RowGradients(rows, slopes))) / float(
                    mechanism.rate
                )
            else:
                heard = slopes.read(np.asarray(mechanism.release(slopes.totals(rows))))
            place = place - length * heard / self.size
            far = float(np.linalg.norm(place))
            place = place * min(1.0, float(self.radius) / far) if far > 0 else place
        return mean

    def _rows(self, values: Any, target: Any) -> Rows:
        table = read_features(values)
        if table.shape[1] != self.width:
            raise ParameterError("X", f"{table.shape[1]} columns", f"must have {self.width}")
        wanted = read_target(target, len(table))
        present = np.isfinite(table).all(axis=1) & np.isfinite(wanted)
        with np.errstate(all="ignore"):
            units = np.where(present[:, None], table, 0.0)
            large = np.maximum(np.abs(units).max(axis=1, initial=0.0), 1.0)
            units = units / large[:, None]  # or squares of large numbers would be infinite
            length = large * lengths(units)
            units = units * (large / np.maximum(length, 1.0))[:, None]
        return Rows(units, np.clip(np.where(present, wanted, 0.0), -1, 1), None, present)

    @property
    def _share(self) -> Share:
        return Share(Fraction(1), self.steps)

    @property
    def _neighbours(self) -> Neighbours:
        return Neighbours(self.relation)

    def _slopes(self) -> Slopes:
        return Slopes(self.objective, np.zeros(self.width))

    def _mechanism(self) -> Mechanism | SampledSum:
        if self.rate is None:
            return mechanism_for(
                self._slopes(), self.width, self._share, self.guarantee, self._neighbours
            )
        kept = read_approximate(self.guarantee)
        return sampled_sum(kept, self.rate, self.steps, self.relation)

    @property
    def _longest(self) -> float:
        """G: the root of the mean squared length of a released mean of gradients, at most."""
        mechanism = self._mechanism()
        if isinstance(mechanism, SampledSum):
            assert self.rate is not None
            noise = float(mechanism.sigma) / float(self.rate)
            sampled = 1 / (float(self.rate) * self.size)
        else:
            noise, sampled = mechanism.deviation, 0.0
        each = noise / steps(self.width, GRID) / self.size
        return math.sqrt(1 + sampled + self.width * each**2)


def _slope(objective: Objective, at: Floats, target: Floats) -> Floats:
    """φ'(w·x, y), or a subgradient."""
    if objective == Objective.LOGISTIC:
        found = -target / (1 + np.exp(np.clip(target * at, -500, 500)))
    elif objective == Objective.HINGE:
        found = np.where(target * at < 1, -target, 0.0)
    elif objective == Objective.ABSOLUTE:
        found = np.sign(at - target)
    else:
        found = target
    return np.asarray(found, np.float64)
