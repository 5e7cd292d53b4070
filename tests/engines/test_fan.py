"""Rows that multiply: Postgres keeps the same rows as DuckDB, and counts public tables alike."""

import random

import pyarrow as pa
import pytest

import deniable as dp
from deniable.engines.duckdb import DuckDB
from deniable.engines.postgres import Postgres
from deniable.query.read.catalogue import Catalogue, Options
from deniable.query.read.compile import compile_sql
from deniable.query.read.fan import Counts
from deniable.query.run.emit import totals_step
from engines.loading import to_postgres
from snapshots import run

RNG = random.Random(7)
ROWS = [
    (unit, RNG.choice(["a", "B", "é", "", None]), RNG.choice([None, 0.5, -1.0, *range(30)]))
    for unit, rows in ((1, 4_000), (2, 300), (3, 250), *((each, 3) for each in range(4, 60)))
    for _ in range(rows)
]
PRIVATE = pa.table(
    {
        "u": [row[0] for row in ROWS],
        "s": pa.array([row[1] for row in ROWS], pa.string()),
        "x": pa.array([row[2] for row in ROWS], pa.float64()),
    }
)
PUBLIC = pa.table({"k": [1, 1, 2, None, None, None, 3], "s": ["a", "b", "a", "a", "é", "é", "B"]})
QUESTIONS = {
    "FROM t JOIN t AS b ON t.u = b.u WHERE b.x < 4 AND t.s <> 'a'": 1,
    "FROM t LEFT JOIN t AS b ON t.u = b.u AND b.x < 1": 1,
    "FROM t JOIN t AS b ON t.u = b.u JOIN t AS c ON t.u = c.u WHERE b.x < 2 AND c.x < 3": 1,
    "FROM t JOIN p ON t.s = p.s": 3,
    "FROM t LEFT JOIN p ON t.s = p.s": 3,
    "FROM p JOIN t ON t.x = p.k": 2,
    "FROM t CROSS JOIN p": 7,
    "FROM t JOIN (SELECT s, COUNT(*) AS n FROM p GROUP BY s) AS q ON t.s = q.s": 1,
    "FROM t JOIN p ON t.s = p.s JOIN t AS b ON t.u = b.u AND b.x < 1": 3,
}


@pytest.fixture(scope="module")
def engines(server):
    """Both engines with the same tables, as catalogues."""
    to_postgres(server.url, "fan_t", PRIVATE)
    to_postgres(server.url, "fan_p", PUBLIC)
    database = dp.postgres(server.url)
    opened = []
    for engine, private, public in (
        (DuckDB(), PRIVATE, PUBLIC),
        (Postgres(database), database.table("fan_t"), database.table("fan_p")),
    ):
        table = dp.PrivateTable(
            private, unit="u", population="p", max_rows=215, bounds={"x": (-1, 30)}, grid={"x": 0.5}
        )
        schemas = {"t": engine.add("t", private, None), "p": engine.add("p", public, None)}
        opened.append((engine, Catalogue(schemas, {"t": table}, Counts(engine, frozenset({"p"})))))
    yield opened
    for engine, _ in opened:
        engine.close()


@pytest.mark.parametrize("origin", QUESTIONS)
def test_postgres_keeps_the_rows_that_duckdb_keeps(engines, origin):
    found = []
    for engine, catalogue in engines:
        plan = compile_sql(f"SELECT COUNT(*) AS n, SUM(t.x) AS s {origin}", catalogue, Options())
        ((*totals,),) = run(engine, totals_step(plan, l2=True))
        found.append(
            (
                plan.contribution.fan,
                plan.contribution.rows,
                plan.contribution.left_out,
                [int(each) for each in totals],
            )
        )
    assert found[0] == found[1]
    assert found[0][0] == QUESTIONS[origin]


def test_postgres_refuses_what_multiplies_too_far(engines):
    question = (
        "SELECT COUNT(*) AS n FROM t"
        + " CROSS JOIN p"
        + "".join(f" CROSS JOIN p AS p{n}" for n in range(4))
    )
    for engine, catalogue in engines:
        del engine
        with pytest.raises(dp.QueryError, match="16,807 rows of each row"):
            compile_sql(question, catalogue, Options())
