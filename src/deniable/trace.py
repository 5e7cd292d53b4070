"""The hook that `replay` listens to: off unless someone in this very context listens.

Three kinds of things pass here: releases (the verbs of mechanisms), noise that is asked for (the
samplers' one entry point), and public facts (what the ledger and the gate's doors reserve, draw
from and record). A listener may answer a release in the mechanism's stead, which is how recorded
outputs are replayed. Who listens is a context variable: other threads never hear of it.

Who listens hears exact values. So ledgers, and with them the doors to private tables, are used
only while nobody listens, or while who listened as they were made still does (`Heard`).

Every release passes here, so here is what holds for all of them: an error keeps no value in its
frames.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextvars import ContextVar
from functools import partial, wraps
from inspect import signature
from typing import Any, Protocol, TypeVar, cast

from deniable.errors import DoorError
from deniable.held import frameless, without_frames

Result = TypeVar("Result")
Verb = TypeVar("Verb", bound=Callable[..., Any])


class Listener(Protocol):
    """Who is told of releases, bare noise and public facts."""

    def release(
        self,
        subject: object,
        verb: str,
        arguments: tuple[object, ...],
        go: Callable[[], Result],
    ) -> Result:
        """Stand in for `go()`, which makes the release."""

    def noise(self, law: object) -> None:
        """Hear that noise of this law is asked for."""

    def fact(self, name: str, content: object) -> None:
        """Hear what must be the same whatever the data are."""

    def opened(self, subject: object, go: Callable[[], Result]) -> Result:
        """Hear of a stream that will be asked later; `go()` draws what it starts with."""


LISTENER: ContextVar[Listener | None] = ContextVar("deniable_listener", default=None)


class Heard:
    """Who listened as something was made, which nobody else may listen to."""

    def __init__(self) -> None:
        listener = LISTENER.get()
        self._by = None if listener is None else weakref.ref(listener)

    def check(self) -> None:
        """Refuse a listener that came later: it would be told exact values."""
        listener = LISTENER.get()
        if listener is not None and (self._by is None or self._by() is not listener):
            raise DoorError(
                "a replay is told exact values, so it takes no session, ledger or door that was "
                "opened outside of it; make the session in factory=, with the ledger it is given"
            )


def traced(method: Verb) -> Verb:
    """A verb that makes a release: a listener may stand in for it."""
    if tuple(signature(method).parameters) == ("self", "value"):
        return cast("Verb", _traced_release(method))

    @frameless
    @wraps(method)
    def verb(self: object, *given: object, **named: object) -> object:
        listener = LISTENER.get()
        if listener is None:
            return method(self, *given, **named)
        try:
            _, *arguments = signature(method).bind(self, *given, **named).arguments.values()
        except TypeError:  # the call itself is wrong, and says so better
            return method(self, *given, **named)
        return listener.release(
            self, method.__name__, tuple(arguments), lambda: method(self, *given, **named)
        )

    return cast("Verb", verb)


def _traced_release(method: Callable[..., object]) -> Callable[[object, object], object]:
    """The same for `verb(value)`, the common shape, at a fraction of the time."""

    @wraps(method)
    def verb(self: object, value: object) -> object:
        try:
            listener = LISTENER.get()
            if listener is None:
                return method(self, value)
            return listener.release(self, method.__name__, (value,), partial(method, self, value))
        except BaseException as error:
            try:
                del value
                told = without_frames(error)
            except BaseException as later:  # a second interrupt, while the first is cleaned
                told = without_frames(later)
        # Raised out here, where no frame below is alive.
        raise told

    return verb


def stated(name: str, content: object) -> None:
    """A public fact: a price reserved, a question asked, an answer recorded."""
    if (listener := LISTENER.get()) is not None:
        listener.fact(name, content)


def opened(subject: object, go: Callable[[], Result]) -> Result:
    """A stream is opened; `go()` draws what it starts with."""
    listener = LISTENER.get()
    return go() if listener is None else listener.opened(subject, go)
