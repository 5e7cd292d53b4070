"""The exponential form on any finite metric space."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from deniable.errors import ParameterError, PrivateValueError
from deniable.lazy import lazy
from deniable.mechanisms.base import Pairs, read_labels
from deniable.mechanisms.gaps import Gap
from deniable.mechanisms.weights import relative_weights, weights_to_probabilities
from deniable.privacy.channel import Channel
from deniable.privacy.exact import Number, log_float, not_negative, positive
from deniable.privacy.losses.base import check_ratio
from deniable.privacy.losses.generic import PureLoss
from deniable.privacy.parameters import Parameter, parameter, parameters
from deniable.privacy.units import Relation
from deniable.randomness.categorical import CategoricalSampler
from deniable.randomness.source import SECURE
from deniable.trace import traced

Distances = tuple[tuple[Fraction, ...], ...]


def _read_distances(distances: Any, argument: str) -> Distances:
    """Check a table of distances; ways round that are shorter by rounding alone are taken.

    Shortening distances is safe: the promise ε·d only gets stronger.
    """
    given = _table(distances, argument)
    n = len(given)
    if any(len(row) != n for row in given):
        raise ParameterError(argument, n, f"must be a table of {n} x {n} distances")
    for i in range(n):
        for j in range(n):
            if (given[i][j] == 0) != (i == j) or given[i][j] != given[j][i]:
                raise ParameterError(
                    argument, (i, j), "must be symmetric, and 0 exactly between equal points"
                )
    table = [list(row) for row in given]
    floats = np.array([[float(d) for d in row] for row in given])
    for k in range(n):
        round_way = floats[:, k, None] + floats[None, k, :]
        for i, j in np.argwhere(floats > round_way * (1 - 1e-12)):
            through = table[i][k] + table[k][j]
            if table[i][j] > through * (1 + Fraction(1, 10**9)):
                raise ParameterError(argument, (i, j, k), "break the triangle inequality")
            table[i][j] = min(table[i][j], through)
    return tuple(tuple(row) for row in table)


def _table(distances: Any, argument: str) -> Distances:
    try:
        rows = list(distances)
    except TypeError:
        raise ParameterError(argument, distances, "must be a table of numbers") from None
    if not rows or not all(isinstance(row, list | tuple | np.ndarray) for row in rows):
        raise ParameterError(argument, "rows", "must be lists of numbers")
    return tuple(tuple(not_negative(d, argument) for d in row) for row in rows)


@parameters
class MetricExponential:
    """Report a point z instead of y with probability proportional to exp(-ε d(y, z)/2).

    Formal guarantee (Chatzikokolakis, Andrés, Bordenabe & Palamidessi 2013). For points x and y of
    the metric space:

    * the log ratio of the probabilities of any report is at most ε d(x, y): half of it from the
      distance, by the triangle inequality, half from the normalisers;
    * so one release is ε·diameter-DP, which is `loss`;
    * reports have exactly these probabilities.

    `distances[i][j]` is the distance of points i and j: symmetric, zero on the diagonal only, and
    never longer than a way round (by more than a rounding, which is mended). The relation is
    "replace". A bare release is unledgered: the caller keeps the budget.
    """

    epsilon: Parameter[Number, Fraction] = parameter(positive)
    points: Parameter[Sequence[Hashable], tuple[Hashable, ...]] = parameter(
        partial(read_labels, least=2)
    )
    distances: Parameter[Sequence[Sequence[Number]], Distances] = parameter(_read_distances)

    def __post_init__(self) -> None:
        if len(self.distances) != (n := len(self.points)):
            raise ParameterError(
                "distances", len(self.distances), f"must be a table of {n} x {n} distances"
            )
        check_ratio("epsilon", self.epsilon * max(max(row) for row in self.distances))

    @lazy
    def loss(self) -> PureLoss:
        """What one release costs between the two points farthest apart."""
        diameter = max(max(row) for row in self.distances)
        return PureLoss(bound=self.epsilon * diameter, relation=Relation.REPLACE)

    def _place(self, point: Hashable) -> int:
        try:
            return self.points.index(point)
        except Exception:  # comparing a strange value may raise, with a message of its own
            raise PrivateValueError("the value is none of the points of the metric space") from None

    @traced
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
        here, there = (self.distances[self._place(point)] for point in (x, y))
        at = self._place(output)
        totals = [
            sum(relative_weights([-d for d in row], self.epsilon / 2)) for row in (here, there)
        ]
        return float(self.epsilon / 2 * (there[at] - here[at])) + log_float(
            Fraction(totals[1] / totals[0])
        )

    @property
    def labels(self) -> tuple[Hashable, ...]:
        return self.points

    def gap(self, x: Hashable, y: Hashable) -> Gap:
        del x, y
        return Gap(0.0, 0.0, "any two points are charged", ok=True)

    def neighbours(self) -> Pairs:
        return [(self.points[0], self.points[-1])]
