"""Questions at random: typed productions, relations in relations, and now and then a broken text.

The tables of `productions` say what is written.
"""

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import deniable as dp
from fuzz.hostile import NAMES, Table, World
from fuzz.mutations import MUTATIONS
from fuzz.productions import (
    AGGREGATES,
    ALIKE,
    BROKEN,
    EXPRESSIONS,
    GROUPINGS,
    GROUPS,
    HOSTILE_LITERALS,
    LITERALS,
    MIXED,
    OUTPUTS,
    PAIRED,
    PLACES,
    TOLD_APART,
    WINDOWS,
    WITHIN,
)


@dataclass(frozen=True)
class Known:
    """A column in reach, as it is written, and what makes questions about it answerable."""

    sql: str
    kind: str
    bounded: bool = False
    keyed: bool = False


@dataclass(frozen=True)
class Relation:
    """What stands after FROM, its columns, and its unit's column where it has one."""

    sql: str
    columns: tuple[Known, ...]
    unit: str | None
    population: str

    def of(self, *kinds: str) -> list[str]:
        return [each.sql for each in self.columns if each.kind in kinds]


@dataclass(frozen=True)
class Query:
    """A question with its options; `broken` ones were mutilated on purpose."""

    seed: int
    sql: str
    options: dict[str, object]
    broken: bool


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@dataclass
class Writer:
    """Writes one question about a world; all choices come from one generator."""

    world: World
    rng: random.Random
    options: dict[str, dict] = field(default_factory=lambda: {"bounds": {}, "keys": {}})
    names: int = 0
    filters: float = 0.35
    mixed: float = 0.06
    hostile: float = 0.06
    unbounded: float = 0.1  # of what is summed or ranked has no bounds that anybody declared

    def new_name(self, letter: str) -> str:
        self.names += 1
        return f"{letter}{self.names}"

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def fill(self, production: str, scope: Relation, depth: int) -> str:
        """The production with its holes filled, at most `depth` productions deep."""
        return re.sub(
            r"\{(\w+)\}", lambda hole: self.write(hole.group(1), scope, depth - 1), production
        )

    def write(self, hole: str, scope: Relation, depth: int) -> str:
        if hole == "any":
            hole = self.rng.choice(list(LITERALS))
        if hole == "aggregate":
            return self.fill(self.rng.choice(AGGREGATES), scope, depth)
        if hole == "unit":
            return scope.unit or self.terminal("integer", scope)
        if hole == "by":
            split = f", {self.rng.choice(scope.columns).sql}" if self.chance(0.2) else ""
            return f"PARTITION BY {scope.unit}{split}"
        if hole.startswith("literal_"):
            return self.literal(hole.removeprefix("literal_"))
        if hole == "keyed":
            keyed = [each.sql for each in scope.columns if each.keyed]
            return self.rng.choice(keyed) if keyed else self.write("boolean", scope, 1)
        kind = hole.removeprefix("column_")
        if kind == "bounded" and self.chance(self.unbounded):
            return self.write(self.rng.choice(["integer", "number"]), scope, depth)
        if depth <= 0 or kind != hole or self.chance(0.5):
            return self.terminal(kind, scope)
        if self.chance(self.mixed):
            return f"({self.fill(self.rng.choice(MIXED[kind]), scope, depth)})"
        alike = () if kind == "bounded" else tuple(t.replace("0", kind) for t in ALIKE)
        chosen = self.rng.choice(EXPRESSIONS[kind] + alike)
        return f"({self.fill(chosen, scope, depth)})"

    def terminal(self, kind: str, scope: Relation) -> str:
        if kind == "bounded":
            inside = [each.sql for each in scope.columns if each.bounded]
            return self.rng.choice(inside) if inside else str(self.rng.randrange(9))
        columns = scope.of(kind)
        if columns and self.chance(0.8):
            return self.rng.choice(columns)
        return self.literal(kind)

    def literal(self, kind: str) -> str:
        hostile = HOSTILE_LITERALS[kind]
        return self.rng.choice(hostile if self.chance(self.hostile) else LITERALS[kind])

    def table(self, given: Table) -> Relation:
        """A table of the world, under an alias."""
        alias = self.new_name("t")
        columns = tuple(
            Known(
                f"{alias}.{quoted(each.name)}",
                each.kind,
                bounded=each.bounds is not None and given.unit is not None,
                keyed=(each.keys is not None or each.kind == "boolean") and given.unit is not None,
            )
            for each in given.columns
            if each.name != given.unit
        )
        unit = f"{alias}.{quoted(given.unit)}" if isinstance(given.unit, str) else None
        return Relation(f"{quoted(given.name)} AS {alias}", columns, unit, given.population)

    def relation(self, depth: int) -> Relation:
        """A table, or something made of one."""
        private = [each for each in self.world.tables if each.unit is not None]
        base = self.table(self.rng.choices(private, [6, 2, 2])[0])
        for _ in range(depth):
            if self.chance(0.5):
                continue
            made = self.rng.choice(RELATIONS)(self, base)
            base = base if made is None else made
        return base

    def where(self, scope: Relation) -> str:
        return f" WHERE {self.write('boolean', scope, 2)}" if self.chance(self.filters) else ""

    def declare(self, name: str, kind: str) -> Known:
        """An alias whose bounds, and sometimes keys, the question declares."""
        number = kind in {"integer", "number"}
        if number and self.chance(0.9):
            self.options["bounds"][name] = self.rng.choice([(0, 10), (-1, 1), (0, 1e5)])
        return Known(name, kind, bounded=name in self.options["bounds"])


def rows(writer: Writer, base: Relation) -> Relation:
    """A subquery of rows: some columns, some expressions, the unit under a name of its own."""
    alias, listed, columns, unit = writer.new_name("r"), [], [], None
    for each in writer.rng.sample(base.columns, min(len(base.columns), 5)):
        name = writer.new_name("c")
        listed.append(f"{each.sql} AS {name}")
        columns.append(replace(each, sql=f"{alias}.{name}"))
    if base.unit is not None:
        unit = writer.new_name("w")
        listed.append(f"{base.unit} AS {unit}")
        unit = f"{alias}.{unit}"
    kind = writer.rng.choice(["integer", "number", "text", "boolean", "date"])
    name = writer.new_name("e")
    listed.append(f"{writer.write(kind, base, 2)} AS {name}")
    columns.append(replace(writer.declare(name, kind), sql=f"{alias}.{name}"))
    distinct = "DISTINCT " if base.unit is not None and writer.chance(0.15) else ""
    sql = f"(SELECT {distinct}{', '.join(listed)} FROM {base.sql}{writer.where(base)}) AS {alias}"
    return Relation(sql, tuple(columns), unit, base.population)


def by_unit(writer: Writer, base: Relation) -> Relation | None:
    """One row for each unit, or for each unit and group."""
    if base.unit is None:
        return None
    alias, unit = writer.new_name("b"), writer.new_name("w")
    listed, columns, groups = [f"{base.unit} AS {unit}"], [], [base.unit]
    for _ in range(writer.rng.choice([1, 2, 2])):
        name = writer.new_name("k")
        kind = writer.rng.choice(["number", "number", "number", *WITHIN])
        listed.append(f"{writer.fill(writer.rng.choice(WITHIN[kind]), base, 2)} AS {name}")
        columns.append(replace(writer.declare(name, kind), sql=f"{alias}.{name}"))
    if base.columns and writer.chance(0.3):
        group = writer.rng.choice(base.columns)
        name = writer.new_name("g")
        listed.append(f"{group.sql} AS {name}")
        groups.append(group.sql)
        columns.append(replace(group, sql=f"{alias}.{name}"))
    having = " HAVING COUNT(*) > 1" if writer.chance(0.15) else ""
    sql = (
        f"(SELECT {', '.join(listed)} FROM {base.sql}{writer.where(base)} "
        f"GROUP BY {', '.join(groups)}{having}) AS {alias}"
    )
    return Relation(sql, tuple(columns), f"{alias}.{unit}", base.population)


def windowed(writer: Writer, base: Relation) -> Relation | None:
    """Rows beside what is about the unit's other rows: one window, or several at once."""
    if base.unit is None:
        return None
    alias, listed, columns = writer.new_name("v"), [], []
    for _ in range(writer.rng.choice([1, 1, 2, 3])):
        name, kind = writer.new_name("o"), writer.rng.choice(["integer", "number", *WINDOWS])
        listed.append(f"{writer.fill(writer.rng.choice(WINDOWS[kind]), base, 2)} AS {name}")
        columns.append(replace(writer.declare(name, kind), sql=f"{alias}.{name}"))
    for each in base.columns[:3]:
        kept = writer.new_name("c")
        listed.append(f"{each.sql} AS {kept}")
        columns.append(replace(each, sql=f"{alias}.{kept}"))
    unit = writer.new_name("w")
    listed.append(f"{base.unit} AS {unit}")
    sql = f"(SELECT {', '.join(listed)} FROM {base.sql}) AS {alias}"
    return Relation(sql, tuple(columns), f"{alias}.{unit}", base.population)


def with_public(writer: Writer, base: Relation) -> Relation:
    """A join with the public table, on whatever compares."""
    (public,) = [each for each in writer.world.tables if each.unit is None]
    other = writer.table(public)
    pairs = [
        f"{one.sql} = {two.sql}"
        for one in base.columns
        for two in other.columns
        if one.kind == two.kind
    ]
    both = Relation(base.sql, base.columns + other.columns, base.unit, base.population)
    on = writer.rng.choice(pairs) if pairs else writer.write("boolean", both, 2)
    if writer.chance(0.2):
        on = f"{on} AND {writer.write('boolean', both, 2)}"
    how = writer.rng.choice(["JOIN", "LEFT JOIN", "INNER JOIN"])
    return replace(both, sql=f"{base.sql} {how} {other.sql} ON {on}")


def with_private(writer: Writer, base: Relation) -> Relation | None:
    """A join with another private table through the unit."""
    if base.unit is None:
        return None
    other = writer.table(
        writer.rng.choice([t for t in writer.world.tables if isinstance(t.unit, str)])
    )
    how = writer.rng.choice(["JOIN", "LEFT JOIN"])
    both = Relation("", base.columns + other.columns, base.unit, base.population)
    more = f" AND {writer.write('boolean', both, 2)}" if writer.chance(0.3) else ""
    return replace(both, sql=f"{base.sql} {how} {other.sql} ON {base.unit} = {other.unit}{more}")


def united(writer: Writer, base: Relation) -> Relation | None:
    """Rows of two private tables, one below the other."""
    if base.unit is None:
        return None
    other = writer.table(
        writer.rng.choice([t for t in writer.world.tables if isinstance(t.unit, str)])
    )
    pairs = [(a, b) for a in base.columns for b in other.columns if a.kind == b.kind]
    if not pairs:
        return None
    alias, unit, listed, columns = writer.new_name("a"), writer.new_name("w"), ([], []), []
    for pair in writer.rng.sample(pairs, min(3, len(pairs))):
        name = writer.new_name("c")
        for side, each in zip(listed, pair, strict=True):
            side.append(f"{each.sql} AS {name}")
        both = [each.bounded for each in pair], [each.keyed for each in pair]
        columns.append(Known(f"{alias}.{name}", pair[0].kind, all(both[0]), all(both[1])))
    sql = (
        f"(SELECT {', '.join([*listed[0], f'{base.unit} AS {unit}'])} FROM {base.sql} UNION ALL "
        f"SELECT {', '.join([*listed[1], f'{other.unit} AS {unit}'])} FROM {other.sql}) AS {alias}"
    )
    return Relation(sql, tuple(columns), f"{alias}.{unit}", base.population)


RELATIONS: tuple[Callable[[Writer, Relation], Relation | None], ...] = (
    *(rows, rows, by_unit, by_unit, windowed, windowed, with_public, with_private, united),
)


def query(world: World, seed: int) -> Query:
    """The question of this number about a world."""
    writer = Writer(world, random.Random(f"query {seed}"))
    rng = writer.rng
    if writer.chance(0.06):
        table = rng.choice(world.tables)
        names = {"table": quoted(table.name), "column": quoted(rng.choice(table.columns).name)}
        sql = rng.choice(BROKEN).format(**names)
        return Query(seed, sql, {}, broken=True)
    sql = select(writer)
    broken = writer.chance(0.25)
    if broken:
        sql = rng.choice(MUTATIONS)(sql, rng)
    options: dict[str, object] = {name: given for name, given in writer.options.items() if given}
    if writer.chance(0.1):
        options["max_rows"] = rng.choice([1, 2, 50])
    if writer.chance(0.5):
        options["max_groups"] = rng.choice([1, 3, 30])
    return Query(seed, sql, options, broken)


def select(writer: Writer, depths: tuple[int, ...] = (0, 0, 0, 1, 1, 2)) -> str:
    """Aggregates of a relation, grouped or not, with what may come afterwards."""
    rng = writer.rng
    base = writer.relation(depth=rng.choice(depths))
    pure = isinstance(writer.world.budget.guarantee, dp.PureDP)
    known = pure or writer.chance(0.75)
    groups = []
    for _ in range(rng.choice([0, 0, 1, 1, 1, 2])):
        chosen = rng.choice(GROUPS)
        usual = known and writer.chance(0.95 if pure else 0.8)
        groups.append(writer.fill("{keyed}" if usual else chosen, base, 2))
    shown = {writer.new_name("key"): group for group in dict.fromkeys(groups)}
    outputs = {
        name_of(writer): writer.fill(rng.choice(OUTPUTS), base, 2)
        for _ in range(rng.choice([1, 1, 1, 2, 3]))
    }
    listed = ", ".join(f"{sql} AS {name}" for name, sql in (shown | outputs).items())
    text = f"SELECT {listed} FROM {base.sql}{writer.where(base)}"
    if groups:
        by = rng.choice([shown.keys(), shown.values(), ["ALL"]])
        several = by != ["ALL"] and not (pure and writer.chance(0.9))
        how = rng.choice(GROUPINGS) if several else "{}"
        text += f" GROUP BY {how.format(', '.join(by))}"
    if groups and writer.chance(0.1):
        text += f" HAVING {writer.fill('{aggregate} > {literal_integer}', base, 2)}"
    text += ordered(writer, [*shown, *outputs])
    if writer.chance(0.08):
        text = f"SELECT {', '.join([*shown, *outputs])} FROM ({text}) AS released_before"
    if writer.chance(0.15) and base.sql.startswith("(SELECT") and " ON " not in base.sql:
        text = as_cte(text, base)
    return text


def told_apart(writer: Writer) -> str:
    """A question about a choice among a unit's rows, by what tells equal values apart."""
    base = writer.table(writer.rng.choices(writer.world.tables[:2], [3, 1])[0])
    kind = writer.rng.choice(["number", "number", *TOLD_APART])
    production = writer.rng.choice(2 * WINDOWS.get(kind, ()) + WITHIN.get(kind, ()))
    chosen = writer.fill(production.replace(f"{{{kind}}}", f"{{column_{kind}}}"), base, 1)
    grouped = "" if " OVER (" in chosen else f" GROUP BY {base.unit}"
    told = writer.rng.choice(TOLD_APART[kind]).format("f")
    inner = f"SELECT {base.unit} AS w, {chosen} AS f FROM {base.sql}{writer.where(base)}{grouped}"
    return f"SELECT COUNT(*) AS n FROM ({inner}) AS q WHERE {told}"


def paired(writer: Writer) -> str:
    """A question about the places of rows in two orders, where equal rows must not be mixed up."""
    base = writer.table(writer.rng.choices(writer.world.tables[:2], [3, 1])[0])
    f, g = (writer.fill(writer.rng.choice(PLACES), base, 1) for _ in range(2))
    inner = f"SELECT {base.unit} AS w, {f} AS f, {g} AS g FROM {base.sql}{writer.where(base)}"
    return f"SELECT COUNT(*) AS n FROM ({inner}) AS q WHERE {writer.rng.choice(PAIRED)}"


def name_of(writer: Writer) -> str:
    """A plain name, or a hostile one."""
    if writer.chance(0.9):
        return writer.new_name("n")
    return quoted(f"{writer.rng.choice(NAMES)}{writer.new_name(' ')}")


def ordered(writer: Writer, names: list[str]) -> str:
    text = ""
    if writer.chance(0.08):
        direction = writer.rng.choice(["", " DESC", " DESC NULLS LAST"])
        text += f" ORDER BY {writer.rng.choice([*names, '1'])}{direction}"
    if writer.chance(0.1):
        text += f" LIMIT {writer.rng.choice([0, 1, 2, 10**6])}"
    return text


def as_cte(text: str, base: Relation) -> str:
    inner, _, alias = base.sql.rpartition(" AS ")
    return f"WITH {alias} AS {inner} {text.replace(base.sql, alias)}"
