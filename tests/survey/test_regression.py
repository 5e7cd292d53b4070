"""Regression. Checks of coverage fail by chance with probability 1e-9 at most."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import optimize, stats

import deniable as dp
from chance import FALSE_ALARM
from deniable.survey import designs
from deniable.survey.regression import (
    linear_regression,
    logistic_regression,
    regression_on_reports,
)

COINS = designs.two_coins()
DIE = designs.forced_response(truth=Fraction(3, 4), yes=Fraction(1, 6), no=Fraction(1, 12))
WIDE = designs.from_matrix(
    [[Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)], [0.1, 0.2, 0.7]], (False, True), "lmh"
)
THREE = designs.from_matrix([[0.7, 0.2, 0.1], [0.15, 0.8, 0.05], [0.2, 0.25, 0.55]], "abc")


def people(n, seed, beta=(-1.0, 0.8)):
    rng = np.random.default_rng(seed)
    x = rng.normal(3, 2, size=n)
    return x, rng.random(n) < 1 / (1 + np.exp(-(beta[0] + beta[1] * (x - 3))))


def often_enough(hits: int, trials: int, nominal: float) -> bool:
    return bool(stats.binom.cdf(hits, trials, nominal) > FALSE_ALARM)


@pytest.mark.parametrize("design", [COINS, DIE, WIDE], ids=lambda d: d.method)
def test_logistic_coefficients_are_those_of_a_general_optimiser(design):
    x, truth = people(2_000, 1)
    reports = design.randomize(truth)
    places = np.array([design.reports.index(r) for r in reports.tolist()])

    def minus_likelihood(beta):
        share = 1 / (1 + np.exp(-(beta[0] + beta[1] * x)))
        chance = design.matrix[0][places] * (1 - share) + design.matrix[1][places] * share
        return -np.log(chance).sum()

    best = optimize.minimize(minus_likelihood, [0, 0], method="Nelder-Mead", tol=1e-10)
    fit = logistic_regression(design, reports, {"x": x})
    assert fit.names == ("intercept", "x")
    assert minus_likelihood(fit.coefficients) <= best.fun + 1e-6
    assert fit.coefficients == pytest.approx(best.x, abs=1e-3)
    step, second = 1e-3, np.zeros((2, 2))
    for i, j in [(0, 0), (0, 1), (1, 1)]:
        e, f = step * np.eye(2)[i], step * np.eye(2)[j]
        b = fit.coefficients
        second[i, j] = second[j, i] = (
            minus_likelihood(b + e + f)
            - minus_likelihood(b + e - f)
            - minus_likelihood(b - e + f)
            + minus_likelihood(b - e - f)
        ) / (4 * step * step)
    # Expected and observed information agree but for chance.
    assert np.sqrt(np.diag(np.linalg.inv(second))) == pytest.approx(
        np.sqrt(np.diag(fit.covariance)), rel=0.5
    )


def test_without_noise_it_is_ordinary_logistic_regression():
    x, truth = people(3_000, 2)
    plain = designs.open_question(not_private=True)
    fit = logistic_regression(plain, truth, {"x": x})
    share = 1 / (1 + np.exp(-(fit.coefficient("intercept") + fit.coefficient("x") * x)))
    assert (truth - share).sum() == pytest.approx(0, abs=1e-3)
    assert (x * (truth - share)).sum() == pytest.approx(0, abs=1e-2)


def test_logistic_intervals_cover_and_coefficients_are_recovered():
    """300 surveys of 2,000 people; held to 93 % (the normal approximation of a fit)."""
    hits, slopes = 0, []
    for seed in range(300):
        x, truth = people(2_000, seed)
        fit = logistic_regression(COINS, COINS.randomize(truth), {"x": x - 3})
        low, high = fit.interval("x")
        hits += low <= 0.8 <= high
        slopes.append(fit.coefficient("x"))
    assert often_enough(hits, 300, 0.93)
    assert np.mean(slopes) == pytest.approx(0.8, abs=0.06)  # eight deviations and a small bias
    # Reading reports as if they were answers finds less than half of it.
    x, truth = people(20_000, 7)
    naive = logistic_regression(
        designs.open_question(not_private=True), COINS.randomize(truth), {"x": x - 3}
    )
    assert naive.coefficient("x") < 0.5


def test_units_of_a_column_do_not_matter():
    x, truth = people(2_000, 4)
    reports = COINS.randomize(truth)
    one = logistic_regression(COINS, reports, {"x": x})
    other = logistic_regression(COINS, reports, {"x": x * 1e9})
    assert other.coefficient("x") * 1e9 == pytest.approx(one.coefficient("x"), rel=1e-6)
    assert other.p_value("x") == pytest.approx(one.p_value("x"), rel=1e-4)


def test_linear_outcomes_are_unbiased_for_least_squares_on_the_truth():
    """Averaged over the coins alone, the fit is that of the true answers."""
    x, truth = people(400, 5)
    matrix = np.column_stack([np.ones(400), x])
    target = np.linalg.lstsq(matrix, truth.astype(float), rcond=None)[0]
    many = COINS.randomize(np.tile(truth, 1_000)).reshape(1_000, 400)
    fits = [linear_regression(COINS, reports, {"x": x}) for reports in many]
    found = np.array([fit.coefficients for fit in fits])
    error = found.std(axis=0) / math.sqrt(1_000)
    assert np.all(np.abs(found.mean(axis=0) - target) < 6.5 * error)
    # The spread over coins is most of the stated error, which holds sampling too.
    assert 0.7 < found[:, 1].std() / np.mean([fit.standard_error("x") for fit in fits]) < 1.15


def test_linear_outcomes_with_values_cover():
    """Three categories worth 1, 2 and 5, whose mean is 2 + x/2; 500 surveys, held to 94 %."""
    hits = 0
    for seed in range(500):
        rng = np.random.default_rng(seed)
        x = rng.random(500)
        high = (1 + 2 * x) / 12  # P(c); the mean is then 1 + P(b) + 4 P(c)
        middle = 1 + 0.5 * x - 4 * high
        draw = rng.random(500)
        truth = np.where(draw < high, "c", np.where(draw < high + middle, "b", "a"))
        reports = THREE.randomize(truth)
        fit = linear_regression(THREE, reports, {"x": x}, values={"a": 1, "b": 2, "c": 5})
        low, top = fit.interval("x")
        hits += low <= 0.5 <= top
    assert often_enough(hits, 500, 0.94)


def predictor(n, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    truth = rng.random(n) < np.where(x > 0, 0.5, 0.2)
    return x, truth, 1 + 2 * truth + 0.5 * x + rng.normal(size=n)


def test_a_randomised_predictor_is_recovered_and_covered():
    """400 surveys of 1,500 people; held to 93.5 %. Using the reports as they are shrinks it."""
    hits, naive = 0, []
    for seed in range(400):
        x, truth, y = predictor(1_500, seed)
        reports = COINS.randomize(truth)
        fit = regression_on_reports(COINS, reports, y, {"x": x})
        assert fit.names == ("intercept", "x", "True")
        low, high = fit.interval("True")
        hits += low <= 2 <= high
        matrix = np.column_stack([np.ones(1_500), x, reports])
        naive.append(np.linalg.lstsq(matrix, y, rcond=None)[0][2])
    assert often_enough(hits, 400, 0.935)
    assert np.mean(naive) < 1.2


def test_a_predictor_without_noise_is_least_squares():
    x, truth, y = predictor(500, 1)
    fit = regression_on_reports(designs.open_question(not_private=True), truth, y, {"x": x})
    best = np.linalg.lstsq(np.column_stack([np.ones(500), x, truth]), y, rcond=None)[0]
    assert fit.coefficients == pytest.approx(best, abs=1e-10)


def test_a_predictor_of_three_categories():
    rng = np.random.default_rng(3)
    truth = rng.choice(["a", "b", "c"], size=40_000)
    worth = {"a": 0.0, "b": 1.0, "c": -2.0}
    y = np.array([worth[t] for t in truth]) + rng.normal(size=40_000)
    fit = regression_on_reports(THREE, THREE.randomize(truth), y)
    assert fit.names == ("intercept", "b", "c")
    for name, true in [("b", 1.0), ("c", -2.0)]:
        assert abs(fit.coefficient(name) - true) < 6.5 * fit.standard_error(name)
        assert fit.p_value(name) < 1e-9


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (lambda: logistic_regression(COINS, [True] * 20, {"x": range(20)}), "no finite fit"),
        (lambda: logistic_regression(COINS, [False] * 20, {}), "no finite fit"),
        (lambda: logistic_regression(COINS, [True, False], {"x": [1, 2]}), "more than"),
        (lambda: logistic_regression(COINS, [True, False] * 9, {"x": [1] * 18}), "collinear"),
        (lambda: logistic_regression(COINS, [True, False] * 9, {"x": [1] * 17}), "must have 18"),
        (lambda: logistic_regression(COINS, [True] * 3, {"x": [1, 2, math.nan]}), "finite"),
        (lambda: logistic_regression(COINS, [True] * 3, {"x": ["a"] * 3}), "numbers"),
        (lambda: logistic_regression(COINS, [True] * 3, [[1, 2, 3]]), "map names"),
        (lambda: logistic_regression(COINS, [True] * 3, {"intercept": [1, 2, 3]}), "by itself"),
        (lambda: logistic_regression(THREE, ["a"] * 3, {}, answer="a"), "two true answers"),
        (lambda: logistic_regression(COINS, [], {}), "one or more reports"),
        (lambda: linear_regression(THREE, ["a"] * 9, {}), "values"),
        (lambda: linear_regression(COINS, ["a"] * 9, {}), "reports"),
        (lambda: regression_on_reports(COINS, [True] * 9, [1.0] * 8), "must have 9"),
        (
            lambda: regression_on_reports(COINS, [True, False, False, False], [1.0, 2.0, 3.0, 4.0]),
            "too rare",
        ),
    ],
)
def test_what_cannot_be_fitted_is_refused(run, said):
    with pytest.raises(dp.ParameterError, match=said):
        run()


def test_data_frames_are_read_by_column():
    import pandas as pd

    x, truth = people(500, 6)
    reports = COINS.randomize(truth)
    frame = pd.DataFrame({"x": x})
    one, other = (linear_regression(COINS, reports, c) for c in (frame, {"x": x}))
    assert np.array_equal(one.coefficients, other.coefficients)
