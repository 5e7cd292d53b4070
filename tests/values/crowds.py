"""Crowds: thousands of units with few different values, and hostile units that may join them.

Ties need thousands of rows. A crowd is made from a number alone, so that what failed can be seen
again; its schema is a world of the fuzzer, whose grammar writes the questions.
"""

import random
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property

import pyarrow as pa

import deniable as dp
from fuzz.hostile import Column, Table, World, array

UNITS, ROWS = 2_000, 3
GUESTS = 8
PLACES = ("first", "middle", "last")
SIZES = ((1, 1), (1, 3), (1, 200), (3, 40), (20, 2))  # hostile units, and rows of each

_BIG = 1.7976931348623157e308
_TIES = {
    "integer": [0, 1, 1, 2, 3, 5, -1, None],
    "number": [0.0, -0.0, 0.0, -0.0, 0.5, 1.0, -2.5, float("nan"), None],
    "text": ["a", "b", "Ada", "5", "", "é", "e\u0301", "i\u0307", "x y", None],
    "boolean": [True, False, None],
    "date": [date(2024, 1, 31), date(2024, 2, 29), date(2023, 12, 31), date(2023, 1, 1), None],
    "timestamp": [datetime(2024, 1, 31, 23, 59, 59), datetime(2024, 3, 31, 2, 30), None],
}
_EXTREMES = {
    "integer": [-(2**63), 2**63 - 1, 2**62, -(2**31), 2**53 + 1, 10**18, 0, None],
    "number": [
        *(0.0, -0.0, float("nan"), float("inf"), float("-inf"), _BIG, -_BIG, 5e-324, -5e-324),
        *(2.2250738585072014e-308, 2.0**63, -(2.0**63), 4503599627370495.5, 1e-200, 1e200, None),
    ],
    "text": [
        *("é", "e\u0301", "Zoë", "İ", "ß", "ﬁ", "😀", "", "A", "nan", "1e400", "now", "infinity"),
        *("2024-02-30", "5877642-06-25 (BC)", "%_", "\\", "[(", "x" * 5_000, "é" * 32_768),
        *("x" * 70_000, "-1", "true", None),
    ],
    "boolean": [True, False, None],
    "date": [date.min, date.max, 2**31 - 1, -(2**31) + 1, -(2**31) + 2, 2_932_897, -719_163, None],
    "timestamp": [
        *(datetime.min, datetime.max, 2**63 - 1, 2 - 2**63, 1 - 2**63, 9 * 10**18),
        *(253_402_300_800_000_000, -62_135_596_800_000_001, None),
    ],
}
_UNCHECKED = [b"\xff\xfe", b"a\xc3", b"\xed\xa0\x80", "a\0b"]  # no engine's own table has such text
_FAR = {  # as Postgres writes them
    "date": ["infinity", "-infinity", "4713-01-01 BC", "0001-01-01", "9999-12-31", "5874897-12-31"],
    "timestamp": ["infinity", "-infinity", "4713-01-01 BC", "9999-12-31 23:59:59.999999"],
}
_TYPES = {
    "integer": [pa.int64(), pa.int32(), pa.uint64()],
    "number": [pa.float64(), pa.float64(), pa.float32(), pa.decimal128(14, 2)],
    "text": [pa.string(), pa.string(), pa.dictionary(pa.int32(), pa.string())],
    "boolean": [pa.bool_()],
    "date": [pa.date32()],
    "timestamp": [pa.timestamp("us"), pa.timestamp("ns")],
}
_PLAIN_TYPES = {kind: types[:1] for kind, types in _TYPES.items()}
_KEYS = {
    "integer": [0, 1, 2, None],
    "text": ["a", "b", "é", "e\u0301", None],
    "boolean": [True, False],
    "date": [date(2024, 1, 31), date(2024, 2, 29)],
    "timestamp": [datetime(2024, 1, 31, 23, 59, 59)],
}
_BOUNDS = {"integer": [(0, 100), (-5, 5)], "number": [(0, 100), (-0.5, 2.25), (0, 1e6)]}

Cells = dict[str, list]
Tables = dict[str, Cells]
"""Of each table, the cells of each column."""


@dataclass(frozen=True)
class Guests:
    """Hostile units that join a crowd: how many, where among its rows, and their own rows."""

    units: int
    place: str
    tables: Tables

    def among(self, size: int) -> int:
        """The place in a table of this size."""
        return {"first": 0, "middle": size // 2, "last": size}[self.place]


@dataclass(frozen=True)
class Crowd:
    """A schema, the rows of a crowd, and the groups of guests that may join it, one at a time."""

    world: World
    source: str
    tables: Tables
    guests: tuple[Guests, ...]

    def table(self, table: Table, guests: Guests | None, *, alone: bool) -> pa.Table:
        """A table without guests, with them, or of them alone; public ones are as they are."""
        crowd = self.arrow[table.name]
        if guests is None or table.unit is None:
            return crowd
        added = arrow(table, guests.tables[table.name])
        if alone:
            return added
        place = guests.among(len(crowd))
        parts = [crowd.slice(0, place), added, crowd.slice(place)]
        return pa.concat_tables(parts).unify_dictionaries().combine_chunks()

    def cells(self, table: Table, guests: Guests | None, *, alone: bool) -> Cells:
        """The same as `table`, as Python's values."""
        crowd = self.tables[table.name]
        if guests is None or table.unit is None:
            return crowd
        added = guests.tables[table.name]
        if alone:
            return added
        place = guests.among(len(next(iter(crowd.values()))))
        return {name: cells[:place] + added[name] + cells[place:] for name, cells in crowd.items()}

    @property
    def everyone(self) -> Guests:
        """All guests together."""
        tables: Tables = {}
        for table in self.world.tables[:3]:
            parts = [guests.tables[table.name] for guests in self.guests]
            tables[table.name] = {
                name: [cell for part in parts for cell in part[name]] for name in parts[0]
            }
        return Guests(sum(guests.units for guests in self.guests), "last", tables)

    @cached_property
    def arrow(self) -> dict[str, pa.Table]:
        """The crowd's own tables."""
        return {each.name: arrow(each, self.tables[each.name]) for each in self.world.tables}


def crowd(seed: object, source: str, units: int = UNITS) -> Crowd:
    """A crowd with eight groups of guests, whose tables are of this source."""
    rng = random.Random(f"crowd {seed} {source}")
    most = rng.choice([1, 3, 3, 10, None])
    guarantee, spend = rng.choice(
        [(dp.ApproxDP(1e6, 1e-6), {"epsilon": 1}), (dp.PureDP(10**6), {"epsilon": 1})]
    )
    kind = rng.choice(["integer", "text", "text", "date"])
    types = _PLAIN_TYPES if source in {"postgres", "spark"} else _TYPES
    unit = Column("u", kind, types[kind][0])
    tables = (
        Table("t", (unit, *_columns(rng, types, 9)), (), "u", "people", most, 2),
        Table("v", (unit, *_columns(rng, types, 6)), (), "u", "people", most, 2),
        Table("r", _columns(rng, types, 6), (), dp.ROW, "rows", 1, 1),
        Table("w", _columns(rng, types, 4), ()),
    )
    world = World(0, tables, dp.Budget(guarantee), spend)
    pools = {table.name: _pools(rng, table, source) for table in tables}
    people = [None, *(_unit(number, kind) for number in range(units))]
    sizes = {"t": ROWS * units, "v": units, "r": units, "w": 5}
    made = {}
    for table in tables:
        size = sizes[table.name]
        made[table.name] = _filled(rng, pools[table.name], size)
        if table.unit == "u":
            made[table.name]["u"] = rng.choices(people, k=size)
    guests = tuple(_guests(rng, tables, pools, 20 * number) for number in range(GUESTS))
    return Crowd(world, source, made, guests)


def _filled(rng: random.Random, pools: dict[str, tuple[list, list]], size: int) -> Cells:
    """Cells that repeat; in most tables whole rows do, but for the signs of their zeros."""
    cells = {name: rng.choices(ties, k=size) for name, (ties, _) in pools.items()}
    if rng.random() < 0.3:
        return cells
    few = rng.choices(range(4), k=size)
    repeated = {name: [column[place] for place in few] for name, column in cells.items()}
    return {
        name: [rng.choice((0.0, -0.0)) if cell == 0 and isinstance(cell, float) else cell
               for cell in column]
        for name, column in repeated.items()
    }  # fmt: skip


def _columns(rng: random.Random, types: dict, count: int) -> tuple[Column, ...]:
    kinds = [*_TYPES, *rng.choices([*_TYPES], k=5)]
    kinds = kinds[:count] if count >= len(_TYPES) else rng.sample([*_TYPES], count)
    made = []
    for kind in kinds:
        bounds = rng.choice(_BOUNDS[kind]) if kind in _BOUNDS else None
        keys = _KEYS.get(kind) if rng.random() < 0.7 else None
        name = f"{kind[0]}{len(made)}"
        made.append(Column(name, kind, rng.choice(types[kind]), bounds, keys))
    return tuple(made)


def _pools(rng: random.Random, table: Table, source: str) -> dict[str, tuple[list, list]]:
    """The cells of each column that is not the unit's: of the crowd, and of guests."""
    found = {}
    for column in table.columns:
        if column.name == table.unit:
            continue
        ties, extremes = list(_TIES[column.kind]), list(_EXTREMES[column.kind])
        if column.kind == "text" and rng.random() < 0.5:
            ties = [each for each in ties if each is None or each.isascii()]
        if source in {"arrow", "parquet", "spark"} and column.kind == "text":
            extremes += _UNCHECKED
        if source == "postgres":
            extremes = [each for each in extremes if not _beyond(each, column)]
            extremes += _FAR.get(column.kind, [])
        if rng.random() < 0.3:
            ties += rng.sample(extremes, 2)
        found[column.name] = (ties, extremes)
    return found


def _beyond(value: object, column: Column) -> bool:
    """Whether Postgres cannot hold it, or a column of its type cannot."""
    if value is None or column.kind in {"date", "timestamp"}:
        return isinstance(value, int)
    return array([value], column.type).null_count > 0


def _guests(rng: random.Random, tables: tuple[Table, ...], pools: dict, first: int) -> Guests:
    units, each = rng.choice(SIZES)
    made = {}
    for table in tables[:3]:
        size = units * each if table.unit == "u" else units
        made[table.name] = {
            name: rng.choices([*ties, *extremes, *extremes], k=size)
            for name, (ties, extremes) in pools[table.name].items()
        }
        if table.unit == "u":
            kind = table.columns[0].kind
            made[table.name]["u"] = [_unit(-1 - first - n % units, kind) for n in range(size)]
    return Guests(units, rng.choice(PLACES), made)


def _unit(number: int, kind: str) -> object:
    """The name of a unit; hostile ones have negative numbers, and look like others."""
    if kind == "text":
        accent = "e\u0301" if number % 2 else "é"
        return f"p{number}" if number % 5 else f"{accent}{abs(number)}{'x' * (number < 0)}"
    if kind == "date":
        return date.fromordinal(700_000 + number)
    return -(2**63) if number == -1 else number


def arrow(table: Table, cells: Cells) -> pa.Table:
    """A table of the schema; cells that do not fit are NULL."""
    return pa.table({each.name: _taken(cells[each.name], each.type) for each in table.columns})


def _taken(cells: list, kind: pa.DataType) -> pa.Array:
    """Cells of few different values, each made once."""
    known = dict[tuple, int]()
    places = [known.setdefault((type(cell), repr(cell)), len(known)) for cell in cells]
    first = dict(zip(reversed(places), reversed(cells), strict=True))
    values = [first[place] for place in range(len(known))]
    if pa.types.is_dictionary(kind):
        listed = [None if first[place] is None else place for place in places]
        texts = array([value or "" for value in values], pa.string())
        return pa.DictionaryArray.from_arrays(pa.array(listed, pa.int32()), texts)
    return array(values, kind).take(pa.array(places, pa.int64()))
