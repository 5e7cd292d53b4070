"""SmallDB: choose the best small database outright (Blum, Ligett & Roth 2008). For teaching."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice

import numpy as np

from deniable.errors import ParameterError
from deniable.privacy.exact import whole
from deniable.synthesis.domain import Domain
from deniable.synthesis.measure import Draws
from deniable.synthesis.method import Progress, silent
from deniable.synthesis.model.base import Model
from deniable.synthesis.model.dense import DenseModel
from deniable.synthesis.queries import Counting
from deniable.synthesis.scores import MOST_DATABASES, ClosestDatabase, databases, multisets

_TOTAL = Fraction(1, 10)


@dataclass(frozen=True, kw_only=True)
class SmallDB:
    """An exponential mechanism over all databases of `rows` records.

    The score of a database is minus its largest error on the queries, once it is scaled to the
    number of rows, of which a tenth of the price makes an estimate. One unit moves every score by
    one count at most. There are C(rows + |X| - 1, rows) databases: a million are the most here.
    """

    queries: Sequence[Counting]
    rows: int

    def check(self, domain: Domain) -> None:
        count = databases(domain.cells, whole(self.rows, "rows"))
        if count > MOST_DATABASES:
            raise ParameterError(
                "rows",
                self.rows,
                f"{count:,} databases are above the cap of {MOST_DATABASES:,}; take fewer rows or "
                "a smaller domain, or MWEM",
            )

    def run(self, draws: Draws, progress: Progress = silent) -> Model:
        domain, rows = draws.domain, whole(self.rows, "rows")
        self.check(domain)
        total = max(1.0, float(draws.measure((), draws.whole * _TOTAL).values))
        place = draws.choose(ClosestDatabase(self.queries, rows, total), draws.left)
        progress(1.0)
        chosen = next(islice(multisets(domain.cells, rows), place, None))
        shares = np.bincount(chosen, minlength=domain.cells).reshape(domain.sizes) / rows
        with np.errstate(divide="ignore"):
            return DenseModel(domain, total, np.log(shares))
