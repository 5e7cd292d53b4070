"""Geometric noise on a bounded range of integers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from deniable.errors import ParameterError, ParameterTypeError
from deniable.mechanisms.additive import scale_of
from deniable.mechanisms.base import Pairs
from deniable.mechanisms.gaps import Gap
from deniable.mechanisms.laplace import Geometric
from deniable.mechanisms.values import Integers, is_scalar, read_integer, read_integers
from deniable.privacy.channel import Channel
from deniable.privacy.exact import Number, show
from deniable.privacy.parameters import Parameter, keep, parameter, parameters, represent
from deniable.privacy.units import Relation
from deniable.randomness.brackets import exp_minus
from deniable.trace import traced

_MOST_OUTPUTS = 512
_LARGEST_TABLE = 1 << 14
_STEEPEST = 1000


def _end(value: int, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise ParameterTypeError(name, value, "must be a whole number (int)")
    if abs(value) > 1 << 62:
        raise ParameterError(name, value, "must lie within ±2^62")
    return int(value)


@parameters
class TruncatedGeometric(Geometric):
    """Two-sided geometric noise on integers of [lower, upper]: mass beyond an end folds onto it.

    Formal guarantee. For integer values that move by at most `sensitivity` between neighbours under
    `relation`, clamped to [lower, upper] first:

    * one release is ε-DP with ε = sensitivity/scale: it is the geometric mechanism followed by a
      clamp (Ghosh, Roughgarden & Sundararajan 2009);
    * outputs lie in [lower, upper], with the probabilities of `channel`;
    * for vectors, `sensitivity` is in L1 and each coordinate is clamped.

    A bare release is unledgered: the caller keeps the budget.
    """

    lower: Parameter[int, int] = parameter(_end)
    upper: Parameter[int, int] = parameter(_end)

    def __init__(
        self,
        *,
        epsilon: Number | None = None,
        scale: Number | None = None,
        sensitivity: Number,
        lower: int,
        upper: int,
        relation: Relation | str = Relation.ADD_REMOVE,
    ) -> None:
        spread = scale_of(epsilon, scale, sensitivity)
        keep(
            self, scale=spread, sensitivity=sensitivity, lower=lower, upper=upper, relation=relation
        )

    def __post_init__(self) -> None:
        if self.lower >= self.upper:
            raise ParameterError("lower", self.lower, f"must be below upper={self.upper}")
        super().__post_init__()

    __repr__ = represent

    @traced
    def release(self, value: Any) -> int | Integers:
        """Release an integer, or an array of them, with noise, inside the range."""
        return self._clamp(self._add(self._read(value)))

    def _read(self, value: Any) -> int | Integers:
        return self._clamp(read_integer(value) if is_scalar(value) else read_integers(value))

    def _clamp(self, value: int | Integers) -> int | Integers:
        if isinstance(value, int):
            return max(self.lower, min(self.upper, value))
        return np.clip(value, self.lower, self.upper)

    def error(self, *, confidence: Number) -> int:
        """A w for which the noise of one number in the range is within ±w with this probability."""
        return min(super().error(confidence=confidence), self.upper - self.lower)

    def gap(self, x: Any, y: Any) -> Gap:
        return super().gap(self._read(x), self._read(y))

    def neighbours(self) -> Pairs:
        """At the lower end and in the middle, as far apart as is charged for."""
        moved, middle = int(self.sensitivity), (self.lower + self.upper) // 2
        return [(at, min(self.upper, at + moved)) for at in (self.lower, middle)]

    def channel(self, inputs: Sequence[int] | None = None) -> Channel:
        """P(output | input) on the range, exp(-1/scale) taken to 128 bits; rows sum to one."""
        outputs = range(self.lower, self.upper + 1)
        if len(outputs) > _MOST_OUTPUTS:
            raise ParameterError("upper", self.upper, f"{_MOST_OUTPUTS} outputs are the most")
        given = tuple(outputs) if inputs is None else tuple(inputs)
        if len(given) * len(outputs) > _LARGEST_TABLE:
            raise ParameterError("inputs", len(given), "are too many for so many outputs")
        if 1 / self.scale > _STEEPEST:
            raise ParameterError("scale", show(self.scale), "is too small for a channel")
        precision = 128 + math.ceil(1.45 * float(1 / self.scale))
        q = Fraction(exp_minus(1 / self.scale, precision).low, 1 << precision)
        rows = tuple(folded_geometric(q, self._inside(x), outputs) for x in given)
        return Channel(given, tuple(outputs), rows)

    def _inside(self, value: int) -> int:
        return max(self.lower, min(self.upper, read_integer(value)))

    def privacy_loss(self, output: int, x: int, y: int) -> float:
        """ln of P(output | x) / P(output | y); never beyond ±ε for neighbours."""
        seen = read_integer(output)
        if not self.lower <= seen <= self.upper:
            raise ParameterError("output", output, "lies outside the range: it was never released")
        # Inside and at the ends alike P is a constant of the output times q^distance.
        moved = abs(seen - self._inside(y)) - abs(seen - self._inside(x))
        return float(moved / self.scale)


def folded_geometric(q: Fraction, value: int, outputs: range) -> tuple[Fraction, ...]:
    """(1-q)/(1+q) q^|z-value| inside, q^|z-value|/(1+q) at the two ends, for any q in (0, 1)."""
    powers = [q**k / (1 + q) for k in range(len(outputs))]
    ends = (outputs[0], outputs[-1])
    return tuple(powers[abs(z - value)] * (1 if z in ends else 1 - q) for z in outputs)
