"""Reservations that hold a second part: admitted together, settled by one entry, or charged."""

import json
import shutil
import sqlite3
from datetime import UTC, datetime

import pytest

import deniable as dp
from clinic import CLINIC, TENTH, reserve
from deniable.ledger.entries import EntryKind, make_row, state_of
from deniable.ledger.filters import Budget, charge
from deniable.ledger.ledger import Ledger
from deniable.ledger.reservation import Recorded, Reservation, Second
from deniable.ledger.verify import verify

HALF = dp.losses.PureLoss(bound=0.5)
WHOLE = {"plan": "profile"}


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def ledger(request, tmp_path):
    if request.param == "memory":
        made = Ledger()
    elif request.param == "sqlite":
        made = Ledger(tmp_path / "ledger.db")
    else:
        made = Ledger(request.getfixturevalue("postgres").url)
    yield made
    made.close()


@pytest.fixture
def population(ledger, request):
    """A population of its own for each test, for the Postgres server is shared."""
    name = f"{CLINIC}/{request.node.name}"
    ledger.open(name, Budget(dp.PureDP(1)), who="owner")
    return name


def second(loss=TENTH, plan="answer"):
    return Second(loss, {"plan": plan}, "the answer")


def spent(ledger, population):
    return float(ledger.balance(population).totals[0].epsilon / 10**18)


def test_what_is_held_counts_as_spent_and_is_let_go(ledger, population):
    reservation = reserve(ledger, population, question=WHOLE, hold=HALF)
    assert spent(ledger, population) == 0.6
    assert ledger.balance(population).holds == 1
    with pytest.raises(dp.BudgetError, match="nothing was spent"):
        reserve(ledger, population, loss=HALF)
    with pytest.raises(dp.BudgetError):
        ledger.afford(population, [TENTH] * 5, who="ana")
    recorded, none = ledger.settle(reservation, [3, 4], None)
    assert none is None
    assert (recorded.value, recorded.number) == ([3, 4], reservation.number)
    assert spent(ledger, population) == 0.1
    assert ledger.balance(population).holds == 0
    assert isinstance(reserve(ledger, population, loss=HALF), Reservation)
    found = verify(ledger, population, head=recorded.head)
    assert (found.reservations, found.answers) == (2, 1)


def test_what_is_held_becomes_a_reservation_and_the_remainder_is_let_go(ledger, population):
    reservation = reserve(ledger, population, question=WHOLE, hold=HALF)
    recorded, other = ledger.settle(reservation, 7, second(dp.losses.PureLoss(bound=0.3)))
    assert spent(ledger, population) == 0.4
    assert ledger.balance(population).releases == 2
    given = ledger.answer(other, {"n": 12})
    again = reserve(
        ledger, population, loss=dp.losses.PureLoss(bound=0.3), question={"plan": "answer"}
    )
    assert isinstance(again, Recorded)
    assert (again.value, again.head) == ({"n": 12}, given.head)
    first = reserve(ledger, population, question=WHOLE, hold=HALF)
    assert isinstance(first, Recorded)
    assert (first.value, first.head) == (7, recorded.head)
    assert spent(ledger, population) == 0.4
    assert (verify(ledger, population).reservations, verify(ledger, population).answers) == (2, 2)


def test_a_second_part_without_an_answer_is_no_repeat(ledger, population):
    reservation = reserve(ledger, population, question=WHOLE, hold=HALF)
    ledger.settle(reservation, 7, second())
    assert ledger.recorded(population, TENTH, {"plan": "answer"}) is None
    assert isinstance(reserve(ledger, population, question={"plan": "answer"}), Reservation)


@pytest.mark.parametrize(("first", "rest"), [(0.6, 0.5), (0.1, 1), (1, 0.1), (1.1, 0.1)])
def test_both_parts_fit_or_nothing_is_spent(ledger, population, first, rest):
    before = ledger.balance(population)
    with pytest.raises(dp.BudgetError, match=rf"asked for ε = {first + rest:.6g}; .*nothing"):
        reserve(
            ledger,
            population,
            loss=dp.losses.PureLoss(bound=first),
            hold=dp.losses.PureLoss(bound=rest),
        )
    assert ledger.balance(population) == before


def test_an_analysts_share_gates_both_parts(ledger, population):
    ledger.share(population, "ana", Budget(dp.PureDP(0.5)), who="owner", reason="trainee")
    with pytest.raises(dp.BudgetError, match="share"):
        reserve(ledger, population, hold=HALF)
    reservation = reserve(ledger, population, hold=dp.losses.PureLoss(bound=0.4))
    with pytest.raises(dp.BudgetError, match="share"):
        reserve(ledger, population)
    ledger.settle(reservation, 1, second())
    for _ in range(3):
        reserve(ledger, population)
    with pytest.raises(dp.BudgetError, match="share"):
        reserve(ledger, population)
    verify(ledger, population)


@pytest.mark.parametrize("end", ["fail", "answer", "never"])
def test_nothing_else_lets_a_hold_go(ledger, population, end):
    reservation = reserve(ledger, population, hold=HALF)
    if end == "fail":
        ledger.fail(reservation)
    elif end == "answer":
        ledger.answer(reservation, 1)
    assert spent(ledger, population) == 0.6
    assert ledger.balance(population).releases == 1
    with pytest.raises(dp.BudgetError):
        reserve(ledger, population, loss=HALF)
    if end != "never":
        assert ledger.balance(population).holds == 0
        with pytest.raises(dp.errors.DoorError, match="ended already"):
            ledger.settle(reservation, 1, None)
        assert spent(ledger, population) == 0.6
    verify(ledger, population)


def test_a_hold_is_settled_once(ledger, population):
    reservation = reserve(ledger, population, hold=HALF)
    ledger.settle(reservation, 1, None)
    for again in (
        lambda: ledger.settle(reservation, 1, None),
        lambda: ledger.settle(reservation, 1, second()),
        lambda: ledger.answer(reservation, 1),
        lambda: ledger.fail(reservation),
    ):
        with pytest.raises(dp.errors.DoorError, match="ended already"):
            again()
    plain = reserve(ledger, population)
    with pytest.raises(dp.errors.DoorError, match="nothing is held"):
        ledger.settle(plain, 1, None)
    verify(ledger, population)


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (second(dp.losses.PureLoss(bound=0.51)), dp.errors.DoorError),
        (second(dp.DiscreteGaussian(rho=0.0001, sensitivity=1).loss), dp.errors.DoorError),
        (second(dp.losses.PureLoss(bound=0.1, relation="replace")), dp.errors.RelationError),
        (Second(TENTH, WHOLE, "the same question"), dp.errors.DoorError),
        (Second(TENTH, {"plan": object()}, "no question"), dp.ParameterError),
        (Second(TENTH, {"plan": 1}, ""), dp.ParameterError),
    ],
    ids=["larger", "not pure", "relation", "same", "not plain", "no purpose"],
)
def test_a_second_part_that_does_not_fit_lets_nothing_go(ledger, population, wrong, error):
    reservation = reserve(ledger, population, question=WHOLE, hold=HALF)
    with pytest.raises(error):
        ledger.settle(reservation, 1, wrong)
    assert spent(ledger, population) == 0.6
    assert ledger.balance(population).holds == 1
    ledger.fail(reservation)
    assert spent(ledger, population) == 0.6
    verify(ledger, population)


def test_resumable_reservations_hold_nothing(ledger, population):
    with pytest.raises(dp.ParameterError, match="hold"):
        reserve(ledger, population, resumable=True, hold=HALF)
    assert spent(ledger, population) == 0


def test_a_hold_that_is_not_pure_leaves_pure_totals_when_it_goes(request, ledger):
    """ε of the totals has no number while something is held that is not pure, and one after."""
    name = f"{CLINIC}/{request.node.name}"
    ledger.open(name, Budget(dp.ApproxDP(1, 1e-6)), who="owner")
    gaussian = dp.DiscreteGaussian(rho=0.01, sensitivity=1).loss
    reservation = reserve(ledger, name, hold=gaussian)
    assert ledger.balance(name).totals[0] == charge(TENTH) + charge(gaussian)
    assert ledger.balance(name).totals[0].epsilon is None
    ledger.settle(reservation, 1, None)
    assert ledger.balance(name).totals[0] == charge(TENTH)
    for _ in range(9):  # by the pure branch alone
        reserve(ledger, name)
    with pytest.raises(dp.BudgetError):
        reserve(ledger, name, hold=gaussian)
    verify(ledger, name)


def test_delta_is_held_too(request, ledger):
    name = f"{CLINIC}/{request.node.name}"
    ledger.open(name, Budget(dp.ApproxDP(1, 1e-6)), who="owner")
    keys = dp.losses.ApproxLoss(bound=0.01, slack=3e-7)
    reservation = reserve(ledger, name, hold=keys)
    with pytest.raises(dp.BudgetError, match="δ"):
        reserve(ledger, name, loss=keys)
    ledger.settle(reservation, 1, None)
    reserve(ledger, name, loss=keys)
    verify(ledger, name)


def test_the_parts_may_lie_in_two_tranches(request, ledger):
    name = f"{CLINIC}/{request.node.name}"
    budget = Budget(dp.ApproxDP(1, 1e-6))
    ledger.open(name, budget, who="owner")
    large = dp.losses.PureLoss(bound=0.7)
    with pytest.raises(dp.BudgetError):
        reserve(ledger, name, loss=large, hold=large)
    ledger.top_up(name, budget, who="owner", reason="second wave")
    reservation = reserve(ledger, name, loss=large, hold=large)
    totals = ledger.balance(name).totals
    assert [each.epsilon for each in totals] == [7 * 10**17, 7 * 10**17]
    with pytest.raises(dp.BudgetError):
        reserve(ledger, name, loss=large)
    _, other = ledger.settle(reservation, 1, second(dp.losses.PureLoss(bound=0.2)))
    ledger.answer(other, 2)
    totals = ledger.balance(name).totals
    assert [each.epsilon for each in totals] == [7 * 10**17, 2 * 10**17]
    verify(ledger, name)


def test_a_lowered_budget_keeps_its_holds(ledger, population):
    reservation = reserve(ledger, population, hold=HALF)
    ledger.lower(population, Budget(dp.PureDP(0.2)), who="owner", reason="less")
    _, other = ledger.settle(reservation, 1, second(HALF))
    ledger.answer(other, 2)
    assert spent(ledger, population) == 0.6
    with pytest.raises(dp.BudgetError):
        reserve(ledger, population)
    verify(ledger, population)


def test_a_new_promise_takes_no_holds_along(ledger, population):
    reservation = reserve(ledger, population, hold=HALF)
    with pytest.warns(UserWarning, match="a new promise"):
        ledger.renew(population, Budget(dp.PureDP(1)), who="owner", reason="new people")
    assert spent(ledger, population) == 0
    for each in (second(), None):
        with pytest.raises(dp.errors.DoorError, match="nothing is held"):
            ledger.settle(reservation, 1, each)
    ledger.fail(reservation)
    assert spent(ledger, population) == 0
    verify(ledger, population)


def test_the_tight_number_counts_doors_and_not_holds(ledger, population):
    reservation = reserve(ledger, population, hold=HALF)
    _, other = ledger.settle(reservation, 1, second(dp.losses.PureLoss(bound=0.3)))
    ledger.answer(other, 2)
    left = reserve(ledger, population, hold=HALF)
    ledger.settle(left, 1, None)
    assert ledger.tight_epsilon(population, delta=1e-12) == pytest.approx(0.5, abs=1e-6)


def test_entries_without_holds_say_nothing_of_them(ledger, population):
    """So that entries of before are the same, byte by byte; what is new has another version."""
    ledger.answer(reserve(ledger, population), 1)
    rows = list(ledger.history(population))
    assert all('"hold' not in row.body for row in rows)
    assert {row.data["version"] for row in rows} == {1}
    held = reserve(ledger, population, hold=HALF)
    between = reserve(ledger, population)
    ledger.settle(held, 1, None)
    ledger.answer(between, 1)
    rows = list(ledger.history(population))[3:]
    assert [row.data["version"] for row in rows] == [2, 1, 2, 1]
    assert [bool(state_of(row).holds) for row in rows] == [True, True, False, False]
    assert '"hold' not in rows[-1].body


def test_a_chain_of_before_there_were_holds_has_the_same_macs():
    """The head is what the same calls gave before: each byte of each entry is in it."""
    day = datetime(2026, 1, 1, tzinfo=UTC)
    with Ledger(key=bytes(32), clock=lambda: day, nonce=lambda: "00") as ledger:
        ledger.open(CLINIC, Budget(dp.ZCDP(1)), who="owner")
        loss = dp.DiscreteGaussian(rho=0.1, sensitivity=1).loss
        reservation = reserve(ledger, CLINIC, loss, question={"plan": "count"})
        head = ledger.answer(reservation, 7).head
        assert head == "3:dba28cc5f1869f4256f87502675c602f58fbeb0ebbbc5ef51a6aaf01dc91377b"


class TestTampering:
    """A settled hold that someone makes cheaper afterwards."""

    @pytest.fixture
    def file(self, tmp_path):
        path = tmp_path / "ledger.db"
        with Ledger(path) as ledger:
            ledger.open(CLINIC, Budget(dp.PureDP(1)), who="owner")
            held = reserve(ledger, CLINIC, question=WHOLE, hold=HALF)
            ledger.settle(held, 7, second(dp.losses.PureLoss(bound=0.3)))
        return path

    def edited(self, file, number, change):
        """Edit the text of an entry behind the ledger's back."""
        raw = sqlite3.connect(file)
        raw.execute("DROP TRIGGER deniable_no_update")
        (body,) = raw.execute(
            "SELECT body FROM deniable_entries WHERE number = ?", (number,)
        ).fetchone()
        data = json.loads(body)
        change(data)
        text = json.dumps(data, sort_keys=True, separators=(",", ":"))
        assert text != body
        raw.execute("UPDATE deniable_entries SET body = ? WHERE number = ?", (text, number))
        raw.commit()
        raw.close()

    @pytest.mark.parametrize(
        ("number", "change"),
        [
            (3, lambda data: data.update(loss=dp.losses.loss_to_json(TENTH))),
            (3, lambda data: data.pop("loss")),
            (3, lambda data: data["state"]["tranches"][0]["totals"].update(epsilon=10**17)),
            (2, lambda data: data.update(hold=dp.losses.loss_to_json(TENTH))),
            (2, lambda data: data.pop("hold")),
            (2, lambda data: data["state"].pop("holds")),
        ],
    )
    def test_edits_without_the_key(self, file, number, change):
        self.edited(file, number, change)
        with Ledger(file) as ledger:
            for attempt in (lambda: verify(ledger, CLINIC), lambda: reserve(ledger, CLINIC)):
                with pytest.raises(dp.errors.LedgerTamperedError, match=f"entry {number}"):
                    attempt()

    def test_a_ledger_put_back_before_its_hold_was_settled(self, tmp_path):
        """It would settle again, otherwise; where the key is, the settling is remembered."""
        file, copy = tmp_path / "ledger.db", tmp_path / "copy.db"
        with Ledger(file) as ledger:
            ledger.open(CLINIC, Budget(dp.PureDP(1)), who="owner")
            held = reserve(ledger, CLINIC, question=WHOLE, hold=HALF)
            shutil.copy(file, copy)
            ledger.settle(held, 7, second())
        shutil.copy(copy, file)
        with Ledger(file) as ledger, pytest.raises(dp.LedgerError, match="ends at entry 2"):
            ledger.settle(held, 8, second(plan="another"))

    def rewritten(self, change):
        """A chain whose third entry is written by someone with the key; `verify` computes it."""
        ledger = Ledger(key=bytes(32))
        ledger.open(CLINIC, Budget(dp.PureDP(1)), who="owner")
        held = reserve(ledger, CLINIC, question=WHOLE, hold=HALF)
        ledger.settle(held, 7, second(dp.losses.PureLoss(bound=0.3)))
        settled = list(ledger.history(CLINIC))[-1]
        known = ("version", "population", "number", "kind", "who", "question", "refers")
        data = {name: each for name, each in settled.data.items() if name not in known}
        change(data)
        forged = Ledger(key=bytes(32))
        for row in [*ledger.history(CLINIC)][:2]:
            forged.store.append(CLINIC, lambda _last, _view, row=row: row)
        forged.store.append(
            CLINIC,
            lambda last, _: make_row(
                forged.key, last, population=CLINIC, kind=EntryKind.SETTLE, who="ana", data=data,
                question=settled.question, refers=2,
            ),
        )  # fmt: skip
        return forged

    def test_the_same_entry_again_holds(self):
        verify(self.rewritten(lambda _: None), CLINIC)

    @pytest.mark.parametrize(
        ("change", "said"),
        [
            (
                lambda data: data["state"]["tranches"][0]["totals"].update(epsilon=10**17),
                "wrong totals",
            ),
            (lambda data: data.update(loss=dp.losses.loss_to_json(TENTH)), "wrong totals"),
            (lambda data: data.pop("loss"), "wrong totals"),
            (
                lambda data: data.update(
                    loss=dp.losses.loss_to_json(dp.losses.PureLoss(bound=0.6))
                ),
                "no filter",
            ),
        ],
        ids=["let go more", "cheaper", "no second", "dearer than held"],
    )
    def test_edits_with_the_key(self, change, said):
        with pytest.raises(dp.errors.LedgerTamperedError, match=said):
            verify(self.rewritten(change), CLINIC)

    @pytest.mark.parametrize("refers", [1, 3, 9])
    def test_settling_what_holds_nothing(self, refers):
        ledger = Ledger(key=bytes(32))
        ledger.open(CLINIC, Budget(dp.PureDP(1)), who="owner")
        reserve(ledger, CLINIC, hold=HALF)
        reserve(ledger, CLINIC)

        def forged(last, _):
            data = {"answer": 1, "state": last.data["state"]}
            return make_row(
                ledger.key, last, population=CLINIC, kind=EntryKind.SETTLE, who="ana", data=data,
                refers=refers,
            )  # fmt: skip

        ledger.store.append(CLINIC, forged)
        with pytest.raises(dp.errors.LedgerTamperedError):
            verify(ledger, CLINIC)


def third(loss, hold):
    return Second(loss, {"plan": "keys"}, "the keys", hold)


def test_a_part_of_what_is_held_is_handed_on(ledger, population):
    first = reserve(ledger, population, question=WHOLE, hold=HALF)
    _, keys = ledger.settle(first, 1, third(TENTH, dp.losses.PureLoss(bound=0.3)))
    assert spent(ledger, population) == 0.5  # a tenth, a tenth, and what is held on
    assert ledger.balance(population).holds == 1
    with pytest.raises(dp.BudgetError, match="nothing was spent"):
        reserve(ledger, population, loss=dp.losses.PureLoss(bound=0.51))
    _, answer = ledger.settle(keys, 2, second(dp.losses.PureLoss(bound=0.3)))
    assert (spent(ledger, population), ledger.balance(population).holds) == (0.5, 0)
    ledger.answer(answer, 3)
    found = list(ledger.history(population))
    assert [row.data["version"] for row in found] == [1, 2, 3, 2, 1]
    assert verify(ledger, population).reservations == 3


def test_what_is_handed_on_was_held(ledger, population):
    first = reserve(ledger, population, question=WHOLE, hold=HALF)
    with pytest.raises(dp.errors.DoorError, match="costs more"):
        ledger.settle(first, 1, third(TENTH, dp.losses.PureLoss(bound=0.41)))
    assert spent(ledger, population) == 0.6
    ledger.settle(first, 1, third(TENTH, dp.losses.PureLoss(bound=0.4)))
    assert spent(ledger, population) == 0.6


@pytest.mark.parametrize("end", ["answer", "fail", "never"])
def test_what_is_handed_on_stays_charged_unless_it_is_settled(ledger, population, end):
    first = reserve(ledger, population, question=WHOLE, hold=HALF)
    _, keys = ledger.settle(first, 1, third(TENTH, dp.losses.PureLoss(bound=0.3)))
    if end != "never":
        getattr(ledger, end)(*((keys, 2) if end == "answer" else (keys,)))
    assert spent(ledger, population) == 0.5
    assert ledger.balance(population).holds == (end == "never")
    verify(ledger, population)


def test_an_entry_that_hands_on_more_than_was_held_is_found(ledger, population):
    """Of a ledger that somebody with the key has written."""
    first = reserve(ledger, population, question=WHOLE, hold=HALF)
    ledger.settle(first, 1, third(TENTH, dp.losses.PureLoss(bound=0.3)))
    *_, before, last = ledger.history(population)
    data = {name: value for name, value in last.data.items() if name not in vars(last)}
    data["hold"] = data["loss"].replace('"1/10"', '"1/2"')
    assert data["hold"] != data["loss"]
    row = make_row(ledger.key, before, population=population, kind=last.kind, who=last.who,
                   data=data, question=last.question, refers=last.refers)  # fmt: skip
    with pytest.raises(dp.errors.LedgerTamperedError, match="passed no filter"):
        _replayed(ledger, [*list(ledger.history(population))[:-1], row])


def _replayed(ledger, rows):
    """`verify` on these rows."""
    made = Ledger(key=ledger.key)
    for each in rows:
        made.store.append(each.population, lambda _last, _view, each=each: each)
    verify(made, rows[0].population)
