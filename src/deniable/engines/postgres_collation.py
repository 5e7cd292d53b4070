"""Text on Postgres is compared byte by byte, whatever order of letters the database has.

Leaves say so of columns, and what is made of them takes it from them. Text that is made of no text
(a constant, a cast, the name of a month) would follow the database: it says so itself.
"""

from __future__ import annotations

from sqlglot import exp

from deniable.engines.translate import TEXTS, kind_of

_MAKES_TEXT = (exp.Literal, exp.Func, exp.Dot, exp.DPipe)


def bytewise(tree: exp.Expr) -> exp.Expr:
    """The tree, in which all text that an expression makes is COLLATE "C"."""
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
