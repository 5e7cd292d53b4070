"""Intervals cover the exact values as often as they say, and are no wider than the noise is."""

import math

import numpy as np
import pytest
from scipy import stats

import deniable as dp
from chance import FALSE_ALARM, laplace_pmf
from corpus import hospital
from deniable.engines.base import LazySnapshot
from deniable.ledger.amounts import read_amount
from deniable.ledger.filters import Budget
from deniable.query.plan.plan import SCALE
from deniable.query.price.price import price
from deniable.query.read.catalogue import Options
from deniable.query.read.compile import compile_sql
from deniable.query.run.drawing import _Reader
from deniable.query.show.shape import Noisy, shape

RELEASES, CONFIDENCE, DEVIATIONS = 2_000, 0.95, 6.2  # the one-sided tail of 6.2 is below 1e-9
QUESTION = "SELECT {} AS x FROM visits WHERE ward = 'cardiology'"
MEASURES = ["COUNT(*)", "COUNT(cost)", "SUM(cost)", "SUM(age)", "AVG(cost)", "AVG(age)"]
BUDGETS = {"approximate": dp.ApproxDP(10, 1e-6), "pure": dp.PureDP(10)}


def covered_often_enough(hits):
    """Whether coverage may be CONFIDENCE, at 6.2 standard errors."""
    error = math.sqrt(CONFIDENCE * (1 - CONFIDENCE) * RELEASES)
    return hits >= CONFIDENCE * RELEASES - DEVIATIONS * error


def priced(measure, budget):
    """A question's noise, and its exact statistics from one run of the engine."""
    with hospital.session(budget=budget) as session:
        plan = compile_sql(QUESTION.format(measure), session._catalogue, Options())
        read = Budget(budget)
        made = price(plan, read_amount(read, epsilon=2))
        with LazySnapshot(session._engine, (), plan.tables) as snapshot:
            (exact,) = _Reader(snapshot, made, secret="").totals(0, [()])
    return made, exact


def exact_value(made, exact):
    x = np.array([[number / SCALE for number in exact]])
    return float(shape(made.plan, Noisy([()], x, made.noise)).data["x"][0])


def released(made, exact):
    """RELEASES answers of one question, as so many groups, and their intervals."""
    drawn = made.joint.release([exact] * RELEASES)
    x = np.array([[int(number) / SCALE for number in row] for row in drawn])
    shaped = shape(made.plan, Noisy([()] * RELEASES, x, made.noise))
    values = np.array(shaped.data["x"], dtype=np.float64)
    return values, *shaped.noise["x"].at(CONFIDENCE)


@pytest.mark.parametrize("budget", BUDGETS.values(), ids=BUDGETS)
@pytest.mark.parametrize("measure", MEASURES)
def test_intervals_cover_the_exact_value_as_often_as_they_say(measure, budget):
    made, exact = priced(measure, budget)
    value = exact_value(made, exact)
    _, low, high = released(made, exact)
    assert np.all(low <= high)
    assert covered_often_enough(int(np.sum((low <= value) & (value <= high))))


def covered_by_narrowed(measure, budget, factor):
    made, exact = priced(measure, budget)
    value = exact_value(made, exact)
    middle, low, high = released(made, exact)
    low, high = middle - factor * (middle - low), middle + factor * (high - middle)
    return int(np.sum((low <= value) & (value <= high)))


@pytest.mark.parametrize("measure", ["COUNT(*)", "SUM(cost)", "AVG(cost)"])
def test_intervals_a_fifth_too_narrow_are_caught(measure):
    """1 - 2Φ(-1.96·0.8) = 0.883 of 2,000: 14 errors short of 0.95."""
    assert not covered_often_enough(covered_by_narrowed(measure, BUDGETS["approximate"], 0.8))


def test_counts_under_pure_dp_a_fifth_too_narrow_are_caught():
    """1 - 0.05^0.8 = 0.909: 8.4 errors short of 0.95."""
    hits = [covered_by_narrowed("COUNT(*)", BUDGETS["pure"], 0.8) for _ in range(5)]
    assert not all(covered_often_enough(each) for each in hits)


def narrowest(mechanism):
    """The least w with P(|Z| <= w) at least CONFIDENCE; normal, where σ is 10^4 steps or more."""
    if mechanism.norm == "l2":
        assert mechanism.deviation(0) > 1e4
        return mechanism.deviation(0) * stats.norm.isf((1 - CONFIDENCE) / 2)
    scale = float(mechanism.law(0).scale)
    inside = 2 * np.cumsum(laplace_pmf(scale)(np.arange(int(5 * scale)))) - np.tanh(0.5 / scale)
    return int(np.argmax(inside >= CONFIDENCE))


@pytest.mark.parametrize("budget", BUDGETS.values(), ids=BUDGETS)
def test_the_interval_of_a_count_is_the_narrowest_of_the_law_that_explain_names(budget):
    made, exact = priced("COUNT(*)", budget)
    values, low, high = released(made, exact)
    least = narrowest(made.joint)
    for half in (values - low, high - values):
        assert np.all(half * SCALE >= least - 1)
        assert np.all(half * SCALE <= least * (1 + 1e-6) + 1)
    with hospital.session(budget=budget) as session:
        (told,) = session.explain(QUESTION.format("COUNT(*)"), epsilon=2).columns
    assert ("Laplace" if made.joint.norm == "l1" else "Gaussian") in told.noise
    assert f"= {made.joint.deviation(0) / SCALE:,.4g}" in told.noise
    assert math.isclose(told.half_width, least / SCALE, rel_tol=1e-6, abs_tol=1 / SCALE)


def test_noise_drawn_directly_is_that_of_a_session():
    """Six-σ check that the shortcut above is the way of the session: same scale, same centre."""
    made, exact = priced("COUNT(*)", BUDGETS["approximate"])
    wide = made.joint.error(0, confidence=1 - FALSE_ALARM) / SCALE
    with hospital.session(budget=BUDGETS["approximate"]) as session:
        answer = session.sql(QUESTION.format("COUNT(*)"), epsilon=2)
    assert abs(answer["x"][0] - exact_value(made, exact)) <= wide
    ends = answer.intervals(CONFIDENCE).to_pylist()[0]
    half = made.joint.error(0, confidence=CONFIDENCE) / SCALE
    assert math.isclose(ends["x_high"] - ends["x"], half, rel_tol=1e-9)
