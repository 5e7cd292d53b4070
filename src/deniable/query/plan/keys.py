"""Group keys in statements: which can be released, and the groups that were.

A statement holds texts of at most 1,000 bytes without NUL, and whole numbers above -2^63. A key
that no later statement could name is never selected, so that numbers are read of the selected
groups alone: the others may be as many as one person has rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from deniable.engines.literals import literal, longer, short, whole_literal
from deniable.query.plan.among import among, declared, one_of
from deniable.query.plan.counted import Group, names
from deniable.query.plan.plan import Plan
from deniable.query.read.columns import CELL
from deniable.tables import LONGEST_TEXT, MOST_WHOLE, ColumnType


def answered(group: Group) -> exp.Expr:
    """What holds of a row whose undeclared key can be released: a function of the row alone."""
    key = exp.paren(group.sql.copy())
    if group.kind == ColumnType.TEXT:
        nul = exp.Contains(this=key.copy(), expression=exp.Chr(expressions=[whole_literal(0)]))
        return exp.and_(short(key), exp.Not(this=nul))
    if group.kind == ColumnType.INTEGER:
        return exp.GTE(this=key, expression=literal(group.kind, -MOST_WHOLE))
    return declared(key, None)


def held(group: Group) -> exp.Expr:
    """A key as rows keep it: a text longer than all that are declared is one short other text."""
    if group.kind != ColumnType.TEXT or group.keys is None:
        return group.sql.copy()
    far = exp.If(
        this=longer(exp.paren(group.sql.copy()), _longest(group.keys)),
        true=literal(ColumnType.TEXT, _other(group.keys)),
    )
    return exp.Case(ifs=[far], default=group.sql.copy())


def held_bytes(group: Group) -> int:
    """How much of a key rows keep at the worst."""
    if group.kind not in {ColumnType.TEXT, None}:
        return CELL
    if group.keys is None:
        return LONGEST_TEXT
    return max(CELL, _longest(group.keys), len(_other(group.keys)))


def _longest(keys: Sequence[Any]) -> int:
    return max((len(str(key).encode()) for key in keys if key is not None), default=0)


def _other(keys: Sequence[Any]) -> str:
    """A text that is not declared."""
    return next("?" * size for size in range(len(keys) + 1) if "?" * size not in keys)


def selected(plan: Plan) -> str:
    """The condition that columns g0, g1, ... are one of the groups that were selected."""
    assert plan.counted.selected is not None
    columns = [exp.column(name) for name in names("g", plan.counted.groups)]
    if not plan.counted.selected:
        return "FALSE"
    if len(columns) == 1:
        kept = one_of(columns[0], [key[0] for key in plan.counted.selected])
    else:
        kept = among(columns, plan.counted.selected)
    return kept.sql("duckdb")
