"""Arithmetic on aggregates that is a measure itself: weighted sums, and ratios of them."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from deniable.query.plan.measures import Linear, Measure, Ratio


def linear_form(node: exp.Expr, measures: Sequence[Measure]) -> Linear | None:
    """An expression of measures as a weighted sum of statistics, if it is one."""
    if isinstance(node, exp.Paren):
        return linear_form(node.this, measures)
    if isinstance(node, exp.Column):
        found = _measure(node, measures)
        return found if isinstance(found, Linear) else None
    if isinstance(node, exp.Literal) and not node.is_string:
        return Linear((), float(node.name))
    if isinstance(node, exp.Neg):
        inner = linear_form(node.this, measures)
        return None if inner is None else inner.times(-1.0)
    if not isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Div):
        return None
    left, right = linear_form(node.left, measures), linear_form(node.right, measures)
    if left is None or right is None:
        return None
    if isinstance(node, exp.Add | exp.Sub):
        return left.plus(right, 1.0 if isinstance(node, exp.Add) else -1.0)
    if isinstance(node, exp.Mul) and not (left.columns() and right.columns()):
        factor, rest = (left, right) if not left.columns() else (right, left)
        return rest.times(factor.constant)
    if isinstance(node, exp.Div) and not right.columns() and right.constant:
        return left.times(1 / right.constant)
    return None


def measure_form(node: exp.Expr, measures: Sequence[Measure]) -> Measure | None:
    """A measure whose interval is known, for a column of the answer; None for other expressions."""
    if isinstance(node, exp.Paren):
        return measure_form(node.this, measures)
    if isinstance(node, exp.Column):
        return _measure(node, measures)
    straight = linear_form(node, measures)
    if straight is not None:
        return straight
    if isinstance(node, exp.Div):
        top, bottom = linear_form(node.left, measures), linear_form(_divisor(node), measures)
        if top is not None and bottom is not None and bottom.columns():
            return Ratio(top, bottom)
    return None


def _measure(node: exp.Column, measures: Sequence[Measure]) -> Measure | None:
    """One of m0, m1, ...; other columns are groups."""
    return measures[int(node.name[1:])] if node.name[0] == "m" else None


def _divisor(node: exp.Div) -> exp.Expr:
    right = node.right
    while isinstance(right, exp.Nullif | exp.Paren):
        right = right.this
    return right
