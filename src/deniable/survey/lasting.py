"""Asked again and again: a permanent noisy answer, and fresh noise on each report of it.

The permanent answer is kept by question, never by truth: whoever collects all reports of a client,
for ever, learns at most what the permanent answer tells, even if the truth changes meanwhile.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from deniable.errors import ParameterError
from deniable.lazy import lazy
from deniable.privacy.channel import Channel
from deniable.privacy.exact import Number, exact, show
from deniable.privacy.losses.base import Loss
from deniable.privacy.losses.channel import ChannelLoss
from deniable.privacy.losses.response import RandomizedResponseLoss
from deniable.survey.answers import Answers, read_answers, read_size
from deniable.survey.bits import column_sums, flipped, one_hot_coins
from deniable.survey.frequency import (
    Frequency,
    Pair,
    Reports,
    bit_channel,
    enumerable,
    numbers,
    pair_of_bits,
)
from deniable.survey.kary import MOST_COUNTED, respond
from deniable.survey.reports import Json, bit_rows, from_hex, integers, to_hex
from deniable.survey.shares import Support, Tally
from deniable.survey.thresholds import WORD, exp_decimal, keep, read_epsilon, rounded_down
from deniable.survey.unary import MOST_BITS
from deniable.trace import traced


@dataclass(frozen=True, kw_only=True)
class Lasting(Frequency):
    """A protocol of two noise levels.

    Formal guarantee, beside that of every protocol:

    * all reports on one question together are `permanent`-DP, however many there are and whatever
      happens to the truth: `lasting_loss`;
    * a single report, seen alone, is `epsilon`-DP: `loss`.
    """

    permanent: Number

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "permanent", read_epsilon(self.permanent, "permanent"))
        if self.asked >= self.lasting:
            raise ParameterError(
                "epsilon",
                show(self.asked),
                f"one report must tell less than all of them: give less than {show(self.lasting)}",
            )

    @property
    def lasting(self) -> Fraction:
        """The ε that was asked for all reports together."""
        return exact(self.permanent, "permanent")

    @property
    @abstractmethod
    def lasting_loss(self) -> Loss:
        """What all reports on one question cost together."""

    @abstractmethod
    def remember(self, values: Answers) -> Reports:
        """The permanent answers: made once for a question, kept, never sent."""

    @abstractmethod
    def report(self, kept: Reports) -> Reports:
        """One report on each permanent answer, with fresh noise."""


@dataclass(frozen=True, kw_only=True)
class Rappor(Lasting):
    """RAPPOR on one bit for each category (Erlingsson, Pihur & Korolova 2014, basic RAPPOR).

    Each bit of the row is kept for good with probability e^(ε∞/2)/(e^(ε∞/2) + 1), that is 1 - f/2;
    each report keeps the bits of the permanent row with a probability p = 1 - q such that the
    whole way from the truth to a report is ε-DP.
    """

    kind: ClassVar[str] = "RAPPOR"

    def __post_init__(self) -> None:
        super().__post_init__()
        read_size(self.k, most=MOST_BITS)

    @lazy
    def levels(self) -> tuple[Fraction, Fraction]:
        """The probabilities that a bit is kept: for good, and in each report."""
        first, whole_way = keep(self.lasting, root=2), keep(self.asked, root=2)
        return first, rounded_down((whole_way - (1 - first)) / (2 * first - 1))

    @property
    def kept(self) -> Fraction:
        """The probability that a bit is kept on the whole way."""
        first, again = self.levels
        return first * again + (1 - first) * (1 - again)

    @property
    def thresholds(self) -> Mapping[str, int]:
        """Keep a bit below these."""
        first, again = self.levels
        return {"permanent": int(first * WORD), "instantaneous": int(again * WORD)}

    @property
    def pair(self) -> Pair:
        """The two bits in which two answers differ."""
        return pair_of_bits(self.kept, 1 - self.kept)

    @lazy
    def lasting_loss(self) -> Loss:
        """What all reports on one question cost together."""
        first = self.levels[0]
        return ChannelLoss(rows=pair_of_bits(first, 1 - first))

    @property
    def support(self) -> Support:
        """A report speaks for the categories whose bits are 1."""
        return Support(float(self.kept), float(1 - self.kept))

    @property
    def report_bits(self) -> int:
        """One for each category."""
        return self.k

    def channel(self) -> Channel:
        """P(bits of one report | answer)."""
        return self._bit_channel(self.kept)

    def permanent_channel(self) -> Channel:
        """P(permanent bits | answer)."""
        return self._bit_channel(self.levels[0])

    def _bit_channel(self, kept: Fraction) -> Channel:
        places = range(min(self.k, 40))
        rows = [[kept if i == j else 1 - kept for j in places] for i in places]
        return bit_channel(places, self.k, rows)

    @traced
    def remember(self, values: Answers) -> Reports:
        """The permanent rows of bits."""
        first = self.levels[0]
        return one_hot_coins(read_answers(values, self.k), self.k, first, 1 - first)

    @traced
    def report(self, kept: Reports) -> Reports:
        """Rows with fresh noise."""
        return flipped(bit_rows(kept, self.k), self.k, self.levels[1])

    @traced
    def randomize(self, values: Answers) -> Reports:
        """First reports of new clients, who forget their permanent rows: for one wave only."""
        return self.report(self.remember(values))

    def aggregate(self, reports: Reports) -> Tally:
        """Count the ones of each category."""
        rows = bit_rows(reports, self.k)
        return Tally(self, column_sums(rows, self.k), rows.shape[0])

    def to_wire(self, reports: Reports) -> list[Json]:
        """Bits as hexadecimal digits."""
        return [*to_hex(bit_rows(reports, self.k))]

    def from_wire(self, payloads: Sequence[Json]) -> Reports:
        """Hexadecimal digits, k bits."""
        return bit_rows(from_hex(payloads, -(-self.k // 8)), self.k)


@dataclass(frozen=True, kw_only=True)
class LastingResponse(Lasting):
    """k-ary response twice: once for good, then afresh on each report.

    (L-GRR; Arcolezi et al. 2022.) The second probability is the one for which a single report has
    exactly ε. The published formula drops the ways through third categories and adds more noise
    than it needs for k > 2: `published=True` keeps it, and the loss says what it really is.
    """

    kind: ClassVar[str] = "lasting response"
    published: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        read_size(self.k, most=MOST_COUNTED)

    @lazy
    def levels(self) -> tuple[Fraction, Fraction]:
        """The probabilities of the truth: for good, and in each report."""
        k, first = self.k, keep(self.lasting, Fraction(1, self.k - 1))
        other = (1 - first) / (k - 1)
        if not self.published:
            whole_way = keep(self.asked, Fraction(1, k - 1))
            return first, rounded_down((whole_way - other) / (first - other))
        e = exp_decimal(self.asked)
        bottom = (k - 1) * other * e - first * e - (k - 1) * first + other
        return first, rounded_down((other - e * first) / bottom)

    @property
    def truth(self) -> Fraction:
        """The probability of the truth on the whole way."""
        first, again = self.levels
        return first * again + (1 - first) * (1 - again) / (self.k - 1)

    @property
    def lie(self) -> Fraction:
        """The probability of each other category on the whole way."""
        return (1 - self.truth) / (self.k - 1)

    @property
    def thresholds(self) -> Mapping[str, int]:
        """Tell the truth below these."""
        first, again = self.levels
        return {"permanent": int(first * WORD), "instantaneous": int(again * WORD)}

    @property
    def pair(self) -> Pair:
        """The one answer, the other, the rest."""
        rest = (self.k - 2) * self.lie
        return (self.truth, self.lie, rest), (self.lie, self.truth, rest)

    @lazy
    def lasting_loss(self) -> Loss:
        """What all reports on one question cost together."""
        return RandomizedResponseLoss(truth=self.levels[0], categories=self.k)

    @property
    def support(self) -> Support:
        """A report speaks for the category it names."""
        return Support(float(self.truth), float(self.lie))

    @property
    def report_bits(self) -> int:
        """One category's number."""
        return (self.k - 1).bit_length()

    def channel(self) -> Channel:
        """P(one report | answer)."""
        return self._channel(self.truth)

    def permanent_channel(self) -> Channel:
        """P(permanent answer | answer)."""
        return self._channel(self.levels[0])

    def _channel(self, truth: Fraction) -> Channel:
        places, lie = range(enumerable(self.k)), (1 - truth) / (self.k - 1)
        rows = tuple(tuple(truth if i == j else lie for j in places) for i in places)
        return Channel(tuple(places), tuple(places), rows)

    @traced
    def remember(self, values: Answers) -> Reports:
        """The permanent answers."""
        return respond(read_answers(values, self.k), self.k, self.levels[0])

    @traced
    def report(self, kept: Reports) -> Reports:
        """Answers with fresh noise."""
        return respond(integers(kept, self.k), self.k, self.levels[1])

    @traced
    def randomize(self, values: Answers) -> Reports:
        """First reports of new clients, who forget their permanent answers: for one wave only."""
        return self.report(self.remember(values))

    def aggregate(self, reports: Reports) -> Tally:
        """Count the reports of each category."""
        checked = integers(reports, self.k)
        return Tally(self, np.bincount(checked, minlength=self.k), checked.size)

    def to_wire(self, reports: Reports) -> list[Json]:
        """A whole number each."""
        return [*numbers(integers(reports, self.k))]

    def from_wire(self, payloads: Sequence[Json]) -> Reports:
        """Whole numbers below k."""
        return integers(list(payloads), self.k)
