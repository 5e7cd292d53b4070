"""Worlds for the fuzzer: tables with hostile names and values, and neighbours of them.

A world is made from a number alone, so that a failure can be seen again. One person's rows hold
marks that nobody else has: no message and no answer may show them.
"""

import random
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from functools import cached_property

import pyarrow as pa

import deniable as dp

MARK = "zq7319qz"
MARKED_NUMBER = 731_973_197_319
MARKS = (MARK, str(MARKED_NUMBER), f"{MARKED_NUMBER:,}", "7.31973197319e")

# Reserved, quoted, blank, foreign; some that Python and the engine put in lower case differently.
NAMES = (
    *("age", "cost", "Ward", "UPPER", "select", "group", "order by", "from", "null", "count"),
    *('quo"te', "it's", "a b", "1st", "x.y", "naïve", "日本", "😀", "a\tb", "`", "/*"),
    *("%", "g0", "t0", "u", "i", "base", "totals", "ß", "value", "date", "interval", "end"),
    *("ΑΒΓ", "İ", "semi;colon", "--", "$1", "@a", ":a", "'a'"),
)
TABLE_NAMES = ("visits", "Order", "select", "Straße", "données", "_", "base", "totals", "released")

_DAY = date(1970, 1, 1)
_PLAIN = {
    "integer": [0, 1, 2, 3, 5, 8, 13, 40, 99],
    "number": [0.0, 0.5, 1.25, 3.0, 17.5, 99.9],
    "text": ["a", "b", "c", "Ada", "5"],
    "boolean": [True, False],
    "date": [date(2024, 1, 31), date(2024, 2, 29), date(2023, 12, 31)],
    "timestamp": [datetime(2024, 1, 31, 23, 59, 59), datetime(2024, 3, 31, 2, 30)],
}
# Dates and times beyond Python's are given as days and microseconds; the ends are the infinities.
HOSTILE = {
    "integer": [None, -1, 2**63 - 1, -(2**63), 10**18, -(10**18), 2**53 + 1],
    "number": [None, float("nan"), float("inf"), float("-inf"), -0.0, 1e308, -1e308, 5e-324, 1e18],
    "text": [
        *(None, "", "O'Neill; DROP TABLE visits --", 'quo"te', "a\0b", "😀" * 3, "x" * 5_000),
        *("-1", "1e400", "nan", "infinity", "2024-02-30", "\\", "%_", "\u202eabc", "[(", "true"),
    ],
    "boolean": [None],
    "date": [None, date.min, date.max, 2**31 - 1, -(2**31) + 1, 2_932_897, -800_000],
    "timestamp": [None, datetime.min, datetime.max, 2**63 - 1, -(2**63) + 1, 9 * 10**18],
}
_TYPES = {
    "integer": [pa.int64(), pa.int64(), pa.int32(), pa.uint64()],
    "number": [pa.float64(), pa.float64(), pa.float32(), pa.decimal128(20, 4)],
    "text": [pa.string(), pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())],
    "boolean": [pa.bool_()],
    "date": [pa.date32()],
    "timestamp": [pa.timestamp("us"), pa.timestamp("us"), pa.timestamp("ns"), pa.timestamp("s")],
}
KINDS = tuple(_TYPES)
_KEYS = {
    "integer": [[0, 1, 2, 3], [5, -1, None], [2**63 - 1, 0]],
    "text": [["a", "b", "c"], ["", "O'Neill; DROP TABLE visits --", None], ["😀", 'quo"te']],
    "boolean": [[True, False], [True], [False, True, None]],
    "date": [[date(2024, 1, 31), date(2024, 2, 29)], [date.min, date.max, None]],
    "timestamp": [[datetime(2024, 1, 31, 23, 59, 59), datetime(2000, 1, 1)]],
}
_BOUNDS = {"integer": [(0, 100), (-5, 5), (7, 8)], "number": [(0, 100), (-0.5, 2.25), (0, 1e6)]}

Row = dict[str, object]


@dataclass(frozen=True)
class Column:
    """A column of a world's table, and what is declared about it."""

    name: str
    kind: str
    type: pa.DataType
    bounds: tuple[float, float] | None = None
    keys: list | None = None


@dataclass(frozen=True)
class Table:
    """A table: private by a unit's column, private by row (`unit` is dp.ROW), or public (None)."""

    name: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    unit: object = None
    population: str = ""
    max_rows: int = 1
    max_groups: int | None = None

    @cached_property
    def arrow(self) -> pa.Table:
        columns = {each.name: [row.get(each.name) for row in self.rows] for each in self.columns}
        return pa.table({c.name: array(columns[c.name], c.type) for c in self.columns})


@dataclass(frozen=True)
class World:
    """Tables, the budget under which they are asked, and what one question may spend."""

    seed: int
    tables: tuple[Table, ...]
    budget: dp.Budget
    spend: dict[str, float]

    def session(
        self,
        ledger: dp.Ledger | None = None,
        budget: dp.Budget | None = None,
        sources: dict | None = None,
    ):
        """The world opened to questions, with a ledger in memory; its rows may be elsewhere."""
        found = sources or {table.name: table.arrow for table in self.tables}
        return dp.Session(
            {table.name: self._opened(table, found[table.name]) for table in self.tables},
            budget=budget or self.budget,
            ledger=dp.Ledger() if ledger is None else ledger,
        )

    def _opened(self, table: Table, source: object) -> dp.PrivateTable | dp.PublicTable:
        # Of files in Spark, their owner promises that no time or decimal lies too far.
        promised = type(source).__name__ == "SparkTable"
        if table.unit is None:
            return dp.PublicTable(source, row_by_row=promised)
        return dp.PrivateTable(
            source,
            row_by_row=promised,
            unit=table.unit,
            population=table.population,
            bounds={c.name: c.bounds for c in table.columns if c.bounds is not None},
            keys={c.name: c.keys for c in table.columns if c.keys is not None},
            max_rows=table.max_rows,
            max_groups=table.max_groups,
            relation=self.budget.relation,
        )


def world(seed: int) -> World:
    """Four tables: two of one population, one whose rows are the units, and a public one."""
    rng = random.Random(f"world {seed}")
    relation = rng.choice(["add_remove", "add_remove", "replace"])
    guarantee, spend = rng.choice(
        [
            (dp.ApproxDP(1e6, 1e-6), {"epsilon": 0.05}),
            (dp.ApproxDP(1e6, 1e-6), {"epsilon": 1}),
            (dp.ApproxDP(1e6, 1e-6), {"epsilon": 30}),
            (dp.PureDP(10**6), {"epsilon": 0.1}),
            (dp.ZCDP(10**6), {"rho": 0.001}),
        ]
    )
    names = rng.sample(TABLE_NAMES, 4)
    unit = Column(
        rng.choice(NAMES), kind := rng.choice(["integer", "text", "date"]), _TYPES[kind][0]
    )
    people = [_unit_name(number, kind) for number in range(rng.choice([1, 8, 12]))]
    first = _private(rng, names[0], unit, people, rng.choice([0, 30, 50, 50]))
    second = _private(rng, names[1], replace(unit, name=rng.choice(NAMES)), people, 20)
    by_row = _filled(rng, Table(names[2], _columns(rng, set(), 6), (), dp.ROW, "rows"), 20)
    by_row = replace(by_row, rows=(_with_marks(by_row.rows[0], by_row.columns), *by_row.rows[1:]))
    public = _filled(rng, Table(names[3], _columns(rng, set(), 4), ()), 5)
    budget = dp.Budget(guarantee, relation=relation)
    return World(seed, (first, second, by_row, public), budget, spend)


def neighbour(given: World, seed: int) -> World:
    """One unit less, or one more whose every value is hostile; replaced where that is protected."""
    rng = random.Random(f"neighbour {seed}")
    fewer, more = rng.choice([(True, False), (False, True)])
    if given.budget.relation == "replace":
        fewer = more = True
    return replace(
        given, tables=tuple(_changed(table, rng, fewer=fewer, more=more) for table in given.tables)
    )


def _changed(table: Table, rng: random.Random, *, fewer: bool, more: bool) -> Table:
    if table.unit is None:
        return table
    if table.unit is dp.ROW:
        kept = table.rows[:-1] if fewer else table.rows
        return replace(table, rows=(*kept, *[_hostile_row(table, rng)] * more))
    unit = str(table.unit)
    kind = table.columns[0].kind
    gone, new = _unit_name(0, kind), _unit_name(77, kind)
    rows = [row for row in table.rows if not fewer or row[unit] != gone]
    added = [{**_hostile_row(table, rng), unit: new} for _ in range(rng.choice([1, 3, 12]) * more)]
    return replace(table, rows=(*rows, *added))


def _hostile_row(table: Table, rng: random.Random) -> Row:
    return {each.name: rng.choice(HOSTILE[each.kind]) for each in table.columns}


def _unit_name(number: int, kind: str) -> object:
    names = {"integer": number - 3, "text": f"p'{number}", "date": date(2000, 1, 1 + number % 28)}
    return names[kind] if number or kind != "integer" else -(2**63)


def _private(rng: random.Random, name: str, unit: Column, people: list, size: int) -> Table:
    columns = (unit, *_columns(rng, {unit.name.lower()}, 7))
    most = rng.choice([1, 3, 10])
    table = Table(name, columns, (), unit.name, "people", most, rng.choice([1, 2, 5]))
    filled = _filled(rng, table, size)
    whose = [people[0]] * size if rng.random() < 0.15 else rng.choices([*people, None], k=size)
    rows = [{**row, unit.name: who} for row, who in zip(filled.rows, whose, strict=True)]
    return replace(filled, rows=tuple(_marked(row, table, people[-1]) for row in rows))


def _marked(row: Row, table: Table, person: object) -> Row:
    """The last person's texts and numbers are recognised wherever they show."""
    return row if row[str(table.unit)] != person else _with_marks(row, table.columns[1:])


def _with_marks(row: Row, columns: Iterable[Column]) -> Row:
    marks = {"text": MARK, "integer": MARKED_NUMBER, "number": float(MARKED_NUMBER)}
    return row | {each.name: marks[each.kind] for each in columns if each.kind in marks}


def _columns(rng: random.Random, taken: set[str], count: int) -> tuple[Column, ...]:
    names = [name for name in NAMES if name.lower() not in taken]
    kinds = [*KINDS, rng.choice(KINDS)][-count:] if count > 5 else rng.sample(KINDS, count)
    made = []
    for name, kind in zip(rng.sample(names, count), kinds, strict=True):
        declared = rng.random() < 0.5 and kind in _KEYS
        bounds = rng.choice(_BOUNDS[kind]) if kind in _BOUNDS and rng.random() < 0.8 else None
        keys = rng.choice(_KEYS[kind]) if declared else None
        made.append(Column(name, kind, rng.choice(_TYPES[kind]), bounds, keys))
    return tuple(made)


def _filled(rng: random.Random, table: Table, size: int) -> Table:
    def value(kind: str) -> object:
        return rng.choice(HOSTILE[kind] if rng.random() < 0.2 else _PLAIN[kind])

    rows = ({each.name: value(each.kind) for each in table.columns} for _ in range(size))
    return replace(table, rows=tuple(rows))


def array(values: Iterable[object], kind: pa.DataType) -> pa.Array:
    """Cells that do not fit the type are NULL; bytes are texts that nobody has checked."""
    if pa.types.is_dictionary(kind):
        return array(values, pa.string()).dictionary_encode()
    return pa.concat_arrays([pa.array([], kind), *(_cell(value, kind) for value in values)])


def _cell(value: object, kind: pa.DataType) -> pa.Array:
    try:
        if isinstance(value, int) and not isinstance(value, bool) and pa.types.is_temporal(kind):
            whole = pa.int32() if pa.types.is_date(kind) else pa.int64()
            return pa.array([value], whole).view(kind)
        if isinstance(value, float) and pa.types.is_decimal(kind):
            value = Decimal(repr(value))
        if isinstance(value, bytes):
            return pa.array([value], pa.binary()).view(pa.string()).cast(kind)
        return pa.array([value], kind)
    except (pa.ArrowException, ArithmeticError, TypeError, ValueError):
        return pa.array([None], kind)
