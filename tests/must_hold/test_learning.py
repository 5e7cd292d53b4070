"""Labels of one class only, as on any neighbour."""

from functools import partial

import numpy as np
import pytest

import deniable as dp

CLASSES = ["ill", "well"]
ESTIMATORS = {
    "logistic": dp.learning.LogisticRegression,
    "naive Bayes": dp.learning.GaussianNB,
    "perturbed": partial(dp.learning.PerturbedLogisticRegression, penalty=1.0),
}


def learned(make, labels):
    rows = np.linspace(-1, 1, 2 * len(labels)).reshape(-1, 2)
    return make(guarantee=dp.ApproxDP(1, 1e-6), bounds=(-1, 1), classes=CLASSES).fit(rows, labels)


def shown(model):
    """Names, shapes and types of all that a fit leaves."""
    left = {name: value for name, value in vars(model).items() if name.endswith("_")}
    return {name: (np.shape(value), np.asarray(value).dtype) for name, value in left.items()}


@pytest.mark.parametrize("make", ESTIMATORS.values(), ids=ESTIMATORS)
def test_case_30_labels_of_one_class_look_like_any_other(make):
    one, other = (learned(make, ["ill"] * 39 + [last]) for last in CLASSES)
    assert shown(one) == shown(other)
    assert list(one.classes_) == list(other.classes_) == CLASSES
    assert one.loss == other.loss
    assert set(one.predict(np.zeros((5, 2)))) <= set(CLASSES)
