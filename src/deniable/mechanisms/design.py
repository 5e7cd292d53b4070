"""A design: one exact channel from answers to reports, from which everything else follows."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from deniable.errors import ParameterError, ParameterTypeError, PrivateValueError
from deniable.lazy import lazy
from deniable.mechanisms.inverse import Rows, kronecker, left_inverse, same_for_all
from deniable.mechanisms.labels import Places, as_array, find_places
from deniable.mechanisms.values import Floats
from deniable.privacy.channel import Channel
from deniable.privacy.composition import compose
from deniable.privacy.exact import log_float
from deniable.privacy.losses.base import Loss
from deniable.privacy.losses.channel import ChannelLoss
from deniable.privacy.losses.response import RandomizedResponseLoss
from deniable.randomness.noise import ChoiceLaw, noise
from deniable.trace import traced


@dataclass(frozen=True)
class Design:
    """How a respondent's answer becomes a report: P(report | true answer), in rationals.

    Made by `RandomizedResponse` and by the functions of `deniable.survey.designs`. Formal
    guarantee, for each respondent, whose answer may be any of the channel's inputs:

    * one report is ε-DP under "replace", `epsilon` being the worst log ratio over all reports and
      pairs of answers: the worse side counts where the channel is lopsided (Warner 1965;
      Kasiviswanathan et al. 2008);
    * `randomize` draws exactly the channel's probabilities, independently for each answer;
    * where some report proves or excludes an answer, ε is infinite: such a design is refused unless
      `not_private=True` says that this is known, and carries a `warning`.

    It holds for what the device sends. Where people toss their own coins it holds if they do so
    unseen; where an unrelated or second question takes the place of a coin, if its answer is
    unknown to the reader, independent of the sensitive one, and as frequent as stated.

    A report is unledgered: who asks the same person again keeps the sum of the losses.
    """

    method: str
    channel: Channel
    parameters: tuple[tuple[str, Fraction], ...] = ()
    not_private: bool = False
    parts: tuple[Design, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.channel, Channel):
            raise ParameterTypeError("channel", type(self.channel).__name__, "must be a Channel")
        if len(self.answers) < 2:
            raise ParameterError("channel", len(self.answers), "a design has two answers or more")
        if self.parts and reduce(kronecker, (p.channel.rows for p in self.parts)) != (
            self.channel.rows
        ):
            raise ParameterError("parts", len(self.parts), "the channel must be their product")
        _ = self.inverse  # a channel that tells nothing is refused here
        if self.epsilon == math.inf and not self.not_private:
            raise ParameterError("not_private", False, f"{self.warning} Pass True if you accept it")

    @property
    def answers(self) -> tuple[Hashable, ...]:
        """The true answers."""
        return self.channel.inputs

    @property
    def reports(self) -> tuple[Hashable, ...]:
        """What may be sent."""
        return self.channel.outputs

    @lazy
    def epsilon(self) -> float:
        """The worst log ratio over all reports and pairs of answers; infinite where one proves."""
        return self.channel.epsilon()

    def epsilon_of(self, report: Hashable) -> float:
        """The worst log ratio of this report alone: what sending it tells at most."""
        column = [self.channel.probability(report, answer) for answer in self.answers]
        if max(column) == 0:
            return 0.0
        return math.inf if min(column) == 0 else log_float(max(column) / min(column))

    @lazy
    def loss(self) -> Loss:
        """What one report costs its respondent; refused where ε is infinite."""
        if self.warning is not None:
            raise ParameterError("design", self.method, f"{self.warning} It has no loss to state")
        if self.parts:
            return compose(*(part.loss for part in self.parts))
        return report_loss(self.channel.rows)

    @property
    def warning(self) -> str | None:
        """What a design without a finite ε gives away; None for all others."""
        for place, report in enumerate(self.reports):
            column = [row[place] for row in self.channel.rows]
            if max(column) > 0 and min(column) == 0:
                answer = self.answers[column.index(Fraction(0))]
                return (
                    f"A report of {report!r} proves that the answer is not {answer!r}: ε is "
                    "infinite, and who sends the other report is suspected for it."
                )
        return None

    @lazy
    def inverse(self) -> Rows:
        """Row i: the exact weight of each report in the unbiased share of answer i."""
        if self.parts:
            return reduce(kronecker, (part.inverse for part in self.parts))
        return left_inverse(self.channel.rows)

    @lazy
    def decoder(self) -> Floats:
        """The inverse in floats: shares of answers = decoder @ shares of reports."""
        return np.array([[float(weight) for weight in row] for row in self.inverse])

    @lazy
    def matrix(self) -> Floats:
        """The channel in floats: one row for each answer."""
        return np.array([[float(p) for p in row] for row in self.channel.rows])

    @traced
    def randomize(self, values: Any) -> npt.NDArray[Any]:
        """One report for each true answer in a list; exactly the channel, from secure randomness.

        Raises:
            PrivateValueError: a value is none of the answers, or there is none. Nothing is drawn.
        """
        truth = find_places(self.answers, values)
        if truth is None or not truth.size:
            raise PrivateValueError(
                f"values must be a list of one or more answers, each one of {self.answers}"
            )
        return as_array(self.reports)[drawn(self.channel.rows, truth)]


def drawn(rows: Rows, truth: Places) -> Places:
    """The place of one report for the place of each true answer, by exactly these probabilities."""
    sent = np.empty(truth.size, dtype=np.int64)
    for place in np.unique(truth).tolist():
        at = np.flatnonzero(truth == place)
        sent[at] = noise(ChoiceLaw(rows[place])).many(at.size)
    return sent


def report_loss(rows: Rows) -> Loss:
    """What one report of a channel costs, by the closed form where all answers are told alike."""
    told = same_for_all(rows)
    if told is not None and told * len(rows) > 1:
        return RandomizedResponseLoss(truth=told, categories=len(rows))
    return ChannelLoss(rows=rows)


def read_design(design: object) -> Design:
    """Refuse what is not a design."""
    if not isinstance(design, Design):
        raise ParameterTypeError("design", type(design).__name__, "must be a Design")
    return design
