"""Text: patterns and places are constants, and what grows is cut first."""

from __future__ import annotations

from sqlglot import exp

from deniable.engines.literals import cast_to
from deniable.engines.trees import whole_constant
from deniable.errors import QueryError
from deniable.query.read.values.casts import as_text
from deniable.query.read.values.logic import negated
from deniable.query.read.values.value import WORDS, Read, Value, closed, constant, made
from deniable.tables import ColumnType

_T, _I, _B = ColumnType.TEXT, ColumnType.INTEGER, ColumnType.BOOLEAN
_CUT = 1_024  # characters of a text that is put together with others
_GROWN = 8_192  # characters that a text can have after REPLACE
_FARTHEST = 65_536
_LONGEST, _MOST_PIECES, _MOST_REPLACED = 100, 8, 2
_FLAGS = frozenset("cilmsnp")


def _text(value: Value, name: str, where: str) -> exp.Expr:
    if value.kind is None:
        return cast_to(exp.Null(), "VARCHAR")
    if value.kind != _T:
        raise QueryError(
            f"{name} in {where} is of text, not of a {WORDS[value.kind]}; CAST it to VARCHAR"
        )
    return value.sql


def _fixed(node: exp.Expr | None, what: str, longest: int = 1_000) -> str:
    if not isinstance(node, exp.Literal) or not node.is_string or len(node.name) > longest:
        raise QueryError(f"{what} is a constant text of {longest:,} characters at most")
    return str(node.name)


def _place(node: exp.Expr | None, name: str) -> exp.Expr:
    place = whole_constant(node)
    if node is None or place is None or abs(place) > _FARTHEST:
        raise QueryError(f"{name} takes constant places, up to {_FARTHEST:,}")
    return node.copy()


def plain(node: exp.Expr, read: Read) -> Value:
    """LOWER, UPPER."""
    value = read(node.this)
    return made(_T, type(node)(this=_text(value, node.key.upper(), read.where)), value)


def length(node: exp.Length, read: Read) -> Value:
    """LENGTH in characters."""
    if node.args.get("binary") or node.args.get("encoding"):
        raise QueryError("LENGTH takes one text")
    value = read(node.this)
    sql = exp.Length(this=_text(value, "LENGTH", read.where))
    return made(_I, cast_to(sql, "BIGINT"), value)


def trimmed(node: exp.Trim, read: Read) -> Value:
    """TRIM, LTRIM, RTRIM."""
    if node.args.get("collation") is not None:
        raise QueryError("TRIM takes no collation")
    value, marks = read(node.this), node.args.get("expression")
    sql = exp.Trim(
        this=_text(value, "TRIM", read.where),
        position=node.args.get("position"),
        expression=None
        if marks is None
        else constant(_T, _fixed(marks, "what TRIM takes off", _LONGEST)).sql,
    )
    return made(_T, sql, value)


def end(node: exp.Expr, read: Read) -> Value:
    """LEFT, RIGHT."""
    value, name = read(node.this), node.key.upper()
    sql = type(node)(this=_text(value, name, read.where), expression=_place(node.expression, name))
    return made(_T, sql, value, guarded=True)


def middle(node: exp.Substring, read: Read) -> Value:
    """SUBSTRING."""
    value, size = read(node.this), node.args.get("length")
    sql = exp.Substring(
        this=_text(value, "SUBSTRING", read.where),
        start=_place(node.args.get("start"), "SUBSTRING"),
        length=None if size is None else _place(size, "SUBSTRING"),
    )
    return made(_T, sql, value, guarded=True)


def _cut(sql: exp.Expr, size: int = _CUT) -> exp.Expr:
    if isinstance(sql, exp.Literal):
        return sql
    return exp.Left(this=sql, expression=exp.Literal.number(size))


def joined(node: exp.Expr, read: Read) -> Value:
    """|| and CONCAT, of the first 1,024 characters of each."""
    given = [node.this, node.expression] if isinstance(node, exp.DPipe) else node.expressions
    if len(given) > _MOST_PIECES:
        raise QueryError(f"CONCAT in {read.where} puts {_MOST_PIECES} texts together at most")
    parts = [read(each) for each in given]
    pieces = [_cut(as_text(part, read.where)) for part in parts]
    if isinstance(node, exp.DPipe):
        sql: exp.Expr = exp.DPipe(this=closed(pieces[0]), expression=closed(pieces[1]), safe=True)
        return made(_T, exp.paren(sql), *parts, guarded=True)
    sql = exp.Concat(
        expressions=pieces, safe=node.args.get("safe"), coalesce=node.args.get("coalesce")
    )
    return made(_T, sql, *parts, guarded=True)


def replaced(node: exp.Replace, read: Read) -> Value:
    """REPLACE by constants; the text is cut so that what comes out has 8,192 characters at most."""
    old = _fixed(node.expression, "what REPLACE looks for", _LONGEST)
    new = _fixed(node.args.get("replacement"), "what REPLACE puts in", _LONGEST)
    if len(list(node.find_all(exp.Replace))) > _MOST_REPLACED:
        raise QueryError(f"REPLACE in {read.where} is answered twice at most; write it in steps")
    value = read(node.this)
    size = min(_CUT, max(1, _GROWN * len(old) // max(len(new), 1))) if old else _CUT
    sql = exp.Replace(
        this=_cut(_text(value, "REPLACE", read.where), size),
        expression=constant(_T, old).sql,
        replacement=constant(_T, new).sql,
    )
    return made(_T, sql, value, guarded=True)


def position(node: exp.StrPosition, read: Read) -> Value:
    """STRPOS, POSITION."""
    if node.args.get("position") is not None or node.args.get("occurrence") is not None:
        raise QueryError("STRPOS takes two texts")
    parts = [read(node.this), read(node.args["substr"])]
    text, sought = (_text(part, "STRPOS", read.where) for part in parts)
    sql = exp.StrPosition(this=text, substr=sought)
    return made(_I, cast_to(sql, "BIGINT"), *parts, guarded=True)


def starts(node: exp.StartsWith, read: Read) -> Value:
    """STARTS_WITH."""
    parts = [read(node.this), read(node.expression)]
    text, sought = (_text(part, "STARTS_WITH", read.where) for part in parts)
    return made(_B, exp.StartsWith(this=text, expression=sought), *parts)


def like(node: exp.Expr, read: Read) -> Value:
    """LIKE and ILIKE with a constant pattern.

    ILIKE itself is planned by whether anybody's text has other letters than those of ASCII; so it
    is written as LIKE of both sides in lower case.
    """
    return negated(node, _like(node, None, read))


def escaped(node: exp.Escape, read: Read) -> Value:
    """LIKE ... ESCAPE: a pattern that ends with the mark raises when a text gets that far."""
    inner, mark = node.this, node.expression
    pattern = getattr(inner, "expression", None)
    fixed = [isinstance(e, exp.Literal) and e.is_string for e in (pattern, mark)]
    # Other characters raise when a text is looked at; letters would be lost in ILIKE.
    one = len(mark.name) == 1 and mark.name.isascii() and not mark.name.isalpha()
    one = one and mark.name not in "%_"
    if not isinstance(inner, exp.Like | exp.ILike) or not all(fixed) or not one:
        raise QueryError(
            f"ESCAPE in {read.where} needs a constant pattern and one character that is no letter"
        )
    if inner.expression.name.replace(2 * mark.name, "").endswith(mark.name):
        raise QueryError(f"the pattern of LIKE in {read.where} ends with its ESCAPE character")
    return negated(inner, _like(inner, mark, read))


def _like(node: exp.Expr, mark: exp.Expr | None, read: Read) -> Value:
    value = read(node.this)
    text = closed(_text(value, node.key.upper(), read.where))
    pattern = constant(_T, _fixed(node.expression, "the pattern of LIKE")).sql
    if isinstance(node, exp.ILike):
        text, pattern = exp.Lower(this=text), exp.Lower(this=pattern)
    sql: exp.Expr = exp.Like(this=text, expression=pattern)
    if mark is not None:
        sql = exp.Escape(this=sql, expression=constant(_T, mark.name).sql)
    return made(_B, sql, value)


def matches(node: exp.Expr, read: Read) -> Value:
    """Regular expressions, constant: one that does not compile is refused as the engine plans."""
    value = read(node.this)
    text = closed(_text(value, "a pattern", read.where))
    pattern = constant(_T, _fixed(node.expression, "a regular expression")).sql
    flag = node.args.get("flag")
    if flag is not None and not set(_fixed(flag, "the flags of a pattern")) <= _FLAGS:
        raise QueryError("the flags of a regular expression are c, i, l, m, s, n and p")
    sql = type(node)(this=text, expression=pattern)
    if flag is not None:
        sql.set("flag", flag.copy())
    return negated(node, made(_B, sql, value, guarded=True))
