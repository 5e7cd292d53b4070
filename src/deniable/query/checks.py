"""What may stand in an expression: what is not listed here is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

from deniable.errors import QueryError
from deniable.query.columns import Column
from deniable.query.families import INTEGERS, NUMBERS, TEXTS, arguments, branches, family

Resolve = Callable[[exp.Column], Column]

# Deterministic, and the same whatever the engine's settings.
TOTAL = (
    exp.Column,
    exp.Literal,
    exp.Boolean,
    exp.Null,
    exp.Paren,
    exp.TryCast,
    exp.Identifier,
    exp.DataType,
    exp.DataTypeParam,
)
LOGIC = (exp.And, exp.Or, exp.Not)
BRANCHES = (exp.Coalesce, exp.Case, exp.If)
OF_TEXT = (exp.Lower, exp.Upper, exp.Length)
COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.In)
GUARDED = (
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
UNDERSTOOD = (*TOTAL, exp.Is, *LOGIC, *BRANCHES, *OF_TEXT, *COMPARISONS, *GUARDED)
_MOVES = (exp.Add, exp.Sub, exp.DateAdd, exp.DateSub, exp.TsOrDsAdd)
_DEEPEST = 60
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
    if isinstance(expression, exp.Escape) and not _escapes(expression):
        raise QueryError(
            f"ESCAPE in {where} needs a constant pattern and one character, which the pattern does "
            "not end with"
        )
    _check_types(expression, where)
    if depth == 0:
        _check_growth(expression, where)
    for child in expression.iter_expressions():
        check(child, where, depth + 1)


def _escapes(node: exp.Escape) -> bool:
    """Whether the engine can read the pattern: it would raise when a text comes that far."""
    pattern, mark = node.this.expression, node.expression
    literal = [isinstance(each, exp.Literal) and each.is_string for each in (pattern, mark)]
    if not all(literal) or len(mark.name) != 1:
        return False
    return not pattern.name.replace(2 * mark.name, "").endswith(mark.name)


def _check_types(node: exp.Expr, where: str) -> None:
    """Refuse what an engine would type otherwise than we do, or tell equal values apart by."""
    name = node.key.upper()
    if isinstance(node, exp.Cast | exp.TryCast) and node.to.this in TEXTS:
        _check_spelling([node.this], where)
    if isinstance(node, exp.DPipe | exp.Concat):
        _check_spelling(list(node.iter_expressions()), where)
    if isinstance(node, exp.Interval) and not isinstance(node.parent, _MOVES):
        raise QueryError(
            f"INTERVAL in {where} is answered beside a date only: day + INTERVAL 1 DAY"
        )
    if isinstance(node, exp.Sub) and not _moves_a_date(node):
        raise QueryError(f"a difference of dates in {where} is written DATE_DIFF('day', a, b)")
    if isinstance(node, exp.Coalesce | exp.Case | exp.If | exp.Greatest | exp.Least):
        values = branches(node) if isinstance(node, exp.Case | exp.If) else arguments(node)
        kinds = {family(value) for value in values if not isinstance(value, exp.Null)}
        if len(kinds) > 1:
            raise QueryError(f"{name} in {where} has values of different types; cast them to one")


def _moves_a_date(node: exp.Sub) -> bool:
    dated = family(node.left) in {"date", "time"}
    return not dated or isinstance(node.right, exp.Interval) or family(node.right) == "number"


def _check_spelling(values: list[exp.Expr], where: str) -> None:
    for value in values:
        kind = value.type.this if value.type is not None else None
        fraction = kind in NUMBERS - INTEGERS or family(value) is None
        if fraction and not isinstance(value, exp.Null):
            raise QueryError(
                f"a fraction as text in {where} is not answered: engines spell it differently; "
                "CAST it to INTEGER first"
            )


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
