"""Expressions on single rows: which are understood, how they are made safe, what bounds they have.

An expression must not be able to raise an error that depends on data. Casts become TRY_CAST,
divisors of zero become NULL, and whatever else could raise is wrapped in the engine's TRY, which
gives NULL. What is not listed here is refused.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

from sqlglot import exp

from deniable.errors import ParameterError
from deniable.privacy.exact import exact, sqrt_up
from deniable.query.checks import COMPARISONS, LOGIC, OF_TEXT, TOTAL, Resolve, columns_in
from deniable.query.columns import Column, Place, UnboundedError
from deniable.query.families import INTEGERS, arguments, branches, family
from deniable.query.width_bucket import BUCKETS
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
_LONGEST_TEXT = 1 << 16
SUPPOSED: Bounds = (Fraction(-1), Fraction(1))
"""Bounds of columns that are not known yet, to see what follows from them."""


def safe(expression: exp.Expr) -> exp.Expr:
    """The same expression, unable to raise."""
    made = _safe(expression.copy())
    return made if _cannot_raise(made) else exp.Anonymous(this="TRY", expressions=[made])


def safe_condition(expression: exp.Expr) -> exp.Expr:
    """A condition, conjunct by conjunct, so that simple ones stay simple."""
    if isinstance(expression, exp.Paren):
        return exp.Paren(this=safe_condition(expression.this))
    if isinstance(expression, exp.And):
        left, right = safe_condition(expression.left), safe_condition(expression.right)
        return exp.And(this=left, expression=right)
    made = safe(expression)
    if isinstance(made, exp.Or):
        made = exp.paren(made)
    if family(expression) == "boolean":
        return made
    # The engine would cast it by itself, and could raise.
    return exp.TryCast(this=made, to=exp.DataType.build("BOOLEAN"))


def _safe(node: exp.Expr) -> exp.Expr:
    """The same, from the leaves up, with casts, divisions and texts that have an end."""
    for child in list(node.iter_expressions()):
        made = _safe(child)
        if made is not child:
            child.replace(made)
    mended = _mended(node)
    if mended.type is None:
        mended.type = node.type
    return mended


def _mended(node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.Cast) and not isinstance(node, exp.TryCast):
        return exp.TryCast(this=node.this, to=node.args["to"])
    if isinstance(node, exp.Div):
        divisor = exp.Nullif(this=node.expression, expression=exp.Literal.number(0))
        return exp.Div(this=node.this, expression=divisor, typed=False, safe=False)
    if isinstance(node, exp.IntDiv | exp.Mod) and not _sure(node.expression):
        divisor = exp.Nullif(this=node.expression, expression=exp.Literal.number(0))
        divisor.type = node.expression.type
        return type(node)(this=node.this, expression=divisor)
    if isinstance(node, exp.Literal) and not node.is_string and "." in node.name:
        # A decimal would make decimals of the integers beside it, which can overflow.
        text = node.name if "e" in node.name.lower() else f"{node.name}e0"
        return exp.Literal.number(text)
    if isinstance(node, exp.DPipe | exp.Concat | exp.Replace):
        for child in list(node.iter_expressions()):
            if family(child) == "text" and not isinstance(child, exp.Literal):
                child.replace(_shortened(child))
    return node


def _sure(divisor: exp.Expr) -> bool:
    """A constant that is not 0."""
    return isinstance(divisor, exp.Literal) and divisor.name.strip("0.") not in {"", "e"}


def _shortened(text: exp.Expr) -> exp.Expr:
    """The beginning of a text: what grows with each step must not outgrow memory."""
    made = exp.Left(this=text.copy(), expression=exp.Literal.number(_LONGEST_TEXT))
    made.type = exp.DataType.build("VARCHAR")
    return made


def _cannot_raise(node: exp.Expr) -> bool:
    """Whether no value of any column can make the engine raise, implicit casts included."""
    return _sound(node) and all(_cannot_raise(child) for child in node.iter_expressions())


def _sound(node: exp.Expr) -> bool:
    """The same of the topmost operation: operands of one kind, conditions that are booleans."""
    children = list(node.iter_expressions())
    if isinstance(node, COMPARISONS):
        return _alike(children)
    if isinstance(node, LOGIC):
        return all(family(child) == "boolean" for child in children)
    if isinstance(node, exp.Is):
        return isinstance(node.expression, exp.Null) or family(node.this) == "boolean"
    if isinstance(node, OF_TEXT):
        return all(family(child) == "text" for child in children)
    if isinstance(node, exp.Coalesce):
        return _alike(children)
    if isinstance(node, exp.Case):
        return node.this is None and _alike(branches(node))
    if isinstance(node, exp.If):
        outcomes = [node.args.get("true"), node.args.get("false")]
        given = [each for each in outcomes if each is not None and not isinstance(each, exp.Null)]
        return family(node.this) == "boolean" and _alike(given)
    return isinstance(node, TOTAL)


def _alike(nodes: list[exp.Expr]) -> bool:
    kinds = {family(node) for node in nodes}
    return len(kinds) <= 1 and None not in kinds


def is_integer(node: exp.Expr, resolve: Resolve) -> bool:
    """Whether only whole numbers come out."""
    if isinstance(node, exp.Paren | exp.Neg | exp.Abs):
        return is_integer(node.this, resolve)
    if isinstance(node, exp.Column):
        return resolve(node).kind == ColumnType.INTEGER
    if isinstance(node, exp.Literal):
        return not node.is_string and "." not in node.name and "e" not in node.name.lower()
    if isinstance(node, exp.Add | exp.Sub | exp.Mul):
        return is_integer(node.left, resolve) and is_integer(node.right, resolve)
    if isinstance(node, exp.Case):
        return all(is_integer(branch, resolve) for branch in branches(node))
    if isinstance(node, exp.Coalesce | exp.Greatest | exp.Least):
        return all(is_integer(child, resolve) for child in arguments(node))
    if isinstance(node, exp.Cast | exp.TryCast):
        return node.to.this in INTEGERS
    if isinstance(node, exp.If):
        return all(is_integer(branch, resolve) for branch in branches(node))
    if isinstance(node, exp.Floor | exp.Ceil | exp.Round):
        return node.args.get("decimals") is None and node.args.get("to") is None
    if isinstance(node, exp.Extract):
        return node.name.upper() != "EPOCH"
    return isinstance(node, exp.Null | exp.Year | exp.Month | exp.Length | exp.DateDiff)


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
        return _union([find_bounds(branch, resolve) for branch in branches(node)])
    if isinstance(node, exp.Coalesce):
        return _union([find_bounds(child, resolve) for child in arguments(node)])
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
        parts = [find_bounds(child, resolve) for child in arguments(node)]
        known_parts = [part for part in parts if part is not None]
        return _binary(node, known_parts) if len(known_parts) == len(parts) else None
    return None


def _literal_bounds(text: str) -> Bounds:
    """A number in the question; beyond 1e300 nothing is clamped any more."""
    value = exact(Decimal(text), "a number in the question")
    return value, value


def _cast_bounds(node: exp.Expr, resolve: Resolve) -> Bounds | None:
    inner = node.this
    if inner.type is not None and inner.type.this == exp.DataType.Type.BOOLEAN:
        return Fraction(0), Fraction(1)
    found = find_bounds(inner, resolve)
    if found is not None and node.args["to"].this in INTEGERS:
        return Fraction(found[0].__floor__()), Fraction(found[1].__ceil__())
    return found


def _unary(node: exp.Expr, inner: Bounds) -> Bounds | None:
    low, high = inner
    if isinstance(node, exp.Neg):
        return -high, -low
    if isinstance(node, exp.Abs):
        least = Fraction(0) if low <= 0 <= high else min(abs(low), abs(high))
        return least, max(abs(low), abs(high))
    if isinstance(node, exp.Sqrt):
        return Fraction(0), sqrt_up(max(high, Fraction(0)))
    return Fraction(low.__floor__()), Fraction(high.__ceil__())


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
        given = branches(node)
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
