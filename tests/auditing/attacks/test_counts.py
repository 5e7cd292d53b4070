"""Difference, averaging and reconstruction: totals and counts."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate, optimize, stats

import deniable as dp
from auditing.attacks.margins import at_most, margin, near
from chance import FALSE_ALARM, plausible_share

ROUNDS = 16


def median_range(rounds: int) -> tuple[float, float]:
    """Where the median of |X - Y| lies, X and Y of the Laplace law of scale 1, but for 1e-9."""
    low = stats.binom.ppf(FALSE_ALARM / 2, rounds, 0.5) / rounds

    def quantile(share: float) -> float:
        return optimize.brentq(lambda t: (1 + t / 2) * math.exp(-t) - 1 + share, 0, 50)

    return quantile(low), quantile(1 - low)


def test_difference():
    found = dp.auditing.attacks.Difference().run()
    assert found.naive == found.salary
    assert found.refused == 3
    low, high = median_range(2_001)
    figures = {0.1: 4_604_655, 1.0: 458_132, 10.0: 45_204}
    for at in found.private:
        scale = 2 * 200_000 / at.epsilon
        assert low < at.median_error / scale < high
        assert abs(at.expected_median / figures[at.epsilon] - 1) < 0.02
        assert not low < at.median_error / (2 * scale) < high  # half the noise would be seen


def averages_right(questions: int) -> float:
    """P(|mean of n Laplace(10)| < 1/2), by the inversion of the characteristic function."""

    def wave(t: float) -> float:
        return math.sin(questions / 2 * t) / t * (1 + 100 * t * t) ** -questions

    reach = 60 / (10 * math.sqrt(questions))
    points = np.linspace(1e-12, reach, 400)
    whole = sum(integrate.quad(wave, a, b, limit=200)[0] for a, b in pairwise(points))
    return 2 / math.pi * whole


def test_averaging_without_a_budget():
    figures = {1: 0.046, 10: 0.088, 100: 0.288, 1_000: 0.732}
    found = dp.auditing.attacks.Averaging(questions=tuple(figures), rounds=1_000).run()
    for each in found.naive:
        # The law of one Laplace number has a slow tail under the integral; it has a closed form.
        right = 1 - math.exp(-0.05) if each.questions == 1 else averages_right(each.questions)
        assert abs(right - figures[each.questions]) < 0.05
        assert plausible_share(round(each.exact_share * 1_000), 1_000, right)
        assert each.epsilon_spent == pytest.approx(each.questions / 10)
    assert not plausible_share(round(found.naive[-1].exact_share * 1_000), 1_000, 0.288)


def test_ten_thousand_answers_are_the_truth():
    found = dp.auditing.attacks.Averaging(questions=(10_000,), rounds=50).run()
    assert averages_right(10_000) > 0.999
    assert found.naive[0].exact_share >= 0.8  # 10 of 50 would miss with 1e-26


def test_the_ledger_ends_averaging():
    found = dp.auditing.attacks.Averaging(questions=(1,), rounds=2_000).run()
    assert found.different_repeats == 1
    assert found.repeats_cost == 0
    assert found.reworded_answered == 10
    assert found.spent == 1
    q, steps = math.exp(-0.1), np.arange(-600, 601)
    one = (1 - q) / (1 + q) * q ** np.abs(steps)
    ten = one
    for _ in range(9):
        ten = np.convolve(ten, one)
    right = ten[ten.size // 2 - 5 : ten.size // 2 + 6].sum()
    assert plausible_share(round(found.reworded_share * 2_000), 2_000, right)
    assert plausible_share(round(found.repeated_share * 2_000), 2_000, one[600])
    assert found.limit == pytest.approx(0.462, abs=1e-3)
    assert at_most(found.reworded_share, found.limit, 2_000)


@pytest.fixture(scope="module")
def rebuilt():
    return dp.auditing.attacks.Reconstruction(rounds=ROUNDS).run()


TRIALS = 128 * ROUNDS
LEAST_SQUARES = {  # m = 4n, m = 16n
    "none": (1.0, 1.0),
    "±2.5": (1.0, 1.0),
    "±√n/2 = 5.7": (0.930, 0.998),
    "±√n = 11.3": (0.767, 0.945),
    "±n/4 = 32": (0.616, 0.723),
    "DP ε = 1": (0.480, 0.514),
    "DP (1, 1e-06)": (0.520, 0.512),
    "DP (10, 1e-06)": (0.642, 0.636),
}
PROGRAM = {
    "none": 1.0,
    "±2.5": 0.996,
    "±√n/2 = 5.7": 0.871,
    "±√n = 11.3": 0.742,
    "±n/4 = 32": 0.543,
}


def test_least_squares(rebuilt):
    every = {each.noise: each.least_squares for each in (*rebuilt.bounded, *rebuilt.private)}
    assert set(every) == set(LEAST_SQUARES)
    for noise, figures in LEAST_SQUARES.items():
        for found, figure in zip(every[noise][1:], figures, strict=True):
            assert near(found, figure, TRIALS, model=0.02), noise
    assert not near(every["±√n = 11.3"][1], 0.930, TRIALS, model=0.02)
    assert rebuilt.bounded[0].least_squares[0] > 0.99  # a square system without noise is solved


def test_linear_program(rebuilt):
    for each in rebuilt.bounded:
        assert near(each.linear_program, PROGRAM[each.noise], TRIALS, model=0.05), each.noise


def test_private_counts_keep_each_bit(rebuilt):
    pure, approximate, loose = rebuilt.private
    assert pure.limit == pytest.approx(0.731, abs=1e-3)
    assert approximate.limit == pytest.approx(0.731, abs=1e-3)
    assert pure.linear_program is loose.linear_program is None
    for each in rebuilt.private:
        assert all(at_most(share, each.limit, TRIALS) for share in each.least_squares)
    # Bounded noise breaks the same limit, by far: the check has power.
    assert not at_most(rebuilt.bounded[2].least_squares[2], pure.limit, TRIALS)


def test_the_linear_program_is_solved():
    """Against the same program written out, with both sides of what is missed as unknowns."""
    made_up = np.random.default_rng()
    subsets = made_up.integers(0, 2, (60, 15)).astype(bool)
    answers = subsets @ made_up.integers(0, 2, 15) + made_up.uniform(-3, 3, 60)
    found = dp.auditing.attacks.linear_program(subsets, answers)
    sides = np.eye(60)
    twin = optimize.linprog(
        np.r_[np.zeros(15), np.ones(120)],
        A_eq=np.hstack([subsets.astype(float), sides, -sides]),
        b_eq=answers,
        bounds=[(0, 1)] * 15 + [(0, None)] * 120,
    )
    assert -1e-7 <= found.min() <= found.max() <= 1 + 1e-7
    assert np.abs(subsets @ found - answers).sum() == pytest.approx(twin.fun, abs=1e-6)


def test_least_squares_are_least():
    made_up = np.random.default_rng()
    subsets = made_up.integers(0, 2, (60, 15)).astype(bool)
    answers = made_up.uniform(-3, 3, 60)
    twin = np.linalg.lstsq(subsets.astype(float), answers, rcond=None)[0]
    assert dp.auditing.attacks.least_squares(subsets, answers) == pytest.approx(twin, abs=1e-6)


def test_margins_shrink():
    assert margin(10_000) < margin(1_000) < 0.15
