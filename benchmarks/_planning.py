"""What a question costs beside its data: planning, small tables, and syntheses of coded tables.

Each task runs in a cold process of its own (see `sql.py`), on tables made here, by public functions
with their defaults; CPU seconds.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Any

AGGREGATES = (1, 10, 90)
MOST_PLANNING, MOST_CODED = 2.0, 3.0
MOST_WRITTEN = {20: 0.5, 45: 1.5}
_ROWS, _CODED_ROWS, _CODED_COLUMNS, _SEED = 100, 20_000, 16, 7


def _session(table: Any, folder: str, **declared: Any) -> Any:
    import deniable as dp  # noqa: PLC0415

    os.environ["XDG_CONFIG_HOME"] = folder
    private = dp.PrivateTable(table, unit="u", population="benchmark/planning", **declared)
    budget, ledger = dp.ApproxDP(1e6, 1e-6), Path(folder) / "ledger.db"
    return dp.Session({"t": private}, budget=budget, ledger=ledger)


def planning(aggregates: int) -> dict[str, float]:
    """`explain` of so many sums by city, with a contribution bound."""
    import pyarrow as pa  # noqa: PLC0415

    columns = {"u": list(range(_ROWS)), "city": ["A", "B"] * (_ROWS // 2)}
    columns |= {f"x{n}": [float(row % 7) for row in range(_ROWS)] for n in range(aggregates)}
    bounds = {f"x{n}": (0, 7) for n in range(aggregates)}
    listed = ", ".join(f"SUM(x{n}) AS s{n}" for n in range(aggregates))
    with tempfile.TemporaryDirectory() as folder:
        declared = {"bounds": bounds, "keys": {"city": ["A", "B"]}, "max_rows": 3}
        with _session(pa.table(columns), folder, **declared) as session:
            session.explain("SELECT city, COUNT(*) AS n FROM t GROUP BY city", epsilon=1)
            start = time.process_time()
            session.explain(f"SELECT city, {listed} FROM t GROUP BY city", epsilon=1)  # noqa: S608
            return {"cpu": time.process_time() - start}


def written(columns: int) -> dict[str, float]:
    """The statements of second moments of so many columns, planned and written for Postgres."""
    import deniable as dp  # noqa: PLC0415
    from deniable.engines.postgres_sql import PostgresWriter  # noqa: PLC0415
    from deniable.learning.pushed import LearningSource, pushed  # noqa: PLC0415
    from deniable.learning.rows import Ranges  # noqa: PLC0415
    from deniable.learning.sums import Moments  # noqa: PLC0415
    from deniable.query.read.catalogue import Catalogue  # noqa: PLC0415
    from deniable.query.read.compile import table_rows  # noqa: PLC0415
    from deniable.tables import ColumnType, Schema  # noqa: PLC0415

    table = dp.PrivateTable("t.parquet", unit="u", population="benchmark/planning", max_rows=3)
    for many in (1, columns):  # the first loads what is imported on the way
        names = tuple(f"x{place}" for place in range(many))
        kinds = {"u": ColumnType.INTEGER} | dict.fromkeys((*names, "y"), ColumnType.NUMBER)
        start = time.process_time()
        rows = table_rows("t", Catalogue({"t": Schema(kinds)}, {"t": table}))
        box = Ranges((0.0,) * many, (1.0,) * many, many**0.5)
        source = LearningSource(rows, names, "y", box, classes=(), y_ends=(0.0, 1.0))
        step = pushed(Moments(0.6**0.5, 0.1**0.5, 0.3**0.5), source).step
        PostgresWriter({"t": Schema(kinds)}, {}).write(step.select, step.tables, step.alike)
    return {"cpu": time.process_time() - start}


def small() -> dict[str, float]:
    """The benchmark's own question on 100 rows, bounds estimated, after it was asked before."""
    import pyarrow as pa  # noqa: PLC0415

    columns = {
        "u": [row // 2 for row in range(_ROWS)],
        "city": ["A", "B"] * (_ROWS // 2),
        "amount": [row % 97 for row in range(_ROWS)],
    }
    question = (
        "SELECT city, COUNT(*) AS n, SUM(amount) AS total, AVG(amount) AS mean FROM t GROUP BY city"
    )
    with tempfile.TemporaryDirectory() as folder:
        declared = {"bounds": {"amount": (0, 100)}, "keys": {"city": ["A", "B"]}}
        with _session(pa.table(columns), folder, **declared) as session:
            for turn in range(5):
                session.sql(question, epsilon=10 + turn / 100)
            start = time.process_time()
            for turn in range(5, 25):
                session.sql(question, epsilon=10 + turn / 100)
            return {"cpu": (time.process_time() - start) / 20}


def coded() -> dict[str, float]:
    """MST of a table of 16 coded columns: through a session, and of the same codes in memory."""
    import numpy as np  # noqa: PLC0415
    import pyarrow as pa  # noqa: PLC0415

    import deniable as dp  # noqa: PLC0415
    from deniable.synthesis.data import CodedRows  # noqa: PLC0415
    from deniable.synthesis.measure import open_draws  # noqa: PLC0415
    from deniable.synthesis.mst import MST  # noqa: PLC0415

    random = np.random.default_rng(_SEED)
    sizes = [2 + 3 * place % 7 for place in range(_CODED_COLUMNS)]
    codes = np.stack([random.integers(0, size, _CODED_ROWS) for size in sizes], axis=1)
    for place in range(1, _CODED_COLUMNS):
        like = random.random(_CODED_ROWS) < 0.6
        codes[like, place] = codes[like, place - 1] % sizes[place]
    names = [f"c{place}" for place in range(_CODED_COLUMNS)]
    table = pa.table({"u": np.arange(_CODED_ROWS), **dict(zip(names, codes.T, strict=True))})
    keys = {name: list(range(size)) for name, size in zip(names, sizes, strict=True)}
    with tempfile.TemporaryDirectory() as folder:
        with _session(table, folder, keys=keys, max_rows=1) as session:
            start = time.process_time()
            dp.synthesize(session, "t", epsilon=1, method="mst")
            through = time.process_time() - start
        with dp.Ledger() as ledger:
            ledger.open("people", dp.Budget(dp.ZCDP(100)), who="owner")
            gate = dp.Gate(ledger, "people", "owner")
            data = CodedRows(codes, dict(zip(names, sizes, strict=True)))
            start = time.process_time()
            draws = open_draws(gate, data, purpose="in memory", rho=0.02)
            MST(max_megabytes=80).run(draws)
            return {"cpu": through, "memory": time.process_time() - start}
