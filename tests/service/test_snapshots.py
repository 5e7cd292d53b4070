"""Who reads a survey's store in Postgres from one snapshot, as a dump does, sees all of it."""

import os
import subprocess
import threading
import time

import psycopg
import pytest

from deniable.service import pool
from deniable.service.deposits import Outcome
from deniable.service.store import SurveyStore
from deniable.service.submission import Submission
from deniable.service.tables import METADATA
from postgres import Postgres, _binary
from service.forensics import (
    BY_LUCK,
    DOCUMENT,
    TABLES,
    files_of,
    paired_by_place,
    paired_by_writer,
    reports_of,
    said,
)

PEOPLE = 40


@pytest.fixture(scope="module")
def postgres():
    server = Postgres()
    yield server
    server.remove()


@pytest.fixture
def store(postgres, monkeypatch):
    monkeypatch.setattr(pool, "MOST", 32)
    monkeypatch.setattr(pool, "KEPT", 16)
    opened = SurveyStore(postgres.url)
    opened.add(DOCUMENT)
    yield opened
    with opened._database.turn() as connection:
        METADATA.drop_all(connection)
    opened.close()


class Traffic:
    """People who answer one after the other, and what was acknowledged so far."""

    def __init__(self, store, count=PEOPLE):
        codes = store.invite(DOCUMENT, [None] * count)
        self.sent = [
            Submission(code.encode(), b"", os.urandom(16), reports_of(number))
            for number, code in enumerate(codes)
        ]
        self.acknowledged, self.store = 0, store
        self._thread = threading.Thread(target=self._answer)

    def _answer(self):
        for each in self.sent:
            assert self.store.accept(DOCUMENT, each) is Outcome.STORED
            self.acknowledged += 1

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._thread.join()
        assert self.acknowledged == len(self.sent)

    @property
    def running(self):
        return self._thread.is_alive()


SEEN = {
    kind: "SELECT {} FROM survey_{} UNION ALL SELECT {} FROM survey_{}_fresh".replace("{}", "%s")
    % (column, kind, column, kind)
    for kind, column in (("spent", "token"), ("answers", "reports"))
}


def whole(tokens, reports, traffic, least):
    """Nothing that was acknowledged before is missing, and nothing is there twice."""
    assert len(set(tokens)) == len(tokens) >= least
    assert len(set(reports)) == len(reports) >= least
    assert {each.token for each in traffic.sent[:least]} <= set(tokens)
    assert set(said(range(least))) <= set(reports)


@pytest.mark.parametrize("settling", [False, True])
def test_a_snapshot_under_traffic_sees_all(store, postgres, settling):
    """It is taken before anything is read, and the tables are read one after the other."""
    looks = 0
    with Traffic(store) as traffic, psycopg.connect(postgres.url) as reader:
        while traffic.running:
            reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            least = traffic.acknowledged
            reader.execute("SELECT 1")
            more = traffic.acknowledged
            while traffic.running and traffic.acknowledged < more + 3:
                time.sleep(0.01)
            if settling:
                store.settle()
            found = {kind: [row[0] for row in reader.execute(text)] for kind, text in SEEN.items()}
            reader.execute("ROLLBACK")
            whole(found["spent"], found["answers"], traffic, least)
            looks += 1
    assert looks >= 3


def test_a_dump_under_traffic_holds_all_and_admits_nobody_again(store, postgres, tmp_path):
    dumps = []
    with Traffic(store) as traffic:
        while traffic.running and len(dumps) < 4:
            least, file = traffic.acknowledged, tmp_path / f"{len(dumps)}.sql"
            command = [_binary("pg_dump"), "--no-owner", "-f", str(file), postgres.url]
            subprocess.run(command, check=True, capture_output=True)
            dumps.append((least, file))
    assert len(dumps) >= 2
    for least, file in dumps:
        with psycopg.connect(postgres.url, autocommit=True) as admin:
            admin.execute(f"CREATE DATABASE restored{file.stem}")
        url = postgres.url.replace("/postgres", f"/restored{file.stem}")
        command = [_binary("psql"), "-q", "-v", "ON_ERROR_STOP=1", "-f", str(file), url]
        subprocess.run(command, check=True, capture_output=True)
        with psycopg.connect(url) as reader:
            found = {kind: [row[0] for row in reader.execute(text)] for kind, text in SEEN.items()}
        whole(found["spent"], found["answers"], traffic, least)
        again = SurveyStore(url)
        outcomes = {
            again.accept(DOCUMENT, Submission(each.message, b"", os.urandom(16), each.reports))
            for each in traffic.sent[:least]
        }
        again.close()
        assert outcomes <= {Outcome.SPENT}


def test_answers_are_taken_while_somebody_reads_for_long(store, postgres):
    """Nobody waits for the end of a dump, and when it has ended nothing is left of the order."""
    traffic = Traffic(store, 20)
    with psycopg.connect(postgres.url) as reader:
        reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        reader.execute("SELECT 1")
        for name in TABLES:
            reader.execute(f"LOCK TABLE {name} IN ACCESS SHARE MODE")
        for each in traffic.sent[:3]:
            assert store.accept(DOCUMENT, each) is Outcome.STORED
        assert [len(list(reader.execute(text))) for text in SEEN.values()] == [0, 0]
        reader.rollback()
    for each in traffic.sent[3:]:
        assert store.accept(DOCUMENT, each) is Outcome.STORED
    tokens, reports = [each.token for each in traffic.sent], said(range(20))
    blobs = files_of(postgres.url, postgres.folder)
    assert paired_by_place(blobs, tokens, reports) < BY_LUCK
    assert paired_by_writer(postgres.url, tokens, reports) < BY_LUCK
    for marks in (tokens, reports):  # never both kinds with what was there before
        if all(raw.count(mark.encode()) <= 1 for raw in blobs for mark in marks):
            break
    else:
        raise AssertionError
    store.settle()
    blobs = files_of(postgres.url, postgres.folder)
    for raw in blobs:  # each row lies there once: no generation before the last
        for mark in (*tokens, *reports):
            assert raw.count(mark.encode()) <= 1


def test_truncating_is_caught(store, postgres, monkeypatch):
    """Power: as it was, a snapshot loses what was there."""

    def truncated(self, connection, rows, put=pool.Pool.put):
        kept = [dict(row) for row in connection.execute(self.fresh.select()).mappings()]
        connection.exec_driver_sql(f"TRUNCATE public.{self.fresh.name}")
        if kept:
            connection.execute(self.fresh.insert(), kept)
        put(self, connection, rows)

    traffic = Traffic(store, 6)
    for each in traffic.sent[:3]:
        store.accept(DOCUMENT, each)
    monkeypatch.setattr(pool.Pool, "put", truncated)
    with psycopg.connect(postgres.url) as reader:
        reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        reader.execute("SELECT 1")
        store.accept(DOCUMENT, traffic.sent[3])
        found = [len(list(reader.execute(text))) for text in SEEN.values()]
    assert found == [0, 0]
