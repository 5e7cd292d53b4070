"""A lock that another session holds ends in a clear error, in bounded time, and loses nothing."""

from fractions import Fraction

import psycopg
import pytest

import deniable as dp
from clinic import CLINIC, reserve
from deniable.ledger.filters import Budget
from deniable.ledger.ledger import Ledger
from deniable.ledger.stores import own
from deniable.ledger.verify import verify

TABLES = ("deniable_entries", "deniable_schema")
ADVISORY = "SELECT pg_advisory_lock(hashtextextended('deniable/{}', 0))"


@pytest.fixture
def hurried(monkeypatch):
    monkeypatch.setattr(own, "PATIENCE", 1)


@pytest.fixture
def name(postgres, request, hurried):
    with Ledger(postgres.url) as made:
        name = f"{CLINIC}/{request.node.name}"
        made.open(name, Budget(dp.PureDP(1)), who="owner")
        made.answer(reserve(made, name), 7)
    return name


@pytest.fixture
def other(postgres):
    with psycopg.connect(postgres.url) as session:
        yield session
        session.rollback()


def held(other, table, mode):
    other.execute(f"LOCK TABLE {table} IN {mode} MODE")


LOCKS = {
    "population": lambda other, name: other.execute(ADVISORY.format(name)),
    "writers": lambda other, name: held(other, "deniable_entries", "SHARE"),
    "readers": lambda other, name: held(other, "deniable_entries", "ACCESS EXCLUSIVE"),
    "a row": lambda other, name: other.execute(
        "INSERT INTO deniable_entries SELECT population, number + 1, kind, who, question, refers, "
        "body, mac FROM deniable_entries WHERE population = %s ORDER BY number DESC LIMIT 1",
        [name],
    ),
}


@pytest.mark.parametrize("lock", LOCKS)
def test_who_waits_for_a_lock_is_told_and_nothing_is_lost(postgres, name, other, lock):
    with Ledger(postgres.url) as ledger:
        before = ledger.balance(name)
        reservation = reserve(ledger, name)
        LOCKS[lock](other, name)
        waiting = [lambda: reserve(ledger, name), lambda: ledger.answer(reservation, 8)]
        if lock == "readers":
            waiting += [lambda: ledger.balance(name), lambda: Ledger(postgres.url)]
        for act in waiting:
            with pytest.raises(dp.LedgerError, match=r"another session holds a lock.*ask again"):
                act()
        other.rollback()
        if lock == "population":  # which no end of a transaction lets go
            other.execute("SELECT pg_advisory_unlock_all()")
        ledger.answer(reservation, 8)
        ledger.answer(reserve(ledger, name), 9)
        after = ledger.balance(name)
        assert (before.releases, after.releases) == (1, 3)
        assert after.remaining["epsilon"] == before.remaining["epsilon"] - Fraction(2, 10)
        found = verify(ledger, name)
        assert (found.reservations, found.answers) == (3, 3)


def test_a_question_that_waits_for_its_answer_is_charged_and_not_lost(postgres, name, other):
    """The lock comes between the charge and the answer."""
    mechanism = dp.Laplace(epsilon=0.1, sensitivity=1)
    with Ledger(postgres.url) as ledger:
        gate = dp.Gate(ledger, name, "analyst")

        def read():
            held(other, "deniable_entries", "SHARE")
            return 5

        with pytest.raises(dp.LedgerError, match="another session holds a lock"):
            gate.release(mechanism, read, purpose="count")
        other.rollback()
        assert ledger.balance(name).spent == pytest.approx(0.2)
        assert verify(ledger, name).reservations == 2
        gate.release(mechanism, lambda: 5, purpose="count")
        assert ledger.balance(name).spent == pytest.approx(0.3)
