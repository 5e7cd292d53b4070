"""Numbers that are the same on every engine: literals, and rounding, which differs on halves."""

from __future__ import annotations

from fractions import Fraction

from sqlglot import exp


def half_up(number: exp.Expr) -> exp.Expr:
    """The nearest whole number, as a double; halves go up."""
    half = exp.Literal.number("0.5e0")
    return exp.Floor(this=exp.Add(this=number, expression=half))


def whole_literal(value: int) -> exp.Expr:
    """A whole number."""
    literal = exp.Literal.number(abs(value))
    return exp.Neg(this=literal) if value < 0 else literal


def double_literal(value: Fraction) -> exp.Expr:
    """The nearest double; without an exponent it would be a decimal."""
    text = repr(abs(float(value)))
    literal = exp.Literal.number(text if "e" in text else f"{text}e0")
    return exp.Neg(this=literal) if value < 0 else literal
