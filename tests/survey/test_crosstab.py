import math
from itertools import product

import numpy as np
import pytest
from scipy import stats

import deniable as dp
from chance import FALSE_ALARM, plausible_share
from deniable.survey import designs
from deniable.survey.crosstab import cross_tabulate

COINS = designs.two_coins()
THREE = designs.from_matrix([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]], ("a", "b", "c"))
TRUTH = np.array([[0.3, 0.2, 0.1], [0.05, 0.05, 0.3]])


def reports_of(truth, n, seed):
    """Made-up people with this joint distribution, randomised by the clients."""
    places = np.random.default_rng(seed).choice(truth.size, size=n, p=truth.ravel())
    row, column = np.divmod(places, truth.shape[1])
    return COINS.randomize(row == 1), THREE.randomize(np.array(["a", "b", "c"])[column])


def test_cells_are_unbiased():
    """Over every pair of reports of one person."""
    chance = COINS.matrix.T @ TRUTH @ THREE.matrix
    mean = 0.0
    for (i, r), (j, s) in product(enumerate(COINS.reports), enumerate(THREE.reports)):
        mean = mean + chance[i, j] * cross_tabulate(COINS, THREE, [r], [s]).cells
    assert mean == pytest.approx(TRUTH, abs=1e-13)


def test_the_table_is_the_kronecker_inverse_with_its_covariance():
    first, second = reports_of(TRUTH, 5_000, 1)
    table = cross_tabulate(COINS, THREE, first, second)
    seen = np.zeros((2, 3))
    for r, s in zip(first, second, strict=True):
        seen[int(r), "abc".index(s)] += 1 / 5_000
    back = np.kron(np.linalg.inv(COINS.matrix.T), np.linalg.inv(THREE.matrix.T))
    assert table.cells.ravel() == pytest.approx(back @ seen.ravel(), abs=1e-12)
    spread = back @ (np.diag(seen.ravel()) - np.outer(seen.ravel(), seen.ravel())) @ back.T / 5_000
    assert table.estimate.covariance == pytest.approx(spread, abs=1e-12)
    assert table.standard_errors.ravel() == pytest.approx(np.sqrt(np.diag(spread)), abs=1e-12)
    assert table.cells.sum() == pytest.approx(1)
    assert table.cell(True, "c") == table.cells[1, 2]
    low, high = table.interval(True, "c")
    assert low < table.cell(True, "c") < high


def test_cell_intervals_cover():
    """500 surveys of 1,000 people, the smallest cell and a large one; held to 94.5 %, 1e-9."""
    hits = {(True, "a"): 0, (False, "a"): 0}
    for seed in range(500):
        table = cross_tabulate(COINS, THREE, *reports_of(TRUTH, 1_000, seed))
        for pair in hits:
            low, high = table.interval(*pair)
            truth = TRUTH[int(pair[0]), "abc".index(pair[1])]
            hits[pair] += low <= truth <= high
    assert all(stats.binom.cdf(count, 500, 0.945) > FALSE_ALARM for count in hits.values())


def test_negative_cells_are_kept():
    table = cross_tabulate(COINS, COINS, [True] * 8 + [False] * 2, [True] * 8 + [False] * 2)
    assert table.negative > 0
    assert table.cells.min() < 0
    assert table.cells.sum() == pytest.approx(1)


def test_the_test_of_independence_holds_its_level_and_sees_dependence():
    """Rejects 5 % of independent tables, and nearly all dependent ones."""
    margin_1, margin_2 = TRUTH.sum(axis=1), TRUTH.sum(axis=0)
    apart = np.outer(margin_1, margin_2)
    level = [
        cross_tabulate(COINS, THREE, *reports_of(apart, 400, seed)).independence().p_value
        for seed in range(1_000)
    ]
    assert plausible_share(sum(p < 0.05 for p in level), 1_000, 0.05)
    found = cross_tabulate(COINS, THREE, *reports_of(TRUTH, 20_000, 3)).independence()
    assert found.degrees == 2
    assert found.p_value < 1e-6


def test_reports_that_do_not_vary_say_nothing():
    found = cross_tabulate(COINS, COINS, [True] * 5, [True, False] * 2 + [True]).independence()
    assert (found.statistic, found.degrees, found.p_value) == (0.0, 0, 1.0)


def test_an_open_column_can_be_crossed():
    wards = designs.open_question(("north", "south"), not_private=True)
    table = cross_tabulate(wards, COINS, ["north"] * 4 + ["south"] * 6, [True, False] * 5)
    assert table.cells.sum(axis=1) == pytest.approx([0.4, 0.6])
    assert table.estimate.design.epsilon == math.inf


def test_weights_reach_the_table_but_not_the_test():
    table = cross_tabulate(COINS, COINS, [True, False], [True, True], weights=[3, 1])
    assert table.cells.sum(axis=1)[1] == pytest.approx(0.75 * 1.5 - 0.25 * 0.5)
    with pytest.raises(dp.ParameterError, match="without weights"):
        table.independence()


def test_bad_tables_are_refused():
    with pytest.raises(dp.ParameterError, match="second_reports"):
        cross_tabulate(COINS, COINS, [True, False], [True])
    with pytest.raises(dp.ParameterError, match="first_reports"):
        cross_tabulate(COINS, COINS, [], [])
    with pytest.raises(dp.ParameterError, match="second_reports"):
        cross_tabulate(COINS, COINS, [True], ["x"])
    with pytest.raises(dp.ParameterError, match="Design"):
        cross_tabulate("coins", COINS, [True], [True])
    many = designs.randomized_response(epsilon=1, categories=range(20))
    with pytest.raises(dp.ParameterError, match="cells"):
        cross_tabulate(many, many, [1], [1])
