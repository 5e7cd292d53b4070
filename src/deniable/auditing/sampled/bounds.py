"""Exact binomial bounds, and what a number of calls can certify at most."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import betainccinv, betaincinv

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]

# The inverse of the incomplete beta function is good to about twelve digits.
_SHORT, _LONG = 1 - 1e-9, 1 + 1e-9


def below(hits: Counts | int, trials: int, level: float) -> Floats:
    """Lower bounds p₋ on a probability: P(p₋ > p) <= level (Clopper & Pearson 1934)."""
    k = np.asarray(hits, dtype=np.float64)
    found = betaincinv(np.maximum(k, 1), trials - k + 1, level) * _SHORT
    return np.where(k == 0, 0.0, found)


def above(hits: Counts | int, trials: int, level: float) -> Floats:
    """Upper bounds p₊ on a probability: P(p₊ < p) <= level (Clopper & Pearson 1934)."""
    k = np.asarray(hits, dtype=np.float64)
    found = betainccinv(k + 1, np.maximum(trials - k, 1), level) * _LONG
    return np.where(k >= trials, 1.0, np.minimum(found, 1.0))


@dataclass(frozen=True)
class EventCounts:
    """How often an event happened in so many calls on each side.

    Formal guarantee. The calls being independent and the event fixed before them,
    P(`sure_more` <= P(event) and Q(event) <= `at_most_less`) >= 1 - level, whatever P and Q: each
    bound fails with probability level/2 at most, and one of the two fails with the sum of both.
    """

    more: int
    less: int
    trials: int
    level: float

    @property
    def shares(self) -> tuple[float, float]:
        """How often it happened, on the side where it is said to be likelier and on the other."""
        return self.more / self.trials, self.less / self.trials

    @property
    def sure_more(self) -> float:
        """A lower bound on the event's probability where it is said to be likelier."""
        return float(below(self.more, self.trials, self.level / 2))

    @property
    def at_most_less(self) -> float:
        """An upper bound on its probability on the other side."""
        return float(above(self.less, self.trials, self.level / 2))


def perfect(trials: int, level: float) -> tuple[float, float]:
    """The bounds for an event that always happens on one side, and never on the other."""
    least = math.exp(math.log(level / 2) / trials)
    return least, 1 - least
