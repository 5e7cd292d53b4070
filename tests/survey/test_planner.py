import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import deniable as dp
from chance import plausible_share
from deniable.survey import designs, estimate, planner

F = Fraction
COINS = designs.two_coins()
THREE = designs.from_matrix([[0.7, 0.2, 0.1], [0.15, 0.8, 0.05], [0.2, 0.25, 0.55]], "abc")


def test_the_table_for_three_points_at_ten_per_cent():
    epsilons = [0.25, 0.5, 1, math.log(3), 2, 3, 4]
    rows = planner.planning_table(epsilons, margin=0.03, share=0.1)
    assert [row.n for row in rows] == [68323, 17107, 4314, 3586, 1157, 620, 466]
    assert [round(row.epsilon, 3) for row in rows] == [0.25, 0.5, 1, 1.099, 2, 3, 4]
    assert [round(row.truth, 3) for row in rows] == [0.562, 0.622, 0.731, 0.75, 0.881, 0.953, 0.982]
    suspicions = [round(100 * row.suspicion, 1) for row in rows]
    assert suspicions == [12.5, 15.5, 23.2, 25.0, 45.1, 69.1, 85.8]
    times = [round(row.times_direct, 1) for row in rows]
    assert times == [177.5, 44.4, 11.2, 9.3, 3.0, 1.6, 1.2]


@pytest.mark.parametrize(
    ("share", "n", "direct"), [(0.1, 3586, 385), (0.3, 4098, 897), (0.5, 4269, 1068)]
)
def test_known_sample_sizes(share, n, direct):
    assert planner.sample_size(COINS, margin=0.03, share=share) == n
    plain = designs.open_question(not_private=True)
    assert planner.sample_size(plain, margin=0.03, share=share) == direct


@pytest.mark.parametrize(
    ("epsilon", "sizes"), [(0.5, [39177, 9795, 1568]), (None, [7500, 1875, 300])]
)
def test_known_sample_sizes_of_a_fixed_population(epsilon, sizes):
    design = COINS if epsilon is None else designs.randomized_response(epsilon=epsilon)
    found = [planner.sample_size(design, rmse=alpha, share=0.2) for alpha in (0.01, 0.02, 0.05)]
    assert found == sizes


def test_the_planned_size_gives_the_planned_margin():
    """n = 3586 at ln 3 puts about 95 % of estimates within 3 points."""
    people = np.random.default_rng(3).random((2_000, 3586)) < 0.1
    surveys = COINS.randomize(people.ravel()).reshape(people.shape)
    within = sum(abs(1.5 * s.mean() - 0.5 * (1 - s.mean()) - 0.1) <= 0.03 for s in surveys)
    assert plausible_share(within, 2_000, 0.95)
    assert not plausible_share(within, 2_000, 0.85)


@pytest.mark.parametrize("n", [50, 3586, 10**6])
def test_margin_and_size_undo_each_other(n):
    width = planner.margin(COINS, n, share=0.1)
    assert planner.sample_size(COINS, margin=width * (1 + 1e-9), share=0.1) == n
    assert planner.sample_size(COINS, margin=width * (1 - 1e-9), share=0.1) == n + 1


@pytest.mark.parametrize("categories", [2, 3, 10])
@pytest.mark.parametrize("share", [0, 0.1, 0.5])
def test_epsilon_for_a_size_and_a_margin_is_the_least(categories, share):
    found = planner.epsilon_for(5_000, 0.03, share=share, categories=categories)
    labels = range(categories)
    enough = designs.randomized_response(epsilon=found, categories=labels)
    short = designs.randomized_response(epsilon=found - 1e-5, categories=labels)
    assert planner.margin(enough, 5_000, share=share, answer=0) <= 0.03
    assert planner.margin(short, 5_000, share=share, answer=0) > 0.03


def test_the_variance_is_that_of_the_estimate():
    """Against the covariance of an estimate whose reports come as often as expected."""
    shares = {"a": F(1, 2), "b": F(3, 10), "c": F(1, 5)}
    reported = np.array([0.5, 0.3, 0.2]) @ THREE.matrix
    spread = THREE.decoder @ (np.diag(reported) - np.outer(reported, reported)) @ THREE.decoder.T
    for place, answer in enumerate("abc"):
        found = float(planner.variance(THREE, shares, answer))
        assert found == pytest.approx(spread[place, place], rel=1e-12)
    # One number is enough where only one count matters; for coins it is θ(1-θ) + pq/(p-q)².
    assert planner.variance(COINS, F(1, 10)) == F(9, 100) + F(3, 16) / F(1, 4)
    five = designs.randomized_response(epsilon=1, categories="abcde")
    rest = {"a": 0.1, "b": 0.2, "c": 0.3, "d": 0.4, "e": 0}
    assert planner.variance(five, 0.1, "a") == planner.variance(five, rest, "a")


def test_groups_of_the_planned_size_are_told_apart_as_often_as_planned():
    n = planner.sample_size_to_compare(COINS, 0.1, 0.3, power=0.8)
    spread = math.sqrt(sum(float(planner.variance(COINS, s)) for s in (0.1, 0.3)) / n)
    power = stats.norm.sf(stats.norm.isf(0.025) - 0.2 / spread)
    assert power == pytest.approx(0.8, abs=0.005)


def test_several_questions_under_one_budget():
    shares = {"drugs": 0.1, "theft": 0.05, "drink": 0.3}
    best, other = planner.plan_questions(shares, epsilon=1, n=9_000)
    assert (best.strategy, other.strategy) == ("one", "all")
    assert best.worst < other.worst
    assert (best.people, best.answers_each) == (9_000, 3_000)
    assert best.epsilon_each == pytest.approx(1)
    assert 3 * other.epsilon_each <= 1
    assert other.epsilon_each == pytest.approx(1 / 3)
    for plan in (best, other):
        each = designs.randomized_response(epsilon=plan.epsilon_each)
        for name, width in plan.margins:
            expected = planner.margin(each, plan.answers_each, share=shares[name])
            assert width == pytest.approx(expected, rel=1e-9)
    fewest, more = planner.plan_questions(shares, epsilon=1, margin=0.03)
    assert fewest.people < more.people
    assert fewest.worst <= 0.03
    assert more.worst <= 0.03


def test_with_much_epsilon_everyone_answers_everything():
    best, _ = planner.plan_questions({"a": 0.5, "b": 0.5}, epsilon=12, n=1_000)
    assert best.strategy == "all"


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (lambda: planner.margin(COINS, 0), "from 1"),
        (lambda: planner.margin(COINS, 10, share=1.1), "between 0 and 1"),
        (lambda: planner.sample_size(COINS), "exactly one"),
        (lambda: planner.sample_size(COINS, margin=0.1, rmse=0.1), "exactly one"),
        (lambda: planner.sample_size(COINS, margin=0), "greater than 0"),
        (lambda: planner.sample_size(COINS, margin=0.1, answer="x"), "one of"),
        (lambda: planner.variance("coins", 0.1), "must be a Design"),
        (lambda: planner.variance(THREE, 0.1, "a"), "for all"),
        (lambda: planner.variance(THREE, {"a": 0.5}, "a"), "sum to 1"),
        (lambda: planner.variance(THREE, {"a": 0.5, "z": 0.5}, "a"), "sum to 1"),
        (lambda: planner.epsilon_for(100, 0.001), "direct question"),
        (lambda: planner.epsilon_for(100, 0.1, categories=1), "from 2"),
        (lambda: planner.sample_size_to_compare(COINS, 0.1, 0.1), "differ"),
        (lambda: planner.plan_questions({}, epsilon=1, n=10), "one question"),
        (lambda: planner.plan_questions({"a": 0.1}, epsilon=1), "exactly one"),
        (lambda: planner.plan_questions({"a": 0.1, "b": 0.1}, epsilon=1, n=1), "each question"),
    ],
)
def test_bad_plans_are_refused(run, said):
    with pytest.raises(dp.ParameterError, match=said):
        run()


def test_the_margin_is_what_an_estimate_then_has():
    found = estimate(COINS, [True] * 400 + [False] * 600)
    low, high = found.interval(method="wald")
    assert (high - low) / 2 == pytest.approx(planner.margin(COINS, 1_000, share=0.3), rel=1e-9)
