"""scikit-learn's own checks, but for those that privacy forbids."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

import deniable as dp
from learning.models import BUDGET, DRAWN, MODELS, fitted, made_up

EVERY = MODELS | DRAWN

NOISE = "two fits draw different noise, and two hundred rows at ε = 1 teach little"
PRIVATE = "a fault in private values counts as nothing instead of raising: an error would tell"
NONE = "no rows at all is a neighbour of one row, and must behave alike"
DECLARED = "classes are declared, never read from the data"
NAMED = "sets a parameter of scikit-learn's own scaler, which it knows by name"

FORBIDDEN = {
    "check_fit_idempotent": NOISE,
    "check_pipeline_consistency": NOISE,
    "check_regressors_int": NOISE,
    "check_regressors_train": NOISE,
    "check_classifiers_train": NOISE,
    "check_classifiers_one_label": NOISE,
    "check_regressor_data_not_an_array": NOISE,
    "check_classifier_data_not_an_array": NOISE,
    "check_transformer_data_not_an_array": NOISE,
    "check_transformer_general": NOISE,
    "check_supervised_y_2d": NOISE,
    "check_methods_sample_order_invariance": NOISE,
    "check_estimators_nan_inf": PRIVATE,
    "check_dtype_object": PRIVATE,
    "check_supervised_y_no_nan": PRIVATE,
    "check_classifiers_regression_target": PRIVATE,
    "check_estimators_empty_data_messages": NONE,
    "check_classifiers_classes": DECLARED,
    "check_decision_proba_consistency": DECLARED,
    "check_estimator_sparse_array": NAMED,
    "check_estimator_sparse_matrix": NAMED,
}


def checked(name: str):
    """The labels of scikit-learn's checks are 0, 1 and 2."""
    many = name in ("GaussianNB", "LogisticRegression of three")
    classes = {"classes": [0, 1, 2] if many else [0, 1]}
    example = EVERY[name]
    return example.make(guarantee=BUDGET, **(classes if example.target == "label" else {}))


def wanted(name: str) -> dict[str, str]:
    if name != "StandardScaler":
        return {check: why for check, why in FORBIDDEN.items() if why is not NAMED}
    return FORBIDDEN


@pytest.mark.parametrize("name", EVERY)
def test_scikit_learn_finds_nothing_that_privacy_does_not_forbid(name):
    model = checked(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = check_estimator(model, on_fail=None, expected_failed_checks=wanted(name))
    failed = [each["check_name"] for each in found if each["status"] == "failed"]
    assert not failed
    assert len(found) > 40


def test_a_check_is_excused_only_if_it_fails_somewhere():
    """A reason that no estimator needs would hide a fault later. Noise fails by chance."""
    failed = set()
    for name in MODELS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = check_estimator(checked(name), on_fail=None)
        failed |= {each["check_name"] for each in found if each["status"] == "failed"}
    certain = {check for check, why in FORBIDDEN.items() if why in (PRIVATE, NONE, NAMED)}
    assert certain <= failed


@pytest.mark.parametrize("name", EVERY)
def test_a_clone_has_no_noise_and_no_result(name):
    rows, target = made_up(200)
    example = EVERY[name]
    model = fitted(example, rows, target[example.target])
    copied = clone(model)
    assert not [each for each in vars(copied) if each.endswith("_") or each.startswith("_")]
    assert copied.loss == model.loss
    again = copied.fit(rows, target[example.target])
    first = example.learned[0]
    assert (getattr(again, first) != getattr(model, first)).any()


@pytest.mark.parametrize("name", MODELS)
def test_rows_of_one_unit_are_paid_for_by_a_clone_too(name):
    """The noise grows with them; the price is the budget all the same."""
    once, thrice = (MODELS[name].make(guarantee=dp.GDP(1), rows_per_unit=n) for n in (1, 3))
    assert clone(thrice).rows_per_unit == 3
    (sums, share), *_ = thrice._parts()
    noise = clone(thrice)._noise(sums, share, 2).sigma / once._noise(sums, share, 2).sigma
    assert float(noise) == pytest.approx(3, rel=1e-6)
    with pytest.raises(dp.ParameterError, match="rows_per_unit"):
        MODELS[name].make(guarantee=BUDGET, rows_per_unit=0).cost()


def test_bounds_may_be_an_array():
    rows, _ = made_up(20)
    ends = np.array([[-1, -1, -1], [1, 1, 1]])
    assert fitted(MODELS["PCA"], rows, None, bounds=ends).components_.shape == (2, 3)


def test_classes_keep_their_types():
    rows, target = made_up(50)
    for classes in (["a", "b"], [0, 1], [False, True], np.array([2.0, 3.0])):
        model = fitted(MODELS["LogisticRegression"], rows, [classes[0]] * 50, classes=classes)
        assert model.classes_.tolist() == list(classes)
    for wrong in ([0, "one"], {0, 1}, "ab"):
        with pytest.raises(dp.errors.ParameterTypeError, match="classes"):
            fitted(MODELS["LogisticRegression"], rows, target["label"], classes=wrong)


def test_nothing_of_the_rows_is_kept():
    rows, target = made_up(137)
    for example in EVERY.values():
        model = fitted(example, rows, target[example.target])
        for name, value in vars(model).items():
            assert 137 not in getattr(value, "shape", ()), name
        assert not hasattr(model, "labels_")
        assert not hasattr(model, "inertia_")


def test_learning_needs_its_extra(monkeypatch):
    import importlib
    import importlib.util

    import deniable.learning

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(dp.errors.MissingExtraError, match="learn"):
        importlib.reload(deniable.learning)
