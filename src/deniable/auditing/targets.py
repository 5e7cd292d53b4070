"""What is audited: how it is called, and on which neighbours where none are given.

`default_pairs` is open by registration: a mechanism of your own joins with
`@default_pairs.register`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import singledispatch
from itertools import pairwise
from typing import Any

import numpy as np

from deniable.auditing.neighbours import NeighbourPair
from deniable.auditing.outcomes import Several
from deniable.auditing.replay import Factory
from deniable.auditing.sampling import Call
from deniable.errors import ParameterError, ParameterTypeError, StreamExhaustedError
from deniable.ledger.ledger import Ledger
from deniable.mechanisms.base import PostProcessed
from deniable.mechanisms.gaussian import DiscreteGaussian, Gaussian
from deniable.mechanisms.histogram import Histogram, StabilityHistogram
from deniable.mechanisms.keys import WEIGHT, KeySelection, weight
from deniable.mechanisms.laplace import Geometric, Laplace
from deniable.mechanisms.metric import MetricExponential
from deniable.mechanisms.planar import PlanarLaplace
from deniable.mechanisms.quantile import Quantile
from deniable.mechanisms.response import RandomizedResponse
from deniable.mechanisms.selection import Scored, TopK
from deniable.mechanisms.sparse_vector import SparseVector
from deniable.mechanisms.truncated import TruncatedGeometric
from deniable.privacy.channel import Channel
from deniable.privacy.units import Relation

_BLOCK = 1000
_CELLS = 5  # that one unit brings, in suggested pairs
_MOST_PAIRS = 200
_SMALL = 1 << 40


@dataclass(frozen=True)
class Pair:
    """Two inputs that differ in one unit."""

    name: str
    data: Any
    neighbour: Any


def read_pairs(mechanism: object, pairs: Any) -> list[Pair]:
    """The pairs that are given, or those that the mechanism suggests."""
    given = default_pairs(mechanism) if pairs is None else pairs
    if given is None:
        raise ParameterError(
            "pairs",
            None,
            f"nothing tells what neighbours are to {type(mechanism).__name__}: give "
            "pairs=[(data, neighbour), ...], for tables pairs=dp.auditing.nasty_neighbours(...)",
        )
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise ParameterTypeError("pairs", type(given).__name__, "must be a list of pairs")
    read = [_pair(number, each) for number, each in enumerate(given, start=1)]
    if not 1 <= len(read) <= _MOST_PAIRS:
        raise ParameterError("pairs", len(read), f"give 1 to {_MOST_PAIRS} pairs of neighbours")
    return read


def _pair(number: int, given: Any) -> Pair:
    if isinstance(given, NeighbourPair):
        return Pair(given.name, given.data, given.neighbour)
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise ParameterTypeError(
            "pairs", type(given).__name__, "each is (data, neighbour), or of nasty_neighbours"
        )
    return Pair(f"pair {number}", given[0], given[1])


def one_call(mechanism: Any, factory: Factory | None) -> Call:
    """How the mechanism is used once."""
    if factory is not None:
        for name, given in (("factory", factory), ("mechanism", mechanism)):
            if not callable(given):
                raise ParameterTypeError(name, type(given).__name__, "must be callable")
        return _through(mechanism, factory)
    if isinstance(mechanism, SparseVector):
        return lambda values: _stream(mechanism, values)
    for verb in ("release", "choose"):
        method = getattr(mechanism, verb, None)
        if callable(method):
            return method if verb == "release" else lambda scores: _chosen(mechanism, scores)
    if callable(mechanism):
        called: Call = mechanism
        return called
    raise ParameterTypeError(
        "mechanism",
        type(mechanism).__name__,
        "must be callable on the data, a mechanism of this library, or a Channel",
    )


def _through(pipeline: Call, factory: Factory) -> Call:
    def call(data: Any) -> Any:
        with Ledger(key=bytes(32)) as ledger:
            return pipeline(factory(data, ledger))

    return call


def _stream(mechanism: SparseVector, values: Iterable[Any]) -> list[Any]:
    stream, answers = mechanism.open(), []
    for value in values:
        try:
            answer = stream.ask(value)
        except StreamExhaustedError:
            break
        answers.append((answer.above, answer.value))
    return answers


def _chosen(mechanism: Any, scores: Any) -> Any:
    return mechanism.choose(range(len(scores)), scores)


def many_calls(mechanism: Any, single: Call) -> Call:
    """The same, several independent releases at a time where that is known to be the same.

    Integer noise is drawn for each number of an array apart, by the law of a single one, and each
    respondent of a survey is asked apart. The lattice noise of arrays pays for their length, and is
    another mechanism.
    """
    if isinstance(mechanism, Geometric | DiscreteGaussian):

        def noisy(given: Any) -> Any:
            if type(given) is not int or abs(given) > _SMALL:
                return single(given)
            released = mechanism.release(np.full(_BLOCK, given))
            assert isinstance(released, np.ndarray)
            return Several(released.tolist())

        return noisy
    if isinstance(mechanism, RandomizedResponse):

        def asked(given: Any) -> Any:
            if isinstance(given, list | np.ndarray):
                return single(given)
            return Several(list(mechanism.release([given] * _BLOCK)))

        return asked
    return single


@singledispatch
def default_pairs(mechanism: object) -> list[tuple[Any, Any]] | None:
    """Neighbours as far apart as the mechanism charges for; None where that is not known."""
    del mechanism
    return None


@default_pairs.register
def _(mechanism: PostProcessed) -> Any:
    return default_pairs(mechanism.mechanism)


@default_pairs.register(Laplace)
@default_pairs.register(Gaussian)
def _(mechanism: Laplace | Gaussian) -> Any:
    return [(0.0, float(mechanism.sensitivity))]


@default_pairs.register(Geometric)
@default_pairs.register(DiscreteGaussian)
def _(mechanism: Geometric | DiscreteGaussian) -> Any:
    return [(0, max(1, int(mechanism.sensitivity)))]


@default_pairs.register
def _(mechanism: TruncatedGeometric) -> Any:
    moved = int(mechanism.sensitivity)
    low, high = mechanism.lower, mechanism.upper
    middle = (low + high) // 2
    return [(low, min(high, low + moved)), (middle, min(high, middle + moved))]


@default_pairs.register
def _(mechanism: PlanarLaplace) -> Any:
    return [([0.0, 0.0], [float(mechanism.sensitivity), 0.0])]


@default_pairs.register
def _(mechanism: MetricExponential) -> Any:
    return [(mechanism.points[0], mechanism.points[-1])]


@default_pairs.register
def _(mechanism: RandomizedResponse) -> Any:
    if mechanism.predicate is not None:
        return None
    return list(pairwise(mechanism.categories))


@default_pairs.register
def _(mechanism: Scored) -> Any:
    moved = float(mechanism.sensitivity)
    if mechanism.monotone:
        return [([moved, 0.0, 0.0], [0.0, 0.0, 0.0]), ([moved, moved, 0.0], [moved] * 3)]
    return [([moved, 0.0, 0.0], [0.0, moved, moved])]


@default_pairs.register
def _(mechanism: TopK) -> Any:
    return default_pairs(mechanism.selector)


@default_pairs.register
def _(mechanism: SparseVector) -> Any:
    low, moved = float(mechanism.threshold), float(mechanism.sensitivity)
    some = 2 + 2 * mechanism.positives
    if mechanism.monotone:
        return [([low] * some, [low + moved] * some)]
    return [([low] * some + [low + moved], [low + moved] * some + [low])]


@default_pairs.register
def _(mechanism: Histogram) -> Any:
    first, last = mechanism.cells[0], mechanism.cells[-1]
    if mechanism.relation == Relation.REPLACE:
        return [({first: 5, last: 5}, {first: 6, last: 4})]
    return [({first: 5}, {first: 6}), ({}, {last: 1})]


@default_pairs.register
def _(mechanism: StabilityHistogram) -> Any:
    return _appearing(mechanism.max_cells)


@default_pairs.register
def _(mechanism: KeySelection) -> Any:
    level, many = mechanism.threshold, min(mechanism.max_groups, _CELLS)
    return [*_appearing(many, weight(many)), ({"a": level}, {"a": level - WEIGHT})]


def _appearing(most: int, each: int = 1) -> list[tuple[Any, Any]]:
    cells = [f"cell {number}" for number in range(min(most, _CELLS))]
    common = {"a": 9 * each}
    return [({}, dict.fromkeys(cells, each)), (common, common | dict.fromkeys(cells[:-1], each))]


@default_pairs.register
def _(mechanism: Quantile) -> Any:
    low, high = (float(end) for end in mechanism.bounds)
    usual = [low + (high - low) * k / 10 for k in range(11)]
    if mechanism.relation == Relation.REPLACE:
        return [([*usual, low], [*usual, high])]
    return [(usual, [*usual, high]), (usual, [*usual, low]), ([low] * 5, [low] * 5 + [high])]


@default_pairs.register
def _(mechanism: Channel) -> Any:
    return list(pairwise(mechanism.inputs))


Progress = Callable[[str, float], None]
