"""DuckDB: files, Arrow, pandas and polars tables, and tables of a DuckDB database."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb as driver

from deniable.engines.base import Rows, Step, quoted
from deniable.engines.room import room_of
from deniable.engines.sources import as_arrow, coarse_times, csv_options, string_literal
from deniable.errors import (
    DeniableError,
    EngineError,
    ParameterError,
    ParameterTypeError,
    QueryError,
)
from deniable.held import Held
from deniable.tables import SQL_TYPES, ColumnType, Schema, Source, nearest

_TYPES = {
    **dict.fromkeys(
        ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"),
        ColumnType.INTEGER,
    ),
    **dict.fromkeys(("UBIGINT", "HUGEINT", "UHUGEINT"), ColumnType.INTEGER),
    **dict.fromkeys(("FLOAT", "DOUBLE"), ColumnType.NUMBER),
    **dict.fromkeys(("VARCHAR", "UUID"), ColumnType.TEXT),
    "BOOLEAN": ColumnType.BOOLEAN,
    "DATE": ColumnType.DATE,
    **dict.fromkeys(
        ("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE"),
        ColumnType.TIMESTAMP,
    ),
}


_PINNED = {
    # A shared part of two expressions would be taken out of the TRY around each, and could raise.
    "disabled_optimizers": "common_subexpressions",
    "default_collation": "",
    "default_null_order": "NULLS_LAST",
    "default_order": "ASCENDING",
    "integer_division": "false",
    "ieee_floating_point_ops": "true",
    "old_implicit_casting": "false",
    "perfect_ht_threshold": "12",
}
_AS_THEY_ARE = {
    ColumnType.INTEGER: {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT"},
    ColumnType.NUMBER: {"DOUBLE"},
    ColumnType.TEXT: {"VARCHAR"},
    ColumnType.BOOLEAN: {"BOOLEAN"},
    ColumnType.DATE: {"DATE"},
    ColumnType.TIMESTAMP: {"TIMESTAMP"},
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

    def __init__(self, connection: driver.DuckDBPyConnection) -> None:
        self._connection = connection
        self._made: dict[str, str] = {}

    def run(self, step: Step) -> Rows:
        """The rows of a step; steps share the tables that they have in common."""
        changed = False  # tables may read those before them
        for name, text in step.tables.items():
            changed = changed or self._made.get(name) != text
            if changed:
                self._made[name] = text
                self._make(name, text, dense=name in step.dense)
        return self._connection.execute(step.select).fetchall()

    def _make(self, name: str, text: str, *, dense: bool) -> None:
        """Dense integers are grouped without hashing: faster for one column, slower else."""
        if not dense:
            self._connection.execute(_table(name, text))
            return
        self._connection.execute("SET perfect_ht_threshold = 24")
        self._connection.execute(_table(name, text))
        self._connection.execute("SET perfect_ht_threshold = 12")


class DuckDB:
    """One DuckDB for one session: sources become views with canonical types."""

    dialect = "duckdb"

    def __init__(self) -> None:
        self._connection = driver.connect()
        self._home: driver.DuckDBPyConnection | None = None
        self._attached: dict[str, str] = {}
        self._kept: list[object] = []
        self._lock = threading.Lock()

    def add(self, name: str, source: Source, columns: Mapping[str, ColumnType] | None) -> Schema:
        """Make a source a view; its schema, declared or read from metadata."""
        with _told(f"table {name}"):
            relation, text_only = self._relation(source)
            described = self._connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()
        found = {str(row[0]): str(row[1]) for row in described}
        if any("TIMESTAMP" in kind for kind in found.values()):
            with _told(f"table {name}"):
                hidden = coarse_times(self._connection, source)
            found = {column: kind for column, kind in found.items() if column not in hidden}
        if text_only and columns is None:
            raise ParameterError(
                "columns",
                name,
                "a CSV file has no types; declare them: columns={'age': 'integer', ...}",
            )
        kinds = _declared(found, columns, quoted=not text_only) if columns else _canonical(found)
        as_it_is = {n for n, kind in kinds.items() if _kept(found[n], kind)}
        schema = Schema(kinds, frozenset(as_it_is))
        casts = ", ".join(
            _read_column(column, kind, found[column], in_database=isinstance(source, DuckDBTable))
            for column, kind in schema.columns.items()
        )
        with _told(f"table {name}"):
            self._connection.execute(
                f"CREATE TEMP VIEW {quoted(name)} AS SELECT {casts} FROM {relation}"
            )
        return schema

    def _relation(self, source: Source) -> tuple[str, bool]:
        if isinstance(source, str):
            if not any(char in source for char in "*?[") and not Path(source).is_file():
                raise ParameterError("source", source, "no such file")
            place = string_literal(source)
            if source.lower().endswith(".parquet"):
                return f"read_parquet({place})", False
            return f"read_csv({place}, {csv_options(source)})", True
        if isinstance(source, DuckDBTable):
            return self._attach(source), False
        tabular = hasattr(source, "num_rows") or hasattr(source, "shape")
        if not hasattr(source, "__arrow_c_stream__") or not tabular:
            raise ParameterTypeError(
                "source", type(source).__name__, "must be an Arrow, pandas or polars table"
            )
        held = as_arrow(source)
        self._kept.append(Held(held, "a table in memory"))
        hidden = f"deniable_source_{len(self._kept)}"
        self._connection.register(hidden, held)
        return quoted(hidden), False

    def _attach(self, table: DuckDBTable) -> str:
        where = table.database.where
        if isinstance(where, str):
            if where not in self._attached:
                alias = f"deniable_database_{len(self._attached)}"
                place = where.replace("'", "''")
                self._connection.execute(f"ATTACH '{place}' AS {alias} (READ_ONLY)")
                self._attached[where] = alias
            return f"{self._attached[where]}.{quoted(table.name)}"
        if self._home is None:
            if self._kept or self._attached:
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
        with self._lock, _told("the query"), self._pinned():
            self._connection.execute("BEGIN TRANSACTION")
            try:
                yield DuckDBSnapshot(self._connection)
            finally:
                with contextlib.suppress(driver.Error):
                    self._connection.execute("ROLLBACK")  # temporary tables are gone with it

    @contextlib.contextmanager
    def _pinned(self) -> Iterator[None]:
        """Settings on which the meaning of a question hangs; an owner's own come back after it."""
        listed = ", ".join(map(string_literal, _PINNED))
        found = self._connection.execute(
            f"SELECT name, value FROM duckdb_settings() WHERE name IN ({listed})"
        ).fetchall()
        before = {name: value for name, value in found if value != _PINNED[name]}
        for name in before:
            self._connection.execute(f"SET {name} = {string_literal(_PINNED[name])}")
        try:
            yield
        finally:
            for name, value in before.items() if self._home is not None else ():
                with contextlib.suppress(driver.Error):
                    self._connection.execute(f"SET {name} = {string_literal(value)}")

    def check(self, steps: Sequence[Step]) -> None:
        """Bind the statements, which reads no row, and refuse what does not fit the types."""
        with self._lock:
            self._connection.execute("BEGIN TRANSACTION")
            try:
                for step in steps:
                    for text in (step.select, step.rows, *step.tables.values()):
                        _one_select(self._connection, text)
                for rows in {step.rows for step in steps}:
                    self._connection.execute(f"EXPLAIN {rows}")
            except (driver.Error, RuntimeError) as error:
                first = str(error).splitlines()[0] if str(error) else type(error).__name__
                raise QueryError(f"the engine does not take this: {first[:200]}") from None
            finally:
                with contextlib.suppress(driver.Error):
                    self._connection.execute("ROLLBACK")

    def write(self, step: Step) -> list[str]:
        """The statements that DuckDB runs for a step."""
        return [*(_table(name, sql) for name, sql in step.tables.items()), step.select]

    def room(self) -> int:
        """Its limits of memory and of the folder to which it spills."""
        return room_of(self._connection)

    def cancel(self) -> None:
        """End what is running."""
        self._connection.interrupt()

    def close(self) -> None:
        """Let go of everything."""
        self._connection.close()


def _table(name: str, select: str) -> str:
    return f"CREATE OR REPLACE TEMP TABLE {name} AS {select}"


def _one_select(connection: driver.DuckDBPyConnection, text: str) -> None:
    """Whatever was written is one SELECT and nothing else."""
    found = connection.extract_statements(text)
    if len(found) != 1 or found[0].type != driver.StatementType.SELECT:
        raise QueryError("the question cannot be written down safely, and is not answered")


def _canonical(found: Mapping[str, str]) -> dict[str, ColumnType]:
    """The canonical type of each column; columns of other types are left out."""
    return {
        name: ColumnType.NUMBER if kind.startswith("DECIMAL") else _type(kind)
        for name, kind in found.items()
        if kind.startswith(("DECIMAL", "ENUM")) or kind in _TYPES
    }


def _type(kind: str) -> ColumnType:
    return ColumnType.TEXT if kind.startswith("ENUM") else _TYPES[kind]


def _declared(
    found: Mapping[str, str], columns: Mapping[str, ColumnType], *, quoted: bool
) -> dict[str, ColumnType]:
    """Declared types; the first line of a CSV file, which may be a row, is not `quoted`."""
    for name in columns:
        if name not in found:
            hint = nearest(name, found) if quoted else "the first line of the file does not name it"
            raise ParameterError("columns", name, f"no such column; {hint}")
    return dict(columns)


def _kept(native: str, kind: ColumnType) -> bool:
    """Whether different values stay different."""
    if kind == ColumnType.TEXT:
        spelt = _TYPES.get(native) in {ColumnType.INTEGER, ColumnType.TEXT, ColumnType.DATE}
        return spelt or native.startswith(("ENUM", "DECIMAL"))
    return native in _AS_THEY_ARE[kind] or (kind == ColumnType.INTEGER and native == "UINTEGER")


def _read_column(name: str, kind: ColumnType, native: str, *, in_database: bool) -> str:
    """A column as its canonical type, under its name in lower case, as questions are read."""
    column, called = quoted(name), quoted(name.lower())
    if kind == ColumnType.TEXT and in_database:
        # Under a collation two names could be one, of groups or of people.
        return f"CAST({column} AS VARCHAR) COLLATE C AS {called}"
    if native in _AS_THEY_ARE[kind]:
        return f"{column} AS {called}"
    if kind == ColumnType.TEXT:
        return f"CAST({column} AS VARCHAR) AS {called}"
    return f"TRY_CAST({column} AS {SQL_TYPES[kind]}) AS {called}"


@contextlib.contextmanager
def _told(what: str) -> Iterator[None]:
    """Whatever the engine says may quote data; its kind does not."""
    try:
        yield
    except DeniableError:
        raise
    except (driver.Error, RuntimeError, OSError) as error:
        kind = type(error).__name__
    else:
        return
    raise EngineError(f"{what}: DuckDB ended with {kind}; the file or table cannot be read as such")
