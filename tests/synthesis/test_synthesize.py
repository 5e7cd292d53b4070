"""Synthetic tables of real ones: declared domains, units with many rows, answers, files."""

import math
from dataclasses import replace
from datetime import date

import numpy as np
import pyarrow as pa
import pytest

import deniable as dp
from deniable.ledger.amounts import read_amount
from deniable.ledger.entries import EntryKind
from deniable.privacy.price import GRID
from deniable.synthesis.columns import Coding
from deniable.synthesis.domain import Domain
from deniable.synthesis.model.dense import DenseModel
from deniable.tables import ColumnType
from synthesis.doors import KEY

EDGES = [date(2024, 1, 1), date(2024, 4, 1), date(2024, 7, 1), date(2025, 1, 1)]
BINS = {"age": 5, "seen": EDGES}


def clinic(count=3000, seed=0):
    rng = np.random.default_rng(seed)
    ward = rng.choice(["A", "B", "C"], count, p=[0.5, 0.3, 0.2])
    female = rng.random(count) < np.where(ward == "A", 0.8, 0.3)
    age = np.clip(rng.normal(45, 15, count) + 15 * female, 0, 99).astype(int)
    cost = np.where(rng.random(count) < 0.2, None, rng.uniform(0, 1000, count))
    days = [date(2024, 1, 1).toordinal() + int(d) for d in rng.integers(0, 366, count)]
    return pa.table(
        {
            "patient": np.arange(count) // 2,
            "ward": ward,
            "sex": np.where(female, "F", "M"),
            "age": age,
            "cost": pa.array(cost.tolist(), pa.float64()),
            "seen": [date.fromordinal(day) for day in days],
            "urgent": rng.random(count) < 0.25,
        }
    )


def private(source, **changed):
    declared = {
        "unit": "patient",
        "population": "clinic/patient",
        "bounds": {"age": (0, 99), "cost": (0, 1000)},
        "keys": {"ward": ["A", "B", "C"], "sex": ["F", "M"]},
        "max_rows": 2,
    }
    return dp.PrivateTable(source, **{**declared, **changed})


def session(source=None, ledger=None, budget=None, **changed):
    source = clinic() if source is None else source
    return dp.Session(
        {"visits": private(source, **changed)},
        budget=dp.ApproxDP(50, 1e-6) if budget is None else budget,
        ledger=dp.Ledger(key=KEY) if ledger is None else ledger,
    )


def made(opened, method="mst", epsilon=4, **more):
    return dp.synthesize(
        opened, "visits", epsilon=epsilon, method=method, bins=BINS, missing=["cost"], **more
    )


def small(opened, method="mst", epsilon=4, **more):
    """Three columns: few marginals, and so fast."""
    call = {"columns": ["ward", "sex", "age"], "bins": {}} | more
    if "age" in call["columns"]:
        call["bins"] = {"age": 5}
    return dp.synthesize(opened, "visits", epsilon=epsilon, method=method, **call)


@pytest.fixture(scope="module")
def table():
    with session() as opened:
        yield made(opened)


def test_values_are_those_that_were_declared(table):
    rows = table.sample(2000)
    assert rows.schema.names == ["ward", "sex", "age", "cost", "seen", "urgent"]
    assert set(rows["ward"].to_pylist()) <= {"A", "B", "C"}
    assert all(0 <= age <= 99 for age in rows["age"].to_pylist())
    costs = rows["cost"].to_pylist()
    assert all(0 <= cost <= 1000 for cost in costs if cost is not None)
    assert 0.1 < sum(cost is None for cost in costs) / 2000 < 0.3
    assert all(EDGES[0] <= day < EDGES[-1] for day in rows["seen"].to_pylist())
    for name in ("ward", "sex", "age", "seen", "urgent"):
        assert rows[name].null_count == 0


def test_relations_between_columns_are_kept(table):
    found = table.answer({"ward": "A", "sex": "F"}).values / table.answer({"ward": "A"}).values
    assert 0.7 < found < 0.9


def test_the_number_of_rows_is_an_estimate(table):
    assert table.rows != 3000 or not float(table.model.total).is_integer()
    assert abs(table.rows - 3000) < 200
    assert table.sample().num_rows == table.rows


def test_answers_have_error_bars_where_a_measurement_tells_them(table):
    ward = table.answer({"ward": "A"})
    assert abs(float(ward.values) - 1500) < 6 * ward.deviation + 100
    two = table.answer({"ward": ["A", "B"]})
    least = min(float(np.max(each.deviation)) for each in table.measurements)
    assert ward.deviation >= least
    assert two.deviation >= math.sqrt(2) * least
    everything = table.marginal(["ward", "sex", "age", "cost", "urgent"])
    assert everything.deviation is None
    assert math.isnan(everything.half_width)


def test_conditions_hold_in_every_row(table):
    rows = table.condition(sex="F", ward="B").sample(300)
    assert set(rows["sex"].to_pylist()) == {"F"}
    assert set(rows["ward"].to_pylist()) == {"B"}
    only = table.condition(sex="F")
    assert math.isclose(
        float(only.marginal(["ward"]).values.sum()), float(table.answer({"sex": "F"}).values)
    )
    assert float(only.answer({"sex": "M"}).values) == 0


@pytest.mark.parametrize("given", [{"sex": "X"}, {"age": "old"}, {"planet": 1}, {}, {"age": None}])
def test_conditions_outside_of_the_domain_are_refused(table, given):
    with pytest.raises(dp.ParameterError):
        table.condition(**given)


def test_a_table_comes_back_from_its_file(table, tmp_path):
    again = dp.synthesis.SyntheticTable.load(table.save(tmp_path / "clinic.synthetic"))
    assert again.codings == table.codings
    assert again.cost == table.cost
    assert again.receipt == table.receipt
    for columns in (["ward", "age"], ["cost"], ["sex", "urgent", "seen"]):
        assert np.array_equal(again.marginal(columns).values, table.marginal(columns).values)
        assert again.marginal(columns).deviation == table.marginal(columns).deviation
    assert again.sample(5).schema == table.sample(5).schema
    (tmp_path / "other").write_bytes(b"something else")
    about = np.frombuffer(b'{"format": 1, "codings": [1]}', dtype=np.uint8)
    np.savez(tmp_path / "hollow.npz", about=about)
    np.savez(tmp_path / "list.npz", about=np.frombuffer(b"[1]", dtype=np.uint8))
    for name in ("other", "hollow.npz", "list.npz", "nowhere", "."):
        with pytest.raises(dp.ParameterError, match="no synthetic table"):
            dp.synthesis.SyntheticTable.load(tmp_path / name)


def test_the_report_tells_fit_noise_and_where_independence_would_do(table):
    page = table.report()
    for part in ("Public evaluation", "Private evaluation", "plain independence", "<svg", "ρ = "):
        assert part in page
    assert "<script" not in page
    assert "12.30 %" in table.report({1: 0.123})
    assert "12.30 %" not in page


def test_to_pandas(table):
    frame = table.to_pandas(10)
    assert next(iter(frame.columns)) == "ward"
    assert len(frame) == 10


@pytest.mark.parametrize("method", ["aim", "mst", "mwem", "independent", "fixed"])
def test_the_price_is_that_of_a_question_and_charged_once(method):
    with dp.Ledger(key=KEY) as ledger, session(ledger=ledger) as opened:
        call = {"epsilon": 1, "method": method, "columns": ["ward", "sex", "urgent"]}
        if method == "fixed":
            call["workload"] = [["ward", "sex"], ["urgent"]]
        first = dp.synthesize(opened, "visits", **call)
        asked = opened.sql("SELECT COUNT(*) AS n FROM visits", epsilon=1)
        assert 0 <= first.cost.rho - asked.cost.rho <= 128 * GRID  # questions round each part up
        before = ledger.balance("clinic/patient").totals
        again = dp.synthesize(opened, "visits", **call)
        assert ledger.balance("clinic/patient").totals == before
        assert np.array_equal(
            first.marginal(["ward", "sex"]).values, again.marginal(["ward", "sex"]).values
        )
        charged = sum(row.kind == EntryKind.RESERVE for row in ledger.history("clinic/patient"))
        assert charged == 2
        assert before[0].rho == (first.cost.rho + asked.cost.rho) * 10**18


def test_a_pure_budget_gets_a_pure_synthesis():
    with dp.Ledger(key=KEY) as ledger, session(ledger=ledger, budget=dp.PureDP(10)) as opened:
        table = small(opened, epsilon=5)
        assert table.cost.epsilon == 5
        assert ledger.balance("clinic/patient").totals[0].epsilon == 5 * 10**18


def test_a_unit_with_many_rows_counts_as_its_bound():
    light = clinic(400)
    heavy = light.slice(0, 1).to_pylist()[0] | {"patient": 10**6, "ward": "C"}
    many = pa.Table.from_pylist([heavy] * 5000, schema=light.schema)
    with session(pa.concat_tables([light, many]), max_rows=2) as opened:
        table = small(opened, epsilon=20)
        assert abs(table.rows - 402) < 40


def test_rows_outside_of_the_domain_are_counted_nowhere():
    odd = pa.Table.from_pylist(
        [{**row, "ward": "nobody declared this"} for row in clinic(500).to_pylist()],
        schema=clinic(1).schema,
    )
    with session(pa.concat_tables([clinic(400), odd])) as opened:
        assert abs(small(opened, epsilon=20).rows - 400) < 40


def test_values_are_discovered_for_a_part_of_the_price_on_one_receipt():
    with dp.Ledger(key=KEY) as ledger, session(ledger=ledger, keys={}, max_groups=2) as opened:
        table = small(opened, epsilon=6, discover=["ward", "sex"])
        assert [what for what, _ in table.receipt] == [
            "values of ward",
            "values of sex",
            "marginals",
        ]
        assert set(table.sample(200)["ward"].to_pylist()) <= {"A", "B", "C"}
        charged = ledger.balance("clinic/patient").totals[0].rho
        assert 0 <= charged - table.cost.rho * 10**18 <= 4  # each draw is rounded up


@pytest.mark.parametrize(
    ("changed", "more", "said"),
    [
        ({"keys": {}}, {}, "not public"),
        ({"bounds": {}}, {}, "no declared bounds"),
        ({}, {"method": "magic"}, "one of aim"),
        ({}, {"columns": ["ward", "patient"]}, "whose row it is"),
        ({}, {"columns": ["planet"]}, "unknown"),
        ({}, {"workload": [["ward", "planet"]]}, "unknown"),
        ({}, {"keys": {"ward": [f"w{i}" for i in range(5000)]}}, "group its values"),
        ({"size": 300}, {"epsilon": 0.001}, "Nothing was spent"),
        ({}, {"method": "fixed", "max_megabytes": 0.001}, "MB"),
    ],
)
def test_public_faults_are_refused_before_anything_is_spent(changed, more, said):
    with dp.Ledger(key=KEY) as ledger, session(ledger=ledger, **changed) as opened:
        call = {"epsilon": 1, "bins": BINS, "missing": ["cost"]} | more
        if "columns" in more:
            call |= {"bins": {}, "missing": []}
        with pytest.raises(dp.ParameterError, match=said):
            dp.synthesize(opened, "visits", **call)
        assert ledger.balance("clinic/patient").releases == 0


def test_a_public_table_is_not_synthesised():
    with session() as opened, pytest.raises(dp.ParameterError, match="private tables"):
        dp.synthesize(opened, "wards", epsilon=1)


def test_a_journal_goes_on_with_its_own_synthesis_alone(tmp_path):
    path = tmp_path / "run.journal"
    with dp.Ledger(key=KEY) as ledger, session(ledger=ledger) as opened:

        def stop(done):
            raise StoppedError

        with pytest.raises(StoppedError):
            small(opened, journal=path, progress=stop)
        for other in ({"epsilon": 5}, {"method": "aim"}):
            with pytest.raises(dp.ParameterError, match="another synthesis"):
                small(opened, journal=path, **other)
        assert ledger.balance("clinic/patient").releases == 1


def test_faults_of_other_columns_are_told_before_values_are_bought():
    with dp.Ledger(key=KEY) as ledger, session(ledger=ledger, keys={}, bounds={}) as opened:
        with pytest.raises(dp.ParameterError, match="no declared bounds"):
            made(opened, discover=["ward", "sex"])
        assert ledger.balance("clinic/patient").releases == 0


class StoppedError(Exception):
    pass


def test_an_interrupted_synthesis_goes_on_and_is_charged_once(tmp_path):
    path = tmp_path / "run.journal"
    with dp.Ledger(key=KEY) as ledger:

        def stop(done):
            raise StoppedError

        with session(ledger=ledger) as opened, pytest.raises(StoppedError):
            small(opened, journal=path, progress=stop)
        drawn = path.read_text().splitlines()
        assert len(drawn) > 3
        with session(ledger=ledger) as opened:
            table = small(opened, journal=path)
        assert path.read_text().splitlines()[: len(drawn)] == drawn
        assert ledger.balance("clinic/patient").releases == 1
        assert ledger.balance("clinic/patient").totals[0].rho == table.cost.rho * 10**18


def test_private_evaluation_costs_its_price_and_sees_a_bad_table():
    with dp.Ledger(key=KEY) as ledger, session(ledger=ledger) as opened:
        table = small(opened)
        before = ledger.balance("clinic/patient").totals[0].rho
        good = dp.synthesis.evaluate(opened, "visits", table, epsilon=5)
        charged = ledger.balance("clinic/patient").totals[0].rho - before
        assert charged == read_amount(opened.parts.budget, epsilon=5).value * 10**18
        bad = dp.synthesis.evaluate(
            opened, "visits", small(opened, method="independent"), epsilon=5
        )
        assert list(good) == [1, 2, 3]
        assert good[2] < bad[2] - 0.02
        assert all(0 <= value <= 1 for value in good.values())
        before = ledger.balance("clinic/patient").totals
        assert dp.synthesis.evaluate(opened, "visits", table, epsilon=5) == good
        assert ledger.balance("clinic/patient").totals == before


@pytest.mark.parametrize(
    ("changed", "epsilon", "said"),
    [({"max_rows": None}, 1, "max_rows"), ({"size": 10}, 0.01, "too small"), ({}, 1, "cells")],
)
def test_evaluations_that_could_only_fail_are_refused_before_they_are_charged(
    table, changed, epsilon, said
):
    with dp.Ledger(key=KEY) as ledger, session(ledger=ledger, **changed) as opened:
        if not changed:
            wide = Domain({f"c{n}": 200 for n in range(10)})
            edges = tuple(range(201))
            coded = [Coding(c, ColumnType.INTEGER, edges=edges) for c in wide.columns]
            table = replace(table, codings=tuple(coded), model=DenseModel(wide, 1.0, np.zeros(())))
        with pytest.raises(dp.ParameterError, match=said):
            dp.synthesis.evaluate(opened, "visits", table, epsilon=epsilon)
        assert ledger.balance("clinic/patient").releases == 0
