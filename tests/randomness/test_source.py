import ctypes
import os
import threading

import numpy as np
import pytest

from chance import plausible_share
from deniable.errors import RandomnessError
from deniable.randomness import source as source_module
from deniable.randomness.source import REKEY_AFTER, SECURE, SecureSource, bits, words


def _in_child(fork) -> bytes:
    """32 bytes that a forked child draws from the shared source."""
    read_end, write_end = os.pipe()
    pid = fork()
    if pid == 0:
        os.write(write_end, SECURE.draw(32).tobytes())
        os._exit(0)
    os.close(write_end)
    os.waitpid(pid, 0)
    with os.fdopen(read_end, "rb") as pipe:
        return pipe.read()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("fork", [os.fork, ctypes.CDLL(None).fork], ids=["python", "libc"])
def test_children_repeat_neither_the_parent_nor_each_other(fork):
    SECURE.draw(1)
    drawn = [_in_child(fork) for _ in range(5)] + [SECURE.draw(32).tobytes() for _ in range(5)]
    assert all(len(one) == 32 for one in drawn)
    assert len(set(drawn)) == len(drawn)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_forked_while_another_thread_holds_the_lock_can_still_draw():
    with SECURE._stream.lock:
        pid = os.fork()
        if pid == 0:
            SECURE.draw(8)
            os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_of_a_raw_fork_under_a_held_lock_can_still_draw():
    with SECURE._stream.lock:
        pid = ctypes.CDLL(None).fork()
        if pid == 0:
            SECURE.draw(8)
            os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7


def test_threads_never_share_a_byte():
    drawn: list[bytes] = []

    def work() -> None:
        for _ in range(200):
            drawn.append(SECURE.draw(16).tobytes())

    threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(drawn) == 3200
    assert len(set(drawn)) == 3200


@pytest.mark.parametrize("failure", [OSError("no entropy"), NotImplementedError()])
def test_nothing_is_drawn_when_the_operating_system_fails(monkeypatch, failure):
    def fail(count: int) -> bytes:
        raise failure

    monkeypatch.setattr(os, "urandom", fail)
    with pytest.raises(RandomnessError, match="operating system"):
        SecureSource().draw(1)


@pytest.mark.parametrize("answer", [b"", bytes(32), b"short"])
def test_bytes_that_cannot_be_random_are_refused(monkeypatch, answer):
    monkeypatch.setattr(os, "urandom", lambda _: answer)
    with pytest.raises(RandomnessError):
        SecureSource().draw(1)


def test_failure_at_a_rekey_is_noticed_before_the_next_byte(monkeypatch):
    source = SecureSource()
    source.draw(REKEY_AFTER)

    def fail(count: int) -> bytes:
        raise OSError

    monkeypatch.setattr(os, "urandom", fail)
    with pytest.raises(RandomnessError):
        source.draw(1)


def test_keys_are_fresh_and_erased(monkeypatch):
    keys: list[bytearray] = []
    real = source_module.algorithms.AES

    def remember(key: bytearray) -> object:
        keys.append(key)
        return real(key)

    monkeypatch.setattr(source_module.algorithms, "AES", remember)
    source = SecureSource()
    source.draw(2 * REKEY_AFTER + 1)
    assert len(keys) == 3
    assert all(key == bytearray(32) for key in keys), "key buffers are zeroed after use"


def test_the_same_entropy_twice_does_not_give_the_same_bytes_after_a_rekey(monkeypatch):
    monkeypatch.setattr(os, "urandom", lambda count: b"\x07" * count)
    source = SecureSource()
    first = source.draw(64).tobytes()
    source.draw(REKEY_AFTER - 64)
    assert source.draw(64).tobytes() != first


def test_bits_are_balanced_and_words_have_the_right_size():
    ones = int(np.unpackbits(SECURE.draw(1 << 18)).sum())
    assert plausible_share(ones, 1 << 21, 0.5)
    assert not plausible_share(round(ones * 1.01), 1 << 21, 0.5)
    assert words(SECURE, 5).dtype == np.uint64
    assert all(0 <= bits(SECURE, k) < 1 << k for k in (1, 7, 8, 9, 64, 65, 1000))


def test_there_is_no_way_to_give_a_seed():
    with pytest.raises(TypeError):
        SecureSource(0)  # type: ignore[call-arg]
