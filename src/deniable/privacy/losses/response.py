"""The loss of k-ary randomised response."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial
from typing import ClassVar

import numpy as np

from deniable.errors import ParameterError
from deniable.privacy.accountants import pure as curve
from deniable.privacy.accountants.law import DominatingPair, mirrored
from deniable.privacy.exact import (
    Number,
    decimal,
    float_above,
    float_up,
    high_precision,
    log_up,
    probability,
    whole,
)
from deniable.privacy.losses.base import Concentrated, Loss
from deniable.privacy.losses.generic import PureLoss, response_divergence
from deniable.privacy.parameters import Parameter, Related, parameter, parameters
from deniable.privacy.units import Relation, read_relation


@parameters
class RandomizedResponseLoss(Loss):
    """The true answer with probability `truth`, each of the others equally often.

    A respondent's answer is replaced by another one: the relation is "replace" unless said
    otherwise.
    """

    kind: ClassVar[str] = "randomized_response"
    relation: Related = parameter(read_relation, default=Relation.REPLACE)
    truth: Parameter[Number, Fraction] = parameter(probability)
    categories: Parameter[int, int] = parameter(partial(whole, least=2), default=2)

    def __post_init__(self) -> None:
        if self.truth * self.categories <= 1:
            raise ParameterError(
                "truth", self.truth, f"must be above 1/{self.categories}, or answers say nothing"
            )

    @property
    def lie(self) -> Fraction:
        """The probability of each answer that is not the true one."""
        return (1 - self.truth) / (self.categories - 1)

    @property
    def pure(self) -> Fraction:
        """ln(truth/lie), rounded up at the fortieth digit (Warner 1965; Wang et al. 2017)."""
        return log_up(self.truth / self.lie)

    @property
    def concentrated(self) -> Concentrated:
        """ε tanh(ε/2), exact for two categories and an upper bound for more."""
        return Concentrated(curve.rho(self.pure), Fraction(0))

    def profile(self, epsilon: Fraction | float) -> float:
        """truth - e^ε lie = truth (1 - e^(ε - pure)); exact at ε = 0."""
        gap = self.pure - Fraction(epsilon)
        if epsilon == 0:
            return float_above(self.truth - self.lie)
        return float_up(float(self.truth) * -math.expm1(-float(gap))) if gap > 0 else 0.0

    def law(self) -> DominatingPair:
        """The true answer, the neighbour's, and all others."""
        top, truth, lie = float(self.pure), float(self.truth), float(self.lie)
        atoms = mirrored(np.array([-top, 0.0, top]), np.array([lie, 1 - truth - lie, truth]))
        if self.categories == 2:
            atoms = mirrored(atoms.x[::2], atoms.mass[::2])
        return DominatingPair(atoms=lambda _: atoms, grain=top)

    def divergence(self, order: float) -> float:
        """Summed over the true answer, the other true answer and the rest."""
        if self.categories == 2:
            return response_divergence(self.pure, order)
        with localcontext(high_precision(self.pure)):
            p, q, a = decimal(self.truth), decimal(self.lie), Decimal(repr(order))
            log_ratio = (p / q).ln()
            if a == 1:
                return float((p - q) * log_ratio)
            shrink = (-(a - 1) * log_ratio).exp()
            inner = p + q * shrink * shrink + (self.categories - 2) * q * shrink
            return float(inner.ln() / (a - 1) + log_ratio)

    def group(self, size: int) -> Loss:
        """k respondents answer one by one; together they are k ε-DP."""
        return (
            self
            if whole(size, "size") == 1
            else PureLoss(bound=size * self.pure, relation=self.relation)
        )
