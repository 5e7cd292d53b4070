"""The losses of Laplace noise, continuous and on the integers.

Both hold for vectors: `sensitivity` is in L1, and one coordinate that moves all of it is the worst
case. Proof. Let g be δ(ε) of one coordinate, as a function of a = (Δ - ε·scale)/2; the formulas
below show that for ε >= -Δ/scale it depends on a alone, and rises with it. Take shifts Δ1 >= Δ2 and
ε >= 0. Given the second coordinate, whose loss is (Δ2 - 2T)/scale with T >= 0, the first one meets
the curve at ε - loss >= -Δ1/scale, that is at a - T with a taken for Δ1 + Δ2. So the pair has
δ(ε) = E g(a - T) <= g(a). For ε < 0 use the symmetry of the pair; for more coordinates, induction.
"""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import ClassVar

import numpy as np

from deniable.errors import ParameterError
from deniable.privacy.accountants import zcdp
from deniable.privacy.accountants.law import ULP, DominatingPair, Floats, Reading, Rest, mirrored
from deniable.privacy.exact import Number, decimal, float_up, high_precision, positive, whole
from deniable.privacy.losses.base import Concentrated, Loss, check_ratio
from deniable.privacy.parameters import Parameter, parameter, parameters

_LIST_ATOMS = 1 << 20  # shift up to which atoms are listed one by one


@parameters
class LaplaceLoss(Loss):
    """Density proportional to exp(-|x|/scale), moved by at most `sensitivity` in L1."""

    kind: ClassVar[str] = "laplace"
    scale: Parameter[Number, Fraction] = parameter(positive)
    sensitivity: Parameter[Number, Fraction] = parameter(positive)

    def __post_init__(self) -> None:
        check_ratio("sensitivity/scale", self.pure)

    @property
    def pure(self) -> Fraction:
        """sensitivity / scale (Dwork, McSherry, Nissim & Smith 2006, Prop. 1)."""
        return self.sensitivity / self.scale

    @property
    def concentrated(self) -> Concentrated:
        """ε - 1 + e^-ε."""
        return Concentrated(zcdp.laplace_rho(self.pure), Fraction(0))

    def profile(self, epsilon: Fraction | float) -> float:
        """1 - e^((ε - pure)/2)."""
        gap = float(self.pure - Fraction(epsilon))
        return min(1.0, float_up(-math.expm1(-gap / 2))) if gap > 0 else 0.0

    def law(self) -> DominatingPair:
        """Half of P at the largest log ratio, its mirror image at the least, the rest between."""
        return laplace_law(float(self.pure), 0.0)

    def divergence(self, order: float) -> float:
        """ln[(α e^((α-1)ε) + (α-1) e^(-αε)) / (2α-1)] / (α-1) (Mironov 2017, Prop. 6)."""
        with localcontext(high_precision(self.pure)):
            e, a = decimal(self.pure), Decimal(repr(order))
            if a == 1:
                return float(e - 1 + (-e).exp())
            inner = (a + (a - 1) * (-(2 * a - 1) * e).exp()) / (2 * a - 1)
            return float((inner.ln() + (a - 1) * e) / (a - 1))

    def type_two(self, alpha: float) -> float:
        """A line, a hyperbola and a line."""
        if alpha == 0:
            return 1.0
        shrink = math.exp(-float(self.pure))
        if alpha < shrink / 2:
            return max(0.0, 1 - alpha / shrink - 4e-16)
        return (shrink / (4 * alpha) if alpha < 0.5 else shrink * (1 - alpha)) * (1 - 1e-14)

    def group(self, size: int) -> LaplaceLoss:
        """k units move the value k times as far."""
        return replace(self, sensitivity=self.sensitivity * whole(size, "size"))


@parameters
class DiscreteLaplaceLoss(Loss):
    """P(x) proportional to exp(-|x|/scale) on the integers, moved by at most `sensitivity` in L1.

    Integers move by whole numbers: a sensitivity of 2.7 is one of 2.
    """

    kind: ClassVar[str] = "discrete_laplace"
    scale: Parameter[Number, Fraction] = parameter(positive)
    sensitivity: Parameter[Number, Fraction] = parameter(positive)

    def __post_init__(self) -> None:
        if self.sensitivity < 1:
            raise ParameterError("sensitivity", self.sensitivity, "integers move by 1 or more")
        check_ratio("sensitivity/scale", self.pure)

    @property
    def shift(self) -> int:
        """How far an integer can move."""
        return math.floor(self.sensitivity)

    @property
    def pure(self) -> Fraction:
        """shift / scale (Ghosh, Roughgarden & Sundararajan 2009)."""
        return self.shift / self.scale

    @property
    def concentrated(self) -> Concentrated:
        """The Kullback-Leibler divergence, which is the least ρ."""
        return Concentrated(zcdp.discrete_laplace_rho(self.scale, self.shift), Fraction(0))

    def profile(self, epsilon: Fraction | float) -> float:
        """1 - e^-u cosh(r - h/2)/cosh(h/2): u = (pure - ε)/2, h = 1/scale, r = -u modulo h.

        Equal to the continuous curve where u is a multiple of h, above it elsewhere.
        """
        u = (self.pure - Fraction(epsilon)) / 2
        if u <= 0:
            return 0.0
        steps = u * self.scale
        rest = (math.ceil(steps) - steps) / self.scale
        with localcontext(high_precision(min(u, 1 / self.scale))):
            half = decimal(1 / self.scale) / 2
            # cosh(r - h/2) / cosh(h/2), the growing exponential cancelled
            share = ((-decimal(rest)).exp() + (decimal(rest) - 2 * half).exp()) / (
                1 + (-2 * half).exp()
            )
            return min(1.0, float_up(float(1 - (-decimal(u)).exp() * share)))

    def law(self) -> DominatingPair:
        """The places 0 and below, 1 to shift - 1, shift and above.

        On a fine lattice that is the continuous law but for h²/8 (see `profile`).
        """
        h, shift = 1 / float(self.scale), self.shift
        if shift > _LIST_ATOMS:
            return laplace_law(float(self.pure), h * h / 8)
        places = np.arange(shift, -1, -1, dtype=np.float64)
        q = math.exp(-h)
        mass = np.exp(-h * places) * (-math.expm1(-h) / (1 + q))
        mass[-1] = 1 / (1 + q)
        mass[0] = math.exp(-h * shift) / (1 + q)
        x = (shift - 2 * places) * float(1 / self.scale)
        return DominatingPair(atoms=lambda _: mirrored(x, mass), grain=h * (1 if shift % 2 else 2))

    def divergence(self, order: float) -> float:
        """From the sum over the places where the loss differs, in closed form."""
        with localcontext(high_precision(min(self.pure, 1 / self.scale))):
            e, h, a = decimal(self.pure), decimal(1 / self.scale), Decimal(repr(order))
            q = (-h).exp()
            if a == 1:
                return float(e - (1 - (-e).exp()) * 2 * h / (1 / q - q))
            s = a - Decimal("0.5")
            # e^(-sε) [2 cosh(sε) + (1-q) sinh(s(ε-h))/sinh(sh)], then (α-1)ε taken back.
            ends = 1 + (-2 * s * e).exp()
            middle = (1 - (-2 * s * (e - h)).exp()) / (1 - (-2 * s * h).exp())
            inner = (ends + (1 - q) * (-2 * s * h).exp() * middle) / (1 + q)
            return float((inner.ln() + (a - 1) * e) / (a - 1))

    def type_two(self, alpha: float) -> float:
        """Straight between the likelihood-ratio tests "x >= m", whole m.

        P(X >= m) = q^m / (1+q) for m > 0, and 1 - q^(1-m) / (1+q) for m <= 0.
        """
        h, shift = 1 / float(self.scale), self.shift
        edge = 1 / (1 + math.exp(-h))
        if alpha == 0:
            return 1.0
        if alpha >= edge:
            return math.exp(-shift * h) * (1 - alpha) * (1 - 1e-13)
        if alpha <= edge * math.exp(-(shift + 1) * h):
            return max(0.0, 1 - math.exp(min(math.log(alpha) + shift * h, 0.0)) - 1e-13)
        # Levels edge*q^m and errors edge*q^(shift+1-m) for 0 <= m <= shift + 1.
        m = min(math.floor(math.log(edge / alpha) / h), shift)
        share = math.expm1(math.log(alpha / edge) + (m + 1) * h) / math.expm1(h) if h < 500 else 1.0
        error, next_error = (edge * math.exp(-(shift + 1 - n) * h) for n in (m, m + 1))
        return (share * error + (1 - share) * next_error) * (1 - 1e-12)

    def group(self, size: int) -> DiscreteLaplaceLoss:
        """k units move the value k times as far."""
        return replace(self, sensitivity=Fraction(self.shift * whole(size, "size")))


def laplace_law(pure: float, error: float) -> DominatingPair:
    """The continuous pair: (1 - e^((ε - pure)/2))²/2 between the atoms, true but for `error`."""

    def curve(epsilon: Floats) -> Reading:
        share = -np.expm1(-np.maximum(pure - epsilon, 0.0) / 2)
        inside = np.where(epsilon < pure, error, 0.0)
        return Reading(share**2 / 2, share * ULP * (8 * share + 16 * pure) + inside)

    ends = mirrored(np.array([-pure, pure]), np.array([math.exp(-pure) / 2, 0.5]))
    return DominatingPair(lambda _: ends, Rest(curve, curve, -math.expm1(-pure) / 2), grain=pure)
