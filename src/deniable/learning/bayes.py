"""Gaussian naive Bayes from noisy counts, sums and squares of each class."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin

from deniable.learning.equations import shrunken_mean
from deniable.learning.noise import Share, deviation
from deniable.learning.rows import Floats, Ranges, Rows
from deniable.learning.scikit import (
    Reader,
    SumsEstimator,
    labelled,
    read_classes,
)
from deniable.learning.sums import GroupSums, Sums

_ALL = Share(Fraction(1))
_LEAST = 1e-3  # of a variance, in units of the half span


class GaussianNB(ClassifierMixin, SumsEstimator):  # type: ignore[misc]
    """Naive Bayes with a normal law for each class and column.

    Formal guarantee. For any two tables that differ in one row under `relation`:

    * a fit keeps its guarantee and costs `loss`: one release of every class's count, sums and sums
      of squares, whose joint L2 sensitivity is that of `sums.GroupSums`; empty classes have noise;
    * values beyond `bounds` are clamped; a row with anything that is no finite number, or with a
      label that is not in `classes`, counts as nothing.

    Args:
        epsilon: what a fit may cost, as for a question; or `rho`, or `guarantee`.
        rho: the same in ρ.
        guarantee: the same as a guarantee, `dp.ApproxDP(1.0, 1e-6)` for instance.
        bounds: (low, high) of the columns.
        classes: all labels; nothing is read from the data.
        relation: "add_remove" or "replace".
        rows_per_unit: how many rows of one unit there may be; `dp.fit` sets it from the table.

    Attributes:
        classes_, class_prior_, theta_, var_: as in scikit-learn, noisy.
        theta_standard_errors_: deviations of `theta_` from noise and sampling.
    """

    def __init__(
        self,
        *,
        epsilon: Any = None,
        rho: Any = None,
        guarantee: Any = None,
        bounds: Any,
        classes: Any,
        relation: Any = "add_remove",
        rows_per_unit: Any = 1,
    ) -> None:
        self.epsilon = epsilon
        self.rho = rho
        self.guarantee = guarantee
        self.bounds = bounds
        self.classes = classes
        self.relation = relation
        self.rows_per_unit = rows_per_unit

    def _sums(self) -> GroupSums:
        groups = len(read_classes(self.classes))
        return GroupSums(groups=groups, one=0.2**0.5, row=0.6**0.5, square=0.2**0.5)

    def _parts(self) -> Sequence[tuple[Sums, Share]]:
        return [(self._sums(), _ALL)]

    def _rows(self, values: Floats, y: Any, ranges: Ranges) -> Rows:
        return labelled(values, y, ranges, read_classes(self.classes))

    def _learn(self, reader: Reader, ranges: Ranges) -> None:
        width, sums = ranges.width, self._sums()
        mechanism = self._noise(sums, _ALL, width)
        counts, first, second = sums.read(reader.draw(mechanism, sums), width)
        noise = sums.noise(deviation(mechanism), width) * ranges.norm
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
        self.classes_ = np.asarray(read_classes(self.classes))
        self.class_prior_ = count / count.sum()
        self.theta_ = ranges.middle + np.array(theta) * ranges.half
        self.var_ = np.array(variance) * ranges.half**2
        self.theta_standard_errors_ = error * ranges.half

    def predict_log_proba(self, X: Any) -> Floats:
        """Log probabilities of the classes."""
        values = self._known(X)
        joint = np.log(self.class_prior_) - 0.5 * np.log(2 * np.pi * self.var_).sum(axis=1)
        away = np.square(values[:, None, :] - self.theta_) / self.var_
        scores = joint - 0.5 * away.sum(axis=2)
        top = scores.max(axis=1, keepdims=True)
        made: Floats = scores - top - np.log(np.exp(scores - top).sum(axis=1, keepdims=True))
        return made

    def predict_proba(self, X: Any) -> Floats:
        """Probabilities of the classes."""
        made: Floats = np.exp(self.predict_log_proba(X))
        return made

    def predict(self, X: Any) -> Any:
        """The likeliest class."""
        scores = self.predict_log_proba(X)
        return self.classes_[np.argmax(scores, axis=1)]
