"""Reading what a survey brings beside its reports: columns of numbers, and shares."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from deniable.errors import ParameterError, ParameterTypeError
from deniable.privacy.exact import Number, exact


def same_length(argument: str, given: int, n: int) -> None:
    """Refuse columns of another length."""
    if given != n:
        raise ParameterError(argument, f"{given} entries", f"must have {n}, one for each report")


def read_column(values: Any, argument: str, n: int) -> npt.NDArray[np.float64]:
    """A column of finite numbers, one for each report."""
    try:
        column = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterTypeError(
            argument, type(values).__name__, "must be a list of numbers"
        ) from None
    if column.ndim != 1:
        raise ParameterError(argument, f"{column.ndim} dimensions", "must be a list of numbers")
    same_length(argument, column.size, n)
    if not np.isfinite(column).all():
        raise ParameterError(argument, "not finite", "must be finite numbers")
    return column


def read_share(value: Number, argument: str = "share") -> Fraction:
    """A share, from 0 to 1."""
    number = exact(value, argument)
    if not 0 <= number <= 1:
        raise ParameterError(argument, value, "must lie between 0 and 1")
    return number
