"""Randomised response is one thing: the same estimate and the same exact interval in every room."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import deniable as dp
from deniable import survey
from deniable.mechanisms.inverse import left_inverse
from deniable.survey import designs, estimate_counts

LN_3 = 1.0986122886681098


def test_the_namespace_has_the_estimate():
    found = dp.survey.estimate(designs.two_coins(), [True] * 12 + [False] * 28)
    assert (
        found.interval()
        == dp.survey.estimate_counts(found.design, {True: 12, False: 28}).interval()
    )


def test_twelve_yes_of_forty_have_one_answer():
    reports = [True] * 12 + [False] * 28
    mechanism = dp.RandomizedResponse.two_coins().estimate(reports)
    design = estimate_counts(designs.two_coins(), {True: 12, False: 28})
    kary = survey.KaryResponse(k=2, epsilon=LN_3)
    protocol = kary.aggregate(np.array(reports, dtype=int)).estimate()
    assert design.interval() == pytest.approx((-0.169, 0.431), abs=5e-4)
    assert mechanism.interval() == design.interval()
    assert protocol.interval(1) == pytest.approx(design.interval(), abs=1e-12)
    assert mechanism.share() == design.share() == pytest.approx(protocol.share(1), abs=1e-12)
    errors = mechanism.standard_error(), design.standard_error(), protocol.standard_error(1)
    assert errors == pytest.approx([errors[0]] * 3, abs=1e-12)


def test_categories_have_one_answer_too():
    counts = [3, 30, 7]
    mechanism = dp.RandomizedResponse(epsilon=1, categories="abc")
    one = mechanism.estimate(["a"] * 3 + ["b"] * 30 + ["c"] * 7)
    protocol = survey.KaryResponse(k=3, epsilon=1)
    other = protocol.aggregate(np.repeat([0, 1, 2], counts)).estimate()
    low, high = other.intervals()
    for place, label in enumerate("abc"):
        assert one.method(label) == "exact"
        assert one.share(label) == pytest.approx(other.share(place), abs=1e-12)
        assert one.interval(label) == pytest.approx((low[place], high[place]), abs=1e-12)
        assert other.interval(place) == (low[place], high[place])


def binomial_coverage(n, own, other, share, ends):
    """The exact probability that the interval of a count holds the share."""
    law = stats.binom.pmf(np.arange(n + 1), n, share * own + (1 - share) * other)
    low, high = ends
    return float(law[(low - 1e-12 <= share) & (share <= high + 1e-12)].sum())


@pytest.mark.parametrize(
    "protocol",
    [
        survey.KaryResponse(k=2, epsilon=LN_3),
        survey.KaryResponse(k=9, epsilon=2),
        survey.UnaryEncoding(k=5, epsilon=1),
        survey.SubsetSelection(k=7, epsilon=3),
        survey.LocalHashing(k=50, epsilon=4),
        survey.HadamardResponse(k=6, epsilon=1, blocks=1),
        survey.Rappor(k=4, epsilon=2, permanent=4),
        survey.LastingResponse(k=4, epsilon=2, permanent=4),
        survey.BitFlip(k=8, epsilon=4, bits=2),
    ],
    ids=lambda each: each.kind,
)
@pytest.mark.parametrize("share", [0.0, 0.01, 0.05, 0.5, 1.0])
def test_every_interval_of_one_count_covers_at_every_size(protocol, share):
    """Over all counts: the coverage of the normal interval falls to 0.937 and below."""
    from deniable.survey.shares import Spoken

    for n in (1, 40, 60):
        spoken = Spoken(np.arange(n + 1), n, protocol.support)
        assert binomial_coverage(n, *protocol.support, share, spoken.interval(0.95)) >= 0.95 - 1e-9
        assert binomial_coverage(n, *protocol.support, share, spoken.interval(0.5)) >= 0.5 - 1e-9


def test_the_normal_interval_does_not():
    n, share, p = 40, 0.05, 0.25 + 0.05 / 2
    seen = np.arange(n + 1) / n
    errors = 1.959964 * 2 * np.sqrt(seen * (1 - seen) / n)
    ends = 2 * seen - 0.5 - errors, 2 * seen - 0.5 + errors
    covered = stats.binom.pmf(np.arange(n + 1), n, p)[(ends[0] <= share) & (share <= ends[1])]
    assert covered.sum() == pytest.approx(0.937, abs=1e-3)


@pytest.mark.parametrize("make", [survey.KaryResponse, survey.UnaryEncoding, survey.LocalHashing])
def test_protocols_say_what_their_intervals_rest_on(make):
    protocol = make(k=6, epsilon=1)
    estimate = protocol.aggregate(protocol.randomize(np.arange(60) % 6)).estimate()
    assert estimate.spoken is not None
    some = estimate.among([4, 1])
    assert some.candidates == (4, 1)
    assert some.interval(1) == estimate.interval(1)
    assert some.share(4) == estimate.share(4)


def test_of_several_counts_intervals_are_normal_and_say_so():
    for protocol in (
        survey.HadamardResponse(k=9, epsilon=3, blocks=4),
        survey.HadamardSketch(k=9, epsilon=3, hashes=8, width=16),
    ):
        found = protocol.aggregate(protocol.randomize(np.arange(90) % 9)).estimate()
        assert found.spoken is None
        low, high = found.intervals(confidence=0.9)
        assert (high - low) / 2 == pytest.approx(1.6448536 * found.standard_errors, rel=1e-6)


def test_one_block_of_hadamard_response_counts_sets():
    protocol = survey.HadamardResponse(k=6, epsilon=1, blocks=1)
    reports = protocol.randomize(np.arange(600) % 6)
    found = protocol.aggregate(reports).estimate()
    inside = protocol._sets(np.arange(6))[:, reports].sum(axis=1)
    assert found.spoken.counts.tolist() == inside.tolist()


@pytest.mark.parametrize("k", [2, 3, 40])
def test_the_inverse_of_symmetric_channels_is_exact(k):
    rows = dp.RandomizedResponse(epsilon=1, categories=range(k)).rows
    inverse = left_inverse(rows)
    for i in range(k):
        for j in range(k):
            assert sum(w * p for w, p in zip(inverse[i], rows[j], strict=True)) == (i == j)


def test_many_categories_and_lopsided_ones_are_estimated():
    many = dp.RandomizedResponse(epsilon=9, categories=range(100))
    found = many.estimate(many.release([*range(100)] * 3))
    assert found.n == 300
    assert math.isclose(found.shares.sum(), 1)
    assert found.method(7) == "exact"
    lopsided = dp.RandomizedResponse.forced(
        truth=Fraction(3, 4), yes=Fraction(1, 6), no=Fraction(1, 12)
    )
    assert lopsided.estimate([True] * 35 + [False] * 85).method() == "exact"


def test_reports_that_are_none_are_refused_whole():
    coins = dp.RandomizedResponse.two_coins()
    for reports in (["maybe"], [], None, [[True]], "ab"):
        with pytest.raises(dp.ParameterError, match="reports"):
            coins.estimate(reports)
