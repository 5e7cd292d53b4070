"""What a regression found, and the columns it was given."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from deniable.errors import ParameterError, ParameterTypeError
from deniable.mechanisms.labels import read_answer
from deniable.mechanisms.share_intervals import wald
from deniable.privacy.exact import Number
from deniable.survey.reading import read_column

Floats = npt.NDArray[np.float64]

INTERCEPT = "intercept"


@dataclass(frozen=True, eq=False)
class Fit:
    """Coefficients by name, with their covariance; normal intervals and tests."""

    names: tuple[str, ...]
    coefficients: Floats
    covariance: Floats
    n: int

    def coefficient(self, name: str) -> float:
        """The estimate."""
        return float(self.coefficients[read_answer(self.names, name, "name")])

    def standard_error(self, name: str) -> float:
        """Its standard error: sampling and coins together."""
        place = read_answer(self.names, name, "name")
        return math.sqrt(max(0.0, float(self.covariance[place, place])))

    def interval(self, name: str, *, confidence: Number = 0.95) -> tuple[float, float]:
        """A normal interval."""
        return wald(self.coefficient(name), self.standard_error(name), confidence)

    def p_value(self, name: str) -> float:
        """How often chance alone goes as far from 0, two-sided."""
        if (error := self.standard_error(name)) == 0:
            return 0.0 if self.coefficient(name) else 1.0
        return math.erfc(abs(self.coefficient(name)) / error / math.sqrt(2))


def read_columns(x: Mapping[str, Any], n: int, taken: int = 0) -> tuple[tuple[str, ...], Floats]:
    """The intercept and each column by name; `taken` more coefficients will be fitted."""
    if not hasattr(x, "keys") or not hasattr(x, "__getitem__"):
        raise ParameterTypeError("x", type(x).__name__, "must map names to columns of numbers")
    names = [str(name) for name in x]
    if INTERCEPT in names:
        raise ParameterError("x", INTERCEPT, "is added by itself; leave it out")
    if len(set(names)) != len(names):
        raise ParameterError("x", names, "must have different names as text")
    columns = [np.ones(n), *(read_column(x[name], f"x[{str(name)!r}]", n) for name in x)]
    matrix = np.column_stack(columns)
    if n <= matrix.shape[1] + taken:
        raise ParameterError("x", f"{n} reports", "must be more than there are coefficients")
    scaled = matrix / np.maximum(np.abs(matrix).max(axis=0), 1e-300)
    if np.linalg.matrix_rank(scaled) < matrix.shape[1]:
        raise ParameterError(
            "x", "collinear", "a column is constant or a sum of others; leave it out"
        )
    return (INTERCEPT, *names), matrix
