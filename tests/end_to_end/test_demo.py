import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from deniable.cli.demo import ask, clinic_ages

COMMAND = [str(Path(sys.executable).parent / "deniable")]


def run(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, check=False)


def test_the_demo_shows_a_count_and_a_histogram_with_error_bars(tmp_path):
    picture = tmp_path / "demo.png"
    done = run("demo", "--picture", str(picture))
    assert done.returncode == 0, done.stderr
    assert "Patients of 65 and more" in done.stdout
    assert "±" in done.stdout
    assert "Both answers together are 1-DP." in done.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size > 5_000


def test_the_demo_speaks_json():
    done = run("demo", "--json", "--epsilon", "0.2")
    answer = json.loads(done.stdout)
    assert answer["epsilon"] == 0.2
    assert len(answer["bands"]) == 11
    assert {"age", "estimate", "error"} == set(answer["bands"][0])


@pytest.mark.parametrize("epsilon", ["0", "-1", "nan", "inf", "1e-30"])
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
    assert "demo" in run("--help").stdout
    assert "--picture" in run("demo", "--help").stdout
    assert run("--version").stdout.startswith("deniable 0.")


def test_answers_are_within_their_error_bars():
    ages = clinic_ages()
    truth, _ = np.histogram(ages, bins=np.arange(0, 111, 10))
    hits = trials = 0
    for _ in range(200):
        answer = ask(ages, 1.0)
        hits += sum(
            abs(a - t) <= answer.bands_error for a, t in zip(answer.bands, truth, strict=True)
        )
        trials += truth.size
    assert hits >= 0.95 * trials - 6.2 * (0.95 * 0.05 * trials) ** 0.5
