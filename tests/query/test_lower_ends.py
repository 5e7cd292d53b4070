"""What is told of numbers that cannot be negative, and of numbers of rows."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import deniable as dp
from deniable.query.plan.distances import Distances, levels_about
from deniable.query.plan.measures import ColumnNoise, Linear
from deniable.query.plan.reach import Reach
from deniable.query.show.beyond import Beyond
from deniable.query.show.rows import many
from deniable.query.show.shown import _open
from deniable.query.show.truth import TruthOfSum

NOISE = (ColumnNoise(10.0, None),)


@pytest.mark.parametrize(
    ("positive", "signed", "low"),
    [(True, False, 0.0), (False, False, -71.2), (False, True, -np.inf)],
)
def test_at_least_is_no_less_than_can_be(positive, signed, low):
    nothing = np.zeros((1, 1, 8))
    beyond = Beyond(nothing, nothing, np.zeros((1, 1)), one_sided=True)
    count = Linear(((0, 1.0),), row=(-1e-6, 1.0), positive=positive)
    sums = TruthOfSum(count, np.array([[-50.0]]), NOISE, beyond, signed)
    below, above = sums.at(0.95)
    assert below[0] == pytest.approx(low, abs=0.1)
    assert above[0] == np.inf


def test_what_is_taken_from_a_count_may_be_negative():
    count = Linear(((0, 1.0),), row=(0.0, 1.0), positive=True)
    assert not count.plus(Linear((), 100.0), -1.0).positive
    assert not count.times(-1.0).positive


def of_distinct(*questions):
    """Intervals of several columns of one answer, about people with few rows and many."""
    rows = np.random.default_rng(4).geometric(0.25, 3_000)
    who = np.repeat(np.arange(len(rows)), rows)
    data = pa.table({"who": who, "x": np.arange(len(who)) % 5_000})
    table = dp.PrivateTable(data, unit="who", population="p")
    listed = ", ".join(f"{each} AS c{place}" for place, each in enumerate(questions))
    with dp.Session({"t": table}, budget=dp.ApproxDP(1e6, 1e-6), ledger=dp.Ledger()) as asked:
        answer = asked.sql(f"SELECT {listed} FROM t", epsilon=20)
    (row,) = answer.intervals().to_pylist()
    return [(row[f"c{each}_low"], row[f"c{each}_high"]) for each in range(len(questions))]


def test_different_values_that_are_lost_count_the_other_way_where_they_are_taken_away():
    count = "COUNT(DISTINCT x)"
    plain, less, twice, mean = of_distinct(
        count, f"9000 - {count}", f"2 * {count}", f"COUNT(*) / {count}"
    )
    assert plain[1] - plain[0] > 20  # so many may be lost
    assert less == pytest.approx((9000 - plain[1], 9000 - plain[0]))
    assert twice == pytest.approx((2 * plain[0], 2 * plain[1]))
    assert mean == (-np.inf, np.inf)


def test_numbers_of_rows():
    found = [many(rows) for rows in (1, 1.0, 1.999, 2, 9.5, 26.88, 1_234.9, 0.5)]
    assert found == ["1 row", "1 row", "1.99 rows", "2 rows", "9.5 rows", "26 rows",
                     "1,234 rows", "0.5 rows"]  # fmt: skip


@pytest.mark.parametrize(
    ("above", "below", "said"),
    [(900, 0, "x: above, values"), (0, 900, "x: below, values"), (900, 900, "x: above and below,")],
)
def test_a_label_says_on_which_side_values_reach_too_far(above, below, said):
    bins = [0] * len(levels_about(60))
    sides = tuple(Distances(60, (3, *bins[:-1], last), 5.0) for last in (above, below))
    reach = Reach("x", Fraction(0), (Fraction(-9), Fraction(9)), Fraction(1), sides=sides)
    assert _open(reach).startswith(said)
