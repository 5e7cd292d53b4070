"""Tables of Postgres that were opened: how questions see them, and why some are refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from deniable.engines.base import quoted
from deniable.engines.postgres_leaves import NATIVE
from deniable.postgres_tables import CODE, POLICIES, VIEW
from deniable.tables import Schema

_VIEW = (
    "is a view, or has foreign tables in it: what it shows of one person may hang on others. Give "
    "the table that it is made of; or, if each of its rows comes from one row of the same person, "
    "without chance and without a cast that can fail, say row_by_row=True"
)
_POLICIES = (
    "has policies that choose which of its rows this role sees; ask as a role that sees all rows "
    "(BYPASSRLS), or give a table without policies"
)
_CODE = (
    "has an index, statistics, partitions or a check with functions of another role, which would "
    "run with the rights of this one when a question is planned. Drop that, let the functions "
    "belong to this role or to an administrator, or give a copy (CREATE TABLE ... AS)"
)
OTHERS = (
    "belongs to another role, or a part of it does, who could hang functions on it that run with "
    "the rights of this one. If that role is trusted with all that this connection may read, say "
    "dp.postgres(..., trusted=[role]); else connect as its owner, let it belong to this role or to "
    "an administrator (ALTER TABLE ... OWNER TO), or grant this role what it takes to lock it "
    "(UPDATE; from Postgres 17 on, MAINTAIN)"
)
FOREIGN = (
    "reads foreign tables, which no transaction holds still: two statements of a question could "
    "see two states of them. Give a copy (CREATE TABLE ... AS), or a materialized view"
)
SENTENCES = {"": "", VIEW: _VIEW, POLICIES: _POLICIES, CODE: _CODE}
"""Why a table is refused, by what stands on it."""
CHANGED = "a table is no longer what it was when the session opened"
"""The sentence of a question whose table is another one now."""


@dataclass(frozen=True)
class Known:
    """A table of the session: its leaves, and the name under which statements find them."""

    schema: Schema
    unit: str | None
    leaves: str
    name: str
    is_fenced: bool  # a view: its own conditions come before those of a question

    def view(self) -> str:
        """The statement that opens it, for one transaction.

        A view is not copied: the server tells other roles how many rows a copy has. Each statement
        computes it, on the one snapshot of its question, before anything of its own.
        """
        if not self.is_fenced:
            return f"CREATE TEMP VIEW {quoted(self.name)} AS {self.leaves}"
        rows = f"WITH computed AS MATERIALIZED ({self.leaves}) SELECT * FROM computed"
        return f"CREATE TEMP VIEW {quoted(self.name)} AS {rows}"

    def shadow(self) -> str:
        """The statement that makes an empty table of the same columns under the same name."""
        columns = ", ".join(
            f"{quoted(name.lower())} {NATIVE[kind]}" for name, kind in self.schema.columns.items()
        )
        return f"CREATE TEMP TABLE {quoted(self.name)} ({columns})"

    def is_read(self, statements: Sequence[str]) -> bool:
        """Whether a statement names it."""
        return any(quoted(self.name) in text for text in statements)


@dataclass(frozen=True)
class OpenedTable:
    """What a table was when it was opened: number, what speaks against it, lock, and columns."""

    oid: int
    what: str
    lock: str
    columns: tuple[tuple[Any, ...], ...]

    @property
    def place(self) -> str:
        """Its name, with its schema."""
        return ".".join(map(quoted, self.columns[0][:2]))


def plan_of(place: str) -> str:
    """A statement that has the server plan to read a view, and lock what is in it; no row is."""
    return f"SELECT 1 FROM {place} LIMIT 0"
