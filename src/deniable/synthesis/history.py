"""Five results on answering many queries, as formulas: how wrong each is allowed to be.

Errors are counts, of the worst of |Q| counting queries about n rows from a universe of |X| records.
Formulas are the leading terms of the theorems with all constants 1, but for BLR08, whose constants
are those of Dwork & Roth 2014, Thm 4.5: they show how errors grow, not what a program reaches. Of
DNRRV09 only |Q|^o(1) is stated; |Q|^(1/sqrt(ln|Q|)) stands in for it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from deniable.errors import ParameterError
from deniable.plots import lines
from deniable.privacy.exact import Number, positive, probability, whole

RESULTS = {
    "BLR08": "Blum, Ligett & Roth 2008: one exponential mechanism over small databases, ε-DP",
    "DNRRV09": "Dwork, Naor, Reingold, Rothblum & Vadhan 2009: sqrt(n)·|Q|^o(1), (ε, δ)-DP",
    "DRV10": "Dwork, Rothblum & Vadhan 2010: boosting for queries, (ε, δ)-DP",
    "HR10": "Hardt & Rothblum 2010: online multiplicative weights, (ε, δ)-DP",
    "HLM12": "Hardt, Ligett & McSherry 2012: MWEM, ε-DP",
}


def errors_in_theory(
    *,
    rows: int,
    queries: int,
    universe: int,
    epsilon: Number,
    delta: Number = 1e-9,
    beta: Number = 0.05,
) -> dict[str, float]:
    """The error of each of the five results, never above n: answering 0 is no worse."""
    n, e = float(whole(rows, "rows")), float(positive(epsilon, "epsilon"))
    if min(whole(queries, "queries"), whole(universe, "universe")) < 2:
        raise ParameterError("queries", queries, "two queries and two records are the least")
    q, x = math.log(queries), math.log(universe)
    d = math.log(1 / float(probability(delta, "delta")))
    b = math.log(1 / float(probability(beta, "beta")))
    found = {
        "BLR08": n * ((16 * x * q + 4 * b) / (e * n)) ** (1 / 3),
        "DNRRV09": math.sqrt(n) * math.exp(math.sqrt(q)) * math.sqrt(d) / e,
        "DRV10": math.sqrt(n * x * d) * q**1.5 / e,
        "HR10": math.sqrt(n) * (x * d) ** 0.25 * math.sqrt(q / e),
        "HLM12": n ** (2 / 3) * (x * q / e) ** (1 / 3),
    }
    return {name: min(n, error) for name, error in found.items()}


def plot_history(
    rows: Sequence[int],
    *,
    queries: int,
    universe: int,
    epsilon: Number,
    delta: Number = 1e-9,
    achieved: Mapping[str, Sequence[float]] | None = None,
    path: str | Path,
) -> Path:
    """Draw the five errors, as shares of n, against n; beside what was `achieved` at those n."""
    curves: dict[str, list[float]] = {name: [] for name in RESULTS}
    for n in rows:
        found = errors_in_theory(
            rows=n, queries=queries, universe=universe, epsilon=epsilon, delta=delta
        )
        for name, error in found.items():
            curves[name].append(error / n)
    for name, values in (achieved or {}).items():
        if len(values) != len(rows):
            raise ParameterError("achieved", name, "must have one value for each n")
        curves[name] = [value / n for value, n in zip(values, rows, strict=True)]
    return lines(
        [float(n) for n in rows],
        curves,
        log_x=True,
        log_y=True,
        title=f"Worst error of {queries:,} queries on {universe:,} records, ε = {float(epsilon):g}",
        x_label="rows",
        y_label="error, as a share of the rows",
        path=path,
    )
