"""How a command fails: one red line on stderr, an exit code, and no traceback."""

from __future__ import annotations

import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from types import FrameType
from typing import ParamSpec

import typer

from deniable.errors import DeniableError

Parameters = ParamSpec("Parameters")
Command = Callable[Parameters, None]

INTERRUPTED = 130


def told(name: str, *, code: int = 2) -> Callable[[Command[Parameters]], Command[Parameters]]:
    """Make a command say its errors in one line, and exit with this code; Ctrl-C exits with 130."""

    def decorated(command: Command[Parameters]) -> Command[Parameters]:
        @wraps(command)
        def run(*arguments: Parameters.args, **options: Parameters.kwargs) -> None:
            with _listening() as stopped:
                try:
                    command(*arguments, **options)
                except KeyboardInterrupt:
                    raise _stopped(name) from None
                except (DeniableError, OSError, UnicodeError) as error:
                    if stopped.is_set():
                        raise _stopped(name) from None
                    # What cannot be read as text may be a row: not a byte of it is quoted.
                    unread = isinstance(error, UnicodeError)
                    say(name, "a file is not text in UTF-8" if unread else str(error))
                    raise typer.Exit(code) from None

        return run

    return decorated


def say(name: str, message: str) -> None:
    """One red line on stderr, whatever is in the message."""
    line = "".join(char if char.isprintable() else " " for char in message)
    typer.secho(f"deniable {name}: {' '.join(line.split())}", fg=typer.colors.RED, err=True)


@contextmanager
def warned(name: str) -> Iterator[None]:
    """Say what is warned of in lines on stderr, as errors are."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    for each in caught:
        say(name, f"warning: {each.message}")


def _stopped(name: str) -> typer.Exit:
    say(name, "stopped; what was charged before stays charged")
    return typer.Exit(INTERRUPTED)


@contextmanager
def _listening() -> Iterator[threading.Event]:
    """Remember Ctrl-C: an engine may turn it into a failure of its own."""
    stopped = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stopped
        return

    def note(_: int, __: FrameType | None) -> None:
        stopped.set()
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, note)
    try:
        yield stopped
    finally:
        signal.signal(signal.SIGINT, before)
