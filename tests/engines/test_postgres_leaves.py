"""Postgres: canonical cells or NULL through every type, and checks that touch no table."""

import contextlib
import math

import psycopg
import pytest

import deniable as dp
from deniable.engines import faults
from deniable.engines.base import Step
from deniable.engines.postgres import Postgres
from engines.extremes import is_canonical

CELLS = {
    "smallint": ["-32768", "32767"],
    "integer": ["-2147483648", "2147483647"],
    "bigint": ["-9223372036854775808", "9223372036854775807", "0"],
    "real": ["NaN", "Infinity", "-Infinity", "3.4028235e38", "1e-45", "-0"],
    "double precision": [
        *("NaN", "Infinity", "-Infinity", "-0", "5e-324", "-5e-324", "1.7976931348623157e308"),
        *("-1.7976931348623157e308", "4503599627370495.5"),
    ],
    "numeric": ["NaN", "Infinity", "-Infinity", "1e-400", "-1e-400", "1e-308", "1e400", "-1e308",
                "1.7976931348623157e308", "1.7976931348623159e308", "1.79769313486231580001e308"],
    "numeric(38, 37)": ["0.0000000000000000000000000000000000001", "1"],
    "text": ["", "a", "x" * 65_536, "x" * 65_537, "é" * 40_000, "now", "😀", "é", "e\u0301"],
    "varchar(70000)": ["", "x" * 65_537, "ß"],
    "char(6)": ["a", "a  ", "İ"],
    "name": ["a", "é"],
    "uuid": ["00000000-0000-0000-0000-000000000000"],
    "feeling": ["glad", "sad"],
    "boolean": ["true", "false"],
    "date": ["infinity", "-infinity", "0001-01-01", "9999-12-31", "0001-12-31 BC", "10000-01-01",
             "4713-11-24 BC", "5874897-12-31"],
    "timestamp": ["infinity", "-infinity", "0001-01-01", "9999-12-31 23:59:59.999999",
                  "0001-12-31 23:59:59.999999 BC", "10000-01-01", "4713-11-24 BC",
                  "294276-12-31 23:59:59.999999"],
    "timestamptz": ["infinity", "-infinity", "0001-01-01 00:00+00", "0001-01-01 00:00+01",
                    "9999-12-31 23:59:59.999999+00", "9999-12-31 23:59:59.999999-01",
                    "4713-11-24 00:00+00 BC", "294276-12-31 23:59:59.999999+00"],
}  # fmt: skip
NULLS = {"real": 3, "double precision": 3, "numeric": 6, "text": 2, "varchar(70000)": 1, "date": 6,
         "timestamp": 6, "timestamptz": 6}  # fmt: skip


@pytest.fixture
def raw(server):
    with psycopg.connect(server.url, autocommit=True) as connection:
        yield connection


def add(engine, server, table):
    return engine.add("t", dp.postgres(server.url).table(table), None, "u")


@pytest.mark.parametrize("native", CELLS)
def test_every_extreme_is_canonical_or_null(server, raw, native):
    raw.execute("DROP TABLE IF EXISTS ends; DROP TYPE IF EXISTS feeling")
    raw.execute("CREATE TYPE feeling AS ENUM ('glad', 'sad')")
    raw.execute(f"CREATE TABLE ends (u bigint, c {native})")
    for number, cell in enumerate(CELLS[native]):
        raw.execute(f"INSERT INTO ends VALUES ({number}, %s)", [cell])
    with contextlib.closing(Postgres(dp.postgres(server.url))) as engine:
        schema = add(engine, server, "ends")
        with engine.snapshot() as snapshot:
            text = "SELECT c FROM t ORDER BY u"
            found = [row[0] for row in snapshot.run(Step(text, text))]
    assert all(is_canonical(schema.columns["c"], value) for value in found)
    assert sum(value is None for value in found) == NULLS.get(native, 0)
    if native in {"text", "double precision"}:
        assert found == [_read(cell, native) for cell in CELLS[native]]


def _read(cell, native):
    if native == "text":
        return cell if len(cell.encode()) <= 65_536 else None
    return float(cell) + 0.0 if math.isfinite(float(cell)) else None


def test_text_is_compared_byte_by_byte(server, raw):
    raw.execute("DROP TABLE IF EXISTS collated; DROP COLLATION IF EXISTS loose")
    raw.execute(
        "CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level1', deterministic = false)"
    )
    raw.execute("CREATE TABLE collated (u bigint, s text COLLATE loose)")
    raw.execute("INSERT INTO collated VALUES (1, 'a'), (2, 'A'), (3, 'é'), (4, 'e')")
    assert raw.execute("SELECT COUNT(DISTINCT s) FROM collated").fetchall() == [(2,)]
    with contextlib.closing(Postgres(dp.postgres(server.url))) as engine:
        add(engine, server, "collated")
        with engine.snapshot() as snapshot:
            text = "SELECT COUNT(*) FROM (SELECT s FROM t GROUP BY s) AS q"
            assert snapshot.run(Step(text, text)) == [(4,)]


def test_types_and_operators_of_others_are_not_taken_for_the_servers_own(server, raw):
    raw.execute(
        "DROP TABLE IF EXISTS own; DROP DOMAIN IF EXISTS public.int8; DROP TABLE IF EXISTS s"
    )
    raw.execute("DROP FUNCTION IF EXISTS public.told(bigint, bigint) CASCADE")
    raw.execute("CREATE DOMAIN public.int8 AS text; CREATE TABLE own (u bigint, c public.int8)")
    raw.execute("INSERT INTO own VALUES (1, 'x')")
    raw.execute(
        "CREATE FUNCTION public.told(bigint, bigint) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS "
        "$$ BEGIN RAISE EXCEPTION 'told'; END $$"
    )
    raw.execute(
        "CREATE OPERATOR public.> (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = public.told)"
    )
    raw.execute("ALTER ROLE deniable SET search_path = public, pg_catalog")
    try:
        with contextlib.closing(Postgres(dp.postgres(server.url))) as engine:
            assert list(add(engine, server, "own").columns) == ["u"]
            with engine.snapshot() as snapshot:
                text = "SELECT COUNT(*) FROM t WHERE u > 0"
                assert snapshot.run(Step(text, text)) == [(1,)]
    finally:
        raw.execute("ALTER ROLE deniable RESET search_path; DROP TABLE own")
        raw.execute("DROP FUNCTION public.told(bigint, bigint) CASCADE; DROP DOMAIN public.int8")


def test_a_check_does_not_touch_the_table(server, raw):
    """It passes although the table is locked away, and then gone; a snapshot waits, and fails."""
    raw.execute("DROP TABLE IF EXISTS gone; CREATE TABLE gone (u bigint, x float8)")
    with contextlib.closing(Postgres(dp.postgres(server.url))) as engine:
        add(engine, server, "gone")
        raw.execute("BEGIN; LOCK TABLE gone IN ACCESS EXCLUSIVE MODE")
        text = "SELECT COUNT(*), SUM(CAST(x > 0 AS BIGINT)) FROM t"
        engine.check([Step(text, text)])
        raw.execute("COMMIT; DROP TABLE gone")
        engine.check([Step(f"{text} WHERE u > 5", text)])
        with pytest.raises(dp.EngineError) as told, engine.snapshot() as snapshot:
            snapshot.run(Step(text, text))
    assert str(told.value) == faults.ended("the query", "Postgres")
    assert told.value.__context__ is None


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("SELECT 10 / (CASE WHEN s = 'alice' THEN 0 ELSE 1 END) FROM t", faults.VALUES),
        ("SELECT CAST(s AS INTEGER) FROM t", faults.VALUES),
        ("SELECT u FROM nowhere", faults.NAMES),
        ("SELECT SUM(s) FROM t", faults.NAMES),
    ],
)
def test_sentences_come_from_a_list(server, raw, text, sentence):
    raw.execute("DROP TABLE IF EXISTS told; CREATE TABLE told (u bigint, s text)")
    raw.execute("INSERT INTO told VALUES (1, 'secret')")
    with contextlib.closing(Postgres(dp.postgres(server.url))) as engine:
        add(engine, server, "told")
        with pytest.raises(dp.QueryError) as told:
            engine.check([Step(text, text, constants=("alice",))])
        assert str(told.value) == sentence
        engine.check([Step("SELECT u FROM t", "SELECT u FROM t")])


def test_a_role_that_may_not_make_temporary_tables_is_told(server, raw):
    raw.execute("DROP TABLE IF EXISTS shown; CREATE TABLE shown (u bigint)")
    raw.execute(
        "DROP ROLE IF EXISTS reader; CREATE ROLE reader LOGIN; GRANT SELECT ON shown TO reader"
    )
    raw.execute("REVOKE TEMP ON DATABASE postgres FROM PUBLIC")
    url = server.url.replace("deniable@", "reader@")
    try:
        with contextlib.closing(Postgres(dp.postgres(url))) as engine:
            engine.add("t", dp.postgres(url).table("shown"), None, "u")
            with pytest.raises(dp.EngineError, match="temporary tables"):
                engine.check([Step("SELECT u FROM t", "SELECT u FROM t")])
    finally:
        raw.execute("GRANT TEMP ON DATABASE postgres TO PUBLIC; DROP TABLE shown; DROP ROLE reader")


def test_databases_of_other_encodings_are_refused(server, raw):
    raw.execute("DROP DATABASE IF EXISTS bytes")
    raw.execute(
        "CREATE DATABASE bytes ENCODING SQL_ASCII LOCALE_PROVIDER libc LOCALE 'C' "
        "TEMPLATE template0"
    )
    with pytest.raises(dp.EngineError, match="UTF8"):
        Postgres(dp.postgres(server.url.replace("/postgres", "/bytes")))
    raw.execute("DROP DATABASE bytes")


def test_columns_of_the_shadow_are_typed_like_the_leaves(server, raw):
    raw.execute("DROP TABLE IF EXISTS typed")
    raw.execute(
        "CREATE TABLE typed (u int, f real, n numeric, c char(3), b bool, d date, z timestamptz)"
    )
    described = (
        "SELECT attname, atttypid::regtype::text, collname FROM pg_attribute "
        "LEFT JOIN pg_collation c ON c.oid = attcollation "
        "WHERE attrelid = 'pg_temp.deniable_leaf_0'::regclass AND attnum > 0 ORDER BY attnum"
    )
    with contextlib.closing(Postgres(dp.postgres(server.url))) as engine:
        add(engine, server, "typed")
        found = []
        for statement in (engine._known["t"].view(), engine._known["t"].shadow()):
            engine._begin()
            engine.connection.execute(statement)
            found.append(engine.connection.execute(described).fetchall())
            engine._end()
    assert found[0] == found[1]
