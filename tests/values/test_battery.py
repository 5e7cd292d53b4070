"""No operator raises, leaves its type or looks at other rows, whatever the cells hold."""

import contextlib
import tempfile
import time
import warnings
from pathlib import Path

import pytest
from sqlglot import exp

import deniable as dp
from deniable.query.read.values import logic, numbers, operators, value
from engines.spark_session import local_spark
from postgres import Postgres
from values.battery import _sample, parsed, samples
from values.extremes import EXTREMES
from values.on_duckdb import OnDuckDB
from values.on_postgres import OnPostgres
from values.on_spark import OnSpark
from values.samples import SAMPLES


def cpu_of(process):
    """CPU seconds of another process that is still alive."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


@pytest.fixture(scope="module")
def known():
    return OnDuckDB().known()


@pytest.fixture(scope="module")
def server():
    made = Postgres()
    try:
        yield made
    finally:
        made.remove()


def test_every_operator_is_in_the_battery():
    assert SAMPLES.keys() == operators.OPERATORS.keys() | operators.VEILED.keys()


@pytest.mark.parametrize("node", SAMPLES, ids=lambda node: node.__name__)
def test_the_samples_of_an_operator_have_it(node):
    for text in SAMPLES[node]:
        assert any(type(part) is node for part in parsed(text).walk()), text


def test_the_extremes_are_those_of_the_specification():
    assert sorted(map(len, EXTREMES.values())) == [3, 14, 14, 16, 23, 40]


def test_duckdb_without_try():
    began = time.process_time()
    run = OnDuckDB().run(thin=True)
    print(run.told("DuckDB"), f"{time.process_time() - began:.1f} CPU s")
    assert not run.faults


def test_postgres_with_its_guards(server, known):
    began = time.process_time()
    with contextlib.closing(OnPostgres(server.url)) as run:
        run.run(known, thin=True)
        spent = time.process_time() - began + cpu_of(run.engine.info.backend_pid)
    print(run.told("Postgres"), f"{run.lost} NULL here only, {spent:.1f} CPU s")
    assert not run.faults
    assert run.lost * 50 < run.cases


@pytest.mark.soak
def test_duckdb_on_all_pairs():
    run = OnDuckDB().run(thin=False)
    print(run.told("DuckDB"))
    assert not run.faults


@pytest.mark.soak
def test_postgres_on_all_pairs(server, known):
    with contextlib.closing(OnPostgres(server.url)) as run:
        run.run(known, thin=False)
    print(run.told("Postgres"))
    assert not run.faults


@pytest.mark.soak
def test_spark(known):
    with warnings.catch_warnings(), local_spark() as session, tempfile.TemporaryDirectory() as home:
        warnings.simplefilter("ignore")
        run = OnSpark(session, home).run(known, thin=False)
    print(run.told("Spark"))
    assert not run.faults
    assert run.lost * 50 < run.cases


def planted(monkeypatch, node, made, *texts):
    """The faults of an operator that is written otherwise."""
    table = operators.OPERATORS if node in operators.OPERATORS else operators.VEILED
    monkeypatch.setitem(table, node, made)
    return OnDuckDB([_sample(text) for text in texts]).run(thin=True).faults


def test_sums_of_64_bits_are_found(monkeypatch):
    def narrow(node, read):
        left, right = read(node.left), read(node.right)
        kind, (one, other) = value.one_kind([left, right], "+", "SELECT")
        return value.made(kind, exp.Add(this=one, expression=other), left, right, wild=True)

    assert any("raised" in fault for fault in planted(monkeypatch, exp.Add, narrow, "i + j"))


def test_doubles_without_a_seal_are_found(monkeypatch):
    def bare(node, read):
        found = numbers.unary(node, read)
        return value.Value(found.kind, found.sql)

    assert any("not canonical" in fault for fault in planted(monkeypatch, exp.Neg, bare, "-f"))


def test_a_function_that_other_rows_choose_is_found(monkeypatch):
    def chosen(node, read):
        text = read(node.this)
        made = exp.ILike(this=text.sql, expression=node.expression.copy())
        return logic.negated(node, value.made(value.ColumnType.BOOLEAN, made, text))

    faults = planted(monkeypatch, exp.ILike, chosen, "t ILIKE '%İ%'")
    assert any("differs" in fault for fault in faults)


def test_another_type_than_the_table_says_is_found(monkeypatch):
    def short(node, read):
        found = read(node.this)
        return value.made(value.ColumnType.INTEGER, exp.cast(found.sql.copy(), "INTEGER"), found)

    faults = planted(monkeypatch, exp.Length, short, "LENGTH(b)")
    assert any("is None, not integer" in fault for fault in faults)


@pytest.mark.parametrize(
    "condition", ["t LIKE 'aé' ESCAPE 'é'", "t ILIKE 'xA' ESCAPE 'a'", "t LIKE 'x!' ESCAPE '!'"]
)
def test_escapes_that_raise_when_a_text_gets_that_far_are_refused(condition):
    with pytest.raises(dp.QueryError, match="ESCAPE"):
        _sample(condition)


def test_all_samples_are_read():
    assert len(samples()) > 700
