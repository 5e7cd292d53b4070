"""What a client can say, exactly: the worst log ratio is ε, and never above."""

import math
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest

import deniable as dp
from deniable import survey
from deniable.privacy.channel import worst_of_all
from deniable.privacy.exact import exact, log_up
from deniable.survey.hashing import (
    bucket,
    collision,
    polynomial_bucket,
    polynomial_collision,
    spoken_for,
)
from deniable.survey.thresholds import WORD, keep
from survey.protocols import CASES, small_windows

EPSILONS = [0.001, 0.3, 1.0, math.log(3), 2.5, 6.0]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_worst_log_ratio_is_epsilon_and_never_above(case, epsilon):
    protocol = case.make(epsilon)
    ratios = [worst_of_all(channel.rows) for channel in case.channels(protocol)]
    worst = max(ratios)
    assert log_up(Fraction(worst)) <= exact(epsilon, "epsilon")
    assert protocol.loss.pure <= exact(epsilon, "epsilon")
    assert protocol.loss.relation == dp.Relation.REPLACE
    assert float(log_up(Fraction(worst))) == pytest.approx(epsilon, rel=1e-12)
    assert float(protocol.loss.pure) == pytest.approx(epsilon, rel=1e-12)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_loss_is_no_less_than_any_pair_of_answers(case):
    protocol = case.make(1.0)
    channels = list(case.channels(protocol))
    for epsilon in (0.0, 0.3, 0.9):
        stated = protocol.loss.delta(epsilon=epsilon)
        if case.name in ("OLH", "BLH") or case.name.startswith("dBitFlip"):
            continue  # the public coins are part of the loss: see below
        assert max(channel.delta(epsilon) for channel in channels) <= stated + 1e-12


@pytest.mark.parametrize("name", ["k-ary", "OUE", "SUE", "subset", "Hadamard, 1 block", "RAPPOR"])
def test_the_loss_is_exactly_that_of_the_channel(name):
    case = next(case for case in CASES if case.name == name)
    protocol = case.make(1.0)
    (channel,) = case.channels(protocol)
    for epsilon in (0.0, 0.3, 0.9):
        assert protocol.loss.delta(epsilon=epsilon) == pytest.approx(channel.delta(epsilon))


def test_public_places_are_part_of_the_loss_of_bit_flips():
    assert float(survey.BitFlip(k=5, epsilon=1, bits=5).loss.pure) == pytest.approx(1, rel=1e-12)
    protocol = survey.BitFlip(k=5, epsilon=1, bits=3)
    case = next(case for case in CASES if case.name == "dBitFlip")
    for epsilon in (0.0, 0.3, 0.9):
        tables = [np.array(channel.rows, dtype=float) for channel in case.channels(protocol)]
        worst = max(
            np.mean([np.maximum(t[x] - math.exp(epsilon) * t[y], 0).sum() for t in tables])
            for x, y in permutations(range(5), 2)
        )
        assert protocol.loss.delta(epsilon=epsilon) == pytest.approx(worst)


def test_public_functions_are_part_of_the_loss_of_local_hashing():
    """Two answers collide with probability 1/g, and then a report tells nothing."""
    protocol = survey.LocalHashing(k=6, epsilon=1, buckets=4)
    p, q = float(protocol.law.truth), float(protocol.law.lie)
    for epsilon in (0.0, 0.3, 0.9):
        wanted = 0.75 * max(0.0, p - math.exp(epsilon) * q)
        assert protocol.loss.delta(epsilon=epsilon) == pytest.approx(wanted)


@pytest.mark.slow
@pytest.mark.parametrize(
    "epsilon",
    [
        pytest.param(e, marks=() if place % 2 else pytest.mark.soak)
        for place, e in enumerate(EPSILONS)
    ],
)
def test_windows_of_any_shape_hold_epsilon_and_are_unbiased(epsilon):
    for window in small_windows(epsilon):
        channel = window.channel(range(window.steps + 1))
        worst = worst_of_all(channel.rows)
        assert log_up(Fraction(worst)) <= exact(epsilon, "epsilon")
        assert float(log_up(Fraction(worst))) == pytest.approx(epsilon, rel=1e-12)
        assert worst_of_all(window.pair) == worst
        for gap in (0.0, epsilon / 2):
            curve = dp.losses.ChannelLoss(rows=window.pair).delta(epsilon=gap)
            assert channel.delta(gap) == pytest.approx(curve)
        slope, offset = window.line
        for start, row in zip(channel.inputs, channel.rows, strict=True):
            mean = sum(p * (slope * y + offset) for y, p in enumerate(row))
            assert mean == Fraction(start, window.steps)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("make", [survey.PiecewiseMean, survey.HybridMean, survey.OneBitMean])
def test_means_hold_epsilon_on_their_whole_grids(make, epsilon):
    protocol = make(epsilon=epsilon, bounds=(-3, 5))
    worst = worst_of_all(protocol.pair)
    assert protocol.loss.pure <= exact(epsilon, "epsilon")
    assert float(log_up(Fraction(worst))) == pytest.approx(epsilon, rel=1e-8)
    assert all(sum(row) == 1 for row in protocol.pair)


def test_a_window_in_a_grid_too_large_to_write_down_has_the_law_of_a_small_one():
    window = survey.PiecewiseMean(epsilon=1, bounds=(0, 1)).law
    near, far = window.each
    assert window.width * near + window.steps * far == 1
    assert log_up(near / far) <= 1
    assert (window.steps, window.outputs) == (2**30, 2**30 + window.width)


@pytest.mark.parametrize("published", [False, True])
def test_the_two_levels_of_lasting_protocols_are_the_product_of_their_channels(published):
    for protocol in (
        survey.LastingResponse(k=4, epsilon=1, permanent=2, published=published),
        survey.Rappor(k=3, epsilon=1, permanent=2),
    ):
        permanent = protocol.law_of(protocol.levels[0]).channel().rows
        first = np.array(permanent, dtype=object)
        assert log_up(Fraction(worst_of_all(permanent))) <= 2
        assert protocol.lasting_loss.pure <= 2
        assert float(protocol.lasting_loss.pure) == pytest.approx(2, rel=1e-12)
        again = protocol.levels[1]
        if isinstance(protocol, survey.Rappor):
            outputs = protocol.channel().outputs
            second = [
                [
                    math.prod(again if a == b else 1 - again for a, b in zip(x, y, strict=True))
                    for y in outputs
                ]
                for x in outputs
            ]
        else:
            second = [[again if x == y else (1 - again) / 3 for y in range(4)] for x in range(4)]
        whole_way = first @ np.array(second, dtype=object)
        assert whole_way.tolist() == [list(row) for row in protocol.channel().rows]


def test_several_questions_answered_together_add_up_and_one_drawn_does_not():
    parts = (survey.KaryResponse(k=3, epsilon=0.5), survey.UnaryEncoding(k=2, epsilon=0.5))
    channels = [part.channel() for part in parts]
    inputs = [*product(range(3), range(2))]
    together = survey.Together(parts)
    joint = together.channel(inputs, channels)
    assert float(together.loss.pure) == pytest.approx(1, rel=1e-12)
    assert together.loss.pure <= 1
    assert joint.epsilon() == pytest.approx(1, rel=1e-12)
    one = survey.SampleOne(parts)
    drawn = one.channel(inputs, channels)
    assert drawn.epsilon() == pytest.approx(0.5, rel=1e-12)
    assert one.loss.pure <= Fraction(1, 2)
    for epsilon in (0.0, 0.2, 0.4):
        assert one.loss.delta(epsilon=epsilon) == pytest.approx(drawn.delta(epsilon))


def test_trees_and_heavy_hitters_cost_one_report():
    assert survey.Hierarchy(k=100, epsilon=1).loss.pure <= 1
    assert survey.HeavyHitters(bits=16, epsilon=1).loss.pure <= 1
    assert float(survey.Hierarchy(k=100, epsilon=1).loss.pure) == pytest.approx(1, rel=1e-9)


def test_probabilities_are_thresholds_and_the_next_one_would_be_too_much():
    for epsilon in (Fraction(1, 10), Fraction(1), Fraction(7)):
        for weight, root in ((Fraction(1), 1), (Fraction(1, 9), 1), (Fraction(1), 2)):
            p = keep(epsilon, weight, root)
            assert p.denominator <= WORD
            assert WORD % p.denominator == 0
            more = p + Fraction(1, WORD)
            assert root * log_up(more / (1 - more) / weight) > epsilon


def test_three_values_fall_independently():
    """The theorem behind local hashing, by going through all polynomials modulo a small prime.

    Every triple of residues of three different values is met exactly once.
    """
    p = 7
    c = np.stack(np.meshgrid(*[np.arange(p)] * 3)).reshape(3, -1)
    residues = [(c[0] + c[1] * v + c[2] * v * v) % p for v in range(p)]
    for u, v, w in permutations(range(p), 3):
        met = np.bincount(residues[u] * p * p + residues[v] * p + residues[w], minlength=p**3)
        assert (met == 1).all()
    for g in (2, 3, 4, 5, 7, 256, 65536):
        assert 0 <= collision(g) - Fraction(1, g) < Fraction(g, 2**61)
        assert 0 < polynomial_collision(g) - Fraction(1, g) < Fraction(g, 2**30)


def test_buckets_are_those_of_plain_integers():
    made_up = np.random.default_rng(5)
    large = 2**61 - 1
    seeds = made_up.integers(0, large, (200, 3), dtype=np.uint64)
    seeds[:3] = [[large - 1] * 3, [0, 0, large - 1], [0, 0, 0]]
    values = made_up.integers(0, 2**31 - 1, 200)
    for g in (2, 3, 7, 1000, 65536):
        wide = np.concatenate([[2**32 - 1] * 3, values[3:] * 2])
        wanted = [
            (((int(c) + int(b) * int(v) + int(a) * int(v) ** 2) % large >> 29) * g) >> 32
            for (c, b, a), v in zip(seeds, wide, strict=True)
        ]
        assert bucket(seeds, wide, g).tolist() == wanted
        candidates = np.array([2**32 - 3, 2**32 - 2, 2**32 - 1, 5, 0, 1, 2, 70_000])
        named = made_up.integers(0, g, 200)
        spoken = [int((bucket(seeds, np.full(200, v), g) == named).sum()) for v in candidates]
        assert spoken_for(seeds, named, g, candidates).tolist() == spoken
        coefficients = seeds % np.uint64(2**31 - 1)
        prime = 2**31 - 1
        wanted = [
            ((int(c) + int(b) * int(v) + int(a) * int(v) ** 2) % prime * g) >> 31
            for (c, b, a), v in zip(coefficients, values, strict=True)
        ]
        assert polynomial_bucket(coefficients, values, g).tolist() == wanted
