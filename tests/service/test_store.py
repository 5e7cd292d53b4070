import hmac
import json
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
from deniable.service.deposits import Outcome
from deniable.service.entry import read_sheets
from deniable.service.pool import TOKENS
from deniable.service.store import SurveyStore
from deniable.service.submission import Submission, read_submission
from deniable.service.tables import METADATA
from postgres import Postgres
from service.server import body_of
from service.surveys import CHOICE, YES_NO, survey

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
    opened = SurveyStore(where, keys=tmp_path / "survey.keys")
    opened.add(DOCUMENT)
    yield opened
    with opened._database.turn() as connection:
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
        "survey_marks.survey", "survey_marks.code", "survey_marks.blinded",
        "survey_marks_fresh.survey", "survey_marks_fresh.code", "survey_marks_fresh.blinded",
        "survey_spent.survey", "survey_spent.token", "survey_spent.fingerprint",
        "survey_answers.survey", "survey_answers.key", "survey_answers.reports",
        "survey_spent_fresh.survey", "survey_spent_fresh.token", "survey_spent_fresh.fingerprint",
        "survey_answers_fresh.survey", "survey_answers_fresh.key", "survey_answers_fresh.reports",
        "survey_closed.survey",
    }  # fmt: skip
    assert all(isinstance(column.type, sa.Text) for table in METADATA.sorted_tables
               for column in table.columns)  # fmt: skip


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
    other = survey([YES_NO], name="other", population="elsewhere", limit=2.5)
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


def test_the_lowest_limit_that_was_promised_holds(store):
    promised, later = survey([YES_NO], limit=2), survey([YES_NO], wave=2)
    store.add(promised)
    store.add(later)
    store.invite(promised, ["ann"])
    with pytest.raises(BudgetError):  # 2 ln 3 > 2: what the first wave promised still stands
        store.invite(later, ["ann"])
    with pytest.raises(ParameterError):
        store.invite(later, [None])
    store.invite(later, ["bob"])


@pytest.mark.parametrize("spelt", ["Ann\u0301", "Ann\u0301 ", " Ann\u0301"])
def test_a_name_has_one_spelling(store, spelt):
    store.invite(DOCUMENT, ["An\u0144"])
    with pytest.raises(BudgetError, match="one token per wave"):
        store.invite(DOCUMENT, [spelt])


@pytest.mark.parametrize("name", ["", " ", "a\0b", "x" * 201, "a\u202eb", "\ud800"])
def test_names_that_are_none_are_refused(store, name):
    with pytest.raises(ParameterError):
        store.invite(DOCUMENT, [name])


def test_invitations_at_once_keep_the_limit(store):
    """Two waves ask for the same people at the same moment; the limit allows one of them."""
    waves = [survey([YES_NO], wave=wave, limit=2) for wave in (2, 3)]
    people = [f"person {number}" for number in range(20)]
    for wave in waves:
        store.add(wave)
    outcomes, start = [], threading.Barrier(2)

    def race(wave, person):
        start.wait()
        try:
            outcomes.append(store.invite(wave, [person]))
        except BudgetError:
            outcomes.append(None)

    for person in people:
        threads = [threading.Thread(target=race, args=(wave, person)) for wave in waves]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    assert sum(outcome is None for outcome in outcomes) == len(people)
    assert sum(store.status(wave).invited for wave in waves) == len(people)


def test_a_wave_has_one_text(store):
    """Another text would be answered with fresh coins: two throws for one answer."""
    (code,) = store.invite(DOCUMENT, ["ann"])
    changed = survey(title={"en": "A town, again"})
    store.add(changed)  # nobody has answered: the text is replaced, and its codes are void
    assert [each.id for each in store.documents()] == [changed.id]
    with pytest.raises(AdmissionError):
        store.accept(DOCUMENT, submission(code))
    (code,) = store.invite(changed, ["ann"])
    store.accept(changed, submission(code, document=changed))
    for other in (DOCUMENT, survey([{**YES_NO, "epsilon": 1}])):
        with pytest.raises(BudgetError, match="another text"):
            store.add(other)
    store.add(changed)
    store.add(survey(wave=2))
    assert store.reports(changed) == [REPORTS]


def test_a_closed_survey_takes_no_more(store):
    first, second = store.invite(DOCUMENT, [None, None])
    sheets = [(0, 0, 0, 0)]
    store.accept(DOCUMENT, submission(first))
    store.enter(DOCUMENT, "monday", sheets)
    store.close_survey(DOCUMENT)
    store.close_survey(DOCUMENT)
    assert store.status(DOCUMENT).closed
    # What was acknowledged before is acknowledged again, and nothing else is taken.
    assert store.accept(DOCUMENT, submission(first)) is Outcome.ALREADY
    assert store.enter(DOCUMENT, "monday", sheets) is Outcome.ALREADY
    refused = [
        lambda: store.accept(DOCUMENT, submission(second)),
        lambda: store.enter(DOCUMENT, "tuesday", sheets),
        lambda: store.invite(DOCUMENT, [None]),
        lambda: store.issue(DOCUMENT, second, b"blinded"),
    ]
    for act in refused:
        with pytest.raises(AdmissionError, match="closed"):
            act()
    store.add(DOCUMENT)  # adding it again does not open it
    assert store.status(DOCUMENT).closed
    assert len(store.reports(DOCUMENT)) == 2


def test_closing_at_once_loses_nothing_that_was_acknowledged(store):
    codes = store.invite(DOCUMENT, [None] * 60)
    taken, failed, start = [], [], threading.Barrier(7)

    def answer(mine):
        start.wait()
        for code in mine:
            try:
                store.accept(DOCUMENT, submission(code))
                taken.append(code)
            except AdmissionError:
                return
            except SurveyStoreError as problem:
                failed.append(problem)

    threads = [threading.Thread(target=answer, args=(codes[at::6],)) for at in range(6)]
    for each in threads:
        each.start()
    start.wait()
    store.close_survey(DOCUMENT)
    after = store.status(DOCUMENT).answered
    for each in threads:
        each.join()
    assert failed == []
    assert store.status(DOCUMENT).answered == after == len(taken)


def test_settling_while_people_answer_loses_nothing(store):
    codes = store.invite(DOCUMENT, [None] * 60)
    threads = [
        threading.Thread(
            target=lambda mine: [store.accept(DOCUMENT, submission(each)) for each in mine],
            args=(codes[at::4],),
        )
        for at in range(4)
    ]
    for each in threads:
        each.start()
    for _ in range(4):
        store.settle()
    for each in threads:
        each.join()
    assert store.status(DOCUMENT).answered == len(codes)
    assert {store.accept(DOCUMENT, submission(code)) for code in codes} == {Outcome.ALREADY}


@pytest.mark.parametrize("batch", ["", "  ", "x" * 201])
def test_a_batch_needs_a_name(store, batch):
    with pytest.raises(ParameterError):
        store.enter(DOCUMENT, batch, [REPORTS])


def test_a_batch_from_paper_counts_once(store):
    sheets = read_sheets(DOCUMENT, "yes,none,3,12\nNO, several ,1,0\n\n")
    assert sheets == [(1, 0, 2, 1), (0, 2, 0, 0)]
    assert store.enter(DOCUMENT, "monday", sheets) is Outcome.STORED
    assert store.enter(DOCUMENT, "monday", sheets) is Outcome.ALREADY
    assert store.enter(DOCUMENT, "monday", sheets[:1]) is Outcome.SPENT
    assert sorted(store.reports(DOCUMENT)) == sorted(sheets)


def test_what_marks_a_batch_does_not_tell_its_sheets(store, tmp_path):
    """Somebody with the store and the name of a batch of one guesses the sheet: hashes say no."""
    document = survey([YES_NO], name="one-sheet")
    store.add(document)
    store.enter(document, "alice", [(1,)])
    with store._database.looking() as connection:
        kept = connection.execute(TOKENS.rows(document.id, ["fingerprint"])).scalar_one()
    secret = (tmp_path / "survey.keys" / "paper.secret").read_bytes()
    assert (tmp_path / "survey.keys" / "paper.secret").stat().st_mode & 0o777 == 0o600

    def guess(report, keyed):
        whole = json.dumps(["alice", f"[{report}]"]).encode()
        nonce = hmac.digest(secret, whole, "sha256") if keyed else whole
        return Submission(b"paper\0alice", b"", nonce, ()).fingerprint

    assert kept not in {guess(report, keyed=False) for report in (0, 1)}
    assert kept == guess(1, keyed=True)


@pytest.mark.parametrize("reports", [(), (1,), (1, 2, 5, 0), (-1, 2, 4, 0), (True, 2, 4, 0)])
def test_no_report_out_of_range_is_stored(store, reports):
    (code,) = store.invite(DOCUMENT, [None])
    with pytest.raises(ReportError):
        store.accept(DOCUMENT, Submission(code.encode(), b"", bytes(16), reports))
    with pytest.raises(ReportError):
        store.enter(DOCUMENT, "monday", [REPORTS, reports])
    assert store.reports(DOCUMENT) == []


def test_paper_is_not_taken_where_a_limit_was_promised(store):
    limited = survey(wave=2, limit=10)
    store.add(limited)
    for document in (DOCUMENT, limited):  # the limit is the population's
        with pytest.raises(BudgetError, match="whose a sheet"):
            store.enter(document, "monday", [REPORTS])


@pytest.mark.parametrize(("limit", "epsilon", "waves"), [("ln 9", "ln 3", 2), ("ln 27", "ln 3", 3)])
def test_a_limit_of_logarithms_is_not_passed_by_their_rounding(store, limit, epsilon, waves):
    """Each logarithm is rounded up by 1e-40."""
    asked = {**YES_NO, "epsilon": epsilon}
    for wave in range(1, waves + 1):
        document = survey([asked], name="logs", population="logs", wave=wave, limit=limit)
        store.add(document)
        store.invite(document, ["ann"])
    more = survey([{**asked, "epsilon": 1e-6}], name="more", population="logs", limit=limit)
    store.add(more)
    with pytest.raises(BudgetError):
        store.invite(more, ["ann"])


@pytest.mark.parametrize(
    "text", ["", "yes", "maybe,none,3,12", "yes,none,6,12", "yes,none,3,12,1", "yes,none,0,12"]
)
def test_bad_sheets_are_refused_whole(text):
    with pytest.raises(ReportError):
        read_sheets(DOCUMENT, f"yes,none,3,12\n{text}" if text else "")


@pytest.mark.parametrize("text", ["y" * 200_000, "\ryes,\r\rno"])
def test_sheets_that_are_no_table_are_refused(text):
    with pytest.raises(ReportError):
        read_sheets(DOCUMENT, text)


def test_what_could_mean_two_options_is_not_guessed():
    texts = ["Often", "often", "2", "never"]
    document = survey([{**CHOICE, "options": [{"en": text} for text in texts]}])
    assert read_sheets(document, "never\n0\n1\n2\n3\n") == [(3,), (0,), (1,), (2,), (3,)]
    with pytest.raises(ReportError, match="two reports"):
        read_sheets(document, "often\n")


@pytest.mark.parametrize("where", ["mysql://x/y", "/nowhere/at/all.db", "://", "/tmp"])
def test_stores_that_cannot_be_are_refused(where):
    with pytest.raises(ParameterError):
        SurveyStore(where)


def test_nothing_is_acknowledged_in_a_file_that_was_put_away_or_has_two_names(tmp_path):
    where = tmp_path / "survey.db"
    store = SurveyStore(where, keys=tmp_path / "survey.keys")
    store.add(DOCUMENT)
    first, second = store.invite(DOCUMENT, [None] * 2)
    older = where.read_bytes()
    assert store.accept(DOCUMENT, submission(first)) is Outcome.STORED
    where.rename(tmp_path / "moved.db")
    for _ in range(2):
        with pytest.raises(SurveyStoreError, match="replaced; nothing was acknowledged"):
            store.accept(DOCUMENT, submission(second, nonce="cd" * 16))
        where.write_bytes(older)
    store.close()
    (tmp_path / "other.db").hardlink_to(tmp_path / "moved.db")
    with pytest.raises(SurveyStoreError, match="second name"):
        SurveyStore(tmp_path / "moved.db", keys=tmp_path / "survey.keys")


def test_a_file_that_is_no_store_is_refused(tmp_path):
    (tmp_path / "letter.txt").write_text("Dear Sir or Madam, " * 100)
    with pytest.raises(SurveyStoreError):
        SurveyStore(tmp_path / "letter.txt")
