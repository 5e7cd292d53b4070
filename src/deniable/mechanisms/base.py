"""What every mechanism offers."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, TypeVar, runtime_checkable

from deniable.errors import ParameterError, ParameterTypeError
from deniable.held import frameless
from deniable.lazy import lazy
from deniable.mechanisms.gaps import Gap
from deniable.mechanisms.laws import Norm
from deniable.privacy.amount import Amount, Kind
from deniable.privacy.exact import Number, positive, probability
from deniable.privacy.losses.base import Loss
from deniable.privacy.parameters import Parameter, Related, optional, parameter, parameters
from deniable.privacy.units import Relation, read_relation

Result_co = TypeVar("Result_co", covariant=True)


class Mechanism(Protocol[Result_co]):
    """Frozen public parameters, a loss that follows from them, and a release of private data.

    `tests/contracts/test_catalogue.py` is the battery that each implementation passes.
    """

    @property
    def loss(self) -> Loss:
        """What one release costs."""

    def release(self, value: Any) -> Result_co:
        """Release one private value. Unledgered: the caller keeps the budget."""


Pairs = list[tuple[Any, Any]]
"""Private values of neighbours."""

Plain = Callable[[object], Hashable]
"""Any value as data that can be compared, whatever it is made of."""


@runtime_checkable
class Compared(Protocol):
    """A mechanism that knows how far its private values lie apart: replay and audit ask it."""

    def gap(self, x: Any, y: Any, /) -> Gap:
        """How far two values lie apart, beside what is charged for."""

    def neighbours(self) -> Pairs | None:
        """Values as far apart as is charged for; None where only the caller knows any."""


@runtime_checkable
class Viewed(Protocol):
    """A mechanism whose values are not compared as they are, but after code of the caller's."""

    def view(self, value: Any, plain: Plain, /) -> Any:
        """What `gap` compares."""


@runtime_checkable
class Coded(Protocol):
    """A mechanism that holds code of the caller's."""

    def without_code(self) -> object:
        """The same parameters without that code: it survives pickling."""


@runtime_checkable
class Labelled(Protocol):
    """A mechanism that reports public labels; a ledger keeps those that are text or numbers."""

    @property
    def labels(self) -> tuple[Hashable, ...]:
        """All of them."""


@parameters
class ByAmount:
    """A mechanism that is bought by an ε, or by a ρ, with noise for contributions of that norm."""

    epsilon: Parameter[Number | None, Fraction | None] = parameter(optional(positive), default=None)
    rho: Parameter[Number | None, Fraction | None] = parameter(optional(positive), default=None)
    relation: Related = parameter(read_relation, default=Relation.ADD_REMOVE)

    def __post_init__(self) -> None:
        _ = self.amount  # both, or neither, are refused here

    @lazy
    def amount(self) -> Amount:
        """What one release costs."""
        name, value = exactly_one(epsilon=self.epsilon, rho=self.rho)
        return Amount(Kind(name), positive(value, name), self.relation)

    @lazy
    def loss(self) -> Loss:
        return self.amount.loss

    @property
    def norm(self) -> Norm:
        """L1 for an ε, L2 for a ρ."""
        return Norm.L1 if self.amount.pure else Norm.L2


@dataclass(frozen=True)
class PostProcessed:
    """A mechanism whose output passes through a function that sees nothing else.

    Guarantee: the loss is the mechanism's own, whatever the function does (Dwork & Roth 2014,
    Prop. 2.1). The function must not reach private data by another way.
    """

    mechanism: Mechanism[Any]
    function: Callable[[Any], Any]

    @property
    def loss(self) -> Loss:
        return self.mechanism.loss

    @frameless
    def release(self, value: Any) -> Any:
        return self.function(self.mechanism.release(value))


def post_process(mechanism: Mechanism[Any], function: Callable[[Any], Any]) -> PostProcessed:
    """The mechanism followed by a function of its output, at the same price."""
    if not callable(function):
        raise ParameterTypeError("function", function, "must be callable on the released value")
    if not isinstance(getattr(mechanism, "loss", None), Loss):
        raise ParameterTypeError("mechanism", type(mechanism).__name__, "must have a loss")
    return PostProcessed(mechanism, function)


def read_labels(values: Any, argument: str, *, least: int = 1) -> tuple[Hashable, ...]:
    """Read different, hashable, public labels."""
    try:
        labels = tuple(values)
        different = len(set(labels)) == len(labels)
    except TypeError:
        raise ParameterTypeError(
            argument, type(values).__name__, "must be a list of labels"
        ) from None
    if len(labels) < least or not different:
        raise ParameterError(argument, len(labels), f"must be {least} or more different labels")
    return labels


def read_confidence(value: Number) -> Fraction:
    """Read a probability of coverage; misses rarer than 1e-300 are beyond computing."""
    confidence = probability(value, "confidence")
    if 1 - confidence < Fraction(1, 10**300):
        raise ParameterError("confidence", value, "must leave a chance of 1e-300 to miss")
    return confidence


def exactly_one(**given: Number | None) -> tuple[str, Number]:
    """The one parameter that is given, by name."""
    named = [(name, value) for name, value in given.items() if value is not None]
    if len(named) != 1:
        raise ParameterError(
            " and ".join(name for name, _ in named) or " or ".join(given),
            [value for _, value in named] or None,
            f"give exactly one of {', '.join(given)}",
        )
    return named[0]
