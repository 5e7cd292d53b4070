"""Must-hold cases 31 to 36: what is spent is spent, once, exactly, whatever the data say."""

import copy
import math
import pickle
import shutil
import threading
from decimal import Decimal
from fractions import Fraction

import pytest

import deniable as dp
from clinic import CLINIC, reserve
from deniable.auditing.replay.replays import replay
from deniable.ledger.filters import Totals, charge
from deniable.ledger.verify import verify
from ledger.test_processes import one_death

KEY = bytes(range(32))
COUNT = dp.Geometric(epsilon=0.1, sensitivity=1)


def opened(where=None, budget=1):
    ledger = dp.Ledger(where, key=KEY)
    ledger.open(CLINIC, dp.Budget(dp.PureDP(budget)), who="owner")
    return ledger


@pytest.fixture(params=["memory", "file"])
def ledger(request, tmp_path):
    with opened(None if request.param == "memory" else tmp_path / "ledger.db") as made:
        yield made


def spent(ledger):
    """Exactly, in units of 1e-18."""
    return ledger.balance(CLINIC).totals[0]


def attempt(ledger, mechanism, read):
    try:
        dp.Gate(ledger, CLINIC, "ana").release(mechanism, read, purpose="test")
    except (dp.DeniableError, TypeError) as error:
        return type(error)
    return None


@pytest.mark.parametrize(
    "read",
    [
        lambda: 5,
        lambda: 1 / 0,
        lambda: math.nan,
        lambda: "Miller",
        lambda: [],
        lambda: {}["Miller"],
        lambda: 10**400,
    ],
)
def test_case_31_what_fails_after_reading_costs_as_much_as_what_does_not(ledger, read):
    attempt(ledger, COUNT, read)
    assert spent(ledger) == charge(COUNT.loss)
    assert ledger.balance(CLINIC).releases == 1
    verify(ledger, CLINIC)


@pytest.mark.parametrize(
    ("mechanism", "read"),
    [
        (dp.Geometric(epsilon=1.1, sensitivity=1), lambda: 5),
        (dp.Geometric(epsilon=0.1, sensitivity=1, relation="replace"), lambda: 5),
        (dp.DiscreteGaussian(sigma=10, sensitivity=1), lambda: 5),
        ("laplace", lambda: 5),
        (COUNT, 5),
    ],
)
def test_case_31_what_fails_before_reading_costs_nothing(ledger, mechanism, read):
    def seen():
        raise AssertionError("data were read")

    before = ledger.balance(CLINIC)
    assert attempt(ledger, mechanism, seen if callable(read) else read) is not None
    assert ledger.balance(CLINIC) == before


def test_case_32_ten_tenths_fit_one_and_the_eleventh_does_not(ledger):
    for _ in range(10):
        reserve(ledger, CLINIC)
    with pytest.raises(dp.BudgetError, match="nothing was spent"):
        reserve(ledger, CLINIC)
    assert ledger.balance(CLINIC).remaining == {"epsilon": 0}
    assert sum([0.1] * 10) != 1


def test_case_32_a_million_millionths_are_exactly_one():
    budget = dp.Budget(dp.PureDP(1))
    millionth = budget.charge(dp.losses.PureLoss(bound=1e-6))
    total = Totals()
    for _ in range(10**6):
        total = total + millionth
    assert total.epsilon == 10**18
    assert budget.admits(total)
    assert not budget.admits(total + millionth)
    assert sum([1e-6] * 10**6) != 1


def test_case_32_a_million_millionths_reserved_at_once_leave_nothing(ledger):
    reserve(ledger, CLINIC, dp.repeat(dp.losses.PureLoss(bound=1e-6), 10**6))
    assert ledger.balance(CLINIC).remaining == {"epsilon": 0}
    with pytest.raises(dp.BudgetError):
        reserve(ledger, CLINIC, dp.losses.PureLoss(bound=1e-6))


TOO_LITTLE = [1e-400, Fraction(1, 10**400), Decimal("1e-400"), Fraction(1, 10**200)]


@pytest.mark.parametrize("epsilon", [0, -0.1, -1, math.nan, math.inf, -math.inf, *TOO_LITTLE])
def test_case_33_impossible_spends_are_refused_and_change_nothing(ledger, epsilon):
    before = ledger.balance(CLINIC)
    with pytest.raises(ValueError, match=r"bound|epsilon"):
        reserve(ledger, CLINIC, dp.losses.PureLoss(bound=epsilon))
    with pytest.raises(ValueError, match=r"epsilon|scale"):
        dp.Gate(ledger, CLINIC, "ana").release(
            dp.Geometric(epsilon=epsilon, sensitivity=1), lambda: 5, purpose="x"
        )
    with pytest.raises(TypeError):
        reserve(ledger, CLINIC, epsilon)
    assert ledger.balance(CLINIC) == before


def test_case_33_the_least_spend_is_rounded_up_not_away(ledger):
    reserve(ledger, CLINIC, dp.losses.PureLoss(bound=Fraction(1, 10**100)))
    assert spent(ledger).epsilon == 1


def test_case_33_a_loss_turned_negative_refills_nothing(ledger):
    loss = dp.losses.PureLoss(bound=0.1)
    object.__setattr__(loss, "bound", Fraction(-1))
    with pytest.raises(dp.DeniableError):
        reserve(ledger, CLINIC, loss)


def test_case_34_sixteen_threads_get_ten_tenths_of_one(ledger):
    together, won, refused = threading.Barrier(16), [], []

    def work():
        together.wait()
        try:
            won.append(dp.Gate(ledger, CLINIC, "ana").release(COUNT, lambda: 5, purpose="race"))
        except dp.BudgetError as error:
            refused.append(error)

    threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(won), len(refused)) == (10, 6)
    assert verify(ledger, CLINIC).reservations == 10
    assert ledger.balance(CLINIC).remaining == {"epsilon": 0}


def test_case_34_a_process_killed_between_spend_and_answer_has_spent(tmp_path, monkeypatch):
    """The child kills itself by SIGKILL after it has read; `one_death` compares what it said."""
    monkeypatch.setenv("DENIABLE_LEDGER_KEY", KEY.hex())
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "configuration"))
    where = str(tmp_path / "ledger.db")
    one_death(where, CLINIC, "between", rounds=2)
    with dp.Ledger(where) as ledger:  # two answers, one killed, and the one that goes on
        assert spent(ledger).epsilon == 3 * 10**15 + 10**16


COPIES = [copy.copy, copy.deepcopy, pickle.dumps]


@pytest.mark.parametrize("make_copy", COPIES)
def test_case_35_ledgers_and_doors_are_not_copied(ledger, make_copy):
    gate = dp.Gate(ledger, CLINIC, "ana")
    with pytest.raises(dp.LedgerError, match="not copied or pickled"):
        make_copy(ledger)
    with pytest.raises(dp.errors.DoorError, match="not copied or pickled"):
        make_copy(gate.open(COUNT.loss, purpose="x"))
    if make_copy is not copy.copy:
        with pytest.raises(dp.LedgerError):
            make_copy(gate)


def test_case_35_a_second_gate_draws_on_the_same_budget(ledger):
    gate = dp.Gate(ledger, CLINIC, "ana")
    third = dp.Geometric(epsilon=0.3, sensitivity=1)
    for each in (gate, copy.copy(gate), dp.Gate(ledger, CLINIC, "ben")):
        each.release(third, lambda: 5, purpose="x")
    with pytest.raises(dp.BudgetError):
        gate.release(third, lambda: 5, purpose="x")


def test_case_35_opening_again_restores_nothing(tmp_path):
    with opened(tmp_path / "ledger.db") as ledger:
        reserve(ledger, CLINIC)
    with opened(tmp_path / "ledger.db") as again:
        assert again.balance(CLINIC).remaining == {"epsilon": Fraction(9, 10)}
        with pytest.raises(dp.BudgetError, match="another budget"):
            again.open(CLINIC, dp.Budget(dp.PureDP(2)), who="owner")


def test_case_35_clearing_what_the_object_remembers_restores_nothing(ledger):
    reserve(ledger, CLINIC)
    ledger._watch._seen.clear()
    assert ledger.balance(CLINIC).remaining == {"epsilon": Fraction(9, 10)}


def test_case_35_an_emptied_store_is_noticed():
    with opened() as ledger:
        reserve(ledger, CLINIC)
        ledger.store._rows.clear()
        with pytest.raises(dp.errors.LedgerTamperedError, match="set back"):
            ledger.open(CLINIC, dp.Budget(dp.PureDP(1)), who="owner")


def test_case_35_an_older_copy_of_the_file_is_noticed(tmp_path):
    file, kept = tmp_path / "ledger.db", tmp_path / "kept.db"
    with opened(file) as ledger:
        reserve(ledger, CLINIC)
    shutil.copy(file, kept)
    with opened(file) as ledger:
        head = reserve(ledger, CLINIC).head
        kept.rename(file)
        with pytest.raises(dp.LedgerError):
            reserve(ledger, CLINIC)
    with dp.Ledger(file, key=KEY) as older, pytest.raises(dp.errors.LedgerTamperedError):
        verify(older, CLINIC, head=head)  # whoever kept the head sees it in any process


CELLS = ("a", "b")
MEDIAN = dp.Quantile(epsilon=0.1, share=0.5, bounds=(0, 10))
GROUPS = dp.Histogram(epsilon=0.1, cells=CELLS)
WHOLE = [COUNT, dp.Geometric(epsilon=0.1, sensitivity=10), MEDIAN, GROUPS]
Row = tuple[float | None, str]

ORDINARY: list[Row] = [(5.0, "a"), (2.0, "b"), (7.5, "a")]
ADDED: list[Row] = [
    *((value, "a") for value in (0.0, 10.0, -1e9, 1e9, 5.0, 5e-324, 1.7e308, -0.0)),
    *((value, "b") for value in (math.nan, math.inf, -math.inf, None)),
    *((5.0, group) for group in ("c", "", "a" * 1000, "β", "NULL")),
]
PAIRS = [
    *((ORDINARY, [*ORDINARY, row]) for row in ADDED),
    ([], [(5.0, "a")]),
    (ORDINARY[:1], []),
    ([(5.0, "a")] * 1000, [(5.0, "a")] * 999),
]


def clean(value):
    return 0 if value is None or math.isnan(value) else int(min(max(value, 0), 10))


def analysis(gate_and_data):
    """Four releases, the last of which is made only if the first one says so."""
    gate, data = gate_and_data
    count, total, median, groups = WHOLE
    people = gate.release(count, lambda: len(data), purpose="people")
    gate.release(total, lambda: sum(clean(v) for v, _ in data), purpose="sum", question={"q": 1})
    gate.release(median, lambda: [clean(v) for v, _ in data], purpose="median")
    if people.value > 3:
        gate.release(groups, lambda: {g: [x for _, x in data].count(g) for g in CELLS}, purpose="g")
    return gate.ledger.balance(CLINIC).totals


def with_a_price_of_the_data(gate_and_data):
    gate, data = gate_and_data
    epsilon = Fraction(1, 10 + len(data))
    return gate.release(dp.Geometric(epsilon=epsilon, sensitivity=1), lambda: 3, purpose="x").value


def with_a_release_that_the_data_decide_on(gate_and_data):
    gate, data = gate_and_data
    if len(data) % 2:
        gate.release(COUNT, lambda: len(data), purpose="x")
    return gate.ledger.balance(CLINIC).totals


def session(data, ledger):
    ledger.open(CLINIC, dp.Budget(dp.PureDP(1)), who="owner")
    return dp.Gate(ledger, CLINIC, "ana"), data


@pytest.mark.parametrize("pair", PAIRS, ids=range(len(PAIRS)))
def test_case_36_the_cost_does_not_depend_on_the_data(pair):
    found = replay(analysis, *pair, factory=session)
    assert found.ok, str(found)
    assert found.budget_equal
    for planted in (with_a_price_of_the_data, with_a_release_that_the_data_decide_on):
        assert not replay(planted, *pair, factory=session).budget_equal


def test_case_36_there_are_twenty_pairs():
    assert len(PAIRS) == 20


def test_case_36_failures_and_answers_cost_the_same():
    totals = []
    for data in ([1, 2, 3], [1, 2, None]):
        with opened() as ledger:
            attempt(ledger, COUNT, lambda data=data: sum(data))
            totals.append(ledger.balance(CLINIC).totals)
    assert totals[0] == totals[1] == (charge(COUNT.loss),)
