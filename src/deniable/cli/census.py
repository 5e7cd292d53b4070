"""Exact numbers about a private table, for its owner alone: they pass no gate.

All of them are of the rows that questions see: read by the same engine, through the same leaves. A
value that questions take for NULL is counted as one that is not read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from deniable.engines.base import Snapshot, Step, quoted
from deniable.engines.files import Files
from deniable.engines.literals import literal
from deniable.engines.stored_cells import StoredCells, stored_cells
from deniable.held import opened
from deniable.query.plan.keys import declared
from deniable.query.read.catalogue import Options
from deniable.query.read.columns import UNIT
from deniable.session import Session
from deniable.tables import NUMERIC, ColumnType, PrivateTable

Tell = Callable[[str], None]

QUANTILES = (0.5, 0.9, 0.95, 0.99)
LOW, HIGH = 0.001, 0.999
"""Between which quantiles of a column's values suggested bounds lie."""


@dataclass(frozen=True)
class ClippedColumn:
    """What declared bounds do to the values of a column."""

    low: float
    high: float
    values: int
    below: int
    above: int


@dataclass(frozen=True)
class KeptByKeys:
    """Which rows declared keys keep."""

    declared: int
    rows: int
    other: int
    """Rows with another value, or none: they are in no group."""
    absent: tuple[str, ...]
    """Declared keys that no row has."""


@dataclass(frozen=True)
class ColumnCensus:
    """A column that questions may name."""

    name: str
    kind: ColumnType
    cells: int
    """Cells that are not empty as they are stored."""
    read: int
    """Cells that are values of the declared type; the others are NULL to every question."""
    bounds: ClippedColumn | None
    keys: KeptByKeys | None
    ends: tuple[float, float] | None
    """Quantiles of its values; looked at only where suggestions are asked for."""


@dataclass(frozen=True)
class People:
    """How many rows a unit has."""

    units: int
    quantiles: Mapping[str, int]
    most: int
    heavy: int
    """Units with more rows than `max_rows`; 0 where that is not declared."""
    cut: int
    """Rows beyond it."""
    broken: int
    """Units with more rows than `cap_rows` promises."""


@dataclass(frozen=True)
class Census:
    """A private table, counted."""

    table: str
    rows: int
    without_unit: int
    repeated: int
    """Rows that are equal to another in all columns."""
    people: People | None
    """None where each row is a unit of its own."""
    columns: tuple[ColumnCensus, ...]
    left_out: Mapping[str, str]
    dropped: int
    unread: int

    def broken(self, table: PrivateTable) -> Iterator[str]:
        """Promises of the owner that the data do not keep."""
        if self.people is not None and self.people.broken:
            yield f"cap_rows = {table.cap_rows}: {self.people.broken:,} units have more rows"
        if table.most_rows is not None and self.rows > table.most_rows:
            yield f"most_rows = {table.most_rows}: there are {self.rows:,} rows"


def census(session: Session, name: str, table: PrivateTable, *, look: bool, tell: Tell) -> Census:
    """Count a table of a session; `look` also at where its values lie."""
    taken = _Counting(session, name, table, look)
    tell(f"{name}: cells as they are stored")
    source = opened(table.source)
    cells = stored_cells(Files.of(source), taken.kinds)  # type: ignore[arg-type]
    with session.parts.engine.snapshot(taken.steps) as snapshot:
        return taken.counted(cells, snapshot, tell)


@dataclass(frozen=True)
class _Counting:
    session: Session
    title: str
    table: PrivateTable
    look: bool

    @property
    def name(self) -> str:
        return self.title.lower()

    @property
    def kinds(self) -> Mapping[str, ColumnType]:
        return self.session.parts.catalogue.schemas[self.name].columns

    @property
    def steps(self) -> list[Step]:
        """All statements: a file is read once for them."""
        per_unit = [] if self._is_single else [self._by_unit]
        present = [self._present(column) for column in self.table.keys]
        return [self._totals, self._distinct, self._declared, *per_unit, *present]

    @property
    def _is_single(self) -> bool:
        return not isinstance(self.table.unit, str)

    @property
    def _rows(self) -> str:
        """The rows that are somebody's, as questions begin with them."""
        relation = self.session.parts.catalogue.relation(self.name, Options())
        return f"({relation.sql.sql('duckdb')}) AS named"

    @property
    def _totals(self) -> Step:
        counts = [f"COUNT({quoted(each.lower())})" for each in self.kinds]
        return _step(f"SELECT {', '.join(['COUNT(*)', *counts])} FROM {quoted(self.name)}")

    @property
    def _distinct(self) -> Step:
        columns = ", ".join(quoted(each.lower()) for each in self.kinds)
        return _step(
            f"SELECT COUNT(*) FROM (SELECT DISTINCT {columns} FROM {quoted(self.name)}) AS once"
        )

    @property
    def _by_unit(self) -> Step:
        each = f"SELECT COUNT(*) AS n FROM {self._rows} GROUP BY {quoted(UNIT)}"
        return _step(f"SELECT n, COUNT(*) FROM ({each}) AS units GROUP BY n ORDER BY n")

    @property
    def _declared(self) -> Step:
        """What bounds clip and keys leave out, and where values lie, in one reading."""
        asked = ["COUNT(*)"]
        for name, (low, high) in self.table.bounds.items():
            kind, column = self.kinds[name], exp.column(name.lower(), quoted=True)
            whole = kind == ColumnType.INTEGER  # no value lies between a fraction and the next one
            least = literal(kind, math.ceil(low) if whole else low)
            most = literal(kind, math.floor(high) if whole else high)
            asked.append(f"COUNT({column.sql('duckdb')})")
            asked.append(_count_where(exp.LT(this=column.copy(), expression=least)))
            asked.append(_count_where(exp.GT(this=column.copy(), expression=most)))
        for name, keys in self.table.keys.items():
            asked.append(_count_where(declared(exp.column(name.lower(), quoted=True), keys)))
        if self.look:
            for name in self._numbers:
                asked += [f"quantile_disc({quoted(name.lower())}, {e})" for e in (LOW, HIGH)]
        return _step(f"SELECT {', '.join(asked)} FROM {self._rows}")

    @property
    def _numbers(self) -> list[str]:
        unit = str(self.table.unit).lower()
        return [n for n, kind in self.kinds.items() if kind in NUMERIC and n.lower() != unit]

    def _present(self, column: str) -> Step:
        """Which declared keys there are."""
        key = exp.column(column.lower(), quoted=True)
        kept = declared(key.copy(), self.table.keys[column]).sql("duckdb")
        return _step(f"SELECT DISTINCT {key.sql('duckdb')} FROM {self._rows} WHERE {kept}")

    def counted(self, stored: StoredCells, snapshot: Snapshot, tell: Tell) -> Census:
        """Run the statements, and say which one is running."""
        tell(f"{self.title}: values that are read")
        ((rows, *read),) = snapshot.run(self._totals)
        tell(f"{self.title}: rows that are there twice")
        ((distinct,),) = snapshot.run(self._distinct)
        people = None
        if not self._is_single:
            tell(f"{self.title}: rows of each person")
            people = self._people(snapshot.run(self._by_unit))
        tell(f"{self.title}: what declared values leave out")
        ((named, *numbers),) = snapshot.run(self._declared)
        columns = self._columns(
            stored, dict(zip(self.kinds, read, strict=True)), iter(numbers), named, snapshot
        )
        return Census(
            table=self.title,
            rows=rows,
            without_unit=rows - named,
            repeated=rows - distinct,
            people=people,
            columns=columns,
            left_out=stored.left_out,
            dropped=stored.dropped,
            unread=stored.unread,
        )

    def _people(self, rows: Sequence[tuple[Any, ...]]) -> People:
        histogram = [(int(n), int(units)) for n, units in rows]
        limit, cap = self.table.max_rows, self.table.cap_rows
        heavy = [(n, units) for n, units in histogram if limit is not None and n > limit]
        return People(
            units=sum(units for _, units in histogram),
            quantiles={f"{share:.0%}": _quantile(histogram, share) for share in QUANTILES},
            most=max((n for n, _ in histogram), default=0),
            heavy=sum(units for _, units in heavy),
            cut=sum((n - (limit or 0)) * units for n, units in heavy),
            broken=sum(units for n, units in histogram if cap is not None and n > cap),
        )

    def _columns(
        self,
        stored: StoredCells,
        read: Mapping[str, int],
        numbers: Iterator[Any],
        named: int,
        snapshot: Snapshot,
    ) -> tuple[ColumnCensus, ...]:
        bounds = {
            name: ClippedColumn(float(low), float(high), *(next(numbers) for _ in range(3)))
            for name, (low, high) in self.table.bounds.items()
        }
        inside = {name: next(numbers) for name in self.table.keys}
        ends = {name: (next(numbers), next(numbers)) for name in self._numbers if self.look}
        kept = {
            name: self._kept(name, named, inside[name], snapshot.run(self._present(name)))
            for name in self.table.keys
        }
        return tuple(
            ColumnCensus(
                name=name,
                kind=kind,
                cells=stored.cells[name],
                read=read[name],
                bounds=bounds.get(name),
                keys=kept.get(name),
                ends=_ends(ends.get(name)),
            )
            for name, kind in self.kinds.items()
        )

    def _kept(
        self, name: str, named: int, inside: int, rows: Sequence[tuple[Any, ...]]
    ) -> KeptByKeys:
        keys, present = self.table.keys[name], {row[0] for row in rows}
        absent = tuple(str(key) for key in keys if key not in present)
        return KeptByKeys(declared=len(keys), rows=named, other=named - inside, absent=absent)


def _step(select: str) -> Step:
    return Step(select, select)


def _count_where(condition: exp.Expr) -> str:
    return f"COUNT(CASE WHEN {condition.sql('duckdb')} THEN 1 END)"


def _ends(found: tuple[Any, Any] | None) -> tuple[float, float] | None:
    if found is None or None in found:
        return None
    return float(found[0]), float(found[1])


def _quantile(histogram: Sequence[tuple[int, int]], share: float) -> int:
    """The least number of rows that so large a share of units does not exceed."""
    wanted, seen = share * sum(units for _, units in histogram), 0
    for rows, units in histogram:
        seen += units
        if seen >= wanted:
            return rows
    return 0
