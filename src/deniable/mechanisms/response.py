"""Randomised response: an answer that may be a lie, and what the answers of many still tell."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, localcontext
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from deniable.errors import ParameterError, PrivateValueError
from deniable.lazy import lazy
from deniable.mechanisms.base import Pairs, Plain, exactly_one, read_labels
from deniable.mechanisms.design import Design, drawn, report_loss
from deniable.mechanisms.gaps import Gap, misshapen, moved_by
from deniable.mechanisms.inverse import Rows, symmetric
from deniable.mechanisms.labels import report_places
from deniable.mechanisms.share_estimate import ResponseEstimate, estimate_of
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
from deniable.trace import traced

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
    * `estimate` is unbiased for the shares of the true answers, and its exact intervals cover them
      at least as often as they say.

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
        _store(self, labels, symmetric(told, len(labels)), predicate)

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
        return cls.from_channel(forced_rows(truth, yes, no), (False, True))

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
        return cls.from_channel(rows, categories, predicate)

    def __repr__(self) -> str:
        rows = ", ".join("(" + ", ".join(show(p) for p in row) + ")" for row in self.rows)
        return f"RandomizedResponse(categories={self.categories!r}, rows=({rows}))"

    @lazy
    def loss(self) -> Loss:
        return report_loss(self.rows)

    @lazy
    def design(self) -> Design:
        """The same as a design of a survey; refused where reports tell nothing about shares."""
        return Design("randomized response", self.channel())

    def channel(self, inputs: Sequence[Any] | None = None) -> Channel:
        """The exact probabilities: rows are true answers (all categories, or those given)."""
        if inputs is None:
            return Channel(self.categories, self.categories, self.rows)
        rows = tuple(self.rows[self._place(value)] for value in inputs)
        return Channel(tuple(inputs), self.categories, rows)

    @traced
    def release(self, value: Any) -> Any:
        """Report on one answer (or record, where there is a predicate), or on a list of them."""
        several = isinstance(value, list) or (isinstance(value, np.ndarray) and value.ndim > 0)
        truth = [self._place(one) for one in (value if several else [value])]
        if not truth:
            raise PrivateValueError("an empty list holds nothing to release")
        reports = [self.categories[report] for report in drawn(self.rows, np.array(truth)).tolist()]
        return reports if several else reports[0]

    def _place(self, value: Any) -> int:
        try:
            category = value if self.predicate is None else self.predicate(value)
            return self.categories.index(category)
        except Exception:  # a predicate's own message may quote the record
            raise PrivateValueError(
                "an answer is none of the categories, or the predicate failed on a record"
            ) from None

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
        places = report_places(self.categories, reports, "reports")
        return estimate_of(
            self.design, np.bincount(places, minlength=len(self.categories)).tolist()
        )

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
        return self.categories

    def view(self, value: Any, plain: Plain) -> list[int]:
        """The places of the true answers, as the predicate has them."""
        del plain
        several = isinstance(value, list) or (isinstance(value, np.ndarray) and value.ndim > 0)
        return [self._place(record) for record in (list(value) if several else [value])]

    def without_code(self) -> RandomizedResponse:
        return RandomizedResponse.from_channel(self.rows, self.categories)

    def gap(self, x: list[int], y: list[int]) -> Gap:
        if len(x) != len(y):
            return misshapen("respondents")
        return moved_by(sum(a != b for a, b in zip(x, y, strict=True)), 1, "respondents")

    def neighbours(self) -> Pairs | None:
        """Any two answers; where there is a predicate, what records are is the caller's to say."""
        return None if self.predicate is not None else list(pairwise(self.categories))


def forced_rows(truth: Number, yes: Number, no: Number) -> Rows:
    """P(report | answer) for a die that says: answer truthfully, say YES, or say NO."""
    told, always, never = (
        probability(value, name) for name, value in (("truth", truth), ("yes", yes), ("no", no))
    )
    if told + always + never != 1:
        raise ParameterError(
            "truth, yes, no",
            float(told + always + never),
            "must sum to 1 exactly; write thirds and sixths as Fraction(1, 6)",
        )
    return (told + never, always), (never, told + always)


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
