"""One run of a pipeline under observation: what it gives, raises, warns of and prints."""

from __future__ import annotations

import contextlib
import inspect
import io
import os
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from deniable.auditing.replay.recorder import Diverged, Event, Recorder, copied
from deniable.auditing.replay.tree import Tree, tree
from deniable.errors import ParameterTypeError
from deniable.randomness.fork import process_mark
from deniable.trace import LISTENER


@dataclass(frozen=True)
class Run:
    """Everything that one run shows."""

    events: tuple[Event, ...]
    output: Tree | None
    raised: Tree | None
    warned: tuple[Tree, ...]
    printed: tuple[str, ...]
    started: frozenset[str]
    diverged: bool


def observe(
    pipeline: Callable[[Any], object], data: object, recorder: Recorder, *, whole_process: bool
) -> Run:
    """Run a pipeline on a copy of the data, and keep whatever it shows.

    With `whole_process`, what is written beneath Python's streams is kept too: for children only.
    """
    # A pipeline may alter what it is given; each run starts from the same.
    given, process = copied(data), process_mark()
    output = raised = None
    diverged = False
    _watch()
    recorder.begin()
    with (
        _listening(recorder),
        _threads_noticed(),
        _captured(beneath=whole_process) as printed,
        warnings.catch_warnings(record=True) as seen,
    ):
        warnings.simplefilter("always")
        try:
            output = tree(_finished(pipeline(given)))
        except Diverged:
            diverged = True
        except (Exception, SystemExit) as error:
            raised = tree(error)
        finally:
            if process_mark() != process:
                os._exit(0)  # a child that the pipeline forked and forgot ends here
    return Run(
        events=tuple(recorder.events),
        output=output,
        raised=raised,
        warned=tuple(tree((each.message, each.filename, each.lineno)) for each in seen),
        printed=tuple(printed()),
        started=frozenset(recorder.started),
        diverged=diverged,
    )


def _finished(value: object) -> object:
    if inspect.isawaitable(value) or inspect.isasyncgen(value):
        close = getattr(value, "close", None)
        if close is not None:
            close()
        raise ParameterTypeError(
            "pipeline", "a coroutine", "must run to its end: lambda data: asyncio.run(main(data))"
        )
    return value


@contextlib.contextmanager
def _listening(recorder: Recorder) -> Iterator[None]:
    token = LISTENER.set(recorder)
    try:
        yield
    finally:
        LISTENER.reset(token)


_STARTS = frozenset({"os.fork", "os.posix_spawn", "subprocess.Popen"})


def _note(what: str) -> None:
    listener = LISTENER.get()
    if isinstance(listener, Recorder) and listener.listens:
        listener.started.add(what)


@cache
def _watch() -> None:
    """Notice processes that a pipeline starts; a hook cannot be taken away again."""
    sys.addaudithook(lambda event, _: _note("processes") if event in _STARTS else None)


@contextlib.contextmanager
def _threads_noticed() -> Iterator[None]:
    """Notice threads that a pipeline starts, for which there is no such hook."""
    start = threading.Thread.start

    def noted(thread: threading.Thread) -> None:
        _note("threads")
        start(thread)

    threading.Thread.start = noted  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        threading.Thread.start = start  # type: ignore[method-assign]


@contextlib.contextmanager
def _captured(*, beneath: bool) -> Iterator[Callable[[], list[str]]]:
    """What is written to the standard streams: one text each, and what is written beneath them."""
    caught: list[str] = []
    raw = (io.BytesIO(), io.BytesIO())
    streams = [
        io.TextIOWrapper(io.BufferedWriter(_Kept(each)), "utf-8", write_through=True)
        for each in raw
    ]
    with contextlib.ExitStack() as stack:
        below = stack.enter_context(_beneath()) if beneath else (lambda: "")
        stack.enter_context(contextlib.redirect_stdout(streams[0]))
        stack.enter_context(contextlib.redirect_stderr(streams[1]))
        try:
            yield lambda: caught
        finally:
            for stream in streams:
                with contextlib.suppress(Exception):
                    stream.flush()
            caught += [each.getvalue().decode(errors="replace") for each in raw]
            caught.append(below())


class _Kept(io.RawIOBase):
    """Bytes that stay readable after a pipeline has closed its stream."""

    def __init__(self, target: io.BytesIO) -> None:
        self._target = target

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        return self._target.write(bytes(data))


@contextlib.contextmanager
def _beneath() -> Iterator[Callable[[], str]]:
    """The descriptors 1 and 2 themselves; only where the process is ours."""
    with tempfile.TemporaryFile() as file:
        kept = [os.dup(1), os.dup(2)]
        for descriptor in (1, 2):
            os.dup2(file.fileno(), descriptor)

        def read() -> str:
            file.seek(0)
            return file.read().decode(errors="replace")

        try:
            yield read
        finally:
            for descriptor, before in zip((1, 2), kept, strict=True):
                os.dup2(before, descriptor)
                os.close(before)
