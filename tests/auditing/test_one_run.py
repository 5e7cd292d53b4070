"""Audits of one run: the theorem against exact laws, its power, and what is refused."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq
from scipy.special import ndtr

import deniable as dp
from chance import FALSE_ALARM
from deniable.auditing.sampled.one_run import _gaussian, _lower, _pointed, _refuted

SURE = 1 - FALSE_ALARM
CANARIES = 1_000


def ideal(mu):
    """Each canary alone with its noise, which is exact."""
    noise = dp.DiscreteGaussian(sigma=1000, sensitivity=1000)

    def train(included):
        return noise.release(np.array(included, dtype=np.int64) * int(1000 * mu))

    return train


def expected_right(mu, canaries, guesses):
    """Of ideal canaries: those beyond the threshold that a share of both laws together exceeds."""
    share = guesses / canaries
    beyond = lambda t: (ndtr(mu / 2 - t) + ndtr(-mu / 2 - t)) / 2 - share / 2  # noqa: E731
    cut = brentq(beyond, -9, 9)
    return guesses * ndtr(mu / 2 - cut) / (ndtr(mu / 2 - cut) + ndtr(-mu / 2 - cut))


@pytest.mark.parametrize(("mu", "share"), [(0.3, 0.40), (1.0, 0.55), (2.0, 0.60)])
def test_ideal_canaries_certify_the_stated_share_of_mu(mu, share):
    guesses = CANARIES // 4
    right = expected_right(mu, CANARIES, guesses)
    below, above = (
        _lower(_gaussian, CANARIES, guesses, count, 0.05)
        for count in (math.floor(right), math.ceil(right))
    )
    assert below + (above - below) * (right % 1) >= share * mu


@pytest.mark.parametrize("mu", [0.1, 0.5, 1.0, 2.5])
@pytest.mark.parametrize("canaries", [1, 2, 7, 40])
def test_true_claims_are_never_refuted_at_the_probability_of_what_was_seen(mu, canaries):
    """Independent canaries, all guessed: the law of right guesses is known."""
    law = stats.binom(canaries, ndtr(mu / 2))
    for right in range(1, canaries + 1):
        alpha = law.sf(right - 1) * (1 - 1e-9)
        assert not _refuted(_gaussian(mu), canaries, canaries, right, alpha)


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
@pytest.mark.parametrize(("canaries", "guesses"), [(2, 2), (8, 4), (40, 10), (200, 50)])
def test_the_same_of_randomised_response_with_guesses_left_out(epsilon, canaries, guesses):
    law = stats.binom(guesses, math.exp(epsilon) / (1 + math.exp(epsilon)))
    for right in range(1, guesses + 1):
        alpha = law.sf(right - 1) * (1 - 1e-9)
        assert not _refuted(_pointed(0.0)(epsilon), canaries, guesses, right, alpha)


@pytest.mark.parametrize("right", [140, 180, 214, 246])
def test_pure_bounds_come_close_to_the_binomial_law(right):
    """Steinke, Nasr & Jagielski 2023, Theorem 5.2, at δ = 0."""

    def excess(epsilon):
        return stats.binom.sf(right - 1, 250, 1 / (1 + math.exp(-epsilon))) - 0.05

    binomial = brentq(excess, -1, 12)
    found = _lower(_pointed(0.0), CANARIES, 250, right, 0.05)
    assert 0.95 * binomial - 0.01 <= found <= binomial


def test_the_more_is_allowed_the_less_is_refuted():
    for family, values in ((_gaussian, [0.1, 0.5, 1]), (_pointed(1e-3), [0.1, 0.5, 1, 3])):
        seen = [_refuted(family(value), 400, 100, 80, 0.05) for value in values]
        assert seen == sorted(seen, reverse=True)


def test_a_fault_is_found_in_one_run_and_its_correct_twin_is_not_accused():
    kept = dp.audit(ideal(0.5), dp.GDP(0.5), confidence=SURE, one_run=True, canaries=4_000)
    assert not kept.violated
    assert kept.lower < 0.5 < kept.ceiling
    loud = dp.audit(ideal(2.5), dp.GDP(0.5), confidence=SURE, one_run=True, canaries=4_000)
    assert loud.violated
    assert 0.5 < loud.lower < 2.5
    loss = dp.DiscreteGaussian(sigma=2000, sensitivity=1000).loss
    assert dp.audit(ideal(2.5), loss, confidence=SURE, one_run=True, canaries=4_000).violated
    for claim in (dp.PureDP(0.5), dp.ApproxDP(0.5, 1e-14)):
        assert dp.audit(ideal(3), claim, confidence=SURE, one_run=True).violated
        assert not dp.audit(ideal(0.05), claim, confidence=SURE, one_run=True).violated


def test_lower_bounds_hold_as_often_as_they_say():
    """At 95 %, of 200 runs at most 30 may exceed: with probability below 1e-9."""
    train = ideal(1)
    bounds = [dp.audit(train, dp.GDP(1), one_run=True, canaries=200).lower for _ in range(200)]
    assert stats.binom.sf(33, 200, 0.05) < FALSE_ALARM
    assert sum(lower > 1 for lower in bounds) <= 33


def test_the_report_states_its_ceiling():
    report = dp.audit(ideal(1), dp.GDP(1), one_run=True, canaries=400)
    text = str(report)
    assert "so many guesses can certify at most" in text
    assert "of 100" in text
    assert report.report.html().startswith("<!doctype html>")
    assert dp.audit(ideal(1), dp.GDP(1), one_run=True, attempt=2).alpha == pytest.approx(0.0125)


def test_what_one_run_cannot_judge_is_refused():
    for wrong in (
        lambda: dp.audit(ideal(1), dp.ZCDP(1), one_run=True),
        lambda: dp.audit(5, dp.GDP(1), one_run=True),
        lambda: dp.audit(ideal(1), dp.GDP(1), [(0, 1)], one_run=True),
        lambda: dp.audit(lambda _: [0.0], dp.GDP(1), one_run=True),
        lambda: dp.audit(lambda coins: ["a"] * len(coins), dp.GDP(1), one_run=True),
        lambda: dp.audit(
            ideal(1), dp.Gaussian(sigma=1, sensitivity=1, relation="replace").loss, one_run=True
        ),
    ):
        with pytest.raises(dp.errors.ParameterTypeError):
            wrong()
    with pytest.raises(dp.ParameterError, match="40 to 100,000"):
        dp.audit(ideal(1), dp.GDP(1), one_run=True, canaries=10)


def test_scores_that_are_none_are_in_the_middle():
    def train(included):
        return [math.nan if place % 2 else float(put) for place, put in enumerate(included)]

    assert dp.audit(train, dp.GDP(0.05), confidence=SURE, one_run=True).violated
    assert not dp.audit(lambda coins: [math.nan] * len(coins), dp.GDP(1), one_run=True).violated
