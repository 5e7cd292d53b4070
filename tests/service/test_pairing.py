"""A store that is taken away, at whatever moment, does not tell which report came with which token.

Twenty people answer one after the other, each with reports that nobody else has; then the server is
ended by a signal, and somebody reads what lies there.
"""

import hashlib
import json
import os
import signal
import sqlite3
import subprocess
import threading
import time
from collections import Counter

import pytest

from deniable.errors import AdmissionError
from deniable.service import pool
from deniable.service.codes import code_mark
from deniable.service.database import named
from deniable.service.deposits import Outcome
from deniable.service.store import SurveyStore
from deniable.service.submission import Submission
from deniable.service.tables import METADATA
from postgres import Postgres
from service.forensics import (
    BY_LUCK,
    DOCUMENT,
    PEOPLE,
    Hurried,
    being_written,
    files_of,
    paired_by_place,
    paired_by_writer,
    reports_of,
    rows_of,
    said,
    taken_away,
)
from service.server import Server, body_of
from service.surveys import SCALE, survey
from service.tokens.holder import blind, finalize, prepare

BLIND = survey(
    [{**SCALE, "id": f"q{i}", "text": {"en": f"{i}?"}, "low": 10, "high": 19} for i in range(3)],
    admission="blind tokens",
)
ENDS = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL]


@pytest.fixture(scope="module")
def postgres():
    server = Postgres()
    yield server
    server.remove()


@pytest.fixture(params=["sqlite", "postgres"])
def where(request, tmp_path):
    if request.param == "sqlite":
        yield tmp_path / "survey.db"
        return
    url = request.getfixturevalue("postgres").url
    yield url
    store = SurveyStore(url)
    with store._database.turn() as connection:
        METADATA.drop_all(connection)
    store.close()


def opened(where, people=PEOPLE):
    store = SurveyStore(where)
    store.add(DOCUMENT)
    return store, store.invite(DOCUMENT, [f"person {number}" for number in range(people)])


def token_of(code):
    return Submission(code.encode(), b"", bytes(16), ()).token


def sent(code, number):
    return Submission(code.encode(), b"", os.urandom(16), reports_of(number))


@pytest.mark.parametrize("how", ENDS, ids=lambda how: how.name)
def test_a_server_that_was_ended_leaves_no_pairs(where, how, tmp_path, request):
    store, codes = opened(where)
    store.close()
    server = Server(tmp_path, DOCUMENT, store=str(where))
    try:
        for number, code in enumerate(codes):
            body = body_of(DOCUMENT.id, code, reports_of(number), os.urandom(16).hex())
            assert server.send(DOCUMENT.id, body) == (200, {"stored": True})
        server.process.send_signal(how)
        ended = server.process.wait(timeout=60)
    finally:
        server.stop()
    # A stop is a normal end, whoever asks for it; and what was acknowledged is there.
    assert ended == (-signal.SIGKILL if how is signal.SIGKILL else 0)
    tokens, reports = [token_of(code) for code in codes], said(range(PEOPLE))
    if "://" in str(where):
        found = request.getfixturevalue("postgres")
        blobs = files_of(found.url, found.folder)
        assert paired_by_writer(found.url, tokens, reports) < BY_LUCK
    else:
        blobs = [file.read_bytes() for file in tmp_path.iterdir() if "survey.db" in file.name]
    assert any(reports[0].encode() in raw for raw in blobs)
    assert paired_by_place(blobs, tokens, reports) < BY_LUCK
    store = SurveyStore(where)
    assert sorted(store.reports(DOCUMENT)) == [reports_of(number) for number in range(PEOPLE)]
    store.close()


def test_the_attacks_work_on_a_store_that_appends(tmp_path, postgres):
    """They pair everybody where tokens and reports are written as they come."""
    tokens, reports = [f"{number:064x}" for number in range(PEOPLE)], said(range(PEOPLE))
    for mode in ("WAL", "DELETE"):
        plain = sqlite3.connect(tmp_path / f"{mode}.db", isolation_level=None)
        plain.execute(f"PRAGMA journal_mode = {mode}")
        append(plain.execute, tokens, reports, " WITHOUT ROWID")
        blobs = [file.read_bytes() for file in tmp_path.glob(f"{mode}.db*")]
        assert paired_by_place(blobs, tokens, reports) == PEOPLE
        plain.close()
    import psycopg

    with psycopg.connect(postgres.url, autocommit=True) as connection:
        append(connection.execute, tokens, reports, "")
    assert paired_by_writer(postgres.url, tokens, reports) == PEOPLE
    blobs = files_of(postgres.url, postgres.folder)
    assert paired_by_place(blobs, tokens, reports) == PEOPLE
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        for name in ("spent", "answers"):
            connection.execute(f"DROP TABLE survey_{name}, survey_{name}_fresh")


def append(execute, tokens, reports, kind):
    for name in ("", "_fresh"):
        execute(f"CREATE TABLE survey_spent{name} (token TEXT PRIMARY KEY){kind}")
        execute(f"CREATE TABLE survey_answers{name} (key TEXT PRIMARY KEY, reports TEXT){kind}")
    for token, report in zip(tokens, reports, strict=True):
        execute("BEGIN")
        execute(f"INSERT INTO survey_spent VALUES ('{token}')")
        execute(f"INSERT INTO survey_answers VALUES ('{os.urandom(8).hex()}', '{report}')")
        execute("COMMIT")


def test_no_moment_shows_a_token_and_its_report(tmp_path):
    """A process is stopped in the middle of its writes, as often as it takes to see some of each.

    What a journal would bring back, against what lies there, tells what is being written: tokens,
    or reports, and never both.
    """
    folder = tmp_path / "store"
    folder.mkdir()
    store, codes = opened(folder / "survey.db", 900)
    store.close()
    hurried, seen = Hurried(folder / "survey.db", codes), Counter()
    try:
        while min(seen["tokens"], seen["reports"]) < 5:
            time.sleep(0.002)
            assert hurried.hold(), "it ended before it was seen writing"
            writing = taken_away(folder, tmp_path / "copies")
            hurried.go_on()
            if writing:
                kinds = being_written(tmp_path / "copies")
                assert len(kinds) <= 1
                seen.update(kinds)
    finally:
        hurried.kill()
    store = SurveyStore(folder / "survey.db")
    assert len(store.reports(DOCUMENT)) > 0
    store.close()


def test_every_writer_in_postgres_wrote_many_rows(postgres, monkeypatch):
    """At every moment, while people answer: one transaction wrote all fresh rows of a kind."""
    monkeypatch.setattr(pool, "MOST", 32)
    monkeypatch.setattr(pool, "KEPT", 16)
    store, codes = opened(postgres.url, 150)
    done = threading.Event()

    def answer():
        for number, code in enumerate(codes):
            store.accept(DOCUMENT, sent(code, number))
        done.set()

    person = threading.Thread(target=answer)
    person.start()
    looks = 0
    while not done.is_set():
        rows = rows_of(postgres.url)
        looks += 1
        for kind in ("spent", "answers"):
            count = len(rows[f"survey_{kind}"]) + len(rows[f"survey_{kind}_fresh"])
            for name in (f"survey_{kind}", f"survey_{kind}_fresh"):
                writers = Counter(writer for writer, _, _ in rows[name])
                assert min(writers.values(), default=count) >= min(count, 16)
        tokens, answers = (
            {writer for name in rows if kind in name for writer, _, _ in rows[name]}
            for kind in ("spent", "answers")
        )
        assert not tokens & answers
    person.join()
    assert looks > 10
    assert sorted(store.reports(DOCUMENT)) == [reports_of(n) for n in range(len(codes))]
    with store._database.turn() as connection:
        METADATA.drop_all(connection)
    store.close()


def fresh(store, table):
    with store._database.looking() as connection:
        place = named(connection, METADATA.tables[f"survey_{table}_fresh"])
        return connection.exec_driver_sql(f"SELECT count(*) FROM {place}").scalar()


def test_who_comes_next_is_among_many(where, monkeypatch):
    """However many came before, and whenever the server began: nobody lies alone."""
    monkeypatch.setattr(pool, "MOST", 12)
    monkeypatch.setattr(pool, "KEPT", 6)
    store, codes = opened(where, 40)
    for number, code in enumerate(codes):
        assert store.accept(DOCUMENT, sent(code, number)) is Outcome.STORED
        for table in ("spent", "answers"):
            assert min(number + 1, 6) <= fresh(store, table) <= 12
        if number % 7 == 6:
            store.settle()
    assert sorted(store.reports(DOCUMENT)) == [reports_of(n) for n in range(len(codes))]
    store.close()


def test_tokens_and_reports_leave_the_pool_each_for_itself(tmp_path):
    """Of the half that is released, reports are not those of the tokens."""
    store, codes = opened(tmp_path / "survey.db", pool.MOST + 1)
    people = [threading.Thread(target=store.accept, args=(DOCUMENT, sent(code, number)))
              for number, code in enumerate(codes)]  # fmt: skip
    for each in people:
        each.start()
    for each in people:
        each.join()
    with store._database.looking() as connection:
        tokens = set(connection.exec_driver_sql("SELECT token FROM survey_spent").scalars())
        reports = set(connection.exec_driver_sql("SELECT reports FROM survey_answers").scalars())
    store.close()
    assert len(tokens) == len(reports) == pool.MOST + 1 - pool.KEPT
    both = sum(
        token_of(code) in tokens and report in reports
        for code, report in zip(codes, said(range(len(codes))), strict=True)
    )
    # Hypergeometric: 257 · 257 / 513 = 129 on average, σ = 5.7; 40 off has 1e-11 (Hoeffding).
    assert abs(both - len(tokens) ** 2 / len(codes)) < 60


def test_a_store_of_an_older_version_is_mixed_when_it_is_opened(tmp_path):
    """Its log goes, its rows stay, and what it acknowledged is never counted twice."""
    file = tmp_path / "survey.db"
    store, codes = opened(file, 30)
    store.close()
    submissions = [sent(code, number) for number, code in enumerate(codes)]
    plain = sqlite3.connect(file, isolation_level=None)
    for name in ("survey_spent_fresh", "survey_answers_fresh"):
        plain.execute(f"DROP TABLE {name}")
    plain.execute("PRAGMA journal_mode = WAL")
    for each in submissions:
        row = DOCUMENT.id, each.token, "0" * 64
        plain.execute("INSERT INTO survey_spent VALUES (?, ?, ?)", row)
        row = DOCUMENT.id, os.urandom(16).hex(), json.dumps(each.reports, separators=(",", ":"))
        plain.execute("INSERT INTO survey_answers VALUES (?, ?, ?)", row)
    plain.close()
    store = SurveyStore(file)
    assert [each.name for each in tmp_path.iterdir()] == ["survey.db"]
    tokens, reports = [each.token for each in submissions], said(range(len(codes)))
    assert fresh(store, "spent") == fresh(store, "answers") == 30
    assert paired_by_place([file.read_bytes()], tokens, reports) < BY_LUCK
    assert {store.accept(DOCUMENT, each) for each in submissions} == {Outcome.SPENT}
    assert sorted(store.reports(DOCUMENT)) == [reports_of(number) for number in range(30)]
    store.close()


def test_who_got_a_token_last_did_not_send_the_newest_report(postgres, tmp_path):
    """Each asks for a token and sends at once; then somebody reads rows, writers and files.

    Who wrote a row last, and what lies there once where others were replaced, names nobody.
    """
    store = SurveyStore(postgres.url, keys=tmp_path)
    store.add(BLIND)
    codes, public = (
        store.invite(BLIND, [f"person {n}" for n in range(6)]),
        store.tokens(BLIND).public,
    )
    named_last = []
    for number, code in enumerate(codes):
        blinding = blind(public, prepare(BLIND.id.encode()))
        signature = finalize(public, blinding, store.issue(BLIND, code, blinding.blinded))
        report = Submission(blinding.prepared, signature, os.urandom(16), reports_of(number))
        store.accept(BLIND, report)
        named_last += [last_of(postgres, "marks", code_mark(code)) == {code_mark(code)}]
        # The attack itself works: what was replaced tells which report is the newest.
        (said_last,) = said([number])
        assert last_of(postgres, "answers", said_last) == {said_last}
    assert named_last == [True, *[False] * 5]  # one alone is known; of several, none
    with store._database.looking() as connection:
        place = named(connection, METADATA.tables["survey_invitations"])
        text = f"SELECT count(DISTINCT xmin::text), count(DISTINCT person) FROM {place}"
        assert connection.exec_driver_sql(text).one() == (1, 6)
    with store._database.turn() as connection:
        METADATA.drop_all(connection)
    store.close()


def last_of(postgres, kind, mark):
    """The rows of a kind that lie in the files once, or else those of the youngest writer."""
    import psycopg

    column = "reports" if kind == "answers" else "code"
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute("CHECKPOINT")
        rows = connection.execute(
            f"SELECT {column}, xmin::text::bigint FROM survey_{kind}_fresh"
        ).fetchall()
        (path,) = connection.execute(
            f"SELECT pg_relation_filepath('survey_{kind}_fresh')"
        ).fetchone()
    raw = (postgres.folder / "data" / path).read_bytes()
    assert mark in {row for row, _ in rows}
    once = {row for row, _ in rows if raw.count(row.encode()) == 1}
    youngest = max(writer for _, writer in rows)
    return once if len(once) < len(rows) else {row for row, writer in rows if writer == youngest}


@pytest.mark.parametrize("kind", ["TOKENS", "REPORTS"])
def test_a_write_in_postgres_that_is_broken_off_leaves_no_pair(postgres, monkeypatch, kind):
    """Rows of a transaction that never ends lie in the files, beside what it was to take out."""
    store, codes = opened(postgres.url, 9)
    for number, code in enumerate(codes[:-1]):
        store.accept(DOCUMENT, sent(code, number))
    put = pool.Pool.put

    def broken_off(self, connection, rows):
        put(self, connection, rows)
        if self is getattr(pool, kind):
            raise KeyboardInterrupt

    last = sent(codes[-1], 8)
    with monkeypatch.context() as patched:
        patched.setattr(pool.Pool, "put", broken_off)
        with pytest.raises(KeyboardInterrupt):
            store.accept(DOCUMENT, last)
    tokens = newest(postgres, "spent", [token_of(code) for code in codes])
    reports = newest(postgres, "answers", said(range(9)))
    mine = {"TOKENS": (tokens, token_of(codes[-1])), "REPORTS": (reports, said([8])[0])}
    assert mine[kind][0] == {mine[kind][1]}  # the attack itself works
    assert (tokens, reports) != ({token_of(codes[-1])}, set(said([8])))
    assert store.accept(DOCUMENT, last) in (Outcome.STORED, Outcome.ALREADY)
    assert sorted(store.reports(DOCUMENT)) == [reports_of(number) for number in range(9)]
    with store._database.turn() as connection:
        METADATA.drop_all(connection)
    store.close()


def newest(postgres, kind, marks):
    """What lies in the files of fresh rows fewer times than most does."""
    import psycopg

    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute("CHECKPOINT")
        ((path,),) = connection.execute(
            f"SELECT pg_relation_filepath('survey_{kind}_fresh')"
        ).fetchall()
    raw = (postgres.folder / "data" / path).read_bytes()
    times = {mark: raw.count(mark.encode()) for mark in marks if mark.encode() in raw}
    return {mark for mark in times if times[mark] < max(times.values())}


def test_postgres_keeps_no_values_of_its_own(postgres):
    """What it analyses in passing would be an older look: who came since is known of each kind."""
    import psycopg

    store, codes = opened(postgres.url)
    for number, code in enumerate(codes):
        store.accept(DOCUMENT, sent(code, number))
    kept = "SELECT count(*) FROM pg_stats WHERE tablename LIKE 'survey%%' AND tablename <> %s"
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute("ANALYZE")
        assert connection.execute(kept, ["survey_documents"]).fetchone() == (0,)
        # A store of an older version has let it.
        connection.execute("DROP TABLE survey_marks")
        connection.execute("ALTER TABLE survey_spent_fresh ALTER token SET STATISTICS -1")
        connection.execute("ANALYZE")
        assert connection.execute(kept, ["survey_documents"]).fetchone() == (1,)
        store.close()
        store = SurveyStore(postgres.url)
        connection.execute("ANALYZE")
        assert connection.execute(kept, ["survey_documents"]).fetchone() == (0,)
    assert sorted(store.reports(DOCUMENT)) == [reports_of(n) for n in range(len(codes))]
    with store._database.turn() as connection:
        METADATA.drop_all(connection)
    store.close()


def test_marks_of_an_older_version_leave_the_invitations(where, tmp_path):
    """They lay beside names in the order in which they were made; they count as before."""
    store = SurveyStore(where, keys=tmp_path / "keys")
    store.add(BLIND)
    one, other = store.invite(BLIND, ["one", "other"])
    asked = [blind(store.tokens(BLIND).public, prepare(BLIND.id.encode())) for _ in range(2)]
    mark = hashlib.sha256(asked[0].blinded).hexdigest()
    with store._database.turn() as connection:
        for name in ("survey_marks", "survey_marks_fresh"):
            connection.exec_driver_sql(f"DROP TABLE {named(connection, METADATA.tables[name])}")
        place = named(connection, METADATA.tables["survey_invitations"])
        connection.exec_driver_sql(f"ALTER TABLE {place} ADD COLUMN blinded TEXT")
        connection.exec_driver_sql(f"UPDATE {place} SET blinded = '{mark}' WHERE person = 'one'")
    store.close()
    for _ in range(2):
        store = SurveyStore(where, keys=tmp_path / "keys")
        assert store.issue(BLIND, one, asked[0].blinded)
        with pytest.raises(AdmissionError, match="another device"):
            store.issue(BLIND, one, asked[1].blinded)
        store.close()
    store = SurveyStore(where, keys=tmp_path / "keys")
    assert store.issue(BLIND, other, asked[1].blinded)
    store.close()


def test_a_token_without_its_report_is_completed_by_who_sends_again(where, monkeypatch):
    """Killed between the two writes: the same submission counts once, another one not at all."""
    store, codes = opened(where, 3)
    first, other = sent(codes[0], 0), sent(codes[0], 7)

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("deniable.service.deposits._lay_down", killed)
        with pytest.raises(KeyboardInterrupt):
            store.accept(DOCUMENT, first)
    assert store.reports(DOCUMENT) == []
    assert store.accept(DOCUMENT, other) is Outcome.SPENT
    assert store.reports(DOCUMENT) == []
    for _ in range(2):
        assert store.accept(DOCUMENT, first) is Outcome.ALREADY
        assert store.reports(DOCUMENT) == [reports_of(0)]
    store.close()


def test_the_server_starts_no_process(tmp_path):
    """Nothing is left to be ended with it."""
    server = Server(tmp_path, DOCUMENT)
    try:
        server.get(f"/s/{DOCUMENT.id}")
        listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(server.process.pid)],
                                check=False, capture_output=True, text=True)  # fmt: skip
        assert listed.stdout.split() == []
    finally:
        server.stop()
