"""Calling a mechanism many times, in children that may do what they like.

Each call's outcome is passed on as soon as it is there, so that a call which ends its process is
known to be the one that did, and is an outcome like any other. A call that does not end in time is
not judged: no more calls are made on that pair, and the report says so.
"""

from __future__ import annotations

import contextlib
import copy
import io
import marshal
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from deniable.auditing.isolation import Ended, messages_from_child
from deniable.auditing.outcomes import Outcomes, Plain, Several, gone, plain, raised

Call = Callable[[Any], Any]

_STARTS = {"os.fork", "os.forkpty", "os.posix_spawn", "subprocess.Popen", "_thread.start_new_thread"}
_IMMUTABLE = (int, float, str, bool, bytes, type(None))
_STARTED = "started"


@dataclass(frozen=True)
class Sampled:
    """Outcomes of one side.

    `hung` where it was left because a call did not end; `starts` where calls start threads or
    processes; `several` where one call makes several releases.
    """

    outcomes: Outcomes
    hung: bool = False
    starts: bool = False
    several: bool = False


def sample(
    call: Call,
    given: object,
    count: int,
    *,
    time_limit: float,
    tick: Callable[[int], None] | None = None,
    watch: bool = False,
) -> Sampled:
    """The outcomes of `count` calls on one input.

    A new child takes over where one ended. With `watch`, threads and processes that calls start are
    noted.
    """
    calls: list[Plain] = []
    starts = several = False
    while len(calls) < count:
        left = count - len(calls)
        before = len(calls)
        for message in messages_from_child(_all_calls(call, given, left, watch), time_limit):
            if isinstance(message, Ended):
                if message.late:
                    return Sampled(Outcomes(calls), hung=True, starts=starts)
                calls.append(gone(message.how))
                continue
            found = marshal.loads(message)  # noqa: S302  (written by our own child)
            if found == _STARTED:
                starts = True
            else:
                calls += found
                several |= len(found) > 1
            if tick is not None:
                tick(len(calls) - before)
                before = len(calls)
    return Sampled(Outcomes(calls[:count]), starts=starts, several=several)


def _all_calls(
    call: Call, given: object, count: int, watch: bool
) -> Callable[[Callable[[bytes], None]], None]:
    def produce(say: Callable[[bytes], None]) -> None:
        process, made = os.getpid(), 0
        noted = _starts() if watch else []
        with _captured() as read:
            while made < count:
                outcomes = _one_call(call, given, read)
                if os.getpid() != process:
                    os._exit(0)  # a child that the call forked and forgot ends here
                made += len(outcomes)
                say(marshal.dumps(outcomes))
        if noted:
            say(marshal.dumps(_STARTED))

    return produce


def _one_call(call: Call, given: object, read: Callable[[], str]) -> list[Plain]:
    handed = given if type(given) in _IMMUTABLE else _copied(given)
    begun = time.perf_counter()
    try:
        output = call(handed)
        took = time.perf_counter() - begun
        if isinstance(output, Several):
            each = took / max(1, len(output.outputs))
            return [plain(one, read(), each) for one in output.outputs] or [plain(None, "", took)]
        return [plain(output, read(), took)]
    except BaseException as error:  # whatever it is, it shows
        return [raised(error, read(), time.perf_counter() - begun)]


def _copied(given: object) -> object:
    """A call may alter what it is given; each starts from the same."""
    try:
        return copy.deepcopy(given)
    except Exception:
        return given


@contextlib.contextmanager
def _captured() -> Iterator[Callable[[], str]]:
    """What is printed and warned of since it was last read."""
    kept = io.StringIO()

    def read() -> str:
        if not kept.tell():
            return ""
        text = kept.getvalue()
        kept.seek(0)
        kept.truncate()
        return text

    with contextlib.redirect_stdout(kept), contextlib.redirect_stderr(kept):
        warnings.simplefilter("always")
        yield read


def _starts() -> list[str]:
    """Threads and processes that are started from now on; for children only, which end."""
    noted: list[str] = []
    start = threading.Thread.start

    def seen(thread: threading.Thread) -> None:
        noted.append("threads")
        start(thread)

    threading.Thread.start = seen  # type: ignore[method-assign, assignment]
    sys.addaudithook(lambda event, _: noted.append(event) if event in _STARTS else None)
    return noted
