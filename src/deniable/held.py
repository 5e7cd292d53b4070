"""What must not show: values behind a form that tells nothing, and errors without their frames.

Notebooks, logs, debuggers and reports of failures print whatever objects and frames hold. So rows
in memory are kept in a `Held`, and an error that leaves the library takes no local variable along.
Nor does a value decide whether there is an error because numpy was told to raise or to warn.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from functools import wraps
from typing import Any, Generic, NoReturn, ParamSpec, TypeVar

import numpy as np

from deniable.errors import ParameterTypeError, PrivateValueError

Value = TypeVar("Value")
Given = ParamSpec("Given")
Returned = TypeVar("Returned")

_PANDAS = "pandas"
_FRAMES = (
    ("pyarrow", "Table", "Arrow table"),
    ("pyarrow", "RecordBatch", "Arrow table"),
    (_PANDAS, "DataFrame", "pandas table"),
    ("polars", "DataFrame", "polars table"),
)
_WANTED = (
    "must be a path, an Arrow table, a pandas or polars DataFrame, or a table of an engine, as "
    "dp.duckdb(...).table(name)"
)
_INSTEAD = {
    "duckdb": "a relation of DuckDB is a view: name a table, dp.duckdb(connection).table(name)",
    "narwhals": "give what it wraps: .to_native()",
    "polars": "give the DataFrame that it makes: .collect()",
    "pyarrow": "give the table that it makes: .read_all() or .to_table()",
    "pyspark": "name it to its engine: dp.spark(session).frame(frame)",
}
_ELSE = "of anything else, make one of these"


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
    """A table in memory, of a closed list: shown by its kind and number of columns, not of rows.

    What merely looks like a table may be a view that is computed anew whenever it is looked at, or
    wrap one whose types follow its cells. Nothing of it is asked but its class.
    """
    what = kind_of_frame(source)
    if what is None:
        home = type(source).__module__.partition(".")[0].lstrip("_")
        instead = _INSTEAD.get(home, _ELSE)
        raise ParameterTypeError("source", type(source).__name__, f"{_WANTED}; {instead}")
    table: Any = source
    if is_pandas(source):
        table = sys.modules[_PANDAS].DataFrame(source)  # of a class made from it, the rows alone
    count = table.shape[1]
    return Held(table, f"{what}, {count} column{'s' * (count != 1)}")


def kind_of_frame(source: object) -> str | None:
    """Which kind of table in memory it is; None if it is none that is read."""
    for home, name, what in _FRAMES:
        if type(source) is getattr(sys.modules.get(home), name, None):
            return what
    return "pandas table" if is_pandas(source) else None


def is_pandas(source: object) -> bool:
    """Whether it is a pandas table, or of a class made from it; whatever it says of its class."""
    known = getattr(sys.modules.get(_PANDAS), "DataFrame", None)
    return known is not None and issubclass(type(source), known)


def opened(source: object) -> object:
    """What is held; anything else as it is."""
    return source.open() if isinstance(source, Held) else source


def frameless(call: Callable[Given, Returned]) -> Callable[Given, Returned]:
    """Decorator of what is given private rows: its errors do not carry them along.

    What numpy was told to do about numbers too large or too small (`np.seterr`) does not count.
    """

    @wraps(call)
    def bare(*args: Given.args, **kwargs: Given.kwargs) -> Returned:
        try:
            with np.errstate(all="ignore"):
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
