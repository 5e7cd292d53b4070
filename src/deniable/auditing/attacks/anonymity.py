"""k-anonymity as it is published: generalised tables, and what a reader can find in them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from deniable.auditing.attacks.story import size
from deniable.errors import ParameterError, ParameterTypeError

Table = Any
"""Columns by name; an Arrow, pandas or polars table."""

_NUMBER = r"-?\d+(?:\.\d+)?"
_RANGE = re.compile(rf"({_NUMBER})\.\.({_NUMBER})")
_BELOW = re.compile(rf"<({_NUMBER})")
_FROM = re.compile(rf">=({_NUMBER})")


def is_k_anonymous(table: Table, quasi_identifiers: Sequence[str], k: int) -> bool:
    """Whether every combination of quasi-identifiers belongs to k rows or more (Sweeney 2002).

    It says nothing about what a reader learns: see `candidates`.
    """
    fewest = size()(k, "k")
    return all(count >= fewest for count in group_sizes(table, quasi_identifiers))


def group_sizes(table: Table, quasi_identifiers: Sequence[str]) -> tuple[int, ...]:
    """How many rows share each combination of quasi-identifiers, the fewest first."""
    read = read_table(table, quasi_identifiers)
    counts = read.group_by(list(quasi_identifiers)).aggregate([([], "count_all")])
    return tuple(sorted(counts["count_all"].to_pylist()))


def uniqueness(table: Table, quasi_identifiers: Sequence[str]) -> float:
    """The share of rows that are alone with their quasi-identifiers: a join finds them."""
    sizes = group_sizes(table, quasi_identifiers)
    return sizes.count(1) / sum(sizes) if sizes else 0.0


def mondrian(table: Table, quasi_identifiers: Sequence[str], k: int) -> pa.Table:
    """Generalise quasi-identifiers until the table is k-anonymous, as little as it takes.

    Mondrian (LeFevre, DeWitt & Ramakrishnan 2006): cut the widest column at its median while both
    sides keep k rows. Numbers become ranges "20..29", other values lists "A|B". Rows keep their
    order; other columns stay as they are.
    """
    fewest = size()(k, "k")
    read = read_table(table, quasi_identifiers)
    if read.num_rows < fewest:
        raise ParameterError("k", k, "the table has fewer rows than that")
    values = [read[name].to_numpy(zero_copy_only=False) for name in quasi_identifiers]
    codes = np.column_stack([_code(column) for column in values])
    labels = [np.empty(read.num_rows, dtype=object) for _ in values]
    for rows in partition(codes, fewest):
        for label, column in zip(labels, values, strict=True):
            label[rows] = _generalised(column[rows])
    for name, label in zip(quasi_identifiers, labels, strict=True):
        read = read.set_column(read.column_names.index(name), name, pa.array(label, pa.string()))
    return read


def partition(points: npt.NDArray[np.float64], k: int) -> list[npt.NDArray[np.intp]]:
    """Mondrian's groups of rows, each of k or more."""
    spans = np.ptp(points, axis=0)
    spans[spans == 0] = 1
    groups, waiting = [], [np.arange(len(points))]
    while waiting:
        rows = waiting.pop()
        halves = _cut(points[rows], spans, k)
        if halves is None:
            groups.append(rows)
        else:
            waiting += [rows[halves], rows[~halves]]
    return groups


def _cut(
    points: npt.NDArray[np.float64], spans: npt.NDArray[np.float64], k: int
) -> npt.NDArray[np.bool_] | None:
    """The lower half of the widest column that can be cut, or None."""
    if len(points) < 2 * k:
        return None
    widths = np.ptp(points, axis=0) / spans
    for column in np.argsort(-widths, kind="stable"):
        low: npt.NDArray[np.bool_] = points[:, column] <= np.median(points[:, column])
        if k <= low.sum() <= len(points) - k:
            return low
    return None


def candidates(
    table: Table,
    victim: Mapping[str, Any],
    sensitive: str,
    *,
    ruled_out: Iterable[Any] = (),
) -> frozenset[Any]:
    """The sensitive values that a person with these quasi-identifiers may have, as published.

    One value left is a disclosure: homogeneity. What the reader knows better goes into `ruled_out`:
    background knowledge. Two tables about the same person: intersect what they give.
    """
    given: object = victim
    if not (isinstance(given, Mapping) and given):
        raise ParameterTypeError("victim", type(victim).__name__, "must map columns to values")
    read = read_table(table, [*victim, sensitive])
    fits = np.ones(read.num_rows, dtype=np.bool_)
    for name, value in victim.items():
        cells = read[name].to_pylist()
        matching = {cell for cell in set(cells) if covers(cell, value)}
        fits &= np.array([cell in matching for cell in cells], dtype=np.bool_)
    known = set(ruled_out)
    found = read[sensitive].filter(pa.array(fits)).to_pylist()
    return frozenset(value for value in found if value not in known)


def covers(cell: Any, value: Any) -> bool:
    """Whether a generalised cell may stand for a value.

    Cells are values, "*", texts with stars for characters ("130**"), ranges ("20..29"), "<30",
    ">=40" and lists ("A|B").
    """
    if cell == value or cell in {"*", str(value)}:
        return True
    if not isinstance(cell, str):
        return False
    if "*" in cell:
        pattern = re.escape(cell).replace(r"\*", ".")
        return re.fullmatch(pattern, str(value)) is not None
    if isinstance(value, int | float | np.number) and not isinstance(value, bool):
        if found := _RANGE.fullmatch(cell):
            return bool(float(found[1]) <= value <= float(found[2]))
        if found := _BELOW.fullmatch(cell):
            return bool(value < float(found[1]))
        if found := _FROM.fullmatch(cell):
            return bool(value >= float(found[1]))
    return str(value) in cell.split("|")


def read_table(table: Table, needed: Sequence[str]) -> pa.Table:
    """Read columns by name; those that are needed must be there."""
    if isinstance(needed, str) or not all(isinstance(name, str) for name in needed) or not needed:
        raise ParameterTypeError("quasi_identifiers", needed, "must be a list of column names")
    try:
        read = table if isinstance(table, pa.Table) else pa.table(table)
    except (TypeError, ValueError, pa.ArrowException):
        raise ParameterTypeError(
            "table", type(table).__name__, "must be columns by name, or a table of one type each"
        ) from None
    missing = [name for name in needed if name not in read.column_names]
    if missing:
        raise ParameterError(
            "columns", missing, f"not in the table, which has {', '.join(read.column_names)}"
        )
    return read


def _code(column: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Numbers as they are, other values by their rank."""
    if column.dtype.kind in "iuf":
        return column.astype(np.float64)
    return np.unique(column.astype(str), return_inverse=True)[1].astype(np.float64)


def _generalised(values: npt.NDArray[Any]) -> str:
    if values.dtype.kind in "iuf":
        return f"{values.min()}..{values.max()}"
    return "|".join(sorted(set(values.astype(str).tolist())))
