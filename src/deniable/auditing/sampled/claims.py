"""What is claimed, as the region in which the probabilities of every event must lie.

Every claim says: P(E) <= allowed(Q(E)) for all events E and both orders of two neighbours, where
`allowed` never falls. Bounds p₋ <= P(E) and Q(E) <= q₊ with p₋ > allowed(q₊) refute it. `size` puts
a pair of probabilities into the claim's own parameter, so that size(p₋, q₊) is a lower bound on it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from deniable.auditing.exact.curve import PLACES, ChannelCurve, LossCurve, renyi_size
from deniable.errors import ParameterTypeError
from deniable.lazy import lazy
from deniable.privacy.channel import Channel
from deniable.privacy.guarantees import GDP, ZCDP, ApproxDP, PureDP
from deniable.privacy.losses.base import Loss

Floats = npt.NDArray[np.float64]

_UP = 1 + 1e-12  # what is allowed is rounded up
_LEAST = 1e-300
_HALVINGS = 50


class Claim(Protocol):
    """A region of pairs (Q(E), P(E)), and the name of its parameter."""

    @property
    def text(self) -> str:
        """The claim, to be read."""

    @property
    def sign(self) -> str:
        """The parameter that is bounded from below."""

    def allowed(self, less: Floats) -> Floats:
        """The most that P(E) may be, for these Q(E); never rounded down."""

    def chosen_by(self, less: Floats) -> Floats:
        """The same, quickly and about right: for choosing events, never for judging."""

    def size(self, more: Floats, less: Floats) -> Floats:
        """The least parameter that allows P(E) = more where Q(E) = less; below 0 if more < less."""

    def scale(self, more: Floats, less: Floats) -> Floats:
        """Any measure of how far P(E) lies above Q(E), in which events compare well."""


@dataclass(frozen=True)
class PureClaim:
    """P(E) <= e^ε Q(E)."""

    epsilon: float
    text: str
    sign = "ε"

    def allowed(self, less: Floats) -> Floats:
        """e^ε Q(E)."""
        return np.minimum(1.0, math.exp(min(self.epsilon, 700.0)) * less * _UP)

    chosen_by = allowed

    def size(self, more: Floats, less: Floats) -> Floats:
        """ln P(E)/Q(E)."""
        return log_ratio(more, less)

    scale = size


@dataclass(frozen=True)
class ApproxClaim:
    """P(E) <= e^ε Q(E) + δ."""

    epsilon: float
    delta: float
    text: str
    sign = "ε"

    def allowed(self, less: Floats) -> Floats:
        """e^ε Q(E) + δ."""
        grown = math.exp(min(self.epsilon, 700.0)) * less
        return np.minimum(1.0, (grown + self.delta) * _UP)

    chosen_by = allowed

    def size(self, more: Floats, less: Floats) -> Floats:
        """ln (P(E) - δ)/Q(E), at this δ."""
        return log_ratio(more - self.delta, less)

    scale = size


@dataclass(frozen=True)
class GaussianClaim:
    """Φ⁻¹(P(E)) <= Φ⁻¹(Q(E)) + μ (Dong, Roth & Su 2022, Def. 2.6)."""

    mu: float
    text: str
    sign = "μ"

    def allowed(self, less: Floats) -> Floats:
        """Φ(Φ⁻¹(Q(E)) + μ)."""
        found: Floats = np.minimum(1.0, ndtr(ndtri(less) + self.mu) * _UP)
        return found

    chosen_by = allowed

    def size(self, more: Floats, less: Floats) -> Floats:
        """Φ⁻¹(P(E)) - Φ⁻¹(Q(E))."""
        return apart(more, less)

    scale = size


@dataclass(frozen=True)
class ConcentratedClaim:
    """The Rényi divergence of order α between (P(E), 1-P(E)) and (Q(E), 1-Q(E)) is at most αρ.

    That of the outputs is no smaller, by post-processing (Bun & Steinke 2016, Lemma 1.8).
    """

    rho: float
    text: str
    sign = "ρ"

    def allowed(self, less: Floats) -> Floats:
        """The largest P(E), by halving: divergences grow with P(E) above Q(E)."""
        q = np.asarray(less, dtype=np.float64)
        low, high = q.copy(), np.ones_like(q)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            fits = self.size(middle, q) <= self.rho
            low, high = np.where(fits, middle, low), np.where(fits, high, middle)
        return np.minimum(1.0, high * _UP)

    @lazy
    def _table(self) -> Floats:
        return self.allowed(PLACES)

    def chosen_by(self, less: Floats) -> Floats:
        """From a table."""
        return np.interp(less, PLACES, self._table)

    def size(self, more: Floats, less: Floats) -> Floats:
        """The largest divergence over its order, of those tried."""
        return renyi_size(more, less)

    scale = size


@dataclass(frozen=True)
class CurveClaim:
    """P(E) <= 1 - f(Q(E)) for a trade-off curve f, of a loss or of a channel."""

    curve: LossCurve | ChannelCurve
    text: str
    pure: bool

    @property
    def sign(self) -> str:
        """ε where the curve has one, else the μ of the Gaussian curve through the same point."""
        return "ε" if self.pure else "μ"

    def allowed(self, less: Floats) -> Floats:
        """1 - f(Q(E))."""
        return np.minimum(1.0, self.curve.most(less) * _UP)

    def chosen_by(self, less: Floats) -> Floats:
        """From a table of the curve."""
        return self.curve.about(less)

    def size(self, more: Floats, less: Floats) -> Floats:
        """ln P(E)/Q(E), or Φ⁻¹(P(E)) - Φ⁻¹(Q(E))."""
        return log_ratio(more, less) if self.pure else apart(more, less)

    def scale(self, more: Floats, less: Floats) -> Floats:
        """Φ⁻¹(P(E)) - Φ⁻¹(Q(E)): ratios are near one wherever Q(E) is, and say little."""
        return apart(more, less)


def log_ratio(more: Floats, less: Floats) -> Floats:
    """ln of a ratio of probabilities."""
    found: Floats = np.log(np.maximum(more, _LEAST)) - np.log(np.maximum(less, _LEAST))
    return found


def apart(more: Floats, less: Floats) -> Floats:
    """How far two normal quantiles lie apart."""
    high, low = (ndtri(np.clip(each, _LEAST, 1 - 2**-53)) for each in (more, less))
    found: Floats = high - low
    return found


def read_claim(claim: Any) -> Claim:
    """The region of a guarantee, a loss or a channel."""
    match claim:
        case PureDP():
            return PureClaim(float(claim.epsilon), str(claim))
        case ApproxDP():
            return ApproxClaim(float(claim.epsilon), float(claim.delta), str(claim))
        case GDP():
            return GaussianClaim(float(claim.mu), str(claim))
        case ZCDP():
            return ConcentratedClaim(float(claim.rho), str(claim))
        case Loss():
            named = f"the curve of {type(claim).__name__}"
            return CurveClaim(LossCurve(claim), named, claim.pure is not None)
        case Channel():
            curve = ChannelCurve(claim)
            named = f"a channel of {len(claim.inputs)} inputs and {len(claim.outputs)} outputs"
            return CurveClaim(curve, named, math.isfinite(claim.epsilon()))
    raise ParameterTypeError(
        "claim",
        type(claim).__name__,
        "must be PureDP, ApproxDP, GDP, ZCDP, a loss such as mechanism.loss, or a Channel",
    )


def refuted(claim: Claim, more: float, less: float) -> bool:
    """Whether P(E) >= more and Q(E) <= less contradict the claim."""
    return more > float(claim.allowed(np.array([less]))[0])


def lower_bound(claim: Claim, more: float, less: float) -> float:
    """The parameter that such probabilities need at least; 0 at least."""
    return max(0.0, float(claim.size(np.array([more]), np.array([less]))[0]))
