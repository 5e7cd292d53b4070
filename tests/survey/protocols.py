"""Every protocol at small sizes, with its channels: those that its public coins leave open."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np

import deniable as dp
from deniable import survey
from deniable.privacy.channel import Channel
from deniable.survey.windows import Window


@dataclass(frozen=True)
class Case:
    """A protocol and its channels, one for each value of the public coins that is tried."""

    name: str
    make: Callable[[float], Any]
    channels: Callable[[Any], Iterator[Channel]]
    exact: bool = True  # whether some channel reaches ε


def _only(protocol: Any) -> Iterator[Channel]:
    yield protocol.channel()


def _hashed(protocol: Any) -> Iterator[Channel]:
    made_up = np.random.default_rng(3)
    for _ in range(8):
        yield protocol.channel(tuple(made_up.integers(0, 2**61 - 1, 3, dtype=np.uint64).tolist()))


CASES = [
    Case("k-ary", lambda e: survey.KaryResponse(k=5, epsilon=e), _only),
    Case("k-ary, two", lambda e: survey.KaryResponse(k=2, epsilon=e), _only),
    Case("k-ary, many", lambda e: survey.KaryResponse(k=100, epsilon=e), _only),
    Case("OUE", lambda e: survey.UnaryEncoding(k=4, epsilon=e), _only),
    Case("SUE", lambda e: survey.UnaryEncoding(k=4, epsilon=e, symmetric=True), _only),
    Case("subset", lambda e: survey.SubsetSelection(k=7, epsilon=e), _only),
    Case("subset of 3", lambda e: survey.SubsetSelection(k=7, epsilon=e, size=3), _only),
    Case("OLH", lambda e: survey.LocalHashing(k=6, epsilon=e), _hashed),
    Case("BLH", lambda e: survey.LocalHashing(k=6, epsilon=e, buckets=2), _hashed),
    Case("Hadamard", lambda e: survey.HadamardResponse(k=6, epsilon=e), _only),
    Case("Hadamard, 1 block", lambda e: survey.HadamardResponse(k=6, epsilon=e, blocks=1), _only),
    Case("Hadamard, 4 blocks", lambda e: survey.HadamardResponse(k=9, epsilon=e, blocks=4), _only),
    Case(
        "CMS",
        lambda e: survey.CountMeanSketch(k=6, epsilon=e, hashes=3, width=5, salt="a"),
        lambda p: (p.channel(function) for function in range(3)),
    ),
    Case(
        "HCMS",
        lambda e: survey.HadamardSketch(k=6, epsilon=e, hashes=3, width=8, salt="a"),
        lambda p: (p.channel(f, column) for f in range(3) for column in range(8)),
    ),
    Case(
        "dBitFlip",
        lambda e: survey.BitFlip(k=5, epsilon=e, bits=3),
        lambda p: (p.channel(places) for places in combinations(range(5), 3)),
    ),
    Case(
        "dBitFlip, 1 bit",
        lambda e: survey.BitFlip(k=5, epsilon=e, bits=1),
        lambda p: (p.channel([place]) for place in range(5)),
    ),
    Case("RAPPOR", lambda e: survey.Rappor(k=4, epsilon=e, permanent=2 * e), _only),
    Case("L-GRR", lambda e: survey.LastingResponse(k=5, epsilon=e, permanent=2 * e), _only),
    Case(
        "one bit",
        lambda e: survey.OneBitMean(epsilon=e, bounds=(0, 1)),
        lambda p: iter([p.channel([Fraction(i, 4) for i in range(5)])]),
    ),
    Case(
        "square wave",
        lambda e: survey.SquareWave(epsilon=e, bounds=(0, 1), steps=40),
        _only,
    ),
]


def small_windows(epsilon: float) -> list[Window]:
    """Windows like those of the piecewise mechanism, on grids small enough to be written down."""
    asked = dp.PureDP(epsilon).epsilon
    return [Window(asked, steps, width) for steps, width in ((1, 1), (7, 3), (16, 40), (100, 13))]
