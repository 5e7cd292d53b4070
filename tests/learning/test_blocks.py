"""Subsample and aggregate for any estimator."""

import math
import time

import numpy as np
import pytest
from scipy import stats
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import HuberRegressor, Lasso, LogisticRegression

import deniable as dp
from deniable.learning.blocks import BlockAnswers, BlockSum, SubsampledEstimator
from deniable.learning.rows import GRID
from deniable.privacy.units import Relation
from learning.models import made_up
from replayed import each_replayed

SHAPES = {"coef_": (3,), "intercept_": ()}
BUDGETS = [dp.PureDP(1), dp.ApproxDP(1.0, 1e-6), dp.ZCDP(0.1), dp.GDP(0.5)]


def subsampled(estimator, **options):
    given = {
        "learned": SHAPES,
        "guarantee": dp.ApproxDP(5.0, 1e-6),
        "bounds": (-2, 2),
        "blocks": 10,
    }
    return SubsampledEstimator(estimator, **{**given, **options})


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_the_price_is_the_budget(budget, relation):
    model = subsampled(Lasso(), guarantee=budget, relation=relation)
    cost = model.loss
    assert cost.relation == relation
    assert cost.satisfies(budget)
    assert cost == model._mechanism().loss
    assert clone(model).loss == cost


def test_one_block_moves_the_sum_by_what_is_charged():
    corner = np.full(5, GRID, dtype=object)
    answers = BlockAnswers(5)
    assert (
        (corner**2).sum() <= answers.moved(Relation.REPLACE) ** 2 < (corner**2).sum() * (1 + 1e-6)
    )
    assert corner.sum() == answers.moved_l1("add_remove", 1)


@pytest.mark.parametrize("estimator", [Lasso(alpha=1e-3), HuberRegressor()], ids=str)
def test_any_estimator_learns(estimator):
    rows, target = made_up(2000)
    exact = clone(estimator).fit(rows, target["number"])
    model = subsampled(estimator, guarantee=dp.GDP(100)).fit(rows, target["number"])
    assert model.estimator_.coef_ == pytest.approx(exact.coef_, abs=0.05)
    assert model.predict(rows[:4]) == pytest.approx(exact.predict(rows[:4]), abs=0.1)
    assert not hasattr(clone(model), "estimator_")


@pytest.mark.parametrize("classes", [["a", "c"], ["c", "a"]], ids=str)
def test_classes_are_declared_in_any_order(classes):
    rows, target = made_up(2000)
    two = target["label"] != "b"
    model = subsampled(
        LogisticRegression(),
        learned={"coef_": (1, 3), "intercept_": (1,)},
        classes=classes,
        bounds=(-10, 10),
        guarantee=dp.GDP(20),
    ).fit(rows[two], target["label"][two])
    assert (model.predict(rows[two]) == target["label"][two]).mean() > 0.9


class Faulty(BaseEstimator):
    def __init__(self, fault="raise"):
        self.fault = fault

    def fit(self, rows):
        print("said aloud", rows)
        if self.fault == "raise":
            raise ValueError(f"private: {rows}")
        if self.fault == "sleep":
            time.sleep(30)
        if self.fault == "exit":
            raise SystemExit(3)
        self.coef_ = np.full(2 if self.fault == "shape" else 3, math.nan)
        self.intercept_ = 0.0
        return self


@pytest.mark.parametrize("fault", ["raise", "sleep", "exit", "shape", "NaN"])
def test_whatever_an_estimator_does_shows_in_nothing(fault, capfd):
    rows, _ = made_up(20)
    model = subsampled(Faulty(fault), blocks=2, timeout=0.2, guarantee=dp.GDP(1000)).fit(rows)
    assert model.estimator_.coef_ == pytest.approx(np.zeros(3), abs=0.1)
    told = capfd.readouterr()
    assert not told.out
    assert not told.err


@pytest.mark.parametrize("rows", [np.empty((0, 3)), [[math.nan, 0, 0]] * 4, [["much", None, 0]]])
def test_private_faults_count_as_nothing(rows):
    model = subsampled(Lasso(), blocks=3).fit(rows, [1.0] * len(rows))
    assert model.estimator_.coef_.shape == (3,)


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_replay_finds_nothing_on_nasty_neighbours(relation):
    def pipeline(table):
        rows = [[row["x0"], row["x1"], row["x2"]] for row in table] or np.empty((0, 3))
        model = subsampled(Lasso(), blocks=2, relation=relation)
        model.fit(rows, [row["x0"] for row in table])
        return model.estimator_.coef_, model.estimator_.intercept_

    ends = {"x0": (-1, 1), "x1": (-1, 1), "x2": (-1, 1)}
    pairs = list(dp.auditing.nasty_neighbours(bounds=ends, relation=relation))[::12]
    for pair, found in each_replayed(pipeline, pairs):
        assert found.ok, f"{pair.name}\n{found}"
        assert found.releases == 1


def test_each_record_goes_to_one_block_and_any():
    """By a function that counts: the counts of 40 records in 4 blocks are multinomial."""
    mechanism = BlockSum(dp.DiscreteGaussian(sigma=1000, sensitivity=GRID), 4, 2, 10.0, _count)
    found = np.array([mechanism.release(list(range(40))) for _ in range(10)]) / GRID
    assert (np.rint(found[:, 0] * 100) == 40).all(), "no record is lost, none is doubled"
    apart = (np.rint(found[:, 1] * 10_000) / 10 - 40).sum()  # Pearson's χ²
    assert 1e-9 < stats.chi2(30).cdf(apart) < 1 - 1e-9
    even = 10 * (4 * 10**2 / 10 - 40)
    assert stats.chi2(30).cdf(even) < 1e-9, "blocks of equal size would be noticed"


def _count(block):
    return [len(block) / 100, len(block) ** 2 / 10_000]


@pytest.mark.parametrize(
    "wrong",
    [
        {"learned": None},
        {"learned": {}},
        {"learned": {"coef_": (0,)}},
        {"bounds": None},
        {"bounds": ([0, 0], [1, 1])},
        {"guarantee": 1.0},
        {"blocks": 0},
        {"timeout": -1},
        {"relation": "swap"},
        {"estimator": "Lasso"},
        {"estimator": Lasso},
        {"estimator": LogisticRegression()},
        {"learned": {"coef_": 3}},
        {"classes": [1, "a"]},
    ],
    ids=str,
)
def test_what_must_be_declared_is_asked_for(wrong):
    given = {"estimator": Lasso(), **wrong}
    with pytest.raises(dp.ParameterError):
        subsampled(given.pop("estimator"), **given).cost()
