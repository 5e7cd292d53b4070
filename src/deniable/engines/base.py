"""What a query needs of an engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import pyarrow as pa

from deniable.tables import ColumnType, Schema, Source


class Engine(Protocol):
    """Runs SQL where the data are. One snapshot for all statements of one question."""

    dialect: str

    def add(self, name: str, source: Source, columns: Mapping[str, ColumnType] | None) -> Schema:
        """Make a source known under a name; its schema, declared or read from metadata."""

    def run(self, statements: Sequence[str]) -> list[pa.Table]:
        """Run statements in one snapshot."""

    def cancel(self) -> None:
        """End what is running."""

    def close(self) -> None:
        """Let go of everything."""
