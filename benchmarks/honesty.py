"""Do intervals hold the truth where nothing is declared but whose rows are whose?

    python benchmarks/honesty.py [--check] [--cells 200] [--runs 40] [--seed 1] [--data FOLDER]

A cell is a law of rows per person, a number of people, a number of groups, people spread over them
or the heaviest together in one, a price, keys declared or selected, an aggregate, and values: skew,
of both signs, or larger for people with many rows. Cells are drawn by the seed, which is printed.
In each run the table is made anew and asked through `Session.sql`, as a user asks. Twelve laws are
those on which constants were chosen, with other seeds; seven are held out. With --data, public
tables too (diabetes130, cdnow, nycflights13 of a folder of CSV files): ten questions of a newcomer
each, by the path of the commands; and NHEFS (wt82_71 where qsmk = 0), a mean without bounds.

Columns without bounds: means of values of several laws, each row a person, at ε = 1. The bounds of
a column are estimated; the width is half of the interval's, in the column's unit.

Reported: how often intervals of two ends hold the truth, how often lower ends do, how many
questions were not answered, how many have a lower end alone, the median width over that of the best
fixed bound, known for free (four of its root mean squared errors), CPU seconds a question.

Bars, each respecting its binomial error (Clopper & Pearson, 1e-4): lower ends hold 96.5 %; two ends
90 % for one count from 500 people at ε = 1, 85 % for others and by groups that are spread; at most
2 % are not answered from 300 people at ε = 1; numbers of public tables 94 %. The same of cells in
which `max_rows=20` is declared: where it cuts off nobody, some, or a few heavy people. A hump of
heavy people that noise hides, 50 of 5,000, is missed, as the label's assumption says; it has no
bar. Means of columns without bounds 95 %, and of NHEFS a half-width of 1.5 at most.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from _newcomer import asked
from pyarrow import csv
from rich.console import Console
from rich.table import Table
from scipy.stats import beta

import deniable as dp

Floats = npt.NDArray[np.float64]
Law = Callable[[np.random.Generator, int], Floats]

DELTA, RISK = 1e-6, 1e-4


def _pareto(index: float) -> Law:
    return lambda rng, n: np.floor(2 * (rng.pareto(index, n) + 1)) - 1


def _constant(rows: int) -> Law:
    return lambda _, n: np.full(n, float(rows))


LAWS: dict[str, Law] = {
    "1 row": _constant(1),
    "4 rows": _constant(4),
    "Poisson 1": lambda rng, n: np.maximum(rng.poisson(1, n), 1.0),
    "Poisson 10": lambda rng, n: np.maximum(rng.poisson(10, n), 1.0),
    "geometric 2": lambda rng, n: rng.geometric(0.5, n).astype(float),
    "geometric 10": lambda rng, n: rng.geometric(0.1, n).astype(float),
    "lognormal 1.5, 1": lambda rng, n: np.ceil(rng.lognormal(1.5, 1, n)),
    "lognormal 1, 1.5": lambda rng, n: np.ceil(rng.lognormal(1, 1.5, n)),
    **{f"Pareto {index:g}": _pareto(index) for index in (2.5, 2, 1.6, 1.4)},
}
HELD_OUT: dict[str, Law] = {
    **{f"{rows} rows": _constant(rows) for rows in (7, 23, 47, 63)},
    "uniform 1 to 40": lambda rng, n: rng.integers(1, 41, n).astype(float),
    "binomial 20": lambda rng, n: np.maximum(rng.binomial(20, 0.4, n), 1.0),
    "1 row or 30": lambda rng, n: np.where(rng.random(n) < 0.9, 1.0, 30.0),
}
HEAVY = "Poisson 3, and 1 in 100 with 60 rows"
ONLY_DECLARED: dict[str, Law] = {
    HEAVY: lambda rng, n: np.where(rng.random(n) < 0.01, 60.0, np.maximum(rng.poisson(3, n), 1.0))
}
VALUES: dict[str, Callable[[np.random.Generator, Floats], Floats]] = {
    "skew values": lambda rng, rows: rng.gamma(2, 10, len(rows)).clip(0, 200),
    "signed values": lambda rng, rows: rng.normal(5, 30, len(rows)).clip(-200, 200),
    "values by rows": lambda _, rows: np.where(rows > np.quantile(rows, 0.5), 190.0, 10.0),
}
"""Of rows, by how many rows their people have."""
SKEW, SIGNED, _ = VALUES
AGGREGATES = ("COUNT(*)", "SUM(x)", "AVG(x)", "VARIANCE(x)")
UNITS = (100, 300, 1_000, 5_000, 50_000)
GROUPS = (1, 3, 10, 100)
PRICES = ("ε 0.2", "ε 1", "ε 3", "pure 1")


@dataclass(frozen=True)
class Cell:
    """One setting."""

    law: str
    units: int
    groups: int
    concentrated: bool
    price: str
    selected: bool
    aggregate: str
    values: str = SKEW
    max_rows: int | None = None

    @property
    def epsilon(self) -> float:
        """What a question costs."""
        return float(self.price.split()[1])

    @property
    def budget(self) -> dp.PureDP | dp.ApproxDP:
        """A budget that never ends."""
        return dp.PureDP(1e6) if self.price.startswith("pure") else dp.ApproxDP(1e6, DELTA)

    @property
    def name(self) -> str:
        """As it is reported."""
        where = "" if self.groups == 1 else f", {self.groups} groups"
        where += ", concentrated" if self.concentrated else ""
        where += ", selected" if self.selected else ""
        of = "" if self.values == SKEW else f" of {self.values}"
        return f"{self.law}, {self.units:,} people{where}, {self.price}, {self.aggregate}{of}"

    @property
    def question(self) -> str:
        """What is asked."""
        if self.groups == 1:
            return f"SELECT {self.aggregate} AS v FROM t"  # noqa: S608  (our own words)
        return f"SELECT g, {self.aggregate} AS v FROM t GROUP BY g"  # noqa: S608


@dataclass
class Tally:
    """What became of the intervals of a cell."""

    asked: int = 0
    refused: int = 0
    two: int = 0
    held: int = 0
    lower: int = 0
    lower_held: int = 0
    widths: list[float] = field(default_factory=list)
    seconds: float = 0.0

    def add(self, low: float, high: float, truth: float, best: float) -> None:
        """One interval."""
        self.lower += 1
        self.lower_held += low <= truth
        if math.isfinite(high):
            self.two += 1
            self.held += low <= truth <= high
            self.widths.append((high - low) / (4 * best) if best else math.nan)


def cells(seed: int, many: int) -> list[Cell]:
    """Some of all cells that make sense, by a seed."""
    laws = [*LAWS, *HELD_OUT]
    every = [
        Cell(*each)
        for each in itertools.product(
            laws, UNITS, GROUPS, (False, True), PRICES, (False, True), AGGREGATES, VALUES
        )
    ]
    sensible = [
        cell
        for cell in every
        if not (cell.groups == 1 and (cell.concentrated or cell.selected))
        and not (cell.price.startswith("pure") and cell.selected)
        and cell.units >= 30 * cell.groups
        and not (cell.aggregate == "COUNT(*)" and cell.values != SKEW)
    ]
    picked = np.random.default_rng(seed).choice(len(sensible), min(many, len(sensible)), False)
    return [sensible[place] for place in sorted(picked)]


def declared() -> list[Cell]:
    """Cells with `max_rows` declared: generous, tight, and with a few heavy people beyond."""
    laws = ("Poisson 10", "geometric 10", "lognormal 1.5, 1", "Pareto 2", "Pareto 1.6", HEAVY)
    return [
        Cell(law, units, groups, False, price, False, aggregate, max_rows=20)
        for law in laws
        for units, groups, price, aggregate in (
            (500, 1, "ε 1", "COUNT(*)"),
            (5_000, 1, "ε 1", "COUNT(*)"),
            (5_000, 1, "pure 1", "COUNT(*)"),
            (5_000, 3, "ε 1", "COUNT(*)"),
            (50_000, 3, "ε 1", "SUM(x)"),
            (50_000, 1, "ε 1", "COUNT(*)"),
            (50_000, 3, "ε 1", "AVG(x)"),
        )
    ]


def table(rng: np.random.Generator, cell: Cell) -> dict[str, Any]:
    """Whose each row is, in which group, with what value."""
    rows = (LAWS | HELD_OUT | ONLY_DECLARED)[cell.law](rng, cell.units).astype(int)
    who = np.repeat(np.arange(cell.units), rows)
    shares = np.arange(1, cell.groups + 1, dtype=float) ** -0.9
    group = rng.choice(cell.groups, len(who), p=shares / shares.sum())
    if cell.concentrated:
        heavy = np.argsort(-rows)[: max(1, cell.units // 50)]
        home = np.full(cell.units, -1)
        home[heavy] = rng.integers(cell.groups // 2, cell.groups, len(heavy))
        group = np.where(home[who] >= 0, home[who], group)
    return {"who": who, "g": group, "x": VALUES[cell.values](rng, rows[who].astype(float))}


def truth(cell: Cell, data: dict[str, Any], group: int | None) -> float:
    """Plain SQL on the table."""
    x = data["x"] if group is None else data["x"][data["g"] == group]
    made = {"COUNT(*)": len(x), "SUM(x)": x.sum()}
    if cell.aggregate in made:
        return float(made[cell.aggregate])
    if not len(x):
        return math.nan
    return float(x.mean() if cell.aggregate == "AVG(x)" else x.var(ddof=1))


def best(cell: Cell, data: dict[str, Any]) -> float:
    """The least root mean squared error of a count of all rows with any fixed bound."""
    if cell.groups > 1 or cell.aggregate != "COUNT(*)":
        return 0.0
    rows = np.bincount(data["who"])
    rho = float(dp.Budget(dp.ApproxDP(1e6, DELTA)).rho_for(Fraction(str(cell.epsilon))))
    wide = math.sqrt(2) / cell.epsilon if "pure" in cell.price else 1 / math.sqrt(2 * rho)
    bounds = 2.0 ** np.arange(0, 24, 0.25)
    return min(math.hypot((rows - np.minimum(rows, b)).sum(), wide * b) for b in bounds)


def measured(cell: Cell, runs: int, seed: int) -> Tally:
    """Ask so many times, of tables made anew."""
    rng, tally = np.random.default_rng([seed, zlib.crc32(repr(cell).encode())]), Tally()
    for _ in range(runs):
        data = table(rng, cell)
        keys = {} if cell.selected or cell.groups == 1 else {"g": range(cell.groups)}
        held = dp.PrivateTable(
            pa.table(data),
            unit="who",
            population="p",
            bounds={"x": (-200 if cell.values == SIGNED else 0, 200)},
            keys=keys,
            max_rows=cell.max_rows,
        )
        tally.asked += 1
        began = time.process_time()
        with dp.Session({"t": held}, budget=cell.budget, ledger=dp.Ledger()) as session:
            try:
                answer = session.sql(cell.question, epsilon=cell.epsilon)
            except dp.NotAnsweredError:
                tally.refused += 1
                continue
        ends = answer.intervals().to_pylist()
        tally.seconds += time.process_time() - began
        oracle = best(cell, data)
        for row in ends:
            exact = truth(cell, data, row.get("g"))
            if math.isfinite(exact):
                tally.add(row["v_low"], row["v_high"], exact, oracle)
    return tally


def upper(held: int, asked: int) -> float:
    """The largest share that so few hits may come of, but for one in ten thousand."""
    return 1.0 if held == asked else float(beta.isf(RISK, held + 1, asked - held))


def missed(cell: Cell, tally: Tally) -> list[str]:
    """Which bars a cell misses for sure. Intervals of one run lean on each other: a run is one."""
    found = []
    runs = max(1, tally.asked - tally.refused)
    each = max(1, round(tally.lower / runs))

    def short(held: int, asked: int, bar: float) -> bool:
        return asked > 0 and upper(math.ceil(held / each), math.ceil(asked / each)) < bar

    if short(tally.lower_held, tally.lower, 0.965):
        found.append("lower ends")
    usual, counts = cell.price == "ε 1" and not cell.concentrated, cell.aggregate == "COUNT(*)"
    hidden = cell.law == HEAVY and cell.units <= 5_000
    if usual and cell.units >= 500 and not hidden:
        bar = 0.9 if cell.groups == 1 and counts else 0.85
        if short(tally.held, tally.two, bar):
            found.append("two ends")
    if usual and counts and cell.units >= 300 and not cell.selected:
        answered = tally.asked - tally.refused
        if upper(answered, tally.asked) < 0.98:
            found.append("not answered")
    return found


def public(folder: Path, runs: int) -> list[tuple[str, Tally]]:
    """Questions of a newcomer about public tables; nothing is declared, or bounds of columns."""
    tallies: dict[str, Tally] = {}
    with TemporaryDirectory() as work:
        for bounded, _ in itertools.product((False, True), range(runs)):
            for number in asked(folder, Path(work), (1.0, 0.2), bounded=bounded):
                declared = "columns' bounds declared" if bounded else "nothing declared"
                name = f"{number.table.split('_')[0]}, {declared}, ε {number.epsilon:g}"
                tally = tallies.setdefault(name, Tally())
                tally.asked += 1
                if number.sentence:
                    tally.refused += 1
                    continue
                tally.add(number.low, number.high, number.truth, abs(number.truth) / 4)
                if not number.low <= number.truth <= number.high:
                    ends = f"[{number.low:,.5g}, {number.high:,.5g}]"
                    what = f"{number.question} {number.key}"
                    print(f"missed: {name}: {what}: {number.truth:,.5g} is not in {ends}")
    return list(tallies.items())


COLUMNS: dict[str, Law] = {
    "N(2.6, 8)": lambda rng, n: rng.normal(2.6, 8, n),
    "gamma(2, 10)": lambda rng, n: rng.gamma(2, 10, n),
    "U(0, 100)": lambda rng, n: rng.uniform(0, 100, n),
    "lognormal(3, 1)": lambda rng, n: rng.lognormal(3, 1, n),
    "5 + 2 t(3)": lambda rng, n: 5 + 2 * rng.standard_t(3, n),
    "60 % zeros": lambda rng, n: np.where(rng.random(n) < 0.6, 0.0, rng.gamma(2, 500, n)),
    "years": lambda rng, n: rng.integers(1990, 2021, n).astype(float),
}
COLUMN_UNITS = (300, 1_629, 20_000)


def unbounded(runs: int, seed: int, folder: Path | None) -> list[tuple[str, Tally]]:
    """Means of columns without bounds."""
    rng, made = np.random.default_rng([seed, 24]), dict[str, Callable[[], Floats]]()
    for name, law in COLUMNS.items():
        for units in COLUMN_UNITS:
            made[f"{name}, {units:,}"] = lambda law=law, units=units: law(rng, units)  # type: ignore[misc]
    if folder is not None and (folder / "nhefs.csv.gz").exists():
        raw = csv.read_csv(folder / "nhefs.csv.gz").select(["wt82_71", "qsmk"])
        chosen = raw.filter(pa.array(np.array(raw["qsmk"]) == 0))["wt82_71"].drop_null()
        made["NHEFS"] = lambda: np.array(chosen, dtype=float)
    found = []
    for name, drawn in made.items():
        tally = Tally()
        for _ in range(runs):
            x = drawn()
            held = dp.PrivateTable(pa.table({"x": x}), unit=dp.ROW, population="p")
            tally.asked += 1
            began = time.process_time()
            budget = dp.ApproxDP(1e6, DELTA)
            with dp.Session({"t": held}, budget=budget, ledger=dp.Ledger()) as session:
                try:
                    answer = session.sql("SELECT AVG(x) AS v FROM t", epsilon=1.0)
                except dp.NotAnsweredError:
                    tally.refused += 1
                    continue
            (row,) = answer.intervals().to_pylist()
            tally.seconds += time.process_time() - began
            tally.add(row["v_low"], row["v_high"], float(x.mean()), 0.5)
        told(name, tally)
        found.append((name, tally))
    return found


def missed_columns(listed: Sequence[tuple[str, Tally]]) -> list[str]:
    """Which means miss their bar for sure."""
    short = [f"{name}: held" for name, e in listed if e.two and upper(e.held, e.two) < 0.95]
    wide = [n for n, e in listed if n == "NHEFS" and e.widths and np.median(e.widths) > 1.5]
    return short + [f"{name}: width" for name in wide]


def row_of(tally: Tally) -> list[str]:
    """The figures of a cell, as texts."""
    return [
        f"{tally.held / tally.two:.3f}" if tally.two else "-",
        f"{tally.lower_held / tally.lower:.3f}" if tally.lower else "-",
        f"{tally.refused}/{tally.asked}",
        f"{(tally.lower - tally.two) / tally.lower:.2f}" if tally.lower else "-",
        f"{np.nanmedian(tally.widths):.2f}" if np.isfinite(tally.widths).any() else "-",
        f"{tally.seconds / max(1, tally.asked):.2f}",
    ]


def told(name: str, tally: Tally) -> None:
    """A line for whoever waits."""
    print(name, *row_of(tally), sep=" | ", file=sys.stderr, flush=True)


def report(listed: Sequence[tuple[str, Tally]], title: str) -> None:
    """A table of cells."""
    made = Table(
        "cell", "two ends", "lower", "not answered", "at least", "width", "CPU s", title=title
    )
    for name, tally in listed:
        made.add_row(name, *row_of(tally))
    Console(width=140).print(made)


def main() -> int:
    """Measure; with --check, exit non-zero where a bar is missed."""
    parser = argparse.ArgumentParser(description="Coverage of the truth, nothing declared")
    parser.add_argument("--check", action="store_true", help="exit non-zero where a bar is missed")
    parser.add_argument("--cells", type=int, default=200, help="how many")
    parser.add_argument("--runs", type=int, default=40, help="of each cell")
    parser.add_argument("--seed", type=int, default=1, help="by which cells are drawn")
    parser.add_argument("--data", type=Path, help="a folder of public tables")
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}, {arguments.cells} cells, {arguments.runs} runs each")
    found, short = [], list[str]()
    for cell in cells(arguments.seed, arguments.cells):
        tally = measured(cell, arguments.runs, arguments.seed)
        told(cell.name, tally)
        found.append((cell.name, tally))
        short += [f"{cell.name}: {bar}" for bar in missed(cell, tally)]
    report(found, "made-up tables")
    bounded = []
    for cell in declared()[: arguments.cells]:
        tally = measured(cell, arguments.runs, arguments.seed)
        told(f"max_rows=20, {cell.name}", tally)
        bounded.append((cell.name, tally))
        short += [f"max_rows=20, {cell.name}: {bar}" for bar in missed(cell, tally)]
    report(bounded, "max_rows=20 declared")
    found += bounded
    if arguments.data is not None:
        tables = public(arguments.data, arguments.runs)
        report(tables, "public tables (width over the truth)")
        short += [name for name, each in tables if each.two and upper(each.held, each.two) < 0.94]
        held = sum(each.held for _, each in tables)
        print(f"public tables: {held} of {sum(each.two for _, each in tables)} intervals hold")
    means = unbounded(arguments.runs, arguments.seed, arguments.data)
    report(means, "means of columns without bounds, ε 1 (half-width)")
    short += missed_columns(means)
    held = sum(each.held for _, each in found)
    two = sum(each.two for _, each in found)
    lower = sum(each.lower_held for _, each in found) / max(1, sum(e.lower for _, e in found))
    print(f"honesty: two ends hold {held / max(1, two):.3f}, lower ends {lower:.3f}; ", end="")
    print("bars met" if not short else "BARS MISSED: " + "; ".join(short))
    return 1 if arguments.check and short else 0


if __name__ == "__main__":
    sys.exit(main())
