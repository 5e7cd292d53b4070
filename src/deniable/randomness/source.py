"""Random bytes: AES-256 in counter mode, keyed by the operating system.

What the source promises, each with a test:

* **Keys** come from the operating system; if that fails, `RandomnessError`, and no byte.
* **Rekeying.** After `REKEY_AFTER` bytes the next key is fresh OS entropy mixed with keystream;
  the key buffer is zeroed and the old cipher dropped (OpenSSL cleanses its key schedule), so bytes
  already handed out cannot be computed from the state that remains.
* **Fork.** A child never repeats its parent or a sibling: state belongs to one process and is left
  behind in a child, whoever forked it (`fork.py`), even while another thread held the lock.
* **Threads.** One lock; two threads never share a byte.
* **Signals.** A handler that draws while its own thread is drawing does not wait for it, and starts
  a stream of its own, which the process goes on with.
* **No seed.** There is no argument through which one could be given.
"""

from __future__ import annotations

import os
import threading
from typing import Protocol

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes

from deniable.errors import RandomnessError
from deniable.randomness.fork import process_mark

Bytes = npt.NDArray[np.uint8]

REKEY_AFTER = 1 << 24
_KEY_BYTES = 32
_BLOCK_SLACK = 15  # update_into wants room for one more block, less a byte
_ZEROS = bytes(1 << 20)


class Source(Protocol):
    """Where samplers get uniform, independent bytes."""

    def draw(self, count: int) -> Bytes:
        """Return `count` fresh bytes."""


class _Keystream:
    """The state of one process: a cipher, its lock, and how far it has run.

    `filling` is seen true only by a signal handler of the thread that holds the lock.
    """

    def __init__(self, mark: tuple[int, int]) -> None:
        self.mark = mark
        self.lock = threading.RLock()
        self.filling = False
        self._left = 0
        self._cipher: CipherContext | None = None

    def fill(self, view: memoryview, count: int) -> None:
        """Write `count` bytes; the caller holds the lock."""
        done = 0
        while done < count:
            if self._left == 0:
                self._rekey()
            assert self._cipher is not None
            step = min(count - done, self._left, len(_ZEROS))
            zeros = _ZEROS if step == len(_ZEROS) else _ZEROS[:step]
            self._cipher.update_into(zeros, view[done : done + step + _BLOCK_SLACK])
            self._left -= step
            done += step

    def _rekey(self) -> None:
        key = bytearray(_KEY_BYTES + _BLOCK_SLACK)
        if self._cipher is not None:
            self._cipher.update_into(bytes(_KEY_BYTES), key)
            self._cipher = None
        for i, byte in enumerate(_operating_system_bytes(_KEY_BYTES)):
            key[i] ^= byte
        del key[_KEY_BYTES:]
        # A key is used once and for less than 2^64 blocks, so the counter may start at zero.
        self._cipher = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()
        key[:] = bytes(len(key))
        self._left = REKEY_AFTER


class SecureSource:
    """AES-256-CTR keystream; see the module's promises."""

    def __init__(self) -> None:
        self._stream = _Keystream(process_mark())

    def draw(self, count: int) -> Bytes:
        """Return `count` bytes nobody has seen before."""
        out = np.empty(count + _BLOCK_SLACK, dtype=np.uint8)
        stream = self._stream
        if stream.mark != (mark := process_mark()):
            # What a parent left here, its lock included, is not ours to use. Two threads may both
            # start anew: each stream is fresh.
            stream = self._stream = _Keystream(mark)
        with stream.lock:
            if not stream.filling:
                stream.filling = True
                try:
                    stream.fill(memoryview(out.data), count)
                finally:
                    stream.filling = False
                return out[:count]
        # We are a signal handler in the midst of `fill`.
        self._stream = _Keystream(mark)
        return self.draw(count)


def _operating_system_bytes(count: int) -> bytes:
    try:
        fresh = os.urandom(count)
    except (OSError, NotImplementedError) as cause:
        raise RandomnessError(
            "the operating system gave no random bytes; nothing can be released until it does"
        ) from cause
    if len(fresh) != count or fresh == bytes(count):
        raise RandomnessError(
            "the operating system's random bytes are short or all zero; nothing can be released"
        )
    return fresh


def words(source: Source, count: int) -> npt.NDArray[np.uint64]:
    """Return `count` uniform 64-bit words."""
    return source.draw(8 * count).view(np.uint64)


def bits(source: Source, count: int) -> int:
    """Return a uniform integer of `count` bits."""
    size = (count + 7) // 8
    return int.from_bytes(source.draw(size).tobytes(), "little") >> (8 * size - count)


SECURE = SecureSource()
