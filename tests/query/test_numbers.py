"""Numbers that were computed wrongly, or not at all, at the ends of their types."""

import datetime
import time

import pyarrow as pa
import pytest

import deniable as dp


def session(rows, **declared):
    given = {"unit": "u", "population": "p", "max_rows": 1, "max_groups": 1, **declared}
    return dp.Session(
        {"t": dp.PrivateTable(pa.table(rows), **given)},
        budget=dp.ApproxDP(1e9, 1e-6),
        ledger=dp.Ledger(key=bytes(32)),
    )


@pytest.mark.parametrize(
    ("cast", "bounds", "value", "exact"),
    [
        ("DECIMAL(5, 2)", (0, 0.996), 0.996, 1.0),
        ("DECIMAL(5, 1)", (-0.97, -0.96), -0.96, -1.0),
        ("DECIMAL(5)", (0, 1.6), 1.6, 2.0),
        ("DECIMAL", (0, 0.0006), 0.0006, 0.001),
        ("DECIMAL(18, 15)", (0, 0.5), 0.5, 0.5),
        ("BIGINT", (0, 1.6), 1.6, 2.0),
    ],
)
@pytest.mark.parametrize("aggregate", ["SUM", "AVG"])
def test_bounds_hold_what_a_cast_rounds_to(aggregate, cast, bounds, value, exact):
    with session({"u": range(100), "x": [value] * 100}, bounds={"x": bounds}) as opened:
        answer = opened.sql(f"SELECT {aggregate}(CAST(x AS {cast})) AS m FROM t", epsilon=1e6)
    found = answer["m"][0] / (100 if aggregate == "SUM" else 1)
    assert found == pytest.approx(exact, rel=1e-3)


@pytest.mark.parametrize("value", [1 << 62, (1 << 63) - 1, -1 << 63, 5])
def test_a_mean_is_there_where_the_sum_leaves_64_bits(value):
    rows = {"u": [1] * 4 + [2], "i": [value] * 4 + [0]}
    near = f"m > {float(value) / 2:e}" if value > 0 else f"m < {float(value) / 2:e}"
    means = "SELECT u, AVG(i) AS m FROM t GROUP BY u"
    question = f"SELECT COUNT(*) AS n FROM ({means}) AS q WHERE {near}"
    with session(rows) as opened:
        assert opened.sql(question, epsilon=1e6)["n"] == pytest.approx([1], abs=0.1)


KINDS = {
    "LOWER(k)": pa.array([None] * 9, pa.string()),
    "k + 1": pa.array([None] * 9, pa.int64()),
    "EXTRACT(year FROM k)": pa.array([None] * 9, pa.date32()),
    "DATE_TRUNC('month', k)": pa.array([None] * 9, pa.timestamp("us")),
    "NOT k": pa.array([None] * 9, pa.bool_()),
}
OTHERS = {
    "LOWER(k)": ("A", "a"),
    "k + 1": (0, 1),
    "EXTRACT(year FROM k)": (datetime.date(2024, 5, 6), 2024),
    "DATE_TRUNC('month', k)": (datetime.datetime(2024, 5, 6), datetime.datetime(2024, 5, 1)),
    "NOT k": (False, True),
}


@pytest.mark.parametrize("made", KINDS)
def test_missing_keys_alone_have_the_type_of_their_column(made):
    other, becomes = OTHERS[made]
    question = f"SELECT {made} AS l, COUNT(*) AS n FROM t GROUP BY k ORDER BY {made}"
    with session({"u": range(9), "k": KINDS[made]}) as opened:
        assert opened.sql(question, epsilon=1e3, keys={"k": [None]})["l"] == [None]
        both = opened.sql(question, epsilon=1e3, keys={"k": [None, other]})
        assert set(both["l"]) == {None, becomes}


def test_what_does_not_fit_missing_keys_is_refused_before_it_is_charged():
    question = "SELECT LOWER(k) AS l, COUNT(*) AS n FROM t GROUP BY k"
    with session({"u": range(9), "k": KINDS["k + 1"]}) as opened:
        with pytest.raises(dp.QueryError):
            opened.sql(question, epsilon=1, keys={"k": [None]})
        assert opened.spent == {"p": 0}


@pytest.mark.parametrize("epsilon", [0.01, 1, 1e3, 1e6])
@pytest.mark.parametrize(
    "asked", ["MEDIAN(x) AS m", "COUNT(*) AS n, MIN(x) AS a, MAX(x) AS b, COUNT(DISTINCT x) AS d"]
)
def test_explain_is_quick_at_any_price(asked, epsilon):
    with session({"u": range(100), "x": [1.0] * 100}, bounds={"x": (0, 10)}) as opened:
        opened.explain(f"SELECT {asked} FROM t", epsilon=2)
        began = time.process_time()
        told = opened.explain(f"SELECT {asked} FROM t", epsilon=epsilon)
        assert time.process_time() - began < 0.2
    assert f"({epsilon:.4g}, 5e-07)" in told.guarantee
