"""Small pieces of SQL as trees. Parts are put in as they are: who needs one twice copies it."""

from __future__ import annotations

from sqlglot import exp


def case(*branches: tuple[exp.Expr, exp.Expr], otherwise: exp.Expr | None = None) -> exp.Case:
    """The value of the first condition that holds; else NULL, or what is said."""
    return exp.Case(
        ifs=[exp.If(this=when, true=then) for when, then in branches], default=otherwise
    )


def only_if(condition: exp.Expr | None, value: exp.Expr) -> exp.Expr:
    """A value where a condition holds, if there is one, and NULL elsewhere."""
    return value if condition is None else case((condition, value))


def is_null(value: exp.Expr) -> exp.Expr:
    """Whether there is no value."""
    return exp.Is(this=value, expression=exp.Null())


def is_known(value: exp.Expr) -> exp.Expr:
    """Whether there is one."""
    return exp.Not(this=is_null(value))


def is_number(number: exp.Expr) -> exp.Expr:
    """Whether a double is not NaN; NULL where it is NULL."""
    return exp.Not(this=exp.Anonymous(this="ISNAN", expressions=[number.copy()]))


def clamped(
    number: exp.Expr,
    ends: tuple[exp.Expr, exp.Expr],
    values: tuple[exp.Expr, exp.Expr, exp.Expr],
    *,
    whole: bool,
) -> exp.Expr:
    """One of three values: of a number below two ends, of one within them, and of one above.

    NULL and NaN, which is larger than any number to an engine, are none. What is usual is asked
    first: that is faster than to look for what is beyond the ends.
    """
    (low, high), (below, inside, above) = ends, values
    beyond: exp.Expr = exp.GT(this=number.copy(), expression=high.copy())
    if not whole:
        beyond = exp.And(this=beyond, expression=is_number(number))
    return case(
        (exp.Between(this=number.copy(), low=low, high=high), inside),
        (exp.LT(this=number.copy(), expression=low.copy()), below),
        (beyond, above),
    )


def ordered(by: exp.Expr, like: exp.Expr) -> exp.Ordered:
    """A key to sort by in the place of another: its direction, and where NULL comes."""
    desc, nulls_first = (like.args.get(name) for name in ("desc", "nulls_first"))
    return exp.Ordered(this=by, desc=desc, nulls_first=nulls_first)


def whole_constant(node: exp.Expr | None) -> int | None:
    """A whole number as it is written, with its sign; None of anything else."""
    digits = node.this if isinstance(node, exp.Neg) else node
    if not (isinstance(digits, exp.Literal) and digits.is_int):
        return None
    return -int(digits.name) if isinstance(node, exp.Neg) else int(digits.name)


def is_aggregate(node: exp.Expr) -> bool:
    """Whether it is an aggregate, with a FILTER or not."""
    return isinstance(node.this if isinstance(node, exp.Filter) else node, exp.AggFunc)


def half_up(number: exp.Expr) -> exp.Expr:
    """The nearest whole number, as a double; halves go up, on which engines differ."""
    return exp.Floor(this=exp.Add(this=number, expression=exp.Literal.number("0.5e0")))


def named(select: exp.Expr, name: str) -> exp.Subquery:
    """A SELECT as a subquery of FROM; its name is nothing but a name."""
    alias = exp.TableAlias(this=exp.to_identifier(name, quoted=True))
    return exp.Subquery(this=select, alias=alias)
