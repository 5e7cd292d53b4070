"""Private values on their way into a mechanism: read exactly, or refused without being quoted."""

from __future__ import annotations

import math
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


def is_scalar(value: Any) -> bool:
    """Whether the value is one number rather than an array of them."""
    return isinstance(value, int | float | Fraction | Decimal | np.generic)


def read_integer(value: Any) -> int:
    """Read one integer."""
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return int(value)
    raise _refused("a whole number (int)", value)


def read_real(value: Any) -> float | Fraction:
    """Read one finite real: a float where that is exact, a rational otherwise."""
    if isinstance(value, bool | np.bool_ | np.longdouble):
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
    if array.dtype == np.uint64:
        array = np.minimum(array, np.uint64(_INT64.max))
    if array.dtype.kind not in "iu":
        raise _refused_array("integers", array)
    return array.astype(np.int64, copy=False)


def read_reals(values: Any) -> Floats | list[Fraction]:
    """Read an array of finite reals: doubles where that is exact, a flat list of rationals else."""
    array = _read_array(values)
    if array.dtype.kind in "iu":
        if bool(((array > _EXACT_IN_A_DOUBLE) | (array < -_EXACT_IN_A_DOUBLE)).any()):
            return [Fraction(int(value)) for value in array.ravel()]
        return array.astype(np.float64)
    if array.dtype.kind != "f" or array.dtype.itemsize > 8:
        raise _refused_array("real numbers (float64 or integers)", array)
    doubles = array.astype(np.float64, copy=False)
    if not bool(np.isfinite(doubles).all()):
        raise _not_finite()
    return doubles


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
    if isinstance(values, np.ma.MaskedArray):
        raise PrivateValueError("a masked array hides values; fill or drop them before a release")
    if isinstance(values, str | bytes | dict | set) or values is None:
        raise _refused("a number, or an array of numbers", values)
    try:
        array = np.asarray(values)
    except (ValueError, TypeError, OverflowError):
        raise PrivateValueError("the values form no regular array of numbers") from None
    if array.size == 0:
        raise PrivateValueError("an empty array holds nothing to release")
    return array


def _not_finite() -> PrivateValueError:
    return PrivateValueError(
        "NaN and infinities cannot be released; clamp or replace them before the release"
    )


def _refused(wanted: str, value: Any) -> PrivateValueError:
    return PrivateValueError(f"a release takes {wanted}, not {type(value).__name__}")


def _refused_array(wanted: str, array: npt.NDArray[Any]) -> PrivateValueError:
    return PrivateValueError(
        f"a release takes an array of {wanted}, not of {array.dtype}; convert it first"
    )
