"""A question's numbers: read from the engine in one snapshot, released through the door."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from deniable.engines.base import LazySnapshot, Rows
from deniable.held import Held
from deniable.query.plan.measures import Located
from deniable.query.plan.plan import SCALE, Plan
from deniable.query.plan.quantiles import in_order
from deniable.query.price.estimate import storable
from deniable.query.price.price import Priced, RankNoise
from deniable.release import Door

Key = tuple[Any, ...]


def draw(priced: Priced, snapshot: LazySnapshot, door: Door, secret: str) -> dict[str, Any]:
    """Keys and noisy columns, as the ledger stores them."""
    plan, read = priced.plan, _Reader(snapshot, priced, secret)
    if len(plan.counted.sets) > 1:
        return _several(priced, door, read)
    keys = _public_keys(plan)
    columns: list[Any] = []
    if keys:
        if priced.joint is not None:
            drawn = _listed(door.draw(priced.joint, partial(read.totals, 0, keys)))
            columns += [[int(v) / SCALE for v in each] for each in zip(*drawn, strict=True)]
        if priced.once is not None:
            (counts,) = _listed(door.draw(priced.once, partial(read.one_row, "once")))
            for place, count in zip(plan.once, counts, strict=True):
                columns[place] = [int(count)]
        for number, mechanism in enumerate(priced.distinct):
            drawn = _listed(door.draw(mechanism, partial(read.distinct, keys, number)))
            columns.append([int(row[0]) for row in drawn])
        columns += _quantiles(priced, door, read, keys)
    stored: dict[str, Any] = {
        "keys": [list(_stored(key)) for key in keys],
        "columns": columns,
    }
    if priced.heavy is not None:
        drawn = _listed(door.draw(priced.heavy, partial(read.heavy, keys)))
        stored["heavy"] = [[int(v) / SCALE for v in each] for each in zip(*drawn, strict=True)]
    if priced.cut is not None:
        ((cut,),) = _listed(door.draw(priced.cut, partial(read.one_row, "cut")))
        stored["cut"] = int(cut) / SCALE
    return stored


def _several(priced: Priced, door: Door, read: _Reader) -> dict[str, Any]:
    """The same for several groupings, one after the other; columns not grouped by are None."""
    plan, rows, keys = priced.plan, [], []
    assert priced.joint is not None
    for number, (each, one) in enumerate(zip(plan.counted.sets, plan.groupings, strict=True)):
        found = _public_keys(one)
        rows += _listed(door.draw(priced.joint, partial(read.totals, number, found)))
        for key in found:
            parts = dict(zip(each, _stored(key), strict=True))
            keys.append([parts.get(place) for place in range(len(plan.counted.groups))])
    columns = [[int(v) / SCALE for v in each] for each in zip(*rows, strict=True)]
    return {"keys": keys, "columns": columns}


class _Reader:
    """Runs a question's statements, each once, when its numbers are needed."""

    def __init__(self, snapshot: LazySnapshot, priced: Priced, secret: str) -> None:
        self._snapshot, self._priced = snapshot, priced
        self._steps = priced.steps(secret)
        self._results: Held[dict[str, Rows]] = Held({}, "exact results")

    def _run(self, name: str) -> Rows:
        results = self._results.open()
        if name not in results:
            results[name] = self._snapshot.run(self._steps[name])
        return results[name]

    def totals(self, number: int, keys: list[Key]) -> list[list[int]]:
        """The bounded statistics of these groups of a grouping."""
        return self._by_key(f"totals {number}", keys, len(self._priced.plan.counted.statistics))

    def heavy(self, keys: list[Key]) -> list[list[int]]:
        """What is kept of units beyond the bound, of each statistic."""
        return self._by_key("heavy", keys, len(self._priced.plan.counted.statistics))

    def distinct(self, keys: list[Key], number: int) -> list[list[int]]:
        """How many different values these groups have."""
        return self._by_key(f"distinct {number}", keys, 1)

    def one_row(self, name: str) -> list[list[int]]:
        """The only row of a statement without groups."""
        (row,) = self._run(name)
        return [[int(each or 0) for each in row]]

    def cells(self, keys: list[Key], number: int) -> list[list[int]]:
        """The weights in the cells of a grid, by group."""
        width, size = (
            len(self._priced.plan.counted.groups),
            self._priced.plan.counted.grids[number].cells,
        )
        found = {_stored(key): [0] * size for key in keys}
        for row in self._run(f"cells {number}"):
            weights = found.get(_stored(row[:width]))
            if weights is not None:
                weights[min(int(row[width]), size - 1)] += int(row[width + 1])
        return [found[_stored(key)] for key in keys]

    def _by_key(self, name: str, keys: list[Key], width: int) -> list[list[int]]:
        """So many numbers of each of these groups; those without rows have zeros."""
        rows = self._run(name)
        found = {_stored(row[:-width]): [int(v or 0) for v in row[-width:]] for row in rows}
        assert len(found) == len(rows), "two groups look alike"
        return [found.get(_stored(key), [0] * width) for key in keys]


def _quantiles(
    priced: Priced, door: Door, read: _Reader, keys: list[Key]
) -> list[list[float | None]]:
    """Columns of quantiles, each beside the ends of its interval."""
    found, few = [], []
    for rank, law in zip(priced.plan.counted.ranks, priced.ranks, strict=True):
        grid, weights = priced.plan.counted.grids[rank.grid], partial(read.cells, keys, rank.grid)
        value, low, high = (
            None if each is None else _listed(door.draw(each, weights))
            for each in (law.value, law.low, law.high)
        )
        assert value is not None
        least = [grid.low] * len(keys) if low is None else [grid.ends(cell)[0] for cell in low]
        most = [grid.high] * len(keys) if high is None else [grid.ends(cell)[1] for cell in high]
        found.append(np.array([[grid.value(cell) for cell in value], least, most], dtype=float))
        few.append(_few(law, door, weights))
    columns: list[list[float | None]] = [
        [*each] for each in in_order(priced.plan.counted.ranks, found)
    ]
    for place, (rank, too_few) in enumerate(zip(priced.plan.counted.ranks, few, strict=True)):
        grid = priced.plan.counted.grids[rank.grid]
        unknown = (None, float(grid.low), float(grid.high))
        for row, column in product(too_few, range(Located.WIDTH)):
            columns[Located.WIDTH * place + column][row] = unknown[column]
    return columns


def _few(law: RankNoise, door: Door, weights: Callable[[], list[list[int]]]) -> list[int]:
    """The groups with so few rows, under noise, that their MIN or MAX would be anybody's."""
    if law.rows is None:
        return []
    drawn = _listed(door.draw(law.rows, lambda: [[sum(row)] for row in weights()]))
    return [place for place, (rows,) in enumerate(drawn) if int(rows) < 2 * law.beyond]


def _public_keys(plan: Plan) -> list[Key]:
    """The selected keys, or all combinations of declared ones; an empty one without groups."""
    if plan.counted.selected is not None:
        return list(plan.counted.selected)
    return list(product(*(group.keys or () for group in plan.counted.groups)))


def _stored(key: Key) -> Key:
    """As the ledger stores it."""
    return tuple(map(storable, key))


def _listed(drawn: object) -> list[Any]:
    assert isinstance(drawn, list | np.ndarray)
    return list(drawn)
