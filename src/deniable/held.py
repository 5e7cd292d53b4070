"""What must not show: values behind a form that tells nothing, and errors without their frames.

Notebooks, logs, debuggers and reports of failures print whatever objects and frames hold. So rows
in memory are kept in a `Held`, and an error that leaves the library takes no local variable along.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from functools import wraps
from typing import Any, Generic, NoReturn, ParamSpec, TypeVar

from deniable.errors import PrivateValueError

Value = TypeVar("Value")
Given = ParamSpec("Given")
Returned = TypeVar("Returned")

_KINDS = {"pyarrow": "Arrow table", "pandas": "pandas table", "polars": "polars table"}


class Held(Generic[Value]):
    """A value that is used and never shown: its form says what it is, and holds nothing of it."""

    __slots__ = ("_open", "_what")

    _open: Callable[[], Value]
    _what: str

    def __init__(self, value: Value, what: str) -> None:
        self._open = lambda: value  # to those who list attributes, a function
        self._what = what

    def open(self) -> Value:
        """The value."""
        return self._open()

    def __repr__(self) -> str:
        return f"<{self._what}>"

    def __copy__(self) -> Held[Value]:
        return self

    def __deepcopy__(self, _memo: dict[int, Any]) -> Held[Value]:
        return self  # a copier's notes would show the copy

    def __reduce__(self) -> NoReturn:
        raise PrivateValueError(
            "private data are not pickled: send the path or name of the table, and open it there"
        )


def held_table(source: object) -> Held[Any]:
    """A table in memory: shown by its kind and its number of columns, not of rows."""
    what = _KINDS.get(type(source).__module__.partition(".")[0], type(source).__name__)
    shape = getattr(type(source), "shape", None) and getattr(source, "shape", None)
    if isinstance(shape, tuple) and len(shape) == 2:
        what += f", {shape[1]} column{'s' * (shape[1] != 1)}"
    return Held(source, what)


def opened(source: object) -> object:
    """What is held; anything else as it is."""
    return source.open() if isinstance(source, Held) else source


def frameless(call: Callable[Given, Returned]) -> Callable[Given, Returned]:
    """Decorator of what is given private rows: its errors do not carry them along."""

    @wraps(call)
    def bare(*args: Given.args, **kwargs: Given.kwargs) -> Returned:
        try:
            return call(*args, **kwargs)
        except BaseException as error:
            try:
                del args, kwargs
                told = without_frames(error)
            except BaseException as later:  # a second interrupt, while the first is cleaned
                told = without_frames(later)
        # Raised out here, where no frame below is alive.
        raise told

    return bare


def without_frames(error: BaseException) -> BaseException:
    """Take from an error what frames held, and the errors that it came from; lines stay."""
    waiting, met = [error], {id(error)}
    for each in waiting:
        traceback.clear_frames(each.__traceback__)
        for other in (each.__cause__, each.__context__, *getattr(each, "exceptions", ())):
            if isinstance(other, BaseException) and id(other) not in met:
                met.add(id(other))
                waiting.append(other)
        each.__cause__ = each.__context__ = None
    return error
