"""Running a function in a child process of its own, for a limited time."""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import signal
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

_CHUNK = 1 << 16


@dataclass(frozen=True)
class Ended:
    """A child that gave no result: how it ended, and what it had last said it was doing."""

    how: str
    stage: str


def in_child(
    function: Callable[[Callable[[str], None]], object], time_limit: float
) -> object | Ended:
    """The function's result, which must be picklable, or how the child ended without one.

    `function` is given a way to say what it is doing. The child, and whatever it started, is killed
    when the time is over.
    """
    read_end, write_end = os.pipe()
    with (
        warnings.catch_warnings()
    ):  # newer Pythons warn of forks beside threads; the child is brief
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        os.close(read_end)
        _be_the_child(function, write_end)
    os.close(write_end)
    try:
        said, in_time = _read_until_closed(read_end, time.monotonic() + time_limit)
    finally:
        os.close(read_end)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    return _read(said, in_time, status, time_limit)


def _read(said: bytes, in_time: bool, status: int, time_limit: float) -> object | Ended:
    messages = _messages(said)
    for kind, body in messages:
        if kind == b"R":
            result: object = pickle.loads(body)  # noqa: S301  (written by our own child)
            return result
    stage = messages[-1][1].decode() if messages else ""
    if not in_time:
        return Ended(f"did not end within {time_limit:g} s", stage)
    code = os.waitstatus_to_exitcode(status)
    how = f"was killed by signal {-code}" if code < 0 else f"left its process with code {code}"
    return Ended(how, stage)


def _messages(said: bytes) -> list[tuple[bytes, bytes]]:
    """The whole messages: a kind, a length, a body."""
    found, at = [], 0
    while at + 9 <= len(said):
        end = at + 9 + int.from_bytes(said[at + 1 : at + 9], "big")
        if end > len(said):
            break
        found.append((said[at : at + 1], said[at + 9 : end]))
        at = end
    return found


def _be_the_child(function: Callable[[Callable[[str], None]], object], write_end: int) -> NoReturn:
    code = 1
    try:
        os.setsid()
        empty = os.open(os.devnull, os.O_RDONLY)
        os.dup2(empty, 0)
        sys.stdin = open(0, closefd=False)  # noqa: SIM115  (a descriptor, open to the end)
        result = function(lambda stage: _send(write_end, b"S", stage.encode()))
        _send(write_end, b"R", pickle.dumps(result))
        code = 0
    except BaseException:  # noqa: S110  (the parent tells it from the missing result)
        pass
    finally:
        os._exit(code)


def _send(descriptor: int, kind: bytes, body: bytes) -> None:
    left = kind + len(body).to_bytes(8, "big") + body
    while left:
        left = left[os.write(descriptor, left) :]


def _read_until_closed(descriptor: int, end: float) -> tuple[bytes, bool]:
    """All that is written until the writer is gone or has given its result, or time is over."""
    said = b""
    while True:
        ready, _, _ = select.select([descriptor], [], [], max(0.0, end - time.monotonic()))
        if not ready:
            return said, False
        more = os.read(descriptor, _CHUNK)
        if not more:
            return said, True
        said += more
        if any(kind == b"R" for kind, _ in _messages(said)):
            return said, True  # whoever else holds the pipe open is not waited for
