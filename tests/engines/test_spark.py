"""Tables in Spark: the same exact numbers as DuckDB, whatever the rows hold."""

import contextlib
import threading
import time
import uuid
import warnings
from collections import Counter
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import deniable as dp
from amounts import rho
from deniable.engines import faults
from deniable.engines.base import Step
from deniable.engines.spark import Spark, SparkSnapshot, spark
from deniable.mechanisms.joint import JointNoise
from deniable.privacy.exact import read_bounds
from deniable.query.price.price import price
from deniable.query.read.catalogue import Options
from deniable.query.read.compile import compile_sql
from engines import extremes as at
from engines.doubles import ROUNDED, doubles, rounded_by_duckdb, told
from engines.extremes import is_canonical
from engines.marginals import CLIQUES, marginals
from engines.spark_session import local_spark

# After the engine, which quiets their warnings.
from pyspark.errors import AnalysisException  # isort: skip
from pyspark.sql import types  # isort: skip
from pyspark.sql.datasource import DataSource, DataSourceReader  # isort: skip

MOST = 2**63 - 1
TEXTS = [
    *(
        None,
        "",
        "a'b",
        'quo"te',
        "back\\slash",
        "50%_off",
        "😀é",
        "12",
        " 7 ",
        "-3.5",
        "1e3",
        "nan",
    ),
    *("inf", "x" * 300, "2024-02-29", "2024-02-30", "true", "\t", "a\nb", "${spark.app.name}"),
]
NUMBERS = [
    None,
    float("nan"),
    float("inf"),
    float("-inf"),
    0.0,
    -0.0,
    1e308,
    -1e308,
    2.5,
    -3.5,
    0.1,
]
WHOLE = [None, MOST, -MOST - 1, 0, -1, 1, 2**53 + 1, 7, -7, 10**18]
DAYS = [None, date(1, 1, 1), date(9999, 12, 31), date(1582, 10, 10), date(2024, 2, 29)]
TIMES = [
    None,
    datetime(1, 1, 1),
    datetime(9999, 12, 31, 23, 59, 59, 999999),
    datetime(2024, 3, 3, 5),
]
ROWS = 240
HOSTILE = pa.table(
    {
        "u": pa.array([n % 40 for n in range(ROWS)], pa.int64()),
        "i": pa.array([WHOLE[n % 10] for n in range(ROWS)], pa.int64()),
        "j": pa.array([WHOLE[n * 3 % 7] for n in range(ROWS)], pa.int64()),
        "x": pa.array([NUMBERS[n % 11] for n in range(ROWS)], pa.float64()),
        "s": pa.array([TEXTS[n % 20] for n in range(ROWS)], pa.string()),
        "b": pa.array([(None, True, False)[n % 3] for n in range(ROWS)], pa.bool_()),
        "d": pa.array([DAYS[n % 5] for n in range(ROWS)], pa.date32()),
        "t": pa.array([TIMES[n * 7 % 4] for n in range(ROWS)], pa.timestamp("us")),
    }
)
QUESTIONS = [
    "SELECT COUNT(*) AS n, COUNT(i + j) AS a, COUNT(i - j) AS b, COUNT(i * j) AS c FROM v",
    "SELECT COUNT(-i) AS a, COUNT(ABS(i)) AS b, COUNT(i // j) AS c, COUNT(i % j) AS d FROM v",
    "SELECT COUNT(*) AS n FROM v WHERE COALESCE(i * 2, 0) = 0 OR i + 1 > 5",
    "SELECT SUM(k) AS n FROM (SELECT CASE WHEN j > 0 THEN i // j ELSE 3 END AS k FROM v) AS r",
    "SELECT SUM(x) AS n, AVG(x * 2) AS m, SUM(i) AS k, VARIANCE(x) AS w FROM v",
    "SELECT COUNT(*) AS n FROM v WHERE x / i > 0 AND NOT (SQRT(x) < 2 OR LN(x) < 0)",
    "SELECT CAST(ROUND(x * 3) AS INTEGER) AS k, COUNT(*) AS n FROM v GROUP BY k",
    "SELECT CAST(FLOOR(x) AS BIGINT) AS k, SUM(CEIL(x)) AS n FROM v GROUP BY k",
    "SELECT CAST(s AS INTEGER) AS k, COUNT(CAST(s AS DOUBLE)) AS n FROM v GROUP BY k",
    "SELECT CAST(s AS DATE) AS k, COUNT(CAST(s AS BOOLEAN)) AS n FROM v GROUP BY k",
    "SELECT s, COUNT(*) AS n FROM v GROUP BY s",
    "SELECT UPPER(LEFT(s, 2)) || '/' AS k, SUM(IF(LENGTH(s) > 2, 1, 0)) AS n FROM v GROUP BY k",
    "SELECT COUNT(*) AS n FROM v WHERE s LIKE '%\\%' OR s LIKE '50!%!_%' ESCAPE '!' OR s LIKE '_é'",
    "SELECT CONCAT(s, i) AS k, COUNT(*) AS n FROM v WHERE s NOT ILIKE '%A%' GROUP BY k",
    "SELECT COUNT(*) AS n FROM v WHERE TRIM(s) = '7' OR s = '${spark.app.name}'",
    "SELECT d, COUNT(*) AS n FROM v WHERE d + INTERVAL 1 MONTH > t GROUP BY d",
    "SELECT DATE_TRUNC('month', t) AS k, COUNT(*) AS n FROM v GROUP BY k",
    "SELECT EXTRACT(dow FROM d) AS k, YEAR(t) AS y, COUNT(*) AS n FROM v GROUP BY k, y",
    "SELECT DATE_DIFF('month', d, t) AS k, COUNT(*) AS n FROM v GROUP BY k",
    "SELECT MEDIAN(x) AS m, COUNT(DISTINCT x) AS n FROM v",
    "SELECT k, COUNT(*) AS n "
    "FROM (SELECT RANK() OVER (PARTITION BY u ORDER BY x, s) AS k FROM v) AS r GROUP BY k",
    "SELECT AVG(m) AS a, SUM(k) AS b "
    "FROM (SELECT u, SUM(x) AS m, SUM(i) AS k FROM v GROUP BY u) AS r",
    "SELECT SUM(k) AS k FROM (SELECT SUM(j) OVER (PARTITION BY u ORDER BY d) AS k FROM v) AS r",
]


@pytest.fixture(scope="module")
def home():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with local_spark() as session:
            yield session


def hospital(source, **declared):
    ends = {"x": (-1000, 1000), "i": (-100, 100), "j": (-100, 100)}
    private = dp.PrivateTable(
        source, unit="u", population="p", max_rows=2, max_groups=6, bounds=ends, **declared
    )
    return dp.Session(
        {"v": private}, budget=dp.ApproxDP(1e9, 1e-6), ledger=dp.Ledger(key=bytes(32))
    )


@pytest.fixture(scope="module")
def both(home):
    frame = home.createDataFrame(HOSTILE, schema=schema())
    promised = hospital(spark(home).frame(frame), row_by_row=True)
    with hospital(HOSTILE) as known, promised as asked:
        yield known, asked


def schema():
    kinds = [types.LongType()] * 3 + [
        types.DoubleType(),
        types.StringType(),
        types.BooleanType(),
        types.DateType(),
    ]
    pairs = zip(HOSTILE.column_names, [*kinds, types.TimestampNTZType()], strict=True)
    return types.StructType([types.StructField(name, kind) for name, kind in pairs])


def exact(session, question):
    named = [
        name
        for name in ("m", "k")
        if f" AS {name} FROM v" in question or f" AS {name}," in question
    ]
    bounds = {name: read_bounds((-1000, 1000)) for name in named}
    plan = compile_sql(question, session._catalogue, Options(bounds=bounds))
    steps = price(plan, rho(1000)).steps("secret")
    with session._engine.snapshot() as taken:
        return [Counter(map(shown, taken.run(step))) for step in steps.values()]


def shown(row):
    return tuple(str(value) for value in row)


@pytest.mark.parametrize("question", QUESTIONS)
def test_hostile_rows_give_the_same_numbers_as_on_duckdb(both, question):
    known, asked = both
    assert exact(asked, question) == exact(known, question)


def test_tables_of_a_step_that_read_another_one_are_made_again_with_it(home):
    """Their own text may be the same."""
    frame = home.createDataFrame([(1,), (2,)], "x BIGINT")
    with contextlib.closing(Spark(spark(home))) as engine:
        engine.add("t", spark(home).frame(frame), None, row_by_row=True)
        with engine.snapshot() as taken:
            for factor in (1, 10, 1):
                tables = {
                    "deniable_first": f'SELECT {factor} * x AS y FROM "t"',
                    "deniable_second": "SELECT y + 1 AS z FROM deniable_first",
                }
                step = Step("SELECT SUM(z) AS n FROM deniable_second", 'SELECT x FROM "t"', tables)
                assert taken.run(step) == [(3 * factor + 2,)]


def test_sums_of_numbers_of_32_bits_are_sums(home):
    frame = home.createDataFrame([(1,), (2,)], "x BIGINT")
    with contextlib.closing(Spark(spark(home))) as engine:
        engine.add("t", spark(home).frame(frame), None, row_by_row=True)
        ones = {"deniable_ones": 'SELECT 7 AS n FROM "t"'}
        step = Step("SELECT SUM(n) AS n FROM deniable_ones", 'SELECT x FROM "t"', ones)
        with engine.snapshot() as taken:
            assert taken.run(step) == [(14,)]


def test_doubles_round_as_on_duckdb(home):
    table = doubles(300)
    frame = home.createDataFrame(table, "x DOUBLE")
    with contextlib.closing(Spark(spark(home))) as engine:
        engine.add("t", spark(home).frame(frame), None, row_by_row=True)
        with engine.snapshot() as taken:
            found = told(taken.run(Step(f"SELECT x, {ROUNDED} FROM t", "SELECT x FROM t")))
    assert found == rounded_by_duckdb(table)


def test_types_come_from_the_schema(home):
    home.sql(
        "SELECT 1Y AS a, 2S AS b, 3 AS c, 4L AS d, 1F AS e, 1D AS f, 1.5 AS g, "
        "'x' AS h, TRUE AS i, DATE'2024-01-01' AS j, TIMESTAMP_LTZ'2024-01-01 00:00:00' AS k, "
        "TIMESTAMP_NTZ'2024-01-01 00:00:00' AS `L m`, ARRAY(1) AS n"
    ).createOrReplaceTempView("kinds")
    found = Spark(spark(home)).add("kinds", spark(home).table("kinds"), None, row_by_row=True)
    assert [str(kind) for kind in found.columns.values()] == (
        ["integer"] * 4 + ["number"] * 3 + ["text", "boolean", "date", "timestamp", "timestamp"]
    )
    assert "n" not in found.columns
    assert set("abcdfhij") < found.exact
    assert not {"e", "g", "k"} & found.exact


def test_what_cannot_be_asked_is_refused(home):
    tables = spark(home)
    stored(home, "u BIGINT, s STRING", u=[1], s=["a"]).createOrReplaceTempView("visits")
    with pytest.raises(dp.ParameterError, match="did you mean visits"):
        hospital(tables.table("visit"))
    with pytest.raises(dp.errors.ParameterTypeError, match="name of a table"):
        tables.table("")
    with pytest.raises(dp.errors.ParameterTypeError, match="DataFrame"):
        tables.frame([1])
    with pytest.raises(dp.errors.ParameterTypeError, match="SparkSession"):
        spark("local")
    for kind in ("BIGINT", "ARRAY<BIGINT>"):
        twice = tables.frame(home.createDataFrame([], f"u BIGINT, U {kind}"))
        with pytest.raises(dp.ParameterError, match="two columns are called U"):
            Spark(tables).add("v", twice, None, row_by_row=True)
    with pytest.raises(dp.ParameterError, match="one engine"):
        Spark(tables).add("v", HOSTILE, None)
    with pytest.raises(dp.ParameterError, match="knows its types"):
        Spark(tables).add("v", tables.table("visits"), {"u": "integer"})


@pytest.mark.parametrize(
    ("condition", "sentence"),
    [
        ("REGEXP_MATCHES(s, '(a|b)*')", "a regular expression"),
        ("s SIMILAR TO 'a'", "SIMILAR"),
        ("LOG(2, x) > 1", "LOG with a base"),
        ("i = s", "different types"),
        ("STRFTIME(d, '%Y') = '2024'", "TIME"),
        ("SUBSTRING(s, -2) = 'a'", "SUBSTRING of text"),
        ("EXTRACT(century FROM d) = 20", "CENTURY"),
    ],
)
def test_what_spark_would_compute_otherwise_is_refused(both, condition, sentence):
    with pytest.raises(dp.QueryError, match=sentence):
        both[1].sql(f"SELECT COUNT(*) AS n FROM v WHERE {condition}", epsilon=1)


def test_a_session_answers_and_shows_sparks_statements(both):
    question = "SELECT s, COUNT(*) AS n, SUM(i) AS k FROM v GROUP BY s"
    options = {"keys": {"s": ["12", "true"]}, "max_rows": 10}
    answer = both[1].sql(question, epsilon=1e7, **options)
    assert answer["n"] == pytest.approx([12, 12], abs=0.1)
    statements = both[1].explain(question, epsilon=1, **options).statements
    assert "DECIMAL(38, 0)" in statements[-1]
    assert "FROM `deniable_" in statements[-1]


def test_rows_that_are_their_own_units(home):
    frame = home.range(1000).withColumnRenamed("id", "i")
    private = dp.PrivateTable(
        spark(home).frame(frame), unit=dp.ROW, population="p", bounds={"i": (0, 1000)}
    )
    public = dp.PublicTable(spark(home).frame(home.range(3)))
    with dp.Session(
        {"v": private, "w": public}, budget=dp.ApproxDP(1e9, 1e-6), ledger=dp.Ledger(key=bytes(32))
    ) as session:
        assert session.sql("SELECT SUM(i) AS n FROM v", epsilon=1e7)["n"][0] == pytest.approx(
            499500, abs=1
        )
        crossed = session.sql("SELECT COUNT(*) AS n FROM v CROSS JOIN w", epsilon=1e7)
        assert crossed["n"][0] == pytest.approx(3000, abs=1)  # each row meets three


def test_settings_of_the_users_session_change_nothing_and_stay(home):
    theirs = {"spark.sql.ansi.enabled": "true", "spark.sql.session.timeZone": "Asia/Tokyo"}
    other = home.newSession()
    for name, value in theirs.items():
        other.conf.set(name, value)
    frame = other.createDataFrame(HOSTILE, schema=schema())
    frame.createOrReplaceTempView("theirs")
    questions = [QUESTIONS[0], "SELECT DATE_TRUNC('day', t) AS k, COUNT(*) AS n FROM v GROUP BY k"]
    promised = hospital(spark(other).table("theirs"), row_by_row=True)
    with hospital(HOSTILE) as known, promised as asked:
        for question in questions:
            assert exact(asked, question) == exact(known, question)
    assert {name: other.conf.get(name) for name in theirs} == theirs
    assert [table.name for table in other.catalog.listTables()] == ["theirs"]
    assert shared(home) == []


def shared(session):
    """What all sessions find; temporary views of the session itself are listed along with it."""
    found = session.sql("SHOW VIEWS IN global_temp").collect()
    return [view.viewName for view in found if view.namespace]


@pytest.mark.parametrize("declared", [{}, {"row_by_row": True}])
def test_no_other_session_finds_the_rows_while_a_question_runs(home, monkeypatch, declared):
    """All sessions of an application share its global views, and nothing else of ours."""
    rows = stored(home, "u BIGINT, x DOUBLE", u=range(50), x=[1.5] * 50)
    (rows.filter("u >= 0") if declared else rows).createOrReplaceTempView("secret")
    other, run, looks = home.newSession(), SparkSnapshot.run, []

    def looked(self, step):
        found = run(self, step)
        names = [table.name for table in self._session.catalog.listTables()]
        assert any(name.startswith("deniable_") for name in names)
        for name in names:
            for called in (name, f"global_temp.{name}"):
                for session in (home, other):
                    with pytest.raises(AnalysisException):
                        session.table(called)
        looks.append((shared(home), shared(other), other.catalog.listTables()))
        return found

    monkeypatch.setattr(SparkSnapshot, "run", looked)
    with hospital_of(spark(home).table("secret"), bounds={"x": (0, 3)}, **declared) as session:
        session.sql("SELECT SUM(x) AS n, COUNT(DISTINCT u) AS m, MEDIAN(x) AS k FROM v", epsilon=1)
        assert looks
        assert all(seen == ([], [], []) for seen in looks)
        ours = session.parts.engine._session.catalog.listTables()
        assert not [table for table in ours if table.name.startswith("deniable_")]


def test_cancel_ends_a_question(home):
    long = home.range(1 << 40).selectExpr("id AS u", "id % 7 AS i")
    failed = []
    with hospital_of(spark(home).frame(long), row_by_row=True) as session:

        def ask():
            try:
                session.sql("SELECT COUNT(*) AS n FROM v", epsilon=1)
            except dp.DeniableError as error:
                failed.append(error)

        thread = threading.Thread(target=ask)
        thread.start()
        deadline = time.monotonic() + 60
        while thread.is_alive() and time.monotonic() < deadline:
            time.sleep(0.5)
            session.cancel()
        thread.join(timeout=10)
        assert not thread.is_alive()
    assert failed


def stored(home, kinds, **columns):
    """Rows of one file; a list would be computed by code."""
    folder = Path(home.sparkContext.getConf().get("spark.local.dir"))
    folder.mkdir(exist_ok=True)
    file = folder / f"{uuid.uuid4().hex}.parquet"
    parquet.write_table(pa.table(columns), file)
    return home.read.schema(kinds).parquet(str(file))


def hospital_of(source, **declared):
    private = dp.PrivateTable(source, unit="u", population="p", max_rows=2, **declared)
    return dp.Session(
        {"v": private}, budget=dp.ApproxDP(1e9, 1e-6), ledger=dp.Ledger(key=bytes(32))
    )


def test_what_spark_says_about_rows_is_not_repeated(home, capfd):
    other = home.newSession()
    other.conf.set("spark.sql.ansi.enabled", "true")
    other.createDataFrame([(1, "zq7319qz")], "u BIGINT, s STRING").createOrReplaceTempView("raw")
    frame = other.sql("SELECT u, CAST(s AS BIGINT) AS i FROM raw")
    source = spark(other).frame(frame)
    with hospital_of(source, row_by_row=True) as session, pytest.raises(dp.DeniableError) as told:
        session.sql("SELECT COUNT(i) AS n FROM v", epsilon=1)
    said = [told.value, told.value.__cause__, told.value.__context__, *capfd.readouterr()]
    assert not any("zq7319qz" in str(each) for each in said)


def test_neither_collations_nor_broken_text_merge_or_split_groups(home):
    mixed = "CASE WHEN id % 2 = 0 THEN 'A' ELSE 'a' END COLLATE UTF8_LCASE"
    broken = "CAST(CASE id % 3 WHEN 0 THEN X'FF' WHEN 1 THEN X'FE' ELSE X'41' END AS STRING)"
    for text, groups in ((mixed, {"A": 30, "a": 30}), (broken, {"A": 20})):
        frame = home.sql(f"SELECT id AS u, {text} AS g FROM RANGE(60)")
        private = dp.PrivateTable(
            spark(home).frame(frame),
            unit="u",
            population="p",
            max_rows=1,
            max_groups=1,
            row_by_row=True,
        )
        with dp.Session(
            {"v": private}, budget=dp.ApproxDP(1e9, 1e-6), ledger=dp.Ledger(key=bytes(32))
        ) as session:
            answer = session.sql("SELECT g, COUNT(*) AS n FROM v GROUP BY g", epsilon=1e7)
        found = dict(zip(answer["g"], answer["n"], strict=True))
        assert found == pytest.approx(groups, abs=0.1)


@pytest.mark.parametrize(
    "question",
    [
        "SELECT d, COUNT(*) AS n FROM v GROUP BY d",
        "SELECT t, COUNT(*) AS n FROM v GROUP BY t",
        "SELECT DATE_TRUNC('week', t) AS k, DATE_TRUNC('year', d) AS l, COUNT(*) AS n FROM v "
        "GROUP BY k, l",
        "SELECT COUNT(*) AS n FROM v WHERE d + INTERVAL 1 MONTH > t OR d > t OR d + 5 > d",
        "SELECT DATE_DIFF('day', d, t) AS k, DATE_DIFF('month', d, t) AS l, COUNT(*) AS n FROM v "
        "GROUP BY k, l",
        "SELECT EXTRACT(week FROM t) AS k, EXTRACT(dow FROM d) AS l, COUNT(*) AS n FROM v "
        "GROUP BY k, l",
        "SELECT CAST(t AS DATE) AS k, COUNT(CAST(d AS TIMESTAMP)) AS n FROM v GROUP BY k",
        "SELECT COUNT(DISTINCT d) AS a, COUNT(DISTINCT CAST(t AS VARCHAR)) AS b FROM v",
    ],
)
def test_dates_that_no_calendar_has_fail_nowhere(home, tmp_path, question):
    days = [2**31 - 1, -(2**31) + 1, 2_932_897, -800_000, 0, None]
    times = [2**63 - 1, -(2**63) + 1, 9 * 10**18, -9 * 10**18, 0, None]
    columns = {
        "u": pa.array(range(6), pa.int64()),
        "d": pa.array(days, pa.int32()).cast(pa.date32()),
        "t": pa.array(times, pa.int64()).cast(pa.timestamp("us")),
    }
    parquet.write_table(pa.table(columns), tmp_path / "far.parquet")
    frame = home.read.parquet(str(tmp_path / "far.parquet"))
    private = dp.PrivateTable(
        spark(home).frame(frame),
        unit="u",
        population="p",
        max_rows=1,
        max_groups=1,
        row_by_row=True,
    )
    with dp.Session(
        {"v": private}, budget=dp.ApproxDP(1e9, 1e-6), ledger=dp.Ledger(key=bytes(32))
    ) as session:
        assert session.sql(question, epsilon=1e6) is not None


def test_marginals_of_a_synthesis_are_counted_in_spark(both):
    known, asked = both
    counted = marginals(asked, CLIQUES)
    assert counted == marginals(known, CLIQUES)
    assert sum(counted[1]) > 0
    made = dp.synthesize(
        asked, "v", epsilon=1000, method="independent", columns=["x", "b"], missing=["x", "b"]
    )
    assert made.rows == pytest.approx(80, abs=10)  # 40 units, 2 rows of each count


def test_each_side_of_a_join_is_cut_to_the_first_rows_of_a_unit(home):
    """Sides that are cut are written with names of their own, which Spark puts on top."""
    rows = [(1, (7 * number) % 10) for number in range(4_000)] + [(2, 5), (2, 6)]
    table = pa.table({"u": [row[0] for row in rows], "x": [row[1] for row in rows]})
    frame = home.createDataFrame(table, schema="u bigint, x bigint")
    question = "SELECT COUNT(*) AS n FROM v AS a JOIN v AS b ON a.u = b.u WHERE a.x = 0 AND b.x > 5"
    found = []
    for source, declared in ((table, {}), (spark(home).frame(frame), {"row_by_row": True})):
        private = dp.PrivateTable(source, unit="u", population="p", max_rows=3_162, **declared)
        budget = dp.ApproxDP(1e9, 1e-6)
        with dp.Session({"v": private}, budget=budget, ledger=dp.Ledger(key=bytes(32))) as session:
            found.append(session.sql(question, epsilon=9e8)["n"][0])
    kept = sorted(row[1] for row in rows[:4_000])[:3_162]
    first = sum(x == 0 for x in kept) * sum(x > 5 for x in kept)
    assert found == pytest.approx([first, first], rel=5e-3)


def read(home, frame, column):
    """A column as a question meets it."""
    engine = Spark(spark(home))
    kind = engine.add("v", spark(home).frame(frame), None, row_by_row=True).columns[column]
    text = f"SELECT {column} FROM v"
    with engine.snapshot() as snapshot:
        found = [row[0] for row in snapshot.run(Step(text, text))]
    assert all(is_canonical(kind, value) for value in found)
    return found


def test_every_extreme_is_canonical_or_null(home, tmp_path):
    table = {"x": pa.array(at.DOUBLES), "f": pa.array(at.DOUBLES, pa.float32())}
    parquet.write_table(pa.table(table), tmp_path / "x.parquet")
    numbers = home.read.parquet(str(tmp_path / "x.parquet"))
    assert list(map(repr, read(home, numbers, "x"))) == [
        repr(at.read_double(value)) for value in at.DOUBLES
    ]
    assert read(home, numbers, "f").count(None) == 5
    parquet.write_table(pa.table({"s": at.texts()}), tmp_path / "s.parquet")
    texts = home.read.parquet(str(tmp_path / "s.parquet"))
    assert read(home, texts, "s") == [at.read_text(cell) for cell in at.TEXTS]
    days = {"d": at.raw(pa.date32(), at.DAYS, "i")}
    parquet.write_table(pa.table(days), tmp_path / "d.parquet")
    calendar = home.read.parquet(str(tmp_path / "d.parquet"))
    assert read(home, calendar, "d") == [at.read_day(day) for day in at.DAYS]
    for zone in (None, "UTC"):
        times = {"t": at.raw(pa.timestamp("us", tz=zone), at.TIMES)}
        parquet.write_table(pa.table(times), tmp_path / f"{zone}.parquet")
        clock = home.read.parquet(str(tmp_path / f"{zone}.parquet"))
        assert read(home, clock, "t") == [at.read_time(time) for time in at.TIMES]
    wide = home.sql("SELECT CAST('9e37' AS DECIMAL(38, 0)) AS n, CAST(-7 AS TINYINT) AS i")
    assert read(home, wide, "n") == [9e37]
    assert read(home, wide, "i") == [-7]


def test_sums_of_money_are_exact(home, tmp_path, monkeypatch):
    monkeypatch.setattr(JointNoise, "release", lambda self, value: np.array(value, dtype=object))
    pay = pa.array([Decimal(number) / 100 for number in range(100)], pa.decimal128(12, 2))
    parquet.write_table(pa.table({"u": list(range(100)), "p": pay}), tmp_path / "pay.parquet")
    frame = home.read.parquet(str(tmp_path / "pay.parquet"))
    table = dp.PrivateTable(
        spark(home).frame(frame), unit="u", population="p", max_rows=1, bounds={"p": (0, 7)}
    )
    with dp.Session(
        {"t": table}, budget=dp.ZCDP(10**6), ledger=dp.Ledger(key=bytes(32))
    ) as session:
        found = session.sql("SELECT SUM(p) AS n FROM t WHERE p <> 0.07", rho=1)["n"][0]
    assert abs(found - 49.43) < 1e-9


def test_a_check_does_not_touch_the_table(home, tmp_path):
    """It passes although the file is gone, which then has no rows; what fails has one sentence."""
    place = tmp_path / "gone.parquet"
    parquet.write_table(pa.table({"u": [1], "x": [1.5]}), place)
    engine = Spark(spark(home))
    engine.add("v", spark(home).frame(home.read.parquet(str(place))), None, "u")
    place.unlink()
    text = "SELECT SUM(CAST(x > 0 AS BIGINT)) AS n FROM v"
    engine.check([Step(text, "SELECT u, x FROM v")])
    for bad, sentence in (
        ("SELECT y FROM v", faults.NAMES),
        ("SELECT u FROM nowhere", faults.NAMES),
        ("SELECT u FROM v WHERE x", faults.TYPES),
    ):
        with pytest.raises(dp.QueryError) as told:
            engine.check([Step(bad, bad)])
        assert str(told.value) == sentence
    with engine.snapshot() as snapshot:
        assert snapshot.run(Step(text, text)) == [(None,)]
    with pytest.raises(dp.EngineError) as told, engine.snapshot() as snapshot:
        snapshot.run(Step("SELECT y FROM v", text))
    assert str(told.value) == faults.ended("the query", "Spark")
    assert told.value.__context__ is None


def test_what_fails_on_canaries_is_refused(home):
    """Under settings in which Spark raises; later checks pass."""
    engine = Spark(spark(home))
    engine.add("v", spark(home).frame(home.range(1).withColumnRenamed("id", "u")), None, "u")
    engine._session.conf.set("spark.sql.ansi.enabled", "true")
    with pytest.raises(dp.QueryError) as told:
        engine.check([Step("SELECT u FROM v", "SELECT u + 9223372036854775807 AS k FROM v")])
    assert str(told.value) == faults.VALUES
    engine.check([Step("SELECT u FROM v", "SELECT u FROM v")])


# Sources


def test_what_is_computed_is_refused_unless_it_is_row_by_row(home):
    stored(home, "u BIGINT, x BIGINT", u=[1, 2], x=[5, 6]).createOrReplaceTempView("stored")
    home.sql("SELECT u, x + 1 AS x FROM stored").createOrReplaceTempView("computed")
    home.sql("SELECT u, MAX(x) OVER () AS x FROM stored").createOrReplaceTempView("mixed")
    home.sql("SELECT u, x FROM stored WHERE u > 1").createOrReplaceTempView("few")
    home.sql("SELECT x AS y, u FROM stored").createOrReplaceTempView("renamed")
    for name in ("computed", "mixed", "few"):
        with pytest.raises(dp.ParameterError, match="row_by_row=True"):
            hospital_of(spark(home).table(name))
    question = "SELECT COUNT(*) AS n FROM v"
    for name, declared, rows in (
        ("stored", {}, 2),
        ("renamed", {}, 2),
        ("few", {"row_by_row": True}, 1),
    ):
        with hospital_of(spark(home).table(name), **declared) as session:
            assert session.sql(question, epsilon=1e7)["n"][0] == pytest.approx(rows, abs=0.1)


def of_ones_own():
    """A source that somebody wrote; made here, so that Spark's own Python need not import this."""

    class Mine(DataSource):
        @classmethod
        def name(cls):
            return mark

        def schema(self):
            return "u BIGINT, x BIGINT"

        def reader(self, schema):  # noqa: ARG002
            return DataSourceReader()

    mark = f"mine_{uuid.uuid4().hex}"
    return Mine


def by_code(home, folder):
    """Frames behind which code stands, and such as fail on one line or file."""
    lines = home.sparkContext.parallelize(["1,2"])
    kinds = "u BIGINT, x BIGINT"
    (folder / "v.csv").write_text("u,x\n1,2\n")
    parquet.write_table(pa.table({"u": [1], "x": [2]}), folder / "v.parquet")
    mine = of_ones_own()
    home.dataSource.register(mine)
    files = home.read.schema(kinds)
    yield home.createDataFrame(lines.map(lambda line: tuple(map(int, line.split(",")))), kinds)
    yield home.createDataFrame([(1, 2)], kinds)
    yield stored(home, kinds, u=[1], x=[2]).localCheckpoint()
    yield home.read.format(mine.name()).load()
    yield home.read.schema(kinds).csv(str(folder / "v.csv"))
    yield home.read.schema(kinds).option("MODE", "FailFast").json(str(folder / "v.csv"))
    for option in ("ignoreCorruptFiles", "ignoreMissingFiles"):
        yield home.read.schema(kinds).option(option, "false").parquet(str(folder / "v.parquet"))
    yield files.parquet(str(folder / "v.parquet")).limit(1)
    # A folder, two files, an external table: what one of them is may change what all mean.
    (folder / "in").mkdir()
    for name in ("a", "b"):
        parquet.write_table(pa.table({"u": [1], "x": [2]}), folder / "in" / f"{name}.parquet")
    yield files.parquet(str(folder / "in"))
    yield files.parquet(*(str(folder / "in" / f"{name}.parquet") for name in ("a", "b")))
    home.sql(f"CREATE OR REPLACE TEMP VIEW beside USING parquet OPTIONS (path '{folder / 'in'}')")
    yield home.table("beside")
    # Types that follow cells.
    (folder / "v.json").write_text('{"u": 1, "x": 2}')
    yield home.read.json(str(folder / "v.json"))
    yield home.createDataFrame(pa.table({"u": [1], "x": [2]}))


def from_files(home, folder):
    kinds, rows = "u BIGINT, x BIGINT", stored(home, "u BIGINT, x BIGINT", u=[1], x=[2])
    for form in ("parquet", "orc"):
        place = folder / f"of-{form}"
        rows.coalesce(1).write.format(form).save(str(place))
        (file,) = place.glob("part-*")
        yield home.read.schema(kinds).format(form).load(str(file))


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_what_code_computes_is_a_view_and_files_are_tables(home, tmp_path, version):
    session = home.newSession()
    if version == "v2":  # Spark has two ways to read files
        session.conf.set("spark.sql.sources.useV1SourceList", "")
    tables = spark(session)
    for frame in by_code(session, tmp_path):
        with pytest.raises(dp.ParameterError, match="row_by_row=True"):
            Spark(tables).add("v", tables.frame(frame), None, "u")
        Spark(tables).add("v", tables.frame(frame), None, "u", row_by_row=True)
    for frame in from_files(session, tmp_path):
        with hospital_of(tables.frame(frame)) as asked:
            found = asked.sql("SELECT COUNT(*) AS n FROM v", epsilon=1e7)["n"][0]
            assert found == pytest.approx(1, abs=0.1)


def test_files_that_come_go_and_break_between_statements_change_nothing(
    home, tmp_path, monkeypatch
):
    def write(name, first, many):
        rows = {"u": range(first, first + many), "x": [1] * many}
        parquet.write_table(pa.table(rows), tmp_path / f"t/{name}.parquet")

    (tmp_path / "t").mkdir()
    write("b", 0, 100)
    write("c", 1_000, 100)
    frame = home.read.schema("u BIGINT, x BIGINT").parquet(str(tmp_path / "t"))
    run = SparkSnapshot.run
    changes = [
        lambda: write("z", 9_000, 500),
        (tmp_path / "t/b.parquet").unlink,
        lambda: (tmp_path / "t/c.parquet").write_bytes(b"PAR1"),
    ]

    def changed(self, step):
        found = run(self, step)
        if changes:
            changes.pop(0)()
        return found

    monkeypatch.setattr(SparkSnapshot, "run", changed)
    question = "SELECT COUNT(DISTINCT u) AS n, MEDIAN(x) AS m FROM v"
    promised = {"bounds": {"x": (0, 3)}, "row_by_row": True}
    with hospital_of(spark(home).frame(frame), **promised) as session:
        assert session.sql(question, epsilon=1e5)["n"][0] == pytest.approx(200, abs=0.5)


def test_one_persons_damaged_file_has_no_rows(home, tmp_path):
    parquet.write_table(pa.table({"u": range(50), "x": [1] * 50}), tmp_path / "b.parquet")
    parquet.write_table(pa.table({"u": ["a"], "x": ["no"]}), tmp_path / "a.parquet")
    (tmp_path / "c.parquet").write_bytes(b"PAR1 secret")
    frame = home.read.schema("u BIGINT, x BIGINT").parquet(str(tmp_path))
    with hospital_of(spark(home).frame(frame), row_by_row=True) as session:
        found = session.sql("SELECT COUNT(*) AS n FROM v", epsilon=1e7)["n"][0]
        assert found == pytest.approx(50, abs=0.1)


def test_pages_that_show_numbers_of_rows_are_warned_of(home, monkeypatch):
    known = {"spark.ui.enabled": "true", "spark.eventLog.enabled": "true"}

    class Settings:
        def get(self, name, usual):
            return known.get(name, usual)

    monkeypatch.setattr(type(home.sparkContext), "getConf", lambda _: Settings())
    with pytest.warns(
        UserWarning, match=r"spark.ui.enabled=false and spark.eventLog.enabled=false"
    ):
        Spark(spark(home))
    known["spark.acls.enable"] = "true"
    Spark(spark(home))
