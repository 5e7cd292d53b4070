"""What is learned is right: nearly exact at a huge budget, with stated errors at a small one."""

import numpy as np
import pytest
from sklearn import linear_model

import deniable as dp
from learning.models import DRAWN, MODELS, fitted, made_up

RICH = dp.GDP(1000)


def test_a_huge_budget_gives_least_squares():
    rows, target = made_up(20_000)
    exact = linear_model.LinearRegression().fit(rows, target["number"])
    model = fitted(MODELS["LinearRegression"], rows, target["number"], guarantee=RICH)
    assert model.coef_ == pytest.approx(exact.coef_, abs=1e-3)
    assert model.intercept_ == pytest.approx(exact.intercept_, abs=1e-3)
    through = fitted(
        MODELS["LinearRegression"], rows, target["number"], guarantee=RICH, fit_intercept=False
    )
    plain = linear_model.LinearRegression(fit_intercept=False).fit(rows, target["number"])
    assert through.coef_ == pytest.approx(plain.coef_, abs=1e-3)
    assert through.intercept_ == 0


def test_units_do_not_matter():
    rows, target = made_up(20_000)
    scale, shift = np.array([1e3, 1e-3, 7]), np.array([5e3, 0, -40])
    moved = rows * scale + shift
    model = dp.learning.LinearRegression(
        guarantee=RICH, bounds=(shift - scale, shift + scale), y_bounds=(9, 11)
    ).fit(moved, target["number"] + 10)
    exact = linear_model.LinearRegression().fit(moved, target["number"] + 10)
    assert model.predict(moved[:50]) == pytest.approx(exact.predict(moved[:50]), abs=1e-3)


def test_a_penalty_shrinks():
    rows, target = made_up(2000)
    plain = fitted(MODELS["LinearRegression"], rows, target["number"], guarantee=RICH)
    ridge = dp.learning.Ridge(guarantee=RICH, bounds=(-1, 1), y_bounds=(-1, 1), alpha=500.0)
    assert np.linalg.norm(ridge.fit(rows, target["number"]).coef_) < 0.7 * np.linalg.norm(
        plain.coef_
    )


def test_a_huge_budget_gives_means_and_variances():
    rows, _ = made_up(20_000)
    model = fitted(MODELS["StandardScaler"], rows, None, guarantee=RICH)
    assert model.mean_ == pytest.approx(rows.mean(0), abs=1e-3)
    assert model.var_ == pytest.approx(rows.var(0), abs=1e-3)
    assert model.inverse_transform(model.transform(rows[:5])) == pytest.approx(rows[:5])


def test_a_huge_budget_gives_the_components():
    rows, _ = made_up(20_000)
    rows = rows * [1, 0.3, 0.1] @ np.linalg.qr(np.arange(9).reshape(3, 3) + np.eye(3))[0] * 0.5
    model = fitted(MODELS["PCA"], rows, None, guarantee=RICH)
    values, vectors = np.linalg.eigh(np.cov(rows.T))
    assert abs(model.components_[0] @ vectors[:, -1]) == pytest.approx(1, abs=1e-3)
    assert model.explained_variance_ == pytest.approx(values[::-1][:2], abs=1e-3)


def test_clusters_are_found():
    rng = np.random.default_rng(3)
    centres = np.array([[0.6, 0.6, 0], [-0.6, 0.5, 0.1], [0, -0.6, -0.5]])
    rows = centres[rng.integers(0, 3, 6000)] + rng.normal(0, 0.05, (6000, 3))
    model = fitted(MODELS["KMeans"], rows, None)
    far = np.linalg.norm(model.cluster_centers_[:, None] - centres, axis=2)
    assert far.min(axis=0).max() < 0.1  # ε = 1, 2,000 rows each: noise is a hundredth
    assert set(model.predict(centres)) == {0, 1, 2}


def test_classes_are_told_apart():
    rows, target = made_up(4000)
    two = target["label"] != "b"
    for name, keep in (("GaussianNB", slice(None)), ("LogisticRegression of three", slice(None))):
        model = fitted(MODELS[name], rows[keep], target["label"][keep], guarantee=RICH)
        assert model.score(rows, target["label"]) > 0.7
    model = dp.learning.LogisticRegression(
        guarantee=dp.ApproxDP(1, 1e-6), bounds=(-1, 1), classes=["a", "c"]
    )
    assert model.fit(rows[two], target["label"][two]).score(rows[two], target["label"][two]) > 0.9
    assert model.predict_proba(rows).sum(axis=1) == pytest.approx(1)


@pytest.mark.parametrize("name", ["LinearRegression", "LogisticRegression", *DRAWN])
def test_standard_errors_cover_the_noise(name):
    """Eighty fits of one table: their spread is noise alone, which the errors include."""
    rows, target = made_up(1000)
    example = (MODELS | DRAWN)[name]
    told = {"size": 1000} if name == "SGDClassifier" else {}
    models = [fitted(example, rows, target[example.target], **told) for _ in range(80)]
    spread = np.std([np.ravel(m.coef_) for m in models], axis=0)
    stated = np.median([np.ravel(m.coef_standard_errors_) for m in models], axis=0)
    assert (stated > 0.6 * spread).all()
    assert (stated < 6 * spread).all()


def test_errors_follow_the_budget():
    rows, target = made_up(2000)
    example = MODELS["LinearRegression"]
    stated = [
        fitted(example, rows, target["number"], guarantee=dp.GDP(mu)).coef_standard_errors_.mean()
        for mu in (0.1, 1, 50)
    ]
    assert stated[0] > 2 * stated[1] > 2 * stated[2]


@pytest.mark.parametrize("name", MODELS | DRAWN)
def test_the_outlook_is_told_before_anything_is_spent(name):
    model = (MODELS | DRAWN)[name].make(guarantee=dp.ApproxDP(1, 1e-6))
    small, large = (model.outlook(size=n, features=3) for n in (20, 1_000_000))
    assert not small.supported
    assert "needs about" in str(small)
    assert large.supported
    assert "of the signal" in str(large)


@pytest.mark.parametrize(
    ("count", "epsilon"), [(200, 1.0), (500, 1.0), (2000, 0.1), (20_000, 10.0)]
)
def test_standard_errors_of_linear_regression_are_about_right(count, epsilon):
    """Intervals of two of them hold the truth 19 times in 20; half the time would be noticed."""
    rng = np.random.default_rng(5)
    truth = np.array([2.0, -1.0, 0.5])
    model = dp.learning.LinearRegression(
        guarantee=dp.ApproxDP(epsilon, 1e-6), bounds=(0, 10), y_bounds=(-12, 26)
    )
    apart, stated = [], []
    for _ in range(40):
        rows = rng.uniform(0, 10, (count, 3))
        model.fit(rows, rows @ truth + rng.normal(0, 1, count))
        apart.append(model.coef_ - truth)
        stated.append(model.coef_standard_errors_)
    assert np.min(stated) > 0
    assert np.mean(np.abs(apart) < 1.96 * np.array(stated)) > 0.5
    assert np.median(stated) < 3 * np.sqrt(np.mean(np.square(apart)))


def test_clipping_leaves_no_bias_where_noise_is_faint():
    """Six deviations of the error; rows clipped at their usual length would be off by eleven."""
    rng = np.random.default_rng(3)
    rows, truth = rng.uniform(-1, 1, (100_000, 3)), np.array([1.0, -2.0, 0.5])
    label = (rng.random(len(rows)) < 1 / (1 + np.exp(-rows @ truth))).astype(int)
    model = dp.learning.LogisticRegression(
        guarantee=dp.ApproxDP(10.0, 1e-6), bounds=(-1, 1), classes=[0, 1]
    )
    model.fit(rows, label)
    assert model.coef_[0] == pytest.approx(truth, abs=0.1)
    assert np.max(model.coef_standard_errors_) < 0.03
