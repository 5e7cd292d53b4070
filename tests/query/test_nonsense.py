"""What no data could make sense of is refused, or left out, before anything is charged."""

import datetime
import time

import duckdb
import pyarrow as pa
import pytest

import deniable as dp
from deniable.query.read.excluded import possible
from deniable.query.read.resolve import parse

COLUMNS = {
    "id": ["a", "b", "c"],
    "age": [30, 40, 50],
    "cost": [1.5, 2.5, 3.5],
    "ward": ["x", "y", "z"],
    "well": [True, False, True],
    "day": [datetime.date(2025, 1, each) for each in (1, 2, 3)],
    "at": [datetime.datetime(2025, 1, each, 12) for each in (1, 2, 3)],
}


def opened(**more):
    table = dp.PrivateTable(
        pa.table(COLUMNS),
        unit="id",
        population="p",
        bounds={"cost": (0, 10), "age": (0, 100)},
        max_rows=1,
        **more,
    )
    return dp.Session({"t": table}, budget=dp.ApproxDP(100, 1e-6), ledger=dp.Ledger(key=bytes(32)))


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("age = 'x'", "'x' in WHERE is no whole number"),
        ("age <> ''", "'' in WHERE is no whole number"),
        ("'x' < age", "'x' in WHERE is no whole number"),
        ("age IN (1, 'x')", "'x' in WHERE is no whole number"),
        ("age BETWEEN '1' AND 'y'", "'y' in WHERE is no whole number"),
        ("NOT (age = 'x' AND ward = 'x')", "'x' in WHERE is no whole number"),
        ("cost > 'much'", "'much' in WHERE is no number"),
        ("cost + 1 > 'much'", "'much' in WHERE is no number"),
        ("well = 'maybe'", "'maybe' in WHERE is no boolean"),
        ("day > '2025-13-45'", "'2025-13-45' in WHERE is no date"),
        ("day > '2025-02-30'", "'2025-02-30' in WHERE is no date"),
        ("day > '01.02.2025'", "'01.02.2025' in WHERE is no date"),
        ("day > DATE '2025-13-45'", "no date"),
        ("CAST('2025-13-45' AS DATE) < day", "no date"),
        ("day BETWEEN '2025-01-01' AND '2025-06-31'", "'2025-06-31' in WHERE is no date"),
        ("at > '2025-01-01 25:00:00'", "'2025-01-01 25:00:00' in WHERE is no timestamp"),
        ("COALESCE(age, 'x') > 1", "'x' in WHERE is no whole number"),
        ("CASE age WHEN 'x' THEN TRUE ELSE FALSE END", "'x' in WHERE is no whole number"),
        ("age = ward", "different types"),
        ("day = 5", "different types"),
    ],
)
def test_constants_that_are_no_values_of_their_column_are_refused(condition, message):
    with opened() as session:
        for ask in (session.sql, session.explain):
            with pytest.raises(dp.QueryError, match="WHERE") as error:
                ask(f"SELECT COUNT(*) AS n FROM t WHERE {condition}", epsilon=1)
            assert message in str(error.value)
        assert session.spent == {"p": 0}


@pytest.mark.parametrize(
    "condition",
    ["age = '40'", "cost > '2'", "day > '2025-01-01'", "at > '2025-01-01'", "well = 'true'"],
)
def test_texts_that_are_values_are_read_as_such(condition):
    with opened() as session:
        session.sql(f"SELECT COUNT(*) AS n FROM t WHERE {condition}", epsilon=1)


def by_ward(condition):
    return f"SELECT ward, COUNT(*) AS n FROM t WHERE {condition} GROUP BY ward"


KEYS = {"ward": ["x", "y", "z"]}


@pytest.mark.parametrize(
    ("condition", "left"),
    [
        ("ward = 'x'", ["x"]),
        ("'x' = ward", ["x"]),
        ("ward <> 'x'", ["y", "z"]),
        ("ward IN ('x', 'z')", ["x", "z"]),
        ("ward NOT IN ('x', 'z')", ["y"]),
        ("ward >= 'y' AND age > 35", ["y", "z"]),
        ("(ward = 'x' OR ward = 'y') AND NOT ward = 'y'", ["x"]),
        ("ward BETWEEN 'a' AND 'x'", ["x"]),
    ],
)
def test_keys_that_where_excludes_are_left_out_and_that_is_said(condition, left):
    with opened(keys=KEYS) as session:
        told = str(session.explain(by_ward(condition), epsilon=1))
        answer = session.sql(by_ward(condition), epsilon=1)
        assert answer["ward"] == left
        assert any("WHERE excludes these keys of ward" in each for each in answer.labels)
        assert "WHERE excludes these keys of ward" in told
        assert session.sql(by_ward(condition), epsilon=1).labels == answer.labels


@pytest.mark.parametrize(
    "condition",
    ["age > 35", "ward = 'x' OR age > 35", "LOWER(ward) = 'x'", "ward LIKE 'x%'", "ward <> 'w'"],
)
def test_keys_that_may_have_rows_are_all_shown(condition):
    with opened(keys=KEYS) as session:
        answer = session.sql(by_ward(condition), epsilon=1)
        assert answer["ward"] == ["x", "y", "z"]
        assert not any("WHERE" in each for each in answer.labels)


@pytest.mark.parametrize(
    "condition", ["ward = 'w'", "ward = NULL", "ward < 'a' AND age > 3", "ward IS NULL", "FALSE"]
)
def test_a_question_without_any_key_is_refused(condition):
    with opened(keys=KEYS) as session:
        with pytest.raises(dp.QueryError, match="excludes every declared key of ward"):
            session.sql(by_ward(condition), epsilon=1)
        assert session.spent == {"p": 0}


def test_other_groups_and_keys_of_the_question():
    with opened() as session:
        months = "SELECT MONTH(day) AS m, COUNT(*) AS n FROM t WHERE MONTH(day) = 1 GROUP BY 1"
        assert session.sql(months, epsilon=1)["m"] == [1]
        well = "SELECT well, COUNT(*) AS n FROM t WHERE well GROUP BY well"
        assert session.sql(well, epsilon=1)["well"] == [True]
        asked = session.sql(by_ward("ward <> 'y'"), epsilon=1, keys={"ward": ["x", "y"]})
        assert asked["ward"] == ["x"]
        both = (
            "SELECT ward, age, COUNT(*) AS n FROM t WHERE ward = 'x' AND age > 35 "
            "GROUP BY ward, age"
        )
        found = session.sql(both, epsilon=1, keys={"ward": ["x", "y"], "age": [30, 40]})
        assert (found["ward"], found["age"]) == (["x"], [40])


NESTED = [
    (
        "SELECT ward, COUNT(*) AS n FROM (SELECT * FROM t WHERE ward <> 'y') AS s GROUP BY ward",
        "xz",
    ),
    (
        "WITH s AS (SELECT id, ward AS w FROM t WHERE ward = 'x') SELECT w AS ward, COUNT(*) AS n "
        "FROM s WHERE w > 'a' GROUP BY w",
        "x",
    ),
    (
        "SELECT ward, COUNT(*) AS n FROM (SELECT id, ward FROM t WHERE ward <> 'y' "
        "GROUP BY id, ward) AS s GROUP BY ward",
        "xz",
    ),
    (
        "SELECT ward, COUNT(*) AS n FROM (SELECT id, MAX(ward) AS ward FROM t WHERE ward <> 'y' "
        "GROUP BY id) AS s GROUP BY ward",
        "xz",
    ),
    (
        "SELECT ward, COUNT(*) AS n FROM (SELECT ward FROM t WHERE ward = 'x' UNION ALL "
        "SELECT ward FROM t WHERE ward = 'y') AS s GROUP BY ward",
        "xy",
    ),
    (
        "SELECT ward, COUNT(*) AS n FROM (SELECT ward FROM t WHERE ward = 'x' UNION ALL "
        "SELECT ward FROM t) AS s GROUP BY ward",
        "xyz",
    ),
    (
        "SELECT a.ward, COUNT(*) AS n FROM t AS a JOIN t AS b ON a.id = b.id WHERE b.ward = 'x' "
        "GROUP BY a.ward",
        "xyz",
    ),
    (
        "SELECT b.ward, COUNT(*) AS n FROM t AS a JOIN t AS b ON a.id = b.id WHERE b.ward = 'x' "
        "GROUP BY b.ward",
        "x",
    ),
]


@pytest.mark.parametrize(("sql", "left"), NESTED)
def test_conditions_below_exclude_keys_too(sql, left):
    with opened(keys=KEYS) as session:
        answer = session.sql(sql.replace("SELECT *", "SELECT id, ward"), epsilon=1)
        assert answer["ward"] == list(left)


def test_a_join_may_bring_null_back():
    """No row of the side is NULL, but where nothing matched there is nothing else."""
    keys = {"ward": ["x", "y", None]}
    sql = (
        "SELECT b.ward, COUNT(*) AS n FROM t AS a LEFT JOIN (SELECT id, ward FROM t "
        "WHERE ward = 'x') AS b ON a.id = b.id GROUP BY b.ward"
    )
    with opened(keys=keys) as session:
        answer = session.sql(sql, epsilon=50)
        assert answer["ward"] == ["x", None]
        assert [round(n) for n in answer["n"]] == [1, 2]


def test_very_many_keys_are_not_followed(tmp_path):
    keys = {"ward": [f"w{number}" for number in range(50_000)]}
    listed = ", ".join(f"'w{number}'" for number in range(100))
    with opened(keys=keys) as session:
        start = time.process_time()
        session.explain(by_ward(f"ward IN ({listed})"), epsilon=1)
        assert time.process_time() - start < 20


SQL = [
    *("k = 'b'", "k <> 'b'", "k IN ('a', 'é')", "k NOT IN ('a')", "k BETWEEN 'a' AND 'b'"),
    *("k IS NULL", "k IS NOT NULL", "NOT k = 'a'", "k > 'a' OR k IS NULL", "k = NULL", "TRUE"),
    *("k = 'a' AND u > 1", "k = 'a' OR u > 1", "NOT (k = 'a' OR u > 1)", "k > '𝔘' AND k < '￿'"),
]
WHOLE = [
    *("k = 1", "k < 0.5", "k >= 1.00000000000000000001", "k > -1", "k = '2'", "k IN (1, 2.5)"),
    *("k BETWEEN -1 AND 1", "2 > k", "k = -9007199254740993", "k <> 0 AND NOT k = 1"),
]
DAYS = [
    "k = '2025-01-01'",
    "k > DATE '2025-01-01'",
    "k < '2025-01-01 12:00:00'",
    "k >= '2025-01-02'",
]


@pytest.mark.parametrize(
    ("type_", "keys", "conditions"),
    [
        ("VARCHAR", ["a", "b", "é", "𝔘", "￿", "", None], SQL),
        ("BIGINT", [-(2**53) - 1, -1, 0, 1, 2, None], WHOLE),
        ("DATE", [datetime.date(2025, 1, 1), datetime.date(2025, 1, 2), None], DAYS),
        ("BOOLEAN", [True, False, None], ["k", "NOT k", "k = 'true'", "k = FALSE", "k IS NULL"]),
    ],
)
def test_no_key_is_excluded_that_has_rows_in_an_engine(type_, keys, conditions):
    """DuckDB, on a row for each key beside any other value, is the judge."""
    judge = duckdb.connect()
    judge.execute(f"CREATE TABLE t (k {type_}, u BIGINT)")
    for key in keys:
        judge.executemany("INSERT INTO t VALUES (?, ?)", [[key, 0], [key, 5], [key, None]])
    dropped = 0
    for condition in conditions:
        where = parse(f"SELECT COUNT(*) FROM t WHERE {condition}").args["where"].this
        kept = possible(keys, where, lambda node: node.sql("duckdb") == "k")
        rows = judge.execute(f"SELECT DISTINCT k FROM t WHERE {condition}").fetchall()
        assert {row[0] for row in rows} <= set(kept) <= set(keys), condition
        dropped += len(keys) - len(kept)
    assert dropped
