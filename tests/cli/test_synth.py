import json
from pathlib import Path

import pyarrow.parquet as pq
from pyarrow import csv

import deniable as dp

BASE = ("--epsilon", "1", "--method", "mst", "--column", "ward", "--column", "cost")


def test_a_table_a_model_and_a_report(file, run):
    run("synth", file, "visits", "out.csv", *BASE, "--model", "m.npz", "--report", "r.html")
    rows = csv.read_csv("out.csv")
    assert rows.column_names == ["ward", "cost"]
    assert set(rows["ward"].to_pylist()) <= {"A", "B", "C"}
    assert "Public evaluation" in Path("r.html").read_text()
    assert dp.synthesis.SyntheticTable.load("m.npz").method == "mst"


def test_the_same_again_is_free_and_json_has_a_receipt(file, run):
    first = json.loads(run("synth", file, "visits", "a.parquet", *BASE, "--json", "--rows", "50"))
    again = json.loads(run("synth", file, "visits", "b.parquet", *BASE, "--json", "--rows", "50"))
    assert first["receipt"] == again["receipt"]
    assert pq.read_table("b.parquet").num_rows == 50
    with dp.Ledger("ledger.db") as ledger:
        assert ledger.balance("clinic/patient").releases == 1


def test_a_run_can_be_resumed(file, run):
    run("synth", file, "visits", "out.csv", *BASE, "--resume", "run.journal")
    assert len(Path("run.journal").read_text().splitlines()) > 3


def test_bad_options_are_refused_before_anything_is_spent(file, run):
    for more in (
        ("out.txt", *BASE),
        ("nowhere/out.csv", *BASE),
        ("out.csv", *BASE, "--bins", "cost=many"),
        ("out.csv", "--epsilon", "1", "--method", "magic", "--column", "ward"),
        ("out.csv", *BASE, "--column", "floor"),
    ):
        assert run("synth", file, "visits", *more, code=2).startswith("deniable synth: ")
    with dp.Ledger("ledger.db") as ledger:
        assert ledger.balance("clinic/patient").releases == 0
