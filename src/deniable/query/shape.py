"""From noisy statistics to the answer: arithmetic, HAVING, ORDER BY and LIMIT, all for free.

Everything here is post-processing: it sees released numbers, public keys and the question.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sqlglot import exp

from deniable.errors import QueryError
from deniable.query.aggregates import measure_form
from deniable.query.measures import ColumnNoise, Floats, Interval, Measure, linearised
from deniable.query.plan import Output, Plan, names

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Noisy:
    """What was released: keys, noisy statistics (SCALE taken out), and the law of each column."""

    keys: list[tuple[Any, ...]]
    x: Floats
    noise: tuple[ColumnNoise, ...]


@dataclass(frozen=True, eq=False)
class Shaped:
    """The rows that are shown, in order, and how to find the intervals of a column."""

    table: pa.Table
    interval: Callable[[str, float], Interval | None]


def shape(plan: Plan, noisy: Noisy) -> Shaped:
    """The answer, and its intervals."""
    released = _released(plan, noisy.keys, noisy.x)
    picked = _picked(plan, released)
    columns = {}
    for output in plan.outputs:
        values = _evaluate(output.sql, released)
        columns[output.name] = values.take(pa.array(picked))
    table = pa.table(columns)
    outputs = {output.name: output for output in plan.outputs}

    def interval(name: str, confidence: float) -> Interval | None:
        output = outputs[name]
        if output.group is not None:
            return None
        low, high = _interval(plan, noisy, output, confidence)
        return low[picked], high[picked]

    return Shaped(table, interval)


def measure_of(plan: Plan, output: Output) -> Measure | None:
    """The measure behind a column, if its interval is known."""
    return measure_form(output.sql, lambda name: plan.measures[int(name[1:])])


def _interval(plan: Plan, noisy: Noisy, output: Output, confidence: float) -> Interval:
    known = measure_of(plan, output)
    if known is not None:
        return known.interval(noisy.x, noisy.noise, confidence)

    def value(x: Floats) -> Floats:
        made = _evaluate(output.sql, _released(plan, noisy.keys, x))
        if pa.types.is_boolean(made.type) or not pa.types.is_primitive(made.type):
            return np.full(len(x), np.nan)
        return np.array(made.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)

    used = sorted({c for measure in plan.measures for c in measure.columns()})
    return linearised(value, noisy.x, noisy.noise, used, confidence)


def _released(plan: Plan, keys: list[tuple[Any, ...]], x: Floats) -> pa.Table:
    columns: dict[str, Any] = {
        name: pa.array([key[place] for key in keys])
        for place, name in enumerate(names("g", plan.groups))
    }
    for name, measure in zip(names("m", plan.measures), plan.measures, strict=True):
        columns[name] = pa.array(measure.value(x))
    columns["i"] = pa.array(np.arange(len(x)))
    return pa.table(columns)


def _evaluate(expression: exp.Expr, released: pa.Table) -> pa.ChunkedArray:
    if isinstance(expression, exp.Column):
        return released.column(expression.name)
    found = _run(f"SELECT i, {expression.sql('duckdb')} AS v FROM released ORDER BY i", released)
    return found.column("v")


def _picked(plan: Plan, released: pa.Table) -> Rows:
    """The rows that HAVING, ORDER BY and LIMIT leave, in order."""
    text = "SELECT i FROM released"
    if plan.having is not None:
        text += f" WHERE {plan.having.sql('duckdb')}"
    order = [each.sql("duckdb") for each in plan.order]
    text += f" ORDER BY {', '.join([*order, 'i'])}"
    if plan.limit is not None:
        text += f" LIMIT {plan.limit}"
    if plan.offset:
        text += f" OFFSET {plan.offset}"
    found: Rows = _run(text, released).column("i").to_numpy()
    return found


def _run(text: str, released: pa.Table) -> pa.Table:
    with duckdb.connect() as connection:
        connection.register("released", released)
        connection.execute("SET error_on_division_by_zero = false")
        try:
            return connection.sql(text).to_arrow_table()
        except duckdb.Error as error:
            first = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise QueryError(f"the arithmetic on aggregates fails: {first[:200]}") from None


def check_shape(plan: Plan) -> None:
    """Run the arithmetic on made-up numbers, so that faults show before anything is spent."""
    keys = [tuple((group.keys or ("x",))[0] for group in plan.groups)]
    columns = len(plan.statistics) + len(plan.distinct)
    noise = ColumnNoise(1.0, lambda _: 1.0, gaussian=True)
    shape(plan, Noisy(keys, np.full((1, columns), 100.0), (noise,) * columns))


def key_arrays(keys: Sequence[tuple[Any, ...]], place: int) -> pa.Array:
    """One column of keys."""
    return pa.array([key[place] for key in keys])
