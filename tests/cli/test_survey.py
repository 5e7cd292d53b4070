import json

import pytest
from typer.testing import CliRunner

from deniable.cli.app import app
from deniable.ledger.filters import Budget
from deniable.ledger.ledger import Ledger
from deniable.privacy.guarantees import PureDP
from deniable.service.document import load_document
from deniable.service.store import SurveyStore
from deniable.service.submission import Submission


def run(*arguments, code=0):
    done = CliRunner().invoke(app, ["survey", *map(str, arguments)])
    assert done.exit_code == code, done.output
    return done.output


@pytest.fixture
def document(tmp_path):
    run("new", tmp_path / "drugs.json", "--admission", "linkable codes")
    return tmp_path / "drugs.json"


def test_a_survey_from_draft_to_export(document, tmp_path):
    assert "3,586" in run("plan", document, "--share", "0.1")
    plan = json.loads(run("plan", document, "--share", "0.1", "--json"))
    assert plan[0]["people"] == 3586
    lines = run("invite", document, "--count", 30).splitlines()
    assert lines[0] == "person,link"
    survey = load_document(document)
    store = SurveyStore(document.with_suffix(".db"))
    for number, line in enumerate(lines[1:]):
        code = line.rsplit("#", 1)[1]
        store.accept(survey, Submission(code.encode(), b"", bytes(16), (int(number < 12),)))
    store.close()
    assert json.loads(run("status", document, "--json")) == {
        "survey": survey.id, "invited": 30, "answered": 30, "closed": False,
    }  # fmt: skip
    assert "30 answers, 30 invited" in run("status", document)
    no, yes = json.loads(run("results", document, "--json"))
    assert yes["answer"] == "YES"
    assert yes["estimate"] == pytest.approx((12 / 30 - 0.25) / 0.5)
    assert no["n"] == 30
    assert "YES" in run("results", document)
    run("export", document, tmp_path / "out")
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == [
        "codebook.csv", "codebook.json", "estimate.R", "estimate.py", "reports.csv", "survey.json",
    ]  # fmt: skip


def test_people_are_invited_once(document, tmp_path):
    (tmp_path / "people.txt").write_text("ann\nbob\n\n")
    people = ("--people", tmp_path / "people.txt")
    lines = run("invite", document, *people).splitlines()
    assert [line.split(",")[0] for line in lines] == ["person", "ann", "bob"]
    assert "one token per wave" in run(
        "invite", document, "--people", tmp_path / "people.txt", code=1
    )


def test_paper_is_entered_once(document, tmp_path):
    (tmp_path / "sheets.csv").write_text("yes\nno\nno\n")
    assert "3 sheets were stored\n" in run("enter", document, "monday", tmp_path / "sheets.csv")
    assert "counted twice" in run("enter", document, "monday", tmp_path / "sheets.csv")
    (tmp_path / "sheets.csv").write_text("yes\n")
    assert "another batch" in run("enter", document, "monday", tmp_path / "sheets.csv", code=1)
    assert json.loads(run("status", document, "--json"))["answered"] == 3


def test_a_survey_is_closed(document, tmp_path):
    run("invite", document, "--count", 2)
    assert "closed with 0 answers" in run("close", document)
    assert run("status", document).endswith("; closed\n")
    assert "is closed" in run("invite", document, "--count", 1, code=1)
    (tmp_path / "sheets.csv").write_text("yes\n")
    assert "is closed" in run("enter", document, "monday", tmp_path / "sheets.csv", code=1)


def test_the_crowd_is_told_with_the_results(document, tmp_path):
    (tmp_path / "sheets.csv").write_text("yes\nno\n" * 5_000)
    run("enter", document, "all", tmp_path / "sheets.csv")
    told = " ".join(run("results", document).split())
    assert "one of 10,000 is (0.2401, 1e-06)-DP" in told
    assert "What holds against everybody is ε = 1.0987." in told


def test_a_served_survey_is_noted_in_the_ledger(document, tmp_path, monkeypatch):
    """`serve` writes the note before it listens; a port that is taken ends it at once."""
    monkeypatch.setenv("DENIABLE_LEDGER_KEY", "ab" * 32)
    place, survey = tmp_path / "ledger.db", load_document(document)
    with Ledger(place) as ledger:
        ledger.open("somebody/else", Budget(PureDP(1)), who="owner")
    serve = ("serve", document, "--ledger", place, "--port", 1, "--host", "256.0.0.1")
    assert "has no budget" in run(*serve, code=1)
    with Ledger(place) as ledger:
        ledger.open(survey.population, Budget(PureDP(1)), who="owner")
        for _ in range(2):
            CliRunner().invoke(app, ["survey", *map(str, serve)])
        (note,) = [row for row in ledger.history(survey.population) if row.kind == "note"]
        assert note.data["note"]["survey"] == survey.id
        assert note.data["note"]["epsilon"] == pytest.approx(1.0986, abs=1e-4)
        assert ledger.balance(survey.population).spent == 0


def test_names_are_no_formulas(document, tmp_path):
    (tmp_path / "people.txt").write_text("=HYPERLINK(1)\n")
    assert "'=HYPERLINK(1)," in run("invite", document, "--people", tmp_path / "people.txt")


def test_plans_need_no_document():
    rows = json.loads(run("plan", "--json"))
    assert [row["n"] for row in rows] == [68323, 17107, 4314, 3586, 1157, 620, 466]
    assert "17,107" in run("plan")


def test_bad_input_is_one_line(document, tmp_path):
    run("new", document, code=1)  # a document is never overwritten
    run("new", tmp_path / "x.json", "--epsilon", "many", code=1)
    run("new", tmp_path / "x.json", "--epsilon", "0", code=1)
    assert not (tmp_path / "x.json").exists()
    run("invite", document, code=1)
    run("invite", document, "--count", 0, code=1)
    run("status", tmp_path / "nowhere.json", code=1)
    run("serve", document, "--port", 0, code=2)
    run("serve", document, "--port", 65_536, code=2)
    run("new", tmp_path / "Ünï cöde!.json")
    assert load_document(tmp_path / "Ünï cöde!.json").name == "n--c-de"
    (tmp_path / "bad.json").write_text("{}")
    run("serve", tmp_path / "bad.json", code=1)
    run("invite", document, "--count", 1)
    assert run("results", document) == "no answers yet\n"
    run("export", document, tmp_path / "out")
    assert "is there already" in run("export", document, tmp_path / "out", code=1)
    (tmp_path / "noise.db").write_bytes(b"no database" * 500)
    assert "store" in run("results", document, "--store", tmp_path / "noise.db", code=1)


@pytest.mark.parametrize("command", ["status", "results", "close", "export"])
def test_only_what_was_served_is_looked_at(document, tmp_path, command):
    """A word changed in the document is another survey; a name mistyped is another store."""
    more = (tmp_path / "out",) if command == "export" else ()
    assert "is not there" in run(command, document, *more, code=1)
    assert not document.with_suffix(".db").exists()
    run("invite", document, "--count", 1)
    served = load_document(document).id
    kept = document.read_text()
    document.write_text(kept.replace("twelve", "12"))
    assert served in " ".join(run(command, document, *more, code=1).split())
    assert not (tmp_path / "out").exists()
    document.write_text(kept)
    assert "answers, 1 invited\n" in run("status", document)  # and it is not closed
    (tmp_path / "empty.db").touch()
    said = run(command, document, *more, "--store", tmp_path / "empty.db", code=1)
    assert "holds no surveys" in said
    run(command, document, *more)
