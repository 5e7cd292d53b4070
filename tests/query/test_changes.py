"""A repeated answer about a file that was written since: whoever runs the session is warned."""

import dataclasses
import os
import time
import warnings
from datetime import UTC, datetime, timedelta

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deniable as dp

COUNT = "SELECT COUNT(*) AS n FROM t"
WARNED = r"t: written after this answer was recorded.*version="


@pytest.fixture(autouse=True)
def key(tmp_path, monkeypatch):
    monkeypatch.setenv("DENIABLE_LEDGER_KEY", bytes(range(32)).hex())
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "configuration"))


def write(folder, kind):
    if kind == "parquet":
        pq.write_table(pa.table({"id": ["a", "b"]}), folder / "t.parquet")
    elif kind == "db":
        with duckdb.connect(folder / "t.db") as connection:
            connection.execute("CREATE OR REPLACE TABLE t AS SELECT 'a' AS id")
    else:
        (folder / "t.csv").write_text("id\na\nb\n")
    for each in folder.glob("t.*"):
        os.utime(each, (time.time() - 100, time.time() - 100))


def source_of(folder, kind):
    return {
        "csv": folder / "t.csv",
        "parquet": folder / "t.parquet",
        "pattern": folder / "*.csv",
        "format": dp.csv(folder / "t.csv", encoding="latin-1"),
        "db": dp.duckdb(folder / "t.db").table("t") if kind == "db" else None,
    }[kind]


def opened(folder, kind="csv", ledger=None, **more):
    table = dp.PrivateTable(
        source_of(folder, kind),
        unit="id",
        population="p",
        columns={"id": "text"},
        max_rows=1,
        cap_rows=1,
        **more,
    )
    return dp.Session(
        {"t": table},
        budget=dp.PureDP(10),
        ledger=folder / "ledger.db" if ledger is None else ledger,
    )


def touch(folder, seconds):
    for each in folder.glob("t.*"):
        os.utime(each, (time.time() + seconds, time.time() + seconds))


@pytest.mark.parametrize("kind", ["csv", "parquet", "pattern", "format", "db"])
def test_another_session_is_warned_of_a_file_that_was_written_since(tmp_path, kind):
    write(tmp_path, kind)
    with opened(tmp_path, kind) as session:
        first = session.sql(COUNT, epsilon=1)
    with opened(tmp_path, kind) as session:  # nothing has changed: no warning, which is an error
        assert session.sql(COUNT, epsilon=1) == dataclasses.replace(first, repeated=True)
    touch(tmp_path, 1)
    with opened(tmp_path, kind) as session, pytest.warns(UserWarning, match=WARNED):
        assert session.sql(COUNT, epsilon=1)["n"] == first["n"]
    with opened(tmp_path, kind) as session, pytest.warns(UserWarning, match=WARNED):
        session.table("t").agg(n=dp.count()).release(epsilon=1)
    with opened(tmp_path, kind, version="2") as session:
        assert not session.sql(COUNT, epsilon=1).repeated


def test_the_same_session_is_warned_though_it_asked_other_things_since(tmp_path):
    write(tmp_path, "csv")
    with opened(tmp_path) as session:
        session.sql(COUNT, epsilon=1)
        time.sleep(0.02)
        touch(tmp_path, 0)
        time.sleep(0.02)
        session.sql("SELECT COUNT(DISTINCT id) AS n FROM t", epsilon=1)
        with pytest.warns(UserWarning, match=WARNED):
            session.sql(COUNT, epsilon=1)


def test_by_the_day_where_the_ledger_is_no_file(tmp_path):
    write(tmp_path, "csv")
    day = [datetime.now(UTC) - timedelta(days=3)]
    ledger = dp.Ledger(key=bytes(32), clock=lambda: day[0])
    with opened(tmp_path, ledger=ledger) as session:
        session.sql(COUNT, epsilon=1)
    with opened(tmp_path, ledger=ledger) as session, pytest.warns(UserWarning, match=WARNED):
        session.sql(COUNT, epsilon=1)
    touch(tmp_path, -5 * 86_400)
    with opened(tmp_path, ledger=ledger) as session:
        assert session.sql(COUNT, epsilon=1).repeated


def test_an_answer_that_is_new_is_of_the_file_as_it_is(tmp_path):
    write(tmp_path, "csv")
    touch(tmp_path, 50)
    with opened(tmp_path) as session:
        assert not session.sql(COUNT, epsilon=1).repeated


def test_tables_that_a_question_does_not_name_are_not_looked_at(tmp_path):
    write(tmp_path, "csv")
    (tmp_path / "other.csv").write_text("id\na\n")

    def both():
        tables = {
            name: dp.PrivateTable(
                tmp_path / f"{name}.csv",
                unit="id",
                population="p",
                columns={"id": "text"},
                max_rows=1,
                cap_rows=1,
            )
            for name in ("t", "other")
        }
        return dp.Session(tables, budget=dp.PureDP(10), ledger=tmp_path / "ledger.db")

    with both() as session:
        session.sql("SELECT COUNT(*) AS n FROM other", epsilon=1)
        session.sql(COUNT, epsilon=1)
    touch(tmp_path, 5)
    with both() as session:
        assert session.sql("SELECT COUNT(*) AS n FROM other", epsilon=1).repeated
        with pytest.warns(UserWarning, match="^t: "):
            session.sql(COUNT, epsilon=1)


def test_a_warning_that_is_made_an_error_costs_nothing(tmp_path):
    write(tmp_path, "csv")
    with opened(tmp_path) as session:
        session.sql(COUNT, epsilon=1)
    touch(tmp_path, 5)
    with opened(tmp_path) as session:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(UserWarning, match=WARNED):
                session.sql(COUNT, epsilon=1)
        assert session.spent == {"p": 1}
