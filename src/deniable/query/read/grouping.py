"""GROUP BY: which columns, in which groupings, and totals that agree with their parts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, product

import numpy as np
import numpy.typing as npt
from sqlglot import exp

from deniable.errors import QueryError

Floats = npt.NDArray[np.float64]
Set = tuple[int, ...]

_MOST_SETS = 64


def grouped_by(
    group: exp.Group, text: Callable[[exp.Expr], str]
) -> tuple[list[exp.Expr], list[Set]]:
    """The expressions that are grouped by, and the groupings: places of expressions."""
    if group.args.get("totals"):
        raise QueryError("WITH TOTALS is not answered; use ROLLUP")
    elements = list(group.expressions)
    for clause, made in (("rollup", exp.Rollup), ("cube", exp.Cube)):
        if group.args.get(clause):  # GROUP BY a, b WITH ROLLUP
            elements = [made(expressions=elements)]
    sets = [
        [part for each in combined for part in each]
        for combined in product(*(_sets(element) for element in elements))
    ]
    if len(sets) > _MOST_SETS:
        raise QueryError(f"{len(sets):,} groupings in one question are too many; ask for fewer")
    columns: dict[str, exp.Expr] = {}
    for each in sets:
        for part in each:
            columns.setdefault(text(part), part)
    names = list(columns)
    found = [tuple(sorted({names.index(text(part)) for part in each})) for each in sets]
    if len(set(found)) != len(found):
        raise QueryError("the same grouping stands twice in GROUP BY; write it once")
    return list(columns.values()), found


def _sets(element: exp.Expr) -> list[list[exp.Expr]]:
    parts = [_together(each) for each in element.expressions]
    if isinstance(element, exp.Rollup):
        return [_flat(parts[:end]) for end in range(len(parts), -1, -1)]
    if isinstance(element, exp.Cube):
        sizes = range(len(parts), -1, -1)
        return [_flat(chosen) for size in sizes for chosen in combinations(parts, size)]
    if isinstance(element, exp.GroupingSets):
        return [each for inner in element.expressions for each in _one(inner)]
    return [[element]]


def _one(inner: exp.Expr) -> list[list[exp.Expr]]:
    nested = isinstance(inner, exp.Rollup | exp.Cube | exp.GroupingSets)
    return _sets(inner) if nested else [_together(inner)]


def _together(element: exp.Expr) -> list[exp.Expr]:
    """Columns in brackets come and go together."""
    if isinstance(element, exp.Tuple):
        return list(element.expressions)
    return [element.this] if isinstance(element, exp.Paren) else [element]


def _flat(parts: Sequence[list[exp.Expr]]) -> list[exp.Expr]:
    return [each for part in parts for each in part]


def agreeing(tables: Mapping[Set, Floats]) -> dict[Set, Floats]:
    """Tables of noisy sums over several groupings, moved the least so that all totals agree.

    `tables` has one axis for each column of its grouping, in order; noise has one variance. The
    answer is that of least squares: for each set A of columns, what only A together tells (means
    along each axis of A taken off) is the mean over all tables that tell it, weighted by one over
    the number of cells that a cell of A sums, which is its variance (the parts of different A are
    orthogonal; Barak et al. 2007, Sec. 4). The variance of no entry grows.
    """
    sizes = ((known, table.shape) for known, table in tables.items())
    shape = {axis: n for known, lengths in sizes for axis, n in zip(known, lengths, strict=True)}
    parts: dict[Set, Floats] = {}
    for axes in {sub for known in tables for sub in _subsets(known)}:
        total, weight = np.zeros([shape[axis] for axis in axes]), 0.0
        for known, table in tables.items():
            if set(axes) <= set(known):
                summed = tuple(n for n, axis in enumerate(known) if axis not in axes)
                more = math.prod(shape[axis] for axis in known if axis not in axes)
                total, weight = total + table.sum(axis=summed) / more, weight + 1 / more
        part = total / weight
        for place in range(part.ndim):
            part = part - part.mean(axis=place, keepdims=True)
        parts[axes] = part
    return {known: _rebuilt(known, parts, shape) for known in tables}


def _rebuilt(known: Set, parts: Mapping[Set, Floats], shape: Mapping[int, int]) -> Floats:
    made = np.zeros([shape[axis] for axis in known])
    for axes in _subsets(known):
        missing = [axis for axis in known if axis not in axes]
        wide = parts[axes].reshape([shape[axis] if axis in axes else 1 for axis in known])
        made = made + wide / math.prod(shape[axis] for axis in missing)
    return made


def _subsets(known: Set) -> list[Set]:
    return [each for size in range(len(known) + 1) for each in combinations(known, size)]
