from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from chance import (
    follows,
    follows_continuous,
    gaussian_pmf,
    laplace_pmf,
    plausible_share,
)
from deniable.errors import ParameterError
from deniable.randomness.gaussian import GaussianSampler
from deniable.randomness.noise import GaussianLaw, GeometricLaw, LaplaceLaw, noise
from deniable.randomness.source import SECURE

pytestmark = pytest.mark.slow

N = 400_000


@pytest.mark.parametrize("scale", ["0.3", "1", "10", "200/3"])
def test_laplace_has_its_law(scale):
    s = float(Fraction(scale))
    draws = noise(LaplaceLaw(Fraction(scale))).many(N)
    reach = int(20 * s) + 5
    assert follows(draws, laplace_pmf(s), reach)
    assert not follows(draws, laplace_pmf(1.1 * s), reach)
    assert not follows(draws, laplace_pmf(0.9 * s), reach)


@pytest.mark.parametrize("sigma", ["0.4", "1", "10", "47.9", "48.1", "300"])
def test_gaussian_has_its_law(sigma):
    s = float(Fraction(sigma))
    draws = noise(GaussianLaw(Fraction(sigma) ** 2)).many(N)
    reach = int(7 * s) + 5
    assert follows(draws, gaussian_pmf(s), reach)
    assert not follows(draws, gaussian_pmf(1.1 * s), reach)
    assert not follows(draws, gaussian_pmf(0.9 * s), reach)


@pytest.mark.parametrize("sigma", ["1", "7.9", "8.1", "48.1", "300"])
def test_few_gaussian_draws_have_their_law(sigma):
    """What is drawn from the wide cells that few draws are made from."""
    s, few = float(Fraction(sigma)), GaussianSampler(Fraction(sigma) ** 2)
    draws = np.concatenate([few.sample(511, SECURE) for _ in range(200)])
    assert "_many" not in vars(few)
    reach = int(7 * s) + 5
    assert follows(draws, gaussian_pmf(s), reach)
    assert not follows(draws, gaussian_pmf(1.1 * s), reach)
    assert not follows(draws, gaussian_pmf(0.9 * s), reach)


@pytest.mark.parametrize("scale", ["0.7", "25"])
def test_geometric_has_its_law(scale):
    s = float(Fraction(scale))

    def pmf(t: float):
        return lambda x: np.where(x >= 0, (1 - np.exp(-1 / t)) * np.exp(-np.maximum(x, 0) / t), 0)

    draws = noise(GeometricLaw(Fraction(scale))).many(N)
    assert draws.min() == 0
    assert follows(draws, pmf(s), int(20 * s) + 5)
    assert not follows(draws, pmf(1.1 * s), int(20 * s) + 5)


@pytest.mark.parametrize("scale", [1000, 10**6, 2**40, 2**52])
def test_wide_noise_has_the_continuous_shape(scale):
    jitter = np.random.default_rng().random(N) - 0.5
    laplace = (noise(LaplaceLaw(Fraction(scale))).many(N) + jitter) / scale
    gauss = (noise(GaussianLaw(Fraction(scale) ** 2)).many(N) + jitter) / scale
    assert follows_continuous(laplace, stats.laplace.cdf)
    assert not follows_continuous(laplace * 1.1, stats.laplace.cdf)
    assert follows_continuous(gauss, stats.norm.cdf)
    assert not follows_continuous(gauss * 1.1, stats.norm.cdf)


@pytest.mark.parametrize("law", [LaplaceLaw, GeometricLaw])
@pytest.mark.parametrize("scale", [10**6, 2**40])
def test_low_digits_are_uniform_and_independent_of_the_sign(law, scale):
    draws = noise(law(Fraction(scale))).many(N)
    for modulus in (2, 3, 8):
        counts = np.bincount(draws % modulus, minlength=modulus)
        assert all(plausible_share(c, N, 1 / modulus) for c in counts)
    assert not plausible_share(counts[0] * 1.1, N, 1 / 8)
    negative = draws[draws < 0]
    if law is LaplaceLaw:
        assert plausible_share(negative.size, N, 0.5)
        assert plausible_share((negative % 2).sum(), negative.size, 0.5)


def test_tiny_scales_are_zero_but_for_a_vanishing_chance():
    assert not noise(LaplaceLaw(Fraction(1, 10**6))).many(10_000).any()
    assert not noise(GaussianLaw(Fraction(1, 10**12))).many(10_000).any()


@pytest.mark.parametrize(
    "law",
    [
        LaplaceLaw(Fraction(2**52 + 1)),
        GeometricLaw(Fraction(2**52 + 1)),
        GeometricLaw(Fraction(2**57)),
        LaplaceLaw(Fraction(1, 10**10)),
        GaussianLaw(Fraction(2**113)),
        GaussianLaw(Fraction(10**700)),
        GaussianLaw(Fraction(1, 10**20)),
    ],
)
def test_beyond_the_range_is_refused(law):
    with pytest.raises(ParameterError, match="exact integer noise is drawn for"):
        noise(law)


@pytest.mark.parametrize("count", [0, 1, 2, 511, 512, 65_535, 65_537])
def test_any_count_can_be_drawn(count):
    for law in (LaplaceLaw(Fraction(1000)), GaussianLaw(Fraction(10**8)), GaussianLaw(Fraction(2))):
        assert noise(law).many(count).shape == (count,)
