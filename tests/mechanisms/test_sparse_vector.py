import copy
import math
import os
import pickle
import threading
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy import stats

import deniable as dp
from chance import follows_continuous


def transcript(answers, values, threshold_scale, value_scale) -> float:
    """P(these comparisons with a threshold of 0), by quadrature over the threshold's noise."""
    edges = np.linspace(-60, 60, 1201) * max(threshold_scale, 0.05)
    x, w = np.polynomial.legendre.leggauss(4)
    half = (edges[1] - edges[0]) / 2
    t = (edges[:-1, None] + half * (x + 1)).ravel()
    weights = np.tile(half * w, edges.size - 1)
    density = stats.laplace.pdf(t, scale=threshold_scale)
    for above, value in zip(answers, values, strict=True):
        upper = stats.laplace.sf(t - value, scale=value_scale)
        density = density * (upper if above else 1 - upper)
    return float(weights @ density)


def worst_loss(positives, monotone, threshold_scale, value_scale) -> float:
    """The largest log ratio over transcripts of five questions with c positives, Δ = 1."""
    worst = 0.0
    length = 5
    moves = (0, 1) if monotone else (-1, 1)
    for ones in product((False, True), repeat=length):
        if sum(ones) != positives or not ones[-1]:
            continue
        for shift in product(moves, repeat=length):
            # Each value is where the loss is largest: positives low, negatives high.
            values = [-3.0 if above else 3.0 for above in ones]
            moved = [v + s for v, s in zip(values, shift, strict=True)]
            a = transcript(ones, values, threshold_scale, value_scale)
            b = transcript(ones, moved, threshold_scale, value_scale)
            worst = max(worst, abs(math.log(a / b)))
    return worst


def scales(mechanism: dp.SparseVector) -> tuple[float, float]:
    step = mechanism.lattice.step
    return float(mechanism.threshold_law.scale * step), float(mechanism.value_law.scale * step)


@pytest.mark.parametrize("positives", [1, 2])
@pytest.mark.parametrize("monotone", [False, True])
def test_a_stream_is_private_and_the_published_mistakes_are_not(positives, monotone):
    mechanism = dp.SparseVector(
        epsilon=1, threshold=0, sensitivity=1, positives=positives, monotone=monotone
    )
    threshold_scale, value_scale = scales(mechanism)
    assert worst_loss(positives, monotone, threshold_scale, value_scale) <= 1 + 1e-6
    # Not scaled with the number of positives and the factor two: a published mistake.
    careless = value_scale / (positives if monotone else 2 * positives)
    if careless < value_scale:
        assert worst_loss(positives, monotone, threshold_scale, careless) > 1.2
    # No noise on the threshold: another one.
    assert worst_loss(positives, monotone, 1e-3, value_scale) > worst_loss(
        positives, monotone, threshold_scale, value_scale
    )


def test_the_budget_is_split_at_its_best():
    for positives, monotone, numeric in product((1, 5), (False, True), (False, True)):
        mechanism = dp.SparseVector(
            epsilon=2,
            threshold=0,
            sensitivity=3,
            positives=positives,
            monotone=monotone,
            numeric=numeric,
        )
        first, second, third = mechanism.shares
        assert first + second + third == 2
        assert third == (1 if numeric else 0)
        queries = positives if monotone else 2 * positives
        assert float(second / first) == pytest.approx(queries ** (2 / 3), rel=1e-5)
        threshold_scale, value_scale = scales(mechanism)
        assert threshold_scale == pytest.approx(3 / float(first), rel=1e-9)
        assert value_scale == pytest.approx(queries * 3 / float(second), rel=1e-9)
        assert mechanism.loss == dp.losses.PureLoss(bound=2)


def test_a_stream_ends_after_the_last_positive():
    stream = dp.SparseVector(epsilon=5, threshold=100, sensitivity=1, positives=3).open()
    answers = []
    for value in [0, 0, 10**6, 0, 10**6, 0, 0, 10**6]:
        answers.append(bool(stream.ask(value)))
    assert answers == [False, False, True, False, True, False, False, True]
    assert stream.positives_left == 0
    for _ in range(3):
        with pytest.raises(dp.errors.StreamExhaustedError, match="3 positive answers"):
            stream.ask(0)


def test_many_negative_answers_are_free():
    stream = dp.SparseVector(epsilon=1, threshold=1000, sensitivity=1).open()
    assert not any(stream.ask(0) for _ in range(5000))
    assert stream.ask(10**5)


def test_numbers_come_from_fresh_noise():
    mechanism = dp.SparseVector(epsilon=4, threshold=0, sensitivity=1, positives=2000, numeric=True)
    stream = mechanism.open()
    values = np.array([stream.ask(10**7).value - 10**7 for _ in range(2000)])
    scale = 2000 * 1 / 2
    assert follows_continuous(values, stats.laplace(scale=scale).cdf)
    assert not follows_continuous(values, stats.laplace(scale=3 * scale).cdf)
    assert dp.SparseVector(epsilon=1, threshold=0, sensitivity=1).open().ask(10**6).value is None


def test_the_threshold_is_drawn_once_and_afresh_for_each_stream():
    mechanism = dp.SparseVector(epsilon=0.01, threshold=0, sensitivity=1)
    thresholds = {mechanism.open()._threshold for _ in range(200)}
    assert len(thresholds) == 200


def test_an_open_stream_is_not_copied():
    stream = dp.SparseVector(epsilon=1, threshold=0, sensitivity=1).open()
    for copying in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(dp.ParameterError, match="not copied"):
            copying(stream)


def test_threads_get_no_more_positives_than_were_paid_for():
    stream = dp.SparseVector(epsilon=1, threshold=0, sensitivity=1, positives=50).open()
    given: list[bool] = []

    def work() -> None:
        for _ in range(40):
            try:
                given.append(bool(stream.ask(10**9)))
            except dp.errors.StreamExhaustedError:
                return

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(given) == 50


@pytest.mark.parametrize("bad", [math.nan, math.inf, "1", None, [1], True, 1j])
def test_bad_values_are_refused_and_cost_nothing(bad):
    stream = dp.SparseVector(epsilon=1, threshold=0, sensitivity=1).open()
    with pytest.raises(dp.errors.PrivateValueError):
        stream.ask(bad)
    assert stream.positives_left == 1


@pytest.mark.parametrize(
    "make",
    [
        lambda: dp.SparseVector(epsilon=0, threshold=0, sensitivity=1),
        lambda: dp.SparseVector(epsilon=1, threshold=math.nan, sensitivity=1),
        lambda: dp.SparseVector(epsilon=1, threshold=0, sensitivity=-1),
        lambda: dp.SparseVector(epsilon=1, threshold=0, sensitivity=1, positives=0),
        lambda: dp.SparseVector(epsilon=1, threshold=0, sensitivity=1, positives=1.5),
        lambda: dp.SparseVector(epsilon=1, threshold=0, sensitivity=1, monotone="no"),
        lambda: dp.SparseVector(epsilon=1, threshold=0, sensitivity=1, numeric=1),
        lambda: dp.SparseVector(epsilon=1e-17, threshold=0, sensitivity=1, positives=10**6),
    ],
)
def test_bad_parameters_are_refused(make):
    with pytest.raises(dp.ParameterError):
        make()


def test_the_threshold_is_public_and_exact():
    assert dp.SparseVector(epsilon=1, threshold=0.1, sensitivity=1).threshold == Fraction(1, 10)


def test_a_forked_child_cannot_go_on_with_its_parent_s_stream():
    stream = dp.SparseVector(epsilon=1, threshold=0, sensitivity=1).open()
    pid = os.fork()
    if pid == 0:
        try:
            stream.ask(10**6)
        except dp.errors.StreamExhaustedError:
            os._exit(7)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    assert stream.ask(10**6)


def test_numbers_that_cannot_be_released_are_refused_before_the_stream_opens():
    with pytest.raises(dp.ParameterError):
        dp.SparseVector(epsilon=1, threshold=0, sensitivity=2**935, positives=2**10, numeric=True)
