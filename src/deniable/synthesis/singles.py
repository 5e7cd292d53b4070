"""Single columns, measured once, or twice where noise drowns them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from deniable.synthesis.measure import Draws
from deniable.synthesis.measurement import Measurement, averaged
from deniable.synthesis.model.fit import total_of

_DROWNED = 0.02


def measured_singles(draws: Draws, share: Fraction, again: Fraction) -> list[Measurement]:
    """Every column for its share; where noise drowns them once more, for `again` in all.

    Whether it does is told by the number of rows as measured, and so by released values alone.
    """
    first = [draws.measure((column,), share) for column in draws.domain.columns]
    if np.mean([each.noise for each in first]) / total_of(first) / 2 < _DROWNED:
        return first
    more = again / len(first)
    return [averaged([each, draws.measure(each.clique, more)]) for each in first]
