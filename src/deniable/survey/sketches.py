"""Sketches for very many categories: the category is hashed by one of a few public functions."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import ClassVar

import numpy as np

from deniable.errors import ParameterError
from deniable.lazy import lazy
from deniable.privacy.channel import Channel
from deniable.privacy.exact import whole
from deniable.privacy.parameters import parameter, parameters
from deniable.randomness.bernoulli import uniform_below
from deniable.randomness.source import SECURE
from deniable.survey.answers import Answers, Integers, read_answers, read_size, within
from deniable.survey.bits import coins
from deniable.survey.formats import Sketched, Tuples
from deniable.survey.frequency import Frequency
from deniable.survey.hadamard import parity, transform
from deniable.survey.hashing import (
    Words,
    polynomial_bucket,
    polynomial_collision,
    public_polynomials,
)
from deniable.survey.laws import OneHot, bit_channel, enumerable
from deniable.survey.local_hashing import read_candidates
from deniable.survey.protocol import Pair, Reports
from deniable.survey.shares import ShareEstimate, Spoken, Support, Tally, chosen
from deniable.survey.thresholds import WORD, keep
from deniable.trace import traced

_MOST_COUNTED = 1 << 22
_MOST_HASHED = 2**31 - 1


def _read_salt(value: object, argument: str) -> str:
    if not isinstance(value, str) or any("\ud800" <= sign <= "\udfff" for sign in value):
        raise ParameterError(argument, type(value).__name__, "must be text that UTF-8 can write")
    return value


@parameters
class _Sketch(Frequency):
    """`hashes` public functions into `width` places, drawn from the public text `salt`.

    Estimates are unbiased over the draw of the functions. The error that the collisions of a drawn
    set add is part of the standard error, whichever categories are asked for: it follows from the
    sum of all squared shares, which is estimated from the sketch itself, from above.
    """

    k: int = parameter(partial(read_size, most=_MOST_HASHED))
    differing: ClassVar[int]  # in how many coins the reports of two answers differ
    hashes: int = parameter(within(1, 1 << 16))
    width: int = parameter(partial(read_size, most=1 << 16))
    salt: str = parameter(_read_salt, default="")

    @lazy
    def functions(self) -> Words:
        """The functions' coefficients."""
        return public_polynomials(self.salt, self.hashes)

    def place(self, categories: Integers, functions: Integers) -> Integers:
        """Where each category falls, each under its own function."""
        return polynomial_bucket(self.functions[functions], categories, self.width)

    def _spoken(self, table: Integers, categories: Integers) -> Integers:
        """The sum of a category's places over all functions."""
        total = np.zeros(categories.size, dtype=np.int64)
        for number in range(self.hashes):
            total += table[number][self.place(categories, np.full(categories.size, number))]
        return total

    @lazy
    def kept(self) -> Fraction:
        """The probability that a bit, or the sign, is told as it is."""
        return keep(self.epsilon, root=self.differing)

    @property
    def thresholds(self) -> Mapping[str, int]:
        """Tell it as it is below this."""
        return {"kept": int(self.kept * WORD)}

    @property
    def support(self) -> Support:
        """A report speaks for every category whose place is set, or whose sign it has."""
        meet = polynomial_collision(self.width)
        apart = 1 - self.kept if self.differing == 2 else Fraction(1, 2)
        return Support(float(self.kept), float(meet * self.kept + (1 - meet) * apart))

    @property
    def gain(self) -> float:
        """How much more often a bit or sign is told as it is than turned."""
        return float(2 * self.kept - 1)

    @abstractmethod
    def crowding(self, tally: Tally) -> float:
        """Unbiased: the mean over functions of Σ s², s being the true shares of the places."""

    def _shares(
        self, tally: Tally, spoken: Integers, candidates: Sequence[int] | None
    ) -> ShareEstimate:
        binomial = Spoken(spoken, tally.n, self.support)
        # Collisions of one draw of functions: Σ f²/(hashes (width - 1)) (Apple 2017, Thm 3.2).
        collisions = self._squares(tally) / (self.hashes * (self.width - 1))
        errors = np.sqrt(binomial.standard_errors**2 + collisions)
        return ShareEstimate(binomial.shares, errors, tally.n, chosen(candidates))

    def _squares(self, tally: Tally) -> float:
        """Σ f² over all categories, three standard errors up, 1 at most.

        Two people share a place if they share the category, or by a collision, so that
        Σ s² = Σ f² + (1 - Σ f²) meet on average.
        """
        if tally.n == 1:
            return 1.0
        meet = float(polynomial_collision(self.width))
        noise = math.sqrt(2 * self.hashes * self.width) / ((tally.n - 1) * self.gain**2)
        return min(1.0, max(0.0, (self.crowding(tally) + 3 * noise - meet) / (1 - meet)))

    def _categories(self, candidates: Sequence[int] | None) -> Integers:
        if candidates is not None:
            return read_candidates(candidates, self.k)
        if self.k > _MOST_COUNTED:
            raise ParameterError(
                "k", self.k, f"categories are estimated up to {_MOST_COUNTED:,}; give candidates="
            )
        return np.arange(self.k)


@parameters
class CountMeanSketch(_Sketch):
    """Report one function's number and its row of `width` noisy bits (Apple 2017, Algorithm 1).

    Each bit is kept with probability e^(ε/2)/(e^(ε/2) + 1). The functions are drawn once for the
    survey; which of them a client uses does not depend on its answer.
    """

    kind: ClassVar[str] = "count mean sketch"
    differing: ClassVar[int] = 2

    @property
    def law(self) -> OneHot:
        """Of the row, under any function."""
        return OneHot(self.width, self.kept, 1 - self.kept)

    @property
    def pair(self) -> Pair:
        """The two bits in which two answers that do not collide differ: the worst function."""
        return self.law.pair

    @property
    def format(self) -> Sketched:
        return Sketched(self.hashes, self.width)

    def channel(self, function: int) -> Channel:
        """P(bits | answer) under one function, which is public."""
        categories = np.arange(enumerable(self.k))
        number = read_place(function, "function", self.hashes)
        places = self.place(categories, np.full(self.k, number)).tolist()
        rows = [
            [self.kept if j == own else 1 - self.kept for j in range(self.width)] for own in places
        ]
        return bit_channel(categories.tolist(), self.width, rows)

    @traced
    def randomize(self, values: Answers) -> Reports:
        """Rows of bytes: the function's number in the first four, then the packed bits."""
        truth = read_answers(values, self.k)
        functions = uniform_below(self.hashes, truth.size, SECURE)
        return self.format.joined(functions, self.law.draw(self.place(truth, functions)))

    def estimate(self, tally: Tally, candidates: Sequence[int] | None = None) -> ShareEstimate:
        """Unbiased shares of all categories, or of the candidates in their order."""
        spoken = self._spoken(tally.counts, self._categories(candidates))
        return self._shares(tally, spoken, candidates)

    def crowding(self, tally: Tally) -> float:
        """From pairs of ones in a cell: c (c - 1) has mean n (n - 1) (rate/hashes)²."""
        ones, flip = tally.counts.astype(np.float64), float(1 - self.kept)
        rates = ones * self.hashes / tally.n
        squares = ones * (ones - 1) * self.hashes**2 / (tally.n * (tally.n - 1))
        places = (squares - 2 * flip * rates + flip**2) / self.gain**2
        return float(places.sum(axis=1).mean())


@parameters
class HadamardSketch(_Sketch):
    """Report one noisy entry of the Hadamard transform of the hashed row (Apple 2017, Algorithm 5).

    A report is a function's number, a column, and a sign that is right with probability
    e^ε/(e^ε + 1). Function and column do not depend on the answer.
    """

    kind: ClassVar[str] = "Hadamard count mean sketch"
    differing: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if self.width & (self.width - 1):
            raise ParameterError("width", self.width, "must be a power of two")

    @property
    def pair(self) -> Pair:
        """The two signs, at a column where two answers differ: the worst one."""
        return (self.kept, 1 - self.kept), (1 - self.kept, self.kept)

    @property
    def format(self) -> Tuples:
        return Tuples((self.hashes, self.width, 2))

    def channel(self, function: int, column: int) -> Channel:
        """P(sign is minus | answer) for one function and column, which are public."""
        categories = np.arange(enumerable(self.k))
        number = read_place(function, "function", self.hashes)
        mask = read_place(column, "column", self.width)
        minus = parity(self.place(categories, np.full(self.k, number)) & mask).tolist()
        rows = tuple((1 - self.kept, self.kept) if m else (self.kept, 1 - self.kept) for m in minus)
        return Channel(tuple(categories.tolist()), (0, 1), rows)

    @traced
    def randomize(self, values: Answers) -> Reports:
        """One row (function, column, 1 if the sign is minus) for each true answer."""
        truth = read_answers(values, self.k)
        functions = uniform_below(self.hashes, truth.size, SECURE)
        columns = uniform_below(self.width, truth.size, SECURE)
        minus = parity(self.place(truth, functions) & columns)
        return np.column_stack([functions, columns, minus ^ ~coins(self.kept, truth.size)])

    def aggregate(self, reports: Reports) -> Tally:
        """The sum of signs of each function and column."""
        checked = self.check(reports)
        table = self.format.count(checked)
        return Tally(self, table[..., 0] - table[..., 1], len(checked))

    def estimate(self, tally: Tally, candidates: Sequence[int] | None = None) -> ShareEstimate:
        """Unbiased shares of all categories, or of the candidates in their order."""
        # Signs that agree less those that differ, which are whole numbers below 2^53.
        agreeing = np.rint(transform(tally.counts.astype(np.float64))).astype(np.int64)
        spoken = (tally.n + self._spoken(agreeing, self._categories(candidates))) // 2
        return self._shares(tally, spoken, candidates)

    def crowding(self, tally: Tally) -> float:
        """From pairs of signs in a cell: the transform keeps sums of squares (Parseval)."""
        pairs = float((tally.counts.astype(np.float64) ** 2).sum()) - tally.n
        cells = self.hashes * self.width
        return pairs * cells / (tally.n * (tally.n - 1) * self.gain**2)


def read_place(value: int, argument: str, below: int) -> int:
    """Read the number of a function or column."""
    if whole(value, argument, least=0) >= below:
        raise ParameterError(argument, value, f"must be below {below}")
    return int(value)
