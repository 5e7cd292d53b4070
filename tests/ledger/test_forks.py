"""Forks beside threads that are in the middle of the ledger or of a survey's store."""

import os
import signal
import threading
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest
import sqlalchemy as sa

import deniable as dp
from deniable.ledger.verify import verify
from deniable.randomness.fork import fork, unforked
from deniable.service.database import Database

PEOPLE = "clinic/patient"
TENTH = dp.losses.PureLoss(bound=0.1)


class Clock:
    """A thread that asks it the time stays inside its transaction until it may go on."""

    def __init__(self):
        self.asked, self.go, self.slow = threading.Event(), threading.Event(), None

    def __call__(self):
        if threading.current_thread() is self.slow:
            self.asked.set()
            assert self.go.wait(20)
        return datetime(2026, 1, 1, tzinfo=UTC)


@contextmanager
def in_the_middle(act, clock):
    """A thread that is inside, and goes on a moment after somebody begins to fork."""
    clock.slow = threading.Thread(target=act)
    clock.slow.start()
    assert clock.asked.wait(20)
    later = threading.Timer(0.3, clock.go.set)
    later.start()
    try:
        yield
    finally:
        clock.go.set()
        clock.slow.join()
        later.join()


def ended(child, seconds=10):
    """How a child ended; it is killed if it does not."""
    alarm = threading.Timer(seconds, os.kill, (child, signal.SIGKILL))
    alarm.start()
    _, status = os.waitpid(child, 0)
    alarm.cancel()
    return os.waitstatus_to_exitcode(status)


def spend(ledger):
    ledger.reserve(PEOPLE, TENTH, who="ana", purpose="a count")


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def ledger(tmp_path, clock):
    with dp.Ledger(tmp_path / "ledger.db", clock=clock) as made:
        made.open(PEOPLE, dp.Budget(dp.PureDP(1)), who="owner")
        yield made


def test_a_child_that_lives_on_does_not_hold_the_ledger(ledger, clock):
    with in_the_middle(lambda: spend(ledger), clock):
        child = fork()
        if child == 0:
            signal.pause()
    try:
        other = threading.Thread(target=spend, args=(ledger,), daemon=True)
        other.start()
        other.join(10)
        assert not other.is_alive()
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        other.join()
    assert ledger.balance(PEOPLE).releases == 2


def test_a_child_can_spend_whatever_threads_of_its_parent_do(ledger, clock):
    with in_the_middle(lambda: spend(ledger), clock):
        child = fork()
        if child == 0:
            try:
                spend(ledger)
                os._exit(0)
            finally:
                os._exit(1)
        assert ended(child) == 0
    assert ledger.balance(PEOPLE).releases == 2
    assert verify(ledger, PEOPLE).reservations == 2


@pytest.mark.parametrize("place", ["a file", "memory"])
def test_a_child_that_is_forked_within_an_entry_has_no_part_in_it(tmp_path, place):
    """Who forks in the middle of a reservation would have it twice, and draw twice."""
    children, me = [], os.getpid()

    def forks():
        if forks.armed:
            forks.armed = False
            children.append(fork())
        return datetime(2026, 1, 1, tzinfo=UTC)

    forks.armed = False
    where = tmp_path / "ledger.db" if place == "a file" else None
    with dp.Ledger(where, key=bytes(32), clock=forks) as ledger:
        ledger.open(PEOPLE, dp.Budget(dp.PureDP(1)), who="owner")
        forks.armed = True
        try:
            spend(ledger)
        except dp.LedgerError:
            os._exit(1 if os.getpid() == me else 7)
        finally:
            if os.getpid() != me:
                os._exit(1)
        assert [ended(child) for child in children] == [7]
        spend(ledger)
        assert verify(ledger, PEOPLE).reservations == 2


def test_a_child_takes_a_turn_in_a_store_of_surveys_whatever_its_parent_does(tmp_path, clock):
    store = Database(tmp_path / "survey.db")

    def turn():
        with store.turn() as connection:
            clock()
            connection.execute(sa.text("CREATE TABLE theirs (n INTEGER)"))

    with in_the_middle(turn, clock):
        child = fork()
        if child == 0:
            try:
                with store.turn() as connection:
                    connection.execute(sa.text("CREATE TABLE ours (n INTEGER)"))
                os._exit(0)
            finally:
                os._exit(1)
        assert ended(child) == 0
    with store.looking() as connection:
        assert store.check(connection) == {"ours", "theirs"}
    store.close()


def test_a_child_of_a_store_in_postgres_has_connections_of_its_own(postgres):
    store = Database(postgres.url)
    backend = sa.text("SELECT pg_backend_pid()")
    with store.looking() as connection:
        mine = connection.execute(backend).scalar_one()
    child = fork()
    if child == 0:
        try:
            with store.looking() as connection:
                os._exit(int(connection.execute(backend).scalar_one() == mine))
        finally:
            store.close()
            os._exit(2)
    assert ended(child) == 0
    with store.looking() as connection:
        assert connection.execute(backend).scalar_one() == mine
    store.close()


def test_who_is_inside_may_fork_and_enter_again():
    with unforked(), unforked():
        child = fork()
        if child == 0:
            with unforked():
                os._exit(0)
        assert ended(child) == 0
