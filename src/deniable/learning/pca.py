"""Principal components of a noisy covariance matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import TransformerMixin

from deniable.errors import ParameterError
from deniable.learning.equations import shrunken_mean
from deniable.learning.noise import ALL, Share
from deniable.learning.rows import Floats, Ranges
from deniable.learning.scikit import NoisySums, SumsEstimator
from deniable.learning.sums import Moments, Sums
from deniable.privacy.exact import whole

_MOMENTS = Moments(row=0.9**0.5, one=0.1**0.5)


@dataclass(kw_only=True, eq=False, repr=False)
class PCA(TransformerMixin, SumsEstimator):  # type: ignore[misc]
    """Principal components of rows about their noisy mean.

    Formal guarantee: that of every `PrivateEstimator`, by one release of all second moments (Dwork,
    Talwar, Thakurta & Zhang 2014, Alg. 1, with discrete noise), whose L2 sensitivity is that of
    `sums.Moments`.

    `transform` of private rows gives private rows: it releases nothing by itself, and protects
    nobody.

    Args, beside those of every `PrivateEstimator`:
        n_components: how many.

    Attributes:
        components_, mean_, explained_variance_, explained_variance_ratio_: noisy.
    """

    n_components: Any = field(kw_only=False)
    norm: Any = None

    def _parts(self) -> Sequence[tuple[Sums, Share]]:
        whole(self.n_components, "n_components")
        return [(_MOMENTS, ALL)]

    def _ranges(self, width: int) -> Ranges:
        if self.n_components > width:
            raise ParameterError("n_components", self.n_components, f"there are {width} columns")
        return super()._ranges(width)

    def _learn(self, reader: NoisySums, ranges: Ranges) -> None:
        width = ranges.width
        drawn, spread = self._heard(reader, _MOMENTS, ALL, width)
        matrix, noise = _MOMENTS.matrix(drawn, width), _MOMENTS.noise(spread, width)
        mean, covariance = covariance_of(matrix, noise / (_MOMENTS.row * _MOMENTS.one))
        self.mean_ = ranges.middle + mean * ranges.scale
        values, vectors = np.linalg.eigh(covariance * np.outer(ranges.scale, ranges.scale))
        components = vectors[:, ::-1].T[: self.n_components]
        largest = np.argmax(np.abs(components), axis=1)
        signs = np.sign(components[np.arange(len(components)), largest])
        self.components_ = components * signs[:, None]
        spread = np.maximum(values[::-1], 0)
        self.explained_variance_ = spread[: self.n_components]
        self.explained_variance_ratio_ = self.explained_variance_ / max(spread.sum(), 1e-300)
        self.n_components_ = self.n_components

    def transform(self, X: Any) -> Floats:
        made: Floats = (self._known(X) - self.mean_) @ self.components_.T
        return made

    def inverse_transform(self, X: Any) -> Floats:
        made: Floats = np.asarray(X, np.float64) @ self.components_ + self.mean_
        return made


def covariance_of(matrix: Floats, noise: float) -> tuple[Floats, Floats]:
    """Mean and covariance of u from the released moments of (u, 1)."""
    width = len(matrix) - 1
    count = max(matrix[width, width], 1.0)
    mean = shrunken_mean(matrix[:width, width], count, noise, 1 / np.sqrt(width))
    mean /= max(float(np.linalg.norm(mean)), 1.0)
    return mean, matrix[:width, :width] / count - np.outer(mean, mean)
