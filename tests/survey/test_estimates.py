"""Shares are unbiased, errors are as stated, and published numbers come out."""

import math

import numpy as np
import pytest
from scipy import stats

import deniable as dp
from deniable import survey
from deniable.survey.square_wave import half_width

K, N, ROUNDS = 12, 3000, 150
WEIGHTS = np.arange(1, K + 1) / (K * (K + 1) / 2)
TRUTH = np.repeat(np.arange(K), np.rint(WEIGHTS * N).astype(int))
SHARES = np.bincount(TRUTH) / TRUTH.size

PROTOCOLS = {
    "k-ary": survey.KaryResponse(k=K, epsilon=1),
    "OUE": survey.UnaryEncoding(k=K, epsilon=1),
    "SUE": survey.UnaryEncoding(k=K, epsilon=1, symmetric=True),
    "subset": survey.SubsetSelection(k=K, epsilon=1),
    "OLH": survey.LocalHashing(k=K, epsilon=1),
    "OLH, 3 buckets": survey.LocalHashing(k=K, epsilon=1, buckets=3),
    "BLH": survey.LocalHashing(k=K, epsilon=1, buckets=2),
    "Hadamard": survey.HadamardResponse(k=K, epsilon=1),
    "Hadamard, 4 blocks": survey.HadamardResponse(k=K, epsilon=3, blocks=4),
    "dBitFlip": survey.BitFlip(k=K, epsilon=1, bits=4),
    "RAPPOR": survey.Rappor(k=K, epsilon=1, permanent=3),
    "L-GRR": survey.LastingResponse(k=K, epsilon=1, permanent=3),
}


def exact_variance(protocol):
    """The variance formula; for blocks, which differ in size, from the channel itself."""
    if not isinstance(protocol, survey.HadamardResponse):
        return np.array([protocol.variance(TRUTH.size, share) for share in SHARES])
    parts = [protocol.aggregate([y]).estimate().shares for y in range(protocol.columns)]
    parts, law = np.array(parts), np.array(protocol.channel().rows, dtype=float)
    return SHARES @ (law @ parts**2 - (law @ parts) ** 2) / TRUTH.size


@pytest.mark.parametrize("name", PROTOCOLS)
def test_shares_are_unbiased_and_vary_as_stated(name):
    protocol = PROTOCOLS[name]
    found = [protocol.aggregate(protocol.randomize(TRUTH)).estimate() for _ in range(ROUNDS)]
    shares = np.array([each.shares for each in found])
    variance = exact_variance(protocol)
    z = (shares.mean(axis=0) - SHARES) / np.sqrt(variance / ROUNDS)
    assert np.abs(z).max() < 6.5
    # The sum over categories of squared errors, each of ROUNDS, has about ROUNDS * K terms.
    ratio = ((shares - SHARES) ** 2).mean() / variance.mean()
    spread = 6.2 * math.sqrt(2 / (ROUNDS * K)) * 1.3
    assert abs(ratio - 1) < spread
    assert abs(ratio / 1.6 - 1) > spread / 1.6  # a wrong variance would be seen
    stated = np.array([each.standard_errors for each in found]).mean(axis=0)
    # Errors are those of a sample from a large population, so they include the sampling itself.
    wanted = np.sqrt(variance + SHARES * (1 - SHARES) / TRUTH.size)
    assert stated == pytest.approx(wanted, rel=0.1)


@pytest.mark.parametrize("name", ["CMS", "HCMS"])
def test_sketches_are_unbiased_over_the_draw_of_functions(name):
    make = survey.CountMeanSketch if name == "CMS" else survey.HadamardSketch
    z = []
    for salt in range(60):
        sketch = make(k=K, epsilon=2, hashes=16, width=16, salt=str(salt))
        estimate = sketch.aggregate(sketch.randomize(TRUTH)).estimate()
        z.append((estimate.shares - SHARES) / estimate.standard_errors)
    z = np.array(z)
    assert abs(z.mean()) < 6.5 / math.sqrt(60)
    assert 0.7 < z.std() < 1.35
    some = make(k=K, epsilon=2, hashes=16, width=16)
    tally = some.aggregate(some.randomize(TRUTH))
    assert some.estimate(tally, [3, 5]).shares.tolist() == pytest.approx(
        tally.estimate().shares[[3, 5]].tolist()
    )


@pytest.mark.parametrize("name", PROTOCOLS)
def test_intervals_cover(name):
    """People drawn from a large population: 95 % intervals miss 5 times in 100."""
    protocol, made_up = PROTOCOLS[name], np.random.default_rng(11)
    misses = trials = 0
    for _ in range(100):
        people = made_up.choice(K, 2000, p=WEIGHTS)
        low, high = protocol.aggregate(protocol.randomize(people)).estimate().intervals()
        misses += int(((low > WEIGHTS) | (high < WEIGHTS)).sum())
        trials += K
    # Categories of one survey are dependent: allow for twice the binomial spread.
    assert abs(misses / trials - 0.05) < 2 * 6.2 * math.sqrt(0.05 * 0.95 / trials)
    assert misses > 0


@pytest.mark.parametrize("name", PROTOCOLS)
def test_tallies_add_up_and_all_answers_alike_are_no_trouble(name):
    protocol = PROTOCOLS[name]
    one, two = protocol.randomize(np.zeros(500, int)), protocol.randomize(np.zeros(700, int))
    added = protocol.aggregate(one) + protocol.aggregate(two)
    together = protocol.aggregate(np.concatenate([one, two]))
    assert added.n == together.n == 1200
    assert np.array_equal(added.counts, together.counts)
    estimate = added.estimate()
    assert abs(estimate.share(0) - 1) < 7 * estimate.standard_error(0)
    assert (estimate.standard_errors > 0).all()
    single = protocol.aggregate(protocol.randomize([1])).estimate()
    assert (single.standard_errors > 0).all()
    with pytest.raises(dp.errors.ReportError, match="different"):
        _ = added + survey.KaryResponse(k=3, epsilon=1).aggregate(np.array([1]))


def test_reports_all_alike_have_errors_and_intervals():
    protocol = survey.KaryResponse(k=3, epsilon=1)
    estimate = protocol.aggregate(np.zeros(50, dtype=int)).estimate()
    assert estimate.share(0) > 1
    low, high = estimate.interval(1, confidence=0.9)
    assert low <= estimate.share(1) < high  # nobody said 1, so that no less can be estimated
    assert estimate.counts == pytest.approx(50 * estimate.shares)
    with pytest.raises(dp.ParameterError, match="category"):
        estimate.share(3)


# Published numbers, through the protocols.


def test_k_ary_response():
    protocol = survey.KaryResponse(k=16, epsilon=1.0)
    assert float(protocol.law.truth) == pytest.approx(0.15341678469596018, rel=1e-12)
    assert float(protocol.law.lie) == pytest.approx(0.056438881020269324, rel=1e-12)
    assert protocol.variance(100_000) == pytest.approx(5.662430016946317e-05, rel=1e-12)
    assert protocol.variance(100_000, 0.3) == pytest.approx(8.106732185797487e-05, rel=1e-12)


def test_symmetric_unary_encoding():
    protocol = survey.UnaryEncoding(k=5, epsilon=1.0, symmetric=True)
    assert float(protocol.law.on) == pytest.approx(0.6224593312018546, rel=1e-12)
    assert float(protocol.law.off) == pytest.approx(0.3775406687981454, rel=1e-12)
    assert protocol.variance(100_000) == pytest.approx(3.917698089032762e-05, rel=1e-12)
    assert float(protocol.loss.pure) == pytest.approx(1, rel=1e-12)


def test_blocks_of_hadamard_response_vary_as_stated_where_answers_are_spread_evenly():
    protocol = survey.HadamardResponse(k=12, epsilon=3, blocks=4)
    parts = np.array([protocol.aggregate([y]).estimate().shares for y in range(protocol.columns)])
    law = np.array(protocol.channel().rows, dtype=float)
    assert law @ parts == pytest.approx(np.eye(12), abs=1e-9)
    per_answer = law @ parts**2 - (law @ parts) ** 2
    others = (per_answer.sum(axis=0) - np.diag(per_answer)) / 11
    for share in (0.0, 0.3):
        wanted = share * np.diag(per_answer) + (1 - share) * others
        assert [protocol.variance(10, share)] * 12 == pytest.approx((wanted / 10).tolist())


def test_binary_hashing_and_hadamard_response():
    for protocol in (
        survey.LocalHashing(k=16, epsilon=1.0, buckets=2),
        survey.HadamardResponse(k=16, epsilon=1.0),
    ):
        assert protocol.variance(100_000) == pytest.approx(4.6826943768311685e-05, rel=1e-12)


def test_subset_selection():
    protocol = survey.SubsetSelection(k=16, epsilon=1.0)
    assert protocol.size == 4
    assert protocol.support.own == pytest.approx(0.4753668864186717, rel=1e-12)
    assert protocol.support.other == pytest.approx(0.23497554090542191, rel=1e-12)
    assert protocol.variance(100_000) == pytest.approx(3.110715705675712e-05, rel=1e-12)


def test_sketches_and_bit_flips():
    sketch = survey.CountMeanSketch(k=100, epsilon=4, hashes=4, width=32)
    assert float(1 - sketch.kept) == pytest.approx(0.11920292202211755, rel=1e-12)
    assert float(1 / (2 * sketch.kept - 1)) == pytest.approx(1.3130352854993312, rel=1e-12)
    signs = survey.HadamardSketch(k=100, epsilon=4, hashes=4, width=32)
    assert float(1 - signs.kept) == pytest.approx(0.01798620996209156, rel=1e-12)
    assert float(1 / (2 * signs.kept - 1)) == pytest.approx(1.0373147207275482, rel=1e-12)
    flips = survey.BitFlip(k=32, epsilon=4, bits=4)
    assert float(flips.kept) == pytest.approx(0.8807970779778824, rel=1e-12)
    assert flips.variance(1) == pytest.approx(1.448123321932621, rel=1e-12)


def test_the_published_second_level_of_lasting_response_is_noisier_than_it_says():
    published = survey.LastingResponse(k=16, epsilon=1, permanent=2, published=True)
    p2 = float(published.levels[1])
    assert p2 == pytest.approx(0.2140902621488536, rel=1e-10)
    assert (1 - p2) / 15 == pytest.approx(0.05239398252340976, rel=1e-10)
    assert float(published.loss.pure) == pytest.approx(0.5732333266681426, rel=1e-10)
    assert float(survey.LastingResponse(k=16, epsilon=1, permanent=2).loss.pure) == pytest.approx(1)


def test_square_wave():
    protocol = survey.SquareWave(epsilon=1.0, bounds=(0, 1), steps=65536)
    assert float(half_width(protocol.epsilon)) == pytest.approx(0.25608293750147265, rel=1e-12)
    near, far = (float(p) * protocol.steps for p in protocol.law.each)
    assert near == pytest.approx(1.1363051215897186, rel=1e-4)  # the window is whole cells wide
    assert far == pytest.approx(0.4180232931306735, rel=1e-4)
    assert protocol.law.width * near + protocol.steps * far == pytest.approx(protocol.steps)
    assert near / far == pytest.approx(math.e, rel=1e-12)


def test_shuffled_reports():
    for epsilon, published in (
        (1.0, 0.07255492488700492),
        (1.0986122886681098, 0.08207912254227914),
    ):
        crowd = survey.in_the_crowd(
            survey.KaryResponse(k=2, epsilon=epsilon), people=100_000, delta=1e-6
        )
        assert float(crowd.central.bound) == pytest.approx(published, rel=1e-9)
        assert "anonymous" in crowd.needs
        assert float(crowd.local.pure) == pytest.approx(epsilon)
    with pytest.raises(dp.ParameterError, match="people"):
        survey.in_the_crowd(survey.KaryResponse(k=2, epsilon=7), people=100_000, delta=1e-6)
    with pytest.raises(dp.errors.ParameterTypeError, match="protocol"):
        survey.in_the_crowd(3, people=100_000, delta=1e-6)


def test_the_exact_delta_of_shuffled_answers_is_below_the_bound():
    protocol = survey.KaryResponse(k=2, epsilon=1.0986122886681098)
    n, q = 1000, float(protocol.law.lie)
    no = stats.binom(n, q).pmf(np.arange(n + 1))
    rest = stats.binom(n - 1, q).pmf(np.arange(n + 1))
    yes = (1 - q) * np.append(0, rest[:-1]) + q * rest
    delta = np.maximum(yes - math.exp(0.1) * no, 0).sum()
    other = np.maximum(no - math.exp(0.1) * yes, 0).sum()
    assert max(delta, other) == pytest.approx(4.945724797471975e-05, rel=1e-6)


def test_places():
    protocol = survey.Places(epsilon=0.006931471805599453 * 200, within=200)
    assert float(protocol.mechanism.scale * 2) == pytest.approx(288.53900817779265, rel=1e-9)
    moved = protocol.randomize(np.zeros((20_000, 2)))
    share = (np.hypot(*moved.T) <= 200).mean()
    assert abs(share - 0.4034264097200273) < 6.2 * math.sqrt(0.24 / 20_000)
    x, y = protocol.aggregate(moved + np.array([1000.0, -500.0]))
    assert abs(x.mean - 1000) < 6.2 * x.standard_error
    assert abs(y.mean + 500) < 6.2 * y.standard_error
    assert x.standard_error == pytest.approx(math.sqrt(3 / 20_000) * 144.27, rel=0.05)


# Which protocol.


@pytest.mark.parametrize(
    ("k", "epsilon", "kind"),
    [
        (2, 1.0, survey.KaryResponse),
        (4, 2.0, survey.KaryResponse),
        (128, 1.0, survey.SubsetSelection),
        (1024, 1.0, survey.LocalHashing),
        (100_000, 1.0, survey.LocalHashing),
        (1000, 12.0, survey.KaryResponse),
    ],
)
def test_the_best_protocol(k, epsilon, kind):
    best = dp.survey.best_protocol(k, epsilon, 10_000)
    assert isinstance(best, kind)
    table = survey.protocol_table(k, epsilon, 10_000)
    assert [each.standard_error for each in table] == sorted(e.standard_error for e in table)
    assert best.variance(10_000) <= 1.05 * min(e.standard_error for e in table) ** 2


def test_where_hashing_would_take_a_server_too_long_hadamard_is_taken():
    assert isinstance(dp.survey.best_protocol(100_000, 1.0, 10**9), survey.HadamardResponse)
    assert isinstance(dp.survey.best_protocol(2**32, 1.0, 10**9), survey.LocalHashing)
