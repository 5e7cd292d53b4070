"""Gaussian naive Bayes from noisy counts, sums and squares of each class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from deniable.learning.classifier import Classifier
from deniable.learning.equations import shrunken_mean
from deniable.learning.noise import ALL, Share
from deniable.learning.rows import Floats, Ranges
from deniable.learning.scikit import NoisySums, SumsEstimator, read_classes
from deniable.learning.sums import GroupSums, Sums

_LEAST = 1e-3  # of a variance, in units of the half span


@dataclass(kw_only=True, eq=False, repr=False)
class GaussianNB(Classifier, SumsEstimator):
    """Naive Bayes with a normal law for each class and column.

    Formal guarantee: that of every `PrivateEstimator`, by one release of every class's count, sums
    and sums of squares, whose joint L2 sensitivity is that of `sums.GroupSums`; empty classes have
    noise.

    Args, beside those of every `PrivateEstimator`:
        classes: all labels; nothing is read from the data.

    Attributes:
        classes_, class_prior_, theta_, var_: as in scikit-learn, noisy.
        theta_standard_errors_: deviations of `theta_` from noise and sampling.
    """

    def _sums(self) -> GroupSums:
        groups = len(read_classes(self.classes))
        return GroupSums(groups=groups, one=0.2**0.5, row=0.6**0.5, square=0.2**0.5)

    def _parts(self) -> Sequence[tuple[Sums, Share]]:
        return [(self._sums(), ALL)]

    def _learn(self, reader: NoisySums, ranges: Ranges) -> None:
        width, sums = ranges.width, self._sums()
        drawn, spread = self._heard(reader, sums, ALL, width)
        counts, first, second = sums.read(drawn, width)
        noise = sums.noise(spread, width) * ranges.norm
        count = np.maximum(counts, 1.0)
        about = shrunken_mean(first.sum(0) * ranges.norm, count.sum(), noise / sums.row)
        squares = np.clip(second * ranges.norm**2 / count[:, None], 0, 1)
        pooled = np.clip(second.sum(0) * ranges.norm**2 / count.sum() - about**2, _LEAST, 1)
        theta, variance = [], []
        for each, many, square in zip(first, count, squares, strict=True):
            # Classes that noise drowns are drawn to the mean of all, and their variances too.
            kept = many**2 / (many**2 + (noise / sums.row) ** 2 / pooled)
            mean = np.clip(about + kept * (each * ranges.norm / many - about), -1, 1)
            sure = many**2 / (many**2 + (noise / sums.square) ** 2 / np.square(pooled))
            own = np.clip(square - mean**2, _LEAST, 1)
            theta.append(mean)
            variance.append(sure * own + (1 - sure) * pooled)
        error = np.sqrt(
            np.array(variance) / count[:, None] + (noise / sums.row / count[:, None]) ** 2
        )
        self._recall()
        self.class_prior_ = count / count.sum()
        self.theta_ = ranges.middle + np.array(theta) * ranges.half
        self.var_ = np.array(variance) * ranges.half**2
        self.theta_standard_errors_ = error * ranges.half

    def _scores(self, X: Any) -> Floats:
        values = self._known(X)
        joint = np.log(self.class_prior_) - 0.5 * np.log(2 * np.pi * self.var_).sum(axis=1)
        away = np.square(values[:, None, :] - self.theta_) / self.var_
        made: Floats = joint - 0.5 * away.sum(axis=2)
        return made
