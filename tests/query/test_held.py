"""A question that estimates first holds all of its price from its first draw on."""

import contextlib
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import deniable as dp
from deniable.ledger.entries import EntryKind, state_of
from deniable.ledger.verify import verify
from deniable.release import Door

POPULATION = "clinic/patient"
QUESTION = "SELECT ward, COUNT(*) AS n, SUM(cost) AS s FROM visits GROUP BY ward"
BUDGETS = {
    "keys, profile": dp.ApproxDP(2.0, 1e-5),
    "rows, pure": dp.PureDP(2),
    "rows, ρ": dp.ZCDP(2),
}


def session(budget, **declared):
    made_up = np.random.default_rng(5)
    rows = pa.table(
        {
            "patient": made_up.integers(0, 800, 4000),
            "ward": made_up.choice(["A", "B", "C"], 4000),
            "cost": made_up.gamma(2.0, 30.0, 4000),
        }
    )
    table = dp.PrivateTable(
        rows, unit="patient", population=POPULATION, bounds={"cost": (0, 500)}, **declared
    )
    return dp.Session({"visits": table}, budget=budget, ledger=dp.Ledger(key=bytes(32)))


def asked(name, amount=1):
    """A session, and a question with that many estimates before it."""
    budget = BUDGETS[name]
    made = session(budget, **({} if "keys" in name else {"keys": {"ward": ["A", "B", "C"]}}))
    words = {"rho": amount} if isinstance(budget, dp.ZCDP) else {"epsilon": amount}
    return made, lambda: made.sql(QUESTION, **words)


def rival(ledger, taken):
    """Spend whatever is left, nearly."""
    for price in (0.5, 0.1, 0.01):
        with contextlib.suppress(dp.BudgetError):
            while True:
                ledger.reserve(
                    POPULATION, dp.losses.PureLoss(bound=price), who="rival", purpose="all"
                )
                taken.append(price)


@pytest.mark.parametrize("name", BUDGETS)
def test_nobody_takes_what_a_question_needs_once_it_has_begun(name, monkeypatch):
    made, ask = asked(name)
    ledger, taken, draw = made.parts.ledger, [], Door.draw

    def raced(door, mechanism, read):
        if not taken:
            rival(ledger, taken)
        return draw(door, mechanism, read)

    monkeypatch.setattr(Door, "draw", raced)
    answer = ask()
    assert taken
    assert len(answer["n"]) == 3
    assert not ledger.balance(POPULATION).holds
    kinds = [row.kind for row in ledger.history(POPULATION) if row.who == "analyst"]
    assert kinds.count(EntryKind.SETTLE) == (2 if "keys" in name else 1)
    assert kinds.count(EntryKind.RESERVE) == 1
    verify(ledger, POPULATION)
    made.close()


@pytest.mark.parametrize("name", BUDGETS)
def test_who_cannot_pay_all_of_it_pays_nothing(name):
    made, ask = asked(name)
    taken = []
    rival(made.parts.ledger, taken)
    before = made.parts.ledger.balance(POPULATION)
    with pytest.raises(dp.BudgetError, match="nothing was spent"):
        ask()
    assert made.parts.ledger.balance(POPULATION) == before
    made.close()


def test_what_is_known_already_is_skipped_and_let_go():
    """Groups and keys are shared by questions; the second one pays for what it lacks alone."""
    made, ask = asked("keys, profile")
    ask()
    ledger = made.parts.ledger
    before = ledger.balance(POPULATION).totals[0]
    other = made.sql(QUESTION.replace("SUM(cost)", "AVG(cost)"), epsilon=1)
    spent = ledger.balance(POPULATION).totals[0]
    assert spent.rho - before.rho == other.cost.rho * 10**18
    assert spent.delta == before.delta
    assert not state_of(ledger._last(POPULATION)).holds
    made.close()


def test_no_group_is_shown_and_the_rest_is_let_go():
    made, _ = asked("keys, profile")
    few = "SELECT FLOOR(cost * 1000) AS k, COUNT(*) AS n FROM visits GROUP BY FLOOR(cost * 1000)"
    answer = made.sql(few, epsilon=0.5)
    assert len(answer["n"]) == 0
    balance = made.parts.ledger.balance(POPULATION)
    assert balance.holds == 0
    assert balance.totals[0].rho == answer.cost.rho * 10**18
    made.close()


def test_a_price_beyond_one_loss_is_held_to_the_last_digit():
    """Keys, rows above what is declared and the answer are paid from what was held for them."""
    rows = pa.table({"u": range(60), "g": ["A", "a"] * 30})
    table = dp.PrivateTable(rows, unit="u", population="p", max_rows=1, max_groups=1)
    with dp.Session({"v": table}, budget=dp.ApproxDP(1e9, 1e-6), ledger=dp.Ledger()) as session:
        answer = session.sql("SELECT g, COUNT(*) AS n FROM v GROUP BY g", epsilon=1e7)
    assert dict(zip(answer["g"], answer["n"], strict=True)) == pytest.approx(
        {"A": 30, "a": 30}, abs=0.1
    )


@pytest.mark.parametrize("epsilon", [90, 640, 5_000])
def test_what_is_held_covers_parts_of_a_large_pure_price(epsilon):
    """Their ρ is as large as their ε, to the last digit: rounded up, it was larger."""
    made_up = np.random.default_rng(6)
    rows = pa.table({"patient": [f"p{n}" for n in range(300)], "cost": made_up.normal(5, 1, 300)})
    table = dp.PrivateTable(rows, unit="patient", population=POPULATION)
    with dp.Session({"v": table}, budget=dp.PureDP(10_000), ledger=dp.Ledger()) as asked_in:
        answer = asked_in.sql("SELECT AVG(cost) AS m, COUNT(*) AS n FROM v", epsilon=epsilon)
        assert answer.cost.epsilon == epsilon


@pytest.mark.parametrize("whole", [1, 40, 81, 160, 640, 10**6])
@pytest.mark.parametrize("parts", [2, 5, 16])
def test_parts_of_a_pure_price_have_no_more_rho_than_all_of_it(whole, parts):
    each = [dp.losses.PureLoss(bound=Fraction(whole, parts)).price.rho] * parts
    assert sum(each) <= dp.losses.PureLoss(bound=whole).price.rho <= whole
