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
from deniable.randomness.lattice import Lattice
from deniable.randomness.noise import Noise

NoiseFor = Callable[[int], Noise]


def release_integers(value: Any, noise: Noise) -> int | Integers:
    """Add one draw to each integer. 64-bit arrays saturate; single Python ints never do."""
    if is_scalar(value):
        return read_integer(value) + noise.one()
    values = read_integers(value)
    return saturating_add(values, noise.many(values.size).reshape(values.shape))


def release_reals(value: Any, lattice: Lattice, noise_for: NoiseFor) -> float | Floats:
    """Round each real to the lattice and add one draw, in steps.

    `noise_for(d)` is the noise for vectors of d coordinates, which pays for their rounding.
    """
    if is_scalar(value):
        return _release_real(read_real(value), lattice, noise_for(1))
    values = read_reals(value)
    noise = noise_for(coordinates_charged(math.prod(values.shape)))
    drawn = noise.many(math.prod(values.shape))
    if values.doubles is not None:
        return lattice.add(lattice.nearest(values.doubles), drawn.reshape(values.shape))
    pairs = zip(values.rationals, drawn.tolist(), strict=True)
    released = [_exactly(real, lattice, steps) for real, steps in pairs]
    return np.array(released).reshape(values.shape)


def _release_real(value: float | Fraction, lattice: Lattice, noise: Noise) -> float:
    steps = noise.one()
    if isinstance(value, float) and abs(steps) < 1 << 53:
        return lattice.add_float(lattice.nearest_float(value), steps)
    return _exactly(Fraction(value), lattice, steps)


def _exactly(value: Fraction, lattice: Lattice, steps: int) -> float:
    return lattice.to_float(lattice.nearest_exact(value) + steps * lattice.step)


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
