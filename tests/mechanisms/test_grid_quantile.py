"""Quantiles on a grid: every sentence of the guarantee, by exact laws and by draws."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2

import deniable as dp
from chance import FALSE_ALARM
from deniable.mechanisms.grid_quantile import GridQuantile
from deniable.privacy.accountants import zcdp
from deniable.privacy.losses.generic import ConcentratedLoss, PureLoss

SHARES = [Fraction(0), Fraction(1, 10), Fraction(1, 2), Fraction(9, 10), Fraction(1)]


def law(mechanism, weights):
    rate = float(mechanism.rate / mechanism.share.denominator)
    logs = np.array([rate * score for score in mechanism.scores(weights)])
    logs -= logs.max()
    chances = np.exp(logs)
    if mechanism.prior is not None:
        chances *= np.array(mechanism.prior, dtype=float)
    return chances / chances.sum()


def neighbours(cells, most):
    """Weights of a group without a unit, and with it: all that small numbers make."""
    for base in itertools.product(range(3), repeat=cells):
        for unit in itertools.product(range(most + 1), repeat=cells):
            if 0 < sum(unit) <= most:
                yield base, tuple(b + u for b, u in zip(base, unit, strict=True)), sum(unit)


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize(("offset", "ends"), [(0, False), (1, False), (-2, True), (2, True)])
def test_one_choice_has_the_range_that_is_charged(share, offset, ends):
    """Log ratios of a unit of weight w differ by 2·η·max(share, 1 - share)·w at most."""
    mechanism = GridQuantile(epsilon=1, share=share, offset=offset, bound=2, cells=3, ends=ends)
    reach = 2 * float(mechanism.rate) * float(max(share, 1 - share))
    widest = 0.0
    for before, after, weight in neighbours(3, 2):
        ratios = np.log(law(mechanism, after)) - np.log(law(mechanism, before))
        assert np.ptp(ratios) <= reach * weight * (1 + 1e-12)
        assert np.abs(ratios).max() <= reach * weight * (1 + 1e-12)
        widest = max(widest, np.ptp(ratios) / (reach * weight))
    assert widest > 0.4  # power: half of it would not do


def test_a_prior_moves_no_range_and_is_drawn_by():
    """Of the same cells, however unlike before the data are looked at."""
    prior = (1 << 40, 3, 700)
    mechanism = GridQuantile(epsilon=1, share=1, offset=-1, bound=2, cells=3, prior=prior)
    reach = 2 * float(mechanism.rate)
    for before, after, weight in neighbours(3, 2):
        ratios = np.log(law(mechanism, after)) - np.log(law(mechanism, before))
        assert np.ptp(ratios) <= reach * weight * (1 + 1e-12)
    even = GridQuantile(epsilon=1, share=1, offset=-1, bound=2, cells=3, prior=(1, 8, 1))
    weights, draws = [4, 4, 4], 20_000
    counts, chances = Counter(even.release([weights] * draws)), law(even, weights)
    expected = chances * draws
    found = sum((counts[cell] - expected[cell]) ** 2 / expected[cell] for cell in range(3))
    assert found < chi2.isf(FALSE_ALARM, 2)
    with pytest.raises(dp.ParameterError, match="prior"):
        GridQuantile(epsilon=1, share=1, bound=2, cells=3, prior=(1, 2))
    with pytest.raises(dp.ParameterError, match="prior"):
        GridQuantile(epsilon=1, share=1, bound=2, cells=3, prior=(1, 2, 1 << 62))


@pytest.mark.parametrize("share", SHARES)
def test_all_groups_together_are_within_epsilon_and_rho(share):
    """A unit of weights 1 and 2 in two groups: |w|₁ = 3, |w|₂² = 5."""
    pure = GridQuantile(epsilon=1, share=share, bound=3, cells=3)
    dense = GridQuantile(rho=Fraction(1, 5), share=share, bound=3, cells=3)
    for (before, after, _), (other, more, _) in zip(
        [n for n in neighbours(3, 1) if n[2] == 1][::7],
        [n for n in neighbours(3, 2) if n[2] == 2][::23],
        strict=False,
    ):
        one = [(law(pure, before), law(pure, after)), (law(pure, other), law(pure, more))]
        worst = sum(np.abs(np.log(p) - np.log(q)).max() for p, q in one)
        assert worst <= 1 + 1e-12
        two = [(law(dense, before), law(dense, after)), (law(dense, other), law(dense, more))]
        for order in (1.5, 2.0, 8.0, 32.0):
            for flip in (1, -1):
                divergence = sum(_renyi(*pair[::flip], order) for pair in two)
                assert divergence <= float(dense.rho) * order * (1 + 1e-12)


def _renyi(p, q, order):
    return math.log(float((p**order * q ** (1 - order)).sum())) / (order - 1)


def test_what_is_drawn_follows_the_law():
    mechanism = GridQuantile(rho=Fraction(1, 50), share=Fraction(1, 2), bound=4, cells=5)
    weights, draws = [3, 0, 5, 1, 2], 20_000
    counts = Counter(mechanism.release([weights] * draws))
    chances = law(mechanism, weights)
    expected = chances * draws
    found = np.array([counts[cell] for cell in range(5)])
    statistic = float(((found - expected) ** 2 / expected).sum())
    limit = 60.0  # P(chi² with 4 degrees > 60) < 1e-11
    assert FALSE_ALARM >= 1e-11
    assert statistic < limit
    wrong = law(GridQuantile(rho=Fraction(1, 2), share=Fraction(1, 2), bound=4, cells=5), weights)
    assert float(((found - wrong * draws) ** 2 / (wrong * draws)).sum()) > limit


def test_losses_are_what_was_asked_for():
    assert GridQuantile(epsilon=1, share=0.5, bound=3, cells=2).loss == PureLoss(bound=Fraction(1))
    dense = GridQuantile(rho=1, share=0.5, bound=3, cells=2).loss
    assert dense == ConcentratedLoss(bound=Fraction(1))
    assert dense.price.rho == 1
    assert dense.group(2).price.rho == 4
    assert dense.epsilon(delta=1e-6) == pytest.approx(zcdp.epsilon(1.0, 1e-6), rel=1e-9)


def test_a_group_without_weight_gives_any_cell():
    mechanism = GridQuantile(rho=1, share=0.5, bound=1, cells=3)
    assert set(mechanism.release([[0, 0, 0]] * 200)) == {0, 1, 2}


def test_ranks_are_missed_no_farther_than_is_said():
    mechanism = GridQuantile(rho=1, share=0.5, bound=1, cells=101)
    missed = mechanism.rank_error(confidence=0.95)
    drawn = mechanism.release([[1] * 101] * 2_000)
    assert sum(abs(cell - 50) > missed + 1 for cell in drawn) < 2_000 * 0.05 + 6 * 10


def test_wide_weights_do_not_wrap():
    heavy = [1 << 60, 1 << 60, 0, 1 << 61]
    mechanism = GridQuantile(rho=1, share=Fraction(1, 3), bound=1, cells=4)
    assert mechanism.release([heavy]) == [1]


@pytest.mark.parametrize(
    "given",
    [
        {"share": -0.1},
        {"share": 1.1},
        {"share": Fraction(1, 3_000_001)},
        {"bound": 0},
        {"cells": 0},
        {"offset": 0.5},
        {"rho": 0},
    ],
)
def test_bad_parameters_are_refused(given):
    with pytest.raises(dp.ParameterError):
        GridQuantile(**{"rho": 1, "share": 0.5, "bound": 1, "cells": 3, **given})


@pytest.mark.parametrize("value", [[], [[1, 2]], [[1, -1, 0]], "x", None])
def test_bad_weights_are_refused_without_a_word_about_them(value):
    with pytest.raises(dp.errors.PrivateValueError):
        GridQuantile(rho=1, share=0.5, bound=1, cells=3).release(value)
