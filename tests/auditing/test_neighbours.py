"""Nasty neighbours: each differs in one unit, and together they break what is easily broken."""

import math
from collections import Counter

import pytest

import deniable as dp
from replayed import each_replayed

TABLE = {"bounds": {"cost": (0, 50)}, "keys": {"ward": ["A", "B"]}, "unit": "patient"}


def clamped(value):
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return 0.0 if math.isnan(number) else min(max(number, 0.0), 50.0)


def careful(rows):
    """Five rows a unit, clamped: at most 250 a unit, in numbers that add up exactly."""
    kept = Counter()
    total = 0
    for row in rows:
        kept[row["patient"]] += 1
        if row["patient"] is not None and kept[row["patient"]] <= 5:
            total += int(clamped(row["cost"]))
    return dp.Laplace(epsilon=1, sensitivity=250).release(total)


def test_there_are_many_and_each_has_a_name_of_its_own():
    pairs = list(dp.auditing.nasty_neighbours(**TABLE))
    assert len(pairs) > 30
    assert len({pair.name for pair in pairs}) == len(pairs)


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_two_neighbours_differ_in_one_unit(relation):
    for pair in dp.auditing.nasty_neighbours(**TABLE, relation=relation):
        here, there = (
            {
                unit: [r for r in rows if r["patient"] == unit]
                for unit in {r["patient"] for r in rows}
            }
            for rows in (pair.data, pair.neighbour)
        )
        changed = [u for u in here | there if repr(here.get(u)) != repr(there.get(u))]
        assert len(changed) == 1, pair.name
        if relation == "add_remove":
            assert not here.keys() - there.keys()


def test_a_careful_pipeline_survives_them_all():
    for pair, found in each_replayed(careful, dp.auditing.nasty_neighbours(**TABLE)):
        assert found.ok, (pair.name, str(found))


@pytest.mark.parametrize(
    "careless",
    [
        lambda rows: dp.Laplace(epsilon=1, sensitivity=50).release(
            sum(clamped(r["cost"]) for r in rows)
        ),
        lambda rows: dp.Laplace(epsilon=1, sensitivity=50).release(
            sum(float(r["cost"]) for r in rows)
        ),
        lambda rows: {
            ward: dp.Geometric(epsilon=1, sensitivity=1000).release(count)
            for ward, count in Counter(r["ward"] for r in rows).items()
        },
        lambda rows: dp.Laplace(epsilon=1, sensitivity=50).release(
            clamped(sum(clamped(r["cost"]) for r in rows) / len(rows))
        ),
    ],
    ids=["many rows", "bad casts", "groups that appear", "empty tables"],
)
def test_a_careless_pipeline_is_caught(careless):
    pairs = dp.auditing.nasty_neighbours(**TABLE)
    assert not all(found.ok for _, found in each_replayed(careless, pairs))


def test_bad_input_is_refused():
    with pytest.raises(dp.ParameterError, match="bounds"):
        next(dp.auditing.nasty_neighbours(bounds={}))
    with pytest.raises(dp.ParameterError, match="bounds"):
        next(dp.auditing.nasty_neighbours(bounds={"a": (3, 1)}))
    for bad in (
        {"bounds": ["x"]},
        {"bounds": {"a": (0, 1)}, "keys": {"k": 5}},
        {"bounds": {"a": (0, 1)}, "rows_per_unit": 2.5},
        {"bounds": {"a": (0, 1)}, "rows_per_unit": -3},
    ):
        with pytest.raises(dp.ParameterError):
            dp.auditing.nasty_neighbours(**bad)
    assert len(list(dp.auditing.nasty_neighbours(bounds={"unit_id": (0, 1), "self": (0, 1)}))) > 20
