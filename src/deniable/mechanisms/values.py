"""Private values on their way into a mechanism: read exactly, or refused without being quoted."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from numbers import Rational
from typing import Any

import numpy as np
import numpy.typing as npt

from deniable.errors import PrivateValueError

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_INT64 = np.iinfo(np.int64)
_EXACT_IN_A_DOUBLE = 1 << 53
_SAFE = 1 << 62
# By kind only: the width of a text type would tell how long the longest text is.
_KINDS = {
    "U": "text",
    "S": "bytes",
    "O": "objects",
    "b": "booleans",
    "c": "complex numbers",
    "M": "dates",
    "m": "time spans",
    "f": "floats",
    "V": "records",
}


def is_scalar(value: Any) -> bool:
    """Whether the value is one number rather than an array of them."""
    return isinstance(value, int | float | Fraction | Decimal | np.generic)


def read_integer(value: Any) -> int:
    """Read one integer."""
    if isinstance(value, int | np.integer) and not isinstance(value, bool | np.timedelta64):
        return int(value)
    raise _refused("a whole number (int)", value)


def read_real(value: Any) -> float | Fraction:
    """Read one finite real: a float where that is exact, a rational otherwise."""
    if isinstance(value, bool | np.bool_ | np.longdouble | np.timedelta64):
        raise _refused("a real number (float or int)", value)
    if isinstance(value, float | np.floating):
        if not math.isfinite(value):
            raise _not_finite()
        return float(value)
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise _not_finite()
        if abs(value.adjusted()) > 400:
            raise PrivateValueError("a decimal beyond the range of floats cannot be released")
        return Fraction(value)
    if isinstance(value, Rational | np.integer):
        exact = Fraction(int(value.numerator), int(value.denominator))
        small = exact.denominator == 1 and abs(exact.numerator) <= _EXACT_IN_A_DOUBLE
        return float(exact) if small else exact
    raise _refused("a real number (float or int)", value)


def read_integers(values: Any) -> Integers:
    """Read an array of integers; those beyond 64 bits saturate."""
    array = _read_array(values)
    if isinstance(values, list | tuple) and array.dtype.kind != "i":
        # What numpy makes of a list depends on how large its numbers are; read them one by one.
        given = [read_integer(value) for value in np.asarray(values, dtype=object).ravel()]
        inside = [max(_INT64.min, min(_INT64.max, value)) for value in given]
        return np.array(inside, dtype=np.int64).reshape(array.shape)
    if array.dtype.kind not in "iu":
        raise _refused_array("integers", array)
    if array.dtype.kind == "u" and array.dtype.itemsize == 8:
        array = np.minimum(array, np.uint64(_INT64.max))
    return array.astype(np.int64, copy=False)


@dataclass(frozen=True)
class Reals:
    """Finite reals: doubles where that is exact, a flat list of rationals otherwise."""

    shape: tuple[int, ...]
    doubles: Floats | None
    rationals: list[Fraction]

    def exactly(self) -> list[Fraction]:
        """The values as rationals, flat."""
        if self.doubles is None:
            return self.rationals
        return [Fraction(value) for value in self.doubles.ravel().tolist()]


def read_reals(values: Any) -> Reals:
    """Read an array of finite reals, exactly."""
    array = _read_array(values)
    if isinstance(values, list | tuple) and array.dtype.kind in "fO":
        # numpy rounds integers that stand beside floats: look at what was given.
        given = np.asarray(values, dtype=object).ravel()
        if array.dtype.kind == "O" or _any_wide(given):
            return Reals(array.shape, None, [Fraction(read_real(value)) for value in given])
    if array.dtype.kind in "iu":
        if _any_wide(array):
            return Reals(array.shape, None, [Fraction(int(value)) for value in array.ravel()])
        return Reals(array.shape, array.astype(np.float64), [])
    if array.dtype.kind != "f" or array.dtype.itemsize > 8:
        raise _refused_array("real numbers (float64 or integers)", array)
    # A copy of our own: what is checked here is what is used later, whatever the caller does.
    doubles = np.array(array, dtype=np.float64)
    if not bool(np.isfinite(doubles).all()):
        raise _not_finite()
    return Reals(array.shape, doubles, [])


def _any_wide(flat: npt.NDArray[Any]) -> bool:
    """Whether an integer is beyond what a double holds exactly."""
    if flat.dtype.kind in "iu":
        return bool(((flat > _EXACT_IN_A_DOUBLE) | (flat < -_EXACT_IN_A_DOUBLE)).any())
    return any(isinstance(v, int | np.integer) and abs(int(v)) > _EXACT_IN_A_DOUBLE for v in flat)


def saturating_add(values: Integers, noise: Integers) -> Integers:
    """Add `values` to `noise` in place, held within 64 bits. |noise| is below 2^62."""
    far = (values.max() > _SAFE) or (values.min() < -_SAFE)
    noise += values
    if far:
        # A sum that wrapped has the sign opposite to its value, however the noise fell.
        noise[(values > _SAFE) & (noise < 0)] = _INT64.max
        noise[(values < -_SAFE) & (noise >= 0)] = _INT64.min
    return noise


def _read_array(values: Any) -> npt.NDArray[Any]:
    if _hides_values(values):
        raise PrivateValueError("a masked array hides values; fill or drop them before a release")
    if isinstance(values, str | bytes | dict | set) or values is None:
        raise _refused("a number, or an array of numbers", values)
    try:
        array = np.asarray(values)
    except Exception:  # whatever an array-like raises may quote what it holds
        raise PrivateValueError("the values form no regular array of numbers") from None
    if array.size == 0:
        raise PrivateValueError("an empty array holds nothing to release")
    return array


def _hides_values(values: Any) -> bool:
    if isinstance(values, list | tuple):
        return any(_hides_values(value) for value in values)
    return isinstance(values, np.ma.MaskedArray)


def _not_finite() -> PrivateValueError:
    return PrivateValueError(
        "NaN and infinities cannot be released; clamp or replace them before the release"
    )


def _refused(wanted: str, value: Any) -> PrivateValueError:
    return PrivateValueError(f"a release takes {wanted}, not {type(value).__name__}")


def _refused_array(wanted: str, array: npt.NDArray[Any]) -> PrivateValueError:
    return PrivateValueError(
        f"a release takes an array of {wanted}, not of {_KINDS.get(array.dtype.kind, 'others')}; "
        "convert it first"
    )
