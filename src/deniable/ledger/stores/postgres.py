"""Which tables of a Postgres database count: those of the connecting role, and plain.

What stands on a table runs with the rights of whoever writes to it (triggers, rules) or reads from
it (policies, casts, expressions of indexes). So a ledger is written to only where nobody else can
put such things: its tables belong to the role itself, in a schema that nobody but the role and the
administrators can empty. Tables of others do not count, wherever they are; one that the search path
names may be read, if nothing on it runs. Operators and functions are the catalogue's own, for the
path of schemas is pinned before anything is asked on a connection.

Tables of the role get nothing new but by the role: they are looked at when a store opens. The owner
of others' could hang something on them at any time, whatever was looked at: those are copied first
(`copy_theirs`), which plans nothing, and only the copy is asked.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from deniable.errors import LedgerError
from deniable.ledger.stores import own
from deniable.postgres_tables import CODE, look

_SCHEMAS = sa.text("""
    SELECT n.nspname, array_position(CAST(:path AS text[]), n.nspname::text),
        n.nspowner = me.oid OR owner.rolsuper OR owner.rolname = 'pg_database_owner'
            OR n.nspowner = (SELECT datdba FROM pg_database WHERE datname = current_database()),
        c.oid IS NOT NULL, COALESCE(c.relowner = me.oid AND c.relkind IN ('r', 'p'), FALSE)
    FROM pg_namespace n JOIN pg_roles owner ON owner.oid = n.nspowner
        JOIN pg_roles me ON me.rolname = current_user
        LEFT JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = :table""")

# The first that holds of a table: what runs when it is written to, for one's own; what runs when it
# is read or when a question to it is planned, for those of others.
_FAULTS = sa.text("""
    SELECT c.oid, c.relname, CASE
        WHEN c.relowner <> me.oid AND :mine THEN 'belongs to another role'
        WHEN c.relkind <> 'r' THEN 'is no plain table'
        WHEN c.relrowsecurity THEN 'has row security'
        WHEN EXISTS (SELECT FROM pg_rewrite WHERE ev_class = c.oid) THEN 'has rules'
        WHEN EXISTS (SELECT FROM pg_inherits WHERE c.oid IN (inhrelid, inhparent))
            THEN 'inherits, or is inherited from'
        WHEN :mine AND EXISTS (
                SELECT FROM pg_trigger t JOIN pg_proc f ON f.oid = t.tgfoid
                WHERE t.tgrelid = c.oid AND NOT t.tgisinternal AND f.proowner <> me.oid)
            THEN 'has a trigger of another role'
        WHEN :mine AND EXISTS (SELECT FROM aclexplode(c.relacl)
                               WHERE privilege_type = 'TRIGGER' AND grantee <> me.oid)
            THEN 'lets other roles make triggers (REVOKE TRIGGER)'
        WHEN :mine THEN NULL
        WHEN EXISTS (SELECT FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0
                     AND NOT attisdropped AND (atthasdef OR atttypid NOT IN
                         ('text'::regtype, 'bigint'::regtype, 'integer'::regtype)))
            THEN 'has columns of other types'
        WHEN EXISTS (SELECT FROM pg_index WHERE indrelid = c.oid
                     AND (indexprs IS NOT NULL OR indpred IS NOT NULL))
            THEN 'has an index with expressions'
        WHEN EXISTS (SELECT FROM pg_constraint WHERE conrelid = c.oid AND contype = 'c'
                     AND pg_get_constraintdef(oid) <> 'CHECK ((number > 0))')
            THEN 'has checks of its own'
        END
    FROM pg_class c JOIN pg_roles me ON me.rolname = current_user
    WHERE c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = :schema)
        AND c.relname = ANY(CAST(:tables AS text[]))""")


def is_held_up(cause: BaseException) -> bool:
    """Whether it waited long enough for a lock of another session."""
    return getattr(getattr(cause, "orig", None), "sqlstate", None) == "55P03"


@dataclass(frozen=True)
class Home:
    """The schema of some tables, and whether they are the role's own: to be written to."""

    schema: str
    mine: bool

    @property
    def quoted(self) -> str:
        """The schema's name as SQL."""
        return '"{}"'.format(self.schema.replace('"', '""'))

    @property
    def asked(self) -> str:
        """The schema that is asked: its own, or that of the copies."""
        return self.schema if self.mine else "pg_temp"


def pin(engine: sa.Engine) -> list[str]:
    """Let connections see the catalogue's operators alone; the path that they had, once one is.

    Before anything else is asked on them: SQLAlchemy asks about types on its own. Nor do they wait
    for ever where another session holds a lock.
    """
    path: list[str] = []

    @sa.event.listens_for(engine, "do_connect")
    def connect(dialect: Any, _: object, given: Any, named: Any) -> Any:
        connection = dialect.connect(*given, **named)
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_catalog.current_schemas(false)::pg_catalog.text[]")
            path[:] = cursor.fetchone()[0]
            cursor.execute("SET search_path TO pg_catalog, pg_temp")
            cursor.execute(f"SET lock_timeout TO '{own.PATIENCE}s'")
        connection.commit()
        return connection

    return path


def find_home(connection: sa.Connection, table: str, path: list[str], *, create: bool) -> Home:
    """Where the role's table is; or one of others on the path, to be read; or where to make it."""
    values = {"path": list(path), "table": table}
    found = [tuple(row) for row in connection.execute(_SCHEMAS, values)]
    own = [(schema, safe) for schema, _, safe, _, mine in found if mine]
    if len(own) > 1:
        raise LedgerError(f"the role has tables {table} in several schemas")
    if own:
        schema, safe = own[0]
        if not safe:
            raise LedgerError(
                f"the table {table} is in the schema {schema!r} of another role, who could put "
                "another in its place: ALTER SCHEMA ... OWNER TO the table's role"
            )
        return Home(schema, mine=True)
    named = sorted(
        (not safe, step, schema, held) for schema, step, safe, held, _ in found if step is not None
    )
    for unsafe, _, schema, held in named:
        if create and not unsafe:
            return Home(schema, mine=not held)
        if held and not create:
            return Home(schema, mine=False)
    if not create:
        raise LedgerError("the database holds no ledger of this role, nor does the search path")
    raise LedgerError(
        "no schema of the search path belongs to the role or to the database's owner; make one: "
        "CREATE SCHEMA AUTHORIZATION CURRENT_USER"
    )


def check_tables(connection: sa.Connection, home: Home, tables: Iterable[str]) -> set[str]:
    """Refuse tables on which something of others could run; the names of those that exist."""
    values = {"schema": home.schema, "mine": home.mine, "tables": list(tables)}
    found = list(connection.execute(_FAULTS, values))
    faults = {str(table): fault for _, table, fault in found}
    standing = look(lambda text: list(connection.exec_driver_sql(text)), [row[0] for row in found])
    for number, table, _ in found:
        if standing[number].fault == CODE and faults[table] is None:
            faults[table] = "has an index, statistics or a check with functions of another role"
    for table, fault in faults.items():
        if fault is not None:
            raise LedgerError(
                f"the table {table} in the schema {home.schema!r} {fault}: what others put there "
                "would run with the rights of this role; nothing was read or released"
            )
    return set(faults)


def copy_theirs(connection: sa.Connection, home: Home, tables: Iterable[sa.Table]) -> None:
    """Make temporary copies, for one transaction, of tables that are another role's.

    A table is copied row by row as it is stored: no plan is made, so nothing that hangs on it is
    computed, whatever was put there since it was looked at, or in its place. Where policies would
    make a question of it, the server refuses.
    """
    connection.exec_driver_sql("SET LOCAL row_security = off")
    driver: Any = connection.connection.driver_connection
    for table in tables:
        columns = ", ".join(column.name for column in table.columns)
        kinds = ", ".join(f"{c.name} {c.type.compile(connection.dialect)}" for c in table.columns)
        connection.exec_driver_sql(f"CREATE TEMP TABLE {table.name} ({kinds}) ON COMMIT DROP")
        try:
            with driver.cursor() as cursor:
                with cursor.copy(f"COPY {home.quoted}.{table.name} ({columns}) TO STDOUT") as rows:
                    held = [bytes(block) for block in rows]
                with cursor.copy(f"COPY pg_temp.{table.name} FROM STDIN") as copied:
                    for block in held:
                        copied.write(block)
        except connection.dialect.loaded_dbapi.Error as cause:
            told = str(cause).strip().split("\n")[0][:200]
            raise LedgerError(f"the ledger of another role: {told}; nothing was read") from None
