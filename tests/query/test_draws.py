"""Draws that follow from released numbers: the laws that they say, and the same again."""

import numpy as np
import pytest
from scipy import stats

from chance import FALSE_ALARM
from deniable.query.plan.draws import HashedDraws

SIZE = 20_000


def test_the_same_release_gives_the_same_draws():
    one, two, other = HashedDraws(1, (2, 3)), HashedDraws(1, (2, 3)), HashedDraws(1, (2, 4))
    assert np.array_equal(one.uniform(5, 7), two.uniform(5, 7))
    assert np.array_equal(one.normal(9), two.normal(9))
    assert one.order(50) == two.order(50)
    assert not np.array_equal(one.uniform(5), other.uniform(5))
    assert not np.array_equal(one.uniform(5), one.uniform(5))


def test_uniform_and_normal_numbers():
    draws = HashedDraws("a")
    assert stats.kstest(draws.uniform(SIZE), "uniform").pvalue > FALSE_ALARM
    assert stats.kstest(draws.normal(SIZE), "norm").pvalue > FALSE_ALARM
    assert sorted(draws.order(100)) == list(range(100))


@pytest.mark.parametrize("mean", [0.0, 0.02, 1.0, 7.5, 400.0, 50_000.0])
def test_poisson_numbers(mean):
    found = HashedDraws("b", mean).poisson(np.full(SIZE, mean))
    assert (found == np.rint(found)).all()
    if mean == 0:
        assert not found.any()
        return
    law = stats.poisson(mean)
    edges = np.unique(law.ppf([0.1, 0.3, 0.5, 0.7, 0.9]))
    chances = np.diff([0, *law.cdf(edges), 1])
    counts = np.diff([0, *[(found <= edge).sum() for edge in edges], SIZE])
    kept = chances > 1e-6
    score = ((counts - SIZE * chances)[kept] ** 2 / (SIZE * chances[kept])).sum()
    assert score < stats.chi2.isf(FALSE_ALARM, max(1, kept.sum() - 1))
