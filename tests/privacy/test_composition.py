import math
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, strategies as st

import deniable as dp

LOSSES = [
    dp.losses.LaplaceLoss(scale=10, sensitivity=1),
    dp.losses.DiscreteLaplaceLoss(scale=3, sensitivity=1),
    dp.losses.GaussianLoss(sigma=4, sensitivity=1),
    dp.losses.DiscreteGaussianLoss(variance=80, sensitivity=1),
    dp.losses.ExponentialLoss(bound=0.3),
    dp.losses.PureLoss(bound=0.2),
    dp.losses.ApproxLoss(bound=0.1, slack=1e-7),
    dp.losses.RandomizedResponseLoss(truth=0.6, relation="add_remove"),
]
some = st.lists(st.sampled_from(LOSSES), min_size=1, max_size=6)


@given(some, st.randoms())
def test_order_does_not_matter(losses, random):
    shuffled = list(losses)
    random.shuffle(shuffled)
    assert dp.compose(*losses) == dp.compose(*shuffled)
    assert hash(dp.compose(*losses)) == hash(dp.compose(*shuffled))


@given(some, some, some)
def test_grouping_does_not_matter(a, b, c):
    left = dp.compose(dp.compose(dp.compose(*a), *b), *c)
    assert left == dp.compose(dp.compose(*a), dp.compose(*b, *c))


@given(st.sampled_from(LOSSES), st.integers(1, 5), st.integers(1, 5))
def test_repeating_is_composing(loss, n, m):
    assert dp.repeat(loss, n) == dp.compose(*[loss] * n)
    assert dp.repeat(dp.repeat(loss, n), m) == dp.repeat(loss, n * m)
    assert dp.repeat(loss, 1) == loss


def test_ten_tenths_are_one():
    assert dp.repeat(dp.losses.LaplaceLoss(scale=10, sensitivity=1), 10).pure == 1
    assert dp.repeat(dp.losses.PureLoss(bound=1e-6), 10**6).pure == 1


def test_counts_are_never_forgotten():
    for loss in LOSSES:
        many = dp.repeat(loss, 1000)
        assert many.concentrated.rho == 1000 * loss.concentrated.rho
        assert many.delta(epsilon=0.1) > loss.delta(epsilon=0.1)
        assert many.renyi(2) == pytest.approx(1000 * loss.renyi(2), rel=1e-12)


def test_gaussians_compose_exactly():
    loss = dp.compose(
        dp.losses.GaussianLoss(sigma=3, sensitivity=1),
        dp.losses.GaussianLoss(sigma=4, sensitivity=1),
    )
    single = dp.losses.GaussianLoss(sigma=Fraction(12, 5), sensitivity=1)
    assert loss.delta(epsilon=0.7) == pytest.approx(single.delta(epsilon=0.7), rel=1e-9)
    assert loss.mu == pytest.approx(5 / 12, rel=1e-12)


def discrete_laplace_losses(scale: float) -> dict[float, float]:
    q = math.exp(-1 / scale)
    out: dict[float, float] = {}
    for x in range(-60, 61):
        level = round((abs(x + 1) - abs(x)) / scale, 9)
        out[level] = out.get(level, 0) + (1 - q) / (1 + q) * q ** abs(x)
    return out


@pytest.mark.parametrize("count", [2, 5, 9])
def test_composed_curves_are_never_below_the_convolution(count):
    single = discrete_laplace_losses(3)
    law = {0.0: 1.0}
    for _ in range(count):
        summed: dict[float, float] = {}
        for (a, p), (b, q) in product(law.items(), single.items()):
            summed[round(a + b, 9)] = summed.get(round(a + b, 9), 0) + p * q
        law = summed
    loss = dp.repeat(dp.losses.DiscreteLaplaceLoss(scale=3, sensitivity=1), count)
    for epsilon in (0.0, 0.3, 1.0, 2.0):
        true = sum(p * max(0, 1 - math.exp(epsilon - level)) for level, p in law.items())
        assert true <= loss.delta(epsilon=epsilon) + 1e-12


def test_the_least_route_is_taken():
    few, many = (dp.repeat(dp.losses.PureLoss(bound=0.1), n) for n in (2, 1000))
    assert few.epsilon(delta=1e-6) <= 0.2
    assert many.epsilon(delta=1e-6) < 30 < float(many.pure)
    with_slack = dp.compose(
        dp.losses.PureLoss(bound=0.1), dp.losses.ApproxLoss(bound=0.1, slack=1e-7)
    )
    assert with_slack.epsilon(delta=2e-7) <= 0.2
    assert with_slack.epsilon(delta=1e-8) == math.inf
    assert with_slack.renyi(2) == math.inf
    assert with_slack.epsilon(delta=0) == math.inf


def test_pure_parts_beside_others_cost_no_more_than_their_sum():
    gaussian = dp.Gaussian(epsilon=0.5, delta=1e-6, sensitivity=1).loss
    both = dp.compose(dp.repeat(dp.losses.PureLoss(bound=0.5), 10), gaussian)
    assert both.epsilon(delta=1e-6) <= 5.5
    assert both.mu > 0


def test_pure_parts_beside_others_are_never_understated():
    """Randomised response beside a discrete Gaussian, by convolution."""
    bound, sigma = 0.7, 3.0
    loss = dp.compose(
        dp.losses.PureLoss(bound=bound),
        dp.losses.DiscreteGaussianLoss(variance=Fraction(9), sensitivity=1),
    )
    weights = {x: math.exp(-x * x / (2 * sigma**2)) for x in range(-60, 61)}
    total, truth = sum(weights.values()), 1 / (1 + math.exp(-bound))
    for epsilon in (0.0, 0.3, 0.9, 1.6):
        true = sum(
            w / total * p * max(0, 1 - math.exp(epsilon - (2 * x + 1) / (2 * sigma**2) - level))
            for x, w in weights.items()
            for level, p in ((bound, truth), (-bound, 1 - truth))
        )
        assert loss.delta(epsilon=epsilon) == pytest.approx(true, rel=1e-9)


def test_relations_never_mix_silently():
    replace = dp.losses.LaplaceLoss(scale=10, sensitivity=1, relation="replace")
    plain = dp.losses.LaplaceLoss(scale=10, sensitivity=1)
    with pytest.raises(dp.errors.RelationError, match="add_remove and replace"):
        dp.compose(replace, plain)
    both = dp.compose(replace, plain.under("replace"))
    assert both.pure == Fraction(3, 10)
    assert dp.repeat(plain, 3).under("replace").pure == Fraction(6, 10)


def test_groups_of_composed_losses():
    loss = dp.compose(*LOSSES[:3])
    assert loss.group(2) == dp.compose(*(part.group(2) for part in LOSSES[:3]))


@pytest.mark.parametrize("bad", [0, -1, 1.5, True, None])
def test_bad_counts(bad):
    with pytest.raises(dp.ParameterError):
        dp.repeat(LOSSES[0], bad)


def test_only_losses_compose():
    with pytest.raises(dp.ParameterError, match="at least one"):
        dp.compose()
    for bad in (1.0, None, dp.Laplace(epsilon=1, sensitivity=1)):
        with pytest.raises(dp.errors.ParameterTypeError, match="loss"):
            dp.compose(bad)
        with pytest.raises(dp.errors.ParameterTypeError, match="loss"):
            dp.repeat(bad, 2)


def test_a_thousand_distinct_losses_take_seconds():
    losses = [dp.losses.PureLoss(bound=Fraction(1, 100 + n)) for n in range(1000)]
    assert dp.compose(*losses).epsilon(delta=1e-6) < 10
