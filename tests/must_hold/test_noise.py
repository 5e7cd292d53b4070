"""Must-hold cases 7 to 16: the noise has its law exactly, on one grid, or is refused."""

import math
import re
import time
from fractions import Fraction
from inspect import signature

import mpmath
import numpy as np
import pytest
from scipy import stats

import deniable as dp
from chance import FALSE_ALARM, follows, follows_continuous, gaussian_pmf, laplace_pmf
from contracts.test_catalogue import CATALOGUE
from deniable.randomness.gaussian import CellSampler, GaussianSampler
from deniable.randomness.laplace import LaplaceSampler
from deniable.randomness.noise import GaussianLaw, LaplaceLaw, noise
from randomness.test_tables import TOP, floors, laplace_tables, mp
from sources import ScriptedSource
from statistical.test_float_attacks import lowest_set_bit
from statistical.test_soak import p_value

ATTACKS = 20_000


def certified_delta(here, there, epsilon):
    """The largest δ at ε that events "lowest set bit at or below k" certify, Clopper-Pearson."""
    levels = np.unique(np.concatenate([here, there]))
    alpha = FALSE_ALARM / (8 * levels.size)
    best = 0.0
    for one, other in ((here, there), (there, here)):
        for k in levels:
            for p, q in (
                ((one <= k).sum(), (other <= k).sum()),
                ((one > k).sum(), (other > k).sum()),
            ):
                low = stats.beta.ppf(alpha, p, ATTACKS - p + 1) if p else 0.0
                high = stats.beta.isf(alpha, q + 1, ATTACKS - q) if q < ATTACKS else 1.0
                best = max(best, float(low - math.exp(epsilon) * high))
    return best


def attack(release, epsilon):
    here, there = (lowest_set_bit(release(np.full(ATTACKS, value))) for value in (0.0, 1.0))
    return certified_delta(here, there, epsilon)


EPSILONS = [0.1, 0.5, 1.0, 2.0, 10.0]


def test_case_07_the_lowest_set_bit_of_laplace_noise_shows_nothing():
    assert attack(dp.Laplace(scale=1, sensitivity=1).release, 1.0) == 0


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_case_07_the_lowest_set_bit_of_gaussian_noise_shows_nothing(epsilon):
    assert attack(dp.Gaussian(epsilon=epsilon, delta=1e-6, sensitivity=1).release, epsilon) == 0


@pytest.mark.parametrize("epsilon", EPSILONS[1:-1])  # where so few draws certify a breach surely
def test_case_07_floating_point_noise_would_be_torn_open(epsilon):
    generator = np.random.default_rng()
    sigma = float(dp.Gaussian(epsilon=epsilon, delta=1e-6, sensitivity=1).sigma)
    assert attack(lambda x: x + generator.laplace(scale=1 / epsilon, size=x.size), epsilon) > 0.01
    assert attack(lambda x: x + generator.normal(scale=sigma, size=x.size), epsilon) > 0.01


ON_A_GRID = [
    dp.Laplace(epsilon=1, sensitivity=1),
    dp.Laplace(epsilon=0.001, sensitivity=0.3),
    dp.Gaussian(epsilon=1, delta=1e-6, sensitivity=1),
    dp.Gaussian(sigma=1e6, sensitivity=7),
    dp.PlanarLaplace(epsilon=1, sensitivity=1),
]


@pytest.mark.parametrize("mechanism", ON_A_GRID, ids=repr)
@pytest.mark.parametrize("value", [0.0, 1.0, 1e-3, 1e15])
def test_case_08_outputs_are_exact_multiples_of_the_grid(mechanism, value):
    outputs = mechanism.release(np.full((100, 2), value)).ravel().tolist()
    places = [Fraction(output) / mechanism.lattice.step for output in outputs]
    assert all(place.denominator == 1 for place in places)


def test_case_08_floating_point_noise_would_leave_the_grid():
    step = ON_A_GRID[0].lattice.step
    naive = np.random.default_rng().laplace(size=100).tolist()
    assert any((Fraction(output) / step).denominator > 1 for output in naive)


@pytest.mark.parametrize("value", [0.0, 1.0, 1e-3, 1e15])
def test_case_08_what_a_double_cannot_hold_is_rounded_from_the_noisy_point_alone(value):
    """Beyond 2^53 grid units: the double nearest to the exact sum, hence post-processing."""
    lattice = dp.Laplace(epsilon=1, sensitivity=1).lattice
    point = lattice.nearest(np.array([value]))
    for steps in noise(LaplaceLaw(Fraction(2**52))).many(500):
        exact = Fraction(float(point[0])) + int(steps) * lattice.step
        assert lattice.add(point, np.array([steps]))[0] == float(exact)
        if abs(exact / lattice.step) < 2**53:
            assert Fraction(float(exact)) == exact


LAPLACE_SCALES = ["1/100", "1/3", "1", "7/3", "10", "40", "1000", "1e6", "1000000/7", str(2**40)]
VARIANCES = ["1/4", "1", "7/3", "100", "1e4", "1e6", "1e12"]


def gaussian_table(variance, per_sigma):
    """The sampler's table beside its weights, straight from the definition."""
    sampler = CellSampler(variance, per_sigma)
    rate = mp(Fraction(1 << (2 * sampler._bits)) / (2 * variance))
    places = [(i + 1) // 2 if sampler._bits == 0 else i // 2 for i in range(60 * 64)]
    weights = [mpmath.exp(-rate * j * j) for j in places]
    return sampler._cells, weights, mpmath.fsum(weights)


def wrong_thresholds(table, weights, total):
    stored = [int(threshold) for threshold in table._thresholds]
    assert stored[-1] == TOP
    return sum(a != b for a, b in zip(stored, floors(weights, total, len(stored)), strict=True))


@pytest.mark.parametrize("scale", LAPLACE_SCALES)
def test_case_09_laplace_thresholds_equal_600_bit_arithmetic(scale):
    with mpmath.workprec(600):
        for table in laplace_tables(Fraction(scale), one_sided=False):
            assert wrong_thresholds(*table) == 0


@pytest.mark.parametrize("per_sigma", [32, 4], ids=["many draws", "few draws"])
@pytest.mark.parametrize("variance", VARIANCES)
def test_case_10_gaussian_thresholds_equal_600_bit_arithmetic(variance, per_sigma):
    with mpmath.workprec(600):
        assert wrong_thresholds(*gaussian_table(Fraction(variance), per_sigma)) == 0


def test_cases_09_and_10_double_precision_would_be_seen():
    """Weights of 53 bits, and a scale that is off by 1e-18, give other thresholds."""
    with mpmath.workprec(600):
        for table, weights, _ in (
            next(iter(laplace_tables(Fraction(10), one_sided=False))),
            gaussian_table(Fraction(100), 32),
        ):
            rounded = [mpmath.mpf(float(weight)) for weight in weights]
            assert wrong_thresholds(table, rounded, mpmath.fsum(rounded)) > 10
            bent = [weight ** (1 + mpmath.mpf(10) ** -18) for weight in weights]
            assert wrong_thresholds(table, bent, mpmath.fsum(bent)) > 10


TABLES = {
    "laplace": LaplaceSampler(Fraction(3))._top,
    "digit": LaplaceSampler(Fraction(5000))._digits[0],
    "gaussian": CellSampler(Fraction(9), 32)._cells,
    "wide gaussian": CellSampler(Fraction(900), 4)._cells,
}


def index_of(table, value):
    return (2 * value if value >= 0 else -2 * value - 1) if table._signed else value


def tied(threshold, ties, count):
    """Bytes for `count` draws; the first 64 bits of so many `ties` equal a threshold."""
    high, low = threshold >> 48, (threshold & ((1 << 48) - 1)) << 16
    rest = bytes(2 * (count - ties))  # zeros are settled by the lookup
    return high.to_bytes(2, "little") * ties + rest + low.to_bytes(8, "little") * ties


@pytest.mark.parametrize("count", [40, 600], ids=["by search", "by lookup"])
@pytest.mark.parametrize("name", TABLES)
def test_case_11_forced_ties_end_on_one_of_the_two_sides(name, count):
    table = TABLES[name]
    both_occurred = 0
    for index in range(10):
        threshold = int(table._thresholds[index])
        source = ScriptedSource(tied(threshold, 40, count), seed=index)
        found = {index_of(table, int(value)) for value in table.draw(count, source)[:40]}
        assert found <= {index, index + 1}
        # How much of the unit lies below the true threshold: so often the lower side wins.
        share = table._cumulative.brackets(index + 1, 128)[index].low % 2**64 / 2**64
        if 0.2 < share < 0.8:
            assert found == {index, index + 1}
            both_occurred += 1
    assert both_occurred >= 3


@pytest.mark.parametrize("count", [1, 600], ids=["by search", "by lookup"])
@pytest.mark.parametrize(
    ("sampler", "least"),
    [(LaplaceSampler(Fraction(10)), 430), (GaussianSampler(Fraction(9)), 26)],
    ids=["laplace", "gaussian"],
)
def test_case_11_the_all_ones_word_is_a_tail_value(sampler, least, count):
    """64 ones leave less than 2^-63 beyond them."""
    for seed in range(10):
        drawn = sampler.sample(count, ScriptedSource(tied(TOP, 1, count), seed))
        assert least <= abs(drawn[0]) < 2 * least
        assert not drawn[1:].any()


CHI_SQUARE = [
    *((LaplaceLaw, laplace_pmf, s, Fraction(s), 25.0) for s in ("1/2", "7/3", "40", "1000")),
    *((GaussianLaw, gaussian_pmf, s, Fraction(s) ** 2, 7.0) for s in ("1/2", "7/3", "10", "100")),
]


@pytest.mark.parametrize(("law", "pmf", "scale", "parameter", "far"), CHI_SQUARE)
def test_case_12_draws_pass_chi_square(law, pmf, scale, parameter, far):
    width = float(Fraction(scale))
    reach = int(far * width) + 5
    draws = noise(law(parameter)).many(200_000)
    assert follows(draws, pmf(width), reach)
    assert not follows(draws, pmf(1.1 * width), reach)


@pytest.mark.soak
@pytest.mark.parametrize(("law", "pmf", "scale", "parameter", "far"), CHI_SQUARE)
def test_case_12_twenty_million_draws_pass_chi_square(law, pmf, scale, parameter, far):
    """Neither too far from the law nor, as counted numbers would be, too near."""
    width = float(Fraction(scale))
    found = p_value(law(parameter), pmf(width), int(far * width) + 5)
    assert FALSE_ALARM / 2 < found < 1 - FALSE_ALARM / 2


EPSILON = {
    "Laplace": lambda x: dp.Laplace(epsilon=x, sensitivity=1),
    "Geometric": lambda x: dp.Geometric(epsilon=x, sensitivity=1),
    "Gaussian": lambda x: dp.Gaussian(epsilon=x, delta=1e-6, sensitivity=1),
    "DiscreteGaussian": lambda x: dp.DiscreteGaussian(epsilon=x, delta=1e-6, sensitivity=1),
    "TruncatedGeometric": lambda x: dp.TruncatedGeometric(
        epsilon=x, sensitivity=1, lower=0, upper=9
    ),
    "PlanarLaplace": lambda x: dp.PlanarLaplace(epsilon=x, sensitivity=1),
    "MetricExponential": lambda x: dp.MetricExponential(
        epsilon=x, points="ab", distances=[[0, 1], [1, 0]]
    ),
    "RandomizedResponse": lambda x: dp.RandomizedResponse(epsilon=x),
    "Exponential": lambda x: dp.Exponential(epsilon=x, sensitivity=1),
    "PermuteAndFlip": lambda x: dp.PermuteAndFlip(epsilon=x, sensitivity=1),
    "ReportNoisyMax": lambda x: dp.ReportNoisyMax(epsilon=x, sensitivity=1),
    "Quantile": lambda x: dp.Quantile(epsilon=x, share=0.5, bounds=(0, 1)),
    "Histogram": lambda x: dp.Histogram(epsilon=x, cells="ab"),
    "StabilityHistogram": lambda x: dp.StabilityHistogram(epsilon=x, delta=1e-6),
    "SparseVector": lambda x: dp.SparseVector(epsilon=x, threshold=0, sensitivity=1),
    "ProposeTestRelease": lambda x: dp.ProposeTestRelease(epsilon=x, delta=1e-6, bound=1),
    "SubsampleAggregate": lambda x: dp.SubsampleAggregate(
        epsilon=x, blocks=2, aggregate="mean", bounds=(0, 1), default=0, function=max
    ),
    "ProjectedDescent": lambda x: dp.learning.ProjectedDescent(
        "logistic", epsilon=x, width=2, radius=1, size=100
    ),
    "PureDP": dp.PureDP,
    "ApproxDP": lambda x: dp.ApproxDP(x, 1e-6),
}
SCALE = {
    "Laplace": lambda x: dp.Laplace(scale=x, sensitivity=1),
    "Geometric": lambda x: dp.Geometric(scale=x, sensitivity=1),
    "TruncatedGeometric": lambda x: dp.TruncatedGeometric(scale=x, sensitivity=1, lower=0, upper=9),
    "PlanarLaplace": lambda x: dp.PlanarLaplace(scale=x, sensitivity=1),
    "Gaussian": lambda x: dp.Gaussian(sigma=x, sensitivity=1),
    "DiscreteGaussian": lambda x: dp.DiscreteGaussian(sigma=x, sensitivity=1),
}
DELTA = {
    "Gaussian": lambda x: dp.Gaussian(epsilon=1, delta=x, sensitivity=1),
    "DiscreteGaussian": lambda x: dp.DiscreteGaussian(epsilon=1, delta=x, sensitivity=1),
    "StabilityHistogram": lambda x: dp.StabilityHistogram(epsilon=1, delta=x),
    "ProposeTestRelease": lambda x: dp.ProposeTestRelease(epsilon=1, delta=x, bound=1),
    "ApproxDP": lambda x: dp.ApproxDP(1, x),
}
NOT_POSITIVE = [0, 0.0, -1, math.nan, math.inf, -math.inf, np.float64("nan")]


def test_case_13_every_mechanism_with_an_epsilon_is_here():
    kinds = {name: type(each.mechanism) for name, each in CATALOGUE.items()}
    priced = {name for name, kind in kinds.items() if "epsilon" in signature(kind).parameters}
    assert priced <= set(EPSILON)


@pytest.mark.parametrize(
    ("make", "good", "bad"),
    [
        *((make, 1, NOT_POSITIVE) for make in EPSILON.values()),
        *((make, 1, NOT_POSITIVE) for make in SCALE.values()),
        *((make, 0.5, [math.nan, -1, 1, 1.0, 2, math.inf]) for make in DELTA.values()),
    ],
    ids=[
        f"{kind} of {name}"
        for kind, makers in (("epsilon", EPSILON), ("scale", SCALE), ("delta", DELTA))
        for name in makers
    ],
)
def test_case_13_impossible_parameters_are_refused_before_there_are_data(make, good, bad):
    make(good)
    for value in bad:
        with pytest.raises(ValueError, match=r"epsilon|scale|sigma|delta"):
            make(value)


EXTREMES = [Fraction(1, 10**300), Fraction(10**300), Fraction(1, 10**280), Fraction(10**270)]
WHAT_IS_ALLOWED = r"1e-100 to 1e6|2\^-970 to 2\^930|1e-9 to 2\^52"


def made_or_refused(make, scale):
    try:
        return make(scale), ""
    except dp.ParameterError as refusal:
        return None, str(refusal)


@pytest.mark.parametrize("scale", EXTREMES, ids=["1e-300", "1e300", "1e-280", "1e270"])
@pytest.mark.parametrize(
    ("make", "cdf"),
    [
        (lambda s: dp.Laplace(scale=s, sensitivity=s), stats.laplace.cdf),
        (lambda s: dp.Laplace(scale=s, sensitivity=1), stats.laplace.cdf),
        (lambda s: dp.Gaussian(sigma=s, sensitivity=s), stats.norm.cdf),
        (lambda s: dp.Gaussian(sigma=s, sensitivity=1), stats.norm.cdf),
        (lambda s: dp.Geometric(scale=s, sensitivity=1), stats.laplace.cdf),
        (lambda s: dp.DiscreteGaussian(sigma=s, sensitivity=1), stats.norm.cdf),
    ],
)
def test_case_14_extreme_scales_are_drawn_rightly_or_refused(make, cdf, scale):
    mechanism, refusal = made_or_refused(make, scale)
    if mechanism is None:
        assert re.search(WHAT_IS_ALLOWED, refusal)
        return
    drawn = mechanism.release(np.zeros(20_000)) / float(scale)
    assert follows_continuous(drawn, cdf)
    assert not follows_continuous(1.3 * drawn, cdf)


@pytest.mark.parametrize("law", [LaplaceLaw, GaussianLaw])
@pytest.mark.parametrize("scale", EXTREMES[:2])
def test_case_14_laws_on_the_integers_refuse_extreme_scales(law, scale):
    with pytest.raises(dp.ParameterError, match="1e-9 to 2\\^52"):
        noise(law(scale))


def test_case_14_at_least_one_extreme_is_drawn():
    assert dp.Laplace(scale=EXTREMES[2], sensitivity=EXTREMES[2]).release(0.0) != 0


LAWS = [(LaplaceLaw(Fraction(5)), laplace_pmf, 5), (GaussianLaw(Fraction(2500)), gaussian_pmf, 50)]


@pytest.mark.parametrize(("law", "pmf", "width"), LAWS)
def test_case_15_none_one_and_a_million_draws_have_one_law(law, pmf, width):
    source = noise(law)
    assert source.many(0).shape == (0,)
    alone = np.concatenate([source.many(1) for _ in range(20_000)])
    together = source.many(10**6)
    for draws in (alone, together):
        assert follows(draws, pmf(width), 20 * width)
        assert not follows(draws, pmf(1.3 * width), 20 * width)


def timed_against_size(draw):
    """p-value of Spearman's test that the time of a draw does not follow its size.

    Python keeps the integers -5 to 256 ready, and handing one out takes some nanoseconds more or
    less than making another: those draws are left out.
    """
    times, values = np.empty(20_000), np.empty(20_000)
    for i in range(times.size):
        start = time.perf_counter_ns()
        value = draw()
        times[i], values[i] = time.perf_counter_ns() - start, value
    made = (values < -5) | (values > 256)
    return float(stats.spearmanr(times[made], np.abs(values[made])).pvalue)


@pytest.mark.soak
@pytest.mark.parametrize(
    ("law", "width"),
    [
        (LaplaceLaw(Fraction(1000)), 1000),
        (GaussianLaw(Fraction(10**6)), 1000),
        (LaplaceLaw(Fraction(2**40)), 2**40),
    ],
)
def test_case_16_the_time_of_a_draw_does_not_follow_its_size(law, width):
    source = noise(law)
    assert timed_against_size(source.one) > FALSE_ALARM

    def counting_up():
        value = source.one()
        for _ in range(100 * abs(value) // width):
            pass
        return value

    assert timed_against_size(counting_up) < FALSE_ALARM
