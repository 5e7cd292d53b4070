"""Groups that are selected privately: kept for later questions, and never out of δ."""

from itertools import pairwise

import pyarrow as pa
import pytest

import deniable as dp
from deniable.engines.duckdb import DuckDB
from deniable.ledger.verify import verify
from deniable.mechanisms.keys import weight
from deniable.query.read.catalogue import Catalogue, Options
from deniable.query.read.compile import compile_sql
from deniable.query.run.emit import units_step
from deniable.query.show.explain import Explanation

BY_WARD = "SELECT ward, COUNT(*) AS n FROM t GROUP BY ward"
WARDS = {"A": 900, "B": 600, "C": 1}


def session(budget=None, **declared):
    rows = [(n, ward, n % 7) for ward, many in WARDS.items() for n in range(many)]
    who, ward, x = (list(each) for each in zip(*rows, strict=True))
    table = dp.PrivateTable(
        pa.table(
            {"who": [f"{w}{n}" for w, n in zip(ward, who, strict=True)], "ward": ward, "x": x}
        ),
        unit="who",
        population="p",
        **{"max_rows": 1, "cap_rows": 1, "bounds": {"x": (0, 6)}, **declared},
    )
    ledger = dp.Ledger(key=bytes(32))
    return dp.Session({"t": table}, budget=budget or dp.ApproxDP(3, 1e-6), ledger=ledger)


def delta(answer):
    return float(answer.cost.delta)


def test_what_is_said_to_be_left_is_not_cut_short_by_delta():
    """A selection takes a part of the δ that is left: ρ alone says how many more there are."""
    with session(dp.ApproxDP(300, 1e-6)) as opened:
        answer = opened.sql(BY_WARD, epsilon=0.5)
        left = opened.remaining["p"]
    assert answer.cost.delta > 0
    assert left.more(answer.cost) == left.remaining["rho"] // answer.cost.rho > 100


def asked_often(many):
    """So many questions that select keys, on one budget at ε = 0.01."""
    with session() as asked:
        costs = [delta(asked.sql(BY_WARD, epsilon=0.01, keys="new")) for _ in range(many)]
        assert asked.remaining["p"].remaining["delta"] > 0
        verify(asked.parts.ledger, "p")
    return costs


def test_selections_go_on_and_on():
    costs = asked_often(25)
    assert all(0 < later < earlier for earlier, later in pairwise(costs))
    assert sum(costs) < 5e-7


@pytest.mark.soak
def test_a_thousand_questions_with_selected_keys_are_none_too_many():
    assert sum(asked_often(1_000)) < 5e-7


def test_keys_are_kept_for_other_aggregates_and_a_further_where():
    with session() as asked:
        first = asked.sql(BY_WARD, epsilon=0.5)
        assert list(first["ward"]) == ["A", "B"]
        assert delta(first) == pytest.approx(5e-7 / 11)
        mean = asked.sql("SELECT ward, AVG(x) AS m FROM t GROUP BY ward", epsilon=0.5)
        assert list(mean["ward"]) == ["A", "B"]
        assert delta(mean) == 0
        assert not any("earlier question" in label for label in mean.labels)
        finer = "SELECT ward, COUNT(*) AS n FROM t WHERE x = 3 AND ward <> 'Z' GROUP BY ward"
        some = asked.sql(finer, epsilon=0.5)
        assert list(some["ward"]) == ["A", "B"]
        assert delta(some) == 0
        assert any("keys from an earlier question" in label for label in some.labels)
        assert asked.sql(finer, epsilon=0.5).repeated
        again = asked.sql(finer, epsilon=0.5, keys="new")
        assert delta(again) > 0
        assert asked.sql(finer, epsilon=0.5).repeated  # a repeated question finds its own keys
        wider = asked.sql(
            "SELECT ward, COUNT(*) AS n FROM t WHERE x = 3 GROUP BY ward", epsilon=0.5
        )
        assert delta(wider) == 0


def test_keys_of_a_lower_price_are_not_taken_for_a_higher_one():
    with session() as asked:
        assert len(asked.sql(BY_WARD, epsilon=0.03)) == 0
        more = asked.sql(BY_WARD, epsilon=0.5)
        assert list(more["ward"]) == ["A", "B"]
        assert delta(more) > 0
        assert delta(asked.sql("SELECT ward, SUM(x) AS s FROM t GROUP BY ward", epsilon=0.1)) == 0


def test_the_builder_selects_again_too():
    with session() as asked:
        question = asked.table("t").group_by("ward").agg(n=dp.count())
        assert delta(question.release(epsilon=0.5)) > 0
        assert question.release(epsilon=0.5).repeated
        assert delta(question.new_keys().release(epsilon=0.5)) > 0


def test_what_explain_foresees_is_what_is_charged():
    with session() as asked:
        for epsilon in (0.5, 0.2):
            told: Explanation = asked.explain(BY_WARD, epsilon=epsilon, keys="new")
            assert told.threshold is not None
            paid = asked.sql(BY_WARD, epsilon=epsilon, keys="new").cost
            assert (told.cost.rho, told.cost.delta) == (paid.rho, paid.delta)
        known = asked.explain("SELECT ward, AVG(x) AS m FROM t GROUP BY ward", epsilon=0.5)
        assert known.threshold is None
        assert "2, chosen privately before" in known.groups


def test_no_delta_and_no_rho_are_told_apart():
    none = dp.Budget(dp.ApproxDP(1, 1e-6), keys_delta=0)
    refused = pytest.raises(dp.QueryError, match=r"takes a δ that this budget does not have.*keys=")
    with session(none) as asked, refused:
        asked.sql(BY_WARD, epsilon=0.5)
    with session(dp.ApproxDP(1, 1e-6)) as asked:
        asked.sql(BY_WARD, epsilon=0.8)
        with pytest.raises(dp.BudgetError, match=r"ε = .* is left"):
            asked.sql(BY_WARD, epsilon=0.9, keys="new")


def test_any_other_text_for_keys_is_refused():
    with session() as asked, pytest.raises(dp.errors.ParameterTypeError, match="keys"):
        asked.sql(BY_WARD, epsilon=0.5, keys="anew")


def test_weights_in_the_engine_are_exact():
    """A unit of g groups adds ⌊2^16/√g⌋ to each: 300 units, of 1 to 300 groups."""
    rows = [(unit, unit * 1_000 + group) for unit in range(1, 301) for group in range(unit)]
    who, group = (list(each) for each in zip(*rows, strict=True))
    engine = DuckDB()
    schema = engine.add("t", pa.table({"who": who, "g": group}), None)
    private = dp.PrivateTable(pa.table({"who": [1], "g": [1]}), unit="who", population="p")
    catalogue = Catalogue({"t": schema}, {"t": private})
    plan = compile_sql("SELECT g, COUNT(*) AS n FROM t GROUP BY g", catalogue, Options())
    for most in (64, 300):
        step = units_step(plan, most, "secret")
        with engine.snapshot([step]) as snapshot:
            found = [(int(key) // 1_000, int(steps)) for key, steps in snapshot.run(step)]
        assert len(found) == sum(min(unit, most) for unit in range(1, 301))
        assert all(steps == weight(min(unit, most)) for unit, steps in found)
