"""Must-hold cases 17 to 24: a value moves between neighbours by no more than is charged.

Tested is what holds at the level of mechanisms. Wait for tables: sums and means that the library
computes itself (of 17 to 19 and 22), contribution bounds that it enforces (of 23), and `n`, bins
and classes of a schema (of 24).
"""

import inspect
import math
from fractions import Fraction

import numpy as np
import pytest

import deniable as dp
from chance import plausible_share
from deniable.auditing.replay.findings import FindingKind
from deniable.auditing.replay.replays import replay

LOW, HIGH = 2**53, 2**53 + 64
SUM = dp.Laplace(epsilon=1, sensitivity=HIGH - LOW, relation="replace")


def worst_loss(mechanism, x, y):
    """The privacy loss at outputs below and above both values, where it is largest."""
    far = 2.0**70
    return max(abs(mechanism.privacy_loss(output, x, y)) for output in (-far, far))


def neighbouring_columns(count):
    """Columns of 1,000 integers within the bounds, and each with one of them exchanged."""
    generator = np.random.default_rng()
    for _ in range(count):
        column = generator.integers(LOW, HIGH, size=1000, endpoint=True)
        other = column.copy()
        other[generator.integers(1000)] = generator.choice([LOW, HIGH])
        yield column, other


def running_sum(column, kind):
    return float(np.cumsum(column.astype(kind), dtype=kind)[-1])


def test_case_17_exact_sums_of_wide_integers_move_by_what_is_charged():
    for x, y in neighbouring_columns(3000):
        assert worst_loss(SUM, sum(x.tolist()), sum(y.tolist())) <= 1


def test_case_17_sums_in_floating_point_would_be_seen():
    column = LOW + np.arange(1000) * 37 % 65
    other = column.copy()
    other[44] = HIGH
    assert worst_loss(SUM, sum(column.tolist()), sum(other.tolist())) <= 1
    assert worst_loss(SUM, *(running_sum(c, np.float64) for c in (column, other))) > 1


ADDENDS = [2**53] + [1] * 1000


def permutations(count):
    generator = np.random.default_rng()
    return [[ADDENDS[place] for place in generator.permutation(1001)] for _ in range(count)]


def test_case_18_exact_sums_do_not_depend_on_the_order():
    mechanism = dp.Laplace(epsilon=1, sensitivity=1)
    first = sum(ADDENDS)
    for order in permutations(100):
        for total in (sum(order), sum(map(Fraction, order))):
            assert worst_loss(mechanism, first, total) == 0
    running = [running_sum(np.array(order), np.float64) for order in (ADDENDS, ADDENDS[::-1])]
    assert worst_loss(mechanism, *running) > 0


@pytest.mark.parametrize("total", [sum(ADDENDS) + 1, Fraction(sum(ADDENDS) + 1)])
def test_case_18_sums_that_no_double_holds_are_released_exactly(total):
    """At ε = 60 the noise is 0 but for a chance of 2e-26; 2^53 + 1001 is no double."""
    with dp.Ledger(key=bytes(32)) as ledger:
        ledger.open("clinic", dp.Budget(dp.PureDP(200)), who="owner")
        gate = dp.Gate(ledger, "clinic", "ana")
        noise = dp.Geometric(epsilon=60, sensitivity=1)
        assert gate.release(noise, lambda: int(total), purpose="a sum").value == total
        assert float(total) != total
        # Real noise beside it: the double nearest to the noisy lattice point, not to the sum.
        real = dp.Laplace(epsilon=60, sensitivity=1)
        assert abs(gate.release(real, lambda: total, purpose="a sum").value - total) <= 2


def test_case_19_sums_of_a_float32_column_move_by_what_is_charged():
    mechanism = dp.Laplace(epsilon=1, sensitivity=1, relation="replace")
    column = (1000 + np.arange(200_000) % 16_384 / 16_384).astype(np.float32)
    broken = 0
    for place in (0, 1, 7, 99_999, 199_999):
        for end in (1000, 1001):
            other = column.copy()
            other[place] = end
            # Multiples of 2^-14 below 2^28: doubles sum them exactly.
            assert worst_loss(mechanism, *(float(c.sum(dtype=float)) for c in (column, other))) <= 1
            broken += (
                worst_loss(mechanism, *(running_sum(c, np.float32) for c in (column, other))) > 1
            )
    assert broken


def test_case_19_float32_values_are_read_as_they_are():
    mechanism = dp.Laplace(epsilon=1, sensitivity=1)
    single = np.array([1000.1, 0.1], dtype=np.float32)
    assert mechanism.privacy_loss([0.0, 0.0], single, [Fraction(float(x)) for x in single]) == 0
    assert mechanism.privacy_loss([0.0, 0.0], single, [1000.1, 0.1]) != 0


ENDS = np.iinfo(np.int64)
COUNT = dp.Geometric(epsilon=0.5, sensitivity=1)


def test_case_20_sums_at_the_ends_of_64_bits_saturate():
    n = 20_000
    top, bottom = (COUNT.release(np.full(n, end)) for end in (ENDS.max, ENDS.min))
    assert top.min() > 2**62
    assert bottom.max() < -(2**62)
    share = 1 / (1 + math.exp(-0.5))  # P(noise >= 0)
    assert plausible_share((top == ENDS.max).sum(), n, share)
    assert plausible_share((bottom == ENDS.min).sum(), n, share)
    assert not plausible_share((top == ENDS.max).sum(), n, 0.5)
    with np.errstate(over="ignore"):
        wrapped = np.full(n, ENDS.max) + COUNT.release(np.zeros(n, dtype=np.int64))
    assert wrapped.min() < 0


def test_case_20_neighbours_at_the_ends_differ_by_what_is_charged():
    for x, y in ((ENDS.max - 1, ENDS.max), (ENDS.min, ENDS.min + 1)):
        assert abs(COUNT.privacy_loss([0], np.array([x]), np.array([y]))) == 0.5
    # Lists of wider integers are held at the ends, which moves nothing farther apart.
    assert COUNT.privacy_loss([0], [2**63 - 1], [2**63]) == 0
    assert abs(COUNT.privacy_loss([0], [2**63 - 2], [2**63])) == 0.5


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int16, np.int32])
def test_case_20_narrow_integers_are_widened(kind):
    noise, most = dp.Geometric(epsilon=60, sensitivity=1), np.iinfo(kind).max
    ones = np.ones(300, dtype=kind)
    assert noise.release(ones).dtype == np.int64
    assert noise.release(ones).sum() == 300
    wide = dp.Geometric(scale=2**40, sensitivity=1)
    assert np.abs(wide.release(np.full(300, most, dtype=kind))).max() > 2**32
    assert max(abs(wide.release(kind(most))) for _ in range(300)) > 2**32


SURE = {"epsilon": 60, "bounds": (0, 10)}


def test_case_21_values_outside_the_bounds_are_clamped_by_a_quantile():
    median = dp.Quantile(share=0.5, **SURE)
    for outside, inside in ((1e9, 10), (-1e9, 0), (10**400, 10), (Fraction(-(10**9)), 0)):
        assert median.release([outside] * 11) == inside


@pytest.mark.parametrize("aggregate", ["mean", "median"])
def test_case_21_answers_outside_the_bounds_are_clamped_by_an_aggregate(aggregate):
    for function, expected in ((lambda _: 1e9, 10), (lambda _: -1e300, 0)):
        mechanism = dp.SubsampleAggregate(
            blocks=8, aggregate=aggregate, default=5, function=function, **SURE
        )
        assert mechanism.release([1e9] * 8) == pytest.approx(expected, abs=1)


def test_case_21_integers_outside_the_range_are_clamped_by_truncated_noise():
    mechanism = dp.TruncatedGeometric(epsilon=60, sensitivity=1, lower=0, upper=10)
    assert mechanism.release(10**9) == 10
    assert mechanism.release([10**30, -(10**30), 5]).tolist() == [10, 0, 5]


PROPOSED = dp.ProposeTestRelease(epsilon=60, delta=1e-3, bound=1)


def test_case_21_values_outside_the_bounds_are_clamped_by_a_tested_median():
    assert PROPOSED.median([1e9] * 101, bounds=(0, 10)) == pytest.approx(10, abs=1)
    assert PROPOSED.median([-1e300] * 101, bounds=(0, 10)) == pytest.approx(0, abs=1)


@pytest.mark.parametrize("wide", [2**53 + 2, Fraction(1, 3)])
def test_case_21_one_wide_integer_does_not_stop_a_tested_median(wide):
    values = [5.0] * 101
    assert PROPOSED.median([*values, wide], bounds=(0, 10)) == pytest.approx(5, abs=1)


def test_case_22_no_one_and_many_units_are_answered_alike():
    median = dp.Quantile(epsilon=1, share=0.5, bounds=(0, 10))
    for values in ([], [3.0], [3.0] * 1000):
        assert 0 <= median.release(values) <= 10
    cells = dp.Histogram(epsilon=1, cells="ab")
    for counts in ({}, {"a": 1}, {"a": 1000, "c": 5}):
        assert list(cells.release(counts)) == ["a", "b"]
    hidden = dp.StabilityHistogram(epsilon=1, delta=1e-9)
    for counts in ({}, {"a": 0}):
        assert hidden.release(counts) == {}


def test_case_22_an_empty_array_is_answered_as_an_empty_list_is():
    assert 0 <= dp.Quantile(epsilon=1, share=0.5, bounds=(0, 10)).release(np.array([])) <= 10


def test_case_22_relations_are_not_mixed():
    added, replaced = (dp.Histogram(epsilon=1, cells="ab", relation=r) for r in dp.Relation)
    assert replaced.loss.scale == 2 * added.loss.scale
    with dp.Ledger(key=bytes(32)) as ledger:
        ledger.open("clinic", dp.Budget(dp.PureDP(5)), who="owner")
        with pytest.raises(dp.errors.RelationError):
            dp.Gate(ledger, "clinic", "ana").release(replaced, dict, purpose="x")
        assert ledger.balance("clinic").releases == 0
    with pytest.raises(dp.ParameterError, match="replace"):  # whose proof takes n as public
        dp.ProposeTestRelease(epsilon=1, delta=0.1, bound=1, relation="add_remove").median(
            [1.0], bounds=(0, 1)
        )


def per_person(data, rows):
    """At most so many rows a person, each from 0 to 10."""
    kept = {}
    for person, value in data:
        mine = kept.setdefault(person, [])
        if len(mine) < rows:
            mine.append(min(max(value, 0), 10))
    return sum(value for mine in kept.values() for value in mine)


@pytest.mark.parametrize(("rows", "ok"), [(5, True), (6, False), (1000, False)])
def test_case_23_a_person_with_a_thousand_rows_is_seen_beyond_the_charge(rows, ok):
    mechanism = dp.Geometric(epsilon=1, sensitivity=50)
    others = [(number, 3) for number in range(20)]
    found = replay(
        lambda data: mechanism.release(per_person(data, rows)), others, others + [("x", 10)] * 1000
    )
    assert found.sensitivity_ok is ok
    assert ok or [(f.kind, f.moved) for f in found.findings] == [
        (FindingKind.SENSITIVITY, 10.0 * rows)
    ]


def test_case_23_labels_of_different_types_are_different_cells():
    shown = dp.StabilityHistogram(epsilon=1, delta=1e-3).release({"7": 10**6, 7: 10**6})
    assert list(shown) == ["7", 7]
    with pytest.raises(
        dp.errors.PrivateValueError
    ):  # True == 1 == 1.0, and only one of them is a label
        dp.StabilityHistogram(epsilon=1, delta=1e-3).release({True: 10**6})


LEFT_OUT = [
    (dp.Quantile, "bounds"),
    (dp.SubsampleAggregate, "bounds"),
    (dp.SubsampleAggregate, "default"),
    (dp.SubsampleAggregate, "blocks"),
    (dp.SubsampleAggregate, "function"),
    (dp.TruncatedGeometric, "lower"),
    (dp.TruncatedGeometric, "upper"),
    (dp.Histogram, "cells"),
    (dp.MetricExponential, "points"),
    (dp.MetricExponential, "distances"),
    (dp.ProposeTestRelease, "bound"),
    (dp.SparseVector, "threshold"),
    *(
        (kind, "sensitivity")
        for kind in (
            dp.Laplace, dp.Geometric, dp.Gaussian, dp.DiscreteGaussian, dp.TruncatedGeometric,
            dp.PlanarLaplace, dp.Exponential, dp.PermuteAndFlip, dp.ReportNoisyMax, dp.SparseVector,
        )
    ),
]  # fmt: skip
GIVEN = {
    "epsilon": 1, "share": 0.5, "bounds": (0, 1), "blocks": 2, "aggregate": "mean", "default": 0,
    "lower": 0, "upper": 9, "cells": "ab", "points": "ab", "distances": [[0, 1], [1, 0]],
    "bound": 1, "threshold": 0, "sensitivity": 1, "delta": 1e-6,
}  # fmt: skip


FUNCTIONS = {dp.SubsampleAggregate: max, dp.ProposeTestRelease: "median"}


@pytest.mark.parametrize(("kind", "name"), LEFT_OUT)
def test_case_24_what_must_be_public_is_never_inferred(kind, name):
    given = {p: GIVEN[p] for p in inspect.signature(kind).parameters if p in GIVEN}
    if kind in FUNCTIONS:
        given["function"] = FUNCTIONS[kind]
    kind(**given)
    with pytest.raises(TypeError, match=name):
        kind(**{p: value for p, value in given.items() if p != name})
    with pytest.raises((TypeError, ValueError), match=name):
        kind(**given | {name: None})


@pytest.mark.parametrize("verb", ["median", "scale"])
def test_case_24_a_tested_median_needs_bounds(verb):
    with pytest.raises(TypeError, match="bounds"):
        getattr(PROPOSED, verb)([1.0, 2.0])


def test_case_24_candidates_and_categories_are_not_taken_from_the_data():
    for kind in (dp.Exponential, dp.PermuteAndFlip, dp.ReportNoisyMax):
        with pytest.raises(TypeError, match="candidates"):
            kind(epsilon=1, sensitivity=1).choose(scores=[1, 2])
    with pytest.raises(dp.errors.PrivateValueError):
        dp.RandomizedResponse(epsilon=1, categories="ab").release("c")
    assert set(dp.Histogram(epsilon=1, cells="ab").release({"c": 10**6})) == {"a", "b"}


def test_case_24_cells_that_the_data_name_are_paid_for():
    assert dp.StabilityHistogram(epsilon=1, delta=1e-6).loss.price.delta == Fraction(1, 10**6)
    assert dp.Histogram(epsilon=1, cells="ab").loss.price.delta == 0
