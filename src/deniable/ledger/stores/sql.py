"""Rows in SQLite or Postgres.

One transaction reads the last row, lets the ledger decide, and inserts the next. SQLite: `BEGIN
IMMEDIATE`, so that one process at a time is inside, and full synchronous writes. Postgres: a lock
on the population for the length of the transaction, and `synchronous_commit` on. The primary key
(population, number) holds whatever else fails; whose tables count, `postgres.py` says. Triggers
refuse to change or remove rows; who can drop the triggers is found out by the keyed chain.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import DatabaseError, IntegrityError, SQLAlchemyError

from deniable.errors import LedgerError, LedgerTamperedError, MissingExtraError
from deniable.ledger.entries import EntryKind, Row
from deniable.ledger.stores import own
from deniable.ledger.stores.address import AddressError, read_address
from deniable.ledger.stores.base import Decide
from deniable.ledger.stores.own import OneFile, OwnEngine, durable
from deniable.ledger.stores.postgres import (
    Home,
    check_tables,
    copy_theirs,
    find_home,
    is_held_up,
    pin,
)

_TRIES = 5

_metadata = sa.MetaData()
ENTRIES = sa.Table(
    "deniable_entries",
    _metadata,
    sa.Column("population", sa.Text, primary_key=True),
    sa.Column("number", sa.BigInteger, primary_key=True),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("who", sa.Text, nullable=False),
    sa.Column("question", sa.Text),
    sa.Column("refers", sa.BigInteger),
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("mac", sa.Text, nullable=False),
)
_VERSIONS = sa.Table(
    "deniable_schema",
    _metadata,
    sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
)

# Each is run once, in this order, and never edited: a change is a new one.
_MIGRATIONS: dict[str, list[list[str]]] = {
    "sqlite": [
        [
            """CREATE TABLE deniable_entries (population TEXT NOT NULL, number INTEGER NOT NULL,
               kind TEXT NOT NULL, who TEXT NOT NULL, question TEXT, refers INTEGER,
               body TEXT NOT NULL, mac TEXT NOT NULL, PRIMARY KEY (population, number),
               CHECK (number > 0))""",
            "CREATE INDEX deniable_by_question ON deniable_entries (population, question)",
            "CREATE INDEX deniable_by_reference ON deniable_entries (population, refers)",
            """CREATE TRIGGER deniable_no_replace BEFORE INSERT ON deniable_entries
               WHEN EXISTS (SELECT 1 FROM deniable_entries
                            WHERE population = NEW.population AND number = NEW.number)
               BEGIN SELECT RAISE(ABORT, 'UNIQUE: the ledger is append-only'); END""",
            """CREATE TRIGGER deniable_no_update BEFORE UPDATE ON deniable_entries
               BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END""",
            """CREATE TRIGGER deniable_no_delete BEFORE DELETE ON deniable_entries
               BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END""",
        ]
    ],
    "postgresql": [
        [
            """CREATE TABLE deniable_entries (population TEXT NOT NULL, number BIGINT NOT NULL,
               kind TEXT NOT NULL, who TEXT NOT NULL, question TEXT, refers BIGINT,
               body TEXT NOT NULL, mac TEXT NOT NULL, PRIMARY KEY (population, number),
               CHECK (number > 0))""",
            "CREATE INDEX deniable_by_question ON deniable_entries (population, question)",
            "CREATE INDEX deniable_by_reference ON deniable_entries (population, refers)",
            """CREATE FUNCTION deniable_append_only() RETURNS trigger LANGUAGE plpgsql AS
               $$ BEGIN RAISE EXCEPTION 'the ledger is append-only'; END $$""",
            """CREATE TRIGGER deniable_no_change BEFORE UPDATE OR DELETE OR TRUNCATE
               ON deniable_entries
               FOR EACH STATEMENT EXECUTE FUNCTION deniable_append_only()""",
        ]
    ],
}


class SqlStore:
    """A database by SQLAlchemy URL, or the path of an SQLite file.

    Its `place` is the path, or server and database, without user and password.
    """

    def __init__(self, where: str | Path, *, create: bool = True) -> None:
        url = _read_url(where)
        self._dialect = url.get_backend_name()
        self._name = f"{self._dialect} ledger {url.database or ''}".strip()
        self._file: OneFile | None = None
        self.place = f"{self._dialect}://{url.host or ''}:{url.port or ''}/{url.database or ''}"
        if self._dialect == "sqlite":
            file = Path(url.database or "").absolute()
            _check_file(url.database or "", file, create=create)
            url = url.set(database=str(file))
            self._file, self.place = OneFile(file), str(file)
            self._check_place()
        self._home: Home | None = None
        self._own = OwnEngine(self._connect(url))
        try:
            self._migrate(create=create)
        except BaseException:
            self._own.close()
            raise

    @property
    def written(self) -> float | None:
        """When its file was last written: no entry is younger. None of a database on a server."""
        if self._file is None:
            return None
        try:
            return self._file.path.stat().st_mtime
        except OSError:
            return None

    def append(self, population: str, decide: Decide) -> Row:
        """In one transaction; tried again if another writer was faster."""
        for attempt in range(_TRIES):
            try:
                with self._writing(population) as connection:
                    row = decide(self._last(connection, population), _Inside(connection))
                    connection.execute(sa.insert(ENTRIES).values(**vars(row)))
                self._check_place()  # nor was the file put away meanwhile
                # Whatever a trigger or a view made of it: it is there, or it was not spent.
                if self.row(population, row.number) != row:
                    raise LedgerError(f"{self._name} did not keep an entry; nothing was released")
                return row
            except IntegrityError as cause:
                if attempt == _TRIES - 1:
                    raise LedgerError(f"{self._name}: other writers were always faster") from cause
        raise AssertionError

    def rows(self, population: str, after: int = 0) -> Iterator[Row]:
        """All rows after one, in order, a thousand at a time; of a copy, all at once."""
        after = after or -(2**62)
        most = 1000 if self._home is None or self._home.mine else None
        while True:
            wanted = (ENTRIES.c.population == population) & (ENTRIES.c.number > after)
            query = sa.select(ENTRIES).where(wanted).order_by(ENTRIES.c.number).limit(most)
            found = self._select(query)
            yield from found
            if most is None or len(found) < most:
                return
            after = found[-1].number

    def row(self, population: str, number: int) -> Row | None:
        found = self._select(_one(population, number))
        return found[0] if found else None

    def asked(self, population: str, question: str) -> list[Row]:
        mine = ENTRIES.c.population == population
        # Two statements, for each has an index of its own.
        first = self._select(sa.select(ENTRIES).where(mine & (ENTRIES.c.question == question)))
        numbers = [row.number for row in first]
        later = self._select(sa.select(ENTRIES).where(mine & ENTRIES.c.refers.in_(numbers)))
        return sorted([*first, *later], key=lambda row: row.number)

    def referring(self, population: str, number: int) -> list[Row]:
        return self._select(_referring(population, number))

    def populations(self) -> list[str]:
        with self._reading() as connection:
            query = sa.select(ENTRIES.c.population).distinct().order_by(ENTRIES.c.population)
            return [row[0] for row in connection.execute(query)]

    def close(self) -> None:
        self._own.close()

    def _select(self, query: sa.Select[Any]) -> list[Row]:
        with self._reading() as connection:
            return [_row(each) for each in connection.execute(query)]

    def _last(self, connection: sa.Connection, population: str) -> Row | None:
        mine = sa.select(ENTRIES).where(ENTRIES.c.population == population)
        found = connection.execute(mine.order_by(ENTRIES.c.number.desc()).limit(1)).first()
        return None if found is None else _row(found)

    @contextmanager
    def _writing(self, population: str) -> Iterator[sa.Connection]:
        self._check_place()
        if self._home is not None and not self._home.mine:
            raise LedgerError(
                f"{self._name} belongs to another role, and is only read by this one: connect as "
                "its owner (?options=-crole%3DNAME), or make a schema and a ledger of your own"
            )
        with self._told(), self._own.connect() as plain:
            connection = plain.execution_options(deniable_write=True)
            with connection.begin():
                if self._dialect == "postgresql":
                    connection.execute(sa.text("SET LOCAL synchronous_commit = on"))
                    connection.execute(
                        sa.text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))"),
                        {"name": f"deniable/{population}"},
                    )
                yield connection

    @contextmanager
    def _reading(self) -> Iterator[sa.Connection]:
        with self._looking() as connection:
            if self._home is not None and not self._home.mine:
                copy_theirs(connection, self._home, _metadata.sorted_tables)
            yield connection

    @contextmanager
    def _looking(self) -> Iterator[sa.Connection]:
        """A connection for what the catalogue knows."""
        with self._told(), self._own.connect() as connection:
            yield connection

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Say in our own words what a database reports."""
        try:
            yield
        except IntegrityError:
            raise
        except DatabaseError as cause:
            if is_held_up(cause):
                raise LedgerError(
                    f"{self._name}: another session holds a lock on it, and did not let go for "
                    f"{own.PATIENCE} seconds; nothing was released. End that session (it is in "
                    "pg_locks and pg_stat_activity), and ask again"
                ) from None
            if type(cause) is DatabaseError:  # what SQLite says of files that are none of its own
                raise LedgerTamperedError(
                    f"{self._name} is no ledger, or is damaged: {_first_line(cause)}"
                ) from cause
            raise LedgerError(
                f"{self._name}: {_first_line(cause)}; nothing was released"
            ) from cause
        except SQLAlchemyError as cause:
            raise LedgerError(
                f"{self._name}: {_first_line(cause)}; nothing was released"
            ) from cause

    def _connect(self, url: sa.URL) -> sa.Engine:
        if self._dialect != "sqlite":
            try:
                return sa.create_engine(
                    url,
                    pool_pre_ping=True,
                    isolation_level="READ COMMITTED",
                    use_native_hstore=False,  # nothing is asked about types that others may make
                )
            except ImportError:
                raise MissingExtraError("ledgers in Postgres", "postgres") from None
            except SQLAlchemyError:
                raise LedgerError("a ledger in Postgres is reached by postgresql://...") from None
        return durable(url)

    def _check_place(self) -> None:
        """Spend nothing where it would not be found again."""
        if self._file is not None and (fault := self._file.fault()) is not None:
            raise LedgerError(f"{fault}; nothing was released")

    def _settle_schema(self, *, create: bool) -> None:
        """Stay in the schema where the ledger is, whatever the search path says later."""
        path = pin(self._own.engine)
        with self._looking() as connection:
            self._home = find_home(connection, ENTRIES.name, path, create=create)
            check_tables(connection, self._home, _metadata.tables)
        names = {None: self._home.asked}
        self._own.engine = self._own.engine.execution_options(schema_translate_map=names)

    def _migrate(self, *, create: bool) -> None:
        steps = _MIGRATIONS[self._dialect]
        if self._dialect == "postgresql":
            self._settle_schema(create=create)
        version = self._version()
        if version > len(steps):
            raise LedgerError(
                f"{self._name} was written by a newer version of deniable; update this one"
            )
        if version == 0 and not create:
            raise LedgerError(f"{self._name} holds no ledger")
        if version == len(steps):
            return
        with self._writing("") as connection:
            _VERSIONS.create(connection, checkfirst=True)
            if self._home is not None:  # what exists now stays: nobody else can put it away
                check_tables(connection, self._home, _metadata.tables)
                connection.exec_driver_sql(f"SET LOCAL search_path TO {self._home.quoted}")
            for number in range(_done(connection), len(steps)):
                for statement in steps[number]:
                    connection.exec_driver_sql(statement)
                connection.execute(sa.insert(_VERSIONS).values(version=number + 1))

    def _version(self) -> int:
        """How many migrations were run; who may only read can ask."""
        with self._looking() as connection:
            schema = None if self._home is None else self._home.schema
            if not sa.inspect(connection).has_table(_VERSIONS.name, schema=schema):
                return 0
            names = _metadata.tables.keys()
            # A name that is free could be taken by others.
            if self._home is not None and check_tables(connection, self._home, names) != names:
                raise LedgerTamperedError(f"{self._name} has lost its entries")
        with self._reading() as connection:
            return _done(connection)


class _Inside:
    """Rows as seen by the connection of a transaction."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def row(self, population: str, number: int) -> Row | None:
        found = self._connection.execute(_one(population, number)).first()
        return None if found is None else _row(found)

    def referring(self, population: str, number: int) -> list[Row]:
        return [_row(each) for each in self._connection.execute(_referring(population, number))]


def _check_file(name: str, file: Path, *, create: bool) -> None:
    if name in ("", ":memory:") or name.startswith("file:") or not name.isprintable():
        raise LedgerError("name a file; a ledger in memory is Ledger(), without a place")
    try:
        file.exists()
    except OSError as cause:
        raise LedgerError(f"the ledger's file cannot be reached: {cause.strerror}") from None
    if file.is_dir():
        raise LedgerError(f"{file} is a folder; name a file in it")
    if not file.exists() and not create:
        raise LedgerError(f"there is no ledger at {file}")
    if not file.parent.is_dir():
        raise LedgerError(f"there is no folder {file.parent} for the ledger")
    if file.exists() and not os.access(file, os.W_OK):
        raise LedgerError(f"{file} cannot be written, and what is not recorded is not released")
    if not file.exists():
        try:
            os.close(os.open(file, os.O_CREAT | os.O_RDWR, 0o600))
        except OSError as cause:
            raise LedgerError(f"{file} cannot be made: {cause.strerror}") from None


def _done(connection: sa.Connection) -> int:
    return int(connection.execute(sa.select(sa.func.max(_VERSIONS.c.version))).scalar() or 0)


def _one(population: str, number: int) -> sa.Select[Any]:
    return sa.select(ENTRIES).where(
        (ENTRIES.c.population == population) & (ENTRIES.c.number == number)
    )


def _referring(population: str, number: int) -> sa.Select[Any]:
    wanted = (ENTRIES.c.population == population) & (ENTRIES.c.refers == number)
    return sa.select(ENTRIES).where(wanted).order_by(ENTRIES.c.number)


def _row(found: sa.Row[tuple[object, ...]]) -> Row:
    values = dict(found._mapping)
    try:
        if not isinstance(values["number"], int):
            raise ValueError
        return Row(**{**values, "kind": EntryKind(values["kind"])})
    except ValueError:
        raise LedgerTamperedError(f"entry {values['number']} has an unknown kind") from None


def _read_url(where: str | Path) -> sa.URL:
    """A URL, or the path of a file, whatever is in its name."""
    text = str(where)
    if "://" not in text:
        return sa.URL.create("sqlite", database=text)
    try:
        return read_address(text)
    except AddressError as wrong:
        told = str(wrong)
    raise LedgerError(f"the place of the ledger, where it is no path, {told}")


def _first_line(cause: SQLAlchemyError) -> str:
    return str(getattr(cause, "orig", cause)).strip().split("\n")[0][:200]
