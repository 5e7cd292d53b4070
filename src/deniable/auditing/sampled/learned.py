"""Features that are learned: the log ratio of the two laws, by value, by bin, and by regression."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt

from deniable.auditing.sampled.events import Feature
from deniable.auditing.sampled.outcomes import Outcomes, Sides

Floats = npt.NDArray[np.float64]

_MOST_NUMBERS = 24  # of which each gets half-lines and enters the score
_MOST_FORMS = 12
_MOST_VALUES = 2000
_MOST_BINS, _IN_A_BIN, _PRIOR = 64, 40, 2.0
_MOST_FITTED = 6_000  # calls on each side
_STEPS = 30
_RIDGE = 1.0  # prior precision of each weight, in units of one output
_FAR = 8.0  # standardised numbers are cut here, so that tails do not rule the score


def half_lines(calls: Sides) -> Iterator[Feature]:
    """The numbers themselves, those that differ most."""
    only = max(calls.data.numbers.shape[1], calls.neighbour.numbers.shape[1]) == 1
    for place in telling(calls):

        def number(outcomes: Outcomes, place: int = place) -> Floats:
            return outcomes.column(place)

        yield Feature("the number" if only else f"number {place + 1}", number)


def learned(calls: Sides) -> Iterator[Feature]:
    """Scores that are fitted to these calls, and so are to be judged on others."""
    places = telling(calls)
    ratios = value_scores(calls)
    if ratios is not None:
        yield ratios
    yield from bin_scores(calls, places)
    if places or len(np.unique(calls.data.forms)) > 1:
        yield learned_score(calls, places)


def learned_score(calls: Sides, places: list[int]) -> Feature:
    """The log ratio of the two laws, as far as a logistic regression learns it."""
    return Feature("the learned score", logistic_score(calls, places).read)


def telling(calls: Sides) -> list[int]:
    """The places whose numbers differ most in mean rank, or in spread, between the sides."""
    data, neighbour = calls.data, calls.neighbour
    width = min(data.numbers.shape[1], neighbour.numbers.shape[1])
    if width <= _MOST_NUMBERS:
        return list(range(width))
    apart = []
    for place in range(width):
        both = np.concatenate([data.column(place), neighbour.column(place)])
        ranks = np.nan_to_num(both.argsort().argsort() / both.size - 0.5)
        here, there = ranks[: len(data)], ranks[len(data) :]
        moved = abs(here.mean() - there.mean())
        apart.append(max(moved, abs((here**2).mean() - (there**2).mean())))
    return sorted(np.argsort(apart)[::-1][:_MOST_NUMBERS].tolist())


def value_scores(calls: Sides) -> Feature | None:
    """The log ratio of how often each whole output was seen, where there are not too many."""

    def keys(outcomes: Outcomes) -> list[tuple[object, ...]]:
        return [(call[0], tuple(call[1]), call[2]) for call in outcomes.calls]

    here, there = Counter(keys(calls.data)), Counter(keys(calls.neighbour))
    if not 1 < len(here.keys() | there.keys()) <= min(_MOST_VALUES, len(calls) // 4):
        return None
    score = {
        key: float(np.log((here[key] + 0.5) / (there[key] + 0.5)))
        for key in chain(here.keys() | there.keys())
    }

    def read(outcomes: Outcomes) -> Floats:
        return np.array([score.get(key, 0.0) for key in keys(outcomes)])

    return Feature("the log ratio of the output, as learned,", read)


@dataclass(frozen=True, eq=False)
class BinScore:
    """The log ratio of how often a number fell into its bin, learned with a prior."""

    place: int
    edges: Floats
    scores: Floats

    def read(self, outcomes: Outcomes) -> Floats:
        """The score of each output."""
        found: Floats = self.scores[_bins(outcomes.column(self.place), self.edges)]
        return found


def bin_scores(calls: Sides, places: list[int]) -> Iterator[Feature]:
    """One for each number, and their sum; bins hold equal shares, however numbers are spread."""
    read = [bin_score(calls, place) for place in places]
    for score in read:
        where = f" of number {score.place + 1}" if len(read) > 1 else ""
        yield Feature(f"the log ratio of the bin{where}, as learned,", score.read)
    if len(read) > 1:

        def total(outcomes: Outcomes) -> Floats:
            found: Floats = np.sum([score.read(outcomes) for score in read], axis=0)
            return found

        yield Feature("the sum of the log ratios of the bins, as learned,", total)


def bin_score(calls: Sides, place: int) -> BinScore:
    """Learn the bins and their scores."""
    here, there = calls.data.column(place), calls.neighbour.column(place)
    both = np.concatenate([here, there])
    both = both[~np.isnan(both)]
    count = int(np.clip(len(calls) // _IN_A_BIN, 2, _MOST_BINS))
    at = np.linspace(0, 1, count + 1)[1:-1]
    edges = np.unique(np.quantile(both, at, method="nearest")) if both.size else np.zeros(0)
    seen = [np.bincount(_bins(side, edges), minlength=edges.size + 2) for side in (here, there)]
    scores = np.log((seen[0] + _PRIOR) / (seen[1] + _PRIOR))
    return BinScore(place, edges, scores)


def _bins(numbers: Floats, edges: Floats) -> npt.NDArray[np.int64]:
    """The bin of each number; NaN has the last one to itself."""
    found = np.searchsorted(edges, numbers, side="right")
    return np.where(np.isnan(numbers), edges.size + 1, found)


@dataclass(frozen=True, eq=False)
class LogisticScore:
    """A weighted sum of numbers, their squares and ranks, and of forms."""

    places: list[int]
    middles: Floats
    spreads: Floats
    ranks: list[Floats]
    forms: list[str]
    weights: Floats

    def read(self, outcomes: Outcomes) -> Floats:
        """The score of each output."""
        found: Floats = self.design(outcomes) @ self.weights
        return found

    def design(self, outcomes: Outcomes) -> Floats:
        """What is weighed."""
        columns = [np.ones(len(outcomes))]
        for place, middle, spread, ranks in zip(
            self.places, self.middles, self.spreads, self.ranks, strict=True
        ):
            numbers = outcomes.column(place)
            known = np.isfinite(numbers)
            with np.errstate(over="ignore", invalid="ignore"):
                scaled = np.where(known, (numbers - middle) / spread, 0.0)
            scaled = np.clip(np.nan_to_num(scaled), -_FAR, _FAR)
            rank = np.where(known, np.searchsorted(ranks, numbers) / max(1, ranks.size) - 0.5, 0)
            columns += [scaled, scaled**2 / _FAR, rank, np.abs(rank), (~known).astype(float)]
        columns += [(outcomes.forms == form).astype(np.float64) for form in self.forms]
        return np.column_stack(columns)


def logistic_score(calls: Sides, places: list[int]) -> LogisticScore:
    """Fit which side an output came from, by Newton's method with a ridge."""
    data, neighbour = (
        Outcomes(side.calls[:_MOST_FITTED]) for side in (calls.data, calls.neighbour)
    )
    middles, spreads, ranks = [], [], []
    for place in places:
        both = np.concatenate([data.column(place), neighbour.column(place)])
        known = both[np.isfinite(both)]
        low, middle, high = np.quantile(known, [0.25, 0.5, 0.75]) if known.size else (0.0, 0.0, 1.0)
        middles.append(middle)
        spreads.append(max(float(high - low), 1e-12 * (1 + abs(float(middle)))))
        ranks.append(np.sort(known))
    seen = Counter(chain(data.forms.tolist(), neighbour.forms.tolist()))
    forms = [form for form, _ in seen.most_common(_MOST_FORMS)] if len(seen) > 1 else []
    start = LogisticScore(places, np.array(middles), np.array(spreads), ranks, forms, np.zeros(0))
    design = np.vstack([start.design(data), start.design(neighbour)])
    side = np.concatenate([np.ones(len(data)), np.zeros(len(neighbour))])
    return LogisticScore(places, start.middles, start.spreads, ranks, forms, _weights(design, side))


def _weights(design: Floats, side: Floats) -> Floats:
    weights = np.zeros(design.shape[1])
    ridge = _RIDGE * np.eye(design.shape[1])
    for _ in range(_STEPS):
        chance = 1 / (1 + np.exp(-np.clip(design @ weights, -30, 30)))
        slope = design.T @ (side - chance) - ridge @ weights
        bend = (design * (chance * (1 - chance))[:, None]).T @ design + ridge
        step = np.linalg.solve(bend, slope)
        weights = weights + step
        if np.abs(step).max() < 1e-6:
            break
    return weights
