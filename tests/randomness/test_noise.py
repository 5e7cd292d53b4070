import copy
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
from fractions import Fraction

import numpy as np
import pytest

from deniable.randomness.noise import _POOL, GaussianLaw, LaplaceLaw, Noise, noise

LAW = LaplaceLaw(Fraction(2**50))


def test_single_draws_are_pooled_and_wiped():
    one = Noise(LAW)
    drawn = [one.one() for _ in range(100)]
    assert len(set(drawn)) == 100
    assert not one._pool.values[_POOL - 100 :].any()
    assert one._pool.values[: _POOL - 100].all()


def test_a_pool_is_refilled():
    one = Noise(LAW)
    assert len({one.one() for _ in range(_POOL + 10)}) == _POOL + 10


def test_laws_share_their_tables():
    assert noise(LAW) is noise(LaplaceLaw(Fraction(2**50)))
    assert noise(LAW) is not noise(GaussianLaw(Fraction(2**50)))


@pytest.mark.parametrize(
    "make", [copy.copy, copy.deepcopy, lambda n: pickle.loads(pickle.dumps(n))]
)
def test_copies_never_repeat_noise(make):
    original = noise(LAW)
    original.one()
    copied = make(original)
    assert not {original.one() for _ in range(500)} & {copied.one() for _ in range(500)}


def _draw(pipe) -> None:
    pipe.send([noise(LAW).one() for _ in range(200)])


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_processes_never_repeat_noise(start):
    noise(LAW).one()  # the pool is filled before the children exist
    context = multiprocessing.get_context(start)
    drawn: list[int] = []
    for _ in range(3):
        ours, theirs = context.Pipe()
        child = context.Process(target=_draw, args=(theirs,))
        child.start()
        drawn += ours.recv()
        child.join()
    drawn += [noise(LAW).one() for _ in range(200)]
    assert len(set(drawn)) == 800


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_forked_while_the_pool_is_locked_can_still_draw():
    shared = noise(LAW)
    with shared._pool.lock:
        pid = os.fork()
        if pid == 0:
            shared.one()
            os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7


def test_threads_never_draw_the_same_place_twice():
    shared, drawn = Noise(LAW), []

    def work() -> None:
        mine = [shared.one() for _ in range(2000)]
        drawn.extend(mine)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(drawn) == len(set(drawn)) == 16_000


def test_draws_are_python_integers_and_vectors_64_bit():
    assert type(noise(LAW).one()) is int
    assert noise(LAW).many(3).dtype == np.int64


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_starts_with_an_empty_pool():
    shared = noise(LAW)
    shared.one()
    pid = os.fork()
    if pid == 0:
        os._exit(0 if shared._pool.values.size == 0 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


IN_A_NEW_PID_NAMESPACE = """
import ctypes, os, sys
from fractions import Fraction
from deniable.randomness.noise import LaplaceLaw, noise
from deniable.randomness.source import SECURE
shared = noise(LaplaceLaw(Fraction(2**50)))
shared.one()
libc = ctypes.CDLL(None)
assert os.getpid() == 1
assert libc.unshare(0x20000000) == 0
pid = libc.fork()
drawn = [shared.one(), bytes(SECURE.draw(16)).hex()]
if pid == 0:
    assert os.getpid() == 1
    print(drawn, flush=True)
    os._exit(0)
os.waitpid(pid, 0)
print(drawn, flush=True)
"""


def test_a_raw_fork_whose_child_has_the_same_process_id_repeats_nothing():
    unshare = ["unshare", "-Upf", "--map-root-user", sys.executable, "-c", IN_A_NEW_PID_NAMESPACE]
    done = subprocess.run(unshare, capture_output=True, text=True, check=False)
    if done.returncode != 0 and "unshare" in done.stderr:
        pytest.fail(f"namespaces are needed for this test: {done.stderr}")
    child, parent = done.stdout.splitlines()
    assert child != parent


def test_threads_that_meet_a_foreign_pool_together_get_noise_of_their_own():
    shared, drawn = Noise(LAW), []
    shared.one()
    for _ in range(50):
        shared._pool.mark = (-1, -1)
        threads = [threading.Thread(target=lambda: drawn.append(shared.one())) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(drawn) == len(set(drawn)) == 400
    assert 0 not in drawn
