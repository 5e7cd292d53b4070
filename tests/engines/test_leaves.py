"""Every extreme through every reader of DuckDB: a canonical value or NULL, and never an error."""

import contextlib
import math
from datetime import timedelta

import duckdb
import pandas
import polars
import pyarrow as pa
import pytest
from pyarrow import parquet

import deniable as dp
from deniable.engines.duckdb import DuckDB
from deniable.tables import ColumnType
from engines import extremes as at


def read(source, columns=None, unit=None):
    """The schema, and all columns as the engine's own view gives them."""
    with contextlib.closing(DuckDB()) as engine:
        schema = engine.add("t", source, columns, unit)
        with engine.snapshot():
            every = engine._connection.sql("SELECT * FROM t")
            found = {
                name: [row[0] for row in every.select(f'"{name}"').fetchall()]
                for name in schema.columns
            }
    for name, kind in schema.columns.items():
        assert all(at.is_canonical(kind, value) for value in found[name])
    return schema, found


def same(found, wanted):
    """Equal, and of zeros the sign as well."""
    return list(map(repr, found)) == list(map(repr, wanted))


def stored(tmp_path, table):
    place = tmp_path / "t.parquet"
    parquet.write_table(table, place)
    return str(place)


def in_database(table):
    """The cells in a table of DuckDB, as its own insert takes them."""
    connection = duckdb.connect()
    connection.register("given", table)
    connection.execute("CREATE TABLE v AS SELECT * FROM given")
    return dp.duckdb(connection).table("v")


READERS = ["arrow", "parquet", "database", "polars"]


def through(reader, table, tmp_path):
    if reader == "parquet":
        return stored(tmp_path, table)
    if reader == "database":
        return in_database(table)
    return polars.from_arrow(table) if reader == "polars" else table


@pytest.mark.parametrize("reader", READERS)
def test_doubles_are_finite_and_have_one_zero(reader, tmp_path):
    table = pa.table({"x": pa.array(at.DOUBLES), "f": pa.array(at.DOUBLES, pa.float32())})
    _, found = read(through(reader, table, tmp_path))
    assert same(found["x"], map(at.read_double, at.DOUBLES))
    single = [value.as_py() for value in pa.array(at.DOUBLES, pa.float32())]
    assert same(found["f"], map(at.read_double, single))


def test_pandas_doubles_and_objects():
    frame = pandas.DataFrame({"x": at.DOUBLES, "o": [object(), *["a\ud800", None, 1.5] * 4, "", 1]})
    _, found = read(frame, {"x": ColumnType.NUMBER, "o": ColumnType.TEXT})
    assert same(found["x"], map(at.read_double, at.DOUBLES))
    assert found["o"][1:5] == [None, None, "1.5", None]


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    "kind",
    [pa.int8(), pa.uint8(), pa.int32(), pa.uint32(), pa.int64(), pa.uint64(), pa.decimal128(38, 0)],
    ids=str,
)
def test_whole_numbers_have_64_bits(reader, kind, tmp_path):
    low, high = -(10**38) + 1, 10**38 - 1
    if pa.types.is_integer(kind):
        low = -(2 ** (kind.bit_width - 1)) if pa.types.is_signed_integer(kind) else 0
        high = low + 2**kind.bit_width - 1
    cells = [value for value in [*at.WHOLE, low, high] if low <= value <= high]
    schema, found = read(through(reader, pa.table({"i": pa.array(cells, kind)}), tmp_path))
    if pa.types.is_integer(kind):
        assert schema.columns["i"] == ColumnType.INTEGER
        assert found["i"] == [value if value < 2**63 else None for value in cells]
        assert ("i" in schema.exact) == (kind != pa.uint64())
    else:
        assert found["i"] == [float(value) for value in cells]


@pytest.mark.parametrize("native", ["HUGEINT", "UHUGEINT"])
def test_wider_numbers_than_64_bits_are_null(native):
    connection = duckdb.connect()
    connection.execute(
        f"CREATE TABLE v AS SELECT unnest([0, 1, {2**63}, {2**127 - 1}])::{native} i"
    )
    schema, found = read(dp.duckdb(connection).table("v"))
    assert found["i"] == [0, 1, None, None]
    assert not schema.exact


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
@pytest.mark.parametrize("reader", ["arrow", "polars"])
def test_text_in_memory_is_utf8_and_not_too_long(kind, reader, tmp_path):
    cells = at.TEXTS if reader == "arrow" else [c for c in at.TEXTS if at.read_text(c) is not None]
    column = at.texts(cells=cells) if kind == pa.string_view() else at.texts(kind, cells)
    _, found = read(through(reader, pa.table({"s": column.cast(kind)}), tmp_path))
    assert found["s"] == [at.read_text(cell) for cell in cells]


def test_words_of_a_dictionary_are_text_too():
    words = pa.DictionaryArray.from_arrays(pa.array(range(len(at.TEXTS)), pa.int32()), at.texts())
    _, found = read(pa.table({"s": words}))
    assert found["s"] == [at.read_text(cell) for cell in at.TEXTS]


def test_bytes_of_a_parquet_text_that_are_not_utf8_are_replaced_and_such_units_are_null(tmp_path):
    place = stored(tmp_path, pa.table({"s": at.texts(), "U": at.texts()}))
    schema, found = read(place, unit="u")
    good = {place: at.read_text(cell) for place, cell in enumerate(at.TEXTS)}
    for n, cell in enumerate(at.TEXTS):
        if len(cell) > 65_536 or good[n] is not None:
            assert found["s"][n] == good[n]
        else:
            assert "?" in found["s"][n]
        no_name = good[n] == "?" or len(cell) > 1_000
        assert found["U"][n] == (None if no_name else good[n])
    assert "U" in schema.exact


def test_text_of_csv_is_read_into_each_type(tmp_path):
    place = tmp_path / "t.csv"
    cells = [b'"' + cell.replace(b'"', b'""') + b'"' for cell in at.TEXTS]
    place.write_bytes(b"u,s\n" + b"".join(b"%d,%s\n" % (n, cell) for n, cell in enumerate(cells)))
    for kind in ColumnType:
        read(str(place), {"u": ColumnType.INTEGER, "s": kind})
    _, found = read(str(place), {"s": ColumnType.DATE})
    assert [str(day) for day in found["s"] if day] == ["2024-02-29"]


@pytest.mark.parametrize("reader", READERS)
def test_days_have_four_digits_of_the_year(reader, tmp_path):
    cells = at.DAYS
    _, found = read(through(reader, pa.table({"d": at.raw(pa.date32(), cells, "i")}), tmp_path))
    assert found["d"] == [at.read_day(day) for day in cells]


def test_types_that_duckdb_fails_on_or_cuts_are_left_out():
    for kind in (pa.date64(), pa.float16(), pa.decimal256(50, 2), pa.list_(pa.float16())):
        schema, found = read(pa.table({"x": [1, 2], "c": pa.nulls(2, kind)}))
        assert list(schema.columns) == ["x"]
        assert found == {"x": [1, 2]}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("zone", [None, "UTC", "America/New_York"])
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_have_four_digits_of_the_year(unit, zone, reader, tmp_path):
    factor = {"s": 1_000_000, "ms": 1_000, "us": 1, "ns": 1}[unit]
    cells = at.TIMES
    if unit in {"s", "ms"} and reader in {"polars", "parquet"}:
        cells = [cell // factor for cell in cells]  # they widen seconds as they are made
    if unit in {"s", "ms"} and reader == "database" and zone:
        cells = [0, 1, -1]  # DuckDB widens these as they are read
    table = pa.table({"u": range(len(cells)), "ts": at.raw(pa.timestamp(unit, tz=zone), cells)})
    schema, found = read(through(reader, table, tmp_path))
    left_out = {
        "arrow": bool(zone) and unit != "us",
        "parquet": unit in {"s", "ms"} or (unit == "ns" and bool(zone)),
        "polars": bool(zone) and unit != "us",
        "database": bool(zone) and unit == "ns",
    }[reader]
    assert ("ts" not in schema.columns) == left_out
    if left_out:
        return
    wanted = [at.read_time(cell // 1_000 if unit == "ns" else cell * factor) for cell in cells]
    if unit != "us" and reader != "parquet":
        # Ends of DuckDB's own types are infinite to it; nanoseconds are cut toward 1970.
        slack = timedelta(microseconds=unit == "ns")
        for one, other in zip(found["ts"], wanted, strict=True):
            assert one is None or abs(one - other) <= slack
        assert sum(value is not None for value in found["ts"]) >= 3
    elif unit == "us":
        assert found["ts"] == wanted


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kolkata"])
def test_instants_are_utc_whatever_the_zone_of_a_connection(zone):
    connection = duckdb.connect()
    connection.execute(f"SET TimeZone = '{zone}'")
    connection.execute("CREATE TABLE v AS SELECT TIMESTAMPTZ '2024-05-01 00:00:00+00' AS ts")
    _, found = read(dp.duckdb(connection).table("v"))
    assert str(found["ts"][0]) == "2024-05-01 00:00:00"


def test_declared_types_are_read_from_any_other(tmp_path):
    """Each native type as each canonical one: fits, or is refused by its type alone."""
    columns = {
        "x": pa.array(at.DOUBLES[:10]),
        "i": pa.array(at.WHOLE),
        "s": at.texts(cells=at.TEXTS[-10:]),
        "b": pa.array([True, False] * 5),
        "d": at.raw(pa.date32(), at.DAYS, "i"),
        "ts": at.raw(pa.timestamp("us"), [at.TIMES[n] for n in (0, 3, 4, 5, 6, 7, 9, 10, 11, 14)]),
        "tz": at.raw(pa.timestamp("us", tz="UTC"), at.TIMES[:10]),
        "n": pa.array([10**37] * 10, pa.decimal128(38, 0)),
    }
    taken = 0
    for name, column in columns.items():
        for kind in ColumnType:
            with contextlib.suppress(dp.EngineError):
                read(pa.table({name: column}), {name: kind})
                taken += 1
    assert taken >= 35
    with pytest.raises(dp.ParameterError, match="cannot be read: it is nested"):
        read(pa.table({"l": [[1]]}), {"l": ColumnType.TEXT})


@pytest.mark.parametrize("collation", ["NOCASE", "NOACCENT", "NFC", "de"])
def test_collations_merge_nothing(collation):
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE v (s VARCHAR COLLATE {collation})")
    connection.executemany("INSERT INTO v VALUES (?)", [["a"], ["A"], ["é"], ["e\u0301"], ["e"]])
    connection.execute(f"SET default_collation = '{collation}'")
    with contextlib.closing(DuckDB()) as engine:
        engine.add("t", dp.duckdb(connection).table("v"), None)
        ask = "SELECT COUNT(*) FROM (SELECT s FROM t GROUP BY s) AS q"
        assert engine._connection.sql(ask).fetchall() == [(5,)]
        ask = "SELECT COUNT(*) FROM t AS a JOIN t AS b ON a.s = b.s"
        assert engine._connection.sql(ask).fetchall() == [(5,)]
        assert engine._connection.sql("SELECT MIN(s) FROM t").fetchall() == [("A",)]


def test_statistics_of_doubles_days_and_times_are_hidden():
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE v AS SELECT range::DOUBLE AS x, DATE '2024-01-01' + range::INT AS d, "
        "TIMESTAMP '2024-01-01' + INTERVAL (range) DAY AS ts FROM range(100)"
    )
    shown = connection.sql("SELECT stats(x), stats(d), stats(ts) FROM v LIMIT 1").fetchall()[0]
    assert all({"min", "max"} <= set(each) for each in shown)  # the power of the test
    with contextlib.closing(DuckDB()) as engine:
        engine.add("t", dp.duckdb(connection).table("v"), None)
        found = engine._connection.sql("SELECT stats(x), stats(d), stats(ts) FROM t LIMIT 1")
        for each in found.fetchall()[0]:
            assert not {"min", "max"} & set(each)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_not_counted(bad):
    table = pa.table({"u": [1, 2, 3], "x": [1.0, bad, None]})
    private = dp.PrivateTable(table, unit="u", population="p", max_rows=1)
    budget, ledger = dp.ApproxDP(1e9, 1e-6), dp.Ledger(key=bytes(32))
    with dp.Session({"t": private}, budget=budget, ledger=ledger) as session:
        answer = session.sql("SELECT COUNT(x) AS n FROM t", epsilon=1e6)
    assert answer["n"] == pytest.approx([1], abs=0.1)
