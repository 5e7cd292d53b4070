"""What is promised: `PureDP`, `ApproxDP`, `ZCDP`, `GDP`, with exact parameters.

`a <= b` reads "a implies b": whatever keeps a keeps b. Within one kind the order is exact. Across
kinds it is a sound conversion whose numbers are rounded up: it may say no to a true implication,
and never yes to a false one.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, cast, dataclass_transform

from deniable.closed import exactly, frozen
from deniable.privacy.accountants import gdp, pure, zcdp
from deniable.privacy.exact import Number, positive, probability, show
from deniable.privacy.parameters import Kind, Parameter
from deniable.privacy.search import maximum


@dataclass_transform()
def _promise(kind: Kind) -> Kind:
    """A frozen dataclass whose numbers may be given without their names."""
    return cast("Kind", dataclass(frozen=True)(kind))


class _Ordered:
    """Exact numbers, read by their names, in the partial order by implication."""

    short: ClassVar[str]

    def __post_init__(self) -> None:
        for name, number in list(vars(self).items()):
            read = probability if name == "delta" else positive
            object.__setattr__(self, name, read(number, name))

    def __str__(self) -> str:
        numbers = ", ".join(map(show, vars(self).values()))
        return f"({numbers})-{self.short}" if "," in numbers else f"{numbers}-{self.short}"

    def __le__(self, other: object) -> bool:
        return implies(self, other) if isinstance(other, _Ordered) else NotImplemented

    def __ge__(self, other: object) -> bool:
        return implies(other, self) if isinstance(other, _Ordered) else NotImplemented

    def __lt__(self, other: object) -> bool:
        return self <= other and self != other

    def __gt__(self, other: object) -> bool:
        return self >= other and self != other


@_promise
class PureDP(_Ordered):
    """ε-DP: the log ratio of the probabilities of any event on neighbours is at most ε.

    Noise has a finite range, beyond which a draw is an error: a δ below e^-1000 for each number,
    which nothing counts (`randomness/PROOF.md`, section 3).
    """

    short: ClassVar[str] = "DP"
    epsilon: Parameter[Number, Fraction]


@_promise
class ApproxDP(_Ordered):
    """(ε, δ)-DP: P(S) <= e^ε Q(S) + δ for every event S on neighbours."""

    short: ClassVar[str] = "DP"
    epsilon: Parameter[Number, Fraction]
    delta: Parameter[Number, Fraction]


@_promise
class ZCDP(_Ordered):
    """ρ-zCDP: the Rényi divergence of every order α > 1 is at most αρ (Bun & Steinke 2016)."""

    short: ClassVar[str] = "zCDP"
    rho: Parameter[Number, Fraction]


@_promise
class GDP(_Ordered):
    """μ-GDP: telling neighbours apart is no easier than N(0, 1) from N(μ, 1)."""

    short: ClassVar[str] = "GDP"
    mu: Parameter[Number, Fraction]


Guarantee = PureDP | ApproxDP | ZCDP | GDP

GUARANTEES = (PureDP, ApproxDP, ZCDP, GDP)


def read_guarantee(value: object, argument: str, wanted: str) -> Guarantee:
    """One of the four, no subclass, copied: nobody else can change it."""
    made: Guarantee = frozen(exactly(value, GUARANTEES, argument, wanted), argument)
    return made


def implies(stronger: object, weaker: object) -> bool:
    """Whether every mechanism that keeps `stronger` is known to keep `weaker`."""
    match stronger, weaker:
        case PureDP(), PureDP():
            return stronger.epsilon <= weaker.epsilon
        case PureDP(), ZCDP():
            return pure.rho(stronger.epsilon) <= weaker.rho
        case PureDP(), GDP():
            return pure.mu(float(stronger.epsilon)) <= float(weaker.mu)
        case ApproxDP(), ApproxDP() if stronger.epsilon <= weaker.epsilon:
            return stronger.delta <= weaker.delta
        case ZCDP(), ZCDP():
            return stronger.rho <= weaker.rho
        case GDP(), GDP():
            return stronger.mu <= weaker.mu
        case GDP(), ZCDP():
            return stronger.mu**2 / 2 <= weaker.rho
        case PureDP(), ApproxDP() if stronger.epsilon <= weaker.epsilon:
            return True
        case _, ApproxDP():
            return _delta(stronger, weaker.epsilon) <= float(weaker.delta)
    return False


def _delta(guarantee: object, epsilon: Fraction) -> float:
    """The δ that a guarantee proves at ε."""
    match guarantee:
        case PureDP():
            return pure.delta(guarantee.epsilon, 0.0, epsilon)
        case ApproxDP():
            return pure.delta(guarantee.epsilon, float(guarantee.delta), epsilon)
        case ZCDP():
            return _zcdp_delta(float(guarantee.rho), epsilon)
        case GDP():
            return gdp.delta(float(guarantee.mu), float(epsilon))
    return 1.0


def _zcdp_delta(rho: float, epsilon: Fraction) -> float:
    """The least δ at ε that follows from zCDP, through any larger ε' and its δ'."""

    def through(larger: float) -> float:
        beyond = epsilon + Fraction(abs(larger))
        return -pure.delta(beyond, zcdp.delta(rho, float(beyond)), epsilon)

    return min(zcdp.delta(rho, float(epsilon)), -maximum(through, 20.0))
