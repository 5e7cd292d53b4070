"""Survey weights: how much of the population each respondent stands for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from deniable.errors import ParameterError
from deniable.survey.reading import Places, read_column

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Weighting:
    """The weights of all respondents, summed up by report."""

    n: int
    first: Floats
    second: Floats

    @property
    def effective(self) -> float:
        """Kish's effective sample size, (Σw)²/Σw²: n equal weights have n (Kish 1965)."""
        return float(self.first.sum() ** 2 / self.second.sum())

    @property
    def design_effect(self) -> float:
        """n over the effective size: by how much the weights inflate a variance."""
        return self.n / self.effective

    def covariance(self, decoded: Floats, shares: Floats) -> Floats:
        """Of the weighted shares, by linearisation: n/(n-1) Σ w² (z - θ)(z - θ)ᵀ / (Σw)².

        `decoded` holds one column z for each report. Respondents are taken as drawn independently
        (with replacement); what they reported and what the coins said are both inside z
        (Särndal, Swensson & Wretman 1992, section 5.5-5.7).
        """
        off = decoded - shares[:, None]
        total: Floats = off * (self.second / self.first.sum() ** 2) @ off.T
        return total * self.n / (self.n - 1)


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
