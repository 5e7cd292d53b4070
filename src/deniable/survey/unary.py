"""Unary encoding: a row of bits, one to a category, each of them noisy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from deniable.lazy import lazy
from deniable.survey.frequency import OneLaw
from deniable.survey.laws import OneHot
from deniable.survey.thresholds import WORD, keep

MOST_BITS = 1 << 20


@dataclass(frozen=True, kw_only=True)
class UnaryEncoding(OneLaw):
    """One bit for each category: likely 1 at the true one, unlikely elsewhere.

    * optimised (OUE): the true bit is 1 half of the time, each other bit with probability
      1/(e^ε + 1) (Wang, Blocki, Li & Jha 2017, Section 4.3);
    * `symmetric` (SUE, one-time RAPPOR): each bit is kept with probability
      e^(ε/2)/(e^(ε/2) + 1) (Erlingsson, Pihur & Korolova 2014).
    """

    kind: ClassVar[str] = "unary encoding"
    most: ClassVar[int] = MOST_BITS
    symmetric: bool = False

    @lazy
    def law(self) -> OneHot:
        if self.symmetric:
            kept = keep(self.asked, root=2)
            return OneHot(self.k, kept, 1 - kept)
        return OneHot(self.k, Fraction(1, 2), 1 - keep(self.asked))

    @property
    def thresholds(self) -> Mapping[str, int]:
        """A bit is 1 below these."""
        return {"true bit": int(self.law.on * WORD), "other bit": int(self.law.off * WORD)}
