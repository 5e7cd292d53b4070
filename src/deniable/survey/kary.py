"""k-ary randomised response, also called direct or generalised: the true category, or another."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import ClassVar

from deniable.lazy import lazy
from deniable.privacy.parameters import parameter, parameters
from deniable.survey.answers import read_size
from deniable.survey.frequency import OneLaw
from deniable.survey.laws import OneOf
from deniable.survey.thresholds import keep

MOST_COUNTED = 1 << 24


@parameters
class KaryResponse(OneLaw):
    """Report the true category with probability e^ε/(e^ε + k - 1), each other one equally often.

    (Kairouz, Bonawitz & Ramage 2016.) The best choice for few categories: k < 3 e^ε + 2.
    """

    kind: ClassVar[str] = "k-ary response"
    k: int = parameter(partial(read_size, most=MOST_COUNTED))

    @lazy
    def law(self) -> OneOf:
        return OneOf(self.k, keep(self.epsilon, Fraction(1, self.k - 1)))
