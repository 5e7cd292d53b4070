"""Conditions that values are among public keys, and keys as lists that rows are joined with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from deniable.engines.literals import kind_of_value, literal, whole_literal

_MOST_COMPARED = 5
"""Texts that are quicker compared one by one than found by a join."""


def declared(value: exp.Expr, keys: Sequence[object] | None) -> exp.Expr:
    """Only declared keys; without a declaration, anything but NULL."""
    if keys is None:
        return exp.Not(this=exp.Is(this=value, expression=exp.Null()))
    listed = [literal(kind_of_value(key), key) for key in keys if key is not None]
    inside: exp.Expr = exp.In(this=value, expressions=listed)
    if None in keys:
        missing = exp.Is(this=value.copy(), expression=exp.Null())
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
            compared.append(exp.paren(exp.Is(this=column.copy(), expression=exp.Null())))
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
