"""How far the textbook queries move when one unit is added, removed or replaced.

Each unit is one record. A function returns the exact sensitivity in L1 and in L2 for a relation.
A brute-force twin in the tests enumerates small domains and agrees.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from deniable.privacy.exact import Number, read_bounds, sqrt_up, whole
from deniable.privacy.units import Relation, read_relation


@dataclass(frozen=True)
class Sensitivity:
    """The largest move of a query between neighbours, in L1 and L2 (rounded up if irrational)."""

    l1: Fraction
    l2: Fraction


def count(relation: Relation | str = Relation.ADD_REMOVE) -> Sensitivity:
    """How many records satisfy a condition: 1 either way."""
    read_relation(relation)
    return _scalar(Fraction(1))


def total(
    bounds: tuple[Number, Number], relation: Relation | str = Relation.ADD_REMOVE
) -> Sensitivity:
    """The sum of values in [a, b]: max(|a|, |b|), or b - a when a record is replaced."""
    low, high = read_bounds(bounds)
    if read_relation(relation) == Relation.REPLACE:
        return _scalar(high - low)
    return _scalar(max(abs(low), abs(high)))


def mean(
    bounds: tuple[Number, Number], *, at_least: int, relation: Relation | str = Relation.ADD_REMOVE
) -> Sensitivity:
    """The mean of values in [a, b] of at least `at_least` records, publicly so.

    Replaced: (b - a)/m. Added or removed, both data sets having at least m records: a record
    beyond m moves the mean of m by (b - a)/(m + 1).
    """
    low, high = read_bounds(bounds)
    size = whole(at_least, "at_least")
    if read_relation(relation) == Relation.REPLACE:
        return _scalar((high - low) / size)
    return _scalar((high - low) / (size + 1))


def maximum(
    bounds: tuple[Number, Number], relation: Relation | str = Relation.ADD_REMOVE
) -> Sensitivity:
    """The largest value in [a, b], `a` for no records: b - a."""
    return _whole_range(bounds, relation)


def minimum(
    bounds: tuple[Number, Number], relation: Relation | str = Relation.ADD_REMOVE
) -> Sensitivity:
    """The smallest value in [a, b], `b` for no records: b - a."""
    return _whole_range(bounds, relation)


def median(
    bounds: tuple[Number, Number], relation: Relation | str = Relation.ADD_REMOVE
) -> Sensitivity:
    """The lower median of values in [a, b], `a` for no records: b - a."""
    return _whole_range(bounds, relation)


def histogram(relation: Relation | str = Relation.ADD_REMOVE) -> Sensitivity:
    """Counts in disjoint cells, however many: L1 of 1, or of 2 when a record changes its cell."""
    moved = read_relation(relation).changed
    return Sensitivity(Fraction(moved), sqrt_up(Fraction(moved)))


def counts(k: int, relation: Relation | str = Relation.ADD_REMOVE) -> Sensitivity:
    """k counts of conditions that may all hold at once: L1 of k, L2 of sqrt k."""
    read_relation(relation)
    many = whole(k, "k")
    return Sensitivity(Fraction(many), sqrt_up(Fraction(many)))


def _whole_range(bounds: tuple[Number, Number], relation: Relation | str) -> Sensitivity:
    read_relation(relation)
    low, high = read_bounds(bounds)
    return _scalar(high - low)


def _scalar(moved: Fraction) -> Sensitivity:
    return Sensitivity(moved, moved)
