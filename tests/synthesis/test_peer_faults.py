"""Faults that were seen in other libraries, each shown to be absent here."""

import inspect
import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

import deniable as dp
from deniable.synthesis import aim, mst, mwem
from deniable.synthesis.domain import Domain
from deniable.synthesis.measure import Draws
from deniable.synthesis.measurement import Measurement
from deniable.synthesis.model.fit import fit
from deniable.synthesis.model.junction import tree_cells
from deniable.synthesis.rare import merged
from synthesis.doors import KEY, opened, related, total_variation
from synthesis.test_synthesize import clinic, made, session, small


def test_two_way_errors_of_rows_are_those_of_the_model_not_worse_than_independence():
    """Sampling that does not shuffle within parents makes siblings perfectly correlated."""
    sizes = {"a": 4, "b": 4, "c": 4, "d": 4}
    rng = np.random.default_rng(0)
    centre = rng.integers(4, size=8000)
    rows = np.stack(
        [
            centre,
            *(np.where(rng.random(8000) < 0.4, centre, rng.integers(4, size=8000)) for _ in "bcd"),
        ],
        axis=1,
    )
    with dp.Ledger(key=KEY) as ledger:
        model = dp.synthesis.MST().run(opened(rows, sizes, ledger=ledger, rho=1))
    sampled = model.sample(8000)
    for pair in combinations(sizes, 2):
        table = dp.synthesis.CodedRows(sampled, sizes).exact(pair) / 8000
        exact = dp.synthesis.CodedRows(rows, sizes).exact(pair) / 8000
        alone = np.outer(exact.sum(axis=1), exact.sum(axis=0))
        assert np.abs(table - exact).sum() < np.abs(alone - exact).sum() + 0.02


def test_the_exact_number_of_rows_is_never_used():
    """Two tables of different size whose released values agree give the same model."""
    sizes = {"a": 3, "b": 3}
    with dp.Ledger(key=KEY) as ledger:
        draws = opened(related(500, sizes), sizes, ledger=ledger, rho=1)
        model = dp.synthesis.MST().run(draws)
        assert model.total == pytest.approx(500, abs=50)
        other = opened(related(900, sizes), sizes, ledger=ledger, rho=1)
        recorded = Draws(None, other._data, draws.amount, journal=draws.journal)
        again = dp.synthesis.MST().run(recorded)
        assert again.total == model.total


def test_bins_come_from_declared_bounds_not_from_the_data():
    wide, narrow = clinic(300), clinic(300)
    narrow = narrow.set_column(3, "age", [[50] * 300])
    with session(wide) as one, session(narrow) as other:
        tables = [small(each, epsilon=20) for each in (one, other)]
    assert tables[0].codings == tables[1].codings
    assert tables[0].codings[2].edges == (0, 20, 40, 60, 80, 100)


def test_categories_are_never_taken_from_the_data_silently():
    with session(keys={}) as opened_session, pytest.raises(dp.ParameterError, match="not public"):
        made(opened_session)


def test_a_selection_is_drawn_once_and_charged_once():
    """Drawing again until something new appears is no exponential mechanism of the charged ε."""
    for module in (aim, mst, mwem):
        source = inspect.getsource(module)
        assert source.count("draws.choose(") == 1
    sizes = {"a": 3, "b": 3, "c": 3}
    chosen = []
    with dp.Ledger(key=KEY) as ledger:
        draws = opened(related(3000, sizes), sizes, ledger=ledger, rho=1)
        draws.choose = lambda question, amount: chosen.append(amount) or 0
        dp.synthesis.MWEM(workload=dp.synthesis.Workload.all_of(Domain(sizes), 2), rounds=5).run(
            draws
        )
    assert len(chosen) == 5


def test_a_merged_cell_has_its_noise_in_the_answer_and_in_its_weight():
    values = np.array([500.0, 3, -2, 8, 400])
    own = Measurement(("a",), values, 5.0)
    merges = merged([own])
    new = merges.measurement(own)
    assert new.values.tolist() == [500, 400, 9]
    assert np.allclose(new.deviation, [5, 5, 5 * math.sqrt(3)])
    domain = Domain({"a": 3})
    target = Measurement(("a",), np.array([500.0, 400, 300]), 5.0)
    both = fit(domain, [new, target], total=1000.0, iterations=4000).model.marginal(("a",))
    # Least squares with weights 1/25, 1/25 and 1/75 against 1/25 each, at a sum of 1000.
    precision = np.array([2, 2, 1 + 1 / 3]) / 25
    mean = np.array([500, 400, (9 / 3 + 300) / (4 / 3)])
    shift = (1000 - mean.sum()) / (1 / precision).sum()
    assert np.allclose(both, mean + shift / precision, atol=0.5)


def test_the_cap_is_on_the_junction_tree_not_on_the_cliques():
    """A cycle of pairs: small cliques, and a junction tree of triples."""
    domain = Domain({f"c{i}": 20 for i in range(6)})
    cycle = [domain.clique((f"c{i}", f"c{(i + 1) % 6}")) for i in range(6)]
    cliques = sum(domain.size(clique) for clique in cycle)
    assert cliques == 2400
    assert tree_cells(domain, cycle) == 4 * 8000


def test_missing_values_are_not_filled_with_real_ones_and_constants_are_not_copied():
    sizes = {"only": 3, "other": 2}
    rows = np.stack([np.full(400, 2), np.arange(400) % 2], axis=1)
    noisy = set()
    for _ in range(3):
        with dp.Ledger(key=KEY) as ledger:
            draws = opened(rows, sizes, ledger=ledger, rho=0.05)
            dp.synthesis.Independent().run(draws)
            noisy.add(tuple(draws.measurements[0].values.tolist()))
    assert len(noisy) == 3  # a constant column is measured like any other


def test_all_prices_stand_on_one_receipt_and_in_one_ledger():
    with dp.Ledger(key=KEY) as ledger, session(ledger=ledger, keys={}, max_groups=2) as each:
        table = small(each, epsilon=6, discover=["ward", "sex"])
        assert sum((price.rho for _, price in table.receipt), Fraction(0)) == table.cost.rho
        charged = ledger.balance("clinic/patient").totals[0].rho
        # Of a question with several draws the ledger rounds each price up, by less than 1e-18.
        assert 0 <= charged - table.cost.rho * 10**18 <= 4


def test_nothing_is_missing_where_nothing_was_declared_missing():
    source = clinic(300)
    with session(source) as each:
        table = dp.synthesize(
            each, "visits", epsilon=2, method="mst", columns=["ward", "sex", "cost"]
        )
    rows = table.sample(500)
    assert all(rows[name].null_count == 0 for name in rows.schema.names)


def test_independence_is_a_floor_that_methods_beat():
    sizes = {"a": 3, "b": 4, "c": 2}
    rows = related(10_000, sizes)
    with dp.Ledger(key=KEY) as ledger:
        alone = dp.synthesis.Independent().run(opened(rows, sizes, ledger=ledger, rho=1))
        tree = dp.synthesis.MST().run(opened(rows, sizes, ledger=ledger, rho=1))
    assert total_variation(tree, rows, sizes, ("a", "b")) < total_variation(
        alone, rows, sizes, ("a", "b")
    )
