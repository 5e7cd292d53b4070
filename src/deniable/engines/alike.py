"""Many columns that a statement treats alike: translated for one of them, then repeated.

The second moments of 45 columns are a thousand sums, in a statement of a quarter of a million
symbols. They differ in nothing but their names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

_ADDED = "deniable_added"
_MOST_ADDED = 100
_WHOLE = "deniable_whole_base"


@dataclass(frozen=True)
class Alike:
    """A step as it would be with the first of these columns alone.

    All of them are of one type. Every list of columns that has the first has them all, and a SUM
    that is none of these columns adds up what is in it over all of them.
    """

    names: tuple[str, ...]
    """The columns."""
    select: str
    """The statement with the first."""
    tables: Mapping[str, str]
    """The tables that it needs, with the first."""
    base: str
    """The common table expression that makes them of rows."""
    rows: str
    """The SELECT in there, with all of them."""

    def with_rows(self) -> dict[str, str]:
        """The tables, and last the rows with all columns, which `repeat` takes out again."""
        return {**self.tables, _WHOLE: self.rows}

    def mark(self, tree: exp.Expr) -> None:
        """Note which sums are over all columns; before the tree is rewritten."""
        for node in list(tree.find_all(exp.Sum)):
            listed = node.find_ancestor(exp.Alias)
            if (listed is None or listed.alias != self.names[0]) and self._is_in(node):
                node.set("this", exp.Paren(this=node.this))
                node.this.meta[_ADDED] = True

    def _is_in(self, node: exp.Expr) -> bool:
        return any(column.name == self.names[0] for column in node.find_all(exp.Column))

    def repeat(self, tree: exp.Expr, dialect: str) -> bool:
        """Write out all columns, in an engine's words; False where they are not of one type."""
        (whole,) = (made for made in tree.args["with_"].expressions if made.alias == _WHOLE)
        names = set(self.names)
        items = [item for item in whole.this.selects if item.alias in names]
        if len({item.type.this if item.type is not None else None for item in items}) != 1:
            return False
        listed = exp.Select(expressions=items).sql(dialect, copy=False).removeprefix("SELECT ")
        whole.pop()
        nodes = list(tree.find_all(exp.Paren, exp.Select))
        for node in nodes:
            if node.meta.get(_ADDED):
                node.set("this", exp.Var(this=added(self._each(node.this, dialect))))
        for select in nodes:
            if not isinstance(select, exp.Select):
                continue
            made = select.parent
            is_base = isinstance(made, exp.CTE) and made.alias == self.base
            for item in select.selects:
                if item.alias_or_name == self.names[0]:
                    text = listed if is_base else ", ".join(self._each(item, dialect))
                    item.replace(exp.Var(this=text))
        return True

    def _each(self, node: exp.Expr, dialect: str) -> list[str]:
        text, first = node.sql(dialect, copy=False), self.names[0]
        mark = exp.to_identifier(first, quoted=True).sql(dialect)
        return [text.replace(mark, mark.replace(first, name)) for name in self.names]

    def width(self, selects: Sequence[exp.Expr]) -> int:
        many = sum(item.alias_or_name == self.names[0] for item in selects)
        return len(selects) + many * (len(self.names) - 1)


def added(parts: Sequence[str]) -> str:
    """A sum; one of many parts in brackets, or engines' statements would be nested too deeply."""
    if len(parts) <= _MOST_ADDED:
        return " + ".join(parts)
    half = len(parts) // 2
    return f"({added(parts[:half])}) + ({added(parts[half:])})"
