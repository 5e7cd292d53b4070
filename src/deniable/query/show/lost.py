"""What contribution bounds cut off, put back: an estimate under an assumption, and post-processing.

One noisy number for each statistic tells what was cut off in all. It is put back as if it had been
spread over the groups like what was kept. That is right on average if heavy units are spread as
light ones are, and an assumption: answers say so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deniable.intervals import Floats
from deniable.query.plan.measures import ColumnNoise
from deniable.query.plan.plan import Plan

LABEL = "what bounds cut off is estimated, as if spread like the rest"


@dataclass(frozen=True, eq=False)
class Restored:
    """Statistics with what was cut off put back: how much in each group, and the noise of both."""

    x: Floats
    added: Floats
    noise: tuple[ColumnNoise, ...]


def restored(
    plan: Plan, x: Floats, noise: Sequence[ColumnNoise], lost: Sequence[tuple[float, float]]
) -> Restored:
    """Put back what was cut off; `lost` are noisy totals, each with its standard deviation.

    A total that may be noise alone is shrunk toward 0 (James & Stein 1961, for one coordinate).
    """
    made, added, laws = x.copy(), np.zeros_like(x), list(noise)
    for place, (total, deviation) in enumerate(lost):
        shares = _shares(plan, x, place)
        kept = max(0.0, 1 - (deviation / total) ** 2) if total else 0.0
        added[:, place] = kept * total * shares
        made[:, place] += added[:, place]
        most = float(shares.max(initial=0.0)) * kept * deviation
        laws[place] = noise[place].wider(most)
    return Restored(made, added, tuple(laws))


def _shares(plan: Plan, x: Floats, place: int) -> Floats:
    """The share of each group in what was kept: of itself for counts, of rows for sums."""
    statistics = plan.statistics
    counts = [n for n, each in enumerate(statistics) if each.counts and not each.missing]
    own = statistics[place].per_unit or place in counts or not counts
    kept = np.maximum(x[:, place if own else counts[0]], 0.0)
    total = float(kept.sum())
    return kept / total if total else np.zeros(len(x))
