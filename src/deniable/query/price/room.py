"""Room for a question: what it could take in memory and on disk, from public numbers alone.

A limit that rows reach would tell something about them: a question that could reach it with as many
rows as are promised is refused for everybody, before it is charged.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from deniable.engines.base import Engine, Step
from deniable.engines.leaves import MOST_BYTES
from deniable.engines.literals import whole_literal
from deniable.errors import QueryError
from deniable.query.plan.plan import Plan
from deniable.query.read.catalogue import Catalogue
from deniable.query.read.columns import CELL
from deniable.tables import LONGEST_TEXT, ColumnType

COPIES = 4
"""Rows that are kept, their sums by unit and group, and both once more while they are sorted."""
SOURCES = 2
"""A source that is copied once for a question, with what blocks of the copy leave empty."""


def check_room(plan: Plan, catalogue: Catalogue, engine: Engine, steps: Sequence[Step]) -> None:
    """Refuse a plan whose rows could fill the engine's memory and disk.

    The rows are those of its tables, as many as their `most_rows` promise, times what joins make of
    each; the texts in them are as long as texts can be. The copies that the engine makes of tables
    before these steps count too. Where a table promises nothing, nothing is refused.
    """
    promised = [catalogue.private[name].most_rows for name in plan.tables]
    room = None if None in promised else engine.room()
    if room is None:
        return
    rows = sum(each for each in promised if each is not None)
    held = sum(each.width * each.growth for each in plan.held)
    copies = [_copy(catalogue, *each) for each in _copied(catalogue, engine, steps).items()]
    needed = COPIES * rows * held + SOURCES * sum(copies)
    if needed > room:
        copied = "; of files and views a copy is made: declare fewer columns=, or open a table"
        raise QueryError(
            f"with most_rows= of its tables this question could take {_size(needed)}, and the "
            f"engine has {_size(room)} in memory and on disk: group by numbers or declared keys, "
            f"join fewer rows, or give the engine more room{copied if copies else ''}"
        )


def _copied(
    catalogue: Catalogue, engine: Engine, steps: Sequence[Step]
) -> dict[str, Sequence[str]]:
    """What is copied; public tables are read once more, as they are counted again."""
    texts = [text for step in steps for text in (step.select, *step.tables.values())]
    twice = engine.copied([*steps, *(Step(text, text) for text in texts)])
    public = {name: columns for name, columns in twice.items() if name not in catalogue.private}
    return {**engine.copied(steps), **public}


def _copy(catalogue: Catalogue, name: str, columns: Sequence[str]) -> int:
    """Bytes of a copy of a table: at the worst, or, of a public one, as it is."""
    kinds = {each.lower(): kind for each, kind in catalogue.schemas[name].columns.items()}
    texts = [each for each in columns if kinds[each] == ColumnType.TEXT]
    table = catalogue.private.get(name)
    if table is None:
        row: exp.Expr = whole_literal(CELL * len(columns))
        for each in texts:
            text = exp.Anonymous(this="STRLEN", expressions=[exp.column(each, quoted=True)])
            row = exp.Add(this=row, expression=exp.func("COALESCE", text, whole_literal(0)))
        source = exp.Table(this=exp.to_identifier(name, quoted=True))
        return catalogue.count(exp.select(exp.Sum(this=row)).from_(source))
    unit = table.unit.lower() if isinstance(table.unit, str) else None
    longest = sum(LONGEST_TEXT if each == unit else MOST_BYTES for each in texts)
    return (table.most_rows or 0) * (longest + CELL * len(columns))


def _size(bytes_: int) -> str:
    return f"{bytes_ / 1e9:,.1f} GB"
