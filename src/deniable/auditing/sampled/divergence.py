"""A whole divergence at once, for claims about Rényi divergences.

A single event shows little of a divergence: of two Gaussians, most of it is spread over all
outputs. So for zCDP one more test is made. For every bounded g, KL(P‖Q) >= E_P[g] - ln E_Q[e^g]
(Donsker & Varadhan 1983), and ρ-zCDP implies KL <= ρ, the limit of its orders towards 1 (Bun &
Steinke 2016, Def. 1.1). g is learned on the first calls; on those that test, both means are bounded
by the empirical Bernstein inequality (Maurer & Pontil 2009, Thm 4).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from deniable.auditing.sampled.events import Feature
from deniable.auditing.sampled.outcomes import Outcomes

Floats = npt.NDArray[np.float64]

_CUT = 4.0  # |g| at most


@dataclass(frozen=True, eq=False)
class LearnedRatio:
    """g: a learned log ratio between two sides, cut off."""

    score: Feature

    def divergence_at_least(
        self, data: Outcomes, neighbour: Outcomes, level: float
    ) -> tuple[float, bool]:
        """A lower bound on KL, of whichever direction is larger, and whether it is data first.

        It fails with probability `level` at most: four one-sided bounds, a quarter of it each.
        """
        here, there = (self._cut(self.score.read(side)) for side in (data, neighbour))
        forward, backward = (
            _mean_at_least(g, _CUT, level / 4)
            - math.log(-_mean_at_least(-np.exp(h), math.exp(_CUT), level / 4))
            for g, h in ((here, there), (-there, -here))
        )
        return max(0.0, forward, backward), forward >= backward

    @staticmethod
    def _cut(scores: Floats) -> Floats:
        return np.clip(np.nan_to_num(scores), -_CUT, _CUT)


def _mean_at_least(values: Floats, reach: float, level: float) -> float:
    """A lower bound on the mean of independent numbers that span `2 reach` at most."""
    n, weight = len(values), math.log(2 / level)
    spread = math.sqrt(2 * float(values.var(ddof=1)) * weight / n)
    return float(values.mean()) - spread - 7 * 2 * reach * weight / (3 * (n - 1))
