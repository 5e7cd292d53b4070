r"""Filters: may a session in which everything is chosen adaptively go on?

The analyst sees answers and then chooses the next question *and its price*. Each rule below is
sound for that (tag `adaptive`), keeps running totals of integers on a grid of 1e-18, and takes the
same time for every release. Nothing else may gate: numerical curves are for reports.

* `PureDP(ε*)`: every release is pure and Σε <= ε*. Likelihood ratios multiply.
* `ZCDP(ρ*)`: Σρ <= ρ*, no part of δ (Feldman & Zrnic 2021, Thm 3.1; Whitehouse et al. 2023, Thm 1).
* `GDP(μ*)`: Σμ² <= μ*² over laws with a proved μ (Smith & Thakurta 2022; Koskela et al. 2023).
* `ApproxDP(ε*, δ*)`: δ* = δ_c + δ_k, both fixed when the budget is made, and ρ* the largest ρ whose
  conversion at δ_c gives ε*. A release passes if, counting it, **either** every release so far is
  pure and Σε <= ε*, **or** Σρ <= ρ* and Σδ <= δ_k.

*Holds.* A question in parts is charged for the first and holds the price of the others. The rules
are asked with charges and holds together. The entry that stores the answer of a part turns the hold
into the charge of the next part and a hold for those after it, both of which it covers, or lets it
go, as that answer decides: before it, nothing has read for the next part. So charges never fall,
charges and holds together grow by admissions alone, and from one admission to the next charges stay
below what that admission counted. The first three rules bound charges; nothing else is needed.

Proof of the last rule. P and Q are the laws of the transcript (requests, refusals, answers, in
order of charging) on neighbours, the analyst's coins fixed. Prices (e_i, r_i, d_i), refusals, holds
and what becomes of them are functions of the prefix; given it, answer i is d_i-approximately
r_i-zCDP and e_i-DP (e_i = ∞ if it is not pure). Sums are of charges, without holds, and never fall.

1. Let A be the transcripts with final Σe <= ε*. Off A, look at the last release that was admitted.
   What was charged since was held then. So charges and holds together were above ε* then, and
   passed the second test; Σr <= ρ* and Σd <= δ_k at the end, and at every prefix.
2. On A, dP/dQ is the product of the ratios of the answers, at most e^(Σe) <= e^ε*. So
   P(S ∩ A) <= e^ε* Q(S ∩ A) for every event S.
3. Let P', Q' be the same interaction through the same gate, stopped when charges would pass ρ* or
   δ_k. Off A they never do, by 1. So P = P' and Q = Q' off A.
4. Write each answer's law as (1-d_i) p_i + d_i p̃_i, and q_i likewise, with Rényi divergences of p_i
   from q_i at most a r_i for all orders a > 1. Under the first parts the product of
   (p_i/q_i)^a e^(-a(a-1) r_i) is a supermartingale; ρ* is constant, so the divergence of the whole
   is at most a ρ* for every a, and by the conversion P'(S) - e^ε* Q'(S) <= δ_c there.
5. Some second part is drawn with probability at most E Σd_i <= δ_k. With 4,
   P'(S \ A) <= e^ε* Q'(S \ A) + δ_c + δ_k.
6. Add 2 and 5. ∎ (Filters joined by "or" cost the sum of their δ; the pure branch has none.)

Without the first branch a gate in ρ alone would be worse than plain addition for pure releases.
Keeping tallies of pure and of other releases apart would break step 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

from deniable.closed import exactly, frozen
from deniable.errors import ParameterError, RelationError
from deniable.lazy import lazy
from deniable.privacy.accountants import zcdp
from deniable.privacy.composition import Composed
from deniable.privacy.exact import Number, exact, not_negative, show
from deniable.privacy.guarantees import (
    GDP,
    GUARANTEES,
    ZCDP,
    ApproxDP,
    Guarantee,
    PureDP,
    read_guarantee,
)
from deniable.privacy.losses.base import Loss, read_loss
from deniable.privacy.losses.gaussian import GaussianLoss
from deniable.privacy.losses.generic import PureLoss
from deniable.privacy.price import GRID, Price, on_grid
from deniable.privacy.search import greatest
from deniable.privacy.units import Relation, read_relation

_UNITS = GRID.denominator
_FINE = 10**15
_MOST_EPSILON = 10**9
_LEVELS = 16
_LEAST, _MOST = Fraction(1, 10**200), Fraction(10**9)


@dataclass(frozen=True)
class Totals:
    """What was spent, in units of 1e-18. None: some release has no such number."""

    epsilon: int | None = 0
    rho: int = 0
    delta: int = 0
    mu_squared: int | None = 0

    def __add__(self, other: Totals) -> Totals:
        return Totals(
            _both(self.epsilon, other.epsilon),
            self.rho + other.rho,
            self.delta + other.delta,
            _both(self.mu_squared, other.mu_squared),
        )

    def times(self, count: int) -> Totals:
        return Totals(
            None if self.epsilon is None else count * self.epsilon,
            count * self.rho,
            count * self.delta,
            None if self.mu_squared is None else count * self.mu_squared,
        )

    def covers(self, other: Totals) -> bool:
        """Whether no number of `other` is larger, of those that this has."""
        return (
            (self.epsilon is None or _at_most(other.epsilon, self.epsilon))
            and other.rho <= self.rho
            and other.delta <= self.delta
            and (self.mu_squared is None or _at_most(other.mu_squared, self.mu_squared))
        )


def charge(loss: Loss) -> Totals:
    """What a release adds to the totals; every number of every part is rounded up."""
    return _charge(read_loss(loss))


@lru_cache(maxsize=4096)
def _charge(loss: Loss) -> Totals:
    if isinstance(loss, Composed):
        total = Totals()
        for part in loss.parts:
            total = total + _charge(part.loss).times(part.count)
        return total
    price = loss.price
    return Totals(
        None if price.epsilon is None else int(price.epsilon * _UNITS),
        int(price.rho * _UNITS),
        int(price.delta * _UNITS),
        None if math.isinf(loss.mu) else int(on_grid(_mu_squared(loss)) * _UNITS),
    )


@dataclass(frozen=True, init=False)
class Budget:
    """A total for a population, with the rule that keeps it. `adaptive`: see the proof above.

    `keys_delta` is the part of δ for selecting keys (δ_k), half of it unless said otherwise.
    """

    guarantee: Guarantee
    relation: Relation
    keys_delta: Fraction

    def __init__(
        self,
        guarantee: Guarantee,
        *,
        relation: Relation | str = Relation.ADD_REMOVE,
        keys_delta: Number | None = None,
    ) -> None:
        guarantee = read_guarantee(guarantee, "budget", "must be PureDP, ApproxDP, ZCDP or GDP")
        if any(not _LEAST <= number <= _MOST for number in vars(guarantee).values()):
            raise ParameterError("budget", str(guarantee), "numbers of a budget: 1e-200 to 1e9")
        delta = guarantee.delta if isinstance(guarantee, ApproxDP) else Fraction(0)
        keys = delta / 2 if keys_delta is None else not_negative(keys_delta, "keys_delta")
        if keys and min(keys, delta - keys) < _LEAST / 2:  # as float, neither part is 0
            raise ParameterError(
                "keys_delta", keys_delta, "must lie below the δ of an ApproxDP budget"
            )
        object.__setattr__(self, "guarantee", guarantee)
        object.__setattr__(self, "relation", read_relation(relation))
        object.__setattr__(self, "keys_delta", keys)

    adaptive: ClassVar[bool] = True

    def admits(self, totals: Totals) -> bool:
        """Whether so much may be spent in all."""
        limit = self._limit
        match self.guarantee:
            case PureDP():
                return _at_most(totals.epsilon, limit.epsilon)
            case ZCDP():
                return totals.rho <= limit.rho and totals.delta == 0
            case GDP():
                return _at_most(totals.mu_squared, limit.mu_squared)
            case ApproxDP():
                return _at_most(totals.epsilon, limit.epsilon) or (
                    totals.rho <= limit.rho and totals.delta <= limit.delta
                )

    def charge(self, loss: Loss) -> Totals:
        """What a release would add; refused if its neighbours are not those of the budget."""
        loss = read_loss(loss)
        if loss.relation != self.relation:
            raise RelationError(
                f"the budget protects under '{self.relation}' and the release is stated under "
                f"'{loss.relation}'; state the release's loss under '{self.relation}'"
            )
        return _charge(loss)

    @lazy
    def _limit(self) -> Totals:
        """The most that may be spent, rounded down; numbers that do not matter are 0."""
        match self.guarantee:
            case PureDP():
                return Totals(epsilon=_down(self.guarantee.epsilon))
            case ZCDP():
                return Totals(rho=_down(self.guarantee.rho))
            case GDP():
                return Totals(mu_squared=_down(self.guarantee.mu**2))
            case ApproxDP():
                return Totals(
                    _down(self.guarantee.epsilon), _down(self.largest_rho), _down(self.keys_delta)
                )

    @property
    def conversion_delta(self) -> Fraction:
        """δ_c: the part of δ at which ρ is converted."""
        total = self.guarantee.delta if isinstance(self.guarantee, ApproxDP) else Fraction(0)
        return total - self.keys_delta

    @lazy
    def largest_rho(self) -> Fraction:
        """ρ*: the largest ρ whose conversion at δ_c gives ε*, a hair less."""
        if not isinstance(self.guarantee, ApproxDP):
            return Fraction(0)
        left = float(self.conversion_delta) * (1 - 1e-15)
        return Fraction(zcdp.largest_rho(float(self.guarantee.epsilon) * (1 - 1e-15), left))

    def rho_for(self, epsilon: Fraction) -> Fraction:
        """The ρ of an `epsilon=`: that which converts to (ε, δ_c), rounded down."""
        return rho_at(epsilon, self.conversion_delta)

    def epsilon_for(self, rho: Fraction) -> float:
        """The largest `epsilon=` that costs at most this ρ, rounded down."""
        if rho <= 0:
            return 0.0
        delta = float(self.conversion_delta)
        found = zcdp.epsilon(float(rho), delta)
        while found > 0 and _rho_at(found, delta) > rho:
            found *= 1 - 1e-9
        return found if found > 0 and _rho_at(found, delta) > 0 else 0.0

    def asked(self, price: Price) -> float | None:
        """The `epsilon=` that a person would say for a price, to six digits; None where rho= is."""
        if price.epsilon is not None and not isinstance(self.guarantee, ZCDP | GDP):
            return float(price.epsilon)
        if not isinstance(self.guarantee, ApproxDP):
            return None
        found = zcdp.epsilon(float(price.rho), float(self.conversion_delta))
        return float(f"{found:.6g}")

    def named(self, price: Price) -> Price:
        """A price with the `epsilon=` that a person would say for it."""
        return replace(price, asked=self.asked(price))

    def remaining(self, totals: Totals) -> dict[str, Fraction]:
        """What is left, by name: only what this budget counts."""
        limit = self._limit
        left: dict[str, Fraction] = {}
        if isinstance(self.guarantee, PureDP | ApproxDP) and totals.epsilon is not None:
            left["epsilon"] = _fraction((limit.epsilon or 0) - totals.epsilon)
        if isinstance(self.guarantee, ZCDP | ApproxDP):
            left["rho"] = _fraction(limit.rho - totals.rho)
        if isinstance(self.guarantee, ApproxDP):
            left["delta"] = _fraction(limit.delta - totals.delta)
        if isinstance(self.guarantee, GDP) and totals.mu_squared is not None:
            left["mu_squared"] = _fraction((limit.mu_squared or 0) - totals.mu_squared)
        return {name: max(value, Fraction(0)) for name, value in left.items()}

    def delta_left(self, totals: Totals) -> int:
        """How much of δ_k is left for choosing keys, in units of the grid."""
        return max(0, self._limit.delta - totals.delta)

    def largest_epsilon(self, totals: Totals) -> float:
        """The largest `epsilon=` of one more question; it is admitted, its decimal as it stands.

        Under a budget without one, the largest ε of one more pure release.
        """
        if isinstance(self.guarantee, ApproxDP):
            return self.epsilon_for(self.remaining(totals)["rho"])
        found = min(self._about(totals), 1e6)  # losses are stated up to there
        for steps in range(60):
            if found < 1e-17:
                break
            if self.admits(totals + charge(PureLoss(bound=exact(found, "epsilon")))):
                return found
            less = 1 - 1e-12 if steps > 3 else 1.0  # what is left may be a hair above a decimal
            found = math.nextafter(found * less, 0.0)
        return 0.0

    def _about(self, totals: Totals) -> float:
        """Nearly that ε, from what is left."""
        left = {name: float(value) for name, value in self.remaining(totals).items()}
        match self.guarantee:
            case PureDP():
                return left.get("epsilon", 0.0)
            case GDP():
                # A pure ε has μ = 2 Φ^-1(e^ε/(1+e^ε)) <= ε sqrt(π/2).
                return math.sqrt(left.get("mu_squared", 0.0) * 2 / math.pi)
        if left["rho"] <= 1e-17:
            return 0.0
        high = 2 * math.sqrt(left["rho"]) + 2 * left["rho"] + 1  # ρ = ε tanh(ε/2)
        return greatest(lambda e: e * math.tanh(e / 2) <= left["rho"], 0.0, high)

    def spent(self, totals: Totals) -> float:
        """An ε for what was released so far, whenever one looks, at no more than twice the δ.

        Σε while every release is pure. Otherwise the ε of the least of sixteen levels of ρ that
        holds Σρ: each level is a filter of its own with a sixteenth of δ_c, all sixteen together
        cost δ_c, and the budget's own filter costs the same again. Infinity for other budgets.
        """
        pure = math.inf if totals.epsilon is None else float(_fraction(totals.epsilon))
        if not isinstance(self.guarantee, ApproxDP):
            return pure
        whole = float(self.guarantee.epsilon) if self.admits(totals) else math.inf
        return min(pure, whole, self._by_level(totals))

    def _by_level(self, totals: Totals) -> float:
        guarantee = self.guarantee
        if not isinstance(guarantee, ApproxDP) or totals.delta > self._limit.delta:
            return math.inf
        share = float(self.conversion_delta) / _LEVELS
        for level in range(_LEVELS):
            rho = float(self.largest_rho) / 2 ** (_LEVELS - 1 - level)
            if totals.rho <= _down(Fraction(rho)):
                return zcdp.epsilon(rho, share)
        return math.inf

    def __str__(self) -> str:
        extra = f", {show(self.keys_delta)} of δ for keys" if self.keys_delta else ""
        return f"{self.guarantee} under {self.relation}{extra}"


def rho_at(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The ρ that converts to (ε, δ), rounded down."""
    if epsilon > _MOST_EPSILON:
        raise ParameterError("epsilon", float(epsilon), f"must be {_MOST_EPSILON:,} or less")
    found = _rho_at(float(epsilon), float(delta))
    if found <= 0:
        raise ParameterError("epsilon", float(epsilon), "is too small to buy any answer")
    return found


def _rho_at(epsilon: float, delta: float) -> Fraction:
    return Fraction(math.floor(zcdp.largest_rho(epsilon, delta) * (1 - 1e-12) * _FINE), _FINE)


def read_budget(value: object, wanted: str) -> Budget:
    """A budget or a guarantee, no subclass, copied: nobody else can change it."""
    if type(value) in GUARANTEES:
        return Budget(read_guarantee(value, "budget", wanted))
    made: Budget = frozen(exactly(value, (Budget,), "budget", wanted), "budget")
    return made


def _mu_squared(loss: Loss) -> Fraction:
    """μ², exact for Gaussian noise, else a hair more."""
    if isinstance(loss, GaussianLoss):
        return 2 * loss.concentrated.rho
    return Fraction(loss.mu) ** 2 * (1 + Fraction(1, 10**12))


def _both(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other


def _at_most(value: int | None, limit: int | None) -> bool:
    return value is not None and (limit is None or value <= limit)


def _down(value: Fraction) -> int:
    return math.floor(value * _UNITS)


def _fraction(units: int) -> Fraction:
    return Fraction(units, _UNITS)
