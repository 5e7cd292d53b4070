"""SQL text as a tree in which every name is resolved. Faults here are public, and cost nothing."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from decimal import Decimal, localcontext

import sqlglot
import sqlglot.dialects.duckdb  # else it is imported with the first question
from sqlglot import exp
from sqlglot.errors import OptimizeError, ParseError, TokenError
from sqlglot.optimizer.qualify import qualify

from deniable.errors import QueryError
from deniable.lazy import lazy
from deniable.privacy.exact import decimals
from deniable.query.read.catalogue import Catalogue
from deniable.query.read.structure import check_structure
from deniable.query.read.width_bucket import width_bucket
from deniable.tables import nearest

logging.getLogger("sqlglot").setLevel(logging.CRITICAL)  # it would print the question

_LONGEST = 100_000
_MOST_NODES = 4_000
_LONG = 16  # conditions of one chain
TOO_DEEP = "the question is nested too deeply; write it in steps"
_WRITTEN = "deniable_written"


def parse(text: str) -> exp.Expr:
    """One SELECT."""
    given: object = text
    if not (type(given) is str and text.strip()):
        raise QueryError("a question is the text of one SELECT")
    try:
        text.encode()
    except UnicodeError:
        raise QueryError("the SQL is broken: it is not text in UTF-8") from None
    if len(text) > _LONGEST:
        raise QueryError(
            f"a question of {len(text):,} characters is too long; 100,000 are the most"
        )
    try:
        statements = [each for each in sqlglot.parse(text, read="duckdb") if each is not None]
    except ParseError as error:
        first = error.errors[0] if error.errors else {}
        place = f"line {first.get('line', '?')}, column {first.get('col', '?')}"
        raise QueryError(
            f"the SQL is broken at {place}: {first.get('description', 'unreadable')}"
        ) from None
    except (TokenError, RecursionError, ValueError):
        raise QueryError(
            "the SQL is broken: it cannot be read; look for an open quote or bracket"
        ) from None
    if len(statements) != 1:
        raise QueryError("a question is one SELECT, not several statements")
    tree: exp.Expr = statements[0]
    for percentile in list(tree.find_all(exp.WithinGroup)):
        percentile.replace(_percentile(percentile))
    for bucket in list(tree.find_all(exp.WidthBucket)):
        bucket.replace(width_bucket(bucket))
    if not isinstance(tree, exp.Select | exp.Union | exp.Subquery):
        raise QueryError(f"{tree.key.upper()} is not answered; a question is a SELECT")
    return tree


@dataclass(frozen=True)
class Resolved:
    """A question in which every name is known."""

    tree: exp.Expr
    """With the table of each column, and a name for each output."""
    typed: tuple[str, ...]
    """The outermost names, as typed."""

    @lazy
    def text(self) -> str:
        """As SQL that is written once."""
        try:
            return str(self.tree.sql("duckdb"))
        except RecursionError:
            raise QueryError(TOO_DEEP) from None


def resolved(tree: exp.Expr, catalogue: Catalogue, *, stars: bool = False) -> Resolved:
    """Every column with its table, every output with a name; and the outermost names as typed.

    Names are in small letters in the tree: they are found whatever their case. With `stars`, * is
    every column of its tables.
    """
    _check_size(tree)
    check_structure(tree)
    joins = [select.args.get("joins") or [] for select in tree.find_all(exp.Select)]
    using = [{n.name.lower() for j in each for n in j.args.get("using") or []} for each in joins]
    _check_stars(tree, allowed=stars)
    _check_expansion(tree)
    schema = catalogue.sqlglot_schema
    known = {*catalogue.schemas, *(cte.alias_or_name.lower() for cte in tree.find_all(exp.CTE))}
    for table in tree.find_all(exp.Table):
        if table.name.lower() not in known and isinstance(table.this, exp.Identifier):
            raise QueryError(
                f"there is no table {table.name}; {nearest(table.name, catalogue.schemas)}"
            )
    try:
        copied = _named(tree.copy())
        for node in copied.walk():
            node.comments = None  # nothing reaches an engine that was not read
        typed = tuple(each.alias_or_name for each in copied.selects)
        halved(copied)
        for name in copied.find_all(exp.Identifier):
            name.set("this", name.name.lower())  # as columns are called in the engine's views
        for written in copied.find_all(exp.Coalesce):
            written.meta[_WRITTEN] = True
        made = qualify(copied, schema=schema, dialect="duckdb", expand_stars=stars)
        if "*" in typed:
            typed = tuple(each.alias_or_name for each in made.selects)
        _check_size(made)
        selects = list(zip(using, made.find_all(exp.Select), strict=True))
    except QueryError:
        raise
    except OptimizeError as error:
        raise QueryError(_unresolved(str(error), catalogue)) from None
    except (RecursionError, ValueError, KeyError, AttributeError, TypeError):
        raise QueryError(
            "the question cannot be read: a name or clause is not understood"
        ) from None

    for names, select in selects:
        for node in list(select.find_all(exp.Coalesce)):
            same = [node.this, *node.expressions]
            ours = node.parent_select is select and not node.meta.get(_WRITTEN)
            if ours and all(isinstance(each, exp.Column) and each.name in names for each in same):
                node.replace(node.this)  # rows of the first table are kept: its value is the one
    return Resolved(made, typed)


def _check_stars(tree: exp.Expr, *, allowed: bool) -> None:
    """COUNT(*) alone; where they are allowed, * and table.* too, without EXCEPT or REPLACE."""
    for star in tree.find_all(exp.Star):
        parent = star.parent.parent if isinstance(star.parent, exp.Column) else star.parent
        plain = isinstance(parent, exp.Select) and not any(star.args.values())
        if not (isinstance(star.parent, exp.Count) or (allowed and plain)):
            raise QueryError("SELECT * is not answered: name the columns, and aggregate them")


def _percentile(node: exp.WithinGroup) -> exp.Expr:
    """PERCENTILE_CONT(q) WITHIN GROUP (ORDER BY x) as a function of x and q."""
    order = node.expression.expressions if isinstance(node.expression, exp.Order) else []
    if not isinstance(node.this, exp.PercentileCont | exp.PercentileDisc) or len(order) != 1:
        raise QueryError("WITHIN GROUP is answered for one percentile, ORDER BY one expression")
    share = node.this.this
    if order[0].args.get("desc"):
        if not isinstance(share, exp.Literal) or share.is_string:
            raise QueryError("PERCENTILE_CONT takes one constant share between 0 and 1")
        try:
            with localcontext(decimals(60)):
                share = exp.Literal.number(str(1 - Decimal(share.name)))
        except ArithmeticError:
            raise QueryError("PERCENTILE_CONT takes a share between 0 and 1") from None
    return type(node.this)(this=order[0].this, expression=share)


def _check_size(tree: exp.Expr) -> None:
    """Names stand for what they name: a short question can be a long one."""
    if sum(1 for _ in tree.walk()) > _MOST_NODES:
        raise QueryError("the question is too long; ask several")


def _check_expansion(tree: exp.Expr) -> None:
    """A name of a SELECT that stands for an expression grows where it is used again."""
    for select in tree.find_all(exp.Select):
        sizes: dict[str, int] = {}
        for each in select.expressions:
            size = sum(
                sizes.get(node.name.lower(), 1) if isinstance(node, exp.Column) else 1
                for node in each.walk()
            )
            if size > _MOST_NODES:
                raise QueryError("the question is too long; ask several")
            sizes[each.alias_or_name.lower()] = size


def _named(tree: exp.Expr) -> exp.Query:
    """Columns without a name are called by their function: count, avg, avg_2."""
    for select in tree.find_all(exp.Select):
        taken = {each.alias_or_name.lower() for each in select.expressions}
        for each in list(select.expressions):
            if isinstance(each, exp.Alias | exp.Column | exp.Star):
                continue
            inner = each.this if isinstance(each, exp.Filter) else each
            name, number = inner.key if isinstance(inner, exp.Func) else "value", 1
            chosen = name
            while chosen in taken:
                number += 1
                chosen = f"{name}_{number}"
            taken.add(chosen)
            each.replace(exp.alias_(each.copy(), chosen))
    assert isinstance(tree, exp.Query)
    return tree


def _unresolved(message: str, catalogue: Catalogue) -> str:
    name = message.split("'")[1] if "'" in message else message.rpartition(" ")[2].strip("\"'. ")
    name = name.rpartition(".")[2].strip('"')
    known = {column.lower() for schema in catalogue.schemas.values() for column in schema.columns}
    homes = [n for n, schema in catalogue.schemas.items() if name in map(str.lower, schema.columns)]
    if "mbiguous" in message or len(homes) > 1:
        return f"the column {name} is in several tables; write table.{name}"
    return f"there is no column {name}; {nearest(name, sorted(known))}"


def halved(tree: exp.Expr) -> None:
    """Put every chain of more than 16 conditions into brackets of halves: its depth is a logarithm.

    AND and OR are associative, also with NULL: a chain means the same in any brackets.
    """
    for node in list(tree.find_all(exp.And, exp.Or)):
        if type(node.parent) is type(node):
            continue  # a part of another chain
        parts = _parts(node)
        if len(parts) > _LONG:
            node.replace(_joined(type(node), parts))


def _parts(chain: exp.Expr) -> list[exp.Expr]:
    found, waiting = list[exp.Expr](), [chain]
    while waiting:
        node = waiting.pop()
        if type(node) is type(chain):
            waiting += [node.args["expression"], node.this]
        else:
            found.append(node)
    return found


def _joined(kind: type[exp.Expr], parts: list[exp.Expr]) -> exp.Expr:
    middle = len(parts) // 2
    halves = [
        half[0] if len(half) == 1 else exp.paren(_joined(kind, half), copy=False)
        for half in (parts[:middle], parts[middle:])
    ]
    return kind(this=halves[0], expression=halves[1])
