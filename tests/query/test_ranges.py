"""Bounds of columns that are bought: what they come to, what is charged, what is refused."""

import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import deniable as dp
from corpus import hospital
from deniable.privacy.price import GRID
from deniable.query.price.ranges import Range
from deniable.tables import ColumnType
from query.test_bought import opened, people

ROWS = 20_000
QUESTION = "SELECT COUNT(*) AS n, SUM(x) AS s, AVG(y) AS m FROM t"


def table(seed=3):
    rng = np.random.default_rng(seed)
    return {
        "who": rng.integers(0, 8_000, ROWS),
        "x": rng.uniform(40, 50, ROWS),
        "y": rng.integers(-700, -300, ROWS),
    }


def session(data=None, *, unit="who", budget=None, ledger=None, **declared):
    private = dp.PrivateTable(
        pa.table(table() if data is None else data), unit=unit, population="people", **declared
    )
    return dp.Session(
        {"t": private},
        budget=budget or dp.ApproxDP(1000, 1e-6),
        ledger=dp.Ledger(key=bytes(32)) if ledger is None else ledger,
    )


@pytest.mark.parametrize("unit", ["who", dp.ROW])
@pytest.mark.parametrize("budget", [dp.ApproxDP(1000, 1e-6), dp.PureDP(1000), dp.ZCDP(1000)])
def test_bounds_that_are_bought_hold_the_data_and_not_much_more(unit, budget):
    price = {"rho": 99.0} if isinstance(budget, dp.ZCDP) else {"epsilon": 60.0}
    with session(unit=unit, budget=budget) as asked:
        answer = asked.sql(QUESTION, **price)
    # 40 to 50 lies within cells of the root of two: 32 to 64; -700 to -300 within -724 to -256.
    assert answer.labels[0] == (
        "bounds bought: x 32 to 64, y -725 to -256 (values beyond are clamped)"
    )
    data = table()
    assert answer["s"][0] == pytest.approx(data["x"].sum(), rel=0.05)
    assert answer["m"][0] == pytest.approx(data["y"].mean(), rel=0.05)


def test_the_whole_costs_what_was_asked_for_and_is_remembered():
    with session() as asked:
        foreseen = asked.explain(QUESTION, epsilon=2)
        first = asked.sql(QUESTION, epsilon=2)
        again = asked.sql(QUESTION, epsilon=2)
        other = asked.sql("SELECT MEDIAN(x) AS m FROM t", epsilon=1.99)
        price = asked.explain(QUESTION, epsilon=2)
        questions = [row.question for row in asked.history["people"] if row.kind == "reserve"]
    # To the last units of the ledger's grid: the bounds decide how often it rounds.
    assert abs(first.cost.rho - foreseen.cost.rho) <= 8 * GRID
    assert first.cost.asked == foreseen.cost.asked == 2
    assert "the values of x and the values of y" in foreseen.contributions
    assert again.repeated
    assert again.data == first.data
    assert len(set(questions)) == len(questions)
    # What was bought is known now: the bounds cost nothing more, and errors can be told.
    assert price.cost.rho < first.cost.rho
    assert price.columns[0].half_width is not None
    assert other.labels[0].startswith("bounds bought: x 32 to 64")


def test_the_total_is_not_above_the_price():
    with session(budget=dp.ZCDP(1000)) as asked:
        before = asked.remaining["people"].remaining["rho"]
        answer = asked.sql(QUESTION, rho=Fraction(1, 2))
        after = asked.remaining["people"].remaining["rho"]
    assert answer.cost.rho == before - after
    assert Fraction(49, 100) < answer.cost.rho <= Fraction(1, 2)


def test_names_that_need_quotes():
    data = table()
    odd = {'a "unit"': data["who"], "select": data["x"], "deniable": data["y"]}
    with session(odd, unit='a "unit"') as asked:
        answer = asked.sql('SELECT SUM("select") AS s FROM t', epsilon=2)
    assert answer.labels[0].startswith("bounds bought: select 32 to 64")


def test_through_subqueries_unions_and_expressions():
    with session() as asked:
        for sql in (
            "SELECT SUM(2 * x) AS s FROM t",
            "SELECT SUM(z) AS s FROM (SELECT who, x + 1 AS z FROM t) AS u",
            "SELECT SUM(z) AS s FROM (SELECT who, MAX(x) AS z FROM t GROUP BY who) AS u",
            "SELECT SUM(z) AS s FROM (SELECT who, AVG(x) AS z FROM t GROUP BY who) AS u",
            "SELECT SUM(x) AS s FROM (SELECT who, x FROM t UNION ALL SELECT who, x FROM t) AS u",
            "SELECT SUM(CASE WHEN y < 0 THEN x ELSE 0 END) AS s FROM t",
            "SELECT MIN(x) AS s FROM t",
        ):
            assert asked.sql(sql, epsilon=2).labels[0].startswith("bounds bought: x 32 to 64")
        both = asked.sql("SELECT CORR(x, y) AS c FROM t", epsilon=2)
        assert "x 32 to 64, y -725 to -256" in both.labels[0]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT SUM(1 / x) AS s FROM t",
        "SELECT SUM(z) AS s FROM (SELECT who, SUM(x) AS z FROM t GROUP BY who) AS u",
        "SELECT SUM(LENGTH(CAST(y AS VARCHAR))) AS s FROM t",
    ],
)
def test_what_gets_no_bounds_even_so_is_refused_for_nothing(sql):
    with session() as asked:
        with pytest.raises(dp.ParameterError, match="no bounds follow"):
            asked.sql(sql, epsilon=2)
        assert [row.kind for row in asked.history["people"]] == ["open"]


def test_an_error_cannot_be_named_before_bounds_are_known():
    with session(max_rows=10) as asked, pytest.raises(dp.ParameterError, match="the bounds of x"):
        asked.sql("SELECT SUM(x) AS s FROM t", error={"s": 100})


def test_too_few_people_are_not_seen_and_the_question_says_what_to_do():
    few = {name: column[:30] for name, column in table().items()}
    with session(few, max_rows=10) as asked:
        with pytest.raises(dp.ReleaseFailedError, match=r"charged.*bounds=\{'x': \(low, high\)\}"):
            asked.sql("SELECT SUM(x) AS s FROM t", epsilon=0.5)
        spent = [row.kind for row in asked.history["people"]]
    assert spent.count("reserve") == spent.count("answer") == 2


def test_declared_bounds_are_taken_instead():
    with session(max_rows=10) as asked:
        answer = asked.sql("SELECT SUM(x) AS s FROM t", epsilon=2, bounds={"x": (0, 100)})
    assert not any("bounds bought" in label for label in answer.labels)


HOSTILE = (math.nan, math.inf, -math.inf, 1.8e308, 5e-324, -0.0, None, 1e300, -1e300)


@pytest.mark.parametrize("value", HOSTILE)
@pytest.mark.parametrize("unit", ["who", dp.ROW])
def test_one_persons_value_changes_one_cell_of_each_histogram_by_one(value, unit):
    """And replaying finds nothing on such neighbours."""
    rng = np.random.default_rng(1)
    rows = [(n // 3, float(x)) for n, x in enumerate(rng.uniform(1, 9, 60))]
    more = [*rows, (77, value)] if unit is dp.ROW else [*rows, (77, value), (77, 3.0)]

    def factory(given, ledger):
        columns = {"who": [row[0] for row in given], "x": [row[1] for row in given]}
        return session(pa.table(columns), unit=unit, ledger=ledger)

    def pipeline(asked):
        return asked.sql("SELECT SUM(x) AS s FROM t", epsilon=400).data

    found = dp.replay(pipeline, rows, more, factory=factory, time_limit=None)
    assert found.ok, found.report
    assert found.releases >= 2


def test_cells_have_the_edges_that_they_say():
    """Every value lies within the edges of its cell, on both sides of zero and at the ends."""
    values = [0.0, 1.0, 1.5, 2.0, 3.0, 1e-9, 1e18, 700.0, 724.0, 725.0, 1e-30, 1e40]
    for sign in (1, -1):
        for value in values:
            data = {"who": np.arange(40), "x": np.full(40, sign * value)}
            with session(data, budget=dp.PureDP(10**6), max_rows=1) as asked:
                label = asked.sql("SELECT SUM(x) AS s FROM t", epsilon=10**5).labels[0]
            low, high = (
                float(part.replace(",", ""))
                for part in label.split(": x ")[1].split(" (")[0].split(" to ")
            )
            if 1e-9 <= value <= 1e18 or value == 0:
                assert low <= sign * value <= high
                assert value == 0 or abs(high - low) <= 0.5 * value
            else:
                assert (low >= 0) == (sign > 0)


def test_a_column_of_whole_numbers_has_whole_bounds():
    column = Range("t", "y", ColumnType.INTEGER, "who")
    seen = [False] * (2 * 190 + 1)
    seen[190 + 1 + 64 + 3] = True
    low, high = column.bounds([seen, seen])
    assert low.denominator == high.denominator == 1
    assert 0 < low < high


def test_a_declared_bound_that_cuts_off_much_is_named_from_bought_numbers_only():
    """`people` has 40 units with 400 rows of about 44,000 in all."""
    sql = "SELECT g, COUNT(*) AS n FROM t GROUP BY g"
    with opened(people(), max_rows=10, cap_rows=500) as asked:
        answer = asked.sql(sql, epsilon=20)
    (warning,) = answer.labels
    assert warning.startswith("max_rows cuts off about ")
    assert 0.25 < float(warning.split("about ")[1].split("%")[0]) / 100 < 0.45
    with opened(people(), max_rows=450, cap_rows=500) as asked:
        assert asked.sql(sql, epsilon=20).labels == ()
    with opened(people(), max_rows=10) as asked:  # nothing was bought that would tell
        assert asked.sql(sql, epsilon=20).labels == ()


def test_the_corpus_columns_can_be_bought_too():
    """The hospital's tables without their bounds: close to the answer with them."""
    sql = "SELECT ward, AVG(cost) AS mean FROM visits GROUP BY ward"
    budget = dp.ApproxDP(10**5, 1e-6)
    visits = dp.PrivateTable(
        hospital.visits(),
        unit="patient_id",
        population="p",
        keys={"ward": hospital.WARDS},
        max_rows=40,
    )
    with dp.Session({"visits": visits}, budget=budget, ledger=dp.Ledger()) as asked:
        answer = asked.sql(sql, epsilon=10_000)
    exact = hospital.visits().group_by("ward").aggregate([("cost", "mean")]).to_pylist()
    means = {row["ward"]: row["cost_mean"] for row in exact}
    for ward, mean in zip(answer["ward"], answer["mean"], strict=True):
        assert mean == pytest.approx(means[ward], rel=0.02)


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_has_no_cell(odd):
    data = table()
    data["x"] = np.where(np.arange(ROWS) % 20 == 0, odd, data["x"])
    with session(data) as asked:
        answer = asked.sql("SELECT COUNT(*) AS n, AVG(x) AS m FROM t", epsilon=2)
    assert answer.labels[0].startswith("bounds bought: x 32 to 64 ")


def test_a_unit_may_have_any_name():
    data = table()
    with session({"cell": data["who"], "x": data["x"]}, unit="cell") as asked:
        assert "x 32 to 64" in asked.sql("SELECT AVG(x) AS m FROM t", epsilon=2).labels[0]


@pytest.mark.parametrize("declared", [{}, {"max_rows": 10}])
def test_a_question_that_cannot_be_paid_in_full_is_not_charged_for_its_bounds(declared):
    with session(budget=dp.ZCDP(1), **declared) as asked:
        for sql in ("SELECT AVG(x) AS m FROM t", "SELECT COUNT(*) AS n FROM t"):
            with pytest.raises(dp.BudgetError, match="nothing was spent"):
                asked.sql(sql, rho=2)
        assert [row.kind for row in asked.history["people"]] == ["open"]


@pytest.mark.parametrize("error", [5, "s", [1], {"s": 4}])
def test_an_error_that_is_none_is_refused_as_one(error):
    with session() as asked, pytest.raises(dp.ParameterError):
        asked.sql("SELECT SUM(x) AS s FROM t", error=error)


def test_a_price_beyond_all_sense_is_refused_as_too_large():
    with session() as asked, pytest.raises(dp.ParameterError, match="or less"):
        asked.sql("SELECT COUNT(*) AS n FROM t", epsilon=1e300)
