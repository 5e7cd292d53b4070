"""Survey weights: how much of the population each respondent stands for."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from deniable.errors import ParameterError
from deniable.mechanisms.labels import Places
from deniable.mechanisms.share_estimate import Weighting
from deniable.survey.reading import read_column

Floats = npt.NDArray[np.float64]

__all__ = ["Weighting", "read_weights"]


def read_weights(weights: Any, places: Places, reports: int) -> Weighting:
    """Read one weight for each report: finite, not negative, at least two of them positive."""
    given = read_column(weights, "weights", places.size)
    if given.min() < 0:
        raise ParameterError(
            "weights", "negative", "must be 0 or more: a person counts or does not"
        )
    counted = int(np.count_nonzero(given))
    if counted < 2:
        raise ParameterError(
            "weights", f"{counted} positive", "need two or more respondents that count"
        )
    scaled = given / given.max()
    first: Floats = np.bincount(places, scaled, reports).astype(np.float64)
    second: Floats = np.bincount(places, scaled * scaled, reports).astype(np.float64)
    return Weighting(counted, first, second)
