"""Counting queries: how many rows have these values in these columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from deniable.errors import ParameterError, ParameterTypeError
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
            listed = (given,) if isinstance(given, int | np.integer) else given
            codes = {whole(code, "code", least=0) for code in listed}
            if max(codes, default=0) >= domain.size_of(column):
                raise ParameterError(
                    "code", max(codes), f"{column} has the codes 0 to {domain.size_of(column) - 1}"
                )
            found.append(tuple(sorted(codes)))
        object.__setattr__(self, "clique", clique)
        object.__setattr__(self, "codes", tuple(found))

    @staticmethod
    def frozen(query: object, domain: Domain) -> Counting:
        """The query, made again of plain numbers that were read once.

        Refuses queries about another domain, and those with counting code of their own.
        """
        if type(query) is not Counting:
            raise ParameterTypeError("query", type(query).__name__, "must be a Counting query")
        clique, codes = tuple(query.clique), tuple(query.codes)
        if len(clique) != len(codes):
            raise ParameterError("query", "a query", "must have codes for every column")
        return Counting(domain, dict(zip(clique, codes, strict=True)))

    def of(self, marginal: Floats) -> float:
        """The answer from expected counts over the query's columns."""
        return float(marginal[np.ix_(*self.codes)].sum())

    def of_exact(self, marginal: Counts) -> int:
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
