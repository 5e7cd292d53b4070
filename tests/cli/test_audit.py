import json

import pytest

from deniable.auditing.self_audit import Subject
from deniable.cli import audit as command


def test_a_table_of_certificates(run):
    told = run("audit", "self", "--only", "Geometric", "--only", "RandomizedResponse")
    assert "Geometric" in told
    assert "RandomizedResponse" in told
    assert "not refuted" in told
    assert "No violation found, at confidence 0.95" in told


def test_json_and_a_page(run, folder):
    found = json.loads(run("audit", "self", "--only", "geometric", "--json", "--html", "page.html"))
    assert found["ok"]
    assert found["confidence"] == 0.95
    (row,) = found["subjects"]
    assert (row["layer"], row["subject"]) == ("mechanisms", "Geometric")
    assert row["verdict"] == "no violation found"
    assert 0 <= row["lower"] < row["ceiling"]
    page = (folder / "page.html").read_text()
    assert "<svg" in page
    assert "Geometric" in page


@pytest.mark.slow
def test_the_sql_path_is_audited(run):
    found = json.loads(run("audit", "self", "--only", "COUNT by declared keys", "--json"))
    assert found["ok"]
    assert found["subjects"][0]["findings"] == []


@pytest.mark.slow
def test_the_surveys_are_audited(run):
    """None is found to tell more than it claims, and some of them something."""
    found = json.loads(run("audit", "self", "--only", "survey", "--json"))
    assert found["ok"]
    assert len(found["subjects"]) == 11
    assert max(row["lower"] for row in found["subjects"]) > 0.1
    for row in found["subjects"]:
        assert row["findings"] == []


@pytest.mark.slow
def test_the_estimators_are_audited(run):
    """None is found to tell more than it claims; one that reads plain means tells something."""
    assert len(command.LAYERS["learning"]()) == 10
    some = (
        "--only",
        "StandardScaler",
        "--only",
        "ProjectedDescent",
        "--only",
        "PerturbedLogisticRegression",
    )
    found = json.loads(run("audit", "self", *some, "--json"))
    assert found["ok"]
    assert max(row["lower"] for row in found["subjects"]) > 0.05
    for row in found["subjects"]:
        assert row["findings"] == []


@pytest.mark.slow
def test_syntheses_are_audited(run):
    """Draws are not found to tell more than they claim, and one of them something."""
    names = ("a marginal, 1-DP", "a choice, 0.5-zCDP", "online answers, 1-DP")
    only = [part for name in names for part in ("--only", name)]
    found = json.loads(run("audit", "self", *only, "--json"))
    assert found["ok"]
    assert sorted(row["subject"] for row in found["subjects"]) == sorted(names)
    assert max(row["lower"] for row in found["subjects"]) > 0.1


@pytest.mark.slow
def test_what_is_refuted_is_told_with_its_witness(run, monkeypatch):
    import deniable as dp

    loud = Subject("mine", "loud", dp.Geometric(epsilon=3, sensitivity=1), dp.PureDP(1))
    monkeypatch.setitem(command.LAYERS, "mine", lambda: [loud])
    told = run("audit", "self", "--only", "mine", code=1)
    assert "violated" in told
    assert "likelier on" in told
    assert "A claim was refuted" in told


def test_errors_are_told_in_one_line(run):
    assert "must be one of mechanisms, sql, survey, learning, synthesis" in run(
        "audit", "self", "--only", "nothing", code=2
    )
    assert "no such folder" in run("audit", "self", "--html", "nowhere/page.html", code=2)


def test_help(run):
    assert "self" in run("audit", "--help")
    assert "--full" in run("audit", "self", "--help")
