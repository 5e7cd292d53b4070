"""An engine that fails badly ends one question, with one sentence, and no session."""

import contextlib
import re
import stat
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import deniable as dp
from deniable.engines import faults
from deniable.engines.base import Step
from deniable.engines.duckdb import DuckDB
from engines.extremes import raw, texts

KILLS = Step("SELECT CAST(ts AS VARCHAR) FROM deniable_source_1", "")
TIMES = raw(pa.timestamp("us"), [0, 2 - 2**63])
FRAME = pa.table({"u": [1, 2], "ts": TIMES})
ENDED = faults.ended("the query", "DuckDB")


def ask(engine, text):
    with engine.snapshot() as snapshot:
        return snapshot.run(Step(text, text))


def test_the_statement_is_one_that_ends_a_connection():
    """The power of what follows, without anything of ours around it."""
    connection = duckdb.connect()
    connection.register("deniable_source_1", FRAME)
    with pytest.raises(duckdb.InternalException):
        connection.execute(KILLS.select).fetchall()
    with pytest.raises(duckdb.Error):
        connection.execute("SELECT 1").fetchall()


def test_a_session_outlives_an_internal_error(tmp_path):
    place = tmp_path / "v.db"
    with duckdb.connect(str(place)) as made:
        made.execute("CREATE TABLE v AS SELECT 7 AS u")
    with contextlib.closing(DuckDB()) as engine:
        engine.add("t", FRAME, None, "u")
        engine.add("v", dp.duckdb(place).table("v"), None, "u")
        for _ in range(2):
            with pytest.raises(dp.EngineError) as told, engine.snapshot() as snapshot:
                snapshot.run(KILLS)
            assert str(told.value) == ENDED
            assert told.value.__context__ is None
            assert ask(engine, "SELECT COUNT(ts) FROM t") == [(1,)]
            assert ask(engine, "SELECT u FROM v") == [(7,)]
            engine.check([Step("SELECT u FROM v", "SELECT u FROM v")])


def test_an_owners_connection_ends_with_one_sentence():
    connection = duckdb.connect()
    connection.register("given", FRAME)
    connection.execute("CREATE TABLE v AS SELECT * FROM given")
    with contextlib.closing(DuckDB()) as engine:
        engine.add("t", dp.duckdb(connection).table("v"), None, "u")
        with pytest.raises(dp.EngineError, match="could not finish"):
            ask(engine, "SELECT CAST(ts AS VARCHAR) FROM v")
        for _ in range(2):
            with pytest.raises(dp.EngineError) as told:
                ask(engine, "SELECT u FROM t")
            assert str(told.value) == faults.LOST
            engine.check([Step("SELECT u FROM t", "SELECT u FROM t")])


@pytest.mark.parametrize(
    "text",
    [
        "SELECT CAST('x' AS INTEGER)",
        "SELECT error('secret')",
        "SELECT * FROM nowhere",
        "SELECT TIMESTAMPTZ '2024-01-01'",  # a value that Python has no module for
        "SELECT INTERVAL 1000000000 YEAR",
    ],
)
def test_any_failure_has_the_same_sentence_and_is_over(text):
    with contextlib.closing(DuckDB()) as engine:
        engine.add("t", FRAME, None, "u")
        for _ in range(2):
            with pytest.raises(dp.EngineError, match=re.escape(ENDED)):
                ask(engine, text)
        assert ask(engine, "SELECT COUNT(*) FROM t") == [(2,)]


def test_errors_of_others_are_their_own():
    with contextlib.closing(DuckDB()) as engine:
        engine.add("t", FRAME, None, "u")
        with pytest.raises(ZeroDivisionError), engine.snapshot():
            raise ZeroDivisionError
        assert ask(engine, "SELECT COUNT(*) FROM t") == [(2,)]


BAD = texts(cells=[b"a", b"\xff\xfe", b"a\xc3"])
GOOD = pa.array(["a", "b", "c"])
QUESTIONS = [
    "SELECT COUNT(*) AS n FROM t WHERE CAST(ts AS VARCHAR) <> ''",
    "SELECT COUNT(*) AS n FROM t WHERE LOWER(s) = 'a'",
    "SELECT COUNT(*) AS n FROM t WHERE UPPER(TRIM(s)) = 'A'",
    "SELECT COUNT(*) AS n FROM t WHERE s ILIKE '%a%'",
    "SELECT s, COUNT(*) AS n FROM t GROUP BY s",
    "SELECT EXTRACT(year FROM ts) AS y, COUNT(*) AS n FROM t GROUP BY 1",
]


def test_a_cell_ends_no_session():
    found = []
    for times, words in (([0, 1, 2], GOOD), ([0, 1, 2 - 2**63], BAD)):
        table = pa.table({"u": [1, 2, 3], "ts": raw(pa.timestamp("us"), times), "s": words})
        private = dp.PrivateTable(table, unit="u", population="p", max_rows=1, max_groups=1)
        budget, ledger = dp.ApproxDP(1e9, 1e-6), dp.Ledger(key=bytes(32))
        with dp.Session({"t": private}, budget=budget, ledger=ledger) as session:
            outcomes = []
            for question in QUESTIONS:
                try:
                    outcomes.append(session.sql(question, epsilon=1e3).columns)
                except dp.DeniableError as error:
                    outcomes.append((type(error).__name__, str(error)))
            found.append(outcomes)
    assert found[0] == found[1]
    assert found[0][0] == ("n",)


def test_what_is_spilled_is_nobody_elses_and_goes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    engine = DuckDB()
    try:
        (place,) = engine._connection.execute("SELECT current_setting('temp_directory')").fetchone()
        assert stat.S_IMODE(Path(place).stat().st_mode) == 0o700
        engine._connection.execute("SET memory_limit = '40MB'")
        engine._connection.execute("SET threads = 1")
        many = "SELECT range AS u, MD5(range::VARCHAR) AS m FROM range(1000000)"
        with engine.snapshot() as snapshot:
            snapshot.run(Step("SELECT COUNT(*) FROM many", "", {"many": many}))
            assert list(Path(place).iterdir())
        assert not list(tmp_path.iterdir())
    finally:
        engine.close()
    assert not Path(place).exists()


def test_no_sentence_of_a_driver_is_passed_on():
    """In any file that uses a driver: engines, and the arithmetic on released numbers."""
    uses = re.compile(r"^\s*(import|from) (duckdb|psycopg|pyspark|py4j)\b", re.MULTILINE)
    said = re.compile(
        r"(str|repr|format)\(\w*(error|cause|exception)|\{\w*(error|cause)\w*[}!:]|getMessage|"
        r"(error|cause)\.(args|diag|pgresult|desc|java_exception)|exc_info|traceback"
    )
    assert said.search("told = str(error).splitlines()")
    assert said.search('f"{cause}"')
    texts = {file: file.read_text() for file in Path(dp.__file__).parent.rglob("*.py")}
    drivers = {file: text for file, text in texts.items() if uses.search(text)}
    assert {"duckdb.py", "postgres.py", "spark.py", "shape.py"} <= {each.name for each in drivers}
    for file, text in drivers.items():
        assert not [(file.name, line) for line in text.splitlines() if said.search(line)]
