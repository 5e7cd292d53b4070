import math

import numpy as np
import pytest
from scipy import stats

import deniable as dp
from chance import FALSE_ALARM, plausible_share
from deniable.survey import designs, estimate, estimate_counts
from deniable.survey.compare import difference, homogeneity

COINS = designs.two_coins()


def groups(share, n, repeats, seed):
    people = np.random.default_rng(seed).random((repeats, n)) < share
    sent = COINS.randomize(people.ravel()).reshape(people.shape)
    return [estimate(COINS, reports) for reports in sent]


def test_a_difference_by_hand():
    first = estimate_counts(COINS, {True: 500, False: 500})
    second = estimate_counts(COINS, {True: 400, False: 600})
    found = difference(first, second)
    assert found.difference == pytest.approx(0.2)
    assert found.standard_error == pytest.approx(2 * math.sqrt((0.25 + 0.24) / 1000))
    assert found.z == pytest.approx(0.2 / (2 * math.sqrt(0.45 * 0.55 * 2 / 1000)))
    assert found.p_value == pytest.approx(2 * stats.norm.sf(found.z))
    assert found.low < 0.2 < found.high


def test_differences_cover_and_the_test_holds_its_level():
    """1,000 pairs of groups of 200, one share small; coverage held to 94.5 %."""
    pairs = zip(groups(0.02, 200, 1_000, 1), groups(0.3, 200, 1_000, 2), strict=True)
    hits = sum((d := difference(a, b)).low <= -0.28 <= d.high for a, b in pairs)
    assert stats.binom.cdf(hits, 1_000, 0.945) > FALSE_ALARM
    same = list(zip(groups(0.1, 200, 1_000, 3), groups(0.1, 150, 1_000, 4), strict=True))
    assert plausible_share(sum(difference(a, b).p_value < 0.05 for a, b in same), 1_000, 0.05)
    # And a real difference is seen.
    apart = zip(groups(0.1, 1_000, 50, 5), groups(0.5, 1_000, 50, 6), strict=True)
    assert all(difference(a, b).p_value < 0.01 for a, b in apart)


def test_groups_asked_by_different_designs():
    first = estimate_counts(COINS, {True: 500, False: 500})
    direct = designs.open_question(not_private=True)
    found = difference(first, estimate_counts(direct, {True: 300, False: 700}))
    assert found.difference == pytest.approx(0.2)
    assert found.z == pytest.approx(0.2 / found.standard_error)


def test_groups_in_which_all_reports_are_alike():
    alike = estimate_counts(COINS, {True: 30})
    found = difference(alike, alike)
    assert (found.difference, found.z, found.p_value) == (0, 0, 1)
    assert found.low < 0 < found.high
    assert homogeneity([alike, alike]).p_value == 1
    other = estimate_counts(designs.warner(truth=0.8), {True: 30})
    with pytest.raises(dp.ParameterError, match="alike"):
        homogeneity([alike, other])


def test_groups_with_rare_answers():
    """Where half of the groups have no YES at all, the test still keeps its level."""
    design, made_up = designs.randomized_response(epsilon=5), np.random.default_rng(8)
    rate = 0.02 * float(design.channel.rows[1][1]) + 0.98 * float(design.channel.rows[0][1])
    rejected = 0
    for _ in range(400):
        yes = made_up.binomial(100, rate, 10).tolist()
        ten = [estimate_counts(design, {True: y, False: 100 - y}) for y in yes]
        rejected += homogeneity(ten).p_value < 0.05
    assert 0 < rejected < 400 * 0.05 + 6.2 * math.sqrt(400 * 0.05 * 0.95)


def test_several_groups():
    level = [
        homogeneity(four).p_value
        for four in zip(*(groups(0.4, 300, 1_000, seed) for seed in range(4)), strict=True)
    ]
    assert plausible_share(sum(p < 0.05 for p in level), 1_000, 0.05)
    apart = [groups(share, 3_000, 1, 9)[0] for share in (0.2, 0.5, 0.8)]
    found = homogeneity(apart)
    assert found.degrees == 2
    assert found.p_value < 1e-9
    with pytest.raises(dp.ParameterError, match="two estimates"):
        homogeneity(apart[:1])
    with pytest.raises(dp.ParameterError, match="two estimates"):
        difference(apart[0], [True, False])
