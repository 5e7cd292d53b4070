"""Losses of which nothing is known but their (ε, δ), or their ρ."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import ClassVar

import numpy as np

from deniable.errors import ParameterError
from deniable.privacy.accountants import pure as curve, zcdp
from deniable.privacy.accountants.law import DominatingPair, mirrored
from deniable.privacy.exact import Number, decimal, high_precision, probability, rounded_up, whole
from deniable.privacy.losses.base import Concentrated, Loss, ratio
from deniable.privacy.parameters import Parameter, parameter, parameters
from deniable.privacy.units import Relation

_NOTHING = Fraction(1, 10**30)  # the ε of a part that has only a δ


@parameters
class PureLoss(Loss):
    """Some release that is `bound`-DP; its worst case is randomised response."""

    kind: ClassVar[str] = "pure"
    bound: Parameter[Number, Fraction] = parameter(ratio)

    @property
    def pure(self) -> Fraction:
        return self.bound

    @property
    def concentrated(self) -> Concentrated:
        return Concentrated(curve.rho(self.bound), Fraction(0))

    def profile(self, epsilon: Fraction | float) -> float:
        """(e^bound - e^ε) / (1 + e^bound)."""
        return curve.delta(self.bound, 0.0, epsilon)

    def law(self) -> DominatingPair:
        return response_law(float(self.bound))

    def divergence(self, order: float) -> float:
        return response_divergence(self.bound, order)

    def type_two(self, alpha: float) -> float:
        """Two lines that meet on the diagonal."""
        return curve.tradeoff(float(self.bound), 0.0, alpha)

    def group(self, size: int) -> PureLoss:
        """A group of k is k * bound-DP."""
        return replace(self, bound=self.bound * whole(size, "size"))


@parameters
class ApproxLoss(Loss):
    """Some release that is (`bound`, `slack`)-DP.

    Its worst case tells all with probability `slack`, and is randomised response otherwise.
    """

    kind: ClassVar[str] = "approx"
    bound: Parameter[Number, Fraction] = parameter(ratio)
    slack: Parameter[Number, Fraction] = parameter(probability)

    @property
    def concentrated(self) -> Concentrated:
        """ρ of the randomised response, δ of the rest."""
        return Concentrated(curve.rho(self.bound), self.slack)

    def profile(self, epsilon: Fraction | float) -> float:
        """slack + (1 - slack) * that of randomised response."""
        return curve.delta(self.bound, float(self.slack), epsilon)

    def law(self) -> DominatingPair:
        return replace(response_law(float(self.bound)), certain=float(self.slack))

    def divergence(self, order: float) -> float:  # noqa: ARG002
        """Infinite: an event of probability slack tells all."""
        return math.inf

    def type_two(self, alpha: float) -> float:
        """The curve of randomised response, lowered by slack."""
        return curve.tradeoff(float(self.bound), float(self.slack), alpha)

    def group(self, size: int) -> ApproxLoss:
        """(kε, δ (e^kε - 1)/(e^ε - 1)) (Vadhan 2017, Lemma 2.2, with the exact sum)."""
        k = whole(size, "size")
        if k == 1:
            return self
        if k * self.bound <= 1000:  # beyond, δ of 1e-300 has long passed 1
            with localcontext(high_precision(self.bound)):
                e = decimal(self.bound)
                growth = Fraction(((e * k).exp() - 1) / (e.exp() - 1))
            slack = rounded_up(self.slack * growth * (1 + Fraction(1, 10**35)))
            if slack < 1:
                return replace(self, bound=k * self.bound, slack=slack)
        raise ParameterError("size", size, "a group this large has no (ε, δ) left")


def only_delta(delta: Fraction, relation: Relation) -> ApproxLoss:
    """A part that tells all with probability δ, and nothing otherwise (to the ledger, 1e-18)."""
    return ApproxLoss(bound=_NOTHING, slack=delta, relation=relation)


@parameters
class ConcentratedLoss(Loss):
    """Some release that is `bound`-zCDP: its curve is the best that this alone proves."""

    kind: ClassVar[str] = "concentrated"
    bound: Parameter[Number, Fraction] = parameter(ratio)

    @property
    def concentrated(self) -> Concentrated:
        return Concentrated(self.bound, Fraction(0))

    def profile(self, epsilon: Fraction | float) -> float:
        """δ(ε) by the best Rényi order (Canonne, Kamath & Steinke 2020, Prop. 12)."""
        return zcdp.delta(float(self.bound) * (1 + 1e-15), float(epsilon))

    def divergence(self, order: float) -> float:
        """order · ρ."""
        return order * float(self.bound)

    def group(self, size: int) -> ConcentratedLoss:
        """k²ρ (Bun & Steinke 2016, Prop. 1.9)."""
        return replace(self, bound=self.bound * whole(size, "size") ** 2)


def response_law(epsilon: float) -> DominatingPair:
    """Two atoms."""
    lie = math.exp(-epsilon) / (1 + math.exp(-epsilon))
    ends = mirrored(np.array([-epsilon, epsilon]), np.array([lie, 1 / (1 + math.exp(-epsilon))]))
    return DominatingPair(atoms=lambda _: ends, grain=epsilon)


def response_divergence(epsilon: Fraction, order: float) -> float:
    """Rényi divergence of binary randomised response: ln[cosh((α-1/2)ε)/cosh(ε/2)]/(α-1)."""
    with localcontext(high_precision(epsilon)):
        e, a = decimal(epsilon), Decimal(repr(order))
        if a == 1:
            return float(e * (1 - (-e).exp()) / (1 + (-e).exp()))
        # cosh(x) = e^x (1 + e^-2x) / 2
        inner = (1 + (-(2 * a - 1) * e).exp()) / (1 + (-e).exp())
        return float((inner.ln() + (a - 1) * e) / (a - 1))
