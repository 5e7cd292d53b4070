import copy
import math
import pickle
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy import stats

import deniable as dp
from chance import FALSE_ALARM
from deniable.mechanisms.design import Design
from deniable.survey import designs
from deniable.survey.designs import joint

F = Fraction
DIE = {"truth": F(3, 4), "yes": F(1, 6), "no": F(1, 12)}
SKEWED = [
    [F(7, 10), F(2, 10), F(1, 10)],
    [F(1, 10), F(8, 10), F(1, 10)],
    [F(1, 5), F(1, 5), F(3, 5)],
]
PRIVATE = {
    "coins": designs.two_coins(),
    "binary": designs.randomized_response(epsilon=1),
    "warner": designs.warner(truth=F(7, 10)),
    "warner, mostly the opposite": designs.warner(truth=0.3),
    "forced": designs.forced_response(**DIE),
    "unrelated": designs.unrelated_question(asked=0.6, prevalence=F(1, 12)),
    "crosswise": designs.crosswise(prevalence=F(1, 4)),
    "five categories": designs.randomized_response(epsilon=2, categories="abcde"),
    "matrix": designs.from_matrix(SKEWED, ("a", "b", "c")),
    "more reports": designs.from_matrix(
        [[F(1, 2), F(1, 4), F(1, 4)], [F(1, 4), F(1, 4), F(1, 2)]], (False, True), "lmh"
    ),
    "joint": joint(designs.two_coins(), designs.crosswise(prevalence=0.2)),
}
OPEN = {
    "triangular": designs.triangular(prevalence=F(1, 4), not_private=True),
    "mangat": designs.mangat(truth=0.7, not_private=True),
    "open": designs.open_question(not_private=True),
}


def told(tree, truth):
    """P(report) by going through a story's branches: (probability, report given the truth)."""
    out: dict[object, Fraction] = {}
    for chance, report in tree:
        said = report(truth)
        out[said] = out.get(said, F(0)) + chance
    return out


H = F(1, 2)
STORIES = {
    "coins": [(H, lambda t: t), (H * H, lambda t: True), (H * H, lambda t: False)],
    "warner": [(F(7, 10), lambda t: t), (F(3, 10), lambda t: not t)],
    "forced": [(F(3, 4), lambda t: t), (F(1, 6), lambda t: True), (F(1, 12), lambda t: False)],
    "unrelated": [
        (F(3, 5), lambda t: t),
        (F(2, 5) * F(1, 12), lambda t: True),
        (F(2, 5) * F(11, 12), lambda t: False),
    ],
    "crosswise": [
        (F(1, 4), lambda t: "same" if t else "different"),
        (F(3, 4), lambda t: "different" if t else "same"),
    ],
    "triangular": [
        (F(1, 4), lambda t: "one or both"),
        (F(3, 4), lambda t: "one or both" if t else "neither"),
    ],
    "mangat": [(F(7, 10), lambda t: t), (F(3, 10), lambda t: True)],
}


@pytest.mark.parametrize("name", STORIES)
def test_the_channel_is_what_the_story_says(name):
    design = (PRIVATE | OPEN)[name]
    for truth in (False, True):
        said = told(STORIES[name], truth)
        for report in design.reports:
            assert design.channel.probability(report, truth) == said.get(report, 0)


@pytest.mark.parametrize("name", PRIVATE)
def test_epsilon_is_the_worst_log_ratio_over_both_sides(name):
    design = PRIVATE[name]
    worst = max(
        design.channel.probability(report, x) / design.channel.probability(report, y)
        for report in design.reports
        for x, y in product(design.answers, repeat=2)
    )
    assert dp.verify_channel(design.channel).ratio == worst
    assert design.epsilon == pytest.approx(math.log(worst), rel=1e-15)
    assert design.epsilon == max(design.epsilon_of(report) for report in design.reports)
    assert float(design.loss.pure) == pytest.approx(math.log(worst), rel=1e-15)
    assert design.loss.relation == dp.Relation.REPLACE
    assert design.warning is None


def test_known_answers():
    coins = designs.two_coins()
    assert coins.channel.probability(True, True) == F(3, 4)
    assert coins.channel.probability(True, False) == F(1, 4)
    assert coins.epsilon == pytest.approx(1.0986122886681098, abs=1e-12)
    die = designs.forced_response(**DIE)
    assert float(die.channel.probability(True, True)) == pytest.approx(
        0.9166666666666666, abs=1e-12
    )
    assert die.epsilon_of(True) == pytest.approx(1.7047480922384253, abs=1e-10)
    assert die.epsilon_of(False) == pytest.approx(2.302585092994046, abs=1e-10)
    assert die.epsilon == pytest.approx(2.302585092994046, abs=1e-10)
    for epsilon, p in [
        (0.5, 0.6224593312018546),
        (1.0, 0.7310585786300049),
        (1.0986122886681098, 0.7500000000000001),
        (4.0, 0.9820137900379085),
    ]:
        design = designs.randomized_response(epsilon=epsilon)
        assert float(design.channel.probability(True, True)) == pytest.approx(p, abs=1e-12)
        assert design.loss.pure <= F(repr(epsilon))


@pytest.mark.parametrize("epsilon", [1e-12, 1e-3, 20, 60])
def test_tiny_and_huge_epsilon(epsilon):
    design = designs.randomized_response(epsilon=epsilon)
    assert design.loss.satisfies(dp.PureDP(epsilon))
    assert design.epsilon == pytest.approx(epsilon, rel=1e-3)
    assert np.isfinite(design.decoder).all()


def follows(design: Design, truth: object, reports: np.ndarray) -> bool:
    """Chi-square of reports against a design's row; a report of probability 0 fails at once."""
    said = [sum(1 for r in reports.tolist() if r == label) for label in design.reports]
    row = [float(p) for p in design.channel.row(truth)]
    if any(c for c, p in zip(said, row, strict=True) if p == 0):
        return False
    some = [(c, p * sum(said)) for c, p in zip(said, row, strict=True) if p > 0]
    if len(some) == 1:
        return True
    return bool(stats.chisquare(*zip(*some, strict=True)).pvalue > FALSE_ALARM)


@pytest.mark.parametrize("name", PRIVATE | OPEN)
def test_the_client_follows_its_channel(name):
    """20,000 reports for each answer, all answers mixed in one call."""
    design = (PRIVATE | OPEN)[name]
    values = [answer for answer in design.answers for _ in range(20_000)]
    mixed = np.random.default_rng(5).permutation(len(values))
    reports = design.randomize([values[i] for i in mixed])
    asked = np.array([i // 20_000 for i in mixed])
    for place, truth in enumerate(design.answers):
        assert follows(design, truth, reports[asked == place])


def test_the_check_of_clients_notices_a_wrong_one():
    wrong = designs.warner(truth=F(3, 4) - F(1, 20))
    assert not follows(designs.two_coins(), True, wrong.randomize([True] * 20_000))
    assert not follows(OPEN["mangat"], True, np.array([True] * 999 + [False]))


def test_reports_of_one_call_are_independent():
    sent = designs.two_coins().randomize([True] * 40_000)
    pairs = np.bincount(2 * sent[::2] + sent[1::2], minlength=4)
    expected = 20_000 * np.array([1, 3, 3, 9]) / 16
    assert stats.chisquare(pairs, expected).pvalue > FALSE_ALARM


def test_arrays_lists_and_labels_of_any_kind():
    assert designs.two_coins().randomize(np.array([True, False])).dtype == bool
    odd = designs.randomized_response(epsilon=50, categories=(("a", 1), None, 7))
    assert odd.randomize([("a", 1), None, 7]).tolist() == [("a", 1), None, 7]
    text = designs.randomized_response(epsilon=50, categories=("red", "blue"))
    assert text.randomize(np.array(["red", "blue"])).tolist() == ["red", "blue"]


SECRET = "sentinel-4711"


@pytest.mark.parametrize(
    "values",
    [[SECRET], [], None, SECRET, [[True]], np.array([[True]]), [True, math.nan], {True: 1}],
)
def test_a_private_value_that_is_no_answer_is_refused_and_not_quoted(values):
    with pytest.raises(dp.errors.PrivateValueError) as caught:
        designs.two_coins().randomize(values)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("name", OPEN)
def test_designs_without_epsilon_warn_and_have_no_loss(name):
    design = OPEN[name]
    assert design.epsilon == math.inf
    assert "ε is infinite" in design.warning
    with pytest.raises(dp.ParameterError, match="ε is infinite"):
        _ = design.loss


@pytest.mark.parametrize(
    "make",
    [
        lambda: designs.triangular(prevalence=0.25),
        lambda: designs.mangat(truth=0.7),
        designs.open_question,
        lambda: designs.from_matrix([[1, 0], [F(1, 2), F(1, 2)]], "ab"),
    ],
)
def test_designs_without_epsilon_need_a_word(make):
    with pytest.raises(dp.ParameterError, match="ε is infinite"):
        make()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: designs.warner(truth=0.5), "p = q"),
        (lambda: designs.crosswise(prevalence=F(1, 2)), "p = q"),
        (lambda: designs.from_matrix([[0.5, 0.5], [0.5, 0.5]], "ab"), "p = q"),
        (lambda: designs.from_matrix([[0.2, 0.8], [0.5, 0.5], [0.8, 0.2]], "abc", "xy"), "p = q"),
        (lambda: designs.warner(truth=1), "strictly between"),
        (lambda: designs.warner(truth=math.nan), "finite"),
        (lambda: designs.warner(truth="0.7"), "must be a number"),
        (lambda: designs.forced_response(truth=0.5, yes=0.1, no=0.1), "sum to 1"),
        (lambda: designs.forced_response(truth=0.5, yes=0.5, no=0), "strictly between"),
        (lambda: designs.randomized_response(epsilon=1, categories=["only"]), "2 or more"),
        (lambda: designs.randomized_response(epsilon=0), "greater than 0"),
        (lambda: designs.randomized_response(epsilon=1e-40), "too small"),
        (lambda: designs.randomized_response(epsilon=1e9), "losses are stated"),
        (designs.randomized_response, "exactly one"),
        (lambda: designs.randomized_response(epsilon=1, categories=range(33)), "from 2 to 32"),
        (lambda: designs.from_matrix([[0.5, 0.5]], ["a"]), "2 or more"),
        (lambda: designs.from_matrix([[0.9, 0.2], [0.1, 0.9]], "ab"), "sums to"),
        (lambda: designs.from_matrix([[0.9, 0.1], [0.1, 0.9]], "aa"), "different labels"),
        (lambda: joint(designs.two_coins()), "two designs"),
        (lambda: joint(*[designs.two_coins()] * 9), "cells"),
        (
            lambda: designs.warner(truth=F(1, 2) + F(1, 10**110)),
            "all but singular",
        ),
    ],
)
def test_bad_parameters_are_refused(make, said):
    with pytest.raises(dp.ParameterError, match=said):
        make()


@pytest.mark.parametrize("name", PRIVATE | OPEN)
def test_the_inverse_undoes_the_channel_exactly(name):
    design = (PRIVATE | OPEN)[name]
    for i, weights in enumerate(design.inverse):
        for j, row in enumerate(design.channel.rows):
            assert sum(w * p for w, p in zip(weights, row, strict=True)) == (i == j)


def test_a_joint_design_costs_the_sum():
    one, other = PRIVATE["forced"], PRIVATE["matrix"]
    both = joint(one, other)
    for (a, b), (r, s) in product(both.answers, both.reports):
        product_of_both = one.channel.probability(r, a) * other.channel.probability(s, b)
        assert both.channel.probability((r, s), (a, b)) == product_of_both
    assert both.epsilon == pytest.approx(one.epsilon + other.epsilon, rel=1e-15)
    assert both.loss.pure >= one.loss.pure + other.loss.pure


def test_a_joint_design_cannot_be_misstated():
    """Its loss is read from the parts, so the channel must be theirs."""
    coins = PRIVATE["coins"]
    both = joint(coins, coins)
    with pytest.raises(dp.ParameterError, match="their product"):
        Design("joint", both.channel, parts=(coins, PRIVATE["forced"]))


def test_designs_are_values():
    design = designs.forced_response(**DIE)
    assert design == designs.forced_response(**DIE)
    assert hash(design) == hash(copy.deepcopy(design))
    assert pickle.loads(pickle.dumps(design)) == design
    with pytest.raises(AttributeError):
        design.method = "other"
