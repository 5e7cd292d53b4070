"""Selection probabilities from scores, to 200 bits, however far apart the scores lie."""

from __future__ import annotations

import math
from fractions import Fraction

from deniable.randomness.brackets import exp_minus
from deniable.randomness.categorical import ScoreList, exact_score

_BITS = 200
_FARTHEST = 100_000


def deficits(scores: ScoreList, factor: Fraction) -> list[Fraction]:
    """factor * (best - score) for each score."""
    exact = [exact_score(score) for score in scores]
    best = max(exact)
    return [factor * (best - score) for score in exact]


def relative_weights(scores: ScoreList, factor: Fraction) -> list[Fraction]:
    """exp(-deficit) to a relative 2^-200; below e^-100,000 it is given as 0."""
    return [_weight(deficit) for deficit in deficits(scores, factor)]


def _weight(deficit: Fraction) -> Fraction:
    if deficit > _FARTHEST:
        return Fraction(0)
    precision = _BITS + math.ceil(float(deficit) * 1.45) + 2
    return Fraction(exp_minus(deficit, precision).high, 1 << precision)


def weights_to_probabilities(scores: ScoreList, factor: Fraction) -> list[Fraction]:
    """Probabilities proportional to exp(factor * score); they sum to one exactly."""
    weights = relative_weights(scores, factor)
    total = sum(weights)
    return [weight / total for weight in weights]
