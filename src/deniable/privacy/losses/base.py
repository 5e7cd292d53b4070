"""The shape of a loss, and what every loss can say once it knows its own curve.

A loss is frozen data with the neighbour relation inside. It stands for a pair of laws that is the
worst a neighbour can meet (a *dominating pair*), symmetric in its two sides. A class states that
pair's δ(ε) for ε >= 0, its Rényi divergences, and how it grows for a group; the rest follows here.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import fields, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

import numpy as np

from deniable.closed import frozen
from deniable.errors import ParameterError, ParameterTypeError, RelationError
from deniable.privacy.accountants import pld, pure as pure_curve
from deniable.privacy.accountants.law import DominatingPair, Floats, Reading, Rest
from deniable.privacy.exact import (
    Number,
    decimal_above,
    exact,
    log_float,
    not_negative,
    positive,
    probability,
)
from deniable.privacy.guarantees import GDP, ZCDP, ApproxDP, Guarantee, PureDP
from deniable.privacy.parameters import Related, parameter, parameters
from deniable.privacy.price import Price, on_grid
from deniable.privacy.search import bracket_up, least, maximum
from deniable.privacy.units import Relation, read_relation

Profile = Callable[[Fraction | float], float]

_LEAST_RATIO = Fraction(1, 10**100)
_GREATEST_RATIO = Fraction(10**6)


class Concentrated(NamedTuple):
    """The release is δ-approximately ρ-zCDP (Bun & Steinke 2016, Def. 8.1); never rounded down."""

    rho: Fraction
    delta: Fraction


@parameters
class Loss(ABC):
    """What one release did to the privacy of one unit."""

    kind: ClassVar[str]
    relation: Related = parameter(read_relation, default=Relation.ADD_REMOVE)

    def __repr__(self) -> str:
        """Every field exactly: losses of which one is met are stored in the order of it."""
        shown = (f"{each.name}={getattr(self, each.name)!r}" for each in fields(self))
        return f"{type(self).__qualname__}({', '.join(shown)})"

    def __reduce__(self) -> tuple[Callable[..., Loss], tuple[type[Loss], dict[str, object]]]:
        """Copies and pickles carry the fields, not what was computed from them."""
        return _rebuilt, (
            type(self),
            {each.name: getattr(self, each.name) for each in fields(self)},
        )

    @property
    def pure(self) -> Fraction | None:
        """The least ε for which the release is ε-DP, never rounded down; None if there is none."""
        return None

    @property
    @abstractmethod
    def concentrated(self) -> Concentrated:
        """The least known ρ, beside a part of δ where there is no ρ without it."""

    @abstractmethod
    def profile(self, epsilon: Fraction | float) -> float:
        """δ(ε) for ε >= 0, never rounded down."""

    @abstractmethod
    def divergence(self, order: float) -> float:
        """The Rényi divergence of a finite order >= 1, as a plain function of floats."""

    @abstractmethod
    def group(self, size: int) -> Loss:
        """The loss of a group of `size` units together."""

    def law(self) -> DominatingPair:
        """A pair of laws at least as bad as any that two neighbours can meet."""
        return law_of_profile(self.profile)

    def floor(self) -> DominatingPair:
        """A pair of laws that two neighbours do meet."""
        return self.law()

    @property
    def mu(self) -> float:
        """The least known μ for which the release is μ-GDP; infinity if none is."""
        return math.inf if self.pure is None else pure_curve.mu(float(self.pure))

    @property
    def rho(self) -> float:
        """The least known ρ for which the release is ρ-zCDP; infinity if none is."""
        return math.inf if self.concentrated.delta else float(self.concentrated.rho)

    @property
    def price(self) -> Price:
        """What a ledger charges, on its grid, rounded up."""
        pure = None if self.pure is None else on_grid(self.pure)
        return Price(pure, on_grid(self.concentrated.rho), on_grid(self.concentrated.delta))

    def delta(self, *, epsilon: Number) -> float:
        """The least δ for which the release is (ε, δ)-DP."""
        return self.profile(not_negative(epsilon, "epsilon"))

    def epsilon(self, *, delta: Number) -> float:
        """The least ε for which the release is (ε, δ)-DP; infinity if there is none."""
        return epsilon_of_profile(self.profile, self.pure, delta)

    def bounds(
        self, *, delta: Number | None = None, epsilon: Number | None = None
    ) -> pld.EpsilonRange:
        """Certified bounds on ε(δ), or on δ(ε): (lower, upper).

        The upper one is `epsilon` or `delta`. The lower one is reached by two neighbours of some
        release with this loss.
        """
        if (delta is None) == (epsilon is None):
            raise ParameterError("delta", delta, "give either delta= or epsilon=")
        if delta is None:
            upper = self.delta(epsilon=epsilon or 0)
            lower = pld.delta_at(self.floors(), float(epsilon or 0), -1, pld.QUICK)
        else:
            upper = lower = self.epsilon(delta=delta)
            if float(delta) > 0:
                lower = pld.epsilon_at(self.floors(), float(delta), -1, pld.QUICK)
        return pld.EpsilonRange(min(lower, upper), upper)

    def laws(self) -> pld.Laws:
        """The worst pair of each release, and how often it occurs."""
        return [(self.law(), 1)]

    def floors(self) -> pld.Laws:
        """The same for pairs that are met."""
        return [(self.floor(), 1)]

    @property
    def advantage(self) -> float:
        """The most by which any test's true positives can exceed its false ones: δ(0)."""
        return self.profile(0.0)

    def bayes_risk(self, *, prior: Number) -> float:
        """The least error probability of a guess which of two neighbours was used.

        `prior` is the probability of one of them; guessing without looking errs min(p, 1-p).
        """
        p = probability(prior, "prior")
        odds = abs(log_float(p / (1 - p)))
        return float(min(p, 1 - p)) * (1 - self.profile(odds))

    def renyi(self, order: Number) -> float:
        """The Rényi divergence; order 1 is Kullback-Leibler, ∞ the max-divergence."""
        if isinstance(order, float | np.floating | Decimal) and order == math.inf:
            return math.inf if self.pure is None else decimal_above(self.pure)
        if exact(order, "order") < 1:
            raise ParameterError("order", order, "Rényi orders run from 1 to math.inf")
        found = self.divergence(float(order))
        return found if self.pure is None else min(found, float(self.pure))

    def tradeoff(self, alpha: Number) -> float:
        """The least type-II error of any test of level alpha between two neighbours."""
        level = float(not_negative(alpha, "alpha"))
        if level > 1:
            raise ParameterError("alpha", alpha, "a type-I error lies between 0 and 1")
        if level == 0 and self.pure is not None:
            return 1.0
        return min(self.type_two(level), 1 - level)

    def type_two(self, alpha: float) -> float:
        """The trade-off curve, as a plain function of floats."""
        return trade_off(self.profile, alpha)

    def satisfies(self, guarantee: Guarantee) -> bool:
        """Whether the release keeps the guarantee."""
        match guarantee:
            case PureDP():
                return self.pure is not None and self.pure <= guarantee.epsilon
            case ApproxDP():
                return self._keeps(guarantee.epsilon, float(guarantee.delta))
            case ZCDP():
                rho, delta = self.concentrated
                return delta == 0 and rho <= guarantee.rho
            case GDP():
                return self._keeps_mu(guarantee.mu)
        raise ParameterTypeError("guarantee", guarantee, "must be PureDP, ApproxDP, ZCDP or GDP")

    def _keeps(self, epsilon: Fraction, delta: float) -> bool:
        return self.profile(epsilon) <= delta

    def _keeps_mu(self, mu: Fraction) -> bool:
        return self.mu <= float(mu)

    def under(self, relation: Relation | str) -> Loss:
        """The same release under another relation: a replacement is two steps of add/remove."""
        wanted = read_relation(relation)
        if wanted == self.relation:
            return self
        if wanted == Relation.ADD_REMOVE:
            raise RelationError(
                "a loss under 'replace' says nothing about adding or removing a unit; "
                "state the release's sensitivity under 'add_remove' instead"
            )
        return replace(self.group(2), relation=wanted)


def check_loss(value: object, _argument: str = "loss") -> Loss:
    """Refuse what is no loss."""
    if not isinstance(value, Loss):
        raise ParameterTypeError("loss", type(value).__name__, "must be a loss (m.loss)")
    return value


def read_loss(value: object) -> Loss:
    """A loss of this library's own, no subclass, copied: what was stated is what is read."""
    made: Loss = frozen(check_loss(value), "loss")
    return made


def _rebuilt(kind: type[Loss], values: dict[str, Any]) -> Loss:
    return kind(**values)


def epsilon_of_profile(profile: Profile, pure: Fraction | None, delta: Number) -> float:
    """The least ε at which a profile is at most δ; infinity if there is none."""
    allowed = float(not_negative(delta, "delta"))
    if allowed == 0:
        return math.inf if pure is None else decimal_above(pure)
    probability(delta, "delta")
    if profile(0.0) <= allowed:
        return 0.0
    high = bracket_up(lambda e: profile(e) <= allowed, 1e-3)
    found = least(lambda e: profile(e) <= allowed, 0.0, high)
    return found if found == math.inf else decimal_above(Fraction(found))


def trade_off(profile: Profile, alpha: float) -> float:
    """max over real ε of 1 - δ(ε) - e^ε α (Dong, Roth & Su 2022, Prop. 2.12).

    Whatever the search finds is a lower bound of the curve, which errs on the safe side.
    """

    def line(epsilon: float) -> float:
        grown = math.exp(epsilon) * alpha
        return 1 - both_sides(profile, epsilon) - grown - 1e-15 * (1 + grown)

    return max(0.0, maximum(line, 700.0))


def both_sides(profile: Profile, epsilon: Fraction | float) -> float:
    """δ(ε) at negative ε too: the pair is symmetric, so 1 - δ(-ε) = e^-ε (1 - δ(ε))."""
    if epsilon >= 0:
        return profile(epsilon)
    at = float(epsilon)
    return -math.expm1(at) + math.exp(at) * profile(-epsilon)


def law_of_profile(profile: Profile) -> DominatingPair:
    """A symmetric pair told by its δ(ε) alone, which is at most 1e-11 of itself off."""

    def curve(epsilon: Floats) -> Reading:
        values = np.array([profile(float(each)) for each in epsilon])
        return Reading(values, 1e-11 * values)

    return DominatingPair(rest=Rest(curve, curve))


def ratio(value: Number, argument: str) -> Fraction:
    """Read a log ratio that losses are stated of."""
    number = positive(value, argument)
    check_ratio(argument, number)
    return number


def check_ratio(argument: str, ratio: Fraction) -> None:
    """Refuse losses beyond sense: curves are computed from 1e-100 to a million."""
    if not _LEAST_RATIO <= ratio <= _GREATEST_RATIO:
        raise ParameterError(
            argument,
            f"about 1e{len(str(int(ratio))) - 1}" if ratio > 1 else "below 1e-100",
            "losses are stated from 1e-100 to 1e6; more protects nobody, less is not noticed",
        )
