"""An interrupt inside a release takes no exact number along, wherever it comes."""

import linecache
import random
import signal
import sys
import traceback
import types

import numpy as np
import pyarrow as pa
import pytest

import deniable as dp

ROWS = 104_729  # a prime: whole numbers that it divides are exact counts and sums
PEOPLE = "clinic/patient"
KEY = bytes(32)
STOPS = 60


def exact(value, depth=0):
    """Whether an exact number is in it."""
    if depth > 5 or isinstance(value, bool | str | bytes | type(None)):
        return False
    if isinstance(value, np.ndarray):
        value = value.ravel()[:50].tolist()
    if isinstance(value, int | float | np.number):
        whole = abs(value) < 1e18 and value == int(value)
        return bool(whole and value and int(value) % ROWS == 0)
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple | set):
        return any(exact(each, depth + 1) for each in list(value)[:100])
    if getattr(value, "__closure__", None):
        filled = (cell for cell in value.__closure__ if cell != types.CellType())
        return any(exact(cell.cell_contents, depth + 1) for cell in filled)
    if type(value).__module__.startswith("deniable"):
        return exact(dict(getattr(value, "__dict__", {})), depth + 1)
    return False


def shown(error):
    """Which local variables of its frames, and of errors behind it, hold an exact number."""
    found, chain, met = [], [error], set()
    for each in chain:
        if id(each) in met:
            continue
        met.add(id(each))
        chain += [one for one in (each.__cause__, each.__context__) if one is not None]
        for frame, _ in traceback.walk_tb(each.__traceback__):
            if frame.f_code.co_name not in ("interrupted", "__call__"):
                found += [(frame.f_code.co_qualname, n) for n, v in frame.f_locals.items()
                          if exact(v)]  # fmt: skip
    return found


class Stop(BaseException):
    """Neither an Exception nor an interrupt."""


class Interrupts:
    """Raise at the so many-th line that the library runs, from the first draw on."""

    def __init__(self, at, kind):
        self.at, self.kind = at, kind
        self.lines, self.draws = 0, False

    def __call__(self, frame, event, _):
        if event == "call":
            name = frame.f_code.co_qualname
            self.draws = self.draws or name in ("Door.draw", "Door.ask", "ArrayReader.draw")
            return self if "deniable" in frame.f_code.co_filename else None
        line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
        # Between a lock and its block Python itself takes no interrupts.
        if event == "line" and self.draws and not line.startswith("with "):
            self.lines += 1
            if self.lines == self.at:
                raise self.kind
        return self


def interrupted(work, at, kind=KeyboardInterrupt):
    """What a run raises that is interrupted there; and how many lines it ran."""
    tracer = Interrupts(at, kind)
    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        work()
    except BaseException as error:
        return error, tracer.lines
    finally:
        sys.settrace(before)
    return None, tracer.lines


@pytest.fixture(scope="module")
def session():
    rows = {"who": np.arange(ROWS), "cost": np.ones(ROWS), "ill": np.ones(ROWS, np.bool_)}
    table = dp.PrivateTable(
        pa.table(rows),
        unit="who",
        population=PEOPLE,
        bounds={"cost": (0, 2)},
        keys={"ill": [True, False]},
        max_rows=1,
    )
    ledger = dp.Ledger(key=KEY)
    with dp.Session({"t": table}, budget=dp.ApproxDP(10**6, 1e-6), ledger=ledger) as made:
        yield made


BUDGET = dp.ApproxDP(1, 1e-7)
NUMBERS = iter(range(1, 10**6))


def released(session):
    noise = dp.Geometric(epsilon=1, sensitivity=1)
    dp.Gate(session.parts.ledger, PEOPLE, "a").release(noise, lambda: 7 * ROWS, purpose="x")


def drawn(session):
    noise = dp.Gaussian(rho=0.1, sensitivity=1)
    with dp.Gate(session.parts.ledger, PEOPLE, "a").open(noise.loss, purpose="x") as door:
        door.close(door.draw(noise, lambda: np.full(3, 3.0 * ROWS)))


def asked(session):
    session.sql(f"SELECT COUNT(*) AS n, SUM(cost) AS s{next(NUMBERS)} FROM t", epsilon=1)


def grouped(session):
    text = f"SELECT ill, COUNT(*) AS n, COUNT(DISTINCT who) AS d{next(NUMBERS)} FROM t GROUP BY ill"
    session.sql(text, epsilon=1)


def fitted(session):
    # What was fitted before is free, and draws nothing: bounds that differ in the last digits.
    model = dp.learning.StandardScaler(
        guarantee=BUDGET, bounds=([0.0], [2.0 + next(NUMBERS) * 1e-9])
    )
    dp.fit(session, model, "t", x=["cost"])


def learned(_):
    model = dp.learning.StandardScaler(guarantee=BUDGET, bounds=([0.0], [2.0]))
    model.fit(np.ones((ROWS, 1)))


WAYS = [released, drawn, asked, grouped, fitted, learned]


KINDS = [KeyboardInterrupt, SystemExit, GeneratorExit, Stop]


@pytest.mark.parametrize(
    ("work", "kind"),
    [*((released, kind) for kind in KINDS), *((work, KeyboardInterrupt) for work in WAYS[1:])],
)
def test_no_frame_of_an_interrupt_holds_an_exact_number(session, work, kind):
    chance = random.Random(f"{work.__name__} {kind.__name__}")
    work(session)
    _, lines = interrupted(lambda: work(session), -1)
    met = 0
    # Half of the stops soon after the first draw began, where few lines hold all that is exact.
    for at in [
        *chance.sample(range(1, min(lines, 300)), 10),
        *chance.choices(range(1, lines), k=5),
    ]:
        error, _ = interrupted(lambda: work(session), at, kind)
        if error is not None:  # else it had ended before
            met += 1
            assert isinstance(error, kind)
            assert shown(error) == []
    assert met > 5


class Again:
    """Raise at the so many-th line of the cleaning of an error."""

    def __init__(self, at):
        self.left = at

    def __call__(self, frame, event, _):
        if event == "call":
            cleaning = frame.f_code.co_name in ("_told", "without_frames", "clear_frames")
            return self if cleaning else None
        self.left -= event == "line"
        if self.left == 0:
            self.left = -1
            raise KeyboardInterrupt
        return self


@pytest.mark.parametrize("lines", range(1, 20))
def test_a_second_interrupt_finds_nothing_either(session, lines):
    """The second comes while the frames of the first are being cleaned."""

    def read():
        count = 7 * ROWS
        raise KeyboardInterrupt(str(type(count)))

    noise, before = dp.Geometric(epsilon=1, sensitivity=1), sys.gettrace()
    door = dp.Gate(session.parts.ledger, PEOPLE, "a").open(noise.loss, purpose="x")
    sys.settrace(Again(lines))
    try:
        door.draw(noise, read)
    except KeyboardInterrupt as caught:
        error = caught
    finally:
        sys.settrace(before)
    assert shown(error) == []


def test_the_search_sees_what_is_there():
    """A release without a shield: its frames hold the count."""

    def bare():
        count = 7 * ROWS
        raise KeyboardInterrupt(str(type(count)))

    error, _ = interrupted(bare, -1)
    assert shown(error) == [("test_the_search_sees_what_is_there.<locals>.bare", "count")]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # it came to a del
def test_a_signal_is_an_interrupt_too(session):
    """Real signals at random times, in the midst of an engine's work and of drawing."""

    def beep(_number, _frame):
        raise KeyboardInterrupt

    before, chance, met = signal.signal(signal.SIGALRM, beep), random.Random(3), 0
    try:
        for _ in range(STOPS):
            error = None
            signal.setitimer(signal.ITIMER_REAL, chance.uniform(0.001, 0.06))
            try:
                grouped(session)
            except (KeyboardInterrupt, dp.ReleaseFailedError) as caught:  # in the midst of C
                error = caught
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            if error is not None:
                met += 1
                assert shown(error) == []
    finally:
        signal.signal(signal.SIGALRM, before)
    assert met > 5
