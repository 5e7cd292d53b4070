"""Equal rows of a unit have one order in all windows of a SELECT, whoever else is in the table."""

import numpy as np
import pyarrow as pa
import pytest

import deniable as dp
from engines.loading import to_postgres
from postgres import Postgres

PEOPLE, PAIRS = 204, 5

# Both windows have the same order, but for ties: what they give to a row must be the same.
FUNCTIONS = {
    "row_number": "ROW_NUMBER() OVER (PARTITION BY u ORDER BY {key})",
    "lag": "LAG(i) OVER (PARTITION BY u ORDER BY {key})",
    "lead": "LEAD(i, 2) OVER (PARTITION BY u ORDER BY {key})",
    "first": "FIRST_VALUE(i) OVER (PARTITION BY u ORDER BY {key} ROWS 1 PRECEDING)",
    "frame": "SUM(i) OVER (PARTITION BY u ORDER BY {key} ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)",
    "count": "COUNT(*) OVER (PARTITION BY u ORDER BY {key} ROWS UNBOUNDED PRECEDING)",
}


def table(extra):
    """Pairs of equal rows for everybody, in an order that tells nothing; one more person."""
    order = np.random.default_rng(5).permutation(PEOPLE * PAIRS * 2)
    u = np.repeat(np.arange(PEOPLE), 2 * PAIRS)[order]
    i = np.tile(np.repeat(np.arange(PAIRS), 2), PEOPLE)[order]
    u = np.concatenate([np.full(extra, -1), u])
    i = np.concatenate([np.arange(extra), i])
    return pa.table({"u": u, "i": i, "j": i})


def question(function):
    one, two = (FUNCTIONS[function].format(key=key) for key in ("i", "j"))
    return (
        "SELECT COUNT(*) AS n FROM (SELECT u, COUNT_IF(COALESCE(a, -1) <> COALESCE(b, -1)) AS c "
        f"FROM (SELECT u, {one} AS a, {two} AS b FROM t) AS q GROUP BY u) AS z WHERE c > 0"
    )


def opened(source):
    given = dp.PrivateTable(source, unit="u", population="p", max_rows=1, max_groups=1)
    return dp.Session({"t": given}, budget=dp.ApproxDP(1e9, 1e-6), ledger=dp.Ledger(key=bytes(32)))


@pytest.mark.parametrize("extra", [0, 8, 17])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_windows_of_one_select_order_equal_rows_alike(function, extra):
    with opened(table(extra)) as session:
        assert round(session.sql(question(function), epsilon=1e6)["n"][0]) == 0


@pytest.fixture(scope="module")
def postgres():
    server = Postgres()
    yield server
    server.remove()


ODD = (
    "SELECT COUNT(*) AS n FROM (SELECT u, COUNT_IF((a + b) % 2 = 1) AS c FROM (SELECT u, "
    "ROW_NUMBER() OVER (PARTITION BY u ORDER BY i) AS a, ROW_NUMBER() OVER (PARTITION BY u "
    "ORDER BY j) AS b FROM t) AS q GROUP BY u) AS z WHERE c > 0"
)


def scattered(people, extra):
    """Two pairs of equal rows for everybody, with random numbers; one more person, first."""
    random = np.random.default_rng(people)
    i, j = (np.repeat(random.integers(0, 1000, 2 * people), 2) for _ in range(2))
    u = np.repeat(np.arange(people), 4)
    order = random.permutation(len(u))
    more = np.arange(extra)
    columns = (np.full(extra, -1), u[order]), (more, i[order]), (more[::-1], j[order])
    return pa.table(dict(zip("uij", map(np.concatenate, columns), strict=True)))


def odd(rows):
    """The exact answer, by hand."""
    units = dict[int, list[tuple[int, int]]]()
    for row in rows.to_pylist():
        units.setdefault(row["u"], []).append((row["i"], row["j"]))
    found = 0
    for each in units.values():
        first = sorted(each)  # equal rows keep this order in both windows
        second = sorted(range(len(first)), key=lambda place: (first[place][1], *first[place]))
        found += any((a + b) % 2 for b, a in enumerate(second))
    return found


@pytest.mark.parametrize("extra", [0, 1, 5, 10])
@pytest.mark.parametrize("engine", ["duckdb", "postgres"])
def test_what_two_windows_give_together_is_exact(engine, extra, postgres):
    rows = scattered(3000, extra)
    source = rows
    if engine == "postgres":
        to_postgres(postgres.url, "t", rows)
        source = dp.postgres(postgres.url).table("t")
    with opened(source) as session:
        assert round(session.sql(ODD, epsilon=1e6)["n"][0]) == odd(rows)


def test_windows_over_joins_and_under_where_are_answered_as_plain_sql_does():
    rows = table(3)
    text = (
        "SELECT SUM(a * b) AS n FROM (SELECT t.u, ROW_NUMBER() OVER (PARTITION BY t.u ORDER BY "
        "t.i DESC) AS a, ROW_NUMBER() OVER (PARTITION BY t.u ORDER BY w.k, t.j) AS b FROM t JOIN w "
        "ON t.i = w.i WHERE t.j < 4) AS q"
    )
    w = pa.table({"i": [0, 1, 2, 3, 4], "k": [5, 4, 3, 2, 1]})
    given = dp.PrivateTable(rows, unit="u", population="p", max_rows=10)
    with dp.Session(
        {"t": given, "w": dp.PublicTable(w)},
        budget=dp.ApproxDP(1e9, 1e-6),
        ledger=dp.Ledger(key=bytes(32)),
    ) as session:
        found = session.sql(text, epsilon=1e8, bounds={"a": (0, 8), "b": (0, 8)})["n"][0]
    # Of i in (3, 3, 2, 2, 1, 1, 0, 0), DESC and by k: both begin with the largest i.
    everybody = PEOPLE * sum(n * n for n in range(1, 9))
    assert found == pytest.approx(everybody + 1 + 4 + 9, abs=2)
