"""Sources are pinned: what a question reads follows from declarations, and is read once."""

import os
import random
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import duckdb
import numpy as np
import pandas
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deniable as dp
from deniable.engines import frames, linked
from deniable.engines.duckdb import DuckDB, DuckDBSnapshot
from deniable.engines.files import Files
from deniable.engines.pinned import Pinned, Texts
from deniable.tables import ColumnType

KINDS = {"u": "text", "x": "number"}
COUNT = "SELECT COUNT(*) AS n FROM t WHERE x > 0"


def private(source, **declared):
    given = {"unit": "u", "population": "p", "bounds": {"x": (0, 10)}, "max_rows": 1}
    return dp.PrivateTable(source, **{**given, **declared})


def opened(source, **declared):
    tables = {"t": private(source, **declared)}
    return dp.Session(tables, budget=dp.ApproxDP(1e9, 1e-6), ledger=dp.Ledger())


def asked(source, question=COUNT, **declared):
    with opened(source, **declared) as session:
        return round(session.sql(question, epsilon=1e6)["n"][0])


def rows(first, many=100, **columns):
    base = {"u": [f"{first}-{each}" for each in range(many)], "x": [1.5] * many}
    return pa.table({**base, **columns})


def write(place, table):
    place.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, place)


# Files


def test_a_file_that_sorts_first_does_not_decide_the_types_of_others(tmp_path):
    for number in range(5):
        write(tmp_path / f"m{number}.parquet", rows(number, x=[0.4] * 100))
    pattern = f"{tmp_path}/*.parquet"
    assert asked(pattern, columns=KINDS) == 500
    for table in (rows("a", 1, x=[3]), rows("a", 1, x=["no"]), pa.table({"u": ["a"]})):
        write(tmp_path / "a.parquet", table)
        assert asked(pattern, columns=KINDS) in {500, 501}


def test_columns_of_csv_files_are_found_by_their_names(tmp_path):
    (tmp_path / "b.csv").write_text("u,x\n" + "".join(f"{n},1\n" for n in range(50)))
    (tmp_path / "a.csv").write_text("x,z,u\n1,2,a\n")
    assert asked(f"{tmp_path}/*.csv", columns=KINDS) == 51


@pytest.mark.parametrize(
    "content", [b"", b"PAR1", b"secret", os.urandom(300)], ids=["empty", "magic", "text", "chance"]
)
def test_a_file_that_cannot_be_read_has_no_rows(tmp_path, content):
    write(tmp_path / "b.parquet", rows("b"))
    (tmp_path / "a.parquet").write_bytes(content)
    assert asked(f"{tmp_path}/*.parquet", columns=KINDS) == 100
    (tmp_path / "b.parquet").unlink()
    assert asked(f"{tmp_path}/*.parquet", columns=KINDS) == 0


def test_a_pattern_without_types_is_refused_whatever_it_finds(tmp_path):
    told = []
    for _ in range(2):
        with pytest.raises(dp.ParameterError) as refusal:
            opened(f"{tmp_path}/*.parquet")
        told.append(str(refusal.value))
        write(tmp_path / "a.parquet", rows("a"))
    assert told[0] == told[1]
    assert "columns={'age': 'integer', ...}; `deniable init` drafts them" in told[0]


@pytest.mark.parametrize("place", ["nowhere/*.parquet", "https://example.org/*.parquet"])
def test_patterns_that_can_find_nothing_are_refused(tmp_path, monkeypatch, place):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(dp.ParameterError, match=r"no such folder|on this machine"):
        opened(place, columns=KINDS)


def test_folders_name_columns_only_where_the_pattern_does(tmp_path, monkeypatch):
    for day in (
        "2024-01-01",
        "2024-01-02",
        "unknown",
        "__HIVE_DEFAULT_PARTITION__",
        "2024%2D01-03",
    ):
        write(tmp_path / f"day={day}" / "a.parquet", rows(day, 10))
    kinds = {**KINDS, "day": "date"}
    question = "SELECT COUNT(*) AS n FROM t WHERE day >= DATE '2024-01-01'"
    assert asked(f"{tmp_path}/day=*/*.parquet", question, columns=kinds) == 30
    assert asked(f"{tmp_path}/**/*.parquet", question, columns=kinds) == 0
    assert asked(f"{tmp_path}/day=2024-01-02/*.parquet", question, columns=kinds) == 10
    one = tmp_path / "day=2024-01-02" / "a.parquet"
    for recent in (600.0, -1.0):  # copied, and kept open
        monkeypatch.setattr(linked, "_RECENT", recent)
        assert asked(str(one), question, columns=kinds) == 10
    # A folder of one more person changes nobody's day.
    write(tmp_path / "day=SW1" / "z.parquet", rows("z", 1))
    assert asked(f"{tmp_path}/day=*/*.parquet", question, columns=kinds) == 30


def test_a_unit_of_which_two_could_become_one_is_nobody(tmp_path):
    """In one file the ids are fractions; rounded, all of them would be one person."""
    table = pa.table({"u": [1.1, 1.2, 0.9], "x": [1.0] * 3})
    write(tmp_path / "a.parquet", table)
    write(tmp_path / "b.parquet", pa.table({"u": [5, 6], "x": [1.0] * 2}))
    kinds = {"u": "integer", "x": "number"}
    assert asked(f"{tmp_path}/*.parquet", columns=kinds) == 2
    with pytest.raises(dp.ParameterError, match="declare it as text"):
        opened(f"{tmp_path}/u=*/*.parquet", columns=kinds)


def test_signs_in_the_names_of_files_are_letters(tmp_path):
    write(tmp_path / "a[1].parquet", rows("a", 3))
    write(tmp_path / "a1.parquet", rows("b", 4))
    assert asked(f"{tmp_path}/a[[]*.parquet", columns=KINDS) == 3


# One reading

TWICE = "SELECT COUNT(*) AS n FROM t AS a JOIN t AS b ON a.u = b.u"
CHANGES = {
    "appears": lambda place: write(place / "z.parquet", rows("z", 5_000)),
    "grows": lambda place: write(place / "b.parquet", rows("b", 5_000)),
    "vanishes": lambda place: (place / "b.parquet").unlink(missing_ok=True),
    "is damaged": lambda place: (place / "b.parquet").write_bytes(b"PAR1"),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("bought", [False, True])
@pytest.mark.parametrize("one", [False, True])
def test_files_that_change_between_statements_change_nothing(
    tmp_path, monkeypatch, change, bought, one
):
    """Between any two statements: the file is read before the first, or by one alone."""
    run = DuckDBSnapshot.run
    statements = []
    source = f"{tmp_path}/b.parquet" if one else f"{tmp_path}/*.parquet"
    declared = {"columns": None if one else KINDS, "max_rows": None if bought else 1}

    def changed(self, step):
        found = run(self, step)
        statements.append(step)
        CHANGES[change](tmp_path)
        return found

    monkeypatch.setattr(DuckDBSnapshot, "run", changed)
    for question in (COUNT, TWICE, "SELECT AVG(x) AS a, COUNT(*) AS n, MEDIAN(x) AS m FROM t"):
        write(tmp_path / "b.parquet", rows("b", 1_000))
        (tmp_path / "z.parquet").unlink(missing_ok=True)
        with opened(source, **declared) as session:
            answer = session.sql(question, epsilon=1e6)
        assert answer["n"][0] == pytest.approx(1_000, abs=30)
    assert len(statements) >= 4


@pytest.mark.parametrize("change", ["replaced", "removed", "rewritten", "appended"])
def test_a_file_that_stood_still_is_kept_open_and_not_copied(tmp_path, monkeypatch, change):
    """What takes its place is another file; what is written into it ends the question."""
    place, other = tmp_path / "b.parquet", tmp_path / "other"
    write(place, rows("b", 1_000))
    write(other, rows("c", 5_000))
    monkeypatch.setattr(linked, "_RECENT", 0.05)
    time.sleep(0.1)
    run = DuckDBSnapshot.run

    def changed(self, step):
        found = run(self, step)
        assert len(self._links) == 1
        if change == "replaced":
            other.replace(place) if other.exists() else None
        elif change == "removed":
            place.unlink(missing_ok=True)
        elif change == "rewritten":
            place.write_bytes(other.read_bytes())
        else:
            with place.open("ab") as file:
                file.write(b"PAR1")
        return found

    monkeypatch.setattr(DuckDBSnapshot, "run", changed)
    question = "SELECT AVG(x) AS a, COUNT(*) AS n, MEDIAN(x) AS m FROM t"
    with opened(str(place)) as session:
        folder = session.parts.engine._spill.folder
        if change in {"replaced", "removed"}:
            assert session.sql(question, epsilon=1e6)["n"][0] == pytest.approx(1_000, abs=1)
        else:
            with pytest.raises(dp.ReleaseFailedError):
                session.sql(question, epsilon=1e6)
        assert [each.name for each in folder.iterdir()] == ["in-use"]
    held = [each.readlink() for each in Path("/proc/self/fd").iterdir() if each.is_symlink()]
    assert not any("b.parquet" in str(each) for each in held)


def test_reading_twice_is_caught(tmp_path, monkeypatch):
    """Power: were the file read in place by each statement, a change would show."""
    monkeypatch.setattr(Pinned, "is_in_place", lambda self, texts: True)
    write(tmp_path / "b.parquet", rows("b"))
    with opened(f"{tmp_path}/b.parquet") as session, pytest.raises(dp.ReleaseFailedError):
        session.sql(TWICE, epsilon=1e6)


def test_a_file_that_is_read_once_is_not_copied(tmp_path, monkeypatch):
    write(tmp_path / "b.parquet", rows("b", s=["b"] * 100))
    made = []
    pin = Pinned.is_in_place
    monkeypatch.setattr(
        Pinned, "is_in_place", lambda self, texts: made.append(pin(self, texts)) or made[-1]
    )
    with opened(f"{tmp_path}/b.parquet") as session:
        session.sql("SELECT COUNT(*) AS n, SUM(x) AS s FROM t WHERE s LIKE 'b%'", epsilon=1)
    assert made
    assert all(made)


def test_names_are_found_wherever_they_stand():
    texts = Texts(('SELECT "a""b", T.Cost FROM "t" JOIN t AS b ON \'day\' = b.u',))
    assert texts.scans("t") == 2
    assert Texts(("WITH a AS (SELECT u FROM t) SELECT u FROM a",)).scans("t") == 2
    schema = dp.tables.Schema(
        dict.fromkeys(('a"b', "cost", "day", "os", "zone"), ColumnType.TEXT), frozenset()
    )
    assert texts.columns(schema) == ['a"b', "cost", "day"]


def test_nothing_is_left_of_a_question(tmp_path):
    write(tmp_path / "b.parquet", rows("b"))
    with opened(f"{tmp_path}/*.parquet", columns=KINDS) as session:
        session.sql(TWICE, epsilon=1)
        engine = session.parts.engine
        assert engine._connection.execute("SELECT * FROM duckdb_tables()").fetchall() == []
        with pytest.raises(ZeroDivisionError), engine.snapshot():
            raise ZeroDivisionError
        assert engine._connection.execute("SELECT * FROM duckdb_tables()").fetchall() == []
        assert session.sql(TWICE, epsilon=2)["n"][0] > 50


def test_a_public_table_that_grows_is_counted_again(tmp_path):
    """How often a row is met is counted when a question is planned."""
    place = tmp_path / "w.csv"
    place.write_text("k\n1\n")
    tables = {"t": private(rows("a")), "w": dp.PublicTable(place, columns={"k": "integer"})}
    question = "SELECT COUNT(*) AS n FROM t JOIN w ON w.k = 1"
    with dp.Session(tables, budget=dp.ApproxDP(1e9, 1e-6), ledger=dp.Ledger()) as session:
        session.explain(question, epsilon=1e6)
        place.write_text("k\n1\n1\n1\n")
        with pytest.raises(dp.ReleaseFailedError):
            session.sql(question, epsilon=1e6)
        assert session.sql(question, epsilon=1e6)["n"][0] == pytest.approx(300, abs=1)


# Views and computed columns

OTHERS = "SELECT * FROM base WHERE u <> 'alice'"
VIEWS = [
    OTHERS,
    "SELECT u, CAST(s AS INTEGER) AS x FROM base",
    "SELECT u, random() AS x FROM base",
    "SELECT u, max(x) OVER () AS x FROM base",
]


@pytest.fixture(params=["file", "connection"])
def database(request, tmp_path):
    """A database of one table, as a file or as an open connection, and a way to run SQL in it."""
    place = tmp_path / "d.db"
    with duckdb.connect(place) as made:
        made.execute("CREATE TABLE base (u VARCHAR, x DOUBLE, s VARCHAR)")
        made.execute("INSERT INTO base SELECT 'p' || i, 1.5, '1' FROM range(100) r(i)")
        made.execute("INSERT INTO base VALUES ('alice', 1.5, 'none')")
        for number, select in enumerate(VIEWS):
            made.execute(f"CREATE VIEW v{number} AS {select}")
        made.execute("CREATE TABLE g (u VARCHAR, s VARCHAR, x INT AS (CAST(s AS INT)))")
        made.execute("INSERT INTO g (u, s) VALUES ('a', '1'), ('alice', '2')")
    if request.param == "file":
        yield dp.duckdb(place)
    else:
        with duckdb.connect(place) as kept:
            yield dp.duckdb(kept)


@pytest.mark.parametrize("number", range(len(VIEWS)))
def test_views_are_refused(database, number):
    with pytest.raises(dp.ParameterError, match="row_by_row=True"):
        opened(database.table(f"v{number}"))


def test_a_view_that_is_made_row_by_row_is_computed_before_the_question(database):
    source = database.table("v0")
    assert asked(source, row_by_row=True) == 100
    question = "SELECT COUNT(*) AS n FROM t WHERE s = 'none'"
    assert asked(source, question, row_by_row=True) == 0
    assert asked(database.table("base")) == 101


def test_public_views_are_taken(database):
    tables = {
        "t": private(database.table("base")),
        "w": dp.PublicTable(database.table("v0"), row_by_row=True),
    }
    with dp.Session(tables, budget=dp.ApproxDP(1e9, 1e-6), ledger=dp.Ledger()) as session:
        question = "SELECT COUNT(*) AS n FROM t JOIN w ON t.u = w.u"
        assert session.sql(question, epsilon=1e6)["n"][0] == pytest.approx(100, abs=1)


def test_computed_columns_are_left_out(database):
    with opened(database.table("g"), bounds={}) as session:
        assert set(session._catalogue.schemas["t"].columns) == {"u", "s"}
        count = session.sql("SELECT COUNT(*) AS n FROM t", epsilon=1e6)["n"][0]
    assert count == pytest.approx(2, abs=0.1)


def test_what_the_catalogue_does_not_have_is_not_looked_for_elsewhere(database):
    local_frame = pandas.DataFrame({"u": ["a"], "x": [1.0]})  # noqa: F841
    with pytest.raises(dp.ParameterError, match="no such table"):
        opened(database.table("local_frame"))


# Tables in memory


def test_pandas_needs_types_and_the_sentence_says_which():
    frame = pandas.DataFrame({"u": ["a"], "x": [1.5], "n": [1], "b": [True]})
    with pytest.raises(dp.ParameterError) as told:
        opened(frame)
    drafted = "columns={'u': 'text', 'x': 'number', 'n': 'integer', 'b': 'boolean'}"
    assert drafted in str(told.value)
    with opened(frame, **eval(f"dict({drafted})")):
        pass


class Framed(pandas.DataFrame):
    """A class of somebody's own."""


@pytest.mark.parametrize("made", [pandas.DataFrame, Framed])
@pytest.mark.parametrize("last", [4, None, float("nan"), 4.5, "x", pandas.NA, float("inf")])
def test_one_cell_of_a_pandas_table_changes_no_other(made, last):
    """One missing value or fraction makes pandas hold the whole column otherwise."""
    for kind in ("integer", "text"):
        frame = made({"u": [1, 2, 3, last], "s": [1, 2, 3, last], "x": [1, 2, 3, 4]})
        kinds = {"u": kind, "s": "text", "x": "number"}
        if isinstance(last, str):  # beside numbers, "1" could be 1
            with pytest.raises(dp.ParameterError, match="two people may become one"):
                opened(frame, columns=kinds)
            frame = frame.assign(u=["1", "2", "3", last])
            kinds["u"] = "text"
        for question, least in (
            ("SELECT COUNT(*) AS n FROM t WHERE s = '2'", 1),
            ("SELECT COUNT(DISTINCT u) AS n FROM t WHERE s IN ('1', '2', '3')", 3),
        ):
            assert asked(frame, question, columns=kinds) == least


@pytest.mark.parametrize("kind", ["integer", "number", "text"])
def test_a_complex_cell_of_a_pandas_table_changes_no_other(kind):
    frame = pandas.DataFrame({"u": ["a", "b", "c"], "s": [1, 2, 1j], "x": [1.0, 1.0, 1.0]})
    assert frame["s"].dtype.kind == "c"
    kinds = {"u": "text", "s": kind, "x": "number"}
    two = "'2'" if kind == "text" else "2"
    assert asked(frame, f"SELECT COUNT(*) AS n FROM t WHERE s = {two}", columns=kinds) == 1
    assert asked(frame, "SELECT COUNT(s) AS n FROM t", columns=kinds) == 2


@pytest.mark.parametrize("cell", ["1E+10000000", "-1E+999999999999999999", "9223372036854775808"])
def test_a_decimal_of_pandas_that_no_memory_holds_is_missing(cell):
    frame = pandas.DataFrame({"u": [*"abc"], "x": [Decimal(2), Decimal(3), Decimal(cell)]})
    kinds = {"u": "text", "x": "integer"}
    before = time.process_time()
    assert asked(frame, columns=kinds) == 2
    assert time.process_time() - before < 10  # to write out its digits takes hours


def as_arrow(kind, cells):
    return pandas.Series(pandas.arrays.ArrowExtensionArray(pa.array(cells).view(kind)))


FAR = 1 << 62
UNGIVABLE = {
    **{
        f"{kind} {far}": as_arrow(kind, [0, 1, far])
        for kind in (pa.timestamp("s"), pa.timestamp("us", "UTC"), pa.duration("s"), pa.date64())
        for far in (FAR, -FAR)
    },
    "a day": as_arrow(pa.date32(), np.array([0, 1, -(1 << 31)], "int32")),
    "no text": as_arrow(pa.string(), [b"a", b"b", b"\xff"]),
    "a zone": pandas.Series(np.array([0, 1, (1 << 63) - 1]).view("M8[us]"))
    .dt.tz_localize("UTC")
    .dt.tz_convert("Asia/Tokyo"),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("case", UNGIVABLE)
@pytest.mark.parametrize("kind", ColumnType)
def test_a_cell_that_pandas_cannot_give_is_missing_and_keeps_no_other(case, kind):
    def read(cells):
        return frames.pinned_frame(pandas.DataFrame({"x": cells}), {"x": kind})["x"].to_pylist()

    assert read(UNGIVABLE[case])[:2] == read(UNGIVABLE[case][:2])


@pytest.mark.filterwarnings("error")
def test_a_number_too_large_for_its_type_does_not_warn():
    cells = pandas.Series(np.array(["1", "2", "1e4000"], np.longdouble))
    frame = pandas.DataFrame({"u": [*"abc"], "x": cells})
    assert asked(frame, columns=KINDS) == 2


ALONE = {
    "spans": [timedelta(1), timedelta(2, 5)],
    "spans of NumPy": [np.timedelta64(1, "ns"), np.timedelta64(5, "s")],
    "times of NumPy": [np.datetime64("2020-01-01", "ns"), np.datetime64("2021-01-01", "ns")],
    "days of NumPy": [np.datetime64("2020-01-01", "D"), np.datetime64("2021-01-01", "D")],
    "intervals": [pandas.Interval(0, 1), pandas.Interval(1, 2)],
    "short fractions": [np.float16(0.1), np.float16(2)],
    "short whole numbers": [np.int8(5), np.int8(7)],
    "complex numbers": [np.complex64(0.1), np.complex64(2)],
}
GUESTS = ["x", None, 0.5, float("inf"), 3j, np.longdouble("1.5"), np.float16(3), timedelta(3)]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("guest", GUESTS, ids=repr)
@pytest.mark.parametrize("case", ALONE)
def test_whatever_a_cell_makes_of_a_column_the_others_are_read_alike(case, guest):
    """Times beside a text are NumPy's own, of which Python makes numbers; spans print otherwise."""
    for kind in ColumnType:
        alone, beside = (
            frames.pinned_frame(pandas.DataFrame({"x": cells}), {"x": kind})["x"].to_pylist()
            for cells in (ALONE[case], [*ALONE[case], guest])
        )
        assert beside[:2] == alone


class Everybody:
    """Prints alike."""

    def __str__(self):
        return "somebody"


MIDNIGHT = pandas.Timestamp("2020-01-01")
HOUR = pandas.Timedelta(hours=1)
MERGED = {
    "texts as integers": (["7", "007", "+7", " 7"], "integer"),
    "text among integers": ([7, "7"], "integer"),
    "truth among integers": ([1, True], "integer"),
    "texts as dates": (["2020-01-01", "2020-01-01T05:00"], "date"),
    "times as dates": ([MIDNIGHT, MIDNIGHT + HOUR], "date"),
    "times among dates": ([date(2020, 1, 1), datetime(2020, 1, 1, 5)], "date"),
    "integers among texts": (["7", 7], "text"),
    "fractions among texts": (["1.5", 1.5], "text"),
    "truths among texts": (["True", True], "text"),
    "bytes among texts": (["b'a'", b"a"], "text"),
    "decimals among texts": ([Decimal("2.5"), "2.5"], "text"),
    "objects": ([Everybody(), Everybody()], "text"),
    "times": ([MIDNIGHT, MIDNIGHT + HOUR], "text"),
}


@pytest.mark.parametrize("form", [None, object, "category"])
@pytest.mark.parametrize("case", MERGED)
def test_a_unit_of_pandas_in_which_two_people_may_become_one_is_refused(case, form):
    ids, kind = MERGED[case]
    if form == "category" and case == "truth among integers":
        ids = [*ids, "a"]  # to pandas they are one
    frame = pandas.DataFrame({"u": pandas.Series(ids, dtype=form), "x": 1.0})
    kinds = {"U": kind, "x": "number"}
    with pytest.raises(dp.ParameterError, match="two people may become one"):
        opened(frame, columns=kinds)
    # What is no unit is read cell by cell.
    assert asked(frame.assign(p=range(len(ids))), unit="p", columns=kinds | {"p": "integer"}) > 1


DISTINCT = {
    "integer": [[7, 8, None], [7.0, 8.0, float("nan")], np.array([7, 8], "uint8")],
    "text": [["7", "007", None, "+7"], [1.5, 2, 3], [Decimal("1.0"), Decimal("1")], [7, 8]],
    "date": [[date(2020, 1, 1), date(2020, 1, 2), None]],
}


@pytest.mark.parametrize("form", [None, object, "category"])
@pytest.mark.parametrize("kind", DISTINCT)
def test_a_unit_of_pandas_in_which_people_stay_apart_is_taken(kind, form):
    for ids in DISTINCT[kind]:
        frame = pandas.DataFrame({"u": pandas.Series(ids, dtype=form), "x": 1.0})
        people = len([each for each in ids if not pandas.isna(each)])
        if form == "category":
            people = len(frame["u"].cat.categories)
        question = "SELECT COUNT(DISTINCT u) AS n FROM t"
        assert asked(frame, question, columns={"u": kind, "x": "number"}) == people


class Wrapped(pa.ExtensionType):
    """A type of somebody's own, stored as another."""

    def __init__(self, stored):
        super().__init__(stored, "deniable.tests.wrapped")

    def __arrow_ext_serialize__(self):
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, stored, _written):
        return cls(stored)


def wrapped(array):
    return pa.ExtensionArray.from_storage(Wrapped(array.type), array)


WRAPPERS = {
    "plain": lambda array: array,
    "extension": wrapped,
    "dictionary": lambda array: array.dictionary_encode(),
    "extension of a dictionary": lambda array: wrapped(array.dictionary_encode()),
    "dictionary of an extension": lambda array: pa.DictionaryArray.from_arrays(
        pa.array(range(len(array)), pa.int8()), wrapped(array)
    ),
    "runs": lambda array: pa.RunEndEncodedArray.from_arrays(
        pa.array(range(1, len(array) + 1), pa.int32()), array
    ),
}


@pytest.mark.parametrize("how", WRAPPERS)
@pytest.mark.parametrize(
    "kind", [pa.timestamp("s", "UTC"), pa.timestamp("ms", "UTC"), pa.date64()], ids=str
)
def test_times_that_no_engine_reads_are_left_out_however_they_are_wrapped(how, kind):
    told = []
    day = 86_400_000
    for last in (3, 2**63 // day):
        times = pa.array([0, day, 2 * day, last * day], pa.int64()).view(kind)
        table = pa.table({"u": [*"abcd"], "x": [1.0] * 4, "c": WRAPPERS[how](times)})
        with opened(table) as session:
            told.append(("c" in session.parts.catalogue.schemas["t"].columns, asked(table)))
    assert told == [(False, 4)] * 2


def test_cells_are_read_alike_one_by_one_and_at_once():
    luck = random.Random("cells")
    values = {
        "int64": [luck.randrange(-(2**63), 2**63) for _ in range(200)],
        "int8": [luck.randrange(-128, 128) for _ in range(200)],
        "uint16": [luck.randrange(2**16) for _ in range(200)],
        "float64": [luck.choice((0.5, -0.0, 1e300, float("inf"), 2.0**62)) for _ in range(200)],
        "float32": [luck.random() for _ in range(200)],
        "bool": [luck.random() < 0.5 for _ in range(200)],
    }
    for form, cells in values.items():
        column = np.array(cells, form)
        for kind in (ColumnType.INTEGER, ColumnType.NUMBER, ColumnType.BOOLEAN):
            named = {"c": kind}
            if form == "float64" and kind == ColumnType.INTEGER:
                column = column[np.abs(column) < 2**53]
            once = frames.pinned_frame(pandas.DataFrame({"c": column}), named)["c"].to_pylist()
            object_ = pandas.DataFrame({"c": pandas.Series(list(column), dtype=object)})
            each = frames.pinned_frame(object_, named)["c"].to_pylist()
            finite = [None if v in {float("inf"), float("-inf")} else v for v in once]
            assert finite == each, (form, kind)


def test_a_frame_that_changes_later_changes_nothing():
    frame = pandas.DataFrame({"u": [str(n) for n in range(100)], "x": np.ones(100)})
    buffer = np.ones(100)
    arrow = pa.table({"u": [str(n) for n in range(100)], "x": pa.array(np.ones(100))})
    for source in (frame, arrow, polars.from_arrow(arrow)):
        with opened(source, columns=KINDS) as session:
            if source is frame:
                frame.loc[:, "x"] = 0.0
            assert session.sql(COUNT, epsilon=1e6)["n"][0] == pytest.approx(100, abs=0.1)
    assert buffer.sum() == 100


def test_what_would_be_computed_again_is_read_once():
    """A relation of DuckDB is no table: it is run each time that somebody reads it."""
    drawn = duckdb.sql("SELECT CAST(range AS VARCHAR) AS u, random() - 0.5 AS x FROM range(1000)")
    with pytest.raises(dp.errors.ParameterTypeError, match="a relation of DuckDB is a view"):
        private(drawn)
    with opened(drawn.to_arrow_table()) as session:
        question = "SELECT COUNT(*) AS n FROM t AS a JOIN t AS b ON a.u = b.u WHERE a.x = b.x"
        assert session.sql(question, epsilon=1e6)["n"][0] == pytest.approx(1_000, abs=0.1)


def test_times_and_days_of_pandas_are_read_as_they_are():
    moment = datetime(2024, 2, 29, 12, 30)
    cells = {
        "timestamp": [moment, "2024-02-29 12:30", pandas.Timestamp(moment), np.datetime64(moment)],
        "date": [moment, "2024-02-29", date(2024, 2, 29), pandas.Timestamp(moment)],
    }
    for kind, given in cells.items():
        frame = pandas.DataFrame({"c": pandas.Series([*given, "29 Feb", 7], dtype=object)})
        found = frames.pinned_frame(frame, {"c": ColumnType(kind)})["c"].to_pylist()
        expected = moment if kind == "timestamp" else moment.date()
        assert found == [expected] * len(given) + [None, None]


# Where rows are put that do not fit in memory

SPILLS = """
    import sys, deniable as dp, duckdb, os
    kept = duckdb.connect() if sys.argv[2] == "own" else None
    print(os.getcwd())
    place = sys.argv[1]
    if kept is None:
        source = place
    else:
        kept.execute(f"CREATE TABLE t AS FROM '{place}'")
        source = dp.duckdb(kept).table("t")
    table = dp.PrivateTable(source, unit="u", population="p", max_rows=3)
    session = dp.Session({"t": table}, budget=dp.ApproxDP(100, 1e-6), ledger=dp.Ledger())
    engine = session.parts.engine._connection
    engine.execute("SET memory_limit = '40MB'")
    engine.execute("SET threads = 1")
    print("ready", flush=True)
    read = "t" if kept else f"'{place}'"
    engine.execute(f"CREATE TEMP TABLE s AS SELECT u, s || md5(i::VARCHAR) AS s FROM {read}, "
                   "range(1000) r(i)")
    print("spilt", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("whose", ["ours", "own"])
def test_spilt_rows_are_in_a_folder_of_our_own_and_swept_after_a_kill(tmp_path, whose):
    place, home, spill = tmp_path / "t.parquet", tmp_path / "home", tmp_path / "spill"
    home.mkdir()
    spill.mkdir()
    duckdb.sql(
        "COPY (SELECT range AS u, repeat('zq7319qz', 12) || hash(range) AS s FROM range(1000)) "
        f"TO '{place}'"
    )
    environment = {**os.environ, "TMPDIR": str(spill)}
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(SPILLS), str(place), whose],
        cwd=home, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        while process.stdout.readline().strip() != "spilt":
            assert process.poll() is None
        folders = list(spill.iterdir())
        assert [each.name[:15] for each in folders] == ["deniable-spill-"]
        assert folders[0].stat().st_mode & 0o777 == 0o700
        assert len(list(folders[0].iterdir())) > 1
        assert list(home.iterdir()) == []
        process.send_signal(signal.SIGKILL)
    assert folders[0].exists()
    opening = "import deniable.engines.spill as s; s.Spill()"
    subprocess.run([sys.executable, "-c", opening], check=True, env=environment)
    assert list(spill.iterdir()) == []


def test_folders_that_are_in_use_are_not_swept():
    with opened(rows("a")) as session:
        folder = session.parts.engine._spill.folder
        opening = "import deniable.engines.spill as s; s.Spill()"
        environment = {**os.environ, "TMPDIR": tempfile.gettempdir()}
        subprocess.run([sys.executable, "-c", opening], check=True, env=environment)
        assert folder.exists()
    assert not folder.exists()


def test_a_forked_child_leaves_the_folder_of_its_parent():
    engine = DuckDB()
    folder = engine._spill.folder
    child = os.fork()
    if child == 0:
        engine._spill.sweep()
        os._exit(0)
    os.waitpid(child, 0)
    assert folder.exists()
    engine.close()


def test_a_pattern_is_told_from_a_path():
    assert not Files.of("a.parquet").is_pattern
    assert Files.of("a/*.csv").is_pattern
    assert Files.of("a[[]1][*]b/x.csv") == Files("a[1]*b/x.csv", is_pattern=False)
    assert Files("w/day=*/zip=12/*.csv").partitions == ("day", "zip")
    assert list(Files(str(Path(tempfile.gettempdir()) / "no-such-*.csv")).paths()) == []


# Names of an open connection


def test_tables_of_a_connection_are_found_where_the_owner_is(tmp_path):
    with duckdb.connect(tmp_path / "d.db") as kept:
        kept.execute("CREATE TABLE v AS SELECT 'u' || range AS u, 1.5 AS x FROM range(10)")
        kept.execute("CREATE SCHEMA other")
        kept.execute("USE other")
        kept.execute("CREATE TABLE v AS SELECT 'u' || range AS u, 1.5 AS x FROM range(500)")
        assert asked(dp.duckdb(kept).table("v")) == 500
        kept.execute("CREATE TEMP TABLE theirs AS FROM v")
        with pytest.raises(dp.ParameterError, match="no such table"):
            opened(dp.duckdb(kept).table("theirs"))


def test_names_in_a_session_hide_no_table_of_the_database():
    """A private table under the name of a public one in the database, and under its own."""
    kept = duckdb.connect()
    kept.execute("CREATE TABLE codes AS SELECT 'x' AS name FROM range(3)")
    kept.execute("CREATE TABLE t AS SELECT 'u' || range AS u, 1.5 AS x, 'n' AS name FROM range(50)")
    base = dp.duckdb(kept)
    assert asked(base.table("t")) == 50
    for names in (("lookup", "codes"), ("t", "codes")):
        public, own = names
        tables = {public: dp.PublicTable(base.table("codes")), own: private(base.table("t"))}
        for order in (tables, dict(reversed(tables.items()))):
            with dp.Session(order, budget=dp.ApproxDP(9, 1e-6), ledger=dp.Ledger()) as session:
                told = session.explain(
                    f"SELECT COUNT(*) AS n FROM {own} CROSS JOIN {public} AS p", epsilon=0.1
                )
                assert "up to 3 rows" in str(told.contributions)


# What others found


def test_a_table_of_the_owner_that_becomes_a_view_is_not_read():
    kept = duckdb.connect()
    kept.execute("CREATE TABLE v AS SELECT 'u' || range AS u, 1.5 AS x FROM range(100)")
    with opened(dp.duckdb(kept).table("v")) as session:
        assert session.sql(COUNT, epsilon=1e6)["n"][0] == pytest.approx(100, abs=0.1)
        kept.execute("ALTER TABLE v RENAME TO w")
        kept.execute("CREATE VIEW v AS SELECT u, max(x) OVER () AS x FROM w")
        with pytest.raises(dp.ReleaseFailedError):
            session.sql("SELECT COUNT(*) AS n FROM t WHERE x > 1", epsilon=1e6)


def test_macros_in_place_of_functions_are_refused():
    kept = duckdb.connect()
    kept.execute("CREATE TABLE v AS SELECT 'u' || range AS u, 1.5 AS x FROM range(100)")
    kept.execute("CREATE MACRO theirs(x) AS x + 1")
    assert asked(dp.duckdb(kept).table("v")) == 100
    kept.execute("CREATE MACRO isfinite(a) AS (SELECT max(x) FROM v) < 5")
    with pytest.raises(dp.ParameterError, match="isfinite"):
        opened(dp.duckdb(kept).table("v"))


@pytest.mark.parametrize(("digits", "places"), [(38, 10), (38, 38), (38, 2), (20, 2), (38, 0)])
def test_a_decimal_beyond_its_digits_is_null(tmp_path, digits, places):
    """The engine would end as it is cast."""
    cells = pa.py_buffer(b"\0" * 800 + b"\0" * 15 + b"\x80")
    column = pa.Array.from_buffers(pa.decimal128(digits, places), 51, [None, cells])
    table = pa.table({"u": [f"p{each}" for each in range(51)], "x": column})
    pq.write_table(table, tmp_path / "d.parquet", use_dictionary=False, write_statistics=False)
    question = "SELECT COUNT(x) AS n FROM t"
    for source, kinds in (
        (table, None),
        (f"{tmp_path}/d.parquet", None),
        (f"{tmp_path}/*.parquet", KINDS),
        (f"{tmp_path}/*.parquet", {"u": "text", "x": "text"}),
        (table, {"u": "text", "x": "integer"}),
    ):
        declared = {"columns": kinds, "bounds": {}}
        # In fewer bytes than 16 its last digits are a number of the type.
        assert asked(source, question, **declared) in ({50} if digits == 38 else {50, 51})


def test_two_ways_to_write_a_folder_are_two_people(tmp_path):
    for name in ("a b", "a%20b", "%fe", "%ff"):
        write(tmp_path / f"id={name}" / "a.parquet", pa.table({"x": [1.0]}))
    kinds = {"id": "text", "x": "number"}
    question = "SELECT COUNT(DISTINCT id) AS n FROM t"
    assert asked(f"{tmp_path}/id=*/*.parquet", question, unit="id", columns=kinds) == 4


@pytest.mark.parametrize("kind", ["integer", "text"])
def test_ids_that_pandas_has_rounded_are_refused(kind):
    ids = [2**60 + each for each in range(100)]
    kinds = {"u": kind, "x": "number"}
    whole = pandas.DataFrame({"u": ids, "x": [1.0] * 100})
    assert asked(whole, columns=kinds) == 100
    lacking = pandas.DataFrame({"u": [*ids, None], "x": [1.0] * 101})
    with pytest.raises(dp.ParameterError, match="Int64"):
        opened(lacking, columns=kinds)
    nullable = pandas.DataFrame({"u": pandas.array([*ids, None], "Int64"), "x": [1.0] * 101})
    assert asked(nullable, columns=kinds) == 100


def test_an_owners_database_spills_into_our_folder(tmp_path):
    with duckdb.connect(tmp_path / "d.db") as kept:
        kept.execute("CREATE TABLE v AS SELECT 'u' || range AS u, 1.5 AS x FROM range(100)")
        with opened(dp.duckdb(kept).table("v")) as session:
            folder = session.parts.engine._spill.folder
            told = "SELECT current_setting('temp_directory')"
            assert kept.execute(told).fetchall() == [(str(folder),)]
            assert folder.stat().st_mode & 0o777 == 0o700
        assert folder.exists()  # the connection may go on to spill
