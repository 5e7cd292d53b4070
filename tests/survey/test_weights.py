import math

import numpy as np
import pytest
from scipy import stats

import deniable as dp
from chance import FALSE_ALARM
from deniable.survey import designs, estimate

COINS = designs.two_coins()
REPORTS = [True, False, True, True, False, False, True, False]
WEIGHTS = [1.0, 2.0, 0.5, 3.0, 1.0, 1.5, 2.0, 1.0]


def test_weighted_shares_and_errors_by_hand():
    w = np.array(WEIGHTS) / sum(WEIGHTS)
    z = np.where(REPORTS, 1.5, -0.5)
    share = float(w @ z)
    error = math.sqrt(8 / 7 * float(w**2 @ (z - share) ** 2))
    found = estimate(COINS, REPORTS, weights=WEIGHTS)
    assert found.share() == pytest.approx(share, abs=1e-14)
    assert found.standard_error() == pytest.approx(error, abs=1e-14)
    assert found.weighting.effective == pytest.approx(
        sum(WEIGHTS) ** 2 / sum(x * x for x in WEIGHTS)
    )
    assert found.weighting.design_effect == pytest.approx(8 / found.weighting.effective)


def test_equal_weights_change_nothing_and_scale_does_not_matter():
    plain, weighted = estimate(COINS, REPORTS), estimate(COINS, REPORTS, weights=[7] * 8)
    assert weighted.share() == pytest.approx(plain.share(), abs=1e-14)
    assert weighted.standard_error() == pytest.approx(
        plain.standard_error(divisor="n-1"), abs=1e-14
    )
    assert weighted.weighting.effective == pytest.approx(8)
    big = estimate(COINS, REPORTS, weights=[w * 1e307 for w in WEIGHTS])
    small = estimate(COINS, REPORTS, weights=WEIGHTS)
    assert big.interval() == pytest.approx(small.interval(), abs=1e-12)


def test_respondents_of_weight_zero_do_not_count():
    more = estimate(COINS, [*REPORTS, True, True], weights=[*WEIGHTS, 0, 0])
    less = estimate(COINS, REPORTS, weights=WEIGHTS)
    assert more.n == less.n == 8
    assert more.share() == pytest.approx(less.share(), abs=1e-14)
    assert more.standard_error() == pytest.approx(less.standard_error(), abs=1e-14)


def test_weights_undo_a_skewed_sample():
    """Two halves of a population, 10 % and 50 %, one drawn four times as often.

    Each interval holds 30 % with probability 0.945 at least (1e-9 to fail by chance); without the
    weights it does not.
    """
    rng = np.random.default_rng(8)
    second = rng.random((1_000, 600)) < 0.8
    people = rng.random(second.shape) < np.where(second, 0.5, 0.1)
    reports = COINS.randomize(people.ravel()).reshape(people.shape)
    weights = np.where(second, 1.0, 4.0)
    hits = naive = 0
    for sent, w in zip(reports, weights, strict=True):
        low, high = estimate(COINS, sent, weights=w).interval()
        hits += low <= 0.3 <= high
        low, high = estimate(COINS, sent).interval()
        naive += low <= 0.3 <= high
    assert stats.binom.cdf(hits, 1_000, 0.945) > FALSE_ALARM
    assert stats.binom.cdf(naive, 1_000, 0.945) < FALSE_ALARM


def test_weighted_reports_all_alike_have_an_interval():
    low, high = estimate(COINS, [True] * 20, weights=[1, 2] * 10).interval()
    assert high - low > 0.1


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ([1] * 7, "one for each report"),
        ([-1] + [1] * 7, "0 or more"),
        ([math.nan] + [1] * 7, "finite"),
        ([math.inf] + [1] * 7, "finite"),
        ([0] * 8, "two or more"),
        ([1] + [0] * 7, "two or more"),
        (["a"] * 8, "numbers"),
        ([[1]] * 8, "list of numbers"),
        (3, "list of numbers"),
    ],
)
def test_bad_weights_are_refused(weights, said):
    with pytest.raises(dp.ParameterError, match=said):
        estimate(COINS, REPORTS, weights=weights)


def test_an_exact_interval_is_not_claimed_for_weights():
    found = estimate(COINS, REPORTS, weights=WEIGHTS)
    assert found.method() == "score"
    with pytest.raises(dp.ParameterError, match="without weights"):
        found.interval(method="exact")
