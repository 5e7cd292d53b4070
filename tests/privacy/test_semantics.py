import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, strategies as st

import deniable as dp
from deniable.privacy import sensitivity
from deniable.privacy.channel import Channel
from deniable.privacy.semantics import (
    correlated_adversary,
    event_range,
    name_and_shame,
    posterior,
    posterior_bounds,
    sampling_channel,
    strong_adversary,
    with_and_without,
)
from deniable.privacy.theorems import advanced_composition

F = Fraction


def test_the_range_of_an_event_on_a_neighbour():
    five_quarters = math.log(5 / 4)
    first, second = event_range(0.2, epsilon=five_quarters), event_range(0.5, epsilon=five_quarters)
    assert (first.low, first.high) == (pytest.approx(0.16), pytest.approx(0.25))
    assert (second.low, second.high) == (pytest.approx(0.4), pytest.approx(0.6))
    assert event_range(0, epsilon=1).high == 0
    assert event_range(1, epsilon=1).low == 1
    with_delta = event_range(0.2, epsilon=five_quarters, delta=0.01)
    assert with_delta.low < 0.16
    assert with_delta.high > 0.25
    for bad in (-0.1, 1.1, math.nan):
        with pytest.raises(dp.ParameterError):
            event_range(bad, epsilon=1)


@given(st.integers(0, 2**32), st.floats(0.05, 3))
def test_no_private_channel_leaves_the_range(seed, epsilon):
    generator = np.random.default_rng(seed)
    rr = dp.RandomizedResponse(epsilon=epsilon, categories=range(4))
    here, there = rr.rows[0], rr.rows[int(generator.integers(1, 4))]
    event = generator.integers(0, 2, size=4).astype(bool)
    p, q = (float(sum(v for v, e in zip(row, event, strict=True) if e)) for row in (here, there))
    found = event_range(p, epsilon=epsilon)
    assert found.low - 1e-12 <= q <= found.high + 1e-12


def random_channel(generator, inputs, outputs=4) -> Channel:
    raw = generator.integers(1, 30, size=(len(inputs), outputs))
    rows = tuple(tuple(F(int(v), int(r.sum())) for v in r) for r in raw)
    return Channel(tuple(inputs), tuple(range(outputs)), rows)


def random_prior(generator, inputs):
    raw = generator.integers(1, 30, size=len(inputs))
    return {x: F(int(v), int(raw.sum())) for x, v in zip(inputs, raw, strict=True)}


@given(st.integers(0, 2**32))
def test_a_strong_adversary_s_belief_moves_by_no_more_than_epsilon(seed):
    generator = np.random.default_rng(seed)
    values = tuple("abcd")
    channel, prior = random_channel(generator, values), random_prior(generator, values)
    epsilon = channel.epsilon()
    for output, value in product(range(4), values):
        belief = strong_adversary(prior, channel, output, value)
        assert belief.within_bounds
        assert math.exp(-epsilon) - 1e-12 <= belief.ratio <= math.exp(epsilon) + 1e-12
        assert sum(posterior(prior, channel, output).values()) == 1


def test_the_strong_adversary_s_bound_is_attained():
    channel = dp.RandomizedResponse.two_coins().channel()
    belief = strong_adversary({True: F(1, 10), False: F(9, 10)}, channel, True, True)
    assert belief.posterior == F(1, 4)
    assert belief.bounds.high == pytest.approx(0.25)
    tiny = strong_adversary({True: F(1, 10**9), False: 1 - F(1, 10**9)}, channel, True, True)
    assert tiny.ratio == pytest.approx(3, rel=1e-6)


@given(st.integers(0, 2**32), st.integers(1, 3))
def test_correlated_people_multiply_epsilon(seed, h):
    """One person's value decides those of h people; a noisy sum of all of them is released."""
    generator = np.random.default_rng(seed)
    q = F(int(generator.integers(1, 20)), 21)
    outputs = range(-12, 16)
    raw = {s: [q ** abs(z - s) for z in outputs] for s in (0, h)}
    rows = tuple(tuple(w / sum(raw[s]) for w in raw[s]) for s in (0, h))
    one = {s: [q ** abs(z - s) for z in outputs] for s in (0, 1)}
    per_person = Channel(
        (0, 1), tuple(outputs), tuple(tuple(w / sum(one[s]) for w in one[s]) for s in (0, 1))
    )
    joint = Channel((0, 1), tuple(outputs), rows)
    prior = {0: F(3, 10), 1: F(7, 10)}
    for output in outputs:
        after = posterior(prior, joint, output)[1]
        bounds = posterior_bounds(F(7, 10), h * per_person.epsilon() * 1.2 + 1e-9)
        assert bounds.low <= after <= bounds.high
    belief = correlated_adversary(prior, per_person, 0, 1, correlated=h)
    assert belief.bounds.high >= strong_adversary(prior, per_person, 0, 1).bounds.high


@given(st.integers(0, 2**32))
def test_with_or_without_one_person_beliefs_differ_by_two_epsilon(seed):
    generator = np.random.default_rng(seed)
    inputs = tuple(product("ab", repeat=2))
    channel, prior = random_channel(generator, inputs), random_prior(generator, inputs)
    epsilon = max(
        math.log(channel.ratio(x, y))
        for x in inputs
        for y in inputs
        if sum(a != b for a, b in zip(x, y, strict=True)) == 1
    )
    for output, person in product(range(4), range(2)):
        found = with_and_without(prior, channel, output, person=person, absent="a")
        for pair in found.values():
            assert abs(math.log(pair.with_them / pair.without)) <= 2 * epsilon + 1e-9
        assert sum(pair.without for pair in found.values()) == 1


def test_bad_priors_are_refused():
    channel = dp.RandomizedResponse.two_coins().channel()
    for prior in ({True: 0.5}, {True: 1.5, False: -0.5}, {"x": 1}, {True: math.nan, False: 1}):
        with pytest.raises(dp.ParameterError):
            posterior(prior, channel, True)
    with pytest.raises(dp.ParameterError):
        strong_adversary({True: 1, False: 0}, channel, True, True)
    silent = Channel((0, 1), (0, 1), ((F(1), F(0)), (F(1), F(0))))
    with pytest.raises(dp.ParameterError, match="probability 0"):
        posterior({0: F(1, 2), 1: F(1, 2)}, silent, 1)


def test_name_and_shame_passes_delta_and_exposes_people():
    delta = F(1, 100)
    channel = name_and_shame("ab", 2, delta)
    for x, y in product(channel.inputs, repeat=2):
        if sum(a != b for a, b in zip(x, y, strict=True)) == 1:
            here, there = (channel.rows[channel.inputs.index(v)] for v in (x, y))
            assert sum(max(p - q, 0) for p, q in zip(here, there, strict=True)) == delta
    assert channel.epsilon() == math.inf
    prior = {x: F(1, 4) for x in channel.inputs}
    named = posterior(prior, channel, ("a", None))
    assert named["a", "a"] + named["a", "b"] == 1  # believed with certainty, from one half


def test_sampling_alone_is_not_private():
    channel = sampling_channel("ab", 2, F(1, 10))
    assert channel.epsilon() == math.inf
    assert channel.probability(("a", None), ("b", "b")) == 0
    assert channel.probability(("a", None), ("a", "b")) > 0


def test_advanced_composition_has_the_right_sign():
    found = advanced_composition(epsilon=0.1, count=100, slack=1e-6)
    assert found == pytest.approx(math.sqrt(200 * math.log(1e6)) * 0.1 + 10 * math.expm1(0.1))
    wrong = math.sqrt(200 * math.log(1e6)) * 0.1 + 10 * (math.exp(0.1) + 1)
    assert found < wrong
    tight = dp.repeat(dp.losses.PureLoss(bound=0.1), 100)
    assert tight.epsilon(delta=1e-6) < found


def test_jointly_beats_composed():
    """A histogram of k cells costs noise 1/ε; k counts composed cost k/ε."""
    for k in (2, 10, 50):
        joint = dp.Histogram(epsilon=1, cells=range(k)).error(confidence=0.95)
        separate = dp.Geometric(epsilon=F(1, k), sensitivity=1)
        assert dp.repeat(separate.loss, k).pure == 1
        assert separate.error(confidence=0.95) > 0.9 * k * joint


RECORDS = {"count": (0, 1), "values": (-2, 0, 3)}


def vector_queries():
    low, high = -2, 3
    return {
        "count": (lambda d: [sum(v > 0 for v in d)], sensitivity.count),
        "sum": (lambda d: [sum(d)], lambda r: sensitivity.total((low, high), r)),
        "max": (lambda d: [max(d, default=low)], lambda r: sensitivity.maximum((low, high), r)),
        "min": (lambda d: [min(d, default=high)], lambda r: sensitivity.minimum((low, high), r)),
        "median": (
            lambda d: [sorted(d)[(len(d) - 1) // 2] if d else low],
            lambda r: sensitivity.median((low, high), r),
        ),
        "histogram": (
            lambda d: [sum(v == c for v in d) for c in (-2, 0, 3)],
            sensitivity.histogram,
        ),
        "counts": (
            lambda d: [sum(v > -5 for v in d), sum(v < 5 for v in d), sum(v * v >= 0 for v in d)],
            lambda r: sensitivity.counts(3, r),
        ),
    }


def brute(query, relation, *, at_least=0):
    """The worst move over every pair of neighbours with up to four records."""
    worst_l1, worst_l2 = F(0), 0.0
    domain = (-2, 0, 3)
    for size in range(5):
        for data in product(domain, repeat=size):
            if relation == "replace":
                others = [(*data[:i], w, *data[i + 1 :]) for i in range(size) for w in domain]
            else:
                others = [(*data, w) for w in domain]
            for other in others:
                if min(len(data), len(other)) < at_least:
                    continue
                gap = [abs(F(a) - F(b)) for a, b in zip(query(data), query(other), strict=True)]
                worst_l1 = max(worst_l1, sum(gap))
                worst_l2 = max(worst_l2, math.sqrt(sum(g * g for g in gap)))
    return worst_l1, worst_l2


@pytest.mark.parametrize("name", vector_queries())
@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_the_catalogue_of_sensitivities_agrees_with_its_brute_force_twin(name, relation):
    query, stated = vector_queries()[name]
    l1, l2 = brute(query, relation)
    found = stated(relation)
    if name == "counts" and relation == "replace":
        # These three conditions hold for every record, so a replacement moves none of them.
        assert l1 <= found.l1
        return
    assert found.l1 == l1
    assert float(found.l2) == pytest.approx(l2, rel=1e-12)
    assert float(found.l2) >= l2 * (1 - 1e-15)


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize("at_least", [1, 2, 3])
def test_the_mean_needs_a_minimum_size(relation, at_least):
    l1, _ = brute(lambda d: [F(sum(d), len(d)) if d else F(0)], relation, at_least=at_least)
    assert sensitivity.mean((-2, 3), at_least=at_least, relation=relation).l1 == l1


def test_the_average_age_of_the_lectures():
    assert sensitivity.mean((0, 120), at_least=100, relation="replace").l1 == F(6, 5)
    assert sensitivity.mean((0, 120), at_least=1, relation="replace").l1 == 120
    assert sensitivity.counts(7).l1 == 7
    assert sensitivity.histogram("replace").l1 == 2
    for bad in ((1, 1), (2, 1), (math.nan, 1)):
        with pytest.raises(dp.ParameterError):
            sensitivity.total(bad)
    with pytest.raises(dp.ParameterError):
        sensitivity.mean((0, 1), at_least=0)


def test_odd_questions_are_refused():
    channel = name_and_shame("ab", 1, 0.1)
    prior = {("a",): F(1, 2), ("b",): F(1, 2)}
    with pytest.raises(dp.ParameterError, match="impossible"):
        with_and_without(prior, channel, ("a",), person=0, absent="b")
    with pytest.raises(dp.ParameterError, match="inputs"):
        with_and_without(prior, channel, ("a",), person=0, absent="z")
    with pytest.raises(dp.ParameterError, match="outputs"):
        posterior(prior, channel, "z")
    with pytest.raises(dp.ParameterError, match="person"):
        with_and_without(prior, channel, ("a",), person=3, absent="b")
    with pytest.raises(dp.ParameterError, match="person"):
        with_and_without(prior, channel, ("a",), person="0", absent="b")
    with pytest.raises(dp.ParameterError, match="map"):
        posterior([0.5, 0.5], channel, ("a",))
    with pytest.raises(dp.ParameterError, match="too large"):
        name_and_shame("abcdef", 9, 0.1)
    with pytest.raises(dp.ParameterError, match="rate"):
        sampling_channel("ab", 1, 1)
    assert event_range(0.5, epsilon=800).high == 1
    assert posterior_bounds(0.2, 800).high == 1
    with pytest.raises(dp.ParameterError, match="epsilon"):
        posterior_bounds(0.2, -1)
