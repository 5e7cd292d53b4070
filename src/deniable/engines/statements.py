"""The statements of a question on one connection of DuckDB, within a transaction."""

from __future__ import annotations

import re

import duckdb as driver

from deniable.engines.base import Rows, Step
from deniable.engines.sources import string_literal

UNSHARED = "common_subexpressions"
"""A shared part of two expressions would be taken out of the TRY around each, and could raise."""

VEILED = f"{UNSHARED},statistics_propagation"
"""An engine may choose how to compute a function of text or times by a column's statistics, which
hang on other people's rows."""

PINNED = {
    "disabled_optimizers": UNSHARED,
    "default_collation": "",
    "default_null_order": "NULLS_LAST",
    "default_order": "ASC",
    "integer_division": "false",
    "ieee_floating_point_ops": "true",
    "old_implicit_casting": "false",
    "perfect_ht_threshold": "12",
    "TimeZone": "UTC",
}
"""Settings on which the meaning of a statement hangs."""


class Statements:
    """Runs steps, which share the tables that they have in common."""

    def __init__(self, connection: driver.DuckDBPyConnection) -> None:
        self._connection = connection
        self._made: dict[str, str] = {}

    def run(self, step: Step) -> Rows:
        if step.veiled:
            set_to(self._connection, "disabled_optimizers", VEILED)
        for name, text in step.tables.items():
            if self._made.get(name) != text:
                self._forget(name)
                self._made[name] = text
                self._make(name, text, dense=name in step.dense)
        rows = self._connection.execute(step.select).fetchall()
        if step.veiled:
            set_to(self._connection, "disabled_optimizers", UNSHARED)
        return rows

    def _forget(self, name: str) -> None:
        """What was made of a table is gone with it, whichever step comes to read that again.

        A text tells what a table is made of only while the tables that it names stay as they are.
        """
        self._made.pop(name, None)
        named = re.compile(rf"\b{re.escape(name)}\b")
        for other in [each for each, text in self._made.items() if named.search(text)]:
            self._forget(other)

    def _make(self, name: str, text: str, *, dense: bool) -> None:
        """Dense integers are grouped without hashing: faster for one column, slower else."""
        if not dense:
            self._connection.execute(made_table(name, text))
            return
        set_to(self._connection, "perfect_ht_threshold", "24")
        self._connection.execute(made_table(name, text))
        set_to(self._connection, "perfect_ht_threshold", "12")


def set_to(connection: driver.DuckDBPyConnection, name: str, value: str) -> None:
    """Change a setting."""
    connection.execute(f"SET {name} = {string_literal(value)}")


def made_table(name: str, select: str) -> str:
    """The statement that keeps the rows of a SELECT."""
    return f"CREATE OR REPLACE TEMP TABLE {name} AS {select}"
