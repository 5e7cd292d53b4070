"""Where exact marginals come from. Only `measure.py` may ask for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from deniable.engines.frames import pandas_cells
from deniable.errors import ParameterError, ParameterTypeError
from deniable.held import Held, frameless
from deniable.privacy.units import Relation, read_relation
from deniable.synthesis.domain import Clique, Counts, Domain

_MOST_CELLS = 1 << 27


class PrivateMarginals(Protocol):
    """Exact marginals of private data, as whole numbers with a known sensitivity.

    Of one unit, `exact(clique)` holds whole numbers of 0 or more that sum to at most `bound`. They
    count rows in steps of 1/`steps`.
    """

    @property
    def domain(self) -> Domain:
        """What is declared about the columns."""

    @property
    def bound(self) -> int:
        """What one unit adds to a marginal in all, at most."""

    @property
    def steps(self) -> int:
        """Steps to one row."""

    @property
    def relation(self) -> Relation:
        """What neighbours are."""

    def exact(self, clique: Clique) -> Counts:
        """One marginal, shaped by the sizes of its columns. For the door alone."""


@dataclass(frozen=True, init=False, eq=False, repr=False)
class CodedRows:
    """Rows of codes in memory; every row is one unit.

    A row with a code outside of the declared domain is counted nowhere.
    """

    domain: Domain
    relation: Relation
    _codes: Held[npt.NDArray[np.int64]]

    bound = 1
    steps = 1

    @frameless
    def __init__(
        self,
        rows: Any,
        domain: Domain | Mapping[str, int],
        *,
        relation: Relation | str = Relation.ADD_REMOVE,
    ) -> None:
        declared = domain if isinstance(domain, Domain) else Domain(domain)
        codes = _codes(rows)
        if codes.ndim != 2 or codes.shape[1] != len(declared):
            raise ParameterError(
                "rows", "an array", f"must have {len(declared)} columns, as the domain declares"
            )
        if codes.dtype.kind not in "iub":
            raise ParameterTypeError("rows", "an array", "must hold codes: whole numbers")
        sizes = np.array(declared.sizes)
        inside = ((codes >= 0) & (codes < sizes)).all(axis=1)
        object.__setattr__(self, "domain", declared)
        object.__setattr__(self, "relation", read_relation(relation))
        # By column: each marginal reads few of them.
        own = codes[inside].astype(np.int64).T.copy()
        object.__setattr__(self, "_codes", Held(own, "rows of codes"))

    def __repr__(self) -> str:
        return f"CodedRows({len(self.domain)} columns)"

    def exact(self, clique: Clique) -> Counts:
        shape = self.domain.shape(clique)
        check_cells(self.domain, clique)
        codes = self._codes.open()
        cell = np.zeros(codes.shape[1], dtype=np.int64)
        for column, size in zip(clique, shape, strict=True):
            cell = cell * size + codes[self.domain.place(column)]
        return np.bincount(cell, minlength=self.domain.size(clique)).reshape(shape)


def _codes(rows: Any) -> npt.NDArray[Any]:
    """An array of codes; in lists and in pandas tables what is none is one of no domain.

    Of these the type of all cells would follow from one.
    """
    cells = pandas_cells(rows)
    if cells is None and isinstance(rows, list | tuple):
        try:
            cells = np.array([[*row] for row in rows], dtype=object)
        except Exception:  # what it says may quote a row
            raise ParameterError("rows", "a list", "must be rows of equal length") from None
    if cells is None:
        return np.asarray(rows)
    if cells.dtype.kind in "iub":
        return cells
    codes = np.fromiter(map(_code, cells.ravel().tolist()), np.int64, cells.size)
    return codes.reshape(cells.shape)


def _code(cell: Any) -> int:
    try:
        number = int(cell)
        return number if number == cell and -1 < number < _MOST_CELLS else -1
    except Exception:  # no number
        return -1


def check_cells(domain: Domain, clique: Clique) -> None:
    """Refuse marginals that no machine can hold."""
    if domain.size(clique) > _MOST_CELLS:
        raise ParameterError(
            "clique",
            " x ".join(clique),
            f"has {domain.size(clique):,} cells, above {_MOST_CELLS:,}; use fewer columns or bins",
        )
