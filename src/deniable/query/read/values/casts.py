"""Casts: constants are read by us, cells by an engine's TRY_CAST, which gives NULL.

Texts are days and times only where they look like 2024-01-31: engines read other words too, such
as now, infinity and years before the first. A double as text is refused: engines spell it
differently.
"""

from __future__ import annotations

from sqlglot import exp

from deniable.engines.literals import MOMENT
from deniable.engines.trees import case
from deniable.errors import QueryError
from deniable.query.read.values.constants import as_kind
from deniable.query.read.values.value import (
    EXAMPLES,
    WORDS,
    Read,
    Value,
    cast,
    closed,
    constant,
    made,
    seal,
    try_cast,
)
from deniable.tables import ColumnType

_D, _S, _I, _F, _T, _B = (
    ColumnType.DATE,
    ColumnType.TIMESTAMP,
    ColumnType.INTEGER,
    ColumnType.NUMBER,
    ColumnType.TEXT,
    ColumnType.BOOLEAN,
)
_Type = exp.DataType.Type
KINDS = {
    **dict.fromkeys((_Type.TINYINT, _Type.SMALLINT, _Type.INT, _Type.BIGINT), _I),
    **dict.fromkeys((_Type.FLOAT, _Type.DOUBLE), _F),
    **dict.fromkeys((_Type.VARCHAR, _Type.TEXT, _Type.CHAR), _T),
    _Type.BOOLEAN: _B,
    _Type.DATE: _D,
    **dict.fromkeys((_Type.TIMESTAMP, _Type.TIMESTAMPNTZ, _Type.DATETIME), _S),
}
_DIGITS, _PLACES = 18, 3  # of a DECIMAL without any
_FROM = {
    _I: {_I, _F, _T, _B},
    _F: {_I, _F, _B},
    _T: {_I, _F, _T, _B, _D, _S},
    _B: {_I, _F, _T, _B},
    _D: {_D, _S, _T},
    _S: {_D, _S, _T},
}


def converted(node: exp.Expr, read: Read) -> Value:
    """CAST, TRY_CAST, ::, DATE(...)."""
    value = read(node.this)
    if not isinstance(node, exp.Cast):
        return as_type(value, _D, read.where)
    wanted = node.to.this
    if wanted == _Type.DECIMAL:
        return _decimal(value, node.to, read.where)
    if wanted not in KINDS:
        raise QueryError(
            f"CAST to {node.to.sql('duckdb')[:30]} is not answered; BIGINT, DOUBLE, VARCHAR, "
            "BOOLEAN, DATE and TIMESTAMP are"
        )
    return as_type(value, KINDS[wanted], read.where)


def as_type(value: Value, kind: ColumnType, where: str) -> Value:
    """A value as one of another type; NULL where a cell does not fit."""
    if value.kind is None:
        return Value(kind, cast(exp.Null(), kind))
    if value.kind == kind:
        return value
    if value.constant is not None:
        found = as_kind(value.constant, kind)
        if found is not None:
            return constant(kind, found)
        if value.kind == _T:
            raise QueryError(f"{value.constant[:40]!r} in {where} is no {EXAMPLES[kind]}")
    if kind == _T:
        return made(_T, as_text(value, where), value)
    if kind not in _FROM[value.kind]:
        raise QueryError(
            f"a {WORDS[value.kind]} in {where} is not cast to a {WORDS[kind]}; no value fits"
        )
    if kind == _B and value.kind in {_I, _F}:
        zero = exp.Literal.number("0" if value.kind == _I else "0e0")
        return made(_B, exp.paren(exp.NEQ(this=closed(value.sql), expression=zero)), value)
    if value.kind == _T and kind in {_D, _S}:
        looks = exp.RegexpLike(this=value.sql.copy(), expression=exp.Literal.string(MOMENT))
        sql = seal(kind, try_cast(case((looks, value.sql)), kind))
        return made(kind, sql, value, guarded=True, twice=True)
    if (value.kind, kind) in {(_I, _F), (_D, _S)}:
        return made(kind, cast(value.sql, kind), value)
    guarded = value.kind in {_T, _F}
    return made(kind, try_cast(value.sql, kind), value, guarded=guarded, wild=value.kind == _T)


def as_text(value: Value, where: str) -> exp.Expr:
    """A value as text."""
    if value.kind == _T:
        return value.sql
    if value.kind == _F:
        raise QueryError(
            f"a fraction as text in {where} is not answered: engines spell it differently; "
            "CAST it to INTEGER first"
        )
    return cast(value.sql, _T)


def decimal_sizes(to: exp.DataType) -> tuple[int, int]:
    """How many digits a DECIMAL has, and how many of them are places."""
    sizes = [int(size.name) for size in to.expressions]
    return (sizes[0], sizes[1] if len(sizes) > 1 else 0) if sizes else (_DIGITS, _PLACES)


def _decimal(value: Value, to: exp.DataType, where: str) -> Value:
    """DECIMAL(p, k): a double rounded to k places, NULL where p digits do not hold it."""
    digits, places = decimal_sizes(to)
    if not (0 <= places <= min(digits, 15) and 1 <= digits <= _DIGITS):
        raise QueryError(
            f"CAST to {to.sql('duckdb')[:30]} is not answered: DECIMAL has 18 digits at most, 15 "
            "of them places; use DOUBLE or BIGINT"
        )
    if value.kind not in {_I, _F, _T, _B, None}:
        raise QueryError(f"a {WORDS[value.kind]} in {where} is not cast to DECIMAL")
    number = as_type(value, _F, where)
    end = exp.Literal.number(f"1e{digits - places}")
    inside = exp.LT(this=exp.Abs(this=number.sql.copy()), expression=end)
    sql = exp.Round(this=number.sql, decimals=exp.Literal.number(places))
    return made(_F, case((inside, sql)), number, guarded=True, wild=True, twice=True)
