"""Every estimator, with what it must be told, and rows for it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import deniable as dp

BUDGET = dp.ApproxDP(1.0, 1e-6)
COMMON: dict[str, Any] = {"bounds": (-1, 1)}


@dataclass(frozen=True)
class Example:
    make: Callable[..., Any]
    target: str  # "number", "label" or ""
    learned: tuple[str, ...]


MODELS = {
    "LinearRegression": Example(
        lambda **k: dp.learning.LinearRegression(y_bounds=(-1, 1), **{**COMMON, **k}),
        "number",
        ("coef_", "intercept_", "coef_standard_errors_"),
    ),
    "Ridge": Example(
        lambda **k: dp.learning.Ridge(y_bounds=(-1, 1), alpha=2.0, **{**COMMON, **k}),
        "number",
        ("coef_", "intercept_", "coef_standard_errors_"),
    ),
    "StandardScaler": Example(
        lambda **k: dp.learning.StandardScaler(**{**COMMON, **k}), "", ("mean_", "var_", "scale_")
    ),
    "GaussianNB": Example(
        lambda **k: dp.learning.GaussianNB(**{**COMMON, "classes": ["a", "b", "c"], **k}),
        "label",
        ("theta_", "var_", "class_prior_"),
    ),
    "PCA": Example(
        lambda **k: dp.learning.PCA(2, **{**COMMON, **k}),
        "",
        ("components_", "explained_variance_"),
    ),
    "KMeans": Example(
        lambda **k: dp.learning.KMeans(3, **{**COMMON, **k}),
        "",
        ("cluster_centers_", "cluster_sizes_"),
    ),
    "LogisticRegression": Example(
        lambda **k: dp.learning.LogisticRegression(**{**COMMON, "classes": ["a", "b"], **k}),
        "label",
        ("coef_", "intercept_", "coef_standard_errors_"),
    ),
    "LogisticRegression of three": Example(
        lambda **k: dp.learning.LogisticRegression(**{**COMMON, "classes": ["a", "b", "c"], **k}),
        "label",
        ("coef_", "intercept_"),
    ),
}

DRAWN = {
    "SGDClassifier": Example(
        lambda **k: dp.learning.SGDClassifier(
            **{**COMMON, "classes": ["a", "b"], "size": 200, "rate": 0.1, "max_iter": 20, **k}
        ),
        "label",
        ("coef_", "intercept_", "coef_standard_errors_"),
    ),
    "PerturbedLogisticRegression": Example(
        lambda **k: dp.learning.PerturbedLogisticRegression(
            penalty=3.0, **{**COMMON, "classes": ["a", "b"], **k}
        ),
        "label",
        ("coef_", "intercept_", "coef_standard_errors_"),
    ),
}
"""Those that need rows, not sums."""


def fitted(example: Example, features: Any, target: Any, **options: Any) -> Any:
    model = example.make(**{"guarantee": BUDGET, **options})
    return model.fit(features, target) if example.target else model.fit(features)


def made_up(count: int, columns: int = 3, seed: int = 1) -> tuple[np.ndarray, dict[str, Any]]:
    """Rows in [-1, 1], and a target of either kind."""
    rng = np.random.default_rng(seed)
    rows = rng.uniform(-1, 1, (count, columns))
    score = rows @ np.linspace(1, -0.5, columns)
    numbers = np.clip(score / 2 + rng.normal(0, 0.1, count), -1, 1)
    labels = np.array(["a", "b", "c"])[np.digitize(score, [-0.3, 0.3])]
    return rows, {"number": numbers, "label": labels, "": None}
