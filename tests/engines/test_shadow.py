"""Planning sees no data: questions are tried on public rows in a shadow of the schema."""

import contextlib
import time
from datetime import date, datetime

import duckdb
import pyarrow as pa
import pytest

import deniable as dp
from deniable.engines import faults, shadow
from deniable.engines.base import Step
from deniable.engines.canaries import EXTREMES, canaries, most_named, rows_to_try
from deniable.engines.duckdb import DuckDB
from deniable.engines.shadow import Shadow
from deniable.tables import ColumnType, Schema
from engines.extremes import is_canonical

FAR = "CAST('5877642-06-25 (BC)' AS DATE)"
WEEKS = (
    "SELECT COUNT(*) AS n FROM (SELECT u, DATE_TRUNC('{part}', CASE WHEN pay > 0 THEN {far} ELSE "
    "{far} END) AS w FROM (SELECT u, pay FROM t WHERE pay > {v}) AS a) AS b WHERE w IS NULL"
)


def source(kind, pay, tmp_path):
    connection = duckdb.connect()
    connection.execute("CREATE TABLE v AS SELECT range AS u, range * 10 AS pay FROM range(100)")
    connection.execute("UPDATE v SET pay = ? WHERE u = 5", [pay])
    if kind == "database":
        return dp.duckdb(connection).table("v")
    place = tmp_path / f"{pay}.parquet"
    connection.execute(f"COPY v TO '{place}'")
    return str(place)


def outcome(call):
    """How it ended: what an analyst sees but for the numbers."""
    try:
        return type(call()).__name__
    except dp.DeniableError as error:
        return type(error).__name__, str(error)


@pytest.mark.parametrize("part", ["week", "isoyear", "year"])
@pytest.mark.parametrize("kind", ["parquet", "database"])
def test_no_extreme_of_a_column_decides_what_is_refused(kind, part, tmp_path):
    question = WEEKS.format(part=part, far=FAR, v=5_000)
    seen = set()
    for pay in (50, 90_000):
        table = dp.PrivateTable(source(kind, pay, tmp_path), unit="u", population="p", max_rows=1)
        budget, ledger = dp.ApproxDP(1e9, 1e-6), dp.Ledger(key=bytes(32))
        with dp.Session({"t": table}, budget=budget, ledger=ledger) as session:
            explained = outcome(lambda: session.explain(question, epsilon=1))
            asked = outcome(lambda: session.sql(question, epsilon=1))
            seen.add((explained, asked, str(session.spent)))
    assert len(seen) == 1


def test_what_planners_fail_at_with_extremes_is_refused():
    """The power of the test above: the engine's own text of that question, day and all."""
    far = "TRY_CAST('5877642-06-25 (BC)' AS DATE)"
    weeks = f"TRY(DATE_TRUNC('WEEK', CASE WHEN pay > 0 THEN {far} ELSE {far} END)) AS w"
    text = (
        f"SELECT w FROM (SELECT {weeks} FROM (SELECT pay FROM t WHERE pay > 5000)) WHERE w IS NULL"
    )
    with contextlib.closing(DuckDB()) as engine:
        engine.add("t", pa.table({"u": [1], "pay": [1]}), None, "u")
        with pytest.raises(dp.QueryError) as told:
            engine.check([Step(text, text)])
    assert str(told.value) == faults.VALUES


def test_a_check_does_not_touch_the_tables():
    with contextlib.closing(DuckDB()) as engine:
        engine.add("t", pa.table({"u": [1], "x": [1.5]}), None, "u")
        engine._connection.close()
        engine.check([Step("SELECT SUM(x) FROM t", "SELECT x FROM t")])
        with pytest.raises(dp.QueryError):
            engine.check([Step("SELECT SUM(y) FROM t", "SELECT y FROM t")])


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM read_csv('{place}')",
        "SELECT * FROM '{place}'",
        "SELECT * FROM read_text('{place}')",
        "SELECT * FROM glob('{place}')",
        "SELECT getenv('HOME')",
        "SELECT * FROM local_table",
        "FROM t; DROP TABLE t",
        "INSERT INTO t VALUES (1)",
        "ATTACH '{place}'",
    ],
)
def test_nothing_else_is_in_reach_of_a_check(text, tmp_path):
    place = tmp_path / "a.csv"
    place.write_text("a\n1\n")
    local_table = pa.table({"a": [1]})
    assert local_table.num_rows == 1
    written = text.format(place=place)
    with contextlib.closing(DuckDB()) as engine:
        engine.add("t", pa.table({"u": [1]}), None, "u")
        with pytest.raises(dp.QueryError) as told:
            engine.check([Step(written, "SELECT u FROM t")])
        assert str(place) not in str(told.value)


LARGE = "CAST(0 AS DECIMAL(38, 37)) < CASE WHEN s = '{name}' THEN 10 ELSE 1 END"


@pytest.mark.parametrize(
    ("condition", "constants"),
    [
        (LARGE.format(name="alice"), ("alice", 10, 1)),
        ("CASE WHEN s = 'alice' THEN i + 9223372036854775807 ELSE 0 END > 0", ("alice",)),
        ("CAST(CASE WHEN i = 77 THEN 'x' ELSE '1' END AS INTEGER) = 1", (77,)),
        ("CAST(CASE WHEN x > 76.5 AND x < 78 THEN 'x' ELSE '1' END AS INTEGER) = 1", (76.5,)),
        ("CAST(CASE WHEN d = DATE '2031-05-05' THEN 'x' ELSE '1' END AS INT) = 1",
         (date(2031, 5, 5),)),
        ("CAST(CASE WHEN ts > TIMESTAMP '2031-05-05' AND ts < TIMESTAMP '2031-05-07' THEN 'x' "
         "ELSE '1' END AS INT) = 1", (datetime(2031, 5, 5, 1),)),
    ],
)  # fmt: skip
def test_what_fails_beside_the_questions_own_constants_is_refused(condition, constants):
    """Power: without the constants it passes, and would fail for one person alone."""
    schema = {
        "u": pa.array([1]),
        "s": pa.array(["a"]),
        "i": pa.array([1]),
        "x": pa.array([1.5]),
        "d": pa.array([date(2024, 1, 1)]),
        "ts": pa.array([datetime(2024, 1, 1)]),
    }
    text = f"SELECT COUNT(*) FROM t WHERE {condition}"
    with contextlib.closing(DuckDB()) as engine:
        engine.add("t", pa.table(schema), None, "u")
        engine.check([Step(text, text)])
        with pytest.raises(dp.QueryError) as told:
            engine.check([Step(text, text, constants=constants)])
    assert str(told.value) == faults.VALUES


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("SELECT nothing FROM t", faults.TYPES),
        ("SELECT frobnicate(u) FROM t", faults.NAMES),
        ("SELECT u FROM nowhere", faults.NAMES),
        ("SELECT SUM(s) FROM t", faults.TYPES),
        ("SELECT FROM WHERE", faults.SYNTAX),
        ("SELECT CAST(s AS INTEGER) FROM t", faults.VALUES),
    ],
)
def test_sentences_come_from_a_list(text, sentence):
    with contextlib.closing(DuckDB()) as engine:
        engine.add("t", pa.table({"u": [1], "s": ["secret"]}), None, "u")
        with pytest.raises(dp.QueryError) as told:
            engine.check([Step(text, text)])
    assert str(told.value) == sentence
    assert told.value.__cause__ is None


def test_a_fault_that_ends_the_shadow_ends_nothing_else():
    """A cast of the engine's own that is an INTERNAL error there, and later checks."""
    far = "make_timestamp(-9223372036854775806)"
    text = f"SELECT CAST(CASE WHEN u >= 0 THEN {far} ELSE {far} END AS VARCHAR) FROM t"
    with contextlib.closing(DuckDB()) as engine:
        engine.add("t", pa.table({"u": [1]}), None, "u")
        for column in ("u", "u + 1"):
            with pytest.raises(dp.QueryError):
                engine.check([Step(text, text)])
            engine.check([Step(f"SELECT {column} FROM t", "SELECT u FROM t")])


def test_canaries_are_canonical_and_few_units_have_them():
    schema = Schema({str(kind): kind for kind in ColumnType} | {"U": ColumnType.TEXT})
    constants = (5, 2.5, 1 << 62, "word", date(9999, 12, 31), datetime(1, 1, 1), True, 1e308)
    made = canaries(schema, "u", constants, 256)
    for name, kind in schema.columns.items():
        assert len(made[name]) == 256
        assert all(is_canonical(kind, value) for value in made[name])
    assert len(set(made["U"])) == 5
    for kind in ColumnType:
        assert {repr(value) for value in EXTREMES[kind]} <= set(map(repr, made[str(kind)]))
    assert {"word", "wordx"} <= set(made["text"])
    assert {4, 5, 6, (1 << 62) + 1} <= set(made["integer"])


def test_tables_that_are_joined_get_fewer_rows():
    assert [rows_to_try(n) for n in (0, 1, 2, 4, 8, 40)] == [256, 256, 16, 16, 4, 2]
    assert most_named(["t"], ['SELECT 1 FROM "t"', "SELECT t FROM (SELECT * FROM t) AS t"]) == 1
    assert most_named(["t", "w"], ["SELECT * FROM t JOIN (SELECT * FROM w) AS x", ""]) == 2
    joined = " CROSS JOIN ".join(f"t AS t{n}" for n in range(12))
    began = time.process_time()
    with contextlib.closing(DuckDB()) as engine:
        engine.add("t", pa.table({"u": [1]}), None, "u")
        engine.check([Step(f"SELECT COUNT(*) FROM {joined}", "SELECT u FROM t")])
    assert time.process_time() - began < 5


def opened(unit="u", **columns):
    engine = DuckDB()
    given = {"u": [1], "s": ["a"]} | columns
    engine.add("t", pa.table(given), None, unit)
    return contextlib.closing(engine)


def test_what_passed_is_not_tried_again(monkeypatch):
    """In no session; but on other columns, of another unit, or beside other constants it is."""
    text, tried = "SELECT u, s, COUNT(*) FROM t GROUP BY u, s", []
    monkeypatch.setattr(Shadow, "_tried", lambda shadow, steps, home: tried.append(steps))
    monkeypatch.setattr(shadow, "_PASSED", set())
    with opened() as engine:
        engine.check([Step(text, text)])
        engine.check([Step(text, text)])
    with opened() as another:
        another.check([Step(text, text)])
    assert len(tried) == 1
    for changed in ({"s": [1]}, {"x": [1]}, {"unit": "s"}):
        with opened(**changed) as other:
            other.check([Step(text, text)])
    for constants in ((1,), (True,), (1.0,), ("1",)):
        with opened() as engine:
            engine.check([Step(text, text, constants=constants)])
    assert len(tried) == 1 + 3 + 4


def test_what_failed_is_tried_again():
    text = "SELECT CAST(s AS INTEGER) FROM t"
    for _ in range(2):
        with opened() as engine, pytest.raises(dp.QueryError):
            engine.check([Step(text, text)])


def test_functions_are_not_chosen_by_other_peoples_rows():
    """Power: without the veil the engine counts otherwise once somebody is called Zoë."""
    text = "SELECT COUNT(*) FROM t WHERE s ILIKE '%İ%'"
    found = {}
    for veiled in (False, True):
        for more in ("bob", "Zoë"):
            connection = duckdb.connect()
            connection.execute("CREATE TABLE v AS SELECT range AS u, 'ix' AS s FROM range(2000)")
            connection.execute("INSERT INTO v VALUES (2000, ?)", [more])
            with contextlib.closing(DuckDB()) as engine:
                engine.add("t", dp.duckdb(connection).table("v"), None, "u")
                with engine.snapshot() as snapshot:
                    found[veiled, more] = snapshot.run(Step(text, text, veiled=veiled))
                left = connection.sql("SELECT current_setting('disabled_optimizers')").fetchall()
                assert left == [("",)]
    assert found[False, "bob"] != found[False, "Zoë"]
    assert found[True, "bob"] == found[True, "Zoë"]
