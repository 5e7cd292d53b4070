"""Which process is this? A mark that no forked child shares with its parent.

On Linux a page that the kernel wipes in every child (`MADV_WIPEONFORK`) notices any fork, also one
that Python's hooks do not see and one whose child has the parent's process id in a new namespace.
Elsewhere the process id has to do.
"""

from __future__ import annotations

import gc
import mmap
import os
import warnings

_WIPE_ON_FORK = 18


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
