"""How Postgres writes a question, so that it means the same and never raises because of data.

Postgres has no TRY: what could raise becomes a temporary function that catches its own errors, and
lives as long as the transaction.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from sqlglot import exp

from deniable.engines.alike import Alike
from deniable.engines.base import Rows, Step
from deniable.engines.postgres_functions import (
    DIALECT,
    MOMENTS,
    NAME,
    RULES,
    SURE,
    TYPES,
    WHOLE,
    sure,
    zero_or_one,
)
from deniable.engines.rounding import in_plpgsql
from deniable.engines.translate import (
    INTEGERS,
    NUMBERS,
    TEXTS,
    TRIED,
    Kind,
    cast,
    kind_of,
    put_first,
    refused,
    rewritten,
    type_of,
    typed_tree,
    within_depth,
)
from deniable.engines.trees import case, whole_constant
from deniable.errors import QueryError
from deniable.tables import Schema

_FARTHEST = "9223372036854775808"
_BODY = "$deniable$"
_MAKES_TEXT = (exp.Literal, exp.Func, exp.Dot, exp.DPipe)
PARTS = 256
"""Of lists of rows: together more than a machine holds in memory."""

_REMEMBERED = 64
_WRITTEN: dict[tuple[object, ...], tuple[str, ...]] = {}
_TOTAL = (
    *(exp.Column, exp.Literal, exp.Boolean, exp.Null, exp.Paren, exp.Is, exp.Identifier),
    *(exp.DataType, exp.And, exp.Or, exp.Not, exp.Coalesce, exp.Case, exp.If, exp.Nullif),
    *(exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.In, exp.Escape),
    *(exp.Lower, exp.Upper, exp.Length, exp.Left, exp.Right, exp.StartsWith, exp.Trim, exp.Replace),
    *(exp.Substring, exp.StrPosition, exp.DPipe, exp.Concat),
    *(exp.Like, exp.Greatest, exp.Least, exp.Floor, exp.Ceil),
    *(exp.Neg, exp.Abs, exp.DataTypeParam),
)


def translated(
    step: Step, schemas: Mapping[str, Schema], sources: Mapping[str, exp.Expr]
) -> tuple[str, ...]:
    """The functions that a step needs, and its SELECT; all sessions know the latest."""
    columns = tuple((name, tuple(each.columns.items())) for name, each in schemas.items())
    leaves = tuple((name, source.sql(DIALECT)) for name, source in sources.items())
    key = (step.select, tuple(step.tables.items()), columns, leaves)
    found = _WRITTEN.get(key)
    if found is None:
        writer = PostgresWriter(schemas, sources)
        select = writer.write(step.select, step.tables, step.alike)
        found = (*writer.functions, select)
        if len(_WRITTEN) >= _REMEMBERED:
            _WRITTEN.clear()
        _WRITTEN[key] = found
    return found


class PostgresWriter:
    """Writes the statements of one question; `functions` are to be created before they run."""

    def __init__(self, schemas: Mapping[str, Schema], sources: Mapping[str, exp.Expr]) -> None:
        self._schemas, self._sources = schemas, sources
        self._bodies: dict[str, str] = {}

    @property
    def functions(self) -> list[str]:
        """Statements that make the functions which catch errors."""
        return list(self._bodies.values())

    def write(self, text: str, tables: Mapping[str, str], alike: Alike | None = None) -> str:
        with within_depth(NAME):
            return self._write(text, tables, alike)

    def _write(self, text: str, tables: Mapping[str, str], alike: Alike | None) -> str:
        tree = rewritten(typed_tree(text, tables, self._schemas, alike), self._rule)
        named = {table.name for table in tree.find_all(exp.Table)}
        for name, source in self._sources.items():
            if name in named:
                put_first(tree, name, source.copy(), materialized=False)
        assert isinstance(tree, exp.Query)
        width = len(tree.selects) if alike is None else alike.width(tree.selects)
        tree = bytewise(tree)
        if alike is not None and not alike.repeat(tree, DIALECT):
            return self._write(text, tables, None)
        return in_parts(tree.sql(DIALECT, copy=False), width)

    def _rule(self, node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Paren) and node.meta.get(TRIED):
            return self._tried(node.this)
        if isinstance(node, exp.TryCast):
            return self._cast(node.this, node.to)
        if isinstance(node, exp.Round):
            return self._rounded(node)
        rule = RULES.get(type(node))
        return node if rule is None else rule(node)

    def _cast(self, value: exp.Expr, to: exp.DataType) -> exp.Expr:
        """A cast that gives NULL where the value does not fit."""
        found, wanted = kind_of(value), to.this
        if found is not None and TYPES.get(found) == TYPES.get(wanted) and not to.expressions:
            return value
        if wanted in INTEGERS and found in {Kind.DOUBLE, Kind.FLOAT, Kind.INT128, Kind.DECIMAL}:
            return self._whole(value)
        if wanted in TEXTS and found is not None and found not in {Kind.DOUBLE, Kind.FLOAT}:
            return cast(value, "TEXT")
        if wanted == Kind.DOUBLE and found in INTEGERS:
            return cast(value, "DOUBLE")
        if found == Kind.BOOLEAN and wanted in NUMBERS:
            return zero_or_one(value, to)
        if wanted == Kind.BOOLEAN and found in NUMBERS:
            return exp.paren(exp.NEQ(this=value, expression=exp.Literal.number(0)))
        return self._tried(cast(value, to))

    def _whole(self, value: exp.Expr) -> exp.Expr:
        """A number as BIGINT; NULL where 64 bits do not hold it.

        A column is looked at in place; what is computed goes through a function, so that it is
        computed once.
        """
        if isinstance(value, exp.Column):
            return sure(_within(value, cast(value.copy(), "BIGINT")))
        kind = TYPES[type_of(value)]
        given = exp.column("a0")
        given.type = value.type
        inside = _within(given, cast(given.copy(), "BIGINT")).sql(DIALECT)
        text = (
            f"(a0 {kind}) RETURNS BIGINT LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE "
            f"AS {_BODY} BEGIN RETURN {inside}; END {_BODY}"
        )
        return self._called("deniable_whole", text, [value])

    def _rounded(self, node: exp.Round) -> exp.Expr:
        body = in_plpgsql(whole_constant(node.args.get("decimals")) or 0)
        text = (
            "(a0 DOUBLE PRECISION) RETURNS DOUBLE PRECISION LANGUAGE plpgsql IMMUTABLE "
            f"PARALLEL SAFE AS {_BODY} {body} {_BODY}"
        )
        return self._called("deniable_round", text, [cast(node.this, "DOUBLE")])

    def _called(self, prefix: str, text: str, arguments: list[exp.Expr]) -> exp.Expr:
        """A call of a temporary function, which is made before the statement."""
        name = f"{prefix}_{hashlib.sha256(text.encode()).hexdigest()[:16]}"
        self._bodies[name] = f"CREATE OR REPLACE FUNCTION pg_temp.{name}{text}"
        call = exp.Anonymous(this=name, expressions=arguments)
        made = exp.Dot(this=exp.to_identifier("pg_temp"), expression=call)
        return sure(made, *arguments)

    def _tried(self, value: exp.Expr) -> exp.Expr:
        """NULL where the value raises."""
        if _cannot_raise(value):
            return exp.paren(value)
        # Constants are arguments too: a planner would compute with those that stand in the body,
        # also where no row comes by, and raise.
        parts = [node for node in value.walk() if isinstance(node, exp.Column) or _is_double(node)]
        columns = {part.sql(DIALECT): part for part in parts}
        kinds = [_type_name(column) for column in columns.values()]
        places = {text: f"a{number}" for number, text in enumerate(columns)}

        def placed(node: exp.Expr) -> exp.Expr:
            given = isinstance(node, exp.Column) or _is_double(node)
            return exp.column(places[node.sql(DIALECT)]) if given else node

        body = bytewise(value.copy().transform(placed)).sql(DIALECT)
        if _BODY in body:
            raise QueryError("the question cannot be written down safely, and is not answered")
        declared = ", ".join(f"a{number} {kind}" for number, kind in enumerate(kinds))
        # A worker of a parallel plan cannot catch errors: it would raise another.
        text = (
            f"({declared}) RETURNS {_type_name(value)} LANGUAGE plpgsql IMMUTABLE PARALLEL UNSAFE "
            f"AS {_BODY} BEGIN RETURN {body}; EXCEPTION WHEN OTHERS THEN RETURN NULL; END {_BODY}"
        )
        return self._called("deniable_try", text, [c.copy() for c in columns.values()])


def _type_name(node: exp.Expr) -> str:
    found = kind_of(node)
    if found is None or found not in TYPES:
        raise refused(f"{node.sql('duckdb')[:60]}, whose type is not known,", NAME)
    return TYPES[found]


def _is_double(node: exp.Expr) -> bool:
    """A constant with a fraction, as they are written."""
    double = isinstance(node, exp.Cast) and node.to.this == Kind.DOUBLE
    return double and isinstance(node.this, exp.Literal)


def _cannot_raise(node: exp.Expr) -> bool:
    if SURE in node.meta:
        return all(map(_cannot_raise, node.meta[SURE]))
    if isinstance(node, exp.Add) and isinstance(node.expression, exp.Interval):
        return _cannot_raise(node.this)  # a canonical time and 4,000 years at most
    if isinstance(node, exp.Add | exp.Sub | exp.Mul) and type_of(node.this) == Kind.INT128:
        return _cannot_raise(node.this) and _cannot_raise(node.expression)
    if isinstance(node, exp.Cast):
        kinds = type_of(node.this), node.to.this
        wide = any(set(kinds) <= family for family in (WHOLE, MOMENTS)) or kinds[1] in TEXTS
        return (wide or isinstance(node.this, exp.Literal)) and _cannot_raise(node.this)
    if isinstance(node, exp.Div) and TYPES.get(type_of(node.this)) == "BIGINT":
        sure = isinstance(node.expression, exp.Literal) and node.expression.name != "0"
        return sure and _cannot_raise(node.this)
    return isinstance(node, _TOTAL) and all(map(_cannot_raise, node.iter_expressions()))


def _within(value: exp.Expr, made: exp.Expr) -> exp.Expr:
    """Only for what 64 bits hold; NaN is larger than any number here."""
    double = type_of(value) in {Kind.DOUBLE, Kind.FLOAT}
    ends = (f"-{_FARTHEST}", _FARTHEST if double else "9223372036854775807")
    least, most = (cast(exp.Literal.string(end), TYPES[type_of(value)]) for end in ends)
    low = exp.GTE(this=value.copy(), expression=least)
    # A number with a fraction is rounded, a double beyond 2^53 has none.
    high = (exp.LT if double else exp.LTE)(this=value.copy(), expression=most)
    return case((exp.and_(low, high), made))


def in_parts(select: str, columns: int) -> str:
    """The statement that hands out the rows of a SELECT of so many columns: lists of values.

    In as many rows whatever there is, as the server tells others how many rows a statement gave.
    And one row that it hands out has a gigabyte at most: with all groups in one, their number would
    decide whether a question fails, at a number that who asks can choose, by how long the keys are.
    So rows are dealt to a fixed number of parts.
    """
    names = [f"c{place}" for place in range(columns)]
    listed, empty = ", ".join(names), ", ".join(["NULL"] * columns)
    lists = ", ".join(f"ARRAY_AGG({name}) FILTER (WHERE NOT n IS NULL)" for name in ["n", *names])
    return (
        f"SELECT {lists} FROM (SELECT n, {listed}, 1 + n % {PARTS} AS part "
        f"FROM (SELECT ROW_NUMBER() OVER () AS n, {listed} FROM ({select}) AS given ({listed})) "
        "AS numbered UNION ALL "
        f"SELECT NULL, {empty}, part FROM generate_series(1, {PARTS}) AS every (part)) AS dealt "
        "GROUP BY part"
    )


def rows_of(parts: Iterable[Sequence[Any]]) -> Rows:
    """The rows that are in the lists of all parts, in their order; some parts have no lists."""
    numbered = [row for lists in parts if lists[0] is not None for row in zip(*lists, strict=True)]
    numbered.sort(key=itemgetter(0))
    return [row[1:] for row in numbered]


def bytewise(tree: exp.Expr) -> exp.Expr:
    """The tree, in which all text that an expression makes is compared byte by byte.

    Whatever order of letters the database has. Leaves say so of columns, and what is made of them
    takes it from them. Text that is made of no text (a constant, a cast, the name of a month) would
    follow the database: it says so itself.
    """
    root = exp.Paren(this=tree)  # so that everything has a parent
    for node in list(tree.walk()):
        if _makes_text(node):
            collated = exp.Collate(expression=exp.to_identifier("C", quoted=True))
            node.replace(exp.Paren(this=collated))
            collated.set("this", exp.paren(node) if isinstance(node, exp.DPipe) else node)
    made: exp.Expr = root.this
    return made


def _makes_text(node: exp.Expr) -> bool:
    """Aggregates and windows take theirs from what they are of; branches and names are no text."""
    if kind_of(node) not in TEXTS or not isinstance(node, _MAKES_TEXT):
        return False
    if isinstance(node, exp.Literal):
        return node.is_string and not isinstance(node.parent, exp.Cast | exp.Interval)
    branch = isinstance(node, exp.If) and isinstance(node.parent, exp.Case)
    return not (branch or isinstance(node, exp.AggFunc) or isinstance(node.parent, exp.Dot))
