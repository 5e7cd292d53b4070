"""One run of a pipeline under observation: what it gives, raises, warns of and prints."""

from __future__ import annotations

import contextlib
import copy
import io
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from deniable.auditing.recorder import Diverged, Event, Recorder
from deniable.auditing.tree import Tree, tree
from deniable.trace import LISTENER


@dataclass(frozen=True)
class Run:
    """Everything that one run shows."""

    events: tuple[Event, ...]
    output: Tree | None
    raised: Tree | None
    warned: tuple[str, ...]
    printed: str
    forked: bool
    diverged: bool


def observe(pipeline: Callable[[Any], object], data: object, recorder: Recorder) -> Run:
    """Run a pipeline on a copy of the data, and keep whatever it shows."""
    given, process = _copied(data), os.getpid()
    output = raised = None
    diverged = False
    with _listening(recorder), _captured() as printed, warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            output = tree(pipeline(given))
        except Diverged:
            diverged = True
        except (Exception, SystemExit) as error:
            raised = tree(error)
        finally:
            if os.getpid() != process:
                os._exit(0)  # a child that the pipeline forked and forgot ends here
    return Run(
        events=tuple(recorder.events),
        output=output,
        raised=raised,
        warned=tuple(f"{warning.category.__name__}: {warning.message}" for warning in seen),
        printed=printed(),
        forked=recorder.forked,
        diverged=diverged,
    )


@contextlib.contextmanager
def _listening(recorder: Recorder) -> Iterator[None]:
    token = LISTENER.set(recorder)
    try:
        yield
    finally:
        LISTENER.reset(token)


def _forking() -> None:
    listener = LISTENER.get()
    if isinstance(listener, Recorder) and listener.listens:
        listener.forked = True


os.register_at_fork(before=_forking)


@contextlib.contextmanager
def _captured() -> Iterator[Callable[[], str]]:
    """What is written to the standard streams, by Python or beneath it."""
    text = io.StringIO()
    with tempfile.TemporaryFile() as beneath:
        kept = [os.dup(1), os.dup(2)]
        _flush()
        for descriptor in (1, 2):
            os.dup2(beneath.fileno(), descriptor)
        caught: list[str] = []
        try:
            with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
                yield lambda: "".join(caught)
        finally:
            _flush()
            for descriptor, before in zip((1, 2), kept, strict=True):
                os.dup2(before, descriptor)
                os.close(before)
            beneath.seek(0)
            caught += [text.getvalue(), beneath.read().decode(errors="replace")]


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()


def _copied(data: object) -> object:
    """A pipeline may alter what it is given; each run starts from the same."""
    try:
        return copy.deepcopy(data)
    except Exception:
        return data
