"""What every protocol for shares of categories offers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from deniable.errors import ParameterError
from deniable.lazy import lazy
from deniable.privacy.channel import Channel
from deniable.privacy.exact import Number, exact, whole
from deniable.privacy.losses.base import Loss
from deniable.privacy.losses.channel import ChannelLoss
from deniable.survey.answers import Answers, read_size
from deniable.survey.reports import Json
from deniable.survey.shares import ShareEstimate, Spoken, Support, Tally
from deniable.survey.thresholds import read_epsilon

Pair = tuple[tuple[Fraction, ...], tuple[Fraction, ...]]
Reports = npt.NDArray[Any]

MOST_OUTPUTS = 1 << 14


@dataclass(frozen=True, kw_only=True)
class Frequency(ABC):
    """A client that randomises one answer of 0, ..., k - 1, and a server that counts.

    Formal guarantee, of each protocol below:

    * one report is ε-DP for its sender, whatever the answers of others and whatever the server
      does (relation "replace"); ε is that of the probabilities that are drawn, which are rounded
      to 64-bit thresholds so that the ε asked for is never exceeded;
    * reports have exactly the channel's probabilities and are independent of each other;
    * `aggregate(reports).estimate()` is unbiased for the shares of the true answers.

    A report is unledgered: who is asked twice keeps the sum of the losses.
    """

    kind: ClassVar[str]
    k: int
    epsilon: Number

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", read_size(self.k))
        object.__setattr__(self, "epsilon", read_epsilon(self.epsilon))

    @property
    def asked(self) -> Fraction:
        """The ε that was asked for."""
        return exact(self.epsilon, "epsilon")

    @property
    @abstractmethod
    def pair(self) -> Pair:
        """The laws of a report under two answers that differ, outputs of one ratio put together."""

    @property
    @abstractmethod
    def support(self) -> Support:
        """How often a report speaks for its sender's category, and for any other."""

    @property
    @abstractmethod
    def thresholds(self) -> Mapping[str, int]:
        """What a client compares 64 random bits with."""

    @property
    @abstractmethod
    def report_bits(self) -> int:
        """How many bits a report has."""

    @abstractmethod
    def randomize(self, values: Answers) -> Reports:
        """The clients' part: one report for each true answer."""

    @abstractmethod
    def aggregate(self, reports: Reports) -> Tally:
        """The server's part: check all reports, then count them."""

    @abstractmethod
    def to_wire(self, reports: Reports) -> list[Json]:
        """One JSON value for each report."""

    @abstractmethod
    def from_wire(self, payloads: Sequence[Json]) -> Reports:
        """Reports from their JSON values, checked."""

    @lazy
    def loss(self) -> Loss:
        """What one report costs its sender."""
        return ChannelLoss(rows=self.pair)

    def estimate(self, tally: Tally) -> ShareEstimate:
        """Unbiased shares from a tally."""
        spoken = Spoken(tally.counts, tally.n, self.support)
        return spoken.estimate(tally.n, tally.candidates)

    def variance(self, n: int, share: float = 0.0) -> float:
        """The exact variance of a category's estimated share in a fixed population of n.

        (f p(1-p) + (1-f) q(1-q)) / (n (p-q)²), f being its true share (Wang et al. 2017, Thm 2).
        """
        p, q = self.support
        spread = share * p * (1 - p) + (1 - share) * q * (1 - q)
        return spread / (whole(n, "n") * (p - q) ** 2)


def enumerable(outputs: int) -> int:
    """Refuse a channel that is too large to be written down."""
    if outputs > MOST_OUTPUTS:
        raise ParameterError(
            "k", f"{outputs:.3g} outputs", f"a channel is written down up to {MOST_OUTPUTS:,}"
        )
    return outputs


def bit_channel(inputs: Sequence[int], width: int, rows: Sequence[Sequence[Fraction]]) -> Channel:
    """The channel of independent bits; rows[i][j] is the probability that bit j is 1."""
    outputs = [
        tuple((number >> (width - 1 - j)) & 1 for j in range(width))
        for number in range(enumerable(1 << min(width, 40)))
    ]
    table = []
    for ones in rows:
        law = [Fraction(1)]
        for one in ones:
            law = [p * side for p in law for side in (1 - one, one)]
        table.append(tuple(law))
    return Channel(tuple(inputs), tuple(outputs), tuple(table))


def pair_of_bits(on: Fraction, off: Fraction) -> Pair:
    """The pair of two one-hot rows of coins: only the two true places differ."""
    one = tuple(a * b for a in (1 - on, on) for b in (1 - off, off))
    other = tuple(a * b for a in (1 - off, off) for b in (1 - on, on))
    return one, other


def numbers(values: Integers) -> list[int]:
    """Plain whole numbers, for JSON."""
    return [int(value) for value in np.asarray(values).tolist()]


Integers = npt.NDArray[np.int64]
