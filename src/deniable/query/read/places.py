"""Several windows of one SELECT that count places of rows: one order of equal rows for all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlglot import exp

from deniable.query.read.columns import UNIT
from deniable.query.read.per_unit import by_place
from deniable.query.read.sources import Sources

_PLACE = "deniable_place"


def places_in(made: Iterable[exp.Expr]) -> list[exp.Window]:
    """The windows that count places of rows."""
    return [each for one in made for each in one.find_all(exp.Window) if by_place(each)]


def placed(read: Sources, made: Mapping[str, exp.Expr]) -> tuple[exp.Select, dict[str, exp.Expr]]:
    """Rows that have numbers of their own, and what is made of rows, as made of those.

    Rows that are equal in every column tie in each window, and engines order ties by what else they
    sort, other people's rows included. One window gives the same rows either way; of two, the
    places of equal rows in one would meet their places in the other by chance. So the rows of a
    unit are numbered once, and that number comes last in every order. Which of equal rows has which
    number does not matter: they differ in nothing else.
    """
    names = {
        (table, name): f"s{place}"
        for place, (table, name) in enumerate(
            [(table, name) for table, known in read.columns.items() for name in known]
        )
    }
    unit = read.merged.sql
    names[unit.args["table"].name, UNIT] = UNIT
    every = {new: exp.column(*reversed(old), quoted=True) for old, new in names.items()}
    number = exp.Window(
        this=exp.RowNumber(),
        partition_by=[unit.copy()],
        order=exp.Order(
            expressions=[exp.Ordered(this=each.copy(), desc=False) for each in every.values()]
        ),
        over="OVER",
    )
    inner = read.sql.select(
        *(exp.alias_(each, new, quoted=True) for new, each in every.items()),
        exp.alias_(number, _PLACE, quoted=True),
    )

    def renamed(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column):
            return exp.column(names[node.table, node.name], quoted=True)
        return node

    moved = {name: each.transform(renamed) for name, each in made.items()}
    for window in places_in(moved.values()):
        last = exp.Ordered(this=exp.column(_PLACE, quoted=True), desc=False)
        window.args["order"].append("expressions", last)
    return exp.Select().from_(inner.subquery("placed")), moved
