"""How often a test would refute, if an event were as likely as is said."""

from __future__ import annotations

import numpy as np
from scipy.stats import binom

from deniable.auditing.sampled.bounds import above, below
from deniable.auditing.sampled.claims import Claim

_PLACES = (np.arange(60) + 0.5) / 60


def power(claim: Claim, more: float, less: float, trials: int, level: float) -> float:
    """The chance that so many new calls on each side refute the claim by one event.

    Of an event with these probabilities, on the side where it is likelier and on the other: over
    sixty equally likely counts of each, so that it is good to a few hundredths.
    """
    hits, misses = (binom.ppf(_PLACES, trials, p).astype(np.int64) for p in (more, less))
    sure = below(hits, trials, level / 2)
    allowed = claim.chosen_by(above(misses, trials, level / 2))
    return float((sure[:, None] > allowed[None, :]).mean())
