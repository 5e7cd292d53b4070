"""What can be chosen by private scores, as a closed list: no caller's code sees an exact count.

Each question holds public numbers alone. Its scores are whole numbers in steps, and its
`sensitivity` says how far one of them moves when the counts of a marginal move by `moved` in L1,
once `check` has found the public numbers to be what they should be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from deniable.errors import ParameterError
from deniable.privacy.exact import whole
from deniable.synthesis.domain import Clique, Counts, Domain, Floats
from deniable.synthesis.queries import Counting

Exact = Callable[[Clique], Counts]

_LARGEST = 1 << 61
_WIDEST = 1 << 40


@dataclass(frozen=True, eq=False)
class WrongMarginal:
    """Which marginal does a public model get most wrong?

    The score of a candidate is weight · (Σ |exact - model| - handicap): by the triangle inequality
    it moves by weight · moved.
    """

    cliques: Sequence[Clique]
    models: Sequence[Floats]
    weights: Sequence[int]
    handicaps: Sequence[float]

    def __post_init__(self) -> None:
        parts: list[Sequence[Any]] = [self.cliques, self.models, self.weights, self.handicaps]
        if len({len(part) for part in parts}) != 1 or not self.cliques:
            raise ParameterError("candidates", len(self.cliques), "must be one or more, all alike")

    def check(self, domain: Domain) -> None:
        """A model must have the shape of its marginal: others would count a row several times."""
        for clique, model, weight in zip(self.cliques, self.models, self.weights, strict=True):
            whole(weight, "weights")
            if clique != domain.clique(clique) or np.shape(model) != domain.shape(clique):
                raise ParameterError(
                    "models", " x ".join(clique), "must have the shape of its marginal"
                )

    @property
    def count(self) -> int:
        """How many candidates there are."""
        return len(self.cliques)

    def sensitivity(self, moved: int) -> int:
        """The largest weight times what is moved."""
        return max(self.weights) * moved

    def scores(self, exact: Exact, steps: int) -> list[int]:
        """One for each clique."""
        found = []
        rest = zip(self.models, self.weights, self.handicaps, strict=True)
        for clique, (model, weight, handicap) in zip(self.cliques, rest, strict=True):
            wrong = int(np.abs(exact(clique).ravel() - in_steps(model, steps).ravel()).sum())
            less = int(min(max(handicap, 0.0) * steps, float(_LARGEST)))
            found.append(weight * (wrong - less))
        return found


@dataclass(frozen=True, eq=False)
class ClosestOffer:
    """Which of many public lists of answers is closest, in its worst answer?

    `offers` makes chunks of lists of expected counts, one list a row. A score is minus the largest
    |answer - exact|: it moves by what an exact answer moves.
    """

    queries: Sequence[Counting]
    count: int
    offers: Callable[[], Iterable[Floats]]

    def check(self, domain: Domain) -> None:
        """Queries must be counting queries of this domain."""
        _check_queries(self.queries, domain)

    def sensitivity(self, moved: int) -> int:
        """What one counting query moves."""
        return moved

    def scores(self, exact: Exact, steps: int) -> Counts:
        """One for each offer."""
        truth = np.array([query.of_exact(exact(query.clique)) for query in self.queries])
        parts = [-np.abs(in_steps(rows, steps) - truth).max(axis=1) for rows in self.offers()]
        found: Counts = np.concatenate(parts)
        return found


@dataclass(frozen=True, eq=False)
class BoostedQuery:
    """Which query do several synopses get wrong, as Dwork, Rothblum & Vadhan (2010) boost.

    Each synopsis votes from -width (right) to +width (wrong), straight between the errors `right`
    and `right` + width; the score is the sum of the votes. An error that moves by m moves a vote by
    2m at most, so the score of t synopses by 2tm.
    """

    queries: Sequence[Counting]
    synopses: Sequence[Floats]
    right: float
    width: float

    def check(self, domain: Domain) -> None:
        """Queries must be counting queries of this domain, and errors sums that do not wrap."""
        _check_queries(self.queries, domain)
        if not 0 <= min(self.right, self.width) <= max(self.right, self.width) < _WIDEST:
            raise ParameterError("width", self.width, f"must be 0 to {_WIDEST:,}, like right")

    @property
    def count(self) -> int:
        """How many queries there are."""
        return len(self.queries)

    def sensitivity(self, moved: int) -> int:
        """Twice what is moved, for each synopsis; one where there is none yet."""
        return max(1, 2 * len(self.synopses) * moved)

    def scores(self, exact: Exact, steps: int) -> Counts:
        """One for each query."""
        truth = np.array([query.of_exact(exact(query.clique)) for query in self.queries])
        total = np.zeros(len(self.queries), dtype=np.int64)
        right, width = round(self.right * steps), max(1, round(self.width * steps))
        for answers in self.synopses:
            wrong = np.abs(in_steps(answers, steps) - truth)
            total += np.clip(2 * (wrong - right) - width, -width, width)
        return total


Question = WrongMarginal | ClosestOffer | BoostedQuery


def _check_queries(queries: Sequence[Counting], domain: Domain) -> None:
    if not queries:
        raise ParameterError("queries", "none", "name one query or more")
    for query in queries:
        Counting.check(query, domain)


def in_steps(model: Floats, steps: int) -> Counts:
    """Public expected counts as whole steps, held where no sum of differences can wrap around."""
    most = float(_LARGEST // max(model.size, 1 << 10))
    wide = np.nan_to_num(model * steps, nan=0.0, posinf=most, neginf=-most)
    found: Counts = np.rint(np.clip(wide, -most, most)).astype(np.int64)
    return found
