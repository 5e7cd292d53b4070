"""Stochastic gradients and perturbed minima: prices, bounds, neighbours."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone

import deniable as dp
from chance import follows_continuous, plausible_share
from deniable.learning import solver
from deniable.learning.minimum import PrivateMinimum, Way
from deniable.learning.perturbed import PerturbedLogisticRegression
from deniable.learning.reals import normals, spherical_laplace, uniforms
from deniable.learning.rows import GRID, Ranges, Rows
from deniable.learning.sgd import SGDClassifier, sampled_sum
from deniable.learning.solver import GRADIENT, derivatives, in_decimals, minimum, slope_bound
from deniable.mechanisms.sampled_sum import SampledSum
from deniable.privacy.units import Relation
from learning.models import made_up
from replayed import each_replayed

BUDGET = dp.ApproxDP(1.0, 1e-6)


def sgd(**options):
    given = {"guarantee": BUDGET, "bounds": (-1, 1), "classes": ["a", "b"], "size": 1000}
    return SGDClassifier(**{**given, "rate": 0.1, "max_iter": 20, **options})


def perturbed(**options):
    given = {"guarantee": BUDGET, "bounds": (-1, 1), "classes": ["a", "b"], "penalty": 3.0}
    return PerturbedLogisticRegression(**{**given, **options})


@pytest.mark.parametrize(
    ("rate", "times", "epsilon", "sigma"),
    [("0.01", 1000, 1, 1.564), ("0.1", 100, 1, 4.453), ("0.1", 100, 0.1, 36.87)],
)
def test_known_deviations(rate, times, epsilon, sigma):
    """Measured before by another program, whose bound is not as tight for the last."""
    budget, q = dp.ApproxDP(epsilon, 1e-6), Fraction(rate)
    found = float(sampled_sum(budget, q, times, Relation.ADD_REMOVE).sigma) / GRID
    assert found <= sigma * 1.001
    assert found >= sigma * 0.98


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_a_sampled_fit_costs_its_budget(relation):
    cost = sgd(relation=relation).loss
    assert cost.relation == relation
    assert cost.satisfies(BUDGET)
    assert not cost.satisfies(dp.ApproxDP(0.99, 1e-6))
    assert sgd(relation="replace")._mechanism().sigma > sgd()._mechanism().sigma


@pytest.mark.parametrize("budget", [dp.PureDP(1), dp.ZCDP(0.1), 3])
def test_samples_are_priced_under_approximate_budgets_only(budget):
    with pytest.raises(dp.ParameterError):
        sgd(guarantee=budget).cost()


class Given:
    def __init__(self, rows):
        self._rows = np.asarray(rows, np.int64).reshape(-1, 2)
        self.count, self.width = len(self._rows), 2

    def rows(self, at):
        return self._rows[at]


def test_a_sample_takes_each_row_with_its_rate():
    mechanism = SampledSum(rate=0.3, bound=1000, sigma=1)
    drawn = [mechanism.release(Given([[1000, 0]])) for _ in range(3000)]
    hits = sum(abs(row[0] - 1000) < 100 for row in drawn)
    assert plausible_share(hits, 3000, 0.3)
    assert not plausible_share(hits, 3000, 0.45)
    assert follows_continuous(np.array([r[1] for r in drawn]) + uniforms(3000) - 0.5, _normal(26))
    assert not follows_continuous(np.array([r[1] for r in drawn]), _normal(60))


def _normal(variance):
    return stats.norm(0, math.sqrt(variance + 1 / 12)).cdf


def test_rows_beyond_the_bound_count_as_nothing():
    mechanism = SampledSum(rate=0.999999, bound=1000, sigma=1)
    far = [[1001, 0], [800, 700], [2**62, 2**62], [-(2**63), 0]]
    assert np.abs(mechanism.release(Given(far))).max() < 100
    assert mechanism.release(Given([[600, 800]])).tolist() == pytest.approx([600, 800], abs=100)
    assert mechanism.release(Given(np.empty((0, 2)))).shape == (2,)
    with pytest.raises(dp.ParameterError):
        SampledSum(rate=0.5, bound=1 << 30, sigma=1)


def table_of(pair):
    rows = [[row["x0"], row["x1"], row["x2"]] for row in pair] or np.empty((0, 3))
    return rows, [row["c"] for row in pair]


def nasty(relation):
    ends = {"x0": (-1, 1), "x1": (-1, 1), "x2": (-1, 1)}
    return list(
        dp.auditing.nasty_neighbours(bounds=ends, keys={"c": ["a", "b"]}, relation=relation)
    )


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_replay_of_samples_finds_nothing(relation):
    def pipeline(table):
        model = sgd(relation=relation).fit(*table_of(table))
        return model.coef_, model.intercept_

    sgd(relation=relation).cost()
    for pair, found in each_replayed(pipeline, nasty(relation)[::5]):
        assert found.ok, f"{pair.name}\n{found}"


def test_replay_notices_two_rows_that_change():
    def pipeline(table):
        return sgd().fit(*table_of(table)).coef_

    pair = nasty("add_remove")[0]
    two = [*pair.neighbour, *pair.neighbour]
    assert not dp.replay(pipeline, pair.data, two, time_limit=None).sensitivity_ok


def test_samples_teach():
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1, 1, (20_000, 4))
    labels = np.where(rows @ [1, -1, 0.5, 2] + rng.normal(0, 0.3, 20_000) > 0, "b", "a")
    model = sgd(size=20_000, rate=0.05, max_iter=100).fit(rows, labels)
    assert model.score(rows, labels) > 0.85
    assert clone(model).loss == model.loss
    assert not hasattr(clone(model), "coef_")
    assert sgd().outlook(size=10, features=4).supported is False
    assert sgd().outlook(size=10**6, features=4).supported


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize("count", [1, 20, 300])
def test_a_minimum_moves_by_what_is_charged(count, relation):
    """The sensitivity of the output is a theorem; here it is met on hard rows."""
    rng = np.random.default_rng(count)
    worst, penalty = 0.0, 0.7
    for _ in range(40):
        rows = rng.normal(size=(count, 3))
        rows /= np.maximum(1, np.linalg.norm(rows, axis=1))[:, None]
        signs = rng.choice([-1.0, 1.0], count)
        base = minimum(rows * signs[:, None], np.zeros(3), penalty)
        if relation == "add_remove":
            other = minimum((rows * signs[:, None])[1:], np.zeros(3), penalty)
        else:
            flipped = np.concatenate([[-signs[0]], signs[1:]])
            other = minimum(rows * flipped[:, None], np.zeros(3), penalty)
        worst = max(worst, float(np.linalg.norm(base - other)))
    moved = 2 if relation == "replace" else 1
    assert 0 < worst <= (moved + 2 * GRADIENT) / penalty


HARD = [
    (np.array([[1.0, 0], [0.6, 0.8], [0, -1]]) * scale, penalty, push)
    for scale in (0, 1e-300, 1e-8, 1.0)
    for penalty in (1e-6, 1.0, 1e6)
    for push in (0.0, 1e4, 1e9)
]


@pytest.mark.parametrize(("rows", "penalty", "push"), HARD)
def test_the_solver_reaches_its_certificate_on_hostile_rows(rows, penalty, push):
    signs, tilt = np.array([1.0, -1, 1]), np.array([push, -push])
    found = minimum(rows * signs[:, None], tilt, penalty)
    exact = in_decimals(rows * signs[:, None], tilt, penalty, start=found, digits=160)
    assert np.linalg.norm(found - exact) <= 1.01 * GRADIENT / penalty
    assert found.any() or not push, "it did not fail closed"


def test_the_bound_on_the_slope_counts_rounding():
    """Doubles against decimals, at points far from any minimum."""
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(500, 4))
    rows /= np.maximum(1, np.linalg.norm(rows, axis=1))[:, None]
    signs, tilt = rng.choice([-1.0, 1.0], 500), rng.normal(size=4)
    for size in (1e-3, 1.0, 1e6, 1e12):
        weights = rng.normal(size=4) * size
        with mpmath.workdps(60):
            margin = [
                mpmath.fsum(
                    mpmath.mpf(s * z) * mpmath.mpf(w) for z, w in zip(row, weights, strict=True)
                )
                for row, s in zip(rows.tolist(), signs.tolist(), strict=True)
            ]
            wrong = [1 / (1 + mpmath.exp(min(m, 10**4))) for m in margin]
            slope = [
                mpmath.fsum(
                    -q * s * row[at] for q, s, row in zip(wrong, signs, rows.tolist(), strict=True)
                )
                + mpmath.mpf(0.3) * mpmath.mpf(weights[at])
                + tilt[at]
                for at in range(4)
            ]
            true = mpmath.norm(slope)
        bound = slope_bound(rows * signs[:, None], tilt, 0.3, weights)
        assert true <= bound
        assert bound <= float(true) * 1.001 + 500 * 4 * size * 2.0**-50
    assert slope_bound(rows * signs[:, None], tilt, 0.3, np.full(4, math.inf)) == math.inf


def test_decimals_solve_what_doubles_do_not(monkeypatch):
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(20, 3))
    rows /= np.maximum(1, np.linalg.norm(rows, axis=1))[:, None]
    signs = rng.choice([-1.0, 1.0], 20)
    wanted = minimum(rows * signs[:, None], np.ones(3), 0.5)
    monkeypatch.setattr(solver, "_FLOAT_STEPS", 0)
    found = minimum(rows * signs[:, None], np.ones(3), 0.5)
    assert np.linalg.norm(found - wanted) <= 2 * GRADIENT / 0.5
    assert np.linalg.norm(derivatives(rows * signs[:, None], np.ones(3), 0.5, found)[1]) <= GRADIENT
    monkeypatch.setattr(solver, "_DIGITS", ())
    assert not minimum(rows * signs[:, None], np.ones(3), 0.5).any(), "it fails closed"
    assert minimum(np.empty((0, 2)), np.zeros(2), 1.0).tolist() == [0, 0]


def test_float_noise_has_its_laws():
    drawn = np.array([np.linalg.norm(spherical_laplace(3, 2.0)) for _ in range(4000)])
    assert follows_continuous(drawn, stats.gamma(3, scale=2).cdf)
    assert not follows_continuous(drawn, stats.gamma(3, scale=3).cdf)
    numbers = normals(5001)
    assert follows_continuous(numbers, stats.norm.cdf)
    assert not follows_continuous(numbers, stats.norm(0, 1.6).cdf)
    assert 0 < uniforms(1000).min() < uniforms(1000).max() < 1


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_the_tilted_objective_keeps_its_epsilon(relation):
    """In one dimension the density of the minimum is known: b(w), its law, and the Jacobian."""
    penalty, epsilon = 0.5, 1.0
    mechanism = PrivateMinimum(Way.OBJECTIVE, dp.PureDP(epsilon), penalty, Relation(relation))
    s = mechanism.scale()
    w = np.linspace(-60, 60, 4001)

    def log_density(z, signs):
        wrong = 1 / (1 + np.exp(np.outer(w, signs * z)))
        b = (wrong * signs * z).sum(axis=1) - penalty * w
        jacobian = (wrong * (1 - wrong) * z**2).sum(axis=1) + penalty
        return -np.abs(b) / s + np.log(jacobian)

    plain, more = np.array([1.0, 0.5]), np.array([1.0, 0.5, 1.0])
    up, down = np.array([1.0, -1]), np.array([1.0, -1, -1])
    pairs = [(log_density(plain, up), log_density(more, down))]
    if relation == "replace":
        pairs = [(log_density(more, np.array([1.0, -1, 1])), log_density(more, down))]
    for one, other in pairs:
        worst = np.abs(one - other).max()
        assert worst <= epsilon
        assert worst > 0.25 * epsilon


def test_labels_say_what_the_guarantee_rests_on():
    rows, target = made_up(50)
    assert perturbed().fit(rows, target["label"]).label_ == "(ε, δ)"
    exact = perturbed(guarantee=dp.PureDP(1)).fit(rows, target["label"])
    assert exact.label_ == "pure"
    assert exact.loss.pure == 1
    for method in ("objective", "approximate"):
        with pytest.raises(dp.ParameterError, match="allow_real_arithmetic"):
            perturbed(method=method).cost()
        model = perturbed(method=method, allow_real_arithmetic=True).fit(rows, target["label"])
        assert "real-arithmetic model" in model.label_
        assert model.loss.satisfies(BUDGET)


@pytest.mark.parametrize(
    "wrong",
    [
        {"penalty": 0},
        {"penalty": 0.01, "method": "objective", "allow_real_arithmetic": True},
        {"classes": [1, 2, 3]},
        {"method": "magic"},
        {"guarantee": dp.ZCDP(1)},
    ],
    ids=str,
)
def test_perturbation_refuses(wrong):
    with pytest.raises(dp.ParameterError):
        perturbed(**wrong).cost()


@pytest.mark.parametrize("method", list(Way))
@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_replay_of_minima_finds_nothing(method, relation):
    def pipeline(table):
        model = perturbed(method=str(method), allow_real_arithmetic=True, relation=relation)
        return model.fit(*table_of(table)).coef_

    for pair, found in each_replayed(pipeline, nasty(relation)[::6]):
        assert found.ok, f"{pair.name}\n{found}"


def test_outputs_of_neighbours_reach_the_noise_within_its_sensitivity():
    rng = np.random.default_rng(5)
    ranges = Ranges((-1.0,) * 3, (1.0,) * 3, 3**0.5)
    units, present = ranges.units(rng.uniform(-1, 1, (30, 3)))
    label = rng.integers(0, 2, 30)
    mechanism = PrivateMinimum(Way.OUTPUT, BUDGET, 2.0, Relation.ADD_REMOVE)
    drawn = [mechanism.release(Rows(units, None, label, present)) for _ in range(400)]
    spread = np.std(drawn, axis=0)
    wanted = float(mechanism._output_noise(4).sigma)
    assert spread == pytest.approx(np.full(4, wanted), rel=0.25)
