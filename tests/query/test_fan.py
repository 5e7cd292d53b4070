"""Rows that multiply: joins with public tables, joins of a person's rows with each other."""

import random

import duckdb
import pyarrow as pa
import pytest

import deniable as dp
from deniable.engines.duckdb import DuckDB
from deniable.query.plan.plan import SCALE
from deniable.query.read.catalogue import Catalogue, Options
from deniable.query.read.compile import compile_sql
from deniable.query.read.fan import MOST_ROWS, Counts
from deniable.query.run.emit import totals_step
from deniable.tables import PrivateTable
from snapshots import run

ROWS = 3_000
W = pa.table(
    {
        "k": range(ROWS),
        "five": [i % 5 for i in range(ROWS)],
        "word": [f"w{i}" for i in range(ROWS)],
        "holes": [None if i % 2 else i for i in range(ROWS)],
    }
)
# Two tags for the even numbers below ten, three for 7, none for the others.
TAGS = pa.table({"k": [0, 0, 2, 2, 4, 4, 6, 6, 8, 8, 7, 7, 7, None], "tag": list("abababababxyz?")})
PEOPLE = [(1, "alice", 7), (2, "bob", 2), (3, "cid", 2), (3, "cid", 3)]
ALICE = "(SELECT u, x FROM t WHERE s = 'alice')"


def people(rows):
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    types = (pa.int64(), pa.string(), pa.int64())
    return pa.table({n: pa.array(c, type=t) for n, c, t in zip("usx", columns, types, strict=True)})


def private(rows, **declared):
    return PrivateTable(
        people(rows),
        **{"unit": "u", "population": "p", "max_rows": 2, "bounds": {"x": (0, 9)}, **declared},
    )


def session(rows=PEOPLE, **declared):
    return dp.Session(
        {"t": private(rows, **declared), "w": dp.PublicTable(W), "tags": dp.PublicTable(TAGS)},
        budget=dp.ZCDP(1e9),
        ledger=dp.Ledger(key=bytes(32)),
    )


def planned(rows, question, **declared):
    """The plan of a question, and the engine that has its tables."""
    engine, table = DuckDB(), private(rows, **declared)
    schemas = {"t": engine.add("t", people(rows), None)}
    schemas |= {"w": engine.add("w", W, None), "tags": engine.add("tags", TAGS, None)}
    catalogue = Catalogue(schemas, {"t": table}, Counts(engine, frozenset({"w", "tags"})))
    return engine, compile_sql(question, catalogue, Options())


def exact(rows, question, **declared):
    """The whole numbers before noise."""
    engine, plan = planned(rows, question, **declared)
    try:
        ((*found,),) = run(engine, totals_step(plan, l2=True))
    finally:
        engine.close()
    return [int(value or 0) for value in found]


TOO_FAR = [
    f"FROM {ALICE} AS a CROSS JOIN w CROSS JOIN w AS v CROSS JOIN w AS z",
    f"FROM {ALICE} AS a, w, w AS v, w AS z",
    f"FROM {ALICE} AS a JOIN w ON 1 = 1 JOIN w AS v ON 1 = 1",
    f"FROM {ALICE} AS a JOIN w ON a.x < w.k JOIN w AS v ON w.k < v.k",
    f"FROM {ALICE} AS a JOIN w ON w.five = 3 JOIN w AS v ON v.five = 3",
    f"FROM {ALICE} AS a JOIN w ON a.x = w.five JOIN w AS v ON v.five = w.five",
    f"FROM {ALICE} AS a JOIN w ON a.x = w.five OR a.x = w.k JOIN w AS v ON v.five = w.five",
    f"FROM {ALICE} AS a LEFT JOIN w ON a.x <> w.k LEFT JOIN w AS v ON a.x <> v.k",
    f"FROM w JOIN {ALICE} AS a ON a.x = w.five JOIN w AS v ON a.x = v.five",
    f"FROM {ALICE} AS a JOIN w ON a.x = w.k % 5 JOIN w AS v ON a.x = v.k % 5",
    f"FROM {ALICE} AS a JOIN (SELECT v.k FROM w JOIN w AS v ON w.five = v.five) AS q ON a.x < q.k",
    f"FROM {ALICE} AS a CROSS JOIN (SELECT k FROM w UNION ALL SELECT k FROM w UNION ALL "
    "SELECT k FROM w UNION ALL SELECT k FROM w) AS q",
    f"FROM (SELECT a.u FROM {ALICE} AS a CROSS JOIN w) AS b CROSS JOIN w",
    f"FROM (SELECT a.u FROM {ALICE} AS a CROSS JOIN w) AS b "
    f"JOIN (SELECT a.u FROM {ALICE} AS a CROSS JOIN w) AS c ON b.u = c.u",
    f"FROM {ALICE} AS a JOIN (SELECT w.k FROM w CROSS JOIN w AS v CROSS JOIN w AS z) AS q "
    "ON a.x = q.k",
]


@pytest.mark.parametrize("origin", TOO_FAR)
def test_rows_that_multiply_too_far_are_refused_before_the_charge_for_everybody(origin):
    """A limit of memory that one person's rows reach would tell that she is there."""
    said = []
    for rows in (PEOPLE, PEOPLE[1:], []):
        with session(rows) as opened:
            for ask in (opened.explain, opened.sql):
                with pytest.raises(dp.QueryError) as refused:
                    ask(f"SELECT COUNT(*) AS n {origin}", rho=1)
                said.append(str(refused.value))
            assert opened.spent == {"p": 0}
    assert len(set(said)) == 1
    assert "are the most" in said[0]


def test_the_same_in_a_common_table_expression():
    with session() as opened, pytest.raises(dp.QueryError, match="9,000,000 rows of each row"):
        opened.sql(
            "WITH v AS (SELECT k FROM w), b AS (SELECT u FROM t CROSS JOIN v) "
            "SELECT COUNT(*) AS n FROM b CROSS JOIN v",
            rho=1,
        )


FANS = {
    "t JOIN w ON t.x = w.k": 1,
    "t LEFT JOIN w ON t.x = w.k": 1,
    "w JOIN t ON w.k = t.x": 1,
    "t, w WHERE t.x = w.k": 1,
    "t JOIN w ON t.x = w.five": 600,
    "t JOIN w ON w.five = 3": 600,
    "t JOIN w ON t.x = w.five AND t.x = w.k": 1,
    "t JOIN w ON t.x = w.holes": 1,  # rows without a value meet none
    "t JOIN w ON t.s = w.word": 1,
    "t JOIN w ON LOWER(t.s) = w.word": 1,
    "t JOIN w ON t.s = LOWER(w.word)": 1,
    "t JOIN w ON t.s = LEFT(w.word, 2)": 1_111,
    "t JOIN w ON t.x = w.k + 1": 1,
    "t JOIN w ON t.x = w.k % 5": 600,
    "t JOIN w ON t.x + w.k = w.k + w.five": ROWS,
    "t JOIN (SELECT LOWER(word) AS word FROM w) AS q ON t.s = q.word": 1,
    "t JOIN w ON t.x * 0.5 = w.k": 1,
    "t CROSS JOIN w": ROWS,
    "t LEFT JOIN w ON t.x < w.k": ROWS,
    "t LEFT JOIN w ON 1 = 1 WHERE w.k = t.x": ROWS,
    "t JOIN (SELECT five, COUNT(*) AS n FROM w GROUP BY five) AS q ON t.x = q.five": 1,
    "t JOIN (SELECT five, COUNT(*) AS n FROM w GROUP BY five) AS q ON t.x < q.five": 5,
    "t JOIN (SELECT k FROM w WHERE k < 7) AS q ON t.x <> q.k": 7,
    "t JOIN (SELECT k FROM w UNION ALL SELECT five FROM w) AS q ON t.x = q.k": 601,
    "t JOIN w ON t.x = w.k JOIN tags ON tags.k = w.k": 3,
    "tags JOIN w ON tags.k = w.k JOIN t ON t.x = w.k": 3,
    "t JOIN tags ON tags.k = t.x JOIN tags AS more ON more.k = t.x": 9,
    "(SELECT u, x FROM t UNION ALL SELECT u, x FROM t) AS a JOIN tags ON tags.k = a.x": 6,
}


@pytest.mark.parametrize("origin", FANS)
def test_what_one_row_becomes_is_counted_in_the_public_tables(origin):
    engine, plan = planned(PEOPLE, f"SELECT COUNT(*) AS n FROM {origin}")
    engine.close()
    assert plan.contribution.fan == FANS[origin]
    assert plan.contribution.rows == 2 * FANS[origin]


def test_whole_numbers_that_are_one_as_doubles_are_counted_as_one():
    engine = DuckDB()
    near = pa.table({"k": [2**53, 2**53 + 1, 5]})
    mine = pa.table({"u": [1], "f": [2.0**53]})
    table = PrivateTable(mine, unit="u", population="p", max_rows=1)
    schemas = {"t": engine.add("t", mine, None), "near": engine.add("near", near, None)}
    catalogue = Catalogue(schemas, {"t": table}, Counts(engine, frozenset({"near"})))
    question = "SELECT COUNT(*) AS n FROM t JOIN near ON t.f = near.k"
    assert compile_sql(question, catalogue, Options()).contribution.fan == 2
    engine.close()


def test_private_tables_are_never_counted():
    engine, plan = planned(PEOPLE, "SELECT COUNT(*) AS n FROM t")
    with pytest.raises(AssertionError, match="only public tables"):
        Counts(engine, frozenset({"w"}))(plan.counted.source.select("COUNT(*)"))
    engine.close()


def test_public_tables_are_counted_once(monkeypatch):
    asked = []
    snapshot = DuckDB.snapshot
    monkeypatch.setattr(
        DuckDB,
        "snapshot",
        lambda self, reads, only: asked.append(1) or snapshot(self, reads, only=only),
    )
    with session() as opened:
        for rho in (1, 2, 3):
            opened.explain("SELECT COUNT(*) AS n FROM t JOIN tags ON t.x = tags.k", rho=rho)
    assert len(asked) == 1


def test_max_rows_times_fan_rows_count_in_full():
    """Each of 600 people has one row, which meets two or three tags."""
    rows = [(unit, "x", (2, 7)[unit % 2]) for unit in range(600)]
    question = "SELECT COUNT(*) AS n, SUM(x) AS s FROM t JOIN tags ON t.x = tags.k"
    assert exact(rows, question, max_rows=1)[0] == SCALE * (300 * 2 + 300 * 3)
    with session(rows, max_rows=1) as opened:
        answer = opened.sql(question, rho=1e6)
    assert answer["n"][0] == pytest.approx(1500, abs=2)
    assert answer["s"][0] == pytest.approx(300 * 2 * 2 + 300 * 3 * 7, abs=5)


def test_rows_that_are_people_count_in_full_with_all_they_meet():
    rows = [(unit, "x", 7) for unit in range(500)]
    with session(rows, unit=dp.ROW, max_rows=None) as opened:
        question = "SELECT COUNT(*) AS n FROM t LEFT JOIN tags ON t.x = tags.k"
        answer = opened.sql(question, rho=1e6)
        total = answer.intervals(0.95, kind="total").to_pydict()
    assert answer["n"][0] == pytest.approx(1500, abs=2)
    assert total["n_high"][0] < 1510  # one row, three tags: nothing is cut off


def test_bounds_that_are_bought_see_the_joined_rows():
    rows = [(unit, "x", 7) for unit in range(2_000)]
    with session(rows, max_rows=None) as opened:
        question = "SELECT COUNT(*) AS n FROM t JOIN tags ON t.x = tags.k"
        answer = opened.sql(question, rho=1e4)
        told = opened.explain("SELECT SUM(x) AS s FROM t JOIN tags ON t.x = tags.k", rho=5)
    assert answer["n"][0] == pytest.approx(6_000, rel=0.01)
    assert "one row becomes up to 3" in told.contributions


def test_explain_says_how_rows_multiply_and_which_are_left_out():
    with session() as opened:
        plain = opened.explain("SELECT COUNT(*) AS n FROM t", rho=1)
        tagged = opened.explain("SELECT COUNT(*) AS n FROM t JOIN tags ON t.x = tags.k", rho=1)
        squared = opened.explain("SELECT COUNT(*) AS n FROM t JOIN t AS b ON t.u = b.u", rho=1)
        cubed = "SELECT COUNT(*) AS n FROM t JOIN t AS b ON t.u = b.u JOIN t AS c ON t.u = c.u"
        three = opened.explain(cubed, rho=1)
        answer = opened.sql(cubed, rho=1)
    assert "becomes" not in plain.contributions
    assert "left out" not in plain.contributions
    assert "counts in full with up to 6 rows" in tagged.contributions
    assert "by its joins one row becomes up to 3" in tagged.contributions
    left_out = "rows of one person beyond {} on each side of the join are left out"
    assert left_out.format("3,162") in squared.contributions
    assert left_out.format("215") in three.contributions
    assert left_out.format("215") in answer.labels


def test_max_rows_beyond_what_a_join_may_make_is_refused():
    question = "SELECT COUNT(*) AS n FROM t JOIN t AS b ON t.u = b.u"
    with session(max_rows=3_162) as opened:
        opened.explain(question, rho=1)
    with session(max_rows=3_163) as opened:
        with pytest.raises(dp.QueryError, match=r"10,004,569 rows .* aggregate by the unit"):
            opened.sql(question, rho=1)
        assert opened.spent == {"p": 0}


def heavy(unit, rows):
    """A person with many rows, in no order, most of them not alone of their kind."""
    rng = random.Random(unit)
    return [
        (unit, rng.choice(["a", "b", None]), rng.choice([*range(40), None])) for _ in range(rows)
    ]


def in_order(rows):
    """By all columns, what is missing last."""
    return sorted(rows, key=lambda row: [(v is None, 0 if v is None else v) for v in row])


def test_a_person_with_many_rows_has_the_square_of_the_first_ones():
    rows = heavy(1, 20_000)
    declared = {"max_rows": 3_162, "bounds": {"x": (0, 100)}, "grid": {"x": 1}}
    counted = exact(rows, "SELECT COUNT(*) AS n FROM t JOIN t AS b ON t.u = b.u", **declared)
    assert counted == [SCALE * 3_162**2]
    kept = in_order(rows)[:3_162]
    where = "WHERE b.x > 20 AND t.s = 'a'"
    some = exact(rows, f"SELECT COUNT(*) AS n FROM t JOIN t AS b ON t.u = b.u {where}", **declared)
    first = sum(1 for _, s, _ in kept if s == "a") * sum(1 for *_, x in kept if (x or 0) > 20)
    assert some == [SCALE * first]


def test_three_sides_are_cut_to_the_third_root():
    rows = heavy(1, 2_000)
    question = (
        "SELECT COUNT(*) AS n FROM t JOIN t AS b ON t.u = b.u JOIN t AS c ON c.u = b.u "
        "WHERE t.x = 0 AND b.x < 2"
    )
    kept = in_order(rows)[:215]
    expected = sum(x == 0 for *_, x in kept) * sum(x is not None and x < 2 for *_, x in kept) * 215
    assert expected
    assert exact(rows, question, max_rows=215) == [SCALE * expected]


OTHERS = [row for unit in range(100, 140) for row in heavy(unit, 30)] + [
    row for unit in (200, 201) for row in heavy(unit, 4_000)
]
CUT = [
    "SELECT COUNT(*) AS n, SUM(t.x) AS s FROM t JOIN t AS b ON t.u = b.u AND b.x = 3",
    "SELECT COUNT(*) AS n, SUM(t.x) AS s FROM t LEFT JOIN t AS b ON t.u = b.u AND b.x = 3",
    "SELECT COUNT(*) AS n FROM t JOIN t AS b ON t.u = b.u AND t.x = b.x JOIN t AS c "
    "ON b.u = c.u AND b.x = c.x",
    "SELECT COUNT(*) AS n, SUM(q.m) AS s FROM t JOIN (SELECT u, MAX(x) AS m FROM t GROUP BY u) "
    "AS q ON t.u = q.u",
    "SELECT COUNT(*) AS n FROM t JOIN w ON t.x = w.five",
    "SELECT COUNT(*) AS n FROM t JOIN w ON t.x = w.five AND w.k < 90 JOIN t AS b "
    "ON t.u = b.u AND b.x = 1",
    "SELECT COUNT(*) AS n FROM (SELECT t.u, t.x FROM t JOIN t AS b ON t.u = b.u AND t.x = b.x) "
    "AS q JOIN t AS c ON q.u = c.u AND q.x = c.x AND c.x = 0",
    "SELECT COUNT(*) AS n FROM (SELECT t.u, ROW_NUMBER() OVER (PARTITION BY t.u ORDER BY b.x) "
    "AS r FROM t JOIN t AS b ON t.u = b.u AND t.x = b.x AND t.x < 2) AS q WHERE r % 3 = 1",
]


@pytest.mark.parametrize("question", CUT)
def test_what_is_kept_of_a_person_is_a_function_of_her_rows_alone(question):
    """Exact totals are sums over people, where some have more rows than a side keeps."""
    # No one is scaled down: it is the cut that is looked at.
    declared = {"bounds": {"x": (0, 40)}, "grid": {"x": 1}, "max_rows": 1}
    mine = heavy(1, 4_000)
    alone, others = (unscaled(rows, question, declared) for rows in (mine, OTHERS))
    shuffled = random.Random(1).sample(OTHERS + mine, len(OTHERS) + len(mine))
    assert alone[0] > 0
    for both in (mine + OTHERS, OTHERS + mine, shuffled):
        found = unscaled(both, question, declared)
        assert found == [a + b for a, b in zip(alone, others, strict=True)]


def unscaled(rows, question, declared):
    engine, plan = planned(rows, question, **declared)
    base = totals_step(plan, l2=True).rows
    sums = ", ".join(f"SUM(t{n})" for n in range(len(plan.counted.statistics)))
    ((*found,),) = engine._connection.execute(f"SELECT {sums} FROM ({base}) AS b").fetchall()
    engine.close()
    return [int(value or 0) for value in found]


@pytest.mark.parametrize("question", CUT)
def test_no_person_makes_more_rows_than_planned(question):
    engine, plan = planned(PEOPLE, question, max_rows=None)
    engine.close()
    assert plan.contribution.most is None or plan.contribution.most <= MOST_ROWS
    assert (plan.contribution.most is None) == ("MAX(x)" in question)


def test_rows_that_could_fill_the_disk_are_not_stored():
    """Summed in place; windows need their rows, and few joined rows are kept for later steps."""
    stored = {
        "t JOIN t AS b ON t.u = b.u": False,
        "t JOIN w ON t.x < w.k": False,
        "t JOIN tags ON t.x = tags.k": True,
        "(SELECT t.u, ROW_NUMBER() OVER (PARTITION BY t.u ORDER BY t.x) AS r FROM t JOIN t AS b "
        "ON t.u = b.u) AS q": True,
    }
    for origin, kept in stored.items():
        engine, plan = planned(PEOPLE, f"SELECT COUNT(*) AS n FROM {origin}")
        assert ("deniable_rows" in totals_step(plan, l2=True).tables) == kept
        engine.close()


def test_a_question_that_could_fill_the_engine_is_refused_for_everybody():
    """The promise decides, not the rows: three of them, or none."""
    home = duckdb.connect(":memory:")
    home.execute("SET memory_limit = '1GiB'")
    home.execute("SET max_temp_directory_size = '1GiB'")
    home.execute("SET temp_directory = '.none'")
    said = []
    for rows in (PEOPLE, []):
        home.register("arrow", people(rows))
        home.execute("CREATE OR REPLACE TABLE people AS SELECT * FROM arrow")
        home.register("arrow_w", W)
        home.execute("CREATE OR REPLACE TABLE words AS SELECT * FROM arrow_w")
        for most, fits in ((1_000, True), (10_000_000, False)):
            source = dp.duckdb(home)
            table = dp.PrivateTable(
                source.table("people"), unit="u", population="p", max_rows=1, most_rows=most
            )
            assert table.describe()["most_rows"] == most
            with dp.Session(
                {"t": table, "w": dp.PublicTable(source.table("words"))},
                budget=dp.ZCDP(1.0),
                ledger=dp.Ledger(key=bytes(32)),
            ) as opened:
                opened.explain("SELECT COUNT(*) AS n FROM t", rho=0.1, max_rows=1)
                question = "SELECT COUNT(*) AS n FROM t JOIN w ON t.x = w.five"
                if fits:
                    opened.explain(question, rho=0.1)
                    continue
                with pytest.raises(
                    dp.QueryError, match=r"could take .* the engine has 2.1 GB"
                ) as no:
                    opened.sql(question, rho=0.1)
                said.append(str(no.value))
                assert opened.spent == {"p": 0}
    assert len(said) == 2
    assert len(set(said)) == 1
    home.close()
