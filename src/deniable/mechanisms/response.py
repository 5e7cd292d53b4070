"""Randomised response: an answer that may be a lie, and what the answers of many still tell."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, localcontext
from fractions import Fraction
from itertools import pairwise
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from deniable.errors import ParameterError, ParameterTypeError, PrivateValueError
from deniable.lazy import lazy
from deniable.mechanisms.base import Pairs, Plain, exactly_one, read_confidence, read_labels
from deniable.mechanisms.gaps import Gap, misshapen, moved_by
from deniable.privacy.channel import Channel, read_rows
from deniable.privacy.exact import (
    Number,
    decimal,
    high_precision,
    log_float,
    positive,
    probability,
    show,
    whole,
)
from deniable.privacy.losses.base import Loss, check_ratio
from deniable.privacy.losses.channel import ChannelLoss
from deniable.privacy.losses.response import RandomizedResponseLoss
from deniable.randomness.noise import ChoiceLaw, noise
from deniable.trace import traced

Rows = tuple[tuple[Fraction, ...], ...]
Predicate = Callable[[Any], Hashable]


@dataclass(frozen=True, init=False, repr=False)
class RandomizedResponse:
    """Report the true category with some probability, another one otherwise.

    Formal guarantee. For each respondent, whose answer may be any category:

    * one report is ε-DP, ε being the worst log ratio over all reports and pairs of answers (Warner
      1965; Kasiviswanathan et al. 2008); the worse side counts where the channel is lopsided;
    * made from `epsilon`, the truth is told with probability e^ε/(e^ε + k - 1), rounded down at
      the thirtieth digit, so that ε is never exceeded;
    * reports have exactly the channel's probabilities and are independent of each other;
    * `estimate` is unbiased for the shares of the true answers.

    The relation is "replace": a respondent's answer is exchanged for another. A bare release is
    unledgered: the caller keeps the budget.
    """

    categories: tuple[Hashable, ...]
    rows: Rows
    predicate: Predicate | None

    def __init__(
        self,
        *,
        epsilon: Number | None = None,
        truth: Number | None = None,
        categories: Sequence[Hashable] = (False, True),
        predicate: Predicate | None = None,
    ) -> None:
        name, given = exactly_one(epsilon=epsilon, truth=truth)
        labels = read_labels(categories, "categories", least=2)
        told = (
            probability(given, name)
            if name == "truth"
            else _truth(positive(given, name), len(labels))
        )
        lie = (1 - told) / (len(labels) - 1)
        places = range(len(labels))
        rows = tuple(tuple(told if i == j else lie for j in places) for i in places)
        _store(self, labels, rows, predicate)

    @classmethod
    def two_coins(cls, predicate: Predicate | None = None) -> RandomizedResponse:
        """Heads: the truth. Tails: a second coin says YES or NO. Exactly ln 3."""
        return cls(truth=Fraction(3, 4), predicate=predicate)

    @classmethod
    def lying_coin(cls, predicate: Predicate | None = None) -> RandomizedResponse:
        """Heads: the truth. Tails: a second coin says to tell it or to lie. Exactly ln 3."""
        return cls(truth=Fraction(3, 4), predicate=predicate)

    @classmethod
    def forced(cls, *, truth: Number, yes: Number, no: Number) -> RandomizedResponse:
        """A die that says: answer truthfully, say YES, or say NO, with these probabilities."""
        told, always, never = (
            probability(value, name) for name, value in (("truth", truth), ("yes", yes), ("no", no))
        )
        rows = ((told + never, always), (never, told + always))
        return cls.from_channel(rows, (False, True))

    @classmethod
    def from_channel(
        cls,
        matrix: Sequence[Sequence[Number]],
        categories: Sequence[Hashable],
        predicate: Predicate | None = None,
    ) -> RandomizedResponse:
        """Any square channel: row = true category, column = reported category."""
        labels, rows = read_labels(categories, "categories", least=2), read_rows(matrix)
        if len(rows) != len(labels) or len(rows[0]) != len(labels):
            raise ParameterError(
                "matrix", f"{len(rows)} x {len(rows[0])}", "must be square, one row a category"
            )
        made = cls.__new__(cls)
        _store(made, labels, rows, predicate)
        return made

    @classmethod
    def of_fields(
        cls, *, categories: tuple[Hashable, ...], rows: Rows, predicate: Predicate | None
    ) -> RandomizedResponse:
        """Made again of what another one holds."""
        return cls.from_channel(rows, categories, predicate)

    def __repr__(self) -> str:
        rows = ", ".join("(" + ", ".join(show(p) for p in row) + ")" for row in self.rows)
        return f"RandomizedResponse(categories={self.categories!r}, rows=({rows}))"

    @lazy
    def loss(self) -> Loss:
        """What one report costs its respondent."""
        told, others = self.rows[0][0], {*self.rows[0][1:]}
        symmetric = len(others) == 1 and all(
            set(row[:i] + row[i + 1 :]) == others and row[i] == told
            for i, row in enumerate(self.rows)
        )
        if symmetric and told * len(self.rows) > 1:
            return RandomizedResponseLoss(truth=told, categories=len(self.rows))
        return ChannelLoss(rows=self.rows)

    def channel(self, inputs: Sequence[Any] | None = None) -> Channel:
        """The exact probabilities: rows are true answers (all categories, or those given)."""
        if inputs is None:
            return Channel(self.categories, self.categories, self.rows)
        rows = tuple(self.rows[self._place(value)] for value in inputs)
        return Channel(tuple(inputs), self.categories, rows)

    @traced
    def release(self, value: Any) -> Any:
        """Report on one answer (or record, where there is a predicate), or on a list of them."""
        if isinstance(value, list) or (isinstance(value, np.ndarray) and value.ndim > 0):
            return self._report_all([self._place(one) for one in value])
        return self.categories[noise(ChoiceLaw(self.rows[self._place(value)])).one()]

    def _place(self, value: Any) -> int:
        try:
            category = value if self.predicate is None else self.predicate(value)
            return self.categories.index(category)
        except Exception:  # a predicate's own message may quote the record
            raise PrivateValueError(
                "an answer is none of the categories, or the predicate failed on a record"
            ) from None

    def _report_all(self, places: list[int]) -> list[Hashable]:
        if not places:
            raise PrivateValueError("an empty list holds nothing to release")
        truth = np.array(places)
        reports = np.empty(truth.size, dtype=np.int64)
        for place in set(places):
            at = np.flatnonzero(truth == place)
            reports[at] = noise(ChoiceLaw(self.rows[place])).many(at.size)
        return [self.categories[report] for report in reports]

    def privacy_loss(self, output: Hashable, x: Any, y: Any) -> float:
        """ln of P(output | x) / P(output | y)."""
        if output not in self.categories:
            raise ParameterError("output", output, "is none of the categories")
        at = self.categories.index(output)
        here, there = self.rows[self._place(x)][at], self.rows[self._place(y)][at]
        if not here or not there:
            raise ParameterError("output", output, "is never reported")
        return log_float(here / there)

    def estimate(self, reports: Sequence[Hashable] | npt.NDArray[Any]) -> ResponseEstimate:
        """Unbiased shares of the true categories, from reports (which are public)."""
        try:
            counted = Counter(reports.tolist() if isinstance(reports, np.ndarray) else reports)
        except TypeError:
            raise ParameterTypeError("reports", type(reports).__name__, "must be labels") from None
        n = counted.total()
        if n == 0 or counted.keys() - {*self.categories}:
            raise ParameterError("reports", n, "must be one or more of the categories")
        observed = np.array([counted[category] for category in self.categories]) / n
        forward = np.array([[float(p) for p in row] for row in self.rows]).T
        if np.linalg.matrix_rank(forward) < len(self.categories):
            raise ParameterError("rows", "singular", "reports of this channel tell nothing")
        back = np.linalg.inv(forward)
        covariance = back @ (np.diag(observed) - np.outer(observed, observed)) @ back.T
        return ResponseEstimate(self.categories, back @ observed, covariance / n, n)

    def _flip(self) -> Fraction:
        """The probability of a lie, for the binary symmetric channel."""
        if len(self.rows) != 2 or self.rows[0][1] != self.rows[1][0]:
            raise ParameterError(
                "rows", len(self.rows), "is known for symmetric yes/no answers only"
            )
        return self.rows[0][1]

    def rmse(self, n: int) -> float:
        """Root mean squared error of the estimated count, for a fixed population: sqrt(npq)/(p-q).

        That is e^(ε/2)/(e^ε - 1) sqrt(n).
        """
        q = self._flip()
        return math.sqrt(whole(n, "n") * q * (1 - q)) / abs(float(1 - 2 * q))

    def tail(self, n: int, distance: Number) -> float:
        """Hoeffding's 2 exp(-2 t² (p-q)²/n), above P(|estimated count - count| >= distance)."""
        t = positive(distance, "distance")
        exponent = 2 * (t * (1 - 2 * self._flip())) ** 2 / whole(n, "n")
        return min(1.0, 2 * math.exp(-float(min(exponent, Fraction(1000)))))

    def sample_size(self, error: Number) -> int:
        """The least n whose estimated share has a root mean squared error of `error` at most."""
        q, alpha = self._flip(), positive(error, "error")
        return math.ceil(q * (1 - q) / ((1 - 2 * q) * alpha) ** 2)

    @property
    def labels(self) -> tuple[Hashable, ...]:
        """The categories."""
        return self.categories

    def view(self, value: Any, plain: Plain) -> list[int]:
        """The places of the true answers, as the predicate has them."""
        del plain
        several = isinstance(value, list) or (isinstance(value, np.ndarray) and value.ndim > 0)
        return [self._place(record) for record in (list(value) if several else [value])]

    def without_code(self) -> RandomizedResponse:
        """Without the predicate."""
        return RandomizedResponse.from_channel(self.rows, self.categories)

    def gap(self, x: list[int], y: list[int]) -> Gap:
        """How many respondents answer otherwise."""
        if len(x) != len(y):
            return misshapen("respondents")
        return moved_by(sum(a != b for a, b in zip(x, y, strict=True)), 1, "respondents")

    def neighbours(self) -> Pairs | None:
        """Any two answers; where there is a predicate, what records are is the caller's to say."""
        return None if self.predicate is not None else list(pairwise(self.categories))


@dataclass(frozen=True, eq=False)
class ResponseEstimate:
    """Estimated shares, with the covariance of reports drawn from a large population."""

    categories: tuple[Hashable, ...]
    shares: npt.NDArray[np.float64]
    covariance: npt.NDArray[np.float64]
    n: int

    def share(self, category: Hashable = True) -> float:
        """The estimated share of a category; unbiased, so it may fall outside [0, 1]."""
        return float(self.shares[self._place(category)])

    def standard_error(self, category: Hashable = True) -> float:
        """The estimated standard deviation of the share."""
        place = self._place(category)
        return math.sqrt(max(0.0, self.covariance[place, place]))

    def interval(
        self, category: Hashable = True, *, confidence: Number = 0.95
    ) -> tuple[float, float]:
        """A normal interval around the share."""
        level = read_confidence(confidence)
        width = -NormalDist().inv_cdf(float(1 - level) / 2) * self.standard_error(category)
        return self.share(category) - width, self.share(category) + width

    def _place(self, category: Hashable) -> int:
        if category not in self.categories:
            raise ParameterError("category", category, f"must be one of {self.categories}")
        return self.categories.index(category)


def _truth(epsilon: Fraction, categories: int) -> Fraction:
    """e^ε/(e^ε + k - 1), rounded down at the thirtieth digit."""
    check_ratio("epsilon", epsilon)
    with localcontext(high_precision(epsilon)):
        told = 1 / (1 + (categories - 1) * (-decimal(epsilon)).exp())
    with localcontext(high_precision(epsilon)) as context:
        context.prec, context.rounding = 30, ROUND_FLOOR
        # Rounded down, and once more by the last digit, so that ε holds whatever exp rounded.
        rounded = Fraction(+told) - Fraction(1, 10**30)
    if not Fraction(1, categories) < rounded < 1:
        raise ParameterError(
            "epsilon", show(epsilon), "is too small to tell answers apart at thirty digits"
        )
    return rounded


def _store(
    mechanism: RandomizedResponse,
    categories: tuple[Hashable, ...],
    rows: Rows,
    predicate: Predicate | None,
) -> None:
    if predicate is not None and not callable(predicate):
        raise ParameterError("predicate", predicate, "must be callable on a record")
    object.__setattr__(mechanism, "categories", categories)
    object.__setattr__(mechanism, "rows", rows)
    object.__setattr__(mechanism, "predicate", predicate)
    _ = mechanism.loss  # a channel without a finite ε is refused here
