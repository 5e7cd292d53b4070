"""From noisy statistics to the answer: arithmetic, HAVING, ORDER BY and LIMIT, all for free.

Everything here is post-processing: it sees released numbers, public keys and the question.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from itertools import pairwise
from typing import Any

import duckdb
import numpy as np
from sqlglot import exp

from deniable.engines.literals import kind_of_value
from deniable.engines.scratch import borrowed
from deniable.engines.trees import ordered
from deniable.errors import QueryError
from deniable.intervals import Ends, Floats, Normal
from deniable.query.plan.counted import names
from deniable.query.plan.keys import Group
from deniable.query.plan.measures import (
    ColumnNoise,
    Cross,
    Linear,
    Located,
    Measure,
    Ratio,
    Spread,
    linearised,
)
from deniable.query.plan.plan import Output, Plan
from deniable.query.read.columns import Column
from deniable.query.read.grouping import agreeing
from deniable.query.read.values.operators import condition, read_column
from deniable.query.read.values.value import finished
from deniable.query.show.beyond import Beyond
from deniable.query.show.columns import TruthOfColumns
from deniable.query.show.truth import (
    Clipped,
    Cut,
    Measured,
    Moved,
    OfCutRows,
    Total,
    TruthOfDistinct,
    TruthOfRatio,
    TruthOfSum,
    about,
)
from deniable.tables import SQL_TYPES, ColumnType

_CHUNK = 500

Values = list[Any]


@dataclass(frozen=True, eq=False)
class Noisy:
    """What was released: keys, noisy statistics (SCALE taken out), and the law of each column."""

    keys: list[tuple[Any, ...]]
    x: Floats
    noise: tuple[ColumnNoise, ...]
    cut: Cut | None = None
    beyond: Beyond | None = None
    clipped: Clipped | None = None

    @property
    def restored(self) -> Floats:
        """The statistics, with what a bound took away put back."""
        made = self.x.copy()
        if self.clipped is not None:
            made[:, 0] += self.clipped.likely
        if self.beyond is not None:
            made[:, : self.beyond.likely.shape[1]] += self.beyond.likely
        return made


@dataclass(frozen=True, eq=False)
class Shaped:
    """The rows that are shown, in order, and the intervals of columns that hold noisy numbers.

    `truth` are intervals with what a bound took away, where that was estimated; `total` those under
    the owner's promise.
    """

    data: dict[str, Values]
    noise: dict[str, Ends]
    truth: dict[str, Ends]
    total: dict[str, Ends]


def shape(plan: Plan, noisy: Noisy) -> Shaped:
    """The answer, and its intervals."""
    noisy = replace(noisy, x=_agreed(plan, noisy.x))
    x, beyond = noisy.x, noisy.beyond
    data, picked = _rows(plan, noisy.keys, x, noisy.restored)
    shown, cut = x[picked], None if noisy.cut is None else noisy.cut.picked(picked)
    kept = None if beyond is None else beyond.picked(picked)
    noise: dict[str, Ends] = {}
    truth: dict[str, Ends] = {}
    total: dict[str, Ends] = {}
    for output in plan.shown.outputs:
        if not (_measures(output) and all(map(_is_number, data[output.name]))):
            continue
        known = plan.shown.measure_of(output)
        if known is None:
            each = _linearised(plan, noisy, x, output)
            plain = Normal(each.middle[picked], each.deviation[picked], each.gaussian)
            noise[output.name] = plain
            if beyond is not None:
                truth[output.name] = _moved(plan, noisy, output, plain, picked)
            elif noisy.clipped is not None:
                truth[output.name] = OfCutRows(plain, noisy.clipped, rises=False)
            continue
        noise[output.name] = Measured(known, shown, noisy.noise)
        about_truth = _truth(plan, noisy, known, shown, kept)
        if about_truth is not None:
            truth[output.name] = about_truth
        if cut is not None and isinstance(known, Linear | Ratio):
            total[output.name] = Total(known, cut)
    return Shaped(data, noise, truth, total)


def _truth(
    plan: Plan, noisy: Noisy, known: Measure, shown: Floats, kept: Beyond | None
) -> Ends | None:
    """The intervals of a measure about the truth; None where no bound took anything away."""
    plain, unit, clipped = Measured(known, shown, noisy.noise), plan.contribution, noisy.clipped
    if plan.once and set(known.columns()) <= set(plan.once):
        return None
    if unit.by_rows is not None and _of_distinct(plan, known):
        weights = _weights_of_distinct(plan, known)
        return TruthOfDistinct(plain, unit.by_rows, unit.rows, unit.cap, weights)
    if kept is not None and plan.clips and not isinstance(known, Located):
        return TruthOfColumns(known, shown, noisy.noise, kept)
    if clipped is not None and _of_distinct(plan, known):
        weights = _weights_of_distinct(plan, known)
        return OfCutRows(plain, clipped, rises=bool(weights) and min(weights) > 0)
    if not isinstance(known, Linear | Ratio | Spread | Cross):
        return None
    if clipped is not None:
        return about(known, shown, noisy.noise, clipped)
    if kept is None:
        return None
    if isinstance(known, Linear):
        return TruthOfSum(known, shown, noisy.noise, kept, _signed(plan, known))
    return TruthOfRatio(known, shown, noisy.noise, kept, bounded=not plan.buys_norm)


def _signed(plan: Plan, measure: Linear) -> bool:
    """Whether a row may take away from a sum, by more than rounding."""
    if measure.row is None:
        statistics = plan.counted.statistics
        once = [c < len(statistics) and statistics[c].per_unit for c, _ in measure.terms]
        return not all(once) or any(weight < 0 for _, weight in measure.terms)
    low, high = measure.row
    return low < -1e-3 * high


def _of_distinct(plan: Plan, measure: Measure) -> bool:
    """Whether different values are counted, of each unit so many only."""
    return any(column in _distinct(plan) for column in measure.columns())


def _weights_of_distinct(plan: Plan, measure: Measure) -> tuple[float, ...]:
    """Those of a weighted sum of such counts and nothing else; none of other measures."""
    if not isinstance(measure, Linear) or any(c not in _distinct(plan) for c in measure.columns()):
        return ()
    return tuple(weight for _, weight in measure.terms if weight)


def _distinct(plan: Plan) -> range:
    """The columns of counts of different values."""
    first = len(plan.counted.statistics)
    return range(first, first + len(plan.counted.distinct))


def _rows(
    plan: Plan, keys: list[tuple[Any, ...]], x: Floats, restored: Floats
) -> tuple[dict[str, Values], list[int]]:
    """The rows that are shown, by column, and which ones they are."""
    released = _Released(plan, keys, x, restored)
    picked = _picked(plan, released)
    data = {}
    for output in plan.shown.outputs:
        values = released.evaluate(output.sql)
        data[output.name] = [values[place] for place in picked]
    return data, picked


def _measures(output: Output) -> set[int]:
    """The measures that a column is computed from."""
    columns = output.sql.find_all(exp.Column)
    return {int(column.name[1:]) for column in columns if column.name[0] == "m"}


def _agreed(plan: Plan, x: Floats) -> Floats:
    """Sums over several groupings whose totals agree; what counts units once does not add up."""
    if len(plan.counted.sets) == 1:
        return x
    made, ends = x.copy(), [0]
    shapes = [
        [len(plan.counted.groups[place].keys or ()) for place in each] for each in plan.counted.sets
    ]
    for sizes in shapes:
        ends.append(ends[-1] + math.prod(sizes))
    slices = [slice(*pair) for pair in pairwise(ends)]
    if ends[-1] != len(x):
        return x  # made-up numbers, before anything is asked
    for column, statistic in enumerate(plan.counted.statistics):
        if not statistic.per_unit:
            tables = {
                each: x[part, column].reshape(sizes)
                for each, part, sizes in zip(plan.counted.sets, slices, shapes, strict=True)
            }
            agreed = agreeing(tables)
            for each, part in zip(plan.counted.sets, slices, strict=True):
                made[part, column] = agreed[each].ravel()
    return made


def _linearised(plan: Plan, noisy: Noisy, x: Floats, output: Output) -> Normal:
    """For arithmetic on measures whose law is not known."""

    def value(moved: Floats) -> Floats:
        return _value(plan, noisy.keys, moved, moved, output)

    used = {c for place in _measures(output) for c in plan.shown.measures[place].columns()}
    return linearised(value, x, noisy.noise, sorted(used))


def _value(
    plan: Plan, keys: list[tuple[Any, ...]], x: Floats, restored: Floats, output: Output
) -> Floats:
    made = _Released(plan, keys, x, restored).evaluate(output.sql)
    return np.array([_number(each) for each in made], dtype=np.float64)


def _moved(plan: Plan, noisy: Noisy, output: Output, plain: Normal, picked: list[int]) -> Moved:
    """How far arithmetic moves where as much is lost as may be, or as little.

    Where nothing bounds what is lost, neither end is known: the number may rise by it, or fall.
    """
    beyond = noisy.beyond
    assert beyond is not None
    if beyond.one_sided:
        anywhere = np.full(len(picked), math.inf)
        return Moved(plain, anywhere, anywhere)
    columns, ends = beyond.likely.shape[1], []
    for draws, level in ((beyond.least, 0.025), (beyond.most, 0.985)):
        made = noisy.x.copy()
        made[:, :columns] += np.quantile(draws, level, axis=2)
        value = _value(plan, noisy.keys, made, made, output)[picked] - plain.middle
        ends.append(np.where(np.isfinite(value), value, math.inf))
    below = -np.minimum(np.minimum(*ends), 0.0)
    above = np.maximum(np.maximum(*ends), 0.0)
    return Moved(plain, below, above)


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return math.nan
    return float(value)


_FAILS = "the arithmetic on aggregates fails: names, functions or types do not fit together"


class _Released:
    """The released table: groups g0, ..., measures m0, ..., and the number i of each row."""

    def __init__(
        self, plan: Plan, keys: list[tuple[Any, ...]], x: Floats, restored: Floats
    ) -> None:
        self._groups = plan.counted.groups
        self._columns: dict[str, Values] = {
            name: [key[place] for key in keys]
            for place, name in enumerate(names("g", plan.counted.groups))
        }
        for name, measure in zip(names("m", plan.shown.measures), plan.shown.measures, strict=True):
            used = restored if plan.clips or isinstance(measure, Linear) else x
            self._columns[name] = measure.value(used).tolist()
        sizes = [
            math.prod(len(plan.counted.groups[p].keys or ()) for p in each)
            for each in plan.counted.sets
        ]
        which = [
            each for each, size in zip(plan.counted.sets, sizes, strict=True) for _ in range(size)
        ]
        for place, name in enumerate(names("s", plan.counted.groups)):
            self._columns[name] = [
                int(place not in (which[n] if len(which) == len(keys) else plan.counted.sets[0]))
                for n in range(len(keys))
            ]
        self._columns["i"] = list(range(len(keys)))

    def evaluate(self, expression: exp.Expr) -> Values:
        """The values of an expression, row by row."""
        if isinstance(expression, exp.Column):
            return self._columns[expression.name]
        rows = self.run(f"SELECT {self.written(expression)} FROM released ORDER BY i")
        return [float(v) if isinstance(v, Decimal) else v for (v,) in rows]

    def written(self, expression: exp.Expr) -> str:
        """An expression of released numbers, as SQL that cannot fail."""
        return str(finished(read_column(expression, self.find, "the answer")).sql("duckdb"))

    def find(self, column: exp.Column) -> Column:
        """What is known of a released column."""
        letter, place = column.name[0], column.name[1:]
        if letter == "g":
            return Column(self._groups[int(place)].kind)
        return Column(ColumnType.NUMBER if letter == "m" else ColumnType.INTEGER)

    def run(self, text: str) -> list[tuple[Any, ...]]:
        """Run SQL on it; nothing but released numbers is in reach."""
        if not self._columns["i"]:
            return []
        with borrowed() as connection:
            try:
                self._fill(connection)
                return connection.execute(text).fetchall()
            except duckdb.Error:
                raise QueryError(_FAILS) from None

    def _type(self, name: str, values: Values) -> str:
        """The engine's type of a column: that of its group, whatever was released of it."""
        if name[0] == "m":
            return "DOUBLE"
        kind = self._groups[int(name[1:])].kind if name[0] == "g" else ColumnType.INTEGER
        some = next((value for value in values if value is not None), 0)
        return SQL_TYPES[kind_of_value(some) if kind is None else kind]

    def _fill(self, connection: duckdb.DuckDBPyConnection) -> None:
        kinds = ", ".join(f"{name} {self._type(name, v)}" for name, v in self._columns.items())
        connection.execute(f"CREATE TEMP TABLE released ({kinds})")
        rows = list(zip(*self._columns.values(), strict=True))
        for start in range(0, len(rows), _CHUNK):
            chunk = rows[start : start + _CHUNK]
            places = ", ".join(["(" + ", ".join("?" * len(self._columns)) + ")"] * len(chunk))
            flat = [value for row in chunk for value in row]
            connection.execute(f"INSERT INTO released VALUES {places}", flat)


def _picked(plan: Plan, released: _Released) -> list[int]:
    """The rows that HAVING, ORDER BY and LIMIT leave, in order."""
    everything = released.evaluate(exp.column("i"))
    if plan.shown.having is None and not plan.shown.order:
        end = None if plan.shown.limit is None else plan.shown.offset + plan.shown.limit
        return everything[plan.shown.offset : end]
    text = "SELECT i FROM released"
    if plan.shown.having is not None:
        text += f" WHERE {condition(plan.shown.having, released.find, 'HAVING').sql('duckdb')}"
    values = [read_column(each.this, released.find, "ORDER BY") for each in plan.shown.order]
    pairs = zip(map(finished, values), plan.shown.order, strict=True)
    keys = [ordered(value, each).sql("duckdb") for value, each in pairs]
    text += f" ORDER BY {', '.join([*keys, 'i'])}"
    if plan.shown.limit is not None:
        text += f" LIMIT {plan.shown.limit}"
    if plan.shown.offset:
        text += f" OFFSET {plan.shown.offset}"
    return [row[0] for row in released.run(text)]


def check_shape(plan: Plan) -> None:
    """Run the arithmetic on made-up numbers, so that faults show before anything is spent."""
    for missing in (False, True):
        if not missing or any(None in (group.keys or ()) for group in plan.counted.groups):
            keys = [tuple(_sample(group, missing=missing) for group in plan.counted.groups)]
            x = _agreed(plan, np.full((1, plan.counted.columns), 100.0))
            _rows(plan, keys, x, x)


def _sample(group: Group, *, missing: bool) -> Any:
    """One of its keys: NULL if that is wanted and declared, else another if there is one."""
    keys = group.keys or ()
    if None in keys and (missing or len(keys) == 1):
        return None
    return next((key for key in keys if key is not None), None) or _made_up(group)


def _made_up(group: Group) -> Any:
    examples = {
        ColumnType.INTEGER: 1,
        ColumnType.BOOLEAN: True,
        ColumnType.DATE: date(2000, 1, 1),
        ColumnType.TIMESTAMP: datetime(2000, 1, 1),
    }
    return "x" if group.kind is None else examples.get(group.kind, "x")
