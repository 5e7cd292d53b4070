"""What can be chosen by private scores, as a closed list: no caller's code sees an exact count.

Each question holds public numbers alone, and `frozen` reads them once: check, sensitivity and
scores are all of the same plain numbers, whatever lists and arrays a caller handed in. Scores are
whole numbers in steps, and `sensitivity` says how far one of them moves when the counts of a
marginal move by `moved` in L1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations_with_replacement, islice

import numpy as np

from deniable.errors import ParameterError
from deniable.privacy.exact import whole
from deniable.synthesis.domain import Clique, Counts, Domain, Floats
from deniable.synthesis.queries import Counting

Exact = Callable[[Clique], Counts]

MOST_DATABASES = 1_000_000
_LARGEST = 1 << 61
_WIDEST = 1 << 40
_CHUNK = 10_000


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

    @staticmethod
    def frozen(given: WrongMarginal, domain: Domain) -> WrongMarginal:
        """A model must have the shape of its marginal: others would count a row several times."""
        cliques = tuple(tuple(clique) for clique in given.cliques)
        models = tuple(plain(model) for model in given.models)
        weights = tuple(whole(weight, "weights") for weight in given.weights)
        handicaps = tuple(float(handicap) for handicap in given.handicaps)
        if len({len(cliques), len(models), len(weights), len(handicaps)}) != 1 or not cliques:
            raise ParameterError("candidates", len(cliques), "must be one or more, all alike")
        own = tuple(domain.clique(clique) for clique in cliques)
        for clique, same, model in zip(cliques, own, models, strict=True):
            if clique != same or model.shape != domain.shape(same):
                raise ParameterError(
                    "models", " x ".join(same), "must have the shape of its marginal"
                )
        return WrongMarginal(own, models, weights, handicaps)

    @property
    def count(self) -> int:
        return len(self.cliques)

    def sensitivity(self, moved: int) -> int:
        """The largest weight times what is moved."""
        return max(self.weights) * moved

    def scores(self, exact: Exact, steps: int) -> list[int]:
        found = []
        rest = zip(self.models, self.weights, self.handicaps, strict=True)
        for clique, (model, weight, handicap) in zip(self.cliques, rest, strict=True):
            wrong = int(np.abs(exact(clique).ravel() - in_steps(model, steps).ravel()).sum())
            less = int(min(max(handicap, 0.0) * steps, float(_LARGEST)))
            found.append(weight * (wrong - less))
        return found


@dataclass(frozen=True, eq=False)
class ClosestDatabase:
    """Which database of a few rows, scaled to `total`, is closest in its worst answer?

    The candidates are all databases of so many rows, in the order of `multisets`. A score is
    minus the largest |answer - exact|: it moves by what an exact answer moves.
    """

    queries: Sequence[Counting]
    rows: int
    total: float
    _masks: Floats = field(default_factory=lambda: np.zeros((1, 1)), init=False, repr=False)

    @staticmethod
    def frozen(given: ClosestDatabase, domain: Domain) -> ClosestDatabase:
        """Queries must be counting queries of this domain, and databases few."""
        queries, rows = _frozen_queries(given.queries, domain), whole(given.rows, "rows")
        if databases(domain.cells, rows) > MOST_DATABASES:
            raise ParameterError("rows", rows, f"more than {MOST_DATABASES:,} databases")
        made = ClosestDatabase(queries, rows, float(given.total))
        masks = [np.broadcast_to(query.mask(domain), domain.sizes).ravel() for query in queries]
        object.__setattr__(made, "_masks", np.stack(masks))
        return made

    @property
    def count(self) -> int:
        return databases(self._masks.shape[1], self.rows)

    def sensitivity(self, moved: int) -> int:
        """What one counting query moves."""
        return moved

    def scores(self, exact: Exact, steps: int) -> Counts:
        truth = np.array([query.of_exact(exact(query.clique)) for query in self.queries])
        parts = []
        for chunk in chunks(self._masks.shape[1], self.rows):
            answers = chunk @ self._masks.T * (self.total / self.rows)
            parts.append(-np.abs(in_steps(answers, steps) - truth).max(axis=1))
        return np.concatenate(parts)


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

    @staticmethod
    def frozen(given: BoostedQuery, domain: Domain) -> BoostedQuery:
        """Queries must be counting queries of this domain, and errors sums that do not wrap."""
        queries = _frozen_queries(given.queries, domain)
        synopses = tuple(plain(answers) for answers in given.synopses)
        right, width = float(given.right), float(given.width)
        votes = (width + 1) * max(1, len(synopses))
        if not 0 <= min(right, width) <= max(right, votes) < _WIDEST:
            raise ParameterError("width", width, f"all votes must be 0 to {_WIDEST:,}, like right")
        if any(answers.shape != (len(queries),) for answers in synopses):
            raise ParameterError("synopses", len(synopses), "must answer every query")
        return BoostedQuery(queries, synopses, right, width)

    @property
    def count(self) -> int:
        return len(self.queries)

    def sensitivity(self, moved: int) -> int:
        """Twice what is moved, for each synopsis; one where there is none yet."""
        return max(1, 2 * len(self.synopses) * moved)

    def scores(self, exact: Exact, steps: int) -> Counts:
        truth = np.array([query.of_exact(exact(query.clique)) for query in self.queries])
        total = np.zeros(len(self.queries), dtype=np.int64)
        right, width = round(self.right * steps), max(1, round(self.width * steps))
        for answers in self.synopses:
            wrong = np.abs(in_steps(answers, steps) - truth)
            total += np.clip(2 * (wrong - right) - width, -width, width)
        return total


def databases(cells: int, rows: int) -> int:
    """How many different databases of so many rows over so many records there are.

    Public: they are counted out, not looked up.
    """
    return math.comb(rows + cells - 1, rows)


def multisets(cells: int, rows: int) -> Iterator[tuple[int, ...]]:
    """Every database once, as the records of its rows."""
    return combinations_with_replacement(range(cells), rows)


def chunks(cells: int, rows: int) -> Iterator[Counts]:
    """The counts of many databases at once."""
    every = multisets(cells, rows)
    while some := list(islice(every, _CHUNK)):
        flat = np.array(some) + np.arange(len(some))[:, None] * cells
        yield np.bincount(flat.ravel(), minlength=len(some) * cells).reshape(-1, cells)


Question = WrongMarginal | ClosestDatabase | BoostedQuery


def _frozen_queries(queries: Iterable[Counting], domain: Domain) -> tuple[Counting, ...]:
    found = tuple(Counting.frozen(query, domain) for query in queries)
    if not found:
        raise ParameterError("queries", "none", "name one query or more")
    return found


def plain(numbers: object) -> Floats:
    """A copy in floats of its own: no class of a caller's computes with it."""
    return np.array(numbers, dtype=np.float64, subok=False, copy=True)


def in_steps(model: Floats, steps: int) -> Counts:
    """Public expected counts as whole steps, held where no sum of differences can wrap around."""
    own = plain(model)
    most = float(_LARGEST // max(own.size, 1 << 10))
    wide = np.nan_to_num(own * steps, nan=0.0, posinf=most, neginf=-most)
    return np.rint(np.clip(wide, -most, most)).astype(np.int64)
