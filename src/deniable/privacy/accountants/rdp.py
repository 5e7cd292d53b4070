"""Rényi divergences to (ε, δ), one order at a time."""

from __future__ import annotations

import math


def epsilon(order: float, divergence: float, delta: float) -> float:
    """ε(δ) proved by one Rényi order (Canonne, Kamath & Steinke 2020, Prop. 12)."""
    if order == math.inf:
        return divergence
    bound = divergence + math.log1p(-1 / order) - (math.log(delta) + math.log(order)) / (order - 1)
    return max(0.0, bound)
