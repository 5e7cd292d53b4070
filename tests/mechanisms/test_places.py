"""Truncated geometric, planar Laplace, and the exponential form on finite metrics."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

import deniable as dp
from chance import follows_continuous, plausible_share
from deniable.mechanisms.truncated import folded_geometric
from deniable.privacy.channel import Channel

F = Fraction


@given(st.fractions(F(1, 50), F(49, 50), max_denominator=60), st.integers(1, 9))
def test_truncated_geometric_is_private_for_every_ratio_exactly(q, top):
    """The worst ratio of neighbours is 1/q to the last digit, whatever q: no float is involved."""
    outputs = range(top + 1)
    channel = Channel(
        tuple(outputs), tuple(outputs), tuple(folded_geometric(q, x, outputs) for x in outputs)
    )
    for x in range(top):
        assert channel.ratio(x, x + 1) == channel.ratio(x + 1, x) == 1 / q
    if top >= 2:  # under "replace" a count moves by one too; two steps cost twice
        assert channel.ratio(0, 2) == 1 / q**2


def test_truncated_geometric_draws_its_channel():
    mechanism = dp.TruncatedGeometric(epsilon=0.7, sensitivity=1, lower=0, upper=4)
    channel, n = mechanism.channel(), 100_000
    for value in range(5):
        counts = np.bincount(mechanism.release(np.full(n, value)), minlength=5)
        for output in range(5):
            p = float(channel.probability(output, value))
            assert plausible_share(counts[output], n, p)
            assert not plausible_share(counts[output], n, p + 0.015)
    assert channel.epsilon() == pytest.approx(4 * 0.7, rel=1e-12)
    assert math.log(channel.ratio(2, 3)) == pytest.approx(0.7, rel=1e-14)
    ratio = channel.probability(1, 2) / channel.probability(1, 3)
    assert mechanism.privacy_loss(1, 2, 3) == pytest.approx(math.log(ratio), rel=1e-12)
    assert mechanism.privacy_loss(0, 2, 3) == pytest.approx(0.7, rel=1e-12)


def test_truncated_geometric_clamps():
    mechanism = dp.TruncatedGeometric(epsilon=0.1, sensitivity=1, lower=-3, upper=12)
    out = mechanism.release(np.array([-100, 5, 100] * 1000))
    assert out.min() == -3
    assert out.max() == 12
    assert all(-3 <= mechanism.release(10**6) <= 12 for _ in range(100))
    assert mechanism.error(confidence=0.999) == 15
    assert (
        dp.TruncatedGeometric(epsilon=1, sensitivity=1, lower=0, upper=99).error(confidence=0.95)
        == 3
    )


@pytest.mark.parametrize("confidence", [0.3, 0.9, 0.99])
@pytest.mark.parametrize("value", [0, 3, 20])
def test_truncated_error_bars_cover(confidence, value):
    mechanism = dp.TruncatedGeometric(epsilon=0.2, sensitivity=1, lower=0, upper=20)
    noise = np.abs(mechanism.release(np.full(50_000, value)) - value)
    hits = (noise <= mechanism.error(confidence=confidence)).sum()
    assert hits >= 50_000 * confidence - 6.2 * math.sqrt(50_000 * confidence * (1 - confidence))


@pytest.mark.parametrize(
    ("lower", "upper"), [(5, 5), (6, 5), (0.0, 5), (True, 5), (None, 5), (0, 2**63)]
)
def test_bad_ranges_are_refused(lower, upper):
    with pytest.raises(dp.ParameterError):
        dp.TruncatedGeometric(epsilon=1, sensitivity=1, lower=lower, upper=upper)


def test_distances_measured_in_floats_are_mended():
    places = np.array([0.0, 0.1, 0.3, 0.6])
    distances = np.abs(places[:, None] - places[None, :]).tolist()
    mechanism = dp.MetricExponential(epsilon=1, points="abcd", distances=distances)
    table = mechanism.distances
    assert all(
        table[i][j] <= table[i][k] + table[k][j]
        for i in range(4)
        for j in range(4)
        for k in range(4)
    )


def test_steep_channels_and_losses_are_finite():
    steep = dp.TruncatedGeometric(scale=1e-2, sensitivity=1, lower=0, upper=9).channel()
    assert steep.epsilon() == pytest.approx(900, rel=1e-12)
    far = dp.MetricExponential(epsilon=5000, points="ab", distances=[[0, 1], [1, 0]])
    assert far.privacy_loss("a", "a", "b") == pytest.approx(2500)


def test_wide_channels_are_refused():
    with pytest.raises(dp.ParameterError, match="outputs"):
        dp.TruncatedGeometric(epsilon=1, sensitivity=1, lower=0, upper=10**6).channel()
    with pytest.raises(dp.ParameterError, match="never released"):
        dp.TruncatedGeometric(epsilon=1, sensitivity=1, lower=0, upper=9).privacy_loss(11, 1, 2)


def test_planar_noise_has_its_radius_and_no_direction():
    mechanism = dp.PlanarLaplace(epsilon=math.log(4), sensitivity=200)
    out = mechanism.release(np.zeros((200_000, 2)))
    radius, scale = np.hypot(*out.T), 200 / math.log(4)

    def cdf(r):
        return 1 - (1 + r / scale) * np.exp(-r / scale)

    assert follows_continuous(radius, cdf)
    assert not follows_continuous(radius * 1.05, cdf)
    angle = np.arctan2(out[:, 1], out[:, 0])
    assert follows_continuous(angle, lambda a: (a + math.pi) / (2 * math.pi))
    assert not follows_continuous(angle * 0.97, lambda a: (a + math.pi) / (2 * math.pi))
    assert cdf(200.0) == pytest.approx(0.4034264097200273, rel=1e-9)
    assert radius.mean() == pytest.approx(288.53900817779265, rel=0.02)
    assert plausible_share((radius <= mechanism.error(confidence=0.9)).sum(), radius.size, 0.9)


def test_coarse_planar_noise_is_exact_on_the_lattice():
    """Small scales against the normalised weights exp(-|z|/s), by chi-square-like shares."""
    from deniable.randomness.planar import draw_planar
    from deniable.randomness.source import SECURE

    n, scale = 200_000, 1.5
    drawn = draw_planar(F(3, 2), n, SECURE)
    grid = np.arange(-60, 61)
    weights = np.exp(-np.hypot(grid[:, None], grid[None, :]) / scale)
    weights /= weights.sum()
    for a, b in [(0, 0), (1, 0), (0, -1), (1, 1), (-2, 1), (3, 0)]:
        hits = int(((drawn[:, 0] == a) & (drawn[:, 1] == b)).sum())
        assert plausible_share(hits, n, weights[a + 60, b + 60])
        assert not plausible_share(hits, n, weights[a + 60, b + 60] * 1.3)


def test_planar_losses_are_bounded_by_distance():
    mechanism = dp.PlanarLaplace(epsilon=1, sensitivity=10)
    assert mechanism.loss.pure == 1
    for _ in range(300):
        out = mechanism.release([0.0, 0.0])
        assert abs(mechanism.privacy_loss(out, [0.0, 0.0], [6.0, 8.0])) <= 1
        assert abs(mechanism.privacy_loss(out, [0.0, 0.0], [0.6, 0.8])) <= 0.1 * (1 + 1e-6)
    step = mechanism.lattice.step
    assert all((F(float(c)) / step).denominator == 1 for c in mechanism.release([0.1, 0.2]))


@pytest.mark.parametrize("bad", [5.0, [1.0], [1.0, 2.0, 3.0], [math.nan, 1.0], "ab", None])
def test_places_are_pairs(bad):
    with pytest.raises(dp.errors.PrivateValueError):
        dp.PlanarLaplace(epsilon=1, sensitivity=1).release(bad)


def test_ties_of_the_planar_coin_are_settled_by_integers():
    """The bracket of the keeping probability closes in on the true one from both sides."""
    import mpmath

    from deniable.randomness import planar

    captured = {}

    def spy(word, approximate, bracket, source):
        captured["bracket"], captured["x"] = bracket, approximate
        return np.ones(word.size, dtype=bool)

    original, planar.below_exp = planar.below_exp, spy
    try:
        from deniable.randomness.source import SECURE

        pairs = planar.draw_planar(F(1000, 3), 50, SECURE)
    finally:
        planar.below_exp = original
    with mpmath.workdps(80):
        wide = (
            mpmath.mpf(1000)
            / 3
            * mpmath.mpf(planar._SQRT2_UP.numerator)
            / planar._SQRT2_UP.denominator
        )
        for at, (a, b) in enumerate(np.abs(pairs).tolist()):
            x = mpmath.sqrt(a * a + b * b) * 3 / 1000 - (a + b) / wide
            assert abs(float(x) - captured["x"][at]) < 2**-45
            low, high = captured["bracket"](at, 128)
            true = mpmath.ldexp(mpmath.exp(-x), 128)
            assert low <= true <= high
            assert high - low < 2**20


LINE = [[0, 1, 2], [1, 0, 1], [2, 1, 0]]


def test_metric_exponential_is_private_by_distance():
    generator = np.random.default_rng(3)
    for _ in range(30):
        places = generator.integers(0, 20, size=(5, 2))
        distances = [[F(int(np.abs(a - b).sum())) for b in places] for a in places]
        if any(distances[i][j] == 0 for i in range(5) for j in range(5) if i != j):
            continue
        mechanism = dp.MetricExponential(epsilon=0.3, points=range(5), distances=distances)
        channel = mechanism.channel()
        for i in range(5):
            for j in range(5):
                if i != j:
                    assert math.log(channel.ratio(i, j)) <= 0.3 * float(distances[i][j]) * (
                        1 + 1e-12
                    )
        assert channel.epsilon() <= float(mechanism.loss.pure)


def test_metric_exponential_draws_its_channel():
    mechanism = dp.MetricExponential(epsilon=1, points="abc", distances=LINE)
    n = 10_000
    reports = [mechanism.release("b") for _ in range(n)]
    weights = np.array([math.exp(-0.5), 1, math.exp(-0.5)])
    for point, p in zip("abc", weights / weights.sum(), strict=True):
        assert plausible_share(reports.count(point), n, p)
        assert not plausible_share(reports.count(point), n, p + 0.05)
        assert float(mechanism.channel().probability(point, "b")) == pytest.approx(p, rel=1e-14)
    assert mechanism.privacy_loss("a", "a", "c") == pytest.approx(1.0)
    with pytest.raises(dp.errors.PrivateValueError):
        mechanism.release("z")


@pytest.mark.parametrize(
    ("points", "distances"),
    [
        ("abc", [[0, 1, 5], [1, 0, 1], [5, 1, 0]]),
        ("abc", [[0, 1, 2], [1, 0, 1], [1, 1, 0]]),
        ("abc", [[0, 1, 2], [1, 0, 0], [2, 0, 0]]),
        ("abc", [[1, 1, 2], [1, 0, 1], [2, 1, 0]]),
        ("abc", [[0, 1], [1, 0]]),
        ("aab", LINE),
        ("a", [[0]]),
        ("abc", [[0, -1, 2], [-1, 0, 1], [2, 1, 0]]),
        ("abc", [[0, math.nan, 2], [1, 0, 1], [2, 1, 0]]),
        ("abc", [[0, "1", 2], [1, 0, 1], [2, 1, 0]]),
    ],
)
def test_what_is_no_metric_is_refused(points, distances):
    with pytest.raises(dp.ParameterError):
        dp.MetricExponential(epsilon=1, points=points, distances=distances)
