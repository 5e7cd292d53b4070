"""The loss of any finite mechanism, as its exact probabilities."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations
from typing import ClassVar

from deniable.errors import ParameterError
from deniable.lazy import lazy
from deniable.privacy.accountants import pure as curve
from deniable.privacy.channel import read_rows, worst_delta, worst_ratio
from deniable.privacy.exact import log_up, whole
from deniable.privacy.losses.base import Concentrated, Loss
from deniable.privacy.losses.generic import PureLoss
from deniable.privacy.units import Relation


@dataclass(frozen=True, kw_only=True)
class ChannelLoss(Loss):
    """A channel any two of whose inputs may be neighbours: the worst pair of rows counts.

    Every output must be possible for every input, or no ε would hold.
    """

    kind: ClassVar[str] = "channel"
    relation: Relation = Relation.REPLACE
    rows: tuple[tuple[Fraction, ...], ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "rows", read_rows(self.rows))
        worst = max((worst_ratio(p, q) for p, q in permutations(self.rows, 2)), default=Fraction(1))
        if worst == math.inf:
            raise ParameterError(
                "rows", "an output that some inputs cannot give", "no ε holds for such a channel"
            )
        if worst == 1:
            raise ParameterError("rows", "all alike", "a channel that tells nothing has no loss")
        object.__setattr__(self, "_pure", log_up(Fraction(worst)))

    @property
    def pure(self) -> Fraction:
        """The worst log ratio, rounded up at the fortieth digit."""
        bound: Fraction = self.__dict__["_pure"]
        return bound

    @lazy
    def concentrated(self) -> Concentrated:
        """ε tanh(ε/2), as for any pure loss."""
        return Concentrated(curve.rho(self.pure), Fraction(0))

    def profile(self, epsilon: Fraction | float) -> float:
        """The worst sum of positive parts."""
        at = Fraction(epsilon)
        return worst_delta(self.rows, at) if at < self.pure else 0.0

    def divergence(self, order: float) -> float:
        """The worst Rényi divergence over pairs of rows."""
        return max(_divergence(p, q, order) for p, q in permutations(self.rows, 2)) * (1 + 1e-12)

    def group(self, size: int) -> Loss:
        """k people answer one by one; together they are k ε-DP."""
        if whole(size, "size") == 1:
            return self
        return PureLoss(bound=size * self.pure, relation=self.relation)


def _divergence(p: tuple[Fraction, ...], q: tuple[Fraction, ...], order: float) -> float:
    pairs = [(float(a), math.log(a / b)) for a, b in zip(p, q, strict=True) if a > 0]
    if order == 1:
        return math.fsum(a * level for a, level in pairs)
    top = max(level for _, level in pairs)
    inner = math.fsum(a * math.exp((order - 1) * (level - top)) for a, level in pairs)
    return top + math.log(inner) / (order - 1)
