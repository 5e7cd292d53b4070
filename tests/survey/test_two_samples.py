from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import deniable as dp
from chance import FALSE_ALARM, plausible_share
from deniable.survey.two_samples import TwoSamples

F = Fraction
PLAN = TwoSamples((0.7, 0.3), lowest=0.2, highest=0.6)


def test_epsilon_is_the_worst_over_the_promised_range():
    grid = [F(20 + i, 100) for i in range(41)]
    assert PLAN.epsilon == max(PLAN.design(s, u).epsilon for s in (1, 2) for u in grid)
    wider = TwoSamples((0.7, 0.3), lowest=0.01, highest=0.6)
    assert wider.epsilon > PLAN.epsilon


def test_the_client_asks_the_sensitive_question_as_often_as_stated():
    n = 40_000
    for sample, asked in ((1, 0.7), (2, 0.3)):
        sent = PLAN.randomize(sample, [True] * n, [False] * n)
        assert plausible_share(int(sent.sum()), n, asked)
        assert not plausible_share(int(sent.sum()), n, asked + 0.05)
    assert PLAN.randomize(1, [True] * 9, [True] * 9).all()


def test_both_shares_are_covered():
    """1,000 surveys of 2 x 800 people; held to 94 %."""
    rng = np.random.default_rng(4)
    sent = []
    for sample in (1, 2):
        sensitive, harmless = (rng.random((1_000, 800)) < share for share in (0.15, 0.4))
        both = PLAN.randomize(sample, sensitive.ravel(), harmless.ravel())
        sent.append(both.reshape(1_000, 800))
    hits = [0, 0]
    for first, second in zip(*sent, strict=True):
        for i, (found, truth) in enumerate(
            zip(PLAN.estimate(first, second), (0.15, 0.4), strict=True)
        ):
            hits[i] += found.low <= truth <= found.high
    assert all(stats.binom.cdf(h, 1_000, 0.94) > FALSE_ALARM for h in hits)


def test_estimates_are_exact_where_reports_come_as_expected():
    yes = [0.7 * 0.2 + 0.3 * 0.5, 0.3 * 0.2 + 0.7 * 0.5]
    reports = [[True] * round(1_000 * y) + [False] * round(1_000 * (1 - y)) for y in yes]
    sensitive, harmless = PLAN.estimate(*reports)
    assert sensitive.share == pytest.approx(0.2)
    assert harmless.share == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (lambda: TwoSamples((0.7, 0.7), lowest=0.2, highest=0.6), "differ"),
        (lambda: TwoSamples((0.7, 1), lowest=0.2, highest=0.6), "strictly between"),
        (lambda: TwoSamples((0.7, 0.3), lowest=0, highest=0.6), "strictly between"),
        (lambda: TwoSamples((0.7, 0.3), lowest=0.7, highest=0.6), "exceed"),
        (lambda: TwoSamples(0.7, lowest=0.2, highest=0.6), "two probabilities"),
        (lambda: PLAN.design(3, 0.5), "1 or 2"),
        (lambda: PLAN.estimate([True], []), "second"),
    ],
)
def test_bad_parameters_are_refused(run, said):
    with pytest.raises(dp.ParameterError, match=said):
        run()


@pytest.mark.parametrize("harmless", [[True], ["x", True], None, []])
def test_private_values_are_not_quoted(harmless):
    with pytest.raises(dp.errors.PrivateValueError, match="True and False"):
        PLAN.randomize(1, [True, False], harmless)
