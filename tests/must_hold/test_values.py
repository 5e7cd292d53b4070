"""Must-hold cases 25 to 29: whatever stands in one person's row, nothing but noise tells of it.

A pair of neighbours is replayed through a whole session: with the same released values, both must
take the same path, cost the same, and show the same. Where a law is compared, every group is a
world of its own, so that one question makes as many independent releases as there are groups.
"""

import math
from functools import partial

import pyarrow as pa
import pytest

import deniable as dp
from chance import FALSE_ALARM
from deniable.auditing.replay.replays import replays
from deniable.auditing.sampled.outcomes import Several

WORLDS = [f"g{number:03d}" for number in range(250)]
NUMBERS = (
    "SELECT COUNT(*) AS n FROM t",
    "SELECT COUNT(x) AS n, SUM(x) AS y, AVG(x) AS m FROM t",
    "SELECT VARIANCE(x) AS v FROM t",
    "SELECT MEDIAN(x) AS y, MAX(x) AS most FROM t",
    "SELECT x > 5 AS high, COUNT(*) AS n FROM t GROUP BY high",
    "SELECT COUNT(*) AS n FROM t WHERE x <> x OR x * 2 > 3",
)
NASTY = {
    "NaN": math.nan,
    "infinity": math.inf,
    "minus infinity": -math.inf,
    "minus zero": -0.0,
    "the least double": 5e-324,
    "the largest double": 1.7976931348623157e308,
}


def numbers(data, ledger):
    return session({"x": pa.array(data, pa.float64())}, ledger)


def session(columns, ledger, **declared):
    given = {"unit": dp.ROW, "population": "p", "bounds": {"x": (0, 10)}, **declared}
    table = dp.PrivateTable(pa.table(columns), **given)
    return dp.Session({"t": table}, budget=dp.ApproxDP(100, 1e-6), ledger=ledger)


def ask(question, given):
    with given as opened:
        answer = opened.sql(question, epsilon=1)
        return {name: answer[name] for name in answer.columns}


def shown(question, data, neighbour, factory=numbers):
    """What the two neighbours show differently, and what the second of them shows."""
    ((replayed, answer),) = each_shown(question, data, [neighbour], factory)
    return replayed, answer


def each_shown(question, data, neighbours, factory=numbers):
    """The same of several neighbours of one table, each run in a process of its own."""
    found = replays(
        partial(ask, question), data, neighbours, factory=factory, time_limit=60 * len(neighbours)
    )
    for replayed, neighbour in zip(found, neighbours, strict=True):
        with dp.Ledger(key=bytes(32)) as ledger:
            yield replayed, ask(question, factory(neighbour, ledger))


def told(answer):
    """Numbers; MAX of so few people is missing, whatever they are."""
    shown = {name: column for name, column in answer.items() if name != "most"}
    missing = all(math.isnan(value) for value in answer.get("most", ()))
    return missing and all(math.isfinite(value) for column in shown.values() for value in column)


@pytest.mark.parametrize("question", NUMBERS)
def test_case_25_a_row_of_nan_shows_in_nothing(question):
    replayed, answer = shown(question, [2.0, 7.0, 3.0], [2.0, 7.0, 3.0, math.nan])
    assert replayed.ok, str(replayed)
    assert told(answer)


@pytest.mark.parametrize("question", NUMBERS[1:4])
def test_case_26_nor_do_infinities_and_ends_of_the_doubles(question):
    names, usual = [name for name in NASTY if name != "NaN"], [2.0, 7.0, 3.0]
    found = each_shown(question, usual, [[*usual, NASTY[name]] for name in names])
    for name, (replayed, answer) in zip(names, found, strict=True):
        assert replayed.ok, f"{name}: {replayed}"
        assert told(answer), name


def test_cases_25_and_26_a_replay_has_power():
    """The same question to a mean by hand: NaN reaches what is released."""

    def by_hand(rows):
        return dp.Laplace(epsilon=1, sensitivity=10).release(sum(min(max(r, 0), 10) for r in rows))

    for value in (math.nan, 1e300 * 1e300):
        replayed = dp.replay(lambda rows: by_hand([r * 0 for r in rows]), [2.0], [2.0, value])
        assert not replayed.ok


def worlds(question, extra, rows_of_all=2):
    """Each group has rows of its own, and some of them the one that is asked about."""
    group = [g for g in WORLDS for _ in range(rows_of_all + len(extra))]
    x = [value for _ in WORLDS for value in [3.0] * rows_of_all + list(extra)]
    with dp.Ledger(key=bytes(32)) as ledger:
        columns = {"g": pa.array(group), "x": pa.array(x, pa.float64())}
        opened = session(columns, ledger, keys={"g": WORLDS})
        answer = ask(question, opened)
    found = dict(zip(answer["g"], answer["y"], strict=True))
    return Several([found[g] for g in WORLDS])


@pytest.mark.parametrize("name", ["NaN", "infinity", "the largest double"])
@pytest.mark.parametrize("what", ["SUM(x)", "AVG(x)"])
def test_cases_25_and_26_the_law_is_within_what_is_claimed(name, what):
    """Of a table without the row, at ε; of one with a usual number in its place, at 2ε."""
    question = f"SELECT g, {what} AS y FROM t GROUP BY g"
    mechanism = partial(worlds, question)
    for usual, claim in (((), dp.ApproxDP(1, 1e-6)), ((5.0,), dp.ApproxDP(2, 4e-6))):
        pairs = [(usual, (NASTY[name],))]
        report = dp.audit(
            mechanism, claim, pairs, n=1_000, confidence=1 - FALSE_ALARM, time_limit=60
        )
        assert not report.violated, str(report)
        assert not report.findings


TEXTS = (
    "SELECT s, COUNT(*) AS n FROM t GROUP BY s",
    "SELECT COUNT(DISTINCT s) AS n FROM t",
    "SELECT COUNT(*) AS n FROM t WHERE s LIKE 'a%' OR LENGTH(s) > 3",
    "SELECT COUNT(CAST(s AS INTEGER)) AS n FROM t",
    "SELECT UPPER(s) = 'A' AS k, COUNT(s) AS n FROM t GROUP BY k",
)
CELLS = {
    "nothing": None,
    "empty": "",
    "not a number": "12x",
    "a number": "12",
    "unicode": "ßñ汉字🎉\u202e\u0301\x00",
    "ten million letters": "a" * 10_000_000,
}


def texts(data, ledger):
    return session({"s": pa.array(data, pa.string())}, ledger, bounds={}, keys={"s": ["a", "b"]})


@pytest.mark.parametrize("question", TEXTS)
def test_case_27_strange_cells_take_the_same_path(question):
    usual = ["a", "b", "7"]
    found = each_shown(question, usual, [[*usual, cell] for cell in CELLS.values()], texts)
    for name, (replayed, answer) in zip(CELLS, found, strict=True):
        assert replayed.ok, f"{name}: {replayed}"
        assert answer, name


def read_csv(folder, data, ledger):
    file = folder / "t.csv"
    file.write_text("x\n" + "\n".join(data) + "\n")
    table = dp.PrivateTable(
        file, unit=dp.ROW, population="p", bounds={"x": (0, 10)}, columns={"x": "number"}
    )
    return dp.Session({"t": table}, budget=dp.ApproxDP(100, 1e-6), ledger=ledger)


def test_case_27_a_cell_of_the_wrong_type_takes_the_same_path(tmp_path):
    cells, usual = ["", "not a number", "1e999", "NaN", '"1,5"', "ß", "True"], ["2.0", "7", "3"]
    neighbours = [[*usual, cell] for cell in cells]
    found = each_shown(NUMBERS[1], usual, neighbours, partial(read_csv, tmp_path))
    for cell, (replayed, answer) in zip(cells, found, strict=True):
        assert replayed.ok, f"{cell}: {replayed}"
        assert told(answer), cell


@pytest.mark.parametrize("question", NUMBERS)
def test_case_28_an_empty_table_and_one_row_look_alike(question):
    replayed, one = shown(question, [], [5.0])
    assert replayed.ok, str(replayed)
    with dp.Ledger(key=bytes(32)) as ledger:
        empty = ask(question, numbers([], ledger))
    assert list(empty) == list(one)
    assert {name: len(column) for name, column in empty.items()} == {
        name: len(column) for name, column in one.items()
    }


FAILING = {
    "division by zero": "SELECT COUNT(*) AS n FROM t WHERE 1 / (x - 4) > 0",
    "a root of less than nothing": "SELECT SUM(SQRT(x - 3)) AS y FROM t",
    "a logarithm of nothing": "SELECT COUNT(LN(x - 4)) AS n FROM t",
    "a cast that fails": "SELECT COUNT(CAST(s AS INTEGER)) AS n FROM t",
    "a date that is none": "SELECT COUNT(*) AS n FROM t WHERE CAST(s AS DATE) > DATE '2020-01-01'",
    "an overflow": "SELECT COUNT(*) AS n FROM t WHERE i * i > 5",
    "an overflow of a sum": "SELECT COUNT(*) AS n FROM t WHERE i + i > 5",
    "an exponential": "SELECT COUNT(*) AS n FROM t WHERE EXP(x * 1000) > 1",
}


def mixed(data, ledger):
    x, s, i = (list(column) for column in zip(*data, strict=True))
    columns = {
        "x": pa.array(x, pa.float64()),
        "s": pa.array(s, pa.string()),
        "i": pa.array(i, pa.int64()),
    }
    return session(columns, ledger)


@pytest.mark.parametrize("name", FAILING)
def test_case_29_an_expression_that_fails_for_one_row_fails_for_nobody(name):
    usual = [(5.0, "1", 1), (6.0, "2020-05-05", 2)]
    replayed, answer = shown(FAILING[name], usual, [*usual, (4.0, "x", 2**62)], mixed)
    assert replayed.ok, str(replayed)
    assert told(answer)
    replayed, _ = shown(FAILING[name], usual, [*usual, (2.0, "", -(2**62))], mixed)
    assert replayed.ok, str(replayed)
