"""Error bars hold, also among so many rows that a fit could stop far from what was measured."""

from itertools import combinations

import numpy as np
import pytest

import deniable as dp
from deniable.synthesis.measurement import Measurement
from deniable.synthesis.model.dense import DenseModel, replayed
from deniable.synthesis.model.fit import fit
from deniable.synthesis.synthetic import SyntheticTable
from synthesis.doors import KEY, opened

SIZES = {"a": 16, "b": 16, "c": 2, "d": 16}
DOMAIN = dp.synthesis.Domain(SIZES)
PAIRS = dp.synthesis.Workload.all_of(DOMAIN, 2)
METHODS = {
    "mst": dp.synthesis.MST(),
    "mwem": dp.synthesis.MWEM(workload=PAIRS),
    "fixed": dp.synthesis.FixedMarginals(workload=PAIRS),
    "aim": dp.synthesis.AIM(workload=PAIRS),
}


def many_rows(count=500_000):
    rng = np.random.default_rng(0)
    a = np.minimum(rng.geometric(0.25, count), 16) - 1
    b = (a + rng.geometric(0.5, count) - 1) % 16
    c = rng.random(count) < 0.02 + 0.9 * (a > 5)
    d = np.where(rng.random(count) < 0.7, (b + 1) % 16, rng.integers(0, 16, count))
    return np.stack([a, b, c, d], axis=1).astype(np.int64)


ROWS = many_rows()


def covered(model, measurements, data):
    """The share of cells of single columns and pairs inside of their error bars."""
    table = SyntheticTable((), model, tuple(measurements), "a test", ())
    inside = []
    for way in (1, 2):
        for clique in combinations(SIZES, way):
            found = table.marginal(clique)
            if found.deviation is not None:
                off = np.abs(found.values - data.exact(clique))
                inside.append((off <= found.half_width).ravel())
    return np.concatenate(inside).mean()


@pytest.mark.parametrize("rho", [0.02, 1.6], ids=["eps1", "eps10"])
@pytest.mark.parametrize("name", METHODS)
def test_fits_reach_their_measurements_and_error_bars_hold(name, rho):
    # About 600 cells, 95 % of them expected inside: 0.9 is seven standard deviations away.
    with dp.Ledger(key=KEY) as ledger:
        draws = opened(ROWS, SIZES, ledger=ledger, rho=rho)
        model = METHODS[name].run(draws)
        assert covered(model, draws.measurements, dp.synthesis.CodedRows(ROWS, SIZES)) >= 0.9
        for each in draws.measurements:
            if each.values.size >= 32 and each.values.shape == DOMAIN.shape(each.clique):
                off = (model.marginal(each.clique) - each.values) / each.deviation
                assert np.mean(off**2) < 4


def noisy(clique, deviation, seed):
    exact = dp.synthesis.CodedRows(ROWS, SIZES).exact(clique)
    noise = np.random.default_rng(seed).normal(0, deviation, exact.shape)
    return Measurement(clique, exact + noise, deviation)


def test_error_bars_hold_where_a_fit_stops_early():
    measured = [noisy(clique, 3.0, seed) for seed, clique in enumerate(PAIRS.cliques)]
    data = dp.synthesis.CodedRows(ROWS, SIZES)
    uniform = DenseModel.uniform(DOMAIN, float(len(ROWS)))
    for model in (
        fit(DOMAIN, measured, iterations=1).model,
        uniform,
        replayed(uniform, measured, passes=3),
    ):
        assert covered(model, measured, data) >= 0.9


def test_error_bars_of_a_model_that_fits_are_about_those_of_the_noise():
    measured = [noisy(clique, 3.0, seed) for seed, clique in enumerate(PAIRS.cliques)]
    model = fit(DOMAIN, measured, iterations=1000).model
    table = SyntheticTable((), model, tuple(measured), "a test", ())
    assert 3.0 <= table.marginal(["a", "b"]).deviation < 4.5
