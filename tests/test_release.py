"""The gate and its doors."""

import contextlib
import copy
import datetime
import functools
import os
import pickle
import re
import threading

import polars
import pytest

import deniable as dp
from deniable.ledger.entries import EntryKind
from deniable.ledger.verify import verify
from deniable.randomness.fork import fork
from deniable.release import Door, Release

PEOPLE = "clinic/patient"
KEY = bytes(32)


@pytest.fixture
def ledger(tmp_path):
    with dp.Ledger(tmp_path / "ledger.db", key=KEY) as made:
        made.open(PEOPLE, dp.Budget(dp.PureDP(1)), who="owner")
        yield made


@pytest.fixture
def gate(ledger):
    return dp.Gate(ledger, PEOPLE, "ana")


COUNT = dp.Geometric(epsilon=0.1, sensitivity=1)


def test_a_release_is_reserved_before_data_are_read(ledger, gate):
    seen = []

    def read():
        seen.append(ledger.balance(PEOPLE).releases)
        return 100

    answer = gate.release(COUNT, read, purpose="how many")
    assert seen == [1]
    assert isinstance(answer.value, int)
    assert answer.cost == COUNT.loss.price
    assert not answer.repeated
    assert verify(ledger, PEOPLE, head=answer.head).answers == 1


def test_what_is_refused_reads_nothing(gate):
    def read():
        raise AssertionError("data were read")

    with pytest.raises(dp.BudgetError, match="nothing was spent"):
        gate.release(dp.Geometric(epsilon=2, sensitivity=1), read, purpose="too much")


def test_repeats_read_nothing_and_cost_nothing(ledger, gate):
    question = {"plan": "count"}
    first = gate.release(COUNT, lambda: 100, purpose="a", question=question)

    def read():
        raise AssertionError("data were read")

    again = gate.release(COUNT, read, purpose="b", question=question)
    assert (again.value, again.head, again.repeated) == (first.value, first.head, True)
    assert ledger.balance(PEOPLE).releases == 1


def test_failures_after_reading_are_charged_and_say_nothing(ledger, gate):
    def read():
        raise ValueError("patient Miller has HIV")

    with pytest.raises(dp.ReleaseFailedError) as caught:
        gate.release(COUNT, read, purpose="fails")
    assert "Miller" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    balance = ledger.balance(PEOPLE)
    assert balance.releases == 1
    assert float(balance.remaining["epsilon"]) == 0.9
    assert [row.kind for row in ledger.history(PEOPLE)][-1] == EntryKind.FAIL
    verify(ledger, PEOPLE)


class Stop(BaseException):
    pass


STOPS = [Stop, KeyboardInterrupt, SystemExit, GeneratorExit]


@pytest.mark.parametrize("kind", STOPS)
def test_a_stop_within_a_read_is_charged_and_says_nothing(ledger, gate, kind):
    def read():
        stop = kind("patient Miller has HIV")
        stop.patient = "Miller"
        stop.add_note("Miller")
        raise stop

    with pytest.raises(kind) as caught:
        gate.release(COUNT, read, purpose="stops")
    assert (caught.value.args, vars(caught.value)) == ((), {})
    assert getattr(caught.value, "code", 1) == 1  # of SystemExit
    assert ledger.balance(PEOPLE).releases == 1


@pytest.mark.parametrize("where", ["read", "ask"])
@pytest.mark.parametrize(
    "error",
    [polars.exceptions.PanicException("Miller"), BaseExceptionGroup("Miller", [Stop("Miller")])],
)
def test_a_failure_that_is_no_exception_has_the_same_sentence(gate, error, where):
    """Libraries in Rust raise such where they panic, and quote what they were at."""

    def read():
        raise error

    door = gate.open(dp.losses.PureLoss(bound=0.2), purpose="x")
    stream = door.draw(dp.SparseVector(epsilon=0.1, threshold=10, sensitivity=1), list)
    put = door.ask if where == "ask" else door.draw
    with pytest.raises(dp.ReleaseFailedError) as caught:
        put(stream if where == "ask" else COUNT, read)
    assert "Miller" not in str(caught.value)
    assert caught.value.__cause__ is caught.value.__context__ is None


def test_a_door_gives_no_more_than_its_price(ledger, gate):
    door = gate.open(dp.repeat(COUNT.loss, 3), purpose="three counts")
    assert isinstance(door, Door)
    with door:
        values = [door.draw(COUNT, lambda: 100) for _ in range(3)]
        with pytest.raises(dp.BudgetError, match="what is left of a door"):
            door.draw(COUNT, lambda: 100)
        answer = door.close(values)
    assert answer.value == values
    with pytest.raises(dp.errors.DoorError, match="closed"):
        door.draw(COUNT, lambda: 100)
    assert float(ledger.balance(PEOPLE).remaining["epsilon"]) == 0.7
    verify(ledger, PEOPLE)


def test_a_door_of_rho_covers_gaussians(tmp_path):
    with dp.Ledger(tmp_path / "l.db", key=KEY) as ledger:
        ledger.open(PEOPLE, dp.Budget(dp.ZCDP(1)), who="owner")
        gate = dp.Gate(ledger, PEOPLE, "ana")
        noise = dp.DiscreteGaussian(rho=0.1, sensitivity=1)
        with gate.open(dp.repeat(noise.loss, 2), purpose="two") as door:
            door.close([door.draw(noise, lambda: 5), door.draw(noise, lambda: 5)])
        assert float(ledger.balance(PEOPLE).remaining["rho"]) == pytest.approx(0.8)


def test_resumable_doors_go_on_for_what_was_not_drawn(ledger, gate):
    door = gate.open(dp.repeat(COUNT.loss, 3), purpose="long", resumable=True)
    door.draw(COUNT, lambda: 100)
    number = door.number
    del door  # as if the process had died
    again = gate.resume(number)
    again.draw(COUNT, lambda: 100)
    again.draw(COUNT, lambda: 100)
    with pytest.raises(dp.BudgetError):
        again.draw(COUNT, lambda: 100)
    again.close("done")
    with pytest.raises(dp.errors.DoorError, match="ended"):
        gate.resume(number)
    assert float(ledger.balance(PEOPLE).remaining["epsilon"]) == 0.7
    verify(ledger, PEOPLE)


def test_other_doors_are_not_resumed(ledger, gate):
    door = gate.open(COUNT.loss, purpose="once")
    with pytest.raises(dp.errors.DoorError, match="not opened as resumable"):
        gate.resume(door.number)
    with pytest.raises(dp.LedgerError, match="no reservation"):
        gate.resume(1)
    mine = gate.open(COUNT.loss, purpose="mine", resumable=True)
    with pytest.raises(dp.errors.DoorError, match="someone else"):
        dp.Gate(ledger, PEOPLE, "ben").resume(mine.number)


def test_two_who_resume_one_door_share_its_price(gate):
    door = gate.open(dp.repeat(COUNT.loss, 3), purpose="long", resumable=True)
    one, other = gate.resume(door.number), gate.resume(door.number)
    one.draw(COUNT, lambda: 1)
    other.draw(COUNT, lambda: 1)
    one.draw(COUNT, lambda: 1)
    for each in (one, other, door):
        with pytest.raises(dp.BudgetError, match="what is left"):
            each.draw(COUNT, lambda: 1)
    other.close(1)
    with pytest.raises(dp.errors.DoorError, match="ended"):
        one.close(2)


def test_threads_on_one_door_get_no_more_than_its_price(gate):
    door = gate.open(dp.repeat(COUNT.loss, 3), purpose="many hands")
    drawn = []

    def work():
        with contextlib.suppress(dp.BudgetError):
            drawn.append(door.draw(COUNT, lambda: 1))

    threads = [threading.Thread(target=work) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(drawn) == 3


def test_a_file_that_was_removed_takes_no_spends(ledger, gate, tmp_path):
    gate.release(COUNT, lambda: 1, purpose="before")
    (tmp_path / "ledger.db").rename(tmp_path / "elsewhere.db")
    with pytest.raises(dp.LedgerError, match="removed or replaced"):
        gate.release(COUNT, lambda: 1, purpose="after")
    (tmp_path / "elsewhere.db").rename(tmp_path / "ledger.db")
    assert ledger.balance(PEOPLE).releases == 1


def test_doors_are_neither_copied_nor_taken_along(gate):
    door = gate.open(COUNT.loss, purpose="once")
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(dp.errors.DoorError, match="copied or pickled"):
            attempt(door)
    child = os.fork()
    if child == 0:
        try:
            door.draw(COUNT, lambda: 1)
        except dp.errors.DoorError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


@pytest.mark.parametrize("opening", [False, True])
def test_a_child_that_is_forked_within_a_draw_draws_nothing(gate, opening):
    """One charge, one draw: noise of the child's own would be a second one."""
    mechanism = COUNT
    if opening:  # a stream of the child's own would answer again
        mechanism = dp.SparseVector(epsilon=0.01, threshold=5, sensitivity=1)
    door, me, drawn = gate.open(mechanism.loss, purpose="once"), os.getpid(), None
    try:
        drawn = door.draw(mechanism, lambda: [fork(), [] if opening else 3][1])
    except dp.ReleaseFailedError:
        if os.getpid() != me:
            os._exit(7)
    finally:
        if os.getpid() != me:
            os._exit(1)
    assert drawn is not None
    assert os.waitstatus_to_exitcode(os.waitpid(-1, 0)[1]) == 7


def test_a_draw_keeps_the_relation_of_its_door(gate):
    door = gate.open(COUNT.loss, purpose="once")
    swapped = dp.Geometric(epsilon=0.01, sensitivity=1, relation="replace")
    with pytest.raises(dp.errors.DoorError, match="relation"):
        door.draw(swapped, lambda: 1)


def test_the_process_of_a_fork_has_a_ledger_of_its_own(ledger, gate):
    gate.release(COUNT, lambda: 1, purpose="before")
    child = os.fork()
    if child == 0:
        try:
            gate.release(COUNT, lambda: 1, purpose="in the child")
        except BaseException:
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    gate.release(COUNT, lambda: 1, purpose="after")
    assert verify(ledger, PEOPLE).reservations == 3


def test_answers_are_what_the_ledger_keeps(gate):
    answer = gate.release(COUNT, lambda: 1, purpose="x", question={"q": 1})
    assert isinstance(answer, Release)
    assert type(answer.value) is int


def test_arrays_are_released_as_lists(ledger, gate):
    noise = dp.Geometric(epsilon=0.2, sensitivity=1)
    answer = gate.release(noise, lambda: [1, 2, 3], purpose="a vector", question={"q": 2})
    assert isinstance(answer.value, list)
    assert len(answer.value) == 3
    again = gate.release(noise, lambda: [9, 9, 9], purpose="again", question={"q": 2})
    assert again.value == answer.value
    real = dp.Laplace(epsilon=0.2, sensitivity=1.0)
    assert isinstance(gate.release(real, lambda: 2.5, purpose="a number").value, float)
    verify(ledger, PEOPLE)


@pytest.mark.parametrize(
    ("mechanism", "read"), [("laplace", lambda: 1), (COUNT, 5), (COUNT, None), (COUNT.loss, list)]
)
def test_public_faults_are_refused_before_anything_is_charged(ledger, gate, mechanism, read):
    with pytest.raises(dp.errors.ParameterTypeError, match=r"mechanism|read"):
        gate.release(mechanism, read, purpose="x")
    door = gate.open(COUNT.loss, purpose="x")
    with pytest.raises(dp.errors.ParameterTypeError, match=r"mechanism|read"):
        door.draw(mechanism, read)
    door.close(door.draw(COUNT, lambda: 1))  # nothing was drawn from it
    assert ledger.balance(PEOPLE).releases == 1
    with pytest.raises(dp.errors.ParameterTypeError, match="ledger"):
        dp.Gate("ledger.db", PEOPLE, "ana")
    with pytest.raises(dp.errors.ParameterTypeError, match="where"):
        dp.Ledger(123)


def test_a_forked_child_is_another_process_whatever_its_number(monkeypatch):
    """In a new namespace a child of process 1 is process 1 again."""
    monkeypatch.setattr(os, "getpid", lambda: 1)
    with dp.Ledger(key=KEY) as made:
        made.open(PEOPLE, dp.Budget(dp.PureDP(1)), who="owner")
        gate = dp.Gate(made, PEOPLE, "ana")
        door = gate.open(COUNT.loss, purpose="one count")
        child = fork()
        if child == 0:
            try:
                with pytest.raises(dp.errors.DoorError, match="process"):
                    door.draw(COUNT, lambda: 100)
                with pytest.raises(dp.LedgerError, match="forked"):
                    gate.release(COUNT, lambda: 100, purpose="another")
                os._exit(0)
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        door.close(door.draw(COUNT, lambda: 100))


def test_a_door_asks_no_stream_that_a_function_made(gate):
    """What comes after a mechanism is free, and so it opens nothing that the door would ask."""

    def another(_):
        return dp.SparseVector(epsilon=1000, threshold=50, sensitivity=1).open()

    door = gate.open(COUNT.loss, purpose="one count")
    stream = door.draw(dp.post_process(COUNT, another), lambda: 100)
    with pytest.raises(dp.errors.DoorError, match="its own draws"):
        door.ask(stream, lambda: 100)


def test_names_at_the_gate_are_plain_text(ledger):
    class Anybody(str):
        __hash__ = str.__hash__

        def __ne__(self, other):
            return False

    for population, who in ((PEOPLE, Anybody("eve")), (Anybody(PEOPLE), "eve")):
        with pytest.raises(dp.errors.ParameterTypeError):
            dp.Gate(ledger, population, who)


def test_a_choice_is_recorded_by_its_candidate_or_by_its_place(gate):
    best = dp.Exponential(epsilon=0.2, sensitivity=1)
    wards, counts = ["A", "B", "C"], [5, 9000, 7]
    assert gate.release(best, lambda: dp.Scores(wards, counts), purpose="x").value == "B"
    assert gate.release(best, lambda: counts, purpose="x").value == 1
    two = dp.TopK(dp.PermuteAndFlip(epsilon=0.1, sensitivity=1), 2)
    assert gate.release(two, lambda: dp.Scores(wards, [5, 9000, 5000]), purpose="x").value == [
        "B",
        "C",
    ]


def test_the_answers_of_a_stream_are_recorded_and_the_stream_is_not_given(ledger, gate):
    vector = dp.SparseVector(epsilon=0.5, threshold=10_000, sensitivity=1, positives=2)
    values = [0, 10**6, 5, 10**6, 10**6]
    answer = gate.release(vector, lambda: values, purpose="x", question={"q": 1})
    assert answer.value == [False, True, False, True]  # it has ended
    numeric = dp.SparseVector(epsilon=0.4, threshold=10_000, sensitivity=1, numeric=True)
    below, above = gate.release(numeric, lambda: [0, 10**6], purpose="x").value
    assert below is False
    assert abs(above - 10**6) < 10**4
    assert verify(ledger, PEOPLE).answers == 2


def quotes(_records):
    raise SystemExit("patient Miller has HIV")


@pytest.mark.parametrize("function", [quotes, lambda d: d[10**6], lambda d: 5, lambda d: (d, 1)])
def test_a_function_of_the_callers_that_fails_is_charged_and_has_one_sentence(function):
    with dp.Ledger(key=KEY) as ledger:
        budget = dp.Budget(dp.ApproxDP(10, 1e-3), relation="replace")
        ledger.open(PEOPLE, budget, who="owner")
        gate = dp.Gate(ledger, PEOPLE, "ana")
        mechanism = dp.ProposeTestRelease(epsilon=1, delta=1e-6, bound=1, function=function)
        told = set()
        for data in ([1.0, 2.0], []):
            with pytest.raises(dp.ReleaseFailedError) as caught:
                gate.release(mechanism, lambda data=data: data, purpose="x")
            assert caught.value.__cause__ is caught.value.__context__ is None
            told.add(re.sub(r"\d+", "its number", str(caught.value)))
        assert len(told) == 1
        assert "Miller" not in told.pop()
        assert ledger.balance(PEOPLE).releases == 2


def test_functions_that_could_say_two_things_are_refused_and_cost_nothing(ledger, gate):
    class Sly:
        def __call__(self, *_block):
            return 1.0

    for function in (Sly(), functools.partial(max, 1), Sly().__call__):
        mechanism = dp.SubsampleAggregate(
            epsilon=0.1, blocks=2, aggregate="mean", bounds=(0, 1), default=0, function=function
        )
        with pytest.raises(dp.errors.ParameterTypeError, match="def or lambda"):
            gate.release(mechanism, lambda: [1, 2], purpose="x")
    assert ledger.balance(PEOPLE).releases == 0


def test_labels_that_a_ledger_cannot_keep_are_refused_and_cost_nothing(ledger, gate):
    day = datetime.date(2026, 1, 1)
    cells = dp.Histogram(epsilon=0.1, cells=["a", day])
    with pytest.raises(dp.ParameterError, match="text or numbers"):
        gate.release(cells, lambda: {"a": 1}, purpose="x")
    assert ledger.balance(PEOPLE).releases == 0
    numbered = dp.Histogram(epsilon=0.5, cells=[1, 2])
    answer = gate.release(numbered, lambda: {1: 10**6}, purpose="x")
    assert [label for label, _ in answer.value] == [1, 2]  # names of a dict are text


@pytest.mark.parametrize("what", ["protocol", "estimator", "sum"])
def test_what_has_no_verb_is_refused_and_costs_nothing(ledger, gate, what):
    given = {
        "protocol": lambda: dp.survey.KaryResponse(k=4, epsilon=1),
        "estimator": lambda: dp.learning.StandardScaler(epsilon=1, bounds=(0, 1)),
        "sum": lambda: sum,
    }[what]()
    with pytest.raises(dp.errors.ParameterTypeError, match="library's own"):
        gate.release(given, lambda: [1, 2], purpose="x")
    assert ledger.balance(PEOPLE).releases == 0
