"""What clients draw follows their exact channels; all draws come from the exact source."""

from collections import Counter
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

import deniable as dp
from chance import FALSE_ALARM, plausible_share
from deniable import survey
from deniable.survey.hadamard import parity
from deniable.survey.hashing import bucket
from survey.protocols import CASES, small_windows

N = 40_000


def fits(outputs, law, labels):
    """A chi-square test of outputs against their law; what the law forbids fails at once."""
    seen = Counter(outputs)
    assert set(seen) <= set(labels)
    wanted = np.array([float(p) for p in law]) * len(outputs)
    found = np.array([seen[label] for label in labels], dtype=float)
    full = wanted >= 10
    found, wanted = (
        np.append(found[full], found[~full].sum()),
        np.append(wanted[full], wanted[~full].sum()),
    )
    if wanted[-1] < 10:
        found, wanted = found[:-1], wanted[:-1] * found[:-1].sum() / wanted[:-1].sum()
    if len(found) == 1:
        return True
    return stats.chisquare(found, wanted).pvalue > FALSE_ALARM


def bits_of(rows, width):
    return [tuple(row) for row in np.unpackbits(rows, axis=1, count=width).tolist()]


def plain(protocol, reports):
    """Reports as the labels of the channel's outputs."""
    if isinstance(protocol, survey.SubsetSelection):
        return [
            tuple(i for i, bit in enumerate(row) if bit) for row in bits_of(reports, protocol.k)
        ]
    if isinstance(protocol, survey.UnaryEncoding | survey.Rappor):
        return bits_of(reports, protocol.k)
    return reports.tolist()


@pytest.mark.parametrize(
    "case",
    [c for c in CASES if c.name not in ("OLH", "BLH", "CMS", "HCMS", "one bit", "k-ary, many")
     and not c.name.startswith("dBit") and c.name != "square wave"],
    ids=lambda case: case.name,
)  # fmt: skip
def test_reports_follow_the_channel(case):
    protocol = case.make(1.0)
    channel = protocol.channel()
    weaker = case.make(0.7).channel()
    last = protocol.k - 1
    for truth in (0, last):
        drawn = plain(protocol, protocol.randomize(np.full(N, truth)))
        assert fits(drawn, channel.row(truth), channel.outputs)
        assert not fits(drawn, channel.row((truth + 1) % protocol.k), channel.outputs)
        if weaker.outputs == channel.outputs:
            assert not fits(drawn, weaker.row(truth), channel.outputs)
    mixed = protocol.randomize(np.arange(N) % protocol.k)
    average = [sum(column) / protocol.k for column in zip(*channel.rows, strict=True)]
    assert fits(plain(protocol, mixed), average, channel.outputs)


@pytest.mark.parametrize("buckets", [2, 4, 5])
def test_local_hashing_follows_its_channel_under_every_function(buckets):
    protocol = survey.LocalHashing(k=1000, epsilon=1.0, buckets=buckets)
    law = (protocol.law.truth, *[protocol.law.lie] * (buckets - 1))
    truth = np.arange(N) % 1000
    reports = protocol.randomize(truth)
    own = bucket(reports[:, :3], truth, buckets)
    shift = (reports[:, 3].astype(np.int64) - own) % buckets
    assert fits(shift.tolist(), law, range(buckets))
    assert not fits(shift.tolist(), [Fraction(1, buckets)] * buckets, range(buckets))
    other = bucket(reports[:, :3], (truth + 1) % 1000, buckets) == reports[:, 3].astype(np.int64)
    assert plausible_share(other.sum(), N, protocol.support.other)
    words = reports[:, :3].ravel()
    for shift_by in (0, 17, 60):
        ones = int(((words >> np.uint64(shift_by)) & np.uint64(1)).sum())
        assert plausible_share(ones, words.size, 0.5)


def test_sketches_follow_their_channels_under_every_function():
    sketch = survey.CountMeanSketch(k=6, epsilon=1.0, hashes=3, width=5, salt="a")
    payloads = sketch.to_wire(sketch.randomize(np.full(3 * N, 2)))
    assert fits([function for function, _ in payloads], [Fraction(1, 3)] * 3, range(3))
    for function in range(3):
        channel = sketch.channel(function)
        rows = np.array([[int(text, 16)] for number, text in payloads if number == function])
        drawn = bits_of(rows.astype(np.uint8), 5)
        assert fits(drawn, channel.row(2), channel.outputs)
        flat = [Fraction(1, len(channel.outputs))] * len(channel.outputs)
        assert not fits(drawn, flat, channel.outputs)
    signs = survey.HadamardSketch(k=6, epsilon=1.0, hashes=3, width=8, salt="a")
    reports = signs.randomize(np.full(N, 4))
    assert fits(reports[:, 0].tolist(), [Fraction(1, 3)] * 3, range(3))
    assert fits(reports[:, 1].tolist(), [Fraction(1, 8)] * 8, range(8))
    true = parity(signs.place(np.full(N, 4), reports[:, 0]) & reports[:, 1])
    right = int((true == reports[:, 2]).sum())
    assert plausible_share(right, N, float(signs.kept))
    assert not plausible_share(right, N, float(signs.kept) - 0.03)


@pytest.mark.parametrize("bits", [1, 3, 5])
def test_bit_flips_follow_their_channel_at_uniform_places(bits):
    protocol = survey.BitFlip(k=5, epsilon=1.0, bits=bits)
    reports = protocol.randomize(np.full(N, 1))
    sets = [tuple(row) for row in (reports // 2).tolist()]
    every = [*combinations(range(5), bits)]
    assert fits(sets, [Fraction(1, len(every))] * len(every), every)
    for places in every[:3]:
        channel = protocol.channel(places)
        drawn = [
            tuple(row) for row, s in zip((reports % 2).tolist(), sets, strict=True) if s == places
        ]
        assert fits(drawn, channel.row(1), channel.outputs)
        if 1 in places:
            assert not fits(drawn, channel.row((places[0] + 2) % 5), channel.outputs)


def test_the_places_of_a_client_stay():
    protocol = survey.BitFlip(k=50, epsilon=1.0, bits=5)
    places = protocol.places(100)
    for _ in range(3):
        assert (protocol.report(np.zeros(100, dtype=int), places) // 2 == places).all()


@pytest.mark.parametrize("which", range(4))
def test_windows_follow_their_channel(which):
    window = small_windows(1.0)[which]
    for start in (0, window.steps):
        drawn = window.draw(np.full(N, start)).tolist()
        channel = window.channel([0, window.steps])
        assert fits(drawn, channel.row(start), channel.outputs)
        assert not fits(drawn, channel.row(window.steps - start), channel.outputs)


def test_one_bit_means_follow_their_channel():
    protocol = survey.OneBitMean(epsilon=1.0, bounds=(0, 8))
    for value, share in ((0, 0), (2, Fraction(1, 4)), (8, 1), (99, 1), (-5, 0)):
        drawn = protocol.randomize(np.full(N, value))
        ones = protocol.channel([Fraction(share)]).rows[0][1]
        assert plausible_share(drawn.sum(), N, float(ones))
        assert not plausible_share(drawn.sum(), N, float(ones) - 0.05)


def test_square_waves_follow_their_channel():
    protocol = survey.SquareWave(epsilon=1.0, bounds=(0, 40), steps=40)
    channel = protocol.channel()
    for value in (0, 13, 40):
        drawn = protocol.randomize(np.full(N, value)).tolist()
        assert fits(drawn, channel.row(value), channel.outputs)
        assert not fits(drawn, channel.row((value + 20) % 40), channel.outputs)


def test_hybrid_reports_are_of_each_kind_as_often_as_stated():
    protocol = survey.HybridMean(epsilon=2.0, bounds=(0, 1))
    reports = protocol.randomize(np.full(N, 0.5))
    assert plausible_share(reports[:, 0].sum(), N, float(protocol.law.share))
    assert not plausible_share(reports[:, 0].sum(), N, float(protocol.law.share) - 0.05)
    small = survey.HybridMean(epsilon=0.5, bounds=(0, 1))
    assert small.randomize(np.full(100, 0.5))[:, 0].sum() == 0


def test_sampled_parts_are_drawn_evenly():
    one = survey.SampleOne(tuple(survey.KaryResponse(k=k, epsilon=1) for k in (2, 3, 4)))
    sizes = [len(part) for part in one.randomize([np.zeros(N, dtype=int)] * 3)]
    assert sum(sizes) == N
    assert stats.chisquare(sizes).pvalue > FALSE_ALARM


def test_no_two_calls_are_alike_and_reports_are_heard_of_as_releases():
    protocol = survey.UnaryEncoding(k=64, epsilon=1.0)
    truth = np.zeros(50, dtype=int)
    assert not np.array_equal(protocol.randomize(truth), protocol.randomize(truth))
    heard = dp.replay(lambda data: protocol.randomize(data)[:0], truth, truth + 1)
    assert [finding.kind.value for finding in heard.findings] == ["unknown mechanism"]


def test_places_are_given_for_every_client():
    protocol = survey.BitFlip(k=50, epsilon=1.0, bits=5)
    with pytest.raises(dp.ParameterError, match="places"):
        protocol.report([1, 2, 3], protocol.places(1))
