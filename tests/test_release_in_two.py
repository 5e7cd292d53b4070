"""Questions in two parts through the gate."""

import threading

import pytest

import deniable as dp
from deniable.ledger.entries import EntryKind
from deniable.ledger.reservation import Second
from deniable.ledger.verify import verify
from deniable.release import Door, Release
from deniable.shield import shielded

PEOPLE = "clinic/patient"
FIRST = dp.Geometric(epsilon=0.1, sensitivity=1)
MAIN = dp.Geometric(epsilon=0.3, sensitivity=1)
REST = dp.losses.PureLoss(bound=0.5)
PROFILE, COUNT = {"plan": "profile"}, {"plan": "count"}


@pytest.fixture
def ledger(tmp_path):
    with dp.Ledger(tmp_path / "ledger.db", key=bytes(32)) as made:
        made.open(PEOPLE, dp.Budget(dp.PureDP(1)), who="owner")
        yield made


@pytest.fixture
def gate(ledger):
    return dp.Gate(ledger, PEOPLE, "ana")


def make(door):
    return door.draw(FIRST, lambda: 100)


def main(_):
    return Second(MAIN.loss, COUNT, "how many")


def nothing(_):
    return None


def never(*_):
    raise AssertionError("this was called")


def ask(gate, make=make, then=main, *, first=FIRST.loss, rest=REST, question=PROFILE):
    return gate.answer_in_two(first, rest, question, make, then, purpose="profile")


def spent(ledger):
    return ledger.balance(PEOPLE).totals[0].epsilon / 10**18


def kinds(ledger):
    return [row.kind for row in ledger.history(PEOPLE)][1:]


def test_the_first_answer_opens_the_second_door(ledger, gate):
    counted = []

    def drawn(door):
        counted.append(spent(ledger))
        return make(door)

    answer, door = ask(gate, drawn)
    assert counted == [0.6]
    assert answer.cost == FIRST.loss.price
    assert not answer.repeated
    assert isinstance(door, Door)
    assert (door.cost, spent(ledger)) == (MAIN.loss.price, 0.4)
    with door:
        given = door.close(door.draw(MAIN, lambda: 100))
    assert kinds(ledger) == [EntryKind.RESERVE, EntryKind.SETTLE, EntryKind.ANSWER]
    assert gate.known(MAIN.loss, COUNT).value == given.value
    assert gate.answer(MAIN.loss, COUNT, never, purpose="again").value == given.value
    assert gate.known(FIRST.loss, PROFILE).value == answer.value
    assert gate.answer(FIRST.loss, PROFILE, never, purpose="again").value == answer.value
    for each in (answer, given):
        assert verify(ledger, PEOPLE, head=each.head).reservations == 2


def test_the_first_answer_lets_go(ledger, gate):
    answer, door = ask(gate, then=nothing)
    assert door is None
    assert isinstance(answer.value, int)
    assert spent(ledger) == 0.1
    verify(ledger, PEOPLE, head=answer.head)


def test_what_is_refused_reads_nothing_and_costs_nothing(ledger, gate):
    for first, rest in (
        (FIRST.loss, dp.losses.PureLoss(bound=0.95)),
        (dp.losses.PureLoss(bound=0.6), REST),
    ):
        with pytest.raises(dp.BudgetError, match="nothing was spent"):
            ask(gate, never, never, first=first, rest=rest)
    assert kinds(ledger) == []


def test_the_first_door_draws_at_its_own_price(ledger, gate):
    def greedy(door):
        make(door)
        return make(door)

    with pytest.raises(dp.BudgetError, match="what is left of a door"):
        ask(gate, greedy)
    assert spent(ledger) == 0.6
    assert kinds(ledger) == [EntryKind.RESERVE, EntryKind.FAIL]


def test_the_second_door_draws_at_its_own_price(gate):
    _, door = ask(gate)
    with pytest.raises(dp.BudgetError, match="what is left of a door"):
        door.draw(dp.Geometric(epsilon=0.4, sensitivity=1), lambda: 1)


def wrong(error):
    def raises(*_):
        raise error

    return raises


@pytest.mark.parametrize(
    ("made", "then", "error"),
    [
        (wrong(ValueError("Miller")), never, ValueError),
        (wrong(KeyboardInterrupt()), never, KeyboardInterrupt),
        (lambda door: door.draw(FIRST, wrong(ValueError())), never, dp.ReleaseFailedError),
        (lambda _: object(), never, dp.LedgerError),
        (make, wrong(ZeroDivisionError()), ZeroDivisionError),
        (make, wrong(SystemExit()), SystemExit),
        (make, lambda _: "no second", dp.errors.ParameterTypeError),
        (make, lambda _: Second(dp.losses.PureLoss(bound=0.51), COUNT, "x"), dp.errors.DoorError),
        (make, lambda _: Second(FIRST.loss, PROFILE, "x"), dp.errors.DoorError),
        (make, lambda _: Second(MAIN.loss, {"plan": object()}, "x"), dp.ParameterError),
        (make, lambda _: Second(MAIN.loss, COUNT, ""), dp.ParameterError),
    ],
    ids=[
        "make", "interrupt", "draw", "no answer", "then", "exit", "no second",
        "dearer than held", "same question", "no question", "no purpose",
    ],
)  # fmt: skip
def test_an_error_leaves_both_parts_charged(ledger, gate, made, then, error):
    with pytest.raises(error):
        ask(gate, made, then)
    assert spent(ledger) == 0.6
    assert kinds(ledger) == [EntryKind.RESERVE, EntryKind.FAIL]
    assert ledger.balance(PEOPLE).holds == 0
    verify(ledger, PEOPLE)
    # Nothing of it is recorded: the same question is charged again.
    with pytest.raises(dp.BudgetError):
        ask(gate, never, never)


def test_a_shield_says_that_it_was_charged(gate):
    @shielded
    def asked():
        return ask(gate, then=wrong(ValueError("Miller")))

    with pytest.raises(dp.ReleaseFailedError) as caught:
        asked()
    assert "Miller" not in str(caught.value)


def test_a_first_door_that_its_maker_closes_lets_nothing_go(ledger, gate):
    def closes(door):
        door.close(make(door))
        return 1

    with pytest.raises(dp.errors.DoorError, match="closed"):
        ask(gate, closes)
    assert spent(ledger) == 0.6
    verify(ledger, PEOPLE)


def test_a_recorded_first_part_decides_again(ledger, gate):
    first, door = ask(gate, then=nothing)
    again, door = ask(gate, never)
    assert (again.value, again.head, again.repeated) == (first.value, first.head, True)
    assert isinstance(door, Door)
    assert spent(ledger) == 0.4  # an ordinary reservation
    assert kinds(ledger) == [EntryKind.RESERVE, EntryKind.SETTLE, EntryKind.RESERVE]
    with door:
        given = door.close(door.draw(MAIN, lambda: 1))
    again, recorded = ask(gate, never)
    assert isinstance(recorded, Release)
    assert (recorded.value, recorded.repeated) == (given.value, True)
    assert ask(gate, never, nothing)[1] is None
    assert spent(ledger) == 0.4
    verify(ledger, PEOPLE)


def test_a_recorded_first_part_whose_second_is_too_dear(ledger, gate):
    ask(gate, then=nothing)
    gate.release(dp.Geometric(epsilon=0.7, sensitivity=1), lambda: 1, purpose="large")
    with pytest.raises(dp.BudgetError, match="nothing was spent"):
        ask(gate, never)
    assert spent(ledger) == pytest.approx(0.8)


def test_a_recorded_second_part_is_given_and_the_hold_let_go(ledger, gate):
    known = gate.answer(MAIN.loss, COUNT, lambda door: door.draw(MAIN, lambda: 5), purpose="n")
    answer, recorded = ask(gate)
    assert not answer.repeated
    assert isinstance(recorded, Release)
    assert (recorded.value, recorded.repeated) == (known.value, True)
    assert spent(ledger) == 0.4
    verify(ledger, PEOPLE)


def test_what_decides_is_what_the_ledger_gives_back(gate):
    seen = []

    def look(value):
        seen.append(repr(value))
        value["bins"].append("changed")

    def made(door):
        return {"bins": (make(door), 1)}

    first, _ = ask(gate, made, look)
    again, _ = ask(gate, never, look)
    assert seen[0] == seen[1] == repr({"bins": first.value["bins"]})
    assert again.value == first.value
    assert first.value["bins"][1:] == [1]


def test_what_decides_is_what_is_kept(gate):
    """A value that is another each time it is read is read once."""

    class Shifting(dict):
        readings = 0

        def items(self):
            self.readings += 1
            return [("n", self.readings)]

    seen = []
    answer, _ = ask(gate, lambda _: Shifting(), seen.append)
    assert seen == [answer.value] == [{"n": 1}]


def test_threads_and_a_budget_for_one():
    """Sixteen at once; at any time one holds, and all of them pass in the end."""
    with dp.Ledger() as ledger:
        ledger.open(PEOPLE, dp.Budget(dp.PureDP(1)), who="owner")
        small, half = dp.Geometric(epsilon=0.01, sensitivity=1), dp.losses.PureLoss(bound=0.6)
        holding, most, done = [], [], []

        def made(door):
            holding.append(door)
            most.append(len(holding))
            value = door.draw(small, lambda: 1)
            holding.remove(door)
            return value

        def run(number):
            gate = dp.Gate(ledger, PEOPLE, f"analyst {number}")
            while True:
                try:
                    ask(gate, made, nothing, first=small.loss, rest=half, question={"n": number})
                except dp.BudgetError:
                    continue
                done.append(number)
                return

        threads = [threading.Thread(target=run, args=(number,)) for number in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=120)
        assert sorted(done) == list(range(16))
        assert set(most) == {1}
        assert spent(ledger) == pytest.approx(0.16)
        verify(ledger, PEOPLE)


def test_what_follows_a_part_that_was_answered_meanwhile_stays_paid_for(ledger, gate):
    """Somebody else asks the middle part just then, and takes all that is left of the budget."""
    middle, asked = dp.Geometric(epsilon=0.15, sensitivity=1), []

    def then(value):
        asked.append(value)
        if len(asked) > 1:
            return main(value)
        other = dp.Gate(ledger, PEOPLE, "eve")
        other.answer(middle.loss, {"plan": "b"}, lambda d: d.draw(middle, lambda: 1), purpose="b")
        other.open(dp.losses.PureLoss(bound=0.25), purpose="all that is left")
        return Second(middle.loss, {"plan": "b"}, "b", hold=MAIN.loss)

    _, door = ask(gate, then=then)
    assert isinstance(door, Door)
    with door:
        door.close(door.draw(MAIN, lambda: 5))
    assert asked[0] == asked[1]
    assert spent(ledger) == 0.1 + 0.15 + 0.25 + 0.3
    verify(ledger, PEOPLE)
