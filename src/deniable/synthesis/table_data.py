"""Exact marginals of a private table, each one GROUP BY that its engine runs.

Plans, bounds on what a unit adds, and statements are those of questions in SQL: a unit with more
than `max_rows` rows is scaled down so that its counts sum to `max_rows` at most.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deniable.engines.base import Engine, LazySnapshot
from deniable.errors import ParameterError
from deniable.lazy import lazy
from deniable.privacy.units import Relation
from deniable.query.catalogue import Catalogue, Options
from deniable.query.compile import compile_tree
from deniable.query.emit import rows_step, totals_step
from deniable.query.plan import SCALE, Plan
from deniable.query.resolve import parse
from deniable.synthesis.columns import Coding
from deniable.synthesis.data import check_cells
from deniable.synthesis.domain import Clique, Counts, Domain

_CHECKED_CELLS = 10_000


@dataclass(frozen=True, eq=False, repr=False)
class TableMarginals:
    """Marginals of one table of a session, in one snapshot of it.

    A row with a value outside of the declared domain, in any column, is counted nowhere.
    """

    catalogue: Catalogue
    snapshot: LazySnapshot
    table: str
    codings: tuple[Coding, ...]
    max_rows: int | None
    domain: Domain

    steps = SCALE

    @lazy
    def bound(self) -> int:
        """What one unit adds at most."""
        plan = self.plan(())
        if plan.buys_rows:
            raise ParameterError(
                "max_rows", None, "say how many rows of one unit count: max_rows=, or on the table"
            )
        return plan.rows * SCALE

    @lazy
    def _texts(self) -> tuple[tuple[str, str], ...]:
        """The code of every column and what is inside its domain, as SQL, written once."""
        return tuple((each.sql(), each.inside()) for each in self.codings)

    @property
    def relation(self) -> Relation:
        """That of the table."""
        return self.catalogue.neighbours([self.table])

    def plan(self, clique: Clique) -> Plan:
        """The plan of one marginal: COUNT(*) by codes."""
        names = [f"c{self.domain.place(column)}" for column in clique]
        shown = ", ".join(names)
        coded = [
            f"{code} AS c{place}"
            for place, (code, _) in enumerate(self._texts)
            if self.domain.columns[place] in clique
        ]
        inside = [condition for _, condition in self._texts if condition]
        rows = (
            f'SELECT {", ".join(coded) or "1 AS one"} FROM "{self.table}"'  # noqa: S608
            + (f" WHERE {' AND '.join(inside)}" if inside else "")
        )
        text = (
            f"SELECT {shown + ', ' if names else ''}COUNT(*) AS n FROM ({rows}) AS coded"  # noqa: S608
            + (f" GROUP BY {shown}" if names else "")
        )
        sizes = self.domain.shape(clique)
        keys = {name: tuple(range(size)) for name, size in zip(names, sizes, strict=True)}
        options = Options(keys=keys, max_rows=self.max_rows)
        return compile_tree(parse(text), self.catalogue, options)

    def check(self, engine: Engine) -> None:
        """Refuse, from names and types alone, what the engine would not run."""
        _ = self.bound  # refused here, not when it is charged
        total = self.plan(())
        few = [totals_step(self.plan(clique), l2=False) for clique in self._few()]
        engine.check([totals_step(total, l2=False), rows_step(total), *few])

    def _few(self) -> list[Clique]:
        """All columns, few at a time: an engine computes only what is grouped by."""
        found: list[Clique] = [()]
        for column in self.domain.columns:
            wider = (*found[-1], column)
            if self.domain.size(wider) <= _CHECKED_CELLS:
                found[-1] = wider
            else:
                found.append((column,))
        return found

    def exact(self, clique: Clique) -> Counts:
        """One marginal, in steps of 1/65536 row."""
        check_cells(self.domain, clique)
        rows = self.snapshot.run(totals_step(self.plan(clique), l2=False))
        table = np.zeros(self.domain.shape(clique), dtype=np.int64)
        for row in rows:
            table[tuple(int(code) for code in row[:-1])] = int(row[-1] or 0)
        return table
