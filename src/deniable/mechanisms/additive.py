"""The additive family: noise of one law on numbers, on integers or on the lattice of reals."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from deniable.errors import ParameterError, PrivateValueError
from deniable.lazy import lazy
from deniable.mechanisms.base import Pairs, exactly_one, read_confidence
from deniable.mechanisms.gaps import Gap, by_norm, integer_moves, real_moves
from deniable.mechanisms.laws import AdditiveLaw, Norm, log_ratio, quantile
from deniable.mechanisms.values import (
    Floats,
    Integers,
    is_scalar,
    read_integer,
    read_integers,
    read_real,
    read_reals,
    saturating_add,
)
from deniable.privacy.exact import Number, float_above, positive, show
from deniable.privacy.losses.base import check_ratio
from deniable.privacy.losses.gaussian import DiscreteGaussianLoss
from deniable.privacy.losses.laplace import DiscreteLaplaceLoss
from deniable.privacy.parameters import Parameter, Related, parameter, parameters
from deniable.privacy.units import Relation, read_relation
from deniable.randomness.lattice import Lattice, lattice_for
from deniable.randomness.noise import Noise, noise
from deniable.trace import traced


@parameters
class Additive(ABC):
    """Values that move by `sensitivity` in a norm, and the spread of the noise that covers them."""

    norm: ClassVar[Norm]
    sensitivity: Parameter[Number, Fraction] = parameter(positive)
    relation: Related = parameter(read_relation, default=Relation.ADD_REMOVE)

    @property
    @abstractmethod
    def spread(self) -> Fraction:
        """The scale of Laplace noise, or σ of Gaussian noise."""

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise on one number, to float precision."""
        return float(self.spread) * (math.sqrt(2) if self.norm == Norm.L1 else 1.0)

    def __post_init__(self) -> None:
        name = "epsilon" if self.norm == Norm.L1 else "sensitivity/sigma"
        check_ratio(name, self.sensitivity / self.spread)

    def __repr__(self) -> str:
        ratio = self.sensitivity / self.spread
        first = f"epsilon={show(ratio)}" if self.norm == Norm.L1 else f"sigma={show(self.spread)}"
        last = "" if self.relation == Relation.ADD_REMOVE else ", relation='replace'"
        return f"{type(self).__name__}({first}, sensitivity={show(self.sensitivity)}{last})"


@parameters
class IntegerNoise(Additive):
    """Noise on integers, exactly of its law; 64-bit arrays saturate."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._law.check()

    @property
    def _law(self) -> AdditiveLaw:
        return self.norm.law(self.spread)

    @lazy
    def _noise(self) -> Noise:
        return noise(self._law)

    @lazy
    def loss(self) -> DiscreteLaplaceLoss | DiscreteGaussianLoss:
        return self.norm.loss(self.spread, self.sensitivity, self.relation)

    @traced
    def release(self, value: Any) -> int | Integers:
        return self._add(read_integer(value) if is_scalar(value) else read_integers(value))

    def _add(self, value: int | Integers) -> int | Integers:
        """One draw on each integer. 64-bit arrays saturate; single Python ints never do."""
        if isinstance(value, int):
            return value + self._noise.one()
        return saturating_add(value, self._noise.many(value.size).reshape(value.shape))

    def error(self, *, confidence: Number) -> int:
        """A w for which the noise of one number is within ±w with this probability.

        The least one, but for Gaussian noise of σ above 10^5: at most a part in 10^9 wider.
        """
        return quantile(self._law, read_confidence(confidence))

    def privacy_loss(self, output: Any, x: Any, y: Any) -> float:
        """ln of P(output | x) / P(output | y); of Laplace noise never beyond ±ε for neighbours."""
        return log_ratio(self._law, *map(integer_points, (output, x, y)))

    def gap(self, x: Any, y: Any) -> Gap:
        return by_norm(integer_moves(x, y), self.norm.order, self.sensitivity)

    def neighbours(self) -> Pairs:
        return [(0, max(1, int(self.sensitivity)))]


@parameters
class RealNoise(Additive):
    """Noise on reals: value and noise are integers times a step of 2^k, and rounding is paid for.

    The law for d coordinates is wider by what it costs that d of them are rounded.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        self._law(1).check()

    @lazy
    def lattice(self) -> Lattice:
        """The multiples of a power of two on which releases live."""
        return lattice_for(sensitivity=self.sensitivity, scale=self.spread)

    def _steps(self, coordinates: int) -> int:
        """The sensitivity in steps, with what rounding so many coordinates adds."""
        steps = self.lattice.l1_steps if self.norm == Norm.L1 else self.lattice.l2_steps
        return steps(self.sensitivity, coordinates)

    def _spread(self, coordinates: int) -> Fraction:
        """The spread, in steps, that keeps the loss when this many coordinates are rounded."""
        return self._steps(coordinates) * self.spread / self.sensitivity

    def _law(self, coordinates: int) -> AdditiveLaw:
        return self.norm.law(self._spread(coordinates))

    def _noise(self, size: int) -> Noise:
        """For vectors of this size; the next power of two shares one law, and its tables."""
        coordinates = 1 << (size - 1).bit_length()
        if coordinates not in self._known:
            self._known[coordinates] = noise(self._law(coordinates))
        return self._known[coordinates]

    @lazy
    def _known(self) -> dict[int, Noise]:
        return {}

    @lazy
    def loss(self) -> DiscreteLaplaceLoss | DiscreteGaussianLoss:
        return self.norm.loss(self._spread(1), Fraction(self._steps(1)), self.relation)

    @traced
    def release(self, value: Any) -> float | Floats:
        if is_scalar(value):
            return self._release_one(read_real(value))
        values = read_reals(value)
        size = math.prod(values.shape)
        drawn = self._noise(size).many(size)
        if values.doubles is not None:
            points = self.lattice.nearest(values.doubles)
            return self.lattice.add(points, drawn.reshape(values.shape))
        pairs = zip(values.rationals, drawn.tolist(), strict=True)
        return np.array([self._exactly(real, z) for real, z in pairs]).reshape(values.shape)

    def _release_one(self, value: float | Fraction) -> float:
        steps = self._noise(1).one()
        if isinstance(value, float) and abs(steps) < 1 << 53:
            return self.lattice.add_float(self.lattice.nearest_float(value), steps)
        return self._exactly(Fraction(value), steps)

    def _exactly(self, value: Fraction, steps: int) -> float:
        return self.lattice.to_float(self.lattice.nearest_exact(value) + steps * self.lattice.step)

    def error(self, *, confidence: Number) -> float:
        """A half-width within which the noise of one number stays with this probability.

        Half a step of it is for rounding the value. Beside it stands the rounding of the result to
        a double, of values beyond 2^52 steps.
        """
        steps = quantile(self._law(1), read_confidence(confidence))
        return float_above((steps + Fraction(1, 2)) * self.lattice.step)

    def privacy_loss(self, output: Any, x: Any, y: Any) -> float:
        """ln of P(output | x) / P(output | y); of Laplace noise never beyond ±ε for neighbours."""
        seen = output_points(output, self.lattice)
        before, after = (lattice_points(value, self.lattice) for value in (x, y))
        law = self._law(1 << (len(seen) - 1).bit_length())
        return log_ratio(law, seen, before, after)

    def gap(self, x: Any, y: Any) -> Gap:
        return by_norm(real_moves(x, y), self.norm.order, self.sensitivity)

    def neighbours(self) -> Pairs:
        return [(0.0, float(self.sensitivity))]


def scale_of(epsilon: Number | None, scale: Number | None, sensitivity: Number) -> Fraction:
    """The scale of Laplace noise, given as it is or by the ε that it keeps."""
    name, number = exactly_one(epsilon=epsilon, scale=scale)
    if name == "scale":
        return positive(number, name)
    return positive(sensitivity, "sensitivity") / positive(number, name)


def integer_points(value: Any) -> list[int]:
    """The integers of a value, flat."""
    return [read_integer(value)] if is_scalar(value) else read_integers(value).ravel().tolist()


def lattice_points(value: Any, lattice: Lattice) -> list[int]:
    """The places, in steps, to which a value is rounded, flat."""
    reals = [Fraction(read_real(value))] if is_scalar(value) else read_reals(value).exactly()
    return [int(lattice.nearest_exact(real) / lattice.step) for real in reals]


def output_points(output: Any, lattice: Lattice) -> list[int]:
    """The places, in steps, of a released value."""
    try:
        reals = [Fraction(read_real(output))] if is_scalar(output) else read_reals(output).exactly()
    except PrivateValueError as cause:
        raise ParameterError("output", output, f"was never released: {cause}") from None
    places = [real / lattice.step for real in reals]
    if any(place.denominator != 1 for place in places):
        raise ParameterError(
            "output", output, "is no multiple of the mechanism's grid: it cannot be its output"
        )
    return [int(place) for place in places]
