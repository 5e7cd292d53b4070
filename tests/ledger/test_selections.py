"""Selections of keys: each takes its turn of what is left of δ, and none is refused for δ."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import pytest

import deniable as dp
from deniable.ledger.entries import EntryKind, make_row, state_of
from deniable.ledger.filters import Budget
from deniable.ledger.ledger import Ledger
from deniable.ledger.verify import verify
from deniable.mechanisms.keys import KeySelection
from deniable.privacy.losses.generic import ConcentratedLoss, only_delta
from deniable.privacy.price import GRID

SRC = Path(dp.__file__).parents[1]
COUNTED = KeySelection(rho=1e-6, delta=1e-9, max_groups=1).counted
KEPT = Fraction(5, 10**7)  # half of 1e-6


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
    name = f"keys/{request.node.name}"
    ledger.open(name, Budget(dp.ApproxDP(3, 1e-6)), who="owner")
    return name


def selected(ledger, population, *, who="ana", plan="keys", answer=True, loss=COUNTED):
    """The δ of one more selection."""
    found = ledger.reserve(
        population, loss, who=who, purpose="keys", question={"plan": plan}, selects=True
    )
    if answer:
        ledger.answer(found, [["A"]])
    return found.loss.price.delta


def test_the_series_of_the_specification_and_its_sum(ledger, population):
    given = [selected(ledger, population) for _ in range(30)]
    left = KEPT
    for k, delta in enumerate(given, start=1):
        assert delta == left // GRID // (k + 10) * GRID  # rounded down on the grid
        assert abs(delta - KEPT * 10 / ((k + 9) * (k + 10))) < 2 * GRID
        left -= delta
    assert sum(given) == KEPT - left < KEPT
    assert left >= KEPT * 10 / 40
    assert ledger.balance(population).remaining["delta"] == left
    assert verify(ledger, population).reservations == 30


def test_ten_thousand_selections_are_none_too_many():
    """By the same rule as the ledger's, without its entries."""
    left, least = KEPT // GRID, KEPT // GRID
    for k in range(1, 10_001):
        delta = left // (k + 10)
        assert delta >= 1
        left, least = left - delta, min(least, delta)
    assert left > 0
    assert least >= 49_000  # 5e-14: the threshold of the last one is below twice the first's


def test_a_failed_one_keeps_its_turn_and_others_take_from_the_same_delta(ledger, population):
    first = selected(ledger, population, answer=False)
    ledger.reserve(population, only_delta(KEPT / 2, COUNTED.relation), who="ana", purpose="other")
    second = selected(ledger, population)
    assert second == (KEPT - first - KEPT / 2) // GRID // 12 * GRID


def test_a_share_and_a_top_up(ledger, population):
    """What is less counts: the analyst's share; no top-up starts the series again."""
    small = Budget(dp.ApproxDP(1, 1e-7))
    ledger.share(population, "ana", small, who="owner", reason="a part")
    assert selected(ledger, population) == (Fraction(5, 10**8) // GRID) // 11 * GRID
    assert selected(ledger, population, who="bob") > Fraction(3, 10**8)
    ledger.top_up(population, Budget(dp.ApproxDP(1, 1e-6)), who="owner", reason="more")
    left = ledger.balance(population).totals[0].delta
    assert selected(ledger, population, who="bob") == (KEPT // GRID - left) // 13 * GRID
    verify(ledger, population)


def test_nothing_left_is_said_and_charged_to_nobody(ledger, population):
    ledger.reserve(population, only_delta(KEPT, COUNTED.relation), who="ana", purpose="all of it")
    before = ledger.balance(population).totals
    with pytest.raises(dp.BudgetError, match=r"takes δ.*keys=.*nothing was spent"):
        selected(ledger, population)
    with pytest.raises(dp.BudgetError, match="ε = "):  # ρ is what is missing here
        selected(ledger, population, loss=KeySelection(rho=9, delta=1e-9, max_groups=1).counted)
    assert ledger.balance(population).totals == before


def test_selections_are_found_by_their_question_whatever_they_cost(ledger, population):
    deltas = [selected(ledger, population) for _ in range(2)]
    selected(ledger, population, plan="other")
    selected(ledger, population, answer=False)
    found = ledger.selections(population, {"plan": "keys"})
    assert [loss.price.delta for loss, _ in found] == deltas
    assert [kept.value for _, kept in found] == [[["A"]]] * 2
    assert ledger.recorded(population, COUNTED, {"plan": "keys"}) is None  # no question of a price


def test_many_at_once_have_a_turn_each(ledger, population):
    with ThreadPoolExecutor(8) as pool:
        given = list(pool.map(lambda _: selected(ledger, population, answer=False), range(24)))
    assert len(set(given)) == 24
    assert sorted(given, reverse=True)[0] == KEPT // GRID // 11 * GRID
    assert sum(given) < KEPT
    assert state_of(list(ledger.history(population))[-1]).selections == 24
    verify(ledger, population)


def test_a_reservation_that_holds_takes_its_turn_too(ledger, population):
    found = ledger.reserve(
        population,
        COUNTED,
        who="ana",
        purpose="keys",
        question={"plan": "keys"},
        selects=True,
        hold=ConcentratedLoss(bound=0.01),
    )
    assert found.loss.price.delta == KEPT // GRID // 11 * GRID
    assert ledger.settle(found, [], None)[1] is None
    assert len(ledger.selections(population, {"plan": "keys"})) == 1
    verify(ledger, population)


def test_another_delta_than_its_turn_is_no_entry():
    """Planted: an entry under the right key, of a larger δ, that the filter would admit."""
    ledger = Ledger(key=bytes(32))
    ledger.open("p", Budget(dp.ApproxDP(3, 1e-6)), who="owner")
    selected(ledger, "p", answer=False)
    verify(ledger, "p")
    rows = list(ledger.history("p"))
    data = json.loads(rows[-1].body)
    larger = Fraction(4, 10**7)
    text = data["loss"].replace(f"{_slack(data['loss'])}", str(larger))
    assert text != data["loss"]
    data["loss"] = text
    data["state"]["tranches"][0]["totals"]["delta"] = int(larger / GRID)
    told = {name: data[name] for name in ("purpose", "loss", "resumable", "state", "selects")}
    forged = make_row(
        bytes(32),
        rows[0],
        population="p",
        kind=EntryKind.RESERVE,
        who="ana",
        data=told,
        question=None,
    )
    ledger.store._rows["p"][-1] = forged
    with pytest.raises(dp.errors.LedgerTamperedError, match="turn"):
        verify(ledger, "p")


def _slack(text):
    return next(
        part["loss"]["slack"]
        for part in _parts(json.loads(text))
        if "slack" in part.get("loss", {})
    )


def _parts(tree):
    if isinstance(tree, dict):
        yield tree
        for each in tree.values():
            yield from _parts(each)
    elif isinstance(tree, list):
        for each in tree:
            yield from _parts(each)


SELECTOR = """
import os, signal, sys
import deniable as dp
from deniable.mechanisms.keys import KeySelection
where, population = sys.argv[1:]
ledger = dp.Ledger(where)
counted = KeySelection(rho=1e-6, delta=1e-9, max_groups=1).counted
append, rounds = ledger.store.append, 0

def watched(name, decide):
    def dying(last, view):
        row = decide(last, view)
        if rounds == 3:
            os.kill(os.getpid(), signal.SIGKILL)  # its turn is decided, and never charged
        return row
    return append(name, dying)

ledger.store.append = watched
while True:
    found = ledger.reserve(
        population, counted, who="x", purpose="keys", question={"n": 1}, selects=True
    )
    print(int(found.loss.price.delta * 10**18), flush=True)
    rounds += 1
"""


def test_a_kill_inside_the_charge_takes_no_turn(tmp_path):
    where = tmp_path / "ledger.db"
    with Ledger(where) as ledger:
        ledger.open("p", Budget(dp.ApproxDP(3, 1e-6)), who="owner")
    run = [sys.executable, "-c", SELECTOR, str(where), "p"]
    printed = []
    for _ in range(2):
        done = subprocess.run(run, capture_output=True, text=True, cwd=SRC, check=False)
        assert done.returncode == -9
        printed += [int(each) for each in done.stdout.split()]
    with Ledger(where) as ledger:
        assert state_of(list(ledger.history("p"))[-1]).selections == len(printed) == 6
        assert ledger.balance("p").totals[0].delta == sum(printed)
        verify(ledger, "p")
