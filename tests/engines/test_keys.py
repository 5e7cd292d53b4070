"""Keys in statements, on every engine: those that can be released, and those that were."""

import contextlib
import dataclasses
import datetime
import tempfile
from collections import Counter

import pyarrow as pa
import pytest
from pyarrow import parquet

import deniable as dp
from amounts import rho
from deniable.engines.duckdb import DuckDB
from deniable.query.plan.plan import SCALE
from deniable.query.price.price import price
from deniable.query.read.catalogue import Catalogue, Options
from deniable.query.read.compile import compile_sql
from deniable.query.run.emit import units_step
from engines.loading import to_postgres
from engines.spark_session import local_spark

LONGEST = "ä" * 500  # a thousand bytes
TEXTS = ["a", "it's, t", LONGEST, LONGEST + "b", "b" * 1_001, "b" * 1_002, None, ""]
WRITTEN = ["a", "A", "a ", "", "é", "e\u0301", "ß", "ss", "it's, t", "%", "_", "42", LONGEST, None]
WRITTEN += [LONGEST + "b", "x" * 70_000]
WHOLE = [0, 7, -7, (1 << 63) - 1, 1 - (1 << 63), -1 << 63, None, 5]
UNFIT = {*TEXTS[3:6], -1 << 63}
ROWS = 64
KEYED = pa.table(
    {
        "u": range(ROWS),
        "s": pa.array([TEXTS[i % 8] for i in range(ROWS)], pa.string()),
        "w": pa.array([WRITTEN[i % len(WRITTEN)] for i in range(ROWS)], pa.string()),
        "i": pa.array([WHOLE[(i // 8 + i) % 8] for i in range(ROWS)], pa.int64()),
        "d": [datetime.date(2024, 1, 1 + i % 3) for i in range(ROWS)],
        "b": [None if i % 3 == 0 else i % 2 == 0 for i in range(ROWS)],
    }
)
GROUPS = {"s": TEXTS, "i": WHOLE}
CHOSEN = {
    "s": [("a",), ("it's, t",), (LONGEST,)],
    "i": [(0,), (-7,), (1 - (1 << 63),)],
    "s, i": [("a", 0), ("it's, t", 7), (LONGEST, (1 << 63) - 1), ("", -7)],
    "s, d": [("a", datetime.date(2024, 1, 1)), ("", datetime.date(2024, 1, 2))],
    "s, b": [("a", None), ("a", True), ("it's, t", False), ("", None)],
    "b, s, i": [(None, "a", 0), (True, "it's, t", 7), (None, "", -7)],
}


@pytest.fixture(scope="module")
def duckdb():
    with contextlib.closing(DuckDB()) as engine:
        engine.add("t", KEYED, None)
        yield engine


@pytest.fixture(scope="module")
def postgres(server):
    to_postgres(server.url, "keyed", KEYED)
    source = dp.postgres(server.url).table("keyed")
    with contextlib.closing(source.engine()) as engine:
        engine.add("t", source, None)
        yield engine


@pytest.fixture(scope="module")
def spark():
    with local_spark() as session, tempfile.TemporaryDirectory() as folder:
        parquet.write_table(KEYED, f"{folder}/keyed.parquet")
        session.read.parquet(f"{folder}/keyed.parquet").createOrReplaceTempView("keyed")
        source = dp.spark(session).table("keyed")
        with contextlib.closing(source.engine()) as engine:
            engine.add("t", source, None)
            yield engine


@pytest.fixture
def engine(request):
    return request.getfixturevalue(request.param)


def on_engines(name, values, for_spark=()):
    """Each value on DuckDB and Postgres; some on Spark, which takes seconds."""
    pairs = [(value, engine) for value in values for engine in ("duckdb", "postgres")]
    pairs += [(value, "spark") for value in for_spark]
    return pytest.mark.parametrize((name, "engine"), pairs, indirect=["engine"])


def plan_of(columns, **declared):
    given = {"unit": "u", "population": "p", "max_rows": 1, "max_groups": 1, **declared}
    table = dp.PrivateTable(KEYED, **given)
    with contextlib.closing(DuckDB()) as bare:
        catalogue = Catalogue({"t": bare.add("t", KEYED, None)}, {"t": table})
    question = f"SELECT {columns}, COUNT(*) AS n, COUNT(DISTINCT s) AS k FROM t GROUP BY {columns}"
    return compile_sql(question, catalogue, Options())


def steps_of(plan):
    return {
        "units": units_step(plan, 1, "secret"),
        **price(plan, rho(1000)).steps("secret"),
    }


def rows_of(engine, step):
    with engine.snapshot() as taken:
        return Counter(tuple(row) for row in taken.run(step))


@on_engines("column", GROUPS)
def test_a_key_that_no_statement_can_hold_is_not_selected(column, engine):
    """Of each engine the same ones: a row is left out for what is in it alone."""
    steps = steps_of(plan_of(column))
    engine.check(list(steps.values()))
    fit = {v for v in GROUPS[column] if v is not None and v != -1 << 63}
    fit = {v for v in fit if not isinstance(v, str) or len(v.encode()) <= 1_000}
    for name in ("units", "totals 0", "distinct 0"):
        assert {row[0] for row in rows_of(engine, steps[name])} == fit


@on_engines("columns", CHOSEN, ["b, s, i"])
def test_only_the_selected_groups_are_read(columns, engine):
    keys, wide = CHOSEN[columns], len(columns.split(", "))
    declared = {"keys": {"b": [True, False, None]}} if "b" in columns else {}
    plan = plan_of(columns, **declared)
    steps = steps_of(plan)
    for name in ("totals 0", "distinct 0"):
        every = rows_of(engine, steps[name])
        assert {part for row in every for part in row[:wide]}.isdisjoint(UNFIT)
        chosen = steps_of(
            dataclasses.replace(
                plan, counted=dataclasses.replace(plan.counted, selected=tuple(keys))
            )
        )
        read = rows_of(engine, chosen[name])
        assert read == Counter({row: n for row, n in every.items() if row[:wide] in keys})
        assert 0 < len(read) < len(every)


@on_engines("keys", [["a", LONGEST, "b" * 1_000, None], ["a", LONGEST]])
def test_a_long_text_is_none_of_the_declared_ones(keys, engine):
    """What rows keep of it is cut, and neither NULL nor a text that was declared."""
    found = rows_of(engine, steps_of(plan_of("s", keys={"s": keys}))["totals 0"])
    assert {row[0] for row in found} == {"a", LONGEST, None} & set(keys)
    assert all(row[1] == 8 << 16 for row in found)


@on_engines("undeclared", [False, True], [True])
def test_many_declared_texts_are_found_by_a_join_and_no_other_is(undeclared, engine):
    """Beside texts that look like keys, are longer than any, or are missing."""
    keys = ["a", "é", "ß", "it's, t", LONGEST, "", "nobody has this"]
    if not undeclared:
        short = [each for each in WRITTEN if each is not None and len(each) <= len(LONGEST)]
        keys = [*keys, *(each for each in short if each not in keys)]
    plan = plan_of("w", keys={"w": keys})
    steps = steps_of(plan)
    assert " JOIN " in steps["totals 0"].select
    engine.check(list(steps.values()))
    expected = Counter(row for row in KEYED["w"].to_pylist() if row in keys)
    found = {row[0]: row[1:] for row in rows_of(engine, steps["totals 0"])}
    assert {key: numbers[0] for key, numbers in found.items()} == {
        key: SCALE * rows for key, rows in expected.items()
    }
    assert {row[0] for row in rows_of(engine, steps["distinct 0"])} <= set(expected)
