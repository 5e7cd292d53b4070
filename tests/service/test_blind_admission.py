"""Blind-signed tokens as the survey's admission, in the store and in a real browser."""

import hashlib
import json
import sqlite3
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from deniable.errors import AdmissionError, BudgetError, ParameterError
from deniable.service.codes import code_mark
from deniable.service.deposits import Outcome
from deniable.service.store import SurveyStore
from deniable.service.submission import read_submission
from service.chromium import chromium
from service.server import Server, body_of
from service.surveys import NUMBER, YES_NO, survey
from service.tokens.holder import blind, finalize, prepare
from service.walking import Watched, walk

BLIND = survey([YES_NO, NUMBER], admission="blind tokens")
OTHER = survey([YES_NO, NUMBER], admission="blind tokens", wave=2)
REPORTS = (1, 0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("blind")


@pytest.fixture(scope="module")
def store(folder):
    opened = SurveyStore(folder / "survey.db", keys=folder / "survey.keys")
    opened.add(BLIND)
    opened.add(OTHER)
    yield opened
    opened.close()


def token_of(store, document, code):
    public = store.tokens(document).public
    blinding = blind(public, prepare(document.id.encode()))
    return blinding, finalize(public, blinding, store.issue(document, code, blinding.blinded))


def submission(document, message, signature, reports=REPORTS, nonce="ab" * 16):
    body = body_of(
        document.id, "", reports, nonce, message=message.hex(), signature=signature.hex()
    )
    return read_submission(document, json.dumps(body).encode())


def test_a_token_admits_one_submission(store):
    (code,) = store.invite(BLIND, [None])
    blinding, signature = token_of(store, BLIND, code)
    sent = submission(BLIND, blinding.prepared, signature)
    assert store.accept(BLIND, sent) is Outcome.STORED
    assert store.accept(BLIND, sent) is Outcome.ALREADY
    again = submission(BLIND, blinding.prepared, signature, nonce="cd" * 16)
    assert store.accept(BLIND, again) is Outcome.SPENT


def test_an_invitation_buys_one_token_and_a_lost_answer_is_given_again(store):
    (code,) = store.invite(BLIND, [None])
    public = store.tokens(BLIND).public
    first, second = (blind(public, prepare(BLIND.id.encode())) for _ in range(2))
    signed = store.issue(BLIND, code, first.blinded)
    assert store.issue(BLIND, code, first.blinded) == signed
    with pytest.raises(AdmissionError):
        store.issue(BLIND, code, second.blinded)
    with pytest.raises(AdmissionError):
        store.issue(OTHER, code, second.blinded)
    for unknown in ("0" * 16, "\ud800", "", code.lower() + "x"):
        with pytest.raises(AdmissionError):
            store.issue(BLIND, unknown, second.blinded)


def test_a_race_for_one_invitation_signs_one_token(store):
    (code,) = store.invite(BLIND, [None])
    public = store.tokens(BLIND).public
    asked = [blind(public, prepare(BLIND.id.encode())) for _ in range(6)]
    signed, start = [], threading.Barrier(len(asked))

    def race(blinding):
        start.wait()
        with suppress(AdmissionError):
            signed.append(finalize(public, blinding, store.issue(BLIND, code, blinding.blinded)))

    threads = [threading.Thread(target=race, args=(each,)) for each in asked]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(signed) == 1


def test_no_token_is_issued_beyond_what_was_promised(folder):
    """A later survey promises less; who was invited before is not asked for more than that."""
    store = SurveyStore(folder / "limits.db", keys=folder / "limits.keys")
    first, second = (survey([YES_NO], wave=wave, admission="blind tokens") for wave in (1, 2))
    for each in (first, second):
        store.add(each)
    (one,), (two,) = store.invite(first, ["ann"]), store.invite(second, ["ann"])
    blinding, signature = token_of(store, first, one)
    strict = survey([{**YES_NO, "epsilon": 0.5}], wave=3, limit=1.5, admission="blind tokens")
    store.add(strict)
    with pytest.raises(BudgetError, match="no token"):  # 2 ln 3 > 1.5
        token_of(store, second, two)
    # What was issued before stands, also for a device that asks again.
    store.issue(first, one, blinding.blinded)
    sent = submission(first, blinding.prepared, signature, (1,))
    assert store.accept(first, sent) is Outcome.STORED
    with pytest.raises(BudgetError):
        store.invite(strict, ["ann"])
    store.close()


def test_a_code_without_a_name_gets_no_token_once_a_limit_was_promised(folder):
    store = SurveyStore(folder / "nameless.db", keys=folder / "nameless.keys")
    first = survey([YES_NO], admission="blind tokens")
    store.add(first)
    early, late = store.invite(first, [None, None])
    blinding, _ = token_of(store, first, early)
    store.add(survey([YES_NO], wave=2, limit=5, admission="blind tokens"))
    with pytest.raises(BudgetError, match="no name"):
        token_of(store, first, late)
    store.issue(first, early, blinding.blinded)  # what was issued before stands
    store.close()


def test_the_same_signature_is_made_once(folder):
    """Who sends the same blinded bytes over and over keeps nobody waiting."""
    store = SurveyStore(folder / "often.db", keys=folder / "often.keys")
    document = survey([YES_NO], admission="blind tokens")
    store.add(document)
    (code,) = store.invite(document, [None])
    blinding, _ = token_of(store, document, code)
    system, made = store.tokens(document), []

    class Counted:
        def sign(self, blinded):
            made.append(blinded)
            return system.sign(blinded)

    store._tokens[document.id] = Counted()
    (signed,) = {store.issue(document, code, blinding.blinded) for _ in range(5)}
    assert made == []
    assert signed == system.sign(blinding.blinded)
    store.close()


def test_the_same_bytes_are_signed_with_each_survey_s_own_key(store):
    """A signature that is kept for those who ask again is no other survey's."""
    codes = [store.invite(document, [None])[0] for document in (BLIND, OTHER)]
    blinded = (2**3000).to_bytes(384, "big")
    one = store.issue(BLIND, codes[0], blinded)
    other = store.issue(OTHER, codes[1], blinded)
    assert other == store.tokens(OTHER).sign(blinded) != one


def test_a_wave_whose_tokens_are_out_keeps_its_text(folder):
    store = SurveyStore(folder / "text.db", keys=folder / "text.keys")
    document = survey([YES_NO], admission="blind tokens")
    store.add(document)
    token_of(store, document, *store.invite(document, [None]))
    with pytest.raises(BudgetError, match="another text"):
        store.add(survey([YES_NO], admission="blind tokens", title={"en": "Another"}))
    store.close()


def test_a_token_may_be_spent_after_the_server_was_killed(tmp_path):
    """Killed between token and submission: the device goes on, and nothing counts twice."""
    document = survey([YES_NO], name="killed", admission="blind tokens")
    server = Server(tmp_path, document)
    store = SurveyStore(server.store, keys=Path(server.store).with_suffix(".keys"))
    try:
        (code,) = store.invite(document, [None])
        public = store.tokens(document).public
        blinding = blind(public, prepare(document.id.encode()))
        ask = json.dumps({"invitation": code, "blinded": blinding.blinded.hex()})
        path, kind = f"/s/{document.id}/tokens", {"Content_Type": "application/json"}
        status, _, first = server.ask("POST", path, ask, **kind)
        assert status == 200
        server.kill()
        server.start()
        assert server.ask("POST", path, ask, **kind)[2] == first  # the answer may have been lost
        signature = finalize(public, blinding, bytes.fromhex(json.loads(first)["signed"]))
        body = body_of(
            document.id, "", [1], message=blinding.prepared.hex(), signature=signature.hex()
        )
        for _ in range(2):
            assert server.send(document.id, body) == (200, {"stored": True})
        assert server.send(document.id, {**body, "nonce": "1" * 32})[0] == 409
        assert store.reports(document) == [(1,)]
    finally:
        server.stop()
        store.close()


def test_a_bad_request_does_not_use_up_the_invitation(store):
    (code,) = store.invite(BLIND, [None])
    for bad in (b"", b"\0", bytes(384), b"\xff" * 384):
        with pytest.raises(AdmissionError):
            store.issue(BLIND, code, bad)
    token_of(store, BLIND, code)


def test_forged_and_foreign_tokens_are_refused(store):
    (code,) = store.invite(BLIND, [None])
    blinding, signature = token_of(store, BLIND, code)
    (elsewhere,) = store.invite(OTHER, [None])
    foreign, foreign_signature = token_of(store, OTHER, elsewhere)
    before = len(store.reports(BLIND))
    forged = [
        (blinding.prepared, signature[:-1] + bytes([signature[-1] ^ 1])),
        (bytes(32) + BLIND.id.encode(), signature),
        (blinding.prepared, b""),
        (foreign.prepared, foreign_signature),
        (foreign.prepared[:32] + BLIND.id.encode(), foreign_signature),
        (code.encode(), b""),
    ]
    for message, sign in forged:
        with pytest.raises(AdmissionError):
            store.accept(BLIND, submission(BLIND, message, sign))
    assert len(store.reports(BLIND)) == before


def test_the_store_holds_nothing_of_a_token_but_hashes(store, folder):
    (code,) = store.invite(BLIND, ["somebody"])
    blinding, signature = token_of(store, BLIND, code)
    store.accept(BLIND, submission(BLIND, blinding.prepared, signature))
    with sqlite3.connect(folder / "survey.db") as plain:
        dump = "\n".join(plain.iterdump())
    plain.close()
    for secret in (blinding.prepared, signature, blinding.blinded):
        assert secret.hex() not in dump
    marked = hashlib.sha256(blinding.blinded).hexdigest()
    (line,) = [line for line in dump.splitlines() if marked in line]
    (invited,) = [line for line in dump.splitlines() if "somebody" in line]
    assert code_mark(code) in line  # beside the hash of the code lies the blinded mark alone
    assert code_mark(code) in invited
    assert hashlib.sha256(b"token\0" + blinding.prepared).hexdigest() not in line
    key = folder / "survey.keys" / f"{BLIND.id}.pem"
    assert key.stat().st_mode & 0o077 == 0


def test_a_store_without_keys_takes_no_survey_with_tokens(tmp_path):
    store = SurveyStore(tmp_path / "survey.db")
    with pytest.raises(ParameterError):
        store.add(BLIND)
    store.close()


def test_chromium_gets_a_token_and_answers(store, folder):
    (code,) = store.invite(BLIND, [None])
    server = Server(folder, BLIND)
    assert f"{store.tokens(BLIND).public.fingerprint}  token key" in server.log.read_text()
    before = store.status(BLIND).answered
    try:
        with chromium() as browser, Watched(browser) as seen:
            url = f"{server.url}/s/{BLIND.id}#{code}"
            walk(seen.page, url, [1, "7.25"])
            (asked,), (sent,) = map(json.loads, seen.asked), map(json.loads, seen.sent)
            assert asked.keys() == {"invitation", "blinded"}
            assert asked["invitation"] == code
            # What is sent with the reports was never seen by who signed.
            assert code.encode().hex() not in seen.sent[0]
            assert sent["message"] not in seen.asked[0]
            assert sent["message"][64:] == BLIND.id.encode().hex()
            assert seen.page.evaluate("JSON.stringify(localStorage)").count("inverse") == 0
            seen.page.click("#check summary")
            seen.page.locator("#hash", has_text="token key").wait_for()
            assert store.tokens(BLIND).public.fingerprint in seen.page.inner_text("#hash")
            assert seen.console == []
        with chromium() as browser, Watched(browser) as seen:  # the same code on another device
            seen.page.goto(url)
            seen.page.click("#agree")
            seen.page.locator("#code-error", has_text="got its token").wait_for()
    finally:
        server.stop()
    assert store.status(BLIND).answered == before + 1
