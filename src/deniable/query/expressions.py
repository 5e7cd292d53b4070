"""Expressions on single rows: which are understood, how they are made safe, what bounds they have.

An expression must not be able to raise an error that depends on data. Casts become TRY_CAST,
divisors of zero become NULL, and whatever else could raise is wrapped in the engine's TRY, which
gives NULL. What is not listed here is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

from sqlglot import exp

from deniable.errors import ParameterError, QueryError
from deniable.privacy.exact import exact, sqrt_up
from deniable.query.columns import Column
from deniable.tables import Bounds, ColumnType

Resolve = Callable[[exp.Column], Column]

# Deterministic, and the same whatever the engine's settings.
_TOTAL = (
    exp.Column,
    exp.Literal,
    exp.Boolean,
    exp.Null,
    exp.Paren,
    exp.Is,
    exp.TryCast,
    exp.Identifier,
    exp.DataType,
)
_LOGIC = (exp.And, exp.Or, exp.Not)
_BRANCHES = (exp.Coalesce, exp.Case, exp.If)
_OF_TEXT = (exp.Lower, exp.Upper, exp.Length)
_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.In)
_GUARDED = (
    exp.Nullif,
    exp.DPipe,
    exp.Concat,
    exp.Abs,
    exp.Sign,
    exp.Tuple,
    exp.Neg,
    exp.Add,
    exp.Sub,
    exp.Mul,
    exp.Div,
    exp.IntDiv,
    exp.Mod,
    exp.Round,
    exp.Floor,
    exp.Ceil,
    exp.Sqrt,
    exp.Ln,
    exp.Log,
    exp.Exp,
    exp.Pow,
    exp.Greatest,
    exp.Least,
    exp.Trim,
    exp.Substring,
    exp.Replace,
    exp.StrPosition,
    exp.StartsWith,
    exp.Left,
    exp.Right,
    exp.Like,
    exp.ILike,
    exp.RegexpLike,
    exp.SimilarTo,
    exp.Extract,
    exp.DateTrunc,
    exp.TimestampTrunc,
    exp.Year,
    exp.Month,
    exp.Day,
    exp.Quarter,
    exp.Hour,
    exp.Minute,
    exp.DayOfWeek,
    exp.DayOfMonth,
    exp.DayOfYear,
    exp.WeekOfYear,
    exp.Week,
    exp.DateAdd,
    exp.DateSub,
    exp.DateDiff,
    exp.Interval,
    exp.Var,
    exp.IntervalSpan,
    exp.Escape,
    exp.Date,
    exp.TsOrDsToDate,
    exp.TimeToStr,
)
UNDERSTOOD = _TOTAL + _LOGIC + _BRANCHES + _OF_TEXT + _COMPARISONS + _GUARDED
_PARTS = {
    "MONTH": range(1, 13),
    "QUARTER": range(1, 5),
    "DAY": range(1, 32),
    "DAYOFWEEK": range(7),
    "DOW": range(7),
    "HOUR": range(24),
    "MINUTE": range(60),
}
_DEEPEST = 60
_TEXT = {exp.DataType.Type.VARCHAR, exp.DataType.Type.TEXT, exp.DataType.Type.CHAR}
_INTEGERS = {
    exp.DataType.Type.TINYINT,
    exp.DataType.Type.SMALLINT,
    exp.DataType.Type.INT,
    exp.DataType.Type.BIGINT,
    exp.DataType.Type.INT128,
}
_NUMBERS = {
    *_INTEGERS,
    exp.DataType.Type.DOUBLE,
    exp.DataType.Type.FLOAT,
    exp.DataType.Type.DECIMAL,
}
_DATES = {exp.DataType.Type.DATE}
_TIMES = {exp.DataType.Type.TIMESTAMP}
_MOST_REPLACED, _LONGEST_REPLACEMENT = 2, 100


def check(expression: exp.Expr, where: str, depth: int = 0) -> None:
    """Refuse what is not understood, by its name."""
    if depth > _DEEPEST:
        raise QueryError(f"{where} is nested too deeply; write it in steps")
    if isinstance(expression, exp.Subquery | exp.Exists | exp.Select):
        raise QueryError(
            f"a subquery in {where} is not answered; join the tables (private ones through the "
            "unit), or list the values"
        )
    if isinstance(expression, exp.Window):
        raise QueryError(f"a window function in {where} is not answered; compute it in a subquery")
    if isinstance(expression, exp.AggFunc):
        raise QueryError(f"{expression.key.upper()} cannot stand in {where}; aggregate outside")
    if isinstance(expression, exp.Cast) and not isinstance(expression, exp.TryCast):
        known = True
    else:
        known = isinstance(expression, UNDERSTOOD)
    if not known:
        name = expression.name.upper() if isinstance(expression, exp.Anonymous) else None
        raise QueryError(
            f"{name or expression.key.upper()} in {where} is not answered: only functions of one "
            "row that are known to be the same each time are"
        )
    if isinstance(expression, exp.Escape) and not isinstance(
        expression.this.expression, exp.Literal
    ):
        raise QueryError(f"ESCAPE in {where} needs a constant pattern")
    if depth == 0:
        _check_growth(expression, where)
    for child in expression.iter_expressions():
        check(child, where, depth + 1)


def _check_growth(expression: exp.Expr, where: str) -> None:
    """Texts must not grow beyond what memory holds: that would depend on data."""
    replaced = list(expression.find_all(exp.Replace))
    long = any(
        len(text.name) > _LONGEST_REPLACEMENT
        for node in replaced
        for text in node.find_all(exp.Literal)
        if text.is_string
    )
    if len(replaced) > _MOST_REPLACED or long:
        raise QueryError(f"REPLACE in {where} is answered twice at most, with short texts")


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
    if _family(expression) == "boolean":
        return made
    # The engine would cast it by itself, and could raise.
    return exp.TryCast(this=made, to=exp.DataType.build("BOOLEAN"))


def _safe(node: exp.Expr) -> exp.Expr:
    def mend(each: exp.Expr) -> exp.Expr:
        if isinstance(each, exp.Cast) and not isinstance(each, exp.TryCast):
            return exp.TryCast(this=each.this, to=each.args["to"])
        if isinstance(each, exp.Div):
            divisor = exp.Nullif(this=each.expression, expression=exp.Literal.number(0))
            return exp.Div(this=each.this, expression=divisor, typed=False, safe=False)
        if isinstance(each, exp.Literal) and not each.is_string and "." in each.name:
            # A decimal would make decimals of the integers beside it, which can overflow.
            text = each.name if "e" in each.name.lower() else f"{each.name}e0"
            return exp.Literal.number(text)
        return each

    return node.transform(mend)


def _cannot_raise(node: exp.Expr) -> bool:
    """Whether no value of any column can make the engine raise, implicit casts included."""
    return _sound(node) and all(_cannot_raise(child) for child in node.iter_expressions())


def _sound(node: exp.Expr) -> bool:
    """The same of the topmost operation: operands of one kind, conditions that are booleans."""
    children = list(node.iter_expressions())
    if isinstance(node, _COMPARISONS):
        return _alike(children)
    if isinstance(node, _LOGIC):
        return all(_family(child) == "boolean" for child in children)
    if isinstance(node, _OF_TEXT):
        return all(_family(child) == "text" for child in children)
    if isinstance(node, exp.Coalesce):
        return _alike(children)
    if isinstance(node, exp.Case):
        return node.this is None and _alike(_branches(node))
    if isinstance(node, exp.If):
        outcomes = [node.args.get("true"), node.args.get("false")]
        given = [each for each in outcomes if each is not None and not isinstance(each, exp.Null)]
        return _family(node.this) == "boolean" and _alike(given)
    return isinstance(node, _TOTAL)


def _alike(nodes: list[exp.Expr]) -> bool:
    kinds = {_family(node) for node in nodes}
    return len(kinds) <= 1 and None not in kinds


def _family(node: exp.Expr) -> str | None:
    """Types that compare without a cast that can fail."""
    kind = node.type.this if node.type is not None else None
    for name, members in (
        ("text", _TEXT),
        ("number", _NUMBERS),
        ("date", _DATES),
        ("time", _TIMES),
    ):
        if kind in members:
            return name
    return "boolean" if kind == exp.DataType.Type.BOOLEAN else None


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
        return all(is_integer(branch, resolve) for branch in _branches(node))
    if isinstance(node, exp.Coalesce | exp.Greatest | exp.Least):
        return all(is_integer(child, resolve) for child in _arguments(node))
    if isinstance(node, exp.Cast | exp.TryCast):
        return node.to.this in _INTEGERS
    if isinstance(node, exp.If):
        return all(is_integer(branch, resolve) for branch in _branches(node))
    if isinstance(node, exp.Floor | exp.Ceil | exp.Round):
        return node.args.get("decimals") is None and node.args.get("to") is None
    if isinstance(node, exp.Extract):
        return node.name.upper() != "EPOCH"
    return isinstance(node, exp.Null | exp.Year | exp.Month | exp.Length | exp.DateDiff)


def bounds_of(node: exp.Expr, resolve: Resolve) -> Bounds:
    """The interval in which an expression lies, by interval arithmetic on declared bounds."""
    found = find_bounds(node, resolve)
    if found is None:
        raise ParameterError(
            "bounds",
            node.sql("duckdb")[:60],
            "no bounds follow for this expression; declare those of its columns "
            "(bounds={'cost': (0, 500)}), or name it in a subquery and declare the name's",
        )
    return found


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
        return _union([find_bounds(child, resolve) for child in _arguments(node)])
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
        parts = [find_bounds(child, resolve) for child in _arguments(node)]
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
    if found is not None and node.args["to"].this in _INTEGERS:
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
    if isinstance(node, exp.Greatest):
        return max(p[0] for p in parts), max(p[1] for p in parts)
    if isinstance(node, exp.Least):
        return min(p[0] for p in parts), min(p[1] for p in parts)
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


def _branches(node: exp.Expr) -> list[exp.Expr]:
    """What a CASE or IF can give; NULL, which is no number, left out."""
    given = [branch.args["true"] for branch in node.args.get("ifs", [node])]
    other = node.args.get("default") or node.args.get("false")
    if other is not None:
        given.append(other)
    return [branch for branch in given if not isinstance(branch, exp.Null)]


def _arguments(node: exp.Expr) -> list[exp.Expr]:
    return list(node.iter_expressions())


def known_values(node: exp.Expr, resolve: Resolve) -> tuple[Any, ...] | None:
    """The values an expression can take, where the query or metadata tell; None otherwise."""
    if isinstance(node, exp.Paren):
        return known_values(node.this, resolve)
    if isinstance(node, exp.Column):
        column = resolve(node)
        if column.keys is None and column.kind == ColumnType.BOOLEAN:
            return (False, True)
        return column.keys
    if isinstance(node, exp.Case | exp.If):
        branches = _branches(node)
        if all(isinstance(b, exp.Literal | exp.Boolean) for b in branches):
            values = tuple(dict.fromkeys(_literal(b) for b in branches))
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


def columns_in(node: exp.Expr) -> list[exp.Column]:
    """The columns that an expression reads."""
    return list(node.find_all(exp.Column))


def no_unit(node: exp.Expr, find: Resolve, where: str) -> None:
    """Refuse the unit's column where it could tell people apart."""
    for column in columns_in(node):
        if find(column).is_unit:
            raise QueryError(
                f"the unit column {column.name} in {where} is not answered: it may stand in "
                "COUNT(DISTINCT ...), in an inner GROUP BY and in join keys only"
            )


def resolver(columns: Mapping[str, Mapping[str, Column]]) -> Resolve:
    """Find a qualified column among the sources of a SELECT."""

    def find(column: exp.Column) -> Column:
        source = columns.get(column.table)
        if source is None or column.name not in source:
            raise QueryError(f"the column {column.sql('duckdb')} is unknown here")
        return source[column.name]

    return find
