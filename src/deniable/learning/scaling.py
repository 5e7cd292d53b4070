"""Columns of mean 0 and variance 1, by noisy means and variances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import TransformerMixin

from deniable.learning.equations import shrunken_mean
from deniable.learning.noise import ALL, Share
from deniable.learning.rows import Floats, Ranges
from deniable.learning.scikit import NoisySums, SumsEstimator
from deniable.learning.sums import GroupSums, Sums

_SUMS = GroupSums(groups=1, one=0.2**0.5, row=0.4**0.5, square=0.4**0.5)
_LEAST = 1e-4  # of a variance, in units of the half span


@dataclass(kw_only=True, eq=False, repr=False)
class StandardScaler(TransformerMixin, SumsEstimator):  # type: ignore[misc]
    """Standardise columns by noisy means and variances.

    Formal guarantee: that of every `PrivateEstimator`, by one release of the count, the sums and
    the sums of squares, whose joint L2 sensitivity is that of `sums.GroupSums`.

    `transform` of private rows gives private rows: it releases nothing by itself, and protects
    nobody.

    Attributes:
        mean_, var_, scale_: of each column, noisy; `scale_` is never 0.
        mean_standard_errors_: deviations of `mean_` from noise and sampling.
        n_rows_: the noisy number of rows.
    """

    def _parts(self) -> Sequence[tuple[Sums, Share]]:
        return [(_SUMS, ALL)]

    def _learn(self, reader: NoisySums, ranges: Ranges) -> None:
        width = ranges.width
        drawn, spread = self._heard(reader, _SUMS, ALL, width)
        counts, sums, squares = _SUMS.read(drawn, width)
        noise = _SUMS.noise(spread, width) / _SUMS.row
        count = max(float(counts[0]), 1.0)
        # In units of the half span, where means lie in [-1, 1]: u is smaller by sqrt(width).
        mean = np.clip(shrunken_mean(sums[0] * ranges.norm, count, noise * ranges.norm), -1, 1)
        second = np.clip(squares[0] * ranges.norm**2 / count, 0, 1)
        variance = np.clip(second - mean**2, _LEAST, 1.0)
        self.mean_ = ranges.middle + mean * ranges.half
        self.var_ = variance * ranges.half**2
        self.scale_ = np.sqrt(self.var_)
        error = np.sqrt(variance / count + (noise * ranges.norm / count) ** 2)
        self.mean_standard_errors_ = error * ranges.half
        self.n_rows_ = count

    def transform(self, X: Any) -> Floats:
        made: Floats = (self._known(X) - self.mean_) / self.scale_
        return made

    def inverse_transform(self, X: Any) -> Floats:
        made: Floats = self._known(X) * self.scale_ + self.mean_
        return made
