"""Online private multiplicative weights: answers to very many counting queries, one by one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from deniable.privacy.exact import whole
from deniable.synthesis.domain import Clique, Floats
from deniable.synthesis.measure import Draws, OpenSparseVector
from deniable.synthesis.model.dense import DenseModel, check_dense
from deniable.synthesis.queries import Counting

_TOTAL = Fraction(1, 50)
_PRACTICAL = 0.75


@dataclass(frozen=True)
class OnlineAnswer:
    """An answer, and what stands behind it.

    `verified`: the sparse vector found the model's answer within about the threshold, or the count
    was measured. Once the updates are used up answers come from the model alone: not verified.
    """

    value: float
    verified: bool
    measured: bool


class PrivateMultiplicativeWeights:
    """Answers counting queries from a model, and pays only where the model is found wrong.

    Hardt & Rothblum 2010: each query is compared, through a sparse vector, with what the model
    says; only when they are far apart is the count measured and the model taught, `updates` times
    at most. Formal guarantee: all answers together, of however many adaptively chosen queries, are
    within the price that was reserved, a fiftieth of it for the number of rows, the rest in equal
    parts for each epoch, half for its sparse vector, half for its measurement. The threshold and
    the way of teaching bear on accuracy alone, so practical constants are used, not the proof's.
    """

    def __init__(self, draws: Draws, *, queries: int, updates: int = 50, passes: int = 20) -> None:
        check_dense(draws.domain)
        expected = whole(queries, "queries")
        self._draws, self._passes = draws, whole(passes, "passes")
        self.updates_left = whole(updates, "updates")
        self._share = draws.whole * (1 - _TOTAL) / self.updates_left / 2
        total = float(draws.measure((), draws.whole * _TOTAL).values)
        self.model = DenseModel.uniform(draws.domain, max(1.0, total))
        self._history: list[tuple[Counting, float]] = []
        self._marginals: dict[Clique, Floats] = {}
        self.threshold = _threshold(draws, self._share, expected)
        self._watch: OpenSparseVector | None = self._opened()

    @property
    def exhausted(self) -> bool:
        return self._watch is None and self.updates_left == 0

    def answer(self, query: Counting) -> OnlineAnswer:
        """The answer to one query, chosen in whatever way from the answers before."""
        query = Counting.frozen(query, self._draws.domain)
        if self._watch is not None and self._watch.told:
            self._watch = None  # an interrupt came between its alarm and the count
            self.updates_left -= 1
        if self._watch is None:
            self._watch = self._opened()
        estimate = self._estimate(query)
        if self._watch is None:
            return OnlineAnswer(estimate, verified=False, measured=False)
        if not self._watch.off(query, estimate):
            return OnlineAnswer(estimate, verified=True, measured=False)
        count = float(self._draws.count(query, self._share).values)
        self._history.append((query, count))
        self.model = taught(self.model, self._history, self._passes)
        self._marginals.clear()
        self._watch, self.updates_left = None, self.updates_left - 1
        self._watch = self._opened()
        return OnlineAnswer(count, verified=True, measured=True)

    def _opened(self) -> OpenSparseVector | None:
        return self._draws.watch(self.threshold, self._share) if self.updates_left else None

    def _estimate(self, query: Counting) -> float:
        if query.clique not in self._marginals:
            self._marginals[query.clique] = self.model.marginal(query.clique)
        return query.of(self._marginals[query.clique])


def _threshold(draws: Draws, share: Fraction, queries: int) -> float:
    """Where noise alone rarely reaches in so many queries: 0.75 ln(queries) scales of 4/ε."""
    epsilon = float(share) if draws.amount.pure else math.sqrt(2 * float(share))
    return 4 / epsilon * _PRACTICAL * math.log(max(queries, 3)) * draws.unit


def taught(model: DenseModel, history: list[tuple[Counting, float]], passes: int) -> DenseModel:
    """Go through all measured queries; each makes the model agree with its count.

    The weight inside is multiplied by m(N - q)/(q(N - m)): the one update after which the model
    answers m.
    """
    weights, total = model.probabilities.copy(), model.total
    masks = [(query.mask(model.domain), count) for query, count in history]
    for _ in range(passes):
        for mask, count in masks:
            inside = float((weights * mask).sum())
            share = min(max(count / total, 1e-9), 1 - 1e-9)
            if not 0 < inside < 1:
                continue
            weights *= np.where(mask > 0, share / inside, (1 - share) / (1 - inside))
    with np.errstate(divide="ignore"):
        return DenseModel(model.domain, total, np.log(weights / weights.sum()))
