"""Events: something about an output that either happens or not; and how one is chosen.

A feature turns outputs into numbers; an event is a feature at or above a threshold, or below it.
The battery is fixed: which features there are follows from no data. Which value, threshold and
direction of them to test is chosen on calls of which none tests it.
"""

from __future__ import annotations

import heapq
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import numpy.typing as npt

from deniable.auditing.sampled.bounds import Counts, EventCounts, above, below
from deniable.auditing.sampled.claims import Claim
from deniable.auditing.sampled.outcomes import GONE, RAISES, Outcomes, Sides

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

_MOST_CUTS = 256
_MOST_VALUES = 60
_MOST_WORDS = 20
_MOST_PROPOSED = 40
_USELESS = 1e9
_CLEAR, _SURE = 0.9, 4.0
_NO_BITS = 5000.0  # the place of the lowest set bit of zero


@dataclass(frozen=True, eq=False)
class Feature:
    """A number for each output, and how to say it. Yes-or-no features are 1 or 0."""

    name: str
    read: Callable[[Outcomes], Floats]
    yes_or_no: bool = False


@dataclass(frozen=True, eq=False)
class Event:
    """A feature at or above a threshold, or below it."""

    feature: Feature
    threshold: float
    at_least: bool

    def happens(self, outcomes: Outcomes) -> Flags:
        """For each output, whether the event happened."""
        scores = self.feature.read(outcomes)
        high: Flags = scores >= self.threshold
        return high if self.at_least else ~high

    def __str__(self) -> str:
        if self.feature.yes_or_no:
            return self.feature.name if self.at_least else f"not: {self.feature.name}"
        sign = ">=" if self.at_least else "<"
        return f"{self.feature.name} {sign} {self.threshold:.10g}"


@dataclass(frozen=True, eq=False)
class Candidate:
    """An event that seems likelier on one side than is allowed, and by how much.

    `forward` is true where that side is the data.
    """

    event: Event
    forward: bool
    margin: float

    def count(self, calls: Sides, level: float) -> EventCounts:
        """How often it happens in new calls."""
        more, less = calls.data, calls.neighbour
        if not self.forward:
            more, less = less, more
        hits = [int(self.event.happens(each).sum()) for each in (more, less)]
        return EventCounts(hits[0], hits[1], len(calls), level)


def battery(calls: Sides) -> Iterator[Feature]:
    """The fixed features, and one for each common form, text and value that these calls show."""
    data, neighbour = calls.data, calls.neighbour
    yield Feature("an exception is raised", _starts_with(RAISES), yes_or_no=True)
    yield Feature("the process ends", _starts_with(GONE), yes_or_no=True)
    yield Feature("a number is NaN", lambda o: o.has_nan.astype(float), yes_or_no=True)
    yield Feature("a number is infinite", lambda o: o.has_infinity.astype(float), yes_or_no=True)
    yield Feature("how many numbers there are", lambda o: o.widths)
    yield Feature("something is printed or warned of", _any_shown, yes_or_no=True)
    for name, read in (
        ("type, shape or row set", lambda o: o.forms),
        ("text", lambda o: o.texts),
        ("printed text", lambda o: o.shown),
    ):
        yield from _values(name, read, data, neighbour)
    for name, read in (("text", lambda o: o.texts), ("printed text", lambda o: o.shown)):
        yield from _words(name, read, data, neighbour)
    yield from _numbers(data, neighbour)
    yield Feature("the count of negative signs", lambda o: np.signbit(o.numbers).sum(axis=1) * 1.0)
    yield Feature("what a number that is none holds", _hidden_in_nan)
    yield Feature("the place of the lowest set bit", lambda o: lowest_bits(o).min(axis=1))
    yield Feature("the highest place of a lowest set bit", lambda o: lowest_bits(o).max(axis=1))


def _starts_with(text: str) -> Callable[[Outcomes], Floats]:
    return lambda outcomes: np.char.startswith(outcomes.forms, text).astype(np.float64)


def _any_shown(outcomes: Outcomes) -> Floats:
    found: Floats = (outcomes.shown != "").astype(np.float64)
    return found


def _values(
    name: str,
    read: Callable[[Outcomes], npt.NDArray[np.str_]],
    data: Outcomes,
    neighbour: Outcomes,
) -> Iterator[Feature]:
    """One feature for each of the commonest values, where there are several."""
    seen = Counter(chain(read(data).tolist(), read(neighbour).tolist()))
    if len(seen) < 2:
        return
    for value, _ in seen.most_common(_MOST_VALUES):

        def is_it(outcomes: Outcomes, value: str = value) -> Floats:
            found: Floats = (read(outcomes) == value).astype(np.float64)
            return found

        yield Feature(f"the {name} is {value[:60]!r}", is_it, yes_or_no=True)


def _words(
    name: str,
    read: Callable[[Outcomes], npt.NDArray[np.str_]],
    data: Outcomes,
    neighbour: Outcomes,
) -> Iterator[Feature]:
    """How long a text is, and one feature for each word, and each last letter, that tells most.

    A text with a number that never comes again differs from all others, whatever else is in it.
    """
    here, there = (read(side).tolist() for side in (data, neighbour))
    if len(set(here) | set(there)) < 2:
        return
    yield Feature(f"the length of the {name}", lambda o: np.char.str_len(read(o)).astype(float))
    seen = [Counter(word for text in side for word in _parts(text)) for side in (here, there)]
    apart = sorted(seen[0].keys() | seen[1].keys(), key=lambda w: -abs(seen[0][w] - seen[1][w]))
    for word in apart[:_MOST_WORDS]:

        def has_it(outcomes: Outcomes, word: str = word) -> Floats:
            return np.array([float(word in _parts(text)) for text in read(outcomes).tolist()])

        yield Feature(f"the {name} holds {word[:40]!r}", has_it, yes_or_no=True)


def _parts(text: str) -> set[str]:
    """The words of a text, and its first and last letter."""
    return {*re.findall(r"\w+|\S", text), f"{text[:1]}...", f"...{text[-1:]}"}


def _hidden_in_nan(outcomes: Outcomes) -> Floats:
    """The bits of NaN that mean nothing, and so may mean anything."""
    bits = outcomes.numbers.view(np.uint64) & np.uint64((1 << 50) - 1)
    found: Floats = np.where(np.isnan(outcomes.numbers), bits, 0).sum(axis=1).astype(np.float64)
    return found


def _numbers(data: Outcomes, neighbour: Outcomes) -> Iterator[Feature]:
    """One feature for each of the commonest exact numbers: the support."""
    for place in range(min(3, data.numbers.shape[1])):
        seen = Counter(chain(data.column(place).tolist(), neighbour.column(place).tolist()))
        for value, count in seen.most_common(_MOST_VALUES):
            if count < 2 or math.isnan(value):
                continue

            def is_it(outcomes: Outcomes, value: float = value, place: int = place) -> Floats:
                found: Floats = (outcomes.column(place) == value).astype(np.float64)
                return found

            where = f" {place + 1}" if data.numbers.shape[1] > 1 else ""
            yield Feature(f"number{where} is {value:.17g}", is_it, yes_or_no=True)


def lowest_bits(outcomes: Outcomes) -> Floats:
    """The exponent of the lowest set bit of each number (Mironov 2012).

    Noise made of floats leaves bits that depend on the value to which it was added.
    """
    numbers = outcomes.numbers
    if not numbers.shape[1]:
        return np.full((len(outcomes), 1), _NO_BITS)
    finite = np.isfinite(numbers)
    mantissa, exponent = np.frexp(np.where(finite, numbers, 0.0))
    whole = np.abs(np.ldexp(mantissa, 53)).astype(np.int64)
    lowest = np.log2(np.maximum(whole & -whole, 1).astype(np.float64))
    found: Floats = np.where(finite & (whole != 0), lowest + exponent - 53, _NO_BITS)
    return found


@dataclass(frozen=True)
class Coming:
    """The test for which an event is chosen: of which claim, at which level, on how many calls."""

    claim: Claim
    level: float
    trials: int


def best(features: Iterable[Feature], calls: Sides, coming: Coming) -> Candidate | None:
    """The event that exceeds what is allowed most clearly on these calls.

    Clearly: the excess, in the claim's parameter, is compared with how far the bounds of the coming
    test will lie off. Where nothing is clear, or much is, the event with the largest lower bound is
    taken. An event that the claim allows to be certain comes after all others.
    """
    return max(_candidates(features, calls, coming), key=_by_margin, default=None)


def best_again(
    features: Iterable[Feature], first: Sides, second: Sides, coming: Coming
) -> Candidate | None:
    """The best on the second calls of those that are best on the first.

    The best of hundreds of events looks better than it is on the calls that made it the best; on
    others each looks as it is.
    """
    proposed = heapq.nlargest(_MOST_PROPOSED, _candidates(features, first, coming), key=_by_margin)
    return max((_seen(each, second, coming) for each in proposed), key=_by_margin, default=None)


def _by_margin(candidate: Candidate) -> float:
    return candidate.margin


def _seen(candidate: Candidate, calls: Sides, coming: Coming) -> Candidate:
    counted = candidate.count(calls, coming.level)
    more, less = np.array([counted.more]), np.array([counted.less])
    return replace(candidate, margin=float(_clearness(more, less, len(calls), coming)[0]))


def _candidates(features: Iterable[Feature], calls: Sides, coming: Coming) -> Iterator[Candidate]:
    """For each feature the best threshold in each direction. NaN is at or above nothing."""
    for feature in features:
        here, there = feature.read(calls.data), feature.read(calls.neighbour)
        if not (np.isfinite(here).any() and np.isfinite(there).any()) and not feature.yes_or_no:
            continue
        pooled = np.concatenate([here, there])
        pooled = pooled[~np.isnan(pooled)]
        thresholds = np.unique(pooled)
        if thresholds.size > _MOST_CUTS:
            at = np.linspace(0, 1, _MOST_CUTS)
            thresholds = np.unique(np.quantile(pooled, at, method="nearest"))
        high = [_at_least(scores, thresholds) for scores in (here, there)]
        low = [len(calls) - counts for counts in high]
        for at_least, (on_data, on_neighbour) in ((True, high), (False, low)):
            for forward, more, less in (
                (True, on_data, on_neighbour),
                (False, on_neighbour, on_data),
            ):
                margins = _clearness(more, less, len(calls), coming)
                place = int(margins.argmax())
                event = Event(feature, float(thresholds[place]), at_least)
                yield Candidate(event, forward, float(margins[place]))


def _clearness(more: Counts, less: Counts, trials: int, coming: Coming) -> Floats:
    """Excess over width; above one, the coming test would certify if it saw the same."""
    claim, level = coming.claim, coming.level
    p, q = (more + 0.5) / (trials + 1), (less + 0.5) / (trials + 1)
    seen = claim.scale(p, q)
    bound = claim.scale(below(more, trials, level / 2), above(less, trials, level / 2))
    width = np.maximum((seen - bound) * math.sqrt(trials / coming.trials), 1e-12)
    most = claim.chosen_by(q)
    excess = seen - claim.scale(most, q)
    clear = excess / width
    found = np.where(clear > _CLEAR, clear, np.minimum(_CLEAR, _CLEAR + excess - width))
    found = np.where(clear > _SURE, _SURE + np.maximum(0.0, excess - width), found)
    return np.where(most < 1, found, excess - width - _USELESS)


def _at_least(scores: Floats, thresholds: Floats) -> Counts:
    known = np.sort(scores[~np.isnan(scores)])
    return known.size - np.searchsorted(known, thresholds, side="left")
