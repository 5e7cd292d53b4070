"""What a release costs, on a grid of 1e-18, so that totals are exact and cheap."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

from deniable.privacy.exact import show

GRID = Fraction(1, 10**18)


@dataclass(frozen=True)
class Price:
    """ε where the release is pure (None where it is not), and ρ beside a part of δ.

    Every number is a multiple of 1e-18, rounded up.
    """

    epsilon: Fraction | None
    rho: Fraction
    delta: Fraction
    asked: float | None = field(default=None, compare=False)
    """The `epsilon=` that a person says for it, where the budget it was paid from has a δ."""

    def __add__(self, other: Price) -> Price:
        pure = None
        if self.epsilon is not None and other.epsilon is not None:
            pure = self.epsilon + other.epsilon
        return Price(pure, self.rho + other.rho, self.delta + other.delta)

    def to_json(self) -> dict[str, float | None]:
        """As plain numbers."""
        pure = None if self.epsilon is None else float(self.epsilon)
        return {"epsilon": pure, "rho": float(self.rho), "delta": float(self.delta)}

    def __str__(self) -> str:
        details = f"ρ = {float(self.rho):.4g}"
        if self.delta:
            details += f", δ = {float(self.delta):.3g}"
        if self.asked is not None:
            return f"ε = {self.asked:.6g} ({details})"
        return details if self.epsilon is None else f"ε = {show(self.epsilon)}"


def on_grid(value: Fraction) -> Fraction:
    """The least multiple of the grid at or above `value`."""
    return math.ceil(value / GRID) * GRID
