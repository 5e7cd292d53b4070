"""Tables that several steps of a question share are made of the tables that those steps name."""

import contextlib

import pytest

from deniable.engines.base import Step
from deniable.engines.duckdb import DuckDB
from deniable.engines.statements import Statements

ROWS = "deniable_rows", "deniable_counts", "deniable_heavy"
COUNTS = "SELECT u, COUNT(*) AS n FROM deniable_rows GROUP BY u"
HEAVY = "SELECT u FROM deniable_counts WHERE n > 1"


def step(*tables):
    """A step that reads the last of some of these tables: rows of units, their number, the heavy"""
    return Step(f"SELECT u FROM {ROWS[len(tables) - 1]}", "", dict(zip(ROWS, tables, strict=False)))


def rows(*units):
    return "SELECT * FROM (VALUES " + ", ".join(f"({unit})" for unit in units) + ") AS v(u)"


@pytest.fixture
def snapshot():
    with contextlib.closing(DuckDB()) as engine, engine.snapshot() as snapshot:
        yield snapshot


def test_a_table_is_made_anew_after_one_that_it_is_made_of(snapshot):
    """A step of rows alone made others; what was counted of the first is not counted of these."""
    before, after = rows(1, 1, 2), rows(1, 2, 2)
    assert snapshot.run(step(before, COUNTS, HEAVY)) == [(1,)]
    snapshot.run(step(after))
    assert snapshot.run(step(after, COUNTS, HEAVY)) == [(2,)]


def test_a_table_is_made_anew_when_one_between_was(snapshot):
    some = rows(1, 1, 2)
    assert snapshot.run(step(some, COUNTS, HEAVY)) == [(1,)]
    other = COUNTS.replace("COUNT(*)", "COUNT(*) + u - 1")
    assert sorted(snapshot.run(step(some, other))) == [(1,), (2,)]
    assert sorted(snapshot.run(step(some, other, HEAVY))) == [(1,), (2,)]


def test_what_stays_as_it_is_is_made_once(snapshot, monkeypatch):
    made = []
    make = Statements._make
    monkeypatch.setattr(Statements, "_make", lambda self, name, *rest, **more: (
        made.append(name), make(self, name, *rest, **more)))  # fmt: skip
    some = rows(1, 1, 2)
    for _ in range(2):
        snapshot.run(step(some, COUNTS, HEAVY))
        snapshot.run(step(some, COUNTS))
        snapshot.run(step(some, COUNTS, HEAVY.replace("1", "0")))
    assert made == [*ROWS, ROWS[2], ROWS[2], ROWS[2]]
