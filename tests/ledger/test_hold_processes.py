"""Real processes with questions in two parts: races, and SIGKILLs around the entry that settles."""

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
FIRST, REST, SECOND = 10**15, 5 * 10**15, 2 * 10**15  # units of 1e-18: ε = 0.001, 0.005, 0.002

# Asks in two parts over and over, and says on its standard output what it has. Odd rounds have a
# second part. It kills itself at a point that is named, in the last round, or is killed.
ASKER = """
import os, signal, sys
import deniable as dp
from deniable.ledger.reservation import Second
where, population, point, last_round = *sys.argv[1:4], int(sys.argv[4])
ledger = dp.Ledger(where)
gate = dp.Gate(ledger, population, "asker")
first = dp.Geometric(epsilon=0.001, sensitivity=1)
second = dp.Geometric(epsilon=0.002, sensitivity=1)
append, rounds = ledger.store.append, 0

def die(here):
    if rounds == last_round and here == point:
        os.kill(os.getpid(), signal.SIGKILL)

def watched(name, decide):
    def dying(last, view):
        row = decide(last, view)
        die("in " + str(row.kind))  # inside the transaction, before it commits
        return row
    row = append(name, dying)
    die("after " + str(row.kind))
    return row

ledger.store.append = watched

def make(door):
    die("before the draw")
    value = door.draw(first, lambda: 1234)
    die("after the draw")
    return value

def then(value):
    die("deciding")
    if rounds % 2:
        return Second(second.loss, {"second": rounds}, "second")

while rounds < 200:
    answer, door = gate.answer_in_two(
        first.loss, dp.losses.PureLoss(bound=0.005), {"first": rounds}, make, then, purpose="first"
    )
    print("first", answer.number, answer.value, answer.head, flush=True)
    if door is not None:
        die("with the second door")
        with door:
            other = door.close(door.draw(second, lambda: 99))
        print("second", other.number, other.value, other.head, flush=True)
    rounds += 1
"""

# Waits at a file, asks once in two parts, holds until another file is there, and lets go.
HOLDER = """
import sys, time
from pathlib import Path
import deniable as dp
where, population, folder, name = sys.argv[1:]
folder = Path(folder)
count = dp.Geometric(epsilon=0.1, sensitivity=1)
gate = dp.Gate(dp.Ledger(where), population, name)
(folder / f"ready {name}").touch()
while not (folder / "go").exists():
    time.sleep(0.001)

def make(door):
    print("passed", flush=True)
    while not (folder / "let go").exists():
        time.sleep(0.01)
    return door.draw(count, lambda: 5)

try:
    gate.answer_in_two(
        count.loss,
        dp.losses.PureLoss(bound=0.5),
        {"who": name},
        make,
        lambda _: None,
        purpose="hold",
    )
    print("settled", flush=True)
except dp.BudgetError:
    print("refused", flush=True)
"""


def start(script, *arguments):
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(SRC)},
    )  # fmt: skip


@pytest.fixture(params=["sqlite", "postgres"])
def where(request, tmp_path):
    if request.param == "sqlite":
        return str(tmp_path / "ledger.db")
    return request.getfixturevalue("postgres").url


def test_two_processes_and_a_budget_for_one(where, request, tmp_path):
    """Exactly one passes; the other does once that one has let go."""
    population = f"hold/{request.node.name}"
    with Ledger(where) as ledger:
        ledger.open(population, Budget(dp.PureDP(1)), who="owner")
        pair = [start(HOLDER, where, population, tmp_path, name) for name in ("one", "two")]
        while len(list(tmp_path.glob("ready *"))) < 2:
            assert all(each.poll() is None for each in pair), [each.communicate() for each in pair]
            time.sleep(0.01)
        (tmp_path / "go").touch()
        said = [each.stdout.readline().strip() for each in pair]
        assert sorted(said) == ["passed", "refused"]
        assert ledger.balance(population).totals[0].epsilon == 6 * 10**17
        (tmp_path / "let go").touch()
        for each in pair:
            each.communicate(timeout=120)
            assert each.returncode == 0
        assert ledger.balance(population).totals[0].epsilon == 10**17
        later = start(HOLDER, where, population, tmp_path, "three")
        out, error = later.communicate(timeout=120)
        assert out.split() == ["passed", "settled"], error
        assert ledger.balance(population).totals[0].epsilon == 2 * 10**17
        verify(ledger, population)


def expected(rows):
    """What is spent, counted from what the entries say: settled or not."""
    settled = {row.refers: row for row in rows if row.kind == EntryKind.SETTLE}
    total = 0
    for row in rows:
        if row.kind == EntryKind.RESERVE:
            total += FIRST + (0 if row.number in settled else REST)
        elif row.kind == EntryKind.SETTLE and "loss" in row.data:
            total += SECOND
    return total, len([row for row in rows if row.kind == EntryKind.RESERVE]) - len(settled)


def check_after_death(where, population, printed):
    """Nothing was released that is not recorded and paid; only what was settled was let go."""
    with Ledger(where) as ledger:
        found = verify(ledger, population, head=printed[-1][3] if printed else None)
        rows = list(ledger.history(population))
        answers = {
            row.refers: row for row in rows if row.kind in (EntryKind.ANSWER, EntryKind.SETTLE)
        }
        for what, number, value, _ in printed:
            row = answers[int(number)]
            assert row.data["answer"] == json.loads(value)
            assert row.kind == (EntryKind.SETTLE if what == "first" else EntryKind.ANSWER)
        balance = ledger.balance(population)
        assert (balance.totals[0].epsilon, balance.holds) == expected(rows)
        assert balance.holds <= 1  # the one that was under way
        again = ledger.reserve(
            population, dp.losses.PureLoss(bound=0.01), who="next", purpose="goes on"
        )
        ledger.answer(again, 1)
        after = ledger.balance(population)
        assert after.totals[0].epsilon == balance.totals[0].epsilon + 10**16
        assert after.holds == balance.holds  # for ever
        assert verify(ledger, population).entries == found.entries + 2
        return rows, balance


def one_death(where, population, point, *, rounds=0, delay=None):
    with Ledger(where) as ledger:
        ledger.open(population, Budget(dp.PureDP(1)), who="owner")
    process = start(ASKER, where, population, point, rounds)
    lines = []
    if delay is not None:
        lines = [process.stdout.readline()]  # it is running
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
    out, error = process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL, error
    printed = [line.split() for line in [*lines, *out.splitlines()]]
    return check_after_death(where, population, [each for each in printed if len(each) == 4])


# Where it dies: whether that round's price is reserved, and whether it is settled.
POINTS = {
    "in reserve": (False, False),
    "after reserve": (True, False),
    "before the draw": (True, False),
    "after the draw": (True, False),
    "deciding": (True, False),
    "in settle": (True, False),
    "after settle": (True, True),
}


def killed_at(where, population, point, rounds):
    reserved, settled = POINTS[point]
    _, balance = one_death(where, population, point, rounds=rounds)
    whole = rounds * FIRST + rounds // 2 * SECOND
    second = SECOND if rounds % 2 else 0
    whole += FIRST + (second if settled else REST) if reserved else 0
    assert balance.totals[0].epsilon == whole
    assert balance.holds == (1 if reserved and not settled else 0)


@pytest.mark.parametrize("point", POINTS)
def test_killed_at_a_point(where, request, point):
    """Both parts stay charged, until the entry that settles; from then on what it says."""
    killed_at(where, f"hold/{request.node.name}", point, rounds=1)


def test_killed_after_letting_go(where, request):
    killed_at(where, f"hold/{request.node.name}", "after settle", rounds=2)


@pytest.mark.parametrize("point", ["with the second door", "in answer"])
def test_killed_with_the_second_door(where, request, point):
    """The second part is a reservation as any: it stays charged, and was not answered."""
    rows, balance = one_death(where, f"hold/{request.node.name}", point, rounds=1)
    assert rows[-1].kind == EntryKind.SETTLE
    assert balance.totals[0].epsilon == 2 * FIRST + SECOND
    assert balance.holds == 0


def test_killed_at_any_time(where, request):
    delay = random.Random(7).random() * 0.2
    one_death(where, f"hold/{request.node.name}", "never", delay=delay)


@pytest.mark.soak
@pytest.mark.parametrize("number", range(40))
def test_killed_many_times(where, request, number):
    name = f"soak/{request.node.name}"
    for point in POINTS:
        killed_at(where, f"{name}/{point}", point, rounds=number % 4)
    one_death(where, name, "never", delay=random.Random(number).random())
