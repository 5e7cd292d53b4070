"""What exact verification of a large channel costs.

    python benchmarks/channel.py [--check]

A channel of 100 inputs and 10,000 outputs, every two inputs neighbours (9,900 ordered pairs): CPU
seconds for the exact ε, and for δ at three ε, best of three, reading the table apart. Beside it the
plain way with numpy, pair by pair, whose numbers must agree. Bars: 0.5 s and 2 s.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

import deniable as dp

BAR_EPSILON, BAR_DELTA = 0.5, 2.0
POINTS = (0.1, 1.0, 3.0)
Result = TypeVar("Result")


def timed(work: Callable[[], Result], repeats: int = 3) -> tuple[float, Result]:
    """The least CPU time, and the result."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        result = work()
        times.append(time.process_time() - start)
    return min(times), result


def plain_epsilon(rows: npt.NDArray[np.float64]) -> float:
    """Pair by pair, as one would write it down."""
    return max(float(np.log(p / q).max()) for p in rows for q in rows)


def plain_delta(rows: npt.NDArray[np.float64], epsilon: float) -> float:
    """Pair by pair, as one would write it down."""
    grown = math.exp(epsilon)
    return max(float(np.maximum(p - grown * q, 0).sum()) for p in rows for q in rows)


def main() -> int:
    """Print the table; with --check, exit non-zero where a bar is missed."""
    parser = argparse.ArgumentParser(description="Exact verification of a large channel")
    parser.add_argument("--check", action="store_true", help="exit non-zero where a bar is missed")
    arguments = parser.parse_args()
    made_up = np.random.default_rng(1)  # a table, not noise
    rows = made_up.dirichlet(np.full(10_000, 3.0), size=100)
    read_time, verified = timed(lambda: dp.verify_channel(rows))
    seconds, epsilon = timed(lambda: verified.epsilon)
    delta_seconds, deltas = timed(lambda: [float(verified.delta(epsilon=e)) for e in POINTS])
    plain_seconds, plain = timed(lambda: plain_epsilon(rows), repeats=1)
    plain_delta_seconds, plain_deltas = timed(
        lambda: [plain_delta(rows, e) for e in POINTS], repeats=1
    )
    table = Table("100 x 10,000", "CPU s", "pair by pair, CPU s", "ratio")
    table.add_row("read and check", f"{read_time:.3f}", "", "")
    for name, ours, theirs in (
        ("ε", seconds, plain_seconds),
        ("δ at three ε", delta_seconds, plain_delta_seconds),
    ):
        table.add_row(name, f"{ours:.3f}", f"{theirs:.3f}", f"{theirs / max(ours, 1e-6):.1f}")
    Console(width=100).print(table)
    agree = abs(epsilon - plain) < 1e-12 and all(
        0 <= ours - theirs < 1e-10 for ours, theirs in zip(deltas, plain_deltas, strict=True)
    )
    met = seconds < BAR_EPSILON and delta_seconds < BAR_DELTA and agree
    print(
        f"channel: ε in {seconds:.3f} s (bar {BAR_EPSILON:g}), δ at three ε in "
        f"{delta_seconds:.2f} s (bar {BAR_DELTA:g}), {'the same' if agree else 'NOT THE SAME'} "
        f"numbers as pair by pair; {'bars met' if met else 'BARS MISSED'}"
    )
    return 1 if arguments.check and not met else 0


if __name__ == "__main__":
    sys.exit(main())
