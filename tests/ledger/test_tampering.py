"""Edits behind the ledger's back, with the key and without."""

import sqlite3

import pytest

import deniable as dp
from clinic import CLINIC, TENTH, reserve
from deniable.ledger.entries import EntryKind
from deniable.ledger.filters import Budget
from deniable.ledger.ledger import Ledger
from deniable.ledger.verify import verify


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
        with pytest.raises(dp.errors.LedgerTamperedError, match="entry 4"):
            self.found(file)

    def test_an_edited_column(self, file):
        tampered(file, ("UPDATE deniable_entries SET who = 'bob' WHERE number = 4", ()))
        with pytest.raises(dp.errors.LedgerTamperedError, match="outside its text"):
            self.found(file)

    def test_a_removed_entry(self, file):
        tampered(file, ("DELETE FROM deniable_entries WHERE number = 4", ()))
        with pytest.raises(dp.errors.LedgerTamperedError, match="entry 4"):
            self.found(file)

    def test_reordered_entries(self, file):
        move = "UPDATE deniable_entries SET number = ? WHERE number = ?"
        tampered(file, (move, (99, 4)), (move, (4, 6)), (move, (6, 99)))
        with pytest.raises(dp.errors.LedgerTamperedError):
            self.found(file)

    def test_a_cut_tail_is_found_by_the_head(self, file):
        tampered(file, ("DELETE FROM deniable_entries WHERE number > 5", ()))
        self.found(file)  # by itself a shorter chain is a chain
        with pytest.raises(dp.errors.LedgerTamperedError, match="ends at entry 5"):
            self.found(file, head=self.head)

    @pytest.mark.usefixtures("file")
    def test_a_full_rewrite_is_found_by_the_head(self, tmp_path):
        fresh = tmp_path / "fresh.db"
        with Ledger(fresh, key=bytes(range(32))) as ledger:
            ledger.open(CLINIC, Budget(dp.PureDP(1)), who="owner")
            for n in range(4):
                ledger.answer(reserve(ledger, CLINIC), n)
        with pytest.raises(dp.errors.LedgerTamperedError, match="not the one"):
            self.found(fresh, head=self.head)

    def test_another_key(self, file, monkeypatch):
        monkeypatch.setenv("DENIABLE_LEDGER_KEY", "ab" * 32)
        with pytest.raises(dp.errors.LedgerTamperedError, match="entry 1"):
            self.found(file)

    def test_wrong_totals_under_the_right_key(self, file):
        """Someone with the key who lies about a sum is found by computing it again."""
        from deniable.ledger.entries import make_row

        with Ledger(file) as ledger:

            def decide(last, _):
                data = {k: last.data[k] for k in ("state",)}
                data["state"]["tranches"][0]["totals"]["epsilon"] = 1
                text = dp.losses.loss_to_json(TENTH)
                return make_row(
                    ledger.key, last, population=CLINIC, kind=EntryKind.RESERVE, who="eve",
                    data={"purpose": "x", "loss": text, "resumable": False, **data},
                )  # fmt: skip

            ledger.store.append(CLINIC, decide)
        with pytest.raises(dp.errors.LedgerTamperedError, match="wrong totals"):
            self.found(file)

    def test_heads_must_be_heads(self, file):
        for bad in ("", "12", "x:" + "a" * 64):
            with pytest.raises(dp.ParameterError, match="head"):
                self.found(file, head=bad)


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
        with Ledger(file) as ledger, pytest.raises(dp.errors.LedgerTamperedError):
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
                with pytest.raises(dp.errors.LedgerTamperedError, match="entry 3"):
                    attempt()

    def test_another_key_writes_nothing(self, file, monkeypatch):
        monkeypatch.setenv("DENIABLE_LEDGER_KEY", "ab" * 32)
        with Ledger(file) as ledger, pytest.raises(dp.errors.LedgerTamperedError, match="key"):
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
                with pytest.raises(dp.errors.LedgerTamperedError):
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


class TestSwallowedEntries:
    """A database that says yes and keeps nothing."""

    @pytest.mark.parametrize(
        "trigger",
        [
            "BEFORE INSERT ON deniable_entries BEGIN SELECT RAISE(IGNORE); END",
            "AFTER INSERT ON deniable_entries BEGIN "
            "DELETE FROM deniable_entries WHERE number = NEW.number; END",
        ],
    )
    def test_nothing_is_drawn(self, tmp_path, trigger):
        file = tmp_path / "ledger.db"
        with Ledger(file) as ledger:
            ledger.open(CLINIC, Budget(dp.PureDP(1)), who="owner")
            tampered(file, (f"CREATE TRIGGER swallow {trigger}", ()))
            gate = dp.Gate(ledger, CLINIC, "ana")
            drawn = []
            with pytest.raises(dp.LedgerError, match="did not keep"):
                gate.release(
                    dp.Geometric(epsilon=0.1, sensitivity=1),
                    lambda: drawn.append(1) or 1,
                    purpose="x",
                )
            assert not drawn

    def test_a_chain_set_back_under_a_live_ledger(self, tmp_path):
        file = tmp_path / "ledger.db"
        with Ledger(file) as ledger:
            ledger.open(CLINIC, Budget(dp.PureDP(1)), who="owner")
            for _ in range(5):
                reserve(ledger, CLINIC)
            tampered(file, ("DELETE FROM deniable_entries WHERE number > 3", ()))
            with pytest.raises(dp.errors.LedgerTamperedError, match="set back"):
                reserve(ledger, CLINIC)

    def test_hidden_draws_do_not_refill_a_door(self, tmp_path):
        file = tmp_path / "ledger.db"
        count = dp.Geometric(epsilon=0.1, sensitivity=1)
        with Ledger(file) as ledger:
            ledger.open(CLINIC, Budget(dp.PureDP(1)), who="owner")
            gate = dp.Gate(ledger, CLINIC, "ana")
            door = gate.open(dp.repeat(count.loss, 2), purpose="x", resumable=True)
            door.draw(count, lambda: 1)
            door.draw(count, lambda: 1)
            reserve(ledger, CLINIC)
        tampered(
            file,
            ("DELETE FROM deniable_entries WHERE kind = 'debit' AND number = 3", ()),
            ("UPDATE deniable_entries SET refers = NULL WHERE kind = 'debit'", ()),
        )
        with Ledger(file) as again, pytest.raises(dp.errors.LedgerTamperedError, match="entry 3"):
            dp.Gate(again, CLINIC, "ana").resume(door.number)
