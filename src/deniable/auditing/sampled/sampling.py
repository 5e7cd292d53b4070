"""Calling a mechanism many times, in children that may do what they like.

Each call's outcome is written to memory shared with the parent as soon as it is there, so that a
call which ends its process is known to be the one that did, and is an outcome like any other. A
call that does not end in time is not judged: no more calls are made on that pair, and the report
says so.
"""

from __future__ import annotations

import contextlib
import copy
import io
import marshal
import mmap
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from deniable.auditing.sampled.isolation import Ended, messages_from_child
from deniable.auditing.sampled.outcomes import Outcomes, Plain, Several, gone, plain, raised
from deniable.randomness.fork import process_mark

Call = Callable[[Any], Any]

_STARTS = {
    "os.fork",
    "os.forkpty",
    "os.posix_spawn",
    "subprocess.Popen",
    "_thread.start_new_thread",
}
_IMMUTABLE = (int, float, str, bool, bytes, type(None))
_STARTED = "started"
_ROOM = 1 << 20
_MOST_WRITTEN = 1 << 20
_PAUSE = 0.05  # seconds between two messages, where calls are short


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
    skip: int = 0,
) -> Sampled:
    """The outcomes of `count` calls on one input.

    A new child takes over where one ended. With `watch`, threads and processes that calls start are
    noted. A child inherits whatever generator a mechanism keeps in its process: `skip` outcomes are
    made and thrown away first, so that calls of which an earlier child made copies are not made
    again.
    """
    calls: list[Plain] = []
    starts = several = False
    with _Board() as board:
        while len(calls) < count:
            produce = _all_calls(call, given, (skip, count - len(calls)), watch, board)
            for message in messages_from_child(produce, time_limit + _PAUSE):
                if isinstance(message, Ended) and message.late:
                    return Sampled(Outcomes(calls), hung=True, starts=starts)
                before = len(calls)
                for found in _records(board.take() if isinstance(message, Ended) else message):
                    if found == _STARTED:
                        starts = True
                    else:
                        calls += found
                        several |= len(found) > 1
                if isinstance(message, Ended):
                    calls.append(gone(message.how))
                    skip = 0  # calls that end their process cannot be gone through again
                if tick is not None:
                    tick(len(calls) - before)
    return Sampled(Outcomes(calls[:count]), starts=starts, several=several)


def _records(written: bytes) -> Iterator[Any]:
    at = 0
    while at < len(written):
        end = at + 4 + int.from_bytes(written[at : at + 4], "big")
        yield marshal.loads(written[at + 4 : end])  # noqa: S302  (written by our own child)
        at = end


def _record(found: list[Plain] | str) -> bytes:
    body = marshal.dumps(found)
    return len(body).to_bytes(4, "big") + body


class _Board:
    """Memory that a child writes to and its parent can read, also when the child is gone."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _ROOM)
        self._clear()

    def __enter__(self) -> _Board:
        return self

    def __exit__(self, *_: object) -> None:
        self._memory.close()

    def _clear(self) -> None:
        self._memory[:8] = (8).to_bytes(8, "big")

    def add(self, record: bytes) -> bool:
        """Write a record behind the others, if there is room."""
        at = int.from_bytes(self._memory[:8], "big")
        end = at + len(record)
        if end > _ROOM:
            return False
        self._memory[at:end] = record
        self._memory[:8] = end.to_bytes(8, "big")  # only now it counts
        return True

    def take(self) -> bytes:
        """What is written, which is then wiped."""
        found = self._memory[8 : int.from_bytes(self._memory[:8], "big")]
        self._clear()
        return found


def _all_calls(
    call: Call, given: object, counts: tuple[int, int], watch: bool, board: _Board
) -> Callable[[Callable[[bytes], None]], None]:
    skip, count = counts

    def produce(say: Callable[[bytes], None]) -> None:
        process, made, said = process_mark(), -skip, time.monotonic()
        noted = _starts() if watch else []
        with _captured() as read:
            while made < count:
                outcomes = _one_call(call, given, read)
                if process_mark() != process:
                    os._exit(0)  # a child that the call forked and forgot ends here
                made += len(outcomes)
                record = _record(outcomes[max(0, len(outcomes) - max(0, made)) :])
                if not board.add(record):
                    say(board.take() + record)
                    said = time.monotonic()
                elif time.monotonic() > said + _PAUSE:
                    say(board.take())
                    said = time.monotonic()
        if noted:
            board.add(_record(_STARTED))
        say(board.take())

    return produce


def _one_call(call: Call, given: object, read: Callable[[], str]) -> list[Plain]:
    handed = given if type(given) in _IMMUTABLE else copied(given)
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


def copied(given: object) -> object:
    """A call may alter what it is given; each starts from the same."""
    try:
        return copy.deepcopy(given)
    except Exception:
        return given


@contextlib.contextmanager
def _captured() -> Iterator[Callable[[], str]]:
    """What is printed and warned of since it was last read."""
    kept = io.StringIO()
    written = os.memfd_create("written")  # by whatever writes past sys.stdout
    for descriptor in (1, 2):
        os.dup2(written, descriptor)  # here, in a child, for good

    def read() -> str:
        below = ""
        if size := os.lseek(written, 0, os.SEEK_END):
            below = os.pread(written, min(size, _MOST_WRITTEN), 0).decode(errors="replace")
            os.ftruncate(written, 0)
            os.lseek(written, 0, os.SEEK_SET)
        if not kept.tell():
            return below
        text = kept.getvalue()
        kept.seek(0)
        kept.truncate()
        return text + below

    def noted(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        kept.write(f"{category.__name__}: {message}\n")

    with contextlib.redirect_stdout(kept), contextlib.redirect_stderr(kept):
        warnings.simplefilter("always")
        warnings.showwarning = noted  # here, in a child, for good
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
