"""How far two inputs of a mechanism lie apart, beside what the mechanism charges for.

The mechanism itself says so, by its method `gap(x, y)`: one of your own joins by having it.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any

from deniable.auditing.replay.tree import tree
from deniable.mechanisms.base import Coded, Compared, PostProcessed, Viewed
from deniable.mechanisms.gaps import Gap
from deniable.mechanisms.sparse_vector import SparseStream

Arguments = tuple[Any, ...]


def plain_subject(subject: object) -> object:
    """The mechanism that is charged, without code of the pipeline: it survives pickling."""
    while isinstance(subject, PostProcessed):
        subject = subject.mechanism
    if isinstance(subject, SparseStream):
        return subject.mechanism
    return subject.without_code() if isinstance(subject, Coded) else subject


def view(subject: object, arguments: Arguments) -> Arguments:
    """The private arguments of a call as they are compared: plain, by this side's own code."""
    while isinstance(subject, PostProcessed):
        subject = subject.mechanism
    if isinstance(subject, Viewed):
        return tuple(subject.view(value, tree) for value in arguments)
    return arguments


def gap(mechanism: object, x: Arguments, y: Arguments) -> Gap | None:
    """The gap between the arguments of two calls; None where the measure is not known."""
    if not isinstance(mechanism, Compared) or len(x) != 1 or len(y) != 1:
        return None
    return mechanism.gap(x[0], y[0])


def directions_of(gaps: Iterable[Gap]) -> frozenset[int]:
    """All ways in which the numbers of one stream moved."""
    return frozenset(chain.from_iterable(each.directions for each in gaps))
