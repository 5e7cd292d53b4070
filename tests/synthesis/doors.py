"""Doors to small tables of codes, on ledgers that live for one test."""

import numpy as np

import deniable as dp

KEY = bytes(32)


def opened(rows, sizes, *, ledger, rho=None, epsilon=None, relation="add_remove"):
    budget = dp.Budget(dp.PureDP(1000) if rho is None else dp.ZCDP(1000), relation=relation)
    ledger.open("people", budget, who="owner")
    gate = dp.Gate(ledger, "people", "owner")
    data = dp.synthesis.CodedRows(rows, sizes, relation=relation)
    return dp.synthesis.open_draws(gate, data, purpose="a test", rho=rho, epsilon=epsilon)


def related(count, sizes, seed=0):
    """Rows in which each column leans on the one before it."""
    rng = np.random.default_rng(seed)
    columns = []
    for size in sizes.values():
        fresh = rng.integers(size, size=count)
        if columns:
            keep = rng.random(count) < 0.7
            fresh = np.where(keep, columns[-1] % size, fresh)
        columns.append(fresh)
    return np.stack(columns, axis=1)


def total_variation(model, rows, sizes, clique):
    exact = dp.synthesis.CodedRows(rows, sizes).exact(clique) / len(rows)
    return 0.5 * np.abs(model.marginal(clique) / model.total - exact).sum()
