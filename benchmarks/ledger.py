"""What a spend costs: on the filter alone, and on a durable ledger as it grows.

    python benchmarks/ledger.py [--check]

The filter: 1,000 adaptive spends in memory, each with a loss made for it, CPU microseconds of the
last ones. The ledger: reservations in an SQLite file of 10, 1,000 and 100,000 entries, CPU
milliseconds (waiting for the disk apart), median of 50. Bars: under 20 µs; and the largest ledger
takes at most twice as long per spend as the smallest.
"""

from __future__ import annotations

import argparse
import sqlite3
import statistics
import sys
import tempfile
import time
from contextlib import closing
from fractions import Fraction
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

import deniable as dp
from deniable.ledger.entries import EntryKind, Row, make_row, state_of
from deniable.ledger.filters import Totals
from deniable.ledger.policy import spent

BAR_MICROSECONDS, BAR_GROWTH = 20.0, 2.0
SIZES = (10, 1_000, 100_000)
KEY = bytes(32)
TINY = dp.losses.PureLoss(bound=Fraction(1, 10**9))


def filter_microseconds() -> float:
    """CPU time of one spend, around the 1,000th, prices depending on what was spent."""
    budget, best = dp.Budget(dp.ApproxDP(100, 1e-6)), float("inf")
    for _ in range(5):
        totals = Totals()
        for number in range(1_000):
            loss = dp.losses.PureLoss(bound=Fraction(1 + (totals.rho % 7), 10**4))
            if number == 900:
                start = time.process_time()
            after = totals + budget.charge(loss)
            if budget.admits(after):
                totals = after
        best = min(best, (time.process_time() - start) / 100)
    return 1e6 * best


def grown(folder: Path, size: int) -> dp.Ledger:
    """A ledger with so many entries, appended in bulk but chained and totalled like any other."""
    file = folder / f"{size}.db"
    ledger = dp.Ledger(file, key=KEY)
    ledger.open("people", dp.Budget(dp.PureDP(1000)), who="owner")
    *_, last = ledger.store.rows("people")
    rows: list[Row] = []
    text = dp.losses.loss_to_json(TINY)
    for _ in track(range(size - 1), description=f"{size:,} entries", disable=size < 10_000):
        state = spent(state_of(last), TINY, "bulk")
        data = {"purpose": "bulk", "loss": text, "resumable": False, "state": state.to_json()}
        last = make_row(
            KEY, last, population="people", kind=EntryKind.RESERVE, who="bulk", data=data
        )  # fmt: skip
        rows.append(last)
    with closing(sqlite3.connect(file)) as raw, raw:
        raw.executemany(
            "INSERT INTO deniable_entries VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            [tuple(vars(row).values()) for row in rows],
        )
    return ledger


def spend_milliseconds(ledger: dp.Ledger) -> float:
    """Median CPU time of a reservation."""
    times = []
    for number in range(50):
        start = time.process_time()
        ledger.reserve("people", TINY, who="ana", purpose="measure", question={"n": number})
        times.append(time.process_time() - start)
    return 1e3 * statistics.median(times)


def main() -> int:
    """Print the table; with --check, exit non-zero where a bar is missed."""
    parser = argparse.ArgumentParser(description="What a spend costs as the ledger grows")
    parser.add_argument("--check", action="store_true", help="exit non-zero where a bar is missed")
    arguments = parser.parse_args()
    micro = filter_microseconds()
    table = Table("entries", "CPU ms per spend")
    costs = []
    with tempfile.TemporaryDirectory() as folder:
        for size in SIZES:
            with grown(Path(folder), size) as ledger:
                costs.append(spend_milliseconds(ledger))
            table.add_row(f"{size:,}", f"{costs[-1]:.3f}")
    Console(width=100).print(table)
    growth = costs[-1] / costs[0]
    met = micro < BAR_MICROSECONDS and growth <= BAR_GROWTH
    print(
        f"ledger: {micro:.1f} µs for the 1,000th spend on the filter (bar {BAR_MICROSECONDS:g}), "
        f"{growth:.2f} times the cost per spend from {SIZES[0]} to {SIZES[-1]:,} entries "
        f"(bar {BAR_GROWTH:g}); {'bars met' if met else 'BARS MISSED'}"
    )
    return 1 if arguments.check and not met else 0


if __name__ == "__main__":
    sys.exit(main())
