"""Long chains of AND and OR are answered, and mean what they meant."""

import math

import duckdb
import pyarrow as pa
import pytest
import sqlglot
from sqlglot import exp

import deniable as dp
from deniable.engines.postgres_sql import PostgresWriter
from deniable.engines.spark_sql import SparkWriter
from deniable.query.read.resolve import halved
from deniable.tables import ColumnType, Schema

PEOPLE = 400
ROWS = pa.table(
    {
        "u": pa.array(range(PEOPLE), pa.int64()),
        "i": pa.array([n if n % 7 else None for n in range(PEOPLE)], pa.int64()),
    }
)


def either(many, column="i"):
    return " OR ".join(f"{column} = {n}" for n in range(many))


def neither(many):
    return " AND ".join(f"i <> {n}" for n in range(many))


@pytest.fixture(scope="module")
def session():
    table = dp.PrivateTable(ROWS, unit="u", population="p", max_rows=1, max_groups=1)
    with dp.Session(
        {"t": table}, budget=dp.ApproxDP(1e9, 1e-6), ledger=dp.Ledger(key=bytes(32))
    ) as opened:
        yield opened


@pytest.mark.parametrize("many", [2, 16, 17, 61, 400])
@pytest.mark.parametrize(
    "condition",
    [
        either,
        neither,
        lambda many: f"NOT ({neither(many)})",
        lambda many: f"({either(many)}) IS NULL",
        lambda many: f"({either(many // 2)}) OR i > 300 OR ({neither(many // 2)})",
        lambda many: " OR ".join(f"(i = {n} AND u.i < {n + 9})" for n in range(many // 2)),
    ],
)
def test_chains_of_any_length_are_answered(session, condition, many):
    question = f"SELECT COUNT(*) AS n FROM t AS u WHERE {condition(many)}"
    t = ROWS  # noqa: F841  (read by name)
    ((exact,),) = duckdb.sql(question).fetchall()
    assert round(session.sql(question, epsilon=1e6)["n"][0]) == exact


def test_what_is_too_long_as_it_is_written_out_is_called_so(session):
    with pytest.raises(dp.QueryError, match="too long"):
        session.sql(f"SELECT COUNT(*) AS n FROM t WHERE {either(600)}", epsilon=1)


@pytest.mark.parametrize(
    "question",
    [
        f"SELECT COUNT(*) FILTER (WHERE {either(200)}) AS n FROM t",
        f"SELECT SUM(CASE WHEN {either(200)} THEN 1 ELSE 0 END) AS n FROM t",
        f"SELECT COUNT(*) AS n FROM (SELECT u, ({either(200)}) AS k FROM t) AS q WHERE k",
        "SELECT COUNT(*) AS n FROM t HAVING " + " OR ".join(f"COUNT(*) > {n}" for n in range(200)),
    ],
)
def test_chains_stand_in_any_clause(session, question):
    options = {"bounds": {"n": (0, 1)}} if "SUM" in question else {}
    count = PEOPLE if "HAVING" in question else 200 - math.ceil(200 / 7)
    assert round(session.sql(question, epsilon=1e6, **options)["n"][0]) == count


def depth_of(node):
    """Levels of brackets."""
    found, waiting = 0, [(node, 0)]
    while waiting:
        each, depth = waiting.pop()
        found = max(found, depth)
        waiting += [(child, depth + 1) for child in each.iter_expressions()]
    return found


@pytest.mark.parametrize("many", [1, 2, 16, 17, 100, 1_000])
def test_the_parts_of_a_chain_stay_in_order(many):
    tree = sqlglot.parse_one(f"SELECT 1 FROM t WHERE {either(many)}", read="duckdb")
    before = [each.sql() for each in tree.find_all(exp.EQ)]
    text = tree.sql()
    halved(tree)
    assert sorted(each.sql() for each in tree.find_all(exp.EQ)) == sorted(before)
    assert tree.sql().replace("(", "").replace(")", "") == text
    assert depth_of(tree) <= max(16, 2 * math.ceil(math.log2(many))) + 5
    assert (tree.sql() == text) == (many <= 16)


@pytest.mark.parametrize("writer", [PostgresWriter, SparkWriter])
def test_what_is_too_deep_has_a_sentence(writer):
    value = "i"
    for _ in range(200):
        value = f"ABS({value})"
    made = writer({"t": Schema({"i": ColumnType.INTEGER})}, {})
    with pytest.raises(dp.QueryError, match="nested too deeply for"):
        made.write(f"SELECT {value} AS x FROM t", {})
