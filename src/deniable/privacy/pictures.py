"""Pictures of losses: profile, trade-off curve, growth with the number of releases."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from deniable.errors import ParameterError
from deniable.plots import lines
from deniable.privacy.accountants import zcdp
from deniable.privacy.composition import repeat
from deniable.privacy.exact import Number, positive, probability, whole
from deniable.privacy.losses.base import Loss, check_loss
from deniable.privacy.theorems import advanced_composition

_POINTS = 40


def plot_profile(
    losses: Mapping[str, Loss], path: str | Path, *, epsilon: Number | None = None
) -> Path:
    """Draw δ(ε) of each loss, from 0 to `epsilon` (where δ has fallen to 1e-9 if not given)."""
    _some(losses)
    if epsilon is None:
        each = [loss.epsilon(delta=1e-9) for loss in losses.values()]
        top = max((far for far in each if 0 < far < math.inf), default=1.0)
    else:
        top = float(positive(epsilon, "epsilon"))
    x = np.linspace(0, top, _POINTS)
    curves = {
        name: [loss.delta(epsilon=float(e)) or math.nan for e in x] for name, loss in losses.items()
    }
    return lines(
        x, curves, log_y=True, title="Privacy profile", x_label="ε", y_label="δ(ε)", path=path
    )


def plot_tradeoff(losses: Mapping[str, Loss], path: str | Path) -> Path:
    """Draw the least type-II error of any test between two neighbours, over its type-I error."""
    _some(losses)
    x = np.linspace(0, 1, _POINTS + 1)
    curves = {name: [loss.tradeoff(float(a)) for a in x] for name, loss in losses.items()}
    return lines(
        x,
        {"no information": 1 - x, **curves},
        title="Trade-off curve",
        x_label="type-I error",
        y_label="least type-II error",
        path=path,
    )


def plot_growth(
    loss: Loss, path: str | Path, *, delta: Number, counts: Sequence[int] = (1, 3, 10, 30, 100, 300)
) -> Path:
    """Draw how ε grows with the number of releases: basic, advanced, zCDP and numerical."""
    check_loss(loss)
    steps = sorted({whole(count, "counts") for count in counts})
    if not steps:
        raise ParameterError("counts", counts, "give at least one number of releases")
    curves = growth(loss, delta=delta, counts=steps)
    if not any(math.isfinite(value) for values in curves.values() for value in values):
        raise ParameterError("delta", delta, "no ε is known at this δ: ask for a larger one")
    return lines(
        steps,
        {name: [v if 0 < v < math.inf else math.nan for v in vs] for name, vs in curves.items()},
        log_x=True,
        log_y=True,
        title=f"ε at δ = {float(delta):g}, by number of releases",
        x_label="releases",
        y_label="ε",
        path=path,
    )


def growth(loss: Loss, *, delta: Number, counts: Sequence[int]) -> dict[str, list[float]]:
    """ε of so many releases, by each way of accounting that applies; NaN where one does not."""
    allowed = float(probability(delta, "delta"))
    found: dict[str, list[float]] = {"basic": [], "advanced": [], "zCDP": [], "numerical": []}
    for count in counts:
        many = repeat(loss, count)
        pure = None if loss.pure is None else float(loss.pure)
        each = loss.epsilon(delta=allowed / count) if pure is None else pure  # δ is split evenly
        found["basic"].append(count * each)
        found["advanced"].append(
            advanced_composition(epsilon=loss.pure, count=count, slack=delta)
            if loss.pure is not None and loss.pure < 700
            else math.nan
        )
        rho, slack = many.concentrated
        left = allowed - float(slack)
        found["zCDP"].append(zcdp.epsilon(float(rho), left) if left > 0 else math.nan)
        found["numerical"].append(many.epsilon(delta=delta))
    return {name: values for name, values in found.items() if not all(map(math.isnan, values))}


def _some(losses: Mapping[str, Loss]) -> None:
    given: object = losses
    if not isinstance(given, Mapping) or not all(isinstance(each, Loss) for each in given.values()):
        raise ParameterError("losses", type(losses).__name__, "give a dict of names and losses")
    if not losses:
        raise ParameterError("losses", losses, "give at least one loss")
