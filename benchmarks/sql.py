"""Count, sum and mean by city, user level, ε = 1, δ = 1e-6: what privacy costs in time and memory.

    python benchmarks/sql.py [--check] [--rows 10000000] [--data FOLDER] [--against SOURCES]

Ten million rows of 0.9 million users (Pareto-like, at most 300 rows each) in 100 cities, as one
Parquet file, made with a fixed seed in a temporary folder, or kept in --data or $DENIABLE_DATA.
Plain DuckDB, Deniable (with a contribution bound given, and with one that is bought, all of it
charged) and OpenDP + Polars answer, each in three cold processes: CPU seconds (user and system, all
threads) without imports, the least of three; peak memory, the most of three; root mean square
errors over the cities, against the exact answer, over three draws. A second question has a part of
a date, LIKE and a sum of doubles, which pass through guards and seals. Then Postgres and Spark (see
`_engines.py`), on a million rows or those of --engine-rows. --against names the `src` folder of
another version of Deniable, whose CPU on both questions is told beside this one's.

Bars: 10 times plain DuckDB's CPU, given or bought or of the second question; a fifth of OpenDP's,
1.5 GB; from a cold start to the first answer on 1,000 rows 1.5 s; `explain` 50 ms; 8 times the
plain query's CPU on Postgres and 12 times on Spark. Beside the data (see `_planning.py`): 90 sums
are planned in 2 CPU s; MST of a table of 16 coded columns takes 3 times the CPU of codes in memory;
second moments of 20 columns are written for Postgres in 0.5 CPU s, of 45 in 1.5.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from _engines import ENGINES, engine_ratio
from _peers import run_peer
from _planning import (
    AGGREGATES,
    MOST_CODED,
    MOST_PLANNING,
    MOST_WRITTEN,
    coded,
    planning,
    small,
    written,
)

# Whatever else is imported is imported where it is used: a cold start is among what is timed.

EPSILON, DELTA = 1.0, 1e-6
BOUNDS, MAX_ROWS = (0, 200_000), 60
CITIES = [f"city {number:02d}" for number in range(100)]
QUESTION = (
    "SELECT city, COUNT(*) AS n, SUM(amount) AS total, AVG(amount) AS mean FROM trips GROUP BY city"
)
PARTS = (
    "SELECT COUNT(*) AS n, SUM(fare * 0.5) AS half FROM trips "
    "WHERE EXTRACT(year FROM day) > 2010 AND city LIKE 'city 1%'"
)
SLOWER, FASTER, MEMORY, FIRST, EXPLAIN = 10.0, 5.0, 1.5e9, 1.5, 0.050
PROCESSES, EXPLAINED, FEW = 3, 20, 1_000
SEED, MOST = 20_261_116, 300

Run = dict[str, Any]


def generate(rows: int, file: Path) -> Run:
    """Trips: whose, where, for how many dollars; rows in no order."""
    import numpy as np  # noqa: PLC0415
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import parquet  # noqa: PLC0415

    random = np.random.default_rng(SEED)
    sizes = np.minimum(1 + (21.3 * random.pareto(3, rows // 5 + 1)).astype(np.int64), MOST)
    people = int(np.searchsorted(np.cumsum(sizes), rows)) + 1
    user = np.repeat(np.arange(people, dtype=np.int64), sizes[:people])[:rows]
    random.shuffle(user)
    popular = np.cumsum(1 / np.arange(1, len(CITIES) + 1))
    popular /= popular[-1]
    home = np.searchsorted(popular, random.random(people)).astype(np.int8)
    elsewhere = np.searchsorted(popular, random.random(rows)).astype(np.int8)
    city = np.where(random.random(rows) < 0.6, home[user], elsewhere)
    amount = np.minimum(random.lognormal(10.3, 0.8, rows), BOUNDS[1]).round().astype(np.int64)
    names = pa.DictionaryArray.from_arrays(pa.array(city), pa.array(CITIES)).cast(pa.string())
    days = pa.array(random.integers(11_000, 19_000, rows, dtype=np.int32), pa.date32())
    fare = random.lognormal(2, 1, rows)
    unfinished = file.with_suffix(".unfinished")
    parquet.write_table(
        pa.table({"user_id": user + 1, "city": names, "amount": amount, "fare": fare, "day": days}),
        unfinished,
    )
    unfinished.replace(file)
    return {"people": people}


def used() -> float:
    """CPU seconds so far: this process, all of its threads, and its children."""
    found = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in found)


def peak() -> int:
    """The most memory that this process ever held, in bytes."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def by_city(table: Any) -> dict[str, list[float]]:
    """City to count, total and mean, of a table or an answer."""
    columns = [list(table[name]) for name in ("city", "n", "total", "mean")]
    return {
        city: [float(value) for value in values]
        for city, *values in zip(*columns, strict=True)
    }  # fmt: skip


def plain(file: Path) -> Run:
    """The exact answer, by DuckDB alone."""
    import duckdb  # noqa: PLC0415
    import pyarrow  # noqa: F401, PLC0415  (imports are timed apart)

    connection = duckdb.connect()
    connection.execute(f"CREATE VIEW trips AS FROM read_parquet('{file}')")
    start, wall = used(), time.perf_counter()
    table = connection.sql(QUESTION).to_arrow_table()
    spent, waited = used() - start, time.perf_counter() - wall
    return {
        "version": duckdb.__version__,
        "cpu": spent,
        "wall": waited,
        "memory": peak(),
        "answers": by_city(table.to_pydict()),
    }


def private(file: Path, max_rows: int | None = MAX_ROWS) -> Run:
    """Deniable's answer: the session, the question, then `explain` of the same."""
    import deniable as dp  # noqa: PLC0415

    dp.PrivateTable, dp.Session, dp.ApproxDP  # noqa: B018  (imports are timed apart)
    with tempfile.TemporaryDirectory() as folder:
        start = used()
        trips = dp.PrivateTable(
            str(file),
            unit="user_id",
            population="benchmark/rider",
            bounds={"amount": BOUNDS},
            keys={"city": CITIES},
            max_rows=max_rows,
        )
        ledger = Path(folder) / "ledger.db"
        os.environ["XDG_CONFIG_HOME"] = folder  # the key, and what is remembered of ledgers
        budget = dp.ApproxDP(EPSILON, DELTA)
        with dp.Session({"trips": trips}, budget=budget, ledger=ledger) as session:
            middle, wall = used(), time.perf_counter()
            answer = session.sql(QUESTION, epsilon=EPSILON)
            spent, waited, memory = used() - middle, time.perf_counter() - wall, peak()
            explained = []
            for _ in range(EXPLAINED):
                began = time.perf_counter()
                session.explain(QUESTION, epsilon=EPSILON)
                explained.append(time.perf_counter() - began)
    return {
        "version": dp.__version__,
        "session": middle - start,
        "cpu": spent,
        "wall": waited,
        "memory": memory,
        "explain": statistics.median(explained),
        "answers": by_city(answer),
    }


def first(file: Path) -> Run:
    """Import, open a session, ask: as little else as can be."""
    import deniable as dp  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as folder:
        trips = dp.PrivateTable(
            str(file),
            unit="user_id",
            population="benchmark/rider",
            bounds={"amount": BOUNDS},
            keys={"city": CITIES},
            max_rows=MAX_ROWS,
        )
        ledger = Path(folder) / "ledger.db"
        os.environ["XDG_CONFIG_HOME"] = folder  # the key, and what is remembered of ledgers
        budget = dp.ApproxDP(EPSILON, DELTA)
        with dp.Session({"trips": trips}, budget=budget, ledger=ledger) as session:
            return {"rows": len(session.sql(QUESTION, epsilon=EPSILON))}


def plain_parts(file: Path) -> Run:
    """The second question, by DuckDB alone."""
    import duckdb  # noqa: PLC0415
    import pyarrow  # noqa: F401, PLC0415  (imports are timed apart)

    connection = duckdb.connect()
    connection.execute(f"CREATE VIEW trips AS FROM read_parquet('{file}')")
    start = used()
    connection.sql(PARTS).fetchall()
    return {"cpu": used() - start}


def parts(file: Path) -> Run:
    """The second question, by Deniable."""
    import deniable as dp  # noqa: PLC0415

    dp.PrivateTable, dp.Session, dp.ApproxDP  # noqa: B018  (imports are timed apart)
    trips = dp.PrivateTable(
        str(file),
        unit="user_id",
        population="benchmark/rider",
        bounds={"fare": (0, 100)},
        max_rows=MAX_ROWS,
    )
    budget = dp.ApproxDP(EPSILON, DELTA)
    with tempfile.TemporaryDirectory() as folder:
        ledger = Path(folder) / "ledger.db"
        os.environ["XDG_CONFIG_HOME"] = folder  # the key, and what is remembered of ledgers
        with dp.Session({"trips": trips}, budget=budget, ledger=ledger) as session:
            start = used()
            session.sql(PARTS, epsilon=EPSILON)
            return {"cpu": used() - start}


def bought(file: Path) -> Run:
    """The same, with a bound that is bought."""
    return private(file, None)


def _planned(aggregates: int, _: Path) -> Run:
    return dict(planning(aggregates))


def _written(columns: int, _: Path) -> Run:
    return dict(written(columns))


TASKS: dict[str, Callable[[Path], Run]] = {
    "plain": plain,
    "private": private,
    "bought": bought,
    "first": first,
    "plain_parts": plain_parts,
    "parts": parts,
    "small": lambda _: small(),
    "coded": lambda _: coded(),
    **{f"planning {each}": partial(_planned, each) for each in AGGREGATES},
    **{f"written {each}": partial(_written, each) for each in MOST_WRITTEN},
}


def child(task: str, file: Path, rows: int = 0, sources: Path | None = None) -> Run:
    """One task in a process of its own. Heavy work never runs here: children inherit our peak."""
    environment = os.environ | ({} if sources is None else {"PYTHONPATH": str(sources)})
    command = [sys.executable, __file__, "--task", task, "--file", str(file), "--rows", str(rows)]
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True, env=environment)
    if done.returncode != 0:
        sys.exit(f"sql: {task} failed, see above")
    found: Run = json.loads(done.stdout)
    return found


def best(runs: list[Run]) -> Run:
    """The least time, the most memory, and all of the answers."""
    found = dict(min(runs, key=lambda run: float(run["cpu"])))
    found["memory"] = max(run["memory"] for run in runs)
    found["draws"] = [run["answers"] for run in runs]
    return found


def peer(file: Path, rows: int) -> tuple[Run | None, str]:
    """OpenDP + Polars, or None and why."""
    asked = {
        "file": str(file),
        "epsilon": EPSILON,
        "delta": DELTA,
        "bounds": BOUNDS,
        "keys": CITIES,
        "max_rows": MAX_ROWS,
        "most": 2 * rows,
    }
    runs = []
    for _ in range(PROCESSES):
        try:
            run = run_peer("opendp_sql.py", "opendp[polars]", [json.dumps(asked)])
        except subprocess.CalledProcessError as error:
            said = (error.stderr or "").strip().splitlines() or [f"exit code {error.returncode}"]
            return None, f"failed: {said[-1]}"
        if run is None:
            return None, "cannot be installed here"
        runs.append(run)
    return best(runs), ""


def errors(run: Run, exact: dict[str, list[float]]) -> list[float]:
    """Root mean square errors of counts, totals and means, over the cities and draws."""
    pairs = [
        (draw[city], exact.get(city, [0.0, 0.0, 0.0])) for draw in run["draws"] for city in CITIES
    ]
    return [
        math.sqrt(statistics.fmean((noisy[k] - true[k]) ** 2 for noisy, true in pairs))
        for k in range(3)
    ]


def shown(name: str, run: Run, base: Run) -> list[str]:
    """A line of the table."""
    count, total, mean = errors(run, base["answers"])
    return [
        f"{name} {run['version']}",
        f"{run['cpu']:.2f}",
        f"{run['cpu'] / base['cpu']:.1f}",
        f"{run['wall']:.2f}",
        f"{run['memory'] / 1e6:,.0f}",
        *((f"{count:,.0f}", f"{total / 1e6:,.1f}", f"{mean:,.0f}") if run is not base else "---"),
    ]


def beside_the_data(file: Path) -> bool:
    """CPU of planning, of writing, and of a synthesis through a session over one in memory."""
    planned = {
        each: min(float(child(f"planning {each}", file)["cpu"]) for _ in range(PROCESSES))
        for each in AGGREGATES
    }
    listed = ", ".join(f"{each} sums {cpu:.2f} s" for each, cpu in planned.items())
    print(f"planning: {listed} (90: {MOST_PLANNING:g} s)")
    texts = {
        each: min(float(child(f"written {each}", file)["cpu"]) for _ in range(PROCESSES))
        for each in MOST_WRITTEN
    }
    listed = ", ".join(f"{n} columns {cpu:.2f} s ({MOST_WRITTEN[n]:g})" for n, cpu in texts.items())
    print(f"second moments, written for Postgres: {listed}")
    runs = [child("coded", file) for _ in range(PROCESSES)]
    ratio = min(float(run["cpu"]) for run in runs) / min(float(run["memory"]) for run in runs)
    print(f"MST of 16 coded columns: {ratio:.1f} times the CPU of codes in memory ({MOST_CODED:g})")
    quick = all(cpu <= MOST_WRITTEN[each] for each, cpu in texts.items())
    return quick and planned[AGGREGATES[-1]] <= MOST_PLANNING and ratio <= MOST_CODED


def compare(file: Path, sources: Path) -> None:
    """CPU of this version over that of another, in turn, the least of each."""
    for task in ("private", "bought", "parts", "small", "planning 1", "planning 10", "coded"):
        pairs = [(child(task, file), child(task, file, 0, sources)) for _ in range(PROCESSES)]
        new, old = (min(float(run["cpu"]) for run in runs) for runs in zip(*pairs, strict=True))
        print(f"{task}: {new:.3f} s of CPU, {old:.3f} with {sources}: {new / old - 1:+.1%}")


def measure(folder: Path, rows: int, engine_rows: int, against: Path | None) -> bool:
    """Print the table and the last line; whether all bars are met."""
    file, few = (folder / f"trips-{SEED}-{number}.parquet" for number in (rows, FEW))
    some = folder / f"trips-{SEED}-{engine_rows}.parquet"
    for place, number in ((file, rows), (few, FEW), (some, engine_rows)):
        if not place.exists():
            child("generate", place, number)
    tasks = ("plain", "private", "bought")
    rounds = [[child(task, file) for task in tasks] for _ in range(PROCESSES)]
    base, ours, paid = (best([runs[place] for runs in rounds]) for place in range(3))
    seconds = [
        min(float(child(task, file)["cpu"]) for _ in range(PROCESSES))
        for task in ("plain_parts", "parts")
    ]
    if against is not None:
        compare(file, against)
    other, reason = peer(file, rows)
    waits = []
    for _ in range(PROCESSES):
        began = time.perf_counter()
        child("first", few)
        waits.append(time.perf_counter() - began)
    start = min(waits)
    slower, faster = ours["cpu"] / base["cpu"], other["cpu"] / ours["cpu"] if other else math.inf
    dearer, second = paid["cpu"] / base["cpu"], seconds[1] / seconds[0]
    engines = {name: engine_ratio(name, some) for name in ENGINES}

    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    table = Table("system", "CPU s", "ratio", "wall s", "peak MB", "RMSE n", "total $M", "mean $")
    table.add_row(*shown("DuckDB", base, base))
    table.add_row(*shown("Deniable, bound given,", ours, base))
    table.add_row(*shown("Deniable, bound bought,", paid, base))
    if other:
        table.add_row(*shown("OpenDP", other, base))
    else:
        table.add_row(f"OpenDP + Polars: {reason}", *"-------")
    Console(width=120).print(table)
    quick = beside_the_data(few)
    print(f"Deniable's session takes {1e3 * ours['session']:.0f} ms of CPU to make", end="")
    print(f"; OpenDP's CPU has {other['planning']:.1f} s of planning" if other else "")
    met = (
        max(slower, dearer, second) <= SLOWER
        and all(engines[name].ratio <= bar for name, bar in ENGINES.items())
        and faster >= FASTER
        and ours["memory"] < MEMORY
        and start < FIRST
        and ours["explain"] < EXPLAIN
        and quick
    )
    than = f"{faster:.1f} times less than OpenDP" if other else f"OpenDP not measured ({reason})"
    print(
        f"sql: {rows:,} rows, {slower:.1f} times plain DuckDB's CPU, {dearer:.1f} with bounds "
        f"bought, {second:.1f} with a date, LIKE and doubles (bar {SLOWER:g}), {than} "
        f"(bar {FASTER:g}), peak {ours['memory'] / 1e9:.2f} GB (bar {MEMORY / 1e9:g}), first "
        f"answer after {start:.2f} s (bar {FIRST:g}), explain {1e3 * ours['explain']:.0f} ms "
        f"(bar {1e3 * EXPLAIN:g}); on {engine_rows:,} rows "
        + ", ".join(f"{engines[name]} (bar {bar:g})" for name, bar in ENGINES.items())
        + f"; {'bars met' if met else 'BARS MISSED'}"
    )
    return met


def main() -> int:
    """Measure; with --check, exit non-zero where a bar is missed."""
    parser = argparse.ArgumentParser(description="Private SQL beside plain DuckDB and OpenDP")
    parser.add_argument("--check", action="store_true", help="exit non-zero where a bar is missed")
    parser.add_argument("--rows", type=int, default=10_000_000, help="of the table")
    parser.add_argument("--engine-rows", type=int, default=1_000_000, help="Postgres and Spark")
    parser.add_argument("--data", type=Path, help="a folder to keep the table in; $DENIABLE_DATA")
    parser.add_argument("--against", type=Path, help="the src folder of another version")
    parser.add_argument("--task", choices=[*TASKS, "generate"], help="run one and print JSON")
    parser.add_argument("--file", type=Path, help="the Parquet file of --task")
    arguments = parser.parse_args()
    if arguments.task == "generate":
        print(json.dumps(generate(arguments.rows, arguments.file)))
        return 0
    if arguments.task:
        print(json.dumps(TASKS[arguments.task](arguments.file)))
        return 0
    kept = arguments.data or os.environ.get("DENIABLE_DATA")
    if kept:
        Path(kept).mkdir(parents=True, exist_ok=True)
        met = measure(
            Path(kept).resolve(), arguments.rows, arguments.engine_rows, arguments.against
        )
    else:
        with tempfile.TemporaryDirectory() as folder:
            met = measure(Path(folder), arguments.rows, arguments.engine_rows, arguments.against)
    return 1 if arguments.check and not met else 0


if __name__ == "__main__":
    sys.exit(main())
