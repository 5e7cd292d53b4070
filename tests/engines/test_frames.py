"""Tables in memory are of a closed list of kinds, and their columns of a closed list of types."""

import struct
import traceback
import uuid
from datetime import time, timedelta
from decimal import Decimal

import duckdb
import narwhals
import numpy as np
import pandas
import polars
import pyarrow as pa
import pytest

import deniable as dp
from deniable.held import Held

SECRET = "zq7319qz"
ROWS = {"u": ["a", "b", "c"], "x": [1.0, 2.0, 3.0]}
COUNT = "SELECT COUNT(*) AS n FROM t"


def private(source, **declared):
    given = {"unit": "u", "population": "p", "max_rows": 1}
    return dp.PrivateTable(source, **{**given, **declared})


def opened(source, **declared):
    tables = {"t": private(source, **declared)}
    return dp.Session(tables, budget=dp.ApproxDP(1e9, 1e-6), ledger=dp.Ledger())


def asked(source, question=COUNT, **declared):
    with opened(source, **declared) as session:
        return round(session.sql(question, epsilon=1e6)["n"][0])


def columns(source, **declared):
    with opened(source, **declared) as session:
        return set(session.parts.catalogue.schemas["t"].columns)


class Looks:
    """A table by its looks alone, of which every part quotes a row."""

    label = "clinic: visits"

    def __getattr__(self, name):
        raise RuntimeError(SECRET)

    __repr__ = __getattr__

    @property
    def shape(self):
        raise RuntimeError(SECRET)

    num_rows = num_columns = schema = shape

    def __arrow_c_stream__(self, requested_schema=None):
        raise RuntimeError(SECRET)

    def engine(self):
        raise RuntimeError(SECRET)


class Pretends(Looks):
    """It says that it is of another class."""

    @property
    def __class__(self):
        return pandas.DataFrame


def failing():
    return duckdb.sql(f"SELECT 'a' AS u, CAST(c AS INT) AS x FROM (VALUES ('{SECRET}')) AS t(c)")


ARROW, PANDAS, POLARS = pa.table(ROWS), pandas.DataFrame(ROWS), polars.DataFrame(ROWS)
OTHERS = {
    "a relation of DuckDB": (lambda: duckdb.sql("SELECT 'a' AS u, 1.0 AS x"), "is a view"),
    "a relation that fails": (failing, "is a view"),
    "pandas in narwhals": (lambda: narwhals.from_native(PANDAS), "to_native"),
    "polars in narwhals": (lambda: narwhals.from_native(POLARS), "to_native"),
    "a plan of polars": (POLARS.lazy, "collect"),
    "a column of polars": (lambda: POLARS["x"], "collect"),
    "a reader of Arrow": (ARROW.to_reader, "read_all"),
    "a column of Arrow": (lambda: ARROW["x"], "read_all"),
    "an array": (PANDAS.to_numpy, "make one of these"),
    "looks": (Looks, "make one of these"),
    "pretends": (Pretends, "make one of these"),
    "a list": (lambda: [ROWS], "make one of these"),
    "a dictionary": (lambda: ROWS, "make one of these"),
    "nothing": (lambda: None, "make one of these"),
    "held by somebody": (lambda: Held(failing(), "a table"), "is a view"),
}


@pytest.mark.parametrize("table", [private, dp.PublicTable])
@pytest.mark.parametrize("case", OTHERS)
def test_what_is_of_no_listed_kind_is_refused_and_not_looked_at(case, table):
    make, hint = OTHERS[case]
    source = make()

    def open_():
        dp.Session(
            {"t": table(source), "p": private(ARROW)},
            budget=dp.ApproxDP(1, 1e-6),
            ledger=dp.Ledger(),
        )

    with pytest.raises(dp.errors.ParameterTypeError, match=hint) as refusal:
        open_()
    assert SECRET not in "".join(traceback.format_exception(refusal.value))
    frame = refusal.value.__traceback__
    while frame is not None:  # but for our own line above
        if frame.tb_frame.f_code.co_filename != __file__ and not isinstance(source, Held):
            assert not any(value is source for value in frame.tb_frame.f_locals.values())
        frame = frame.tb_next


def test_a_source_that_was_exchanged_is_looked_at_again():
    table = private(ARROW)
    object.__setattr__(table, "source", Looks())
    with pytest.raises(dp.errors.ParameterTypeError, match="must be a path"):
        dp.Session({"t": table}, budget=dp.ApproxDP(1, 1e-6), ledger=dp.Ledger())


class OfPandas(pandas.DataFrame):
    """A class of somebody's, whose parts are other ones."""

    @property
    def dtypes(self):
        raise RuntimeError(SECRET)

    @property
    def columns(self):
        raise RuntimeError(SECRET)

    def __getitem__(self, name):
        raise RuntimeError(SECRET)


@pytest.mark.parametrize(
    "source",
    [ARROW, ARROW.to_batches()[0], POLARS, PANDAS, OfPandas(ROWS)],
    ids=lambda s: str(type(s)),
)
def test_listed_kinds_are_read(source):
    assert asked(source, columns={"u": "text", "x": "number"}) == 3


# Types of columns


def with_column(column):
    return pa.table({**ROWS, "c": column})


def stored_as(kind, values):
    return pa.ExtensionArray.from_storage(kind, values)


def noted(values, name):
    """A column with a note by which DuckDB would take its cells for another type's."""
    note = {b"ARROW:extension:name": name, b"ARROW:extension:metadata": b""}
    fields = [pa.field("u", pa.string()), pa.field("x", pa.float64())]
    schema = pa.schema([*fields, pa.field("c", values.type, metadata=note)])
    return pa.table([ROWS["u"], ROWS["x"], values], schema=schema)


class Thing:
    """Prints where it is."""


def of_polars(*cells, dtype):
    return polars.DataFrame({**ROWS, "c": polars.Series(cells, dtype=dtype)})


DAYS = [timedelta(1)] * 3
UNREAD = {
    "objects of polars": lambda: of_polars(Thing(), Thing(), SECRET, dtype=polars.Object),
    "lists of polars": lambda: of_polars([1], [2], [3], dtype=polars.List(polars.Int128)),
    "structs of polars": lambda: polars.DataFrame({**ROWS, "c": [{"a": 1}] * 3}),
    "times of polars": lambda: of_polars(*[time(1)] * 3, dtype=polars.Time),
    "spans of polars": lambda: of_polars(*DAYS, dtype=polars.Duration),
    "nothing of polars": lambda: of_polars(None, None, None, dtype=polars.Null),
    "fractions of 16 bits of polars": lambda: of_polars(1, 2, 3, dtype=polars.Float16),
    "fractions of 16 bits": lambda: with_column(pa.array(np.ones(3, "float16"))),
    "decimals of 32 bytes": lambda: with_column(pa.array([Decimal(1)] * 3, pa.decimal256(50, 2))),
    "decimals with negative places": lambda: with_column(
        pa.array([Decimal(100)] * 3, pa.decimal128(15, -1))
    ),
    "decimals of places alone": lambda: with_column(pa.nulls(3, pa.decimal128(5, 10))),
    "spans": lambda: with_column(pa.array(DAYS)),
    "times": lambda: with_column(pa.array([time(1)] * 3)),
    "nothing": lambda: with_column(pa.nulls(3)),
    "lists": lambda: with_column(pa.array([[1]] * 3)),
    "views of lists": lambda: with_column(pa.array([[1]] * 3, pa.list_view(pa.int8()))),
    "unions": lambda: with_column(
        pa.UnionArray.from_sparse(pa.array([0] * 3, pa.int8()), [pa.array([1] * 3)])
    ),
    "JSON": lambda: with_column(stored_as(pa.json_(), pa.array(["1"] * 3))),
    "DuckDB's own": lambda: with_column(
        stored_as(
            pa.opaque(pa.binary(4), "hugeint", "DuckDB"), pa.array([b"1234"] * 3, pa.binary(4))
        )
    ),
    "names of one's own": lambda: with_column(
        pa.DictionaryArray.from_arrays(
            pa.array([0, 1, 2]),
            stored_as(pa.opaque(pa.int8(), "a", "b"), pa.array([1, 2, 3], pa.int8())),
        )
    ),
}


@pytest.mark.parametrize("case", UNREAD)
def test_columns_of_other_types_are_left_out_and_a_declaration_is_told_why(case):
    table = UNREAD[case]()
    assert columns(table) == {"u", "x"}
    assert asked(table) == 3
    for kind in ("text", "integer"):
        with pytest.raises(dp.ParameterError, match="columns='C': cannot be read: ") as told:
            opened(table, columns={"u": "text", "C": kind})
        assert SECRET not in str(told.value)
    with pytest.raises(dp.ParameterError, match="unit='c': cannot be read"):
        opened(table, unit="c")


@pytest.mark.parametrize("kind", [polars.Int128, polars.UInt128])
def test_whole_numbers_of_128_bits_are_read_where_they_are_declared(kind):
    table = of_polars(7, 2**120, 2**120 + 1, dtype=kind)
    assert columns(table) == {"u", "x"}
    declared = {"c": "text", "x": "number"}
    assert asked(table, "SELECT COUNT(DISTINCT c) AS n FROM t", unit="c", columns=declared) == 3
    where = f"SELECT COUNT(*) AS n FROM t WHERE c = '{2**120 + 1}'"
    assert asked(table, where, columns={"u": "text", "C": "text"}) == 1
    seven = "SELECT COUNT(*) AS n FROM t WHERE c = 7"
    assert asked(table, seven, columns={"u": "text", "c": "integer"}) == 1
    with pytest.raises(dp.ParameterError, match="128 bits"):
        opened(table, unit="c")


READ = {
    "UUID": lambda: with_column(pa.array([uuid.UUID(int=n).bytes for n in range(3)], pa.uuid())),
    "truths of 8 bits": lambda: with_column(stored_as(pa.bool8(), pa.array([0, 1, 1], pa.int8()))),
    "views of texts": lambda: with_column(pa.array([*"abc"], pa.string_view())),
    "texts by number": lambda: with_column(pa.array([*"abc"]).dictionary_encode()),
    "runs": lambda: with_column(
        pa.RunEndEncodedArray.from_arrays(pa.array([1, 2, 3], pa.int32()), pa.array([*"abc"]))
    ),
    "categories": lambda: of_polars(*"abc", dtype=polars.Categorical),
    "an enumeration": lambda: of_polars(*"abc", dtype=polars.Enum([*"abc"])),
    "decimals": lambda: of_polars(*map(Decimal, "123"), dtype=polars.Decimal(38, 2)),
}


@pytest.mark.parametrize("case", READ)
def test_columns_of_listed_types_are_read(case):
    assert columns(READ[case]()) == {"u", "x", "c"}
    assert asked(READ[case](), "SELECT COUNT(c) AS n FROM t") == 3


@pytest.mark.parametrize("place", [2, 77, 127, -1, -128])
@pytest.mark.parametrize("kind", [pa.int8(), pa.int64()])
def test_a_cell_beside_its_dictionary_is_missing(place, kind):
    """An engine would show what lies there in memory, or end the process."""
    places = pa.array([0, 1, place], kind)
    cells = pa.DictionaryArray.from_arrays(places, pa.array(["a", "b"]), safe=False)
    table = with_column(cells)
    assert asked(table, "SELECT COUNT(c) AS n FROM t") == 2
    assert asked(table, f"{COUNT} WHERE c IS NULL") == 1


def written_over(cells, stored, forged):
    """A column as it is read from a stream of which somebody changed some bytes."""
    table = pa.table({**ROWS, "u": [1, 2, 3], "c": cells})
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, table.schema) as out:
        out.write_table(table)
    written = stream.getvalue().to_pybytes()
    assert stored in written
    return pa.ipc.open_stream(written.replace(stored, forged)).read_all()


def in_four_bytes(*numbers):
    return struct.pack(f"<{len(numbers)}i", *numbers)


def in_eight_bytes(*numbers):
    return struct.pack(f"<{len(numbers)}q", *numbers)


WORDS = ["aaa", "bbbb", "ccccc"]
LONG = [letter * 20 for letter in "abc"]
FAR = 10**9
ASTRAY = {
    "an inner end": (pa.array(WORDS), in_four_bytes(3, 7, 12), in_four_bytes(FAR, 7, 12)),
    "the last end": (pa.array(WORDS), in_four_bytes(3, 7, 12), in_four_bytes(3, 7, FAR)),
    "before all": (pa.array(WORDS), in_four_bytes(3, 7, 12), in_four_bytes(-FAR, 7, 12)),
    "long ends": (
        pa.array(WORDS, pa.large_string()),
        in_eight_bytes(3, 7, 12),
        in_eight_bytes(-5, 7, 12),
    ),
    "bytes": (pa.array(WORDS, pa.binary()), in_four_bytes(3, 7, 12), in_four_bytes(9, 7, 12)),
    "a view": (
        pa.array(LONG, pa.string_view()),
        b"bbbb" + in_four_bytes(0, 20),
        b"bbbb" + in_four_bytes(0, FAR),
    ),
    "a view of nowhere": (
        pa.array(LONG, pa.string_view()),
        b"bbbb" + in_four_bytes(0, 20),
        b"bbbb" + in_four_bytes(7, 20),
    ),
    "a dictionary": (
        pa.array(WORDS).dictionary_encode(),
        in_four_bytes(3, 7, 12),
        in_four_bytes(FAR, 7, 12),
    ),
    "runs": (
        pa.RunEndEncodedArray.from_arrays(pa.array([1, 2, 3], pa.int32()), pa.array(WORDS)),
        in_four_bytes(1, 2, 3),
        in_four_bytes(-FAR, 2, 3),
    ),
    "what runs": (
        pa.RunEndEncodedArray.from_arrays(pa.array([1, 2, 3], pa.int32()), pa.array(WORDS)),
        in_four_bytes(3, 7, 12),
        in_four_bytes(FAR, 7, 12),
    ),
}


@pytest.mark.parametrize("case", ASTRAY)
def test_cells_that_lie_astray_are_refused(case):
    """An engine would show what lies there in memory, or end the process."""
    cells, stored, forged = ASTRAY[case]
    declared = {"u": "integer", "x": "number", "c": "text"}
    assert asked(written_over(cells, stored, stored), COUNT, columns=declared) == 3
    with pytest.raises(dp.ParameterError, match="source='c': is damaged") as told:
        opened(written_over(cells, stored, forged), columns=declared)
    assert told.value.__context__ is None


@pytest.mark.parametrize("name", [b"arrow.uuid", b"arrow.bool8", b"arrow.json", b"geoarrow.wkb"])
def test_notes_on_columns_change_no_type(name):
    for cells in ([1, 2, 3], [*"abc"], [b"a", b"b", b"c"]):
        table = noted(pa.array(cells), name)
        kind = "integer" if cells == [1, 2, 3] else "text"
        question = "SELECT COUNT(DISTINCT c) AS n FROM t"
        assert asked(table, question, columns={"u": "text", "c": kind}) == 3


def test_where_an_object_of_pandas_lies_is_no_text():
    cells = [
        Thing(),
        object(),
        [1],
        {"a": 1},
        print,
        "a",
        7,
        pandas.Period("2024-01"),
        uuid.UUID(int=1),
    ]
    frame = pandas.DataFrame({"u": range(9), "c": pandas.Series(cells, dtype=object)})
    declared = {"u": "integer", "c": "text"}
    assert asked(frame, "SELECT COUNT(c) AS n FROM t", columns=declared) == 4
    assert asked(frame, f"{COUNT} WHERE c IN ('a', '7', '2024-01')", columns=declared) == 3
