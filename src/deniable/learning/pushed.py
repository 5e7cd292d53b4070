"""Sums of a table, computed where it is: the same whole numbers as `sums.py` makes of arrays.

Rows are bounded, u0, u1, ... (and t, or the class k), made whole numbers, and their squared length
is looked at in whole numbers before they are summed: the sensitivity holds whatever an engine's
floats do. What is NULL, NaN or infinite makes a row count as nothing. Plans, statements and what a
unit with many rows adds are those of questions in SQL.

Some engines raise an error where a product, a quotient or EXP of doubles that are not 0 becomes 0,
or leaves the doubles; the error would tell of a row. So whatever is multiplied or divided is 0 or
at least `TINY` in size, factors are `1/TINY` at most, and scores are cut at `_SCORE`: no product of
three leaves the doubles.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import singledispatch
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from deniable.engines.base import Rows as EngineRows, Step
from deniable.engines.literals import literal
from deniable.lazy import lazy
from deniable.learning.rows import GRID, SQUARE_GRID, Floats, Ranges, steps
from deniable.learning.sums import (
    DIAGONAL,
    OFF_DIAGONAL,
    CellCounts,
    Gradients,
    GroupSums,
    Integers,
    Moments,
    Sums,
)
from deniable.privacy.units import Relation
from deniable.query.plan.plan import Plan
from deniable.query.plan.turns import (
    GROUP_COLUMN,
    Term,
    Turns,
    added,
    case,
    column,
    columns,
    greatest,
    least,
    numbered,
    real,
    total,
    whole,
)
from deniable.query.read.compile import Selected
from deniable.query.run.emit import totals_step
from deniable.tables import LEAST_DOUBLE, ColumnType

TINY = 1e-100  # far below one step of any grid
_SCORE = 100.0  # the square of e to the power of -100 is a double yet
_ZERO, _HALF, _ONE = real(0.0), real(0.5), real(1.0)
_ROW = whole(1)


@dataclass(frozen=True, eq=False)
class LearningSource:
    """Columns of private rows that are learned from, with what is declared about them.

    Sums are bounded in L2, or in L1 where `l2` is not said.
    """

    selected: Selected
    x: tuple[str, ...]
    y: str | None
    ranges: Ranges
    classes: tuple[Any, ...]
    y_ends: tuple[float, float] | None
    l2: bool = True

    @property
    def constants(self) -> tuple[Any, ...]:
        """The public values that columns are compared with."""
        return (*self.ranges.low, *self.ranges.high, *self.classes, *(self.y_ends or ()))

    @lazy
    def bounded(self) -> Turns:
        """The rows as u0, u1, ... of length 1 at most, and t or k; absent ones are left out."""
        ends = list(zip(self.ranges.low, self.ranges.high, strict=True))
        scale = self.ranges.scale.tolist()
        values = {f"c{place}": self._double(name) for place, name in enumerate(self.x)}
        present = [column(name).is_finite() for name in values]
        centred, kept = dict[str, Term](), dict[str, Term]()
        for place, ((low, high), middle) in enumerate(zip(ends, self.ranges.middle, strict=True)):
            centred[f"m{place}"] = column(f"c{place}").clamped(low, high) - real(middle)
        scaled = numbered("v", map(_quotient, columns("m", len(self.x)), scale))
        if self.classes:
            values["k"] = self._class()
            present.append(column("k").is_known())
            centred["k"] = scaled["k"] = kept["k"] = column("k")
        elif self.y_ends is not None:
            assert self.y is not None
            low, high = self.y_ends
            values["y"] = self._double(self.y)
            present.append(column("y").is_finite())
            centred["my"] = column("y").clamped(low, high) - real((low + high) / 2)
            scaled["t"] = _quotient(column("my"), (high - low) / 2)
            kept["t"] = column("t")
        turns = Turns.of(self.selected, "taken", values)
        turns = turns.then("centred", centred, *present).then("scaled", scaled)
        return _shortened(turns, "measured", "bounded", ("v", "u", len(self.x)), kept)

    def pushed(self, sums: Sums) -> Pushed:
        """The plan of a sum, made once."""
        if sums not in self._pushed:
            self._pushed[sums] = pushed(sums, self)
        return self._pushed[sums]

    @lazy
    def _pushed(self) -> dict[Sums, Pushed]:
        return {}

    def turned(self, transform: Floats) -> Turns:
        """Rows (u, 1) times a released matrix, w0, w1, ... of length 1 at most; made once."""
        known = transform.tobytes()
        if known not in self._turned:
            self._turned[known] = _turned(self.bounded, transform)
        return self._turned[known]

    @lazy
    def _turned(self) -> dict[bytes, Turns]:
        return {}

    def rows_step(self) -> Step:
        """SELECT the bounded rows themselves."""
        turns = self.bounded
        kept = [f"u{place}" for place in range(len(self.x))]
        kept += ["k"] if self.classes else ["t"] if self.y else []
        first = next(iter(turns.tables.values()))
        select = f"SELECT {', '.join(kept)} FROM {turns.last}"
        constants = (*self.selected.constants, *self.constants)
        return Step(select, first, turns.tables, constants=constants, veiled=self.selected.veiled)

    def rows_plan(self) -> Plan:
        """The plan of the number of bounded rows: what holds them has room for all of them."""
        return self.bounded.summed([_ROW], row=1)

    def _double(self, name: str) -> Term:
        value = column(name)
        if self.selected.relation.columns[name].kind != ColumnType.BOOLEAN:
            return value.double()
        return case((value, _ONE), (value.is_equal(Term(_FALSE)), _ZERO))

    def _class(self) -> Term:
        assert self.y is not None
        kind = self.selected.relation.columns[self.y].kind
        assert kind is not None
        labels = enumerate(self.classes)
        return case(
            *(
                (column(self.y).is_equal(Term(literal(kind, label))), whole(place))
                for place, label in labels
            )
        )


_FALSE = literal(ColumnType.BOOLEAN, False)


def _released(values: Floats | float, most: float = 1 / TINY) -> Floats:
    """Released numbers within the limits of constants: whatever noise made of them, it is taken."""
    found = np.nan_to_num(np.asarray(values, np.float64), nan=0.0)
    return np.where(np.abs(found) < TINY, 0.0, np.clip(found, -most, most))


def _quotient(value: Term, by: float) -> Term:
    """A column divided by a public number; 0 where that would be tiny."""
    tiny = real(max(TINY * by, float(LEAST_DOUBLE)))
    return case((value.size() < tiny, _ZERO), otherwise=value / real(by))


def _not_tiny(value: Term) -> Term:
    return case((value.size() < real(TINY), _ZERO), otherwise=value)


def _dot(row: Floats, terms: Sequence[Term]) -> Term:
    factors = zip(_released(row).tolist(), terms, strict=True)
    return total(real(factor) * term for factor, term in factors)


def _shortened(
    turns: Turns, measured: str, name: str, of: tuple[str, str, int], kept: Mapping[str, Term]
) -> Turns:
    """Two turns, by which vectors longer than 1 get that length."""
    before, after, count = of
    each = columns(before, count)
    length = total(one * one for one in each).root()
    turns = turns.then(measured, {**numbered(before, each), "length": length, **kept})
    return turns.then(name, {**numbered(after, (one / _at_least_1() for one in each)), **kept})


def _at_least_1() -> Term:
    length = column("length")
    return case((length > _ONE, length), otherwise=_ONE)


@dataclass(frozen=True)
class Pushed:
    """The plan of a sum, and how rows of its totals become the flat sums."""

    plan: Plan
    groups: int
    l2: bool

    @lazy
    def step(self) -> Step:
        return totals_step(self.plan, l2=self.l2)

    def totals(self, rows: EngineRows) -> Integers:
        """The flat sums; groups without rows are zero, and what is beyond 64 bits saturates."""
        found = np.zeros((self.groups, len(self.plan.counted.statistics)), dtype=object)
        for row in rows:
            place, values = (int(row[0]), row[1:]) if self.plan.counted.groups else (0, row)
            found[place] = [int(value or 0) for value in values]
        limits = np.iinfo(np.int64)
        return np.clip(found.ravel(), limits.min, limits.max).astype(np.int64)


@singledispatch
def pushed(sums: object, source: LearningSource) -> Pushed:
    """The plan of a sum of private rows."""
    raise TypeError(f"{type(sums).__name__} of {source.x} is not summed in an engine")


@pushed.register
def _(sums: Moments, source: LearningSource) -> Pushed:
    parts = [real(sums.row) * each for each in columns("u", len(source.x))] + [real(sums.one)]
    if sums.target > 0:
        parts.append(real(sums.target) * column("t"))
    turns = _whole(source.bounded, parts, SQUARE_GRID, sums.most(len(source.x)))
    z = columns("z", len(parts))
    products = [
        whole(DIAGONAL if one is other else OFF_DIAGONAL) * one * other
        for one, other in combinations_with_replacement(z, 2)
    ]
    return _summed(turns, products, sums, source)


@pushed.register
def _(sums: GroupSums, source: LearningSource) -> Pushed:
    width, turns = len(source.x), source.bounded
    u = numbered("u", columns("u", width))
    parts = [real(sums.one)]
    if sums.row > 0:
        parts += [real(sums.row) * each for each in u.values()]
    label = column("k") if source.classes else None
    kept = {} if label is None else {"k": label}
    if sums.square > 0:
        squares = (real(2.0 * width) * each * each - _ONE for each in u.values())
        turns = turns.then("squares", {**u, **kept, **numbered("q", squares)})
        root = real(sums.square / math.sqrt(width))
        q = numbered("q", columns("q", width))
        parts += [root * each.clamped(-1.0, 1.0) for each in q.values()]
        kept |= q
    if sums.centres:
        turns, label = _nearest(turns, np.array(sums.centres), {**u, **kept}), column("nearest")
    turns = _whole(turns, parts, GRID, sums.most(width), label)
    return _summed(turns, columns("z", len(parts)), sums, source, groups=sums.groups)


@pushed.register
def _(sums: CellCounts, source: LearningSource) -> Pushed:
    bins, cells = [], []
    u = columns("u", len(source.x))
    for place, (axis, width) in enumerate(zip(sums.axes, sums.width, strict=True)):
        shift = real(float(_released(sums.bins / 2 - axis @ sums.origin / width)))
        bins.append((_dot(axis / width, u) + shift).floor())
        inside = column(f"b{place}").clamped(0.0, float(sums.bins - 1))
        cells.append(whole(sums.bins**place) * inside.whole())
    turns = source.bounded.then("bins", numbered("b", bins))
    turns = turns.then("cells", {GROUP_COLUMN: total(cells)})
    return _summed(turns, [whole(GRID).whole()], sums, source, groups=sums.size)


@pushed.register
def _(sums: Gradients, source: LearningSource) -> Pushed:
    directions, width = sums.weights.shape
    w = numbered("w", columns("w", width))
    scores = numbered("s", (_dot(row, list(w.values())) for row in sums.weights))
    turns = source.turned(sums.transform).then("scored", {"k": column("k"), **w, **scores})
    turns = _missed(turns, directions, w)
    e = columns("e", directions)
    parts = [each / _at_least_1() * one for each in e for one in w.values()]
    turns = _whole(turns, parts, GRID, sums.most(width - 1))
    return _summed(turns, columns("z", len(parts)), sums, source)


def _turned(turns: Turns, transform: Floats) -> Turns:
    k, width = {"k": column("k")}, len(transform)
    u = [*columns("u", width - 1), _ONE]
    raw = numbered("r", (_dot(each, u) for each in transform.T))
    turns = turns.then("raw", {**k, **raw})
    turns = turns.then("turned", {**k, **numbered("r", map(_not_tiny, columns("r", width)))})
    turns = _shortened(turns, "sized", "short", ("r", "w", width), k)
    return turns.then("clipped", {**k, **numbered("w", map(_not_tiny, columns("w", width)))})


def _missed(turns: Turns, directions: int, w: Mapping[str, Term]) -> Turns:
    """Turns that lead to e0, e1, ... of p - e_y, and their length."""
    kept, s = {"k": column("k"), **w}, columns("s", directions)
    if directions == 1:
        turns = turns.then("odds", {**kept, "s0": s[0].clamped(-_SCORE, _SCORE)})
        odds = _ONE / (_ONE + (_ZERO - s[0]).power_of_e())
        residuals = [odds - _hit(1)]
    else:
        turns = turns.then("top", {**kept, **numbered("s", s), "top": greatest(s)})
        below = ((each - column("top")).clamped(-_SCORE, 0.0) for each in s)
        turns = turns.then("below", {**kept, **numbered("a", below)})
        shares = (each.power_of_e() for each in columns("a", directions))
        turns = turns.then("shares", {**kept, **numbered("p", shares)})
        p = columns("p", directions)
        turns = turns.then("odds", {**kept, **numbered("p", p), "total": total(p)})
        residuals = [each / column("total") - _hit(place) for place, each in enumerate(p)]
    turns = turns.then("gaps", {**w, **numbered("e", residuals)})
    e = columns("e", directions)
    length = total(each * each for each in e).root()
    return turns.then("missed", {**w, **numbered("e", e), "length": length})


def _hit(place: int) -> Term:
    return case((column("k").is_equal(whole(place)), _ONE), otherwise=_ZERO)


def _nearest(turns: Turns, centres: Floats, kept: Mapping[str, Term]) -> Turns:
    """The rows with the place of the nearest centre, the first of those that are equally near."""
    centres = _released(centres)
    u = columns("u", centres.shape[1])
    far = (real(float(_released(c @ c, TINY**-2))) + _dot(-2 * c, u) for c in centres)
    turns = turns.then("far", {**kept, **numbered("d", far)})
    d = columns("d", len(centres))
    turns = turns.then("least", {**kept, **numbered("d", d), "least": least(d)})
    places = ((each <= column("least"), whole(place)) for place, each in enumerate(d))
    return turns.then("nearest", {**kept, "nearest": case(*places, otherwise=whole(0))})


def _whole(
    turns: Turns, parts: Sequence[Term], grid: int, most: int, label: Term | None = None
) -> Turns:
    """The rows as whole numbers z0, z1, ..., of those that are short enough."""
    many = real(steps(len(parts), grid))
    rounded = numbered("z", ((many * each + _HALF).floor().whole() for each in parts))
    group = {} if label is None else {GROUP_COLUMN: label}
    turns = turns.then("whole", {**rounded, **group})
    z = numbered("z", columns("z", len(parts)))
    kept = {**z, **({} if label is None else {GROUP_COLUMN: column(GROUP_COLUMN)})}
    square = added([each * each for each in z.values()])
    size = added([each.size() for each in z.values()])
    return turns.then("kept", kept, square <= whole(grid**2), size <= whole(most))


def _summed(
    turns: Turns, parts: Sequence[Term], sums: Sums, source: LearningSource, groups: int = 1
) -> Pushed:
    one = Relation.ADD_REMOVE
    row = sums.moved(one) if source.l2 else sums.moved_l1(one, len(source.x))
    plan = turns.summed(parts, row=row, grouped=groups > 1, constants=source.constants)
    return Pushed(plan, groups, source.l2)
