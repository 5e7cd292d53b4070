"""The worst pair of neighbours for a query, by enumeration where it can be, by search otherwise.

What is found is a lower bound on the sensitivity; after an enumeration of the whole domain it is
the sensitivity.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from deniable.errors import DeniableError, ParameterError, ParameterTypeError
from deniable.mechanisms.values import is_scalar, read_real, read_reals
from deniable.privacy.exact import Number, float_above, read_bounds, sqrt_up, whole
from deniable.privacy.units import Relation, read_relation
from deniable.randomness.bernoulli import uniform_below
from deniable.randomness.source import SECURE

Query = Callable[[list[Any]], Any]
Records = tuple[Any, ...]

_INSIDE = 5  # points of an interval that enumeration tries
_FEW = 24  # neighbours looked at from one place of a search
_SOME = 64  # changes tried from one place of a search
_PATIENCE = 3  # rounds without a gain before a new start
_LARGEST = 1000
_BEYOND = Fraction(10) ** 300


@dataclass(frozen=True)
class WorstPair:
    """Two neighbours between which the query moves most, of those that were tried.

    `moved` is infinite where the query fails, or gives no finite number, on one of the two only.
    """

    moved: float
    data: list[Any]
    neighbour: list[Any]
    exhaustive: bool
    tried: int

    def __str__(self) -> str:
        how = "all pairs of the domain" if self.exhaustive else "not the whole domain"
        return f"moves by {self.moved:g}; {self.tried:,} pairs tried, {how}"


def sensitivity_search(
    query: Query,
    domain: Sequence[Any] | tuple[Number, Number],
    *,
    size: int,
    relation: Relation | str = Relation.ADD_REMOVE,
    norm: int = 1,
    budget: int = 10_000,
) -> WorstPair:
    """Look for two neighbours, of up to `size` records, between which a query moves most.

    Data sets are bags: the query is given their records in the order of the domain, and must not
    depend on it.

    `domain` is a list of possible records, or a pair of bounds as a tuple, of which the ends and
    some points between are tried. All data sets are tried where `budget` pairs suffice; otherwise
    the search climbs from random starts. `norm` is 1 or 2, for queries that give vectors.
    """
    if not callable(query):
        raise ParameterTypeError("query", type(query).__name__, "must be callable on a list")
    if norm not in (1, 2):
        raise ParameterError("norm", norm, "must be 1 or 2")
    kind, most = read_relation(relation), whole(budget, "budget")
    records = _read_domain(domain)
    if whole(size, "size") > _LARGEST:
        raise ParameterError("size", size, f"{_LARGEST} records are the most")
    if kind == Relation.REPLACE and len(records) < 2:
        raise ParameterError("domain", len(records), "a record is replaced by another: give two")
    hunt = _Hunt(query, records, size, kind, norm)
    count = sum(math.comb(len(records) + k - 1, k) for k in range(hunt.size + 1))
    continuous = isinstance(domain, tuple)
    if count * len(records) * (hunt.size if kind == Relation.REPLACE else 1) <= most:
        return hunt.enumerate(exhaustive=not continuous)
    return hunt.climb(most)


def _read_domain(domain: Sequence[Any] | tuple[Number, Number]) -> list[Any]:
    if isinstance(domain, tuple):
        low, high = read_bounds(domain)
        grid = [low + (high - low) * k / (_INSIDE - 1) for k in range(_INSIDE)]
        return [int(point) if point.denominator == 1 else float(point) for point in grid]
    if isinstance(domain, str) or not isinstance(domain, Sequence | np.ndarray | range):
        raise ParameterTypeError("domain", type(domain).__name__, "must be records, or (low, high)")
    records = list(domain)
    if not records:
        raise ParameterError("domain", "empty", "must hold one record or more")
    return records


class _Hunt:
    """The worst pair so far."""

    def __init__(
        self, query: Query, records: list[Any], size: int, relation: Relation, norm: int
    ) -> None:
        self._query, self._records, self.size = query, records, size
        self._relation, self._norm = relation, norm
        self._known: dict[Records, list[Fraction] | None] = {}
        self._worst: tuple[Fraction | float, Records, Records] = (Fraction(-1), (), ())
        self._tried = 0
        self._places = range(len(records))

    def enumerate(self, *, exhaustive: bool) -> WorstPair:
        """Every bag of up to `size` records, and every neighbour of it."""
        for k in range(self.size + 1):
            for places in combinations_with_replacement(range(len(self._records)), k):
                for neighbour in self._neighbours(places):
                    self._try(places, neighbour)
        return self._found(exhaustive=exhaustive)

    def climb(self, budget: int) -> WorstPair:
        """From random starts, changing a record at a time, to where the query moves farthest."""
        while self._tried < budget:
            here, tired = self._random_start(), 0
            best = self._farthest_from(here)
            while self._tried < budget and tired < _PATIENCE:
                steps = [(self._farthest_from(there), there) for there in self._changed(here)]
                farthest, there = max(steps, key=lambda step: step[0])
                tired = 0 if farthest > best else tired + 1
                if farthest >= best:
                    best, here = farthest, there
        return self._found(exhaustive=False)

    def _random_start(self) -> Records:
        length = _one_of(self.size + 1)
        return tuple(sorted(_one_of(len(self._records)) for _ in range(length)))

    def _farthest_from(self, here: Records) -> Fraction | float:
        every = list(self._neighbours(here))
        few = every if len(every) <= _FEW else [every[_one_of(len(every))] for _ in range(_FEW)]
        return max((self._try(here, there) for there in few), default=Fraction(-1))

    def _changed(self, here: Records) -> list[Records]:
        """Bags with one record more, less or exchanged: all of them, or some where many are."""
        rests = [here] if len(here) < self.size else []
        rests += [here[:at] + here[at + 1 :] for at in range(len(here)) if at in _first(here)]
        if len(rests) * len(self._records) <= _SOME:
            return [tuple(sorted((*rest, new))) for rest in rests for new in self._places] + rests
        some = [(rests[_one_of(len(rests))], _one_of(len(self._records))) for _ in range(_SOME)]
        return [tuple(sorted((*rest, new))) for rest, new in some] + rests[:1]

    def _neighbours(self, places: Records) -> Iterator[Records]:
        """Bags one step away; the other direction is met from the other end."""
        if self._relation == Relation.ADD_REMOVE:
            if len(places) < self.size:
                for new in self._places:
                    yield tuple(sorted((*places, new)))
            return
        for at in dict.fromkeys(places):
            rest = list(places)
            rest.remove(at)
            for new in self._places:
                if new != at:
                    yield tuple(sorted((*rest, new)))

    def _try(self, here: Records, there: Records) -> Fraction | float:
        self._tried += 1
        one, other = self._value(here), self._value(there)
        moved = self._distance(one, other)
        if moved > self._worst[0]:
            self._worst = (moved, here, there)
        return moved

    def _distance(
        self, one: list[Fraction] | None, other: list[Fraction] | None
    ) -> Fraction | float:
        if one is None and other is None:
            return Fraction(0)
        if one is None or other is None or len(one) != len(other):
            return math.inf
        moves = [abs(a - b) for a, b in zip(one, other, strict=True)]
        if self._norm == 1:
            return sum(moves, Fraction(0))
        return sqrt_up(sum((move**2 for move in moves), Fraction(0)))

    def _value(self, places: Records) -> list[Fraction] | None:
        """What the query says, exactly; None where it raises or gives no finite number."""
        if places not in self._known:
            self._known[places] = self._ask([deepcopy(self._records[place]) for place in places])
        return self._known[places]

    def _ask(self, data: list[Any]) -> list[Fraction] | None:
        try:
            answer = self._query(data)
            if is_scalar(answer):
                return [Fraction(read_real(answer))]
            return read_reals(answer).exactly()
        except DeniableError:
            return None
        except Exception:  # a query that fails on some data sets only tells them apart
            return None

    def _found(self, *, exhaustive: bool) -> WorstPair:
        moved, here, there = self._worst
        if all(value is None for value in self._known.values()):
            raise ParameterError(
                "query", "no number", "the query gave a finite number on no data set that was tried"
            )
        return WorstPair(
            moved=math.inf if moved > _BEYOND else float_above(Fraction(moved)),
            data=[self._records[place] for place in here],
            neighbour=[self._records[place] for place in there],
            exhaustive=exhaustive,
            tried=self._tried,
        )


def _one_of(count: int) -> int:
    return int(uniform_below(count, 1, SECURE)[0])


def _first(bag: Records) -> set[int]:
    """Where each different record of a sorted bag stands first."""
    return {at for at, place in enumerate(bag) if at == 0 or bag[at - 1] != place}
