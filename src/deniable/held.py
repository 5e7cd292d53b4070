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
            del args, kwargs
            without_frames(error)
            told = error
        # Raised out here, where no frame below is alive.
        raise told

    return bare


def without_frames(error: BaseException) -> None:
    """Take from an error what frames held, and the errors that it came from; lines stay."""
    traceback.clear_frames(error.__traceback__)
    error.__cause__ = error.__context__ = None
