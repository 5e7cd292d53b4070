"""Postgres: tables of a server, asked where they are."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import sqlglot
from sqlglot import exp

from deniable.engines.base import Rows, Step, quoted
from deniable.engines.postgres_sql import PostgresWriter
from deniable.errors import (
    EngineError,
    MissingExtraError,
    ParameterError,
    ParameterTypeError,
    QueryError,
)
from deniable.tables import ColumnType, Schema, Source, nearest

try:
    import psycopg
except ImportError:
    raise MissingExtraError("tables in Postgres", "postgres") from None

_TYPES = {
    **dict.fromkeys(("int2", "int4", "int8"), ColumnType.INTEGER),
    **dict.fromkeys(("float4", "float8", "numeric"), ColumnType.NUMBER),
    **dict.fromkeys(("text", "varchar", "bpchar", "name", "uuid"), ColumnType.TEXT),
    "bool": ColumnType.BOOLEAN,
    "date": ColumnType.DATE,
    **dict.fromkeys(("timestamp", "timestamptz"), ColumnType.TIMESTAMP),
}
_EXACT = {"int2", "int4", "int8", "float8", "text", "varchar", "uuid", "bool", "date", "timestamp"}
_WHERE = "postgresql://"
_REMEMBERED = 64
# What a question means must not follow the server's settings.
_SETTINGS = (
    "SET LOCAL TimeZone = 'UTC'",
    "SET LOCAL DateStyle = 'ISO, YMD'",
    "SET LOCAL standard_conforming_strings = on",
    "SET LOCAL jit = off",
)


@dataclass(frozen=True, eq=False)
class PostgresTable:
    """A table or view of a Postgres database."""

    database: PostgresDatabase
    name: str

    @property
    def label(self) -> str:
        """Where it is, for the ledger: no password, no user."""
        found = urlsplit(self.database.url)
        return f"{found.hostname}:{found.port or 5432}{found.path}: {self.name}"

    def engine(self) -> Postgres:
        """A connection to the server."""
        return Postgres(self.database)


@dataclass(frozen=True, eq=False, repr=False)
class PostgresDatabase:
    """A Postgres database, by its address."""

    url: str

    def table(self, name: str) -> PostgresTable:
        """One of its tables or views: "visits", or "clinic.visits" in a schema."""
        named: object = name
        if not (isinstance(named, str) and named and len(named.split(".")) <= 2):
            raise ParameterTypeError("name", name, "must be the name of a table, or schema.table")
        return PostgresTable(self, name)


def postgres(url: str) -> PostgresDatabase:
    """A Postgres database whose tables can be opened to questions: "postgresql://..."."""
    given: object = url
    if not (isinstance(given, str) and given.startswith((_WHERE, "postgres://"))):
        raise ParameterTypeError("url", type(url).__name__, f"must be an address: {_WHERE}...")
    return PostgresDatabase(url)


class PostgresSnapshot:
    """A transaction, and the functions that were made in it."""

    def __init__(
        self,
        connection: psycopg.Connection[tuple[Any, ...]],
        write: Callable[[Step], list[str]],
    ) -> None:
        self._connection, self._write = connection, write

    def run(self, step: Step) -> Rows:
        """The rows of a step."""
        *functions, text = self._write(step)
        for function in functions:
            self._connection.execute(function)
        return self._connection.execute(text, prepare=True).fetchall()


class Postgres:
    """One connection for one session; every question in a transaction of its own."""

    dialect = "postgres"

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database
        self._connection = self._connect()
        self._schemas: dict[str, Schema] = {}
        self._sources: dict[str, exp.Expr] = {}
        self._written: dict[tuple[str, tuple[tuple[str, str], ...]], list[str]] = {}
        self._lock = threading.Lock()

    def _connect(self) -> psycopg.Connection[tuple[Any, ...]]:
        with _told("the connection"):
            return psycopg.connect(self._database.url, autocommit=True)

    def add(self, name: str, source: Source, columns: Mapping[str, ColumnType] | None) -> Schema:
        """Find a table and the types of its columns; no row is read."""
        if not isinstance(source, PostgresTable) or source.database.url != self._database.url:
            raise ParameterError(
                "source", name, "all tables of a session live in one engine: this one in Postgres"
            )
        if columns is not None:
            raise ParameterError("columns", name, "the server knows its types; leave them out")
        with self._lock, _told(f"table {name}"):
            found = self._connection.execute(
                "SELECT n.nspname, c.relname, a.attname, t.typname, t.typtype FROM pg_class c "
                "JOIN pg_namespace n ON n.oid = c.relnamespace "
                "JOIN pg_attribute a ON a.attrelid = c.oid JOIN pg_type t ON t.oid = a.atttypid "
                "WHERE c.oid = to_regclass(%s) AND a.attnum > 0 AND NOT a.attisdropped "
                "ORDER BY a.attnum",
                (".".join(map(quoted, source.name.split("."))),),
            ).fetchall()
        if not found:
            raise ParameterError("source", source.name, f"no such table; {self._nearest(source)}")
        kinds: dict[str, ColumnType] = {}
        exact, select = set(), exp.Select()
        for _, _, column, native, family in found:
            kind = ColumnType.TEXT if family == "e" else _TYPES.get(native)
            if kind is None:
                continue  # a type about which nothing can be asked
            kinds[column] = kind
            if native in _EXACT or family == "e":
                exact.add(column)
            read = sqlglot.parse_one(_read_column(column, native, family), read="postgres")
            select = select.select(exp.alias_(read, column.lower(), quoted=True))
        place = exp.table_(found[0][1], db=found[0][0], quoted=True)
        self._schemas[name] = Schema(kinds, frozenset(exact))
        self._sources[name] = select.from_(place)
        return self._schemas[name]

    def _nearest(self, source: PostgresTable) -> str:
        with self._lock, _told("the tables"):
            rows = self._connection.execute(
                "SELECT relname FROM pg_class WHERE relkind IN ('r', 'v', 'm', 'f', 'p') "
                "AND pg_table_is_visible(oid) AND relname !~ '^pg_|^sql_' ORDER BY 1 LIMIT 1000"
            ).fetchall()
        return nearest(source.name, [row[0] for row in rows])

    def write(self, step: Step) -> list[str]:
        """The statements that the server runs for a step; functions come first."""
        key = (step.select, tuple(step.tables.items()))
        if key not in self._written:
            writer = PostgresWriter(self._schemas, self._sources)
            text = writer.write(step.select, step.tables)
            if len(self._written) >= _REMEMBERED:
                self._written.clear()
            self._written[key] = [*writer.functions, text]
        return self._written[key]

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[PostgresSnapshot]:
        """One transaction, in which all statements see the same rows."""
        with self._lock, _told("the query"):
            self._reopen()
            with self._transaction():
                yield PostgresSnapshot(self._connection, self.write)

    def check(self, steps: Sequence[Step]) -> None:
        """Have the server plan the statements, which reads no row."""
        with self._lock:
            with _told("the connection"):
                self._reopen()
            written = [self.write(step) for step in steps]
            try:
                with self._transaction():
                    for *functions, text in written:
                        for function in functions:
                            self._connection.execute(function)
                        self._connection.execute(f"EXPLAIN {text}", prepare=True)
            except psycopg.Error as error:
                told = str(error).splitlines()[0] if (error.sqlstate or "")[:2] == "42" else ""
                kind = told[:200] or type(error).__name__
                raise QueryError(f"the engine does not take this: {kind}") from None

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        """One snapshot; functions that were made for the question are gone with it."""
        with self._connection.transaction(force_rollback=True):
            self._connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            for setting in _SETTINGS:
                self._connection.execute(setting)
            yield

    def _reopen(self) -> None:
        if self._connection.closed or self._connection.broken:
            self._connection = self._connect()

    def room(self) -> None:
        """The server's own affair."""

    def cancel(self) -> None:
        """End what is running."""
        self._connection.cancel_safe()

    def close(self) -> None:
        """Let go of the connection."""
        self._connection.close()


def _read_column(name: str, native: str, family: str) -> str:
    """A column as its canonical type; what does not fit is NULL."""
    column = quoted(name)
    if family == "e" or native in {"name", "uuid", "bpchar", "varchar", "text"}:
        return f'CAST({column} AS TEXT) COLLATE "C"'
    if native == "numeric":  # NaN, and what a double does not hold, are NULL; or 0 if too small
        return (
            f"CASE WHEN ABS({column}) < 1e-300 THEN CAST(0 AS DOUBLE PRECISION) "
            f"WHEN {column} BETWEEN -1e308 AND 1e308 THEN CAST({column} AS DOUBLE PRECISION) END"
        )
    if native == "timestamptz":
        return f"{column} AT TIME ZONE 'UTC'"
    wide = {"int2": "BIGINT", "int4": "BIGINT", "float4": "DOUBLE PRECISION"}
    return f"CAST({column} AS {wide[native]})" if native in wide else column


@contextlib.contextmanager
def _told(what: str) -> Iterator[None]:
    """Whatever the server says may quote data; its kind does not."""
    try:
        yield
    except psycopg.Error as error:
        kind = type(error).__name__
    else:
        return
    raise EngineError(f"{what}: Postgres ended with {kind}; see the server's log")
