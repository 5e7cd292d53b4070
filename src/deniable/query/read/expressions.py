"""What bounds and which values an expression on single rows has, from what is declared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from sqlglot import exp

from deniable.engines.trees import whole_constant
from deniable.privacy.exact import exact, sqrt_up
from deniable.query.read.columns import Resolve, columns_in
from deniable.query.read.values.casts import decimal_sizes
from deniable.query.read.values.operators import read_value
from deniable.query.read.width_bucket import BUCKETS
from deniable.tables import Bounds, ColumnType

_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.In)
_PARTS = {
    "MONTH": range(1, 13),
    "QUARTER": range(1, 5),
    "DAY": range(1, 32),
    "DAYOFWEEK": range(7),
    "DOW": range(7),
    "HOUR": range(24),
    "MINUTE": range(60),
}


def find_bounds(node: exp.Expr, resolve: Resolve) -> Bounds | None:
    """The interval in which an expression lies, by interval arithmetic on declared bounds."""
    if isinstance(node, exp.Paren):
        return find_bounds(node.this, resolve)
    if isinstance(node, exp.Column):
        return resolve(node).bounds
    if isinstance(node, exp.Literal) and not node.is_string:
        value = exact(Decimal(node.name), "a number in the question")
        return value, value
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
    if isinstance(node, exp.Greatest | exp.Least):
        low, high = _ends(node, resolve)
        return None if low is None or high is None else (low, high)
    if isinstance(node, exp.Binary):
        parts = [find_bounds(child, resolve) for child in list(node.iter_expressions())]
        known_parts = [part for part in parts if part is not None]
        return _binary(node, known_parts) if len(known_parts) == len(parts) else None
    return None


def _ends(node: exp.Expr, resolve: Resolve) -> tuple[Fraction | None, Fraction | None]:
    """The ends of an expression that are known.

    GREATEST and LEAST leave out NULL, whichever it is; a number in the question is none, and the
    others come no further than it on one side.
    """
    if isinstance(node, exp.Paren):
        return _ends(node.this, resolve)
    if not isinstance(node, exp.Greatest | exp.Least):
        found = find_bounds(node, resolve)
        if found is None and isinstance(node, exp.Column):
            return resolve(node).least, None
        return (None, None) if found is None else found
    nodes = list(node.iter_expressions())
    lows, highs = zip(*(_ends(child, resolve) for child in nodes), strict=True)
    fixed = [
        value
        for child, value in zip(nodes, lows, strict=True)
        if value is not None
        and isinstance(child.unnest(), exp.Literal | exp.Neg)
        and not columns_in(child)
    ]
    if isinstance(node, exp.Least):
        return _all(min, lows), (min(fixed) if fixed else _all(max, highs))
    return (max(fixed) if fixed else _all(min, lows)), _all(max, highs)


def _all(
    chosen: Callable[[Sequence[Fraction]], Fraction], ends: Sequence[Fraction | None]
) -> Fraction | None:
    """The least or the greatest of ends, where all are known."""
    known = [each for each in ends if each is not None]
    return chosen(known) if len(known) == len(ends) else None


MOST_PLACES = 6
"""Of a decimal whose steps sums are made in; more are as good as any fraction."""


def places_of(node: exp.Expr, resolve: Resolve) -> int | None:
    """To how many decimal places the values of an expression are whole, where that follows.

    What is nearest to such a number as a double, and sums and differences of those, round to it on
    the grid of 10^-places: sums over that grid are exact.
    """
    if isinstance(node, exp.Column):
        known = resolve(node)
        return 0 if known.kind == ColumnType.INTEGER else most_places([known.places])
    if isinstance(node, exp.Literal) and not node.is_string:
        return _digits(Decimal(node.name))
    if isinstance(node, exp.Case | exp.If):
        return most_places([places_of(branch, resolve) for branch in _branches(node)])
    if isinstance(node, exp.Paren | exp.Neg | exp.Abs):
        return places_of(node.this, resolve)
    if isinstance(node, exp.Cast | exp.TryCast) and node.to.this == exp.DType.DECIMAL:
        return most_places([decimal_sizes(node.to)[1]])
    parts = [places_of(child, resolve) for child in list(node.iter_expressions())]
    if isinstance(node, exp.Add | exp.Sub | exp.Coalesce | exp.Greatest | exp.Least):
        return most_places(parts)
    if isinstance(node, exp.Mul) and 0 in parts:  # of two fractions it has more places
        return most_places(parts)
    return None


def most_places(parts: list[int | None]) -> int | None:
    """The places of what has one of these; None where one is not known, or has too many."""
    known = [part for part in parts if part is not None and part <= MOST_PLACES]
    return max(known) if known and len(known) == len(parts) else None


def _digits(value: Decimal) -> int:
    """The places of a constant."""
    exponent = value.normalize().as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else MOST_PLACES + 1


def _branches(node: exp.Expr) -> list[exp.Expr]:
    """What a CASE or IF can give; NULL, which is no number, left out."""
    given = [branch.args["true"] for branch in node.args.get("ifs", [node])]
    other = node.args.get("default") or node.args.get("false")
    if other is not None:
        given.append(other)
    return [branch for branch in given if not isinstance(branch, exp.Null)]


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
    places = whole_constant(node.args.get("decimals"))
    return 0 if places is None or abs(places) > 99 else places


def _binary(node: exp.Expr, parts: list[Bounds]) -> Bounds | None:
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
    if isinstance(node, (*_COMPARISONS, exp.And, exp.Or, exp.Not, exp.Is, exp.Like, exp.ILike)):
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
