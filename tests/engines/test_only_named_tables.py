"""No table is read but those that a question is about, whatever its texts and names look like."""

import duckdb
import pytest

import deniable as dp

# Each makes a statement look as if it read the table ill.
LOOKS = [
    "SELECT ward, beds AS ill FROM w UNION ALL SELECT ward, beds FROM w",
    "SELECT ward, beds FROM w WHERE ward <> 'from ill '",
    "SELECT ward, beds FROM w WHERE ward <> ', ill '",
]


@pytest.fixture
def opened(tmp_path):
    """A session over a table, a view of others that fails for one of their rows, and wards."""
    sessions = []

    def session(cell):
        owned = duckdb.connect()
        owned.execute("CREATE TABLE t AS SELECT range AS u, 'A' AS ward FROM range(50)")
        owned.execute("CREATE TABLE base AS SELECT range AS u, 'A' AS ward, '1' AS s FROM range(9)")
        owned.execute("INSERT INTO base VALUES (99, 'A', ?)", [cell])
        owned.execute("CREATE VIEW ill AS SELECT u, ward FROM base WHERE CAST(s AS INTEGER) > 0")
        (tmp_path / "wards.csv").write_text("ward,beds\nA,3\nB,4\n")
        database, unit = dp.duckdb(owned), {"unit": "u", "max_rows": 1}
        ill = dp.PrivateTable(database.table("ill"), population="ill", row_by_row=True, **unit)
        tables = {
            "t": dp.PrivateTable(database.table("t"), population="p", **unit),
            "ill": ill,
            "w": dp.PublicTable(
                str(tmp_path / "wards.csv"), columns={"ward": "text", "beds": "integer"}
            ),
        }
        budget, ledger = dp.ApproxDP(1e9, 1e-6), dp.Ledger(key=bytes(32))
        sessions.append(dp.Session(tables, budget=budget, ledger=ledger))
        return sessions[-1]

    yield session
    for each in sessions:
        each.close()


@pytest.mark.parametrize("cell", ["1", "no number"])
@pytest.mark.parametrize("looks", LOOKS)
def test_planning_reads_no_private_rows(opened, looks, cell):
    asked = f"SELECT COUNT(*) AS n FROM ill JOIN ({looks}) AS z ON ill.ward = z.ward"
    assert str(opened(cell).explain(asked, epsilon=1)).startswith("cost")


@pytest.mark.parametrize("cell", ["1", "no number"])
@pytest.mark.parametrize("looks", LOOKS)
def test_a_question_reads_no_rows_of_other_people(opened, looks, cell):
    asked = f"SELECT COUNT(*) AS n FROM t JOIN ({looks}) AS z ON t.ward = z.ward"
    rows = 100 if "UNION" in looks else 50
    assert opened(cell).sql(asked, epsilon=1e6)["n"][0] == pytest.approx(rows, abs=1)


def test_a_question_that_reads_them_fails(opened):
    with pytest.raises(dp.DeniableError, match="failed after it was charged"):
        opened("no number").sql("SELECT COUNT(*) AS n FROM ill", epsilon=1)
