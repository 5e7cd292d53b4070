"""The power-of-two lattice on which real numbers are released.

A real value is rounded to a multiple of 2^exponent, integer noise is added in units of that step,
and the result is a multiple of the step again: no float attack on low-order bits can tell one
input from another (Mironov, CCS 2012). Two facts carry the guarantee, both tested:

* `nearest` is translation invariant (half goes up), so |nearest(a) - nearest(b)| is at most
  ceil(|a - b| / step) steps. A vector of d > 1 coordinates may thus move d steps further in L1 and
  sqrt(d) in L2 than its real sensitivity: `l1_steps` and `l2_steps` charge that.
* `add` returns the double nearest to the exact lattice point: an IEEE sum of two exact multiples
  is the correctly rounded true sum, hence a function of the noisy lattice point alone.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from deniable.errors import ParameterError

Floats = npt.NDArray[np.float64]

# In bits: rounding is invisible beside the sensitivity, noise is fine-grained, and fits 64 bits.
_STEPS_PER_SENSITIVITY = 40
_LEAST_STEPS_PER_SCALE = 30
_MOST_STEPS_PER_SCALE = 50
_EXACT_INTEGER = 1 << 53


@dataclass(frozen=True)
class Lattice:
    """Multiples of 2^exponent."""

    exponent: int

    @property
    def step(self) -> Fraction:
        """The distance of neighbouring points."""
        return Fraction(2) ** self.exponent

    def nearest_float(self, value: float) -> float:
        """`nearest` for one finite float."""
        if abs(value) >= math.ldexp(1.0, min(52 + self.exponent, 1023)):
            return value
        scaled = math.ldexp(value, -self.exponent)
        floor = math.floor(scaled)
        return math.ldexp(floor + (scaled - floor >= 0.5), self.exponent)

    def nearest(self, values: Floats) -> Floats:
        """Round finite values to the lattice, half up, exactly."""
        # From 2^52 steps on, a double's own spacing is a multiple of the step.
        fine = np.abs(values) < np.ldexp(1.0, min(52 + self.exponent, 1023))
        with np.errstate(all="ignore"):  # what underflows here rounds to 0 all the same
            scaled = np.ldexp(np.where(fine, values, 0.0), -self.exponent)
            floor = np.floor(scaled)
            rounded: Floats = np.ldexp(floor + (scaled - floor >= 0.5), self.exponent)
        return np.where(fine, rounded, values)

    def add_float(self, point: float, steps: int) -> float:
        """`add` for one lattice point; |steps| must be below 2^53."""
        total = point + math.ldexp(steps, self.exponent)
        return max(-sys.float_info.max, min(sys.float_info.max, total))

    def add(self, points: Floats, noise: npt.NDArray[np.int64]) -> Floats:
        """Add `noise` steps to lattice points; the double nearest to each exact sum."""
        if bool((np.abs(noise) >= _EXACT_INTEGER).any()):
            return self._add_exactly(points, noise)
        with np.errstate(all="ignore"):
            total: Floats = points + np.ldexp(noise.astype(np.float64), self.exponent)
        return np.clip(total, -sys.float_info.max, sys.float_info.max)

    def _add_exactly(self, points: Floats, noise: npt.NDArray[np.int64]) -> Floats:
        exact = [
            self.to_float(Fraction(float(point)) + int(steps) * self.step)
            for point, steps in zip(points.ravel(), noise.ravel(), strict=True)
        ]
        return np.array(exact).reshape(points.shape)

    def to_float(self, value: Fraction) -> float:
        """The double nearest to a lattice point; the largest double beyond its range."""
        try:
            return float(value)
        except OverflowError:
            return sys.float_info.max if value > 0 else -sys.float_info.max

    def nearest_exact(self, value: Fraction) -> Fraction:
        """Round a rational to the lattice, half up."""
        return math.floor(value / self.step + Fraction(1, 2)) * self.step

    def l1_steps(self, sensitivity: Fraction, coordinates: int) -> int:
        """How many steps the rounded vector moves at most in L1 for this real sensitivity."""
        return math.ceil(sensitivity / self.step) + (coordinates if coordinates > 1 else 0)

    def l2_steps(self, sensitivity: Fraction, coordinates: int) -> int:
        """The same in L2."""
        rounding = math.isqrt(coordinates - 1) + 1 if coordinates > 1 else 0
        return math.ceil(sensitivity / self.step) + rounding


def lattice_for(*, sensitivity: Fraction, scale: Fraction) -> Lattice:
    """A lattice so fine that rounding costs nothing, and coarse enough for 64-bit noise."""
    finest = floor_log2(scale) - _MOST_STEPS_PER_SCALE
    coarsest = floor_log2(scale) - _LEAST_STEPS_PER_SCALE
    exponent = max(finest, min(coarsest, floor_log2(sensitivity) - _STEPS_PER_SENSITIVITY))
    if not -1022 <= exponent <= 900:
        raise ParameterError(
            "scale",
            f"about 2^{floor_log2(scale)}",
            "real values are released at scales from about 2^-970 to 2^930; change their unit",
        )
    return Lattice(exponent)


def floor_log2(value: Fraction) -> int:
    """The largest k with 2^k <= value, for a positive value."""
    k = value.numerator.bit_length() - value.denominator.bit_length()
    return k if Fraction(2) ** k <= value else k - 1
