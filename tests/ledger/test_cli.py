import json

import pytest
from typer.testing import CliRunner

import deniable as dp
from deniable.cli.app import app
from deniable.ledger.reservation import Second

PEOPLE = "clinic/patient"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "ledger.db"
    with dp.Ledger(path) as ledger:
        ledger.open(PEOPLE, dp.Budget(dp.PureDP(1)), who="owner")
        gate = dp.Gate(ledger, PEOPLE, "ana")
        gate.release(dp.Geometric(epsilon=0.25, sensitivity=1), lambda: 100, purpose="how many")
    return path


def run(*arguments, code=0):
    found = CliRunner().invoke(app, ["ledger", *map(str, arguments)])
    assert found.exit_code == code, found.output
    return found.output


def test_show(file):
    assert "how many" in run("show", file)
    rows = json.loads(run("show", file, "--json"))
    assert [row["kind"] for row in rows] == ["open", "reserve", "answer to 2"]
    assert rows[1]["price"].startswith("ε = 0.25")


def test_balance(file):
    assert "0.75" in run("balance", file)
    (found,) = json.loads(run("balance", file, "--json"))
    assert found["remaining"] == {"epsilon": "3/4"}
    assert found["largest_epsilon"] == 0.75


def test_verify(file):
    assert "the chain holds" in run("verify", file)
    (found,) = json.loads(run("verify", file, "--json"))
    assert found["reservations"] == 1
    run("verify", file, "--population", PEOPLE, "--head", found["head"])
    later = f"9:{'a' * 64}"
    assert "ends at entry 3" in run("verify", file, "--population", PEOPLE, "--head", later, code=1)
    assert "name the population" in run("verify", file, "--head", later, code=1)


def test_export(file, tmp_path):
    target = tmp_path / "out.jsonl"
    assert "3 entries" in run("export", file, target)
    lines = [json.loads(line) for line in target.read_text().splitlines()]
    assert [line["body"]["number"] for line in lines] == [1, 2, 3]
    assert all(len(line["mac"]) == 64 for line in lines)
    run("export", file, target, code=1)  # never over a file that is there


def test_top_up(file):
    more = ("top-up", file, "--population", PEOPLE, "--who", "owner", "--reason", "second wave")
    assert "was added" in run(*more, "--epsilon", "0.5")
    (found,) = json.loads(run("balance", file, "--json"))
    assert found["remaining"] == {"epsilon": "5/4"}
    assert "cannot be added" in run(*more, "--rho", "0.5", code=1)
    assert "give epsilon" in run(*more, code=1)


def test_bad_places(tmp_path):
    assert "no ledger" in run("show", tmp_path / "missing.db", code=1)
    assert not (tmp_path / "missing.db").exists()
    assert "Traceback" not in run("balance", tmp_path, code=1)


def test_unknown_populations(file):
    assert "known are: 'clinic/patient'" in run("show", file, "--population", "x", code=1)


def test_holds_are_shown(file):
    half = dp.losses.PureLoss(bound=0.5)
    with dp.Ledger(file) as ledger:
        held = ledger.reserve(
            PEOPLE, dp.losses.PureLoss(bound=0.1), who="ana", purpose="bins", hold=half
        )
    rows = json.loads(run("show", file, "--json"))
    assert rows[-1]["price"] == "ε = 0.1; holds ε = 0.5"
    (found,) = json.loads(run("balance", file, "--json"))
    assert (found["holds"], found["remaining"]) == (1, {"epsilon": "3/20"})
    assert "0.15" in run("balance", file)
    with dp.Ledger(file) as ledger:
        part = Second(dp.losses.PureLoss(bound=0.2), {"plan": 1}, "main")
        _, other = ledger.settle(held, 1, part)
        ledger.answer(other, 2)
        tenth = dp.losses.PureLoss(bound=0.1)
        last = ledger.reserve(PEOPLE, tenth, who="ana", purpose="bins", hold=tenth)
        ledger.settle(last, 1, None)
    rows = json.loads(run("show", file, "--json"))[-5:]
    assert [row["kind"] for row in rows] == [
        "reserve", "settle to 4", "answer to 5", "reserve", "settle to 7",
    ]  # fmt: skip
    assert (rows[1]["why"], rows[1]["price"]) == ("main", "ε = 0.2 of what was held")
    assert rows[4]["price"] == "lets go of what was held"
    (found,) = json.loads(run("balance", file, "--json"))
    assert (found["holds"], found["remaining"]) == (0, {"epsilon": "7/20"})
    assert "the chain holds" in run("verify", file)
