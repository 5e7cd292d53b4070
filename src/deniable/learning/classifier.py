"""Classifiers: classes that are declared, and predictions by their scores."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin

from deniable.learning.rows import Floats, Ranges, Rows, read_labels
from deniable.learning.scikit import PrivateEstimator, read_classes


@dataclass(kw_only=True, eq=False, repr=False)
class Classifier(ClassifierMixin, PrivateEstimator):  # type: ignore[misc]
    """What classifiers share: declared classes, and predictions by scores."""

    classes: Any

    @abstractmethod
    def _scores(self, X: Any) -> Floats:
        """Of each class, its log probability but for what all classes have alike."""

    def _rows(self, values: Floats, y: Any, ranges: Ranges) -> Rows:
        """Those of no declared class count as nothing."""
        units, present = ranges.units(values)
        label = read_labels(y, len(values), read_classes(self.classes))
        return Rows(units, None, label, present & (label >= 0))

    def predict_log_proba(self, X: Any) -> Floats:
        scores = self._scores(X)
        top = scores.max(axis=1, keepdims=True)
        made: Floats = scores - top - np.log(np.exp(scores - top).sum(axis=1, keepdims=True))
        return made

    def predict_proba(self, X: Any) -> Floats:
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: Any) -> Any:
        """The likeliest class."""
        scores = self._scores(X)  # refused first, where nothing was learned
        return self.classes_[np.argmax(scores, axis=1)]

    def _recall(self) -> None:
        """Set what is public of a model whose weights are known."""
        self.classes_ = np.asarray(read_classes(self.classes))


class LinearClassifier(Classifier):
    """What linear classifiers share: one direction for two classes, or one for each."""

    def _directions(self) -> int:
        classes = len(read_classes(self.classes))
        return 1 if classes == 2 else classes

    def _keep(self, weights: Floats, ranges: Ranges) -> None:
        self.coef_ = weights[:, :-1] / ranges.scale
        self.intercept_ = weights[:, -1] - self.coef_ @ ranges.middle
        self._recall()

    def decision_function(self, X: Any) -> Floats:
        """Scores: of the second class for two, of each class otherwise."""
        scores: Floats = self._known(X) @ self.coef_.T + self.intercept_
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def _scores(self, X: Any) -> Floats:
        scores = self.decision_function(X)
        return np.column_stack([np.zeros(len(scores)), scores]) if scores.ndim == 1 else scores
