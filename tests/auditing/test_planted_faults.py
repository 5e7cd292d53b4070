"""Faults that the audit must find, and correct mechanisms of which it must say nothing."""

import numpy as np
import pytest
from scipy import stats

import deniable as dp
from auditing.faults import CORRECT, FAULTS, ONE, audited
from chance import FALSE_ALARM

MANY, ALARMS = 50, 400


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(name):
    """A run misses with a chance below 1e-3, three in a row with one below FALSE_ALARM."""
    assert any(audited(FAULTS[name]).violated for _ in range(3))


@pytest.mark.soak
@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found_in_nine_of_ten_runs(name):
    reports = [audited(FAULTS[name]) for _ in range(MANY)]
    found = sum(report.violated for report in reports)
    print(
        f"{name}: {found} of {MANY}, by { ({r.witness and r.witness.strategy for r in reports}) }"
    )
    assert found >= 0.9 * MANY


@pytest.mark.soak
@pytest.mark.parametrize("name", CORRECT)
def test_a_correct_mechanism_is_seldom_accused(name):
    alarms = sum(audited(CORRECT[name], n=2_000).violated for _ in range(ALARMS))
    print(f"{name}: {alarms} false alarms in {ALARMS}")
    assert alarms <= 0.05 * ALARMS


@pytest.mark.parametrize("name", CORRECT)
def test_a_correct_mechanism_is_not_accused_at_a_high_confidence(name):
    planted = CORRECT[name]
    report = dp.audit(
        planted.mechanism, planted.claim, planted.pairs, n=4_000, confidence=1 - FALSE_ALARM
    )
    assert not report.violated
    assert report.verdict == "no violation found"


def test_numpy_noise_is_found_within_a_thousand_calls():
    """By its low bits, and by what its children repeat."""
    generator = np.random.default_rng()

    def laplace(value: float) -> float:
        return value + generator.laplace()

    assert dp.audit(laplace, ONE, [(0.0, 1.0)], n=1_000).violated


def test_low_bits_alone_are_found_within_a_thousand_calls():
    def laplace(value: float) -> float:
        return value + float(np.random.default_rng().laplace())

    report = dp.audit(laplace, ONE, [(0.0, 1.0)], n=1_000)
    assert report.violated
    assert report.witness is not None
    assert "lowest set bit" in report.witness.event


def test_choosing_and_testing_on_the_same_calls_would_not_be_sound():
    """Why there are two halves: the best of many events exceeds its level on the data it is of."""
    rng = np.random.default_rng(5)
    alarms = 0
    for _ in range(60):
        here, there = rng.normal(size=(2, 500))
        cuts = np.quantile(np.concatenate([here, there]), np.linspace(0.01, 0.99, 99))
        p_values = [
            stats.fisher_exact(
                [[(here > c).sum(), (here <= c).sum()], [(there > c).sum(), (there <= c).sum()]]
            ).pvalue
            for c in cuts
        ]
        alarms += min(p_values) < 0.05
    assert alarms > 10  # 3 would be due at the level that each test states
