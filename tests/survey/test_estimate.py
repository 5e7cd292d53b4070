"""Estimates and intervals. Checks of coverage fail by chance with probability 1e-9 at most."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy import stats

import deniable as dp
from chance import FALSE_ALARM
from deniable.survey import designs, estimate, estimate_counts

F = Fraction
COINS = designs.two_coins()
SKEWED = designs.from_matrix(
    [[0.7, 0.2, 0.1], [0.15, 0.8, 0.05], [0.2, 0.25, 0.55]], ("a", "b", "c")
)
WIDE = designs.from_matrix(
    [[F(1, 2), F(1, 4), F(1, 4)], [F(1, 4), F(1, 4), F(1, 2)]], (False, True), "lmh"
)


def test_known_answer_of_a_thousand_reports():
    found = estimate_counts(COINS, {True: 400, False: 600})
    assert found.share() == pytest.approx(0.30000000000000004, abs=1e-10)
    assert found.standard_error() == pytest.approx(0.030983866769659335, abs=1e-10)
    assert found.standard_error(divisor="n-1") == pytest.approx(0.03099937033168514, abs=1e-10)
    low, high = found.interval(confidence=0.95, method="wald")
    assert low == pytest.approx(0.23927273702968038, abs=1e-10)
    assert high == pytest.approx(0.3607272629703197, abs=1e-10)


def test_known_answer_of_a_lopsided_die():
    die = designs.forced_response(truth=F(3, 4), yes=F(1, 6), no=F(1, 12))
    found = estimate_counts(die, {True: 350, False: 850})
    assert found.share() == pytest.approx(0.1666666666666667, abs=1e-10)


def test_reports_and_their_counts_say_the_same():
    reports = ["a"] * 5 + ["b"] * 3 + ["c"] * 2
    one, other = estimate(SKEWED, reports), estimate_counts(SKEWED, {"a": 5, "b": 3, "c": 2})
    assert np.array_equal(one.shares, other.shares)
    assert np.array_equal(one.covariance, other.covariance)
    assert one.n == other.n == 10
    assert estimate(SKEWED, np.array(reports)).counts == (5, 3, 2)


@pytest.mark.parametrize("design", [COINS, SKEWED, WIDE], ids=lambda d: str(d.answers))
def test_shares_and_variances_are_unbiased(design):
    """Over every possible survey of three people: the mean estimate, and its true covariance."""
    truth = np.arange(1, len(design.answers) + 1) / sum(range(1, len(design.answers) + 1))
    chance = truth @ design.matrix
    mean, square, stated = 0.0, 0.0, 0.0
    for reports in product(range(len(design.reports)), repeat=3):
        p = math.prod(chance[r] for r in reports)
        found = estimate(design, [design.reports[r] for r in reports])
        mean = mean + p * found.shares
        square = square + p * np.outer(found.shares, found.shares)
        stated = stated + p * found.covariance * 3 / 2
    assert mean == pytest.approx(truth, abs=1e-13)
    assert stated == pytest.approx(square - np.outer(mean, mean), abs=1e-13)


def test_the_covariance_is_that_of_the_inverse_channel():
    counts = np.array([50, 30, 20])
    found = estimate_counts(SKEWED, dict(zip("abc", counts.tolist(), strict=True)))
    seen = counts / 100
    spread = (np.diag(seen) - np.outer(seen, seen)) / 100
    assert found.covariance == pytest.approx(SKEWED.decoder @ spread @ SKEWED.decoder.T, abs=1e-15)
    assert found.shares.sum() == pytest.approx(1)


def coverage(design, n, share, **options):
    """The exact probability that the interval holds the share, over all counts of YES."""
    p = float(design.channel.probability(design.reports[1], True)) * share
    p += float(design.channel.probability(design.reports[1], False)) * (1 - share)
    total = 0.0
    for yes in range(n + 1):
        counts = {design.reports[1]: yes, design.reports[0]: n - yes}
        low, high = estimate_counts(design, counts).interval(**options)
        total += stats.binom.pmf(yes, n, p) * (low - 1e-12 <= share <= high + 1e-12)
    return total


YES_NO = [
    COINS,
    designs.randomized_response(epsilon=5),
    designs.forced_response(truth=F(3, 4), yes=F(1, 6), no=F(1, 12)),
    designs.crosswise(prevalence=F(1, 4)),
    designs.triangular(prevalence=F(1, 10), not_private=True),
]


@pytest.mark.parametrize("design", YES_NO, ids=lambda d: f"{d.method} {d.epsilon:.2g}")
@pytest.mark.parametrize("share", [0, 0.01, 0.05, 0.5, 0.97, 1])
def test_the_default_interval_never_covers_too_seldom(design, share):
    assert all(coverage(design, n, share) >= 0.95 - 1e-12 for n in (1, 10, 60))
    assert coverage(design, 30, share, confidence=0.5) >= 0.5 - 1e-12


def test_the_textbook_interval_does():
    rare = designs.randomized_response(epsilon=5)
    assert coverage(rare, 60, 0.01, method="wald") == pytest.approx(0.632, abs=1e-3)
    assert coverage(rare, 60, 0.01, method="score") > 0.92


def test_the_score_interval_of_two_values_is_wilsons():
    found = estimate_counts(COINS, {True: 30, False: 70})
    seen = stats.binomtest(30, 100).proportion_ci(0.95, method="wilson")
    low, high = found.interval(method="score")
    assert low == pytest.approx((seen.low - 0.25) / 0.5, abs=1e-12)
    assert high == pytest.approx((seen.high - 0.25) / 0.5, abs=1e-12)


def often_enough(hits: int, trials: int, nominal: float = 0.95) -> bool:
    """Whether so many hits are plausible if each comes with the nominal probability or more."""
    return bool(stats.binom.cdf(hits, trials, nominal) > FALSE_ALARM)


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5, 0.95])
@pytest.mark.parametrize(
    "design", [COINS, designs.randomized_response(epsilon=3)], ids=lambda d: d.method
)
def test_two_thousand_surveys_cover(design, share):
    """From people to reports to interval, by the client itself; 300 people each."""
    people = np.random.default_rng(11).random((2_000, 300)) < share
    surveys = design.randomize(people.ravel()).reshape(people.shape)
    ends = [estimate(design, survey).interval() for survey in surveys]
    hits = sum(low <= share <= high for low, high in ends)
    assert often_enough(hits, 2_000)
    # Intervals of half the width would be noticed.
    narrow = sum(abs(share - (a + b) / 2) <= (b - a) / 4 for a, b in ends)
    assert not often_enough(narrow, 2_000)


@pytest.mark.parametrize("shares", [(0.02, 0.03, 0.95), (0.3, 0.3, 0.4)])
def test_two_thousand_surveys_of_many_valued_reports_cover(shares):
    """The score interval is approximate: it is held to 94.5 %."""
    truth = np.random.default_rng(12).choice(3, size=(2_000, 400), p=shares)
    sent = SKEWED.randomize(np.array(["a", "b", "c"])[truth.ravel()]).reshape(truth.shape)
    surveys = [estimate(SKEWED, survey) for survey in sent]
    for answer, share in zip("abc", shares, strict=True):
        assert surveys[0].method(answer) == "score"
        ends = [survey.interval(answer) for survey in surveys]
        assert often_enough(sum(low <= share <= high for low, high in ends), 2_000, 0.945)
        narrow = sum(abs(share - (a + b) / 2) <= (b - a) / 4 for a, b in ends)
        assert not often_enough(narrow, 2_000, 0.945)


def test_estimates_outside_are_kept_and_cut_only_on_request():
    found = estimate_counts(COINS, {False: 100, True: 5})
    assert found.share() < 0
    assert found.interval()[0] < 0
    shown = found.clipped()
    assert (shown.share, shown.low) == (0, 0)
    assert shown.changed
    assert shown.unclipped == found.share()
    assert not estimate_counts(COINS, {False: 50, True: 50}).clipped().changed


def test_all_answers_alike_still_have_an_interval():
    for design, report in [(COINS, True), (SKEWED, "a"), (WIDE, "m")]:
        found = estimate(design, [report] * 50)
        assert found.standard_error(design.answers[0]) == pytest.approx(0, abs=1e-12)
        low, high = found.interval(design.answers[0])
        assert high - low > 0.05


def test_one_report_is_enough_for_an_estimate_but_not_for_its_unbiased_error():
    found = estimate(COINS, [True])
    assert found.share() == 1.5
    with pytest.raises(dp.ParameterError, match="two reports"):
        found.standard_error(divisor="n-1")


def test_tiny_epsilon_gives_a_huge_but_finite_error():
    found = estimate_counts(designs.randomized_response(epsilon=1e-9), {True: 60, False: 40})
    low, high = found.interval()
    assert math.isfinite(low)
    assert math.isfinite(high)
    assert high - low > 1e7


def test_counts_beyond_64_bits_are_added_exactly():
    counts = dict.fromkeys("abcde", 10**18)
    five = designs.randomized_response(epsilon=1, categories="abcde")
    found = estimate_counts(five, counts | {"a": 6 * 10**17})
    assert found.n == 46 * 10**17
    many = designs.randomized_response(epsilon=1, categories=range(20))
    assert estimate_counts(many, dict.fromkeys(range(20), 10**18)).share(0) == pytest.approx(0.05)


@pytest.mark.parametrize(
    "reports",
    [[], None, 5, "abc", ["yes"], [True, None], [True, 2], [True, math.nan], [[True]], [True, "1"]],
)
def test_malformed_reports_are_refused(reports):
    with pytest.raises(dp.ParameterError, match="reports"):
        estimate(COINS, reports)


@pytest.mark.parametrize(
    "counts",
    [{}, {True: 0}, {True: -1}, {True: 1.5}, {"yes": 3}, [3, 4], {True: True}, {True: 10**19}],
)
def test_malformed_counts_are_refused(counts):
    with pytest.raises(dp.ParameterError, match="counts"):
        estimate_counts(COINS, counts)


def test_other_bad_arguments_are_refused():
    found = estimate_counts(COINS, {True: 4, False: 6})
    with pytest.raises(dp.errors.ParameterTypeError, match="Design"):
        estimate("two coins", [True])
    with pytest.raises(dp.ParameterError, match="one of"):
        found.share("maybe")
    with pytest.raises(dp.ParameterError, match="divisor"):
        found.standard_error(divisor="n+1")
    with pytest.raises(dp.ParameterError, match="method"):
        found.interval(method="bayes")
    with pytest.raises(dp.ParameterError, match="confidence"):
        found.interval(confidence=1)
    with pytest.raises(dp.ParameterError, match="score"):
        estimate(SKEWED, ["a", "b"]).interval("a", method="exact")
