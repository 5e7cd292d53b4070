"""Spark's SQL as text with places for parts."""

from __future__ import annotations

from functools import cache

import sqlglot
from sqlglot import exp

from deniable.engines.translate import Kind, kind_of


def put(text: str, *parts: exp.Expr) -> exp.Expr:
    """Spark's SQL with parts for :a and :b."""
    marks = dict(zip("ab", parts, strict=False))

    def placed(node: exp.Expr) -> exp.Expr:
        return _closed(marks[node.name]) if isinstance(node, exp.Placeholder) else node

    return _read(text).transform(placed)


@cache
def _read(text: str) -> exp.Expr:
    return sqlglot.parse_one(text, read="spark")


def _closed(node: exp.Expr) -> exp.Expr:
    """A part that keeps together wherever it is put."""
    single = isinstance(node, exp.Column | exp.Literal | exp.Func | exp.Paren | exp.Null)
    return node.copy() if single and not isinstance(node, exp.Binary) else exp.paren(node.copy())


def string(text: str) -> str:
    """A text in quotes."""
    return str(exp.Literal.string(text).sql("spark"))


def type_of(node: exp.Expr) -> Kind:
    """The type of a part; UNKNOWN where it is not known."""
    return kind_of(node) or Kind.UNKNOWN
