import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from deniable.cli.clinic import PATIENTS, VISITS, clinic

COMMAND = [str(Path(sys.executable).parent / "deniable")]


def run(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, check=False)


def test_the_demo_shows_four_answers_the_budget_and_a_picture(tmp_path):
    picture = tmp_path / "demo.png"
    done = run("demo", "--picture", str(picture))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("± 95 %") == 4
    assert done.stdout.count(" ± ") > 20
    assert "left: 24 more questions at this price" in done.stdout
    assert "10 releases charged, 10 answered; the chain holds" in done.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size > 5_000


def test_the_demo_leaves_no_key_behind(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("DENIABLE_LEDGER_KEY", raising=False)
    assert run("demo").returncode == 0
    assert not list(tmp_path.iterdir())


def test_the_demo_speaks_json_and_is_near_the_truth():
    found = json.loads(run("demo", "--json", "--epsilon", "1").stdout)
    by_ward, costs, ages, months = (question["rows"] for question in found["questions"])
    assert [row["ward"] for row in by_ward] == list("ABCDE")
    assert len(months) == 12
    assert found["ledger"]["entries"] == 15
    table = clinic()
    ward, cost = (table.column(name).to_numpy(zero_copy_only=False) for name in ("ward", "cost"))
    for row in by_ward:  # patients with very many visits are scaled down
        assert abs(row["visits"] / (ward == row["ward"]).sum() - 1) < 0.1
    for row in costs:
        assert abs(row["mean_cost"] / cost[ward == row["ward"]].mean() - 1) < 0.3
    decade = table.column("age").to_numpy() // 10 * 10
    patient = table.column("patient_id").to_numpy()
    truth = {int(ten): np.unique(patient[decade == ten]).size for ten in np.unique(decade)}
    missed = sum(
        not row["patients_low"] <= truth[row["decade"]] <= row["patients_high"] for row in ages
    )
    assert missed <= 6  # of ten, 95 % each: more happens once in 10^7 runs


def test_the_clinic_is_the_same_every_time_and_has_a_heavy_tail():
    table = clinic()
    assert table.equals(clinic())
    assert table.num_rows == VISITS
    visits = np.sort(np.bincount(table.column("patient_id").to_numpy(), minlength=PATIENTS))
    assert visits[-PATIENTS // 100 :].sum() > 0.05 * VISITS


@pytest.mark.parametrize("epsilon", ["0", "-1", "nan", "inf", "1e-30", "5"])
def test_a_bad_epsilon_is_refused_in_one_line(epsilon):
    done = run("demo", "--epsilon", epsilon)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr


def test_a_picture_that_cannot_be_written_is_said_in_one_line():
    done = run("demo", "--picture", "/nowhere/at/all.png")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_help_and_version():
    shown = run("--help").stdout
    assert all(command in shown for command in ("init", "query", "explain", "ledger", "demo"))
    assert "--picture" in run("demo", "--help").stdout
    assert run("--version").stdout.startswith("deniable 0.")
