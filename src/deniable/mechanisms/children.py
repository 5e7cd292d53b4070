"""A function in processes of its own, of which none is left when it has answered, or when we end.

What a function starts (a pool, a daemon, a shell) could outlive its block, meet the next one there
and tell it what it saw. So every run has a keeper: a forked process that adopts whatever is started
below it, waits for the function or for the end of the caller, whichever comes first and however it
comes, and then ends all of it. The keeper learns of the caller's end by a pipe that only the caller
holds: also after SIGTERM and SIGKILL.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from deniable.randomness.fork import fork

_ADOPT = 36  # PR_SET_CHILD_SUBREAPER
_PATIENCE = 5.0  # seconds, for what is killed to be gone
_PAUSE = 0.01


def bytes_in_child(make: Callable[[], bytes], size: int, timeout: float) -> bytes | None:
    """So many bytes that a function makes; None for whatever else it does, or fails to do.

    It runs in a forked child of its own, silent, so that nothing it learns from one block reaches
    the next, and no fault of it reaches the caller.
    """
    read_end, write_end = os.pipe()
    watched, held = os.pipe()
    keeper = fork()
    if keeper == 0:
        os.close(read_end)
        os.close(held)
        _keep(make, write_end, watched)
    os.close(write_end)
    os.close(watched)
    try:
        said = _read_until(read_end, size, timeout)
    finally:
        os.close(held)  # the keeper ends everything
        os.close(read_end)
        os.waitpid(keeper, 0)
    return said if len(said) == size else None


def _keep(make: Callable[[], bytes], write_end: int, watched: int) -> NoReturn:
    """Start the function, wait for it or for the caller's end, and leave nothing behind."""
    try:
        os.setsid()  # an interrupt from the keyboard is the caller's
        for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(each, signal.SIG_IGN)
        _adopt()
        child = fork()
        if child == 0:
            os.close(watched)
            _be_the_child(make, write_end)
        os.close(write_end)
        with contextlib.suppress(OSError):  # it may have done so itself, or be gone
            os.setpgid(child, child)
        _wait(child, watched)
        _end_all(child)
    finally:
        os._exit(0)


def _be_the_child(make: Callable[[], bytes], write_end: int) -> NoReturn:
    try:
        os.setpgid(0, 0)
        for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(each, signal.SIG_DFL)
        silence = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(silence, descriptor)
        sys.stdout = sys.stderr = os.fdopen(silence, "w")
        said = make()
        while said:
            said = said[os.write(write_end, said) :]
    except BaseException:  # noqa: S110  (a fault that depends on records must not show)
        pass
    finally:
        os._exit(0)


def _adopt() -> None:
    """Orphans below this process become its children, where the system knows how."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_ADOPT, 1, 0, 0, 0)


def _wait(child: int, watched: int) -> None:
    """Until the child has ended, or whoever holds the other end of the pipe."""
    while not _gone(child):
        ready, _, _ = select.select([watched], [], [], _PAUSE)
        if ready:
            return


def _gone(child: int) -> bool:
    """Whether it has ended; it is not reaped, so that its number stays its own."""
    options = os.WEXITED | os.WNOHANG | os.WNOWAIT
    return os.waitid(os.P_PID, child, options) is not None


def _end_all(child: int) -> None:
    """Kill the group, and then whatever was adopted, until there is nothing left."""
    end = time.monotonic() + _PATIENCE
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    while time.monotonic() < end:
        for each in {child, *_children()}:
            with contextlib.suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(_PAUSE)


def _children() -> list[int]:
    try:
        here = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
        return [int(each) for each in here.read_text(encoding="ascii").split()]
    except (OSError, ValueError):
        return []


def _read_until(descriptor: int, size: int, timeout: float) -> bytes:
    """What is written within the time, up to so many bytes."""
    said, end = b"", time.monotonic() + timeout
    while len(said) < size:
        ready, _, _ = select.select([descriptor], [], [], max(0.0, end - time.monotonic()))
        more = os.read(descriptor, size - len(said)) if ready else b""
        if not more:
            break
        said += more
    return said
