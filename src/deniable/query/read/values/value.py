"""A value of one row: its canonical type, and SQL that is total.

Total means: whatever canonical cells stand in the columns, no engine raises, when it plans or when
it runs, and the result is a function of the cells. Between a table's leaves and the aggregates
there are six types, those of `ColumnType`; the engine is never left to cast one to another.

A double inside one row's expression may be wild (infinite, NaN or -0.0): still a function of the
row. It is sealed where it becomes a column: sorts, groups and merges must only meet doubles whose
equality is identity.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from sqlglot import exp

from deniable.engines.literals import cast_to, data_type, literal
from deniable.engines.trees import case
from deniable.errors import QueryError
from deniable.query.read.values.constants import as_kind
from deniable.tables import SQL_TYPES, ColumnType

_MOST_COPIES = 64
_ENDS = {
    ColumnType.DATE: ("0001-01-01", "9999-12-31"),
    ColumnType.TIMESTAMP: ("0001-01-01 00:00:00", "9999-12-31 23:59:59.999999"),
}
WORDS = {
    ColumnType.INTEGER: "whole number",
    ColumnType.NUMBER: "number",
    ColumnType.TEXT: "text",
    ColumnType.BOOLEAN: "boolean",
    ColumnType.DATE: "date",
    ColumnType.TIMESTAMP: "timestamp",
}


EXAMPLES = {
    ColumnType.INTEGER: "whole number of 64 bits",
    ColumnType.NUMBER: "number",
    ColumnType.BOOLEAN: "boolean: true or false",
    ColumnType.DATE: "date of the years 1 to 9999: '2024-01-31'",
    ColumnType.TIMESTAMP: (
        "timestamp of the years 1 to 9999, without a zone: '2024-01-31 12:30:00'"
    ),
}


@dataclass(frozen=True)
class Value:
    """What an expression is: `kind` is None for NULL, which is of any type.

    `constant` is what a literal stands for. `guarded` values could raise on an engine whose
    arithmetic does: they are to stand in a TRY. `copies` is how often a part of the question is
    written, as seals write what they seal twice.
    """

    kind: ColumnType | None
    sql: exp.Expr
    constant: Any = None
    guarded: bool = False
    wild: bool = False
    copies: int = 1


class Read(Protocol):
    """Reads the parts of an expression; `where` is the clause in which it stands."""

    @property
    def where(self) -> str:
        """The clause that is read."""

    def __call__(self, node: exp.Expr, /) -> Value:
        """The value of a part."""


def made(
    kind: ColumnType,
    sql: exp.Expr,
    *parts: Value,
    guarded: bool = False,
    wild: bool = False,
    twice: bool = False,
) -> Value:
    """A value that is computed from others; `twice` says that its SQL has them two times."""
    copies = max((part.copies for part in parts), default=1) * (2 if twice else 1)
    if copies > _MOST_COPIES:
        raise QueryError("too many such operations stand inside each other; write it in steps")
    any_guarded = guarded or any(part.guarded for part in parts)
    any_wild = kind == ColumnType.NUMBER and (wild or any(part.wild for part in parts))
    return Value(kind, sql, None, any_guarded, any_wild, copies)


def constant(kind: ColumnType, value: Any) -> Value:
    """A literal."""
    return Value(kind, literal(kind, value), value)


def closed(sql: exp.Expr) -> exp.Expr:
    """A part that keeps together beside any operator."""
    whole = isinstance(
        sql, exp.Column | exp.Literal | exp.Paren | exp.Null | exp.Boolean | exp.Case | exp.Cast
    )
    infix = isinstance(sql, exp.Binary | exp.Unary)
    return sql if whole or (isinstance(sql, exp.Func) and not infix) else exp.paren(sql)


def cast(sql: exp.Expr, kind: ColumnType) -> exp.Expr:
    """A cast that cannot fail."""
    return cast_to(sql, SQL_TYPES[kind])


def try_cast(sql: exp.Expr, kind: ColumnType) -> exp.Expr:
    """A cast that gives NULL where the value does not fit."""
    return exp.TryCast(this=sql, to=data_type(SQL_TYPES[kind]))


def widened(value: Value, kind: ColumnType) -> Value:
    """A value as one of a wider type: whole numbers as doubles, days as times."""
    if value.kind in {kind, None}:
        return value
    assert value.kind is not None
    assert kind in _WIDER[value.kind]
    if value.constant is not None:
        return constant(kind, as_kind(value.constant, kind))
    return replace(value, kind=kind, sql=cast(value.sql, kind), constant=None)


def one_kind(values: Sequence[Value], name: str, where: str) -> tuple[ColumnType, list[exp.Expr]]:
    """The type that all values have or can be read as, and their SQL in that type."""
    kinds = {value.kind for value in values} - {None}
    columns = {value.kind for value in values if value.constant is None} - {None}
    for wanted in _candidates(kinds, columns):
        found = [_as(value, wanted) for value in values]
        if None not in found:
            return wanted, [each.sql for each in found if each is not None]
    _check_constants(values, columns, where)
    words = " and ".join(sorted(WORDS[kind] for kind in kinds if kind is not None))
    raise QueryError(f"{name} in {where} has values of different types ({words}); cast them to one")


def _check_constants(values: Sequence[Value], columns: set[ColumnType | None], where: str) -> None:
    """Say which text is no value of the type that it stands beside."""
    for kind in columns if len(columns) == 1 else ():
        for value in values:
            if kind in EXAMPLES and isinstance(value.constant, str) and _as(value, kind) is None:
                raise QueryError(f"{value.constant[:40]!r} in {where} is no {EXAMPLES[kind]}")


def _candidates(
    kinds: set[ColumnType | None], columns: set[ColumnType | None]
) -> Sequence[ColumnType]:
    """Types to try in turn: that of what is no constant, or the wider of two."""
    for narrow, broad in (
        (ColumnType.INTEGER, ColumnType.NUMBER),
        (ColumnType.DATE, ColumnType.TIMESTAMP),
    ):
        if columns == {narrow, broad}:
            return (broad,)
        if columns == {narrow}:
            return (narrow, broad)
        if not columns and kinds == {narrow, broad}:
            return (broad,)
    if len(columns) == 1:
        return [kind for kind in columns if kind is not None]
    if not kinds:
        return (ColumnType.INTEGER,)
    return sorted(kind for kind in kinds if kind is not None) if not columns else ()


def _as(value: Value, kind: ColumnType) -> Value | None:
    if value.kind is None:
        return replace(value, kind=kind, sql=cast(exp.Null(), kind))
    if value.kind == kind:
        return value
    if value.constant is not None:
        found = as_kind(value.constant, kind)
        return None if found is None else constant(kind, found)
    return widened(value, kind) if kind in _WIDER.get(value.kind, ()) else None


_WIDER = {
    ColumnType.INTEGER: (ColumnType.NUMBER,),
    ColumnType.DATE: (ColumnType.TIMESTAMP,),
}


def seal(kind: ColumnType, sql: exp.Expr) -> exp.Expr:
    """An expression of a type, canonical or NULL; it is written twice."""
    if kind == ColumnType.NUMBER:
        # x + 0 makes 0.0 of -0.0, rounding to nearest, and changes no other finite double.
        finite = exp.Anonymous(this="ISFINITE", expressions=[sql.copy()])
        zero = exp.Literal.number("0e0")
        return case((finite, exp.Add(this=closed(sql), expression=zero)))
    if kind not in _ENDS:
        return sql
    low, high = (cast_to(exp.Literal.string(end), SQL_TYPES[kind]) for end in _ENDS[kind])
    inside = exp.Between(this=closed(sql).copy(), low=low, high=high)
    return case((inside, sql))


def sealed(value: Value) -> Value:
    """A value that may become a column."""
    if not value.wild:
        return value
    parts = replace(value, wild=False)
    return made(ColumnType.NUMBER, seal(ColumnType.NUMBER, value.sql), parts, twice=True)


def finished(value: Value) -> exp.Expr:
    """The SQL of a value; what could raise on some engine gives NULL there."""
    if not value.guarded:
        return value.sql
    return exp.Anonymous(this="TRY", expressions=[value.sql])
