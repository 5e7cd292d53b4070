import contextlib
import copy
import json
import os
import pickle
import sqlite3
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta

import pytest

import deniable as dp
from deniable.ledger.entries import Kind
from deniable.ledger.filters import Budget
from deniable.ledger.key import load_key
from deniable.ledger.ledger import Ledger, Recorded, Reservation
from deniable.ledger.verify import verify

TENTH = dp.PureLoss(bound=0.1)
CLINIC = "clinic/patient"


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def ledger(request, tmp_path):
    if request.param == "memory":
        made = Ledger()
    elif request.param == "sqlite":
        made = Ledger(tmp_path / "ledger.db")
    else:
        server = request.getfixturevalue("postgres")
        made = Ledger(server.url)
    yield made
    made.close()


@pytest.fixture
def population(ledger, request):
    """A population of its own for each test, for the Postgres server is shared."""
    name = f"{CLINIC}/{request.node.name}"
    ledger.open(name, Budget(dp.PureDP(1)), who="owner")
    return name


def reserve(ledger, population, loss=TENTH, **more):
    return ledger.reserve(population, loss, who="ana", purpose="test", **more)


def test_ten_tenths_and_no_more(ledger, population):
    for _ in range(10):
        reservation = reserve(ledger, population)
        assert isinstance(reservation, Reservation)
        ledger.answer(reservation, {"n": 3})
    with pytest.raises(dp.BudgetError, match="nothing was spent"):
        reserve(ledger, population)
    balance = ledger.balance(population)
    assert balance.remaining == {"epsilon": 0}
    assert balance.releases == 10
    assert balance.spent == 1
    assert balance.largest_epsilon == 0
    assert ledger.tight_epsilon(population, delta=1e-6) <= 1
    found = verify(ledger, population)
    assert (found.reservations, found.answers, found.entries) == (10, 10, 21)


def test_the_same_question_is_free(ledger, population):
    question = {"sql": "SELECT COUNT(*) FROM visits", "version": "1"}
    first = reserve(ledger, population, question=question)
    # An unanswered reservation is no repeat.
    second = reserve(ledger, population, question=question)
    assert isinstance(second, Reservation)
    given = ledger.answer(second, [1, 2.5, "x", None])
    again = reserve(ledger, population, question=question)
    assert isinstance(again, Recorded)
    assert (again.value, again.repeated, again.head) == ([1, 2.5, "x", None], True, given.head)
    assert ledger.balance(population).releases == 2
    for other in (
        {"loss": dp.PureLoss(bound=0.2), "question": question},
        {"question": {**question, "version": "2"}},
    ):
        assert isinstance(reserve(ledger, population, **other), Reservation)
    ledger.fail(first)
    verify(ledger, population, head=given.head)


def test_a_reservation_ends_once(ledger, population):
    reservation = reserve(ledger, population)
    ledger.answer(reservation, 1)
    with pytest.raises(dp.DoorError, match="ended"):
        ledger.answer(reservation, 2)
    with pytest.raises(dp.DoorError, match="ended"):
        ledger.fail(reservation)


def test_the_budget_belongs_to_the_people(ledger, population):
    head = ledger.open(population, Budget(dp.PureDP(1)), who="someone")
    assert head == ledger.open(population, Budget(dp.PureDP(1)), who="someone")
    for other in (
        Budget(dp.PureDP(2)),
        Budget(dp.PureDP(0.5)),
        Budget(dp.ZCDP(1)),
        Budget(dp.PureDP(1), relation="replace"),
    ):
        with pytest.raises(dp.BudgetError, match="another budget"):
            ledger.open(population, other, who="someone")
    with pytest.raises(dp.BudgetError, match="no budget"):
        reserve(ledger, "nobody/knows")


def test_top_ups_add_and_are_recorded(ledger, population):
    for _ in range(10):
        reserve(ledger, population)
    ledger.top_up(population, Budget(dp.PureDP(0.2)), who="owner", reason="second wave")
    assert isinstance(reserve(ledger, population), Reservation)
    assert isinstance(reserve(ledger, population), Reservation)
    with pytest.raises(dp.BudgetError):
        reserve(ledger, population)
    with pytest.raises(dp.BudgetError, match="cannot be added"):
        ledger.top_up(population, Budget(dp.ZCDP(1)), who="owner", reason="x")
    with pytest.raises(dp.ParameterError, match="reason"):
        ledger.top_up(population, Budget(dp.PureDP(1)), who="owner", reason=" ")
    verify(ledger, population)


def test_top_ups_of_approximate_budgets_are_tranches(ledger, request):
    name = f"{CLINIC}/{request.node.name}"
    ledger.open(name, Budget(dp.ApproxDP(1, 1e-6)), who="owner")
    half = dp.PureLoss(bound=0.5)
    for _ in range(2):
        reserve(ledger, name, half)
    with pytest.raises(dp.BudgetError):
        reserve(ledger, name, half)
    ledger.top_up(name, Budget(dp.ApproxDP(0.5, 1e-7)), who="owner", reason="more")
    reserve(ledger, name, half)
    with pytest.raises(dp.BudgetError):
        reserve(ledger, name, half)
    balance = ledger.balance(name)
    assert len(balance.budgets) == 2
    assert balance.spent == pytest.approx(1.5)
    verify(ledger, name)


def test_lowering_is_free(ledger, population):
    for _ in range(3):
        reserve(ledger, population)
    ledger.lower(population, Budget(dp.PureDP(0.4)), who="owner", reason="careful")
    reserve(ledger, population)
    with pytest.raises(dp.BudgetError):
        reserve(ledger, population)
    with pytest.raises(dp.BudgetError, match="not smaller"):
        ledger.lower(population, Budget(dp.PureDP(3)), who="owner", reason="oops")
    verify(ledger, population)


def test_shares_are_policy_under_the_total(ledger, population):
    ledger.share(population, "ana", Budget(dp.PureDP(0.2)), who="owner", reason="trainee")
    for _ in range(2):
        reserve(ledger, population)
    with pytest.raises(dp.BudgetError, match="share"):
        reserve(ledger, population)
    for _ in range(8):
        ledger.reserve(population, TENTH, who="ben", purpose="test")
    with pytest.raises(dp.BudgetError, match="the budget"):
        ledger.reserve(population, TENTH, who="ben", purpose="test")
    verify(ledger, population)


def test_a_fresh_window_says_loudly_that_it_is_a_new_promise(ledger, population):
    for _ in range(10):
        reserve(ledger, population)
    with pytest.warns(UserWarning, match="new promise"):
        ledger.renew(population, Budget(dp.PureDP(1)), who="owner", reason="a new year")
    assert isinstance(reserve(ledger, population), Reservation)
    verify(ledger, population)


@pytest.mark.parametrize(
    "bad",
    [
        {"population": ""},
        {"population": "x" * 300},
        {"population": "a\nb"},
        {"population": 7},
        {"who": ""},
        {"purpose": None},
        {"loss": 0.1},
        {"question": {"x": {1, 2}}},
        {"question": {"x": float("nan")}},
    ],
)
def test_bad_requests_spend_nothing(ledger, population, bad):
    good = {"population": population, "loss": TENTH, "who": "ana", "purpose": "test"}
    given = {**good, **bad}
    with pytest.raises(dp.ParameterError):
        ledger.reserve(given.pop("population"), given.pop("loss"), **given)
    assert ledger.balance(population).releases == 0


@pytest.mark.parametrize("answer", [{1, 2}, float("nan"), object(), b"x"])
def test_answers_are_plain_data(ledger, population, answer):
    reservation = reserve(ledger, population)
    with pytest.raises(dp.LedgerError, match="numbers, text"):
        ledger.answer(reservation, answer)
    assert ledger.balance(population).releases == 1


def test_clocks_that_go_backwards_do_not(tmp_path):
    times = iter(datetime(2030, 1, 1, tzinfo=UTC) - timedelta(days=n) for n in range(100))
    ledger = Ledger(tmp_path / "ledger.db", clock=lambda: next(times))
    ledger.open(CLINIC, Budget(dp.PureDP(1)), who="owner")
    for _ in range(5):
        reserve(ledger, CLINIC)
    stamps = [row.data["state"]["time"] for row in ledger.history(CLINIC)]
    assert stamps == sorted(stamps)
    verify(ledger, CLINIC)


def test_ledgers_are_neither_copied_nor_pickled():
    ledger = Ledger()
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(dp.LedgerError, match="open it again"):
            attempt(ledger)


def test_threads_share_one_ledger(ledger, population):
    results = []

    def work():
        for _ in range(5):
            try:
                reserve(ledger, population)
                results.append(True)
            except dp.BudgetError:
                results.append(False)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results.count(True) == 10
    assert len(results) == 30
    verify(ledger, population)


class TestFiles:
    def test_a_ledger_survives_its_process(self, tmp_path):
        file = tmp_path / "ledger.db"
        with Ledger(file) as ledger:
            ledger.open(CLINIC, Budget(dp.PureDP(1)), who="owner")
            head = ledger.answer(reserve(ledger, CLINIC), 7).head
        with Ledger(file, create=False) as again:
            assert again.populations() == [CLINIC]
            assert verify(again, CLINIC, head=head).reservations == 1
            assert again.balance(CLINIC).remaining["epsilon"] == dp.PureDP(0.9).epsilon

    def test_missing_folders_and_files(self, tmp_path):
        with pytest.raises(dp.LedgerError, match="no folder"):
            Ledger(tmp_path / "missing" / "ledger.db")
        with pytest.raises(dp.LedgerError, match="no ledger"):
            Ledger(tmp_path / "ledger.db", create=False)
        with pytest.raises(dp.LedgerError, match="SQLite or Postgres"):
            Ledger("mysql://localhost/x")

    def test_files_that_are_no_ledger(self, tmp_path):
        file = tmp_path / "ledger.db"
        file.write_text("these are no pages of a database" * 100)
        with pytest.raises(dp.LedgerError, match=r"ledger\.db"):
            Ledger(file)

    def test_truncated_files(self, tmp_path):
        file = tmp_path / "ledger.db"
        with Ledger(file) as ledger:
            ledger.open(CLINIC, Budget(dp.PureDP(1)), who="owner")
            for _ in range(9):
                ledger.answer(reserve(ledger, CLINIC), "x" * 2000)
        whole = file.read_bytes()
        file.write_bytes(whole[: len(whole) // 2])
        with pytest.raises(dp.LedgerError):
            verify(Ledger(file), CLINIC)

    def test_a_newer_schema_is_refused(self, tmp_path):
        file = tmp_path / "ledger.db"
        Ledger(file).close()
        with sqlite3.connect(file) as raw:
            raw.execute("INSERT INTO deniable_schema VALUES (99, 'later')")
        raw.close()
        with pytest.raises(dp.LedgerError, match="newer version"):
            Ledger(file)

    def test_rows_cannot_be_changed_or_removed(self, tmp_path):
        file = tmp_path / "ledger.db"
        with Ledger(file) as ledger:
            ledger.open(CLINIC, Budget(dp.PureDP(1)), who="owner")
        raw = sqlite3.connect(file)
        for statement in ("UPDATE deniable_entries SET mac = 'x'", "DELETE FROM deniable_entries"):
            with pytest.raises(sqlite3.IntegrityError, match="append-only"):
                raw.execute(statement)
        raw.close()

    def test_a_full_disk_releases_nothing(self, tmp_path):
        file = tmp_path / "ledger.db"
        with Ledger(file) as ledger:
            ledger.open(CLINIC, Budget(dp.PureDP(1)), who="owner")
            pages = sqlite3.connect(file).execute("PRAGMA page_count").fetchone()[0]
            with ledger.store._own().connect() as connection:  # the pool has one connection
                connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
            reservation = reserve(ledger, CLINIC)
            with pytest.raises(dp.LedgerError, match="full"):
                ledger.answer(reservation, "x" * 400_000)
        with Ledger(file) as again:
            verify(again, CLINIC)


class TestKeys:
    def test_a_key_file_is_made_for_its_owner_only(self, tmp_path, monkeypatch):
        monkeypatch.delenv("DENIABLE_LEDGER_KEY")
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
        key = load_key()
        file = tmp_path / "deniable" / "ledger.key"
        assert file.stat().st_mode & 0o777 == 0o600
        assert load_key() == key
        assert len(key) == 32
        file.chmod(0o644)
        with pytest.raises(dp.LedgerError, match="chmod 600"):
            load_key()

    @pytest.mark.parametrize("bad", ["", "abc", "g" * 64])
    def test_bad_keys(self, bad, monkeypatch):
        monkeypatch.setenv("DENIABLE_LEDGER_KEY", bad)
        with pytest.raises(dp.LedgerError, match="64 hexadecimal"):
            Ledger()
        with pytest.raises(dp.LedgerError, match="16 bytes"):
            Ledger(key=b"short")


def tampered(file, *statements):
    """Edit the database behind the ledger's back."""
    raw = sqlite3.connect(file)
    for trigger in ("deniable_no_update", "deniable_no_delete"):
        raw.execute(f"DROP TRIGGER {trigger}")
    for statement, values in statements:
        raw.execute(statement, values)
    raw.commit()
    raw.close()


class TestTampering:
    @pytest.fixture
    def file(self, tmp_path):
        path = tmp_path / "ledger.db"
        with Ledger(path) as ledger:
            ledger.open(CLINIC, Budget(dp.PureDP(1)), who="owner")
            heads = [ledger.answer(reserve(ledger, CLINIC), n).head for n in range(4)]
        self.head = heads[-1]
        return path

    def found(self, file, **more):
        with Ledger(file) as ledger:
            verify(ledger, CLINIC, **more)

    def test_an_untouched_chain_holds(self, file):
        self.found(file, head=self.head)

    def test_an_edited_body(self, file):
        raw = sqlite3.connect(file)
        body = raw.execute("SELECT body FROM deniable_entries WHERE number = 4").fetchone()[0]
        raw.close()
        cheaper = body.replace('"who":"ana"', '"who":"bob"')
        assert cheaper != body
        tampered(file, ("UPDATE deniable_entries SET body = ? WHERE number = 4", (cheaper,)))
        with pytest.raises(dp.LedgerTamperedError, match="entry 4"):
            self.found(file)

    def test_an_edited_column(self, file):
        tampered(file, ("UPDATE deniable_entries SET who = 'bob' WHERE number = 4", ()))
        with pytest.raises(dp.LedgerTamperedError, match="outside its text"):
            self.found(file)

    def test_a_removed_entry(self, file):
        tampered(file, ("DELETE FROM deniable_entries WHERE number = 4", ()))
        with pytest.raises(dp.LedgerTamperedError, match="entry 4"):
            self.found(file)

    def test_reordered_entries(self, file):
        move = "UPDATE deniable_entries SET number = ? WHERE number = ?"
        tampered(file, (move, (99, 4)), (move, (4, 6)), (move, (6, 99)))
        with pytest.raises(dp.LedgerTamperedError):
            self.found(file)

    def test_a_cut_tail_is_found_by_the_head(self, file):
        tampered(file, ("DELETE FROM deniable_entries WHERE number > 5", ()))
        self.found(file)  # by itself a shorter chain is a chain
        with pytest.raises(dp.LedgerTamperedError, match="ends at entry 5"):
            self.found(file, head=self.head)

    @pytest.mark.usefixtures("file")
    def test_a_full_rewrite_is_found_by_the_head(self, tmp_path):
        fresh = tmp_path / "fresh.db"
        with Ledger(fresh) as ledger:
            ledger.open(CLINIC, Budget(dp.PureDP(1)), who="owner")
            for n in range(4):
                ledger.answer(reserve(ledger, CLINIC), n)
        with pytest.raises(dp.LedgerTamperedError, match="not the one"):
            self.found(fresh, head=self.head)

    def test_another_key(self, file, monkeypatch):
        monkeypatch.setenv("DENIABLE_LEDGER_KEY", "ab" * 32)
        with pytest.raises(dp.LedgerTamperedError, match="entry 1"):
            self.found(file)

    def test_wrong_totals_under_the_right_key(self, file):
        """Someone with the key who lies about a sum is found by computing it again."""
        from deniable.ledger.entries import make_row

        with Ledger(file) as ledger:

            def decide(last, _):
                data = {k: last.data[k] for k in ("state",)}
                data["state"]["tranches"][0]["totals"]["epsilon"] = 1
                text = dp.loss_to_json(TENTH)
                return make_row(
                    ledger.key, last, population=CLINIC, kind=Kind.RESERVE, who="eve",
                    data={"purpose": "x", "loss": text, "resumable": False, **data},
                )  # fmt: skip

            ledger.store.append(CLINIC, decide)
        with pytest.raises(dp.LedgerTamperedError, match="wrong totals"):
            self.found(file)

    def test_heads_must_be_heads(self, file):
        for bad in ("", "12", "x:" + "a" * 64):
            with pytest.raises(dp.ParameterError, match="head"):
                self.found(file, head=bad)


def test_entries_hold_no_private_content(ledger, population):
    question = {"sql": "SELECT COUNT(*) FROM visits WHERE name = 'Miller'"}
    reserve(ledger, population, question=question)
    text = json.dumps([row.body for row in ledger.history(population)])
    assert "Miller" not in text


class TestWithoutTheKey:
    """Whoever can write to the database, but has no key, gets nothing out of it."""

    @pytest.fixture
    def file(self, tmp_path):
        path = tmp_path / "ledger.db"
        with Ledger(path) as ledger:
            ledger.open(CLINIC, Budget(dp.PureDP(1)), who="owner")
            self.question = {"plan": "count"}
            reservation = reserve(ledger, CLINIC, question=self.question)
            ledger.answer(reservation, 7)
        return path

    def test_forged_answers_are_not_served(self, file):
        raw = sqlite3.connect(file)
        digest = raw.execute("SELECT question FROM deniable_entries WHERE number = 2").fetchone()[0]
        raw.close()
        tampered(
            file,
            (
                "INSERT INTO deniable_entries VALUES (?, 4, 'reserve', 'a', ?, NULL, '{}', 'x')",
                (CLINIC, digest),
            ),
            ("UPDATE deniable_entries SET body = replace(body, '7', '8') WHERE number = 3", ()),
        )
        with Ledger(file) as ledger, pytest.raises(dp.LedgerTamperedError):
            reserve(ledger, CLINIC, question=self.question)

    def test_edited_totals_do_not_gate(self, file):
        raw = sqlite3.connect(file)
        body = raw.execute("SELECT body FROM deniable_entries WHERE number = 3").fetchone()[0]
        raw.close()
        cheaper = body.replace("100000000000000000", "0")
        assert cheaper != body
        tampered(file, ("UPDATE deniable_entries SET body = ? WHERE number = 3", (cheaper,)))
        with Ledger(file) as ledger:
            for attempt in (
                lambda: reserve(ledger, CLINIC),
                lambda: ledger.balance(CLINIC),
                lambda: ledger.open(CLINIC, Budget(dp.PureDP(1)), who="owner"),
            ):
                with pytest.raises(dp.LedgerTamperedError, match="entry 3"):
                    attempt()

    def test_another_key_writes_nothing(self, file, monkeypatch):
        monkeypatch.setenv("DENIABLE_LEDGER_KEY", "ab" * 32)
        with Ledger(file) as ledger, pytest.raises(dp.LedgerTamperedError, match="key"):
            ledger.top_up(CLINIC, Budget(dp.PureDP(1)), who="owner", reason="x")
        monkeypatch.undo()

    def test_no_key_is_made_for_a_chain_that_has_one(self, file, monkeypatch, tmp_path):
        monkeypatch.delenv("DENIABLE_LEDGER_KEY")
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
        with pytest.raises(dp.LedgerError, match="has a key"):
            Ledger(file)

    @pytest.mark.parametrize("body", ["not json", "[]", "{}", None])
    def test_rows_that_are_no_entries(self, file, body):
        if body is None:
            tampered(file, ("UPDATE deniable_entries SET mac = 'é' WHERE number = 3", ()))
        else:
            tampered(file, ("UPDATE deniable_entries SET body = ? WHERE number = 3", (body,)))
        with Ledger(file) as ledger:
            for attempt in (lambda: reserve(ledger, CLINIC), lambda: verify(ledger, CLINIC)):
                with pytest.raises(dp.LedgerTamperedError):
                    attempt()

    def test_rows_are_not_replaced(self, file):
        raw = sqlite3.connect(file)
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            raw.execute(
                "INSERT OR REPLACE INTO deniable_entries "
                "VALUES (?, 1, 'open', 'a', NULL, NULL, '', '')",
                (CLINIC,),
            )
        raw.close()


def test_answers_of_many_threads_are_one(ledger, population):
    reservation = reserve(ledger, population)
    kept = []

    def work(number):
        with contextlib.suppress(dp.DoorError):
            kept.append(ledger.answer(reservation, number).value)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(kept) == 1
    verify(ledger, population)


def test_reservations_of_another_ledger_are_refused(ledger, population, tmp_path):
    with Ledger(tmp_path / "other.db") as other:
        other.open(population, Budget(dp.PureDP(1)), who="owner")
        foreign = reserve(other, population)
    reserve(ledger, population)
    with pytest.raises(dp.DoorError, match="no such reservation"):
        ledger.answer(foreign, 1)
    verify(ledger, population)


def test_heads_of_reservations_prove_them(ledger, population):
    reservation = reserve(ledger, population)
    verify(ledger, population, head=reservation.head)
    for bad in (f"0:{'f' * 64}", f"²:{'f' * 64}", f"{'9' * 5000}:{'f' * 64}"):
        with pytest.raises(dp.ParameterError, match="head"):
            verify(ledger, population, head=bad)


def test_lowering_shrinks_both_parts_of_delta(ledger, request):
    name = f"{CLINIC}/{request.node.name}"
    ledger.open(name, Budget(dp.ApproxDP(1, 1e-6), keys_delta=9e-7), who="owner")
    with pytest.raises(dp.BudgetError, match="not smaller"):
        ledger.lower(name, Budget(dp.ApproxDP(1, 1e-6), keys_delta=1e-7), who="o", reason="x")
    ledger.reserve(name, dp.GaussianLoss(sigma=20, sensitivity=1), who="a", purpose="x")
    before = ledger.balance(name).spent
    ledger.lower(name, Budget(dp.ApproxDP(0.001, 1e-7), keys_delta=9e-8), who="o", reason="x")
    assert ledger.balance(name).spent >= min(before, 1)  # what was spent stays spent


def test_the_tight_number_counts_what_was_drawn(ledger, request):
    name = f"{CLINIC}/{request.node.name}"
    ledger.open(name, Budget(dp.ZCDP(10)), who="owner")
    sampled = dp.poisson_sampled(dp.GaussianLoss(sigma=1, sensitivity=1), rate=0.01)
    plain = dp.GaussianLoss(sigma=1.1, sensitivity=1)
    reservation = ledger.reserve(name, sampled, who="a", purpose="x")
    ledger.answer(reservation, 1, drawn=[plain])
    assert ledger.tight_epsilon(name, delta=1e-5) == plain.epsilon(delta=1e-5)
    ledger.reserve(name, sampled, who="a", purpose="never closed")
    assert ledger.tight_epsilon(name, delta=1e-5) > plain.epsilon(delta=1e-5)


def test_shares_outlive_a_renewal(ledger, population):
    ledger.share(population, "ana", Budget(dp.PureDP(0.1)), who="owner", reason="trainee")
    reserve(ledger, population)
    with pytest.warns(UserWarning, match="new promise"):
        ledger.renew(population, Budget(dp.PureDP(1)), who="owner", reason="a new year")
    reserve(ledger, population)
    with pytest.raises(dp.BudgetError, match="share"):
        reserve(ledger, population)
    with pytest.raises(dp.BudgetError, match="relation"):
        ledger.share(
            population, "ben", Budget(dp.PureDP(1), relation="replace"), who="o", reason="x"
        )


def test_a_ledger_in_memory_is_not_shared_with_a_fork():
    ledger = Ledger()
    ledger.open(CLINIC, Budget(dp.PureDP(1)), who="owner")
    child = os.fork()
    if child == 0:
        try:
            reserve(ledger, CLINIC)
        except dp.LedgerError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


@pytest.mark.parametrize(
    "where", ["", ":memory:", "sqlite://", "sqlite:///", "postgresql+foo://x/y"]
)
def test_places_that_keep_nothing_are_refused(where):
    with pytest.raises(dp.LedgerError):
        Ledger(where)


def test_odd_file_names_are_file_names(tmp_path):
    with Ledger(tmp_path / "a?b#c.db") as ledger:
        ledger.open(CLINIC, Budget(dp.PureDP(1)), who="owner")
    assert (tmp_path / "a?b#c.db").stat().st_mode & 0o777 == 0o600
    with Ledger(f"sqlite:///{tmp_path}/plain.db") as ledger:
        ledger.open(CLINIC, Budget(dp.PureDP(1)), who="owner")
    assert (tmp_path / "plain.db").exists()


def test_passwords_are_not_printed():
    with pytest.raises(dp.LedgerError) as caught:
        Ledger("postgresql://someone:s3cret@127.0.0.1:1/x?password=s3cret2")
    assert "s3cret" not in str(caught.value)


def test_postgres_stays_in_its_schema(postgres):
    import psycopg

    name = f"{CLINIC}/schema"
    with Ledger(postgres.url) as ledger:
        ledger.open(name, Budget(dp.PureDP(1)), who="owner")
        with psycopg.connect(postgres.url, autocommit=True) as raw:
            raw.execute("CREATE SCHEMA IF NOT EXISTS deniable")  # the user's name comes first
            with pytest.raises(psycopg.Error, match="append-only"):
                raw.execute("TRUNCATE public.deniable_entries")
        with Ledger(postgres.url) as again:
            assert name in again.populations()
        reserve(ledger, name)
        with psycopg.connect(postgres.url, autocommit=True) as raw:
            raw.execute("DROP SCHEMA deniable")


def test_keys_are_made_whole_by_many_processes(tmp_path, monkeypatch):
    monkeypatch.delenv("DENIABLE_LEDGER_KEY")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    script = "from deniable.ledger.key import load_key; print(load_key().hex())"
    processes = [
        subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
        for _ in range(6)
    ]
    assert len({process.communicate(timeout=60)[0] for process in processes}) == 1
