"""Sources that may change while a question is answered: each is read once for all its statements.

Two statements over a file are two readings, and what is written in between would move the second by
as much as it likes. So what a pattern finds, a CSV file or a view is read into a temporary table
before a question. One Parquet file is kept open instead, and a file that one statement names once
is read in place: no copy is made of either.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence, Set
from dataclasses import dataclass
from pathlib import Path

import duckdb as driver

from deniable.engines.base import Step, quoted
from deniable.engines.canaries import mentions
from deniable.engines.files import Files, Stored
from deniable.engines.leaves import projection
from deniable.engines.linked import Linked, linked
from deniable.errors import EngineError
from deniable.tables import SQL_TYPES, ColumnType, Schema


class DamagedError(Exception):
    """A file of a pattern ended the engine: it has no rows."""

    def __init__(self, path: str) -> None:
        super().__init__("a file ended the engine")
        self.path = path


@dataclass(frozen=True)
class Texts:
    """The statements of a question, each as often as it is run; none if they are not known."""

    each: tuple[str, ...]

    @staticmethod
    def of(steps: Sequence[Step]) -> Texts:
        """Of steps, which share the tables that they have in common."""
        made = dict.fromkeys((name, text) for step in steps for name, text in step.tables.items())
        return Texts((*(text for _, text in made), *(step.select for step in steps)))

    def scans(self, table: str) -> int:
        """How often a table is read, at most; what stands in a WITH may be read again and again."""
        if not self.each:
            return 2
        mention = mentions([table])
        return sum(
            len(mention.findall(text)) * (2 if _WITH.search(text) else 1) for text in self.each
        )

    def columns(self, schema: Schema) -> list[str]:
        """The columns of a table that may be named, in lower case."""
        names = [name.lower() for name in schema.columns]
        if not self.each:
            return names
        return [name for name in names if any(_mention(name).search(text) for text in self.each)]


_WITH = re.compile(r"\bWITH\b", re.IGNORECASE)


def _mention(name: str) -> re.Pattern[str]:
    """A name as it stands in SQL, quoted or not; in a text or a longer quoted name too."""
    doubled = name.replace('"', '""')
    return re.compile(rf"(?<!\w){re.escape(doubled)}(?!\w)", re.IGNORECASE)


@dataclass(frozen=True)
class Pinned:
    """A table of files, or a view: how it is read into a table of the engine."""

    name: str
    schema: Schema
    unit: str | None
    source: Files | Stored

    def is_in_place(self, texts: Texts) -> bool:
        """Whether one statement reads it, once, and it is one file: no copy is made."""
        one = isinstance(self.source, Files) and not self.source.is_pattern
        return one and texts.scans(self.name) == 1

    def link(self, texts: Texts, folder: Path) -> Linked | None:
        """One Parquet file, kept open."""
        if not isinstance(self.source, Files) or not self.source.is_linked:
            return None
        read = texts.scans(self.name) > 0
        return linked(self.source.place, folder, self.name) if read else None

    def pin(
        self,
        connection: driver.DuckDBPyConnection,
        texts: Texts,
        link: Linked | None = None,
        damaged: Set[str] = frozenset(),
    ) -> None:
        """Make the table as it is now, under its name, with the columns that are named."""
        if not texts.scans(self.name):
            return
        columns = texts.columns(self.schema) or [next(iter(self.schema.columns)).lower()]
        table, listed = quoted(self.name), ", ".join(map(quoted, columns))
        source = self.source
        if isinstance(source, Stored):
            leaves = projection(
                self.schema, source.found, source.relation, source.reader, self.unit
            )
            connection.execute(
                f"CREATE TEMP TABLE {table} AS SELECT {listed} FROM ({leaves}) AS read"
            )
            return
        if not source.is_pattern:
            place = None if link is None else str(link.place)
            leaves = source.leaves(connection, source.place, self.schema, self.unit, place)
            lasts = self.is_in_place(texts) or (link is not None and not link.is_recent)
            made = "VIEW" if lasts else "TABLE"
            connection.execute(
                f"CREATE TEMP {made} {table} AS SELECT {listed} FROM ({leaves}) AS read"
            )
            if link is not None and link.has_changed():
                raise EngineError("a file was written into while it was read")
            return
        kinds = {name.lower(): kind for name, kind in self.schema.columns.items()}
        typed = ", ".join(f"{quoted(name)} {_type(kinds[name])}" for name in columns)
        connection.execute(f"CREATE TEMP TABLE {table} ({typed})")
        for path in source.paths():
            if path not in damaged:
                self._add(connection, source, path, columns)

    def _add(
        self,
        connection: driver.DuckDBPyConnection,
        files: Files,
        path: str,
        columns: Sequence[str],
    ) -> None:
        """The rows of one file; none if it cannot be read, which follows from the file alone.

        That memory or disk were not enough would follow from other people's files.
        """
        table, listed = quoted(self.name), ", ".join(map(quoted, columns))
        try:
            leaves = files.leaves(connection, path, self.schema, self.unit)
            connection.execute(f"INSERT INTO temp.{table} SELECT {listed} FROM ({leaves}) AS read")
        except Exception as error:
            if isinstance(error, driver.InternalException | driver.FatalException):
                raise DamagedError(path) from None
            if self._reads_alone(files, path, columns):
                raise

    def _reads_alone(self, files: Files, path: str, columns: Sequence[str]) -> bool:
        """Whether a file can be read where nothing else is, and nothing is kept."""
        alone = driver.connect()
        try:
            leaves = files.leaves(alone, path, self.schema, self.unit)
            counts = ", ".join(f"COUNT({quoted(name)})" for name in columns)
            alone.execute(f"SELECT {counts} FROM ({leaves}) AS read").fetchall()
        except Exception:
            return False
        finally:
            alone.close()
        return True

    def let_go(self, connection: driver.DuckDBPyConnection) -> None:
        """Away with what was made; of the other kind there is none."""
        for made in ("VIEW", "TABLE"):
            with contextlib.suppress(driver.CatalogException):
                connection.execute(f"DROP {made} IF EXISTS temp.{quoted(self.name)}")


def _type(kind: ColumnType) -> str:
    return "VARCHAR COLLATE C" if kind == ColumnType.TEXT else SQL_TYPES[kind]
