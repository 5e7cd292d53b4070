import json

BY_WARD = "SELECT ward, COUNT(*) AS n, SUM(cost) AS total FROM visits GROUP BY ward"


def test_prices_and_errors_are_told(file, run):
    told = run("explain", file, BY_WARD, "--epsilon", "0.5")
    assert "discrete Gaussian" in told
    assert "3, all of them public" in told


def test_json(file, run):
    found = json.loads(run("explain", file, "-", "--error", "n=50", "--json", stdin=BY_WARD))
    assert [column["name"] for column in found["columns"]] == ["n", "total"]
    assert found["columns"][0]["half_width"] <= 50


def test_nothing_is_spent_or_recorded(file, folder, run):
    run("explain", file, BY_WARD, "--epsilon", "100")
    assert not (folder / "ledger.db").exists()


def test_the_same_options_as_query(file, run):
    options = ("--rho", "0.1", "--keys", "ward=A,B", "--max-rows", "2", "--max-groups", "1")
    told = run("explain", file, BY_WARD, *options)
    assert "2, all of them public" in told
    assert "up to 2 rows" in told


def test_a_bad_question_is_told_in_one_line(file, run):
    assert "there is no table" in run(
        "explain", file, "SELECT COUNT(*) AS n FROM x", "--epsilon", "1", code=2
    )
