"""What may be told of a failure where private tables are read.

Before anything is charged, errors of our own pass. After that there is one sentence, the same on
any data, and no error keeps words, frames or status of what a read raised.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from functools import wraps
from typing import ParamSpec, TypeVar

from deniable.errors import (
    DeniableError,
    EngineError,
    LedgerError,
    ReleaseFailedError,
    is_panic,
    is_stop,
)
from deniable.held import without_frames

Given = ParamSpec("Given")
Returned = TypeVar("Returned")

_charges: ContextVar[int] = ContextVar("charges", default=0)


def now_charged() -> None:
    """A price was reserved: from here on nothing is told of what fails."""
    _charges.set(_charges.get() + 1)


def shielded(call: Callable[Given, Returned]) -> Callable[Given, Returned]:
    """Decorator of what reads private tables: how it fails says nothing about them.

    Whatever fails after a price was reserved is a `ReleaseFailedError` of one sentence, unless the
    ledger itself failed. Before that, errors of our own pass; what others raise, which may quote
    rows, becomes an `EngineError` that names its kind. No error keeps local variables of frames.
    """

    @wraps(call)
    def shield(*args: Given.args, **kwargs: Given.kwargs) -> Returned:
        before = _charges.get()
        try:
            return call(*args, **kwargs)
        except BaseException as error:
            try:
                del args, kwargs
                told = _told(error, charged=_charges.get() > before)
            except BaseException as later:  # a second interrupt, while the first is cleaned
                told = without_frames(later)
        # Raised out here, so that it carries nothing of that error along.
        raise told

    return shield


class _CallersError(BaseException):
    """What a function of the caller's raised, on its way out to the caller."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


def of_caller(call: Callable[Given, Returned]) -> Callable[Given, Returned]:
    """A function of the caller's that is told nothing private: its errors pass a shield."""

    @wraps(call)
    def called(*args: Given.args, **kwargs: Given.kwargs) -> Returned:
        try:
            return call(*args, **kwargs)
        except Exception as error:
            raise _CallersError(error) from None

    return called


def _told(error: BaseException, *, charged: bool) -> BaseException:
    """The error that may be told of."""
    if isinstance(error, _CallersError):
        without_frames(error)
        return error.error
    if is_stop(error):
        return KeyboardInterrupt()
    lines = error.__traceback__
    asked_wrongly = lines is None or lines.tb_next is None  # arguments that do not fit
    without_frames(error)
    told: BaseException
    if isinstance(error, ReleaseFailedError | LedgerError):
        return error
    if not is_failure(error):
        return _wordless(error) if charged else error
    if charged:
        told = ReleaseFailedError(
            "this failed after it was charged, and what was charged stays charged; declare what it "
            "would have to buy (bounds, keys, max_rows), or look at the source, and ask again"
        )
    elif isinstance(error, DeniableError | OSError) or asked_wrongly:
        return error
    else:
        told = EngineError(f"this ended with {type(error).__name__}; nothing was charged")
    return told.with_traceback(lines)


def is_failure(error: BaseException) -> bool:
    """Whether it is told of in our words; what ends a program passes."""
    return isinstance(error, Exception | BaseExceptionGroup) or is_panic(error)


def _wordless(stop: BaseException) -> BaseException:
    """What ends a program, without what it says: a function of the caller's may quote rows."""
    stop.args = ()
    vars(stop).clear()
    if isinstance(stop, SystemExit):
        stop.code = 1  # a status may be a count
    return stop
