"""Room: what is let through with `most_rows=` fits, whatever one person's rows are."""

import random
import shutil
from types import SimpleNamespace

import duckdb
import pyarrow as pa
import pytest
from pyarrow import parquet

import deniable as dp
from deniable.engines.duckdb import DuckDB
from deniable.engines.room import Room
from deniable.query.price.room import COPIES, SOURCES
from deniable.query.read.catalogue import Options
from deniable.query.read.compile import compile_sql

MEMORY, DISK = 512 << 20, 512 << 20
LONG = "y" * 990


def opened(rows, most_rows):
    """A session on a small engine; one person has so many rows, with long texts if they are few."""
    long = 65_000 if rows < 10_000 else 8
    home = duckdb.connect()
    home.execute("SET threads = 2")
    home.execute(f"SET memory_limit = '{MEMORY >> 10}KiB'")
    home.execute(f"SET max_temp_directory_size = '{DISK >> 10}KiB'")
    home.execute("CREATE TABLE people AS SELECT range AS u, 0 AS x, 'A' AS s FROM range(1, 9)")
    home.execute(
        "INSERT INTO people SELECT 0, range + 1, lpad(CAST(range AS VARCHAR), "
        f"{long}, md5(CAST(range AS VARCHAR))) FROM range({rows})"
    )
    home.execute("CREATE TABLE few AS SELECT range AS z FROM range(100)")
    source = dp.duckdb(home)
    table = dp.PrivateTable(
        source.table("people"),
        unit="u",
        population="p",
        max_rows=1,
        max_groups=1,
        most_rows=most_rows,
        bounds={"x": (0, 99)},
    )
    return dp.Session(
        {"t": table, "w": dp.PublicTable(source.table("few"))},
        budget=dp.ApproxDP(1e9, 1e-6),
        ledger=dp.Ledger(key=bytes(32)),
    )


MADE = f"CONCAT(CAST(x AS VARCHAR), {', '.join(['s'] * 7)})"
BOTH = "t AS a JOIN t AS b ON a.u = b.u"
QUESTIONS = {
    "groups": f"SELECT CONCAT(CAST(x AS VARCHAR), '{LONG}') AS g, COUNT(*) AS n FROM t GROUP BY 1",
    "texts": "SELECT s, COUNT(*) AS n FROM t CROSS JOIN w GROUP BY s",
    "told apart": f"SELECT COUNT(DISTINCT {MADE}) AS n FROM t",
    "of each": f"SELECT COUNT(DISTINCT {MADE}) AS n FROM t CROSS JOIN w",
    "counted": "SELECT COUNT(s) AS n FROM t CROSS JOIN w",
    "pairs": (
        "SELECT CASE WHEN a.x = 0 THEN 'A' ELSE CONCAT(CAST(a.x AS VARCHAR), '-', "
        f"CAST(b.x AS VARCHAR), '{LONG[:950]}') END AS g, COUNT(*) AS n FROM {BOTH} GROUP BY 1"
    ),
    "windows": (
        "SELECT r, COUNT(*) AS n FROM (SELECT t.u, s, ROW_NUMBER() OVER (PARTITION BY t.u ORDER BY "
        "x) AS r FROM t JOIN w ON t.x = w.z) AS q GROUP BY r"
    ),
    "by unit": (
        f"SELECT COUNT(*) AS n FROM (SELECT u, {MADE} AS k, MAX(s) AS m FROM t GROUP BY u, {MADE}) "
        "AS q WHERE m <> ''"
    ),
    "one of each": f"SELECT COUNT(*) AS n FROM (SELECT DISTINCT u, {MADE} AS k FROM t) AS q",
}


def is_let_through(question, most_rows, **given):
    with opened(0, most_rows) as session:
        try:
            session.explain(question, epsilon=1e3, **given)
        except dp.QueryError as refused:
            assert "could take" in str(refused)  # noqa: PT017
            return False
    return True


def most_let_through(question):
    """The largest promise with which it is answered."""
    with opened(0, 1) as session:
        plan = compile_sql(question, session._catalogue, Options())
        most = session._engine.room() // (
            COPIES * sum(each.width * each.growth for each in plan.held)
        )
    assert is_let_through(question, most)
    assert not is_let_through(question, most + 1)
    return most


@pytest.mark.parametrize("name", QUESTIONS)
def test_what_is_let_through_fits_with_all_rows_of_one_person(name):
    most = most_let_through(QUESTIONS[name])
    assert 10 < most < 1 << 24
    with opened(most - 8, most) as session:
        session.sql(QUESTIONS[name], epsilon=1e3)
        assert abs(session.sql("SELECT COUNT(*) AS n FROM t", epsilon=1e3)["n"][0] - 9) < 2


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_refusal_hangs_on_the_promise_alone(name):
    """Nothing is charged, and nothing is refused without a promise."""
    said = []
    for rows in (0, 50):
        with opened(rows, 1 << 24) as session:
            with pytest.raises(dp.QueryError, match="could take") as no:
                session.sql(QUESTIONS[name], epsilon=1e3)
            said.append(str(no.value))
            assert session.spent == {"p": 0}
    assert said[0] == said[1]
    with opened(0, None) as session:
        session.explain(QUESTIONS[name], epsilon=1e3)


def test_declared_keys_take_no_more_room_than_they_have():
    question = "SELECT s, COUNT(*) AS n FROM t GROUP BY s"
    assert not is_let_through(question, 2_000_000)
    assert is_let_through(question, 2_000_000, keys={"s": ["A", "B"]})


def test_rows_of_names_that_are_too_long_are_left_out():
    """A unit's name is held with each of its rows, and has 1,000 bytes at most."""
    home = duckdb.connect()
    home.execute("CREATE TABLE people AS SELECT repeat('u', 990 + range) AS u FROM range(1, 101)")
    table = dp.PrivateTable(
        dp.duckdb(home).table("people"), unit="u", population="p", max_rows=1, most_rows=1_000
    )
    with dp.Session(
        {"t": table}, budget=dp.ApproxDP(1e9, 1e-6), ledger=dp.Ledger(key=bytes(32))
    ) as session:
        assert abs(session.sql("SELECT COUNT(*) AS n FROM t", epsilon=1e5)["n"][0] - 10) < 0.5


def test_room_does_not_follow_what_is_free(monkeypatch):
    """It is read once; a share of the disk is a power of two, and the engine keeps to it."""
    free = 100 << 30
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free))
    engine = DuckDB()
    before = engine.room()
    assert before == engine._room.memory + (64 << 30)
    free = 1 << 20
    assert engine.room() == before
    engine._lost = True
    with engine.snapshot():
        pass
    said = "SELECT current_setting('max_temp_directory_size')"
    assert engine._connection.execute(said).fetchall() == [("64.0 GiB",)]
    assert engine.room() == before
    engine.close()


@pytest.mark.parametrize(("free", "share"), [(100, 64), (64, 32), (143, 128), (0, 0)])
def test_a_share_of_the_disk_is_rounded_down(monkeypatch, free, share):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free << 30))
    connection = duckdb.connect()
    assert Room.of(connection).disk == share << 30
    connection.execute("SET max_temp_directory_size = '3GiB'")
    assert Room.of(connection).disk == 3 << 30


SMALL = 128 << 20
LONGER = 65_000
COPIED = ("csv", "pattern", "view")


def copied(kind, folder, rows, most_rows):
    """A session on a source of which questions have a copy; one person has so many long texts."""
    home = duckdb.connect()
    home.execute("SET threads = 2")
    for setting in ("memory_limit", "max_temp_directory_size"):
        home.execute(f"SET {setting} = '{SMALL >> 10}KiB'")
    texts = ["A", "B", *(random.randbytes(LONGER // 2).hex() for _ in range(rows))]
    units = ["1", "2", *["0"] * rows]
    if kind == "view":
        parquet.write_table(pa.table({"u": units, "s": texts}), folder / "people.parquet", 100)
        home.execute(f"CREATE VIEW people AS SELECT u, s FROM '{folder}/people.parquet'")
    else:
        lines = (f"{u},{s}\n" for u, s in zip(units, texts, strict=True))
        (folder / "people.csv").write_text(f"u,s\n{''.join(lines)}")
    database = dp.duckdb(home)
    home.execute("CREATE TABLE few AS SELECT 1 AS z")
    source = {"csv": str(folder / "people.csv"), "pattern": str(folder / "*.csv")}.get(kind)
    source = source or database.table("people")
    table = dp.PrivateTable(
        source,
        unit="u",
        population="p",
        columns={"u": "text", "s": "text"},
        max_rows=1,
        most_rows=most_rows,
        row_by_row=True,
    )
    return dp.Session(
        {"w": dp.PublicTable(database.table("few")), "t": table},
        budget=dp.ApproxDP(1e9, 1e-6),
        ledger=dp.Ledger(key=bytes(32)),
    )


TWICE = "SELECT COUNT(*) AS n, COUNT(DISTINCT u) AS m FROM t WHERE s <> ''"


def most_copied(kind, folder):
    """The largest promise with which a question is answered that reads its table twice."""
    with copied(kind, folder, 0, 1) as session:
        plan = compile_sql(TWICE, session._catalogue, Options())
        held = COPIES * sum(each.width * each.growth for each in plan.held)
    return 2 * SMALL // (held + SOURCES * (65_536 + 1_000 + 2 * 16))


@pytest.mark.parametrize("kind", COPIED)
def test_a_copy_that_is_let_through_fits(kind, tmp_path):
    most = most_copied(kind, tmp_path)
    with copied(kind, tmp_path, most - 2, most) as session:
        assert abs(session.sql(TWICE, epsilon=1e3)["n"][0] - 3) < 2


@pytest.mark.parametrize("kind", COPIED)
def test_a_copy_that_would_not_fit_is_refused_for_everybody(kind, tmp_path):
    most = most_copied(kind, tmp_path) + 1
    said = set()
    for rows in (0, 50):
        with copied(kind, tmp_path, rows, most) as session:
            with pytest.raises(dp.QueryError, match="a copy is made") as no:
                session.sql(TWICE, epsilon=1e3)
            assert session.spent == {"p": 0}
            said.add(str(no.value))
    assert len(said) == 1


def test_a_file_that_is_read_once_is_not_copied(tmp_path):
    """And a promise that nobody gave refuses nothing."""
    most = 2 * most_copied("csv", tmp_path)
    with copied("csv", tmp_path, 0, most) as session:
        session.explain("SELECT COUNT(*) AS n FROM t WHERE s LIKE 'A%'", epsilon=1e3)
    with copied("csv", tmp_path, 0, None) as session:
        session.explain(TWICE, epsilon=1e3)


def test_a_copy_of_a_public_table_counts_with_what_it_has(tmp_path):
    (tmp_path / "wards.csv").write_text(f"ward,name\nA,{LONG}\nB,\n")
    columns = {"ward": "text", "name": "text"}
    people = {"u": [1, 2], "ward": ["A", "B"]}
    table = dp.PrivateTable(
        pa.table(people), unit="u", population="p", max_rows=1, max_groups=1, most_rows=10
    )
    wards = dp.PublicTable(str(tmp_path / "wards.csv"), columns=columns)
    with dp.Session(
        {"t": table, "w": wards}, budget=dp.ApproxDP(1e9, 1e-6), ledger=dp.Ledger(key=bytes(32))
    ) as session:
        joined = "SELECT w.name, COUNT(*) AS n FROM t JOIN w ON t.ward = w.ward GROUP BY w.name"
        session.explain(joined, epsilon=1)
        sizes = [number for text, number in session.parts.counts._known.items() if "STRLEN" in text]
        assert sizes == [2 * 2 * 16 + len("A") + len(LONG) + len("B")]


PULLED = {
    "synthesis": lambda session: dp.synthesize(
        session, "t", columns=["x"], bins={"x": 4}, epsilon=1e3, method="mst"
    ),
    "fit": lambda session: dp.fit(
        session,
        dp.learning.PerturbedLogisticRegression(
            guarantee=dp.PureDP(1e3),
            penalty=1.0,
            bounds=(0, 99),
            classes=[False, True],
            method="output",
        ),
        "SELECT u, x, x > 5 AS y FROM t",
        x=["x"],
        y="y",
    ),
}


@pytest.mark.parametrize("name", PULLED)
def test_syntheses_and_fits_of_rows_are_refused_for_everybody(name):
    said = []
    for rows in (0, 50):
        with opened(rows, 1 << 28) as session:
            with pytest.raises(dp.QueryError, match="could take") as no:
                PULLED[name](session)
            said.append(str(no.value))
            assert session.spent == {"p": 0}
    assert said[0] == said[1]
    with opened(50, 1_000) as session:
        PULLED[name](session)
        assert session.spent["p"] > 0
