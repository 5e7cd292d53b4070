import json
import sqlite3
import threading

import pytest
import sqlalchemy as sa

from deniable.errors import (
    AdmissionError,
    BudgetError,
    ParameterError,
    ReportError,
    SurveyStoreError,
)
from deniable.service.entry import read_sheets
from deniable.service.store import Outcome, SurveyStore
from deniable.service.submission import read_submission
from deniable.service.tables import METADATA
from postgres import Postgres
from service.server import body_of
from service.surveys import SCALE, YES_NO, survey

DOCUMENT = survey()
REPORTS = (1, 2, 4, 0)


@pytest.fixture(scope="module")
def postgres():
    server = Postgres()
    yield server
    server.remove()


@pytest.fixture(params=["sqlite", "postgres"])
def store(request, tmp_path):
    if request.param == "sqlite":
        where = tmp_path / "survey.db"
    else:
        where = request.getfixturevalue("postgres").url
    opened = SurveyStore(where)
    opened.add(DOCUMENT)
    yield opened
    with opened._engine.begin() as connection:
        METADATA.drop_all(connection)
    opened.close()


def submission(code, reports=REPORTS, nonce="ab" * 16, document=DOCUMENT, **changes):
    body = body_of(document.id, code, reports, nonce, **changes)
    return read_submission(document, json.dumps(body).encode())


def test_a_submission_counts_once_however_often_it_is_sent(store):
    (code,) = store.invite(DOCUMENT, [None])
    outcomes = [store.accept(DOCUMENT, submission(code)) for _ in range(3)]
    assert outcomes == [Outcome.STORED, Outcome.ALREADY, Outcome.ALREADY]
    assert store.reports(DOCUMENT) == [REPORTS]
    assert (store.status(DOCUMENT).invited, store.status(DOCUMENT).answered) == (1, 1)


def test_a_code_admits_one_submission_only(store):
    (code,) = store.invite(DOCUMENT, [None])
    store.accept(DOCUMENT, submission(code))
    assert store.accept(DOCUMENT, submission(code, nonce="cd" * 16)) is Outcome.SPENT
    assert store.accept(DOCUMENT, submission(code, (0, 0, 0, 0))) is Outcome.SPENT
    assert store.reports(DOCUMENT) == [REPORTS]


def test_another_spelling_of_a_code_is_no_other_code(store):
    (code,) = store.invite(DOCUMENT, [None])
    store.accept(DOCUMENT, submission(code))
    for spelt in (code.lower(), f" {code}", f"{code[:4]}-{code[4:]}", f"{code}\n", code + "0"):
        if spelt != code:
            with pytest.raises(AdmissionError):
                store.accept(DOCUMENT, submission(spelt))
    assert len(store.reports(DOCUMENT)) == 1


def test_forged_and_foreign_tokens_are_refused(store):
    other = survey(name="village")
    store.add(other)
    (foreign,) = store.invite(other, [None])
    (mine,) = store.invite(DOCUMENT, [None])
    for forged in ("0" * 16, foreign, "x"):
        with pytest.raises(AdmissionError):
            store.accept(DOCUMENT, submission(forged))
    with pytest.raises(AdmissionError):
        store.accept(DOCUMENT, submission(mine, signature="00"))
    with pytest.raises(AdmissionError):
        store.issue(DOCUMENT, mine, b"blinded")
    assert store.reports(DOCUMENT) == []
    assert store.accept(DOCUMENT, submission(mine)) is Outcome.STORED


def test_a_race_for_one_token_has_one_winner(store):
    (code,) = store.invite(DOCUMENT, [None])
    outcomes, start = [], threading.Barrier(8)

    def race(number):
        sent = submission(code, nonce=f"{number:032x}")
        start.wait()
        outcomes.append(store.accept(DOCUMENT, sent))

    threads = [threading.Thread(target=race, args=(number,)) for number in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(outcome.name for outcome in outcomes) == ["SPENT"] * 7 + ["STORED"]
    assert len(store.reports(DOCUMENT)) == 1


def test_no_column_holds_a_time_or_an_address():
    columns = {f"{table.name}.{column.name}" for table in METADATA.sorted_tables
               for column in table.columns}  # fmt: skip
    assert columns == {
        "survey_documents.survey", "survey_documents.document",
        "survey_invitations.code", "survey_invitations.survey", "survey_invitations.person",
        "survey_invitations.blinded",
        "survey_spent.survey", "survey_spent.token", "survey_spent.fingerprint",
        "survey_answers.survey", "survey_answers.key", "survey_answers.reports",
    }  # fmt: skip
    assert all(isinstance(column.type, sa.Text) for table in METADATA.sorted_tables
               for column in table.columns)  # fmt: skip


def test_answers_lie_in_another_order_than_they_came_in(tmp_path):
    many = survey([{**SCALE, "id": f"q{i}", "low": 0, "high": 9} for i in range(3)])
    store = SurveyStore(tmp_path / "survey.db")
    store.add(many)
    sent = [(i // 100, i // 10 % 10, i % 10) for i in range(200)]
    for code, reports in zip(store.invite(many, [None] * 200), sent, strict=True):
        store.accept(many, submission(code, reports, document=many))
    stored = store.reports(many)
    store.close()
    assert sorted(stored) == sent
    assert stored != sent  # 200! orders
    with sqlite3.connect(tmp_path / "survey.db") as plain:
        physical = plain.execute("SELECT reports FROM survey_answers").fetchall()
        assert [tuple(json.loads(row[0])) for row in physical] == stored
        with pytest.raises(sqlite3.OperationalError):  # there are no row numbers to sort by
            plain.execute("SELECT rowid FROM survey_answers").fetchall()
    plain.close()


def test_the_store_holds_no_code_and_no_nonce(tmp_path):
    store = SurveyStore(tmp_path / "survey.db")
    store.add(DOCUMENT)
    (code,) = store.invite(DOCUMENT, [None])
    store.accept(DOCUMENT, submission(code, nonce="deadbeef" * 4))
    store.close()
    assert [file.name for file in tmp_path.iterdir()] == ["survey.db"]
    held = (tmp_path / "survey.db").read_bytes()
    for secret in (code, code.encode().hex(), "deadbeef"):
        assert secret.encode() not in held
    assert (tmp_path / "survey.db").stat().st_mode & 0o077 == 0


def test_a_limit_holds_over_all_waves(store):
    first, second, third = (survey([YES_NO], wave=wave, limit=2.5) for wave in (1, 2, 3))
    other = survey([YES_NO], population="elsewhere", limit=2.5)
    for each in (first, second, third, other):
        store.add(each)
    store.invite(first, ["ann", "bob"])
    store.invite(second, ["ann"])
    with pytest.raises(BudgetError, match="1 of 2"):  # 3 ln 3 > 2.5
        store.invite(third, ["ann", "bob"])
    assert store.status(third).invited == 0
    store.invite(third, ["bob"])
    store.invite(other, ["ann"])
    with pytest.raises(BudgetError):
        store.invite(first, ["ann"])  # one token per wave
    with pytest.raises(ParameterError):
        store.invite(third, [None])


def test_a_batch_from_paper_counts_once(store):
    sheets = read_sheets(DOCUMENT, "yes,none,3,12\nNO, several ,1,0\n\n")
    assert sheets == [(1, 0, 2, 1), (0, 2, 0, 0)]
    assert store.enter(DOCUMENT, "monday", sheets) is Outcome.STORED
    assert store.enter(DOCUMENT, "monday", sheets) is Outcome.ALREADY
    assert store.enter(DOCUMENT, "monday", sheets[:1]) is Outcome.SPENT
    assert sorted(store.reports(DOCUMENT)) == sorted(sheets)


@pytest.mark.parametrize(
    "text", ["", "yes", "maybe,none,3,12", "yes,none,6,12", "yes,none,3,12,1", "yes,none,0,12"]
)
def test_bad_sheets_are_refused_whole(text):
    with pytest.raises(ReportError):
        read_sheets(DOCUMENT, f"yes,none,3,12\n{text}" if text else "")


@pytest.mark.parametrize("where", ["mysql://x/y", "/nowhere/at/all.db", "://", "/tmp"])
def test_stores_that_cannot_be_are_refused(where):
    with pytest.raises(ParameterError):
        SurveyStore(where)


def test_a_file_that_is_no_store_is_refused(tmp_path):
    (tmp_path / "letter.txt").write_text("Dear Sir or Madam, " * 100)
    with pytest.raises(SurveyStoreError):
        SurveyStore(tmp_path / "letter.txt")
