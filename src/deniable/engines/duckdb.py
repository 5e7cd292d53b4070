"""DuckDB: files, Arrow, pandas and polars tables, and tables of a DuckDB database."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import duckdb as driver

from deniable.engines import faults
from deniable.engines.apart import Apart
from deniable.engines.base import Rows, Step, quoted
from deniable.engines.csv_format import CSVFiles
from deniable.engines.files import Files, Stored
from deniable.engines.frames import pinned_frame
from deniable.engines.leaves import CellReader, check_read, projection, schema_of
from deniable.engines.linked import Linked, Standing, linked, standing
from deniable.engines.pinned import Pinned, Texts
from deniable.engines.room import Room
from deniable.engines.shadow import Shadow, is_lasting
from deniable.engines.sources import string_literal
from deniable.engines.spill import Spill
from deniable.engines.statements import PINNED, Statements, made_table, set_to
from deniable.errors import EngineError, ParameterError, ParameterTypeError, is_stop
from deniable.held import Held
from deniable.tables import ColumnType, Schema, Source

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class DuckDBTable:
    """A table of a DuckDB database."""

    database: DuckDBDatabase
    name: str

    @property
    def label(self) -> str:
        """Where it is, for the ledger."""
        where = self.database.where
        return f"{where if isinstance(where, str) else 'connection'}: {self.name}"


@dataclass(frozen=True, eq=False)
class DuckDBDatabase:
    """A DuckDB database: a file, opened for reading only, or an open connection."""

    where: str | driver.DuckDBPyConnection

    def table(self, name: str) -> DuckDBTable:
        """One of its tables."""
        named: object = name
        if not (isinstance(named, str) and named):
            raise ParameterTypeError("name", name, "must be the name of a table")
        return DuckDBTable(self, name)


def duckdb(where: str | Path | driver.DuckDBPyConnection) -> DuckDBDatabase:
    """A DuckDB database whose tables can be opened to questions."""
    if isinstance(where, driver.DuckDBPyConnection):
        return DuckDBDatabase(where)
    if not isinstance(where, str | Path):
        raise ParameterTypeError("where", type(where).__name__, "must be a path or a connection")
    if not Path(where).is_file():
        raise ParameterError("where", str(where), "no such file")
    return DuckDBDatabase(str(Path(where).absolute()))  # DuckDB has a meaning of its own for ~


class DuckDBSnapshot:
    """A transaction, and the tables that were made in it."""

    def __init__(
        self,
        engine: DuckDB,
        statements: Statements,
        in_place: Sequence[str],
        links: Sequence[Linked],
    ) -> None:
        self._engine, self._statements, self._links = engine, statements, links
        self._in_place, self._ran = in_place, list[Step]()

    def run(self, step: Step) -> Rows:
        """The rows of a step; steps share the tables that they have in common."""
        if self._in_place:
            self._ran.append(step)
            texts = Texts.of(self._ran)
            if any(texts.scans(name) > 1 for name in self._in_place):
                raise AssertionError("a file is read in place once")
        found = self._engine.attempt(lambda: self._statements.run(step))
        if any(link.has_changed() for link in (*self._links, *self._engine.databases)):
            raise EngineError("a file was written into while it was read")
        return found


class DuckDB:
    """One DuckDB for one session: sources become views with canonical columns."""

    dialect = "duckdb"

    def __init__(self) -> None:
        self._spill = Spill()
        self._room: Room | None = None
        self._connection = self._opened()
        self._home: driver.DuckDBPyConnection | None = None
        self._apart = Apart(self._spill.folder)
        self._attached: dict[str, tuple[str, Standing]] = {}
        self.databases: list[Linked] = []
        self._frames: dict[str, Held[object]] = {}
        self._views: list[str] = []
        self._pinned: list[Pinned] = []
        self._owned: list[tuple[tuple[str, str], str, str]] = []
        self._shadow = Shadow()
        self._lock = threading.Lock()
        self._failed = self._lost = False

    def _opened(self) -> driver.DuckDBPyConnection:
        connection = driver.connect()
        self._spill.take(connection)
        self._room = self._room or Room.of(connection)
        self._room.take(connection)
        return connection

    def add(
        self,
        name: str,
        source: Source,
        columns: Mapping[str, ColumnType] | None,
        unit: str | None = None,
        *,
        row_by_row: bool = False,
    ) -> Schema:
        """Make a source known by its leaves; its schema, declared or read from metadata."""
        whose = None if unit is None else unit.lower()
        if isinstance(source, str | CSVFiles):
            files = Files.of(source)
            files.check()
            schema = self._schema_of_files(name, files, columns)
            self._pinned.append(Pinned(name, schema, whose, files))
        else:
            stored, lasts = _opening(name, lambda: self._stored(source, columns, whose, row_by_row))
            schema = schema_of(stored.found, columns, stored.reader)
            if lasts:
                leaves = projection(schema, stored.found, stored.relation, stored.reader, whose)
                view = f"CREATE TEMP VIEW {quoted(name)} AS {leaves}"
                _opening(name, lambda: self._connection.execute(view))
                self._views.append(view)
            else:
                self._pinned.append(Pinned(name, schema, whose, stored))
        if not schema.columns:
            raise ParameterError("source", name, "has no column about which anything can be asked")
        self._shadow.add(name, schema, whose)
        return schema

    def _schema_of_files(
        self, name: str, files: Files, columns: Mapping[str, ColumnType] | None
    ) -> Schema:
        """Of one Parquet file it stands in the file; else it is declared."""
        if columns is None and (files.is_pattern or not files.place.lower().endswith(".parquet")):
            why = "files may differ" if files.is_pattern else "a CSV file has no types"
            raise ParameterError(
                "columns",
                name,
                f"{why}; declare names and types: columns={{'age': 'integer', ...}}; "
                f"`deniable init` drafts them",
            )
        if files.is_pattern:
            return Schema(dict(columns or {}), files.exact(columns or {}))
        return self.schema_in(name, files, files.place, columns)

    def schema_in(
        self,
        name: str,
        files: Files,
        path: str,
        columns: Mapping[str, ColumnType] | None = None,
    ) -> Schema:
        """What one of the files says, with the columns that folders of the pattern name."""
        stored = _opening(name, lambda: files.stored(self._connection, path))
        check_read(columns, stored.hidden)
        return schema_of(stored.found, columns, stored.reader)

    def _stored(
        self,
        source: Source,
        columns: Mapping[str, ColumnType] | None,
        unit: str | None,
        row_by_row: bool,
    ) -> tuple[Stored, bool]:
        """A relation of the engine, and whether all statements of a question read the same rows."""
        if isinstance(source, DuckDBTable):
            return self._attach(source, row_by_row=row_by_row)
        held = pinned_frame(source, columns, unit)
        hidden = f"deniable_source_{len(self._frames) + 1}"
        self._frames[hidden] = Held(held, "a table in memory")
        self._connection.register(hidden, held)
        return self._described(quoted(hidden), CellReader.MEMORY), True

    def _described(
        self, relation: str, reader: CellReader, without: Set[str] = frozenset()
    ) -> Stored:
        """A relation with its native types; no row is read."""
        described = self._connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()
        found = {str(row[0]): str(row[1]) for row in described if str(row[0]) not in without}
        return Stored(relation, reader, found)

    def _attach(self, table: DuckDBTable, *, row_by_row: bool) -> tuple[Stored, bool]:
        where = table.database.where
        if isinstance(where, str):
            if where not in self._attached:
                alias, seen = f"deniable_database_{len(self._attached)}", standing(where)
                kept = linked(where, self._spill.folder)
                if kept is not None:  # pages of two states would be read as one
                    kept.place.unlink()  # it is watched, and read under its own name
                    self.databases.append(kept)
                self._attach_file(where, alias, seen)
                self._attached[where] = alias, seen
            places = [(self._attached[where][0], "main")]
        else:
            places = self._come_home(where, table)
        for place in places:
            kind, sql = _catalogued(self._connection, place, table.name)
            relation = ".".join(map(quoted, (*place, table.name)))
            if kind == "table":
                self._owned.append((place, table.name, sql))
                made = _generated(self._connection, place, table.name, sql)
                return self._described(relation, CellReader.DATABASE, made), True
            if kind == "view":
                if not row_by_row:
                    raise ParameterError("source", table.name, NOT_ROW_BY_ROW)
                return self._described(relation, CellReader.MEMORY), False
        raise ParameterError("source", table.name, "no such table in the database")

    def _attach_file(self, where: str, alias: str, seen: Standing) -> None:
        """Open a database's file for reading, if it is the one that was seen."""
        attachment = f"ATTACH {string_literal(where)} AS {alias} (READ_ONLY, TYPE duckdb)"
        if standing(where) == seen:
            self._connection.execute(attachment)
        if standing(where) != seen:
            raise EngineError(faults.REPLACED)

    def _come_home(
        self, where: driver.DuckDBPyConnection, table: DuckDBTable
    ) -> list[tuple[str, str]]:
        """Work on an open connection; the schemas in which its tables are found, in order."""
        if self._home is None:
            if self._frames or self._attached:
                raise ParameterError(
                    "source", table.name, "tables of an open connection come first in a session"
                )
            self._home = where
            self._connection = where.cursor()
            self._spill.take_from_owner(self._connection)
            _check_macros(self._connection)
            self._room = Room.of(self._connection)
            self._room.take(self._connection)
        elif self._home is not where:
            raise ParameterError("source", table.name, "one open connection for each session")
        # Another cursor does not know which schema the owner's connection is in.
        found = where.execute(
            "SELECT current_database(), current_schema(), type FROM duckdb_databases() "
            "WHERE database_name = current_database()"
        ).fetchall()
        if any(kind != "duckdb" for _, _, kind in found):
            # Its catalogue may list views as tables, and its transactions hold nothing still.
            raise ParameterError(
                "source", table.name, "the connection uses an attached database of another kind"
            )
        return [(str(database), str(schema)) for database, schema, _ in found]

    @contextlib.contextmanager
    def snapshot(
        self, reads: Sequence[Step] = (), *, only: Collection[str] | None = None
    ) -> Iterator[DuckDBSnapshot]:
        """One transaction, and before it one reading of what no transaction holds still."""
        # One connection, one transaction at a time.
        with self._lock:
            before: dict[str, str] = {}
            links: dict[str, Linked] = {}
            self._failed = False
            try:
                self.attempt(self._recover)
                before = self.attempt(self._pin)
                texts = Texts.of(reads)
                named = [each for each in self._pinned if only is None or each.name in only]
                self.attempt(lambda: self._read(named, texts, links))
                self.attempt(lambda: self._connection.execute("BEGIN TRANSACTION"))
                if self._home is not None:  # what we have attached is read only, and locked
                    self.attempt(self._still)
                in_place = [each.name for each in named if each.is_in_place(texts)]
                statements = Statements(self._connection)
                yield DuckDBSnapshot(self, statements, in_place, list(links.values()))
            finally:
                self._end(before)
                for link in links.values():
                    link.let_go()

    def attempt(self, act: Callable[[], T]) -> T:
        """Whatever goes wrong in the engine has one sentence, on any data."""

        def told(error: Exception) -> BaseException:
            self._failed = True
            self._lost = self._lost or is_lasting(error)
            if is_stop(error):
                return KeyboardInterrupt()
            return EngineError(faults.ended("the query", "DuckDB"))

        return faults.attempt(act, told)

    def _read(self, named: Sequence[Pinned], texts: Texts, links: dict[str, Linked]) -> None:
        """Read files and views; one file that can be read again and again is kept open."""
        for each in named:
            link = each.link(texts, self._spill.folder)
            if link is not None:
                links[each.name] = link
            each.pin(self._connection, texts, self._apart, link)
            if link is not None and not each.lasts(texts, link):
                links.pop(each.name).let_go()  # it was copied

    def _still(self) -> None:
        """Fail where a table is no longer what was opened."""
        for place, name, sql in self._owned:
            if _catalogued(self._connection, place, name) != ("table", sql):
                raise EngineError("a table is no longer what it was when the session opened")

    def _pin(self) -> dict[str, str]:
        """Settings on which the meaning of a question hangs; an owner's own come back after it."""
        listed = (f"CAST(current_setting({string_literal(name)}) AS VARCHAR)" for name in PINNED)
        (values,) = self._connection.execute(f"SELECT {', '.join(listed)}").fetchall()
        found = dict(zip(PINNED, map(str, values), strict=True))
        for name, value in found.items():
            if value != PINNED[name]:
                set_to(self._connection, name, PINNED[name])
        return found if self._home is not None else {}

    def _end(self, before: Mapping[str, str]) -> None:
        """Temporary tables go with the transaction; a connection that fails is no longer used."""
        with contextlib.suppress(Exception):
            self._connection.execute("ROLLBACK")
        for each in self._pinned:
            try:
                each.let_go(self._connection)
            except Exception:
                self._failed = True
        for name, value in before.items():
            with contextlib.suppress(Exception):
                set_to(self._connection, name, value)
        if self._failed and not self._lost:
            try:
                self._connection.execute("SELECT 1").fetchall()
            except Exception:
                self._lost = True

    def _recover(self) -> None:
        """After a failure that outlasts its question, all is opened anew before the next."""
        if not self._lost:
            return
        if self._home is not None:
            raise EngineError(faults.LOST)
        with contextlib.suppress(Exception):
            self._connection.close()
        self._connection = self._opened()
        for where, (alias, seen) in self._attached.items():
            self._attach_file(where, alias, seen)
        self._still()
        for name, frame in self._frames.items():
            self._connection.register(name, frame.open())
        for view in self._views:
            self._connection.execute(view)
        self._lost = False

    def check(self, steps: Sequence[Step]) -> None:
        """Try the statements on canaries in a shadow of the schema; the tables are not touched."""
        self._shadow.check(steps)

    def write(self, step: Step) -> list[str]:
        """The statements that DuckDB runs for a step."""
        return [*(made_table(name, sql) for name, sql in step.tables.items()), step.select]

    def room(self) -> int:
        """Its limits of memory and of the folder to which it spills, as they were at first."""
        assert self._room is not None
        return self._room.bytes

    def copied(self, steps: Sequence[Step]) -> Mapping[str, Sequence[str]]:
        """Files and views that several statements read, by the columns that are named."""
        texts = Texts.of(steps)
        return {each.name: each.columns(texts) for each in self._pinned if each.is_copied(texts)}

    def cancel(self) -> None:
        """End what is running."""
        self._connection.interrupt()

    def close(self) -> None:
        """Let go of everything."""
        with contextlib.suppress(Exception):  # one that has ended
            self._connection.close()
        for each in self.databases:
            each.let_go()
        self._apart.close()
        self._shadow.close()
        self._spill.close()


NOT_ROW_BY_ROW = (
    "is a view: what it shows of one person may hang on others. Give the table that it is made of; "
    "or, if each of its rows comes from one row of the same person, without chance and without a "
    "cast that can fail, say row_by_row=True"
)


def _catalogued(
    connection: driver.DuckDBPyConnection, place: tuple[str, str], name: str
) -> tuple[str, str]:
    """What the catalogue has under a name: a table, a view or nothing; and how it was made."""
    for kind in ("table", "view"):
        found = connection.execute(
            f"SELECT sql FROM duckdb_{kind}s() WHERE database_name = ? AND schema_name = ? "
            f"AND lower({kind}_name) = lower(?)",
            [*place, name],
        ).fetchall()
        if found:
            return kind, str(found[0][0])
    return "", ""


def _check_macros(connection: driver.DuckDBPyConnection) -> None:
    """Refuse a connection whose own macros stand for functions of the engine in our statements."""
    found = connection.execute(
        "SELECT DISTINCT function_name FROM duckdb_functions() WHERE NOT internal AND "
        "function_name IN (SELECT function_name FROM duckdb_functions() WHERE internal)"
    ).fetchall()
    if found:
        raise ParameterError(
            "source", "an open connection", f"has a macro in place of {found[0][0]}; rename it"
        )


def _generated(
    connection: driver.DuckDBPyConnection, place: tuple[str, str], name: str, sql: str
) -> set[str]:
    """Columns that are computed as they are read, which may fail for one row: left out."""
    if "generated always as" not in sql.lower():
        return set()
    found = connection.execute(
        "SELECT column_name FROM information_schema.columns WHERE table_catalog = ? "
        "AND table_schema = ? AND lower(table_name) = lower(?) AND is_generated = 'ALWAYS'",
        [*place, name],
    ).fetchall()
    return {str(row[0]) for row in found}


def _opening(table: str, act: Callable[[], T]) -> T:
    advice = "the file or table cannot be read as such"
    return faults.attempt(act, faults.by_kind(f"table {table}", "DuckDB", advice))
