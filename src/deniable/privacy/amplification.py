"""Amplification: a release that hides who took part, or which answer is whose, costs less.

Sampling is a loss of its own (`losses.sampled`). Here is shuffling.
"""

from __future__ import annotations

import math

from deniable.errors import ParameterError, RelationError
from deniable.privacy.exact import Number, exact, probability, whole
from deniable.privacy.losses.base import Loss, check_loss
from deniable.privacy.losses.generic import ApproxLoss
from deniable.privacy.units import Relation


def shuffled(loss: Loss, *, people: int, delta: Number) -> ApproxLoss:
    """The loss of `people` randomised answers that arrive shuffled, for one answer replaced.

    `loss` is that of each person's own randomiser, pure with ε0. Together they are (ε, δ)-DP with
    ε = ln(1 + (e^ε0 - 1)/(e^ε0 + 1) * (8 sqrt(e^ε0 ln(4/δ)/n) + 8 e^ε0/n)) as long as
    ε0 <= ln(n / (16 ln(2/δ))) (Feldman, McMillan & Talwar 2021, Thm 3.1). It holds only if nobody
    who sees the answers can tell whose is whose, not by order, address or time.
    """
    if check_loss(loss).relation != Relation.REPLACE:
        raise RelationError("a shuffled answer is replaced, not added: use relation='replace'")
    if loss.pure is None:
        raise ParameterError("loss", loss.kind, "each person's randomiser must be pure")
    n, slack = whole(people, "people", least=2), probability(delta, "delta")
    e, log_delta = float(loss.pure), math.log(slack)
    least = 16 * (math.log(2) - log_delta) * math.exp(min(e, 600.0))
    if n < least:
        raise ParameterError(
            "people", people, f"answers of ε={e:.4g} hide among {math.ceil(least):,} people or more"
        )
    grown = math.exp(e)
    hidden = 8 * math.sqrt(grown * (math.log(4) - log_delta) / n) + 8 * grown / n
    epsilon = min(e, math.log1p(math.tanh(e / 2) * hidden) * (1 + 1e-12))
    return ApproxLoss(bound=exact(epsilon, "epsilon"), slack=slack, relation=loss.relation)
