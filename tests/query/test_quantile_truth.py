"""Quantiles and counts of different values about the truth, where rows of units are estimated."""

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binom

import deniable as dp
from chance import FALSE_ALARM
from deniable.query.plan.tail import Tail

SHARES = (0.1, 0.5, 0.9)
QUESTION = "SELECT " + ", ".join(
    f"QUANTILE_CONT(x, {share}) AS q{place}" for place, share in enumerate(SHARES)
)


def heavy_and_high(rng, people):
    """A Pareto law of rows, values that grow with them: what is cut off is not like the rest."""
    rows = np.floor(2 * (rng.pareto(1.6, people) + 1)).astype(int) - 1
    who = np.repeat(np.arange(people), rows)
    x = np.clip(rng.normal(40, 12, people)[who] + 15 * np.log(rows[who]), 0, 200)
    return pa.table({"who": who, "x": x, "y": rng.integers(0, 40, len(who))})


def opened(data, budget=None):
    bounds = {"x": (0, 200)}
    table = dp.PrivateTable(data, unit="who", population="p", bounds=bounds)
    budget = dp.ApproxDP(1e6, 1e-6) if budget is None else budget
    return dp.Session({"t": table}, budget=budget, ledger=dp.Ledger())


def held(runs, budget=None):
    """In how many runs all intervals of quantiles hold the truth."""
    rng, hits = np.random.default_rng(3), 0
    for _ in range(runs):
        data = heavy_and_high(rng, 3_000)
        with opened(data, budget) as session:
            (row,) = session.sql(f"{QUESTION} FROM t", epsilon=10).intervals().to_pylist()
        exact = np.quantile(data["x"].to_numpy(), SHARES)
        hits += all(row[f"q{n}_low"] <= q <= row[f"q{n}_high"] for n, q in enumerate(exact))
    return hits


def too_few(hits, runs):
    """Of three intervals, each of 95 %."""
    return binom.cdf(hits, runs, 0.85) < FALSE_ALARM


@pytest.mark.parametrize("budget", [None, dp.PureDP(1e6)], ids=["rho", "pure"])
def test_quantiles_hold_the_truth_of_all_rows(budget):
    assert not too_few(held(6, budget), 6)


def test_quantiles_that_forget_what_is_lost_are_found(monkeypatch):
    """Power: where nothing is taken to be lost, the bound is small, and intervals miss."""
    right = Tail.beyond

    def planted(tail, bound, cap=np.inf):
        found = right(tail, bound, cap)
        return type(found)(found.bound, 0 * found.most, 0 * found.least, found.beyond)

    monkeypatch.setattr(Tail, "beyond", planted)
    assert too_few(held(24), 24)


def test_ranks_of_the_plain_quantile_among_what_is_kept():
    """The rule by which ends are widened, on tables of whole and tied numbers."""
    rng = np.random.default_rng(4)
    for _ in range(300):
        x = np.sort(rng.integers(0, 6, rng.integers(1, 30)))
        weights = np.where(rng.random(len(x)) < 0.3, rng.random(len(x)), 1.0)
        lost, kept = (1 - weights).sum(), weights.sum()
        for share in (0.0, 0.1, 0.5, 0.77, 1.0):
            plain = np.quantile(x, share)
            upto, below = weights[x <= plain].sum(), weights[x < plain].sum()
            assert upto > share * kept - (1 - share) * lost - 1 - 1e-9
            assert below <= share * kept + share * lost + 1 + 1e-9


def test_few_people_have_the_bounds_for_an_interval():
    data = heavy_and_high(np.random.default_rng(5), 200)
    with opened(data) as session:
        answer = session.sql("SELECT MEDIAN(x) AS m FROM t", epsilon=1)
    (row,) = answer.intervals().to_pylist()
    assert (row["m_low"], row["m_high"]) == (0, 200)
    assert any("as wide as the bounds" in label for label in answer.labels)


def test_where_nobody_is_seen_no_quantile_is_given():
    data = heavy_and_high(np.random.default_rng(6), 8)
    with opened(data) as session, pytest.raises(dp.NotAnsweredError, match="max_rows="):
        session.sql("SELECT MEDIAN(x) AS m FROM t", epsilon=0.5)


def test_different_values_have_an_upper_end():
    """No more of them are lost than rows are."""
    rng = np.random.default_rng(7)
    who = np.repeat(np.arange(20_000), 3)
    data = pa.table({"who": who, "y": rng.integers(0, 5_000, len(who)).astype(str)})
    with opened(data.append_column("x", pa.array(np.zeros(len(who))))) as session:
        answer = session.sql("SELECT COUNT(DISTINCT y) AS n FROM t", epsilon=3)
    (row,) = answer.intervals(0.999999).to_pylist()
    assert row["n_low"] <= len(set(data["y"].to_pylist())) <= row["n_high"] < np.inf
