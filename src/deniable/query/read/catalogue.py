"""The tables that a question may name, with their public metadata."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sqlglot import exp
from sqlglot.schema import MappingSchema

from deniable.engines.literals import short
from deniable.engines.trees import is_known
from deniable.errors import QueryError
from deniable.lazy import lazy
from deniable.privacy.units import Relation
from deniable.query.plan.reach import Reaches
from deniable.query.read.columns import BOUGHT, UNIT, Column, RowSet
from deniable.query.read.fan import Count, no_count
from deniable.tables import (
    NUMERIC,
    SQL_TYPES,
    Bounds,
    ColumnType,
    PrivateTable,
    PublicTable,
    Schema,
    check_bounds,
    nearest,
)

LOOKED = "bounds chosen by looking at the data: not covered by ε"


@dataclass(frozen=True)
class Options:
    """What a question declares beside its text."""

    bounds: Mapping[str, Bounds] = field(default_factory=dict)
    keys: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    max_rows: int | None = None
    max_groups: int | None = None
    new_keys: bool = False
    profile: bool = False
    """Whether what a person adds is estimated, whatever was declared."""
    centres: Mapping[str, tuple[int, float]] = field(default_factory=dict)
    reaches: Reaches = field(default_factory=dict)

    def applied(self, name: str, column: Column) -> Column:
        """A column with what the question declares about its name."""
        if name in self.bounds:
            check_bounds(name, self.bounds[name], column.kind, column.grid)
        return replace(
            column,
            bounds=self.bounds.get(name, column.bounds),
            keys=self.keys.get(name, column.keys),
        )


@dataclass(frozen=True)
class Catalogue:
    """Schemas of all tables, the metadata of the private ones, and numbers about public ones."""

    schemas: Mapping[str, Schema]
    private: Mapping[str, PrivateTable]
    count: Count = no_count
    public: Mapping[str, PublicTable] = field(default_factory=dict)

    @lazy
    def plans(self) -> dict[tuple[str, tuple[str, ...], str], object]:
        """Plans that were made, by the text, the names and the options of their questions."""
        return {}

    @lazy
    def sqlglot_schema(self) -> MappingSchema:
        """The names and types, in lower case, for the resolver; names are not read as SQL."""
        return MappingSchema(
            {
                name: {column.lower(): SQL_TYPES[kind] for column, kind in schema.columns.items()}
                for name, schema in self.schemas.items()
            },
            dialect="duckdb",
            normalize=False,
        )

    @lazy
    def numeric_columns(self) -> set[str]:
        """Names under which every table has numbers or booleans."""
        kinds: dict[str, set[ColumnType]] = {}
        for schema in self.schemas.values():
            for name, kind in schema.columns.items():
                kinds.setdefault(name.lower(), set()).add(kind)
        return {name for name, found in kinds.items() if found <= {*NUMERIC, ColumnType.BOOLEAN}}

    def relation(self, name: str, options: Options) -> RowSet:
        """A table as rows that can be asked about."""
        if name not in self.schemas:
            raise QueryError(f"there is no table {name}; {nearest(name, self.schemas)}")
        schema, table = self.schemas[name], self.private.get(name)
        if table is None:
            columns = {
                name.lower(): options.applied(name.lower(), Column(kind))
                for name, kind in schema.columns.items()
            }
            return RowSet(exp.select("*").from_(exp.to_identifier(name, quoted=True)), columns)
        unit = table.unit.lower() if isinstance(table.unit, str) else None
        columns = {
            column.lower(): options.applied(
                column.lower(),
                Column(
                    kind,
                    bounds=table.bounds.get(column),
                    grid=table.grid.get(column),
                    places=schema.places.get(column),
                    keys=table.keys.get(column),
                    is_unit=column.lower() == unit,
                    private=True,
                ),
            )
            for column, kind in schema.columns.items()
        }
        sql = exp.select(*(exp.column(column, quoted=True) for column in columns))
        sql = sql.from_(exp.Table(this=exp.to_identifier(name, quoted=True)))
        if unit is None:
            number = exp.Window(this=exp.RowNumber())  # each row is a unit of its own
            sql = sql.select(exp.alias_(number, UNIT, quoted=True))
        else:
            column = exp.column(unit, quoted=True)
            sql = sql.select(exp.alias_(column.copy(), UNIT, quoted=True))
            # A name of more than 1,000 bytes is nobody's.
            is_text = columns[unit].kind == ColumnType.TEXT
            sql = sql.where(short(column.copy()) if is_text else is_known(column.copy()))
        return RowSet(
            sql=sql,
            columns=columns,
            population=table.population,
            tables=(name,),
            rows=BOUGHT if options.profile else options.max_rows or table.max_rows or BOUGHT,
            single=unit is None,
            cap=1 if unit is None else table.cap_rows,
            most=1 if unit is None else None,
            unit_has_name=unit is not None,
            unit_kind=None if unit is None else columns[unit].kind,
            max_groups=options.max_groups or table.max_groups,
        )

    def notes(self, tables: Sequence[str]) -> tuple[str, ...]:
        """What answers about these tables are to say."""
        return (LOOKED,) if any(self.private[name].looked for name in tables) else ()

    def neighbours(self, tables: Sequence[str]) -> Relation:
        """The relation under which all these tables are protected."""
        kinds = {self.private[name].relation for name in tables}
        if len(kinds) > 1:
            raise QueryError("the tables are protected under different neighbour relations")
        return kinds.pop()
