"""Rows: independent where the model says so, and rounded fairly."""

import numpy as np
from scipy import stats

from chance import FALSE_ALARM
from deniable.synthesis.domain import Domain, project
from deniable.synthesis.measurement import Measurement
from deniable.synthesis.model.dense import DenseModel
from deniable.synthesis.model.fit import fit
from deniable.synthesis.model.rounding import rounded_fairly, sample_conditionally


def star(seed=0):
    """Two leaves that are independent given the centre."""
    rng = np.random.default_rng(seed)
    domain = Domain({"centre": 3, "left": 4, "right": 4})
    joint = rng.dirichlet(np.ones(48)).reshape(3, 4, 4) * 6000
    pairs = (("centre", "left"), ("centre", "right"))
    measured = [Measurement(c, project(joint, domain.columns, c), 1.0) for c in pairs]
    return fit(domain, measured, iterations=2000).model


def dependence(rows):
    """The least p-value of left against right, within each value of the centre."""
    found = []
    for centre in range(3):
        inside = rows[rows[:, 0] == centre]
        table = np.zeros((4, 4))
        np.add.at(table, (inside[:, 1], inside[:, 2]), 1)
        found.append(stats.chi2_contingency(table + 1e-9).pvalue)
    return min(found)


def test_siblings_are_independent_given_their_parent():
    rows = star().sample(20_000)
    assert dependence(rows) > FALSE_ALARM


def test_the_check_of_independence_sees_rows_that_were_not_dealt_out_at_random():
    rows = star().sample(20_000)
    for centre in range(3):
        inside = np.flatnonzero(rows[:, 0] == centre)
        rows[inside, 2] = np.sort(rows[inside, 2])[np.argsort(np.argsort(rows[inside, 1]))]
    assert dependence(rows) < FALSE_ALARM


def test_counts_are_the_expected_ones_rounded_down_or_up():
    rng = np.random.default_rng(1)
    totals = np.array([10, 0, 1000, 7])
    expected = rng.dirichlet(np.ones(9), size=4) * totals[:, None]
    for _ in range(200):
        counts = rounded_fairly(expected, totals)
        assert (counts.sum(axis=1) == totals).all()
        assert (counts >= np.floor(expected) - 1e-9).all()
        assert (counts <= np.ceil(expected) + 1e-9).all()


def test_rounding_has_no_bias():
    expected = np.array([[0.1, 0.2, 0.3, 0.4, 2.0, 1.0]])
    draws = 20_000
    up = sum(rounded_fairly(expected, np.array([4]))[0] for _ in range(draws))
    for seen, share in zip(up[:4], expected[0, :4], strict=True):
        assert stats.binomtest(int(seen), draws, share).pvalue > FALSE_ALARM
    assert stats.binomtest(int(up[0]), draws, 0.2).pvalue < FALSE_ALARM  # the check has power
    assert (up[4:] == [2 * draws, draws]).all()


def test_cells_without_a_chance_never_appear():
    table = np.array([[0.0, 1 / 3, 0.0, 2 / 3, 0.0], [0.5, 0.0, 0.0, 0.0, 0.5]])
    for _ in range(300):
        group = np.repeat([0, 1], [7, 5])
        cells = sample_conditionally(table, group)
        assert table[group, cells].min() > 0


def test_cells_of_a_group_come_in_random_order():
    firsts = [sample_conditionally(np.full((1, 4), 0.25), np.zeros(8, int))[0] for _ in range(4000)]
    counts = np.bincount(firsts, minlength=4)
    assert stats.chisquare(counts).pvalue > FALSE_ALARM


def test_no_rows_are_no_rows():
    assert star().sample(0).shape == (0, 3)
    assert DenseModel.uniform(Domain({"a": 2, "b": 3}), 5.0).sample(0).shape == (0, 2)


def test_dense_models_round_to_their_expectations():
    model = DenseModel.uniform(Domain({"a": 2, "b": 3}), 5.0)
    rows = model.sample(600)
    assert (np.bincount(rows[:, 0] * 3 + rows[:, 1]) == 100).all()
