import contextlib
import copy
import json
import os
import pickle
import threading
from datetime import UTC, datetime, timedelta

import pytest

import deniable as dp
from clinic import CLINIC, TENTH, reserve
from deniable.ledger.filters import Budget
from deniable.ledger.ledger import Ledger
from deniable.ledger.plain import plain
from deniable.ledger.reservation import Recorded, Reservation
from deniable.ledger.verify import verify


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
        {"loss": dp.losses.PureLoss(bound=0.2), "question": question},
        {"question": {**question, "version": "2"}},
    ):
        assert isinstance(reserve(ledger, population, **other), Reservation)
    ledger.fail(first)
    verify(ledger, population, head=given.head)


def test_a_reservation_ends_once(ledger, population):
    reservation = reserve(ledger, population)
    ledger.answer(reservation, 1)
    with pytest.raises(dp.errors.DoorError, match="ended"):
        ledger.answer(reservation, 2)
    with pytest.raises(dp.errors.DoorError, match="ended"):
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
    half = dp.losses.PureLoss(bound=0.5)
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


def test_entries_hold_no_private_content(ledger, population):
    question = {"sql": "SELECT COUNT(*) FROM visits WHERE name = 'Miller'"}
    reserve(ledger, population, question=question)
    text = json.dumps([row.body for row in ledger.history(population)])
    assert "Miller" not in text


def test_answers_of_many_threads_are_one(ledger, population):
    reservation = reserve(ledger, population)
    kept = []

    def work(number):
        with contextlib.suppress(dp.errors.DoorError):
            kept.append(ledger.answer(reservation, number).value)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(kept) == 1
    verify(ledger, population)


def test_reservations_of_another_ledger_are_refused(ledger, population, tmp_path):
    with Ledger(tmp_path / "other.db", key=bytes(range(32))) as other:
        other.open(population, Budget(dp.PureDP(1)), who="owner")
        foreign = reserve(other, population)
    reserve(ledger, population)
    with pytest.raises(dp.errors.DoorError, match="no such reservation"):
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
    ledger.reserve(name, dp.losses.GaussianLoss(sigma=20, sensitivity=1), who="a", purpose="x")
    before = ledger.balance(name).spent
    ledger.lower(name, Budget(dp.ApproxDP(0.001, 1e-7), keys_delta=9e-8), who="o", reason="x")
    assert ledger.balance(name).spent >= min(before, 1)  # what was spent stays spent


def test_the_tight_number_counts_what_was_drawn(ledger, request):
    name = f"{CLINIC}/{request.node.name}"
    ledger.open(name, Budget(dp.ZCDP(10)), who="owner")
    sampled = dp.losses.poisson_sampled(dp.losses.GaussianLoss(sigma=1, sensitivity=1), rate=0.01)
    plain = dp.losses.GaussianLoss(sigma=1.1, sensitivity=1)
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


def test_the_budget_to_name_is_the_promise_not_its_top_ups(ledger, population):
    ledger.top_up(population, Budget(dp.PureDP(1)), who="owner", reason="more")
    ledger.open(population, Budget(dp.PureDP(1)), who="owner")
    ledger.lower(population, Budget(dp.PureDP(0.5)), who="owner", reason="less")
    ledger.open(population, Budget(dp.PureDP(0.5)), who="owner")
    with pytest.raises(dp.BudgetError, match="another budget"):
        ledger.open(population, Budget(dp.PureDP(1)), who="owner")


@pytest.mark.parametrize(
    "guarantee", [dp.ApproxDP(1, 1e-300), dp.GDP(1e200), dp.PureDP(1e10), dp.ZCDP(1e-250)]
)
def test_budgets_beyond_sense_are_refused_before_they_are_kept(guarantee):
    with pytest.raises(dp.ParameterError, match="budget"):
        Budget(guarantee)


def test_a_note_is_kept_once_and_spends_nothing(ledger, population):
    before = ledger.balance(population)
    told = {"survey": "ab", "epsilon": 1.5}
    head = ledger.note(population, told, who="operator", purpose="survey")
    reserve(ledger, population=population)
    assert ledger.note(population, told, who="another", purpose="survey") == head
    other = ledger.note(population, {**told, "epsilon": 2}, who="operator", purpose="survey")
    assert other != head
    notes = [row for row in ledger.history(population) if row.kind == "note"]
    assert [row.data["note"] for row in notes] == [told, {**told, "epsilon": 2}]
    after = ledger.balance(population)
    assert after.releases == before.releases + 1
    assert after.spent == pytest.approx(0.1)
    assert verify(ledger, population, head=head).entries == 4


def test_a_note_needs_a_population_that_is_open(ledger):
    with pytest.raises(dp.BudgetError):
        ledger.note("nobody/at-all", {}, who="operator", purpose="survey")


def test_an_answer_is_plain_whatever_class_it_says_it_has():
    class Liar(list):
        @property
        def __class__(self):
            return bool

    given = Liar([1, 2])
    kept = plain({"a": given})
    assert type(kept["a"]) is list
    given.append(3)
    assert kept == {"a": [1, 2]}
