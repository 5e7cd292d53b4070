"""Public parameters of frozen classes: what each may be, as data, and one decorator that reads it.

    @parameters
    class Histogram:
        epsilon: Parameter[Number, Fraction] = parameter(positive)

A `Parameter[Number, Fraction]` takes a number and keeps a fraction: the reader makes one of the
other, or refuses it by name. A type checker sees both sides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import FrozenInstanceError, dataclass, fields
from enum import StrEnum
from fractions import Fraction
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    NoReturn,
    TypeVar,
    cast,
    dataclass_transform,
    overload,
)

from deniable.errors import ParameterError, ParameterTypeError
from deniable.privacy.exact import show
from deniable.privacy.units import Relation

Given_contra = TypeVar("Given_contra", contravariant=True)
Kept_co = TypeVar("Kept_co", covariant=True)
Kind = TypeVar("Kind", bound=type)
Choice = TypeVar("Choice", bound=StrEnum)


@dataclass(frozen=True)
class Parameter(Generic[Given_contra, Kept_co]):
    """How a parameter is read, and what stands in its place where none is given."""

    read: Callable[[Any, str], Any]
    default: object

    if TYPE_CHECKING:  # a frozen field, which keeps something else than it is given

        @overload
        def __get__(self, instance: None, owner: type) -> Parameter[Given_contra, Kept_co]: ...
        @overload
        def __get__(self, instance: object, owner: type) -> Kept_co: ...
        def __get__(self, instance: object | None, owner: type) -> object: ...

        def __set__(self, instance: object, value: Given_contra) -> None: ...


Related = Parameter[Relation | str, Relation]
"""A neighbour relation, or its name."""


def parameter(read: Callable[[Any, str], object], *, default: object = ...) -> Any:
    """A parameter that this reader takes; without a default it has to be given."""
    return Parameter[Any, Any](read, default)


# Frozen all the same: said here, mypy would forget what inherited parameters keep.
@dataclass_transform(kw_only_default=True, field_specifiers=(parameter,))
def parameters(kind: Kind) -> Kind:
    """Decorator: a frozen dataclass whose parameters, given by name, are read as they declare.

    A class with an `__init__` of its own, which takes other names, hands to `keep` what it keeps.
    `__post_init__` looks at all of them together, once each is read.
    """
    made: Any = kind
    declared = {name: each for name, each in vars(kind).items() if isinstance(each, Parameter)}
    for name, each in declared.items():
        delattr(kind, name)
        if each.default is not ...:
            setattr(kind, name, each.default)
    _DECLARED[kind] = {**_DECLARED.get(_owner(kind), {}), **declared}
    check = vars(kind).get("__post_init__")

    def read(self: Any) -> None:
        owner = _owner(type(self))
        if owner.__post_init__ is read:  # once, before any class looks at them
            for name, each in _DECLARED[owner].items():
                vars(self)[name] = each.read(getattr(self, name), name)
        if check is not None:
            check(self)

    if check is not None or not hasattr(kind, "__post_init__"):
        made.__post_init__ = read
    if made.__repr__ is object.__repr__:
        made.__repr__ = represent
    own = "__init__" in vars(kind)
    if own:
        made.of_fields = classmethod(_of_fields)
    frozen: Any = dataclass(frozen=True, kw_only=True, init=not own, repr=False)(kind)
    frozen.__setattr__ = frozen.__delattr__ = _refuse  # below it, too, where nothing is declared
    return cast("Kind", frozen)


def _refuse(_made: Any, name: str, *_: object) -> NoReturn:
    raise FrozenInstanceError(f"{name!r} is not set: what was read stays")


def _of_fields(kind: Any, /, **values: object) -> Any:
    """Made again of what another one holds, every part of which is read again."""
    made = object.__new__(kind)
    keep(made, **values)
    return made


_DECLARED: dict[type, dict[str, Parameter[Any, Any]]] = {}


def _owner(kind: type) -> Any:
    """The class that declares parameters: it or the nearest one above it."""
    return next((each for each in kind.__mro__ if each in _DECLARED), kind)


def keep(made: Any, **values: object) -> None:
    """What an `__init__` of its own keeps: every parameter, to be read as it is declared."""
    vars(made).update(values)
    made.__post_init__()


def optional(read: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    """None, or what another reader takes."""
    return lambda value, argument: None if value is None else read(value, argument)


def flag(value: bool, argument: str) -> bool:
    """True or False, and nothing that is as good as either."""
    if not isinstance(value, bool):
        raise ParameterTypeError(argument, value, "must be True or False")
    return value


def one_of(kinds: type[Choice]) -> Callable[[Choice | str, str], Choice]:
    """One of the names of an enumeration."""

    def read(value: Choice | str, argument: str) -> Choice:
        try:
            return kinds(value)
        except ValueError:
            *names, last = (repr(str(each)) for each in kinds)
            allowed = f"{', '.join(names)} or {last}"
            raise ParameterError(argument, value, f"must be {allowed}") from None

    return read


def represent(made: Any) -> str:
    """Every public parameter by name; long lists by their length."""
    parts = [f"{each.name}={_shown(getattr(made, each.name))}" for each in fields(made)]
    return f"{type(made).__name__}({', '.join(parts)})"


def _shown(value: Any) -> str:
    if isinstance(value, Fraction):
        return show(value)
    if isinstance(value, StrEnum):
        return repr(str(value))
    if isinstance(value, tuple):
        few = len(value) <= 4 and not any(isinstance(part, tuple) for part in value)
        return f"({', '.join(map(_shown, value))})" if few else f"<{len(value)} entries>"
    return repr(value)
