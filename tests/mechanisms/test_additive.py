"""Each sentence of the four docstrings that the contract does not cover."""

import math
import sys
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

import deniable as dp
from chance import follows, follows_continuous, gaussian_pmf, laplace_pmf
from deniable.mechanisms.laws import quantile
from deniable.randomness.noise import GaussianLaw, LaplaceLaw

REAL = [dp.Laplace(epsilon=0.5, sensitivity=3), dp.Gaussian(epsilon=0.5, delta=1e-6, sensitivity=3)]
WHOLE = [dp.Geometric(epsilon=0.5, sensitivity=3), dp.DiscreteGaussian(sigma=5, sensitivity=3)]


@pytest.mark.parametrize("make", [dp.Laplace, dp.Geometric])
def test_laplace_noise_costs_exactly_its_epsilon(make):
    assert make(epsilon=0.1, sensitivity=3).loss.pure == Fraction(1, 10)
    assert make(scale=30, sensitivity=3).loss.pure == Fraction(1, 10)
    assert make(epsilon=math.log(3), sensitivity=1).loss.pure == Fraction(repr(math.log(3)))
    assert make(scale=30, sensitivity=3) == make(epsilon=0.1, sensitivity=3)


@given(st.floats(1e-9, 50), st.floats(1e-6, 1e6))
def test_real_laplace_noise_costs_exactly_its_epsilon_whatever_the_lattice(epsilon, sensitivity):
    mechanism = dp.Laplace(epsilon=epsilon, sensitivity=sensitivity)
    assert mechanism.loss.pure == Fraction(repr(epsilon))
    for coordinates in (1, 2, 1024, 2**20):
        steps = mechanism.lattice.l1_steps(mechanism.sensitivity, coordinates)
        assert steps / mechanism._law(coordinates).scale == mechanism.loss.pure


@given(st.floats(0.01, 20), st.floats(1e-6, 1e6))
def test_rounding_widens_the_noise_by_less_than_is_stated(epsilon, sensitivity):
    laplace = dp.Laplace(epsilon=epsilon, sensitivity=sensitivity)
    gauss = dp.Gaussian(sigma=Fraction(str(sensitivity / epsilon)), sensitivity=sensitivity)
    scale = laplace._law(1).scale * laplace.lattice.step
    assert 1 <= scale / laplace.scale <= 1 + Fraction(1, 2**39)
    variance = gauss._law(1).variance * gauss.lattice.step**2
    assert 1 <= variance / gauss.sigma**2 <= (1 + Fraction(1, 2**39)) ** 2
    wide = laplace._law(2**20).scale * laplace.lattice.step / laplace.scale
    assert wide <= 1 + Fraction(2**20 + 1, 2**39)


def test_noise_has_the_stated_law():
    n = 400_000
    geometric = dp.Geometric(epsilon=0.25, sensitivity=1).release(np.zeros(n, dtype=int))
    assert follows(geometric, laplace_pmf(4), 100)
    assert not follows(geometric, laplace_pmf(4.5), 100)
    discrete = dp.DiscreteGaussian(sigma=4, sensitivity=1).release(np.zeros(n, dtype=int))
    assert follows(discrete, gaussian_pmf(4), 40)
    assert not follows(discrete, gaussian_pmf(4.5), 40)
    laplace = dp.Laplace(scale=4, sensitivity=1).release(np.zeros(n))
    assert follows_continuous(laplace, stats.laplace(scale=4).cdf)
    assert not follows_continuous(laplace, stats.laplace(scale=4.5).cdf)
    gauss = dp.Gaussian(sigma=4, sensitivity=1).release(np.zeros(n))
    assert follows_continuous(gauss, stats.norm(scale=4).cdf)
    assert not follows_continuous(gauss, stats.norm(scale=4.5).cdf)


def test_noise_of_single_releases_has_the_same_law():
    mechanism = dp.Geometric(epsilon=0.25, sensitivity=1)
    assert follows(np.array([mechanism.release(0) for _ in range(60_000)]), laplace_pmf(4), 100)


@pytest.mark.parametrize("mechanism", REAL)
@pytest.mark.parametrize(
    "value",
    [
        0.0,
        0.1,
        1 / 3,
        5e-324,
        -5e-324,
        1e-300,
        12345.678,
        1e15,
        1e17,
        1e300,
        1e308,
        sys.float_info.max,
        -sys.float_info.max,
        2**53 + 1,
        10**30,
        10**400,
        -(10**400),
        Fraction(1, 3),
    ],
)
def test_outputs_are_finite_multiples_of_the_grid(mechanism, value):
    for _ in range(20):
        out = mechanism.release(value)
        assert math.isfinite(out)
        assert (Fraction(out) / mechanism.lattice.step).denominator == 1
    if isinstance(value, float):
        for out in mechanism.release(np.full(20, value)):
            assert math.isfinite(out)
            assert (Fraction(float(out)) / mechanism.lattice.step).denominator == 1


def test_integers_beyond_a_double_keep_their_distance():
    """2^53 and 2^53 + 1 are one double: rounding them first would break the sensitivity."""
    mechanism = dp.Laplace(epsilon=1000, sensitivity=1)
    base = 2**60
    for values in (base + 1, np.array([base + 1, base + 1])):
        out = mechanism.release(values)
        assert np.all(np.abs(np.asarray(out) - float(base)) <= 256)
    low, high = (mechanism.privacy_loss(float(base), base, base + d) for d in (1, 2))
    assert (low, high) == (1000.0, 2000.0)


def test_lists_that_mix_wide_integers_and_floats_are_read_exactly():
    """numpy would round them to one float; the sensitivity would not hold any more."""
    mechanism = dp.Laplace(epsilon=1, sensitivity=1)
    for wide in (2**62 + 512, 2**63 + 1024, 2**53 + 1):
        ratio = mechanism.privacy_loss([float(wide), 0.5], [wide, 0.5], [wide + 1, 0.5])
        assert abs(ratio) <= 1
        assert mechanism.release([wide, 0.5]).shape == (2,)
        assert mechanism.release([[wide, -1], [0.5, 1]]).shape == (2, 2)


def test_odd_arrays_are_read_or_refused():
    geometric, laplace = (
        dp.Geometric(epsilon=1, sensitivity=1),
        dp.Laplace(epsilon=1, sensitivity=1),
    )
    assert geometric.release(np.array([2**63], ">u8"))[0] > 2**62
    assert geometric.release(np.array(5)).shape == ()
    masked = np.ma.masked_array([1, 2], mask=[0, 1])
    for bad in (np.timedelta64(5, "ns"), np.timedelta64(5), [masked], [[masked]]):
        with pytest.raises(dp.errors.PrivateValueError):
            geometric.release(bad)
        with pytest.raises(dp.errors.PrivateValueError):
            laplace.release(bad)

    class Hostile:
        shape = (7,)

        def __array__(self, dtype=None, copy=None):
            raise RuntimeError("secret 42")

    with pytest.raises(dp.errors.PrivateValueError) as caught:
        laplace.release(Hostile())
    assert "42" not in str(caught.value)

    class Misshapen:
        shape = (7,)

        def __array__(self, dtype=None, copy=None):
            return np.array([1.0, 2.0])

    assert laplace.release(Misshapen()).shape == (2,)
    with np.errstate(all="raise"):
        wide = dp.Laplace(scale=2.0**800, sensitivity=2.0**800)
        assert np.isfinite(wide.release([1.0, 5e-324])).all()


@pytest.mark.parametrize("mechanism", WHOLE)
def test_64_bit_arrays_saturate_and_python_integers_do_not(mechanism):
    top, bottom = np.iinfo(np.int64).max, np.iinfo(np.int64).min
    high = mechanism.release(np.full(200, top))
    low = mechanism.release(np.full(200, bottom))
    assert high.max() == top
    assert high.min() > top - 10_000
    assert low.min() == bottom
    assert low.max() < bottom + 10_000
    unsigned = mechanism.release(np.full(200, 2**64 - 1, dtype=np.uint64))
    assert unsigned.min() > top - 10_000
    assert abs(mechanism.release(10**30) - 10**30) < 10_000


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint32, np.int64])
def test_narrow_integers_are_widened_first(dtype):
    out = dp.Geometric(epsilon=0.001, sensitivity=1).release(np.full(100, 100, dtype=dtype))
    assert out.dtype == np.int64
    assert np.abs(out).max() > 255


@given(st.fractions(Fraction(1, 5), 300), st.sampled_from([0.001, 0.3, 0.9, 0.95, 1 - 1e-12]))
def test_laplace_error_bars_are_the_smallest(scale, confidence):
    width, miss = (
        quantile(LaplaceLaw(scale), Fraction(repr(confidence))),
        1 - Fraction(repr(confidence)),
    )
    with mpmath.workdps(60):
        q = mpmath.exp(-mpmath.mpf(scale.denominator) / scale.numerator)

        def beyond(w):
            return 2 * q ** (w + 1) / (1 + q) if w >= 0 else mpmath.mpf(1)

        allowed = mpmath.mpf(miss.numerator) / miss.denominator
        assert beyond(width) <= allowed
        assert width == 0 or beyond(width - 1) > allowed


def test_error_bars_of_wide_noise_are_bounds_and_close():
    for sigma in (2 * 10**5, 2**40, 2**56):
        for confidence in ("1e-17", "1e-9", "0.3", "0.95", "0.999999999999"):
            width = quantile(GaussianLaw(Fraction(sigma) ** 2), Fraction(confidence))
            with mpmath.workdps(40):
                inside = mpmath.erf((mpmath.mpf(width) + 0.5) / (mpmath.sqrt(2) * sigma))
                assert inside >= mpmath.mpf(confidence)
                less = mpmath.mpf(width) * (1 - mpmath.mpf(10) ** -9) - 1
                assert less < 0 or mpmath.erf(less / (mpmath.sqrt(2) * sigma)) < mpmath.mpf(
                    confidence
                )


def test_error_bars_are_rounded_up():
    for mechanism in (
        dp.Laplace(epsilon=1e-6, sensitivity=1),
        dp.Gaussian(sigma=1e7, sensitivity=1),
    ):
        for confidence in (0.9, 0.95, 0.99, 0.999):
            width = Fraction(mechanism.error(confidence=confidence)) / mechanism.lattice.step
            law, level = mechanism._law(1), Fraction(repr(confidence))
            if isinstance(mechanism, dp.Laplace):
                assert width >= quantile(law, level)
            else:
                assert width >= quantile(law, level)


@pytest.mark.parametrize("sigma", ["0.2", "1", "7.3", "300", "1352.4", "2665.1"])
@pytest.mark.parametrize("confidence", ["0.001", "0.5", "0.95", "0.999999", "0.999999999999"])
def test_gaussian_error_bars_are_the_smallest(sigma, confidence):
    variance, miss = Fraction(sigma) ** 2, 1 - Fraction(confidence)
    width = quantile(GaussianLaw(variance), Fraction(confidence))
    with mpmath.workdps(40):
        rate = mpmath.mpf(variance.denominator) / (2 * variance.numerator)
        reach = int(14 * float(Fraction(sigma))) + 14
        tail = mpmath.fsum(mpmath.exp(-rate * x * x) for x in range(width + 1, reach))
        last = mpmath.exp(-rate * width * width)
        inside = mpmath.fsum(mpmath.exp(-rate * x * x) for x in range(1, width + 1))
        total = 1 + 2 * (inside + tail)
        allowed = mpmath.mpf(miss.numerator) / miss.denominator
        assert 2 * tail / total <= allowed
        assert width == 0 or 2 * (tail + last) / total > allowed


def test_gaussian_noise_is_calibrated_three_ways():
    by_target = dp.Gaussian(epsilon=1, delta=1e-5, sensitivity=2)
    assert float(by_target.sigma) == pytest.approx(2 * 3.73063163481594, rel=1e-9)
    assert by_target.loss.epsilon(delta=1e-5) <= 1
    assert by_target.loss.epsilon(delta=1e-5) == pytest.approx(1, rel=1e-9)
    assert dp.Gaussian(rho=0.5, sensitivity=2).sigma == 2
    assert dp.Gaussian(sigma=2, sensitivity=2).loss.rho == 0.5
    assert by_target.loss.pure is None
    assert by_target.loss.epsilon(delta=0) == math.inf


BAD_NUMBERS = [
    0,
    -1,
    -0.0,
    math.nan,
    math.inf,
    -math.inf,
    "1",
    None,
    True,
    [1],
    1j,
    np.array([1.0]),
]


@pytest.mark.parametrize("bad", BAD_NUMBERS)
@pytest.mark.parametrize(
    ("argument", "make"),
    [
        ("epsilon", lambda v: dp.Laplace(epsilon=v, sensitivity=1)),
        ("scale", lambda v: dp.Laplace(scale=v, sensitivity=1)),
        ("sensitivity", lambda v: dp.Laplace(epsilon=1, sensitivity=v)),
        ("epsilon", lambda v: dp.Geometric(epsilon=v, sensitivity=1)),
        ("sensitivity", lambda v: dp.Geometric(epsilon=1, sensitivity=v)),
        ("epsilon", lambda v: dp.Gaussian(epsilon=v, delta=1e-6, sensitivity=1)),
        ("delta", lambda v: dp.Gaussian(epsilon=1, delta=v, sensitivity=1)),
        ("rho", lambda v: dp.Gaussian(rho=v, sensitivity=1)),
        ("sigma", lambda v: dp.Gaussian(sigma=v, sensitivity=1)),
        ("sensitivity", lambda v: dp.Gaussian(sigma=1, sensitivity=v)),
        ("epsilon", lambda v: dp.DiscreteGaussian(epsilon=v, delta=1e-6, sensitivity=1)),
        ("delta", lambda v: dp.DiscreteGaussian(epsilon=1, delta=v, sensitivity=1)),
        ("sensitivity", lambda v: dp.DiscreteGaussian(sigma=1, sensitivity=v)),
    ],
)
def test_bad_parameters_are_named(argument, make, bad):
    with pytest.raises(dp.ParameterError, match=argument):
        make(bad)


@pytest.mark.parametrize(
    "make",
    [
        lambda: dp.Laplace(epsilon=1, scale=1, sensitivity=1),
        lambda: dp.Laplace(sensitivity=1),
        lambda: dp.Gaussian(epsilon=1, sensitivity=1),
        lambda: dp.Gaussian(epsilon=1, delta=1e-6, rho=1, sensitivity=1),
        lambda: dp.Gaussian(rho=1, delta=1e-6, sensitivity=1),
        lambda: dp.Gaussian(sensitivity=1),
        lambda: dp.Gaussian(epsilon=1, delta=1, sensitivity=1),
        lambda: dp.Gaussian(epsilon=1, delta=1e-6, sensitivity=1, calibration="guess"),
        lambda: dp.Gaussian(rho=1, sensitivity=1, calibration="lecture"),
        lambda: dp.Geometric(epsilon=1, sensitivity=1.5),
        lambda: dp.DiscreteGaussian(sigma=1, sensitivity=0.5),
        lambda: dp.Laplace(epsilon=1, sensitivity=1, relation="swap"),
        lambda: dp.Geometric(epsilon=1e-18, sensitivity=1),
        lambda: dp.Geometric(epsilon=1e10, sensitivity=1),
        lambda: dp.DiscreteGaussian(sigma=1e20, sensitivity=1),
        lambda: dp.Laplace(epsilon=1e-300, sensitivity=1e300),
        lambda: dp.Laplace(epsilon=1, sensitivity=5e-324),
        lambda: dp.Gaussian(epsilon=10**400, delta=1e-6, sensitivity=1),
        lambda: dp.Gaussian(epsilon=1, delta=Fraction(1, 10**400), sensitivity=1),
        lambda: dp.Gaussian(epsilon=1e300, delta=1e-6, sensitivity=1),
        lambda: dp.DiscreteGaussian(epsilon=1e-200, delta=1e-200, sensitivity=1),
        lambda: dp.DiscreteGaussian(epsilon=1, delta=1e-6, sensitivity=1e290),
        lambda: dp.Geometric(scale=1, sensitivity=10**400),
        lambda: dp.Laplace(scale=2.0**-900, sensitivity=1e300),
        lambda: dp.Laplace(epsilon=1, sensitivity=1).error(confidence=1 - Fraction(1, 10**400)),
    ],
)
def test_parameters_that_do_not_go_together_are_refused(make):
    with pytest.raises((dp.ParameterError, dp.errors.CalibrationError)):
        make()


def test_arguments_are_named():
    with pytest.raises(TypeError):
        dp.Laplace(1.0, 1.0)


def test_outputs_that_cannot_have_been_released_have_no_loss():
    with pytest.raises(dp.ParameterError, match="grid"):
        dp.Laplace(epsilon=1, sensitivity=1).privacy_loss(1e-30, 0.0, 1.0)
    for bad in (math.nan, math.inf, "abc", None, {}, 1j, [None], [[1], [1, 2]]):
        with pytest.raises(dp.ParameterError, match="output"):
            dp.Laplace(epsilon=1, sensitivity=1).privacy_loss(bad, 0.0, 1.0)
    half = dp.Laplace(epsilon=1, sensitivity=1).privacy_loss(np.float32(0.5), 0.0, 1.0)
    assert half == 0
    with pytest.raises(dp.ParameterError, match="shape"):
        dp.Geometric(epsilon=1, sensitivity=1).privacy_loss([1, 2], 0, 1)


def test_the_privacy_loss_of_vectors_is_the_sum():
    mechanism = dp.Geometric(epsilon=1, sensitivity=2)
    assert mechanism.privacy_loss([5, 5], [5, 5], [6, 6]) == 1.0
    gauss = dp.DiscreteGaussian(sigma=2, sensitivity=2)
    assert gauss.privacy_loss([5, 5], [5, 5], [6, 6]) == 0.25


def test_post_processing_keeps_the_loss():
    mechanism = dp.Geometric(epsilon=0.5, sensitivity=1)
    clamped = dp.post_process(mechanism, lambda n: max(n, 0))
    assert clamped.loss == mechanism.loss
    assert all(clamped.release(0) >= 0 for _ in range(50))
    again = dp.post_process(clamped, str)
    assert isinstance(again.release(3), str)
    with pytest.raises(dp.errors.ParameterTypeError, match="function"):
        dp.post_process(mechanism, 3)
    with pytest.raises(dp.errors.ParameterTypeError, match="mechanism"):
        dp.post_process(3, str)
