"""Days and times of the years 1 to 9999: parts, beginnings, differences, moves by a constant.

Functions of times raise far from our years, when an engine plans as well as when it runs. So what
makes a day or time is sealed at once, and no move is farther than 4,000 years, which every engine
holds.
"""

from __future__ import annotations

from sqlglot import exp

from deniable.engines.literals import cast_to
from deniable.errors import QueryError
from deniable.query.read.values.constants import as_kind
from deniable.query.read.values.value import (
    WORDS,
    Read,
    Value,
    closed,
    constant,
    made,
    one_kind,
    seal,
    widened,
)
from deniable.tables import SQL_TYPES, ColumnType

_D, _S, _I, _F, _T = (
    ColumnType.DATE,
    ColumnType.TIMESTAMP,
    ColumnType.INTEGER,
    ColumnType.NUMBER,
    ColumnType.TEXT,
)
_OF_TIME = {"HOUR", "MINUTE", "SECOND", "EPOCH"}
_PARTS = {
    *("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "DOW", "ISODOW", "DAYOFWEEK", "DOY", "DAYOFYEAR"),
    *("DAYOFMONTH", "DECADE", "CENTURY", "ISOYEAR", *_OF_TIME),
}
_BEGINNINGS = {"YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND"}
_FARTHEST = {
    "YEAR": 4_000,
    "QUARTER": 16_000,
    "MONTH": 48_000,
    "WEEK": 208_000,
    "DAY": 1_461_000,
    "HOUR": 35_000_000,
    "MINUTE": 2_100_000_000,
    "SECOND": 126_000_000_000,
}
_FORMATS = frozenset("YmdHMSjyBbAaIp")
_LONGEST_FORMAT = 100


def _moment(value: Value, name: str, where: str) -> Value:
    """A day or time; a text in the question is read as one."""
    if value.kind in {_D, _S}:
        return value
    if value.kind is None:
        return Value(_S, cast_to(exp.Null(), SQL_TYPES[_S]))
    for kind in (_D, _S) if value.kind == _T and value.constant is not None else ():
        found = as_kind(value.constant, kind)
        if found is not None:
            return constant(kind, found)
    raise QueryError(f"{name} in {where} is of dates, not of a {WORDS[value.kind]}; CAST it first")


def part(node: exp.Expr, read: Read) -> Value:
    """EXTRACT, YEAR, MONTH, ..."""
    if isinstance(node, exp.Extract):
        name, argument = node.name.upper().rstrip("S"), node.expression
        if name not in _PARTS:
            raise QueryError(f"EXTRACT({node.name[:20]} ...) is not answered")
    else:
        name, argument = node.key.upper(), node.this
        if any(value for key, value in node.args.items() if key != "this"):
            raise QueryError(f"{name} takes one date")
    value = _moment(read(argument), name, read.where)
    if value.kind == _D and name in _OF_TIME:
        value = widened(value, _S)
    if isinstance(node, exp.Extract):
        sql: exp.Expr = exp.Extract(this=exp.Var(this=name), expression=value.sql)
    else:
        sql = type(node)(this=value.sql)
    if name == "EPOCH":
        return made(_F, sql, value, guarded=True)
    return made(_I, cast_to(sql, "BIGINT"), value, guarded=True)


def beginning(node: exp.Expr, read: Read) -> Value:
    """DATE_TRUNC: within our years, as the first of them begins on a Monday."""
    unit = node.text("unit").upper().rstrip("S")
    if unit not in _BEGINNINGS or node.args.get("zone") is not None:
        raise QueryError("DATE_TRUNC takes year, quarter, month, week, day, hour, minute or second")
    value = widened(_moment(read(node.this), "DATE_TRUNC", read.where), _S)
    sql = exp.TimestampTrunc(this=value.sql, unit=exp.Var(this=unit))
    return made(_S, cast_to(sql, SQL_TYPES[_S]), value, guarded=True)


def difference(node: exp.DateDiff, read: Read) -> Value:
    """DATE_DIFF: how many beginnings of the unit lie between."""
    unit = (node.text("unit") or "DAY").upper().rstrip("S")
    if unit not in _BEGINNINGS:
        raise QueryError("DATE_DIFF takes year, quarter, month, week, day, hour, minute or second")
    parts = [_moment(read(each), "DATE_DIFF", read.where) for each in (node.this, node.expression)]
    _, (later, earlier) = one_kind(parts, "DATE_DIFF", read.where)
    sql = exp.DateDiff(
        this=later, expression=earlier, unit=exp.Var(this=unit), date_part_boundary=True
    )
    return made(_I, sql, *parts, guarded=True)


def moved_by(node: exp.DateAdd, read: Read) -> Value:
    """DATE_ADD."""
    step = node.expression
    if isinstance(step, exp.Interval):
        return moved(read(node.this), step, 1, read.where)
    unit = node.args.get("unit") or exp.Var(this="DAY")
    return moved(read(node.this), exp.Interval(this=step, unit=unit), 1, read.where)


def moved(value: Value, interval: exp.Interval, sign: int, where: str) -> Value:
    """A day or time and a constant interval, as a time."""
    moment = widened(_moment(value, "INTERVAL", where), _S)
    number, unit = sign * _count(interval, where), interval.text("unit").upper().rstrip("S")
    if unit == "QUARTER":  # a word that not every engine knows here
        number, unit = 3 * number, "MONTH"
    sql = exp.Add(this=closed(moment.sql), expression=_interval(number, unit))
    sealed = seal(_S, cast_to(sql, SQL_TYPES[_S]))
    return made(_S, sealed, moment, guarded=True, twice=True)


def shifted(value: Value, other: Value, sign: int, where: str) -> Value:
    """A day and a constant number of days, as a day."""
    if other.kind in {_D, _S}:
        raise QueryError(f"a difference of dates in {where} is written DATE_DIFF('day', a, b)")
    whole = other.kind == _I and isinstance(other.constant, int)
    if value.kind != _D or not whole or abs(other.constant) > _FARTHEST["DAY"]:
        raise QueryError(
            f"a date in {where} is moved by a constant: day + 7, or time + INTERVAL 1 HOUR"
        )
    sql = exp.Add(this=closed(value.sql), expression=_interval(sign * other.constant, "DAY"))
    sealed = seal(_D, cast_to(sql, SQL_TYPES[_D]))
    return made(_D, sealed, value, guarded=True, twice=True)


def _interval(number: int, unit: str) -> exp.Expr:
    return exp.Interval(this=exp.Literal.string(str(number)), unit=exp.Var(this=unit))


def _count(interval: exp.Interval, where: str) -> int:
    given = interval.this
    negative = isinstance(given, exp.Neg)
    text = (given.this if isinstance(given, exp.Neg) else given).name if given is not None else ""
    unit = interval.text("unit").upper().rstrip("S")
    digits = text.removeprefix("-")
    plain = isinstance(given, exp.Literal | exp.Neg) and digits.isdecimal() and digits.isascii()
    if not plain or unit not in _FARTHEST or len(digits) > 12 or int(digits) > _FARTHEST[unit]:
        raise QueryError(
            f"INTERVAL in {where} is a constant number of years, quarters, months, weeks, days, "
            "hours, minutes or seconds, up to 4,000 years"
        )
    return -int(digits) if negative != text.startswith("-") else int(digits)


def alone(node: exp.Expr, read: Read) -> Value:
    """An interval by itself."""
    del node
    raise QueryError(
        f"INTERVAL in {read.where} is answered beside a date only: day + INTERVAL 1 DAY"
    )


def written(node: exp.TimeToStr, read: Read) -> Value:
    """STRFTIME with a constant format of known parts."""
    form = node.args.get("format")
    text = form.name if isinstance(form, exp.Literal) and form.is_string else ""
    marks = {each[:1] for each in text.replace("%%", "").split("%")[1:]}
    if not text or len(text) > _LONGEST_FORMAT or not marks <= _FORMATS or not text.isprintable():
        raise QueryError("STRFTIME takes a constant format of %Y %m %d %H %M %S %j %y %B %b %A %a")
    value = _moment(read(node.this), "STRFTIME", read.where)
    sql = exp.TimeToStr(this=value.sql, format=constant(_T, text).sql)
    return made(_T, sql, value, guarded=True)
