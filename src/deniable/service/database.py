"""The engine of a survey store, and how rows are laid down again in an order that says nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from deniable.errors import MissingExtraError, ParameterError
from deniable.service.tables import ANSWERS, INVITATIONS, SPENT

_PATIENCE = 60  # seconds that a writer waits for others
# Writers that look at several surveys take turns under this number in Postgres.
_TURN = 0x64656E69
_BY_KEY = (SPENT, INVITATIONS, ANSWERS)


def open_engine(where: str | Path, *, create: bool = True) -> sa.Engine:
    """A database by SQLAlchemy URL, or the path of an SQLite file, made where `create` says so."""
    text = str(where)
    if "://" not in text:
        return _sqlite(Path(text).absolute(), create=create)
    try:
        url = sa.make_url(text)
        if url.get_backend_name() == "sqlite":
            return _sqlite(Path(url.database or "").absolute(), create=create)
        if url.get_backend_name() != "postgresql":
            raise ParameterError("store", url.get_backend_name(), "must be SQLite or Postgres")
        return sa.create_engine(
            url.set(drivername="postgresql+psycopg"),
            pool_pre_ping=True,
            isolation_level="READ COMMITTED",
            hide_parameters=True,
        )
    except ImportError:
        raise MissingExtraError("surveys in Postgres", "postgres") from None
    except SQLAlchemyError:
        raise ParameterError("store", "a URL", "must be postgresql://... or a file") from None


def _sqlite(file: Path, *, create: bool) -> sa.Engine:
    if not file.parent.is_dir() or file.is_dir():
        raise ParameterError("store", str(file), "must be a file in a folder that exists")
    if not file.exists() and not create:
        raise ParameterError("store", file.name, "is not there; check --store, or serve it first")
    if not file.exists():
        file.touch(mode=0o600)
    engine = sa.create_engine(
        sa.URL.create("sqlite", database=str(file)),
        connect_args={"timeout": _PATIENCE},
        hide_parameters=True,
        max_overflow=-1,
    )

    @sa.event.listens_for(engine, "connect")
    def configure(connection: Any, _: object) -> None:
        # The driver must not open transactions itself; commits are synced before they are told,
        # by one write to the disk each.
        connection.isolation_level = None
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA secure_delete = ON")

    @sa.event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        writes = connection.get_execution_options().get("deniable_write")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def take_turn(connection: sa.Connection) -> None:
    """Until the end of this transaction, nobody else invites, adds or closes.

    SQLite has one writer anyway.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_TURN)))


def settle(engine: sa.Engine) -> None:
    """Lay all rows down again in the order of their keys, which are random or hashes.

    A database appends: where rows lie in its pages (SQLite) or files (Postgres), its log, and the
    numbers of transactions tell in which order they came, and so which report came with which
    token. After this they lie by key, written at once.
    """
    if engine.dialect.name == "sqlite":
        plain = engine.raw_connection()
        try:
            cursor = plain.cursor()
            cursor.execute("VACUUM")
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            cursor.close()
        finally:
            plain.close()
        return
    with engine.begin() as connection:
        # In the order in which writers take them, so that nobody waits in a circle.
        names = ", ".join(table.name for table in _BY_KEY)
        connection.exec_driver_sql(f"LOCK TABLE {names} IN ACCESS EXCLUSIVE MODE")
        for table in _BY_KEY:
            keys = ", ".join(column.name for column in table.primary_key)
            for statement in (
                f"CREATE TEMPORARY TABLE settled ON COMMIT DROP AS SELECT * FROM {table.name}",  # noqa: S608
                f"TRUNCATE {table.name}",
                f"INSERT INTO {table.name} SELECT * FROM settled ORDER BY {keys}",  # noqa: S608
                "DROP TABLE settled",
            ):
                connection.exec_driver_sql(statement)
