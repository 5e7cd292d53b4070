"""No value of a parameter or of a row makes a fit fail for some people and not for others."""

import contextlib
import math
import re
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import psycopg
import pyarrow as pa
import pytest

import deniable as dp
from deniable.engines.duckdb import DuckDB, DuckDBSnapshot
from deniable.errors import ParameterError
from deniable.learning.pushed import LearningSource, pushed
from deniable.learning.rows import Ranges, plain_labels, read_features, read_labels
from deniable.learning.sums import CellCounts, Gradients, GroupSums, Moments
from deniable.privacy.units import Relation
from engines.loading import to_postgres
from learning.sources import chosen
from postgres import Postgres

WHOLE = [-(2**63), 2**63 - 1, 2**53 + 1, 2**62, -(2**31), 0, None]
REAL = [math.nan, math.inf, -math.inf, 1.7976931348623157e308, -5e-324, -0.0, None]
TEXT = ["nan", "", "ﬁ", "1e400", "now", "é" * 30_000, None]
DAYS = [date(1, 1, 1), date(9999, 12, 31), None, date(1970, 1, 1), date(2024, 2, 29), None, None]
TIMES = [datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999), *[None] * 5]
KINDS = {
    "who": pa.int64(),
    "i": pa.int64(),
    "f": pa.float64(),
    "b": pa.bool_(),
    "t": pa.string(),
    "d": pa.date32(),
    "s": pa.timestamp("us"),
}
LABELS = {"i": [0, 1, 2**62], "f": [0.0, 0.5, 1e300], "t": ["nan", "", "a"], "b": [True, False]}
LABELS["d"] = [date(1, 1, 1), date(9999, 12, 31)]


def table(rows):
    columns = zip(*rows, strict=True)
    made = zip(KINDS.items(), columns, strict=True)
    return pa.table({name: pa.array(list(cells), kind) for (name, kind), cells in made})


def everybody(count=60):
    """Units of two rows, many of them alike."""
    day, time = date(2020, 1, 1), datetime(2020, 1, 1)
    return [
        (at // 2, at % 3, (at % 5) / 4, at % 2 == 0, "ab"[at % 2], day, time) for at in range(count)
    ]


def hostile(turn):
    """One more unit, all its cells extremes of their types, in other company each turn."""
    cells = [WHOLE, REAL, [True, None, False], TEXT, DAYS, TIMES]
    return [
        (-1, *(each[(row * (by + 1) + turn * by**2) % len(each)] for by, each in enumerate(cells)))
        for row in range(7)
    ]


NEIGHBOURS = {"without": everybody(), **{f"n{t}": everybody() + hostile(t) for t in range(2)}}


@contextlib.contextmanager
def in_duckdb(tables):
    with contextlib.closing(DuckDB()) as engine:
        yield engine, {name: engine.add(name, table(rows), None) for name, rows in tables.items()}


@contextlib.contextmanager
def in_postgres(tables):
    server = Postgres()
    try:
        for name, rows in tables.items():
            to_postgres(server.url, name, table(rows))
        with psycopg.connect(server.url, autocommit=True) as connection:
            far = "INSERT INTO {} (who, f, d, s) VALUES (-1, 'NaN', 'infinity', '-infinity')"
            connection.execute(far.format(next(reversed(tables))))
        database = dp.postgres(server.url)
        with contextlib.closing(database.table(next(iter(tables))).engine()) as engine:
            yield engine, {name: engine.add(name, database.table(name), None) for name in tables}
    finally:
        server.remove()


engines = pytest.mark.parametrize("make", [in_duckdb, in_postgres], ids=["duckdb", "postgres"])

SOURCE = LearningSource(
    selected=None,
    x=("i", "f", "b"),
    y=None,
    ranges=Ranges((-2.0, 0.0, 0.0), (2.0, 1.0, 1.0), 3**0.5),
    classes=(),
    y_ends=None,
)


def every_sum():
    rng = np.random.default_rng(1)
    wide = Ranges((-(2.0**62), 0.0), (2.0**62, 1.0), 1.0)
    numbers = replace(SOURCE, x=("i", "b"), y="f", ranges=wide, y_ends=(-1e90, 1e90))
    yield Moments(0.6**0.5, 0.1**0.5, 0.3**0.5), numbers
    yield CellCounts(np.zeros(3), np.eye(3)[:2], np.array([0.3, 0.2]), 8), SOURCE
    centres = tuple(map(tuple, rng.normal(0, 0.3, (4, 3)).tolist()))
    yield GroupSums(4, 0.15**0.5, 0.85**0.5, centres=centres), SOURCE
    for name, labels in LABELS.items():
        pair = Ranges((-2.0, 0.0), (2.0, 1.0), 2**0.5)
        given = replace(SOURCE, x=("i", "f"), y=name, classes=tuple(labels), ranges=pair)
        if name in ("i", "f"):
            given = replace(given, x=("b",), ranges=ONE)
        width = len(given.x)
        yield GroupSums(len(labels), 0.2**0.5, 0.4**0.5, 0.4**0.5), given
        if name not in ("i", "b"):
            continue  # the same statement, but for its labels
        directions = 1 if len(labels) == 2 else len(labels)
        weights = rng.normal(0, 2, (directions, width + 1))
        yield Gradients(rng.normal(0, 3, (width + 1, width + 1)), weights), given


ONE = Ranges((0.0,), (1.0,), 1.0)


TEXTS = {
    "all rows": None,
    "where": "SELECT * FROM {} WHERE f < 0.9 OR NOT b OR i > 0 OR f IS NULL",
    "expressions": "SELECT i + 0 AS i, f * 1.5 AS f, NOT b AS b, t, d, s FROM {}",
    "window": "SELECT i, f, b, t, d, s FROM {} WHERE i IS NOT NULL OR f IS NOT NULL",
}


@engines
@pytest.mark.parametrize("rows", [1, 3, 9])
def test_one_unit_moves_exact_sums_by_no_more_than_is_charged(make, rows):
    """In L2, and in L1: units with more rows than count in full are scaled down."""
    worst = 0.0
    with make(NEIGHBOURS) as (engine, schemas):
        texts = list(TEXTS.values()) if make is in_duckdb else [None, TEXTS["where"]]
        for place, (sums, given) in enumerate(every_sum()):
            text, l2 = texts[place % len(texts)], (place + rows) % 3 > 0
            found = {}
            for name, schema in schemas.items():
                sql = None if text is None else text.format(name)
                selected = chosen(schema, table=name, unit="who", rows=rows, sql=sql)
                statement = pushed(sums, replace(given, selected=selected, l2=l2))
                engine.check([statement.step])
                with engine.snapshot() as snapshot:
                    found[name] = statement.totals(snapshot.run(statement.step)).astype(object)
            one = Relation.ADD_REMOVE
            most = rows * (sums.moved(one) if l2 else sums.moved_l1(one, len(given.x)))
            for name, totals in found.items():
                apart = [abs(int(v)) for v in totals - found["without"]]
                moved = math.sqrt(sum(v**2 for v in apart)) if l2 else sum(apart)
                assert moved <= most, (sums, given.y, name)
                worst = max(worst, moved / most)
    assert worst > (0.99 if rows == 1 else 0.1)  # hostile rows do count


@engines
def test_the_whole_row_of_a_unit_is_the_first_in_all_columns(make):
    """Not in x and y alone, whatever engine it is and however rows lie; missing values last."""
    rows = [(7, 1, 0.5, ok, text, None, None) for ok in (None, True, False) for text in "ba"]
    rows += [(9, 1, 0.5, ok, "b", day, None) for ok in (None, True) for day in (None, DAYS[1])]
    others = [(8, None, None, None, None, None, None)]  # where the test adds hostile rows
    with make({"one": rows, "two": rows[::-1], "others": others}) as (engine, schemas):
        for name in ("one", "two"):
            selected = chosen(schemas[name], table=name, unit="who").one_row()
            given = replace(
                SOURCE, selected=selected, x=("b", "i"), y="t", classes=("a", "b"),
                ranges=Ranges((0.0, 0.0), (1.0, 1.0), 2**0.5),
            )  # fmt: skip
            with engine.snapshot() as snapshot:
                found = snapshot.run(given.rows_step())
            # Of unit 7 the first is (False, "a"), of unit 9 (True, "b").
            assert sorted((u0 > 0, int(k)) for u0, _, k in found) == [(False, 0), (True, 1)]


PEOPLE = [
    (at, at % 2, (at % 5) / 4, at % 2 == 0, "ab"[at % 2], *DAYS[:1], None) for at in range(60)
]
PERSON = [(-5, 2**62 + 1, 1e305, None, "x" * 2000, date(9999, 12, 31), None)]


def opened(rows, **declared):
    private = dp.PrivateTable(table(rows), unit="who", population="p", **declared)
    return dp.Session({"people": private}, budget=dp.ZCDP(9), ledger=dp.Ledger())


def outcome(rows, model, *, x, y):
    """All that an analyst sees: the kind of the answer, its words, and what was charged."""
    with opened(rows, max_rows=1) as session:
        try:
            said = type(dp.fit(session, model, "people", x=x, y=y)).__name__
        except Exception as error:
            said = (type(error).__name__, getattr(error, "argument", None), str(error))
        left = session.remaining["p"]
        return said, left.releases, left.remaining["rho"]


BAD_CLASSES = {
    "i": [
        [0, 2 * 10**38], [0, 2**63], [-(2**63), 0], [0, 10**400], [0.0, 1.0], ["a", "b"],
        [False, True], [0, "a"], [0, True], [0, math.nan], [0, math.inf], [0, 0.0], [0, -0.0],
        [np.float64(0), np.float64(1)], [np.bool_(False), np.bool_(True)], [0, None], [0, 1j],
        [date(2020, 1, 1), date(2020, 1, 2)], [Fraction(0), Fraction(1)], [b"a", b"b"],
    ],
    "f": [
        [0, 1e-300], [0, 1e301], [0, 5e-324], [0.5, math.nan], [0.5, -math.inf], [0, 10**301],
        [2**53, 2**53 + 1], [0.0, -0.0], ["a", "b"], [True, False], [np.float64("nan"), 0.5],
    ],
    "t": [
        ["a", "b\0"], ["a", "x" * 1001], ["a", "\ud800"], ["a", "é" * 501], [0, 1], [True, False],
    ],
    "b": [[0, 1], ["true", "false"], [0.0, 1.0]],
    "d": [
        ["2020-01-01", "2020-01-02"], [0, 1], [datetime(2020, 1, 1, tzinfo=UTC), DAYS[0]],
        [np.datetime64("2020-01-01", "ns"), np.datetime64("2020-01-02", "ns")],
        [np.datetime64("20000-01-01"), np.datetime64("2020-01-02")],
    ],
}  # fmt: skip
GOOD_CLASSES = {
    "i": [[0, 2**62 + 1], [np.int64(0), np.int64(1)], [-(2**63) + 1, 2**63 - 1]],
    "f": [[0, 1], [np.float32(0.25), np.float64(0.5)], [-1e300, 1e-290]],
    "t": [["a", "x" * 1000], ["nan", "'; DROP TABLE people; --"]],
    "b": [[True, False]],
    "d": [[date(1, 1, 1), date(9999, 12, 31)]],
}


def models(classes):
    asked = {"guarantee": dp.ZCDP(1), "bounds": (0, 1), "classes": classes}
    yield dp.learning.GaussianNB(**asked)
    yield dp.learning.LogisticRegression(**asked, max_iter=2)


@pytest.mark.parametrize("y", BAD_CLASSES)
def test_labels_that_the_column_cannot_hold_are_refused_for_everybody_alike(y):
    x = ["f"] if y != "f" else ["i"]
    for classes in BAD_CLASSES[y]:
        for model in models(classes):
            told = outcome(PEOPLE, model, x=x, y=y)
            assert told == outcome(PEOPLE + PERSON, model, x=x, y=y), classes
            (kind, argument, _), releases, _ = told
            assert kind in ("ParameterError", "ParameterTypeError"), (classes, told)
            assert (argument, releases) == ("classes", 0), classes


@pytest.mark.parametrize("y", GOOD_CLASSES)
def test_labels_at_the_ends_of_their_types_are_learned(y):
    x = ["f"] if y != "f" else ["i"]
    for classes in GOOD_CLASSES[y]:
        for model in models(classes):
            told = outcome(PEOPLE, model, x=x, y=y)
            assert told == outcome(PEOPLE + PERSON, model, x=x, y=y), classes
            assert told[:2] == (type(model).__name__, 1), classes


@pytest.mark.parametrize(
    "ends",
    [
        (0, 1e-300), (0, 1e-285), (1e-295, 1), (-1e-280, 1.0000000000000002e-280), (0, 10**400),
        (0, 1e101), (math.nan, 1), (0, math.inf), ("0", "one"), (5e-324, 1e-323),
        ([0, 0], [1, 1, 1]),
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("argument", ["bounds", "y_bounds"])
def test_bounds_beyond_the_limits_are_refused_for_everybody_alike(argument, ends):
    given = {"bounds": (0, 1), "y_bounds": (0, 1), argument: ends}
    model = dp.learning.LinearRegression(guarantee=dp.ZCDP(1), **given)
    told = outcome(PEOPLE, model, x=["i"], y="f")
    assert told == outcome(PEOPLE + PERSON, model, x=["i"], y="f")
    assert told[0][0] in ("ParameterError", "ParameterTypeError")
    assert told[0][1] == argument
    assert told[1] == 0


@pytest.mark.parametrize(
    ("argument", "declared"),
    [
        ("bounds", {"bounds": {"i": (0, 2**63)}}),
        ("bounds", {"bounds": {"i": (-(2**64), 0)}}),
        ("bounds", {"bounds": {"f": (0, 1e-300)}}),
        ("bounds", {"bounds": {"f": (0, 1e-285)}}),
        ("bounds", {"bounds": {"f": (1e-295, 1)}}),
        ("grid", {"grid": {"f": 1e-300}}),
        ("grid", {"grid": {"f": Fraction(1, 10**291)}}),
        ("keys", {"keys": {"t": ["a", "b\0"]}}),
        ("keys", {"keys": {"t": ["x" * 1001]}}),
        ("keys", {"keys": {"t": ["\ud800"]}}),
        ("keys", {"keys": {"i": [2**63]}}),
        ("keys", {"keys": {"i": ["a"]}}),
        ("keys", {"keys": {"s": [datetime(2020, 1, 1, tzinfo=UTC)]}}),
    ],
    ids=str,
)
def test_what_a_table_declares_obeys_the_limits_of_constants(argument, declared):
    with pytest.raises(dp.ParameterError) as told:
        opened(PEOPLE, **declared)
    assert told.value.argument == argument


@pytest.mark.parametrize("ends", [(0, 1e-300), (1e-295, 1), (0, 1e-285)])
def test_bounds_that_a_question_declares_obey_them_too(ends):
    with opened(PEOPLE, max_rows=1) as session:
        with pytest.raises(dp.ParameterError, match="bounds"):
            session.sql("SELECT SUM(f) AS s FROM people", rho=1, bounds={"f": ends})
        with pytest.raises(dp.ParameterError, match="bounds"):
            session.sql("SELECT SUM(i) AS s FROM people", rho=1, bounds={"i": (0, 2**63)})
        assert session.remaining["p"].releases == 0


def test_every_statement_of_a_fit_is_checked_with_its_constants_before_the_charge(monkeypatch):
    """Its shape, that is: numbers that are released later stand where others stood."""
    checked, ran = [], []
    check = DuckDB.check
    monkeypatch.setattr(
        DuckDB, "check", lambda self, steps: (checked.extend(steps), check(self, steps))[1]
    )
    run = DuckDBSnapshot.run
    monkeypatch.setattr(
        DuckDBSnapshot, "run", lambda self, step: (ran.append(step), run(self, step))[1]
    )
    for model, y in (
        (
            dp.learning.LogisticRegression(
                guarantee=dp.ZCDP(1), bounds=(0, 1), classes=["a", "b"], max_iter=2
            ),
            "t",
        ),
        (dp.learning.GaussianNB(guarantee=dp.ZCDP(1), bounds=(0, 1), classes=["a", "b"]), "t"),
        (dp.learning.KMeans(2, guarantee=dp.ZCDP(1), bounds=(0, 1), max_iter=2), None),
        (dp.learning.LinearRegression(guarantee=dp.ZCDP(1), bounds=(0, 1), y_bounds=(0, 1)), "b"),
    ):
        checked.clear(), ran.clear()
        said = outcome(PEOPLE, model, x=["i", "f"], y=y)
        shapes = {shape(step) for step in checked}
        if y == "b":
            assert said[0][1] == "y"
            continue
        assert ran
        assert {shape(step) for step in ran} <= shapes
        wanted = {0.0, 1.0} | ({"a", "b"} if y else set())
        assert all(set(step.constants) >= wanted for step in checked)


def shape(step):
    """The statements, numbers left out, and brackets around those that are negative."""
    texts = [step.select, *step.tables.values()]
    number = r"-?\d+(\.\d+)?(e[-+]?\d+)?"
    return re.sub(number, "0", re.sub(rf"\((-{number[2:]})\)", r"\1", " ; ".join(texts)))


BEYOND = [2**53 + 1, 2**53 + 3]


@pytest.mark.parametrize("make", [pl.Series, pa.array, pd.Series, list])
def test_a_missing_label_moves_no_other(make):
    """A column of whole numbers becomes one of fractions, which rounds: all would have no class."""
    full, missing = make([*BEYOND, BEYOND[0]]), make([*BEYOND, None])
    for given in (full, missing):
        with pytest.raises(ParameterError, match="2\\^53"):
            read_labels(given, 3, tuple(BEYOND))
    # For any estimator whatsoever, and no classes: as doubles, however they are held.
    one, other = plain_labels(full, 3), plain_labels(missing, 3)
    assert one[:2] == other[:2]
    assert list(map(type, one[:2])) == list(map(type, other[:2])) == [float, float]
    small = [plain_labels(make([1, 2, cell]), 3)[:2] for cell in (3, None)]
    assert small == [[1, 2], [1, 2]]
    assert all(type(each) is int for labels in small for each in labels)


class NoSize(int):
    def __abs__(self):
        raise KeyError(str(int(self)))


def test_a_label_of_a_strange_class_is_missing_and_not_told():
    labels = np.array([1, NoSize(7), 2], dtype=object)
    assert plain_labels(labels, 3) == [1, None, 2]
    assert read_labels(labels, 3, (1, 2)).tolist() == [0, -1, 1]


DECLARED = {
    "days": [date(2020, 1, 1)] * 3,
    "times": [datetime(2020, 1, 1)] * 3,
    "spans": [timedelta(days=1)] * 3,
    "texts": ["1", "x", "2"],
    "whole": [1, 2, 3],
    "truths": [True, False, True],
}


@pytest.mark.parametrize("kind", DECLARED)
@pytest.mark.parametrize("of_arrow", [pl.from_arrow, lambda table: table], ids=["polars", "arrow"])
def test_a_missing_cell_moves_no_other_and_refuses_no_table(of_arrow, kind):
    """Whatever else the table holds: rows before it are read as they were."""
    full = pa.table({"number": pa.array([1, 2**53 + 1, 7]), "other": pa.array(DECLARED[kind])})
    before = read_features(of_arrow(full))
    for place, name in enumerate(full.column_names):
        cells = [*full.column(name).to_pylist()[:2], None]
        column = pa.array(cells, full.schema.field(name).type)
        after = read_features(of_arrow(full.set_column(place, name, column)))
        np.testing.assert_array_equal(after[:2], before[:2])
    if kind in {"days", "times", "spans"}:  # beyond what Python holds
        kept = full.column("other").cast(pa.int32() if kind == "days" else pa.int64())
        far = pa.array(
            [*kept.to_pylist()[:2], 2**31 - 1 if kind == "days" else 2**63 - 1], kept.type
        )
        far = far.cast(full.schema.field("other").type)
        after = read_features(of_arrow(full.set_column(1, "other", far)))
        np.testing.assert_array_equal(after[:2], before[:2])
