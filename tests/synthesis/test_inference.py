"""Inference against brute force, on random small domains."""

from itertools import combinations

import numpy as np
import pytest

from deniable.errors import ParameterError
from deniable.synthesis.domain import Domain, project, widen
from deniable.synthesis.measurement import Measurement
from deniable.synthesis.model.dense import DenseModel, check_dense, replayed
from deniable.synthesis.model.fit import fit, propagate, total_of
from deniable.synthesis.model.graphical import GraphicalModel
from deniable.synthesis.model.junction import junction_tree, tree_cells


def random_tree(seed):
    rng = np.random.default_rng(seed)
    count = int(rng.integers(2, 7))
    domain = Domain({f"c{i}": int(rng.integers(1, 4)) for i in range(count)})
    cliques = [
        domain.clique(rng.choice(domain.columns, size=min(count, int(rng.integers(1, 4)))))
        for _ in range(rng.integers(1, 6))
    ]
    return rng, domain, cliques, junction_tree(domain, cliques)


def model_of(tree, logs):
    axes = [
        tuple(axis for axis, column in enumerate(clique) if column not in separator)
        for clique, separator in zip(tree.cliques, tree.separators, strict=True)
    ]
    tables, conditionals = propagate(tree, [each.copy() for each in logs], axes)
    return GraphicalModel(tree, 1.0, tuple(tables), tuple(conditionals))


def joint_of(domain, tree, logs):
    joint = np.zeros(domain.sizes)
    for clique, table in zip(tree.cliques, logs, strict=True):
        joint = joint + widen(table, clique, domain.columns)
    joint = np.exp(joint - joint.max())
    return joint / joint.sum()


@pytest.mark.parametrize("seed", range(60))
def test_a_junction_tree_has_the_running_intersection_and_holds_every_clique(seed):
    _, domain, cliques, tree = random_tree(seed)
    assert {column for clique in tree.cliques for column in clique} == set(domain.columns)
    assert all(tree.holder(clique) is not None for clique in cliques)
    for place in range(1, len(tree.cliques)):
        earlier = {column for clique in tree.cliques[:place] for column in clique}
        shared = set(tree.cliques[place]) & earlier
        assert shared == set(tree.separators[place])
        assert shared <= set(tree.cliques[tree.parents[place]])
    assert tree.cells == tree_cells(domain, cliques)


@pytest.mark.parametrize("scale", [1.0, 30.0, 1000.0])
@pytest.mark.parametrize("seed", range(25))
def test_every_marginal_is_that_of_the_joint_distribution(seed, scale):
    rng, domain, _, tree = random_tree(seed)
    logs = [rng.normal(size=domain.shape(clique)) * scale for clique in tree.cliques]
    model, joint = model_of(tree, logs), joint_of(domain, tree, logs)
    for size in range(len(domain) + 1):
        for clique in combinations(domain.columns, size):
            expected = project(joint, domain.columns, clique)
            assert np.allclose(model.marginal(clique), expected, atol=1e-10)


def test_potentials_that_cancel_between_cliques_do_not_underflow():
    domain = Domain({"a": 2, "b": 2, "c": 2})
    tree = junction_tree(domain, [("a", "b"), ("b", "c")])
    far = np.array([0.0, -5000.0])
    logs = [
        widen(far if clique == ("a", "b") else -far, ("b",), clique) + np.zeros((2, 2))
        for clique in tree.cliques
    ]
    assert np.allclose(model_of(tree, logs).marginal(("a", "c")), 0.25)


@pytest.mark.parametrize("seed", range(10))
def test_a_fit_reaches_the_least_misfit_over_all_distributions(seed):
    """Against multiplicative weights over the whole domain, run for very long."""
    rng, domain, cliques, _ = random_tree(seed)
    measured = [
        Measurement(c, rng.normal(100, 60, size=domain.shape(c)), float(rng.uniform(1, 9)))
        for c in dict.fromkeys(cliques)
    ]
    found = fit(domain, measured, iterations=3000)
    total = found.model.total

    def misfit(marginal):
        wrong = [(marginal(m.clique) - m.values) / m.deviation for m in measured]
        return sum(np.sum(each**2) / 2 for each in wrong)

    logs = np.zeros(domain.sizes)
    best = np.inf
    step = 1 / (total**2 * sum(1 / m.deviation**2 for m in measured))
    for _ in range(8_000):
        dense = DenseModel(domain, total, logs)
        best = min(best, misfit(dense.marginal))
        for m in measured:
            slope = total / m.deviation**2 * (dense.marginal(m.clique) - m.values)
            logs = logs - step * widen(slope, m.clique, domain.columns)
    assert np.isclose(found.loss, misfit(found.model.marginal))
    assert found.loss <= best * 1.001 + 1e-6


def test_a_fit_that_can_be_exact_is():
    rng = np.random.default_rng(1)
    domain = Domain({"a": 3, "b": 4, "c": 2})
    joint = rng.dirichlet(np.ones(24)).reshape(3, 4, 2) * 1000
    measured = [
        Measurement(c, project(joint, domain.columns, c), 1.0) for c in (("a", "b"), ("b", "c"))
    ]
    model = fit(domain, measured, iterations=5000).model
    for each in measured:
        assert np.allclose(model.marginal(each.clique), each.values, atol=0.5)


def test_a_warm_start_goes_on_where_the_last_fit_ended():
    rng = np.random.default_rng(2)
    domain = Domain({"a": 3, "b": 4, "c": 2})
    measured = [Measurement(("a", "b"), rng.uniform(0, 100, (3, 4)), 2.0)]
    first = fit(domain, measured, iterations=500)
    again = fit(domain, measured, start=first, iterations=1)
    cold = fit(domain, measured, iterations=1)
    assert again.loss <= first.loss * 1.0001
    assert cold.loss > first.loss * 1.5


def test_structural_zeros_stay_zero_and_the_rest_is_fitted():
    domain = Domain({"age": 3, "driver": 2})
    allowed = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 1.0]])
    measured = [Measurement(("age", "driver"), np.array([[50.0, 9], [30, 20], [10, 40]]), 3.0)]
    model = fit(domain, measured, zeros={("age", "driver"): allowed}).model
    table = model.marginal(("age", "driver"))
    assert table[0, 1] == 0
    assert np.isclose(table.sum(), model.total)
    rows = model.sample(5000)
    assert not np.any((rows[:, 0] == 0) & (rows[:, 1] == 1))


def test_rows_are_counted_from_measurements_by_inverse_variance():
    one = Measurement(("a",), np.array([60.0, 50.0]), 1.0)
    two = Measurement(("b",), np.array([100.0, 50.0, 50.0, 0.0]), 2.0)
    assert np.isclose(total_of([one, two]), (110 / 2 + 200 / 16) / (1 / 2 + 1 / 16))
    assert total_of([Measurement(("a",), np.array([-5.0]), 1.0)]) == 1.0


def test_without_replay_of_history_multiplicative_weights_forget():
    rng = np.random.default_rng(3)
    domain = Domain({"a": 4, "b": 4, "c": 4})
    joint = rng.dirichlet(np.full(64, 0.3)).reshape(4, 4, 4) * 10_000
    pairs = [("a", "b"), ("b", "c"), ("a", "c")]
    history = [Measurement(c, project(joint, domain.columns, c), 1.0) for c in pairs]

    def wrong(model):
        return sum(np.abs(model.marginal(m.clique) - m.values).sum() for m in history)

    once = replayed(DenseModel.uniform(domain, 10_000), history, passes=1)
    often = replayed(DenseModel.uniform(domain, 10_000), history, passes=400)
    assert wrong(often) < wrong(once) / 4


def test_a_table_of_all_records_that_does_not_fit_is_refused_with_its_size():
    with pytest.raises(ParameterError, match=r"1,000,000,000 cells.*7,629 MB.*mst"):
        check_dense(Domain({f"c{i}": 10 for i in range(9)}))


def test_wide_domains_have_exact_marginals():
    domain = Domain({f"c{i}": 2 for i in range(60)})
    chain = [(f"c{i}", f"c{i + 1}") for i in range(59)]
    rng = np.random.default_rng(4)
    measured = [Measurement(c, rng.uniform(10, 90, (2, 2)), 1.0) for c in chain]
    model = fit(domain, measured, iterations=30).model
    ends = model.marginal(("c0", "c59"))
    step = model.marginal(("c0",)) / model.total
    chance = np.diag(step)
    for pair in chain:
        both = model.marginal(pair)
        chance = chance @ (both / both.sum(axis=1, keepdims=True))
    assert np.allclose(ends / model.total, chance, atol=1e-9)
