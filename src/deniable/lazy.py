"""A property computed once and kept, without a lock.

Python 3.11's `cached_property` holds a lock that a forked child inherits locked, and never gets.
Here two threads may compute the value twice; both values are the same, so no harm is done.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

Value = TypeVar("Value")


class lazy(Generic[Value]):  # noqa: N801  (used as a decorator, like `property`)
    """Decorator: the method runs once per instance, and its result stands in its place."""

    def __init__(self, method: Callable[[Any], Value]) -> None:
        self._method = method
        self.__doc__ = method.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> lazy[Value]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> Value: ...
    def __get__(self, instance: object | None, owner: type) -> lazy[Value] | Value:
        if instance is None:
            return self
        value = self._method(instance)
        instance.__dict__[self._name] = value
        return value
