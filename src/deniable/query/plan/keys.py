"""Groups and their keys in statements: conditions, lists that rows are joined with, what is kept.

A statement holds texts of at most 1,000 bytes without NUL, and whole numbers above -2^63. A key
that no later statement could name is never selected, so that numbers are read of the selected
groups alone: the others may be as many as one person has rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from deniable.engines.literals import kind_of_value, literal, longer, short, whole_literal
from deniable.engines.trees import case, is_known, is_null
from deniable.lazy import lazy
from deniable.query.read.columns import CELL
from deniable.tables import LONGEST_TEXT, MOST_WHOLE, ColumnType

_MOST_COMPARED = 5
"""Texts that are quicker compared one by one than found by a join."""


@dataclass(frozen=True)
class Group:
    """A column that is grouped by, and its values where they are public."""

    name: str
    sql: exp.Expr
    kind: ColumnType | None
    keys: tuple[Any, ...] | None
    note: str = ""
    """What an answer is to say of it."""

    def declared_as(self, column: str) -> str:
        """The condition that a column has one of its keys, as SQL that is written once."""
        if column not in self._conditions:
            self._conditions[column] = one_of(exp.column(column), self.keys).sql("duckdb")
        return self._conditions[column]

    @lazy
    def _conditions(self) -> dict[str, str]:
        return {}

    @lazy
    def in_places(self) -> str:
        """Its keys and their places in the list, as SQL that is written once."""
        return in_places(self.keys or (), "k", "p")


def declared(value: exp.Expr, keys: Sequence[object] | None) -> exp.Expr:
    """Only declared keys; without a declaration, anything but NULL."""
    if keys is None:
        return is_known(value)
    listed = [literal(kind_of_value(key), key) for key in keys if key is not None]
    inside: exp.Expr = exp.In(this=value, expressions=listed)
    if None in keys:
        missing = is_null(value.copy())
        inside = exp.Or(this=inside, expression=missing) if listed else missing
    return exp.paren(inside)


def are_many_texts(keys: Sequence[object] | None) -> bool:
    """Whether keys are found by a join: each row is hashed once, however many they are."""
    if keys is None or len(keys) <= _MOST_COMPARED:
        return False
    return all(isinstance(key, str) for key in keys)


def one_of(value: exp.Expr, keys: Sequence[object] | None) -> exp.Expr:
    """The same as a part of WHERE, which may be a join."""
    if keys is None or not are_many_texts(keys):
        return declared(value, keys)
    return among([value], [(key,) for key in keys])


def among(columns: Sequence[exp.Expr], keys: Sequence[Sequence[Any]]) -> exp.Expr:
    """Rows whose columns together are one of these keys, found by a join.

    NULL, which equals nothing, is told by a column of its own beside some other value.
    """
    compared: list[exp.Expr] = []
    chosen, lists = exp.Select(), list[list[exp.Expr]]()
    for place, column in enumerate(columns):
        values = [key[place] for key in keys]
        some = next((value for value in values if value is not None), None)
        if None in values:
            compared.append(exp.paren(is_null(column.copy())))
            chosen = chosen.select(f"k{len(lists)}")
            lists.append([exp.Boolean(this=value is None) for value in values])
        if some is not None:
            filled = exp.Coalesce(this=column.copy(), expressions=[_constant(some)])
            compared.append(filled if None in values else column.copy())
            chosen = chosen.select(_typed(exp.column(f"k{len(lists)}"), some))
            lists.append([_bare(some if value is None else value) for value in values])
    rows = list(zip(*lists, strict=True))
    names = [f"k{number}" for number in range(len(lists))]
    listed = exp.values(rows, alias="selected", columns=names)
    found = compared[0] if len(compared) == 1 else exp.Tuple(expressions=compared)
    return exp.In(this=found, query=exp.Subquery(this=chosen.from_(listed)))


def in_places(keys: Sequence[str], key: str, place: str) -> str:
    """SELECT texts under one name, and their places in the list under another."""
    rows = [(_constant(each), whole_literal(number)) for number, each in enumerate(keys)]
    listed = exp.values(rows, alias="listed", columns=[key, place])
    return exp.select(key, place).from_(listed).sql("duckdb")


def _constant(value: Any) -> exp.Expr:
    return literal(kind_of_value(value), value)


def _bare(value: Any) -> exp.Expr:
    """A constant without its type: a list has that once."""
    made = _constant(value)
    return made.this if isinstance(made, exp.Cast) else made


def _typed(column: exp.Expr, value: Any) -> exp.Expr:
    made = _constant(value)
    return exp.Cast(this=column, to=made.to) if isinstance(made, exp.Cast) else column


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
    is_far = longer(exp.paren(group.sql.copy()), _longest(group.keys))
    other = literal(ColumnType.TEXT, _other(group.keys))
    return case((is_far, other), otherwise=group.sql.copy())


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
