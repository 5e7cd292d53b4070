"""How a noisy gradient descent steps and averages, told by the noise on its gradients alone."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from deniable.learning.rows import Floats

STEP = 4.0
"""1/L: the logistic loss has second derivatives of 1/4 at most."""

_CURVATURE = 1 / 8
_LOUD = 0.02  # lengths of noise above which steps have no momentum worth the name
_MOST_POWER = 8.0


@dataclass(frozen=True)
class Descent:
    """Gradient steps with momentum, and a weighted mean of where they lead.

    `noise` is the deviation of one entry of a released gradient in the optimiser's coordinates, and
    `numbers` how many entries there are: both follow from released numbers. Where noise is loud the
    steps are plain and all count alike; where it is faint they have momentum (Nesterov 1983), and
    later ones count for more (Shamir & Zhang 2013: weights t^p).
    """

    steps: int
    noise: float
    numbers: int

    @property
    def _faint(self) -> float:
        return _LOUD / max(self.noise * math.sqrt(self.numbers), 1e-12)

    def momentum(self, turn: int) -> float:
        """How much of the last move is made again."""
        return min(self._faint, 1.0) * turn / (turn + 3)

    @property
    def weights(self) -> Floats:
        """What each place counts in the mean."""
        made = np.arange(1, self.steps + 1) ** min(4 * self._faint, _MOST_POWER)
        shares: Floats = made / made.sum()
        return shares

    def error(self, count: float) -> float:
        """The deviation of each entry of the mean through noise and sampling, to first order.

        Of a loss with curvature h = 1/8, between none and the most that a logistic loss has;
        sampling adds 1/nh.
        """
        heard, weights = 0.0, self.weights.tolist()
        ahead_by = [self.momentum(turn) for turn in range(self.steps)]
        for drawn in range(self.steps):
            place = last = mean = 0.0
            for turn in range(drawn, self.steps):
                ahead = place + ahead_by[turn] * (place - last)
                last, place = place, ahead * (1 - STEP * _CURVATURE) - STEP * (turn == drawn)
                mean += weights[turn] * place
            heard += mean**2
        return float(np.sqrt(heard * self.noise**2 + 1 / (count * _CURVATURE)))
