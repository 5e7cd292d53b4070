import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from io import StringIO
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import deniable as dp
from clinic import METADATA
from deniable.cli.app import app
from deniable.session import Session

COMMAND = str(Path(sys.executable).parent / "deniable")
BY_WARD = "SELECT ward, COUNT(*) AS n, AVG(cost) AS mean_cost FROM visits GROUP BY ward"
COUNT = "SELECT COUNT(*) AS n FROM visits"


def deniable(*arguments, stdin=None):
    return subprocess.run(
        [COMMAND, *arguments], capture_output=True, text=True, check=False, input=stdin
    )


def test_from_a_file_to_an_empty_budget(data, folder):
    """The whole way, in processes of their own."""
    done = deniable("init", "visits.parquet", "--unit", "patient_id", "--budget", "1")
    assert done.returncode == 0, done.stderr
    draft = Path("visits.toml").read_text()
    draft = re.sub("# max_rows =.*", "max_rows = 5", draft)
    draft = re.sub("# cost = .*", "cost = [0, 100]", draft)
    draft = re.sub("# ward = .*", 'ward = ["A", "B", "C"]', draft)
    Path("visits.toml").write_text(draft)
    told = deniable("explain", "visits.toml", "--epsilon", "0.5", BY_WARD)
    assert told.returncode == 0, told.stderr
    assert "ε-DP with ε = 0.5" in told.stdout
    assert not Path("ledger.db").exists()
    first = deniable("query", "visits.toml", "--epsilon", "0.5", "-", stdin=BY_WARD)
    assert first.returncode == 0, first.stderr
    assert "visits/patient_id: ε 0.5 left: 1 more question at this price" in first.stdout
    again = deniable("query", "visits.toml", "--epsilon", "0.5", BY_WARD)
    assert "given before, free; ε 0.5 left" in again.stdout
    rows = [line for line in first.stdout.splitlines() if "±" in line and "│" in line]
    assert len(rows) == 3
    assert all(row in again.stdout for row in rows)
    beyond = deniable("query", "visits.toml", "--epsilon", "0.6", COUNT)
    assert beyond.returncode == 2
    assert beyond.stdout == ""
    assert beyond.stderr.startswith("deniable query: asked for ε = 0.6; ε = 0.5 is left")
    assert "nothing was spent" in beyond.stderr
    assert beyond.stderr.count("\n") == 1


def test_json_has_intervals_cost_and_what_is_left(file, run):
    found = json.loads(run("query", file, BY_WARD, "--epsilon", "0.5", "--json"))
    assert [row["ward"] for row in found["rows"]] == ["A", "B", "C"]
    assert found["rows"][0]["n_low"] < found["rows"][0]["n"] < found["rows"][0]["n_high"]
    assert found["cost"]["rho"] > 0
    assert set(found["left"]["clinic/patient"]) == {"rho", "delta"}


def test_csv_stands_alone_on_stdout(file, run):
    rows = list(csv.DictReader(StringIO(run("query", file, BY_WARD, "--rho", "0.01", "--csv"))))
    assert [row["ward"] for row in rows] == ["A", "B", "C"]
    assert float(rows[0]["mean_cost_low"]) < float(rows[0]["mean_cost_high"])


def test_json_or_csv(file, run):
    assert "choose" in run("query", file, COUNT, "--epsilon", "1", "--json", "--csv", code=2)


def test_an_error_can_be_bought(file, run):
    found = json.loads(run("query", file, BY_WARD, "--error", "n=200", "--json"))
    row = found["rows"][0]
    assert 150 < (row["n_high"] - row["n_low"]) / 2 <= 200


@pytest.mark.parametrize("suffix", ["svg", "png"])
def test_a_picture_is_drawn(file, folder, run, suffix):
    picture = folder / f"out.{suffix}"
    told = run("query", file, BY_WARD, "--epsilon", "0.5", "--plot", picture)
    assert f"picture: {picture}" in told
    assert picture.stat().st_size > 5_000


@pytest.mark.parametrize("picture", ["out.pdf", "nowhere/out.svg", "out"])
def test_a_picture_that_cannot_be_is_refused_before_anything_is_spent(file, folder, run, picture):
    run("query", file, BY_WARD, "--epsilon", "0.5", "--plot", picture, code=2)
    assert not (folder / "ledger.db").exists()


FLOORS = "SELECT floor, COUNT(*) AS n FROM visits GROUP BY floor"


@pytest.mark.parametrize(
    ("keys", "sql", "wanted"),
    [
        ("ward=C,A", BY_WARD, ["C", "A"]),
        ('ward=["C", "A"]', BY_WARD, ["C", "A"]),
        ("floor=0,1,2", FLOORS, [0, 1, 2]),
        ("story=0,10", "SELECT floor * 10 AS story, COUNT(*) AS n FROM visits GROUP BY 1", [0, 10]),
        ("visited=2025-01-01", "SELECT visited, COUNT(*) AS n FROM visits GROUP BY 1", None),
        ("high=true", "SELECT floor > 0 AS high, COUNT(*) AS n FROM visits GROUP BY 1", [True]),
    ],
)
def test_keys_have_the_type_of_their_column(file, run, keys, sql, wanted):
    found = json.loads(run("query", file, sql, "--epsilon", "1", "--keys", keys, "--json"))
    assert [next(iter(row.values())) for row in found["rows"]] == (wanted or ["2025-01-01"])
    if wanted is not None:  # of one day there are too few visits to tell
        assert max(row["n"] for row in found["rows"]) > 500


def test_declared_types_decide_how_keys_are_read(file, run):
    file.write_text(METADATA + '[tables.visits.columns]\npatient_id = "text"\nfloor = "text"\n')
    file.write_text(re.sub(r"(?m)^(bounds|keys) = .*\n", "", file.read_text()))
    found = json.loads(
        run("query", file, FLOORS, "--epsilon", "1", "--keys", "floor=0,1", "--json")
    )
    assert [row["floor"] for row in found["rows"]] == ["0", "1"]
    assert found["rows"][0]["n"] > 500


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--keys", "ward"), "write column=value,value"),
        (("--keys", "=A,B"), "write column=value,value"),
        (("--keys", "ward=[A"), "a list is"),
        (("--keys", "ward=A,A"), "different values"),
        (("--error", "n"), "write column=half-width"),
        (("--error", "n=wide"), "write column=half-width"),
        (("--error", "=5"), "write column=half-width"),
        (("--max-rows", "0"), "max_rows=0"),
        (("--max-groups", "-1"), "max_groups=-1"),
        (("--rho", "1"), "epsilon"),
    ],
)
def test_bad_options(file, folder, run, options, message):
    assert message in run("query", file, BY_WARD, "--epsilon", "0.5", *options, code=2)


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("", "a question is the text of one SELECT"),
        ("SELECT * FROM visits", "SELECT * is not answered"),
        ("SELECT COUNT(*) AS n FROM vists", "did you mean visits?"),
        ("SELECT AVG(costs) AS m FROM visits", "did you mean cost?"),
        ("DROP TABLE visits", "not answered"),
        ("SELECT COUNT(*) FROM visits; DROP TABLE visits", "not several statements"),
        ("SELECT COUNT(*) FROM 'other.parquet'", "there is no table"),
        ("SELECT COUNT(*) AS n FROM read_csv('/etc/passwd')", ""),
    ],
)
def test_bad_questions_cost_nothing(file, run, sql, message):
    assert message in run("query", file, sql, "--epsilon", "0.5", code=2)
    found = json.loads(run("query", file, COUNT, "--rho", "0.01", "--json"))
    assert found["entry"].startswith("3:")


def test_a_question_needs_a_price(file, run):
    assert "say what it may cost" in run("query", file, COUNT, code=2)


ODD = '[/red] "quoted" :smile: [bold]'


def test_names_are_shown_for_what_they_are(file, run):
    name = ODD.replace('"', '""')
    sql = f"""SELECT ward, COUNT(*) AS "{name}" FROM visits WHERE ward <> '[/x]' GROUP BY ward"""
    assert ODD in run("query", file, sql, "--epsilon", "0.5")
    assert ODD in run("explain", file, sql, "--epsilon", "0.5")


def test_keys_from_the_data_are_shown_for_what_they_are(folder, run):
    pq.write_table(pa.table({"p": range(2000), "w": [ODD] * 2000}), folder / "visits.parquet")
    (folder / "v.toml").write_text(
        METADATA.replace("patient_id", "p").split("max_rows")[0] + "max_rows = 1\nmax_groups = 1\n"
    )
    sql = "SELECT w, COUNT(*) AS n FROM visits GROUP BY w"
    assert ODD in run("query", "v.toml", sql, "--epsilon", "1")


def test_messages_stay_on_one_line(file, run):
    told = run("query", file, 'SELECT COUNT(*) FROM "a\nb\x1b[31m"', "--epsilon", "1", code=2)
    assert "\x1b" not in told


def test_who_asked_is_recorded(file, run):
    run("query", file, COUNT, "--epsilon", "0.1", "--who", "ana")
    rows = json.loads(run("ledger", "show", "ledger.db", "--json"))
    assert rows[-1]["who"] == "ana"


def interrupted(self, *_, **__):
    raise KeyboardInterrupt


def swallowed(self, *_, **__):
    try:
        os.kill(os.getpid(), signal.SIGINT)
    except KeyboardInterrupt:  # as an engine does that is in the middle of a statement
        raise dp.ReleaseFailedError("a draw failed after it was charged") from None


@pytest.mark.parametrize("way", [interrupted, swallowed])
def test_an_interrupt_ends_with_130(file, run, monkeypatch, way):
    before = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr(Session, "sql", way)
    assert run("query", file, COUNT, "--epsilon", "1", code=130) == ""
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("command", ["init", "query", "explain", "demo"])
def test_help_has_an_example(run, command):
    assert f"Example: deniable {command}" in run(command, "--help")


def test_a_file_that_was_written_since_is_warned_of_on_stderr(file, data):
    count = ["query", str(file), "--epsilon", "0.1", "--json", "SELECT COUNT(*) AS n FROM visits"]
    first = CliRunner().invoke(app, count)
    assert (first.exit_code, first.stderr) == (0, "")
    os.utime(data, (time.time() + 5, time.time() + 5))
    again = CliRunner().invoke(app, count)
    assert again.exit_code == 0
    assert json.loads(again.stdout)["repeated"] is True
    assert "warning: visits: written after this answer was recorded" in again.stderr
    assert "version=" in again.stderr
    assert again.stderr.count("\n") == 1
    file.write_text(file.read_text().replace("max_rows = 5", 'max_rows = 5\nversion = "2"'))
    fresh = CliRunner().invoke(app, count)
    assert (fresh.stderr, json.loads(fresh.stdout)["repeated"]) == ("", False)
