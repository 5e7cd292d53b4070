"""Whatever is checked before a write holds when it is written: sixteen processes try at once."""

import ast
import inspect
import os
import shutil
import threading
from collections import Counter
from functools import partial
from pathlib import Path

import pytest
import sqlalchemy as sa

import deniable.service
from deniable.errors import DeniableError, SurveyStoreError
from deniable.service.blind_tokens import paper_secret
from deniable.service.store import SurveyStore
from deniable.service.submission import Submission
from deniable.service.tables import METADATA, SURVEYS
from postgres import Postgres
from service.crowd import MANY, Crowd
from service.surveys import YES_NO, survey
from service.tokens.holder import blind, prepare

CODES = survey([YES_NO], name="codes", population="codes")
WAVES = [survey([YES_NO], wave=wave, admission="blind tokens") for wave in range(1, MANY + 1)]
PROMISE = survey([YES_NO], wave=MANY + 1, limit=2.5, admission="blind tokens")  # two waves
ROUNDS = 4


@pytest.fixture(scope="module")
def postgres():
    server = Postgres()
    yield server
    server.remove()


@pytest.fixture(params=["sqlite", "postgres"])
def place(request, tmp_path):
    if request.param == "sqlite":
        return tmp_path / "survey.db"
    return request.getfixturevalue("postgres").url


@pytest.fixture
def store(place, tmp_path):
    opened = SurveyStore(place, keys=tmp_path / "survey.keys")
    yield opened
    with opened._database.turn() as connection:
        METADATA.drop_all(connection)
    opened.close()


@pytest.fixture(scope="module")
def processes():
    many = Crowd()
    yield many
    many.end()


@pytest.fixture
def all_at_once(processes, place, tmp_path):
    return partial(processes.all_at_once, place, tmp_path / "survey.keys")


def add_with_one_key(store, documents, keys):
    """Add surveys with blind tokens; one key for all of them, for keys are slow to make."""
    store.add(documents[0])
    for document in documents[1:]:
        shutil.copy(keys / f"{documents[0].id}.pem", keys / f"{document.id}.pem")
        store.add(document)


def issue(store, given):
    document, code = given
    public = store.tokens(document).public
    store.issue(document, code, blind(public, prepare(document.id.encode())).blinded)
    return "issued"


def invite(store, given):
    document, person = given
    return len(store.invite(document, [person]))


def accept(store, given):
    code, nonce, report = given
    return store.accept(CODES, Submission(code.encode(), b"", nonce, (report,))).name


def enter(store, given):
    return store.enter(CODES, *given).name


def add(store, document):
    store.add(document)
    return document.id


def test_sixteen_issuers_keep_the_limit_on_epsilon(store, all_at_once, tmp_path):
    """Each has a code of one person for another wave; the limit pays for two of them."""
    people = [f"person {number}" for number in range(ROUNDS)]
    add_with_one_key(store, WAVES, tmp_path / "survey.keys")
    codes = [store.invite(wave, people) for wave in WAVES]
    shutil.copy(*(tmp_path / "survey.keys" / f"{each.id}.pem" for each in (WAVES[0], PROMISE)))
    store.add(PROMISE)
    for number in range(ROUNDS):
        asked = [(wave, mine[number]) for wave, mine in zip(WAVES, codes, strict=True)]
        assert Counter(all_at_once(issue, asked)) == {"issued": 2, "BudgetError": MANY - 2}


def test_sixteen_who_invite_keep_the_limit_on_epsilon(store, all_at_once, tmp_path):
    waves = [survey([YES_NO], wave=wave, limit=2.5) for wave in range(1, MANY + 1)]
    for wave in waves:
        store.add(wave)
    for number in range(ROUNDS):
        asked = [(wave, f"person {number}") for wave in waves]
        assert Counter(all_at_once(invite, asked)) == {1: 2, "BudgetError": MANY - 2}


def test_an_invitation_buys_one_token(store, all_at_once):
    store.add(WAVES[0])
    for code in store.invite(WAVES[0], [None] * ROUNDS):
        found = all_at_once(issue, [(WAVES[0], code)] * MANY)
        assert Counter(found) == {"issued": 1, "AdmissionError": MANY - 1}


def test_a_person_is_invited_once(store, all_at_once):
    store.add(CODES)
    for number in range(ROUNDS):
        found = all_at_once(invite, [(CODES, f"person {number}")] * MANY)
        assert Counter(found) == {1: 1, "BudgetError": MANY - 1}


def test_a_token_is_spent_once_and_the_same_submission_counts_once(store, all_at_once):
    store.add(CODES)
    for number, code in enumerate(store.invite(CODES, [None] * ROUNDS)):
        same = [(code, bytes(16), 1)] * MANY
        other = [(code, os.urandom(16), 1) for _ in range(MANY)]
        found = Counter(all_at_once(accept, same if number % 2 else other))
        assert found == {"STORED": 1, "ALREADY" if number % 2 else "SPENT": MANY - 1}
        assert store.status(CODES).answered == number + 1


def test_a_batch_of_paper_counts_once(store, all_at_once):
    store.add(CODES)
    for number in range(ROUNDS):
        found = all_at_once(enter, [(f"batch {number}", [(1,), (0,)])] * MANY)
        assert Counter(found) == {"STORED": 1, "ALREADY": MANY - 1}
        assert store.status(CODES).answered == 2 * (number + 1)


def test_a_wave_that_has_begun_keeps_its_text(store, all_at_once):
    """Fifteen bring other texts while somebody answers the first."""
    texts = [survey([YES_NO], name="codes", population="codes", title={"en": f"{number}"})
             for number in range(1, MANY)]  # fmt: skip
    store.add(CODES)
    (code,) = store.invite(CODES, [None])
    found = all_at_once(begin_or_replace, [code, *texts])
    (left,) = store.documents()
    if found[0] == "STORED":
        assert left.id == CODES.id
        assert set(found[1:]) == {"BudgetError"}
        assert len(store.reports(CODES)) == 1
    else:
        assert left.id in found[1:]
        assert store.reports(CODES) == []


def begin_or_replace(store, given):
    return accept(store, (given, bytes(16), 1)) if isinstance(given, str) else add(store, given)


def test_nothing_is_taken_once_a_survey_is_closed(store, all_at_once):
    store.add(CODES)
    codes = store.invite(CODES, [None] * (MANY - 1))
    found = all_at_once(close_or_accept, [None, *codes])
    answered = found[0]  # when it was closed
    assert found.count("STORED") == answered == store.status(CODES).answered
    assert found.count("AdmissionError") == MANY - 1 - answered


def close_or_accept(store, code):
    if code is not None:
        return accept(store, (code, os.urandom(16), 1))
    store.close_survey(CODES)
    return store.status(CODES).answered


def test_paper_and_a_promise_do_not_meet(store, all_at_once):
    """Paper is taken before a limit is stated, or not at all."""
    store.add(CODES)
    limited = survey([YES_NO], name="limited", population="codes", limit=2)
    found = all_at_once(promise_or_enter, [limited, *range(MANY - 1)])
    assert found[0] == store.status(CODES).answered == 2 * found.count("STORED")


def promise_or_enter(store, given):
    if isinstance(given, int):
        return enter(store, (f"batch {given}", [(1,), (0,)]))
    store.add(given)
    return store.status(CODES).answered


def test_first_codes_are_made_once(store, all_at_once):
    store.add(CODES)
    found = all_at_once(first_codes, [5] * MANY)
    assert Counter(found) == {5: 1, 0: MANY - 1}
    assert store.status(CODES).invited == 5


def first_codes(store, count):
    return len(store.first_codes(CODES, count))


def test_what_marks_paper_is_drawn_once(store, all_at_once, tmp_path):
    found = all_at_once(secret, [str(tmp_path / "drawn")] * MANY)
    assert len(set(found)) == 1
    assert len(found[0]) == 64
    assert [each.name for each in (tmp_path / "drawn").iterdir()] == ["paper.secret"]


def secret(_, folder):
    return paper_secret(Path(folder)).hex()


# ---------------------------------------------------------------- by structure

# What writes, and what only looks. A new method belongs to one of them.
WRITES = {
    "add": lambda store: store.add(survey([YES_NO], name="another")),
    "invite": lambda store: store.invite(CODES, [None]),
    "first_codes": lambda store: store.first_codes(CODES, 5),
    "close_survey": lambda store: store.close_survey(CODES),
    "settle": lambda store: store.settle(),
    "issue": lambda store: store.issue(WAVES[0], store.code, store.blinded),
    "accept": lambda store: accept(store, ("0" * 16, bytes(16), 1)),
    "enter": lambda store: store.enter(CODES, "monday", [(1,)]),
}
LOOKS = {
    "document": lambda store: store.document("0" * 32),
    "documents": lambda store: store.documents(),
    "check_known": lambda store: store.check_known(CODES),
    "tokens": lambda store: store.tokens(CODES),
    "reports": lambda store: store.reports(CODES),
    "status": lambda store: store.status(CODES),
}


def test_all_that_writes_waits_for_its_turn(store, place, tmp_path):
    store.add(CODES)
    store.add(WAVES[0])
    (store.code,) = store.invite(WAVES[0], [None])
    public = store.tokens(WAVES[0]).public
    store.blinded = blind(public, prepare(WAVES[0].id.encode())).blinded
    public = {name for name, _ in inspect.getmembers(SurveyStore, inspect.isfunction)
              if not name.startswith("_")}  # fmt: skip
    assert public == WRITES.keys() | LOOKS.keys() | {"close"}
    other = SurveyStore(place)
    done = []

    def act(name):
        try:
            WRITES[name](store)
        except DeniableError as refused:
            assert not isinstance(refused, SurveyStoreError)  # noqa: PT017
        done.append(name)

    acting = [threading.Thread(target=act, args=(name,)) for name in WRITES]
    with other._database.turn():
        for each in acting:
            each.start()
        for look in LOOKS.values():
            look(store)
        acting[0].join(0.3)
        assert done == []
    for each in acting:
        each.join()
    assert sorted(done) == sorted(WRITES)
    other.close()


@pytest.mark.parametrize(
    "statement",
    [
        sa.insert(SURVEYS).values(survey="0", document="{}"),
        sa.update(SURVEYS).values(document="{}"),
        sa.delete(SURVEYS),
        sa.text("CREATE TABLE another (a TEXT)"),
        sa.text("DROP TABLE survey_closed"),
    ],
    ids=["insert", "update", "delete", "create", "drop"],
)
def test_who_looks_cannot_write(store, statement):
    store.add(CODES)
    with pytest.raises(SurveyStoreError), store._database.looking() as connection:
        connection.execute(statement)
    assert store.documents() == [CODES]


def test_connections_are_opened_in_one_place():
    """Nothing of the service reaches a database but through a look or a turn."""
    folder = Path(deniable.service.__file__).parent
    opening = {"create_engine", "connect", "begin", "raw_connection", "psycopg", "sqlite3"}
    found = {
        (file.relative_to(folder).as_posix(), name)
        for file in folder.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        for name in names_of(node)
        if name in opening
    }
    assert {file for file, _ in found} == {"database.py"}


def test_nothing_of_the_service_starts_a_process():
    folder = Path(deniable.service.__file__).parent
    starting = {"subprocess", "multiprocessing", "concurrent", "fork", "Popen", "system", "spawn",
                "create_subprocess_exec", "create_subprocess_shell", "posix_spawn"}  # fmt: skip
    for file in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            assert not starting & set(names_of(node)), file.name


def names_of(node):
    """The names that a piece of source calls, reads or imports."""
    if isinstance(node, ast.Attribute):
        return [node.attr]
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.Import):
        return [part for each in node.names for part in each.name.split(".")]
    if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("deniable."):
        return [each.name for each in node.names]
    if isinstance(node, ast.ImportFrom):
        return [*(node.module or "").split("."), *(each.name for each in node.names)]
    return []
