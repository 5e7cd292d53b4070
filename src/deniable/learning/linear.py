"""Linear regression from one noisy matrix of second moments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from deniable.errors import ParameterTypeError
from deniable.learning.equations import Equations, shrunken_mean
from deniable.learning.noise import ALL, Share
from deniable.learning.rows import Floats, Ranges, Rows, read_target
from deniable.learning.scikit import NoisySums, SumsEstimator, read_pair
from deniable.learning.sums import DIAGONAL, OFF_DIAGONAL, Moments, Sums
from deniable.privacy.exact import not_negative

_MOMENTS = Moments(row=0.6**0.5, one=0.1**0.5, target=0.3**0.5)


@dataclass(kw_only=True, eq=False, repr=False)
class LinearRegression(RegressorMixin, SumsEstimator):  # type: ignore[misc]
    """Least squares from noisy sums of products: X'X, X'y and y'y, in one release.

    Formal guarantee: that of every `PrivateEstimator`, by one release of a vector of whole numbers
    whose L2 sensitivity is that of `sums.Moments`, with discrete Gaussian noise (discrete Laplace
    noise under `PureDP`); values beyond `y_bounds` are clamped, too (sufficient-statistics
    perturbation, Vu & Slavković 2009; with adaptive shrinkage after Wang 2018).

    Args, beside those of every `PrivateEstimator`:
        y_bounds: (low, high) of the target.
        fit_intercept: whether there is a constant.

    Attributes:
        coef_, intercept_: the model, in the units of the data.
        coef_standard_errors_: deviations of `coef_` from noise, sampling and shrinkage together.
        n_rows_: the noisy number of rows.
    """

    y_bounds: Any
    norm: Any = None
    fit_intercept: bool = True

    def _parts(self) -> Sequence[tuple[Sums, Share]]:
        read_pair(self.y_bounds, "y_bounds")
        self._alpha()
        if not isinstance(self.fit_intercept, bool | np.bool_):
            raise ParameterTypeError("fit_intercept", self.fit_intercept, "must be True or False")
        return [(_MOMENTS, ALL)]

    def _rows(self, values: Floats, y: Any, ranges: Ranges) -> Rows:
        """Targets are clipped to their bounds and brought to [-1, 1]."""
        units, present = ranges.units(values)
        target, (low, high) = read_target(y, len(values)), read_pair(self.y_bounds, "y_bounds")
        known = np.isfinite(target)
        clipped = np.clip(np.where(known, target, low), low, high)
        scaled = np.clip((clipped - (low + high) / 2) / ((high - low) / 2), -1.0, 1.0)
        return Rows(units, scaled, None, present & known)

    def _alpha(self) -> float:
        return 0.0

    def _learn(self, reader: NoisySums, ranges: Ranges) -> None:
        width = ranges.width
        drawn, spread = self._heard(reader, _MOMENTS, ALL, width)
        matrix, noise = _MOMENTS.matrix(drawn, width), _MOMENTS.noise(spread, width)
        low, high = read_pair(self.y_bounds, "y_bounds")
        half = (high - low) / 2
        count = max(matrix[width, width], 1.0)
        mean = shrunken_mean(
            matrix[:width, width], count, noise / (_MOMENTS.row * _MOMENTS.one), width**-0.5
        )
        (mean_y,) = shrunken_mean(
            matrix[width, width + 1 :], count, noise / (_MOMENTS.one * _MOMENTS.target)
        )
        if not self.fit_intercept:
            # y = coef·x: the model passes through the origin of the data, not of the ranges.
            mean, mean_y = -ranges.middle / ranges.scale, -(low + high) / 2 / half
            gram, right, total = _about(matrix, mean, mean_y)
        else:
            gram = matrix[:width, :width] - count * np.outer(mean, mean)
            right = matrix[:width, width + 1] - count * mean * mean_y
            total = matrix[width + 1, width + 1] - count * mean_y**2
        equations = Equations(
            gram,
            right,
            noise / _MOMENTS.row**2,
            noise / (_MOMENTS.row * _MOMENTS.target),
            total,
            noise * OFF_DIAGONAL / DIAGONAL / _MOMENTS.target**2,
            count,
            self._alpha(),
        )
        solved = equations.solve()
        self.coef_ = solved.weights * half / ranges.scale
        self.coef_standard_errors_ = (
            np.sqrt(np.maximum(np.diag(solved.covariance), 0)) * half / ranges.scale
        )
        centre = ranges.middle + np.clip(mean, -1, 1) * ranges.scale
        middle = (low + high) / 2 + float(np.clip(mean_y, -1, 1)) * half
        self.intercept_ = middle - float(self.coef_ @ centre) if self.fit_intercept else 0.0
        self.n_rows_ = float(count)
        self._ends = (low, high)

    def predict(self, X: Any) -> Floats:
        """The model's values, within the bounds of the target."""
        values = self._known(X)
        return np.clip(values @ self.coef_ + self.intercept_, *self._ends)


def _about(matrix: Floats, mean: Floats, mean_y: float) -> tuple[Floats, Floats, float]:
    """Second moments about a public point instead of the mean."""
    width = len(mean)
    count, sums, sum_y = matrix[width, width], matrix[:width, width], matrix[width, width + 1]
    gram = matrix[:width, :width] - np.outer(sums, mean) - np.outer(mean, sums)
    right = matrix[:width, width + 1] - mean * sum_y - sums * mean_y + count * mean * mean_y
    total = matrix[width + 1, width + 1] - 2 * mean_y * sum_y + count * mean_y**2
    return gram + count * np.outer(mean, mean), right, float(total)


@dataclass(kw_only=True, eq=False, repr=False)
class Ridge(LinearRegression):
    """Linear regression with a penalty alpha·|θ|², θ for rows u of length 1 at most.

    Formal guarantee: that of `LinearRegression`; the penalty is post-processing.
    """

    alpha: Any = 1.0

    def _alpha(self) -> float:
        return float(not_negative(self.alpha, "alpha"))
