"""Whatever a parser takes, an engine gets only what was read."""

import struct

import numpy as np
import pandas
import pyarrow as pa
import pytest

import deniable as dp


def session(rows, **declared):
    given = {"unit": "u", "population": "p", "max_rows": 2, **declared}
    return dp.Session(
        {"t": dp.PrivateTable(rows, **given)},
        budget=dp.ApproxDP(1e9, 1e-6),
        ledger=dp.Ledger(key=bytes(32)),
    )


PEOPLE = pa.table({"u": [1, 1, 2, 2], "i": [0, 1, 0, 1], "s": ["a", "a", "b", "bob"]})


@pytest.mark.parametrize(
    "window",
    [
        "RANK(ORDER BY (SELECT MAX(v.s) FROM t AS v)) OVER (PARTITION BY u)",
        "ROW_NUMBER(ORDER BY CAST(s AS INTEGER)) OVER (PARTITION BY u)",
        "RANK(ORDER BY random()) OVER (PARTITION BY u)",
        "MAX(i, 2) OVER (PARTITION BY u)",
    ],
)
def test_arguments_that_nobody_reads_are_refused(window):
    with session(PEOPLE) as opened, pytest.raises(dp.QueryError, match="is not answered"):
        opened.explain(
            f"SELECT COUNT(*) AS n FROM (SELECT u, {window} AS k FROM t) AS z", epsilon=1
        )


@pytest.mark.parametrize(
    "condition",
    [
        "s LIKE 'b%' ESCAPE '§'",
        "s ILIKE 'xbobX' ESCAPE 'x'",
        "s LIKE 'b!' ESCAPE '!'",
        "s LIKE 'b%%' ESCAPE '%'",
    ],
)
def test_a_mark_that_could_raise_for_one_text_is_refused(condition):
    with session(PEOPLE) as opened, pytest.raises(dp.QueryError, match="ESCAPE"):
        opened.explain(f"SELECT COUNT(*) AS n FROM t WHERE {condition}", epsilon=1)


def test_comments_reach_no_engine():
    question = (
        "SELECT /* m1 */ COUNT(*) AS n /* m2 */ FROM t WHERE i -- m3 */ OR TRUE\n > 0 /* m4 */"
    )
    with session(PEOPLE) as opened:
        written = " ".join(opened.explain(question, epsilon=1).statements)
    assert "/*" not in written
    assert "m3" not in written


def test_keys_that_are_equal_are_one():
    for keys in (["a", np.str_("a")], [1, np.int64(1).item() + 0, True + 0]):
        with pytest.raises(dp.ParameterError):
            dp.PrivateTable(PEOPLE, unit="u", population="p", keys={"s": keys})


@pytest.mark.parametrize(
    ("expression", "bounds", "exact"),
    [
        ("CAST(i AS BOOLEAN)", (5, 10), 1.0),
        ("ROUND(i, -2)", (0, 60), 100.0),
        ("ROUND(i, -1)", (2, 57), 60.0),
    ],
)
def test_bounds_hold_what_an_expression_can_be(expression, bounds, exact):
    rows = pa.table({"u": list(range(100)), "i": [57 if bounds[1] > 10 else 7] * 100})
    with session(rows, max_rows=1, bounds={"i": bounds}) as opened:
        answer = opened.sql(f"SELECT AVG({expression}) AS m FROM t", epsilon=1e6)
    assert answer["m"][0] == pytest.approx(exact, abs=0.1)


@pytest.mark.parametrize("guest", ["a", 5, 2.5])
def test_types_of_pandas_do_not_follow_one_cell(guest):
    found = []
    for more in ([], [guest]):
        mixed = pandas.Categorical([None, None, *more])
        frame = pandas.DataFrame({"u": range(2 + len(more)), "c": mixed})
        with session(frame, max_rows=1, columns={"u": "integer", "c": "text"}) as opened:
            question = "SELECT COUNT(c) AS n FROM t WHERE c < 'x'"
            found.append(opened.explain(question, epsilon=1).statements)
    assert found[0] == found[1]


@pytest.mark.parametrize("cell", [7, 1 << 62])
def test_coarse_times_are_left_out_however_they_are_encoded(cell):
    stored = pa.py_buffer(struct.pack("<2q", 5, cell))
    times = pa.Array.from_buffers(pa.timestamp("s", tz="UTC"), 2, [None, stored])
    coded = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int32()), times)
    with session(pa.table({"u": [1, 2], "x": coded})) as opened:
        with pytest.raises(dp.QueryError, match="no column x"):
            opened.sql("SELECT COUNT(x) AS n FROM t", epsilon=1)
        assert opened.sql("SELECT COUNT(*) AS n FROM t", epsilon=1e6)["n"] == pytest.approx(
            [2], abs=0.1
        )


def test_names_that_differ_by_case_alone_are_refused():
    table = pa.table({"u": [1], "x": [1], "X": [2]})
    with pytest.raises(dp.ParameterError, match="but for its case"):
        session(table)


def test_one_person_in_many_groups_is_not_fetched():
    """Of groups that were not selected nothing leaves the engine."""
    many = 3_000
    rows = pa.table(
        {
            "u": [*range(500), *[1_000] * many],
            "g": [*["all"] * 500, *(f"only {place}" for place in range(many))],
            "i": [1] * (500 + many),
        }
    )
    with session(rows, max_groups=1, bounds={"i": (0, 10)}, max_rows=1) as opened:
        engine, fetched = opened.parts.engine, []
        inner = engine.snapshot

        class Counted:
            def __init__(self, reads=(), *, only=None):
                self._context = inner(reads, only=only)

            def __enter__(self):
                self._snapshot = self._context.__enter__()
                return self

            def __exit__(self, *error):
                return self._context.__exit__(*error)

            def run(self, step):
                found = self._snapshot.run(step)
                fetched.append(len(found))
                return found

        engine.snapshot = Counted
        answer = opened.sql("SELECT g, MEDIAN(i) AS m FROM t GROUP BY g", epsilon=5)
    assert answer["g"] == ["all"]
    assert max(fetched) <= 3
