"""Noise for places: planar Laplace on a lattice of the plane."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from deniable.errors import ParameterError, PrivateValueError
from deniable.lazy import lazy
from deniable.mechanisms.additive import scale_of
from deniable.mechanisms.base import Pairs, read_confidence
from deniable.mechanisms.gaps import Gap, misshapen, moved_by
from deniable.mechanisms.values import Floats, read_reals
from deniable.privacy.exact import Number, float_above, positive, sqrt_up
from deniable.privacy.losses.base import check_ratio
from deniable.privacy.losses.generic import PureLoss
from deniable.privacy.parameters import Parameter, Related, keep, parameter, parameters
from deniable.privacy.search import least
from deniable.privacy.units import Relation, read_relation
from deniable.randomness.lattice import Lattice, lattice_for
from deniable.randomness.noise import LaplaceLaw
from deniable.randomness.planar import draw_planar
from deniable.randomness.source import SECURE
from deniable.trace import traced

_ROOT_TWO_UP = Fraction(math.isqrt(2 * 10**40) + 1, 10**20)


@parameters
class PlanarLaplace:
    """Noise on a place (x, y): density proportional to exp(-|z|/scale), |z| the distance.

    Formal guarantee (geo-indistinguishability; Andrés, Bordenabe, Chatzikokolakis & Palamidessi
    2013, Thm 4.1). For two places a distance d apart:

    * the log ratio of the probabilities of any output is at most d/scale = ε d/sensitivity, plus
      what rounding to the lattice may add (a 2^-29th part of ε where ε is above 1e-6), which is
      charged: for places up to `sensitivity` apart one release is ε-DP, exactly;
    * with sensitivity=1, ε is the loss per unit of distance;
    * what is drawn is the planar Laplace law on a lattice of 2^k, exactly; outputs are its points;
    * the distance moved has mean 2 scale and P(|z| <= r) = 1 - (1 + r/scale) e^(-r/scale), up to
      the lattice's step.

    The relation is "replace" unless said otherwise: a person's place is exchanged for another. A
    bare release is unledgered: the caller keeps the budget.
    """

    scale: Parameter[Number, Fraction] = parameter(positive)
    sensitivity: Parameter[Number, Fraction] = parameter(positive)
    relation: Related = parameter(read_relation, default=Relation.REPLACE)

    def __init__(
        self,
        *,
        epsilon: Number | None = None,
        scale: Number | None = None,
        sensitivity: Number,
        relation: Relation | str = Relation.REPLACE,
    ) -> None:
        spread = scale_of(epsilon, scale, sensitivity)
        keep(self, scale=spread, sensitivity=sensitivity, relation=relation)

    def __post_init__(self) -> None:
        check_ratio("epsilon", self.sensitivity / self.scale)
        LaplaceLaw(self._steps * 2).check()

    @lazy
    def lattice(self) -> Lattice:
        """The multiples of a power of two on which both coordinates live."""
        return lattice_for(sensitivity=self.sensitivity, scale=self.scale * 4)

    @lazy
    def _steps(self) -> Fraction:
        """The scale in steps, widened so that rounding both coordinates is paid for."""
        moved = self.sensitivity / self.lattice.step + _ROOT_TWO_UP
        return moved * self.scale / self.sensitivity

    @lazy
    def loss(self) -> PureLoss:
        """What one release costs, for places up to `sensitivity` apart."""
        return PureLoss(bound=self.sensitivity / self.scale, relation=self.relation)

    @traced
    def release(self, value: Any) -> Floats:
        """Release a place (x, y), or an array of places, one to a row."""
        places = read_reals(value)
        if places.shape[-1:] != (2,):
            raise PrivateValueError("a place is a pair of floats; an array has one place to a row")
        doubles = places.doubles
        if doubles is None:
            nearest = [self.lattice.nearest_exact(real) for real in places.rationals]
            doubles = np.array([self.lattice.to_float(point) for point in nearest])
            doubles = doubles.reshape(places.shape)
        pairs = draw_planar(self._steps, doubles.size // 2, SECURE)
        return self.lattice.add(self.lattice.nearest(doubles), pairs.reshape(places.shape))

    def error(self, *, confidence: Number) -> float:
        """A distance within which the released place lies with this probability."""
        miss = float(1 - read_confidence(confidence))
        radius = least(lambda r: (1 + r) * math.exp(-r) <= miss * (1 - 1e-12), 0.0, 1000.0)
        # The lattice moves each point by less than two steps.
        return float_above((Fraction(radius) * self._steps + 2) * self.lattice.step)

    def privacy_loss(self, output: Any, x: Any, y: Any) -> float:
        """ln of P(output | x) / P(output | y)."""
        read = [read_reals(value).doubles for value in (output, x, y)]
        if any(value is None for value in read):
            raise PrivateValueError("a place is a pair of floats")
        seen, before, after = (np.asarray(value, dtype=np.float64) for value in read)
        before, after = self.lattice.nearest(before), self.lattice.nearest(after)
        if not seen.shape == before.shape == after.shape or seen.shape[-1:] != (2,):
            raise ParameterError("output, x, y", "different shapes", "must be places of one shape")
        unit = float(self._steps * self.lattice.step)
        distances = [np.hypot(*(seen - place).reshape(-1, 2).T).sum() for place in (after, before)]
        return float(distances[0] - distances[1]) / unit

    def gap(self, x: Any, y: Any) -> Gap:
        """The distance of two places; of several that moved, the sum of distances."""
        before, after = read_reals(x), read_reals(y)
        if before.shape != after.shape:
            return misshapen("distance")
        moves = [b - a for a, b in zip(before.exactly(), after.exactly(), strict=True)]
        squares = [a**2 + b**2 for a, b in zip(moves[::2], moves[1::2], strict=True)]
        gap = moved_by(sum(map(sqrt_up, squares), Fraction(0)), self.sensitivity, "distance")
        if sum(square > 0 for square in squares) != 1:
            return gap
        return replace(gap, ok=sum(squares) <= self.sensitivity**2)

    def neighbours(self) -> Pairs:
        return [([0.0, 0.0], [float(self.sensitivity), 0.0])]
