"""Questions of an attacker: what was once answered, or failed, and must not be again."""

import datetime
from fractions import Fraction

import pandas
import pyarrow as pa
import pytest

import deniable as dp
from deniable.engines.duckdb import DuckDB
from deniable.query.plan.plan import SCALE
from deniable.query.read.catalogue import Catalogue, Options
from deniable.query.read.compile import compile_sql
from deniable.query.run.emit import totals_step
from query.test_bounding import moved
from snapshots import run

KEY = bytes(32)


def table(heavy: bool, **changed):
    units = list(range(200)) + ([5000] * 3000 if heavy else [])
    rows = {
        "u": units,
        "g": ["ab"[i % 2] for i in range(len(units))],
        "x": [float(i % 7) for i in range(len(units))],
        "i": list(range(len(units))),
        "d": [datetime.date(2024, 1, 1)] * len(units),
    }
    given = {
        "unit": "u",
        "population": "p",
        "max_rows": 4,
        "max_groups": 2,
        "bounds": {"x": (0, 10), "i": (0, 10)},
        "keys": {"g": ["a", "b"]},
    }
    return dp.PrivateTable(pa.table(rows), **{**given, **changed})


def session(private=None, **tables):
    made = {"t": private or table(False), **tables}
    return dp.Session(made, budget=dp.ApproxDP(10**6, 1e-6), ledger=dp.Ledger(key=KEY))


INJECTIONS = [
    'SELECT COUNT(*) AS n FROM t WHERE EXTRACT("YEAR FROM d) > 1)); COPY (SELECT * FROM T) TO '
    "'stolen.csv' --\" FROM d) > 5",
    'SELECT COUNT(*) AS n FROM t WHERE date_add(d, 1, "DAY) > d)); COPY (SELECT * FROM T) TO '
    "'stolen.csv' --\") > d",
    'SELECT COUNT(*) AS n FROM t WHERE CAST(g AS "in t) (") = g',
    "SELECT COUNT(*) AS n FROM t WHERE EXTRACT(\"YEAR FROM DATE '2020-01-01') = 2020) AND "
    '(SELECT COUNT(*) FROM T) > 200 AND TRY(EXTRACT(YEAR" FROM d) > 5',
    "SELECT COUNT(*) AS n FROM t WHERE date_trunc('da''y', d) > d",
    "SELECT COUNT(*) AS n FROM t WHERE date_diff('da\"y', d, d) > 0",
    'SELECT COUNT(*) AS n FROM "t; DROP TABLE t"',
    "SELECT COUNT(*) AS n FROM t WHERE g = '\ud800'",
]


@pytest.mark.parametrize("question", INJECTIONS)
def test_no_text_of_a_question_reaches_the_engine_as_it_stands(question, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with session() as opened:
        for ask in (opened.sql, opened.explain):
            try:
                answer = ask(question, rho=1000)
            except dp.DeniableError:
                continue
            if isinstance(answer, dp.Answer):  # a unit nobody knows gives NULL, and no rows
                assert abs(answer["n"][0]) < 5
        assert not list(tmp_path.iterdir())


HIDDEN = [
    "SELECT COUNT(*) AS n FROM (SELECT i AS deniable_unit, g FROM t) AS z",
    "SELECT COUNT(*) AS n FROM (SELECT u, COUNT(*) AS Deniable_Unit FROM t GROUP BY u) AS z",
    "SELECT COUNT(*) AS n FROM (SELECT a.u, COUNT(*) OVER (PARTITION BY b.u) AS s FROM t AS a "
    "LEFT JOIN t AS b ON a.u = b.u AND b.i > 100000) AS z WHERE s > 2000",
    "SELECT COUNT(*) AS n FROM (SELECT a.u, COUNT(*) AS k FROM t AS a LEFT JOIN t AS b "
    "ON a.u = b.u AND a.i = b.i AND a.i = 0 GROUP BY a.u, b.u) AS z",
    "SELECT COUNT(DISTINCT b.u) AS n FROM t AS a LEFT JOIN t AS b ON a.u = b.u AND b.i > 3",
    "SELECT COUNT(*) AS n FROM (SELECT * FROM t) AS z",
    "SELECT COUNT(*) AS n FROM t LIMIT 40 PERCENT",
    "SELECT SUM(x) AS s FROM t AS t(u, g, i, x)",
    "(SELECT g, COUNT(*) AS n FROM t GROUP BY g) ORDER BY n LIMIT 1",
    "SELECT COUNT(*) AS n FROM (SELECT u FROM t) AS z TABLESAMPLE 10%",
    "SELECT COUNT(*) AS n FROM (SELECT u FROM t UNION ALL SELECT u FROM t OFFSET 5) AS z",
    'SELECT COUNT(*) AS "N", COUNT(x) AS n FROM t',
    "SELECT g, SUM(a) AS s FROM (SELECT g, x AS a, i AS a FROM t) AS q GROUP BY g",
    'SELECT g, SUM(a) AS s FROM (SELECT g, x AS a, i AS "A" FROM t) AS q GROUP BY g',
    "SELECT COUNT(x, i) AS n FROM t",
    "SELECT COUNT(a) AS n FROM (SELECT COALESCE(d, d) AS a FROM t UNION ALL "
    "SELECT CAST(d AS TIMESTAMP) AS a FROM t) AS q",
    "SELECT COUNT(*) AS n FROM t WHERE CAST('now' AS TIMESTAMP) > d",
    "SELECT COUNT(*) AS n FROM t WHERE CAST(g AS INTEGER[]) IS NULL",
    "SELECT COUNT(*) AS n FROM t WHERE 'abc' LIKE g ESCAPE '!'",
    "SELECT COUNT(*) AS n FROM t "
    "WHERE REPLACE(REPLACE(REPLACE(g, 'a', 'aa'), 'a', 'aa'), 'a', '') = ''",
]


@pytest.mark.parametrize("question", HIDDEN)
def test_what_would_deceive_is_refused_before_it_costs(question):
    with session() as opened:
        with pytest.raises(dp.DeniableError):
            opened.sql(question, rho=1)
        assert opened.remaining["p"].releases == 0


BOUNDED = [
    "SELECT COUNT(*) AS n FROM (SELECT a.u, COUNT(*) OVER (PARTITION BY a.u) AS s "
    "FROM t AS a) AS z WHERE s > 2000",
    "SELECT COUNT(*) AS n FROM t AS a LEFT JOIN t AS b ON a.u = b.u AND b.i > 100000",
    "SELECT d, COUNT(*) AS n FROM t GROUP BY d, d",
    "SELECT COUNT(*) AS n FROM t AS a JOIN t AS b ON a.u = b.u AND (a.x > 100 OR b.x > 5)",
    "SELECT COUNT(*) AS n FROM t AS a JOIN t AS b ON (a.x > 100 OR b.x > 5) AND (a.u = b.u)",
    "SELECT g, SUM(f) AS s FROM (SELECT g, EXTRACT(EPOCH FROM d) / 7 AS f, i FROM t) AS q "
    "GROUP BY g",
]


@pytest.mark.parametrize("question", BOUNDED)
def test_what_is_answered_moves_by_what_is_charged(question):
    found = []
    for heavy in (False, True):
        private = table(heavy)
        engine = DuckDB()
        schema = engine.add("t", private.source.open(), None)
        options = Options(bounds={"f": (Fraction(0), Fraction(1))} if " AS f" in question else {})
        plan = compile_sql(question, Catalogue({"t": schema}, {"t": private}), options)
        rows = run(engine, totals_step(plan, l2=True))
        width = len(plan.counted.groups)
        found.append({row[:width]: [int(v or 0) for v in row[width:]] for row in rows})
        engine.close()
    assert moved(plan, *found, l2=True) <= (SCALE * plan.bound(l2=True)) ** 2


def test_days_without_a_year_are_no_groups():
    private = table(False, keys={})
    rows = private.source.open().to_pydict()
    rows["d"] = [datetime.date(9999, 12, 31)] * 200
    source = pa.table(rows)
    far = source.append_column("e", pa.array([2**31 - 2] * 200, pa.int32()).cast(pa.date32()))
    opened = session(
        dp.PrivateTable(
            far, unit="u", population="p", max_rows=1, max_groups=1, bounds={"x": (0, 9)}
        )
    )
    with opened:
        assert opened.sql("SELECT d, COUNT(*) AS n FROM t GROUP BY d", epsilon=50)["d"] == [
            datetime.date(9999, 12, 31)
        ]
        assert len(opened.sql("SELECT e, COUNT(*) AS n FROM t GROUP BY e", epsilon=50)) == 0


@pytest.mark.parametrize(
    "ids",
    [
        pa.array([0.5, 1.5]),
        pa.array([1, 2]).cast(pa.decimal128(38, 0)),
        pa.array([2**63, 1], pa.uint64()),
        pa.array([True, False]),
    ],
)
def test_units_that_could_merge_are_refused(ids):
    private = dp.PrivateTable(pa.table({"u": ids}), unit="u", population="p", max_rows=1)
    with pytest.raises(dp.ParameterError, match="two people may become one"):
        session(private)


def test_units_of_different_types_do_not_meet():
    text = dp.PrivateTable(
        pa.table({"u": ["1", "zz"], "i": [1, 2]}), unit="u", population="p", max_rows=2
    )
    rows = dp.PrivateTable(pa.table({"u": [1, 2], "i": [1, 2]}), unit=dp.ROW, population="p")
    with session(None, s=text, r=rows) as opened:
        for question in (
            "SELECT COUNT(*) AS n FROM t JOIN s ON t.u = s.u",
            "SELECT COUNT(*) AS n FROM (SELECT i FROM t UNION ALL SELECT i FROM r) AS z",
        ):
            with pytest.raises(dp.QueryError):
                opened.sql(question, rho=1)


def test_a_fault_in_a_public_row_shows_nothing_about_private_ones():
    public = dp.PublicTable(pa.table({"id": [1, 777], "w": ["1", "bad"]}))
    with session(None, p=public) as opened:
        answer = opened.sql(
            "SELECT COUNT(*) AS n FROM t JOIN (SELECT id, CAST(w AS INTEGER) AS k FROM p) AS q "
            "ON t.i = q.id WHERE q.k > 0",
            rho=1000,
        )
        assert round(answer["n"][0]) == 1


@pytest.mark.parametrize("last", [3, "x", None])
def test_the_schema_of_pandas_objects_does_not_follow_the_data(last):
    column = pandas.Series([1, 2, last] * 100, dtype=object)
    frame = pandas.DataFrame({"u": range(300), "o": column})
    kinds = {"u": "integer", "o": "text"}
    private = dp.PrivateTable(frame, unit="u", population="p", columns=kinds, max_rows=1)
    with session(private) as opened:
        answer = opened.sql("SELECT COUNT(o) AS n FROM t WHERE o <> 'y'", rho=1000)
        assert round(answer["n"][0]) == (200 if last is None else 300)


def test_wide_integers_beside_decimals_do_not_overflow():
    rows = {"u": list(range(100)), "i": [9 * 10**18] * 100}
    private = dp.PrivateTable(pa.table(rows), unit="u", population="p", max_rows=1)
    with session(private) as opened:
        for condition in (
            "i > 0.00000000000000000001",
            "i BETWEEN 0.00000000000000000001 AND 1e30",
            "COALESCE(i, 0.00000000000000000000000001) > 1",
        ):
            answer = opened.sql(f"SELECT COUNT(*) AS n FROM t WHERE {condition}", rho=1000)
            assert round(answer["n"][0]) == 100


def test_arithmetic_on_released_numbers_never_fails_after_the_charge():
    with session() as opened:
        answer = opened.sql("SELECT CAST(COUNT(*) * 1e30 AS BIGINT) AS n FROM t", rho=1)
        assert answer["n"] == [None]
        assert opened.sql("SELECT COUNT(*) // 3 AS n FROM t", rho=10**4)["n"] == [66]


def test_another_version_of_a_public_table_is_another_question():
    ledger = dp.Ledger(key=KEY)
    for version in ("1", "2"):
        public = dp.PublicTable(pa.table({"id": [1, 2]}), version=version)
        made = {"t": table(False), "p": public}
        with dp.Session(made, budget=dp.PureDP(9), ledger=ledger) as opened:
            question = "SELECT COUNT(*) AS n FROM t JOIN p ON t.i = p.id"
            assert not opened.sql(question, epsilon=1).repeated


def test_bad_arguments_are_refused():
    with session() as opened:
        for arguments in ({"error": 5}, {"keys": [1], "rho": 1}, {"bounds": 3, "rho": 1}):
            with pytest.raises(dp.errors.ParameterTypeError):
                opened.sql("SELECT COUNT(*) AS n FROM t", **arguments)
        with pytest.raises(dp.ParameterError):
            opened.table(["x"])
    reader = pa.table({"u": [1]}).to_reader()
    with pytest.raises(dp.ParameterError):
        session(dp.PrivateTable(reader, unit="u", population="p", max_rows=1))
    odd = dp.PrivateTable(
        pa.table({"u": [1], "deniable_unit": [2]}), unit="u", population="p", max_rows=1
    )
    with pytest.raises(dp.ParameterError, match="reserved"):
        session(odd)


def test_groups_are_finite_whole_numbers_wherever_they_come_from():
    rows = {
        "u": list(range(4000)),
        "i": [0, 1, 2, 3] * 1000,
        "x": [float("inf")] * 1000 + [float("nan")] * 1000 + [2.5] * 2000,
    }
    private = dp.PrivateTable(pa.table(rows), unit="u", population="p", max_rows=1, max_groups=1)
    with session(private) as opened:
        question = "SELECT f, COUNT(*) AS n FROM (SELECT FLOOR(x) AS f FROM t) AS q GROUP BY f"
        assert opened.sql(question, epsilon=50)["f"] == [2]
        wide = "SELECT i * 9000000000000000000 AS k, COUNT(*) AS n FROM t GROUP BY 1"
        assert len(opened.sql(f"{wide} HAVING COUNT(*) > 0", epsilon=50)) <= 2  # 0, and one more


def test_operators_bind_as_they_were_written():
    with session() as opened:
        split = opened.sql(
            "SELECT x > 5 OR i > 100000 AS k, COUNT(DISTINCT x) AS n FROM t GROUP BY k", rho=10**4
        )
        assert [round(n) for n in split["n"]] == [6, 1]
        ordered = opened.sql(
            "SELECT g, COUNT(*) + SUM(x) AS n FROM t WHERE g = 'a' OR i < 50 GROUP BY g "
            "ORDER BY n * -1",
            rho=10**5,
        )
        assert ordered["n"] == sorted(ordered["n"], reverse=True)
    for keys in (["\ud800"], [2**64]):
        with pytest.raises(dp.ParameterError):
            table(False, keys={"g": keys})
