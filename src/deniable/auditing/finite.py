"""Mechanisms that state their own finite channel: the claim is checked without sampling.

This reads the law a mechanism states; whether its outputs follow it is for sampling to tell.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from deniable.auditing.claims import Claim, PureClaim, lower_bound, refuted
from deniable.auditing.curve import likeliest
from deniable.auditing.isolation import in_child
from deniable.auditing.targets import Pair
from deniable.auditing.verify import Verified, verify, verify_channel
from deniable.errors import DeniableError
from deniable.privacy.channel import Channel

Floats = npt.NDArray[np.float64]

_SECONDS = 5.0
_SLACK = 1e-9  # sums of floats; tables are read in doubles


@dataclass(frozen=True)
class Exact:
    """The worst event of a pair, with its probabilities."""

    event: str
    forward: bool
    more: float
    less: float
    lower: float
    refuted: bool


def exact_channel(mechanism: Any, pair: Pair, claim: Claim) -> Exact | None:
    """The worst event between two inputs; None where there is no finite channel to be read."""
    found = in_child(lambda: _worst(mechanism, pair, claim), time.monotonic() + _SECONDS)
    return found if isinstance(found, Exact) else None


def _worst(mechanism: Any, pair: Pair, claim: Claim) -> Exact | None:
    try:
        table = _verified(mechanism, pair)
    except (DeniableError, TypeError, ValueError):
        return None
    rows = [np.array([float(p) for p in row]) for row in table.pairs.as_floats().rows]
    found = [*_events(rows[0], rows[1], table.outputs, claim, forward=True)]
    found += _events(rows[1], rows[0], table.outputs, claim, forward=False)
    return max(found, key=lambda each: (each.refuted, each.lower))


def _verified(mechanism: Any, pair: Pair) -> Verified:
    if isinstance(mechanism, Channel):
        both = [mechanism.row(pair.data), mechanism.row(pair.neighbour)]
        return verify_channel(Channel((0, 1), mechanism.outputs, tuple(both)), [(0, 1)])
    return verify(mechanism, [pair.data, pair.neighbour])


def _events(
    p: Floats, q: Floats, outputs: tuple[Any, ...], claim: Claim, *, forward: bool
) -> Iterator[Exact]:
    """Single outputs for a bound on ratios; else the events of Neyman and Pearson."""
    if isinstance(claim, PureClaim):
        for output, more, less in zip(outputs, p.tolist(), q.tolist(), strict=True):
            lower = math.inf if more > 0 and less == 0 else lower_bound(claim, more, less)
            broken = lower > claim.epsilon + _SLACK
            yield Exact(f"the output is {output!r}"[:80], forward, more, less, lower, broken)
        return
    more, less = likeliest(p, q)
    for count, (high, low) in enumerate(zip(more.tolist(), less.tolist(), strict=True)):
        impossible = low == 0 and high > 0
        lower = math.inf if impossible else lower_bound(claim, high, low)
        broken = refuted(claim, high - _SLACK, min(1.0, low + _SLACK))
        event = f"the output is one of the {count} likeliest on this side"
        yield Exact(event, forward, high, low, lower, broken)
