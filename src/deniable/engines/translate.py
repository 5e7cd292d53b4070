"""Statements for other engines: read as DuckDB's, typed by the tables' schemas, rewritten by rules.

Questions are written once, in DuckDB's SQL. An engine's rules say how it writes what it writes
differently: what has no rule and no common meaning is refused, not guessed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from functools import cache

import sqlglot
from sqlglot import exp
from sqlglot.dialects import DuckDB
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.qualify import qualify
from sqlglot.schema import MappingSchema

from deniable.engines.alike import Alike
from deniable.errors import QueryError
from deniable.tables import SQL_TYPES, Schema

Kind = exp.DType
Rule = Callable[[exp.Expr], exp.Expr]

INTEGERS = {Kind.TINYINT, Kind.SMALLINT, Kind.INT, Kind.BIGINT}
NUMBERS = {*INTEGERS, Kind.INT128, Kind.DOUBLE, Kind.FLOAT, Kind.DECIMAL}
TEXTS = {Kind.VARCHAR, Kind.TEXT, Kind.CHAR}
SPACES = "".join(map(chr, (0x20, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000)))
"""What TRIM takes off: all that Unicode calls a space."""
TRIED = "deniable_tried"
"""Marks a bracket that was TRY: whatever raises inside gives NULL."""

_KNOWN = {**DuckDB.EXPRESSION_METADATA, exp.Replace: {"returns": Kind.VARCHAR}}


def typed_tree(
    text: str,
    tables: Mapping[str, str],
    schemas: Mapping[str, Schema],
    alike: Alike | None = None,
) -> exp.Expr:
    """A statement with types on all of its parts; `tables` become common table expressions."""
    if alike is not None:
        text, tables = alike.select, alike.with_rows()
    tree = sqlglot.parse_one(text, read="duckdb")
    for name, select in reversed(list(tables.items())):
        put_first(tree, name, sqlglot.parse_one(select, read="duckdb"), materialized=True)
    for node in list(tree.find_all(exp.Try)):
        bracket = exp.Paren(this=node.this)
        bracket.meta[TRIED] = True
        node.replace(bracket)
    if alike is not None:
        alike.mark(tree)
    known = MappingSchema(
        {
            name: {column.lower(): SQL_TYPES[kind] for column, kind in schema.columns.items()}
            for name, schema in schemas.items()
        },
        dialect="duckdb",
        normalize=False,  # names are not read as SQL
    )
    named = qualify(
        tree, schema=known, dialect="duckdb", identify=True, validate_qualify_columns=False
    )
    typed: exp.Expr = annotate_types(
        named, schema=known, dialect="duckdb", expression_metadata=_KNOWN
    )
    return typed


@cache
def _named_type(name: str, dialect: str | None) -> exp.DataType:
    return exp.DataType.build(name, dialect=dialect)


def cast(value: exp.Expr, to: exp.DataType | str, *, dialect: str | None = None) -> exp.Expr:
    """A cast, unless it is one already; the value is taken as it is, not copied."""
    kind = _named_type(to, dialect).copy() if isinstance(to, str) else to.copy()
    return exp.cast(value, kind, copy=False, dialect=dialect)


def put_first(tree: exp.Expr, name: str, select: exp.Expr, *, materialized: bool) -> None:
    """Add a common table expression before all others."""
    with_ = tree.args.get("with_")
    if with_ is None:
        with_ = exp.With(expressions=[])
        tree.set("with_", with_)
    alias = exp.TableAlias(this=exp.to_identifier(name, quoted=True))
    made = exp.CTE(this=select, alias=alias, materialized=materialized)
    with_.set("expressions", [made, *with_.expressions])


def rewritten(node: exp.Expr, rule: Rule) -> exp.Expr:
    """The tree after a rule, from the leaves up; what is put in keeps the type of what it was."""
    for child in list(node.iter_expressions()):
        made = rewritten(child, rule)
        if made is not child:
            child.replace(made)
    kind = node.type
    made = rule(node)
    if made.type is None and kind is not None:
        made.type = kind
    return made


def kind_of(node: exp.Expr) -> Kind | None:
    """The type of a part, if it is known."""
    found = node.type.this if node.type is not None else None
    return found if isinstance(found, Kind) and found not in {Kind.UNKNOWN, Kind.NULL} else None


def type_of(node: exp.Expr) -> Kind:
    """The type of a part; UNKNOWN where it is not known."""
    return kind_of(node) or Kind.UNKNOWN


@contextlib.contextmanager
def within_depth(engine: str) -> Iterator[None]:
    """Refuse what is nested more deeply than statements can be read and written here."""
    try:
        yield
    except RecursionError:
        told = f"the question is nested too deeply for {engine}; write it in steps"
    else:
        return
    raise QueryError(told)


def refused(what: str, engine: str) -> QueryError:
    """The sentence about what an engine has no safe way to compute."""
    return QueryError(f"{what} is not answered on {engine}; it is on DuckDB")
