"""Standard errors and intervals where they are hardest: rare outputs, heavy values, few people."""

import math
from fractions import Fraction

import numpy as np
import pytest

import deniable as dp
from deniable import survey
from deniable.survey import designs, estimate, estimate_counts, sentences
from deniable.survey.compliance import adjusted_share
from deniable.survey.regression import linear_regression, regression_on_reports
from deniable.survey.two_samples import TwoSamples
from deniable.survey.windows import Window

MADE_UP = np.random.default_rng(31)


def covers_often(hits, trials, least):
    """Whether a coverage of `least` is compatible with these hits, at one false alarm in 1e9."""
    return hits / trials > least - 6.0 * math.sqrt(least * (1 - least) / trials)


@pytest.mark.parametrize("make", [survey.CountMeanSketch, survey.HadamardSketch])
def test_candidates_of_a_sketch_have_the_errors_of_collisions_with_all_others(make):
    """Everybody holds another value than the candidate, which collides with it or does not."""
    z = []
    for salt in range(60):
        sketch = make(k=1000, epsilon=6, hashes=8, width=32, salt=str(salt))
        tally = sketch.aggregate(sketch.randomize(np.zeros(3000, int)))
        some, everything = sketch.estimate(tally, [7]), tally.estimate()
        assert some.standard_error(7) == everything.standard_error(7)
        z.append(some.share(7) / some.standard_error(7))
    assert covers_often((np.abs(z) < 1.96).sum(), 60, 0.93)


@pytest.mark.parametrize("make", [survey.CountMeanSketch, survey.HadamardSketch])
@pytest.mark.parametrize("heavy", [0.0, 0.5, 1.0])
def test_a_sketch_knows_its_sum_of_squared_shares(make, heavy):
    n, wanted, found = 20_000, heavy**2 + (1 - heavy) ** 2 / 20_000, []
    for salt in range(12):
        sketch = make(k=10**6, epsilon=4, hashes=16, width=64, salt=str(salt))
        people = np.where(np.arange(n) < heavy * n, 5, np.arange(n) + 10)
        found.append(sketch._squares(sketch.aggregate(sketch.randomize(people))))
    assert all(wanted - 0.02 < each < wanted + 0.03 + 0.1 * wanted for each in found)


def test_sums_of_neighbouring_shares_have_honest_errors():
    """Functions of which only pairs fall independently give a spread of 1.6 errors here."""
    tree, z = survey.Hierarchy(k=4096, epsilon=4, branching=64), []
    for _ in range(100):
        found = tree.aggregate(tree.randomize(np.full(600, 352)))
        share, error = found.range(321, 383)
        z.append((share - 1) / error)
    assert np.std(z) < 1.0 + 6.2 / math.sqrt(2 * 100) * 0.8
    assert abs(np.mean(z)) < 6.2 / math.sqrt(100)


@pytest.mark.parametrize(
    ("make", "epsilon"),
    [(survey.PiecewiseMean, 8), (survey.PiecewiseMean, 12), (survey.HybridMean, 8)],
)
def test_far_outputs_that_did_not_come_in_are_allowed_for(make, epsilon):
    protocol, hits = make(epsilon=epsilon, bounds=(0, 100)), 0
    for _ in range(200):
        found = protocol.aggregate(protocol.randomize(np.zeros(60))).estimate()
        low, high = found.interval()
        hits += low <= 0 <= high
    assert covers_often(hits, 200, 0.95)


def test_the_least_spread_is_that_of_the_channel_and_convex():
    for window in (Window(Fraction(1), 7, 3), Window(Fraction(2), 16, 40)):
        channel, (slope, offset) = window.channel(range(window.steps + 1)), window.line
        spreads = []
        for start in channel.inputs:
            parts = [slope * y + offset for y in channel.outputs]
            law = channel.row(start)
            mean = sum(p * x for p, x in zip(law, parts, strict=True))
            spreads.append(sum(p * x * x for p, x in zip(law, parts, strict=True)) - mean**2)
            assert window.spread(Fraction(start, window.steps)) == spreads[-1]
        assert all(
            a + c >= 2 * b for a, b, c in zip(spreads, spreads[1:], spreads[2:], strict=False)
        )


def test_weights_never_pretend_more_people_than_there_are():
    design = designs.randomized_response(epsilon=5)
    rate = 0.02 * float(design.channel.rows[1][1]) + 0.98 * float(design.channel.rows[0][1])
    hits = 0
    for _ in range(400):
        weights = np.exp(MADE_UP.normal(size=200))
        found = estimate(design, MADE_UP.random(200) < rate, weights=weights)
        assert found.effective_size() <= found.weighting.effective <= 200
        low, high = found.interval()
        hits += low <= 0.02 <= high
    assert covers_often(hits, 400, 0.95)


def test_shares_of_candidates_are_asked_for_by_category():
    protocol = survey.LocalHashing(k=1000, epsilon=6)
    reports = protocol.randomize([1] * 900 + [0] * 100)
    found = protocol.aggregate(reports, candidates=[1, 0]).estimate()
    assert found.candidates == (1, 0)
    assert found.share(1) == found.shares[0]
    assert found.share(0) < 0.5 < found.share(1)
    with pytest.raises(dp.ParameterError, match="candidates"):
        found.share(7)
    for adjust in (survey.norm_sub, survey.on_simplex):
        with pytest.raises(dp.ParameterError, match="some categories"):
            adjust(found)
    assert survey.clipped(found).shares.max() <= 1
    finder = survey.HeavyHitters(bits=12, epsilon=6)
    values = finder.find(finder.randomize(np.full(3000, 777)))
    assert values.estimate.share(777) == values.estimate.shares[0]
    sketch = survey.HadamardSketch(k=1000, epsilon=6, hashes=8, width=64)
    tally = sketch.aggregate(sketch.randomize([7] * 500))
    assert sketch.estimate(tally, [9, 7]).share(7) > 0.5


@pytest.mark.parametrize(("share", "asked"), [(0.0, (0.9, 0.2)), (0.02, (0.95, 0.5))])
def test_two_small_samples_cover(share, asked):
    samples, hits = TwoSamples(asked, lowest=0.02, highest=0.5), 0
    for _ in range(400):
        reports = [
            np.where(
                MADE_UP.random(100) < put, MADE_UP.random(100) < share, MADE_UP.random(100) < 0.05
            )
            for put in asked
        ]
        found, _ = samples.estimate(*reports)
        assert found.low < found.share < found.high
        hits += found.low <= share <= found.high
    assert covers_often(hits, 400, 0.95)


@pytest.mark.parametrize("same", [True, False])
def test_adjusted_shares_of_few_people_cover(same):
    """Wald's interval, the share and two errors, misses far more often here."""
    design, trials, share = designs.randomized_response(epsilon=5), 500, 0.02
    told, lied = (float(design.channel.rows[i][1]) for i in (1, 0))

    def said(truth):
        return MADE_UP.random(40) < np.where(truth, told, lied)

    hits = wald = 0
    for _ in range(trials):
        cheats = MADE_UP.random(40) < 0.1
        main = said(MADE_UP.random(40) < share) & ~cheats
        cheats = cheats if same else MADE_UP.random(40) < 0.1
        control = said(MADE_UP.random(40) < 0.25) & ~cheats
        found = adjusted_share(design, main, control, prevalence=0.25, same_people=same)
        assert found.low <= found.share <= found.high
        hits += found.low <= share <= found.high
        wald += abs(found.share - share) < 1.96 * found.standard_error
    assert covers_often(hits, trials, 0.93)
    assert not covers_often(wald, trials, 0.93)


def test_an_adjusted_share_has_no_interval_where_nobody_may_follow_the_design():
    design = designs.randomized_response(epsilon=4)
    found = adjusted_share(
        design, [True, False] * 5, [False] * 9 + [True], prevalence=0.25, same_people=True
    )
    assert found.high == math.inf


def test_columns_named_like_an_answer_are_refused():
    design, reports = designs.two_coins(), [True, False] * 50
    x = MADE_UP.normal(size=100)
    with pytest.raises(dp.ParameterError, match="named like an answer"):
        regression_on_reports(design, reports, x, {"True": x})
    with pytest.raises(dp.ParameterError, match="different names"):
        linear_regression(design, reports, {"1": x, 1: x**2})


@pytest.mark.parametrize(
    ("confidence", "text"),
    [(0.95, "(95% "), (0.995, "(99.5% "), (0.999, "(99.9% "), (0.975, "(97.5% ")],
)
def test_findings_name_their_confidence(confidence, text):
    found = estimate_counts(designs.two_coins(), {True: 400, False: 600})
    assert text in sentences.finding(found, confidence=confidence)


def test_sentences_round_against_the_design_and_never_to_nothing():
    telling = designs.warner(truth=Fraction(1_234_567_1, 1_234_567_2))
    assert "12,345,671 times" in sentences.promise(telling)
    no, yes = sentences.deniability(designs.two_coins(), prior=Fraction(1, 10_000))
    assert "a 0.01% chance" in no
    assert "at most 0.03%" in yes
    assert "as little as 0.003%" in no


def test_an_epsilon_that_thirty_digits_do_not_reach_is_refused():
    with pytest.raises(dp.ParameterError, match="thirty digits"):
        designs.randomized_response(epsilon=123.45)
    assert designs.randomized_response(epsilon=50).epsilon == pytest.approx(50, rel=1e-6)
