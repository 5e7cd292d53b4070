"""What a function of a block starts ends with it: when it answers, fails, hangs, or we end."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import deniable as dp
from deniable.mechanisms.children import bytes_in_child

PATIENCE = 20.0


def alive(path):
    """Which of the processes that wrote themselves down are still running."""
    if not path.exists():
        return set()
    found = set()
    for number in map(int, path.read_text().split()):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            state = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
            if state != "Z":
                found.add(number)
    return found


def gone(path, least):
    """Wait until all are gone; there were so many at least."""
    end = time.monotonic() + PATIENCE
    while alive(path) and time.monotonic() < end:
        time.sleep(0.02)
    assert len(path.read_text().split()) >= least
    return not alive(path)


def written(path):
    with path.open("a") as out:
        out.write(f"{os.getpid()}\n")


def forks(path):
    """A child that sleeps."""
    written(path)
    if os.fork() == 0:
        written(path)
        time.sleep(600)
        os._exit(0)


def spawns(path):
    """A shell, with a child of its own, that ignores polite signals."""
    written(path)
    line = f"trap '' TERM INT HUP; echo $$ >> {path}; sleep 600 & echo $! >> {path}; wait"
    subprocess.Popen(["/bin/sh", "-c", line])


def daemons(path):
    """Twice forked, in a session of its own: an orphan that no group holds."""
    written(path)
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            written(path)
            time.sleep(600)
        os._exit(0)


def pools(path):
    """A pool of processes, as estimators start."""
    from multiprocessing import get_context

    written(path)
    pool = get_context("fork").Pool(2, initializer=written, initargs=(path,))
    pool.map(abs, [1, 2, 3, 4])


WAYS = [forks, spawns, daemons, pools]


def settled(path, least):
    """Wait until so many have started."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if path.exists() and len(path.read_text().split()) >= least:
            return
        time.sleep(0.01)


@pytest.mark.parametrize("ending", ["answers", "fails", "exits", "hangs"])
@pytest.mark.parametrize("start", WAYS)
def test_nothing_is_left_of_a_block(tmp_path, start, ending):
    path = tmp_path / "started"

    def function(_block):
        start(path)
        settled(path, 2)
        if ending == "fails":
            raise ValueError
        if ending == "exits":
            os._exit(3)
        if ending == "hangs":
            time.sleep(600)
        return 5.0

    mechanism = dp.SubsampleAggregate(
        epsilon=1000,
        blocks=2,
        aggregate="mean",
        bounds=(0, 10),
        default=1,
        function=function,
        timeout=1.5,
    )
    found = mechanism.release([1, 2, 3, 4])
    assert abs(found - (5 if ending == "answers" else 1)) < 1
    assert not alive(path)  # at once: the next block must not meet them
    assert gone(path, 3)


CALLER = """
import sys
sys.path[:0] = [sys.argv[3]]
from pathlib import Path
import time
import signal
import deniable as dp
import test_children
for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(each, signal.SIG_DFL)  # whoever runs the tests may ignore them
path, start = Path(sys.argv[1]), getattr(test_children, sys.argv[2])

def function(block):
    start(path)
    time.sleep(600)

made = dp.SubsampleAggregate(
    epsilon=1, blocks=2, aggregate="mean", bounds=(0, 10), default=1, function=function, timeout=600
)
made.release([1, 2, 3, 4])
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL, signal.SIGHUP])
@pytest.mark.parametrize("start", WAYS)
def test_nothing_is_left_of_a_caller_that_is_ended(tmp_path, start, number):
    path = tmp_path / "started"
    here = str(Path(__file__).parent)
    arguments = [sys.executable, "-c", CALLER, str(path), start.__name__, here]
    with subprocess.Popen(arguments, stderr=subprocess.DEVNULL) as process:
        try:
            settled(path, 2)
            assert alive(path)
            process.send_signal(number)
            process.wait(PATIENCE)
        finally:
            process.kill()
    assert gone(path, 2)


def children():
    """The processes that this one has started and not reaped, other tests' servers among them."""
    return {
        child
        for thread in Path("/proc/self/task").iterdir()
        for child in (thread / "children").read_text().split()
    }


def test_the_caller_reaps_its_keeper():
    before = children()
    assert bytes_in_child(lambda: b"12345678", 8, 10.0) == b"12345678"
    assert children() <= before


def test_an_interrupt_ends_the_block(tmp_path):
    """KeyboardInterrupt in the caller's own thread, while the function hangs."""
    path = tmp_path / "started"

    def beep(_number, _frame):
        raise KeyboardInterrupt

    def make():
        daemons(path)
        time.sleep(600)
        return b""

    before = signal.signal(signal.SIGALRM, beep)
    signal.setitimer(signal.ITIMER_REAL, 0.7)
    try:
        with pytest.raises(KeyboardInterrupt):
            bytes_in_child(make, 8, 600.0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert not alive(path)
