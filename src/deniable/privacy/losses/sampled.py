"""The loss of a release from a random part of the data: Poisson sampling.

Each unit is taken with probability q, apart from all others and unseen by anyone; the release then
runs on those that were taken. With the release's own worst pair (P, Q), P with the unit:

* **add/remove** (Zhu, Dong & Wang 2022, Thm 11): a unit taken away meets ((1-q)Q + qP, Q), a unit
  added the reverse of that. In terms of H(y) = sup_S P(S) - y Q(S) these have the curves
  q H(1 + (y-1)/q) and w H(qy/w), w = 1 - (1-q)y.
* **replace**: with R the law without either unit, the pair is ((1-q)R + qP, (1-q)R + qQ). For
  y >= 1 its curve is the largest q P(S) - a R(S) - b Q(S) over events S, with a = (y-1)(1-q) and
  b = qy. Given P(S), the least that R(S) and Q(S) can be is known from the trade-off curves of the
  noise moved by Δ and by 2Δ, since P and R differ by one unit and P and Q by two. For Gaussian and
  Laplace noise a half-line reaches both at once when P, R and Q are the noise at Δ, 0 and -Δ. So
  that triple is the worst; below y = 1 swap the two units.
"""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import localcontext
from fractions import Fraction
from typing import ClassVar

import numpy as np

from deniable.errors import ParameterError, RelationError
from deniable.lazy import lazy
from deniable.privacy.accountants import pure as curve
from deniable.privacy.accountants.ladder import TooLongError, read
from deniable.privacy.accountants.law import TELLS_NOTHING, ULP, DominatingPair
from deniable.privacy.accountants.sampling import (
    gaussian_divergence,
    replaced_gaussian_law,
    replaced_laplace_law,
    sampled_law,
    unmixed,
)
from deniable.privacy.exact import Number, decimal, high_precision, probability, rounded_up, whole
from deniable.privacy.losses.base import Concentrated, Loss, check_loss
from deniable.privacy.losses.gaussian import GaussianLoss
from deniable.privacy.losses.generic import ApproxLoss, PureLoss
from deniable.privacy.losses.laplace import LaplaceLoss
from deniable.privacy.parameters import Parameter, parameter, parameters
from deniable.privacy.units import Relation, read_relation

_TINY = 1e-300
_RUNGS = 1 << 20
_FARTHEST = 1e4  # order times μ up to which divergences are integrated
_NEARLY_ALL = Fraction(1, 10**9)


@parameters
class SampledLoss(Loss):
    """`base`, run on a Poisson sample of rate `rate`. Made by `poisson_sampled`.

    `base` is under add/remove: what one unit in the sample does. `relation` is that of the data.
    """

    kind: ClassVar[str] = "sampled"
    rate: Parameter[Number, Fraction] = parameter(probability)
    base: Parameter[Loss, Loss] = parameter(check_loss)

    def __post_init__(self) -> None:
        if self.base.relation != Relation.ADD_REMOVE:
            raise RelationError(
                "a sample gains or loses a unit: state the loss of the release under 'add_remove', "
                "and the relation of the data with relation='replace'"
            )
        if self.base.kind in ("composed", "parallel", "sampled"):
            raise ParameterError("loss", self.base.kind, "sample single releases, then compose")
        if self.base.kind == "approx":
            raise ParameterError(
                "loss", "approx", "of (ε, δ) alone only add_remove is known: use poisson_sampled"
            )
        if self._replaced and not isinstance(self.base, GaussianLoss | LaplaceLoss):
            raise ParameterError(
                "relation", "replace", "is proved for Gaussian and Laplace noise; use add_remove"
            )

    @property
    def _replaced(self) -> bool:
        return self.relation == Relation.REPLACE

    @lazy
    def pure(self) -> Fraction | None:
        """ln(1 + q(e^ε - 1)); for a replacement ln of (1-q+q e^ε)/(1-q+q e^-ε); rounded up."""
        if self.base.pure is None:
            return None
        if not self._replaced:
            return amplified_epsilon(self.base.pure, self.rate)
        with localcontext(high_precision(self.base.pure * self.rate)):
            e, q = decimal(self.base.pure), decimal(self.rate)
            shrink = (-e).exp()
            # e + ln[((1-q)e^-ε + q) / (1-q+q e^-ε)]
            value = e + (((1 - q) * shrink + q) / (1 - q + q * shrink)).ln()
        return rounded_up(Fraction(value) * (1 + Fraction(1, 10**35)))

    @lazy
    def concentrated(self) -> Concentrated:
        """That of the base, or of any loss with this ε where that is less.

        Rényi divergences are quasi-convex: mixing both sides alike does not raise them.
        """
        base = self._alike.concentrated
        if self.pure is None:
            return base
        return Concentrated(min(base.rho, curve.rho(self.pure)), base.delta)

    @property
    def _alike(self) -> Loss:
        """The loss that a unit who is certainly sampled meets."""
        return self.base.group(2) if self._replaced else self.base

    @property
    def mu(self) -> float:
        """That of the base, for a mixture is no worse, or of any loss with this ε."""
        return min(self._alike.mu, super().mu)

    def profile(self, epsilon: Fraction | float) -> float:
        """The larger of the two curves."""
        if self.pure is not None and Fraction(epsilon) >= self.pure:
            return 0.0
        at = float(epsilon)
        if self._replaced:
            return _up(self._read_law(at))
        q, rest = float(self.rate), float(1 - self.rate)
        away = q * self.base.profile(float(unmixed(np.array(at), q, rest)) * (1 - 1e-15))
        rise = math.expm1(min(at, 700.0))
        w = q - rest * rise + 8 * ULP * (q + rise)  # never too small
        added = w * self.base.profile(math.log1p(rise / w) * (1 - 1e-15)) if w > 0 else 0.0
        return _up(max(away, added))

    def _read_law(self, at: float) -> float:
        law = self.law()
        values = 0.0
        if law.rest is not None:
            reading = law.rest.forward(np.array([at]))
            values += float(reading.values[0] + reading.error[0])
        if law.atoms is not None:
            atoms = law.atoms(_TINY)
            values += float(atoms.mass @ np.maximum(-np.expm1(at - atoms.x), 0.0))
        return values

    def law(self) -> DominatingPair:
        """The pair of the heading; that of the base where nearly everybody is sampled."""
        if self.rate > 1 - _NEARLY_ALL:
            return self._alike.law()
        rates = float(self.rate), float(1 - self.rate)
        if not self._replaced:
            return sampled_law(self.base.law(), *rates)
        if self.pure is None or self.base.pure is None:
            return replaced_gaussian_law(self.base.mu, *rates)
        return replaced_laplace_law(float(self.base.pure), float(self.pure), *rates)

    def floor(self) -> DominatingPair:
        """The same from a pair that the base does meet."""
        if self.rate > 1 - _NEARLY_ALL:
            return TELLS_NOTHING
        if self._replaced:
            return self.law()
        return sampled_law(self.base.floor(), float(self.rate), float(1 - self.rate))

    def divergence(self, order: float) -> float:
        """The larger of both ways, or a bound above it (by a part in 1e4, for Laplace noise).

        Never above the base's, mixed: e^((α-1)D) is jointly convex, so it is at most
        1 - q + q e^((α-1)D) of the base.
        """
        near = order if order == 1 else max(order, 1 + 1e-6)
        base = self._alike.divergence(near)
        if near == 1:
            mixed = float(self.rate) * base
        else:
            grown = (near - 1) * base
            q, rest = float(self.rate), float(1 - self.rate)
            small = math.log1p(q * math.expm1(grown)) if grown < 1 else math.inf
            mixed = min(small, grown + math.log(q + rest * math.exp(-grown))) / (near - 1)
        return min(mixed, self._of_pair(near))

    def _of_pair(self, order: float) -> float:
        if isinstance(self.base, GaussianLoss):
            if order * self.base.mu > _FARTHEST:
                return math.inf
            rates = float(self.rate), float(1 - self.rate)
            found = gaussian_divergence(self.base.mu, *rates, order, replaced=self._replaced)
            return found * (1 + 1e-9)
        if self.pure is None:
            return math.inf
        return max(self._of_ladder(law, order) for law in (self.law(), self.law().reversed()))

    def _of_ladder(self, law: DominatingPair, order: float) -> float:
        try:
            ladder = read(law, 0.02 * self.profile(0.0), _TINY, _RUNGS).above()
        except TooLongError:
            return math.inf
        if order == 1:
            return float((ladder.mass * ladder.places()).sum())
        with np.errstate(divide="ignore"):
            exponent = np.log(ladder.mass) + (order - 1) * ladder.places()
        top = float(exponent.max())
        return (top + math.log(float(np.exp(exponent - top).sum()))) / (order - 1)

    def group(self, size: int) -> Loss:
        """k units are k ε-DP; without an ε nothing is known."""
        if whole(size, "size") == 1:
            return self
        if self.pure is None:
            raise ParameterError("size", size, "groups in a sample are known for pure losses only")
        return PureLoss(bound=size * self.pure, relation=self.relation)

    def under(self, relation: Relation | str) -> Loss:
        """A replacement has a pair of its own."""
        wanted = read_relation(relation)
        if wanted == Relation.REPLACE and isinstance(self.base, GaussianLoss | LaplaceLoss):
            return replace(self, relation=wanted)
        return super().under(wanted)


def poisson_sampled(
    loss: Loss, *, rate: Number, relation: Relation | str = Relation.ADD_REMOVE
) -> Loss:
    """The loss of a release that sees each unit with probability `rate`, apart from all others.

    `loss` is that of the release itself, for one unit added or removed. Nobody may learn who was
    sampled, and the size of the sample must stay secret too. A loss of which only (ε, δ) is known
    becomes (ln(1 + q(e^ε - 1)), qδ) (Balle, Barthe & Gaboardi 2018, Thm 8).
    """
    q, wanted = probability(rate, "rate"), read_relation(relation)
    if isinstance(loss, ApproxLoss) and loss.relation == wanted == Relation.ADD_REMOVE:
        return ApproxLoss(bound=amplified_epsilon(loss.bound, q), slack=q * loss.slack)
    return SampledLoss(base=loss, rate=q, relation=wanted)


def amplified_epsilon(epsilon: Fraction, rate: Fraction) -> Fraction:
    """ln(1 + q(e^ε - 1)) (Balle, Barthe & Gaboardi 2018, Thm 8), rounded up."""
    with localcontext(high_precision(epsilon * rate)):
        e, q = decimal(epsilon), decimal(rate)
        value = e + (q + (1 - q) * (-e).exp()).ln()
    return rounded_up(Fraction(value) * (1 + Fraction(1, 10**35)))


def _up(value: float) -> float:
    return min(1.0, value * (1 + 1e-11))
