"""Where a crowd's tables may lie: in memory, in files, in databases."""

import itertools
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

import duckdb
import psycopg
from pyarrow import parquet

import deniable as dp
from deniable.session import Session
from fuzz.hostile import Table
from values.crowds import Cells, Crowd, Guests

_POSTGRES = {
    "integer": "BIGINT",
    "number": "DOUBLE PRECISION",
    "text": "TEXT",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
}


@dataclass
class Store:
    """Writes tables for sessions into a folder, a Postgres server or a Spark session."""

    folder: Path
    postgres: str = ""
    spark: object = None
    numbers: itertools.count = field(default_factory=itertools.count)

    def opened(self, crowd: Crowd, guests: Guests | None = None, *, alone: bool = False) -> Session:
        """A session on a crowd without guests, with them, or on guests alone."""
        if crowd.source == "postgres":
            return crowd.world.session(sources=self._postgres(crowd, guests, alone=alone))
        tables = {each.name: crowd.table(each, guests, alone=alone) for each in crowd.world.tables}
        write = {"parquet": self._parquet, "duckdb": self._duckdb, "spark": self._spark}
        sources = tables if crowd.source == "arrow" else write[crowd.source](tables)
        return crowd.world.session(sources=sources)

    def _parquet(self, tables: dict) -> dict:
        number, found = next(self.numbers), {}
        for name, table in tables.items():
            found[name] = str(self.folder / f"{name}{number}.parquet")
            parquet.write_table(table, found[name])
        return found

    def _duckdb(self, tables: dict) -> dict:
        file = self.folder / f"{next(self.numbers)}.db"
        with duckdb.connect(str(file)) as connection:
            for name, table in tables.items():
                connection.register("given", table)
                connection.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
        database = dp.duckdb(file)
        return {name: database.table(name) for name in tables}

    def _spark(self, tables: dict) -> dict:
        home, read = dp.spark(self.spark), self.spark.read
        return {name: home.frame(read.parquet(f)) for name, f in self._parquet(tables).items()}

    def _postgres(self, crowd: Crowd, guests: Guests | None, *, alone: bool) -> dict:
        number, database = next(self.numbers), dp.postgres(self.postgres)
        for table in crowd.world.tables:
            cells = crowd.cells(table, guests, alone=alone)
            to_postgres(self.postgres, f"{table.name}{number}", table, cells)
        return {each.name: database.table(f"{each.name}{number}") for each in crowd.world.tables}


def to_postgres(url: str, name: str, table: Table, cells: Cells) -> None:
    """Make a table; cells are given as texts, which its types read."""
    columns = ", ".join(f'"{each.name}" {_POSTGRES[each.kind]}' for each in table.columns)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f'CREATE TABLE "{name}" ({columns})')
        with connection.cursor().copy(f'COPY "{name}" FROM STDIN') as copy:
            for row in zip(*(cells[each.name] for each in table.columns), strict=True):
                copy.write_row([_text(cell) for cell in row])
        connection.execute(f'ANALYZE "{name}"')


def _text(cell: object) -> str | None:
    if cell is None or isinstance(cell, str):
        return cell
    return cell.isoformat() if isinstance(cell, date) else repr(cell)
