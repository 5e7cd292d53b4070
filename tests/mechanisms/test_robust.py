"""Quantiles, propose-test-release, subsample and aggregate."""

import math
import time
from decimal import Decimal
from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

import deniable as dp
from chance import plausible_share
from deniable.mechanisms.propose_test_release import (
    bin_distance,
    exceeds,
    median_distance,
    scale_bin,
)
from deniable.mechanisms.quantile import _candidates

F = Fraction


def quantile_law(mechanism: dp.Quantile, values: list[int], cells: int) -> list[float]:
    """P(output in (c, c+1)) from the definition; single points weigh nothing on a continuum."""
    factor = mechanism._factor * mechanism.share.denominator
    n, q = len(values), float(mechanism.share)
    gaps = [abs(sum(v <= c for v in values) - q * n) for c in range(cells)]
    weights = [math.exp(-float(factor) * gap) for gap in gaps]
    return [w / sum(weights) for w in weights]


def grid_law(mechanism: dp.Quantile, values: list[int], top: int) -> list[Fraction | float]:
    """The mechanism on the small grid 0, ..., top, point by point, from its definition."""
    factor = float(mechanism._factor * mechanism.share.denominator)
    n, q = len(values), float(mechanism.share)
    weights = []
    for x in range(top + 1):
        below, upto = sum(v < x for v in values), sum(v <= x for v in values)
        weights.append(math.exp(-factor * max(below - q * n, q * n - upto, 0.0)))
    return [w / sum(weights) for w in weights]


@pytest.mark.parametrize("values", [[], [0], [4], [2, 2, 2], [0, 0, 3, 4, 4], [1, 2, 3]])
def test_runs_of_candidates_are_the_grid_point_by_point(values):
    starts, sizes, below, upto = _candidates(np.array(sorted(values), dtype=np.int64), 4)
    seen = {}
    for start, size, b, u in zip(starts, sizes, below, upto, strict=True):
        for x in range(start, start + size):
            assert x not in seen
            seen[x] = (b, u)
    assert seen == {x: (sum(v < x for v in values), sum(v <= x for v in values)) for x in range(5)}


def test_values_that_agree_are_found():
    mechanism = dp.Quantile(epsilon=10, share=0.5, bounds=(0, 100))
    tied = [0] * 300 + [5.0] * 400 + [100] * 300
    assert all(mechanism.release(tied) == 5.0 for _ in range(30))


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize("share", [0.5, 0.25, 0.9])
def test_quantiles_follow_the_exponential_mechanism(relation, share):
    mechanism = dp.Quantile(epsilon=2, share=share, bounds=(0, 8), relation=relation)
    values, n = [1, 2, 2, 5, 6, 7], 6000
    law = quantile_law(mechanism, values, 8)
    drawn = np.array([mechanism.release(values) for _ in range(n)])
    counts = np.histogram(drawn, bins=np.arange(9))[0]
    for cell in range(8):
        assert plausible_share(counts[cell], n, law[cell])
    worst = int(np.argmax(law))
    assert not plausible_share(counts[worst], n, law[worst] + 0.1)
    assert drawn.min() >= 0
    assert drawn.max() <= 8


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize("share", [0.5, 0.1])
def test_quantiles_are_private_on_every_small_neighbour(relation, share):
    mechanism = dp.Quantile(epsilon=1, share=share, bounds=(0, 3), relation=relation)
    lists = [list(v) for size in range(4) for v in combinations_with_replacement(range(3), size)]
    for values in lists:
        if relation == "replace":
            others = [
                [*values[:i], w, *values[i + 1 :]] for i in range(len(values)) for w in range(3)
            ]
        else:
            others = [[*values, w] for w in range(3)]
        here = grid_law(mechanism, values, 3)
        for other in others:
            there = grid_law(mechanism, other, 3)
            assert max(abs(math.log(a / b)) for a, b in zip(here, there, strict=True)) <= 1 + 1e-12


def test_quantiles_are_useful_and_on_their_grid():
    mechanism = dp.Quantile(epsilon=1, share=0.5, bounds=(0, 110))
    ages = np.arange(110).repeat(50)
    found = [mechanism.release(ages) for _ in range(50)]
    assert max(abs(f - 55) for f in found) < 10
    assert all((F(f) / mechanism.lattice.step).denominator == 1 for f in found)
    assert mechanism.loss == dp.losses.ExponentialLoss(bound=1)
    uniform = np.array([mechanism.release([]) for _ in range(4000)])
    assert plausible_share((uniform < 55).sum(), 4000, 0.5)
    beyond = [mechanism.release([1e308, -1e308, 10**400, -(10**400)]) for _ in range(20)]
    assert all(0 <= b <= 110 for b in beyond)


def test_a_larger_reach_flattens_the_law():
    one, five = (dp.Quantile(epsilon=1, share=0.5, bounds=(0, 8), reach=r) for r in (1, 5))
    assert one._factor == 5 * five._factor


@pytest.mark.parametrize(
    "make",
    [
        lambda: dp.Quantile(epsilon=0, share=0.5, bounds=(0, 1)),
        lambda: dp.Quantile(epsilon=1, share=0, bounds=(0, 1)),
        lambda: dp.Quantile(epsilon=1, share=1, bounds=(0, 1)),
        lambda: dp.Quantile(epsilon=1, share=F(1, 10**9), bounds=(0, 1)),
        lambda: dp.Quantile(epsilon=1, share=0.5, bounds=(1, 1)),
        lambda: dp.Quantile(epsilon=1, share=0.5, bounds=(2, 1)),
        lambda: dp.Quantile(epsilon=1, share=0.5, bounds=(0, math.inf)),
        lambda: dp.Quantile(epsilon=1, share=0.5, bounds=5),
        lambda: dp.Quantile(epsilon=1, share=0.5, bounds=(1, 2, 3)),
        lambda: dp.Quantile(epsilon=1, share=0.5, bounds=(10**9, 10**9 + F(1, 10**9))),
        lambda: dp.Quantile(epsilon=1, share=0.5, bounds=(0, 1), reach=0),
    ],
)
def test_bad_quantiles_are_refused(make):
    with pytest.raises(dp.ParameterError):
        make()


@pytest.mark.parametrize("bad", [[math.nan], [[1, 2]], ["a"], None, 5.0])
def test_bad_values_are_refused(bad):
    with pytest.raises(dp.errors.PrivateValueError):
        dp.Quantile(epsilon=1, share=0.5, bounds=(0, 1)).release(bad)


def brute_median_distance(values, bound, low, high, levels):
    """Replace ever more values until some neighbour's median moves by more than the bound."""
    m = (len(values) - 1) // 2
    n = len(values)

    def median(v):
        return sorted(v)[m]

    def unstable(v):
        here = median(v)
        return any(
            abs(median([*v[:i], w, *v[i + 1 :]]) - here) > bound for i in range(n) for w in levels
        )

    reached = {tuple(sorted(values))}
    for k in range(n + 1):
        if any(unstable(list(v)) for v in reached):
            return k
        reached = {
            tuple(sorted([*v[:i], w, *v[i + 1 :]]))
            for v in reached
            for i in range(n)
            for w in levels
        }
    return n


@pytest.mark.parametrize(
    "values", [[0, 1, 2], [2, 2, 2, 2, 2], [0, 2, 2, 3, 4], [1, 1, 1, 4, 4], [3, 3, 3]]
)
@pytest.mark.parametrize("bound", [0.5, 1, 2])
def test_the_distance_of_a_median_is_its_definition(values, bound):
    found = median_distance(np.array(values, dtype=float), F(bound), 0.0, 4.0)
    assert found == brute_median_distance(values, bound, 0, 4, range(5))


@pytest.mark.parametrize(
    "values", [[0, 1, 2, 3], [0, 0, 4, 4, 5], [1, 2, 4, 4, 6, 7], [0, 3, 3, 3, 6]]
)
def test_no_bin_of_the_interquartile_range_is_left_within_its_distance(values):
    data = np.array(values, dtype=float)
    n = len(values)

    def spread(v):
        v = sorted(v)
        return v[3 * n // 4] - v[n // 4]

    here = spread(values)
    if here <= 0:
        return
    low = 2.0 ** math.floor(math.log2(here))
    distance = bin_distance(data, low, 2 * low)
    reached = {tuple(values)}
    for k in range(1, distance + 2):
        reached = {
            (*v[:i], w, *v[i + 1 :]) for v in reached for i in range(n) for w in range(-1, 9)
        }
        left = any(not low <= spread(v) < 2 * low for v in reached)
        if k <= distance:
            assert not left
        if len(reached) > 50_000:
            break


def test_unstable_medians_are_refused_with_probability_one_minus_delta():
    mechanism = dp.ProposeTestRelease(epsilon=2, delta=0.05, bound=1)
    n = 4000
    passed = sum(mechanism.release((5.0, 0)) is not None for _ in range(n))
    assert passed <= n * 0.05 + 6.2 * math.sqrt(n * 0.05)
    assert passed > 0
    assert all(mechanism.release((5.0, 1000)) is not None for _ in range(200))
    assert mechanism.loss == dp.losses.ApproxLoss(bound=2, slack=0.05, relation="replace")


def test_stable_medians_are_released_with_little_noise():
    mechanism = dp.ProposeTestRelease(epsilon=1, delta=1e-6, bound=0.1)
    values = np.random.default_rng(1).normal(50, 1, 3000)
    found = [mechanism.median(values, bounds=(0, 100)) for _ in range(50)]
    assert all(f is not None and abs(f - np.median(values)) < 5 for f in found)
    assert mechanism.median([0.0, 100.0, 50.0], bounds=(0, 100)) is None


def test_the_scale_is_found_to_a_factor():
    mechanism = dp.ProposeTestRelease(epsilon=1, delta=1e-6, bound=1)
    for sigma in (0.01, 1.0, 30.0):
        values = np.random.default_rng(2).normal(0, sigma, 4000)
        found = mechanism.scale(values, bounds=(-1000, 1000))
        assert found is not None
        assert 0.4 < found / (1.349 * sigma) < 2.5
    assert mechanism.scale([5.0] * 100, bounds=(0, 10)) is None
    assert mechanism.scale([1.0, 2.0, 3.0, 9.0], bounds=(0, 10)) is None


@pytest.mark.parametrize(
    "call",
    [
        lambda m: m.median([1.0], bounds=(1, 0)),
        lambda m: m.median([1.0], bounds=(0, math.nan)),
        lambda m: m.median([math.nan], bounds=(0, 1)),
        lambda m: m.median([], bounds=(0, 1)),
        lambda m: m.release((1.0, -1)),
        lambda m: m.release((1.0, 0.5)),
        lambda m: m.release((math.nan, 3)),
    ],
)
def test_bad_proposals_are_refused(call):
    with pytest.raises((dp.ParameterError, dp.errors.PrivateValueError)):
        call(dp.ProposeTestRelease(epsilon=1, delta=1e-6, bound=1))


@pytest.mark.parametrize("value", [math.nan, -math.inf, None, [1.0], Decimal("sNaN")])
def test_at_no_distance_a_value_that_is_no_number_does_not_show(value):
    """The mean of nobody is no number, and that of one more person is; neither passes the test."""
    mean = dp.ProposeTestRelease(epsilon=1, delta=1e-9, bound=1, function=lambda _: (value, 0))
    assert mean.release([]) is None
    assert dp.ProposeTestRelease(epsilon=1, delta=1e-9, bound=1).release((value, 0)) is None


def test_medians_are_stated_for_replacement_only():
    mechanism = dp.ProposeTestRelease(epsilon=1, delta=1e-6, bound=1, relation="add_remove")
    with pytest.raises(dp.ParameterError, match="replace"):
        mechanism.median([1.0], bounds=(0, 1))
    with pytest.raises(dp.ParameterError, match="replace"):
        mechanism.scale([1.0], bounds=(0, 1))
    for bad in ({"epsilon": 0}, {"delta": 0}, {"bound": 0}, {"relation": "x"}):
        with pytest.raises(dp.ParameterError):
            dp.ProposeTestRelease(**{"epsilon": 1, "delta": 0.1, "bound": 1, **bad})


def aggregate(**changes) -> dp.SubsampleAggregate:
    usual = {"epsilon": 1, "blocks": 40, "aggregate": "mean", "bounds": (0, 100), "default": 50}
    usual["function"] = np.mean
    return dp.SubsampleAggregate(**{**usual, **changes})


@pytest.mark.parametrize("kind", ["mean", "median"])
@pytest.mark.parametrize("reach", [1, 4])
def test_blocks_agree_on_a_mean(kind, reach):
    values = np.random.default_rng(4).normal(30, 5, 4000).tolist()
    mechanism = aggregate(aggregate=kind, epsilon=20, reach=reach)
    assert abs(mechanism.release(values) - 30) < 4
    assert mechanism.loss.pure == 20


def test_one_record_alters_at_most_as_many_answers_as_it_reaches(monkeypatch):
    for reach in (1, 3):
        mechanism = aggregate(reach=reach)
        blocks = mechanism._split(list(range(500)))
        places: dict[int, int] = {}
        for block in blocks:
            for record in block:
                places[record] = places.get(record, 0) + 1
        assert set(places.values()) == {reach}
        assert sum(map(len, blocks)) == 500 * reach
    sizes = [len(block) for block in aggregate()._split(list(range(40_000)))]
    assert all(plausible_share(size, 40_000, 1 / 40) for size in sizes)


def test_the_noise_pays_for_the_overlap():
    assert aggregate()._combiner.sensitivity == F(100, 40)
    assert aggregate(reach=4)._combiner.sensitivity == 10
    assert aggregate(aggregate="median", reach=4)._combiner.reach == 4
    assert aggregate(aggregate="median")._combiner.relation == dp.Relation.REPLACE
    assert aggregate(aggregate="median").loss.relation == dp.Relation.ADD_REMOVE


def test_nothing_passes_from_one_block_to_another(capfd):
    """A function that remembers, one that writes into records, one that tells on its way out."""
    seen: list[int] = []

    def remembers(block):
        seen.extend(block)
        return 100.0 if 7 in seen else 0.0

    answers = [aggregate(blocks=10, function=remembers)._answer([n]) for n in range(10)]
    assert sum(answers) == 100
    assert seen == []

    def writes(block):
        block[0].append(1)
        return float(len(block[0]))

    shared: list[int] = []
    assert [aggregate(function=writes)._answer([shared]) for _ in range(3)] == [1, 1, 1]

    def tells(block):
        print("secret", block)
        raise SystemExit(f"secret {block}")

    assert aggregate(function=tells)._answer([1]) == 50
    said = capfd.readouterr()
    assert "secret" not in said.out + said.err


FAULTS = [
    lambda block: (_ for _ in ()).throw(KeyboardInterrupt("secret")),
    lambda block: "0.5",
    lambda block: True,
    lambda block: 1 / 0,
    lambda block: math.nan,
    lambda block: math.inf,
    lambda block: "no number",
    lambda block: None,
    lambda block: block[10**6],
    lambda block: 10**400,
]


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_count_as_the_default(fault):
    mechanism = aggregate(epsilon=1000, blocks=5, function=fault)
    assert mechanism.release(list(range(100))) == pytest.approx(50, abs=2)


def test_overlong_runs_and_dying_children_count_as_the_default():
    import os

    def released(function):
        mechanism = aggregate(epsilon=1000, blocks=3, timeout=0.3, function=function)
        return mechanism.release(list(range(30)))

    start = time.monotonic()
    assert released(lambda block: time.sleep(60)) == pytest.approx(50, abs=2)
    assert time.monotonic() - start < 60  # of 180 that they would sleep
    assert released(lambda block: os._exit(3)) == pytest.approx(50, abs=2)
    assert released(lambda block: 10.0) == pytest.approx(10, abs=2)


def test_answers_are_clamped_to_the_bounds():
    for answer, expected in ((1e9, 100), (-1e9, 0)):
        mechanism = aggregate(epsilon=1000, blocks=5, function=lambda b, answer=answer: answer)
        assert mechanism.release(list(range(50))) == pytest.approx(expected, abs=2)


@pytest.mark.parametrize(
    "changes",
    [
        {"epsilon": 0},
        {"blocks": 0},
        {"blocks": 2.5},
        {"aggregate": "mode"},
        {"bounds": (1, 0)},
        {"default": 101},
        {"default": math.nan},
        {"reach": 0},
        {"reach": 41},
        {"timeout": 0},
        {"timeout": -1},
        {"timeout": 1e10},
        {"relation": "swap"},
    ],
)
def test_bad_aggregates_are_refused(changes):
    with pytest.raises(dp.ParameterError):
        aggregate(**changes)


def test_bad_records_are_refused():
    for bad in (None, "abc", 5, {1: 2}):
        with pytest.raises(dp.errors.PrivateValueError):
            aggregate().release(bad)
    with pytest.raises(dp.ParameterError, match="function"):
        aggregate(function=3)


@pytest.mark.parametrize("count", [0, 1, 39])
def test_few_records_leave_blocks_empty_and_are_answered_like_many(count):
    """A refusal would tell how many there are."""

    def mean(block):
        return sum(block) / len(block)  # an empty block has none

    mechanism = aggregate(epsilon=1000, blocks=40, function=mean)
    released = mechanism.release([100.0] * count)
    taken = {0: (50, 50), 1: (51.25, 51.25), 39: (51.25, 98.75)}[count]
    assert taken[0] - 2 <= released <= taken[1] + 2


def test_every_pair_of_aggregate_and_relation_has_a_loss():
    for kind, relation in product(("mean", "median"), ("add_remove", "replace")):
        loss = aggregate(aggregate=kind, relation=relation).loss
        assert loss.pure == 1
        assert loss.relation == relation


def test_a_range_just_below_a_power_of_two_is_put_into_the_bin_it_is_compared_with():
    """log2 rounds up there; the wrong bin once told neighbours apart with certainty."""
    near = math.nextafter(1024.0, 0)
    for offset in (0.0, 0.5):
        for spread in (near, 1024.0, 2.0**0.5, math.nextafter(2.0**0.5, 0), 1e-280, 1e300):
            low, high = scale_bin(spread, offset)
            assert low <= spread < high
    almost = 1024 * (1 - 64 * 2**-53)
    x = [0.0] * 99 + [almost] * 51 + [near] * 50
    y = [0.0] * 100 + [almost] * 51 + [near] * 49
    mechanism = dp.ProposeTestRelease(epsilon=1, delta=1e-6, bound=1)
    found = [{mechanism.scale(v, bounds=(0, 2000)) for _ in range(50)} for v in (x, y)]
    assert found[0] == found[1]
    wide = mechanism.scale([0.0] * 100 + [1e200] * 100, bounds=(0, 1e250))
    assert wide is None or 1e199 < wide < 1e201


def test_differences_are_compared_exactly():
    upper, lower = np.array([1.0, 1.0, 0.3, 2.0]), np.array([2.0**-60, -(2.0**-60), 0.1, 1.0])
    assert exceeds(upper, lower, F(1)).tolist() == [False, True, False, False]
    third = exceeds(np.array([0.3]), np.array([0.1]), F(2, 10))
    assert bool(third[0]) == (F(0.3) - F(0.1) > F(2, 10))


def test_a_hundred_thousand_values_with_ties_at_the_bound_are_handled():
    """Quadratic work on these would take minutes."""
    mechanism = dp.ProposeTestRelease(epsilon=1, delta=1e-6, bound=1)
    assert mechanism.median([0.0] * 50_000 + [1.0] * 50_000, bounds=(0, 10)) is not None
    assert 0.25 < mechanism.scale(np.linspace(0, 1, 100_000), bounds=(0, 10)) < 1
