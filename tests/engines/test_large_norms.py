"""A unit far beyond its bound is scaled down to it, on every engine, in several groupings too."""

import contextlib
import dataclasses
import math
import tempfile

import pyarrow as pa
import pytest
from pyarrow import parquet

import deniable as dp
from deniable.engines.duckdb import DuckDB
from deniable.query.plan.plan import SCALE
from deniable.query.price.profile import least_row
from deniable.query.read.catalogue import Options
from deniable.query.read.compile import compile_sql
from deniable.query.run.emit import heavy_step, totals_step
from engines.loading import to_postgres
from engines.spark_session import local_spark

ROWS = 20_000  # of one unit, whose norm has a square of more than 63 bits
TABLE = pa.table(
    {
        "u": pa.array([*range(10), *[77] * ROWS], pa.int64()),
        "ward": ["A", "B"] * 5 + ["A"] * ROWS,
        "cost": pa.array([100.0] * 10 + [5_000.0] * ROWS, pa.float64()),
    }
)
QUESTION = "SELECT ward, COUNT(*) AS n, SUM(cost) AS s FROM t GROUP BY ROLLUP (ward)"


@pytest.fixture
def plan(tmp_path):
    """Of several groupings, whose joint norm was bought: that of five rows."""
    table = dp.PrivateTable(
        TABLE, unit="u", population="t", bounds={"cost": (0, 5_000)}, keys={"ward": ["A", "B"]}
    )
    ledger = tmp_path / "ledger.db"
    with dp.Session({"t": table}, budget=dp.ApproxDP(1.0, 1e-6), ledger=ledger) as session:
        return compile_sql(QUESTION, session._catalogue, Options())


def groupings(plan, *, l2):
    least = least_row(plan, l2=l2)
    unit = dataclasses.replace(
        plan.contribution, rows=1, floor=3 * least, norm=5 * least, jointly=True
    )
    for each in plan.counted.sets:
        counted = plan.counted.grouping(each)
        yield dataclasses.replace(plan, counted=counted, contribution=unit)


def found(engine, plan, l2):
    """What is kept of the unit that is beyond the bound, whose norm is checked, and all totals."""
    kept = []
    with engine.snapshot() as taken:
        for one in groupings(plan, l2=l2):
            width = len(one.counted.groups)
            rows = taken.run(heavy_step(one, l2=l2))
            (sums,) = ([int(each) for each in row[width:]] for row in rows)
            scaled = [abs(weight * each) for weight, each in zip(one.weights, sums, strict=True)]
            norm = math.isqrt(sum(each**2 for each in scaled)) if l2 else sum(scaled)
            bound = one.bound(l2=l2) * SCALE
            assert bound // 2 < norm <= bound
            totals = taken.run(totals_step(one, l2=l2))
            kept.append((sums, sorted((*row[:width], *map(int, row[width:])) for row in totals)))
    return kept


@pytest.fixture
def expected(plan):
    with contextlib.closing(DuckDB()) as engine:
        engine.add("t", TABLE, None)
        return {l2: found(engine, plan, l2) for l2 in (True, False)}


def test_postgres_keeps_to_the_bound(server, plan, expected):
    to_postgres(server.url, "large", TABLE)
    source = dp.postgres(server.url).table("large")
    with contextlib.closing(source.engine()) as engine:
        engine.add("t", source, None)
        assert {l2: found(engine, plan, l2) for l2 in (True, False)} == expected


def test_spark_keeps_to_the_bound(plan, expected):
    with local_spark() as session, tempfile.TemporaryDirectory() as folder:
        parquet.write_table(TABLE, f"{folder}/large.parquet")
        session.read.parquet(f"{folder}/large.parquet").createOrReplaceTempView("large")
        source = dp.spark(session).table("large")
        with contextlib.closing(source.engine()) as engine:
            engine.add("t", source, None)
            assert {l2: found(engine, plan, l2) for l2 in (True, False)} == expected
