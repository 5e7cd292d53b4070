"""Rows that could make an engine fail, or merge what is different: no neighbour shows."""

import copy
import datetime as dt
import pickle
import struct

import duckdb
import numpy as np
import pandas
import pyarrow as pa
import pytest

import deniable as dp

A = {"u": [1, 2], "s": ["t", "f"], "i": [1, 2]}
B = {"u": [1, 2, 3], "s": ["t", "f", "bob"], "i": [1, 2, 1 << 62]}
LARGE = "(i + CASE WHEN s = 'bob' THEN 9223372036854775807 ELSE 0 END)"


def session(source, public=None, **declared):
    given = {"unit": "u", "population": "p", "max_rows": 1, "max_groups": 1, **declared}
    table = pa.table(source) if isinstance(source, dict) else source
    return dp.Session(
        {"t": dp.PrivateTable(table, **given), **(public or {})},
        budget=dp.ApproxDP(1e9, 1e-6),
        ledger=dp.Ledger(key=bytes(32)),
    )


def ask(source, question, public=None, keys=None, **declared):
    with session(source, public, **declared) as open_:
        return open_.sql(question, epsilon=1e6, keys=keys)


@pytest.mark.parametrize(
    "question",
    [
        "SELECT COUNT(i * 4) AS n, COUNT(i * 4 + 1) AS m FROM t",
        f"SELECT COUNT({LARGE}) AS n, COUNT({LARGE} + 1) AS m FROM t",
        "SELECT i * i > 400 AS k, COUNT(*) FILTER (WHERE i * i < 900) AS n FROM t GROUP BY 1",
    ],
)
def test_what_fails_for_one_person_fails_for_nobody(question):
    assert ask(A, question).columns == ask(B, question).columns


def test_a_part_that_two_expressions_share_stays_within_its_try():
    """Power: with the optimizer that takes it out, the question fails."""
    with session(B) as open_:
        connection = open_._engine._connection
        connection.execute("SET disabled_optimizers = ''")
        with pytest.raises(duckdb.Error):
            connection.sql("SELECT COUNT(TRY(i * 4)), COUNT(TRY(i * 4 + 1)) FROM t").fetchall()
        assert open_.sql("SELECT COUNT(i * 4) AS n, COUNT(i * 4 + 1) AS m FROM t", epsilon=1e6)


def test_settings_of_an_owners_connection_are_not_ours_and_come_back():
    connection = duckdb.connect()
    connection.execute("CREATE TABLE v AS SELECT 1 AS u, 'A' AS g UNION ALL SELECT 2, 'a'")
    connection.execute("SET default_collation = 'NOCASE'")
    connection.execute("SET disabled_optimizers = 'filter_pullup'")
    table = dp.duckdb(connection).table("v")
    answer = ask(table, "SELECT g, COUNT(*) AS n FROM t GROUP BY g", keys={"g": ["A", "a"]})
    assert answer["n"] == pytest.approx([1, 1], abs=0.1)
    left = connection.sql(
        "SELECT current_setting('default_collation'), current_setting('disabled_optimizers')"
    ).fetchall()
    assert left == [("NOCASE", "filter_pullup")]


def collated(rows):
    connection = duckdb.connect()
    connection.execute("CREATE TABLE v(u VARCHAR COLLATE NOCASE, g VARCHAR COLLATE NOCASE)")
    connection.executemany("INSERT INTO v VALUES (?, ?)", rows)
    return dp.duckdb(connection).table("v")


def test_a_collation_merges_neither_groups_nor_people():
    rows = [(str(number), "A") for number in range(50)]
    question = "SELECT g, COUNT(*) AS n FROM t GROUP BY g"
    for more in ([], [("x", "a")]):
        answer = ask(collated([*more, *rows]), question, keys={"g": ["A", "B"]})
        assert answer["n"] == pytest.approx([50, 0], abs=0.1)
    people = ask(collated([("bob", "A"), ("BOB", "A")]), "SELECT COUNT(DISTINCT u) AS n FROM t")
    assert people["n"] == pytest.approx([2], abs=0.1)


def test_units_are_as_heavy_in_one_place_as_in_another():
    """MIN of -0.0 and 0.0 is either, by the order of threads; rows are made once."""
    units, each = 60, 200
    u = np.concatenate([np.repeat(np.arange(units), each), np.arange(100_000) + 1_000])
    c = np.ones(len(u))
    c[: units * each] = np.where(np.arange(units * each) % 2 == 0, 0.0, -0.0)
    order = np.random.default_rng(1).permutation(len(u))
    inner = "SELECT u, MIN(c) AS m FROM t GROUP BY u"
    question = f"SELECT COUNT(*) AS n FROM t AS v JOIN ({inner}) AS q ON v.u = q.u WHERE q.m = 0"
    with session({"u": u[order], "c": c[order]}) as open_:
        statements = open_.explain(question, epsilon=1).statements
        assert "TEMP TABLE deniable_rows" in statements[0]
        assert "TEMP TABLE deniable_counts" in statements[1]
        assert "(SELECT * FROM deniable_rows)" in statements[1]
        for number in range(3):
            found = open_.sql(question, epsilon=1e6 + number)["n"][0]
            assert found <= units + 0.1


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        ("SELECT COUNT(*) AS n FROM t WHERE CAST(x AS VARCHAR) = '-0.0'", "a fraction as text"),
        ("SELECT COUNT(*) AS n FROM t WHERE x || '' = 'nan'", "a fraction as text"),
        ("SELECT COUNT(*) AS n FROM t WHERE COALESCE(d, x) > d", "values of different types"),
        ("SELECT COUNT(*) AS n FROM t WHERE CASE s WHEN x > 5 THEN 1 END = 1", "different types"),
        ("SELECT COUNT(*) AS n FROM t WHERE s IS NOT FALSE", "is no condition"),
        ("SELECT COUNT(*) AS n FROM t WHERE CAST(x AS HUGEINT) > 1", "CAST to INT128"),
        (f"SELECT COUNT(*) AS n FROM t WHERE x < {1 << 127}", "below 2"),
        ("SELECT COUNT(*) AS n FROM t WHERE ts - d > INTERVAL 1 DAY", "DATE_DIFF"),
        ("SELECT COUNT(*) AS n FROM t WHERE INTERVAL 1 DAY > INTERVAL 1 HOUR", "INTERVAL in WHERE"),
        ("SELECT COUNT(*) AS n FROM t WHERE EXTRACT(day FROM ts - ts) > 3", "DATE_DIFF"),
    ],
)
def test_what_tells_equal_values_apart_is_refused(question, sentence):
    days = pa.array([dt.date(2024, 1, 1)])
    times = pa.array([dt.datetime(2024, 1, 1)])
    with pytest.raises(dp.QueryError, match=sentence):
        ask({"u": [1], "s": ["a"], "x": [0.5], "d": days, "ts": times}, question)


@pytest.mark.parametrize("step", ["REPLACE(s, 'x', '{x}')", "s || s", "CONCAT(s, s, s)"])
def test_texts_do_not_outgrow_memory(step):
    start = "WITH c0 AS (SELECT u, CASE WHEN s = 'bob' THEN 'x' ELSE '' END AS s FROM t)"
    made = step.format(x="x" * 100)
    steps = "".join(f", c{n + 1} AS (SELECT u, {made} AS s FROM c{n})" for n in range(30))
    question = f"{start}{steps} SELECT COUNT(*) AS n FROM c30 WHERE LENGTH(s) >= 0"
    assert ask(A, question)["n"] == pytest.approx([2], abs=0.1)
    assert ask(B, question)["n"] == pytest.approx([3], abs=0.1)


@pytest.mark.parametrize("unit", ["s", "ms"])
def test_times_that_fail_as_they_are_read_are_left_out(unit):
    far = struct.pack("<2q", 5, 1 << 62)
    times = pa.Array.from_buffers(pa.timestamp(unit, tz="UTC"), 2, [None, pa.py_buffer(far)])
    with pytest.raises(dp.QueryError, match="no column x"):
        ask({"u": [1, 2], "x": times}, "SELECT COUNT(x) AS n FROM t")


def test_a_recorded_answer_is_of_the_same_table_and_types(tmp_path):
    ledger = dp.Ledger(key=bytes(32))
    for size in (20, 100):
        file = tmp_path / f"{size}.parquet"
        duckdb.sql(f"COPY (SELECT range AS u FROM range({size})) TO '{file}'")
        table = dp.PrivateTable(str(file), unit="u", population="p", max_rows=1)
        with dp.Session({"t": table}, budget=dp.ApproxDP(1e9, 1e-6), ledger=ledger) as open_:
            answer = open_.sql("SELECT COUNT(*) AS n FROM t", epsilon=1e6)
            assert not answer.repeated
            assert answer["n"] == pytest.approx([size], abs=0.1)
            assert open_.sql("SELECT COUNT(*) AS n FROM t", epsilon=1e6).repeated


GROUPED = {"u": [1, 2, 3, 4, 5, 6], "g": ["A", "A", "A", "B", "B", "C"]}
KEYS = ["A", "B", "C"]


def test_a_coalesce_beside_using_is_what_was_written():
    public = {"w": dp.PublicTable(pa.table({"g": ["A"], "h": [1]}))}
    question = (
        "SELECT COALESCE(w.g, t.g) AS k, COUNT(*) AS n FROM t LEFT JOIN w USING (g) GROUP BY 1"
    )
    answer = ask(GROUPED, question, public, keys={"k": KEYS})
    assert answer["n"] == pytest.approx([3, 2, 1], abs=0.1)


def test_bounds_of_greatest_allow_for_null():
    source = {"u": [1, 2], "a": [0, 0], "b": pa.array([None, None], pa.int64())}
    question = "SELECT SUM(GREATEST(a, b)) AS s FROM t"
    answer = ask(source, question, bounds={"a": (0, 10), "b": (5, 20)})
    assert answer["s"] == pytest.approx([0], abs=0.5)


def test_times_are_grouped_as_times():
    source = {"u": [1, 2], "ts": pa.array([dt.datetime(2024, 5, 1)] * 2)}
    question = "SELECT DATE_TRUNC('year', ts) AS y, COUNT(*) AS n FROM t GROUP BY 1"
    answer = ask(source, question, keys={"y": [dt.datetime(2024, 1, 1)]})
    assert answer["y"] == [dt.datetime(2024, 1, 1)]
    assert answer["n"] == pytest.approx([2], abs=0.1)
    zoned = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    with pytest.raises(dp.ParameterError, match="zone"):
        ask(source, question, keys={"y": [zoned]})


def test_a_null_key_may_come_first():
    answer = ask(
        GROUPED, "SELECT LOWER(g) AS k, COUNT(*) AS n FROM t GROUP BY g", keys={"g": [None, "A"]}
    )
    assert answer["k"] == [None, "a"]


@pytest.mark.parametrize(
    "question",
    [
        "SELECT COALESCE(g, SELECT 'x') AS k, COUNT(*) AS n FROM t GROUP BY 1",
        "SELECT COUNT(*) AS a0"
        + "".join(f", a{n} + a{n} AS a{n + 1}" for n in range(40))
        + " FROM t",
        "WITH c0 AS (SELECT u, g FROM t)"
        + "".join(
            f", c{n + 1} AS (SELECT u, g FROM c{n} UNION ALL SELECT u, g FROM c{n})"
            for n in range(20)
        )
        + " SELECT COUNT(*) AS n FROM c20",
        "SELECT g FROM (SELECT g, COUNT(*) AS n FROM t GROUP BY g LIMIT 2) AS q OFFSET 1",
    ],
)
def test_questions_that_grow_or_break_are_refused(question):
    with pytest.raises(dp.QueryError):
        ask(GROUPED, question, keys={"g": KEYS})


def test_a_column_of_text_is_no_number():
    answer = ask(A, "SELECT 'x' AS label, COUNT(*) AS n, COUNT(*) > 1 AS some FROM t")
    assert answer.numbers == ("n",)
    assert answer.consistent(integer=True)["n"] == [2.0]


class Unspeakable:
    def __str__(self):
        raise KeyError("secret")


def test_objects_that_have_no_text_are_null():
    frame = pandas.DataFrame({"u": [1, 2, 3], "s": [Unspeakable(), "\ud800", "x"]})
    kinds = {"u": "integer", "s": "text"}
    answer = ask(frame, "SELECT COUNT(s) AS n FROM t", columns=kinds)
    assert answer["n"] == pytest.approx([1], abs=0.1)
    twice = pandas.DataFrame([[1, 2]], columns=["u", "u"])
    with pytest.raises(dp.ParameterError, match="one name"):
        ask(twice, "SELECT COUNT(*) AS n FROM t", columns={"u": "integer"})


def test_builders_take_names_and_aggregates():
    with session(A) as open_:
        for given in ({5: dp.count()}, [dp.count()]):
            with pytest.raises(dp.errors.ParameterTypeError):
                open_.table("t").agg(given)


def test_two_names_that_are_one_in_lower_case_are_refused():
    """The sign of Kelvin is a k: the unit would be another column."""
    with pytest.raises(dp.ParameterError, match="but for its case"):
        ask({"\u212a": [1, 1], "k": [1, 2]}, "SELECT COUNT(*) AS n FROM t", unit="\u212a")


@pytest.mark.parametrize(
    "name", ["É", "a;b", "a--b", "$1", "@a", ":a", "'a'", 'a"b', "select", "a b"]
)
def test_columns_may_be_called_anything(name):
    escaped = name.replace('"', '""')
    question = f'SELECT COUNT("{escaped}") AS n FROM t WHERE "{escaped}" > 1'
    assert ask({"u": [1, 2], name: [1, 2]}, question)["n"] == pytest.approx([1], abs=0.1)


def test_answers_are_named_as_was_asked():
    assert ask(A, 'SELECT COUNT(*) AS "a\tb" FROM t').columns == ("a\tb",)


def test_a_row_is_a_row_wherever_it_comes_from():
    for unit in (copy.deepcopy(dp.ROW), pickle.loads(pickle.dumps(dp.ROW))):
        assert dp.PrivateTable(pa.table(A), unit=unit, population="p").unit is dp.ROW


ILL = "CASE WHEN name = 'alice' AND ill THEN {} ELSE {} END"


@pytest.mark.parametrize(
    ("question", "bounds"),
    [
        (f"SELECT MEDIAN({ILL.format(6 * 10**18, -8 * 10**18)}) AS m FROM t", {}),
        (
            f"SELECT MEDIAN(v) AS m FROM (SELECT u, {ILL.format('1e17', '1e17')} AS v FROM t) AS q",
            {"v": (10**17, 10**17 + 10)},
        ),
        (
            f"SELECT COUNT(*) AS n FROM t WHERE {ILL.format(repr('ab'), repr('x'))} "
            "LIKE 'a!' ESCAPE '!'",
            {},
        ),
        ("SELECT COUNT(*) AS n FROM t WHERE name LIKE 'a' ESCAPE '!!'", {}),
        ("SELECT WIDTH_BUCKET(age, 0, 1e400, 5) AS b, COUNT(*) AS n FROM t GROUP BY b", {}),
    ],
)
def test_what_could_fail_for_one_person_is_refused(question, bounds):
    people = {
        "u": [1, 2, 3],
        "name": ["alice", "bob", "eve"],
        "ill": [True, True, False],
        "age": [1, 2, 3],
    }
    with session(people) as open_, pytest.raises(dp.QueryError):
        open_.sql(question, epsilon=0.001, bounds=bounds)


def test_every_grouping_of_kept_rows_is_bounded():
    """Rows of a join are kept; the sums of heavy units are of the grouping that is asked for."""
    rows = [(u, "A", "C", 1) for u in range(30)] + [(99, "A", "D", 1)] * 500
    u, a, b, x = (list(column) for column in zip(*rows, strict=True))
    public = {"w": dp.PublicTable(pa.table({"k": [1]}))}
    keys = {"a": ["A", "B"], "b": ["C", "D"]}
    question = "SELECT a, b, COUNT(*) AS n FROM t JOIN w ON t.x = w.k GROUP BY CUBE (a, b)"
    with session({"u": u, "a": a, "b": b, "x": x}, public, keys=keys, max_rows=2) as open_:
        answer = open_.sql(question, epsilon=1e6)
    assert max(answer["n"]) == pytest.approx(32, abs=0.5)


def test_a_quantile_with_other_bounds_is_another_question():
    source = {"u": list(range(100)), "x": [float(n) for n in range(100)]}
    with session(source) as open_:
        wide = open_.sql("SELECT MEDIAN(x) AS m FROM t", epsilon=1e6, bounds={"x": (0, 100)})
        narrow = open_.sql("SELECT MEDIAN(x) AS m FROM t", epsilon=1e6, bounds={"x": (0, 10)})
    assert not narrow.repeated
    assert wide["m"][0] > 40
    assert narrow["m"][0] < 11


def test_a_division_by_zero_is_null_and_not_the_condition_around_it():
    source = {"u": [1, 2, 3], "x": [1, 2, 3], "k": [0, 1, 0]}
    question = (
        "SELECT COUNT(*) AS n, COUNT(*) FILTER (WHERE x % k IS NULL) AS m FROM t "
        "WHERE x // k IS NULL"
    )
    answer = ask(source, question)
    assert [answer["n"][0], answer["m"][0]] == pytest.approx([2, 2], abs=0.1)
