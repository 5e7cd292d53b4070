"""Whatever fails after a charge fails in one way: it says so, and nothing about the data."""

import numpy as np
import pyarrow as pa
import pytest

import deniable as dp
import deniable.query.run.answering
from deniable.engines.duckdb import DuckDBSnapshot

KEPT = (dp.ReleaseFailedError, dp.LedgerError, dp.errors.LedgerTamperedError)
ERRORS = [
    dp.QueryError("about 4711"),
    dp.ParameterError("bounds", 4711, "about 4711"),
    dp.errors.ParameterTypeError("bounds", 4711, "about 4711"),
    dp.EngineError("about 4711"),
    dp.BudgetError("about 4711"),
    dp.errors.CalibrationError("about 4711"),
    dp.errors.PrivateValueError("about 4711"),
    dp.errors.DoorError("about 4711"),
    ValueError("about 4711"),
    KeyError(4711),
    AssertionError("about 4711"),
    MemoryError("about 4711"),
]


def table(people=3000):
    number = np.arange(people * 2)
    return pa.table(
        {
            "who": number // 2,
            "ward": np.array(["A", "B"])[number % 2],
            "x": (number % 90) * 1.0,
            "z": (number % 7) * 1.0,
            "word": [f"w{n}" for n in number],
        }
    )


def session(rows=None, **declared):
    declared = {"keys": {"ward": ["A", "B"]}, "max_rows": 2} | declared
    source = table() if rows is None else rows
    private = dp.PrivateTable(source, unit="who", population="people", **declared)
    return dp.Session({"t": private}, budget=dp.ApproxDP(9, 1e-6), ledger=dp.Ledger())


def reserved(asked):
    return [row.kind for row in asked.history["people"]].count("reserve")


PLACES = {  # where it fails: what is replaced there, and how many prices are reserved by then
    "the answer is shown": ("shown", {"bounds": {"x": (0, 90)}}, 1),
    "bounds of rows are read": ("unseen", {"bounds": {"x": (0, 90)}, "max_rows": None}, 1),
    "bounds of columns are read": ("unseen", {}, 1),
    "an answer without declared bounds is shown": ("shown", {}, 1),
}
SUM = "SELECT ward, SUM(x) AS s FROM t GROUP BY ward"


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("place", PLACES)
def test_every_error_after_a_charge_is_one(place, error, monkeypatch):
    name, declared, charges = PLACES[place]

    def fails(*_, **__):
        raise error

    with session(**declared) as asked:
        monkeypatch.setattr(deniable.query.run.answering, name, fails)
        with pytest.raises(dp.ReleaseFailedError, match="stays charged") as told:
            asked.sql(SUM, epsilon=5)
        assert "4711" not in str(told.value)
        assert told.value.__context__ is told.value.__cause__ is None
        assert reserved(asked) == charges


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_every_error_of_an_engine_while_it_reads_is_one(error, monkeypatch):
    def fails(*_):
        raise error

    with session(bounds={"x": (0, 90)}) as asked:
        monkeypatch.setattr(DuckDBSnapshot, "run", fails)
        with pytest.raises(dp.ReleaseFailedError, match="stays charged") as told:
            asked.sql(SUM, epsilon=1)
        assert "4711" not in str(told.value)
        assert reserved(asked) == 1


def test_a_ledger_that_fails_says_so_itself(monkeypatch):
    with session(bounds={"x": (0, 90)}) as asked:

        def fails(*_):
            raise dp.LedgerError("the disk is full")

        monkeypatch.setattr(deniable.query.run.answering, "shown", fails)
        with pytest.raises(dp.LedgerError, match="the disk is full"):
            asked.sql(SUM, epsilon=1)


@pytest.mark.parametrize("text", ["SELECT", "SELECT x FROM t", "SELECT SUM(y) AS s FROM t"])
def test_what_is_refused_before_a_charge_keeps_its_class_and_costs_nothing(text):
    with session() as asked:
        asked.sql("SELECT COUNT(*) AS n FROM t", epsilon=1)  # a charge of another question
        with pytest.raises(dp.QueryError):
            asked.sql(text, epsilon=1)
        with pytest.raises(dp.ParameterError):
            asked.sql(SUM, epsilon=-1)
        with pytest.raises(dp.BudgetError):
            asked.sql(SUM, epsilon=20)
        with pytest.raises(TypeError, match="unexpected keyword"):
            asked.sql(SUM, price=1)
        assert reserved(asked) == 1


def test_bounds_that_cannot_be_seen_are_a_failed_release():
    with session(table(people=10)) as asked:
        for _ in range(2):  # the second time they are known, and nothing is charged
            with pytest.raises(dp.ReleaseFailedError, match=r"not answered.*Declare bounds="):
                asked.sql(SUM, epsilon=0.5)
        with pytest.raises(dp.ReleaseFailedError, match="not answered"):
            asked.explain(SUM, epsilon=0.5)
        assert reserved(asked) == 1


def test_values_and_bounds_that_a_synthesis_does_not_find_are_a_failed_release():
    with session(table(people=10), max_groups=1) as asked:
        for column, said in (("word", "no value of word was found"), ("x", "cannot be seen")):
            before = reserved(asked)
            with pytest.raises(dp.ReleaseFailedError, match=f"{said}.*stays charged"):
                dp.synthesize(asked, "t", epsilon=0.5, columns=[column], discover=[column])
            assert reserved(asked) > before


@pytest.mark.parametrize("error", ERRORS[:3], ids=lambda error: type(error).__name__)
def test_learning_fails_in_the_same_way(error, monkeypatch):
    def fails(*_):
        raise error

    model = dp.learning.Ridge(guarantee=dp.ZCDP(0.1), bounds=(0, 90), y_bounds=(0, 90))
    with session() as asked:
        monkeypatch.setattr(dp.learning.Ridge, "_learn", fails)
        with pytest.raises(dp.ReleaseFailedError, match="stays charged"):
            dp.fit(asked, model, "t", x=["x"], y="z")
        assert reserved(asked) == 1


def test_an_error_of_the_callers_own_reaches_the_caller():
    class Enough(Exception):  # noqa: N818
        """Raised by a function that is told how far a synthesis is."""

    def stop(_):
        raise Enough

    with session(bounds={"x": (0, 90)}) as asked:
        with pytest.raises(Enough) as told:
            dp.synthesize(asked, "t", epsilon=1, method="mst", columns=["ward", "x"], progress=stop)
        assert told.value.__context__ is None
        assert reserved(asked) == 1
