"""Counting queries: how many rows have these values in these columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from deniable.errors import ParameterError
from deniable.privacy.exact import whole
from deniable.synthesis.domain import Clique, Counts, Domain, Floats


@dataclass(frozen=True, init=False)
class Counting:
    """A conjunction: for each named column, the codes that count. One row adds 0 or 1."""

    clique: Clique
    codes: tuple[tuple[int, ...], ...]

    def __init__(self, domain: Domain, conditions: Mapping[str, int | Iterable[int]]) -> None:
        clique = domain.clique(conditions)
        if not clique:
            raise ParameterError("conditions", "none", "name one column or more")
        found = []
        for column in clique:
            given = conditions[column]
            codes = (given,) if isinstance(given, int | np.integer) else tuple(given)
            for code in codes:
                if whole(code, "code", least=0) >= domain.size_of(column):
                    raise ParameterError(
                        "code", code, f"{column} has the codes 0 to {domain.size_of(column) - 1}"
                    )
            found.append(tuple(sorted({int(code) for code in codes})))
        object.__setattr__(self, "clique", clique)
        object.__setattr__(self, "codes", tuple(found))

    def check(self, domain: Domain) -> None:
        """Refuse queries about another domain, and those with counting code of their own."""
        own = type(self) is Counting and len(self.clique) == len(self.codes)
        if not own or self.clique != domain.clique(self.clique):
            raise ParameterError("query", type(self).__name__, "must be a Counting query")
        for column, codes in zip(self.clique, self.codes, strict=True):
            size = domain.size_of(column)
            if len(set(codes)) < len(codes) or not all(0 <= code < size for code in codes):
                raise ParameterError("query", column, "has codes of another domain")

    def of(self, marginal: Floats) -> float:
        """The answer from expected counts over the query's columns."""
        return float(marginal[np.ix_(*self.codes)].sum())

    def of_exact(self, marginal: Counts) -> int:
        """The answer from whole counts."""
        return int(marginal[np.ix_(*self.codes)].sum())

    def mask(self, domain: Domain) -> Floats:
        """1 where a record counts, 0 elsewhere, shaped to broadcast over the whole domain."""
        found = np.ones([1] * len(domain))
        for column, codes in zip(self.clique, self.codes, strict=True):
            place = domain.place(column)
            axis = np.zeros(domain.sizes[place])
            axis[list(codes)] = 1.0
            found = found * axis.reshape([-1 if p == place else 1 for p in range(len(domain))])
        return found
