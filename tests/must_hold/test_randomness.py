"""Must-hold cases 1 to 6: no draw is repeated, foreseen, or replaced by a worse one.

Of case 3 nothing marks insecure releases, because no release can be made from a seed at all: the
repeatable sources are in the tests.
"""

import ast
import copy
import ctypes
import os
import pickle
import random
import sys
import threading
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import deniable as dp
from contracts.test_catalogue import CATALOGUE
from deniable.ledger.entries import EntryKind
from deniable.randomness.fork import process_mark
from deniable.randomness.gaussian import GaussianSampler
from deniable.randomness.laplace import LaplaceSampler
from deniable.randomness.noise import LaplaceLaw, Noise, _wipe_all, noise
from deniable.randomness.source import SECURE, SecureSource, _Keystream, words
from sources import InsecureSource

DRAWS = 1000
# So wide that two thousand draws against a thousand meet by chance less than once in 1e9 times.
WIDE = LaplaceLaw(Fraction(2**52))
PACKAGE = Path(dp.__file__).parent
LAYERS = ("randomness", "mechanisms", "privacy", "ledger")
RELEASE_PATHS = [
    *(file for layer in LAYERS for file in sorted((PACKAGE / layer).rglob("*.py"))),
    PACKAGE / "release.py",
    PACKAGE / "trace.py",
]


def in_two_children(draw, fork):
    """What each of two forked children draws; the parent draws nothing in between."""
    said = []
    for _ in range(2):
        read_end, write_end = os.pipe()
        pid = fork()
        if pid == 0:
            try:
                os.write(write_end, np.array([draw() for _ in range(DRAWS)]).tobytes())
            finally:
                os._exit(0)
        os.close(write_end)
        os.waitpid(pid, 0)
        with os.fdopen(read_end, "rb") as pipe:
            said.append(np.frombuffer(pipe.read(), dtype=np.int64).tolist())
    return said


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("fork", [os.fork, ctypes.CDLL(None).fork], ids=["python", "libc"])
def test_case_01_forked_children_share_no_draws(fork):
    shared = noise(WIDE)
    shared.one()  # the pool is filled before the children exist
    one, other = in_two_children(shared.one, fork)
    mine = [shared.one() for _ in range(DRAWS)]
    assert len(one) == len(other) == DRAWS
    assert len({*one, *other, *mine}) == 3 * DRAWS


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_case_01_children_of_an_ordinary_generator_repeat_each_other():
    generator = np.random.default_rng()
    one, other = in_two_children(lambda: int(generator.integers(2**62)), os.fork)
    assert one == other


def blocks_of_eight_threads(source_for_thread):
    drawn: list[list[int]] = []
    sources = [source_for_thread() for _ in range(8)]

    def work(source):
        drawn.append([int(words(source, 1)[0]) for _ in range(10_000)])

    threads = [threading.Thread(target=work, args=(source,)) for source in sources]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    return [block for mine in drawn for block in mine]


def test_case_02_threads_share_no_block():
    blocks = blocks_of_eight_threads(lambda: SECURE)
    assert len(blocks) == len(set(blocks)) == 80_000  # 80,000 fair blocks meet once in 6e9 runs


def test_case_02_threads_with_a_source_of_one_seed_would_be_seen():
    blocks = blocks_of_eight_threads(lambda: InsecureSource(1))
    assert len(set(blocks)) == 10_000


def parameters(text):
    return {node.arg for node in ast.walk(ast.parse(text)) if isinstance(node, ast.arg)}


def test_case_03_nothing_on_the_way_to_a_release_takes_a_seed():
    seeds = {"seed", "rng", "random_state", "generator", "seed_sequence"}
    assert not {path.name for path in RELEASE_PATHS if parameters(path.read_text()) & seeds}
    assert parameters("def release(self, value, *, seed=None): ...") & seeds
    with pytest.raises(TypeError):
        SecureSource(7)


def test_case_03_seeding_every_other_generator_repeats_nothing():
    drawn = []
    for _ in range(2):
        random.seed(7)
        np.random.seed(7)  # noqa: NPY002
        drawn += [Noise(WIDE).one(), *noise(WIDE).many(100).tolist()]
        planted = np.random.laplace()  # noqa: NPY002
    assert len(set(drawn)) == 202
    np.random.seed(7)  # noqa: NPY002
    assert np.random.laplace() == planted  # noqa: NPY002


@pytest.fixture
def no_entropy(monkeypatch):
    """Call it, and the operating system gives no bytes any more, and none were drawn before."""

    def fail(count):
        raise OSError("no entropy")

    def cut_off():
        monkeypatch.setattr(os, "urandom", fail)
        monkeypatch.setattr(SECURE, "_stream", _Keystream(process_mark()))
        _wipe_all()

    return cut_off


@pytest.mark.parametrize("name", CATALOGUE)
def test_case_04_without_entropy_no_mechanism_releases_anything(name, no_entropy):
    entry = CATALOGUE[name]
    entry.use(entry.mechanism)
    no_entropy()
    with pytest.raises(dp.errors.RandomnessError, match="operating system"):
        entry.use(entry.mechanism)


def test_case_04_without_entropy_the_gate_gives_no_answer(no_entropy):
    with dp.Ledger(key=bytes(32)) as ledger:
        ledger.open("clinic", dp.Budget(dp.PureDP(1)), who="owner")
        gate = dp.Gate(ledger, "clinic", "ana")
        no_entropy()
        with pytest.raises(dp.ReleaseFailedError):
            gate.release(dp.Geometric(epsilon=0.5, sensitivity=1), lambda: 3, purpose="x")
        assert [row.kind for row in ledger.history("clinic")][1:] == [
            EntryKind.RESERVE,
            EntryKind.FAIL,
        ]


COPIES = [copy.copy, copy.deepcopy, lambda subject: pickle.loads(pickle.dumps(subject))]


def repeats(subject, make_copy, draw):
    """How many of 200 draws a copy has in common with the original."""
    draw(subject)
    copied = make_copy(subject)
    return len({draw(subject) for _ in range(200)} & {draw(copied) for _ in range(200)})


@pytest.mark.parametrize("make_copy", COPIES, ids=["copy", "deepcopy", "pickle"])
@pytest.mark.parametrize(
    "mechanism",
    [
        dp.Geometric(scale=2**52, sensitivity=1),
        dp.DiscreteGaussian(sigma=2**54, sensitivity=1),
        dp.Laplace(scale=2**14, sensitivity=1),
        dp.Gaussian(sigma=2**14, sensitivity=1),
    ],
    ids=lambda mechanism: type(mechanism).__name__,
)
def test_case_05_copies_of_mechanisms_draw_noise_of_their_own(mechanism, make_copy):
    assert repeats(mechanism, make_copy, lambda each: each.release(0)) == 0


@pytest.mark.parametrize("make_copy", COPIES, ids=["copy", "deepcopy", "pickle"])
@pytest.mark.parametrize(
    "sampler", [LaplaceSampler(Fraction(2**52)), GaussianSampler(Fraction(2**108))]
)
def test_case_05_samplers_hold_no_state_to_copy(sampler, make_copy):
    assert repeats(sampler, make_copy, lambda each: int(each.sample(1, SECURE)[0])) == 0


def test_case_05_the_source_is_shared_or_not_copied_at_all():
    assert repeats(SECURE, copy.copy, lambda each: each.draw(8).tobytes()) == 0
    for make_copy in COPIES[1:]:
        with pytest.raises(TypeError):
            make_copy(SECURE)


def test_case_05_copies_of_an_ordinary_generator_would_be_seen():
    def draw(each):
        return int(each.integers(2**62))

    assert repeats(np.random.default_rng(), copy.deepcopy, draw) == 200


def weak_randomness(text):
    """The lines that reach for `random` or `numpy.random`."""
    found = []
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Import():
                names = [alias.name for alias in node.names]
            case ast.ImportFrom(module=str(module), level=0):
                names = [module, *(f"{module}.{alias.name}" for alias in node.names)]
            case ast.Attribute(value=ast.Name(id="np" | "numpy"), attr="random"):
                names = ["numpy.random"]
            case _:
                continue
        if any(name.split(".")[0] == "random" or name.startswith("numpy.random") for name in names):
            found.append(node.lineno)
    return found


def test_case_06_release_paths_import_no_ordinary_generator():
    assert len(RELEASE_PATHS) > 40
    found = {str(path): weak_randomness(path.read_text()) for path in RELEASE_PATHS}
    assert not {path: lines for path, lines in found.items() if lines}


@pytest.mark.parametrize(
    "planted",
    [
        "import random",
        "from random import gauss",
        "import numpy.random as nr",
        "from numpy import random",
        "from numpy.random import default_rng",
        "import numpy as np\nnp.random.laplace()",
    ],
)
def test_case_06_every_way_to_import_one_is_seen(planted):
    assert weak_randomness(planted)
