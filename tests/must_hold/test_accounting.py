"""Must-hold cases 37 and 38: noise is calibrated to the last digit, channels are read exactly."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats

import deniable as dp
from deniable.auditing.exact.streams import stream_channel
from deniable.auditing.exact.verification import verify, verify_channel

EPSILONS = ["0.01", "0.1", "0.5", "1", "3", "10", "20"]
DELTAS = ["1e-3", "1e-6", "1e-9", "1e-12"]


def number(text):
    exact = Fraction(text)
    return mpmath.mpf(exact.numerator) / exact.denominator


def exact_delta(sigma, epsilon):
    """δ(ε) of N(0, σ²) against N(1, σ²) (Balle & Wang 2018, Thm 8), in fifty digits."""
    mu = 1 / number(sigma)
    tails = [mpmath.ncdf(-epsilon / mu + side * mu / 2) for side in (1, -1)]
    return tails[0] - mpmath.exp(epsilon) * tails[1]


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", DELTAS)
def test_case_37_gaussian_noise_spends_its_delta_and_no_more(epsilon, delta):
    mechanism = dp.Gaussian(epsilon=Fraction(epsilon), delta=Fraction(delta), sensitivity=1)
    with mpmath.workdps(50):
        share = exact_delta(mechanism.sigma, number(epsilon)) / number(delta)
        assert 0.999 <= share <= 1
        # Noise narrower by a hundredth would be seen.
        assert exact_delta(mechanism.sigma * Fraction(99, 100), number(epsilon)) > number(delta)
    # And so says the law that is really drawn, on its lattice.
    assert 0.999 <= mechanism.loss.delta(epsilon=Fraction(epsilon)) / float(delta) <= 1


def discrete_delta(sigma, epsilon):
    """δ(ε) of the discrete law against itself moved by one, term by term in thirty digits."""
    reach = math.ceil(14 * sigma)
    weights = [mpmath.exp(-mpmath.mpf(x * x) / (2 * number(sigma) ** 2)) for x in range(reach)]
    grown = mpmath.exp(epsilon)
    gaps = [weights[abs(x)] - grown * weights[abs(x - 1)] for x in range(2 - reach, reach)]
    return mpmath.fsum(gap for gap in gaps if gap > 0) / (2 * mpmath.fsum(weights) - 1)


@pytest.mark.parametrize("epsilon", ["0.5", "1", "3"])
@pytest.mark.parametrize("delta", ["1e-3", "1e-9"])
def test_case_37_discrete_noise_spends_its_delta_and_no_more(epsilon, delta):
    mechanism = dp.DiscreteGaussian(epsilon=Fraction(epsilon), delta=Fraction(delta), sensitivity=1)
    with mpmath.workdps(30):
        assert 0.999 <= discrete_delta(mechanism.sigma, number(epsilon)) / number(delta) <= 1
        narrower = mechanism.sigma * Fraction(99, 100)
        assert discrete_delta(narrower, number(epsilon)) > number(delta)


def test_case_38_randomised_response_is_exactly_ln_three():
    for found in (
        verify_channel([[Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 4), Fraction(3, 4)]]),
        verify(dp.RandomizedResponse(truth=Fraction(3, 4)), [False, True]),
    ):
        assert found.ratio == Fraction(3)
        assert isinstance(found.ratio, Fraction)
        assert found.epsilon == math.log(3)
        assert found.delta(epsilon=0) == Fraction(1, 2)
        assert found.delta(ratio=3) == 0
    # A coin that lies a little less often on one side is told apart.
    rare = [[Fraction(751, 1000), Fraction(249, 1000)], [Fraction(1, 4), Fraction(3, 4)]]
    assert verify_channel(rare).ratio == Fraction(750, 249)


CLAIM = 1.0
# Values that start below the threshold and end above it, and their neighbours the other way round.
STREAMS = [[0.0] * 6 + [1.0] * 3, [1.0] * 6 + [0.0] * 3]


def epsilon_of(*, threshold_share, value_scale, positives):
    """The exact ε of a sparse vector that splits a claim of 1 so, sensitivity 1, on STREAMS."""
    _, rows = stream_channel(
        STREAMS,
        threshold=0.0,
        threshold_scale=1 / threshold_share,
        value_scale=value_scale,
        positives=positives,
    )
    return verify_channel(rows).epsilon


@pytest.mark.parametrize("positives", [1, 2, 3])
@pytest.mark.parametrize("monotone", [False, True])
def test_case_38_the_sparse_vector_keeps_its_claim(positives, monotone):
    mechanism = dp.SparseVector(
        epsilon=1, threshold=0, sensitivity=1, positives=positives, monotone=monotone
    )
    streams = [*STREAMS, [0.0] * 9, [1.0] * 9]
    found = verify(mechanism, streams)
    assert found.holds
    assert 0.5 < found.epsilon <= CLAIM


def test_case_38_the_textbook_variant_keeps_its_claim():
    """Lyu, Su & Li 2017, Alg. 1: half for the threshold, 2c over the other half for values."""
    assert epsilon_of(threshold_share=0.5, value_scale=2 * 3 / 0.5, positives=3) <= CLAIM


def test_case_38_values_whose_noise_ignores_the_positives_are_flagged():
    """Alg. 4 there: it is (1 + 6c)/4 times as lossy as claimed, and no more."""
    found = epsilon_of(threshold_share=0.25, value_scale=1 / 0.75, positives=3)
    assert 4 * CLAIM < found <= (1 + 6 * 3) / 4 * CLAIM


def test_case_38_values_without_noise_are_flagged():
    """Alg. 5 there: private for no ε."""
    assert epsilon_of(threshold_share=0.5, value_scale=0, positives=None) == math.inf


def test_case_38_a_stream_that_never_ends_is_flagged():
    """Alg. 6 there: private for no ε that holds for streams of every length."""
    found = epsilon_of(threshold_share=0.5, value_scale=1 / 0.5, positives=None)
    assert found > 2 * CLAIM


# Alg. 3 there, which shows the noisy value that it compared. Every kink of the integrand lies on an
# integer, as all values and the edges of the bins do.
EDGES = np.arange(-100.0, 100.0)
BINS = [(-math.inf, -1.0), (-1.0, 0.0), (0.0, 1.0), (1.0, math.inf)]


def revealing_row(stream, threshold_scale, value_scale, shown_scale):
    """P(so many negatives, then a positive that shows a value in a bin), and P(no positive).

    `shown_scale` of None shows the value that was compared; otherwise one under fresh noise.
    """
    x, w = np.polynomial.legendre.leggauss(16)
    points = (EDGES[:, None] + (x + 1) / 2).ravel()
    density = np.tile(w / 2, EDGES.size) * stats.laplace.pdf(points, scale=threshold_scale)
    row = []
    for value in stream:
        noisy = stats.laplace(value, value_scale)
        for low, high in BINS:
            if shown_scale is None:
                chance = np.maximum(noisy.cdf(high) - noisy.cdf(np.maximum(low, points)), 0)
            else:
                shown = stats.laplace(value, shown_scale)
                chance = noisy.sf(points) * (shown.cdf(high) - shown.cdf(low))
            row.append(density @ chance)
        density = density * noisy.cdf(points)
    return np.array([*row, density.sum()])


def revealing_epsilon(*scales):
    rows = [revealing_row(stream, *scales) for stream in ([0.0] * 6 + [1.0], [1.0] * 6 + [0.0])]
    return verify_channel(np.array(rows)).epsilon


def test_case_38_showing_the_value_that_was_compared_is_flagged():
    """Half for the threshold and c over the other half for values, c = 1."""
    # A shown value below 0 bounds the threshold, where six negatives tell e^(1/2) each.
    assert revealing_epsilon(2.0, 2.0, None) >= 2.5 * CLAIM


def test_case_38_showing_a_value_under_fresh_noise_keeps_the_claim():
    """Shares of 1/4, 1/4 and 1/2, the values' noise being 2c over theirs."""
    assert revealing_epsilon(4.0, 8.0, 2.0) <= CLAIM
