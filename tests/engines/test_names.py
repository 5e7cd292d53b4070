"""A table may be called as anything, also as parts of our own statements could be."""

import pyarrow as pa
import pytest

import deniable as dp
from engines.loading import to_postgres

ROWS = pa.table(
    {
        "u": pa.array([i // 3 for i in range(90)], pa.int64()),
        "g": pa.array(["a", "b"] * 45, pa.string()),
        "x": pa.array([1.5] * 90, pa.float64()),
    }
)
NAMES = [
    *("base", "pairs", "norms", "beyond", "maybe", "cut", "totals", "kept", "ranked"),
    *("counted", "means", "each", "u"),
]
QUESTIONS = (
    "SELECT g, COUNT(*) AS n, SUM(x) AS s FROM {} GROUP BY g",
    "SELECT COUNT(DISTINCT g) AS n FROM {}",
    "SELECT MEDIAN(x) AS n FROM {}",
)


@pytest.fixture(scope="module")
def sources(server):
    to_postgres(server.url, "called", ROWS)
    return {"duckdb": ROWS, "postgres": dp.postgres(server.url).table("called")}


@pytest.mark.parametrize("kind", ["duckdb", "postgres"])
@pytest.mark.parametrize("name", NAMES)
def test_a_table_of_any_name_is_answered(sources, kind, name):
    table = dp.PrivateTable(
        sources[kind], unit="u", population="p", max_rows=2, max_groups=2, bounds={"x": (0, 10)}
    )
    with dp.Session({name: table}, budget=dp.ApproxDP(1e9, 1e-6), ledger=dp.Ledger()) as session:
        answers = [session.sql(text.format(name), epsilon=1e5) for text in QUESTIONS]
    counts = dict(zip(answers[0]["g"], answers[0]["n"], strict=True))
    # Three rows of each unit, of which two count.
    assert {g: round(n) for g, n in counts.items()} == pytest.approx({"a": 45, "b": 45}, abs=25)
    assert round(answers[1]["n"][0]) == 2
    assert answers[2]["n"][0] == pytest.approx(1.5, abs=0.1)


@pytest.mark.parametrize("kind", ["duckdb", "postgres"])
def test_a_table_named_as_ours_is_refused(sources, kind):
    table = dp.PrivateTable(sources[kind], unit="u", population="p", max_rows=2)
    with pytest.raises(dp.ParameterError, match="names of tables"):
        dp.Session({"deniable_base": table}, budget=dp.ApproxDP(9, 1e-6), ledger=dp.Ledger())
