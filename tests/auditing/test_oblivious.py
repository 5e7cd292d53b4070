"""Oblivious mechanisms: privacy and utility of K = H∘f, and the optimality of geometric noise."""

import math
from fractions import Fraction
from itertools import product

import pytest

import deniable as dp

F = Fraction
DATABASES = list(product([0, 1], repeat=3))
NEIGHBOURS = [
    (a, b)
    for a in DATABASES
    for b in DATABASES
    if a < b and sum(x != y for x, y in zip(a, b, strict=True)) == 1
]
UNIFORM = [F(1, 8)] * 8
GEOMETRIC = dp.TruncatedGeometric(epsilon=1, sensitivity=1, lower=0, upper=3)


def absolute(answer, guess):
    return abs(answer - guess)


def squared(answer, guess):
    return (answer - guess) ** 2


def binary(answer, guess):
    return int(answer != guess)


def test_the_composed_channel_has_the_privacy_of_the_noise():
    counted = dp.auditing.oblivious(sum, GEOMETRIC, DATABASES)
    assert counted.verify(NEIGHBOURS).epsilon == pytest.approx(1)
    assert counted.verify().epsilon == pytest.approx(3)  # all three people changed at once


def test_the_loss_without_noise_is_zero_and_the_information_whole():
    plain = dp.Channel(
        (0, 1, 2, 3), (0, 1, 2, 3), [[int(i == j) for j in range(4)] for i in range(4)]
    )
    counted = dp.auditing.oblivious(sum, plain, DATABASES)
    assert counted.expected_loss(UNIFORM, absolute) == 0
    weights = [1 / 8, 3 / 8, 3 / 8, 1 / 8]
    assert counted.mutual_information(UNIFORM) == pytest.approx(
        -sum(w * math.log2(w) for w in weights)
    )


def test_useless_noise_leaves_the_prior_s_best_guess():
    deaf = dp.Channel((0, 1, 2, 3), ("x",), [[1]] * 4)
    counted = dp.auditing.oblivious(sum, deaf, DATABASES)
    assert counted.expected_loss(UNIFORM, absolute) == F(3, 4)
    assert counted.mutual_information(UNIFORM) == 0
    assert counted.best_remap(UNIFORM, squared)["x"] in {1, 2}


def test_the_best_remap_is_best_of_all():
    counted = dp.auditing.oblivious(sum, GEOMETRIC, DATABASES)
    best = counted.expected_loss(UNIFORM, absolute)
    channel = counted.channel
    for reading in product(range(4), repeat=4):
        loss = sum(
            F(1, 8) * p * abs(sum(database) - reading[output])
            for database, row in zip(DATABASES, channel.rows, strict=True)
            for output, p in enumerate(row)
        )
        assert loss >= best


@pytest.mark.parametrize("cost", [absolute, squared, binary])
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1, 3])
@pytest.mark.parametrize(
    "prior",
    [[F(1, 4)] * 4, [F(1, 8), F(3, 8), F(3, 8), F(1, 8)], [F(7, 10), F(0), F(1, 10), F(2, 10)]],
)
def test_geometric_noise_is_optimal_for_counts(cost, epsilon, prior):
    """Ghosh, Roughgarden & Sundararajan 2009, Thm 1.1: for every prior and monotone cost."""
    mechanism = dp.TruncatedGeometric(epsilon=epsilon, sensitivity=1, lower=0, upper=3)
    counts = dp.auditing.oblivious(lambda n: n, mechanism, range(4))
    least = dp.auditing.least_expected_loss(prior, cost, epsilon=epsilon)
    assert float(counts.expected_loss(prior, cost)) == pytest.approx(least, abs=1e-9)


def test_other_noise_is_not_optimal():
    """Randomised response on counts keeps the same ε and loses more."""
    response = dp.RandomizedResponse(epsilon=1, categories=range(4))
    counts = dp.auditing.oblivious(lambda n: n, response, range(4))
    least = dp.auditing.least_expected_loss([F(1, 4)] * 4, absolute, epsilon=1)
    assert float(counts.expected_loss([F(1, 4)] * 4, absolute)) > least + 0.05


def test_bad_input_is_refused():
    counted = dp.auditing.oblivious(sum, GEOMETRIC, DATABASES)
    for prior in ([F(1, 8)] * 7, [F(1, 4)] * 8, [-1, 2, 0, 0, 0, 0, 0, 0], [math.nan] * 8):
        with pytest.raises(dp.ParameterError, match="prior"):
            counted.expected_loss(prior, absolute)
    with pytest.raises(dp.errors.ParameterTypeError, match="query"):
        dp.auditing.oblivious(3, GEOMETRIC, DATABASES)
    with pytest.raises(dp.errors.ParameterTypeError, match="finite outputs"):
        dp.auditing.oblivious(sum, dp.Laplace(epsilon=1, sensitivity=1), DATABASES)
    with pytest.raises(dp.ParameterError, match="databases"):
        dp.auditing.oblivious(sum, GEOMETRIC, [(0,)])
    with pytest.raises(dp.ParameterError, match="counts"):
        dp.auditing.least_expected_loss([F(1, 100)] * 100, absolute, epsilon=1)
