"""A question's numbers: read from the engine in one snapshot, released through the door."""

from __future__ import annotations

import itertools
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
            (counts,) = _listed(door.draw(priced.once, read.once))
            for place, count in zip(plan.once, counts, strict=True):
                columns[place] = [int(count)]
        for number, mechanism in enumerate(priced.distinct):
            drawn = _listed(door.draw(mechanism, partial(read.distinct, keys, number)))
            columns.append([int(row[0]) for row in drawn])
        columns += _quantiles(priced, door, read, keys)
    stored: dict[str, Any] = {
        "keys": [[storable(part) for part in key] for key in keys],
        "columns": columns,
    }
    if priced.heavy is not None:
        drawn = _listed(door.draw(priced.heavy, partial(read.heavy, keys)))
        stored["heavy"] = [[int(v) / SCALE for v in each] for each in zip(*drawn, strict=True)]
    if priced.cut is not None:
        ((cut,),) = _listed(door.draw(priced.cut, read.cut))
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
            parts = dict(zip(each, map(storable, key), strict=True))
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
        """The bounded statistics of these groups of a grouping; those without rows have zeros."""
        width = len(self._priced.plan.counted.statistics)
        width_of_key = len(self._priced.plan.groupings[number].counted.groups)
        found = self._by_key(f"totals {number}", width_of_key)
        return [found.get(_plain_key(key), [0] * width) for key in keys]

    def heavy(self, keys: list[Key]) -> list[list[int]]:
        """What is kept of units beyond the bound, of each statistic."""
        found = self._by_key("heavy", len(self._priced.plan.counted.groups))
        width = len(self._priced.plan.counted.statistics)
        return [found.get(_plain_key(key), [0] * width) for key in keys]

    def once(self) -> list[list[int]]:
        """How many units there are, by statistics that count units."""
        (counts,) = self._run("once")
        return [[int(each or 0) for each in counts]]

    def cut(self) -> list[list[int]]:
        """How many rows bounds cut off at most."""
        ((rows,),) = self._run("cut")
        return [[int(rows or 0)]]

    def distinct(self, keys: list[Key], number: int) -> list[list[int]]:
        """How many different values these groups have."""
        found = self._by_key(f"distinct {number}", len(self._priced.plan.counted.groups))
        return [found.get(_plain_key(key), [0]) for key in keys]

    def cells(self, keys: list[Key], number: int) -> list[list[int]]:
        """The weights in the cells of a grid, by group."""
        width, size = (
            len(self._priced.plan.counted.groups),
            self._priced.plan.counted.grids[number].cells,
        )
        found = {_plain_key(key): [0] * size for key in keys}
        for row in self._run(f"cells {number}"):
            weights = found.get(_plain_key(row[:width]))
            if weights is not None:
                weights[min(int(row[width]), size - 1)] += int(row[width + 1])
        return [found[_plain_key(key)] for key in keys]

    def _by_key(self, name: str, width: int) -> dict[Key, list[int]]:
        rows = self._run(name)
        found = {_plain_key(row[:width]): [int(v or 0) for v in row[width:]] for row in rows}
        assert len(found) == len(rows), "two groups look alike"
        return found


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
        for row, column in itertools.product(too_few, range(Located.WIDTH)):
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


def _plain_key(key: Key) -> Key:
    return tuple(part.isoformat() if hasattr(part, "isoformat") else part for part in key)


def _listed(drawn: object) -> list[Any]:
    assert isinstance(drawn, list | np.ndarray)
    return list(drawn)
