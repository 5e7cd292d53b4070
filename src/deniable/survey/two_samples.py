"""The unrelated question whose prevalence nobody knows: two samples tell both shares."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from deniable.errors import ParameterError, PrivateValueError
from deniable.mechanisms.design import Design
from deniable.mechanisms.labels import Reports, find_places, report_places
from deniable.mechanisms.share_intervals import clopper_pearson
from deniable.privacy.exact import Number, probability
from deniable.randomness.noise import ChoiceLaw, noise
from deniable.survey.designs import unrelated_question

_NO_YES = (False, True)


@dataclass(frozen=True)
class SampleShare:
    """A share with its standard error and interval, not cut to [0, 1]."""

    share: float
    standard_error: float
    low: float
    high: float


@dataclass(frozen=True, init=False)
class TwoSamples:
    """Sample 1 meets the sensitive question with one probability, sample 2 with another.

    Formal guarantee: if the harmless answer is unknown to the reader, independent of the sensitive
    one, and YES for a share between `lowest` and `highest`, a report is ε-DP with `epsilon`, the
    worst over that range and both samples (Greenberg et al. 1969 for the design). Nothing protects
    a report if the harmless question has the same answer for all.
    """

    asked: tuple[Fraction, Fraction]
    lowest: Fraction
    highest: Fraction

    def __init__(self, asked: tuple[Number, Number], *, lowest: Number, highest: Number) -> None:
        pair: object = asked
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise ParameterError("asked", asked, "must be two probabilities, one for each sample")
        first, second = (probability(p, "asked") for p in asked)
        if first == second:
            raise ParameterError("asked", asked, "must differ, or the two samples tell the same")
        low, high = probability(lowest, "lowest"), probability(highest, "highest")
        if low > high:
            raise ParameterError("lowest", lowest, "must not exceed highest")
        object.__setattr__(self, "asked", (first, second))
        object.__setattr__(self, "lowest", low)
        object.__setattr__(self, "highest", high)

    def design(self, sample: int, prevalence: Number) -> Design:
        """The design of sample 1 or 2 if the harmless question had this prevalence."""
        return unrelated_question(asked=self.asked[_place(sample)], prevalence=prevalence)

    @property
    def epsilon(self) -> float:
        """Worst at an end of the range: a YES tells most where it is rare, a NO where it is not."""
        ends = (self.lowest, self.highest)
        return max(self.design(sample, end).epsilon for sample in (1, 2) for end in ends)

    def randomize(self, sample: int, sensitive: Any, harmless: Any) -> npt.NDArray[np.bool_]:
        """For each person the true answer to one of the two questions, chosen by an exact coin."""
        first, second = (find_places(_NO_YES, values) for values in (sensitive, harmless))
        if first is None or second is None or first.size != second.size or not first.size:
            raise PrivateValueError("both must be lists of True and False, of one length")
        put = self.asked[_place(sample)]
        coins = noise(ChoiceLaw((1 - put, put))).many(first.size)
        sent: npt.NDArray[np.bool_] = np.where(coins == 1, first, second) == 1
        return sent

    def estimate(
        self, first: Reports, second: Reports, *, confidence: Number = 0.95
    ) -> tuple[SampleShare, SampleShare]:
        """The sensitive share and the harmless one, unbiased.

        The intervals join the exact intervals of both samples (Zou & Donner 2008), so that they
        do not shrink to a point where all reports are alike.
        """
        seen = []
        for name, reports in (("first", first), ("second", second)):
            places = report_places(_NO_YES, reports, name)
            ends = map(float, clopper_pearson(places.sum(), places.size, confidence))
            seen.append(_Rate(float(places.mean()), places.size, *ends))
        p, q = (float(each) for each in self.asked)
        weights = (((1 - q) / (p - q), -(1 - p) / (p - q)), (-q / (p - q), p / (p - q)))
        return _share(weights[0], seen), _share(weights[1], seen)


class _Rate(NamedTuple):
    yes: float
    n: int
    low: float
    high: float


def _share(weights: tuple[float, float], seen: Sequence[_Rate]) -> SampleShare:
    mean = error = down = up = 0.0
    for weight, rate in zip(weights, seen, strict=True):
        mean += weight * rate.yes
        error += weight**2 * rate.yes * (1 - rate.yes) / rate.n
        below, above = rate.yes - rate.low, rate.high - rate.yes
        down += (weight * (below if weight > 0 else above)) ** 2
        up += (weight * (above if weight > 0 else below)) ** 2
    return SampleShare(mean, math.sqrt(error), mean - math.sqrt(down), mean + math.sqrt(up))


def _place(sample: int) -> int:
    if sample not in (1, 2):
        raise ParameterError("sample", sample, "must be 1 or 2")
    return sample - 1
