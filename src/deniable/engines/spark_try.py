"""TRY for Spark: where a part fails whose NULL would go unnoticed, the whole is NULL."""

from __future__ import annotations

from collections.abc import Iterator

import sqlglot
from sqlglot import exp

from deniable.engines.translate import TRIED, Kind, kind_of

OF = "deniable_of"
"""Marks what an expression was made of."""

_LAZY = (exp.And, exp.Or, exp.Is, exp.In, exp.Between, exp.Greatest, exp.Least)
_BRANCHING = (exp.Case, exp.If, exp.Coalesce)
_FAILS = "deniable_fails"


def put(text: str, *parts: exp.Expr, fails: str = "") -> exp.Expr:
    """Spark's SQL with parts for :a and :b; `fails` says where DuckDB would raise."""
    marks = dict(zip("ab", parts, strict=False))

    def placed(node: exp.Expr) -> exp.Expr:
        return _closed(marks[node.name]) if isinstance(node, exp.Placeholder) else node

    made = sqlglot.parse_one(text, read="spark").transform(placed)
    made.meta[OF] = [part.copy() for part in parts]
    if fails:
        made.meta[_FAILS] = sqlglot.parse_one(fails, read="spark").transform(placed)
    return made


def _closed(node: exp.Expr) -> exp.Expr:
    """A part that keeps together wherever it is put."""
    single = isinstance(node, exp.Column | exp.Literal | exp.Func | exp.Paren | exp.Null)
    return node.copy() if single and not isinstance(node, exp.Binary) else exp.paren(node.copy())


def lost(made: str, *names: str) -> str:
    """NULL came out, although NULL did not go in."""
    return " AND ".join((f"{made} IS NULL", *(f"{name} IS NOT NULL" for name in names)))


def string(text: str) -> str:
    """A text in quotes."""
    return str(exp.Literal.string(text).sql("spark"))


def type_of(node: exp.Expr) -> Kind:
    """The type of a part; UNKNOWN where it is not known."""
    return kind_of(node) or Kind.UNKNOWN


def tried(value: exp.Expr) -> exp.Expr:
    """NULL where anything that is computed for the value fails."""
    unseen = list({each.sql("spark"): each for each in _unseen(value)}.values())
    if not unseen:
        return exp.paren(value)
    return exp.Case(ifs=[exp.If(this=exp.or_(*unseen), true=exp.Null())], default=value)


def _unseen(node: exp.Expr) -> Iterator[exp.Expr]:
    """Where a part fails whose NULL does not make the whole NULL."""
    inner = node.meta.get(OF)
    if inner is None and isinstance(node, (*_BRANCHING, *_LAZY)):
        yield from _failures(node)
        return
    for child in node.iter_expressions() if inner is None else inner:
        yield from _unseen(child)


def _failures(node: exp.Expr) -> Iterator[exp.Expr]:
    """Where the node fails, or any part of it that is computed."""
    if _FAILS in node.meta:
        yield exp.paren(node.meta[_FAILS])
    inner = node.meta.get(OF)
    if inner is None and isinstance(node, _BRANCHING):
        passed: list[exp.Expr] = []
        for condition, value in _branches(node):
            taken = passed if condition is None else [*passed, exp.paren(condition)]
            yield from (exp.and_(*passed, each) for each in _failures(condition or exp.Null()))
            yield from (exp.and_(*taken, each) for each in _failures(value))
            over = put(":a IS NULL", value)
            if condition is not None:
                over = put("NOT COALESCE(:a, FALSE)", condition)
            passed = [*passed, over]
        return
    for child in node.iter_expressions() if inner is None else inner:
        yield from _failures(child)


def _branches(node: exp.Expr) -> Iterator[tuple[exp.Expr | None, exp.Expr]]:
    """Values with the conditions under which they are computed, if none before them was."""
    if isinstance(node, exp.Coalesce):
        yield from ((None, child) for child in node.iter_expressions())
        return
    for branch in node.args.get("ifs", [node]):
        matched = isinstance(node, exp.Case) and node.this is not None
        condition = put(":a = :b", node.this, branch.this) if matched else branch.this
        yield condition, branch.args["true"]
    yield None, node.args.get("default") or node.args.get("false") or exp.Null()


def is_tried(node: exp.Expr) -> bool:
    """Whether the part stands within a TRY."""
    above = node.parent
    while above is not None and not (isinstance(above, exp.Paren) and above.meta.get(TRIED)):
        above = above.parent
    return above is not None
