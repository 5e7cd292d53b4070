"""Thousands of random questions: answered, or refused by an error of ours, and nothing else.

A breach names the seed of its question: `python tests/fuzz/run.py --seed N` asks it again.
"""

import sys
from functools import partial

import numpy as np
import pyarrow as pa
import pytest

import deniable as dp
from deniable.engines.duckdb import DuckDB
from deniable.engines.shadow import Shadow
from deniable.errors import QueryError
from deniable.mechanisms.joint import JointNoise
from deniable.query.read.compile import compile_resolved
from deniable.query.read.values.value import cast
from fuzz import grammar, hostile, oracle
from fuzz.oracle import Breach
from fuzz.run import BATCH, run

LEAST_ANSWERED = 0.4
FEW = 200


def checked(first: int, count: int) -> None:
    found = run(first, count)
    assert found.answered >= LEAST_ANSWERED * count, f"{found.answered} of {count} are answered"
    assert found.near_by_chance, "no number was held against its exact value"
    assert found.replayed


@pytest.mark.parametrize("first", range(0, FEW, BATCH))
def test_two_hundred_questions(first):
    checked(first, BATCH)


@pytest.mark.soak
@pytest.mark.parametrize("first", range(FEW, FEW + 22_000, 10 * BATCH))
def test_twenty_two_thousand_questions(first):
    checked(first, 10 * BATCH)


def test_a_question_is_made_from_its_number_alone():
    made = [grammar.query(hostile.world(7), 141) for _ in range(2)]
    assert made[0] == made[1]
    texts = {grammar.query(hostile.world(seed // 20), seed).sql for seed in range(200)}
    assert len(texts) > 190


@pytest.mark.parametrize("name", hostile.NAMES)
def test_hostile_names_are_opened_or_refused(name):
    """Also as the unit's."""
    for unit in ("plain", name):
        columns = tuple(hostile.Column(each, "integer", pa.int64()) for each in ("plain", name))
        table = hostile.Table("t", columns, (), unit, "people")
        world = hostile.World(0, (table,), dp.Budget(dp.PureDP(1)), {"epsilon": 0.1})
        question = f"SELECT COUNT(DISTINCT {grammar.quoted(unit)}) AS n FROM t"
        answer = oracle.asked(partial(asked_of, world, question))
        assert isinstance(answer, dp.DeniableError) or answer.columns == ("n",)


def asked_of(world, question):
    with world.session() as session:
        return session.sql(question, **world.spend)


def without_noise(monkeypatch):
    monkeypatch.setattr(JointNoise, "release", lambda self, value: np.array(value, dtype=object))


def without_noise_now_and_then(monkeypatch):
    right = JointNoise.release

    def forgetful(self, value):
        bare = sum(map(int, np.array(value, dtype=object).flat)) % 3 == 0
        return np.array(value, dtype=object) if bare else right(self, value)

    monkeypatch.setattr(JointNoise, "release", forgetful)


def without_guards(monkeypatch):
    """Casts fail, and nobody tries them first, so that a value ends the question."""
    for name, module in sys.modules.items():
        if name.startswith("deniable.query") and hasattr(module, "try_cast"):
            monkeypatch.setattr(module, "try_cast", cast)
        if name.startswith("deniable.query") and hasattr(module, "finished"):
            monkeypatch.setattr(module, "finished", lambda value: value.sql)
    monkeypatch.setattr(Shadow, "check", lambda shadow, steps: None)


def with_a_message_that_quotes(monkeypatch):
    """A compiler that says what it read when it refuses."""

    def quoting(*given):
        try:
            return compile_resolved(*given)
        except QueryError as error:
            raise QueryError(f"{error} near {hostile.MARK}") from None

    monkeypatch.setattr("deniable.query.plan.planner.compile_resolved", quoting)


def with_an_error_of_another_kind(monkeypatch):
    def broken(engine, steps):
        raise KeyError("a column")

    monkeypatch.setattr(DuckDB, "check", broken)


def with_a_budget_that_never_ends(monkeypatch):
    """Everything is admitted, so that an exhausted ledger goes on answering."""
    monkeypatch.setattr("deniable.ledger.filters.Budget.admits", lambda budget, totals: True)


@pytest.mark.parametrize(
    ("plant", "told"),
    [
        (without_noise, "as good as exact|told apart"),
        (without_noise_now_and_then, "as good as exact|told apart"),
        (without_guards, "depends on data"),
        (with_a_message_that_quotes, "is shown in a message"),
        (with_an_error_of_another_kind, "ended with KeyError"),
        (with_a_budget_that_never_ends, "exhausted"),
    ],
)
def test_a_planted_error_is_found(plant, told, monkeypatch):
    plant(monkeypatch)
    with pytest.raises(Breach, match=told):
        run(0, BATCH)


def test_half_the_noise_is_found_on_a_neighbour(monkeypatch):
    """A bound that is half of what one unit adds: only replays show it."""
    from deniable.query.plan.plan import Plan

    right = Plan.bound

    def half_in_the_price(plan, *, l2):
        priced = sys._getframe(1).f_globals["__name__"] == "deniable.query.price.price"
        return right(plan, l2=l2) // (2 if priced else 1)

    monkeypatch.setattr(Plan, "bound", half_in_the_price)
    monkeypatch.setattr("fuzz.run.REPLAYED", 1)
    with pytest.raises(Breach, match="told apart"):
        run(0, BATCH)
