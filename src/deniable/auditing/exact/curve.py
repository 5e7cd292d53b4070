"""Claims that are whole curves: the most that P(E) may be, at every Q(E)."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import numpy.typing as npt

from deniable.lazy import lazy
from deniable.privacy.channel import Channel
from deniable.privacy.losses.base import Loss

Floats = npt.NDArray[np.float64]

# Where a curve is read for choosing events: close together where probabilities are small.
_TAIL = np.geomspace(1e-6, 0.02, 14)
PLACES: Floats = np.unique(
    np.concatenate([[0.0], _TAIL, np.linspace(0.02, 0.98, 33), 1 - _TAIL, [1.0]])
)
_ORDERS: Floats = 1 + np.geomspace(1e-3, 1e3, 80)
_LEAST = 1e-300


class LossCurve:
    """1 - f of a loss: its trade-off curve, which the loss rounds against itself."""

    def __init__(self, loss: Loss) -> None:
        self._loss = loss

    def most(self, less: Floats) -> Floats:
        """At these Q(E), one by one."""
        return np.array([1 - self._loss.tradeoff(float(q)) for q in np.ravel(less)])

    @lazy
    def _table(self) -> Floats:
        return self.most(PLACES)

    def about(self, less: Floats) -> Floats:
        """By a table, at many places."""
        return np.interp(less, PLACES, self._table)


class ChannelCurve:
    """1 - f of a channel: the most powerful tests between any two of its inputs.

    The curve of two rows runs straight between the events of Neyman and Pearson, outputs taken in
    the order of their likelihood ratios; the claim allows the largest over all ordered pairs.
    """

    def __init__(self, channel: Channel) -> None:
        rows = [np.array([float(p) for p in row]) for row in channel.rows]
        self._curves = [likeliest(p, q) for p, q in permutations(rows, 2)]

    def most(self, less: Floats) -> Floats:
        """At these Q(E)."""
        q = np.asarray(less, dtype=np.float64)
        found = q.copy()
        for curve in self._curves:
            found = np.maximum(found, np.interp(q, curve[1], curve[0]))
        return np.minimum(1.0, found + 1e-12)

    about = most


def likeliest(p: Floats, q: Floats) -> tuple[Floats, Floats]:
    """The probabilities, under P and Q, of outputs cumulated by falling likelihood ratio."""
    both = p + q
    order = np.argsort(-p / np.where(both > 0, both, 1.0), kind="stable")
    more, less = np.cumsum(p[order]), np.cumsum(q[order])
    return np.concatenate([[0.0], more]), np.concatenate([[0.0], less])


def renyi_size(more: Floats, less: Floats) -> Floats:
    """The largest D_α / α between coins of these chances, both ways, over a grid of orders α.

    It counts as negative where `more` is the smaller.

    A grid of orders finds a divergence that is too small, never one that is too large.
    """
    shape = np.broadcast(more, less).shape
    p, q = (np.broadcast_to(np.clip(x, _LEAST, 1.0), shape).ravel() for x in (more, less))
    found = np.zeros(p.size)
    for a, b in ((p, q), (q, p)):
        heads = _power(a, b)
        tails = _power(np.clip(1 - a, _LEAST, 1.0), np.clip(1 - b, _LEAST, 1.0))
        divergence = np.logaddexp(heads, tails) / (_ORDERS[:, None] - 1)
        found = np.maximum(found, (divergence / _ORDERS[:, None]).max(axis=0))
    return (np.where(p > q, found, -found) * (1 - 1e-12)).reshape(shape)


def _power(a: Floats, b: Floats) -> Floats:
    """ln a^α b^(1-α), for all orders."""
    orders = _ORDERS[:, None]
    found: Floats = orders * np.log(a)[None, :] + (1 - orders) * np.log(b)[None, :]
    return found
