"""Money: decimal columns are whole numbers of 10^-k, and sums of them are exact."""

from decimal import Decimal

import duckdb
import numpy as np
import psycopg
import pyarrow as pa
import pytest
from pyarrow import parquet

import deniable as dp
from deniable.mechanisms.joint import JointNoise

PAY = [Decimal(number * number % 9_973) / 100 for number in range(600)]
TIP = [Decimal(number * 7 % 331) / 100 for number in range(600)]
ROWS = {"u": [number // 3 for number in range(600)], "pay": PAY, "tip": TIP}
KINDS = ("arrow", "parquet", "duckdb", "postgres")


def table():
    kinds = {"u": pa.int64(), "pay": pa.decimal128(12, 2), "tip": pa.decimal128(18, 2)}
    return pa.table({name: pa.array(cells, kinds[name]) for name, cells in ROWS.items()})


def source(kind, folder, request):
    if kind == "arrow":
        return table()
    if kind == "parquet":
        parquet.write_table(table(), folder / "money.parquet")
        return str(folder / "money.parquet")
    if kind == "duckdb":
        home, made = duckdb.connect(), table()  # noqa: F841  (DuckDB finds it by its name)
        home.execute("CREATE TABLE money AS FROM made")
        return dp.duckdb(home).table("money")
    url = request.getfixturevalue("server").url
    with psycopg.connect(url, autocommit=True) as server:
        server.execute("DROP TABLE IF EXISTS money")
        server.execute("CREATE TABLE money (u int8, pay numeric(12, 2), tip numeric(18, 2))")
        rows = zip(*ROWS.values(), strict=True)
        server.cursor().executemany("INSERT INTO money VALUES (%s, %s, %s)", list(rows))
    return dp.postgres(url).table("money")


def opened(given, **more):
    bounds = {"pay": (0, 100), "tip": (0, 5)}
    made = dp.PrivateTable(
        given, unit="u", population="p", max_rows=3, cap_rows=3, bounds=bounds, **more
    )
    return dp.Session({"t": made}, budget=dp.ZCDP(10**6), ledger=dp.Ledger(key=bytes(32)))


@pytest.fixture
def _without_noise(monkeypatch):
    monkeypatch.setattr(JointNoise, "release", lambda self, value: np.array(value, dtype=object))


BY_UNIT = "(SELECT u, SUM(pay) AS paid FROM t GROUP BY u) AS q"
SUMS = {
    "SELECT SUM(pay) AS n FROM t": sum(PAY),
    "SELECT SUM(pay) AS n FROM t WHERE pay <> 0.10 AND pay < 99.99": sum(
        each for each in PAY if each != Decimal("0.10") and each < Decimal("99.99")
    ),
    "SELECT SUM(pay + tip - 0.05) AS n FROM t": sum(PAY) + sum(TIP) - 600 * Decimal("0.05"),
    "SELECT SUM(CASE WHEN tip = 0.07 THEN -pay * 3 ELSE 0 END) AS n FROM t": sum(
        -3 * pay for pay, tip in zip(PAY, TIP, strict=True) if tip == Decimal("0.07")
    ),
    f"SELECT SUM(paid) AS n FROM {BY_UNIT}": sum(PAY),
    f"SELECT SUM(paid) AS n FROM {BY_UNIT} WHERE paid = {sum(PAY[:3])}": sum(PAY[:3]),
}


@pytest.mark.usefixtures("_without_noise")
@pytest.mark.parametrize("kind", KINDS)
def test_sums_are_exact(kind, tmp_path, request):
    with opened(source(kind, tmp_path, request)) as session:
        for question, right in SUMS.items():
            given = {"paid": (0, 300)} if "paid" in question else None
            found = session.sql(question, rho=1, bounds=given)["n"][0]
            assert abs(found - float(right)) < 1e-6, question


@pytest.mark.usefixtures("_without_noise")
def test_a_grid_of_powers_of_two_is_not_exact():
    """Power: these sums of fractions show it."""
    doubles = pa.table({**ROWS, "pay": [float(each) for each in PAY], "tip": [0.0] * 600})
    with opened(doubles) as session:
        found = session.sql("SELECT SUM(pay) AS n FROM t", rho=1)["n"][0]
    assert 1e-6 < abs(found - float(sum(PAY))) < 1


@pytest.mark.usefixtures("_without_noise")
def test_a_declared_grid_comes_first():
    with opened(table(), grid={"pay": 5}) as session:
        found = session.sql("SELECT SUM(pay) AS n FROM t", rho=1)["n"][0]
    assert found % 5 == 0


def test_bounds_with_too_many_steps_are_answered_as_before():
    with opened(table()) as session:
        session.explain("SELECT SUM(pay) AS n FROM t", rho=1, bounds={"pay": (0, 10**11)})
