"""Data sets and splits that both sides of `benchmarks/learning.py` learn from.

Columns are mapped to [-1, 1] by their public ranges, and rows shortened to half of the longest
length, for every library alike.
"""

import csv
import gzip
import signal
import time
from pathlib import Path

import numpy as np
from sklearn import datasets
from sklearn.model_selection import train_test_split

EPSILONS = (0.1, 1.0, 10.0)
LONGEST_FIT = 60  # seconds


def adult(folder):
    """Numbers and a few yes-or-no columns of the adult table."""
    with gzip.open(Path(folder) / "adult_raw.csv.gz", "rt") as file:
        rows = list(csv.DictReader(file))
    numbers = ("age", "education_num", "capital_gain", "capital_loss", "hours_per_week")
    said = [
        ("marital_status", "Married-civ-spouse"),
        ("sex", "Male"),
        ("occupation", "Exec-managerial"),
        ("occupation", "Prof-specialty"),
        ("workclass", "Private"),
        ("race", "White"),
    ]
    table = [
        [float(row[name]) for name in numbers] + [float(row[c].strip() == v) for c, v in said]
        for row in rows
    ]
    return np.array(table), np.array([row["income"].strip().startswith(">") for row in rows]) + 0


def regression():
    rng = np.random.default_rng(20)
    rows = rng.normal(size=(50_000, 20)).clip(-4, 4)
    weights = rng.normal(size=20)
    return rows, rows @ weights + rng.normal(size=50_000) * 0.2 * np.linalg.norm(weights)


def bounded(rows):
    low, high = rows.min(axis=0), rows.max(axis=0)
    high = np.where(high > low, high, low + 1)
    units = (rows - (low + high) / 2) / ((high - low) / 2)
    norm = 0.5 * np.sqrt(rows.shape[1])
    return units * np.minimum(1, norm / np.maximum(np.linalg.norm(units, axis=1), 1e-12))[:, None]


def load(name, folder):
    made = {
        "breast_cancer": lambda: datasets.load_breast_cancer(return_X_y=True),
        "digits": lambda: datasets.load_digits(return_X_y=True),
        "wine": lambda: datasets.load_wine(return_X_y=True),
        "iris": lambda: datasets.load_iris(return_X_y=True),
        "diabetes": lambda: datasets.load_diabetes(return_X_y=True),
        "blobs": lambda: datasets.make_blobs(5000, 4, centers=5, random_state=1),
        "regression 50,000 x 20": regression,
        "adult": lambda: adult(folder),
    }[name]()
    return bounded(np.asarray(made[0], float)), made[1]


def tasks(folder):
    listed = [
        *(("logistic", name) for name in ("breast_cancer", "digits", "wine")),
        *(("linear", name) for name in ("diabetes", "regression 50,000 x 20")),
        *(("bayes", name) for name in ("breast_cancer", "digits", "wine")),
        *(("kmeans", name) for name in ("iris", "blobs")),
        *(("pca", name) for name in ("breast_cancer", "digits", "wine")),
    ]
    return [*listed, ("logistic", "adult")] if folder else listed


class TooLongError(Exception):
    pass


def _late(*_):
    raise TooLongError


def score(kind, model, rows, target):
    """The larger the better; R² no lower than -1."""
    if kind == "linear":
        return max(float(model.score(rows, target)), -1.0)
    if kind == "kmeans":
        far = np.square(rows[:, None] - model.cluster_centers_).sum(axis=2)
        return -float(far.min(axis=1).mean())
    if kind == "pca":
        centred = rows - rows.mean(axis=0)
        along = np.square(centred @ model.components_.T).sum()
        return float(along / np.square(centred).sum())
    return float(model.score(rows, target))


def measured(kind, name, seeds, folder, make):
    """Scores by split, and CPU seconds of the slowest fit; a fit that never ends scores nothing."""
    rows, target = load(name, folder)
    scores, seconds = [], 0.0
    signal.signal(signal.SIGALRM, _late)
    for seed in range(seeds):
        train, test, known, hidden = train_test_split(
            rows, target, test_size=0.25, random_state=seed
        )
        model, start = make(train.shape[1], known), time.process_time()
        signal.alarm(LONGEST_FIT)
        try:
            model.fit(train, known) if kind not in ("kmeans", "pca") else model.fit(train)
        except TooLongError:
            return [], float(LONGEST_FIT)
        finally:
            signal.alarm(0)
        seconds = max(seconds, time.process_time() - start)
        scores.append(score(kind, model, test, hidden))
    return scores, seconds
