"""Interrupted runs: nothing is bought twice, nothing is forged, nothing more is drawn."""

import json
import subprocess
import sys
import traceback
from fractions import Fraction

import numpy as np
import pytest

import deniable as dp
from amounts import epsilon, rho
from deniable.synthesis.data import CodedRows
from deniable.synthesis.journal import Journal, alone
from deniable.synthesis.measure import Draws
from synthesis.doors import KEY, related
from synthesis.test_methods import METHODS, ON_SMALL, SIZES, SMALL
from synthesis.test_synthesize import session, small

ROWS = related(400, SIZES)


class StoppedError(Exception):
    pass


class Crashes(Journal):
    """A journal that loses the n-th draw: it was charged, and never came to the disk."""

    def __init__(self, path, lost):
        super().__init__(path)
        self._lost = lost

    def append(self, entry):
        if len(self.entries) == self._lost:
            raise StoppedError
        super().append(entry)


@pytest.mark.parametrize("pure", [False, True])
@pytest.mark.parametrize("name", [*METHODS, *ON_SMALL])
def test_every_method_goes_on_after_losing_draws_and_fits_its_price(name, pure, tmp_path):
    method = {**METHODS, **ON_SMALL}[name]
    sizes = SMALL if name in ON_SMALL else SIZES
    data, path = CodedRows(ROWS[:, : len(sizes)] % 2, sizes), tmp_path / "journal"
    with dp.Ledger(key=KEY) as ledger:
        budget = dp.Budget(dp.PureDP(2) if pure else dp.ZCDP(2))
        ledger.open("people", budget, who="owner")
        gate = dp.Gate(ledger, "people", "owner")
        amount = epsilon(1) if pure else rho(1)
        number = gate.open(amount.loss, purpose="a test", resumable=True).number

        def again(journal):
            return Draws(gate.resume(number), data, amount, journal=journal)

        for lost in (0, 0) if name == "smalldb" else (1, 2):  # which has one large draw to lose
            with pytest.raises(StoppedError):
                method.run(again(Crashes(path, lost)))
        last = again(Journal(path))
        model = method.run(last)
        assert last.left < Fraction(1, 10**6)
        totals = ledger.balance("people").totals[0]
        assert (totals.epsilon if pure else totals.rho) == 10**18
        other = method.run(Draws(None, data, amount, journal=Journal(path)))
        columns = list(sizes)[:2]
        assert np.array_equal(other.marginal(columns), model.marginal(columns))


def stop(_):
    raise StoppedError


@pytest.fixture
def stopped(tmp_path):
    """A ledger and a journal of a run that was interrupted."""
    with dp.Ledger(key=KEY) as ledger:
        path = tmp_path / "run.journal"
        with session(ledger=ledger) as each, pytest.raises(StoppedError):
            small(each, journal=path, progress=stop)
        yield ledger, path


def forged(lines, place, **changed):
    entry = json.loads(lines[place]) | changed
    return [*lines[:place], json.dumps(entry), *lines[place + 1 :]]


@pytest.mark.parametrize(
    "change",
    [
        lambda lines: forged(lines, 1, values=[0, 0, 0]),
        lambda lines: forged(lines, 1, price="1/1000000"),
        lambda lines: forged(lines, 1, share="1/1000000"),
        lambda lines: [lines[0], lines[2], lines[1], *lines[3:]],
        lambda lines: [lines[0], *lines[2:]],
        lambda lines: [*lines, lines[-1]],
    ],
)
def test_a_journal_that_was_changed_is_refused(stopped, change):
    ledger, path = stopped
    path.write_text("\n".join(change(path.read_text().splitlines())) + "\n")
    with session(ledger=ledger) as each, pytest.raises(dp.ParameterError, match="was changed"):
        small(each, journal=path)
    assert ledger.balance("clinic/patient").releases == 1


def test_a_journal_of_another_ledger_is_refused(stopped):
    _, path = stopped
    with dp.Ledger(key=KEY) as other, session(ledger=other) as each:
        with pytest.raises(StoppedError):
            small(each, journal=path.with_name("second"), progress=stop)
        with pytest.raises(dp.ParameterError, match="another ledger"):
            small(each, journal=path)


@pytest.mark.parametrize(
    "error",
    [
        dp.ParameterError("row", "zq7319qz", "is private"),
        dp.EngineError("zq7319qz"),
        OSError("zq7319qz"),
        ValueError("zq7319qz"),
    ],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("resumed", [False, True])
def test_what_fails_after_the_charge_says_nothing_also_where_a_run_goes_on(
    stopped, monkeypatch, error, resumed
):
    ledger, path = stopped

    def fails(*_):
        raise error

    monkeypatch.setattr(Draws, "close", fails)
    journal = path if resumed else None
    with session(ledger=ledger) as each, pytest.raises(dp.ReleaseFailedError) as told:
        small(each, journal=journal)
    assert "after it was charged" in str(told.value)
    assert "zq7319qz" not in "".join(traceback.format_exception(told.value))


def test_a_journal_of_a_run_that_ended_gives_its_answer_for_nothing(stopped):
    ledger, path = stopped
    with session(ledger=ledger) as each:
        first = small(each, journal=path)
        before = ledger.balance("clinic/patient").totals
        again = small(each, journal=path)
        without = small(each)
        assert ledger.balance("clinic/patient").totals == before
    for other in (again, without):
        assert np.array_equal(first.marginal(["ward"]).values, other.marginal(["ward"]).values)


def test_a_run_that_found_values_first_goes_on_too(tmp_path):
    path = tmp_path / "run.journal"
    more = {"discover": ["ward"], "max_rows": None}
    with dp.Ledger(key=KEY) as ledger:
        declared = {"keys": {"sex": ["F", "M"]}, "max_rows": None, "max_groups": 1}
        with session(ledger=ledger, **declared) as each, pytest.raises(StoppedError):
            small(each, epsilon=8, journal=path, progress=stop, **more)
        before = ledger.balance("clinic/patient").totals
        with session(ledger=ledger, **declared) as each:
            table = small(each, epsilon=8, journal=path, **more)
        assert ledger.balance("clinic/patient").totals == before
        assert [what for what, _ in table.receipt] == [
            "values of ward",
            "rows of a unit",
            "marginals",
        ]


def test_what_is_no_journal_is_refused_and_left_alone(tmp_path):
    for text in ("no journal\n", '{"draw": []}\n', "[1]\n{", "a diary without an end"):
        path = tmp_path / "file"
        path.write_text(text)
        with pytest.raises(dp.ParameterError, match="no journal"):
            Journal(path)
        assert path.read_text() == text


WRITER = """
import sys
import traceback
import pyarrow as pa
import deniable as dp
ledger, journal = sys.argv[1:]
table = dp.PrivateTable(
    pa.table({"who": list(range(60)), "ward": ["A", "B"] * 30, "sex": ["F", "M", "F"] * 20}),
    unit="who", population="people", keys={"ward": ["A", "B"], "sex": ["F", "M"]}, max_rows=1,
)
own = dp.Ledger(ledger, key=bytes(32))
with dp.Session({"t": table}, budget=dp.ApproxDP(50, 1e-6), ledger=own) as made:
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        dp.synthesize(made, "t", epsilon=1, method="mst", journal=journal)
    except dp.ParameterError as error:
        print("refused" if "in use by another run" in str(error) else error)
    else:
        print("made")
"""


def test_one_run_at_a_time_writes_a_journal(tmp_path):
    """Real processes, begun at once on one file: what is left of it is a journal."""
    ledger, path = tmp_path / "ledger.db", tmp_path / "run.journal"
    arguments = [sys.executable, "-c", WRITER, str(ledger), str(path)]
    pipe = subprocess.PIPE
    running = [
        subprocess.Popen(arguments, stdin=pipe, stdout=pipe, text=True, stderr=subprocess.STDOUT)
        for _ in range(3)
    ]
    for each in running:
        assert each.stdout.readline() == "ready\n"
    for each in running:  # all wait at the same line
        each.stdin.write("go\n")
        each.stdin.flush()
    said = [each.communicate(timeout=120)[0].strip() for each in running]
    assert set(said) <= {"made", "refused"}
    assert "made" in said
    assert len(Journal(path).entries) > 2
    again = subprocess.run(arguments, input="go\n", capture_output=True, text=True, check=True)
    assert again.stdout.split() == ["ready", "made"]


def test_a_journal_in_use_is_refused_and_costs_nothing(tmp_path):
    path = tmp_path / "run.journal"
    with session() as opened, alone(path):
        with pytest.raises(dp.ParameterError, match="in use by another run"):
            small(opened, journal=path)
        assert opened.parts.ledger.balance("clinic/patient").releases == 0
    with session() as opened:
        small(opened, journal=path)


def test_a_run_that_was_killed_leaves_its_journal_free(tmp_path):
    path = tmp_path / "run.journal"
    text = (
        "import sys, time\nfrom deniable.synthesis.journal import alone\n"
        "with alone(sys.argv[1]):\n    print('held', flush=True)\n    time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", text, str(path)], stdout=subprocess.PIPE) as one:
        assert one.stdout.readline() == b"held\n"
        with pytest.raises(dp.ParameterError, match="in use"), alone(path):
            pass
        one.kill()
    with alone(path):
        pass
