"""Sources that may change while a question is answered: each is read once for all its statements.

Two statements over a file are two readings, and what is written in between would move the second by
as much as it likes. So what a pattern finds, a CSV file or a view is read into a temporary table
before a question. One Parquet file is kept open instead, and a file that one statement names once
is read in place: no copy is made of either.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import duckdb as driver

from deniable.engines.apart import Apart
from deniable.engines.base import Step, quoted
from deniable.engines.canaries import mentions
from deniable.engines.files import Files, Stored
from deniable.engines.leaves import projection
from deniable.engines.linked import Linked
from deniable.errors import EngineError
from deniable.tables import SQL_TYPES, ColumnType, Schema


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

    def is_copied(self, texts: Texts) -> bool:
        """Whether a copy may be made: a file that is kept open is copied if it is a moment old."""
        return texts.scans(self.name) > 0 and not self.is_in_place(texts)

    def columns(self, texts: Texts) -> list[str]:
        """The columns that are read: those that are named, or one."""
        return texts.columns(self.schema) or [next(iter(self.schema.columns)).lower()]

    def lasts(self, texts: Texts, link: Linked | None) -> bool:
        """Whether statements read the file itself, and no copy of it."""
        if self.is_in_place(texts):
            return True
        kept = isinstance(self.source, Files) and self.source.is_kept_open
        return kept and link is not None and not link.is_recent

    def link(self, texts: Texts, folder: Path) -> Linked | None:
        """One file, kept open: what is read of it first and last is of the same one."""
        if not isinstance(self.source, Files) or self.source.is_pattern:
            return None
        return self.source.link(self.source.place, folder) if texts.scans(self.name) else None

    def pin(
        self,
        connection: driver.DuckDBPyConnection,
        texts: Texts,
        apart: Apart,
        link: Linked | None = None,
    ) -> None:
        """Make the table as it is now, under its name, with the columns that are named."""
        if not texts.scans(self.name):
            return
        columns = self.columns(texts)
        if isinstance(self.source, Files) and self.source.is_pattern:
            self._gather(connection, self.source, columns, apart)
            return
        if isinstance(self.source, Files):
            place = None if link is None else str(link.place)
            select = self._select(self.source, self.source.place, columns, connection, place)
        else:
            found, relation, reader = self.source.found, self.source.relation, self.source.reader
            leaves = projection(self.schema, found, relation, reader, self.unit)
            select = f"SELECT {', '.join(map(quoted, columns))} FROM ({leaves}) AS read"
        made = "VIEW" if self.lasts(texts, link) else "TABLE"
        connection.execute(f"CREATE TEMP {made} {quoted(self.name)} AS {select}")
        if link is not None and link.has_changed():
            raise EngineError("a file was written into while it was read")

    def _gather(
        self,
        connection: driver.DuckDBPyConnection,
        files: Files,
        columns: Sequence[str],
        apart: Apart,
    ) -> None:
        """A table of the rows of all files that a pattern finds."""
        kinds = {name.lower(): kind for name, kind in self.schema.columns.items()}
        typed = ", ".join(f"{quoted(name)} {_type(kinds[name])}" for name in columns)
        connection.execute(f"CREATE TEMP TABLE {quoted(self.name)} ({typed})")
        table = f"temp.{quoted(self.name)}"
        read: set[tuple[object, str | None]] = set()
        with contextlib.closing(files.found()) as listed:
            for each in listed:
                link = apart.take(each, files.encoding_of(each.path))
                if link is None:
                    continue
                # A file of several names counts once, or once for each person whose folder has it.
                this = link.inode, files.whose(each.path, self.unit)
                try:
                    if not (link.has_other_names and this in read):
                        select = partial(self._select, files, each.path, columns)
                        apart.add(connection, table, link, select)
                finally:
                    link.let_go()
                read.add(this)

    def _select(
        self,
        files: Files,
        path: str,
        columns: Sequence[str],
        connection: driver.DuckDBPyConnection,
        place: str | None,
    ) -> str:
        """The named columns of one file, as they are canonical."""
        leaves = files.leaves(connection, path, self.schema, self.unit, place)
        return f"SELECT {', '.join(map(quoted, columns))} FROM ({leaves}) AS read"

    def let_go(self, connection: driver.DuckDBPyConnection) -> None:
        """Away with what was made; of the other kind there is none."""
        for made in ("VIEW", "TABLE"):
            with contextlib.suppress(driver.CatalogException):
                connection.execute(f"DROP {made} IF EXISTS temp.{quoted(self.name)}")


def _type(kind: ColumnType) -> str:
    return "VARCHAR COLLATE C" if kind == ColumnType.TEXT else SQL_TYPES[kind]
