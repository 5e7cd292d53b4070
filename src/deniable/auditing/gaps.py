"""How far two inputs of a mechanism lie apart, beside what the mechanism charges for.

`gap` is open by registration: a mechanism of your own joins with `@gap.register`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import singledispatch
from itertools import chain
from typing import Any

import numpy as np

from deniable.auditing.tree import tree
from deniable.mechanisms.base import PostProcessed
from deniable.mechanisms.gaussian import DiscreteGaussian, Gaussian
from deniable.mechanisms.grid_quantile import GridQuantile, read_weights
from deniable.mechanisms.histogram import Histogram, StabilityHistogram, read_counts
from deniable.mechanisms.joint import JointNoise, Norm, read_table
from deniable.mechanisms.keys import WEIGHT, KeySelection
from deniable.mechanisms.laplace import Geometric, Laplace
from deniable.mechanisms.metric import MetricExponential
from deniable.mechanisms.planar import PlanarLaplace
from deniable.mechanisms.propose_test_release import ProposeTestRelease
from deniable.mechanisms.quantile import Quantile
from deniable.mechanisms.response import RandomizedResponse
from deniable.mechanisms.sampled_sum import SampledSum
from deniable.mechanisms.selection import Scored, TopK
from deniable.mechanisms.sparse_vector import SparseStream, SparseVector
from deniable.mechanisms.subsample import SubsampleAggregate
from deniable.mechanisms.truncated import TruncatedGeometric
from deniable.mechanisms.values import is_scalar, read_integer, read_integers, read_real, read_reals
from deniable.privacy.exact import float_above, sqrt_up
from deniable.privacy.units import Relation

Arguments = tuple[Any, ...]

_FAR = Fraction(10) ** 300


@dataclass(frozen=True)
class Gap:
    """How far the inputs moved, how far they may, and in what measure.

    `directions` says which ways numbers moved, for promises that all move the same way.
    """

    moved: float
    allowed: float
    measure: str
    ok: bool
    directions: frozenset[int] = frozenset()


def plain_subject(subject: object) -> object:
    """The mechanism that is charged, without code of the pipeline: it survives pickling."""
    while isinstance(subject, PostProcessed):
        subject = subject.mechanism
    if isinstance(subject, SparseStream):
        return subject.mechanism
    if isinstance(subject, RandomizedResponse):
        return RandomizedResponse.from_channel(subject.rows, subject.categories)
    return subject


def view(subject: object, verb: str, arguments: Arguments) -> Arguments:
    """The private arguments of a call as they are compared: plain, by this side's own code."""
    if isinstance(subject, PostProcessed):
        return view(subject.mechanism, verb, arguments)
    if isinstance(subject, RandomizedResponse):
        given = arguments[0]
        several = isinstance(given, list) or (isinstance(given, np.ndarray) and given.ndim > 0)
        read = subject.predicate or (lambda record: record)
        records = list(given) if several else [given]
        return ([subject.categories.index(read(record)) for record in records],)
    if isinstance(subject, SubsampleAggregate):
        return ([tree(record) for record in arguments[0]], tree(arguments[1]))
    if verb == "choose":
        return (tree(list(arguments[0])), arguments[1])
    return arguments


@singledispatch
def gap(mechanism: object, _verb: str, _x: Arguments, _y: Arguments) -> Gap | None:
    """The gap between the arguments of two calls; None where the measure is not known."""
    del mechanism
    return None


def _gap(moved: Fraction, allowed: Fraction | int, measure: str) -> Gap:
    short = float_above(moved) if moved < _FAR else float("inf")
    return Gap(short, float_above(min(Fraction(allowed), _FAR)), measure, moved <= allowed)


def _misshapen(measure: str) -> Gap:
    return Gap(float("inf"), 0.0, f"{measure}: the two differ in shape", ok=False)


def _integer_moves(x: Any, y: Any) -> list[Fraction] | None:
    """The non-zero differences of two integers or integer arrays; None if shapes differ."""
    if is_scalar(x) != is_scalar(y):
        return None
    if is_scalar(x):
        return [Fraction(read_integer(y) - read_integer(x))]
    return _array_moves(read_integers(x), read_integers(y))


def _array_moves(before: Any, after: Any) -> list[Fraction] | None:
    if before.shape != after.shape:
        return None
    at = np.flatnonzero(before.ravel() != after.ravel())
    pairs = zip(before.ravel()[at].tolist(), after.ravel()[at].tolist(), strict=True)
    return [Fraction(b) - Fraction(a) for a, b in pairs]


def _real_moves(x: Any, y: Any) -> list[Fraction] | None:
    """The non-zero differences of two reals or arrays of reals, exactly."""
    if is_scalar(x) != is_scalar(y):
        return None
    if is_scalar(x):
        return [Fraction(read_real(y)) - Fraction(read_real(x))]
    before, after = read_reals(x), read_reals(y)
    if before.shape != after.shape:
        return None
    if before.doubles is not None and after.doubles is not None:
        return _array_moves(before.doubles, after.doubles)
    return [b - a for a, b in zip(before.exactly(), after.exactly(), strict=True)]


def _by_norm(moves: list[Fraction] | None, order: int, allowed: Fraction) -> Gap:
    measure = f"L{order}"
    if moves is None:
        return _misshapen(measure)
    if order == 1:
        return _gap(sum(map(abs, moves), Fraction(0)), allowed, measure)
    square = sum((move**2 for move in moves), Fraction(0))
    found = _gap(sqrt_up(square), allowed, measure)
    return Gap(found.moved, found.allowed, measure, square <= allowed**2)


@gap.register
def _(mechanism: Geometric, _verb: str, x: Arguments, y: Arguments) -> Gap:
    return _by_norm(_integer_moves(x[0], y[0]), 1, mechanism.sensitivity)


@gap.register
def _(mechanism: Laplace, _verb: str, x: Arguments, y: Arguments) -> Gap:
    return _by_norm(_real_moves(x[0], y[0]), 1, mechanism.sensitivity)


@gap.register
def _(mechanism: DiscreteGaussian, _verb: str, x: Arguments, y: Arguments) -> Gap:
    return _by_norm(_integer_moves(x[0], y[0]), 2, mechanism.sensitivity)


@gap.register
def _(mechanism: Gaussian, _verb: str, x: Arguments, y: Arguments) -> Gap:
    return _by_norm(_real_moves(x[0], y[0]), 2, mechanism.sensitivity)


@gap.register
def _(mechanism: TruncatedGeometric, _verb: str, x: Arguments, y: Arguments) -> Gap:
    def inside(value: Any) -> Any:
        if is_scalar(value):
            return max(mechanism.lower, min(mechanism.upper, read_integer(value)))
        return np.clip(read_integers(value), mechanism.lower, mechanism.upper)

    return _by_norm(_integer_moves(inside(x[0]), inside(y[0])), 1, mechanism.sensitivity)


@gap.register
def _(mechanism: PlanarLaplace, _verb: str, x: Arguments, y: Arguments) -> Gap:
    before, after = read_reals(x[0]), read_reals(y[0])
    if before.shape != after.shape:
        return _misshapen("distance")
    moves = [b - a for a, b in zip(before.exactly(), after.exactly(), strict=True)]
    squares = [a**2 + b**2 for a, b in zip(moves[::2], moves[1::2], strict=True)]
    if sum(square > 0 for square in squares) == 1:
        square = sum(squares, Fraction(0))
        found = _gap(sqrt_up(square), mechanism.sensitivity, "distance")
        return Gap(found.moved, found.allowed, "distance", square <= mechanism.sensitivity**2)
    return _gap(sum(map(sqrt_up, squares), Fraction(0)), mechanism.sensitivity, "distance")


@gap.register
def _(_mechanism: MetricExponential, _verb: str, _x: Arguments, _y: Arguments) -> Gap:
    return Gap(0.0, 0.0, "any two points are charged", ok=True)


@gap.register
def _(mechanism: Scored, _verb: str, x: Arguments, y: Arguments) -> Gap:
    if x[0] != y[0]:
        return Gap(1.0, 0.0, "candidates, which are public", ok=False)
    moves = _real_moves(_flat(x[1]), _flat(y[1]))
    if moves is None:
        return _misshapen("scores")
    found = _gap(max(map(abs, moves), default=Fraction(0)), mechanism.sensitivity, "each score")
    both_ways = mechanism.monotone and len(_directions(moves)) > 1
    if both_ways:
        measure = "each score: some rise while others fall, though monotone was promised"
        return Gap(found.moved, found.allowed, measure, ok=False)
    return found


def _flat(scores: Any) -> Any:
    return scores if isinstance(scores, np.ndarray) else [Fraction(read_real(s)) for s in scores]


def _directions(moves: Iterable[Fraction]) -> frozenset[int]:
    return frozenset(1 if move > 0 else -1 for move in moves if move)


@gap.register
def _(mechanism: TopK, verb: str, x: Arguments, y: Arguments) -> Gap | None:
    return gap(mechanism.selector, verb, x, y)


@gap.register
def _(mechanism: SparseVector, _verb: str, x: Arguments, y: Arguments) -> Gap:
    move = Fraction(read_real(y[0])) - Fraction(read_real(x[0]))
    found = _gap(abs(move), mechanism.sensitivity, "each value")
    promised = _directions([move]) if mechanism.monotone else frozenset()
    return Gap(found.moved, found.allowed, found.measure, found.ok, promised)


@gap.register
def _(mechanism: Histogram, _verb: str, x: Arguments, y: Arguments) -> Gap:
    before, after = (read_counts(value[0]) for value in (x, y))
    moved = sum(abs(before.get(cell, 0) - after.get(cell, 0)) for cell in mechanism.cells)
    allowed = mechanism.relation.changed
    return _gap(Fraction(moved), allowed, "counts, L1")


@gap.register
def _(mechanism: GridQuantile, _verb: str, x: Arguments, y: Arguments) -> Gap:
    before, after = (read_weights(value[0], mechanism.cells) for value in (x, y))
    order = 1 if mechanism.norm == Norm.L1 else 2
    if len(before) != len(after):
        return _misshapen(f"weights, L{order}")
    moves = [
        Fraction(sum(abs(a - b) for a, b in zip(old, new, strict=True)))
        for old, new in zip(before, after, strict=True)
    ]
    return _by_norm(moves, order, Fraction(mechanism.bound))


@gap.register
def _(mechanism: StabilityHistogram, _verb: str, x: Arguments, y: Arguments) -> Gap:
    return _cells(x, y, mechanism.max_cells, mechanism.relation)


def _cells(x: Arguments, y: Arguments, most: int, relation: Relation) -> Gap:
    """Counts in which one unit may move so many cells, by one each."""
    before, after = (read_counts(value[0]) for value in (x, y))
    moves = [abs(before.get(c, 0) - after.get(c, 0)) for c in {*before, *after}]
    if max(moves, default=0) > 1:
        return _gap(Fraction(max(moves)), 1, "one count")
    return _gap(Fraction(sum(moves)), most * relation.changed, "cells")


@gap.register
def _(mechanism: Quantile, _verb: str, x: Arguments, y: Arguments) -> Gap:
    low, high = mechanism.bounds
    before, after = (
        [min(max(number, low), high) for number in _numbers(value[0])] for value in (x, y)
    )
    return _records(before, after, mechanism.relation, mechanism.reach, "values")


def _numbers(values: Any) -> list[Fraction]:
    return read_reals(values).exactly() if len(values) else []


def _records(
    before: Iterable[Any], after: Iterable[Any], relation: Relation, reach: int, measure: str
) -> Gap:
    """Lists as bags: how many entries are added or removed, or exchanged."""
    one, other = Counter(before), Counter(after)
    gone, come = (one - other).total(), (other - one).total()
    if relation == Relation.REPLACE:
        if gone != come:
            return _misshapen(measure)
        return _gap(Fraction(gone), reach, f"{measure} exchanged")
    return _gap(Fraction(gone + come), reach, f"{measure} added or removed")


@gap.register
def _(mechanism: SubsampleAggregate, _verb: str, x: Arguments, y: Arguments) -> Gap:
    if x[1] != y[1]:
        return Gap(1.0, 0.0, "the function, or what it holds, which is public", ok=False)
    return _records(x[0], y[0], mechanism.relation, 1, "records")


@gap.register
def _(_mechanism: RandomizedResponse, _verb: str, x: Arguments, y: Arguments) -> Gap:
    if len(x[0]) != len(y[0]):
        return _misshapen("respondents")
    moved = sum(a != b for a, b in zip(x[0], y[0], strict=True))
    return _gap(Fraction(moved), 1, "respondents")


@gap.register
def _(mechanism: JointNoise, _verb: str, x: Arguments, y: Arguments) -> Gap:
    before, after = (read_table(value[0], len(mechanism.weights)) for value in (x, y))
    if before.shape != after.shape:
        return _misshapen(str(mechanism.norm))
    moves = [
        Fraction(weight * int(move))
        for weight, column in zip(mechanism.weights, (after - before).T, strict=True)
        for move in column
        if move
    ]
    return _by_norm(moves, 1 if mechanism.norm == Norm.L1 else 2, Fraction(mechanism.bound))


@gap.register
def _(mechanism: SampledSum, _verb: str, x: Arguments, y: Arguments) -> Gap:
    if x[0].width != y[0].width:
        return _misshapen("rows")
    before, after = (
        list(map(tuple, mechanism.bounded(each[0].rows(np.arange(each[0].count))).tolist()))
        for each in (x, y)
    )
    if mechanism.relation == Relation.ADD_REMOVE:  # what adds nothing does not matter
        before, after = ([row for row in rows if any(row)] for rows in (before, after))
    return _records(before, after, mechanism.relation, 1, "rows")


@gap.register
def _(mechanism: KeySelection, _verb: str, x: Arguments, y: Arguments) -> Gap:
    before, after = (read_counts(value[0]) for value in (x, y))
    moves = [abs(before.get(c, 0) - after.get(c, 0)) for c in {*before, *after}]
    moved, changed = [move for move in moves if move], mechanism.relation.changed
    if len(moved) > mechanism.max_groups * changed:
        return _gap(Fraction(len(moved)), mechanism.max_groups * changed, "groups")
    squares = Fraction(sum(move**2 for move in moved))
    return _gap(sqrt_up(squares, 30), sqrt_up(Fraction(changed * WEIGHT**2), 30), "weights")


@gap.register
def _(mechanism: ProposeTestRelease, verb: str, x: Arguments, y: Arguments) -> Gap:
    if verb != "release":
        if tree(x[1]) != tree(y[1]):
            return Gap(1.0, 0.0, "bounds, which are public", ok=False)
        before, after = (read_reals(value[0]).exactly() for value in (x, y))
        return _records(before, after, mechanism.relation, 1, "values")
    far = [read_integer(value[1]) for value in (x, y)]
    if abs(far[0] - far[1]) > 1:
        return _gap(Fraction(abs(far[0] - far[1])), 1, "distance to instability")
    if max(far) == 0:  # the local sensitivity may be anything, and the test says so
        return Gap(0.0, float(mechanism.bound), "value, at no distance", ok=True)
    moves = _real_moves(x[0], y[0])
    return _by_norm(moves, 1, mechanism.bound)


def directions_of(gaps: Iterable[Gap]) -> frozenset[int]:
    """All ways in which the numbers of one stream moved."""
    return frozenset(chain.from_iterable(each.directions for each in gaps))
