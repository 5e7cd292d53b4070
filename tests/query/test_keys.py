"""One person's groups: however many, none of them is held that was not selected."""

import gc
import tracemalloc

import duckdb
import pyarrow as pa
import pytest

import deniable as dp
from deniable.engines.duckdb import DuckDB
from deniable.query.read.catalogue import Catalogue, Options
from deniable.query.read.compile import compile_sql
from deniable.query.run.emit import totals_step

MANY = 2_100  # groups that everybody has, more than were once written into a statement
LONG = "y" * 600


def rows(groups, heavy):
    """Six units in each of so many groups, and one whose every row is a group of its own."""
    own = list(range(100_000, 100_000 + heavy))
    units = [10 + k for k in range(groups * 6)] + [1] * heavy
    return pa.table({"u": units, "x": [k // 6 for k in range(groups * 6)] + own})


def asked(question, groups, heavy):
    """The groups of an answer, and how much Python held at most."""
    table = dp.PrivateTable(
        rows(groups, heavy),
        unit="u",
        population="p",
        max_rows=1,
        max_groups=1,
        bounds={"x": (0, 4_000)},
        grid={"x": 1},
    )
    with dp.Session(
        {"t": table}, budget=dp.ApproxDP(1e9, 1e-6), ledger=dp.Ledger(key=bytes(32))
    ) as session:
        gc.collect()
        tracemalloc.start()
        try:
            answer = session.sql(question, epsilon=1e4)
            return len(answer), tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()


JOINED = "t AS a JOIN t AS b ON a.u = b.u"
QUESTIONS = {
    "more than two thousand": ("SELECT x AS g, COUNT(*) AS n FROM t GROUP BY 1", MANY, 40_000),
    "of a self join": (
        f"SELECT a.x * 100000 + b.x AS g, COUNT(*) AS n FROM {JOINED} GROUP BY 1",
        50,
        200,
    ),
    "of long texts": (
        f"SELECT CONCAT(CAST(x AS VARCHAR), CASE WHEN x > 4 THEN '{LONG}' ELSE '' END, "
        f"CASE WHEN x > 4 THEN '{LONG}' ELSE '' END) AS g, COUNT(*) AS n FROM t GROUP BY 1",
        10,
        20_000,
    ),
    "with cells": (
        "SELECT CASE WHEN x < 10 THEN 1 WHEN x < 99 THEN -9223372036854775807 - 1 ELSE x END AS g, "
        "MEDIAN(x) AS m FROM t GROUP BY 1",
        90,
        2_000,
    ),
    "of two columns": (
        f"SELECT a.x AS g, b.x AS h, COUNT(*) AS n FROM {JOINED} "
        "WHERE a.x < 100000 OR a.x <> b.x GROUP BY 1, 2",
        60,
        200,
    ),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_what_python_holds_does_not_follow_one_persons_groups(name):
    question, groups, heavy = QUESTIONS[name]
    found, before = asked(question, groups, 1)
    same, after = asked(question, groups, heavy)
    assert found == same > 0
    assert after < before + 1_000_000


def test_a_unit_in_every_pair_of_selected_values_adds_nothing_to_what_is_held():
    """Columns are not looked at one by one: a person may have all their combinations."""
    common = [(10 + n, n // 6, n // 6) for n in range(100 * 6)]
    held = []
    for mixed in ([], [(1, a, b) for a in range(100) for b in range(100)]):
        columns = zip(*(common + mixed), strict=True)
        table = dp.PrivateTable(
            pa.table(dict(zip("uab", map(list, columns), strict=True))),
            unit="u",
            population="p",
            max_rows=1,
            max_groups=1,
        )
        with dp.Session(
            {"t": table}, budget=dp.ApproxDP(1e9, 1e-6), ledger=dp.Ledger(key=bytes(32))
        ) as session:
            gc.collect()
            tracemalloc.start()
            found = session.sql("SELECT a, b, COUNT(*) AS n FROM t GROUP BY a, b", epsilon=1e4)
            held.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
            assert len(found) in {100, 101}  # one group of hers may be chosen
    assert held[1] < held[0] + 300_000


@pytest.mark.parametrize("keys", [{"s": ["A", "B"]}, {"s": ["A", None]}, {}])
@pytest.mark.parametrize("joined", [False, True])
def test_texts_that_are_grouped_by_are_short_where_they_are_kept(keys, joined):
    """Rows that are stored, and groups on the way: 60,000 bytes of a cell are never copied."""
    table = pa.table({"u": [1, 2, 2], "s": ["A", "B" * 60_000, "😀" * 15_000]})
    public = pa.table({"z": range(3)})
    engine = DuckDB()
    schemas = {"t": engine.add("t", table, None), "w": engine.add("w", public, None)}
    declared = dp.PrivateTable(
        table, unit="u", population="p", max_rows=1, max_groups=1, most_rows=9
    )
    catalogue = Catalogue(schemas, {"t": declared}, lambda _: 3)
    question = f"SELECT s, COUNT(*) AS n FROM t{' CROSS JOIN w' if joined else ''} GROUP BY s"
    plan = compile_sql(question, catalogue, Options(keys={k: tuple(v) for k, v in keys.items()}))
    step = totals_step(plan, l2=True)
    bare = duckdb.connect()
    bare.register("t", table)
    bare.register("w", public)
    assert ("deniable_rows" in step.tables) == joined
    for text in (step.rows, *list(step.tables.values())[:1] * joined):
        inner = text.replace('"deniable_rows"', "deniable_rows")
        ((most,),) = bare.execute(f"SELECT MAX(strlen(g0)) FROM ({inner})").fetchall()
        assert most <= (1 if keys else 1_000)
    engine.close()
    bare.close()


def test_a_key_with_nul_is_not_selected():
    table = dp.PrivateTable(
        pa.table({"u": range(200), "s": ["a", "a\0b"] * 100}),
        unit="u",
        population="p",
        max_rows=1,
        max_groups=1,
    )
    with dp.Session(
        {"t": table}, budget=dp.ApproxDP(1e9, 1e-6), ledger=dp.Ledger(key=bytes(32))
    ) as session:
        assert session.sql("SELECT s, COUNT(*) AS n FROM t GROUP BY s", epsilon=1e4)["s"] == ["a"]
