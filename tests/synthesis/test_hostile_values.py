"""No bin, key or edge makes a synthesis fail for some people and not for others."""

import contextlib
import math
from datetime import UTC, date, datetime
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import deniable as dp
from deniable.engines.duckdb import DuckDB, DuckDBSnapshot
from deniable.synthesis.table_data import TableMarginals
from engines.loading import to_postgres
from postgres import Postgres

KINDS = {
    "who": pa.int64(),
    "i": pa.int64(),
    "f": pa.float64(),
    "t": pa.string(),
    "d": pa.date32(),
    "s": pa.timestamp("us"),
}
DAY, TIME = date(2020, 1, 1), datetime(2020, 1, 1)
PEOPLE = [(at, at % 9, (at % 5) / 4, "ab"[at % 2], DAY, TIME) for at in range(80)]
PERSON = [(-5, 2**62 + 1, 1e305, "x" * 2000, date(9999, 12, 31), datetime(9999, 12, 31))]
HOSTILE = [
    (-6, 2**63 - 1, math.nan, "nan", date(1, 1, 1), datetime(1, 1, 1)),
    (-6, -(2**63), math.inf, "", None, None),
    (-6, None, -5e-324, None, date(9999, 12, 31), datetime(9999, 12, 31, 23, 59, 59, 999999)),
    (-6, 0, -math.inf, "é" * 30_000, None, None),
    (-6, 0, -1.7976931348623157e308, "now", None, None),
]


def table(rows):
    made = zip(KINDS.items(), zip(*rows, strict=True), strict=True)
    return pa.table({name: pa.array(list(cells), kind) for (name, kind), cells in made})


def opened(source, **declared):
    given = {"bounds": {"i": (0, 9), "f": (0, 1)}, "max_rows": 1, **declared}
    private = dp.PrivateTable(source, unit="who", population="p", **given)
    return dp.Session({"people": private}, budget=dp.ZCDP(9), ledger=dp.Ledger())


def outcome(source, columns, *, method="independent", **more):
    """All that an analyst sees: the kind of the answer, its words, and what was charged."""
    with opened(source) as session:
        call = {"rho": 1, "method": method, "columns": columns, **more}
        try:
            said = type(dp.synthesize(session, "people", **call)).__name__
        except Exception as error:
            said = (type(error).__name__, getattr(error, "argument", None), str(error))
        left = session.remaining["p"]
        return said, left.releases, left.remaining["rho"]


BAD_BINS = {
    "i": [
        [0, 5, 2 * 10**38, 3 * 10**38], [0, 5, 2**63], [-(2**63), 0, 5], [0, 5, 10**400],
        [0.0, 5.0, 9.0], [0, 5.5, 9], ["0", "5", "9"], [False, True], [0, None, 9], [0, "5", 9],
        [0, 5, math.inf], [0, math.nan, 9], [np.float64(0), np.float64(5)], [9, 5, 0], [0, 0], [0],
        "059", [DAY, date(2021, 1, 1)], [Fraction(0), Fraction(9)], 10**18, 0, -1, 2.5, True,
        {0: 1, 5: 2}, b"\0\5",
    ],
    "f": [
        [0, 1e-300, 1], [0, 0.5, 1e301], [0, 5e-324], [0, math.nan, 1], [-math.inf, 0, 1],
        [0.0, -0.0, 1.0], [0, 10**301], [0, 10**400], ["0", "1"], [False, True], [0, 1j],
        [2**53, 2**53 + 1],
    ],
    "t": [["a", "b"], 4, [0, 1]],
    "d": [
        [0, 1], ["2020-01-01", "2021-01-01"], [DAY, datetime(2021, 1, 1)], 4,
        [np.datetime64("2020-01-01", "ns"), np.datetime64("2021-01-01", "ns")],
        [DAY, np.datetime64("20000-01-01")], [DAY, np.datetime64("NaT")],
    ],
    "s": [
        [TIME, datetime(2021, 1, 1, tzinfo=UTC)], [DAY, date(2021, 1, 1)], [0, 1],
        ["2020-01-01 00:00:00", "now"],
    ],
}  # fmt: skip
GOOD_BINS = {
    "i": [
        [0, 5, 2**62 + 1, 2**63 - 1], [-(2**63) + 1, 0, 5], np.array([0, 5, 9]), range(0, 9, 3),
        [np.int64(0), np.int32(5), 9], np.int64(3),
    ],
    "f": [[0, 1e-290, 0.5, 1e300], [-1e300, -0.0, 1], np.array([0.0, 0.5, 1.0]), 3],
    "d": [[date(1, 1, 1), DAY, date(9999, 12, 31)]],
    "s": [[datetime(1, 1, 1), TIME, datetime(9999, 12, 31, 23, 59, 59, 999999)]],
}  # fmt: skip
BAD_KEYS = {
    "i": [[0, 2**63], [0, 2 * 10**38], [0, -(2**63)], ["a"], [True, False], [0.5], [0, "a"]],
    "f": [["a"], [True, False], [0.5, math.nan], [0, 2**63]],
    "t": [["a", "b\0"], ["a", "x" * 1001], ["a", "\ud800"], ["a", "é" * 501], [0, 1], ["a", 1]],
    "d": [[TIME], ["2020-01-01"], [0]],
    "s": [[DAY], [datetime(2020, 1, 1, tzinfo=UTC)], ["now"]],
}
GOOD_KEYS = {
    "i": [[0, 2**62 + 1], [2**63 - 1, -(2**63) + 1], [None, 0]],
    "f": [[0, 1]],
    "t": [["a", "x" * 1000], ["nan", "'; DROP TABLE people; --"], [None, ""]],
    "d": [[date(1, 1, 1), date(9999, 12, 31)]],
    "s": [[datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999)]],
}
WITH, WITHOUT = table(PEOPLE + PERSON), table(PEOPLE)


def alike(column, **given):
    """What happens, which is the same with the person."""
    told = outcome(WITHOUT, [column], **given)
    assert told == outcome(WITH, [column], **given), given
    return told


@pytest.mark.parametrize("column", BAD_BINS)
def test_bins_that_the_column_cannot_have_are_refused_for_everybody_alike(column):
    for bins in BAD_BINS[column]:
        said, releases, _ = alike(column, bins={column: bins})
        assert said[0] in ("ParameterError", "ParameterTypeError"), (bins, said)
        argument = "columns" if isinstance(bins, int) and column in ("t", "d") else "bins"
        assert (said[1], releases) == (argument, 0), (bins, said)


@pytest.mark.parametrize("column", GOOD_BINS)
def test_bins_at_the_ends_of_their_types_are_answered(column):
    for bins in GOOD_BINS[column]:
        assert alike(column, bins={column: bins})[:2] == ("SyntheticTable", 1), bins


@pytest.mark.parametrize("column", BAD_KEYS)
def test_keys_that_the_column_cannot_hold_are_refused_for_everybody_alike(column):
    for keys in BAD_KEYS[column]:
        said, releases, _ = alike(column, keys={column: keys})
        assert said[0] in ("ParameterError", "ParameterTypeError"), (keys, said)
        assert (said[1], releases) == ("keys", 0), (keys, said)


@pytest.mark.parametrize("column", GOOD_KEYS)
def test_keys_at_the_ends_of_their_types_are_answered(column):
    for keys in GOOD_KEYS[column]:
        assert alike(column, keys={column: keys})[:2] == ("SyntheticTable", 1), keys


EVERY = {
    "columns": ["i", "f", "t", "d", "s"],
    "bins": {"i": [-5, 0, 5, 2**62], "d": GOOD_BINS["d"][0], "s": GOOD_BINS["s"][0]},
    "keys": {"t": ["a", "b", "nan", "now", ""]},
    "missing": ["i", "f", "t", "d", "s"],
}


@contextlib.contextmanager
def in_arrow():
    yield [table(PEOPLE), table(PEOPLE + HOSTILE)]


@contextlib.contextmanager
def in_postgres():
    server = Postgres()
    try:
        tables = []
        for place, more in enumerate([[], HOSTILE]):
            to_postgres(server.url, f"people{place}", table(PEOPLE + more))
            tables.append(dp.postgres(server.url).table(f"people{place}"))
        yield tables
    finally:
        server.remove()


@pytest.mark.parametrize("make", [in_arrow, in_postgres], ids=["duckdb", "postgres"])
def test_no_row_makes_a_synthesis_fail_or_moves_exact_counts_by_more_than_its_bound(make):
    with make() as sources:
        found = []
        for source in sources:
            with opened(source, max_rows=5) as session, recorded() as exact:
                dp.synthesize(session, "people", rho=1, method="fixed", workload=1, **EVERY)
            found.append(exact)
    without, beside = found
    assert list(without) == list(beside)  # the same marginals were read
    for clique, counts in beside.items():
        assert 0 < int(np.abs(counts - without[clique]).sum()) <= 5 << 16, clique


@contextlib.contextmanager
def recorded():
    """The exact marginals that are read, before noise."""
    exact, read = {}, TableMarginals.exact

    def kept(self, clique):
        exact[clique] = read(self, clique)
        return exact[clique]

    TableMarginals.exact = kept
    try:
        yield exact
    finally:
        TableMarginals.exact = read


def test_the_code_of_every_column_is_checked_with_its_constants_before_the_charge(monkeypatch):
    checked, ran = [], []
    check, run = DuckDB.check, DuckDBSnapshot.run

    def checking(self, steps):
        checked.extend(steps)
        check(self, steps)

    def running(self, step):
        ran.append(step)
        return run(self, step)

    monkeypatch.setattr(DuckDB, "check", checking)
    monkeypatch.setattr(DuckDBSnapshot, "run", running)
    with opened(WITHOUT) as session:
        dp.synthesize(session, "people", rho=1, method="fixed", workload=2, **EVERY)
    assert ran
    for place in range(5):
        assert any(f"c{place}" in step.rows for step in checked)
    constants = {value for step in checked for value in step.constants}
    assert {0, 5, 0.0625, "a", "nan"} <= constants
    assert {str(DAY), str(TIME)} <= {str(value) for value in constants}
