"""Rows that come in are mixed before they are laid down, so that no file pairs them.

They are of three kinds: marks of invitations that bought a token, tokens, and reports. A mark lies
under the code of somebody who may have a name, and that person's report follows within minutes: so
who is the last to have one must not show either.

A database appends: where rows lie in its pages, its log, and the numbers of its transactions tell
in which order they came, and so which report came with which token. Here a row goes into a small
table of fresh ones, which is written anew as a whole each time, by key. When it holds more than
`MOST` rows of a survey, all but `KEPT` of them, drawn at random, move to the table of the rest.
Each kind has a pool, draws for itself, and is written in transactions of its own (see
`deposits.py`).

In Postgres rows are deleted and written, never truncated: who reads from a snapshot, as a dump
does, sees all of it. What was deleted of one kind is taken out of its files (`erase`) before the
next of another kind is written (`clean`). While a snapshot sees it, Postgres keeps it.

So who sees the store once, at whatever moment, killed or not, sees a report among all of its
survey, or, where those are more, among `KEPT` or more that it may belong to.
"""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.exc import OperationalError

from deniable.errors import SurveyStoreError
from deniable.ledger.stores.own import PATIENCE
from deniable.ledger.stores.postgres import is_held_up
from deniable.service.database import Database, named
from deniable.service.tables import (
    ANSWERS,
    ANSWERS_FRESH,
    INVITATIONS,
    MARKS as MARKED,
    MARKS_FRESH,
    SPENT,
    SPENT_FRESH,
    SURVEYS,
)

MOST, KEPT = 512, 256
_SHORT = 1

T = TypeVar("T")
Row = Mapping[str, str]
Name = tuple[str, str]  # survey and key

_AT_ONCE = 500


@dataclass(frozen=True)
class Pool:
    """A table of rows by survey and key, and the small one in front of it."""

    rest: sa.Table
    fresh: sa.Table

    @property
    def key(self) -> str:
        """The column beside the survey that names a row; its values are random or hashes."""
        return self.rest.primary_key.columns.keys()[1]

    def rows(self, survey: str, columns: Sequence[str]) -> sa.CompoundSelect[Any]:
        """All rows of a survey, in one look."""
        return sa.union_all(
            *(
                sa.select(*(table.c[name] for name in columns)).where(table.c.survey == survey)
                for table in (self.rest, self.fresh)
            )
        )

    def known(self, connection: sa.Connection, names: Iterable[Name]) -> dict[Name, Row]:
        """The rows under these names."""
        by_survey: dict[str, list[str]] = defaultdict(list)
        for survey, key in names:
            by_survey[survey].append(key)
        found: dict[Name, Row] = {}
        for survey, keys in by_survey.items():
            for first in range(0, len(keys), _AT_ONCE):
                for table in (self.rest, self.fresh):
                    mine = table.c[self.key].in_(keys[first : first + _AT_ONCE])
                    query = sa.select(table).where((table.c.survey == survey) & mine)
                    for row in connection.execute(query).mappings():
                        found[survey, row[self.key]] = dict(row)
        return found

    def put(self, connection: sa.Connection, rows: Sequence[Row]) -> None:
        """Mix these rows in. The connection has the turn."""
        if not rows:
            return
        by_survey: dict[str, list[Row]] = defaultdict(list)
        fresh = connection.execute(sa.select(self.fresh)).mappings().all()
        for row in (*map(dict, fresh), *rows):
            by_survey[row["survey"]].append(row)
        kept: list[Row] = []
        released: list[Row] = []
        for mine in by_survey.values():
            if len(mine) <= MOST:
                kept += mine
                continue
            shuffled = _shuffled(mine)
            kept += shuffled[:KEPT]
            released += shuffled[KEPT:]
        connection.execute(sa.delete(self.fresh))  # SQLite overwrites them
        self._lay(connection, self.fresh, kept)
        self._lay(connection, self.rest, released)

    def erase(self, connection: sa.Connection) -> None:
        """Nothing of old fresh rows stays in the file; while somebody reads for long, it does.

        The connection has the turn. What is left of one kind's rows is taken away before the first
        of another is written, so that the files never tell of both.
        """
        erase(connection, self.fresh, seconds=_SHORT)

    def fill(self, connection: sa.Connection) -> None:
        """Bring rows back at random where fewer than `KEPT` are fresh: who comes next is mixed."""
        for survey in connection.execute(sa.select(SURVEYS.c.survey)).scalars().all():
            have = sa.select(sa.func.count()).where(self.fresh.c.survey == survey)
            missing = KEPT - connection.execute(have).scalar_one()
            if missing <= 0:
                continue
            mine, key = self.rest.c.survey == survey, self.rest.c[self.key]
            keys = connection.execute(sa.select(key).where(mine)).scalars().all()
            drawn = mine & key.in_(_shuffled(keys)[:missing])
            query = sa.select(self.rest).where(drawn)
            rows = [dict(row) for row in connection.execute(query).mappings()]
            connection.execute(sa.delete(self.rest).where(drawn))
            self.put(connection, rows)

    def _lay(self, connection: sa.Connection, table: sa.Table, rows: Sequence[Row]) -> None:
        if rows:
            by_key = sorted(rows, key=lambda row: (row["survey"], row[self.key]))
            connection.execute(sa.insert(table), by_key)


MARKS, TOKENS = Pool(MARKED, MARKS_FRESH), Pool(SPENT, SPENT_FRESH)
REPORTS = Pool(ANSWERS, ANSWERS_FRESH)
_POOLS = (MARKS, TOKENS, REPORTS)
_ALL = (INVITATIONS, *(table for pool in _POOLS for table in (pool.rest, pool.fresh)))


def keeps_replaced(database: Database) -> bool:
    """Whether rows that were replaced stay in its files; SQLite overwrites them."""
    return database.dialect == "postgresql"


def clean(database: Database, pool: Pool) -> None:
    """Before rows of a kind are written: nothing that was replaced of the others stays in files.

    It is done when this returns. In the transaction that writes it would not be, were that broken
    off: the rows that it wrote lie in the files all the same, beside what it was to take out.
    """
    if keeps_replaced(database):
        with database.turn() as connection:
            for other in _POOLS:
                if other is not pool:
                    other.erase(connection)


def settle(database: Database) -> None:
    """Lay all rows down again by key, at once; nothing is left of the order in which they came."""
    for pool in _POOLS:
        with database.turn() as connection:
            pool.fill(connection)
    if database.dialect == "postgresql":
        with database.turn() as connection:
            for table in _ALL:
                _rewrite(connection, table)
        for table in _ALL:
            with database.turn() as connection:
                if not erase(connection, table, seconds=PATIENCE):
                    raise SurveyStoreError(
                        "another session (a dump?) holds a lock on the survey store, whose files "
                        "may tell in which order people answered; all is stored: let it end, and "
                        "serve or close the survey again"
                    )
    database.compact()


def erase(connection: sa.Connection, table: sa.Table, *, seconds: int) -> bool:
    """Take what was deleted out of a table's files (SQLite has done it); False if it is locked.

    Unlike `TRUNCATE` this leaves to open snapshots what they see.
    """
    if connection.dialect.name != "postgresql":
        return True
    name = named(connection, table)
    size = connection.exec_driver_sql("SELECT pg_relation_size(%s::regclass)", (name,))
    if not size.scalar():
        return True
    try:
        with connection.begin_nested():
            connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{seconds}s'")
            connection.exec_driver_sql(f"LOCK TABLE {name} IN ACCESS EXCLUSIVE MODE")
    except OperationalError as cause:
        if not is_held_up(cause):
            raise
        return False
    connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{PATIENCE}s'")
    connection.exec_driver_sql(f"CLUSTER {name} USING {table.name}_pkey")
    return True


def forbid_statistics(connection: sa.Connection) -> None:
    """Postgres' own ANALYZE keeps values in its catalogue: an older look at each kind.

    Whatever it kept is taken away where a column is given a type, be it the one that it has.
    """
    if connection.dialect.name != "postgresql":
        return
    for table in _ALL:
        name = named(connection, table)
        for column in table.columns:
            for change in ("TYPE text", "SET STATISTICS 0"):
                connection.exec_driver_sql(f"ALTER TABLE {name} ALTER {column.name} {change}")


def _rewrite(connection: sa.Connection, table: sa.Table) -> None:
    name = named(connection, table)
    keys = ", ".join(column.name for column in table.primary_key)
    for statement in (
        f"CREATE TEMPORARY TABLE settled ON COMMIT DROP AS SELECT * FROM {name}",  # noqa: S608
        f"DELETE FROM {name}",  # noqa: S608
        f"INSERT INTO {name} SELECT * FROM settled ORDER BY {keys}",  # noqa: S608
        "DROP TABLE settled",
    ):
        connection.exec_driver_sql(statement)


def _shuffled(given: Sequence[T]) -> list[T]:
    return sorted(given, key=lambda _: secrets.token_bytes(16))
