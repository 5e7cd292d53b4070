"""Rows that multiply: how many rows a row of a person, and a person, can become in a FROM.

Public tables are counted, at planning: that is public. Of private ones nothing is looked at: before
rows of a person multiply, each side of a join is cut to so many of that person's rows that no
person makes more than `MOST_ROWS`, whatever the data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from deniable.engines.base import Engine, Rows, Snapshot, Step, quoted
from deniable.engines.trees import is_known, named
from deniable.errors import EngineError, QueryError
from deniable.query.read.columns import UNIT, Resolve, RowSet, columns_in
from deniable.query.read.values.operators import read_value
from deniable.query.read.values.value import finished, one_kind

MOST_FAN = 10_000
"""The most rows that one row may become by joining public tables."""

MOST_ROWS = 10_000_000
"""The most rows that one unit may become in a join."""

STORED_GROWTH = 1_000
"""Joined rows are stored where they are at most so many times as many as were read."""

_SIDE, _BEYOND, _PLACED = "deniable_side", "deniable_beyond", "deniable_placed"
_PLACE, _WHO = "deniable_place", "deniable_who"

Count = Callable[[exp.Expr], int]


def no_count(sql: exp.Expr) -> int:
    """Where there are no public tables."""
    raise AssertionError(f"nothing is public in {sql.sql('duckdb')[:60]}")


class Counts:
    """Whole numbers about public tables, each asked of the engine once."""

    def __init__(self, engine: Engine, public: frozenset[str]) -> None:
        self._engine, self._public = engine, public
        self._known: dict[str, int] = {}
        self._named: dict[str, set[str]] = {}

    def __call__(self, sql: exp.Expr) -> int:
        """The one number that a SELECT of public tables gives."""
        text = sql.sql("duckdb")
        if text not in self._known:
            made = {cte.alias for cte in sql.find_all(exp.CTE)}
            named = {table.name for table in sql.find_all(exp.Table)} - made
            if not named <= self._public:
                raise AssertionError("only public tables are counted")
            self._named[text] = {name for name in self._public if quoted(name) in text}
            step = Step(text, text)
            with self._engine.snapshot([step], only=self._public) as snapshot:
                self._known[text] = _number(snapshot.run(step))
        return self._known[text]

    def about(self, steps: Sequence[Step]) -> list[Step]:
        """What was counted of the public tables that steps may read."""
        texts = [text for step in steps for text in (step.select, *step.tables.values())]
        return [
            Step(text, text)
            for text, named in self._named.items()
            if any(quoted(name) in each for name in named for each in texts)
        ]

    def confirm(self, counts: Sequence[Step], snapshot: Snapshot) -> None:
        """Fail where a public table has grown since it was counted; the next question knows.

        What a row of a person becomes was bounded by the number that was known before.
        """
        for step in counts:
            found = _number(snapshot.run(step))
            known, self._known[step.select] = self._known[step.select], found
            if found > known:
                raise EngineError("a public table has grown since the question was planned")


def _number(rows: Rows) -> int:
    ((found,),) = rows
    return int(found or 0)


@dataclass(frozen=True)
class Met:
    """A table of FROM: its rows, the ON by which it is joined, and whether it is LEFT JOINed."""

    relation: RowSet
    on: exp.Expr | None
    left: bool


@dataclass(frozen=True)
class _Equality:
    """What is made of a public table's row, and equals something made of other tables."""

    table: str
    key: exp.Expr
    others: frozenset[str]


@dataclass(frozen=True)
class FanOut:
    """What a FROM makes of rows: `kept` are the sides that are cut, and to how many rows."""

    fan: int = 1
    kept: Mapping[str, int] = field(default_factory=dict)
    most: int | None = None
    growth: int = 1


def spread(met: Mapping[str, Met], where: exp.Expr | None, find: Resolve, count: Count) -> FanOut:
    """How far rows multiply in a FROM; refused where that is too far."""
    private = {name: each.relation for name, each in met.items() if each.relation.private}
    if len(met) == 1:
        (only,) = met.values()
        return FanOut(most=only.relation.most, growth=only.relation.growth)
    equalities = list(_equalities(met, where, find))
    public = {name: each for name, each in met.items() if name not in private}
    if not private:
        _check_public(public, equalities, count)
        return FanOut()
    fan = _fan(public, equalities, set(private), count)
    total = fan * math.prod(each.fan for each in private.values())
    if total > MOST_FAN:
        raise QueryError(
            f"the public tables joined here make up to {total:,} rows of each row of a person; "
            f"{MOST_FAN:,} are the most: join them by = on columns whose values are in few rows"
        )
    return _shared(private, fan)


def _fan(
    public: Mapping[str, Met], equalities: Sequence[_Equality], placed: set[str], count: Count
) -> int:
    """How many rows of all these tables together one row of the placed ones meets at most.

    Rows that are met satisfy every condition. Taken in any order, the rows of a table that go with
    given rows of those before it have one value in the columns that equal something of those.
    """
    fan, placed, waiting = 1, set(placed), dict(public)
    while waiting:
        met = {
            name: _multiplicity(name, waiting[name], equalities, placed, count) for name in waiting
        }
        nearest = min(met, key=lambda name: met[name])
        fan *= max(1, met[nearest])  # LEFT JOIN keeps a row that meets none
        placed.add(nearest)
        del waiting[nearest]
    return fan


def _multiplicity(
    name: str, met: Met, equalities: Sequence[_Equality], placed: set[str], count: Count
) -> int:
    """The most rows of a public table that agree in what is given."""
    found = [each.key for each in equalities if each.table == name and each.others <= placed]
    keys = {key.sql("duckdb"): key for key in found}
    rows = named(met.relation.sql.copy(), name)
    counted = exp.alias_(exp.Count(this=exp.Star()), "n")
    if not keys:
        return count(exp.select(counted).from_(rows))
    groups = exp.select(counted).from_(rows)
    for text in sorted(keys):  # NULL equals nothing
        groups = groups.where(is_known(keys[text].copy())).group_by(keys[text].copy())
    return count(exp.select("MAX(n) AS n").from_(groups.subquery("counted")))


def _check_public(public: Mapping[str, Met], equalities: Sequence[_Equality], count: Count) -> None:
    """Refuse joins of public tables that no engine should be asked to run."""
    kept = {name: each for name, each in public.items() if not each.left}
    rows = {name: _multiplicity(name, each, (), set(), count) for name, each in kept.items()}
    first = max(rows, key=lambda name: rows[name])
    rest = {name: each for name, each in public.items() if name != first}
    made = rows[first] * _fan(rest, equalities, {first}, count)
    if made > max(rows[first], MOST_ROWS):
        raise QueryError(
            f"the public tables joined here make up to {made:,} rows; {MOST_ROWS:,} are the most: "
            "join them by = on columns whose values are in few rows, or add the joined table"
        )


def _equalities(
    met: Mapping[str, Met], where: exp.Expr | None, find: Resolve
) -> Iterator[_Equality]:
    """What is made of a public table and equals something of other tables, wherever that is said.

    The ON of a LEFT JOIN says something of the rows of its own table only, and WHERE nothing of
    rows that are missing.
    """
    said = [(name, each.on) for name, each in met.items()] + [("", where)]
    for place, condition in said:
        for part in conjuncts(condition):
            if not isinstance(part, exp.EQ):
                continue
            ends = [frozenset(c.table for c in columns_in(end)) for end in (part.left, part.right)]
            for side, (mine, others) in enumerate((ends, ends[::-1])):
                if len(mine) != 1 or mine & others:
                    continue
                (table,) = mine
                outer = bool(place) and met[place].left
                if met[table].relation.private or (place != table and (outer or met[table].left)):
                    continue
                yield _Equality(table, _compared(part, find)[side], others)


def _compared(part: exp.EQ, find: Resolve) -> list[exp.Expr]:
    """Both sides of an equality as they are compared: of one type, NULL where they would raise."""
    sides = [read_value(side, find, "a join") for side in (part.left, part.right)]
    _, made = one_kind(sides, "a comparison", "a join")
    return [finished(replace(s, sql=sql)) for s, sql in zip(sides, made, strict=True)]


def conjuncts(condition: exp.Expr | None) -> list[exp.Expr]:
    """The parts of a condition that is joined by AND, brackets or not."""
    if isinstance(condition, exp.Paren):
        return conjuncts(condition.this)
    if isinstance(condition, exp.And):
        return conjuncts(condition.left) + conjuncts(condition.right)
    return [] if condition is None else [condition]


def _shared(private: Mapping[str, RowSet], fan: int) -> FanOut:
    """To how many rows each private side is cut, so that their product has an end.

    Sides that have few rows whatever the data are not cut, and leave more for the others.
    """
    free, bounded, each = dict(private), fan, MOST_ROWS
    while free:
        each = _root(MOST_ROWS // bounded, len(free))
        few = {n: r.most for n, r in free.items() if r.most is not None and r.most <= each}
        if not few:
            break
        bounded *= math.prod(few.values())
        free = {name: relation for name, relation in free.items() if name not in few}
    if len(free) == 1 and bounded == 1:  # nothing multiplies
        (only,) = free.values()
        return FanOut(most=only.most, growth=only.growth)
    kept = {name: _kept(relation, each) for name, relation in free.items()}
    most = bounded * math.prod(kept.values())
    if most > MOST_ROWS:
        raise QueryError(
            f"with max_rows={max(kept.values()):,} one person could make up to {most:,} rows in "
            f"this join; {MOST_ROWS:,} are the most: give a smaller max_rows, or aggregate by the "
            "unit before joining"
        )
    sizes = {name: kept.get(name, relation.most or 1) for name, relation in private.items()}
    whole = fan * math.prod(sizes.values())
    growth = min(r.growth * (whole // sizes[name]) for name, r in private.items())
    cut = {name: rows for name, rows in kept.items() if rows != private[name].most}
    return FanOut(fan, cut, most, growth)


def _kept(relation: RowSet, each: int) -> int:
    """No fewer rows than count in full."""
    kept = max(relation.rows, each)
    return kept if relation.most is None else min(kept, relation.most)


def _root(value: int, degree: int) -> int:
    """The whole part of a root, and at least 1."""
    root = max(1, round(math.pow(value, 1 / degree)))
    while root > 1 and root**degree > value:
        root -= 1
    while (root + 1) ** degree <= value:
        root += 1
    return root


def first_rows(relation: RowSet, most: int) -> RowSet:
    """The same rows, of each unit its first ones only.

    They are put in order by all of their columns: rows that tie are identical, so what is kept is a
    function of the unit's rows, whoever else is there. Only units with more rows are put in order.
    """
    names = [*relation.columns, UNIT]
    beyond = (
        exp.select(exp.alias_(_column(UNIT), _WHO))
        .from_(_SIDE)
        .group_by(_column(UNIT))
        .having(exp.GT(this=exp.Count(this=exp.Star()), expression=exp.Literal.number(most)))
    )
    heavy = exp.select(_column(_WHO)).from_(_BEYOND)
    same = exp.EQ(this=_column(_WHO, _BEYOND), expression=_column(UNIT, _SIDE))
    found = exp.Exists(this=exp.select("1").from_(_BEYOND).where(same))
    light = exp.select(*(_column(name, _SIDE) for name in names)).from_(_SIDE)
    light = light.where(exp.Not(this=found))
    order = [exp.Ordered(this=_column(name), nulls_first=False) for name in relation.columns]
    place = exp.Window(
        this=exp.RowNumber(),
        partition_by=[_column(UNIT)],
        order=exp.Order(expressions=order),
    )
    placed = exp.select(*map(_column, names), exp.alias_(place, _PLACE, quoted=True)).from_(_SIDE)
    placed = placed.where(exp.In(this=_column(UNIT), query=exp.Subquery(this=heavy)))
    first = exp.select(*map(_column, names)).from_(placed.subquery(_PLACED))
    first = first.where(exp.LTE(this=_column(_PLACE), expression=exp.Literal.number(most)))
    made = exp.Union(this=light, expression=first, distinct=False)
    made = made.with_(_SIDE, as_=relation.sql.copy(), materialized=False)
    made = made.with_(_BEYOND, as_=beyond, materialized=True)
    return replace(relation, sql=made)


def _column(name: str, table: str | None = None) -> exp.Column:
    return exp.column(name, table=table, quoted=True)
