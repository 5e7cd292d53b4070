"""Running a function in a child process of its own, for a limited time."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import pickle
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NoReturn

from deniable.randomness.fork import fork

_LONGEST_WAIT = 86_400.0  # a poll takes milliseconds of 32 bits
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
    child, read_end = _started(lambda write_end: _send(write_end, _result(function)))
    status = 0
    try:
        said, in_time = _read_message(read_end, end)
    finally:
        status = _finished(child, read_end)
    if said is not None:
        result: object = pickle.loads(said)  # noqa: S301  (written by our own child)
        return result
    return _how(status) if in_time else Ended("did not end in time", late=True)


def messages_from_child(
    produce: Callable[[Callable[[bytes], None]], None], patience: float
) -> Iterator[bytes | Ended]:
    """What `produce` says in a child, message by message; the last is `Ended` if it broke off.

    The child is killed when it says nothing for `patience` seconds, and when nobody listens on.
    """

    def say_all(write_end: int) -> None:
        produce(lambda message: _send(write_end, message))
        _send(write_end, b"")

    child, read_end = _started(say_all)
    kept, broken = bytearray(), True
    late = False
    try:
        while True:
            at = 0
            while len(kept) >= at + 8:
                size = int.from_bytes(kept[at : at + 8], "big")
                if size == 0:
                    broken = False
                    return
                if len(kept) < at + 8 + size:
                    break
                yield bytes(kept[at + 8 : at + 8 + size])
                at += 8 + size
            del kept[:at]
            ready, _, _ = select.select([read_end], [], [], patience)
            more = os.read(read_end, _CHUNK) if ready else b""
            if not more:
                late = not ready
                break
            kept += more
    finally:
        status = _finished(child, read_end)
    if broken:
        yield Ended("did not end in time", late=True) if late else _how(status)


def _started(work: Callable[[int], None]) -> tuple[int, int]:
    """A child at work, and where it is heard."""
    for stream in (sys.stdout, sys.stderr):  # or the child would write it once more
        with contextlib.suppress(Exception):
            stream.flush()
    read_end, write_end = os.pipe()
    child = fork()
    if child == 0:
        os.close(read_end)
        _be_the_child(work, write_end)
    os.close(write_end)
    return child, read_end


def _finished(child: int, read_end: int) -> int:
    """End a child and whatever it started in its session; its status."""
    os.close(read_end)
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(child, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):  # someone else reaps children here
        return os.waitpid(child, 0)[1]
    return 0


def _how(status: int) -> Ended:
    code = os.waitstatus_to_exitcode(status)
    return Ended(
        f"was killed by signal {-code}" if code < 0 else f"left its process with code {code}"
    )


def _result(function: Callable[[], object]) -> bytes:
    try:
        return pickle.dumps(function())
    except Exception as error:  # the tool's own fault, or a result that cannot be sent
        return pickle.dumps(Ended(f"could not be observed ({type(error).__name__})"))


def _send(write_end: int, body: bytes) -> None:
    left = len(body).to_bytes(8, "big") + body
    while left:
        left = left[os.write(write_end, left) :]


def _be_the_child(work: Callable[[int], None], write_end: int) -> NoReturn:
    code = 1
    try:
        os.setsid()
        faulthandler.disable()  # how it ended is told by its parent
        # Inherited streams may hold a lock of a thread that does not exist here.
        sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
        work(write_end)
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
        left = max(0.0, end - time.monotonic())
        ready = poll.poll(min(left, _LONGEST_WAIT) * 1000)
        if not ready:
            if left > _LONGEST_WAIT:
                continue
            return None, False
        more = os.read(descriptor, _CHUNK)
        if not more:
            return None, True
        said += more
    return said[8:], True
