import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import deniable as dp
from chance import plausible_share

F = Fraction


def coin_tree(story: str) -> dict[tuple[bool, bool], Fraction]:
    """P(report | truth) by going through the coins, half and half each."""
    half, out = F(1, 2), {}
    for truth, report in product((False, True), repeat=2):
        first = half * (report == truth)
        if story == "lying":
            second = half * (half * (report == truth) + half * (report != truth))
        else:
            second = half * half
        out[truth, report] = first + second
    return out


@pytest.mark.parametrize(
    ("make", "story"),
    [(dp.RandomizedResponse.two_coins, "two"), (dp.RandomizedResponse.lying_coin, "lying")],
)
def test_both_coin_stories_are_exactly_log_three(make, story):
    rr = make()
    channel = rr.channel()
    for (truth, report), p in coin_tree(story).items():
        assert channel.probability(report, truth) == p
    assert rr.loss.epsilon(delta=0) == math.log(3)
    assert rr.loss.delta(epsilon=0) == 0.5
    assert channel.epsilon() == math.log(3)
    assert channel.delta(0) == 0.5
    assert channel.ratio(True, False) == 3


def test_the_chance_of_yes_is_a_quarter_and_half_the_share():
    """One lecture prints p/2 + 1/2; it is p/2 + 1/4."""
    channel = dp.RandomizedResponse.two_coins().channel()
    for theta in (F(0), F(3, 10), F(1)):
        yes = theta * channel.probability(True, True) + (1 - theta) * channel.probability(
            True, False
        )
        assert yes == F(1, 4) + theta / 2


@pytest.mark.parametrize(
    ("epsilon", "p"),
    [
        (0.5, 0.6224593312018546),
        (1.0, 0.7310585786300049),
        (math.log(3), 0.75),
        (4.0, 0.9820137900379085),
    ],
)
def test_truth_is_told_with_the_stated_probability(epsilon, p):
    rr = dp.RandomizedResponse(epsilon=epsilon)
    assert float(rr.rows[0][0]) == pytest.approx(p, rel=1e-12)
    assert rr.loss.pure <= F(repr(epsilon))
    assert float(rr.loss.pure) == pytest.approx(epsilon, rel=1e-14)
    assert rr.loss.satisfies(dp.PureDP(epsilon))


@pytest.mark.parametrize("k", [2, 3, 16])
def test_k_ary_responses(k):
    rr = dp.RandomizedResponse(epsilon=1, categories=range(k))
    e = math.exp(1)
    assert float(rr.rows[0][0]) == pytest.approx(e / (e + k - 1), rel=1e-14)
    assert rr.loss.satisfies(dp.PureDP(1))
    assert rr.channel().epsilon() == pytest.approx(1, rel=1e-14)
    if k == 16:
        assert float(rr.rows[0][0]) == pytest.approx(0.15341678469596018, rel=1e-12)
        assert float(rr.rows[0][1]) == pytest.approx(0.056438881020269324, rel=1e-12)


def test_a_lopsided_channel_costs_its_worse_side():
    rr = dp.RandomizedResponse.forced(truth=F(3, 4), yes=F(1, 6), no=F(1, 12))
    channel = rr.channel()
    assert channel.probability(True, True) == F(11, 12)
    assert channel.probability(True, False) == F(1, 6)
    assert channel.ratio(True, False) == F(11, 2)
    assert channel.ratio(False, True) == 10
    assert rr.loss.epsilon(delta=0) == pytest.approx(2.302585092994046, rel=1e-15)
    estimate = rr.estimate([True] * 350 + [False] * 850)
    assert estimate.share() == pytest.approx(0.1666666666666667, rel=1e-10)


def test_the_published_estimate():
    estimate = dp.RandomizedResponse.two_coins().estimate([True] * 400 + [False] * 600)
    assert estimate.share() == pytest.approx(0.3, abs=1e-10)
    assert estimate.standard_error() == pytest.approx(0.030983866769659335, rel=1e-10)
    low, high = estimate.interval(confidence=0.95, method="wald")
    assert low == pytest.approx(0.23927273702968038, rel=1e-10)
    assert high == pytest.approx(0.3607272629703197, rel=1e-10)
    assert estimate.interval()[0] < low < high < estimate.interval()[1]
    assert estimate.share(False) == pytest.approx(0.7, abs=1e-10)
    with pytest.raises(dp.ParameterError, match="answer"):
        estimate.share("maybe")


@pytest.mark.parametrize(
    ("epsilon", "sizes"), [(0.5, [39177, 9795, 1568]), (1.0986122886681098, [7500, 1875, 300])]
)
def test_sample_sizes(epsilon, sizes):
    rr = dp.RandomizedResponse(epsilon=epsilon)
    assert [rr.sample_size(alpha) for alpha in (0.01, 0.02, 0.05)] == sizes


def test_halving_the_error_takes_four_times_the_people_and_so_does_halving_a_small_epsilon():
    small, half = (dp.RandomizedResponse(epsilon=e).sample_size(0.01) for e in (0.02, 0.01))
    assert half / small == pytest.approx(4, rel=1e-3)
    rr = dp.RandomizedResponse(epsilon=1)
    assert rr.sample_size(0.005) / rr.sample_size(0.01) == pytest.approx(4, rel=1e-3)


def test_errors_follow_their_formulas():
    for epsilon in (0.5, 1.0, 3.0):
        rr, e = dp.RandomizedResponse(epsilon=epsilon), math.exp(epsilon)
        assert rr.rmse(1000) == pytest.approx(math.exp(epsilon / 2) / (e - 1) * math.sqrt(1000))
        t = 1.3 * (e + 1) / (e - 1) * math.sqrt(1000)
        assert rr.tail(1000, t) == pytest.approx(2 * math.exp(-2 * 1.3**2))
    with pytest.raises(dp.ParameterError, match="symmetric"):
        dp.RandomizedResponse(epsilon=1, categories="abc").rmse(10)


def test_counts_estimated_from_a_fixed_population_have_the_stated_error():
    rr, n, yes, rounds = dp.RandomizedResponse(epsilon=1.0), 400, 100, 4000
    answers = [True] * yes + [False] * (n - yes)
    reports = np.array([rr.release(answers) for _ in range(rounds)])
    p, q = (float(rr.rows[i][1]) for i in (1, 0))
    counts = (reports.sum(axis=1) - n * q) / (p - q)
    spread = rr.rmse(n)
    assert abs(counts.mean() - yes) < 6.2 * spread / math.sqrt(rounds)
    assert counts.std() == pytest.approx(spread, rel=6.2 / math.sqrt(2 * rounds))
    assert counts.std() != pytest.approx(1.2 * spread, rel=6.2 / math.sqrt(2 * rounds))


def test_reports_follow_the_channel():
    rr = dp.RandomizedResponse.from_channel(
        [[F(1, 2), F(1, 3), F(1, 6)], [F(1, 4), F(1, 2), F(1, 4)], [F(1, 10), F(1, 5), F(7, 10)]],
        "abc",
    )
    n = 200_000
    for truth, row in zip("abc", rr.rows, strict=True):
        reports = rr.release([truth] * n)
        for category, p in zip("abc", row, strict=True):
            assert plausible_share(reports.count(category), n, float(p))
            assert not plausible_share(reports.count(category), n, float(p) + 0.02)
    single = [rr.release("a") for _ in range(20_000)]
    assert plausible_share(single.count("a"), 20_000, 0.5)
    mixed = rr.release(["a", "b", "c"] * 20_000)
    estimate = rr.estimate(mixed)
    for category in "abc":
        assert abs(estimate.share(category) - 1 / 3) < 6.5 * estimate.standard_error(category)
    assert isinstance(rr.loss, dp.losses.ChannelLoss)


def test_a_predicate_is_applied_to_the_record():
    rr = dp.RandomizedResponse(epsilon=20, predicate=lambda record: record["age"] >= 65)
    reports = rr.release([{"age": 70}, {"age": 20}])
    assert reports == [True, False]
    assert rr.release({"age": 90}) is True
    with pytest.raises(dp.errors.PrivateValueError) as caught:
        rr.release({"name": "Alice"})
    assert "Alice" not in str(caught.value)


def test_the_privacy_loss_of_a_report():
    rr = dp.RandomizedResponse.two_coins()
    assert rr.privacy_loss(True, True, False) == math.log(3)
    assert rr.privacy_loss(False, True, False) == -math.log(3)
    with pytest.raises(dp.ParameterError, match="categories"):
        rr.privacy_loss("maybe", True, False)


@pytest.mark.parametrize(
    "make",
    [
        dp.RandomizedResponse,
        lambda: dp.RandomizedResponse(epsilon=1, truth=0.75),
        lambda: dp.RandomizedResponse(epsilon=0),
        lambda: dp.RandomizedResponse(epsilon=math.nan),
        lambda: dp.RandomizedResponse(epsilon=1e-40),
        lambda: dp.RandomizedResponse(truth=1),
        lambda: dp.RandomizedResponse(truth=0.5),
        lambda: dp.RandomizedResponse(epsilon=1, categories=["a"]),
        lambda: dp.RandomizedResponse(epsilon=1, categories=["a", "a"]),
        lambda: dp.RandomizedResponse(epsilon=1, predicate=3),
        lambda: dp.RandomizedResponse.from_channel([[1, 0], [0, 1]], "ab"),
        lambda: dp.RandomizedResponse.from_channel([[0.5, 0.5], [0.5, 0.5]], "ab"),
        lambda: dp.RandomizedResponse.from_channel([[0.5, 0.4], [0.5, 0.5]], "ab"),
        lambda: dp.RandomizedResponse.from_channel([[0.5, 0.5]], "ab"),
        lambda: dp.RandomizedResponse.from_channel([[1.5, -0.5], [0.5, 0.5]], "ab"),
        lambda: dp.RandomizedResponse.from_channel([[0.5, 0.5], [0.5]], "ab"),
        lambda: dp.RandomizedResponse.from_channel([], "ab"),
        lambda: dp.RandomizedResponse.from_channel([[math.nan, 0.5], [0.5, 0.5]], "ab"),
        lambda: dp.RandomizedResponse.from_channel(3, "ab"),
        lambda: dp.RandomizedResponse.forced(truth=0.5, yes=0.6, no=0.1),
    ],
)
def test_bad_parameters_are_refused(make):
    with pytest.raises(dp.ParameterError):
        make()


def test_reports_that_tell_nothing_cannot_be_estimated():
    with pytest.raises(dp.ParameterError, match="reports"):
        dp.RandomizedResponse.two_coins().estimate([])
    with pytest.raises(dp.ParameterError, match="reports"):
        dp.RandomizedResponse.two_coins().estimate(["maybe"])


def test_labels_of_any_kind_are_counted():
    rr = dp.RandomizedResponse(epsilon=5, categories=("a", 1, (2, 3)))
    estimate = rr.estimate(rr.release(["a", 1, (2, 3)] * 50))
    assert estimate.n == 150
    assert estimate.share((2, 3)) == pytest.approx(1 / 3, abs=0.3)
    assert dp.RandomizedResponse(epsilon=5).estimate(np.array([True, False])).n == 2


def test_channels_of_chosen_inputs():
    rr = dp.RandomizedResponse(epsilon=1, predicate=lambda age: age >= 65)
    channel = rr.channel([70, 20, 30])
    assert channel.inputs == (70, 20, 30)
    assert channel.ratio(20, 30) == 1
    assert channel.ratio(70, 20) == rr.channel().ratio(True, False)
    metric = dp.MetricExponential(epsilon=1, points="ab", distances=[[0, 1], [1, 0]])
    assert metric.channel("a").rows == (metric.channel().rows[0],)
