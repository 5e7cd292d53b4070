"""The shape of a loss, and what every loss can say once it knows its own curve.

A loss is frozen data with the neighbour relation inside. It stands for a pair of laws that is the
worst a neighbour can meet (a *dominating pair*), symmetric in its two sides. A class states that
pair's δ(ε) for ε >= 0, its Rényi divergences, and how it grows for a group; the rest follows here.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, NamedTuple

from deniable.errors import ParameterError, ParameterTypeError, RelationError
from deniable.privacy.accountants import pure as pure_curve
from deniable.privacy.exact import Number, exact, not_negative, probability
from deniable.privacy.guarantees import GDP, ZCDP, ApproxDP, Guarantee, PureDP
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


@dataclass(frozen=True, kw_only=True)
class Loss(ABC):
    """What one release did to the privacy of one unit."""

    kind: ClassVar[str]
    relation: Relation = Relation.ADD_REMOVE

    def __post_init__(self) -> None:
        object.__setattr__(self, "relation", read_relation(self.relation))

    @property
    @abstractmethod
    def pure(self) -> Fraction | None:
        """The least ε for which the release is ε-DP, never rounded down; None if there is none."""

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
        allowed = float(not_negative(delta, "delta"))
        if allowed == 0:
            return math.inf if self.pure is None else float(self.pure)
        probability(delta, "delta")
        if self.profile(0.0) <= allowed:
            return 0.0
        high = bracket_up(lambda e: self.profile(e) <= allowed, 1e-3)
        return least(lambda e: self.profile(e) <= allowed, 0.0, high)

    def renyi(self, order: Number) -> float:
        """The Rényi divergence; order 1 is Kullback-Leibler, ∞ the max-divergence."""
        if isinstance(order, float) and order == math.inf:
            return math.inf if self.pure is None else float(self.pure)
        if exact(order, "order") < 1:
            raise ParameterError("order", order, "Rényi orders run from 1 to math.inf")
        found = self.divergence(float(order))
        return found if self.pure is None else min(found, float(self.pure))

    def tradeoff(self, alpha: Number) -> float:
        """The least type-II error of any test of level alpha between two neighbours."""
        level = float(not_negative(alpha, "alpha"))
        if level > 1:
            raise ParameterError("alpha", alpha, "a type-I error lies between 0 and 1")
        return 1.0 if level == 0 and self.pure is not None else self.type_two(level)

    def type_two(self, alpha: float) -> float:
        """The trade-off curve, as a plain function of floats."""
        return trade_off(self.profile, alpha)

    def satisfies(self, guarantee: Guarantee) -> bool:
        """Whether the release keeps the guarantee."""
        match guarantee:
            case PureDP():
                return self.pure is not None and self.pure <= guarantee.epsilon
            case ApproxDP():
                return self.delta(epsilon=guarantee.epsilon) <= float(guarantee.delta)
            case ZCDP():
                rho, delta = self.concentrated
                return delta == 0 and rho <= guarantee.rho
            case GDP():
                return self.mu <= float(guarantee.mu)
        raise ParameterTypeError("guarantee", guarantee, "must be PureDP, ApproxDP, ZCDP or GDP")

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


def trade_off(profile: Profile, alpha: float) -> float:
    """max over real ε of 1 - δ(ε) - e^ε α (Dong, Roth & Su 2022, Prop. 2.12).

    Whatever the search finds is a lower bound of the curve, which errs on the safe side.
    """

    def line(epsilon: float) -> float:
        return 1 - both_sides(profile, epsilon) - math.exp(epsilon) * alpha

    return max(0.0, maximum(line, 700.0))


def both_sides(profile: Profile, epsilon: Fraction | float) -> float:
    """δ(ε) at negative ε too: the pair is symmetric, so 1 - δ(-ε) = e^-ε (1 - δ(ε))."""
    if epsilon >= 0:
        return profile(epsilon)
    return 1 - math.exp(float(epsilon)) * (1 - profile(-epsilon))


def check_ratio(argument: str, ratio: Fraction) -> None:
    """Refuse losses beyond sense: curves are computed from 1e-100 to a million."""
    if not _LEAST_RATIO <= ratio <= _GREATEST_RATIO:
        raise ParameterError(
            argument,
            f"about 1e{len(str(int(ratio))) - 1}" if ratio > 1 else "below 1e-100",
            "losses are stated from 1e-100 to 1e6; more protects nobody, less is not noticed",
        )
