"""Subset selection: a set of categories that likely holds the true one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from functools import partial
from itertools import combinations
from typing import ClassVar

import numpy as np

from deniable.errors import ParameterError
from deniable.lazy import lazy
from deniable.privacy.channel import Channel
from deniable.privacy.exact import whole
from deniable.privacy.parameters import parameter, parameters
from deniable.survey.answers import Answers, Integers, read_answers, read_size
from deniable.survey.bits import Coins, Keys, blocks, coins, random_sets
from deniable.survey.formats import Bits
from deniable.survey.frequency import Frequency
from deniable.survey.laws import enumerable
from deniable.survey.protocol import Pair, Reports
from deniable.survey.shares import Support
from deniable.survey.thresholds import WORD, keep
from deniable.survey.unary import MOST_BITS
from deniable.trace import traced

_LAST_KEY = np.uint32(2**32 - 1)


@parameters
class SubsetSelection(Frequency):
    """Report a set of w = `size` categories, which likely holds the true one.

    It does with probability e^ε w/(e^ε w + k - w). All sets that hold it are equally likely, and so
    are all that do not (Ye & Barg 2018; Wang et al. 2016). The size is the better of the two next
    to k/(e^ε + 1) unless given. Nothing known has a lower variance by much, for any k and ε.
    """

    kind: ClassVar[str] = "subset selection"
    k: int = parameter(partial(read_size, most=MOST_BITS))
    size: int = 0

    def __post_init__(self) -> None:
        size = self.size or _best_size(self.k, float(self.epsilon))
        if whole(size, "size") >= self.k:
            raise ParameterError("size", size, f"must be 1 to {self.k - 1}, below k")
        object.__setattr__(self, "size", int(size))

    @lazy
    def holds(self) -> Fraction:
        """The probability that the set holds the true category."""
        return keep(self.epsilon, Fraction(self.size, self.k - self.size))

    @property
    def thresholds(self) -> Mapping[str, int]:
        """Hold the true category below this."""
        return {"holds": int(self.holds * WORD)}

    def _chances(self) -> tuple[Fraction, Fraction]:
        """P(another category is in the set), given that the true one is, and that it is not."""
        return Fraction(self.size - 1, self.k - 1), Fraction(self.size, self.k - 1)

    @property
    def pair(self) -> Pair:
        """Both answers in the set, one, the other, none."""
        with_it, without = self._chances()
        both, only = self.holds * with_it, self.holds * (1 - with_it)
        other, none = (1 - self.holds) * without, (1 - self.holds) * (1 - without)
        return (both, only, other, none), (both, other, only, none)

    @property
    def support(self) -> Support:
        with_it, without = self._chances()
        other = self.holds * with_it + (1 - self.holds) * without
        return Support(float(self.holds), float(other))

    @property
    def format(self) -> Bits:
        return Bits(self.k, ones=self.size)

    def channel(self) -> Channel:
        """P(set | answer), for few sets."""
        enumerable(math.comb(self.k, self.size))
        places = tuple(range(self.k))
        sets = tuple(combinations(places, self.size))
        each = self.holds / math.comb(self.k - 1, self.size - 1)
        other = (1 - self.holds) / math.comb(self.k - 1, self.size)
        rows = tuple(tuple(each if x in chosen else other for chosen in sets) for x in places)
        return Channel(places, sets, rows)

    @traced
    def randomize(self, values: Answers) -> Reports:
        """One row of packed bits for each true answer: the categories of its set."""
        truth = read_answers(values, self.k)
        held = coins(self.holds, truth.size)
        out = np.empty((truth.size, -(-self.k // 8)), dtype=np.uint8)
        for part in blocks(truth.size, self.k):
            out[part] = np.packbits(_subsets(truth[part], held[part], self.k, self.size), axis=1)
        return out


def _subsets(truth: Integers, held: Coins, k: int, size: int) -> Coins:
    """Random sets with the true category placed first or last."""

    def place(keys: Keys, rows: Integers) -> None:
        first_or_last = np.where(held[rows], np.uint32(0), _LAST_KEY)
        keys[np.arange(rows.size), truth[rows]] = first_or_last

    return random_sets(truth.size, k, size, place)


def _best_size(k: int, epsilon: float) -> int:
    ideal = k / (math.exp(min(epsilon, 700)) + 1)
    near = {min(max(1, size), k - 1) for size in (math.floor(ideal), math.ceil(ideal))}
    return min(sorted(near), key=lambda size: _variance(k, size, epsilon))


def _variance(k: int, size: int, epsilon: float) -> float:
    odds = math.exp(epsilon) * size / (k - size)
    p = odds / (1 + odds)
    q = (p * (size - 1) + (1 - p) * size) / (k - 1)
    return q * (1 - q) / (p - q) ** 2
