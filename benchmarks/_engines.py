"""The benchmark's question on Postgres and on Spark: what privacy costs there, in CPU seconds.

Both engines are started here, in folders of their own and on loopback only. The plain query and the
private one run in turn, five times each after one that warms up; the least of each counts. CPU
seconds are those of the server's process (Postgres, without parallel workers), or of the Java
machine (Spark), and of this one.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ENGINES = {"Postgres": 8.0, "Spark": 12.0}
ROUNDS = 5
QUESTION = (
    "SELECT city, COUNT(*) AS n, SUM(amount) AS total, AVG(amount) AS mean FROM trips GROUP BY city"
)
CITIES = [f"city {number:02d}" for number in range(100)]
TESTS = Path(__file__).resolve().parents[1] / "tests"


@dataclass(frozen=True)
class Ratio:
    """Private against plain."""

    name: str
    plain: float
    private: float

    @property
    def ratio(self) -> float:
        """How many times as much."""
        return self.private / self.plain

    def __str__(self) -> str:
        return f"{self.ratio:.1f} times plain {self.name}'s CPU ({self.private:.2f} s)"


def engine_ratio(name: str, file: Path) -> Ratio:
    """Measure one engine in a process of its own."""
    command = [sys.executable, __file__, name, str(file)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    plain, private = map(float, done.stdout.split()[-2:])
    return Ratio(name, plain, private)


def cpu_of(pid: int) -> float:
    """CPU seconds of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def least(work: Callable[[], object], pids: list[int]) -> float:
    """The least CPU of several rounds, after one that warms up."""
    work()
    found = []
    for _ in range(ROUNDS):
        before = sum(map(cpu_of, pids))
        work()
        found.append(sum(map(cpu_of, pids)) - before)
    return min(found)


def asking(source: Any) -> tuple[Any, Callable[[], object]]:
    """A session on a table, and a question that is a new one each time."""
    import deniable as dp  # noqa: PLC0415

    trips = dp.PrivateTable(
        source,
        unit="user_id",
        population="benchmark/rider",
        bounds={"amount": (0, 200_000)},
        keys={"city": CITIES},
        max_rows=60,
    )
    ledger = dp.Ledger(key=bytes(32))
    session = dp.Session({"trips": trips}, budget=dp.ApproxDP(1000, 1e-6), ledger=ledger)
    prices = iter(range(10_000))
    return session, lambda: session.sql(QUESTION, epsilon=1 + next(prices) / 1000)


def postgres(file: Path) -> tuple[float, float]:
    """A server in a temporary folder; neither query uses parallel workers."""
    import duckdb  # noqa: PLC0415
    import psycopg  # noqa: PLC0415

    import deniable as dp  # noqa: PLC0415
    from postgres import Postgres  # noqa: PLC0415

    server = Postgres()
    try:
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET max_parallel_workers_per_gather = 0")
            connection.execute("SELECT pg_reload_conf()")
            connection.execute("CREATE TABLE trips (user_id BIGINT, city TEXT, amount BIGINT)")
            rows = duckdb.read_parquet(str(file)).select("user_id, city, amount").fetchall()
            with connection.cursor().copy("COPY trips FROM STDIN") as copy:
                for row in rows:
                    copy.write_row(row)
            connection.execute("VACUUM ANALYZE trips")
            session, ask = asking(dp.postgres(server.url).table("trips"))
            with session:
                pids = [session._engine.connection.info.backend_pid, os.getpid()]
                private = least(ask, pids)
            own = [connection.info.backend_pid, os.getpid()]
            plain = least(lambda: connection.execute(QUESTION).fetchall(), own)
    finally:
        server.remove()
    return plain, private


def spark(file: Path) -> tuple[float, float]:
    """A local session; the Java machine is a child of this process."""
    import deniable as dp  # noqa: PLC0415
    from engines.spark_session import local_spark  # noqa: PLC0415

    with local_spark(quick=False) as running:
        running.read.parquet(str(file)).createOrReplaceTempView("trips")
        children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
        pids = [os.getpid(), *map(int, children)]
        plain = least(lambda: running.sql(QUESTION).collect(), pids)
        session, ask = asking(dp.spark(running).table("trips"))
        with session:
            private = least(ask, pids)
    return plain, private


if __name__ == "__main__":
    sys.path.insert(0, str(TESTS))
    tasks: dict[str, Callable[[Path], tuple[float, float]]] = {"Postgres": postgres, "Spark": spark}
    print(*tasks[sys.argv[1]](Path(sys.argv[2])))
