"""What is said when an engine does not take a question, or fails: one of these, and nothing else.

Engines quote values, names of files and pieces of plans. None of their sentences is passed on.
"""

from __future__ import annotations

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
