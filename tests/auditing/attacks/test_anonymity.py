"""Generalised tables, and who is found in them."""

import pandas
import polars
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

import deniable as dp
from deniable.auditing.attacks.anonymity import covers

ROWS = {
    "age": [23, 24, 29, 35, 36, 51, 52, 58],
    "ward": ["A", "A", "B", "B", "B", "C", "C", "D"],
    "ill": ["flu", "flu", "cold", "cold", "flu", "cold", "flu", "flu"],
}
CHOSEN = ["age", "ward"]


def test_k_anonymity_counts_rows():
    table = {"zip": ["130**"] * 4 + ["148**"] * 3, "ill": list("abcdefg")}
    assert dp.auditing.attacks.is_k_anonymous(table, ["zip"], 3)
    assert not dp.auditing.attacks.is_k_anonymous(table, ["zip"], 4)
    assert not dp.auditing.attacks.is_k_anonymous(table, ["zip", "ill"], 2)
    assert dp.auditing.attacks.group_sizes(table, ["zip"]) == (3, 4)
    assert dp.auditing.attacks.uniqueness(table, ["zip", "ill"]) == 1
    assert dp.auditing.attacks.uniqueness(table, ["zip"]) == 0


def test_an_empty_table_is_anonymous():
    empty = pa.table({"zip": pa.array([], pa.string())})
    assert dp.auditing.attacks.is_k_anonymous(empty, ["zip"], 5)
    assert dp.auditing.attacks.uniqueness(empty, ["zip"]) == 0


@pytest.mark.parametrize("made", [dict, pa.table, pandas.DataFrame, polars.DataFrame])
def test_tables_of_every_kind(made):
    found = dp.auditing.attacks.mondrian(made(ROWS), CHOSEN, 2)
    assert dp.auditing.attacks.is_k_anonymous(found, CHOSEN, 2)
    assert not dp.auditing.attacks.is_k_anonymous(made(ROWS), CHOSEN, 2)
    assert found["ill"].to_pylist() == ROWS["ill"]
    assert found.column_names == ["age", "ward", "ill"]


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(st.integers(-50, 50), st.sampled_from("ABCD")), min_size=1, max_size=60),
    st.integers(1, 8),
)
def test_mondrian_keeps_k_and_covers_everybody(rows, k):
    if len(rows) < k:
        return
    table = {"x": [x for x, _ in rows], "y": [y for _, y in rows]}
    found = dp.auditing.attacks.mondrian(table, ["x", "y"], k)
    assert dp.auditing.attacks.is_k_anonymous(found, ["x", "y"], k)
    for cell, value in zip(found["x"].to_pylist(), table["x"], strict=True):
        assert covers(cell, value)
    for cell, value in zip(found["y"].to_pylist(), table["y"], strict=True):
        assert covers(cell, value)


def test_mondrian_cuts_where_it_can():
    found = dp.auditing.attacks.mondrian({"x": list(range(64))}, ["x"], 4)
    assert dp.auditing.attacks.group_sizes(found, ["x"]) == (4,) * 16
    assert found["x"][0].as_py() == "0..3"


@pytest.mark.parametrize(
    ("cell", "value", "fits"),
    [
        ("*", 5, True),
        ("130**", "13012", True),
        ("130**", 13012, True),
        ("130**", "13112", False),
        ("130**", "130123", False),
        ("20..29", 29, True),
        ("20..29", 30, False),
        ("-5..-2.5", -3, True),
        ("<30", 29.5, True),
        ("<30", 30, False),
        (">=40", 40, True),
        (">=40", 39, False),
        ("A|C", "C", True),
        ("A|C", "B", False),
        ("28", 28, True),
        (28, 28, True),
        (28, 29, False),
        (None, 29, False),
    ],
)
def test_cells_stand_for_values(cell, value, fits):
    assert covers(cell, value) == fits


def test_candidates():
    victim = {"zip": "13012", "age": 28}
    city = dp.auditing.attacks.candidates(dp.auditing.attacks.CITY_HOSPITAL, victim, "condition")
    valley = dp.auditing.attacks.candidates(dp.auditing.attacks.VALLEY_CLINIC, victim, "condition")
    assert len(city) > 1
    assert len(valley) > 1
    assert city & valley == {"AIDS"}
    known = dp.auditing.attacks.candidates(
        dp.auditing.attacks.CITY_HOSPITAL, victim, "condition", ruled_out=["asthma", "fracture"]
    )
    assert known == {"AIDS"}
    nobody = dp.auditing.attacks.candidates(
        dp.auditing.attacks.CITY_HOSPITAL, {"zip": "99999"}, "condition"
    )
    assert nobody == frozenset()


def test_wrong_tables_are_refused():
    attacks = dp.auditing.attacks
    with pytest.raises(dp.ParameterError, match=r"zip.*not in the table, which has age, ward"):
        attacks.is_k_anonymous(ROWS, ["zip"], 2)
    with pytest.raises(dp.ParameterError, match="illness"):
        attacks.candidates(ROWS, {"age": 3}, "illness")
    for k in (0, -1):
        with pytest.raises(dp.ParameterError, match="k="):
            attacks.is_k_anonymous(ROWS, CHOSEN, k)
    with pytest.raises(dp.errors.ParameterTypeError, match="k="):
        attacks.mondrian(ROWS, CHOSEN, 2.5)
    with pytest.raises(dp.ParameterError, match="fewer rows"):
        attacks.mondrian(ROWS, CHOSEN, 9)
    for quasi in ("age", [], [3]):
        with pytest.raises(dp.errors.ParameterTypeError, match="column names"):
            attacks.is_k_anonymous(ROWS, quasi, 2)
    for table in (None, 3, {"age": [1, 2], "ward": ["A"]}, {"age": [1, "x", object()]}):
        with pytest.raises(dp.errors.ParameterTypeError, match="table="):
            attacks.is_k_anonymous(table, ["age"], 2)
    for victim in ({}, None, "Anna"):
        with pytest.raises(dp.errors.ParameterTypeError, match="victim"):
            attacks.candidates(ROWS, victim, "ill")
