"""The exponential form on any finite metric space."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from deniable.errors import ParameterError, PrivateValueError
from deniable.lazy import lazy
from deniable.mechanisms.weights import weights_to_probabilities
from deniable.privacy.channel import Channel
from deniable.privacy.exact import Number, not_negative, positive
from deniable.privacy.losses.base import check_ratio
from deniable.privacy.losses.generic import PureLoss
from deniable.privacy.units import Relation
from deniable.randomness.categorical import CategoricalSampler
from deniable.randomness.source import SECURE


@dataclass(frozen=True, init=False, repr=False)
class MetricExponential:
    """Report a point z instead of y with probability proportional to exp(-ε d(y, z)/2).

    Formal guarantee (Chatzikokolakis, Andrés, Bordenabe & Palamidessi 2013). For points x and y of
    the metric space:

    * the log ratio of the probabilities of any report is at most ε d(x, y): half of it from the
      distance, by the triangle inequality, half from the normalisers;
    * so one release is ε·diameter-DP, which is `loss`;
    * reports have exactly these probabilities.

    `distances[i][j]` is the distance of points i and j: symmetric, zero on the diagonal only, and
    never longer than a way round. The relation is "replace". A bare release is unledgered: the
    caller keeps the budget.
    """

    epsilon: Fraction
    points: tuple[Hashable, ...]
    distances: tuple[tuple[Fraction, ...], ...]

    def __init__(
        self,
        *,
        epsilon: Number,
        points: Sequence[Hashable],
        distances: Sequence[Sequence[Number]],
    ) -> None:
        labels = tuple(points)
        table = tuple(tuple(not_negative(d, "distances") for d in row) for row in distances)
        object.__setattr__(self, "epsilon", positive(epsilon, "epsilon"))
        object.__setattr__(self, "points", labels)
        object.__setattr__(self, "distances", table)
        _check_metric(labels, table)
        check_ratio("epsilon", self.epsilon * max(max(row) for row in table))

    def __repr__(self) -> str:
        return f"MetricExponential(epsilon={float(self.epsilon):g}, {len(self.points)} points)"

    @lazy
    def loss(self) -> PureLoss:
        """What one release costs between the two points farthest apart."""
        diameter = max(max(row) for row in self.distances)
        return PureLoss(bound=self.epsilon * diameter, relation=Relation.REPLACE)

    def _place(self, point: Hashable) -> int:
        if point not in self.points:
            raise PrivateValueError("the value is none of the points of the metric space")
        return self.points.index(point)

    def release(self, value: Hashable) -> Hashable:
        """Report a point in place of the true one."""
        scores = [-d for d in self.distances[self._place(value)]]
        return self.points[int(CategoricalSampler(scores, self.epsilon / 2).sample(1, SECURE)[0])]

    def channel(self, inputs: Sequence[Hashable] | None = None) -> Channel:
        """The probabilities, to 200 bits; rows sum to one exactly."""
        given = self.points if inputs is None else tuple(inputs)
        rows = tuple(tuple(self._row(self._place(point))) for point in given)
        return Channel(given, self.points, rows)

    def _row(self, place: int) -> list[Fraction]:
        return weights_to_probabilities([-d for d in self.distances[place]], self.epsilon / 2)

    def privacy_loss(self, output: Hashable, x: Hashable, y: Hashable) -> float:
        """ln of P(output | x) / P(output | y); never beyond ±ε d(x, y)."""
        at = self._place(output)
        return math.log(self._row(self._place(x))[at] / self._row(self._place(y))[at])


def _check_metric(
    points: tuple[Hashable, ...], distances: tuple[tuple[Fraction, ...], ...]
) -> None:
    n = len(points)
    if n < 2 or len(set(points)) != n:
        raise ParameterError("points", n, "must be two or more different points")
    if len(distances) != n or any(len(row) != n for row in distances):
        raise ParameterError("distances", len(distances), f"must be a table of {n} x {n} distances")
    for i in range(n):
        for j in range(n):
            if (distances[i][j] == 0) != (i == j) or distances[i][j] != distances[j][i]:
                raise ParameterError(
                    "distances", (i, j), "must be symmetric, and 0 exactly between equal points"
                )
            for k in range(n):
                if distances[i][j] > distances[i][k] + distances[k][j]:
                    raise ParameterError("distances", (i, j, k), "break the triangle inequality")
