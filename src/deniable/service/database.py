"""The database of a survey store: who looks cannot write, and who writes takes a turn.

`Database.turn` is the only way to write. While one turn lasts nobody else writes, in no thread and
no process, so that what was checked at its start still holds when it is written (SQLite:
`BEGIN IMMEDIATE`; Postgres: one advisory lock). `Database.looking` gives connections on which the
database itself refuses to write. In Postgres the tables are the connecting role's own.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from deniable.errors import LedgerError, MissingExtraError, ParameterError, SurveyStoreError
from deniable.ledger.stores.address import AddressError, read_address
from deniable.ledger.stores.own import PATIENCE, OneFile, OwnEngine
from deniable.ledger.stores.postgres import Home, check_tables, find_home, pin
from deniable.randomness.fork import unforked
from deniable.service.tables import METADATA, SURVEYS

_TURN = 0x64656E69  # the number of the lock in Postgres
_TAKE_TURN = sa.text(
    f"SELECT set_config('synchronous_commit', 'on', true), pg_advisory_xact_lock({_TURN})"
)


class Database:
    """A database by SQLAlchemy URL, or the path of an SQLite file, made where `create` says so."""

    def __init__(self, where: str | Path, *, create: bool = True) -> None:
        engine = _open(where, create=create)
        is_file = engine.dialect.name == "sqlite"
        self._file = OneFile(Path(engine.url.database or "")) if is_file else None
        self._check_place()
        self._own = OwnEngine(engine)
        self._threads = threading.Lock()  # they queue here: waiting in SQLite is a slow poll
        self._home: Home | None = None
        if self.dialect == "postgresql":
            try:
                self._settle_schema()
            except BaseException:
                self.close()
                raise

    @property
    def dialect(self) -> str:
        """The kind: "sqlite" or "postgresql"."""
        return self._own.engine.dialect.name

    def check(self, connection: sa.Connection) -> set[str]:
        """The tables that exist; SurveyStoreError where something of others could run on one."""
        if self._home is None:
            return set(sa.inspect(connection).get_table_names())
        try:
            return check_tables(connection, self._home, METADATA.tables)
        except LedgerError as cause:
            raise SurveyStoreError(str(cause)) from None

    @contextmanager
    def looking(self) -> Iterator[sa.Connection]:
        """A connection that cannot write."""
        with _told(), self._own.connect() as plain:
            yield plain.execution_options(postgresql_readonly=True)

    @contextmanager
    def turn(self) -> Iterator[sa.Connection]:
        """A transaction that begins when all others have ended; it is on disk when this returns."""
        with unforked(), self._threads, self._in_place(), _told(), self._own.connect() as plain:
            connection = plain.execution_options(deniable_turn=True)
            with connection.begin():
                if self.dialect == "postgresql":
                    connection.execute(_TAKE_TURN)
                yield connection

    def compact(self) -> None:
        """Write the whole file anew, by key (SQLite; in Postgres `settle` has done it)."""
        if self.dialect != "sqlite":
            return
        with unforked(), self._threads, self._in_place(), _told():
            plain = self._own.ours().raw_connection()
            try:
                cursor = plain.cursor()
                cursor.execute("PRAGMA query_only = OFF")
                cursor.execute("VACUUM")
                cursor.close()
            finally:
                plain.close()

    def close(self) -> None:
        """Close all connections."""
        self._own.close()

    @contextmanager
    def _in_place(self) -> Iterator[None]:
        """What is written is written to the file that is there: it is looked for after as well."""
        self._check_place()
        yield
        self._check_place()

    def _check_place(self) -> None:
        if self._file is not None and (fault := self._file.fault()) is not None:
            raise SurveyStoreError(f"{fault}; nothing was acknowledged")

    def _settle_schema(self) -> None:
        path = pin(self._own.engine)
        with self.looking() as connection:
            try:
                self._home = find_home(connection, SURVEYS.name, path, create=True)
            except LedgerError as cause:
                raise SurveyStoreError(str(cause)) from None
        if not self._home.mine:
            raise SurveyStoreError(
                f"the surveys in the schema {self._home.schema!r} belong to another role; connect "
                "as it, or make a schema of your own"
            )
        names = {None: self._home.schema}
        self._own.engine = self._own.engine.execution_options(schema_translate_map=names)


def named(connection: sa.Connection, table: sa.Table) -> str:
    """A table as SQL, with its schema where it has one."""
    schema = connection.get_execution_options().get("schema_translate_map", {}).get(None)
    return table.name if schema is None else f"{Home(schema, mine=True).quoted}.{table.name}"


@contextmanager
def _told() -> Iterator[None]:
    """Say in our own words what a database reports: its own may quote a row."""
    try:
        yield
    except SQLAlchemyError as cause:
        raise SurveyStoreError(
            f"the survey store failed ({type(cause).__name__}); nothing was acknowledged"
        ) from None


def _open(where: str | Path, *, create: bool) -> sa.Engine:
    text = str(where)
    if "://" not in text:
        return _sqlite(Path(text).absolute(), create=create)
    url, wrong = _address(text)
    if url is None:
        raise ParameterError("store", "a URL", wrong)
    if url.get_backend_name() == "sqlite":
        return _sqlite(Path(url.database or "").absolute(), create=create)
    try:
        return sa.create_engine(
            url,
            pool_pre_ping=True,
            isolation_level="READ COMMITTED",
            hide_parameters=True,
            use_native_hstore=False,  # nothing is asked about types that others may make
        )
    except ImportError:
        raise MissingExtraError("surveys in Postgres", "postgres") from None
    except SQLAlchemyError:
        raise ParameterError("store", "a URL", "must be postgresql://... or a file") from None


def _address(text: str) -> tuple[sa.URL | None, str]:
    try:
        return read_address(text), ""
    except AddressError as wrong:
        return None, str(wrong)


def _sqlite(file: Path, *, create: bool) -> sa.Engine:
    if not file.parent.is_dir() or file.is_dir():
        raise ParameterError("store", str(file), "must be a file in a folder that exists")
    if not file.exists() and not create:
        raise ParameterError("store", file.name, "is not there; check --store, or serve it first")
    if not file.exists():
        try:
            file.touch(mode=0o600)
        except OSError as cause:
            raise ParameterError("store", str(file), f"cannot be made: {cause.strerror}") from None
    engine = sa.create_engine(
        sa.URL.create("sqlite", database=str(file)),
        connect_args={"timeout": PATIENCE},
        hide_parameters=True,
        max_overflow=-1,
    )

    @sa.event.listens_for(engine, "connect")
    def configure(connection: Any, _: object) -> None:
        # The driver must not open transactions itself; commits are synced before they are told,
        # their folder too. No write-ahead log: it keeps all that came in, in order. What is
        # deleted is overwritten.
        connection.isolation_level = None
        (mode,) = connection.execute("PRAGMA journal_mode = DELETE").fetchone()
        if mode != "delete":
            raise SurveyStoreError(
                "another program holds the survey store with a write-ahead log, which keeps the "
                "order of arrival; end it first"
            )
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.execute("PRAGMA secure_delete = ON")

    @sa.event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        mine = connection.get_execution_options().get("deniable_turn")
        connection.exec_driver_sql(f"PRAGMA query_only = {'OFF' if mine else 'ON'}")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if mine else "BEGIN")

    return engine
