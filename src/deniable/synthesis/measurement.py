"""Measurements: noisy marginals, as data. All that reconstruction ever gets to see."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from deniable.synthesis.domain import Clique, Floats


@dataclass(frozen=True, eq=False)
class Measurement:
    """A noisy marginal in rows, and the standard deviation of its noise.

    One number where all cells have the same, as in everything that is drawn; a table where cells
    were added up afterwards.
    """

    clique: Clique
    values: Floats
    deviation: float | Floats

    @property
    def variance_of_sum(self) -> float:
        return float(np.broadcast_to(np.square(self.deviation), self.values.shape).sum())

    @property
    def noise(self) -> float:
        """E|noise| summed over all cells, for Gaussian noise: σ sqrt(2/π) each."""
        wide = np.broadcast_to(np.asarray(self.deviation), self.values.shape)
        return float(wide.sum()) * math.sqrt(2 / math.pi)

    def to_json(self) -> dict[str, Any]:
        return {
            "clique": list(self.clique),
            "values": self.values.tolist(),
            "deviation": np.asarray(self.deviation).tolist(),
        }

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> Measurement:
        values = np.array(stored["values"], dtype=np.float64)
        deviation = stored["deviation"]
        wide = deviation if isinstance(deviation, float) else np.array(deviation, dtype=np.float64)
        return cls(tuple(stored["clique"]), values, wide)


def averaged(measurements: Sequence[Measurement]) -> Measurement:
    """Several measurements of one marginal as one, weighted by the inverse of their variances."""
    total, values = np.zeros(()), np.zeros_like(measurements[0].values)
    for each in measurements:
        weight = 1 / np.square(each.deviation)
        total, values = total + weight, values + weight * each.values
    return Measurement(measurements[0].clique, values / total, 1 / np.sqrt(total))
