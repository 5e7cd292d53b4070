"""SmallDB: choose the best small database outright (Blum, Ligett & Roth 2008). For teaching."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, islice

import numpy as np

from deniable.errors import ParameterError
from deniable.privacy.exact import whole
from deniable.synthesis.domain import Counts, Domain, Floats
from deniable.synthesis.measure import Draws
from deniable.synthesis.method import Progress, silent
from deniable.synthesis.model.base import Model
from deniable.synthesis.model.dense import DenseModel
from deniable.synthesis.queries import Counting
from deniable.synthesis.scores import ClosestOffer

MOST_DATABASES = 1_000_000
_TOTAL = Fraction(1, 10)
_CHUNK = 10_000


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
        """A million databases are the most."""
        count = databases(domain, whole(self.rows, "rows"))
        if count > MOST_DATABASES:
            raise ParameterError(
                "rows",
                self.rows,
                f"{count:,} databases are above the cap of {MOST_DATABASES:,}; take fewer rows or "
                "a smaller domain, or MWEM",
            )

    def run(self, draws: Draws, progress: Progress = silent) -> Model:
        """The chosen database, as a model."""
        domain, rows = draws.domain, whole(self.rows, "rows")
        self.check(domain)
        count = databases(domain, rows)
        total = max(1.0, float(draws.measure((), draws.whole * _TOTAL).values))
        masks = np.stack(
            [np.broadcast_to(query.mask(domain), domain.sizes).ravel() for query in self.queries]
        )

        def offers() -> Iterator[Floats]:
            for chunk in _chunks(domain.cells, rows):
                yield chunk @ masks.T * (total / rows)

        place = draws.choose(ClosestOffer(self.queries, count, offers), draws.left)
        progress(1.0)
        chosen = next(islice(_multisets(domain.cells, rows), place, None))
        shares = np.bincount(chosen, minlength=domain.cells).reshape(domain.sizes) / rows
        with np.errstate(divide="ignore"):
            return DenseModel(domain, total, np.log(shares))


def databases(domain: Domain, rows: int) -> int:
    """How many different databases of so many rows there are."""
    return math.comb(rows + domain.cells - 1, rows)


def _multisets(cells: int, rows: int) -> Iterator[list[int]]:
    """Every database once: stars and bars."""
    for bars in combinations(range(rows + cells - 1), rows):
        yield [bar - place for place, bar in enumerate(bars)]


def _chunks(cells: int, rows: int) -> Iterator[Counts]:
    """The counts of many databases at once."""
    every = _multisets(cells, rows)
    while some := list(islice(every, _CHUNK)):
        flat = np.array(some) + np.arange(len(some))[:, None] * cells
        yield np.bincount(flat.ravel(), minlength=len(some) * cells).reshape(-1, cells)
