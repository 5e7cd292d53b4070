"""Files in Spark: no cell or line of one person takes another's rows away, or ends a question."""

import contextlib
import warnings
from decimal import Decimal

import pyarrow as pa
import pytest
from pyarrow import orc, parquet

import deniable as dp
from deniable.engines.base import Step
from deniable.engines.spark import Spark, spark
from engines.spark_session import local_spark

FAR = 2**63 - 1


@pytest.fixture(scope="module")
def home():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with local_spark() as session:
            yield session


def counted(home, source, text, **declared):
    """The schema of a source, and the one number of a statement."""
    engine = Spark(spark(home))
    schema = engine.add("v", source, None, "u", **declared)
    with engine.snapshot([Step(text, text)]) as snapshot:
        ((found,),) = snapshot.run(Step(text, text))
    return schema, found


def times(place, far):
    cells = pa.array([far, *[0] * 50], pa.timestamp("ms"))
    parquet.write_table(pa.table({"u": range(51), "x": cells}), place / "a")


def orc_times(place, far):
    cells = pa.array([far, *[0] * 50], pa.timestamp("ms"))
    orc.write_table(pa.table({"u": range(51), "x": cells}), place / "a")


def decimals(place, far):
    cells = pa.array([Decimal("123.45"), *[Decimal(1)] * 50], pa.decimal128(20, 2))
    file = place / "a"
    parquet.write_table(
        pa.table({"u": range(51), "x": cells}), file, use_dictionary=False, compression="none"
    )
    if far:  # a cell of more digits than its column has, which other writers than this one make
        stored = file.read_bytes()
        file.write_bytes(stored.replace((12345).to_bytes(9, "big"), (2**71 - 1).to_bytes(9, "big")))


@pytest.mark.parametrize(
    ("write", "form", "kind"),
    [
        (times, "parquet", "TIMESTAMP"),
        (times, "parquet", "TIMESTAMP_NTZ"),
        (orc_times, "orc", "TIMESTAMP"),
        (decimals, "parquet", "DECIMAL(20, 2)"),
    ],
)
def test_a_column_of_which_one_cell_could_take_others_along_is_left_out(
    home, tmp_path, write, form, kind
):
    found = []
    for far in (0, FAR):
        place = tmp_path / str(far)
        place.mkdir()
        write(place, far)
        frame = home.read.schema(f"u BIGINT, x {kind}").format(form).load(str(place / "a"))
        with pytest.warns(UserWarning, match="x left out"):
            schema, rows = counted(home, spark(home).frame(frame), "SELECT COUNT(u) AS n FROM v")
        found.append((list(schema.columns), rows))
    assert found == [(["u"], 51)] * 2
    schema, _ = counted(home, spark(home).frame(frame), "SELECT 1 AS n", row_by_row=True)
    assert list(schema.columns) == ["u", "x"]


def test_short_decimals_beyond_their_digits_change_no_other_row(home, tmp_path):
    cells = pa.array([Decimal("123.45"), *[Decimal(1)] * 50], pa.decimal128(12, 2))
    table = pa.table({"u": range(51), "x": cells})
    parquet.write_table(table, tmp_path / "a", use_dictionary=False, compression="none")
    stored = (tmp_path / "a").read_bytes()
    (tmp_path / "a").write_bytes(stored.replace((12345).to_bytes(6, "big"), b"\x7f" + b"\xff" * 5))
    session = home.newSession()
    frame = session.read.schema("u BIGINT, x DECIMAL(12, 2)").parquet(str(tmp_path / "a"))
    source = spark(session).frame(frame)
    assert counted(session, source, "SELECT COUNT(*) AS n FROM v WHERE x = 1")[1] == 50
    for name, value in (
        ("enableVectorizedReader", "false"),
        ("datetimeRebaseModeInRead", "EXCEPTION"),
    ):
        # The session of the frame reads its files, and under these gives up the rest of one.
        session.conf.set(f"spark.sql.parquet.{name}", value)
        with pytest.raises(dp.ParameterError, match="row_by_row=True"):
            Spark(spark(session)).add("v", source, None, "u")
        session.conf.unset(f"spark.sql.parquet.{name}")


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_files_of_which_one_line_can_end_the_rest_are_views(home, tmp_path, version):
    (tmp_path / "a.csv").write_text("1,2\n" + "," * 20_481 + "\n3,4\n")
    (tmp_path / "a.json").write_text('[{"u": 1}, {"u": }, {"u": 2}]')
    (tmp_path / "a.xml").write_text("<r><u>1</u></r>")
    session = home.newSession()
    if version == "v2":
        session.conf.set("spark.sql.sources.useV1SourceList", "")
    read = session.read.schema("u BIGINT, x BIGINT")
    for frame in (
        read.csv(str(tmp_path / "a.csv")),
        session.read.schema("u BIGINT").option("MultiLine", True).json(str(tmp_path / "a.json")),
        read.format("xml").option("rowTag", "r").load(str(tmp_path / "a.xml")),
    ):
        with pytest.raises(dp.ParameterError, match="row_by_row=True"):
            Spark(spark(session)).add("v", spark(session).frame(frame), None, "u")
        Spark(spark(session)).add("v", spark(session).frame(frame), None, "u", row_by_row=True)


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_two_ways_to_write_a_unit_are_not_one_person(home, tmp_path, version):
    for folder in ("u=1", "u=01"):
        (tmp_path / "p" / folder).mkdir(parents=True)
        parquet.write_table(pa.table({"w": [1], "x": [2]}), tmp_path / "p" / folder / "a.parquet")
    (tmp_path / "a.json").write_text('{"u": 1, "w": 7}\n{"u": "1", "w": 8}\n')
    session = home.newSession()
    if version == "v2":
        session.conf.set("spark.sql.sources.useV1SourceList", "")
    folders = session.read.schema("w BIGINT, x BIGINT, u BIGINT").parquet(str(tmp_path / "p"))
    renamed = folders.selectExpr("u AS x", "w AS u")
    lines = session.read.schema("u STRING, w BIGINT").json(str(tmp_path / "a.json"))
    for frame, exact in ((folders, {"w", "x"}), (renamed, {"u"}), (lines, {"w"})):
        source = spark(session).frame(frame)
        schema = Spark(spark(session)).add("v", source, None, "u", row_by_row=True)
        assert schema.exact == exact


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_one_persons_folder_decides_nothing_that_was_not_promised(home, tmp_path, version):
    """It takes the files of all others away, and makes a column, once Spark looks there again."""
    session = home.newSession()
    if version == "v2":
        session.conf.set("spark.sql.sources.useV1SourceList", "")

    def counted_rows():
        return session.read.schema("u BIGINT, x DOUBLE").parquet(str(tmp_path)).count()

    rows = pa.table({"u": range(100), "x": [1.0] * 100})
    parquet.write_table(rows, tmp_path / "all.parquet")
    assert counted_rows() == 100
    (tmp_path / "day=1").mkdir()
    parquet.write_table(pa.table({"u": [999], "x": [1.0]}), tmp_path / "day=1" / "me.parquet")
    assert counted_rows() == 1  # Spark's doing
    for place in (tmp_path, tmp_path / "day=1"):
        frame = session.read.schema("u BIGINT, x DOUBLE").parquet(str(place))
        with pytest.raises(dp.ParameterError, match="may change what the others mean"):
            Spark(spark(session)).add("v", spark(session).frame(frame), None, "u")
    frame = session.read.schema("u BIGINT, x DOUBLE").parquet(str(tmp_path / "all.parquet"))
    Spark(spark(session)).add("v", spark(session).frame(frame), None, "u")


PATTERNS = {
    "star": lambda session, place: session.read.parquet(f"{place}/*.parquet"),
    "folder": lambda session, place: session.read.parquet(f"{place.parent}/*/all.parquet"),
    "sign": lambda session, place: session.read.format("parquet").load(f"{place}/al?.parquet"),
    "option": lambda session, place: (
        session.read.format("parquet").option("path", f"{place}/[a]ll.parquet").load()
    ),
    "braces": lambda session, place: session.read.parquet(f"{place}/{{all,more}}.parquet"),
    "filter": lambda session, place: session.read.option("pathGlobFilter", "*.parquet").parquet(
        f"{place}/all.parquet"
    ),
    "time": lambda session, place: session.read.option(
        "modifiedAfter", "2020-01-01T00:00:00"
    ).parquet(f"{place}/all.parquet"),
    "statement": lambda session, place: session.sql(f"SELECT * FROM parquet.`{place}/*.parquet`"),
    "renamed": lambda session, place: session.read.parquet(f"{place}/*.parquet").selectExpr("u"),
    "view": lambda session, place: (
        session.sql(
            f"CREATE OR REPLACE TEMP VIEW pattern USING parquet OPTIONS (path '{place}/*.parquet')"
        )
        and session.table("pattern")
    ),
}


@pytest.mark.parametrize("version", ["v1", "v2"])
@pytest.mark.parametrize("how", PATTERNS)
def test_a_pattern_of_spark_that_finds_one_file_is_a_pattern(home, tmp_path, how, version):
    """How many files it finds may be one person's doing: it is refused whatever it finds."""
    session = home.newSession()
    if version == "v2":
        session.conf.set("spark.sql.sources.useV1SourceList", "")
    parquet.write_table(pa.table({"u": range(9), "x": [1.0] * 9}), tmp_path / "all.parquet")
    frame = PATTERNS[how](session, tmp_path)
    with pytest.raises(dp.ParameterError, match="row_by_row=True"):
        Spark(spark(session)).add("v", spark(session).frame(frame), None, "u")
    Spark(spark(session)).add("v", spark(session).frame(frame), None, "u", row_by_row=True)


def test_tables_that_spark_manages_need_no_promise_and_external_ones_do(home, tmp_path):
    rows = home.range(3).selectExpr("id AS u", "id AS x")
    rows.write.format("parquet").save(str(tmp_path / "outside"))
    with dropped(home, "managed", "external"):
        rows.write.format("parquet").saveAsTable("managed")
        home.sql(
            "CREATE TABLE external (u BIGINT, x BIGINT) USING parquet "
            f"LOCATION '{tmp_path / 'outside'}'"
        )
        assert counted(home, spark(home).table("managed"), "SELECT COUNT(*) AS n FROM v")[1] == 3
        with pytest.raises(dp.ParameterError, match="external table"):
            Spark(spark(home)).add("v", spark(home).table("external"), None, "u")
        Spark(spark(home)).add("v", spark(home).table("external"), None, "u", row_by_row=True)


@contextlib.contextmanager
def dropped(home, *names):
    try:
        yield
    finally:
        for name in names:
            home.sql(f"DROP TABLE IF EXISTS {name}")


def test_a_table_that_has_become_another_fails_the_question(home):
    home.sql("CREATE OR REPLACE TEMP VIEW changes AS SELECT id AS u, id AS x FROM range(3)")
    private = dp.PrivateTable(
        spark(home).table("changes"), unit="u", population="p", max_rows=1, row_by_row=True
    )
    home.range(3).selectExpr("id AS u").createOrReplaceTempView("stays")
    stays = dp.PrivateTable(spark(home).table("stays"), unit="u", population="p", row_by_row=True)
    with dp.Session(
        {"v": private, "w": stays}, budget=dp.PureDP(1e9), ledger=dp.Ledger(key=bytes(32))
    ) as session:
        asked = "SELECT COUNT(*) AS n FROM v"
        assert session.sql(asked, epsilon=1e6)["n"][0] == pytest.approx(3, abs=0.1)
        # Two people would become one as this column is read as a whole number.
        home.sql("CREATE OR REPLACE TEMP VIEW changes AS SELECT id / 9 AS u, id AS x FROM range(3)")
        with pytest.raises(dp.ReleaseFailedError):
            session.sql(f"{asked} WHERE x > 0", epsilon=1e6)
        assert session.sql("SELECT COUNT(*) AS n FROM w", epsilon=1e6, max_rows=1) is not None


@pytest.fixture
def few_bytes(home):
    """The driver takes three megabytes of a question's rows at a time."""
    settings, name = home.sparkContext._jsc.sc().conf(), "spark.driver.maxResultSize"
    before = settings.get(name, "1g")
    settings.set(name, "3m")
    yield
    settings.set(name, before)


def test_no_number_of_groups_fills_the_driver(home, few_bytes):
    """Who asks may choose at which number they would: by how long keys are."""
    keys = [f"{pow(3, 4001 + n, 1 << 3992):0998x}" for n in range(5_000)]
    frame = home.createDataFrame(pa.table({"u": range(5_000), "k": keys}))
    with pytest.raises(Exception, match="maxResultSize"):
        frame.groupBy("k").count().collect()
    engine, text = Spark(spark(home)), "SELECT k, COUNT(*) AS n FROM v GROUP BY k"
    engine.add("v", spark(home).frame(frame), None, "u", row_by_row=True)
    with engine.snapshot([Step(text, text)]) as snapshot:
        found = snapshot.run(Step(text, text))
    assert sorted(found) == sorted((key, 1) for key in keys)


def test_a_table_is_not_read_for_what_a_text_looks_like(home):
    failing = home.sql("SELECT 1 AS u, CAST(raise_error('read') AS INT) AS x")
    engine, text = Spark(spark(home)), "SELECT 'from v ' AS a, ', v ' AS b"
    engine.add("v", spark(home).frame(failing), None, "u", row_by_row=True)
    with engine.snapshot([Step(text, text)], only={"w"}) as snapshot:
        assert snapshot.run(Step(text, text)) == [("from v ", ", v ")]
