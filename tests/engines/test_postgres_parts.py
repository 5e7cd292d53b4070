"""What a statement hands out on Postgres: as many rows whatever there is, none of them large."""

import psycopg
import pytest

from deniable.engines.base import Step
from deniable.engines.postgres import Postgres, postgres
from deniable.engines.postgres_settings import beginning
from deniable.engines.postgres_sql import PARTS, in_parts, rows_of

LONG = 1_000


@pytest.fixture
def asked(server):
    """Runs a SELECT: the sizes of what is handed out in each row, and the rows in it."""
    with psycopg.connect(server.url, autocommit=True) as connection:

        def run(select, columns):
            parts = connection.execute(in_parts(select, columns)).fetchall()
            return [_bytes(lists) for lists in parts], rows_of(parts)

        yield run


def _bytes(lists):
    return sum(len(str(value)) for values in lists if values is not None for value in values)


def groups(count):
    return f"SELECT repeat('x', {LONG}) || n, n FROM generate_series(1, {count}) AS n"


@pytest.mark.parametrize("count", [0, 1, PARTS, PARTS + 1, 20 * PARTS])
def test_as_many_rows_are_handed_out_whatever_there_is(asked, count):
    sizes, rows = asked(groups(count), 2)
    assert len(sizes) == PARTS
    assert [n for _, n in rows] == list(range(1, count + 1))
    assert all(text == "x" * LONG + str(n) for text, n in rows)


def test_no_row_has_more_than_its_part_of_long_keys(asked):
    """The server ends a statement of which one row has more than a gigabyte."""
    sizes, rows = asked(groups(20 * PARTS), 2)
    assert len(rows) == 20 * PARTS
    assert max(sizes) <= 21 * (LONG + 15)


def test_null_is_a_value_in_a_list(asked):
    _, rows = asked("SELECT CAST(NULL AS text), CAST(NULL AS int8) FROM generate_series(1, 3)", 2)
    assert rows == [(None, None)] * 3


def test_statements_of_the_engine_are_dealt(server):
    engine = Postgres(postgres(server.url))
    try:
        (text,) = engine.translated(Step("SELECT 1 AS a", "SELECT 1 AS a"))
        assert engine.connection.execute(text).rowcount == PARTS
    finally:
        engine.close()


@pytest.mark.parametrize(("version", "known"), [(150_018, False), (170_000, True)])
def test_no_limit_of_time_ends_a_question(version, known):
    """One person's rows may take long."""
    settings = beginning(version)
    assert "statement_timeout = 0" in settings
    assert ("transaction_timeout = 0" in settings) == known
    assert "SELECT" not in settings  # it would take the snapshot before tables are locked
