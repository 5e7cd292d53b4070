"""The shadow of a session's tables in DuckDB: public rows in the same schema.

Questions are tried here before they are charged. No file, view or other database is in reach.
"""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections.abc import Sequence

import duckdb as driver

from deniable.engines import faults
from deniable.engines.base import Step, quoted
from deniable.engines.canaries import canaries, most_named, rows_to_try
from deniable.engines.scratch import Scratch, forget, scratch
from deniable.engines.statements import UNSHARED, VEILED, Statements, set_to
from deniable.errors import QueryError, is_stop
from deniable.tables import SQL_TYPES, ColumnType, Schema

_REMEMBERED = 4_096
_PASSED: set[bytes] = set()
"""What passed on tables of a schema: on the same public rows it passes in every session."""
# Else a planner that sees few rows leaves out what should be tried.
_UNPRUNED = f"{VEILED},empty_result_pullup"


class Shadow:
    """Tables of canonical columns, filled anew for each question; opened when first needed."""

    def __init__(self) -> None:
        self._tables: dict[str, tuple[Schema, str | None]] = {}
        self._home: Scratch | None = None
        self._connection: driver.DuckDBPyConnection | None = None
        self._lock = threading.Lock()

    def add(self, name: str, schema: Schema, unit: str | None) -> None:
        with self._lock:
            self._tables[name] = (schema, unit)
            self._forget()

    def check(self, steps: Sequence[Step]) -> None:
        """Run the statements on canaries, and refuse what fails; what passed is remembered."""
        with self._lock:
            mark = self._mark(steps)
            if mark in _PASSED:
                return
            home = scratch()
            with home.lock:
                if self._home is not home:  # opened anew since
                    self._forget()
                    self._home = home
                told = self._tried(steps, home)
            if told is None:
                if len(_PASSED) >= _REMEMBERED:
                    _PASSED.clear()
                _PASSED.add(mark)
                return
        raise QueryError(told)

    def _mark(self, steps: Sequence[Step]) -> bytes:
        """Of all that the outcome hangs on."""
        tables = [
            (name, tuple(schema.columns.items()), unit)
            for name, (schema, unit) in self._tables.items()
        ]
        asked = [
            (s.select, s.rows, tuple(s.tables.items()), sorted(s.dense), s.constants, s.veiled)
            for s in steps
        ]
        return hashlib.sha256(repr((tables, asked)).encode()).digest()

    def close(self) -> None:
        with self._lock:
            self._forget()

    def _tried(self, steps: Sequence[Step], home: Scratch) -> str | None:
        """What is wrong with the statements, or None."""
        try:
            connection = self._open(home)
            connection.execute("BEGIN TRANSACTION")
            for step in steps:
                for text in (step.select, step.rows, *step.tables.values()):
                    one_select(connection, text)
            self._fill(connection, steps)
            set_to(connection, "disabled_optimizers", _UNPRUNED)
            for rows in {step.rows for step in steps}:
                connection.execute(f"EXPLAIN {rows}")
            # As tables are read: planners compute with extremes, and may fail at it.
            set_to(connection, "disabled_optimizers", UNSHARED)
            statements = Statements(connection)
            for step in steps:
                statements.run(step)
        except QueryError:
            raise
        except Exception as error:
            if is_stop(error):
                raise KeyboardInterrupt from None
            if is_lasting(error):
                self._forget()
                forget()
            return _kind(error)
        finally:
            self._roll_back()
        return None

    def _open(self, home: Scratch) -> driver.DuckDBPyConnection:
        if self._connection is None:
            self._connection = home.connection.cursor()
            for name, (schema, _) in self._tables.items():
                columns = ", ".join(
                    f"{quoted(column.lower())} {_stored(kind)}"
                    for column, kind in schema.columns.items()
                )
                self._connection.execute(f"CREATE TEMP TABLE {quoted(name)} ({columns})")
        return self._connection

    def _roll_back(self) -> None:
        """Away with rows and made tables; a connection that cannot is thrown away."""
        if self._connection is not None:
            try:
                self._connection.execute("ROLLBACK")
                set_to(self._connection, "disabled_optimizers", UNSHARED)
            except Exception:
                self._forget()
                forget()

    def _forget(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(Exception):
                self._connection.close()
            self._connection = None

    def _fill(self, connection: driver.DuckDBPyConnection, steps: Sequence[Step]) -> None:
        texts = [text for step in steps for text in (step.select, *step.tables.values())]
        rows = rows_to_try(most_named(self._tables, texts))
        constants = list(dict.fromkeys(value for step in steps for value in step.constants))
        for name, (schema, unit) in self._tables.items():
            if not most_named([name], texts):
                continue
            made = canaries(schema, unit, constants, rows)
            columns = ", ".join(quoted(column.lower()) for column in made)
            lists = ", ".join(f"unnest(?::{SQL_TYPES[schema.columns[each]]}[])" for each in made)
            connection.execute(
                f"INSERT INTO {quoted(name)} ({columns}) SELECT {lists}", list(made.values())
            )


def one_select(connection: driver.DuckDBPyConnection, text: str) -> None:
    """Whatever was written is one SELECT and nothing else."""
    found = connection.extract_statements(text)
    if len(found) != 1 or found[0].type != driver.StatementType.SELECT:
        raise QueryError(faults.UNSAFE)


def is_lasting(error: BaseException) -> bool:
    """Whether a failure may make all later statements fail."""
    return isinstance(error, driver.InternalException | driver.FatalException)


def _stored(kind: ColumnType) -> str:
    """As a leaf types its column."""
    return "VARCHAR COLLATE C" if kind == ColumnType.TEXT else SQL_TYPES[kind]


def _kind(error: BaseException) -> str:
    if isinstance(error, driver.ParserException | driver.SyntaxException):
        return faults.SYNTAX
    if isinstance(error, driver.CatalogException):
        return faults.NAMES
    if isinstance(error, driver.BinderException | driver.NotImplementedException):
        return faults.TYPES
    return faults.VALUES
