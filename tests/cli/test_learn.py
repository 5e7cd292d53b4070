import json

import pytest
from pyarrow import parquet
from typer.testing import CliRunner

from clinic import METADATA, visits
from deniable.cli.app import app

FILE = METADATA.replace(
    "bounds = { cost = [0, 100] }", "bounds = { cost = [0, 100], floor = [0, 1] }"
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "visits.toml").write_text(FILE)
    parquet.write_table(visits(), tmp_path / "visits.parquet")
    return tmp_path


def run(*words):
    return CliRunner().invoke(app, ["learn", "visits.toml", *words])


@pytest.mark.parametrize(
    "words",
    [
        ("linear", "visits", "--x", "floor", "--y", "cost"),
        ("logistic", "visits", "--x", "floor,cost", "--y", "ward"),
        ("bayes", "visits", "--x", "floor,cost", "--y", "ward"),
        ("kmeans", "visits", "--x", "floor,cost"),
        ("pca", "visits", "--x", "floor,cost", "--count", "1"),
        ("linear", "SELECT floor, cost / 2 AS half FROM visits WHERE cost > 1", "--y", "half"),
        ("kmeans", "SELECT floor, cost FROM visits"),
    ],
    ids=" ".join,
)
def test_models_are_learned_from_a_file_of_metadata(folder, words):
    done = run(*words, "--epsilon", "0.5", "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["model"] == words[0]
    again = run(*words, "--epsilon", "0.5")
    assert again.exit_code == 0
    assert "given before, free" in again.stdout


@pytest.mark.parametrize(
    "words",
    [
        ("linear", "visits", "--x", "floor", "--y", "cost"),
        ("linear", "visits", "--x", "floor", "--y", "cost", "--rho", "0.1", "--epsilon", "1"),
        ("linear", "visits", "--x", "floor", "--y", "ward", "--rho", "0.1"),
        ("linear", "nowhere", "--x", "floor", "--y", "cost", "--rho", "0.1"),
        ("linear", "SELECT AVG(floor) AS floor FROM visits", "--y", "floor", "--rho", "0.1"),
        ("linear", "SELECT cost FROM visits LIMIT 9", "--y", "cost", "--rho", "0.1"),
        ("linear", "visits", "--x", "floor", "--y", "cost", "--rho", "100"),
        ("linear", "visits", "--x", "floor", "--y", "cost", "--rho", "1e-12"),
        ("logistic", "visits", "--x", "floor", "--y", "cost", "--rho", "0.001"),
        ("kmeans", "visits", "--x", "floor", "--count", "100000", "--rho", "0.001"),
    ],
    ids=str,
)
def test_what_cannot_be_learned_is_said_in_one_line(folder, words):
    done = run(*words)
    assert done.exit_code == 2
    assert done.stderr.count("\n") == 1
