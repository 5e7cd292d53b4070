"""Running a function in a child process of its own, for a limited time."""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from deniable.randomness.fork import fork

_CHUNK = 1 << 16


@dataclass(frozen=True)
class Ended:
    """A child that gave no result, and how it ended."""

    how: str
    late: bool = False


def in_child(function: Callable[[], object], end: float) -> object | Ended:
    """The function's result, which must be picklable, or how the child ended without one.

    The child, and whatever it started in its own session, is killed at `end` on the monotonic
    clock.
    """
    for stream in (sys.stdout, sys.stderr):  # or the child would write it once more
        with contextlib.suppress(Exception):
            stream.flush()
    read_end, write_end = os.pipe()
    child = fork()
    if child == 0:
        os.close(read_end)
        _be_the_child(function, write_end)
    os.close(write_end)
    status = 0
    try:
        said, in_time = _read_message(read_end, end)
    finally:
        os.close(read_end)
        for kill in (os.killpg, os.kill):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                kill(child, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):  # someone else reaps children here
            _, status = os.waitpid(child, 0)
    if said is not None:
        result: object = pickle.loads(said)  # noqa: S301  (written by our own child)
        return result
    if not in_time:
        return Ended("did not end in time", late=True)
    code = os.waitstatus_to_exitcode(status)
    return Ended(
        f"was killed by signal {-code}" if code < 0 else f"left its process with code {code}"
    )


def _be_the_child(function: Callable[[], object], write_end: int) -> NoReturn:
    code = 1
    try:
        os.setsid()
        # Inherited streams may hold a lock of a thread that does not exist here.
        sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
        try:
            body = pickle.dumps(function())
        except Exception as error:  # the tool's own fault, or a result that cannot be sent
            body = pickle.dumps(Ended(f"could not be observed ({type(error).__name__})"))
        left = len(body).to_bytes(8, "big") + body
        while left:
            left = left[os.write(write_end, left) :]
        code = 0
    except BaseException:  # noqa: S110  (the parent tells it from the missing result)
        pass
    finally:
        os._exit(code)


def _read_message(descriptor: int, end: float) -> tuple[bytes | None, bool]:
    """The one message, if it came before the writer ended and time was over."""
    poll, said = select.poll(), b""
    poll.register(descriptor, select.POLLIN | select.POLLHUP)
    while len(said) < 8 or len(said) < 8 + int.from_bytes(said[:8], "big"):
        ready = poll.poll(max(0.0, end - time.monotonic()) * 1000)
        if not ready:
            return None, False
        more = os.read(descriptor, _CHUNK)
        if not more:
            return None, True
        said += more
    return said[8:], True
