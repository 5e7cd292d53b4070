"""Tokens that were spent: remembered for good, in no order and without a time.

A token is one row, and its digest the primary key. To spend it is one `INSERT` in a transaction of
its own, written through to the disk before it returns: of many processes that spend one token, the
database lets one through. The table has no row numbers, and rows have no order but that of their
digests; where they lie in the file's pages may tell which came later, until it is rewritten.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from deniable.errors import ParameterError, TokenSpentError, TokenStoreError
from deniable.ledger.stores.own import OneFile, OwnEngine, durable
from deniable.service.tokens.checks import require_bytes

_DIGEST_LENGTH = 32
_VERSION = 1

SPENT = sa.Table(
    "deniable_spent", sa.MetaData(), sa.Column("digest", sa.LargeBinary, primary_key=True)
)

_SCHEMA = [
    f"""CREATE TABLE deniable_spent (digest BLOB NOT NULL PRIMARY KEY,
        CHECK (typeof(digest) = 'blob' AND length(digest) = {_DIGEST_LENGTH})) WITHOUT ROWID""",
    """CREATE TRIGGER deniable_spent_no_update BEFORE UPDATE ON deniable_spent
       BEGIN SELECT RAISE(ABORT, 'what is spent stays spent'); END""",
    """CREATE TRIGGER deniable_spent_no_delete BEFORE DELETE ON deniable_spent
       BEGIN SELECT RAISE(ABORT, 'what is spent stays spent'); END""",
    f"PRAGMA user_version = {_VERSION}",
]


class SpentTokens(Protocol):
    """Where spent tokens are remembered."""

    def spend(self, digest: bytes) -> None:
        """Remember a digest of 32 bytes for good, or raise `TokenSpentError` if it is known.

        Of all calls with one digest, in all processes, at most one returns. When it returns, the
        digest survives a crash.
        """

    def count(self) -> int:
        """How many were spent."""

    def close(self) -> None:
        """Let go of files and connections."""


class SpentFile:
    """Spent tokens in an SQLite file, which is made if it is missing."""

    def __init__(self, path: str | Path) -> None:
        self._file = Path(path).absolute()
        self._create_file()
        self._place = OneFile(self._file)
        url = sa.URL.create("sqlite", database=str(self._file))
        self._own = OwnEngine(durable(url).execution_options(deniable_write=True))
        try:
            self._create_table()
        except BaseException:
            self._own.close()
            raise

    def spend(self, digest: bytes) -> None:
        """Remember a digest, or refuse one that is known."""
        if len(require_bytes("digest", digest)) != _DIGEST_LENGTH:
            raise ParameterError("digest", f"{len(digest)} bytes", "must have 32 bytes")
        try:
            with self._transaction() as connection:
                connection.execute(sa.insert(SPENT).values(digest=digest))
        except IntegrityError:
            raise TokenSpentError(
                "the token was spent before; a token is good for one report"
            ) from None

    def count(self) -> int:
        """How many were spent."""
        with self._transaction() as connection:
            query = sa.select(sa.func.count()).select_from(SPENT)
            return int(connection.execute(query).scalar_one())

    def close(self) -> None:
        """Close all connections."""
        self._own.close()

    @contextmanager
    def _transaction(self) -> Iterator[sa.Connection]:
        """One writer at a time, in the file that was opened, told in our own words if it fails."""
        self._check_place()
        try:
            with self._own.connect() as connection, connection.begin():
                yield connection
        except IntegrityError:
            raise
        except SQLAlchemyError as cause:
            said = str(getattr(cause, "orig", cause)).strip().split("\n")[0][:200]
            raise TokenStoreError(f"{self._file}: {said}; nothing was accepted") from None
        self._check_place()  # nor was it put away meanwhile

    def _create_file(self) -> None:
        try:
            os.close(os.open(self._file, os.O_CREAT | os.O_RDWR, 0o600))
        except (OSError, ValueError) as cause:
            reason = getattr(cause, "strerror", None) or "the name is not one of a file"
            raise TokenStoreError(
                f"spent tokens cannot be kept in {self._file}: {reason}"
            ) from None

    def _create_table(self) -> None:
        with self._transaction() as connection:
            version = int(connection.exec_driver_sql("PRAGMA user_version").scalar_one())
            if version > _VERSION:
                raise TokenStoreError(
                    f"{self._file} was written by a newer version of deniable; update this one"
                )
            if version == 0:
                for statement in _SCHEMA:
                    connection.exec_driver_sql(statement)

    def _check_place(self) -> None:
        if (fault := self._place.fault()) is not None:
            raise TokenStoreError(f"{fault}; nothing was accepted")
