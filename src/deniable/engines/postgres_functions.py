"""What Postgres writes differently, function by function, so that it means the same."""

from __future__ import annotations

import itertools
import math
import re
import string
import sys
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from sqlglot import exp

from deniable.engines.literals import MOMENT
from deniable.engines.translate import (
    INTEGERS,
    NUMBERS,
    SPACES,
    TEXTS,
    Kind,
    cast,
    kind_of,
    refused,
    type_of,
)
from deniable.engines.trees import case, whole_constant
from deniable.errors import QueryError

NAME, DIALECT = "Postgres", "postgres"
TYPES = {
    **dict.fromkeys(INTEGERS, "BIGINT"),
    **dict.fromkeys(TEXTS, "TEXT"),
    **dict.fromkeys((Kind.DOUBLE, Kind.FLOAT), "DOUBLE PRECISION"),
    **dict.fromkeys((Kind.INT128, Kind.DECIMAL), "NUMERIC"),
    Kind.BOOLEAN: "BOOLEAN",
    Kind.DATE: "DATE",
    **dict.fromkeys((Kind.TIMESTAMP, Kind.TIMESTAMPNTZ), "TIMESTAMP"),
}
_PARTS = {"DAYOFWEEK": "DOW", "DAYOFYEAR": "DOY", "DAYOFMONTH": "DAY", "WEEKOFYEAR": "WEEK"}
_PART_FUNCTIONS: dict[type[exp.Expr], str] = {
    exp.Year: "YEAR",
    exp.Month: "MONTH",
    exp.Day: "DAY",
    exp.Quarter: "QUARTER",
    exp.Hour: "HOUR",
    exp.Minute: "MINUTE",
    exp.DayOfWeek: "DOW",
    exp.DayOfMonth: "DAY",
    exp.DayOfYear: "DOY",
    exp.WeekOfYear: "WEEK",
    exp.Week: "WEEK",
}
WHOLE = {*INTEGERS, Kind.INT128, Kind.DECIMAL}
MOMENTS = {Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPNTZ}
_PLAIN_PATTERN = frozenset(string.ascii_letters + string.digits + " _-^$.*+?[]|")
_LARGEST = sys.float_info.max
SURE = "deniable_sure"
"""Marks what raises only if one of these parts does: what comes out of canonical ones is near."""


def sure(made: exp.Expr, *parts: exp.Expr) -> exp.Expr:
    """What raises only if one of its parts does."""
    made.meta[SURE] = parts
    return made


def zero_or_one(value: exp.Expr, to: exp.DataType) -> exp.Expr:
    """A truth as a number."""
    one, zero = (cast(exp.Literal.number(n), TYPES[to.this], dialect=DIALECT) for n in (1, 0))
    return case((exp.paren(value), one), (exp.Not(this=exp.paren(value.copy())), zero))


def _plain_cast(node: exp.Cast) -> exp.Expr:
    """Casts that we wrote ourselves, which cannot fail."""
    if kind_of(node.this) == Kind.BOOLEAN and node.to.this in NUMBERS:
        return zero_or_one(node.this, node.to)
    if type_of(node.this) == Kind.DOUBLE and node.to.this == Kind.INT128:
        # From a double to NUMERIC only fifteen digits are kept; what we cast so is below 2^63.
        return _numeric(cast(node.this, "BIGINT"))
    return cast(node.this, TYPES[node.to.this], dialect=DIALECT)


def _number(node: exp.Literal) -> exp.Expr:
    """A number with a fraction is a double everywhere else."""
    if node.is_string or not ({".", "e", "E"} & set(node.name)):
        return node
    return cast(exp.Literal.string(node.name), "DOUBLE")


def _is_nan(node: exp.IsNan) -> exp.Expr:
    nan = cast(exp.Literal.string("NaN"), "DOUBLE")
    return exp.paren(exp.EQ(this=node.this, expression=nan))


def _part(node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.Extract):
        name, value = node.name.upper(), node.expression
    else:
        name, value = _PART_FUNCTIONS[type(node)], node.this
    part = exp.Extract(this=exp.Var(this=_PARTS.get(name, name)), expression=value)
    if name == "EPOCH":
        return sure(cast(part, "DOUBLE"), value)
    return sure(cast(exp.Floor(this=part), "BIGINT"), value)  # seconds have a fraction


def _truncated(node: exp.Expr) -> exp.Expr:
    unit = exp.Literal.string(node.text("unit").lower())
    moment = cast(node.this, "TIMESTAMP")
    return sure(exp.Anonymous(this="DATE_TRUNC", expressions=[unit, moment]), node.this)


def _by(top: exp.Expr, bottom: exp.Expr) -> exp.Expr:
    return exp.Div(this=top, expression=bottom, typed=True, safe=False)


def _divided(node: exp.Div) -> exp.Expr:
    """Fractions come out; a divisor of zero is NULL already.

    Postgres raises where a quotient rounds to zero, and elsewhere it is zero. By a constant, as our
    own grids divide, it is zero here too.
    """
    top = node.this if type_of(node.this) == Kind.DOUBLE else cast(node.this, "DOUBLE")
    made = _by(top, node.expression)
    least = _rounds_to_zero(abs(_constant(node.expression)))
    if not least:
        return made
    near = exp.LTE(this=exp.Abs(this=top.copy()), expression=_double(least))
    return exp.paren(case((near, _double(0.0)), otherwise=made))


def _rounds_to_zero(divisor: float) -> float:
    """The largest double whose quotient is no more than half of the least double."""
    exact = Fraction(divisor) / (1 << 1075)
    found = float(exact)
    return math.nextafter(found, 0) if Fraction(found) > exact else found


def _constant(node: exp.Expr) -> float:
    """The value of a number in the text; 0 of anything else."""
    value = node.this if isinstance(node, exp.Cast) else node
    if isinstance(value, exp.Paren | exp.Neg):
        return _constant(value.this)
    return float(value.name) if isinstance(value, exp.Literal) else 0.0


def _double(value: float) -> exp.Expr:
    return cast(exp.Literal.string(repr(value)), "DOUBLE")


def _whole_division(node: exp.IntDiv) -> exp.Expr:
    kinds = {type_of(node.this), type_of(node.expression)}
    bottom = exp.Nullif(this=node.expression, expression=exp.Literal.number(0))
    if kinds <= INTEGERS:
        known = isinstance(node.expression, exp.Literal) and node.expression.name != "0"
        divisor = node.expression if known else bottom
        return exp.Div(this=node.this, expression=divisor, typed=True, safe=False)
    if kinds <= WHOLE:
        return exp.Anonymous(this="DIV", expressions=[_numeric(node.this), _numeric(bottom)])
    return exp.Div(this=cast(node.this, "DOUBLE"), expression=bottom, typed=True, safe=False)


def _numeric(node: exp.Expr) -> exp.Expr:
    return cast(node, "DECIMAL", dialect=DIALECT)


def _shifted(node: exp.BitwiseRightShift) -> exp.Expr:
    """Of numbers that are not negative, and too long to have bits here."""
    divisor = exp.Literal.number(1 << int(node.expression.name))
    return exp.Anonymous(this="DIV", expressions=[_numeric(node.this), divisor])


def _remainder(node: exp.Mod) -> exp.Expr:
    if not {type_of(node.this), type_of(node.expression)} <= WHOLE:
        raise refused("% of fractions", NAME)
    bottom = exp.Nullif(this=node.expression, expression=exp.Literal.number(0))
    return exp.Mod(this=node.this, expression=bottom)


def _square_root(node: exp.Sqrt) -> exp.Expr:
    return exp.Sqrt(this=cast(node.this, "DOUBLE"))


def _logarithm(node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.Ln):
        return exp.Ln(this=cast(node.this, "DOUBLE"))
    if node.args.get("expression") is not None:
        raise refused("LOG with a base", NAME)
    return exp.Anonymous(this="LOG", expressions=[cast(node.this, "DOUBLE")])


def _like(node: exp.Expr) -> exp.Expr:
    """No character is special but % and _."""
    if isinstance(node.parent, exp.Escape):
        return node
    return exp.Escape(this=node.copy(), expression=exp.Literal.string(""))


def _matches(node: exp.RegexpLike) -> exp.Expr:
    pattern = node.expression
    plain = isinstance(pattern, exp.Literal) and set(pattern.name) <= _PLAIN_PATTERN
    if pattern.name == MOMENT:
        return node
    if not plain or node.args.get("flag"):
        raise refused("a pattern with more than letters, digits and ^$.*+?[]|", NAME)
    if re.search(r"[*+?]\+|\[[\[.=:]", pattern.name):  # which the server reads otherwise, or not
        raise refused("a regular expression with possessive quantifiers or classes", NAME)
    try:
        re.compile(pattern.name)
    except re.error:
        raise QueryError("the regular expression cannot be read") from None
    pattern.set("this", _of_lines(pattern.name))
    return node


def _of_lines(pattern: str) -> str:
    """A dot is no end of a line, though any other character; what is in brackets stays."""
    parts = re.split(r"(\[\^?\]?[^\]]*\])", pattern)
    dots = (part.replace(".", "[^\n]") for part in parts[::2])
    return "".join(itertools.chain(*itertools.zip_longest(dots, parts[1::2], fillvalue="")))


def _trimmed(node: exp.Trim) -> exp.Expr:
    """Without marks of its own, all that Unicode calls a space is taken off."""
    if node.expression is None:
        node.set("expression", exp.Literal.string(SPACES))
    return node


def _summed(node: exp.Expr) -> exp.Expr:
    """A sum of whole numbers is a NUMERIC here, whatever a parser thinks."""
    inner = node.this if isinstance(node, exp.Window) else node
    if isinstance(inner, exp.Sum) and type_of(inner.this) in INTEGERS:
        node.type = exp.DataType(this=Kind.INT128)
    return node


_FORMATS = {
    **{"Y": "YYYY", "y": "YY", "m": "MM", "d": "DD", "j": "DDD", "H": "HH24", "I": "HH12"},
    **{"M": "MI", "S": "SS", "p": "AM", "B": "FMMonth", "b": "Mon", "A": "FMDay", "a": "Dy"},
}


def _written(node: exp.TimeToStr) -> exp.Expr:
    """TO_CHAR; what is no part of the time stands in quotes, where a backslash is special."""
    marks, form = iter(node.args["format"].name), ""
    for mark in marks:
        part = _FORMATS.get(next(marks), "") if mark == "%" else ""
        plain = "%" if mark == "%" else mark
        form += part or ('"' + plain.replace("\\", "\\\\").replace('"', '\\"') + '"')
    made = exp.Anonymous(
        this="TO_CHAR", expressions=[cast(node.this, "TIMESTAMP"), exp.Literal.string(form)]
    )
    return sure(made, node.this)


def _counted(node: exp.CountIf) -> exp.Expr:
    return exp.Count(this=case((node.this, exp.Literal.number(1))))


def _difference(node: exp.DateDiff) -> exp.Expr:
    unit = node.text("unit").upper().rstrip("S") or "DAY"
    later, earlier = node.this, node.expression
    if unit == "DAY":
        days = exp.Sub(this=cast(later, "DATE"), expression=cast(earlier, "DATE"))
        return sure(cast(exp.paren(days), "BIGINT"), later, earlier)
    if unit not in {"MONTH", "YEAR"}:
        raise refused(f"DATE_DIFF in {unit.lower()}s", NAME)
    ends = (_counted_months(each, unit) for each in (later, earlier))
    return sure(exp.paren(exp.Sub(this=next(ends), expression=next(ends))), later, earlier)


def _counted_months(value: exp.Expr, unit: str) -> exp.Expr:
    year = cast(exp.Extract(this=exp.Var(this="YEAR"), expression=value), "BIGINT")
    if unit == "YEAR":
        return year
    month = cast(exp.Extract(this=exp.Var(this="MONTH"), expression=value.copy()), "BIGINT")
    twelve = exp.Mul(this=year, expression=exp.Literal.number(12))
    return exp.paren(exp.Add(this=twelve, expression=month))


def _substring(node: exp.Substring) -> exp.Expr:
    """From a constant place; what comes before the first letter differs between engines."""
    ends = [node.args.get("start"), node.args.get("length")]
    if not all(end is None or (isinstance(end, exp.Literal) and end.is_int) for end in ends):
        raise refused("SUBSTRING from places that are not constant", NAME)
    if ends[0] is not None and ends[0].name == "0":
        raise refused("SUBSTRING from 0", NAME)
    return node


def _end(node: exp.Expr) -> exp.Expr:
    if whole_constant(node.expression) is None:
        raise refused("LEFT and RIGHT of a length that is not constant", NAME)
    return node


def _refuse(node: exp.Expr) -> exp.Expr:
    raise refused(node.key.upper(), NAME)


def _contains(node: exp.Contains) -> exp.Expr:
    """NUL, which no text has here."""
    if not isinstance(node.expression, exp.Chr):
        raise refused("CONTAINS", NAME)
    return exp.false()


def _known_functions(node: exp.Anonymous) -> exp.Expr:
    name = node.name.upper()
    if name == "HASH":  # of text: the same whatever the type
        hashed = exp.Anonymous(this="HASHTEXT", expressions=[cast(node.expressions[0], "TEXT")])
        made = cast(hashed, "BIGINT")
        made.type = exp.DataType.build("BIGINT")
        return made
    if name == "STRLEN":
        return exp.Anonymous(this="OCTET_LENGTH", expressions=node.expressions)
    if name != "ISFINITE":
        raise refused(name, NAME)
    return exp.Between(this=node.expressions[0], low=_double(-_LARGEST), high=_double(_LARGEST))


RULES: dict[type[exp.Expr], Callable[[Any], exp.Expr]] = {
    exp.Anonymous: _known_functions,
    exp.BitwiseRightShift: _shifted,
    exp.Cast: _plain_cast,
    exp.Contains: _contains,
    exp.CountIf: _counted,
    exp.DateAdd: _refuse,
    exp.DateDiff: _difference,
    exp.DateTrunc: _truncated,
    exp.Div: _divided,
    exp.Extract: _part,
    exp.IntDiv: _whole_division,
    exp.IsNan: _is_nan,
    exp.Left: _end,
    exp.Like: _like,
    exp.Literal: _number,
    exp.Ln: _logarithm,
    exp.Log: _logarithm,
    exp.Mod: _remainder,
    exp.RegexpLike: _matches,
    exp.Sum: _summed,
    exp.Window: _summed,
    exp.Right: _end,
    exp.SimilarTo: _refuse,
    exp.Sqrt: _square_root,
    exp.Substring: _substring,
    exp.TimestampTrunc: _truncated,
    exp.Trim: _trimmed,
    exp.TimeToStr: _written,
    **dict.fromkeys(_PART_FUNCTIONS, _part),
}
