"""The loss of any finite mechanism, as its exact probabilities."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import permutations
from typing import ClassVar

import numpy as np

from deniable.errors import ParameterError
from deniable.lazy import lazy
from deniable.privacy.accountants import pure as curve
from deniable.privacy.accountants.law import Atoms, DominatingPair, Floats
from deniable.privacy.channel import float_delta, read_rows, worst_delta, worst_of_all
from deniable.privacy.exact import Number, log_float, log_up, whole
from deniable.privacy.losses.base import Concentrated, Loss
from deniable.privacy.losses.generic import PureLoss
from deniable.privacy.parameters import Parameter, Related, parameter, parameters
from deniable.privacy.units import Relation, read_relation

Rows = tuple[tuple[Fraction, ...], ...]


@parameters
class ChannelLoss(Loss):
    """A channel any two of whose inputs may be neighbours: the worst pair of rows counts.

    Every output must be possible for every input, or no ε would hold.
    """

    kind: ClassVar[str] = "channel"
    relation: Related = parameter(read_relation, default=Relation.REPLACE)
    rows: Parameter[Sequence[Sequence[Number]], Rows] = parameter(lambda rows, _: read_rows(rows))

    def __post_init__(self) -> None:
        worst = worst_of_all(self.rows)
        if worst == math.inf:
            raise ParameterError(
                "rows", "an output that some inputs cannot give", "no ε holds for such a channel"
            )
        if worst == 1:
            raise ParameterError("rows", "all alike", "a channel that tells nothing has no loss")

    @lazy
    def pure(self) -> Fraction:
        """The worst log ratio, rounded up at the fortieth digit."""
        return log_up(Fraction(worst_of_all(self.rows)))

    @lazy
    def concentrated(self) -> Concentrated:
        """ε tanh(ε/2), as for any pure loss."""
        return Concentrated(curve.rho(self.pure), Fraction(0))

    @lazy
    def _floats(self) -> Floats:
        return np.array([[float(p) for p in row] for row in self.rows])

    def profile(self, epsilon: Fraction | float) -> float:
        """The worst sum of positive parts."""
        at = Fraction(epsilon)
        if at == 0:
            return worst_delta(self.rows, at)
        return float_delta(self._floats, float(at)) if at < self.pure else 0.0

    def floor(self) -> DominatingPair:
        """The two rows furthest apart."""
        numbers = list(permutations(range(len(self.rows)), 2))
        one, other = max(
            numbers, key=lambda pair: float(np.abs(np.subtract(*self._floats[list(pair)])).sum())
        )
        pairs = sorted(
            (log_float(p / q), float(p), float(q))
            for p, q in zip(self.rows[one], self.rows[other], strict=True)
            if p and q and float(p) and float(q)
        )
        x, mass, others = (np.array(column) for column in zip(*pairs, strict=True))
        atoms = Atoms(x, mass, others)
        return DominatingPair(atoms=lambda _: atoms, symmetric=False)

    def divergence(self, order: float) -> float:
        """The worst Rényi divergence over pairs of rows; orders next to 1 are rounded up."""
        near = order if order == 1 else max(order, 1 + 1e-4)
        return max(_divergence(p, q, near) for p, q in permutations(self._floats, 2)) * (1 + 1e-9)

    def group(self, size: int) -> Loss:
        """k people answer one by one; together they are k ε-DP."""
        if whole(size, "size") == 1:
            return self
        return PureLoss(bound=size * self.pure, relation=self.relation)


def _divergence(p: Floats, q: Floats, order: float) -> float:
    some = p > 0
    level = np.log(p[some]) - np.log(q[some])
    if order == 1:
        return float(p[some] @ level)
    top = float(level.max())
    return top + math.log(float(p[some] @ np.exp((order - 1) * (level - top)))) / (order - 1)
