"""Which process is this? A mark that no forked child shares with its parent.

On Linux a page that the kernel wipes in every child (`MADV_WIPEONFORK`) notices any fork, also one
that Python's hooks do not see and one whose child has the parent's process id in a new namespace.
Elsewhere the process id has to do.

A child has all that its parent holds at that moment, locks of files among them, and nobody who
would let go of it. So what must not be inherited half done is done `unforked`.
"""

from __future__ import annotations

import gc
import mmap
import os
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_WIPE_ON_FORK = 18
_PATIENCE = 10.0  # seconds that a fork waits for other threads
_PAUSE = 0.001


def _wiped_page() -> mmap.mmap | None:
    try:
        page = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        page.madvise(_WIPE_ON_FORK)
    except (OSError, ValueError, AttributeError):
        return None
    page[0] = 1
    return page


_PAGE = _wiped_page()
_generation = 0


def process_mark() -> tuple[int, int]:
    """Equal for two calls only if no fork lies between them."""
    global _generation  # noqa: PLW0603  (it belongs to the process, as the page does)
    if _PAGE is not None and _PAGE[0] == 0:
        _PAGE[0] = 1
        _generation += 1
    return _generation, os.getpid()


def fork() -> int:
    """os.fork, after which a child never ends what its parent owns.

    A collection in the child would finalise objects whose threads exist in the parent only, such as
    connections of engines. Collection is off while the fork lasts, its hooks included.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        with warnings.catch_warnings():  # newer Pythons warn of forks beside threads
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            gc.freeze()
        return child
    finally:
        if collects:
            gc.enable()


_entry = threading.RLock()
_inside: dict[object, int] = {}
"""Threads that are in the middle of something, by what they entered with."""


@contextmanager
def unforked() -> Iterator[None]:
    """While this lasts, forks of other threads wait; not for ever, lest two wait for each other."""
    token, me = object(), threading.get_ident()
    try:
        if me not in list(_inside.values()):  # who is inside already is not held up
            with _entry:
                _inside[token] = me
        yield
    finally:
        _inside.pop(token, None)


def _wait_for_others() -> None:
    _entry.acquire()
    me, end = threading.get_ident(), time.monotonic() + _PATIENCE
    while any(each != me for each in list(_inside.values())) and time.monotonic() < end:
        time.sleep(_PAUSE)


def _go_on() -> None:
    with suppress(RuntimeError):  # an interrupt came before it was taken
        _entry.release()


def _begin_anew() -> None:
    """In the child, which has one thread."""
    global _entry  # noqa: PLW0603  (that of the parent is held)
    _entry = threading.RLock()
    for token, thread in list(_inside.items()):
        if thread != threading.get_ident():
            del _inside[token]


os.register_at_fork(before=_wait_for_others, after_in_parent=_go_on, after_in_child=_begin_anew)
