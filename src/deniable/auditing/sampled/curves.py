"""What a feature showed at every threshold, to be drawn."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from deniable.auditing.sampled.events import Candidate
from deniable.auditing.sampled.outcomes import Sides

_DRAWN = 1e300  # and no further, so that sums of two stay finite


@dataclass(frozen=True)
class Curves:
    """What the testing calls showed of the feature that was tested last, to be drawn."""

    less: tuple[float, ...]
    more: tuple[float, ...]
    places: tuple[float, ...]
    on_data: tuple[float, ...]
    on_neighbour: tuple[float, ...]


def curves(candidate: Candidate, calls: Sides) -> Curves:
    """How far the candidate's feature tells the sides apart at every threshold, to be drawn."""
    data, neighbour = calls.data, calls.neighbour
    read = candidate.event.feature.read
    sides = (data, neighbour) if candidate.forward else (neighbour, data)
    more, less = (np.nan_to_num(read(side), nan=-math.inf) for side in sides)
    pooled = np.unique(np.concatenate([more, less]))
    cuts = np.unique(np.quantile(pooled, np.linspace(0, 1, 200), method="nearest"))
    sign = 1 if candidate.event.at_least else -1
    at = [((sign * less >= sign * cut).mean(), (sign * more >= sign * cut).mean()) for cut in cuts]
    points = sorted([(0.0, 0.0), *((float(q), float(p)) for q, p in at), (1.0, 1.0)])
    finite = pooled[np.isfinite(pooled)]
    finite = np.clip(finite, -_DRAWN, _DRAWN)
    low, high = np.quantile(finite, [0.005, 0.995]) if finite.size else (0.0, 1.0)
    edges = np.linspace(low, max(high, low + 1e-9), 41)
    shares = [
        tuple((np.histogram(read(side), edges)[0] / len(side)).tolist())
        for side in (data, neighbour)
    ]
    return Curves(
        less=tuple(q for q, _ in points),
        more=tuple(p for _, p in points),
        places=tuple(((edges[1:] + edges[:-1]) / 2).tolist()),
        on_data=shares[0],
        on_neighbour=shares[1],
    )
