"""Exact marginals of a private table, each one GROUP BY that its engine runs.

Plans, bounds on what a unit adds, and statements are those of questions in SQL: a unit with more
than `max_rows` rows is scaled down so that its counts sum to `max_rows` at most.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deniable.engines.base import Engine, LazySnapshot
from deniable.errors import ParameterError
from deniable.lazy import lazy
from deniable.privacy.units import Relation
from deniable.query.plan.plan import SCALE, Plan
from deniable.query.price.room import check_room
from deniable.query.read.catalogue import Catalogue, Options
from deniable.query.read.compile import compile_sql
from deniable.query.run.emit import totals_step
from deniable.query.run.emit_profile import rows_step
from deniable.synthesis.columns import Coding
from deniable.synthesis.data import check_cells
from deniable.synthesis.domain import Clique, Counts, Domain

_CHECKED_CELLS = 10_000


def coded_rows(
    catalogue: Catalogue, table: str, codings: Sequence[Coding], max_rows: int | None
) -> Plan:
    """The plan of a table's rows by the codes of all columns; rows outside of the domain are not.

    It is compiled once. Engines make its rows once, and marginals of them.
    """
    names = [f"c{place}" for place in range(len(codings))]
    coded = ", ".join(f"{each.sql()} AS {name}" for each, name in zip(codings, names, strict=True))
    inside = [condition for condition in (each.inside() for each in codings) if condition]
    where = f" WHERE {' AND '.join(inside)}" if inside else ""
    shown = ", ".join(names)
    text = (
        f"SELECT {shown}, COUNT(*) AS n FROM "  # noqa: S608
        f'(SELECT {coded} FROM "{table}"{where}) AS coded GROUP BY {shown}'
    )
    keys = {name: tuple(range(each.size)) for name, each in zip(names, codings, strict=True)}
    return compile_sql(text, catalogue, Options(keys=keys, max_rows=max_rows))


@dataclass(frozen=True, eq=False, repr=False)
class TableMarginals:
    """Marginals of one table of a session, in one snapshot of it.

    A row with a value outside of the declared domain, in any column, is counted nowhere.
    """

    rows: Plan
    """The rows of every marginal: COUNT(*) by the codes of all columns."""
    snapshot: LazySnapshot
    domain: Domain
    relation: Relation

    steps = SCALE

    @lazy
    def bound(self) -> int:
        plan = self.plan(())
        if plan.buys_rows:
            raise ParameterError(
                "max_rows", None, "say how many rows of one unit count: max_rows=, or on the table"
            )
        return plan.contribution.rows * SCALE

    def plan(self, clique: Clique) -> Plan:
        """The plan of one marginal: COUNT(*) by codes, of rows that are coded once."""
        return self.rows.by([self.domain.place(column) for column in clique])

    def check(self, engine: Engine, catalogue: Catalogue) -> None:
        """Refuse, from names, types and promises alone, what the engine would not run."""
        _ = self.bound  # refused here, not when it is charged
        total = self.plan(())
        few = [totals_step(self.plan(clique), l2=False) for clique in self._few()]
        steps = [totals_step(total, l2=False), rows_step(total), *few]
        check_room(self.rows, catalogue, engine, [*steps, *self.snapshot.reads])
        engine.check(steps)

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
