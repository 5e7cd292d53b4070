"""The operators that a question may use, and how an expression is read with them.

The table is closed: a node of the question that has no row is refused by its name. Each row gives
the type of the result from the types of the arguments, and SQL that is total on canonical values.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from deniable.errors import QueryError
from deniable.query.read.columns import Resolve
from deniable.query.read.values import casts, logic, numbers, texts, times
from deniable.query.read.values.constants import as_kind, number
from deniable.query.read.values.value import Read, Value, constant, finished, sealed
from deniable.tables import NUMERIC, ColumnType

Operator = Callable[[Any, Read], Value]

_DEEPEST = 60


def _literal(node: exp.Literal, read: Read) -> Value:
    del read
    if node.is_string:
        return constant(ColumnType.TEXT, node.name)
    value = number(node.name)
    kind = ColumnType.INTEGER if isinstance(value, int) else ColumnType.NUMBER
    return constant(kind, value)


OPERATORS: dict[type[exp.Expr], Operator] = {
    exp.Literal: _literal,
    exp.Boolean: lambda node, _: constant(ColumnType.BOOLEAN, bool(node.this)),
    exp.Null: lambda node, _: Value(None, node.copy()),
    exp.Paren: logic.bracket,
    **dict.fromkeys((exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE), logic.compared),
    exp.Between: logic.between,
    exp.In: logic.listed,
    exp.Is: logic.is_,
    **dict.fromkeys((exp.And, exp.Or), logic.both),
    exp.Not: logic.not_,
    **dict.fromkeys((exp.Case, exp.If), logic.case),
    **dict.fromkeys((exp.Coalesce, exp.Greatest, exp.Least), logic.alike),
    exp.Nullif: logic.nullif,
    **dict.fromkeys((exp.Add, exp.Sub, exp.Mul), numbers.signed),
    exp.Div: numbers.divided,
    **dict.fromkeys((exp.IntDiv, exp.Mod), numbers.whole_divided),
    **dict.fromkeys((exp.Neg, exp.Abs), numbers.unary),
    exp.Sign: numbers.sign,
    **dict.fromkeys((exp.Round, exp.Floor, exp.Ceil), numbers.rounded),
    **dict.fromkeys((exp.Sqrt, exp.Ln, exp.Log), numbers.within_domain),
    exp.Exp: numbers.exponential,
    exp.Pow: numbers.power,
    **dict.fromkeys((exp.Cast, exp.TryCast, exp.Date), casts.converted),
}
"""What is computed from numbers, truths and constants, and what compares."""

VEILED: dict[type[exp.Expr], Operator] = {
    **dict.fromkeys((exp.Lower, exp.Upper), texts.plain),
    exp.Length: texts.length,
    exp.Trim: texts.trimmed,
    **dict.fromkeys((exp.Left, exp.Right), texts.end),
    exp.Substring: texts.middle,
    **dict.fromkeys((exp.DPipe, exp.Concat), texts.joined),
    exp.Replace: texts.replaced,
    exp.StrPosition: texts.position,
    exp.StartsWith: texts.starts,
    **dict.fromkeys((exp.Like, exp.ILike), texts.like),
    exp.Escape: texts.escaped,
    **dict.fromkeys((exp.RegexpLike, exp.SimilarTo), texts.matches),
    **dict.fromkeys(
        (
            *(exp.Extract, exp.Year, exp.Month, exp.Day, exp.Quarter, exp.Hour, exp.Minute),
            *(exp.DayOfWeek, exp.DayOfMonth, exp.DayOfYear, exp.WeekOfYear, exp.Week),
        ),
        times.part,
    ),
    **dict.fromkeys((exp.DateTrunc, exp.TimestampTrunc), times.beginning),
    exp.DateDiff: times.difference,
    exp.DateAdd: times.moved_by,
    exp.Interval: times.alone,
    exp.TimeToStr: times.written,
}
"""Functions of text and times: engines know several ways to compute them, and must not choose by
the statistics of a column, which are other people's rows."""


_READ = frozenset({"this", "expression", "expressions"})
_READ_OF: dict[type[exp.Expr], frozenset[str]] = {
    exp.Literal: frozenset({"is_string"}),
    exp.Between: frozenset({"low", "high", "symmetric", "negate"}),
    exp.In: frozenset({"query", "unnest", "field", "negate"}),
    exp.Case: frozenset({"ifs", "default"}),
    exp.If: frozenset({"true", "false"}),
    **dict.fromkeys((exp.Greatest, exp.Least), frozenset({"ignore_nulls"})),
    exp.Div: frozenset({"typed", "safe"}),
    **dict.fromkeys((exp.Round, exp.Floor, exp.Ceil), frozenset({"decimals", "to"})),
    **dict.fromkeys((exp.Cast, exp.TryCast), frozenset({"to", "_type", "safe"})),
    exp.Length: frozenset({"binary", "encoding"}),
    exp.Trim: frozenset({"position", "collation"}),
    exp.Substring: frozenset({"start", "length"}),
    exp.DPipe: frozenset({"safe"}),
    exp.Concat: frozenset({"safe", "coalesce"}),
    exp.Replace: frozenset({"replacement"}),
    exp.StrPosition: frozenset({"substr", "position", "occurrence"}),
    **dict.fromkeys((exp.Like, exp.ILike), frozenset({"negate"})),
    exp.RegexpLike: frozenset({"flag", "negate"}),
    exp.SimilarTo: frozenset({"negate"}),
    **dict.fromkeys((exp.DateTrunc, exp.TimestampTrunc), frozenset({"unit", "zone"})),
    exp.DateDiff: frozenset({"unit", "date_part_boundary"}),
    exp.DateAdd: frozenset({"unit"}),
    exp.Interval: frozenset({"unit"}),
    exp.TimeToStr: frozenset({"format"}),
}
"""Parts of a node that its operator reads; a node with any other is refused."""


@dataclass(frozen=True)
class ExpressionReader:
    """Reads expressions over the columns of a SELECT."""

    find: Resolve
    where: str
    depth: int = 0

    def __call__(self, node: exp.Expr, /) -> Value:
        """The value of an expression; what is not understood is refused by its name."""
        if self.depth > _DEEPEST:
            raise QueryError(f"{self.where} is nested too deeply; write it in steps")
        if isinstance(node, exp.Column):
            found = self.find(node)
            if found.kind is None:
                raise QueryError(f"{node.name} has no type; CAST it where it is named")
            return Value(found.kind, node.copy())
        operator = OPERATORS.get(type(node)) or VEILED.get(type(node))
        if operator is None:
            raise QueryError(_refusal(node, self.where))
        for name, given in node.args.items():
            if given and name not in _READ and name not in _READ_OF.get(type(node), ()):
                word = name.strip("_").replace("_", " ").upper()
                raise QueryError(f"{word} of {node.key.upper()} in {self.where} is not answered")
        return operator(node, replace(self, depth=self.depth + 1))


def _refusal(node: exp.Expr, where: str) -> str:
    if isinstance(node, exp.Subquery | exp.Exists | exp.Select):
        return (
            f"a subquery in {where} is not answered; join the tables (private ones through the "
            "unit), or list the values"
        )
    if isinstance(node, exp.Window):
        return f"a window function in {where} is not answered; compute it in a subquery"
    if isinstance(node, exp.AggFunc):
        return f"{node.key.upper()} cannot stand in {where}; aggregate outside"
    name = node.name.upper() if isinstance(node, exp.Anonymous) else node.key.upper()
    return (
        f"{name} in {where} is not answered: only functions of one row that are known to be the "
        "same each time are"
    )


def read_value(node: exp.Expr, find: Resolve, where: str) -> Value:
    """An expression inside of one row."""
    return ExpressionReader(find, where)(node)


def read_column(node: exp.Expr, find: Resolve, where: str) -> Value:
    """An expression that becomes a column, a group or a key to sort by: canonical, with a type."""
    value = sealed(read_value(node, find, where))
    if value.kind is None:
        raise QueryError(f"a NULL in {where} needs a type: CAST(NULL AS BIGINT)")
    return value


def condition(node: exp.Expr, find: Resolve, where: str) -> exp.Expr:
    """A condition, conjunct by conjunct, so that simple ones stay simple."""
    if isinstance(node, exp.Paren):
        return exp.paren(condition(node.this, find, where))
    if isinstance(node, exp.And):
        left, right = (condition(side, find, where) for side in (node.left, node.right))
        return exp.And(this=left, expression=right)
    value = read_value(node, find, where)
    made = finished(replace(value, sql=logic.truth(value, where)))
    return exp.paren(made) if isinstance(made, exp.Or) else made


def is_veiled(tree: exp.Expr, numeric: Collection[str]) -> bool:
    """Whether functions of text or times stand anywhere in a question.

    `numeric` names the columns of tables that hold numbers and booleans; under a name that the
    question gives, anything may stand.
    """
    named = {node.alias.lower() for node in tree.find_all(exp.Alias)}

    def converts(node: exp.Expr) -> bool:
        if isinstance(node, exp.Cast) and node.to.this in _NUMERIC:
            return any(c.name in named or c.name not in numeric for c in node.find_all(exp.Column))
        literal = isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal)
        return isinstance(node, exp.Cast | exp.Date) and not literal

    return any(type(node) in VEILED or converts(node) for node in tree.walk())


_NUMERIC = {kind for kind, type_ in casts.KINDS.items() if type_ in {*NUMERIC, ColumnType.BOOLEAN}}


def constants_of(tree: exp.Expr) -> tuple[Any, ...]:
    """The numbers, texts, days and times that a question names, for canary rows."""
    found: dict[tuple[type, Any], Any] = {}
    for node in tree.find_all(exp.Literal):
        value = node.name if node.is_string else number(node.name)
        moments = [as_kind(value, kind) for kind in _MOMENTS] if node.is_string else []
        for each in (value, *moments):
            if each is not None:
                found.setdefault((type(each), each), each)
    return tuple(found.values())


_MOMENTS = (ColumnType.DATE, ColumnType.TIMESTAMP)
