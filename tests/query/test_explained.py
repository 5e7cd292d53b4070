"""What `explain` says beforehand: of bounds that are not known yet, or are, and of budgets."""

import json

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv
from typer.testing import CliRunner

import deniable as dp
from deniable.cli.app import app

COUNT = "SELECT COUNT(*) AS n FROM t"


@pytest.fixture
def data():
    rows = np.random.default_rng(1).geometric(0.3, 4_000)
    who = np.repeat(np.arange(4_000), rows)
    return pa.table({"who": who, "x": np.arange(len(who)) % 50})


def opened(data, epsilon=100.0, bounds=None):
    bounds = {"x": (0, 50)} if bounds is None else bounds
    table = dp.PrivateTable(data, unit="who", population="p", bounds=bounds)
    return dp.Session({"t": table}, budget=dp.ApproxDP(epsilon, 1e-6), ledger=dp.Ledger())


def test_before_and_after_bounds_are_estimated(data):
    with opened(data) as session:
        (before,) = session.explain(COUNT, epsilon=1).columns
        answer = session.sql(COUNT, epsilon=1)
        told = session.explain(COUNT, epsilon=1.05)  # another question, of the same profile
    assert "for each row that a person counts with" in str(before)
    (after,) = told.columns
    (row,) = answer.intervals().to_pylist()
    assert after.condition == "about the truth"
    assert 0.5 < after.half_width / (row["n_high"] - row["n_low"]) < 1.5
    assert "estimated privately before" in told.contributions


def test_what_is_expected_is_what_stands_behind_the_sign():
    """The larger side of the interval, where heavy people make one side larger."""
    rows = np.floor(2 * (np.random.default_rng(1).pareto(1.6, 4_000) + 1)).astype(int) - 1
    with opened(pa.table({"who": np.repeat(np.arange(4_000), rows)}), bounds={}) as session:
        answer = session.sql(COUNT, epsilon=1)
        (after,) = session.explain(COUNT, epsilon=1.05).columns
    (row,) = answer.intervals().to_pylist()
    shown = max(row["n_high"] - row["n"], row["n"] - row["n_low"])
    # Half of the whole width would be 0.6 to 0.7 of it; the deviation of this ratio is 0.025.
    assert np.isinf(shown) or 0.8 < after.half_width / shown < 1.3


def test_sums_say_that_clipping_is_not_foreseen(data):
    with opened(data) as session:
        session.sql("SELECT SUM(x) AS s FROM t", epsilon=1)
        (told,) = session.explain("SELECT SUM(x) AS s FROM t", epsilon=1).columns
    assert "of noise" in str(told)


def test_what_the_budget_covers(data):
    with opened(data, epsilon=3.0) as session:
        told = session.explain(COUNT, epsilon=1)
        assert told.covered
        for asked in range(told.more):
            session.sql(f"{COUNT} WHERE x >= {asked}", epsilon=1)
        spent = session.explain(f"{COUNT} WHERE x >= {told.more}", epsilon=1)
        assert not spent.covered
        assert "does not cover it" in str(spent)
        with pytest.raises(dp.BudgetError):
            session.sql(f"{COUNT} WHERE x >= {told.more}", epsilon=1)
        assert session.explain(f"{COUNT} WHERE x >= 0", epsilon=1).free


def test_the_command_reads_what_the_ledger_knows_and_binds_nothing(data, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "configuration"))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)
    csv.write_csv(data, tmp_path / "t.csv")
    run = CliRunner().invoke
    made = run(app, ["init", "t.csv", "--unit", "who", "--budget", "9", "--delta", "1e-6"])
    assert made.exit_code == 0, made.output
    price = ["t.toml", "--epsilon", "1", COUNT]
    before = run(app, ["explain", *price])
    assert "for each row" in before.output
    assert "which --json shows" in before.output
    assert not (tmp_path / "ledger.db").exists()
    assert run(app, ["query", *price]).exit_code == 0
    after = json.loads(run(app, ["explain", "--json", *price]).output)
    assert after["free"]
    assert after["statements"]
