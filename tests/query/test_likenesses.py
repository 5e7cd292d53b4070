"""Likenesses of tables on which numbers once misled, with nothing declared but the unit."""

import math

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import deniable as dp
from deniable.query.plan import tail as tail_module
from deniable.query.plan.levels import BINS, LEVELS, Norms
from deniable.query.plan.tail import Profile

SHARES = np.array([0.4, 0.2, 0.12, 0.1, 0.08, 0.05, 0.03, 0.02])


@pytest.mark.parametrize("epsilon", [1, 3])
def test_people_with_five_rows_or_eighty_in_eight_selected_groups(epsilon):
    """2,790 people, 30,000 rows, median 5, one in a hundred with 85: not 2,414 ± 15 for 12,000."""
    rng = np.random.default_rng(epsilon)
    rows = np.ceil(rng.lognormal(1.61, 1.2, 2_790)).astype(int)
    who = np.repeat(np.arange(len(rows)), rows)
    kind = rng.choice([*"abcdefgh"], len(who), p=SHARES)
    table = dp.PrivateTable(pa.table({"who": who, "kind": kind}), unit="who", population="p")
    budget = dp.ApproxDP(100, 1e-6)
    with dp.Session({"t": table}, budget=budget, ledger=dp.Ledger()) as session:
        answer = session.sql("SELECT kind, COUNT(*) AS n FROM t GROUP BY kind", epsilon=epsilon)
    assert len(answer) >= 4
    for row in answer.intervals(0.999999).to_pylist():
        assert row["n_low"] <= (kind == row["kind"]).sum() <= row["n_high"]
    first = next(row for row in answer.intervals().to_pylist() if row["kind"] == "a")
    assert first["n_high"] - first["n_low"] < 1.5 * (kind == "a").sum() or first["n_high"] == np.inf


FILES = [
    "SELECT COUNT(*) AS n, AVG(x) AS m FROM t JOIN names USING (k)",
    "SELECT COUNT(*) AS n, AVG(x) AS m FROM t WHERE UPPER(tag) = 'A'",
]


@pytest.mark.parametrize("question", FILES)
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_files_whose_rows_are_kept_while_columns_are_centred(tmp_path, question, kind):
    """Rows that are joined, or that functions of text choose, are stored: twice if centres move."""
    rng = np.random.default_rng(2)
    who = np.repeat(np.arange(3_000), rng.geometric(0.4, 3_000))
    x, k = rng.integers(30, 60, len(who)), rng.integers(0, 3, len(who))
    rows = pa.table({"who": [f"p{each}" for each in who], "k": k, "x": x, "tag": ["a"] * len(who)})
    path = str(tmp_path / f"t.{kind}")
    (csv.write_csv if kind == "csv" else parquet.write_table)(rows, path)
    types = {"who": "text", "k": "integer", "x": "integer", "tag": "text"}
    table = dp.PrivateTable(path, unit="who", population="p", columns=types, bounds={"x": (0, 140)})
    tables = {"t": table, "names": dp.PublicTable(pa.table({"k": [0, 1, 2]}))}
    widths = []
    for _ in range(4):  # a bound that noise put too low leaves the mean open: once in a thousand
        with dp.Session(tables, budget=dp.ApproxDP(100, 1e-6), ledger=dp.Ledger()) as session:
            answer = session.sql(question, epsilon=20)
        (row,) = answer.intervals(0.999999999).to_pylist()
        assert row["n_low"] <= len(who) <= row["n_high"]
        assert row["m_low"] <= x.mean() <= row["m_high"]
        widths.append(row["m_high"] - row["m_low"])
    assert min(widths) < 10  # about where they lie, and not about 70


@pytest.mark.parametrize("deviation", [0.2, 0.33, 0.5, 0.8, 1.3, 3, 11])
def test_empty_bins_seldom_stand_out_of_noise_in_whole_numbers(deviation):
    """As seldom as three deviations of a normal law, 0.00135, but for the fineness of steps."""
    noise = np.arange(-60 * 12, 60 * 12 + 1)
    law = np.exp(-(noise**2) / (2 * deviation**2))
    out = np.array([tail_module.stands_out(float(each), deviation) for each in noise])
    assert law[out].sum() / law.sum() < 0.0016
    assert tail_module.stands_out(math.ceil(3 * deviation + 1), deviation)


@pytest.mark.parametrize("seed", [0, 10, 11])
def test_heavy_people_who_live_together_are_within_what_may_be_lost(seed):
    """The heaviest fiftieth live in one of ten groups each: a hump of norms behind all others.

    Bins are made up with noise of a fixed seed: what follows from them is no matter of chance.
    """
    rng, groups = np.random.default_rng(seed), 10
    rows = (np.floor(2 * (rng.pareto(2.5, 5_000) + 1)) - 1).astype(int)
    spread = rng.multinomial(rows, np.full(groups, 1 / groups))
    norms = np.sqrt((spread**2).sum(axis=1))
    heavy = np.argsort(-rows)[:100]
    norms[heavy] = rows[heavy]
    level = np.searchsorted(LEVELS, norms, side="right") - 1
    noise = 10.8
    bins = np.bincount(level, minlength=BINS)[:BINS] + np.round(noise * rng.normal(size=BINS))
    lost = float(np.maximum(norms - 8, 0).sum())

    def most(slack):
        profile = Profile(Norms.ROOTS, 0, 0, tuple(map(int, bins)), noise, 1, 1, slack=slack)
        return float(np.quantile(profile.tail.beyond(8.0).most, 0.985))

    assert most(0) < lost < most(3)


@pytest.mark.parametrize(
    ("groups", "budget", "slack"),
    [
        (1, dp.ApproxDP(100, 1e-6), 0),
        (3, dp.ApproxDP(100, 1e-6), 1),
        (20, dp.ApproxDP(100, 1e-6), 3),
        (20, dp.PureDP(100), 0),
    ],
)
def test_norms_of_several_groups_may_have_a_hump(groups, budget, slack, monkeypatch):
    """Of one group, and of sums of absolute values, equally many rows have equal norms."""
    seen = []
    tail = tail_module.tail_of

    def seen_tail(*given):
        seen.append(given[4])
        return tail(*given)

    monkeypatch.setattr(tail_module, "tail_of", seen_tail)
    who = np.repeat(np.arange(1_000), 2)
    data = pa.table({"who": who, "g": np.arange(2_000) % groups})
    table = dp.PrivateTable(data, unit="who", population="p", keys={"g": range(groups)})
    by = "" if groups == 1 else " GROUP BY g"
    with dp.Session({"t": table}, budget=budget, ledger=dp.Ledger()) as session:
        session.sql(f"SELECT COUNT(*) AS n FROM t{by}", epsilon=5)
    assert set(seen) == {slack}
