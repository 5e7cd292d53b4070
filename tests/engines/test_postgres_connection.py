"""The connection to Postgres: what it is told, what it shows, and when it ends."""

import contextlib
import copy
import pickle
import time
import traceback

import psycopg
import pyarrow as pa
import pytest

import deniable as dp
from deniable.engines import postgres_settings
from deniable.engines.base import Step
from deniable.engines.postgres import Postgres
from engines.loading import to_postgres

PASSWORD = "Pa55-w0rd"
ROWS = pa.table(
    {
        "u": pa.array(range(30), pa.int64()),
        "s": pa.array(["a", "é", "😀"] * 10, pa.string()),
        "x": pa.array([0.1 + 0.2, None, 1 / 3] * 10, pa.float64()),
    }
)
SETTINGS = {
    "client_encoding": ("LATIN1", "SQL_ASCII", "EUC_JP"),
    "extra_float_digits": ("-15", "0"),
    "transform_null_equals": ("on",),
}


@pytest.fixture(scope="module")
def at(server):
    to_postgres(server.url, "told", ROWS)
    return server.url


def session_at(url):
    table = dp.PrivateTable(
        dp.postgres(url).table("told"), unit="u", population="p", max_rows=1, max_groups=1
    )
    return dp.Session({"t": table}, budget=dp.ApproxDP(1e9, 1e-6), ledger=dp.Ledger(key=bytes(32)))


def rows_at(url):
    source = dp.postgres(url).table("told")
    with contextlib.closing(Postgres(source.database)) as engine:
        engine.add("t", source, None)
        with engine.snapshot() as taken:
            return taken.run(Step("SELECT u, s, x, x = NULL FROM t", "SELECT u FROM t"))


PAIRS = [(name, value) for name, values in SETTINGS.items() for value in values]


@pytest.mark.parametrize("how", ["environment", "address", "options", "role"])
@pytest.mark.parametrize(("name", "value"), PAIRS)
def test_values_arrive_as_they_are_whatever_was_set(at, monkeypatch, name, value, how):
    if how == "environment":
        monkeypatch.setenv("PGOPTIONS", f"-c {name}={value}")
        if name == "client_encoding":
            monkeypatch.setenv("PGCLIENTENCODING", value)
    url = at
    if how == "options" or (how == "address" and name != "client_encoding"):
        url = f"{at}?options=-c%20{name}%3D{value}"
    elif how == "address":
        url = f"{at}?{name}={value}"
    with psycopg.connect(at, autocommit=True, client_encoding="UTF8") as owner:
        if how == "role":
            owner.execute(f"ALTER ROLE deniable SET {name} = '{value}'")
        try:
            found = rows_at(url)
        finally:
            owner.execute(f"ALTER ROLE deniable RESET {name}")
    columns = (ROWS[name].to_pylist() for name in ROWS.column_names)
    assert sorted(found) == [(*row, None) for row in zip(*columns, strict=True)]


@pytest.mark.parametrize(
    ("name", "value", "pinned"),
    [
        ("statement_timeout", "400", "0"),
        ("idle_in_transaction_session_timeout", "400", "0"),
        ("exit_on_error", "on", "off"),
    ],
)
def test_how_long_one_persons_rows_take_ends_no_question(at, name, value, pinned):
    source = dp.postgres(f"{at}?options=-c%20{name}%3D{value}").table("told")
    with contextlib.closing(Postgres(source.database)) as engine:
        engine.add("t", source, None)
        with engine.snapshot() as taken:
            engine.connection.execute("SELECT pg_catalog.pg_sleep(0.6)")
            time.sleep(0.6)
            assert engine.connection.execute(f"SHOW {name}").fetchone() == (pinned,)
            assert len(taken.run(Step("SELECT u FROM t", "SELECT u FROM t"))) == len(ROWS)


def test_no_form_shows_the_password(server):
    url = server.url.replace("deniable@", f"deniable:{PASSWORD}@")
    database = dp.postgres(url)
    table = database.table("visits")
    private = dp.PrivateTable(table, unit="patient_id", population="p")
    with dp.Session(
        {"t": private}, budget=dp.ApproxDP(1, 1e-6), ledger=dp.Ledger(key=bytes(32))
    ) as session:
        engine = session.parts.engine
        for each in (database, table, private, engine, session, database.address):
            held = getattr(each, "__dict__", {})
            slots = [getattr(each, name) for name in getattr(type(each), "__slots__", ())]
            for form in (repr(each), str(each), f"{each}", repr(held), repr(slots), dir(each)):
                assert PASSWORD not in str(form)
    assert PASSWORD not in repr(copy.copy(database)) + repr(vars(copy.deepcopy(database)))
    assert PASSWORD not in table.label
    with pytest.raises(dp.errors.PrivateValueError):
        pickle.dumps(database)


@pytest.mark.parametrize("password", ["4711#zq8", "zq8#zq8", "99?zq8", "a[zq8", "%5Bzq8]", "zq8:9"])
def test_whatever_signs_a_password_has_it_is_no_part_of_the_place(server, password):
    """The driver reads an address otherwise than the standard for those of pages."""
    url = server.url.replace("deniable@", f"deniable:{password}@")
    table = dp.postgres(url).table("visits")
    place = server.url.partition("@")[2]
    assert table.label == f"{place}: visits"
    private = dp.PrivateTable(table, unit="patient_id", population="p", max_rows=1)
    assert private.describe()["source"] == table.label
    with dp.Session(
        {"t": private}, budget=dp.ApproxDP(1e9, 1e-6), ledger=dp.Ledger(key=bytes(32))
    ) as session:
        assert session.sql("SELECT COUNT(*) AS n FROM t", epsilon=1)["n"]


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("postgresql://u:zq8@H1:1,h2:2/db", "h1,h2:1,2/db"),
        ("postgresql://u:zq8@host/db?sslmode=disable", "host:5432/db"),
        ("postgres://host/?dbname=db&port=7&password=zq8", "host:7/db"),
        ("postgresql:///db?host=/run/it&password=zq8", "/run/it:5432/db"),
        ("postgresql://u:zq8@[::1]:3/db", "::1:3/db"),
    ],
)
def test_the_place_of_a_database_is_that_of_the_driver(url, place):
    assert dp.postgres(url).table("t").label == f"{place}: t"


@pytest.mark.parametrize(
    "url",
    [
        *("postgresql://u:a/zq8@h/db", "postgresql://u:zq8@zq8@h/db", "postgresql://u:1/zq8@h/db"),
        *("postgresql://u:%zq8@h/db", "postgresql://u:zq8 zq8@h/db", "postgresql://h/db?zq8=zq8"),
    ],
)
def test_an_address_in_which_a_password_may_pass_for_a_place_is_refused(url):
    with pytest.raises(dp.ParameterError, match="%40") as told:
        dp.postgres(url)
    traced = traceback.TracebackException.from_exception(told.value, capture_locals=True)
    frames = [frame.locals for frame in traced.stack if "deniable/" in frame.filename]
    assert "zq8" not in str(told.value) + repr(frames)
    assert told.value.__cause__ is told.value.__context__ is None


def added(url, source):
    with contextlib.closing(Postgres(dp.postgres(url))) as engine:
        engine.add("t", source(url), None)


@pytest.mark.parametrize(
    "act",
    [
        lambda url: dp.postgres(url.replace("postgresql:", "postgresq:")),
        lambda url: dp.postgres(url).table("a.b.c"),
        lambda url: Postgres(dp.postgres(url.replace("/postgres", "/nowhere"))),
        lambda url: Postgres(dp.postgres(f"{url}?nothing=known")),
        lambda url: added(url, lambda url: dp.postgres(url).table("no")),
        lambda url: added(url, lambda url: dp.postgres(f"{url}?connect_timeout=9").table("told")),
        lambda url: added(url, lambda url: ROWS),
    ],
)
def test_no_failure_shows_the_password(server, act):
    url = server.url.replace("deniable@", f"deniable:{PASSWORD}@")
    with pytest.raises(dp.DeniableError) as caught:
        act(url)
    error = caught.value
    told = traceback.TracebackException.from_exception(error, capture_locals=True)
    # The caller's own frames hold what the caller gave.
    frames = [frame for frame in told.stack if "deniable/" in frame.filename]
    assert PASSWORD not in str(error) + repr([frame.locals for frame in frames])
    assert error.__cause__ is None
    assert error.__context__ is None


QUESTION = "SELECT COUNT(*) AS n FROM t WHERE s = 'a'"


@pytest.mark.parametrize(
    "ask",
    [
        lambda session: session.sql(QUESTION, epsilon=1),
        lambda session: session.sql("SELECT COUNT(*) AS n FROM t", epsilon=1),
        lambda session: session.explain(QUESTION, epsilon=1),
        lambda session: session.table("t").agg(n=dp.count()).release(epsilon=1),
        lambda session: session.parts,
        lambda session: dp.synthesize(session, "t", epsilon=1, columns=["s"], discover=["s"]),
    ],
)
@pytest.mark.parametrize("kind", ["postgres", "duckdb"])
def test_a_closed_session_is_asked_nothing_more(at, kind, ask):
    ledger = dp.Ledger(key=bytes(32))
    source = dp.postgres(at).table("told") if kind == "postgres" else ROWS
    table = dp.PrivateTable(source, unit="u", population="p", max_rows=1, max_groups=1)
    session = dp.Session({"t": table}, budget=dp.ApproxDP(1e9, 1e-6), ledger=ledger)
    session.sql(QUESTION, epsilon=1)
    spent = session.spent
    session.close()
    with pytest.raises(dp.EngineError, match="the session is closed"):
        ask(session)
    assert session.spent == spent
    session.close()


def test_a_closed_engine_opens_no_connection(at):
    with session_at(at) as session:
        engine = session.parts.engine
        step = Step("SELECT COUNT(*) AS n FROM t", "SELECT u FROM t")
        engine.check([step])
    for act in (lambda: engine.check([step]), lambda: engine.snapshot().__enter__()):
        with pytest.raises(dp.EngineError, match="the session is closed"):
            act()
    assert engine.connection.closed


def test_a_lock_of_another_session_is_not_waited_for_without_end(at, monkeypatch):
    quick = postgres_settings._BEGIN.replace("'60s'", "'300ms'")
    assert quick != postgres_settings._BEGIN
    monkeypatch.setattr(postgres_settings, "_BEGIN", quick)
    source = dp.postgres(at).table("told")
    with contextlib.closing(Postgres(source.database)) as engine, psycopg.connect(at) as other:
        engine.add("t", source, None)
        other.execute("LOCK TABLE told IN ACCESS EXCLUSIVE MODE")
        with (
            pytest.raises(dp.EngineError, match="another session of the server holds a lock"),
            engine.snapshot(),
        ):
            pass
        other.rollback()
        with engine.snapshot() as taken:
            assert len(taken.run(Step("SELECT u FROM t", "SELECT u FROM t"))) == 30
