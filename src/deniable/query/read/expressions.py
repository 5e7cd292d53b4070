"""What bounds and which values an expression on single rows has, from what is declared."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

from sqlglot import exp

from deniable.errors import ParameterError
from deniable.privacy.exact import exact, sqrt_up
from deniable.query.plan.width_bucket import BUCKETS
from deniable.query.read.checks import COMPARISONS, columns_in
from deniable.query.read.columns import Column, Place, UnboundedError
from deniable.query.read.values.casts import decimal_sizes
from deniable.query.read.values.operators import Resolve, read_value
from deniable.tables import Bounds, ColumnType

_PARTS = {
    "MONTH": range(1, 13),
    "QUARTER": range(1, 5),
    "DAY": range(1, 32),
    "DAYOFWEEK": range(7),
    "DOW": range(7),
    "HOUR": range(24),
    "MINUTE": range(60),
}
SUPPOSED: Bounds = (Fraction(-1), Fraction(1))
"""Bounds of columns that are not known yet, to see what follows from them."""


def bounds_of(node: exp.Expr, resolve: Resolve) -> Bounds:
    """The interval in which an expression lies, by interval arithmetic on declared bounds."""
    found = find_bounds(node, resolve)
    if found is None:
        places = lacking(node, resolve)
        if places:
            raise UnboundedError(node.sql("duckdb")[:60], places)
        raise ParameterError(
            "bounds",
            node.sql("duckdb")[:60],
            "no bounds follow for this expression; declare those of its columns "
            "(bounds={'cost': (0, 500)}), or name it in a subquery and declare the name's",
        )
    return found


def lacking(node: exp.Expr, resolve: Resolve) -> tuple[Place, ...]:
    """The columns of tables whose bounds would give bounds to an expression without."""

    def supposing(column: exp.Column) -> Column:
        found = resolve(column)
        return replace(found, bounds=SUPPOSED) if found.bounds is None and found.lacks else found

    if find_bounds(node, resolve) is not None or find_bounds(node, supposing) is None:
        return ()
    without = [resolve(column) for column in columns_in(node)]
    return tuple(
        dict.fromkeys(place for each in without if each.bounds is None for place in each.lacks)
    )


def find_bounds(node: exp.Expr, resolve: Resolve) -> Bounds | None:
    """The same, or None."""
    if isinstance(node, exp.Paren):
        return find_bounds(node.this, resolve)
    if isinstance(node, exp.Column):
        return resolve(node).bounds
    if isinstance(node, exp.Literal) and not node.is_string:
        return _literal_bounds(node.name)
    if isinstance(node, exp.Boolean):
        return Fraction(0), Fraction(1)
    if isinstance(node, exp.Case | exp.If):
        return _union([find_bounds(branch, resolve) for branch in _branches(node)])
    if isinstance(node, exp.Coalesce):
        return _union([find_bounds(child, resolve) for child in list(node.iter_expressions())])
    if isinstance(node, exp.Cast | exp.TryCast):
        return _cast_bounds(node, resolve)
    if isinstance(node, exp.Neg | exp.Abs | exp.Floor | exp.Ceil | exp.Round | exp.Sqrt):
        inner = find_bounds(node.this, resolve)
        return None if inner is None else _unary(node, inner)
    if isinstance(
        node, exp.Extract | exp.Year | exp.Month | exp.Hour | exp.Quarter | exp.DayOfWeek
    ):
        known = part_values(node)
        return (Fraction(known[0]), Fraction(known[-1])) if known else None
    if isinstance(node, exp.Binary | exp.Greatest | exp.Least):
        parts = [find_bounds(child, resolve) for child in list(node.iter_expressions())]
        known_parts = [part for part in parts if part is not None]
        return _binary(node, known_parts) if len(known_parts) == len(parts) else None
    return None


def _branches(node: exp.Expr) -> list[exp.Expr]:
    """What a CASE or IF can give; NULL, which is no number, left out."""
    given = [branch.args["true"] for branch in node.args.get("ifs", [node])]
    other = node.args.get("default") or node.args.get("false")
    if other is not None:
        given.append(other)
    return [branch for branch in given if not isinstance(branch, exp.Null)]


def _literal_bounds(text: str) -> Bounds:
    """A number in the question; beyond 1e300 nothing is clamped any more."""
    value = exact(Decimal(text), "a number in the question")
    return value, value


def _cast_bounds(node: exp.Expr, resolve: Resolve) -> Bounds | None:
    inner = node.this
    kinds = [read_value(each, resolve, "CAST").kind for each in (inner, node)]
    if ColumnType.BOOLEAN in kinds:
        return Fraction(0), Fraction(1)
    found = find_bounds(inner, resolve)
    if found is None:
        return None
    to = node.args.get("to")
    if isinstance(to, exp.DataType) and to.this == exp.DType.DECIMAL:
        return _outward(found, decimal_sizes(to)[1])
    return _outward(found, 0) if ColumnType.INTEGER in kinds[1:] else found


def _unary(node: exp.Expr, inner: Bounds) -> Bounds | None:
    low, high = inner
    if isinstance(node, exp.Neg):
        return -high, -low
    if isinstance(node, exp.Abs):
        least = Fraction(0) if low <= 0 <= high else min(abs(low), abs(high))
        return least, max(abs(low), abs(high))
    if isinstance(node, exp.Sqrt):
        return Fraction(0), sqrt_up(max(high, Fraction(0)))
    return _outward(inner, _places(node))


def _outward(bounds: Bounds, places: int) -> Bounds:
    """Bounds of what is rounded to decimal places, whichever way."""
    (low, high), unit = bounds, Fraction(10) ** -places
    return unit * (low / unit).__floor__(), unit * (high / unit).__ceil__()


def _places(node: exp.Expr) -> int:
    """To how many decimal places a number is rounded."""
    given = node.args.get("decimals")
    digits = given.this if isinstance(given, exp.Neg) else given
    if not (isinstance(digits, exp.Literal) and digits.is_int and len(digits.name) <= 2):
        return 0
    return -int(digits.name) if isinstance(given, exp.Neg) else int(digits.name)


def _binary(node: exp.Expr, parts: list[Bounds]) -> Bounds | None:
    if isinstance(node, exp.Greatest | exp.Least):  # NULL is left out, whichever it is
        return min(p[0] for p in parts), max(p[1] for p in parts)
    (a, b), (c, d) = parts
    if isinstance(node, exp.Add):
        return a + c, b + d
    if isinstance(node, exp.Sub):
        return a - d, b - c
    if isinstance(node, exp.Mul):
        corners = [a * c, a * d, b * c, b * d]
        return min(corners), max(corners)
    if isinstance(node, exp.Div) and (c > 0 or d < 0):
        corners = [a / c, a / d, b / c, b / d]
        return min(corners), max(corners)
    return None


def _union(parts: list[Bounds | None]) -> Bounds | None:
    known = [part for part in parts if part is not None]
    if not known or len(known) < len(parts):
        return None
    return min(p[0] for p in known), max(p[1] for p in known)


def known_values(node: exp.Expr, resolve: Resolve) -> tuple[Any, ...] | None:
    """The values an expression can take, where the query or metadata tell; None otherwise."""
    if isinstance(node, exp.Paren):
        return known_values(node.this, resolve)
    if isinstance(node, exp.Column):
        column = resolve(node)
        if column.keys is None and column.kind == ColumnType.BOOLEAN:
            return (False, True)
        return column.keys
    if BUCKETS in node.meta:
        return tuple(range(node.meta[BUCKETS] + 1))
    if isinstance(node, exp.Case | exp.If):
        given = _branches(node)
        if all(isinstance(each, exp.Literal | exp.Boolean) for each in given):
            values = tuple(dict.fromkeys(_literal(each) for each in given))
            kinds = {type(value) for value in values}
            wide = any(isinstance(value, int) and abs(value) >= 1 << 63 for value in values)
            return values if len(kinds) == 1 and not wide else None
        return None
    if isinstance(node, (*COMPARISONS, exp.And, exp.Or, exp.Not, exp.Is, exp.Like, exp.ILike)):
        return (False, True)
    return part_values(node)


def part_values(node: exp.Expr) -> tuple[int, ...] | None:
    """The months, hours, ... that there are."""
    name = node.name.upper() if isinstance(node, exp.Extract) else node.key.upper().replace("_", "")
    return tuple(_PARTS[name]) if name in _PARTS else None


def _literal(node: exp.Expr) -> Any:
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    if node.args.get("is_string"):
        return node.name
    return int(node.name) if node.name.lstrip("-").isdigit() else float(node.name)
