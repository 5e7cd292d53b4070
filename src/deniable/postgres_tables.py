"""What may stand on a table of Postgres that we read: a closed list.

Whoever owns a table can hang expressions on it: in an index, in statistics, in the key of its
partitions, in a check. The server computes their constant parts while it plans a question to the
table, with the rights of who asks. So a table is read only if it is plain, in all of its parts, and
if whatever its expressions name is the server's own, or belongs to the asking role, to an
administrator (a superuser, the owner of the database) or to a role that the owner of the data
trusts. Defaults and triggers are not computed by who reads.

The labels of an enumeration are not part of a snapshot: whoever owns the type can rename them
between two statements. So such a column is read only if its type belongs to the same roles, and its
labels are part of what the table is.

What was looked at must still hold when it is read. Tables of the role and of administrators get
nothing new but by them. The owner of another could add an index or a part at any time: who reads it
either holds a lock that keeps off whatever could add one (`STILL`), or copies it, for `COPY` of a
table plans nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

SHARED = "ACCESS SHARE"
"""The lock under which a table keeps its kind, its columns, its policies and its checks."""
STILL = "SHARE UPDATE EXCLUSIVE"
"""The lock under which it gets no index, statistics or parts either."""

VIEW, POLICIES, CODE = "view", "policies", "code"

# Objects on which an expression depends are in pg_depend, save those that came with the server.
# Operators and types of the two kinds that only administrators make (base types, operator classes)
# are harmless; an enumeration has no code.
_TRUSTED = """trusted AS (
        SELECT oid AS role FROM pg_roles WHERE rolsuper OR rolname = current_user
        UNION SELECT datdba FROM pg_database WHERE datname = current_database()
        UNION SELECT oid FROM pg_roles WHERE rolname = ANY(CAST(ARRAY[{roles}] AS text[]))
    )"""
_LOOK = """
    WITH RECURSIVE parts (root, id) AS (
        SELECT id, id FROM unnest(CAST(ARRAY[{numbers}] AS oid[])) AS id
        UNION SELECT p.root, i.inhrelid FROM pg_inherits i JOIN parts p ON i.inhparent = p.id
    ), tables AS (
        SELECT DISTINCT c.oid AS id, c.relkind, c.relowner, row_security_active(c.oid) AS chooses
        FROM parts p JOIN pg_class c ON c.oid = p.id
    ), {trusted}, carriers (id, kind, number) AS (
        SELECT indrelid, 'pg_class'::regclass, indexrelid FROM pg_index
        UNION ALL SELECT stxrelid, 'pg_statistic_ext'::regclass, oid FROM pg_statistic_ext
        UNION ALL SELECT conrelid, 'pg_constraint'::regclass, oid FROM pg_constraint
            WHERE contype = 'c'
        UNION ALL SELECT partrelid, 'pg_class'::regclass, partrelid FROM pg_partitioned_table
            WHERE partexprs IS NOT NULL
    ), named AS (
        SELECT t.id, d.refclassid AS kind, d.refobjid AS number
        FROM tables t JOIN carriers c ON c.id = t.id
            JOIN pg_depend d ON d.classid = c.kind AND d.objid = c.number
    ), strange AS (
        SELECT n.id FROM named n WHERE NOT CASE
            WHEN n.kind = ANY(CAST('{{pg_class, pg_constraint, pg_collation, pg_namespace, pg_am,
                pg_opclass, pg_extension}}' AS regclass[])) THEN TRUE
            WHEN n.kind = 'pg_proc'::regclass THEN EXISTS (
                SELECT FROM pg_proc f JOIN trusted ON role = f.proowner WHERE f.oid = n.number)
            WHEN n.kind = 'pg_operator'::regclass THEN EXISTS (
                SELECT FROM pg_operator o JOIN pg_proc f ON f.oid = o.oprcode
                    JOIN trusted mine ON mine.role = o.oprowner
                    JOIN trusted its ON its.role = f.proowner
                WHERE o.oid = n.number)
            WHEN n.kind = 'pg_ts_config'::regclass THEN EXISTS (
                SELECT FROM pg_ts_config s JOIN trusted ON role = s.cfgowner
                WHERE s.oid = n.number)
            WHEN n.kind = 'pg_type'::regclass THEN EXISTS (
                SELECT FROM pg_type t LEFT JOIN pg_type e ON e.oid = t.typelem
                WHERE t.oid = n.number AND t.typtype IN ('b', 'e')
                    AND COALESCE(e.typtype, 'b') IN ('b', 'e'))
            ELSE FALSE END
    )
    SELECT p.root, array_agg(t.id ORDER BY t.id), CASE
            WHEN NOT bool_and(t.relkind IN ('r', 'p')) THEN '{view}'
            WHEN bool_or(t.chooses) THEN '{policies}'
            WHEN bool_or(t.id IN (SELECT id FROM strange)) THEN '{code}' ELSE '' END,
        bool_and(t.relowner IN (SELECT role FROM trusted)),
        bool_and(EXISTS (
            SELECT FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'relation' AND granted
                AND relation = t.id AND (mode = 'ShareUpdateExclusiveLock'
                                         OR t.relowner IN (SELECT role FROM trusted))))
    FROM parts p JOIN tables t ON t.id = p.id GROUP BY p.root
"""
_COLUMNS = """
    WITH {trusted}
    SELECT n.nspname, c.relname, a.attname,
        CASE WHEN t.typtype = 'e' AND t.typowner IN (SELECT role FROM trusted) THEN 'enum'
            WHEN t.typtype <> 'e' AND t.typnamespace = 'pg_catalog'::regnamespace THEN t.typname
            ELSE '' END,
        CASE WHEN t.oid = 'numeric'::regtype AND a.atttypmod > 4
            THEN ((a.atttypmod - 4) & 2047 # 1024) - 1024 END,
        CASE WHEN t.typtype = 'e' AND t.typowner IN (SELECT role FROM trusted) THEN ARRAY(
            SELECT CAST(ROW(e.oid, e.enumsortorder, e.enumlabel) AS text)
            FROM pg_enum e WHERE e.enumtypid = t.oid ORDER BY e.enumsortorder) END
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        JOIN pg_attribute a ON a.attrelid = c.oid JOIN pg_type t ON t.oid = a.atttypid
    WHERE c.oid = {number} AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated <> 'v'
    ORDER BY a.attnum
"""
# Locks are as they are, whatever the snapshot of the transaction knows; so a table whose entry is
# not seen counts. Indexes and long texts come with their tables.
_TOUCHED = """
    SELECT l.relation FROM pg_locks l LEFT JOIN pg_class c ON c.oid = l.relation
    WHERE l.pid = pg_backend_pid() AND l.locktype = 'relation' AND l.relation >= 16384
        AND CASE WHEN c.oid IS NULL THEN pg_get_indexdef(l.relation) IS NULL
            ELSE c.relkind NOT IN ('i', 'I', 't') AND c.relnamespace <> pg_my_temp_schema() END
"""
_FOREIGN = """
    SELECT l.relation FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
    WHERE l.pid = pg_backend_pid() AND l.locktype = 'relation' AND c.relkind = 'f' LIMIT 1
"""
# The table from which a temporary view reads, whatever its name has come to mean since.
_BEHIND = """
    SELECT DISTINCT d.refobjid FROM pg_rewrite r
        JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid
    WHERE r.ev_class = to_regclass('pg_temp.{view}') AND d.refclassid = 'pg_class'::regclass
        AND d.refobjid <> r.ev_class
"""

Run = Callable[[str], Sequence[Sequence[Any]]]


@dataclass(frozen=True)
class Standing:
    """A table and its parts: what speaks against reading it, and whether its owners are trusted."""

    parts: tuple[int, ...]
    fault: str
    is_trusted: bool
    is_locked: bool  # by this transaction, so that it stays

    @property
    def lock(self) -> str:
        """The lock under which it stays as it is."""
        return SHARED if self.is_trusted else STILL


def look(run: Run, numbers: Iterable[int], trusted: Sequence[str] = ()) -> dict[int, Standing]:
    """How tables stand, by their numbers in the catalogue, which is the only schema on the path.

    Nothing on the tables is computed by looking. Beside administrators, `trusted` roles may own
    tables and what hangs on them.
    """
    text = _LOOK.format(
        numbers=_listed(numbers), trusted=_roles(trusted), view=VIEW, policies=POLICIES, code=CODE
    )
    return {
        int(root): Standing(tuple(map(int, parts)), str(fault), bool(trusted), bool(locked))
        for root, parts, fault, trusted, locked in run(text)
    }


def columns_of(run: Run, number: int, trusted: Sequence[str] = ()) -> list[tuple[Any, ...]]:
    """Schema, table, column, native type, decimal places and labels of each column of a table.

    An enumeration of a role that is not trusted is of no known type. Columns that are computed as
    they are read are not among them: one row could make that fail.
    """
    return [
        (*row, None if labels is None else tuple(labels))
        for *row, labels in run(_COLUMNS.format(number=int(number), trusted=_roles(trusted)))
    ]


def touched(run: Run) -> frozenset[int]:
    """The tables that this transaction has read or locked, save temporary ones.

    A part that was added after a look is read in spite of the transaction's snapshot, and is here.
    """
    return frozenset(int(number) for (number,) in run(_TOUCHED))


def reads_foreign(run: Run) -> bool:
    """Whether this transaction has locked a foreign table, as it does when it plans to read one."""
    return bool(run(_FOREIGN))


def behind(run: Run, view: str) -> frozenset[int]:
    """The tables from which a temporary view reads; its name is a plain one."""
    return frozenset(int(number) for (number,) in run(_BEHIND.format(view=view)))


def _roles(trusted: Sequence[str]) -> str:
    """The roles whose code may run, as a part of a statement."""
    names = ", ".join("'" + each.replace("'", "''") + "'" for each in trusted)
    return _TRUSTED.format(roles=names)


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(str(int(number)) for number in numbers)
