"""Composition: what several releases did together.

`compose` and `repeat` make a `Composed` loss, a multiset in canonical order, so that neither order
nor grouping nor counting matters. Its curves take the least of the sound routes: pure addition,
zCDP addition beside a sum of δ, GDP addition (squares of μ), pure parts added up beside the curve
of the others, and numerical composition of the worst pairs (`accountants.pld`).
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from deniable.errors import ParameterError, ParameterTypeError, RelationError
from deniable.lazy import lazy
from deniable.privacy.accountants import gdp, pld, pure, zcdp
from deniable.privacy.accountants.law import DominatingPair
from deniable.privacy.exact import Number, decimal_above, not_negative, sum_up, whole
from deniable.privacy.losses.base import (
    Concentrated,
    Loss,
    both_sides,
    epsilon_of_profile,
    law_of_profile,
    trade_off,
)
from deniable.privacy.losses.gaussian import GaussianLoss
from deniable.privacy.losses.generic import ApproxLoss
from deniable.privacy.parameters import parameters
from deniable.privacy.price import Price
from deniable.privacy.search import least
from deniable.privacy.units import Relation


@dataclass(frozen=True)
class Part:
    """The same loss, `count` times over."""

    loss: Loss
    count: int

    def __post_init__(self) -> None:
        checked_losses((self.loss,))
        whole(self.count, "count")


@parameters
class Composed(Loss):
    """Several losses on the same units. Made by `compose` and `repeat`."""

    kind: ClassVar[str] = "composed"
    parts: tuple[Part, ...]

    def __post_init__(self) -> None:
        given: object = self.parts
        if not isinstance(given, tuple) or not all(isinstance(each, Part) for each in given):
            raise ParameterTypeError("parts", type(given).__name__, "must be losses and counts")
        checked_losses(tuple(part.loss for part in self.parts))

    @lazy
    def pure(self) -> Fraction | None:
        """The sum, if every part is pure (Dwork et al. 2006)."""
        each = [(part.loss.pure, part.count) for part in self.parts]
        return _total(each)

    @lazy
    def concentrated(self) -> Concentrated:
        """The sums (Bun & Steinke 2016, Lemma 1.7 and section 8)."""
        each = [(part.loss.concentrated, part.count) for part in self.parts]
        return Concentrated(
            sum_up([c.rho * n for c, n in each]), sum_up([c.delta * n for c, n in each])
        )

    @lazy
    def mu(self) -> float:
        """The root of the sum of squares (Dong, Roth & Su 2022, Cor. 3.3)."""
        roots = [math.sqrt(part.count) * part.loss.mu for part in self.parts]
        return math.hypot(*roots) * (1 + 1e-14)

    @lazy
    def price(self) -> Price:
        """The sum of the prices: a ledger rounds every part up."""
        each = [(part.loss.price, part.count) for part in self.parts]
        return Price(
            _total([(price.epsilon, n) for price, n in each]),
            sum_up([price.rho * n for price, n in each]),
            sum_up([price.delta * n for price, n in each]),
        )

    def profile(self, epsilon: Fraction | float) -> float:
        """The least δ that any sound route proves, the numerical one among them."""
        closed = self.closed_profile(epsilon)
        if self._closed_is_exact:
            return closed
        return min(closed, pld.delta_at(self.laws(), float(epsilon), 1, pld.FINE))

    def closed_epsilon(self, *, delta: Number) -> float:
        """The least ε that a formula proves: quick, however large it is."""
        return epsilon_of_profile(self.closed_profile, self.pure, delta)

    def epsilon(self, *, delta: Number) -> float:
        """The least ε that any sound route proves, the numerical one among them."""
        allowed = float(not_negative(delta, "delta"))
        closed = self.closed_epsilon(delta=delta)
        if self._closed_is_exact or allowed == 0 or closed == 0:
            return closed
        target = allowed * (1 - 1e-9)
        for _ in range(4):
            found = pld.epsilon_at(self.laws(), target, 1, pld.FINE)
            if closed <= found:
                return closed
            found = decimal_above(Fraction(found))
            # `profile` is computed apart, and has to agree.
            if (reached := self.profile(found)) <= allowed:
                break
            target *= allowed / reached * (1 - 1e-6)
        else:
            found = least(lambda e: self.profile(e) <= allowed, found, closed, tolerance=1e-9)
        return found

    def _keeps(self, epsilon: Fraction, delta: float) -> bool:
        if self.closed_profile(epsilon) <= delta:
            return True
        if self._closed_is_exact:
            return False
        quick = pld.delta_bounds(self.laws(), self.floors(), float(epsilon))
        if quick.upper <= delta or quick.lower > delta:
            return quick.upper <= delta
        return self.profile(epsilon) <= delta or self.epsilon(delta=delta) <= epsilon

    def _keeps_mu(self, mu: Fraction) -> bool:
        if self._closed_is_exact:
            return 2 * self.concentrated.rho <= mu**2
        return super()._keeps_mu(mu)

    @lazy
    def _apart(self) -> float:
        """The sum of the total variations, which bounds δ at every ε."""
        return sum(part.count * part.loss.advantage for part in self.parts) * (1 + 1e-12)

    @lazy
    def _closed_is_exact(self) -> bool:
        return all(isinstance(part.loss, GaussianLoss) for part in self.parts)

    def laws(self) -> pld.Laws:
        """The worst pair of each part; none if there are too many different ones."""
        if len(self.parts) > pld.MOST_LAWS:
            return []
        return [(part.loss.law(), part.count) for part in self.parts]

    def floors(self) -> pld.Laws:
        """A pair that is met of each part; none if there are too many different ones."""
        if len(self.parts) > pld.MOST_LAWS:
            return []
        return [(part.loss.floor(), part.count) for part in self.parts]

    def law(self) -> DominatingPair:
        """The pair with the curve of the closed routes."""
        return law_of_profile(self.closed_profile)

    def floor(self) -> DominatingPair:
        """That of the first part alone."""
        return self.parts[0].loss.floor()

    def closed_profile(self, epsilon: Fraction | float) -> float:
        """The least δ that a formula proves: by ε, ρ or μ, or pure parts beside the rest."""
        rho, slack = self.concentrated
        routes = [1.0, zcdp.delta(float(rho), float(epsilon)) + float(slack)]
        if (bound := self._bound) is not None:
            routes.append(pure.delta(bound, min(1.0, float(slack)), epsilon))
        if self.mu < math.inf:
            routes.append(gdp.delta(self.mu, float(epsilon)))
        if self._pure_beside_rest is not None:
            routes.append(_beside(*self._pure_beside_rest, epsilon))
        return min(*routes, self._apart)

    def type_two(self, alpha: float) -> float:
        """The greatest lower bound that any sound route proves."""
        rho, slack = self.concentrated
        routes = [
            trade_off(lambda e: min(1.0, zcdp.delta(float(rho), float(e)) + float(slack)), alpha)
        ]
        if (bound := self._bound) is not None:
            routes.append(pure.tradeoff(float(bound), min(1.0, float(slack)), alpha))
        if self.mu < math.inf:
            routes.append(gdp.tradeoff(self.mu, alpha))
        if (split := self._pure_beside_rest) is not None:
            routes.append(trade_off(lambda e: _beside(*split, e), alpha))
        if not self._closed_is_exact:
            routes.append(pld.type_two(self._points, alpha))
        return max(routes)

    @lazy
    def _points(self) -> list[pld.Points]:
        return pld.points(self.laws())

    @lazy
    def _pure_beside_rest(self) -> tuple[Fraction, Loss] | None:
        """The sum of the pure parts beside the loss of the others, if there are both."""
        others = [part for part in self.parts if part.loss.pure is None]
        if not 0 < len(others) < len(self.parts):
            return None
        total = sum_up(
            [part.loss.pure * part.count for part in self.parts if part.loss.pure is not None]
        )
        return total, compose(*(repeat(part.loss, part.count) for part in others))

    @lazy
    def _bound(self) -> Fraction | None:
        """The sum of the ε of parts that are pure or (ε, δ), if all are."""
        return _total([(_bound(part.loss), part.count) for part in self.parts])

    def divergence(self, order: float) -> float:
        """The sum (Mironov 2017, Prop. 1)."""
        return sum(part.count * part.loss.divergence(order) for part in self.parts)

    def group(self, size: int) -> Loss:
        return compose(*(repeat(part.loss.group(size), part.count) for part in self.parts))

    def under(self, relation: Relation | str) -> Loss:
        return compose(*(repeat(part.loss.under(relation), part.count) for part in self.parts))


def compose(*losses: Loss) -> Loss:
    """The loss of releases on the same units, one after another, each allowed to see the earlier.

    Every loss must be under the same neighbour relation.
    """
    counts: Counter[Loss] = Counter()
    for loss in checked_losses(losses):
        for part in loss.parts if isinstance(loss, Composed) else (Part(loss, 1),):
            counts[part.loss] += part.count
    return _canonical(counts)


def repeat(loss: Loss, count: int) -> Loss:
    """The loss of `count` releases, each with this loss."""
    if not isinstance(loss, Loss):
        raise ParameterTypeError("loss", type(loss).__name__, "repeat takes a loss (m.loss)")
    times = whole(count, "count")
    parts = loss.parts if isinstance(loss, Composed) else (Part(loss, 1),)
    return _canonical(Counter({part.loss: part.count * times for part in parts}))


def checked_losses(losses: tuple[Loss, ...]) -> tuple[Loss, ...]:
    """Refuse what is not at least one loss."""
    if not losses:
        raise ParameterError("losses", losses, "give at least one loss")
    for loss in losses:
        if not isinstance(loss, Loss):
            raise ParameterTypeError(
                "losses", type(loss).__name__, "must be losses (m.loss); unpack a list with *"
            )
    return losses


def _canonical(counts: Counter[Loss]) -> Loss:
    relations = sorted({str(loss.relation) for loss in counts})
    if len(relations) > 1:
        raise RelationError(
            f"losses under {' and '.join(relations)} do not compose; "
            "bring them to one relation first with loss.under('replace')"
        )
    for count in counts.values():
        whole(count, "count")
    ordered = sorted(counts.items(), key=lambda item: (item[0].kind, repr(item[0])))
    parts = tuple(Part(loss, count) for loss, count in ordered)
    if len(parts) == 1 and parts[0].count == 1:
        return parts[0].loss
    return Composed(parts=parts, relation=parts[0].loss.relation)


def _beside(bound: Fraction, rest: Loss, epsilon: Fraction | float) -> float:
    """δ(ε) of randomised response with parameter `bound`, composed exactly with `rest`."""
    truth, at = 1 / (1 + math.exp(-float(bound))), Fraction(epsilon)
    profile = rest.closed_profile if isinstance(rest, Composed) else rest.profile
    above = both_sides(profile, at + bound)
    found = truth * both_sides(profile, at - bound) + (1 - truth) * above
    return min(1.0, found * (1 + 1e-12))


def _bound(loss: Loss) -> Fraction | None:
    return loss.bound if isinstance(loss, ApproxLoss) else loss.pure


def _total(each: list[tuple[Fraction | None, int]]) -> Fraction | None:
    known = [(value, count) for value, count in each if value is not None]
    return sum_up([v * n for v, n in known]) if len(known) == len(each) else None
