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

from deniable.auditing.exact.curve import likeliest
from deniable.auditing.exact.verification import Verified, verify, verify_channel
from deniable.auditing.sampled.claims import Claim, PureClaim, lower_bound, refuted
from deniable.auditing.sampled.isolation import in_child
from deniable.auditing.sampled.targets import Pair
from deniable.errors import DeniableError
from deniable.privacy.channel import Channel

Floats = npt.NDArray[np.float64]

_SECONDS = 5.0
_LEAST = 1e-290  # below this, doubles may be zero where numbers are not
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
    if isinstance(claim, PureClaim):
        _, output, above, below = table.pairs.worst()  # decided exactly, zeros too
        return Exact(
            event=f"the output is {table.outputs[output]!r}"[:80],
            forward=above == 0,
            more=float(rows[above][output]),
            less=float(rows[below][output]),
            lower=table.epsilon,
            refuted=table.epsilon > claim.epsilon + _SLACK,
        )
    events = [*_events(rows[0], rows[1], claim, forward=True)]
    events += _events(rows[1], rows[0], claim, forward=False)
    return max(events, key=lambda each: (each.refuted, each.lower))


def _verified(mechanism: Any, pair: Pair) -> Verified:
    if isinstance(mechanism, Channel):
        both = [mechanism.row(pair.data), mechanism.row(pair.neighbour)]
        return verify_channel(Channel((0, 1), mechanism.outputs, tuple(both)), [(0, 1)])
    return verify(mechanism, [pair.data, pair.neighbour])


def _events(p: Floats, q: Floats, claim: Claim, *, forward: bool) -> Iterator[Exact]:
    """The events of Neyman and Pearson."""
    more, less = likeliest(p, q)
    for count, (high, low) in enumerate(zip(more.tolist(), less.tolist(), strict=True)):
        impossible = low == 0 and high > _LEAST
        lower = math.inf if impossible else lower_bound(claim, high, low)
        broken = refuted(claim, high - _SLACK, min(1.0, low + _SLACK))
        event = f"the output is one of the {count} likeliest on this side"
        yield Exact(event, forward, high, low, lower, broken)
