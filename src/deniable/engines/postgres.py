"""Postgres: tables of a server, asked where they are."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from sqlglot import exp

from deniable.closed import read_names
from deniable.engines import faults
from deniable.engines.base import Rows, Step, quoted
from deniable.engines.canaries import Passed, canaries, most_named, rows_to_try
from deniable.engines.postgres_address import place_of
from deniable.engines.postgres_leaves import NATIVE, can_name, is_exact, kind_of, leaf
from deniable.engines.postgres_opened import (
    CHANGED,
    FOREIGN,
    OTHERS,
    SENTENCES,
    Known,
    OpenedTable,
    plan_of,
)
from deniable.engines.postgres_settings import beginning
from deniable.engines.postgres_sql import rows_of, translated
from deniable.errors import (
    EngineError,
    MissingExtraError,
    ParameterError,
    ParameterTypeError,
    QueryError,
)
from deniable.held import Held, frameless
from deniable.postgres_tables import STILL, VIEW, behind, columns_of, look, reads_foreign, touched
from deniable.tables import ColumnType, Schema, Source, nearest

try:
    import psycopg
except ImportError:
    raise MissingExtraError("tables in Postgres", "postgres") from None

_WHERE = "postgresql://"
Connection = psycopg.Connection[tuple[Any, ...]]
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class PostgresTable:
    """A table or view of a Postgres database."""

    database: PostgresDatabase
    name: str

    @property
    def label(self) -> str:
        host, port, database = place_of(self.database.address.open())
        return f"{host}:{port}/{database}: {self.name}"

    def engine(self) -> Postgres:
        return Postgres(self.database)


@dataclass(frozen=True, eq=False, repr=False)
class PostgresDatabase:
    """A Postgres database, by its address, which may have a password in it."""

    address: Held[str]
    trusted: tuple[str, ...] = ()
    """Roles whose code may run with the rights of the connection."""

    def is_at(self, other: PostgresDatabase) -> bool:
        """Whether two have the same address, and trust the same roles."""
        return self.address.open() == other.address.open() and self.trusted == other.trusted

    def table(self, name: str) -> PostgresTable:
        """One of its tables or views: "visits", or "clinic.visits" in a schema."""
        named: object = name
        if not (isinstance(named, str) and named and len(named.split(".")) <= 2):
            raise ParameterTypeError("name", name, "must be the name of a table, or schema.table")
        return PostgresTable(self, name)


@frameless
def postgres(url: str, *, trusted: Sequence[str] = ()) -> PostgresDatabase:
    """A Postgres database whose tables can be opened to questions: "postgresql://...".

    Whoever owns a table can hang functions on it that run with the rights of the connection when a
    question is planned. So tables of other roles are refused, unless they can be locked, or the
    role is among those that are `trusted` with all that this connection may read.
    """
    given: object = url
    if not (isinstance(given, str) and given.startswith((_WHERE, "postgres://"))):
        raise ParameterTypeError("url", type(url).__name__, f"must be an address: {_WHERE}...")
    place_of(url)
    roles = tuple(read_names(trusted, "trusted"))
    return PostgresDatabase(Held(url, "the address of a database"), roles)


class PostgresSnapshot:
    """A transaction, and the views and functions that were made in it."""

    def __init__(self, engine: Postgres, parts: frozenset[int]) -> None:
        self._engine = engine
        self._parts = parts
        self._made: set[str] = set()

    def run(self, step: Step) -> Rows:
        return self._engine.attempt(lambda: self._run(step))

    def _run(self, step: Step) -> Rows:
        connection = self._engine.connection
        for known, opened in self._engine.read_by(step):
            if known.name not in self._made:
                connection.execute(known.view())
                self._made.add(known.name)
                if behind(self._engine.catalogue, known.name) != {opened.oid}:
                    raise EngineError(CHANGED)
                if known.is_fenced:
                    connection.execute(plan_of(f"pg_temp.{quoted(known.name)}"))
                    self._parts |= touched(self._engine.catalogue)
                    if reads_foreign(self._engine.catalogue):
                        raise EngineError(CHANGED)
        *functions, text = self._engine.translated(step)
        for statement in functions:
            if statement not in self._made:
                connection.execute(statement)
                self._made.add(statement)
        parts = connection.execute(text, prepare=True).fetchall()
        # A part that was added meanwhile is in the rows, whatever the snapshot is.
        if not touched(self._engine.catalogue) <= self._parts:
            raise EngineError(CHANGED)
        return rows_of(parts)


class Postgres:
    """One connection for one session; every question in a transaction of its own."""

    dialect = "postgres"

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database
        self.connection = self._connect()
        self._schemas: dict[str, Schema] = {}
        self._sources: dict[str, exp.Expr] = {}
        self._known: dict[str, Known] = {}
        self._opened: dict[str, OpenedTable] = {}
        self._passed = Passed()
        self._lock = threading.Lock()
        self._is_closed = False

    def _connect(self) -> Connection:
        made = _attempt(
            "the connection",
            # Texts arrive as they are, whatever the environment, the address or the role say.
            lambda: psycopg.connect(
                self._database.address.open(), autocommit=True, client_encoding="UTF8"
            ),
        )
        if made.info.parameter_status("server_encoding") != "UTF8":
            made.close()
            raise EngineError("the connection: a database whose encoding is UTF8 is needed")
        return made

    def add(
        self,
        name: str,
        source: Source,
        columns: Mapping[str, ColumnType] | None,
        unit: str | None = None,
        *,
        row_by_row: bool = False,
    ) -> Schema:
        if not (isinstance(source, PostgresTable) and source.database.is_at(self._database)):
            raise ParameterError(
                "source", name, "all tables of a session live in one engine: this one in Postgres"
            )
        if columns is not None:
            raise ParameterError("columns", name, "the server knows its types; leave them out")
        with self._lock:
            oid = _attempt(f"table {name}", lambda: self._found(source))
            if oid is None:
                hint = nearest(source.name, _attempt("the tables", self._tables))
                raise ParameterError("source", source.name, f"no such table; {hint}")
            what, lock, found = _attempt(
                f"table {name}", lambda: self._pinned(lambda: self._described(oid, row_by_row))
            )
        if what and not (row_by_row and what == SENTENCES[VIEW]):
            raise ParameterError("source", source.name, what)
        whose = None if unit is None else unit.lower()
        for _, _, column, native, _, _ in found:
            if column.lower() == whose and not can_name(native):
                raise ParameterError(
                    "unit",
                    column,
                    f"two people may become one in a column of type {native}; give the table one "
                    "of text, whole numbers, dates or UUIDs",
                )
        kinds: dict[str, ColumnType] = {}
        exact, leaves = set(), []
        places = {row[2]: row[4] for row in found if row[4] is not None and row[4] >= 0}
        for _, _, column, native, _, _ in found:
            kind = kind_of(native)
            if kind is None:
                continue  # a type about which nothing can be asked
            kinds[column] = kind
            if is_exact(native):
                exact.add(column)
            leaves.append(f"{leaf(quoted(column), native)} AS {quoted(column.lower())}")
        if not kinds:
            raise ParameterError("source", name, "has no column about which anything can be asked")
        schema = Schema(kinds, frozenset(exact), places)
        select = f"SELECT {', '.join(leaves)} FROM {quoted(found[0][0])}.{quoted(found[0][1])}"
        known = Known(schema, whose, select, f"deniable_leaf_{len(self._known)}", bool(what))
        self._opened[name] = OpenedTable(oid, what, lock, tuple(found))
        view = exp.table_(known.name, db="pg_temp", quoted=True)
        self._known[name], self._schemas[name] = known, schema
        listed = [exp.column(column.lower(), quoted=True) for column in kinds]
        self._sources[name] = exp.select(*listed).from_(view)
        return schema

    def _still(self) -> frozenset[int]:
        """Fail where a table is no longer what was opened; the numbers of all that may be read.

        All locks come first: they take no snapshot, so what is looked at is what they hold.
        """
        tables = [opened for opened in self._opened.values() if not opened.what]
        for lock in sorted({opened.lock for opened in tables}):
            places = sorted({opened.place for opened in tables if opened.lock == lock})
            try:
                self.connection.execute(f"LOCK TABLE {', '.join(places)} IN {lock} MODE")
            except psycopg.errors.LockNotAvailable:
                raise EngineError(faults.HELD_UP) from None
        standing = look(
            self.catalogue,
            {opened.oid for opened in self._opened.values()},
            self._database.trusted,
        )
        parts: set[int] = set()
        for opened in self._opened.values():
            now = standing.get(opened.oid)
            if now is None or SENTENCES[now.fault] != opened.what:
                raise EngineError(CHANGED)
            if not opened.what and not now.is_locked:
                raise EngineError(CHANGED)
            if self._columns(opened.oid) != list(opened.columns):
                raise EngineError(CHANGED)
            parts.update(now.parts)
        return frozenset(parts)

    def catalogue(self, text: str) -> list[tuple[Any, ...]]:
        """Rows of the catalogue, by its indexes: they tell nothing of a table's rows."""
        self.connection.execute("SET LOCAL enable_indexscan = on")
        rows = self.connection.execute(text).fetchall()
        self.connection.execute("SET LOCAL enable_indexscan = off")
        return rows

    def _found(self, source: PostgresTable) -> int | None:
        """The number of a table in the catalogue, by the role's own path of schemas.

        Written so that nothing but the catalogue's own functions and types can be meant.
        """
        place = ".".join(map(quoted, source.name.split(".")))
        ((oid,),) = self.connection.execute(
            "SELECT pg_catalog.to_regclass(CAST(%s AS pg_catalog.text))::pg_catalog.oid", (place,)
        ).fetchall()
        return None if oid is None else int(oid)

    def _pinned(self, act: Callable[[], T]) -> T:
        """In a transaction with settings of ours."""
        self.connection.execute(beginning(self.connection.info.server_version))
        try:
            return act()
        finally:
            self.connection.execute("ROLLBACK")

    def _described(self, oid: int, row_by_row: bool) -> tuple[str, str, list[tuple[Any, ...]]]:
        """Why it cannot be asked, if so; the lock it needs; its columns."""
        columns = self._columns(oid)
        now = look(self.catalogue, [oid], self._database.trusted)[oid]
        what = SENTENCES[now.fault]
        place = ".".join(map(quoted, columns[0][:2])) if columns else ""
        if now.fault == VIEW and row_by_row and place:
            self.connection.execute(plan_of(place))
            what = FOREIGN if reads_foreign(self.catalogue) else what
        if not what and now.lock == STILL:
            try:
                self.connection.execute(f"LOCK TABLE {place} IN {STILL} MODE NOWAIT")
            except psycopg.errors.LockNotAvailable:
                pass  # it may be locked, and is by somebody else
            except psycopg.Error:
                what = OTHERS
        return what, now.lock, columns

    def _columns(self, oid: int) -> list[tuple[Any, ...]]:
        """What `columns_of` says of a table."""
        return columns_of(self.catalogue, oid, self._database.trusted)

    def _tables(self) -> list[str]:
        return self._pinned(
            lambda: [
                row[0]
                for row in self.connection.execute(
                    "SELECT relname::text FROM pg_class WHERE relkind IN ('r', 'p') "
                    "AND relnamespace <> 'pg_catalog'::regnamespace "
                    "AND relnamespace <> 'information_schema'::regnamespace "
                    "ORDER BY 1 LIMIT 1000"
                ).fetchall()
            ]
        )

    def write(self, step: Step) -> list[str]:
        return [*(known.view() for known, _ in self.read_by(step)), *self.translated(step)]

    def read_by(self, step: Step) -> list[tuple[Known, OpenedTable]]:
        written = self.translated(step)
        return [
            (known, self._opened[name])
            for name, known in self._known.items()
            if known.is_read(written)
        ]

    def translated(self, step: Step) -> tuple[str, ...]:
        return translated(step, self._schemas, self._sources)

    @contextlib.contextmanager
    def snapshot(
        self, reads: Sequence[Step] = (), *, only: Collection[str] | None = None
    ) -> Iterator[PostgresSnapshot]:
        """One transaction, in which all statements see the same rows."""
        del reads, only  # nothing is read before the statements themselves
        with self._lock:
            try:
                self.attempt(self._begin)
                yield PostgresSnapshot(self, self.attempt(self._still))
            finally:
                self._end()

    def attempt(self, act: Callable[[], T]) -> T:
        """Whatever goes wrong in the server has one sentence, on any data."""
        return faults.attempt(act, lambda _: EngineError(faults.ended("the query", "Postgres")))

    def _begin(self) -> None:
        """One snapshot; what was made for the question is gone with it."""
        self._refuse_if_closed()
        if self.connection.closed or self.connection.broken:
            self.connection = self._connect()
        self.connection.execute(beginning(self.connection.info.server_version))

    def _refuse_if_closed(self) -> None:
        if self._is_closed:
            raise EngineError(faults.CLOSED)

    def _end(self) -> None:
        """Roll back; a connection that cannot is opened anew for the next question."""
        try:
            self.connection.execute("ROLLBACK")
        except Exception:
            self.connection.close()

    def check(self, steps: Sequence[Step]) -> None:
        """Run the statements on canaries in clones of the tables; the tables are not touched."""
        self._refuse_if_closed()
        written = [self.translated(step) for step in steps]
        key = (tuple(written), tuple(step.constants for step in steps))
        with self._lock:
            if key in self._passed:
                return
            try:
                self.attempt(self._begin)
                self._try(steps, written)
            finally:
                self._end()
            self._passed.add(key)

    def _try(self, steps: Sequence[Step], written: Sequence[Sequence[str]]) -> None:
        texts = [text for step in steps for text in (step.select, *step.tables.values())]
        rows = rows_to_try(most_named(self._known, texts))
        constants = list(dict.fromkeys(value for step in steps for value in step.constants))
        try:
            for known in self._known.values():
                if any(known.is_read(statements) for statements in written):
                    self._fill(known, canaries(known.schema, known.unit, constants, rows))
            for statements in written:
                for statement in statements:
                    self.connection.execute(statement)
        except psycopg.Error as error:
            state = error.sqlstate or ""
        else:
            return
        if state == "42501":
            raise EngineError("the connection: the role needs the right to make temporary tables")
        if not state or state[:2] in _OUTAGES:
            raise EngineError(faults.ended("the check", "Postgres"))
        raise QueryError(_sentence(state))

    def _fill(self, known: Known, made: Mapping[str, list[Any]]) -> None:
        self.connection.execute(known.shadow())
        kinds = [NATIVE[kind].split()[0] for kind in known.schema.columns.values()]
        lists = ", ".join(f"%s::{kind}[]" for kind in kinds)
        values = [
            [None if isinstance(value, str) and "\0" in value else value for value in column]
            for column in made.values()
        ]
        self.connection.execute(
            f"INSERT INTO pg_temp.{quoted(known.name)} SELECT * FROM unnest({lists})", values
        )

    def room(self) -> None:
        """The server's own affair."""

    def copied(self, steps: Sequence[Step]) -> Mapping[str, Sequence[str]]:  # noqa: ARG002
        return {}

    def cancel(self) -> None:
        self.connection.cancel_safe()

    def close(self) -> None:
        """Let go of the connection, and open no other."""
        self._is_closed = True
        self.connection.close()


_OUTAGES = {"08", "25", "53", "57", "58"}  # of connections, transactions, resources, operators


def _sentence(state: str) -> str:
    if state == "42601":
        return faults.SYNTAX
    if state in {"42P01", "42703", "42883"}:
        return faults.NAMES
    return faults.TYPES if state[:2] == "42" else faults.VALUES


def _attempt(what: str, act: Callable[[], T]) -> T:
    return faults.attempt(act, faults.by_kind(what, "Postgres", "see the server's log"))
