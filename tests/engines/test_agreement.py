"""Every engine finds the same whole numbers before noise, over the whole corpus."""

import contextlib
import dataclasses
import tempfile
from collections import Counter

import pytest
import sqlglot
from pyarrow import parquet

import deniable as dp
from amounts import rho
from corpus import hospital
from deniable.engines.duckdb import DuckDB
from deniable.query.price.price import price
from deniable.query.price.profile import least_row
from deniable.query.read.catalogue import Options
from deniable.query.read.compile import compile_sql
from deniable.query.run.emit import heavy_step, totals_step, units_step
from deniable.query.run.emit_profile import levels_step, rows_step, upper_step
from deniable.session import _options
from engines.spark_session import local_spark

QUESTIONS = hospital.read_questions("queries.sql")
TABLES = ("visits", "prescriptions", "wards")
REFUSED_BY_POSTGRES = {"per_patient_remainder_of_an_average"}
FEW = 3  # rows that count in full: most units are heavy


def kinds(question):
    """The kinds of expressions that a question has, and what it declares."""
    tree = sqlglot.parse_one(question.sql, read="duckdb")
    return {type(node) for node in tree.walk()} | question.options.keys()


def covering(questions):
    """Names of few questions that together have all that any of them has."""
    left = {question.name: kinds(question) for question in questions}
    found = []
    while any(left.values()):
        found.append(max(left, key=lambda name: len(left[name])))
        seen = left[found[-1]]
        left = {name: each - seen for name, each in left.items()}
    return found


COVERING = covering(QUESTIONS)


@pytest.fixture(scope="module")
def duckdb():
    with contextlib.closing(DuckDB()) as engine:
        for name in TABLES:
            engine.add(name, getattr(hospital, name)(), None)
        yield engine


@pytest.fixture(scope="module")
def postgres(server):
    database = dp.postgres(server.url)
    with contextlib.closing(database.table("visits").engine()) as engine:
        for name in TABLES:
            engine.add(name, database.table(name), None)
        yield engine


@pytest.fixture(scope="module")
def spark():
    with local_spark() as session, tempfile.TemporaryDirectory() as folder:
        for name in TABLES:
            parquet.write_table(getattr(hospital, name)(), f"{folder}/{name}.parquet")
            session.read.parquet(f"{folder}/{name}.parquet").createOrReplaceTempView(name)
        tables = dp.spark(session)
        with contextlib.closing(tables.table("visits").engine()) as engine:
            for name in TABLES:
                engine.add(name, tables.table(name), None)
            yield engine


@pytest.fixture(scope="module")
def catalogue():
    with hospital.session() as session:
        yield session._catalogue


def steps_of(question, catalogue):
    given = {**question.options, "max_rows": FEW}
    options = _options(
        given.get("keys"), given.get("bounds"), given["max_rows"], given.get("max_groups")
    )
    plan = compile_sql(question.sql, catalogue, options)
    return price(plan, rho(1000)).steps("secret") | (
        {}
        if plan.counted.known_keys
        else {"units": units_step(plan, plan.contribution.max_groups or 3, "secret")}
    )


def rows_of(engine, steps):
    with engine.snapshot() as taken:
        return {name: Counter(map(shown, taken.run(step))) for name, step in steps.items()}


def shown(row):
    """Whole numbers are whole numbers, whatever class they have."""
    return tuple(each if each is None or isinstance(each, str) else plain(each) for each in row)


def plain(value):
    return value.isoformat() if hasattr(value, "isoformat") else int(value)


@pytest.mark.parametrize("question", [pytest.param(q, id=q.name) for q in QUESTIONS])
def test_postgres_finds_what_duckdb_finds(question, catalogue, duckdb, postgres):
    steps = steps_of(question, catalogue)
    if question.name in REFUSED_BY_POSTGRES:
        with pytest.raises(dp.QueryError, match="on Postgres"):
            postgres.check(list(steps.values()))
        return
    postgres.check(list(steps.values()))
    assert rows_of(postgres, steps) == rows_of(duckdb, steps)


def test_few_questions_have_all_that_the_corpus_has():
    few = [question for question in QUESTIONS if question.name in COVERING]
    assert set().union(*map(kinds, few)) == set().union(*map(kinds, QUESTIONS))
    assert len(few) < len(QUESTIONS) / 3


@pytest.mark.parametrize(
    "question",
    [
        # Spark takes seconds for each: the others are asked in long runs.
        pytest.param(q, id=q.name, marks=() if q.name in COVERING else pytest.mark.soak)
        for q in QUESTIONS
    ],
)
def test_spark_finds_what_duckdb_finds(question, catalogue, duckdb, spark):
    steps = steps_of(question, catalogue)
    spark.check(list(steps.values()))
    assert rows_of(spark, steps) == rows_of(duckdb, steps)


@pytest.mark.parametrize("l2", [True, False], ids=["l2", "l1"])
def test_what_is_estimated_is_found_alike(catalogue, duckdb, postgres, spark, l2):
    plan = compile_sql(
        "SELECT ward, COUNT(*) AS n, SUM(cost) AS s FROM visits GROUP BY ward", catalogue, Options()
    )
    least = least_row(plan, l2=l2)
    plan = dataclasses.replace(
        plan,
        contribution=dataclasses.replace(
            plan.contribution, rows=1, floor=3 * least, norm=5 * least
        ),
    )
    steps = {
        "totals": totals_step(plan, l2=l2),
        "heavy": heavy_step(plan, l2=l2),
        "upper": upper_step(plan, least, l2=l2),
        "levels": levels_step(plan, least, l2=l2),
        "rows": rows_step(plan),
    }
    found = rows_of(duckdb, steps)
    assert sum(found["heavy"].values()) > 1
    assert len(found["levels"]) > 2
    assert rows_of(postgres, steps) == rows_of(duckdb, steps)
    assert rows_of(spark, steps) == rows_of(duckdb, steps)
