import json
import os
import pty
import subprocess
import sys
import tomllib

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deniable as dp
from deniable.cli.check import NOTICE, step_beyond, step_within

CSV = """id,age,ward,cost,seen
p1,30,A,10.5,2024-01-01
p1,30,A,10.5,2024-01-01
p2,x,B,99,2024-13-01
p3,200,Q,-3,2024-02-01
,40,A,5,2024-02-02
p1,31,A,NA,2024-01-03
p4,50,,7,2024-01-03
"""
METADATA = """
population = "clinic/patient"
ledger = "ledger.db"

[budget]
epsilon = 3

[tables.visits]
source = "visits.csv"
unit = "id"
max_rows = 2
bounds = { age = [-0.5, 110.5], cost = [0, 50] }
keys = { ward = ["A", "B", "C"] }

[tables.visits.columns]
id = "text"
age = "integer"
ward = "text"
cost = "number"
"""


@pytest.fixture
def meta(folder):
    (folder / "visits.csv").write_text(CSV)
    (folder / "visits.toml").write_text(METADATA)
    return folder / "visits.toml"


def checked(run, meta, *more, code=0):
    (table,) = json.loads(run("check", meta, "--json", *more, code=code))["tables"]
    return table


def column(table, name):
    return next(each for each in table["columns"] if each["name"] == name)


def test_the_first_line_says_whose_eyes_it_is_for(meta, run):
    assert run("check", meta).splitlines()[0] == NOTICE
    assert "owner's eyes only" in NOTICE
    assert json.loads(run("check", meta, "--json"))["notice"] == NOTICE


def test_everything_is_counted(meta, run):
    table = checked(run, meta)
    assert (table["rows"], table["without_unit"], table["repeated"]) == (7, 1, 1)
    assert table["left_out"] == {"seen": "it is not declared"}
    assert (table["dropped"], table["unread"]) == (0, 0)
    people = table["people"]
    assert (people["units"], people["most"], people["heavy"], people["cut"]) == (4, 3, 1, 1)
    assert people["quantiles"] == {"50%": 1, "90%": 3, "95%": 3, "99%": 3}
    age, cost, ward = (column(table, name) for name in ("age", "cost", "ward"))
    assert (age["cells"], age["read"]) == (7, 6)
    assert cost["share_read"] == 6 / 7
    # Of rows that are somebody's alone: the fifth is nobody's.
    assert age["bounds"] == {"low": -0.5, "high": 110.5, "values": 5, "below": 0, "above": 1}
    assert cost["bounds"] == {"low": 0, "high": 50, "values": 5, "below": 1, "above": 1}
    assert ward["keys"] == {"declared": 3, "rows": 6, "other": 2, "absent": ["C"]}
    assert "suggested" not in table


def test_people_read_the_same(meta, run):
    told = run("check", meta)
    for words in (
        "visits: 7 rows",
        "without a unit, and in no answer: 1 (14.3%)",
        "equal to another row in all columns: 1 (14.3%)",
        "4 people; rows of one: 50%: 1, 90%: 3",
        "max_rows = 2 cuts off 1 (16.7%) of rows",
        "bounds 0 to 50 clip 1 (20.0%) below, 1 (20.0%) above",
        "3 keys leave out 2 (33.3%); no row has C",
        "left out: seen: it is not declared",
    ):
        assert words in told
    assert "Q" not in told.replace("QUANT", "")


def test_what_is_counted_is_what_questions_see(meta, run):
    """A question with next to no noise is the judge, on the same file."""
    meta.write_text(
        METADATA.replace("epsilon = 3", "epsilon = 1000000").replace("max_rows = 2", "max_rows = 3")
    )
    table = checked(run, meta)
    answer = json.loads(
        run(
            *("query", meta, "--json", "--epsilon", "500000"),
            "SELECT COUNT(*) AS n, COUNT(age) AS ages, COUNT(cost) AS costs, "
            "COUNT(*) FILTER (WHERE ward IN ('A', 'B', 'C')) AS wards FROM visits",
        )
    )
    (row,) = answer["rows"] if "rows" in answer else [answer["data"]]
    found = {name: round(float(row[name])) for name in ("n", "ages", "costs", "wards")}
    ward = column(table, "ward")["keys"]
    assert found == {
        "n": table["rows"] - table["without_unit"],
        "ages": column(table, "age")["bounds"]["values"],
        "costs": column(table, "cost")["bounds"]["values"],
        "wards": ward["rows"] - ward["other"],
    }


def test_nothing_is_charged_or_recorded(meta, folder, run):
    run("check", meta)
    assert not (folder / "ledger.db").exists()
    assert (folder / "visits.toml").read_text() == METADATA


@pytest.mark.parametrize(("promise", "broken"), [("cap_rows = 2", 1), ("cap_rows = 3", 0)])
def test_a_broken_promise_ends_with_one(meta, run, promise, broken):
    meta.write_text(METADATA.replace("max_rows = 2", promise))
    assert ("PROMISE NOT KEPT: cap_rows" in run("check", meta, code=broken)) == bool(broken)
    assert len(checked(run, meta, code=broken)["broken_promises"]) == broken


def test_more_rows_than_promised(meta, run):
    meta.write_text(METADATA.replace("max_rows = 2", "most_rows = 6"))
    assert "there are 7 rows" in run("check", meta, code=1)


def test_suggestions_are_rounded_and_mark_the_file_first(meta, run):
    told = run("check", meta, "--suggest")
    assert tomllib.loads(meta.read_text())["tables"]["visits"]["looked"] is True
    assert meta.read_text().count("looked") > 0
    assert "max_rows = 5" in told
    assert "age = [20, 200]" in told
    assert "cost = [-5, 100]" in told
    assert "no ε covers" in told
    again = checked(run, meta, "--suggest")  # it is marked once
    assert meta.read_text().count("looked = true") == 1
    assert again["suggested"] == {"max_rows": 5, "bounds": {"age": [20, 200], "cost": [-5, 100]}}
    suggested = told[told.index("Suggested") :]
    assert not any(word in suggested for word in ("30", "31", "99 ", "10.5", "Q"))


@pytest.mark.parametrize(
    "text",
    [
        METADATA.replace("[tables.visits]", "[ tables . visits ]"),
        METADATA.replace("[tables.visits]", '[tables."visits"]'),
        METADATA.replace("[tables.visits]", "[tables]\n[tables.visits]"),
    ],
)
def test_files_that_are_written_otherwise_are_marked_or_refused(meta, run, text):
    meta.write_text(text)
    if '"visits"]' in text:
        told = run("check", meta, "--suggest", code=2)
        assert "looked = true" in told
        assert meta.read_text() == text
        meta.write_text(text.replace('unit = "id"', 'unit = "id"\nlooked = true'))
    assert "max_rows = 5" in run("check", meta, "--suggest")
    assert tomllib.loads(meta.read_text())["tables"]["visits"]["looked"] is True


LABEL = "bounds chosen by looking at the data: not covered by ε"
SUM = "SELECT SUM(cost) AS total FROM visits"


@pytest.mark.parametrize("looked", [False, True])
def test_answers_and_explanations_say_that_somebody_looked(meta, run, looked):
    if looked:
        run("check", meta, "--suggest")
    for command in ("explain", "query", "query"):  # the last is a repeat
        told = json.loads(run(command, meta, SUM, "--epsilon", "0.1", "--json"))
        assert (LABEL in told["labels"]) == looked
        assert (LABEL in " ".join(run(command, meta, SUM, "--epsilon", "0.1").split())) == looked


def test_python_tables_carry_it_too():
    table = dp.PrivateTable(
        pa.table({"x": [1, 2]}), unit=dp.ROW, population="p", bounds={"x": (0, 2)}, looked=True
    )
    ledger = dp.Ledger(key=bytes(32))
    with dp.Session({"t": table}, budget=dp.PureDP(1), ledger=ledger) as session:
        assert LABEL in session.sql("SELECT SUM(x) AS s FROM t", epsilon=1).labels
    with pytest.raises(dp.errors.ParameterTypeError, match="looked"):
        dp.PrivateTable(pa.table({"x": [1]}), unit=dp.ROW, population="p", looked="yes")


@pytest.mark.parametrize(
    ("value", "beyond", "within"),
    [
        (1, "1", "1"),
        (3, "5", "2"),
        (5, "5", "5"),
        (5.1, "10", "5"),
        (0.03, "0.05", "0.02"),
        (99, "100", "50"),
        (100_001, "200000", "100000"),
        (1e-9, "2e-9", "1e-9"),
        (7e20, "1e21", "5e20"),
    ],
)
def test_steps(value, beyond, within):
    low, high = float(step_within(value)), float(step_beyond(value))
    assert low <= value <= high
    assert (high, low) == pytest.approx((float(beyond), float(within)), rel=1e-12) or value == 1e-9
    assert tomllib.loads(f"x = {step_beyond(value)}")["x"] == high


def test_parquet_patterns_rows_and_public_tables(folder, run):
    for day in (1, 2):
        (folder / f"parts/day=2024-01-0{day}").mkdir(parents=True)
        made = pa.table(
            {
                "cost": pa.array([1.0, float("nan"), float("inf"), None]),
                "tags": pa.array([[1], [2], [], None]),
                "at": pa.array([0, 1, 2, 3], pa.timestamp("ms")),
            }
        )
        pq.write_table(made, folder / f"parts/day=2024-01-0{day}/a.parquet")
    (folder / "parts/day=2024-01-02/b.parquet").write_text("no parquet at all")
    (folder / "wards.csv").write_text("ward\nA\n")
    (folder / "v.toml").write_text(
        'population = "p"\nledger = "l.db"\n[budget]\nepsilon = 1\n[tables.V]\nrow = true\n'
        'source = "parts/day=*/*.parquet"\ncolumns = { cost = "number", day = "date" }\n'
        "keys = { day = [2024-01-01, 2024-01-03] }\n"
        '[tables.w]\nsource = "wards.csv"\npublic = true\ncolumns = { ward = "text" }\n'
    )
    table = checked(run, folder / "v.toml")
    assert (table["table"], table["rows"], table["people"], table["unread"]) == ("V", 8, None, 1)
    assert table["without_unit"] == 0
    cost, day = column(table, "cost"), column(table, "day")
    assert (cost["cells"], cost["read"]) == (6, 2)  # NaN and infinities are no values
    assert (day["cells"], day["read"]) == (8, 8)
    assert day["keys"] == {"declared": 2, "rows": 8, "other": 4, "absent": ["2024-01-03"]}
    assert "nested" in table["left_out"]["tags"]
    assert "milliseconds" in table["left_out"]["at"]


def test_lines_that_are_no_text_are_counted(meta, folder, run):
    (folder / "visits.csv").write_bytes(CSV.encode() + b"\xff\xfe,1,A,1,\np5,1,A,1,\n")
    table = checked(run, meta)
    assert (table["rows"], table["dropped"]) == (8, 1)
    assert "lines that are no text, and are no rows: 1" in run("check", meta)


def test_an_empty_table(meta, folder, run):
    (folder / "visits.csv").write_text("id,age,ward,cost,seen\n")
    table = checked(run, meta, "--suggest")
    assert (table["rows"], table["people"]["units"]) == (0, 0)
    assert table["suggested"] == {"max_rows": None, "bounds": {}}
    assert "visits: 0 rows" in run("check", meta, "--suggest")


def test_faults_are_told_in_one_line(meta, folder, run):
    assert "no such file" in run("check", "missing.toml", code=2)
    (folder / "visits.csv").unlink()
    assert "no such file" in run("check", meta, code=2)


@pytest.mark.slow
def test_progress_is_shown_to_people_alone(meta):
    """On a terminal each part is named as it is counted; in a pipe stderr stays empty."""
    code = "from deniable.cli.app import app; app()"
    command = [sys.executable, "-c", code, "check", str(meta)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=theirs, env=environment
    ) as running:
        os.close(theirs)
        seen = b""
        while True:
            try:
                chunk = os.read(ours, 4096)
            except OSError:  # the other end is closed
                break
            if not chunk:
                break
            seen += chunk
        assert running.wait(60) == 0
    os.close(ours)
    assert b"visits:" in seen or b"opening" in seen
