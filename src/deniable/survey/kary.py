"""k-ary randomised response, also called direct or generalised: the true category, or another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from deniable.lazy import lazy
from deniable.privacy.losses.base import Loss
from deniable.survey.frequency import OneLaw
from deniable.survey.laws import OneOf
from deniable.survey.thresholds import WORD, keep

MOST_COUNTED = 1 << 24


@dataclass(frozen=True, kw_only=True)
class KaryResponse(OneLaw):
    """Report the true category with probability e^ε/(e^ε + k - 1), each other one equally often.

    (Kairouz, Bonawitz & Ramage 2016.) The best choice for few categories: k < 3 e^ε + 2.
    """

    kind: ClassVar[str] = "k-ary response"
    most: ClassVar[int] = MOST_COUNTED

    @lazy
    def law(self) -> OneOf:
        return OneOf(self.k, keep(self.asked, Fraction(1, self.k - 1)))

    @property
    def truth(self) -> Fraction:
        """The probability of the truth."""
        return self.law.truth

    @property
    def lie(self) -> Fraction:
        """The probability of each other category."""
        return self.law.lie

    @property
    def thresholds(self) -> Mapping[str, int]:
        """Tell the truth below this."""
        return {"truth": int(self.truth * WORD)}

    @lazy
    def loss(self) -> Loss:
        return self.law.loss
