"""Unary encoding: a row of bits, one to a category, each of them noisy."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import ClassVar

from deniable.lazy import lazy
from deniable.privacy.parameters import parameter, parameters
from deniable.survey.answers import read_size
from deniable.survey.frequency import OneLaw
from deniable.survey.laws import OneHot
from deniable.survey.thresholds import keep

MOST_BITS = 1 << 20


@parameters
class UnaryEncoding(OneLaw):
    """One bit for each category: likely 1 at the true one, unlikely elsewhere.

    * optimised (OUE): the true bit is 1 half of the time, each other bit with probability
      1/(e^ε + 1) (Wang, Blocki, Li & Jha 2017, Section 4.3);
    * `symmetric` (SUE, one-time RAPPOR): each bit is kept with probability
      e^(ε/2)/(e^(ε/2) + 1) (Erlingsson, Pihur & Korolova 2014).
    """

    kind: ClassVar[str] = "unary encoding"
    k: int = parameter(partial(read_size, most=MOST_BITS))
    symmetric: bool = False

    @lazy
    def law(self) -> OneHot:
        if self.symmetric:
            kept = keep(self.epsilon, root=2)
            return OneHot(self.k, kept, 1 - kept)
        return OneHot(self.k, Fraction(1, 2), 1 - keep(self.epsilon))
