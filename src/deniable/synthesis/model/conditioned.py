"""A model given some of its columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from deniable.errors import ParameterError
from deniable.synthesis.domain import Clique, Codes, Domain, Floats
from deniable.synthesis.model.base import Model

_LEAST = 1e-6
_CHUNK = 100_000


@dataclass(frozen=True, eq=False)
class Conditioned:
    """What another model says of the rows that have these codes."""

    inner: Model
    given: Mapping[str, int]

    @property
    def domain(self) -> Domain:
        """All columns; those that are given have one code."""
        return self.inner.domain

    @property
    def total(self) -> float:
        clique = self.domain.clique(self.given)
        return float(self.inner.marginal(clique)[tuple(self.given[c] for c in clique)])

    def marginal(self, columns: Sequence[str]) -> Floats:
        clique: Clique = self.domain.clique(columns)
        both = self.domain.clique([*clique, *self.given])
        table = self.inner.marginal(both)
        found = np.zeros(self.domain.shape(clique))
        taken = tuple(self.given.get(column, slice(None)) for column in both)
        placed = tuple(self.given.get(column, slice(None)) for column in clique)
        found[placed] = table[taken]
        return found

    def sample(self, rows: int) -> Codes:
        """Rows of the model that have these codes, as many as are asked for."""
        if rows == 0:
            return np.zeros((0, len(self.domain)), np.int64)
        share = self.total / max(self.inner.total, 1e-300)
        if share < _LEAST:
            raise ParameterError(
                "condition", dict(self.given), "is met by less than one row in a million"
            )
        places = [(self.domain.place(column), code) for column, code in self.given.items()]
        kept: list[Codes] = []
        while sum(map(len, kept)) < rows:
            drawn = self.inner.sample(min(_CHUNK, int(1.2 * rows / share) + 100))
            inside = np.all([drawn[:, place] == code for place, code in places], axis=0)
            kept.append(drawn[inside])
        return np.concatenate(kept or [np.zeros((0, len(self.domain)), np.int64)])[:rows]
