"""Real processes that race for a budget, and real SIGKILLs in the middle of a release."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import deniable as dp
from deniable.ledger.entries import EntryKind
from deniable.ledger.filters import Budget
from deniable.ledger.ledger import Ledger
from deniable.ledger.verify import verify

pytestmark = pytest.mark.slow

SRC = Path(dp.__file__).parents[1]
HUNDREDTH = dp.losses.PureLoss(bound=0.01)

RACER = """
import sys
import deniable as dp
ledger = dp.Ledger(sys.argv[1])
won = 0
while True:
    try:
        ledger.reserve(sys.argv[2], dp.losses.PureLoss(bound=0.01), who="racer", purpose="race")
    except dp.BudgetError:
        break
    won += 1
print(won)
"""

# Releases over and over; what it has released it says on its standard output, entry by entry. It
# kills itself at a point that is named, or is killed by the test at any time.
RELEASER = """
import os, signal, sys
import deniable as dp
from deniable.ledger import ledger as module
where, population, point, last_round = *sys.argv[1:4], int(sys.argv[4])

def die():
    os.kill(os.getpid(), signal.SIGKILL)

ledger = dp.Ledger(where)
gate = dp.Gate(ledger, population, "releaser")
mechanism = dp.Geometric(epsilon=0.001, sensitivity=1)
append, rounds = ledger.store.append, 0

def watched(name, decide):
    def dying(last, referring):
        row = decide(last, referring)
        if rounds == last_round and str(row.kind) == point:
            die()  # inside the transaction, before it commits
        return row
    return append(name, dying)

ledger.store.append = watched

def read():
    if rounds == last_round and point == "between":
        die()
    return 1234

while rounds < 500:
    answer = gate.release(mechanism, read, purpose="kill")
    print(answer.number, answer.value, answer.head, flush=True)
    rounds += 1
"""


def environment():
    return {**os.environ, "PYTHONPATH": str(SRC)}


def start(script, *arguments):
    return subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(),
    )  # fmt: skip


@pytest.fixture(params=["sqlite", "postgres"])
def where(request, tmp_path):
    if request.param == "sqlite":
        return str(tmp_path / "ledger.db")
    return request.getfixturevalue("postgres").url


def test_sixteen_processes_race_for_a_budget(where, request):
    population = f"race/{request.node.name}"
    with Ledger(where) as ledger:
        ledger.open(population, Budget(dp.PureDP(1)), who="owner")
        racers = [start(RACER, where, population) for _ in range(16)]
        outputs = [racer.communicate(timeout=300) for racer in racers]
        assert all(racer.returncode == 0 for racer in racers), outputs
        assert sum(int(out) for out, _ in outputs) == 100
        found = verify(ledger, population)
        assert found.reservations == 100
        assert ledger.balance(population).remaining == {"epsilon": 0}


def check_after_death(where, population, printed):
    """Nothing was released that is not recorded and paid for, and the chain holds."""
    with Ledger(where) as ledger:
        last = printed[-1].split()[2] if printed else None
        found = verify(ledger, population, head=last)
        rows = list(ledger.history(population))
        answers = {row.refers: row.data["answer"] for row in rows if row.kind == EntryKind.ANSWER}
        for line in printed:
            number, value, _ = line.split()
            assert answers[int(number)] == json.loads(value)
        assert found.reservations >= len(printed)
        # At most the one release that was under way is spent without an answer that was seen.
        assert found.reservations <= len(printed) + 1
        spent = ledger.balance(population).totals[0].epsilon
        assert spent == found.reservations * 10**15
        ledger.answer(ledger.reserve(population, HUNDREDTH, who="next", purpose="goes on"), 1)


def one_death(where, population, point, *, rounds=3, delay=None):
    with Ledger(where) as ledger:
        ledger.open(population, Budget(dp.PureDP(1)), who="owner")
    process = start(RELEASER, where, population, point, str(rounds))
    if delay is not None:
        process.stdout.readline()  # it is running
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
    out, error = process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL, error
    printed = [line for line in out.splitlines() if len(line.split()) == 3]
    if delay is not None:  # the first line was read above
        with Ledger(where) as ledger:
            first = next(r for r in ledger.history(population) if r.kind == EntryKind.ANSWER)
        printed = [f"{first.refers} {first.data['answer']} {first.number}:{first.mac}", *printed]
    check_after_death(where, population, printed)


POINTS = ["reserve", "between", "answer"]


@pytest.mark.parametrize("rounds", range(5))
@pytest.mark.parametrize("point", POINTS)
def test_killed_at_a_point(where, request, point, rounds):
    """Before the reservation commits, between it and the answer, while the answer is attached."""
    one_death(where, f"kill/{request.node.name}", point, rounds=rounds)


@pytest.mark.parametrize("number", range(3))
def test_killed_at_any_time(where, request, number):
    one_death(where, f"kill/{request.node.name}", "any", delay=random.Random(number).random() * 0.2)


@pytest.mark.soak
@pytest.mark.parametrize("number", range(45))
def test_killed_three_hundred_times(where, request, number):
    name = f"soak/{request.node.name}"
    for point in POINTS:
        one_death(where, f"{name}/{point}", point, rounds=number)
    one_death(where, name, "any", delay=random.Random(number).random())


def test_postgres_restarted_mid_run(postgres, request):
    population = f"restart/{request.node.name}"
    with Ledger(postgres.url) as ledger:
        ledger.open(population, Budget(dp.PureDP(1)), who="owner")
        for _ in range(5):
            ledger.answer(ledger.reserve(population, HUNDREDTH, who="a", purpose="x"), 1)
        process = start(RELEASER, postgres.url, population, "never", "0")
        process.stdout.readline()
        postgres.stop(signal.SIGQUIT)  # at once, with recovery at the next start
        out, error = process.communicate(timeout=120)
        assert process.returncode == 1
        assert "LedgerError" in error
        printed = [line for line in out.splitlines() if len(line.split()) == 3]
        with pytest.raises(dp.LedgerError, match="nothing was released"):
            ledger.reserve(population, HUNDREDTH, who="a", purpose="x")
        postgres.start()
        found = verify(ledger, population, head=printed[-1].split()[2] if printed else None)
        assert found.reservations >= 6 + len(printed)
        ledger.answer(ledger.reserve(population, HUNDREDTH, who="a", purpose="x"), 1)
        verify(ledger, population)
