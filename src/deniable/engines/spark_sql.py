"""How Spark writes a question, so that it means the same and never raises because of data.

Statements run with ANSI mode off, where most of what fails gives NULL; what would raise even so is
written as a function that gives NULL. Questions arrive total part by part: TRY is only a bracket.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from deniable.engines.alike import Alike
from deniable.engines.spark_functions import RULES
from deniable.engines.translate import put_first, rewritten, typed_tree, within_depth
from deniable.tables import Schema

DIALECT = "spark"
_MOST_KNOWN = 32


@dataclass(frozen=True)
class Written:
    """A SELECT in Spark's words, and those whose rows are to be kept first, by name."""

    kept: Mapping[str, str]
    select: str


class SparkWriter:
    """Writes statements; the latest are known, as they are checked first and then run."""

    def __init__(self, schemas: Mapping[str, Schema], sources: Mapping[str, exp.Expr]) -> None:
        self._schemas, self._sources = schemas, sources
        self._known: dict[tuple[str, ...], Written] = {}

    def write(self, text: str, tables: Mapping[str, str], alike: Alike | None = None) -> Written:
        key = (text, *tables, *tables.values())
        if key not in self._known:
            while len(self._known) >= _MOST_KNOWN:
                self._known.pop(next(iter(self._known)))
            with within_depth("Spark"):
                self._known[key] = self._write(text, tables, alike)
        return self._known[key]

    def _write(self, text: str, tables: Mapping[str, str], alike: Alike | None) -> Written:
        tree = rewritten(typed_tree(text, tables, self._schemas, alike), _rule)
        if alike is not None and not alike.repeat(tree, DIALECT):
            return self._write(text, tables, None)
        kept = {}
        for made in list(tree.args["with_"].expressions) if tables else []:
            if made.alias in tables:
                kept[made.alias] = self._finished(made.this.copy())
                made.pop()
        return Written(kept, self._finished(tree))

    def _finished(self, tree: exp.Expr) -> str:
        _name_apart(tree)
        named = {table.name for table in tree.find_all(exp.Table)}
        for name, source in self._sources.items():
            if name in named:
                put_first(tree, name, source.copy(), materialized=False)
        for made in tree.find_all(exp.CTE):
            made.set("materialized", None)  # Spark does not know the word
        with_ = tree.args.get("with_")
        if with_ is not None and not with_.expressions:
            with_.pop()
        return str(tree.sql(DIALECT, copy=False))


def _name_apart(tree: exp.Expr) -> None:
    """Give WITH inside of a statement names of its own: all of them are written on top."""
    inside = [each for each in tree.find_all(exp.With) if each.parent is not tree]
    for number, with_ in enumerate(sorted(inside, key=lambda each: each.depth, reverse=True)):
        assert with_.parent is not None
        for made in with_.expressions:
            before, after = made.alias, f"{made.alias}_{number}"
            for table in with_.parent.find_all(exp.Table):
                if table.name == before:
                    table.set("this", exp.to_identifier(after, quoted=True))
            made.set("alias", exp.TableAlias(this=exp.to_identifier(after, quoted=True)))


def _rule(node: exp.Expr) -> exp.Expr:
    rule = RULES.get(type(node))
    if rule is None:
        return node
    children = list(node.iter_expressions())
    made = rule(node)
    if made is not node and not any(made is child for child in children):
        made.type = node.type
    return made
