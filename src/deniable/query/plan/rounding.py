"""Rounding that is the same on every engine: they differ on halves."""

from __future__ import annotations

from fractions import Fraction

from sqlglot import exp


def half_up(number: exp.Expr) -> exp.Expr:
    """The nearest whole number, as a double; halves go up."""
    half = exp.Literal.number("0.5e0")
    return exp.Floor(this=exp.Add(this=number, expression=half))


def power_of_two_below(value: Fraction) -> Fraction:
    """The largest power of two that is no larger."""
    step = Fraction(1)
    while step > value:
        step /= 2
    while step * 2 <= value:
        step *= 2
    return step
