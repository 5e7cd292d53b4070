"""A graphical model over a junction tree: exact marginals, and exact sampling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from deniable.errors import ParameterError
from deniable.synthesis.domain import Clique, Codes, Domain, Floats, project, widen
from deniable.synthesis.model.junction import JunctionTree
from deniable.synthesis.model.rounding import sample_conditionally

_MOST_CELLS = 1 << 26


@dataclass(frozen=True, eq=False)
class GraphicalModel:
    """A distribution that factors over a junction tree: P(root) Π P(clique | separator).

    `tables[i]` is the marginal over clique i, as probabilities; `conditionals[i]` is the same given
    its separator (the root's is its marginal). `total` is the number of rows it stands for.
    """

    tree: JunctionTree
    total: float
    tables: tuple[Floats, ...]
    conditionals: tuple[Floats, ...]
    _messages: dict[tuple[int, int, Clique], tuple[Clique, Floats]] = field(
        default_factory=dict, repr=False
    )

    @property
    def domain(self) -> Domain:
        return self.tree.domain

    def marginal(self, columns: Sequence[str]) -> Floats:
        clique = self.domain.clique(columns)
        if self.domain.size(clique) > _MOST_CELLS:
            raise ParameterError(
                "columns", list(clique), f"{self.domain.size(clique):,} cells are too many"
            )
        holder = self.tree.holder(clique)
        if holder is not None:
            return self.total * project(self.tables[holder], self.tree.cliques[holder], clique)
        root = max(
            range(len(self.tree.cliques)),
            key=lambda each: len(set(clique) & set(self.tree.cliques[each])),
        )
        columns_found, table = self._combined(root, -1, clique)
        order = [columns_found.index(column) for column in clique]
        return self.total * table.transpose(order)

    def sample(self, rows: int) -> Codes:
        """So many rows, with counts as close to their expectation as whole numbers can be.

        Each clique is drawn given its separator alone: within a group of rows with equal separator
        the new columns are dealt out in random order, so that what is independent given the
        separator comes out independent.
        """
        places = {column: place for place, column in enumerate(self.domain.columns)}
        codes = np.zeros((rows, len(self.domain)), dtype=np.int64)
        for number, clique in enumerate(self.tree.cliques):
            separator = self.tree.separators[number]
            fresh = tuple(column for column in clique if column not in separator)
            order = [clique.index(column) for column in (*separator, *fresh)]
            width = self.domain.size(fresh)
            table = self.conditionals[number].transpose(order).reshape(-1, width)
            group = np.zeros(rows, dtype=np.int64)
            for column in separator:
                group = group * self.domain.size_of(column) + codes[:, places[column]]
            cell = sample_conditionally(table, group)
            for column in reversed(fresh):
                cell, codes[:, places[column]] = np.divmod(cell, self.domain.size_of(column))
        return codes

    def _combined(self, here: int, towards: int, wanted: Clique) -> tuple[Clique, Floats]:
        """P(wanted columns on this side | separator), as columns and a table over both.

        For the root (`towards` = -1) nothing is given.
        """
        clique, given = self.tree.cliques[here], self._separator(here, towards)
        parts = []
        for other, _ in self.tree.neighbours[here]:
            if other == towards:
                continue
            beyond = self._beyond(other, here, wanted)
            if beyond:
                parts.append(self._message(other, here, beyond))
        kept = {column for columns, _ in parts for column in columns}
        own = tuple(c for c in clique if c in given or c in wanted or c in kept)
        table = project(self.tables[here], clique, own)
        if given:
            table = _divided(table, widen(project(table, own, given), given, own))
        found = set(own).union(*(columns for columns, _ in parts))
        out = tuple(c for c in self.domain.columns if c in found and (c in given or c in wanted))
        for place, (columns, message) in enumerate(parts):
            later = {c for rest, _ in parts[place + 1 :] for c in rest}
            both = [c for c in self.domain.columns if c in own or c in columns]
            keep = tuple(c for c in both if c in out or c in later)
            table = _contracted((own, table), (columns, message), keep)
            own = keep
        return out, project(table, own, out)

    def _message(self, here: int, towards: int, wanted: Clique) -> tuple[Clique, Floats]:
        key = (here, towards, wanted)
        if key not in self._messages:
            self._messages[key] = self._combined(here, towards, wanted)
        return self._messages[key]

    def _separator(self, here: int, towards: int) -> Clique:
        return next(
            (shared for other, shared in self.tree.neighbours[here] if other == towards), ()
        )

    def _beyond(self, here: int, towards: int, wanted: Clique) -> Clique:
        """Wanted columns on this side of an edge that the other side does not have."""
        known = set(self.tree.cliques[towards])
        found, stack = set[str](), [(here, towards)]
        while stack:
            place, before = stack.pop()
            found |= set(self.tree.cliques[place])
            stack += [(o, place) for o, _ in self.tree.neighbours[place] if o != before]
        return tuple(column for column in wanted if column in found and column not in known)


def _contracted(one: tuple[Clique, Floats], other: tuple[Clique, Floats], keep: Clique) -> Floats:
    """The product of two tables, summed over all columns but those to keep."""
    places = {c: place for place, c in enumerate(dict.fromkeys(one[0] + other[0]))}
    signs = [[places[c] for c in columns] for columns in (one[0], other[0], keep)]
    operands: list[Any] = [one[1], signs[0], other[1], signs[1], signs[2]]
    found: Floats = np.einsum(*operands, optimize=True)
    return found


def _divided(table: Floats, by: Floats) -> Floats:
    """A ratio; 0 where nothing is given."""
    return np.divide(table, by, out=np.zeros_like(table), where=by > 0)
