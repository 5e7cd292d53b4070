"""Replay: every planted fault is found from one pair of runs, whatever else a pipeline does."""

import faulthandler
import functools
import io
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import warnings
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import deniable as dp
from auditing import pipelines
from deniable.auditing.replay.findings import FindingKind
from deniable.mechanisms import sparse_vector
from deniable.randomness.noise import LaplaceLaw, noise

HERE, THERE = [3, 5, 9], [3, 5, 9, 10]
COUNT = dp.Geometric(epsilon=1, sensitivity=1)

PAIR = pipelines.random_pair(random.Random(1), "add_remove")
EXPECTED = {
    pipelines.half_the_sensitivity: FindingKind.SENSITIVITY,
    pipelines.bounds_from_data: FindingKind.PARAMETERS,
    pipelines.mean_over_true_n: FindingKind.PARAMETERS,
    pipelines.branch_on_exact_value: FindingKind.CONTROL_FLOW,
    pipelines.one_sided_exception: FindingKind.EXCEPTION,
    pipelines.price_from_data: FindingKind.PRICE,
    pipelines.no_noise_on_empty_groups: FindingKind.CONTROL_FLOW,
    pipelines.unclamped: FindingKind.SENSITIVITY,
}


def kinds(pipeline, data=HERE, neighbour=THERE, **options):
    return {f.kind for f in dp.replay(pipeline, data, neighbour, **options).findings}


@pytest.mark.parametrize("fault", pipelines.FAULTS, ids=lambda f: f.__name__)
def test_a_planted_fault_is_found_and_named_from_one_pair(fault):
    found = dp.replay(lambda d: fault(d, pipelines.bare, "add_remove"), *PAIR)
    assert EXPECTED[fault] in {finding.kind for finding in found.findings}


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize("step", pipelines.STEPS + pipelines.RARE_STEPS, ids=lambda s: s.__name__)
def test_every_mechanism_used_correctly_has_no_finding(step, relation):
    pair = pipelines.random_pair(random.Random(7), relation)
    found = dp.replay(lambda d: step(d, pipelines.bare, relation), *pair)
    assert found.ok, str(found)


def test_the_steps_cover_the_whole_catalogue():
    used = " ".join(
        name for step in pipelines.STEPS + pipelines.RARE_STEPS for name in step.__code__.co_names
    )
    exported = {
        name
        for name in dp.__all__
        if isinstance(getattr(dp, name), type) and hasattr(getattr(dp, name), "release")
    }
    assert all(name in used for name in exported - {"Gate"})


def test_a_sensitivity_finding_tells_how_far_and_what_is_charged():
    (finding,) = dp.replay(lambda d: COUNT.release(2 * len(d)), HERE, THERE).findings
    assert (finding.kind, finding.moved, finding.allowed) == ("sensitivity", 2.0, 1.0)


def test_the_answer_beyond_noise_must_not_depend_on_data():
    assert kinds(lambda d: (COUNT.release(len(d)), len(d))) == {FindingKind.OUTPUT}
    assert kinds(lambda d: [COUNT.release(0) for _ in range(2)] + [0] * len(d)) == {
        FindingKind.OUTPUT
    }


@pytest.mark.parametrize(
    ("show", "what"),
    [
        (lambda d: 1 if len(d) > 3 else 1.0, "type"),
        (lambda d: np.zeros(len(d)), "shape"),
        (lambda d: [None] * len(d), "shape"),
        (lambda d: dict.fromkeys(d, 0), "row set"),
        (lambda d: {"a": 1, "b": 2} if len(d) > 3 else {"b": 2, "a": 1}, "row set"),
        (lambda d: np.array([len(d)]), "value"),
        (lambda d: np.float32(1) if len(d) > 3 else np.float64(1), "type"),
        (lambda d: pa.table({"n": d}), "shape"),
        (lambda d: (x for x in d), "shape"),
        (lambda d: -0.0 if len(d) > 3 else 0.0, "value"),
        (lambda d: Fraction(1, len(d)), "value"),
    ],
)
def test_outputs_are_compared_by_type_shape_rows_and_value(show, what):
    (finding,) = dp.replay(show, HERE, THERE).findings
    assert finding.kind == FindingKind.OUTPUT
    assert f"differs in {what}" in finding.message


def test_messages_of_errors_and_what_they_carry_are_compared():
    def quotes(d):
        raise ValueError(f"bad: {len(d)}")

    def carries(d):
        try:
            raise KeyError(len(d))
        except KeyError as cause:
            raise ValueError("bad") from cause

    def notes(d):
        error = ValueError("bad")
        error.add_note(str(len(d)))
        raise error

    def holds(d):
        error = ValueError("bad")
        error.rows = len(d)
        raise error

    for leaks in (quotes, carries, notes, holds, lambda d: sys.exit(len(d))):
        assert FindingKind.EXCEPTION in kinds(leaks)


def test_warnings_and_prints_are_compared():
    def warns(d):
        warnings.warn(f"{len(d)} rows", stacklevel=1)

    assert kinds(warns) == {FindingKind.WARNING}
    assert kinds(lambda d: print(len(d))) == {FindingKind.PRINT}
    assert kinds(lambda d: os.write(2, b"x" * len(d)) and None) == {FindingKind.PRINT}
    assert kinds(lambda d: print("done")) == set()


def test_the_same_failure_on_both_sides_is_no_finding_but_is_told():
    def releases_first(d):
        COUNT.release(len(d))
        raise ZeroDivisionError

    found = dp.replay(releases_first, HERE, THERE)
    assert found.ok
    assert found.ended == "with builtins.ZeroDivisionError"
    assert "ZeroDivisionError" in str(found)
    assert kinds(lambda d: 1 / 0) == {FindingKind.CRASH}  # nothing was compared


def test_values_that_a_mechanism_refuses_on_one_side_only_are_found():
    laplace = dp.Laplace(epsilon=1, sensitivity=10)
    found = dp.replay(lambda d: laplace.release(sum(d)), [1.0], [1.0, float("nan")])
    assert {f.kind for f in found.findings} == {FindingKind.EXCEPTION}
    back = dp.replay(lambda d: laplace.release(sum(d)), [1.0, float("nan")], [1.0])
    assert FindingKind.EXCEPTION in {f.kind for f in back.findings}


def test_a_refusal_that_the_pipeline_hides_is_found_all_the_same():
    laplace = dp.Laplace(epsilon=1, sensitivity=10)

    def hides(d):
        try:
            return laplace.release(sum(d))
        except dp.errors.PrivateValueError:
            return 0.0

    assert FindingKind.EXCEPTION in kinds(hides, [1.0], [1.0, float("nan")])


def test_pipelines_that_do_not_do_the_same_twice_are_named():
    calls = []

    def remembers(d):
        calls.append(len(d))
        return len(calls)

    def in_a_thread(d):
        found = []
        worker = threading.Thread(target=lambda: found.append(COUNT.release(10**6 * len(d))))
        worker.start()
        worker.join()
        return found

    assert kinds(lambda d: random.random()) == {FindingKind.DETERMINISM}
    assert kinds(remembers, time_limit=None) == {FindingKind.DETERMINISM}
    assert kinds(lambda d: time.time_ns()) == {FindingKind.DETERMINISM}
    assert FindingKind.STARTED in kinds(in_a_thread)
    noisy = dp.Laplace(epsilon=1, sensitivity=100)
    assert kinds(lambda d: noisy.release(len(d) + random.random())) == {FindingKind.DETERMINISM}


def test_data_that_a_pipeline_alters_are_given_afresh_to_each_run():
    def eats(d):
        d.clear()
        return COUNT.release(len(d))

    assert dp.replay(eats, HERE, THERE).ok
    assert HERE == [3, 5, 9]


def test_outputs_that_a_pipeline_alters_are_replayed_as_they_were():
    def doubles(d):
        noisy = dp.Geometric(epsilon=1, sensitivity=1).release([len(d), 0])
        noisy *= 2
        return noisy

    assert dp.replay(doubles, HERE, THERE).ok


def test_pipelines_that_hang_die_or_fork_end_in_findings():
    def forks(d):
        os.fork()
        return COUNT.release(len(d))

    def asks(d):
        return input()

    def breaks(d):
        faulthandler.disable()  # which would print where it broke
        os.kill(os.getpid(), signal.SIGSEGV)

    hang = dp.replay(lambda d: time.sleep(60) if len(d) > 3 else 0, HERE, THERE, time_limit=0.5)
    (finding,) = hang.findings
    assert (finding.kind, finding.where) == (FindingKind.TIME, "on the neighbour")
    assert kinds(lambda d: os._exit(3)) == {FindingKind.CRASH}
    assert kinds(breaks) == {FindingKind.CRASH}
    assert kinds(forks) == {FindingKind.STARTED}
    assert dp.replay(asks, HERE, THERE).ended == "with builtins.EOFError"


def test_processes_that_a_pipeline_leaves_behind_are_ended(tmp_path):
    def leaves(d):
        child = os.fork()
        if child == 0:
            time.sleep(600)
        with (tmp_path / "children").open("a") as file:
            file.write(f"{child}\n")
        return 0

    assert kinds(leaves, time_limit=30) == {FindingKind.STARTED}
    for child in (tmp_path / "children").read_text().split():
        deadline = time.monotonic() + 10
        while _alive(int(child)) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not _alive(int(child))


def _alive(process):
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_noise_drawn_by_hand_is_a_finding():
    law = LaplaceLaw(Fraction(3))
    assert FindingKind.NOISE in kinds(lambda d: len(d) + noise(law).one())
    assert FindingKind.NOISE in kinds(lambda d: len(d) + int(noise(law).many(1)[0]))


def test_what_is_remembered_between_runs_hides_nothing():
    tables = {}

    @functools.cache
    def highest(name):
        return max(tables[name])

    def remembers(d):
        tables["a"] = d
        return dp.Laplace(epsilon=1, sensitivity=highest("a")).release(sum(d))

    assert FindingKind.PARAMETERS in kinds(remembers)


def test_code_handed_to_a_mechanism_counts_with_what_it_holds():
    def predicate(d):
        middle = sum(d) / len(d)
        return dp.RandomizedResponse(epsilon=1, predicate=lambda r: r > middle).release(d)

    def blocks(d):
        most = max(d)
        mechanism = dp.SubsampleAggregate(
            epsilon=1,
            blocks=2,
            aggregate="median",
            bounds=(0, 1000),
            default=0,
            function=lambda block: most,
        )
        return mechanism.release(d)

    def after(d):
        inner = dp.Laplace(epsilon=1, sensitivity=10)
        return dp.post_process(inner, lambda y: y / len(d)).release(sum(d))

    assert kinds(predicate, [1, 2, 3, 4], [1, 2, 3, 400])
    assert FindingKind.PARAMETERS in kinds(blocks)
    assert kinds(after) == {FindingKind.OUTPUT}


class Name(str):
    __slots__ = ()


class Slotted:
    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value


@pytest.mark.parametrize(
    "hides",
    [
        lambda d: functools.partial(pow, max(d)),
        lambda d: Slotted(max(d)),
        lambda d: Slotted(max(d)).__init__,
        lambda d: Name(max(d)),
        lambda d: io.StringIO(str(max(d))),
        lambda d: np.polynomial.Polynomial([1, max(d)]),
        lambda d: pa.array([max(d)]),
        lambda d: pa.scalar(max(d)),
        lambda d: np.ma.MaskedArray([max(d)], mask=[True]),
        lambda d: lambda: max(d),
        lambda d: [max(d)].append,
    ],
)
def test_private_values_inside_objects_are_seen(hides):
    assert not dp.replay(hides, HERE, THERE).ok


def test_what_cannot_be_compared_is_said():
    assert kinds(lambda d: threading.Lock()) == {FindingKind.UNKNOWN}


def test_objects_that_hold_themselves_end():
    def cycles(d):
        loop = []
        loop += [loop, loop, loop]
        return loop

    assert dp.replay(cycles, HERE, THERE).ok
    assert dp.replay(lambda d: object(), HERE, THERE).ok


def test_candidates_may_be_any_objects():
    def chooses(d):
        models = [Slotted(1), Slotted(2)]
        chosen = dp.Exponential(epsilon=1, sensitivity=1).choose(models, [len(d), 0])
        return models.index(chosen)

    assert dp.replay(chooses, HERE, THERE).ok


def test_coroutines_are_not_taken_for_answers():
    async def later(d):
        return sum(d)

    assert kinds(later) == {FindingKind.CRASH}


def test_streams_behave_like_streams():
    def writes(d):
        sys.stdout.buffer.write(b"x")
        sys.stdout.reconfigure(line_buffering=True)
        print("y", file=sys.stderr if len(d) > 3 else sys.stdout)
        return COUNT.release(len(d))

    assert kinds(writes) == {FindingKind.PRINT}


def test_whose_budget_and_which_door_must_not_depend_on_data():
    def population(made):
        d, ledger = made
        name = "people" if len(d) > 3 else "staff"
        return dp.Gate(ledger, name, "ana").release(COUNT, lambda: len(d), purpose="n").value

    def fails(made):
        d, ledger = made
        door = dp.Gate(ledger, "people", "ana").open(COUNT.loss, purpose="n")
        try:
            with door:
                if len(d) > 3:
                    raise ValueError
        except ValueError:
            pass
        return COUNT.release(len(d))

    def both(data, ledger):
        for name in ("people", "staff"):
            ledger.open(name, dp.Budget(dp.PureDP(3)), who="owner")
        return data, ledger

    assert not dp.replay(population, HERE, THERE, factory=both).ok
    assert not dp.replay(fails, HERE, THERE, factory=both).ok


def test_answers_of_a_gate_can_be_shown():
    def shows(made):
        d, gate = made
        answer = gate.release(COUNT, lambda: len(d), purpose="n")
        print(answer)
        return f"{answer}"

    found = dp.replay(shows, HERE, THERE, factory=session)
    assert found.ok, str(found)


def test_a_rounding_too_much_is_told_from_a_wrong_sensitivity():
    tenth = dp.Laplace(epsilon=1, sensitivity=0.1)
    (finding,) = dp.replay(lambda d: tenth.release(sum(d)), [], [0.1]).findings
    assert "rounding" in finding.message


def test_numbers_beyond_floats_are_compared_too():
    count = dp.Geometric(epsilon=1, sensitivity=1)
    assert kinds(lambda d: count.release(10**350 * len(d))) == {FindingKind.SENSITIVITY}


def test_the_caller_s_output_is_not_repeated(tmp_path):
    text = (
        "import deniable as dp\nprint('header')\n"
        "dp.replay(lambda d: 1, [1], [1, 2])\nprint('end')\n"
    )
    ran = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["header", "end"]


def test_a_mechanism_of_ones_own_is_seen_through():
    @dataclass(frozen=True)
    class Mine:
        loss: dp.Loss
        factor: int

        def release(self, value):
            return COUNT.release(self.factor * value) + 1

    def bare(factor):
        mine = Mine(dp.losses.PureLoss(bound=Fraction(1)), factor)
        return lambda d: mine.release(len(d))

    assert kinds(bare(1)) == set()
    assert kinds(bare(1000)) == {FindingKind.SENSITIVITY}


def session(data, ledger):
    ledger.open("people", dp.Budget(dp.PureDP(3)), who="owner")
    return data, dp.Gate(ledger, "people", "analyst")


def test_sessions_are_replayed_with_a_fresh_ledger_each_time():
    def asks_three_times(made):
        d, gate = made
        return [
            gate.release(COUNT, lambda: len(d), purpose="n", question={"number": number})
            for number in (1, 2, 1)  # the third is a repeat, and free
        ]

    found = dp.replay(asks_three_times, HERE, THERE, factory=session)
    assert found.ok, str(found)
    assert found.releases == 2


def test_a_ledger_that_is_not_fresh_is_told_from_a_leak(tmp_path):
    """It is refused where it was opened before; where a run opens it, runs differ."""

    def asked(ledger, d):
        ledger.open("people", dp.Budget(dp.PureDP(3)), who="owner")
        gate = dp.Gate(ledger, "people", "analyst")
        return gate.release(COUNT, lambda: len(d), purpose="n", question={"q": 1}).value

    def again(d):
        with dp.Ledger(tmp_path / "ledger.db", key=bytes(32)) as ledger:
            return asked(ledger, d)

    with dp.Ledger(key=bytes(32)) as outside:
        found = dp.replay(functools.partial(asked, outside), HERE, THERE, time_limit=None)
    assert {finding.kind for finding in found.findings} == {FindingKind.CRASH}
    assert "cannot be compared" in str(found)
    found = dp.replay(again, HERE, THERE, time_limit=None)
    assert {finding.kind for finding in found.findings} == {FindingKind.DETERMINISM}


def test_doors_and_what_they_record_are_compared():
    loss = dp.repeat(COUNT.loss, 2)

    def records_too_much(made):
        d, gate = made
        with gate.open(loss, purpose="two") as door:
            drawn = door.draw(COUNT, lambda: len(d))
            door.close([drawn, len(d)])

    def price_by_data(made):
        d, gate = made
        with gate.open(dp.repeat(COUNT.loss, 1 + len(d) % 2), purpose="some") as door:
            return door.close(0).value

    def reads_fail(made):
        d, gate = made
        with gate.open(loss, purpose="two") as door:
            return door.close(door.draw(COUNT, lambda: len(d) // (len(d) - 4))).value

    assert kinds(records_too_much, factory=session) == {FindingKind.OUTPUT}
    assert kinds(price_by_data, factory=session) == {FindingKind.PRICE}
    assert kinds(reads_fail, factory=session) & {FindingKind.EXCEPTION, FindingKind.CONTROL_FLOW}


def test_streams_replay_their_answers_and_their_end():
    def until_the_end(d):
        stream = dp.SparseVector(epsilon=1, threshold=2, sensitivity=1, positives=2).open()
        answers = []
        for number in range(40):
            try:
                answers.append(bool(stream.ask(len(d) - number % 3)))
            except dp.errors.StreamExhaustedError:
                answers.append(None)
        return answers, stream.positives_left

    assert dp.replay(until_the_end, HERE, THERE).ok
    assert kinds(lambda d: until_the_end(d * 2)) == {FindingKind.SENSITIVITY}


def test_a_broken_promise_of_monotone_values_is_found():
    def both_ways(d):
        stream = dp.SparseVector(epsilon=1, threshold=50, sensitivity=1, monotone=True).open()
        return [bool(stream.ask(value)) for value in (len(d), -len(d))]

    def scores(d):
        mechanism = dp.Exponential(epsilon=1, sensitivity=1, monotone=True)
        return mechanism.choose("ab", [len(d), -len(d)])

    assert kinds(both_ways) == {FindingKind.SENSITIVITY}
    assert kinds(scores) == {FindingKind.SENSITIVITY}


def test_listening_is_off_by_default_and_heard_in_one_context_only():
    heard = []
    elsewhere = threading.Thread(target=lambda: heard.append(COUNT.release(10**6)))

    def during(d):
        elsewhere.start()
        elsewhere.join()
        return COUNT.release(len(d))

    found = dp.replay(during, HERE, THERE, time_limit=None)
    assert found.releases == 1  # the other thread's release was made, and is nobody's business
    assert abs(heard[0] - 10**6) < 10**5
    assert sparse_vector.noise(LaplaceLaw(Fraction(1))).one() is not None


def test_reports_come_as_text_json_and_html(tmp_path):
    found = dp.replay(lambda d: {"<b>": len(d)}, HERE, THERE)
    assert "1 finding" in str(found)
    told = json.loads(found.to_json())
    assert (told["good"], told["rows"][0]["what"]) == (False, "output")
    page = found.to_html()
    assert page.startswith("<!doctype html>")
    assert "<b>" not in page
    for name, start in (("r.html", "<!doctype"), ("r.json", "{"), ("r.txt", "Replay")):
        assert found.save(tmp_path / name).read_text().startswith(start)


def test_no_private_value_stands_in_a_report():
    secret = 987654321
    found = dp.replay(lambda d: (sum(d), COUNT.release(sum(d))), [1], [1, secret])
    assert str(secret) not in found.to_json().replace("9.87654e+08", "")
    keys = dp.replay(lambda d: {key: key for key in d}, ["ann"], ["ann", "zelda"])
    assert "zelda" not in keys.to_json()


@pytest.mark.parametrize("bad", [0, -1, float("nan"), 1e9, "x"])
def test_bad_time_limits_are_refused(bad):
    with pytest.raises(dp.ParameterError, match="time_limit"):
        dp.replay(len, HERE, THERE, time_limit=bad)


def test_what_cannot_be_called_is_refused():
    with pytest.raises(dp.errors.ParameterTypeError, match="pipeline"):
        dp.replay("len", HERE, THERE)
    with pytest.raises(dp.errors.ParameterTypeError, match="factory"):
        dp.replay(len, HERE, THERE, factory=3)


WARDS = pa.table({"ward": ["A"] * 30 + ["B"] * 12})


def clinic(ledger):
    table = dp.PrivateTable(
        WARDS, unit=dp.ROW, population="clinic/visit", keys={"ward": ["A", "B"]}
    )
    return dp.Session({"visits": table}, budget=dp.PureDP(1), ledger=ledger)


@pytest.mark.parametrize("time_limit", [None, 60])
def test_what_was_opened_outside_is_not_replayed(time_limit):
    """A finding says how far values moved: of an open stream, any count less another, for free."""
    with clinic(dp.Ledger(key=bytes(32))) as session:
        with dp.synthesis.answer_online(
            session, "visits", queries=10**9, epsilon=0.01, updates=1
        ) as desk:
            for outside in (
                lambda ward: desk.answer({"ward": ward}).value,
                lambda ward: session.sql(
                    f"SELECT COUNT(*) AS n FROM visits WHERE ward = '{ward}'", epsilon=0.01
                ),
                lambda _: session.remaining,
            ):
                found = dp.replay(outside, "A", "B", time_limit=time_limit)
                assert found.releases == 0
                (crash,) = [each for each in found.findings if each.kind == FindingKind.CRASH]
                assert "factory=" in crash.message
                assert all(each.moved is None for each in found.findings)
            assert desk.answer({"ward": "A"}).verified  # nothing was used up
        assert session.remaining["clinic/visit"].releases == 1


def test_a_session_of_the_replay_is_taken_whoever_makes_its_ledger():
    def asked(session):
        return session.sql("SELECT COUNT(*) AS n FROM visits", epsilon=0.1)["n"]

    assert dp.replay(asked, 0, 0, factory=lambda _, ledger: clinic(ledger)).releases == 1
    assert dp.replay(lambda _: asked(clinic(dp.Ledger(key=bytes(32)))), 0, 0).releases == 1
