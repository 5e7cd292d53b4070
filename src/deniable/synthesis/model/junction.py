"""Junction trees: which tables a graphical model needs, and how they hang together."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

from deniable.lazy import lazy
from deniable.synthesis.domain import Clique, Domain


@dataclass(frozen=True, eq=False)
class JunctionTree:
    """Cliques in an order in which each one but the first comes after its parent.

    Columns shared with earlier cliques all stand in the parent: the running intersection. Parts of
    the model that share no column hang together by an empty separator.
    """

    domain: Domain
    cliques: tuple[Clique, ...]
    parents: tuple[int, ...]
    separators: tuple[Clique, ...]

    @property
    def cells(self) -> int:
        """Of all tables together: what a model takes in memory, in doubles."""
        return sum(self.domain.size(clique) for clique in self.cliques)

    @lazy
    def neighbours(self) -> tuple[tuple[tuple[int, Clique], ...], ...]:
        """For each clique, the cliques next to it and what they share."""
        found: list[list[tuple[int, Clique]]] = [[] for _ in self.cliques]
        for child, parent in enumerate(self.parents):
            if parent >= 0:
                found[child].append((parent, self.separators[child]))
                found[parent].append((child, self.separators[child]))
        return tuple(tuple(each) for each in found)

    def holder(self, clique: Clique) -> int | None:
        """The smallest clique of the tree that holds all these columns, if one does."""
        inside = [
            (self.domain.size(each), place)
            for place, each in enumerate(self.cliques)
            if set(clique) <= set(each)
        ]
        return min(inside)[1] if inside else None


def junction_tree(domain: Domain, cliques: Iterable[Clique]) -> JunctionTree:
    """A junction tree in which every one of these cliques lies inside one of its own."""
    order = _elimination(domain, cliques)
    return _tree(domain, order)


def tree_cells(domain: Domain, cliques: Iterable[Clique]) -> int:
    """The size that the junction tree would have. It is this that memory caps must look at."""
    return sum(domain.size(clique) for clique in _maximal(_elimination(domain, cliques)))


def _elimination(domain: Domain, cliques: Iterable[Clique]) -> list[Clique]:
    """Eliminate columns one by one, the one that makes the smallest table first."""
    near: dict[str, set[str]] = {column: set() for column in domain.columns}
    for clique in cliques:
        for one, other in combinations(clique, 2):
            near[one].add(other)
            near[other].add(one)
    sizes = dict(zip(domain.columns, domain.sizes, strict=True))
    logs = {column: math.log(size) for column, size in sizes.items()}
    cost = {column: sum(logs[c] for c in near[column]) + logs[column] for column in near}
    made = []
    while near:
        column = min(near, key=lambda each: (cost[each], each))
        around = near.pop(column)
        made.append(domain.clique({column, *around}))
        for each in around:
            near[each] |= around - {each}
            near[each].discard(column)
            cost[each] = sum(logs[c] for c in near[each]) + logs[each]
    return made


def _maximal(cliques: list[Clique]) -> list[Clique]:
    kept: list[Clique] = []
    for clique in sorted(set(cliques), key=lambda each: (-len(each), each)):
        if not any(set(clique) <= set(other) for other in kept):
            kept.append(clique)
    return kept


def _tree(domain: Domain, made: list[Clique]) -> JunctionTree:
    """Maximum spanning tree over shared columns (Prim), which has the running intersection."""
    left = _maximal(made)
    # The largest table is the root: its neighbours need no message of its size.
    left.sort(key=lambda each: (-domain.size(each), each))
    cliques, parents = [left.pop(0)], [-1]
    separators: list[Clique] = [()]
    while left:
        best = max(
            (len(set(clique) & set(other)), -place, -number)
            for place, clique in enumerate(left)
            for number, other in enumerate(cliques)
        )
        clique, parent = left.pop(-best[1]), -best[2]
        separators.append(domain.clique(set(clique) & set(cliques[parent])))
        cliques.append(clique)
        parents.append(parent)
    return JunctionTree(domain, tuple(cliques), tuple(parents), tuple(separators))
