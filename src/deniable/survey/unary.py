"""Unary encoding: a row of bits, one to a category, each of them noisy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from deniable.lazy import lazy
from deniable.privacy.channel import Channel
from deniable.survey.answers import Answers, read_answers, read_size
from deniable.survey.bits import column_sums, one_hot_coins
from deniable.survey.frequency import Frequency, Pair, Reports, bit_channel, pair_of_bits
from deniable.survey.reports import Json, bit_rows, from_hex, to_hex
from deniable.survey.shares import Support, Tally
from deniable.survey.thresholds import WORD, keep
from deniable.trace import traced

MOST_BITS = 1 << 20


@dataclass(frozen=True, kw_only=True)
class UnaryEncoding(Frequency):
    """One bit for each category: likely 1 at the true one, unlikely elsewhere.

    * optimised (OUE): the true bit is 1 half of the time, each other bit with probability
      1/(e^ε + 1) (Wang, Blocki, Li & Jha 2017, Section 4.3);
    * `symmetric` (SUE, one-time RAPPOR): each bit is kept with probability
      e^(ε/2)/(e^(ε/2) + 1) (Erlingsson, Pihur & Korolova 2014).
    """

    kind: ClassVar[str] = "unary encoding"
    symmetric: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        read_size(self.k, most=MOST_BITS)

    @lazy
    def bit_laws(self) -> tuple[Fraction, Fraction]:
        """P(1) of the true bit, and of every other bit."""
        if self.symmetric:
            kept = keep(self.asked, root=2)
            return kept, 1 - kept
        return Fraction(1, 2), 1 - keep(self.asked)

    @property
    def thresholds(self) -> Mapping[str, int]:
        """A bit is 1 below these."""
        on, off = self.bit_laws
        return {"true bit": int(on * WORD), "other bit": int(off * WORD)}

    @property
    def pair(self) -> Pair:
        """The two bits in which two answers differ."""
        return pair_of_bits(*self.bit_laws)

    @property
    def support(self) -> Support:
        """A report speaks for the categories whose bits are 1."""
        on, off = self.bit_laws
        return Support(float(on), float(off))

    @property
    def report_bits(self) -> int:
        """One for each category."""
        return self.k

    def channel(self) -> Channel:
        """P(bits | answer), for few categories."""
        on, off = self.bit_laws
        places = range(min(self.k, 40))
        return bit_channel(
            places, self.k, [[on if i == j else off for j in places] for i in places]
        )

    @traced
    def randomize(self, values: Answers) -> Reports:
        """One row of packed bits for each true answer."""
        return one_hot_coins(read_answers(values, self.k), self.k, *self.bit_laws)

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
