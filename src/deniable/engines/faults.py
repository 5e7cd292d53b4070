"""What is said when an engine does not take a question, or fails: one of these, and nothing else.

Engines quote values, names of files and pieces of plans. None of their sentences is passed on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from deniable.errors import DeniableError, EngineError

T = TypeVar("T")

SYNTAX = "the engine does not take this: it cannot read how it is written"
NAMES = "the engine does not take this: a name or a function is unknown to it"
TYPES = "the engine does not take this: names, functions or types do not fit together"
VALUES = (
    "the engine fails on this for some values that columns of these types can hold; "
    "write it in simpler steps, or cast to another type"
)
UNSAFE = "the question cannot be written down safely, and is not answered"
CLOSED = "the session is closed, and answers nothing more; open another one"
LOST = (
    "the connection that the owner gave has ended, and cannot be opened anew from here; "
    "the owner makes another session"
)

HELD_UP = (
    "another session of the server holds a lock on a table of the question, and did not let go; "
    "end that session (it is in pg_locks and pg_stat_activity), and ask again"
)
REPLACED = (
    "the file of a database is not the one that the session opened, and is not read; "
    "the owner makes another session"
)


def ended(what: str, engine: str) -> str:
    """The sentence about a statement that an engine did not finish, whatever the reason."""
    return f"{what}: {engine} could not finish it; the reason is not told, as it may quote data"


def attempt(act: Callable[[], T], told: Callable[[Exception], BaseException]) -> T:
    """What an act gives. Errors of our own pass; of any other, only what is told of it is raised.

    Errors that are none of a driver's own are among these: values that Python cannot hold.
    """
    try:
        return act()
    except DeniableError:
        raise
    except Exception as error:
        instead = told(error)
    # Outside of the handler: no trace of the engine's own error hangs on this one.
    raise instead


def by_kind(what: str, engine: str, advice: str) -> Callable[[Exception], EngineError]:
    """Whatever an engine says as a table is opened may quote data; its kind does not."""
    return lambda e: EngineError(f"{what}: {engine} ended with {type(e).__name__}; {advice}")
