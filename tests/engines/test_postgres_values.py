"""Postgres finds what DuckDB finds, in a database that has another order of letters."""

import contextlib
from datetime import date

import psycopg
import pyarrow as pa
import pytest

import deniable as dp
from deniable.engines.base import Step
from deniable.engines.postgres import Postgres
from engines.doubles import ROUNDED, doubles, rounded_by_duckdb, told
from engines.loading import to_postgres
from values.battery import samples
from values.extremes import T
from values.on_postgres import OnPostgres

SPACES = (0x9, 0xA, 0xD, 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200D), 0x202F, 0x205F, 0x3000)
TEXTS = [
    *("ab", "a\nb", "b\n", "b", "\n", "", "aab", "é", "a-b", "]", "a]", "^", "$", "a^b", "A", "😀"),
    *("a\rb", "a b", "_", "|", "[", "a.b", "a\u2028b", "Z", "\n\n"),
    *(f"{chr(space)}x{chr(space)}" for space in SPACES),
]
DAYS = [date(2024, 1, 5), date(2024, 12, 5), date(2023, 7, 5)]
ROWS = pa.table(
    {
        "u": pa.array(range(len(TEXTS)), pa.int64()),
        "s": pa.array(TEXTS, pa.string()),
        "d": pa.array([DAYS[n % 3] for n in range(len(TEXTS))], pa.date32()),
        "b": pa.array([n % 2 == 0 for n in range(len(TEXTS))], pa.bool_()),
        "i": pa.array([(n - 7) * 5 for n in range(len(TEXTS))], pa.int64()),
    }
)
ORDERS = [
    *("'Z' < 'a' AND s = s", "s < 'a'", "s || 'x' < 'a'", "CONCAT('Z', s) < 'a'"),
    *("CAST(b AS VARCHAR) < 'Z'", "CAST(i AS VARCHAR) < 'A'", "CAST(d AS VARCHAR) < 'a'"),
    *("CONCAT('Z', i) < 'a'", "CONCAT(i, d) || 'B' < CONCAT(i, d) || 'a'"),
    *("STRFTIME(d, '%B') < 'apple'", "STRFTIME(d, '%B') BETWEEN 'A' AND 'Z'"),
    *("STRFTIME(d, '%B') > s", "SUBSTRING(STRFTIME(d, '%B'), 1, 1) < 'a'"),
    *("STRFTIME(d, '%B') IN ('July', 'january')", "LEFT(STRFTIME(d, '%B'), 1) < 'a'"),
    "GREATEST(STRFTIME(d, '%B'), 'apple') = 'apple'",
    "LEAST('apple', STRFTIME(d, '%B'), CAST(i AS VARCHAR)) = 'apple'",
    "CASE WHEN b THEN 'B' ELSE 'a' END < 'a'",
    "CASE WHEN b THEN 'B' ELSE 'a' END > STRFTIME(d, '%b')",
    "CASE CAST(b AS VARCHAR) WHEN 'true' THEN 'B' ELSE 'a' END < 'a'",
    "COALESCE(CASE WHEN b THEN 'B' END, 'a') < 'a'",
    "NULLIF(STRFTIME(d, '%B'), 'july') < 'a'",
    "REPLACE(STRFTIME(d, '%B'), 'J', 'Z') < 'a'",
    *("LOWER('Z') < 'a'", "UPPER('z') < 'a'", "TRIM(' Z ') < 'a'"),
    *("REGEXP_MATCHES(STRFTIME(d, '%B'), '^[a-z]')", "REGEXP_MATCHES('B', '[a-z]')"),
    *("STRFTIME(d, '%B') LIKE 'J%'", "STARTS_WITH(STRFTIME(d, '%B'), 'J')"),
]
PATTERNS = [
    *("a.b", "^b", "b$", "^.$", "[^a]", "a|", "|a", "[a-]", "a.*?b", "a+?", "[]a]", "[^]a]"),
    *("[$^]", "[a.b]", ".", "^$", "[a-z]", "[A-z]", "a.", "..", "^.*$", "$", "a$|b", "[+*?]"),
    *("[^]].", "[a^.].", ".[^.]", "[^.]*.", "[]].|."),
]
INSIDE = [
    "SELECT u, MAX(STRFTIME(d, '%B')) AS m FROM t GROUP BY u",
    "SELECT u, MIN(CASE WHEN b THEN 'B' ELSE 'a' END) AS m FROM t GROUP BY u",
    "SELECT DISTINCT u, CAST(b AS VARCHAR) AS m FROM t",
    "SELECT u, FIRST_VALUE(STRFTIME(d, '%b')) OVER (PARTITION BY u ORDER BY s) AS m FROM t",
    "SELECT u, 'Z' AS m FROM t UNION ALL SELECT u, CONCAT(i, 'b') AS m FROM t",
]


def session_of(source):
    table = dp.PrivateTable(source, unit="u", population="p", max_rows=2, max_groups=1)
    return dp.Session({"t": table}, budget=dp.ApproxDP(1e9, 1e-6), ledger=dp.Ledger(key=bytes(32)))


@pytest.fixture(scope="module")
def both(server):
    to_postgres(server.url, "letters", ROWS)
    with (
        session_of(dp.postgres(server.url).table("letters")) as asked,
        session_of(ROWS) as known,
    ):
        yield asked, known


def count(session, question):
    return round(session.sql(question, epsilon=1e6)["n"][0])


def alike(both, question):
    asked, known = both
    assert count(asked, question) == count(known, question)


def test_the_database_has_an_order_of_its_own(server):
    with psycopg.connect(server.url) as connection:
        assert connection.execute("SELECT 'Z' < 'a', 'a' < 'B'").fetchone() == (False, True)


@pytest.mark.parametrize("condition", ORDERS)
def test_all_text_has_the_order_of_its_bytes(both, condition):
    alike(both, f"SELECT COUNT(*) AS n FROM t WHERE {condition}")


@pytest.mark.parametrize("inner", INSIDE)
def test_text_of_an_inner_select_has_it_too(both, inner):
    alike(both, f"SELECT COUNT(*) AS n FROM ({inner}) AS q WHERE m < 'a'")


def test_no_text_of_any_operator_follows_the_database(server):
    texts = [sample for sample in samples() if sample.kind == T]
    with contextlib.closing(OnPostgres(server.url, texts)) as run:
        for columns, listed in run.groups.items():
            *functions, text = run._write(tuple(listed), columns)
            for function in functions:
                run.engine.execute(function)
            places = range(len(columns), len(columns) + len(listed))
            orders = ", ".join(f"MIN(pg_collation_for(c{place}))" for place in places)
            # Of an empty table nothing is asked.
            for name in columns:
                run.engine.execute(f"INSERT INTO raw_{name} VALUES (0, NULL)")
            rows = text.partition(" FROM ")[2].removesuffix(" GROUP BY part")
            (found,) = run.engine.execute(
                f"SELECT {orders} FROM {rows} WHERE n IS NOT NULL"
            ).fetchall()
            assert dict(zip([sample.text for sample in listed], found, strict=True)) == {
                sample.text: '"C"' for sample in listed
            }
    assert len(texts) > 50


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_dot_is_no_end_of_a_line(both, pattern):
    alike(both, f"SELECT COUNT(*) AS n FROM t WHERE REGEXP_MATCHES(s, '{pattern}')")


@pytest.mark.parametrize("name", ["TRIM", "LTRIM", "RTRIM"])
@pytest.mark.parametrize("shape", ["x", "x_", "_x", "_x_"])
def test_the_same_spaces_are_taken_off(both, name, shape):
    alike(both, f"SELECT COUNT(*) AS n FROM t WHERE {name}(s) LIKE '{shape}'")


def test_doubles_round_as_on_duckdb(server):
    table = doubles()
    to_postgres(server.url, "doubles", table)
    source = dp.postgres(server.url).table("doubles")
    with contextlib.closing(Postgres(source.database)) as engine:
        engine.add("t", source, None)
        step = Step(f"SELECT x, {ROUNDED} FROM t", "SELECT x FROM t")
        assert "deniable_try" not in engine.write(step)[-1]
        with engine.snapshot() as taken:
            found = told(taken.run(step))
    assert found == rounded_by_duckdb(table)


@pytest.mark.parametrize("many", [16, 17, 60, 200])
@pytest.mark.parametrize(("word", "sign"), [("OR", "="), ("AND", "<>")])
def test_long_chains_are_answered(both, many, word, sign):
    chain = f" {word} ".join(f"i {sign} {number}" for number in range(-many, many, 2))
    alike(both, f"SELECT COUNT(*) AS n FROM t WHERE {chain}")
    alike(both, f"SELECT COUNT(*) AS n FROM t WHERE NOT ({chain}) AND (s < 'b' OR {chain})")


@pytest.mark.parametrize("value", ["s || " * 40 + "s = 'a'", "i + " * 50 + "i = 0"])
def test_what_is_too_deep_is_refused_with_a_sentence(both, value):
    with pytest.raises(dp.QueryError, match="nested too deeply for Postgres"):
        both[0].sql(f"SELECT COUNT(*) AS n FROM t WHERE {value}", epsilon=1)
