"""DuckDB: files, Arrow, pandas and polars tables, and tables of a DuckDB database."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import duckdb as driver

from deniable.engines import faults
from deniable.engines.base import Rows, Step, quoted
from deniable.engines.leaves import Reader, projection, schema_of
from deniable.engines.room import room_of
from deniable.engines.shadow import Shadow, is_lasting
from deniable.engines.sources import as_arrow, csv_options, string_literal, unreadable
from deniable.engines.statements import UNSHARED, Statements, made_table, set_to
from deniable.errors import DeniableError, EngineError, ParameterError, ParameterTypeError
from deniable.held import Held
from deniable.tables import ColumnType, Schema, Source

T = TypeVar("T")

_PINNED = {
    "disabled_optimizers": UNSHARED,
    "default_collation": "",
    "default_null_order": "NULLS_LAST",
    "default_order": "ASCENDING",
    "integer_division": "false",
    "ieee_floating_point_ops": "true",
    "old_implicit_casting": "false",
    "perfect_ht_threshold": "12",
    "TimeZone": "UTC",
}


@dataclass(frozen=True, eq=False)
class DuckDBTable:
    """A table of a DuckDB database."""

    database: DuckDBDatabase
    name: str

    @property
    def label(self) -> str:
        """Where it is, for the ledger."""
        where = self.database.where
        return f"{Path(where).absolute() if isinstance(where, str) else 'connection'}: {self.name}"


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
    return DuckDBDatabase(str(where))


class DuckDBSnapshot:
    """A transaction, and the tables that were made in it."""

    def __init__(self, engine: DuckDB, statements: Statements) -> None:
        self._engine, self._statements = engine, statements

    def run(self, step: Step) -> Rows:
        """The rows of a step; steps share the tables that they have in common."""
        return self._engine.attempt(lambda: self._statements.run(step))


class DuckDB:
    """One DuckDB for one session: sources become views with canonical columns."""

    dialect = "duckdb"

    def __init__(self) -> None:
        self._spill = tempfile.mkdtemp(prefix="deniable-spill-")  # nobody else may look into it
        self._swept = weakref.finalize(self, shutil.rmtree, self._spill, ignore_errors=True)
        self._connection = self._opened()
        self._home: driver.DuckDBPyConnection | None = None
        self._attached: dict[str, str] = {}
        self._frames: dict[str, Held[object]] = {}
        self._views: list[str] = []
        self._shadow = Shadow()
        self._lock = threading.Lock()
        self._failed = self._lost = False

    def _opened(self) -> driver.DuckDBPyConnection:
        connection = driver.connect()
        set_to(connection, "temp_directory", self._spill)
        return connection

    def add(
        self,
        name: str,
        source: Source,
        columns: Mapping[str, ColumnType] | None,
        unit: str | None = None,
    ) -> Schema:
        """Make a source a view of its leaves; its schema, declared or read from metadata."""
        relation, reader, found = _opening(name, lambda: self._described(source))
        if reader == Reader.CSV and columns is None:
            raise ParameterError(
                "columns",
                name,
                "a CSV file has no types; declare them: columns={'age': 'integer', ...}",
            )
        whose = None if unit is None else unit.lower()
        schema = schema_of(found, columns, reader)
        if not schema.columns:
            raise ParameterError("source", name, "has no column about which anything can be asked")
        leaves = projection(schema, found, relation, reader, whose)
        view = f"CREATE TEMP VIEW {quoted(name)} AS {leaves}"
        _opening(name, lambda: self._connection.execute(view))
        self._views.append(view)
        self._shadow.add(name, schema, whose)
        return schema

    def _described(self, source: Source) -> tuple[str, Reader, dict[str, str]]:
        """A relation of the engine, what reads it, and its native types; no row is read."""
        relation, reader = self._relation(source)
        described = self._connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()
        found = {str(row[0]): str(row[1]) for row in described}
        hidden = unreadable(self._connection, source)
        found = {column: kind for column, kind in found.items() if column not in hidden}
        return relation, reader, found

    def _relation(self, source: Source) -> tuple[str, Reader]:
        if isinstance(source, str):
            if not any(char in source for char in "*?[") and not Path(source).is_file():
                raise ParameterError("source", source, "no such file")
            place = string_literal(source)
            if source.lower().endswith(".parquet"):
                # The default raises for one text that is not UTF-8.
                return f"read_parquet({place}, utf8_validation = 'replace')", Reader.PARQUET
            return f"read_csv({place}, {csv_options(source)})", Reader.CSV
        if isinstance(source, DuckDBTable):
            return self._attach(source), Reader.DATABASE
        tabular = hasattr(source, "num_rows") or hasattr(source, "shape")
        if not hasattr(source, "__arrow_c_stream__") or not tabular:
            raise ParameterTypeError(
                "source", type(source).__name__, "must be an Arrow, pandas or polars table"
            )
        held = as_arrow(source)
        hidden = f"deniable_source_{len(self._frames) + 1}"
        self._frames[hidden] = Held(held, "a table in memory")
        self._connection.register(hidden, held)
        return quoted(hidden), Reader.MEMORY

    def _attach(self, table: DuckDBTable) -> str:
        where = table.database.where
        if isinstance(where, str):
            if where not in self._attached:
                alias = f"deniable_database_{len(self._attached)}"
                self._connection.execute(_attachment(where, alias))
                self._attached[where] = alias
            return f"{self._attached[where]}.{quoted(table.name)}"
        if self._home is None:
            if self._frames or self._attached:
                raise ParameterError(
                    "source", table.name, "tables of an open connection come first in a session"
                )
            self._home = where
            self._connection = where.cursor()
        elif self._home is not where:
            raise ParameterError("source", table.name, "one open connection for each session")
        return quoted(table.name)

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[DuckDBSnapshot]:
        """One transaction."""
        # One connection, one transaction at a time.
        with self._lock:
            before: dict[str, str] = {}
            self._failed = False
            try:
                self.attempt(self._recover)
                before = self.attempt(self._pin)
                self.attempt(lambda: self._connection.execute("BEGIN TRANSACTION"))
                yield DuckDBSnapshot(self, Statements(self._connection))
            finally:
                self._end(before)

    def attempt(self, act: Callable[[], T]) -> T:
        """Whatever goes wrong in the engine has one sentence, on any data.

        Errors that are none of the driver's own are among them: values that Python cannot hold.
        """
        try:
            return act()
        except DeniableError:
            raise
        except Exception as error:
            self._failed = True
            self._lost = self._lost or is_lasting(error)
        # Outside of the handler: no trace of the engine's own error hangs on this one.
        raise EngineError(faults.ended("the query", "DuckDB"))

    def _pin(self) -> dict[str, str]:
        """Settings on which the meaning of a question hangs; an owner's own come back after it."""
        listed = ", ".join(map(string_literal, _PINNED))
        found = self._connection.execute(
            f"SELECT name, value FROM duckdb_settings() WHERE name IN ({listed})"
        ).fetchall()
        for name, value in found:
            if value != _PINNED[name]:
                set_to(self._connection, name, _PINNED[name])
        return dict(found) if self._home is not None else {}

    def _end(self, before: Mapping[str, str]) -> None:
        """Temporary tables go with the transaction; a connection that fails is no longer used."""
        with contextlib.suppress(Exception):
            self._connection.execute("ROLLBACK")
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
        for where, alias in self._attached.items():
            self._connection.execute(_attachment(where, alias))
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
        """Its limits of memory and of the folder to which it spills."""
        with self._lock:
            self.attempt(self._recover)
            return self.attempt(lambda: room_of(self._connection))

    def cancel(self) -> None:
        """End what is running."""
        self._connection.interrupt()

    def close(self) -> None:
        """Let go of everything."""
        with contextlib.suppress(Exception):  # one that has ended
            self._connection.close()
        self._shadow.close()
        self._swept()


def _attachment(where: str, alias: str) -> str:
    return f"ATTACH {string_literal(where)} AS {alias} (READ_ONLY)"


def _opening(table: str, act: Callable[[], T]) -> T:
    """Whatever the engine says as a table is opened may quote data; its kind does not."""
    try:
        return act()
    except DeniableError:
        raise
    except Exception as error:
        kind = type(error).__name__
    raise EngineError(
        f"table {table}: DuckDB ended with {kind}; the file or table cannot be read as such"
    )
