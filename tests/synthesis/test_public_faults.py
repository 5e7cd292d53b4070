"""What a caller gets wrong is refused before anything is spent, or just works."""

import math
import threading

import numpy as np
import pandas as pd
import pytest

import deniable as dp
from deniable.synthesis.columns import Coding
from deniable.tables import ColumnType
from synthesis.doors import KEY, opened, related
from synthesis.test_synthesize import session

FEW = ["ward", "urgent"]


@pytest.fixture(scope="module")
def own():
    with session() as each:
        yield each


def made(own, **said):
    told = {"epsilon": 1, "method": "independent", "columns": FEW}
    return dp.synthesize(own, "visits", **{**told, **said})


@pytest.mark.parametrize(
    "said",
    [
        {"method": "mst", "max_rows": 10**17},
        {"workload": 2.5},
        {"workload": "ward"},
        {"workload": [1]},
        {"columns": ["age"], "bins": {"age": 0}},
        {"journal": "/proc/no/such/journal"},
    ],
    ids=str,
)
def test_it_is_refused_for_nothing(own, said):
    before = own.spent
    with pytest.raises(dp.ParameterError):
        made(own, **said)
    assert own.spent == before


def test_a_desk_with_more_updates_than_noise_allows_is_refused_for_nothing(own):
    before = own.spent
    with pytest.raises(dp.ParameterError):
        dp.synthesis.answer_online(own, "visits", epsilon=1, queries=9, columns=FEW, updates=10**17)
    assert own.spent == before


def test_it_works(own):
    table = made(own, columns=["ward", "WARD", "urgent"], progress=None, workload=np.int64(2))
    assert [each.name for each in table.codings] == FEW
    assert table.condition(ward="A").sample(0).num_rows == 0
    with pytest.raises(dp.ParameterError, match="one value"):
        table.answer({"ward": []})


def test_numbers_that_are_none_have_the_code_of_missing():
    edges = tuple(np.array([0.0, 1.0, 2.0]))
    coding = Coding("x", ColumnType.NUMBER, edges=edges, missing=True)
    assert coding.code(float("nan")) == coding.code(np.float64("inf")) == coding.code(None) == 2
    with pytest.raises(dp.ParameterError, match="domain"):
        Coding("x", ColumnType.NUMBER, edges=edges).code(float("nan"))


@pytest.mark.parametrize("columns", [17, 60])
def test_a_workload_with_too_much_inside_is_refused_before_it_is_charged(columns):
    domain = dp.synthesis.Domain({f"c{n}": 2 for n in range(columns)})
    wanted = dp.synthesis.Workload(domain, [domain.columns])
    with pytest.raises(dp.ParameterError, match="smaller"):
        dp.synthesis.AIM(workload=wanted).check(domain)


SIZES = {"a": 3, "b": 4}
DOMAIN = dp.synthesis.Domain(SIZES)


def test_an_interrupt_before_the_count_leaves_a_desk_that_answers(monkeypatch):
    with dp.Ledger(key=KEY) as ledger:
        draws = opened(related(30_000, SIZES), SIZES, ledger=ledger, rho=5)
        desk = dp.synthesis.PrivateMultiplicativeWeights(draws, queries=10, updates=3)

        def interrupt(*_):
            raise KeyboardInterrupt

        query = dp.synthesis.Counting(DOMAIN, {"a": 0, "b": 0})
        with monkeypatch.context() as patched:
            patched.setattr(draws, "count", interrupt)
            with pytest.raises(KeyboardInterrupt):
                desk.answer(query)
        assert desk.answer(query).measured
        assert desk.updates_left == 1
        assert draws.spent <= draws.whole


def test_a_desk_serves_threads_one_after_another(own):
    found, failed = [], []
    with dp.synthesis.answer_online(
        own, "visits", epsilon=2, queries=99, columns=FEW, updates=4
    ) as desk:

        def ask_many():
            for ward in "ABC":
                for urgent in (False, True):
                    try:
                        found.append(desk.answer({"ward": ward, "urgent": urgent}))
                    except dp.DeniableError as error:
                        failed.append(error)

        threads = [threading.Thread(target=ask_many) for _ in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    assert len(found) == 24
    assert not failed


@pytest.mark.parametrize("held", [list, tuple, pd.DataFrame], ids=lambda held: held.__name__)
@pytest.mark.parametrize(
    "cell", [None, math.nan, 0.5, 1.0, 2**63, 2**64, "a", 1j, 10**400, -1, pd.NA, [1]], ids=repr
)
def test_a_cell_that_is_no_code_moves_its_own_row_alone(held, cell):
    """The type of all cells would follow from it."""
    others = [[0, 1], [1, 0], [1, 1]]
    usual = dp.synthesis.CodedRows(held(others), {"a": 2, "b": 2})
    more = dp.synthesis.CodedRows(held([*others, [0, cell]]), {"a": 2, "b": 2})
    moved = more.exact(("a", "b")) - usual.exact(("a", "b"))
    assert moved.tolist() == [[0, int(isinstance(cell, float) and cell == 1)], [0, 0]]
