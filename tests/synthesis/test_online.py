"""Online answers about a table of a session."""

import numpy as np
import pytest

import deniable as dp
from deniable.ledger.amounts import read_amount
from synthesis.doors import KEY
from synthesis.test_synthesize import clinic, session

CALL = {"columns": ["ward", "sex", "age"], "bins": {"age": 5}, "queries": 200, "updates": 12}


def test_a_desk_answers_in_the_values_of_its_table_and_costs_its_price_once():
    source = clinic()
    ward, sex = (np.array(source[name].to_pylist()) for name in ("ward", "sex"))
    with dp.Ledger(key=KEY) as ledger, session(source, ledger=ledger) as opened:
        with dp.synthesis.answer_online(opened, "visits", epsilon=20, **CALL) as desk:
            for _ in range(5):
                for name in "ABC":
                    desk.answer({"ward": name, "sex": "F"})
            found = desk.answer({"ward": "A", "sex": ["F"]})
            both = desk.answer({"ward": ["A", "B"]})
            assert found.verified or desk.exhausted
            assert desk.updates_left < 12
        promised = read_amount(opened.parts.budget, epsilon=20).value
        assert desk.cost.rho == promised
        assert ledger.balance("clinic/patient").totals[0].rho == promised * 10**18
        with pytest.raises(dp.errors.DoorError):
            desk.answer({"ward": "A"})
    truth = int(((ward == "A") & (sex == "F")).sum())
    assert found.value == pytest.approx(truth, abs=400)
    assert both.value == pytest.approx(int((ward != "C").sum()), abs=700)


def test_questions_are_answered_beside_an_open_desk():
    with (
        session() as opened,
        dp.synthesis.answer_online(opened, "visits", epsilon=5, **CALL) as desk,
    ):
        desk.answer({"ward": "A"})
        answer = opened.sql("SELECT COUNT(*) AS n FROM visits", epsilon=1, max_rows=1)
        assert answer["n"][0] > 0
        assert desk.answer({"sex": "F", "ward": "B"}).value >= 0


def test_marginals_of_a_desk_are_those_of_the_table():
    with session() as opened:
        desk = dp.synthesis.answer_online(opened, "visits", epsilon=5, **CALL)
        counted = desk._draws._data
        with counted._run.snapshot() as snapshot:
            data = counted._run.data(snapshot)
            for clique in (("ward",), ("age", "ward"), ("sex", "age", "ward"), ()):
                assert (counted.exact(clique) == data.exact(clique)).all()
        desk.close()


def test_faults_are_told_before_anything_is_spent():
    with dp.Ledger(key=KEY) as ledger, session(ledger=ledger) as opened:
        for more, said in (
            ({"columns": ["planet"]}, "unknown"),
            ({"columns": ["ward", "cost"], "bins": {"cost": 1999}, "queries": 0}, "queries"),
            ({"updates": 0}, "updates"),
        ):
            with pytest.raises(dp.ParameterError, match=said):
                dp.synthesis.answer_online(
                    opened, "visits", epsilon=1, **{**CALL, "bins": {}, **more}
                )
        assert ledger.balance("clinic/patient").releases == 0


def test_conditions_outside_of_the_domain_are_refused_and_cost_nothing():
    with (
        session() as opened,
        dp.synthesis.answer_online(opened, "visits", epsilon=5, **CALL) as desk,
    ):
        for conditions in ({"ward": "Z"}, {"planet": 1}, {}, {"age": "old"}):
            with pytest.raises(dp.ParameterError):
                desk.answer(conditions)
        with pytest.raises(dp.errors.ParameterTypeError):
            desk.answer("ward")


def test_unknown_numbers_of_rows_are_bought():
    with dp.Ledger(key=KEY) as ledger, session(ledger=ledger, max_rows=None) as opened:
        with dp.synthesis.answer_online(opened, "visits", epsilon=20, **CALL) as desk:
            assert desk.answer({"ward": ["A", "B", "C"]}).value == pytest.approx(3000, abs=900)
        assert ledger.balance("clinic/patient").releases == 2
