"""The domain: which columns there are, and how many values each can have. Declared, never found."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from deniable.errors import ParameterError, ParameterTypeError
from deniable.privacy.exact import whole
from deniable.tables import nearest

Clique = tuple[str, ...]
"""Columns that are looked at together, in the order of the domain."""

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int64]

_MOST_VALUES = 1_000_000


@dataclass(frozen=True, init=False)
class Domain:
    """Names of columns and the number of values of each: public, whatever the data are.

    Values are the codes 0, 1, ..., size - 1.
    """

    columns: tuple[str, ...]
    sizes: tuple[int, ...]

    def __init__(self, sizes: Mapping[str, int]) -> None:
        given: object = sizes
        if not isinstance(given, Mapping) or not given:
            raise ParameterTypeError("domain", type(sizes).__name__, "must map columns to sizes")
        known: dict[str, int] = {}
        for name, size in sizes.items():
            if not isinstance(name, str):
                raise ParameterTypeError("domain", name, "columns have names")
            count = whole(size, "domain")
            if count > _MOST_VALUES:
                raise ParameterError(
                    "domain", count, f"{name} has more than {_MOST_VALUES:,} values; group them"
                )
            known[str.__str__(name)] = count
        object.__setattr__(self, "columns", tuple(known))
        object.__setattr__(self, "sizes", tuple(known.values()))

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def cells(self) -> int:
        """The number of different records there could be."""
        return math.prod(self.sizes)

    def size_of(self, column: str) -> int:
        return self.sizes[self.place(column)]

    def place(self, column: str) -> int:
        if column not in self.columns:
            raise ParameterError("column", column, f"is unknown; {nearest(column, self.columns)}")
        return self.columns.index(column)

    def shape(self, clique: Clique) -> tuple[int, ...]:
        return tuple(self.size_of(column) for column in clique)

    def size(self, clique: Clique) -> int:
        return math.prod(self.shape(clique))

    def clique(self, columns: Iterable[str]) -> Clique:
        """Columns as a clique: each once, in the order of the domain, by the domain's own names."""
        if isinstance(columns, str):
            columns = (columns,)
        return tuple(self.columns[place] for place in sorted({self.place(c) for c in columns}))


def widen(table: Floats, clique: Clique, within: Clique) -> Floats:
    """A table over a clique, shaped so that it broadcasts over a larger one in the same order."""
    lengths = dict(zip(clique, table.shape, strict=True))
    return table.reshape([lengths.get(column, 1) for column in within])


def project(table: Floats, within: Clique, clique: Clique) -> Floats:
    """The sums of a table over a smaller clique in the same order."""
    axes = tuple(axis for axis, column in enumerate(within) if column not in clique)
    return table.sum(axis=axes) if axes else table
