"""Exact verification: against the definition by brute force, in rationals and in floats."""

import json
import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, combinations, permutations, product

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import deniable as dp
from deniable.auditing.exact.streams import stream_channel

F = Fraction
COINS = [[F(3, 4), F(1, 4)], [F(1, 4), F(3, 4)]]


@st.composite
def tables(draw, most=4):
    rows, columns = draw(st.integers(2, 4)), draw(st.integers(1, most))
    table = []
    for _ in range(rows):
        weights = draw(st.lists(st.integers(0, 5), min_size=columns, max_size=columns).filter(any))
        table.append([F(weight, sum(weights)) for weight in weights])
    return table


def events(row):
    places = range(len(row))
    return chain.from_iterable(combinations(places, k) for k in range(len(row) + 1))


@given(tables())
def test_delta_is_the_largest_excess_of_any_event(table):
    verified = dp.verify_channel(table)
    for ratio in (F(1), F(3, 2), F(4)):
        worst = max(
            sum(p[i] for i in event) - ratio * sum(q[i] for i in event)
            for p, q in permutations(table, 2)
            for event in events(p)
        )
        assert verified.delta(ratio=ratio) == worst


@given(tables())
def test_the_ratio_is_the_least_at_which_delta_is_zero(table):
    verified = dp.verify_channel(table)
    if verified.ratio == math.inf:
        assert verified.delta(ratio=10**6) > 0
    else:
        assert verified.delta(ratio=verified.ratio) == 0
        assert verified.ratio == 1 or verified.delta(ratio=(1 + verified.ratio) / 2) > 0


@given(tables(most=3), st.fractions(0, 1, max_denominator=12))
@settings(max_examples=60)
def test_the_trade_off_is_the_best_of_all_randomised_tests(table, alpha):
    """Tests that reject some outputs for sure and at most one by a coin include a best one."""
    best = F(1)
    for p, q in permutations(table, 2):
        for event in events(p):
            spent = sum(p[i] for i in event)
            if spent > alpha:
                continue
            power = sum(q[i] for i in event)
            best = min(best, 1 - power)
            for i in set(range(len(p))) - set(event):
                share = min(F(1), (alpha - spent) / p[i]) if p[i] else F(1)
                best = min(best, 1 - power - share * q[i])
    assert dp.verify_channel(table).tradeoff(alpha) == best


@given(tables())
def test_floats_agree_with_rationals_and_err_on_the_safe_side(table):
    exact = dp.verify_channel(table)
    floats = dp.verify_channel(np.array(table, dtype=float))
    assert floats.epsilon == pytest.approx(exact.epsilon, abs=1e-12)
    for epsilon in (0, 0.5, 2):
        there = exact.delta(epsilon=epsilon)
        assert there <= floats.delta(epsilon=epsilon) <= there + F(1, 10**9)
    for alpha in (0, 0.3, 1):
        least = exact.tradeoff(alpha)
        assert least - F(1, 10**9) <= F(floats.tradeoff(alpha)) <= least + F(1, 10**15)


@given(tables(), st.data())
def test_only_neighbours_count(table, data):
    pairs = list(combinations(range(len(table)), 2))
    chosen = data.draw(st.lists(st.sampled_from(pairs), min_size=1, unique=True))
    verified = dp.verify_channel(table, chosen)
    each = [dp.verify_channel([table[x], table[y]]) for x, y in chosen]
    assert verified.ratio == max(one.ratio for one in each)
    assert verified.delta(epsilon=0) == max(one.delta(epsilon=0) for one in each)
    assert verified.tradeoff(F(1, 7)) == min(one.tradeoff(F(1, 7)) for one in each)
    floats = dp.verify_channel(np.array(table, dtype=float), chosen)
    assert floats.epsilon == pytest.approx(verified.epsilon, abs=1e-12)
    assert floats.delta(epsilon=0) == pytest.approx(float(verified.delta(epsilon=0)), abs=1e-9)


def test_the_two_coins_are_ln_3_exactly():
    verified = dp.verify_channel(COINS)
    assert verified.ratio == 3
    assert verified.epsilon == math.log(3)
    assert verified.delta(epsilon=0) == F(1, 2)
    assert verified.tradeoff(F(1, 10)) == F(7, 10)
    assert verified.posterior(F(1, 10)).high == F(1, 4)  # a YES lifts 10 % to 25 % at most


def test_posteriors_by_bayes_never_leave_the_bounds_but_for_the_miss():
    table = [[F(1, 2), F(1, 4), F(1, 8), F(1, 8)], [F(1, 8), F(1, 4), F(1, 2), F(1, 8)]]
    verified = dp.verify_channel(table)
    for prior in (F(1, 10), F(1, 2), F(9, 10)):
        bounds = verified.posterior(prior)
        after = [prior * p / (prior * p + (1 - prior) * q) for p, q in zip(*table, strict=True)]
        assert (min(after), max(after)) == (bounds.low, bounds.high)
        narrow = verified.posterior(prior, epsilon=1)
        outside = [i for i, a in enumerate(after) if not narrow.low <= a <= narrow.high]
        assert narrow.miss == max(sum(row[i] for i in outside) for row in table) == F(5, 8)


def test_supports_that_differ_are_infinite():
    verified = dp.verify_channel([[1, 0], [F(1, 2), F(1, 2)]])
    assert (verified.ratio, verified.epsilon) == (math.inf, math.inf)
    assert verified.delta(epsilon=100) == F(1, 2)
    assert verified.posterior(F(1, 3)).high == 1
    assert dp.verify_channel(np.array([[1, 0], [0.5, 0.5]])).epsilon == math.inf
    assert "not ε-differentially private for any ε" in str(verified)


def test_the_witness_is_where_the_ratio_is_met():
    seen = dp.verify_channel(dp.RandomizedResponse.two_coins().channel()).witness
    assert seen.output == seen.more_likely_on != seen.less_likely_on


SCORES = [list(scores) for scores in product([0, 1, 2], repeat=3)]


@pytest.mark.parametrize(
    ("mechanism", "inputs"),
    [
        (dp.RandomizedResponse.two_coins(), [False, True]),
        (dp.RandomizedResponse(epsilon=0.7, categories="abcd"), "abcd"),
        (dp.RandomizedResponse.forced(truth=0.5, yes=0.3, no=0.2), [False, True]),
        (dp.TruncatedGeometric(epsilon=1, sensitivity=1, lower=0, upper=6), range(7)),
        (dp.TruncatedGeometric(epsilon=1, sensitivity=2, lower=0, upper=6), range(-3, 10)),
        (
            dp.MetricExponential(
                epsilon=1, points="abc", distances=[[0, 1, 2], [1, 0, 1], [2, 1, 0]]
            ),
            "abc",
        ),
        (dp.Exponential(epsilon=1, sensitivity=1), SCORES),
        (dp.Exponential(epsilon=1, sensitivity=1, monotone=True), SCORES),
        (dp.PermuteAndFlip(epsilon=1, sensitivity=1), SCORES),
        (dp.ReportNoisyMax(epsilon=1, sensitivity=1), SCORES),
        (dp.ReportNoisyMax(epsilon=1, sensitivity=1, monotone=True), SCORES),
        (
            dp.SparseVector(epsilon=1, threshold=1, sensitivity=1, positives=2),
            [list(bits) for bits in product([0, 1], repeat=5)],
        ),
        (
            dp.SparseVector(epsilon=1, threshold=1, sensitivity=1, monotone=True),
            [list(bits) for bits in product([0, 1], repeat=5)],
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_mechanisms_keep_what_they_claim(mechanism, inputs):
    verified = dp.verify(mechanism, inputs)
    assert verified.holds
    assert 0 < verified.epsilon <= float(mechanism.loss.pure) + 1e-9


@dataclass(frozen=True)
class Claimed:
    """Some channel, and what is claimed of it."""

    loss: dp.Loss
    rows: tuple[tuple[F, ...], ...]

    def channel(self, inputs):
        return dp.Channel(tuple(inputs), tuple(range(len(self.rows[0]))), self.rows)


@pytest.mark.parametrize(
    ("epsilon", "delta", "true"),
    [(F(1, 10), F(1, 10**6), False), (F(1, 10), F(1, 18), True), (F(1), F(1, 10**12), True)],
)
def test_claims_with_a_delta_are_held_to_their_own_point(epsilon, delta, true):
    rows = ((F(55, 100), F(45, 100)), (F(45, 100), F(55, 100)))
    claimed = Claimed(dp.losses.ApproxLoss(bound=epsilon, slack=delta), rows)
    assert dp.verify(claimed, [0, 1], adjacency=[(0, 1)]).holds is true


def test_small_deltas_are_not_overlooked():
    rows = ((1 - F(1, 10**9), F(1, 10**9)), (F(1), F(0)))
    for slack, true in ((F(1, 10**12), False), (F(2, 10**9), True)):
        claimed = Claimed(dp.losses.ApproxLoss(bound=F(1), slack=slack), rows)
        assert dp.verify(claimed, [0, 1], adjacency=[(0, 1)]).holds is true


def test_what_underflows_is_refused_and_what_is_far_is_right():
    noisy = dp.ReportNoisyMax(epsilon=1, sensitivity=1)
    with pytest.raises(dp.ParameterError, match="too far"):
        dp.verify(noisy, [[0, 3000], [1, 2999]])
    gumbel = dp.ReportNoisyMax(epsilon=1, sensitivity=1, noise="gumbel")
    assert dp.verify(gumbel, [[0, 1490], [0, 1491], [1, 1490]]).holds
    sparse = dp.SparseVector(epsilon=1, threshold=0, sensitivity=1)
    with pytest.raises(dp.ParameterError, match="too far"):
        dp.verify(sparse, [[-9999], [-9998]])
    far = dp.verify(sparse, [[200] * 12, [201] * 12])
    assert far.holds
    assert far.epsilon == pytest.approx(0.3865, abs=1e-3)
    with pytest.raises(dp.ParameterError, match="numbers"):
        dp.verify(dp.SparseVector(epsilon=1, threshold=0, sensitivity=1, numeric=True), [[0], [1]])


def test_entries_that_floats_lose_are_refused():
    row = [0.1234567890123456, 0.2345678901234567, 1 - 0.1234567890123456 - 0.2345678901234567]
    with pytest.raises(dp.ParameterError, match="Fractions"):
        dp.verify_channel([[*row, F(1, 10**400)], [*row, F(0)]])
    wide = np.array([[1, "1e-4000"], [1, 0]], dtype=np.longdouble)
    with pytest.raises(dp.ParameterError, match="Fractions"):
        dp.verify_channel(wide)


def test_a_claim_that_is_broken_is_told():
    half = dp.TruncatedGeometric(epsilon=1, sensitivity=1, lower=0, upper=5)
    doubled = dp.verify(half, range(6), adjacency=[(0, 2)])  # what was charged is a step of one
    assert not doubled.holds
    assert doubled.epsilon == pytest.approx(2)
    assert "broken" in str(doubled)


def test_geometric_noise_is_tight():
    mechanism = dp.TruncatedGeometric(epsilon=1, sensitivity=1, lower=0, upper=5)
    assert dp.verify(mechanism, range(6)).epsilon == pytest.approx(1, abs=1e-15)


def test_streams_by_quadrature_agree_with_sampling_free_sums():
    """One value: P(above) = P(v + X >= t + Y), whose closed form is known for equal scales."""
    outputs, rows = stream_channel(
        [[0.0], [1.0]], threshold=0.0, threshold_scale=1.0, value_scale=1.0, positives=1
    )
    gap = 1.0  # P(X - Y >= -g) = 1 - e^-g (2 + g)/4 for two unit Laplace laws
    above = 1 - math.exp(-gap) * (2 + gap) / 4
    assert outputs == ((False,), (True,))
    assert rows == pytest.approx(np.array([[0.5, 0.5], [1 - above, above]]), abs=1e-12)


def test_reports_come_as_text_json_and_html(tmp_path):
    verified = dp.verify(dp.RandomizedResponse.two_coins(), [False, True])
    assert "the claim holds" in str(verified)
    assert json.loads(verified.to_json())["facts"]["ε"] == "ln 3 = 1.098612289"
    assert "<table>" in verified.to_html()
    assert verified.plot(tmp_path / "curve.png").stat().st_size > 1000


@pytest.mark.parametrize(
    ("matrix", "says"),
    [
        ([], "at least one"),
        ([[]], "at least one"),
        ([[1, 0], [1]], "same length"),
        ([[F(1, 2), F(1, 4)], [1, 0]], "sums to"),
        ([[F(3, 2), F(-1, 2)], [1, 0]], "not negative"),
        ([[math.nan, 1], [1, 0]], "finite"),
        ([["a", 1], [1, 0]], "number"),
        (7, "rows of numbers"),
        ([[1, 0]], "two inputs"),
        (np.zeros((0, 3)), "rows"),
        (np.array([[math.nan, 1.0], [0.5, 0.5]]), "probabilities"),
        (np.array([[0.6, 0.5], [0.5, 0.5]]), "sums to"),
        (np.array([[-0.5, 1.5], [0.5, 0.5]]), "probabilities"),
        (np.zeros(3), "rows"),
        ([[0.4, 0.7], [0.5, 0.5]], "sums to"),
    ],
)
def test_what_is_no_channel_is_refused(matrix, says):
    with pytest.raises(dp.ParameterError, match=says):
        dp.verify_channel(matrix)


@pytest.mark.parametrize(
    "adjacency", [[], [(0, 5)], [(0, 0)], [0, 1], 7, [("a", "b")], [(0, 1, 0)]]
)
def test_bad_adjacency_is_refused(adjacency):
    with pytest.raises(dp.ParameterError, match="adjacency"):
        dp.verify_channel(COINS, adjacency)


def test_other_bad_input_is_refused():
    verified = dp.verify_channel(COINS)
    for bad in ({}, {"epsilon": 1, "ratio": 2}, {"ratio": F(1, 2)}, {"epsilon": -1}):
        with pytest.raises(dp.ParameterError):
            verified.delta(**bad)
    for bad in (-0.1, 1.1, math.nan):
        with pytest.raises(dp.ParameterError):
            verified.tradeoff(bad)
    with pytest.raises(dp.ParameterError, match="claims nothing"):
        _ = verified.holds
    with pytest.raises(dp.errors.ParameterTypeError, match="no finite channel"):
        dp.verify(dp.Laplace(epsilon=1, sensitivity=1), [0, 1])
    with pytest.raises(dp.errors.ParameterTypeError, match="loss"):
        dp.verify(len, [0, 1])
    with pytest.raises(dp.ParameterError, match="no two neighbours"):
        dp.verify(dp.TruncatedGeometric(epsilon=1, sensitivity=1, lower=0, upper=9), [0, 9])
    for bad in (None, 7, [1, 2], [["a"], [1]]):
        with pytest.raises(dp.ParameterError):
            dp.verify(dp.SparseVector(epsilon=1, threshold=0, sensitivity=1), bad)
    with pytest.raises(dp.ParameterError, match="of one length"):
        dp.verify(dp.SparseVector(epsilon=1, threshold=0, sensitivity=1), [[1], [1, 2]])


def test_floats_that_miss_one_by_rounding_are_read_as_floats():
    thirds = [[1 / 3, 1 / 3, 1 / 3], [0.5, 0.25, 0.25]]
    assert dp.verify_channel(thirds).epsilon == pytest.approx(math.log(1.5))
    assert dp.verify_channel([[0.1] * 10, [0.1] * 10]).ratio == 1
