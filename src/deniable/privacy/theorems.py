"""Composition theorems by name: what each of them says about a number of releases.

`compose` and `loss.epsilon(delta=...)` are at least as tight as any of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

from deniable.errors import ParameterError, ParameterTypeError
from deniable.privacy.composition import compose, repeat
from deniable.privacy.exact import Number, not_negative, positive, probability, whole
from deniable.privacy.losses.base import Loss
from deniable.privacy.losses.generic import ApproxLoss, PureLoss


def basic_composition(
    *, epsilon: Number, count: int, delta: Number = 0
) -> tuple[Fraction, Fraction]:
    """`count` (ε, δ)-DP releases are (kε, kδ)-DP (Dwork & Roth 2014, Thm 3.16)."""
    times = whole(count, "count")
    return times * positive(epsilon, "epsilon"), times * not_negative(delta, "delta")


def advanced_composition(*, epsilon: Number, count: int, slack: Number) -> float:
    """ε' of `count` ε-DP releases at δ' = slack: sqrt(2k ln(1/δ')) ε + k ε (e^ε - 1).

    Dwork, Rothblum & Vadhan 2010, Thm III.3. (A lecture prints e^ε + 1: wrong.)
    """
    e, k, log_inverse = _read(epsilon, count, slack)
    return math.sqrt(2 * k * log_inverse) * e + k * e * math.expm1(e)


def kairouz_composition(*, epsilon: Number, count: int, slack: Number) -> float:
    """ε' of `count` ε-DP releases at δ' = slack, the least of three formulas.

    kε, and kε (e^ε-1)/(e^ε+1) + ε sqrt(2k ln(1/δ')), there also with e + sqrt(kε²)/δ' in place of
    1/δ' (Kairouz, Oh & Viswanath 2015, Thm 3.4).
    """
    e, k, log_inverse = _read(epsilon, count, slack)
    drift = k * e * math.tanh(e / 2)
    other = math.log(math.e + math.sqrt(k) * e * math.exp(log_inverse))
    return min(k * e, drift + e * math.sqrt(2 * k * min(log_inverse, other)))


def optimal_composition(
    epsilons: Sequence[Number], *, delta: Number, slacks: Sequence[Number] | None = None
) -> float:
    """The least ε that holds at δ whatever the releases, each ε_i-DP or (ε_i, slack_i)-DP.

    Kairouz, Oh & Viswanath 2015, Thm 3.3 (all alike) and Murtagh & Vadhan 2016, Thm 1.5 (all
    different): the worst releases are randomised responses. Found numerically, never too small; of
    more than a thousand different ones it is a bound by formula instead.
    """
    bounds = [positive(each, "epsilons") for each in _listed(epsilons, "epsilons")]
    given = [Fraction(0)] * len(bounds)
    if slacks is not None:
        given = [not_negative(each, "slacks") for each in _listed(slacks, "slacks")]
    if not bounds:
        raise ParameterError("epsilons", epsilons, "give at least one")
    if len(given) != len(bounds):
        raise ParameterError("slacks", len(given), "give one for every epsilon, or none")
    if any(slack >= 1 for slack in given):
        raise ParameterError("slacks", max(given), "must lie below 1")
    counts: dict[Loss, int] = {}
    for bound, slack in zip(bounds, given, strict=True):
        loss = ApproxLoss(bound=bound, slack=slack) if slack else PureLoss(bound=bound)
        counts[loss] = counts.get(loss, 0) + 1
    return compose(*(repeat(loss, count) for loss, count in counts.items())).epsilon(delta=delta)


def _listed(values: Iterable[Number], argument: str) -> list[Number]:
    try:
        return list(values)
    except TypeError:
        raise ParameterTypeError(
            argument, type(values).__name__, "must be a list of numbers"
        ) from None


def _read(epsilon: Number, count: int, slack: Number) -> tuple[float, int, float]:
    e, k = float(positive(epsilon, "epsilon")), whole(count, "count")
    if e > 700:
        raise ParameterError("epsilon", epsilon, "the formula is stated for epsilon below 700")
    return e, k, -math.log(probability(slack, "slack"))
