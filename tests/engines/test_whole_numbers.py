"""Whole numbers are rounded as whole numbers, on every engine."""

import contextlib
import random
import tempfile

import pyarrow as pa
import pytest
import sqlglot
from pyarrow import parquet

import deniable as dp
from deniable.engines.base import Step
from deniable.engines.duckdb import DuckDB
from deniable.query.read.columns import Column
from deniable.query.read.values.operators import read_column
from deniable.query.read.values.value import finished
from deniable.tables import ColumnType
from engines.loading import to_postgres
from engines.spark_session import local_spark

PLACES = (1, 2, 3, 14, 15)
NEAR = [0, 4, 5, 6, 14, 15, 50, 449, 499, 500, 1 << 53, (1 << 53) + 1, 10**15 // 2, 10**18 + 5]
NEAR += [(1 << 63) - 1, (1 << 63) - 8, (1 << 63) - 3, 9_223_372_036_854_775_804, 1 << 62]
NEAR += [random.Random(5).randrange(1 << 63) for _ in range(200)]
NUMBERS = [*NEAR, *(-each for each in NEAR), -1 << 63]
TABLE = pa.table({"i": pa.array([*NUMBERS, None], pa.int64())})


def exact(value, places):
    """Halves away from zero; NULL where 64 bits do not hold it."""
    step = 10**places
    size = (abs(value) + step // 2) // step * step
    found = size if value >= 0 else -size
    return found if -1 << 63 <= found < 1 << 63 else None


def rounded():
    made = []
    for places in PLACES:
        node = sqlglot.parse_one(f"ROUND(i, -{places})", read="duckdb")
        value = read_column(node, lambda _: Column(ColumnType.INTEGER), "SELECT")
        assert value.kind == ColumnType.INTEGER
        made.append(f"{finished(value).sql('duckdb')} AS r{places}")
    text = f"SELECT i, {', '.join(made)} FROM t"
    return Step(text, text)


def check(engine):
    with engine.snapshot() as taken:
        found = {row[0]: row[1:] for row in taken.run(rounded())}
    assert found.pop(None) == (None,) * len(PLACES)
    assert found == {each: tuple(exact(each, p) for p in PLACES) for each in set(NUMBERS)}


def test_duckdb_rounds_whole_numbers():
    with contextlib.closing(DuckDB()) as engine:
        engine.add("t", TABLE, None)
        check(engine)


def test_postgres_rounds_whole_numbers(server):
    to_postgres(server.url, "numbers", TABLE)
    source = dp.postgres(server.url).table("numbers")
    with contextlib.closing(source.engine()) as engine:
        engine.add("t", source, None)
        check(engine)


def test_spark_rounds_whole_numbers():
    with local_spark() as session, tempfile.TemporaryDirectory() as folder:
        parquet.write_table(TABLE, f"{folder}/numbers.parquet")
        session.read.parquet(f"{folder}/numbers.parquet").createOrReplaceTempView("numbers")
        source = dp.spark(session).table("numbers")
        with contextlib.closing(source.engine()) as engine:
            engine.add("t", source, None)
            check(engine)


@pytest.mark.parametrize(("value", "places", "found"), [(15, 1, 20), (-15, 1, -20), (14, 1, 10)])
def test_the_rule_itself(value, places, found):
    assert exact(value, places) == found
