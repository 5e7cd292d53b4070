"""Multiplicative weights over the whole domain, in logarithms, with full replay of history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from deniable.errors import ParameterError
from deniable.lazy import lazy
from deniable.synthesis.domain import Clique, Codes, Domain, Floats, project, widen
from deniable.synthesis.measurement import Measurement, averaged
from deniable.synthesis.model.rounding import sample_conditionally

MOST_MEGABYTES = Fraction(80)
_PART = 0.2


@dataclass(frozen=True, eq=False)
class DenseModel:
    """A weight for every record there could be: total · exp(logs), normalised."""

    domain: Domain
    total: float
    logs: Floats

    @classmethod
    def uniform(cls, domain: Domain, total: float) -> DenseModel:
        return cls(domain, total, np.zeros(domain.sizes))

    @lazy
    def probabilities(self) -> Floats:
        found: Floats = np.exp(self.logs - self.logs.max())
        found /= found.sum()
        return found

    def marginal(self, columns: Sequence[str]) -> Floats:
        clique = self.domain.clique(columns)
        return self.total * project(self.probabilities, self.domain.columns, clique)

    def sample(self, rows: int) -> Codes:
        """So many rows, with counts as close to their expectation as whole numbers can be."""
        table = self.probabilities.reshape(1, -1)
        cells = sample_conditionally(table, np.zeros(rows, dtype=np.int64))
        return np.stack(np.unravel_index(cells, self.domain.sizes), axis=1).astype(np.int64)


def replayed(model: DenseModel, history: Sequence[Measurement], *, passes: int) -> DenseModel:
    """Go through all measurements so many times, each a step of multiplicative weights.

    A step adds (measured - expected)/(2 total), broadcast over the domain, to the logarithms
    (Hardt, Ligett & McSherry 2012, Sec. 3.3). Among many rows that hardly moves small cells, so in
    the second half of the passes marginals that are still further off than their noise are scaled
    cell by cell. Without replay the model forgets what it was told.
    """
    logs, columns = model.logs.copy(), model.domain.columns
    told: dict[Clique, list[Measurement]] = {}
    for each in history:
        told.setdefault(each.clique, []).append(each)
    known = [averaged(several) for several in told.values()]
    for number in range(passes):
        for each in known:
            logs -= logs.max()
            weights = np.exp(logs)
            expected = project(weights, columns, each.clique) * (model.total / weights.sum())
            off = each.values - expected
            step = off / (2 * model.total)
            if number > passes // 2 and np.mean(np.square(off / each.deviation)) > 1:
                step = _PART * scaling(each.values, expected, each.deviation)
            logs += widen(step, each.clique, columns)
    return DenseModel(model.domain, model.total, logs)


def scaling(measured: Floats, expected: Floats, deviation: float | Floats) -> Floats:
    """About the logarithm of the ratio of each cell, as iterative proportional fitting takes it.

    Where noise is as large as the cell, the ratio says nothing, and the step is short.
    """
    return (measured - expected) / (np.maximum(measured, expected) + deviation)


def check_dense(domain: Domain, max_megabytes: Fraction = MOST_MEGABYTES) -> None:
    """Refuse domains that do not fit into memory, with their size and a way out."""
    size = Fraction(domain.cells * 8, 2**20)
    if size > max_megabytes:
        raise ParameterError(
            "domain",
            f"{domain.cells:,} cells",
            f"a table of all records takes {float(size):,.0f} MB, above the "
            f"{float(max_megabytes):g} MB allowed; use method='mst' or 'aim', fewer columns or "
            "fewer bins",
        )
