"""What nobody declared: bought for a part of the price, and only if all of it can be paid."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import deniable as dp
from deniable.ledger.amounts import read_amount
from synthesis.doors import KEY
from synthesis.test_synthesize import clinic, session, small

UNDECLARED = {"keys": {}, "bounds": {}, "max_rows": None, "max_groups": 1}
FOUND = ["ward", "sex", "age"]


def test_all_that_is_bought_is_within_the_promised_price():
    with dp.Ledger(key=KEY) as ledger, session(ledger=ledger, **UNDECLARED) as each:
        table = small(each, epsilon=20, discover=FOUND)
        promised = read_amount(each.parts.budget, epsilon=20).value
        charged = ledger.balance("clinic/patient").totals[0].rho
        assert 0 <= promised * 10**18 - charged < 1000
        assert 0 <= charged - table.cost.rho * 10**18 <= 4  # the ledger rounds each draw up
        again = small(each, epsilon=20, discover=FOUND)
        assert ledger.balance("clinic/patient").totals[0].rho == charged
    assert np.array_equal(table.marginal(["age"]).values, again.marginal(["age"]).values)
    assert [what for what, _ in table.receipt] == [
        "values of ward",
        "values of sex",
        "bounds of age",
        "rows of a unit",
        "marginals",
    ]
    ward, sex, age = table.codings
    assert set(ward.values) == {"A", "B", "C"}
    assert set(sex.values) == {"F", "M"}
    assert -1 <= age.edges[0] < 40
    assert age.edges[-1] > 60
    assert age.edges[-1] < 300
    assert abs(table.rows - 3000) < 300


def test_pure_budgets_buy_rows_and_bounds_too():
    declared = {"bounds": {}, "max_rows": None}
    with (
        dp.Ledger(key=KEY) as ledger,
        session(ledger=ledger, budget=dp.PureDP(40), **declared) as each,
    ):
        table = small(each, epsilon=20, discover=["age"])
        charged = ledger.balance("clinic/patient").totals[0].epsilon
        assert 0 <= 20 * 10**18 - charged < 1000
        assert table.cost.epsilon == Fraction(charged, 10**18)
    with (
        dp.Ledger(key=KEY) as ledger,
        session(ledger=ledger, budget=dp.PureDP(40), keys={}) as each,
    ):
        with pytest.raises(dp.DeniableError):  # values are found with a part of δ
            small(each, epsilon=20, discover=["ward", "sex"])
        assert ledger.balance("clinic/patient").releases == 0


def test_units_with_many_rows_are_scaled_down_to_what_was_bought():
    light = clinic(2000)
    heavy = light.slice(0, 1).to_pylist()[0] | {"patient": 10**6}
    many = pa.Table.from_pylist([heavy] * 5000, schema=light.schema)
    with session(pa.concat_tables([light, many]), max_rows=None) as each:
        assert abs(small(each, epsilon=20).rows - 2000) < 200


def test_nothing_is_bought_if_the_rest_could_not_be_paid():
    for declared, more in (
        (UNDECLARED, {"discover": FOUND}),
        ({"max_rows": None}, {}),
    ):
        with (
            dp.Ledger(key=KEY) as ledger,
            session(ledger=ledger, budget=dp.ApproxDP(1, 1e-6), **declared) as each,
        ):
            with pytest.raises(dp.BudgetError):
                small(each, epsilon=2, **more)
            assert ledger.balance("clinic/patient").releases == 0


def wide(count):
    names = [f"t{n}" for n in range(count)]
    source = pa.table({name: ["yes", "no"] * 800 for name in names} | {"unit": range(1600)})
    table = dp.PrivateTable(source, unit="unit", population="p", max_rows=1, max_groups=1)
    return names, {"t": table}


def test_delta_pays_for_any_number_of_columns():
    names, tables = wide(24)
    with (
        dp.Ledger(key=KEY) as ledger,
        dp.Session(tables, budget=dp.ApproxDP(900, 1e-6), ledger=ledger) as each,
    ):
        made = dp.synthesize(each, "t", epsilon=700, method="independent", discover=names)
        assert len(made.receipt) == 25
        assert 0 < made.cost.delta < Fraction(1, 2_000_000)  # half of δ is kept for keys


def test_many_columns_leave_half_of_the_price_for_the_marginals():
    source = pa.table({f"x{n}": range(1600) for n in range(12)})
    table = dp.PrivateTable(source, unit=dp.ROW, population="p")
    with (
        dp.Ledger(key=KEY) as ledger,
        dp.Session({"t": table}, budget=dp.ApproxDP(900, 1e-6), ledger=ledger) as each,
    ):
        names = source.column_names
        made = dp.synthesize(each, "t", epsilon=700, method="independent", discover=names)
    assert made.receipt[-1][1].rho >= made.cost.rho * Fraction(49, 100)
    assert len(made.receipt) == 13


@pytest.mark.parametrize("kind", ["seen", "urgent"])
def test_only_text_and_numbers_are_found(kind):
    with session() as each, pytest.raises(dp.ParameterError, match="only text and numbers"):
        small(each, discover=[kind], columns=["ward", kind])


def nothing(count):
    """A table whose columns hold nothing, or NaN, only."""
    return pa.table(
        {
            "patient": range(count),
            "ward": pa.array([None] * count, pa.string()),
            "cost": pa.array([float("nan"), None, float("inf")] * (count // 3), pa.float64()),
        }
    )


def test_values_that_are_not_there_are_missing_or_counted_nowhere():
    source = nothing(600)
    with session(source, keys={"ward": ["A"]}, bounds={"cost": (0, 9)}) as each:
        call = {"epsilon": 20, "method": "independent", "bins": {"cost": 2}}
        seen = dp.synthesize(each, "visits", missing=["ward", "cost"], **call)
        hidden = dp.synthesize(each, "visits", missing=["ward"], **call)
    assert seen.marginal(["cost"]).values == pytest.approx([0, 0, 600], abs=30)
    assert seen.marginal(["ward"]).values == pytest.approx([0, 600], abs=30)
    assert hidden.rows < 30


def test_a_million_declared_values_are_refused_at_once():
    many = [f"w{n}" for n in range(1_000_000)]
    with dp.Ledger(key=KEY) as ledger, session(ledger=ledger) as each:
        with pytest.raises(dp.ParameterError, match=r"1,000,00.*group its values"):
            small(each, keys={"ward": many})
        for keys in ([None], [1, 2]):
            with pytest.raises(dp.ParameterError, match="ward"):
                small(each, keys={"ward": keys})
        assert ledger.balance("clinic/patient").releases == 0


@pytest.mark.parametrize("method", ["mst", "mwem"])
def test_domains_larger_than_the_allowed_memory_are_refused(method):
    with dp.Ledger(key=KEY) as ledger, session(ledger=ledger) as each:
        with pytest.raises(dp.ParameterError, match=r"MB.*fewer"):
            small(each, method=method, max_megabytes=1e-5)
        with pytest.raises(dp.ParameterError, match="too small for any"):
            small(each, epsilon=None, rho=1e-12)
        assert ledger.balance("clinic/patient").releases == 0
