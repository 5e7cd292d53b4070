"""Adding integer noise: to integers, and to real numbers on their lattice."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from deniable.errors import ParameterError, PrivateValueError
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
from deniable.privacy.exact import float_above
from deniable.randomness.lattice import Lattice
from deniable.randomness.noise import Law, Noise, noise


def release_integers(value: Any, source: Noise) -> int | Integers:
    """Add one draw to each integer. 64-bit arrays saturate; single Python ints never do."""
    if is_scalar(value):
        return read_integer(value) + source.one()
    values = read_integers(value)
    return saturating_add(values, source.many(values.size).reshape(values.shape))


class LatticeNoise:
    """Noise on real numbers: a lattice, and a law for each number of coordinates that is rounded.

    `law_for(d)` is the noise, in steps, for vectors of d coordinates; it pays for their rounding.
    """

    def __init__(self, lattice: Lattice, law_for: Callable[[int], Law]) -> None:
        self.lattice = lattice
        self._law_for = law_for
        self._known: dict[int, Noise] = {}

    def _noise(self, coordinates: int) -> Noise:
        if coordinates not in self._known:
            self._known[coordinates] = noise(self._law_for(coordinates))
        return self._known[coordinates]

    def release(self, value: Any) -> float | Floats:
        """Round each real to the lattice and add one draw, in steps."""
        if is_scalar(value):
            return self._release_one(read_real(value))
        values = read_reals(value)
        size = math.prod(values.shape)
        drawn = self._noise(coordinates_charged(size)).many(size)
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

    def half_width(self, steps: int) -> float:
        """So many steps of noise, and half a step for rounding the value, as a float rounded up."""
        return float_above((steps + Fraction(1, 2)) * self.lattice.step)

    def places(self, output: Any, x: Any, y: Any) -> tuple[list[int], list[int], list[int]]:
        """Where an output and two values lie, in steps, flat and of one length."""
        seen = output_points(output, self.lattice)
        before, after = (lattice_points(value, self.lattice) for value in (x, y))
        same_length(seen, before, after)
        return seen, before, after


def coordinates_charged(size: int) -> int:
    """The next power of two: vectors of like size share one law, and its tables."""
    return 1 << (size - 1).bit_length()


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


def same_length(*vectors: list[int]) -> None:
    """Refuse vectors that cannot be compared place by place."""
    if len({len(vector) for vector in vectors}) > 1:
        raise ParameterError("output, x, y", "different shapes", "must be of one shape")
