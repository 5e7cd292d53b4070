"""What a query needs of an engine."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from deniable.engines.alike import Alike
from deniable.tables import ColumnType, Schema, Source

Rows = list[tuple[Any, ...]]


@dataclass(frozen=True)
class Step:
    """A SELECT, and tables that it needs first: by name, the SELECT that makes each.

    A table is made once in a snapshot, and not computed anew where it is read. `dense` ones are
    grouped by the unit, whose values often lie close together: engines may use that.
    `rows` is the part that the question decides, by which names and types can be checked.
    `constants` are the numbers, texts, days and times that the question names: canary rows try
    them. `veiled` steps apply functions to text or times, which an engine could choose by a
    column's statistics, that is by other people's rows: they are planned without any. A step about
    many columns that are `alike` is translated for one of them.
    """

    select: str
    rows: str
    tables: Mapping[str, str] = field(default_factory=dict)
    dense: frozenset[str] = frozenset()
    constants: tuple[Any, ...] = ()
    veiled: bool = False
    alike: Alike | None = None


class Snapshot(Protocol):
    """The data as they were at one time."""

    def run(self, step: Step) -> Rows:
        """The rows of a step, exact integers as int."""


class LazySnapshot:
    """A snapshot that is taken when the first step is run: answers on record need none."""

    def __init__(self, engine: Engine, reads: Sequence[Step], only: Collection[str]) -> None:
        self.reads = reads
        self._engine, self._only = engine, only
        self._stack = ExitStack()
        self._taken: Snapshot | None = None

    def run(self, step: Step) -> Rows:
        if self._taken is None:
            self._taken = self._stack.enter_context(
                self._engine.snapshot(self.reads, only=self._only)
            )
        return self._taken.run(step)

    def __enter__(self) -> LazySnapshot:
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)


@runtime_checkable
class Served(Protocol):
    """A table that only its own engine can read."""

    def engine(self) -> Engine:
        """A new connection to where the table is."""


class Engine(Protocol):
    """Runs SQL where the data are. One snapshot for all statements of one question."""

    dialect: str

    def add(
        self,
        name: str,
        source: Source,
        columns: Mapping[str, ColumnType] | None,
        unit: str | None = None,
        *,
        row_by_row: bool = False,
    ) -> Schema:
        """Make a source known under a name; its schema, declared or read from metadata.

        `unit` is the column that says whose row it is, if one does. A view is taken only where its
        owner says that it is made row by row.
        """

    def snapshot(
        self, reads: Sequence[Step] = (), *, only: Collection[str] | None = None
    ) -> AbstractContextManager[Snapshot]:
        """The data as they are now, for all steps of a question.

        `reads` are the steps that will be run, or others that name the same tables and columns as
        often; without any, each table may be read whole and often. No other table than `only`
        these is read, whatever a text or a name in a statement looks like.
        """

    def check(self, steps: Sequence[Step]) -> None:
        """Refuse what the engine would not run, by trying it on public rows in the same schema.

        Nothing of the tables themselves is read or planned with: outcome and sentence are the same
        whatever they hold.
        """

    def write(self, step: Step) -> list[str]:
        """The statements that the engine runs for a step."""

    def room(self) -> int | None:
        """How many bytes a question may take in memory and on disk, where the engine has limits."""

    def copied(self, steps: Sequence[Step]) -> Mapping[str, Sequence[str]]:
        """The tables of which it makes a copy before these steps, and the columns of the copies."""

    def cancel(self) -> None:
        """End what is running."""

    def close(self) -> None:
        """Let go of everything."""


def quoted(name: str) -> str:
    """An identifier that is nothing but a name."""
    return '"' + name.replace('"', '""') + '"'
