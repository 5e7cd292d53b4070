"""Arithmetic: whole numbers of 64 bits that never overflow, doubles as IEEE 754 has them.

Sums and products of two 64-bit numbers fit 127 bits; what does not fit 64 again is NULL. Doubles
may become infinite inside of one row, and what is beyond a function's domain is NULL.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from sqlglot import exp

from deniable.engines.literals import cast_to, whole_literal
from deniable.engines.trees import case, whole_constant
from deniable.errors import QueryError
from deniable.query.read.values.times import moved, shifted
from deniable.query.read.values.value import (
    WORDS,
    Read,
    Value,
    closed,
    constant,
    made,
    one_kind,
    try_cast,
    widened,
)
from deniable.tables import NUMERIC, ColumnType

_I, _F = ColumnType.INTEGER, ColumnType.NUMBER
_TIMES = {ColumnType.DATE, ColumnType.TIMESTAMP}
_MOST_PLACES, _MOST_WHOLE = 15, (1 << 63) - 1


def signed(node: exp.Binary, read: Read) -> Value:
    """+ - * of numbers; + and - of a day or time and an interval."""
    if isinstance(node, exp.Add | exp.Sub):
        sign = -1 if isinstance(node, exp.Sub) else 1
        if isinstance(node.right, exp.Interval):
            return moved(read(node.left), node.right, sign, read.where)
        if isinstance(node.left, exp.Interval) and sign > 0:
            return moved(read(node.right), node.left, sign, read.where)
    parts = [read(node.left), read(node.right)]
    if isinstance(node, exp.Add | exp.Sub) and parts[0].kind in _TIMES:
        return shifted(parts[0], parts[1], -1 if isinstance(node, exp.Sub) else 1, read.where)
    kind, (left, right) = _numbers(parts, _NAMES[type(node)], read.where)
    if kind == _F:
        sql = type(node)(this=closed(left), expression=closed(right))
        return made(_F, sql, *parts, guarded=True, wild=True)
    near = _near(node, parts)
    if near is not None:  # cheaper where one of the two is constant
        return made(_I, near, *parts)
    sql = type(node)(this=_wide(left), expression=_wide(right))
    return made(_I, try_cast(sql, _I), *parts)


def _near(node: exp.Binary, parts: Sequence[Value]) -> exp.Expr | None:
    """A column and a constant in 64 bits, for the numbers whose result these hold."""
    one, other = parts if parts[1].constant is not None else reversed(parts)
    if not isinstance(one.sql, exp.Column) or not isinstance(other.constant, int):
        return None
    low, high = _ends(node, other.constant, first=one is parts[0])
    sql = type(node)(this=parts[0].sql.copy(), expression=parts[1].sql.copy())
    inside: list[exp.Expr] = []
    if low > -_MOST_WHOLE - 1:
        inside.append(exp.GTE(this=one.sql.copy(), expression=constant(_I, low).sql))
    if high < _MOST_WHOLE:
        inside.append(exp.LTE(this=one.sql.copy(), expression=constant(_I, high).sql))
    return case((exp.and_(*inside), sql)) if inside else exp.paren(sql)


def _ends(node: exp.Binary, fixed: int, *, first: bool) -> tuple[int, int]:
    """The least and largest numbers whose sum, difference or product has 64 bits."""
    least, most = -_MOST_WHOLE - 1, _MOST_WHOLE
    if isinstance(node, exp.Mul):
        if fixed == 0:
            return least, most
        ends = (least, most) if fixed > 0 else (most, least)
        return -(-ends[0] // fixed), ends[1] // fixed
    if isinstance(node, exp.Sub):
        return (least + fixed, most + fixed) if first else (fixed - most, fixed - least)
    return least - fixed, most - fixed


_NAMES: dict[type[exp.Expr], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*"}


def divided(node: exp.Div, read: Read) -> Value:
    """/ gives a double, or NULL where the divisor is 0."""
    parts = [read(node.left), read(node.right)]
    top, bottom = _doubles(parts, "/", read.where)
    if not parts[1].constant:
        bottom = exp.Nullif(this=bottom, expression=exp.Literal.number("0e0"))
    sql = exp.Div(this=closed(top), expression=closed(bottom), typed=False, safe=False)
    return made(_F, sql, *parts, guarded=True, wild=True)


def whole_divided(node: exp.Binary, read: Read) -> Value:
    """// and % of whole numbers, toward zero; % of doubles."""
    parts = [read(node.left), read(node.right)]
    name = "//" if isinstance(node, exp.IntDiv) else "%"
    kind, (top, bottom) = _numbers(parts, name, read.where)
    if kind == _F:
        if name == "//":
            raise QueryError(f"// in {read.where} is of whole numbers; write FLOOR(a / b)")
        bottom = exp.Nullif(this=bottom, expression=exp.Literal.number("0e0"))
        rest = exp.Mod(this=closed(top), expression=bottom)
        return made(_F, rest, *parts, guarded=True, wild=True)
    if parts[1].constant not in {None, 0, -1}:  # the quotient is no farther than the dividend
        return made(_I, exp.paren(type(node)(this=closed(top), expression=closed(bottom))), *parts)
    bottom = exp.Nullif(this=bottom, expression=exp.Literal.number(0))
    sql = type(node)(this=_wide(top), expression=_wide(bottom))
    return made(_I, try_cast(sql, _I), *parts)


def unary(node: exp.Expr, read: Read) -> Value:
    """- and ABS."""
    value = read(node.this)
    negative = isinstance(node, exp.Neg)
    if negative and value.constant is not None and value.kind in NUMERIC:
        return constant(value.kind or _I, -value.constant)
    kind, (sql,) = _numbers([value], "-" if negative else "ABS", read.where)
    inner = closed(sql) if kind == _F else _wide(sql)
    one = type(node)(this=inner)
    if kind == _F:
        return made(_F, exp.paren(one) if negative else one, value, wild=True)
    return made(_I, try_cast(one, _I), value)


def sign(node: exp.Sign, read: Read) -> Value:
    """SIGN: -1, 0 or 1."""
    value = read(node.this)
    kind, (sql,) = _numbers([value], "SIGN", read.where)
    return made(_I, cast_to(exp.Sign(this=sql), "BIGINT"), value, guarded=kind == _F)


def rounded(node: exp.Expr, read: Read) -> Value:
    """FLOOR, CEIL, ROUND: whole numbers; to decimal places, ROUND gives a double."""
    value, name = read(node.this), node.key.upper()
    kind, (sql,) = _numbers([value], name, read.where)
    places = _places(node)
    if kind == _I and (places is None or places >= 0):
        return value
    if kind == _I:
        assert places is not None
        return made(_I, try_cast(_to_multiple(sql, 10**-places), _I), value, twice=True)
    if places is None:
        return made(_I, try_cast(type(node)(this=sql), _I), value, guarded=True)
    one = exp.Round(this=sql, decimals=whole_literal(places))
    return made(_F, one, value, guarded=True, wild=True)


def _to_multiple(sql: exp.Expr, step: int) -> exp.Expr:
    """The nearest multiple of an even number, halves away from zero, in whole numbers.

    Half a step farther from zero, and then toward it: 65 bits are enough.
    """
    whole, half = (_wide(constant(_I, each).sql) for each in (step, step // 2))
    below = exp.LT(this=closed(sql).copy(), expression=constant(_I, 0).sql)
    farther = case(
        (below, exp.Sub(this=_wide(sql), expression=half)),
        otherwise=exp.Add(this=_wide(sql.copy()), expression=half.copy()),
    )
    steps = exp.IntDiv(this=exp.paren(farther), expression=whole)
    return exp.Mul(this=exp.paren(steps), expression=whole.copy())


def _places(node: exp.Expr) -> int | None:
    given = node.args.get("decimals")
    if node.args.get("to") is not None or (given is not None and not isinstance(node, exp.Round)):
        raise QueryError(f"{node.key.upper()} takes one number")
    if given is None:
        return None
    places = whole_constant(given)
    if places is None or abs(places) > _MOST_PLACES:
        raise QueryError("ROUND takes a constant number of places, from -15 to 15")
    return places


def within_domain(node: exp.Expr, read: Read) -> Value:
    """SQRT, LN, LOG: NULL where there is no result."""
    base: exp.Expr | None = None
    argument = node.this
    if isinstance(node, exp.Log) and node.expression is not None:
        base, argument = _base(read(node.this)), node.expression
    value = read(argument)
    (number,) = _doubles([value], node.key.upper(), read.where)
    zero = exp.Literal.number("0e0")
    least = exp.GTE if isinstance(node, exp.Sqrt) else exp.GT
    inside = least(this=closed(number).copy(), expression=zero)
    kept = case((inside, number))
    sql = type(node)(this=kept) if base is None else exp.Log(this=base, expression=kept)
    return made(_F, sql, value, guarded=True, wild=True, twice=True)


def _base(value: Value) -> exp.Expr:
    if value.kind not in NUMERIC or value.constant is None or not 0 < value.constant != 1:
        raise QueryError("LOG takes a constant base above 0, and not 1: LOG(2, x)")
    return constant(_F, Fraction(value.constant)).sql


def exponential(node: exp.Exp, read: Read) -> Value:
    """EXP; what is too large for a double is infinite."""
    value = read(node.this)
    (number,) = _doubles([value], "EXP", read.where)
    return made(_F, exp.Exp(this=number), value, guarded=True, wild=True)


def power(node: exp.Pow, read: Read) -> Value:
    """POW of doubles."""
    parts = [read(node.this), read(node.expression)]
    base, exponent = _doubles(parts, "POW", read.where)
    return made(_F, exp.Pow(this=base, expression=exponent), *parts, guarded=True, wild=True)


def _numbers(values: Sequence[Value], name: str, where: str) -> tuple[ColumnType, list[exp.Expr]]:
    for value in values:
        if value.kind is not None and value.kind not in NUMERIC:
            raise QueryError(
                f"{name} in {where} is of numbers, not of a {WORDS[value.kind]}; CAST it first"
            )
    return one_kind(values, name, where)


def _doubles(values: Sequence[Value], name: str, where: str) -> list[exp.Expr]:
    _numbers(values, name, where)
    null = Value(_F, cast_to(exp.Null(), "DOUBLE"))
    return [widened(null if value.kind is None else value, _F).sql for value in values]


def _wide(sql: exp.Expr) -> exp.Expr:
    return cast_to(sql, "INT128")
