"""What is audited: how it is called, and on which neighbours where none are given.

A mechanism of your own names them by its method `neighbours()`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from deniable.auditing.replay.neighbours import NeighbourPair
from deniable.auditing.replay.replays import Factory
from deniable.auditing.sampled.outcomes import Several
from deniable.auditing.sampled.sampling import Call
from deniable.errors import ParameterError, ParameterTypeError
from deniable.ledger.ledger import Ledger
from deniable.mechanisms.additive import IntegerNoise
from deniable.mechanisms.base import Compared, PostProcessed
from deniable.mechanisms.response import RandomizedResponse
from deniable.mechanisms.sparse_vector import SparseVector
from deniable.privacy.channel import Channel

_BLOCK = 1000
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
        return lambda values: _answers(mechanism, values)
    release = getattr(mechanism, "release", None)
    if callable(release):
        single: Call = release
        return single
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


def _answers(mechanism: SparseVector, values: Iterable[Any]) -> list[Any]:
    stream = mechanism.release(list(values))
    return [(answer.above, answer.value) for answer in stream.answers]


def many_calls(mechanism: Any, single: Call) -> Call:
    """The same, several independent releases at a time where that is known to be the same.

    Integer noise is drawn for each number of an array apart, by the law of a single one, and each
    respondent of a survey is asked apart. The lattice noise of arrays pays for their length, and is
    another mechanism.
    """
    if isinstance(mechanism, IntegerNoise):

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


def default_pairs(mechanism: object) -> list[tuple[Any, Any]] | None:
    """Neighbours as far apart as the mechanism charges for; None where that is not known."""
    while isinstance(mechanism, PostProcessed):
        mechanism = mechanism.mechanism
    if isinstance(mechanism, Channel):
        return list(pairwise(mechanism.inputs))
    return mechanism.neighbours() if isinstance(mechanism, Compared) else None


Progress = Callable[[str, float], None]
