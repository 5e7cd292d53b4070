"""Answers are data: they pickle, copy, compare, iterate, stream, and keep the names as typed."""

import copy
import dataclasses
import math
import pickle
import subprocess
import sys
from datetime import date
from enum import Enum
from fractions import Fraction

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import deniable as dp
from deniable import plots
from deniable.intervals import Normal, same

WHO, WARD = [i % 200 for i in range(2000)], ["ABC"[i % 3] for i in range(2000)]
COST, DAY = [float(i % 100) for i in range(2000)], [date(2024, 1 + i % 12, 1) for i in range(2000)]
VISITS = pa.table({"who": WHO, "Ward": WARD, "cost": COST, "day": DAY})
LEVELS = (0.01, 0.5, 0.95, 0.951, 1 - 1e-9)
KINDS = ("noise", "total")
APPROXIMATE = dp.ApproxDP(10**6, 1e-6)

QUESTIONS = {
    "count": "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward",
    "sum and mean": "SELECT ward, SUM(cost) AS s, AVG(cost) AS a FROM visits GROUP BY ward",
    "units and values": "SELECT COUNT(DISTINCT who) AS u, COUNT(DISTINCT day) AS d FROM visits",
    "shares": "SELECT COUNT(*) FILTER (WHERE cost > 50) / COUNT(*) AS share FROM visits",
    "spread": "SELECT STDDEV(cost) AS s, VAR_POP(cost) AS v FROM visits",
    "pairs": "SELECT CORR(cost, cost + 1) AS c, COVAR_POP(cost, cost) AS v FROM visits",
    "quantiles": "SELECT ward, MEDIAN(cost) AS m, MAX(cost) AS most FROM visits GROUP BY ward",
    "arithmetic": "SELECT ward, SQRT(COUNT(*)) AS r, ROUND(AVG(cost)) AS a FROM visits GROUP BY 1",
    "some rows": "SELECT ward, SQRT(COUNT(*)) AS r, COUNT(*) AS n FROM visits GROUP BY ward "
    "HAVING COUNT(*) > 1 ORDER BY ward DESC LIMIT 2",
    "no rows": "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING COUNT(*) > 1e9",
    "no numbers": "SELECT ward, COUNT(*) > 5 AS many FROM visits GROUP BY ward",
    "groupings": "SELECT ward, COUNT(*) AS n, GROUPING(ward) AS g FROM visits "
    "GROUP BY ROLLUP(ward)",
    "days": "SELECT day, COUNT(*) AS n FROM visits GROUP BY day",
}
TABLES = {
    "declared": {"max_rows": 10},
    "cut": {"max_rows": 3, "cap_rows": 20},
    "estimated": {"max_rows": None},
}


def opened(budget=APPROXIMATE, **changed):
    given = {"unit": "who", "population": "clinic", "bounds": {"cost": (0, 100)}}
    given |= {"keys": {"Ward": ["A", "B", "C"]}, "max_rows": 10, "cap_rows": 20, "max_groups": 12}
    visits = dp.PrivateTable(VISITS, **(given | changed))
    return dp.Session({"visits": visits}, budget=budget, ledger=dp.Ledger(key=bytes(32)))


def asked(question, budget=APPROXIMATE, epsilon=20, **changed):
    with opened(budget, **changed) as session:
        return session.sql(question, epsilon=epsilon)


def ends(answer):
    """Every interval there is, as exact numbers."""
    return {
        (name, level, kind): [end.tolist() for end in found]
        for name in answer.numbers
        for level in LEVELS
        for kind in KINDS
        if (found := answer.interval_of(name, level, kind)) is not None
    }


def check_copies(answer):
    for made in (
        pickle.loads(pickle.dumps(answer)),
        pickle.loads(pickle.dumps(answer, protocol=0)),
        copy.copy(answer),
        copy.deepcopy(answer),
    ):
        assert made is not answer
        assert made == answer
        assert hash(made) == hash(answer)
        assert same(ends(made), ends(answer))
        assert made.labels == answer.labels
        assert str(made) == str(answer)


def parts_of(value):
    """All that an answer holds, to the last number."""
    if isinstance(value, dict):
        for name, each in value.items():
            yield from (*parts_of(name), *parts_of(each))
    elif isinstance(value, list | tuple):
        for each in value:
            yield from parts_of(each)
    elif dataclasses.is_dataclass(value):
        assert type(value).__dataclass_params__.frozen, type(value)
        assert vars(value).keys() == {each.name for each in dataclasses.fields(value)}
        for each in dataclasses.fields(value):
            yield from parts_of(getattr(value, each.name))
    else:
        yield value


PLAIN = (str, bool, int, float, date, Fraction, np.ndarray, Enum, type(None))


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
def test_an_answer_is_frozen_data_and_copies_have_its_intervals(question, table):
    answer = asked(question, **table)
    for made in (answer, answer.consistent(non_negative=True, integer=True)):
        check_copies(made)
        assert not {type(each) for each in parts_of(made) if not isinstance(each, PLAIN)}


@pytest.mark.parametrize("question", ["count", "sum and mean", "quantiles", "arithmetic"])
def test_a_copy_of_an_answer_with_laplace_noise_has_its_intervals(question):
    check_copies(asked(QUESTIONS[question], dp.PureDP(10**6), max_rows=3, cap_rows=20))


def test_a_copy_of_parts_that_sum_to_their_total_has_their_intervals():
    with opened(max_rows=3, cap_rows=20) as session:
        answer = session.sql("SELECT ward, COUNT(*) AS N FROM visits GROUP BY ward", epsilon=20)
        total = session.sql("SELECT COUNT(*) AS n FROM visits", epsilon=20)
    parts, whole = answer.summing_to(total)
    assert (parts.columns, whole.columns) == (("ward", "N"), ("n",))
    assert sum(parts["n"]) == pytest.approx(whole["N"][0])
    for made in (parts, whole, parts.consistent(integer=True)):
        check_copies(made)
    assert same(ends(parts)["N", 0.95, "total"], ends(answer)["N", 0.95, "total"])
    assert ends(parts)["N", 0.95, "noise"] != ends(answer)["N", 0.95, "noise"]


def test_intervals_are_those_of_the_rows_that_are_shown():
    answer = asked(QUESTIONS["some rows"], max_rows=3, cap_rows=20)
    assert answer["ward"] == ["C", "B"]
    for name in ("r", "n"):
        low, high = answer.interval_of(name, 0.95, "noise")
        assert ((low + high) / 2).tolist() == pytest.approx(answer[name], rel=1e-12)
    low, high = answer.interval_of("n", 0.95, "total")
    assert (low < answer["n"]).all()
    assert (answer["n"] < high).all()


@pytest.mark.parametrize("epsilon", [0.001, 2])
def test_ends_of_numbers_that_look_like_counts_are_cut_and_rounded_outwards(epsilon):
    answer = asked(QUESTIONS["count"], epsilon=epsilon)
    made = answer.consistent(non_negative=True, integer=True)
    for level in LEVELS:
        low, high = (np.maximum(end, 0) for end in answer.interval_of("n", level))
        ends = [end.tolist() for end in made.interval_of("n", level)]
        assert ends == [np.floor(low).tolist(), np.ceil(high).tolist()]
    assert min(made["n"]) >= 0


def test_a_pickled_answer_is_read_where_there_is_no_session(tmp_path):
    answer = asked(QUESTIONS["some rows"], max_rows=3, cap_rows=20)
    (tmp_path / "answer").write_bytes(pickle.dumps(answer))
    read = (
        "import pickle, sys; answer = pickle.load(open(sys.argv[1], 'rb')); "
        "print(answer.intervals(0.9, kind='total').to_pylist())"
    )
    told = subprocess.run(
        [sys.executable, "-c", read, str(tmp_path / "answer")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.strip() == repr(answer.intervals(0.9, kind="total").to_pylist())


def test_answers_are_equal_if_all_that_they_hold_is():
    with opened() as session:
        one = session.sql(QUESTIONS["sum and mean"], epsilon=20)
        again = session.sql(QUESTIONS["sum and mean"], epsilon=20)
        other = session.sql(QUESTIONS["sum and mean"], epsilon=21)
    assert again.repeated
    assert again == dataclasses.replace(one, repeated=True, cost=again.cost)
    for different in (
        other,
        again,
        dataclasses.replace(one, noise=other.noise),
        dataclasses.replace(one, total=other.total | {"s": one.noise["s"]}),
        dataclasses.replace(one, labels=("other",)),
        dataclasses.replace(one, data=dict(reversed(one.data.items()))),
        one.consistent(non_negative=True),
        one.data,
        None,
    ):
        assert one != different


def test_numbers_that_are_none_are_equal_to_themselves():
    answer = asked(QUESTIONS["count"])
    values = np.array([1.0, math.nan, math.inf])
    changed = dataclasses.replace(
        answer,
        data=answer.data | {"n": values.tolist()},
        noise={"n": Normal(values, np.array([1.0, math.inf, math.nan]))},
    )
    check_copies(changed)
    assert changed != answer


def test_an_answer_gives_its_rows():
    with opened() as session:
        answer = session.sql('SELECT ward, COUNT(*) AS "a b" FROM visits GROUP BY ward', epsilon=20)
        none = session.sql(QUESTIONS["no rows"], epsilon=20)
    rows = [{"ward": w, "a b": n} for w, n in zip("ABC", answer["a b"], strict=True)]
    assert list(answer) == list(answer) == rows == answer.to_arrow().to_pylist()
    assert len(answer) == 3
    assert (list(none), len(none)) == ([], 0)


TAKEN = {
    "pandas": lambda answer: pd.DataFrame(answer).to_dict("records"),
    "pandas from Arrow": lambda answer: pd.DataFrame.from_arrow(answer).to_dict("records"),
    "polars": lambda answer: pl.DataFrame(answer).to_dicts(),
    "Arrow": lambda answer: pa.table(answer).to_pylist(),
    "batches of Arrow": lambda answer: (
        pa.RecordBatchReader.from_stream(answer).read_all().to_pylist()
    ),
    "DuckDB": lambda answer: duckdb.sql("FROM answer").to_arrow_table().to_pylist(),
}


@pytest.mark.parametrize("take", TAKEN.values(), ids=TAKEN)
@pytest.mark.parametrize("question", ["count", "some rows", "no numbers", "days", "groupings"])
def test_an_answer_is_taken_as_a_table(take, question):
    keys = {"day": sorted(set(DAY)), "Ward": ["A", "B", "C"]}
    answer = asked(QUESTIONS[question], keys=keys)
    assert len(answer)
    rows = [
        {name: value.date() if hasattr(value, "date") else value for name, value in row.items()}
        for row in take(answer)
    ]
    assert [{n: None if pd.isna(v) else v for n, v in row.items()} for row in rows] == list(answer)


@pytest.mark.parametrize("take", [pl.DataFrame, pa.table, pd.DataFrame.from_arrow])
def test_a_table_of_no_rows_has_its_columns(take):
    made = take(asked('SELECT Ward, COUNT(*) AS "N" FROM visits GROUP BY 1 HAVING COUNT(*) > 1e9'))
    names = made.column_names if isinstance(made, pa.Table) else made.columns
    assert list(names) == ["Ward", "N"]
    assert len(made) == 0


NAMES = {
    'SELECT COUNT(*) AS "Number of people", ward AS Ward FROM visits GROUP BY ward '
    'ORDER BY "number of PEOPLE" DESC': ("Number of people", "Ward"),
    "SELECT WARD, COUNT(*) AS Nn FROM visits GROUP BY ward HAVING COUNT(*) > 0 ORDER BY NN": (
        "WARD",
        "Nn",
    ),
    "SELECT visits.Ward, COUNT(*), AVG(cost) FROM Visits GROUP BY 1": ("Ward", "count", "avg"),
    '(SELECT COUNT(*) AS "ÄÖ İ" FROM visits)': ("ÄÖ İ",),
    "WITH Counted AS (SELECT WARD, COUNT(*) AS Kk FROM visits GROUP BY ward) SELECT wArd, "
    'KK AS "x Y" FROM counted WHERE kk > 0 ORDER BY kK': ("wArd", "x Y"),
    "SELECT c.WARD, c.K * 2 AS Twice FROM (SELECT ward, COUNT(*) AS k FROM visits GROUP BY ward) "
    "AS C": ("WARD", "Twice"),
    'SELECT LOWER(ward) AS "Low", SUM(cost) AS "=1+1" FROM visits GROUP BY ALL': ("Low", "=1+1"),
}


@pytest.mark.parametrize("question", NAMES)
def test_columns_are_called_as_they_were_typed(question):
    with opened() as session:
        options = {"keys": {"LOW": ["a", "b", "c"]}} if "LOWER" in question else {}
        answer = session.sql(question, epsilon=20, **options)
        told = session.explain(question, epsilon=20, **options)
    assert answer.columns == NAMES[question]
    assert answer.intervals().column_names[0] == NAMES[question][0]
    assert [each.name for each in told.columns] == list(answer.numbers)


def test_the_builder_keeps_names_as_typed():
    with opened() as session:
        built = session.table("VISITS").group_by("WARD").agg({"How many": dp.count()})
        answer = built.having("COUNT(*) > 0").order_by('"how MANY"').release(epsilon=20)
    assert answer.columns == ("WARD", "How many")


def test_names_are_found_whatever_their_case(tmp_path):
    with opened(budget=dp.ZCDP(10**6), bounds={}) as session:
        answer = session.sql(
            "SELECT ward AS Ward, COUNT(*) AS Nn, SUM(cost) AS Spent FROM visits GROUP BY ward",
            error={"nN": 30},
            keys={"WARD": ["B", "A"]},
            bounds={"COST": (0, 50)},
        )
        with pytest.raises(dp.ParameterError, match=r"the question has Nn$"):
            session.sql("SELECT COUNT(*) AS Nn FROM visits", error={"m": 3})
    assert answer["WARD"] == ["B", "A"]
    assert answer["nn"] == answer["Nn"] == answer.data["Nn"]
    assert answer.plot(tmp_path / "a.png", column="SPENT").exists()
    for name in ("n", "", 0, None):
        with pytest.raises(dp.ParameterError, match="the answer has Ward, Nn, Spent"):
            answer[name]


def test_declared_names_are_found_whatever_their_case():
    declared = {"keys": {"WARD": ["B", "A"]}, "bounds": {"Cost": (0, 50)}, "grid": {"COST": 1}}
    with opened(**declared) as session:
        answer = session.sql("SELECT ward, SUM(cost) AS s FROM visits GROUP BY ward", epsilon=20)
        made = dp.synthesize(session, "visits", columns=["ward", "cost"], epsilon=20)
    assert answer["ward"] == ["B", "A"]
    assert set(made.sample()["Ward"].to_pylist()) <= {"A", "B"}
    for argument, given in declared.items():
        ((name, value),) = given.items()
        with pytest.raises(dp.ParameterError, match="declared twice, but for its case"):
            opened(**{argument: {name: value, name.lower(): value}})


@pytest.mark.parametrize(
    "question",
    [
        "SELECT COUNT(*) AS n, SUM(cost) AS N FROM visits",
        'SELECT ward AS "Count", COUNT(*) AS "COUNT" FROM visits GROUP BY ward',
        "SELECT Ward, COUNT(*) AS wARD FROM visits GROUP BY ward",
    ],
)
def test_names_that_differ_by_case_only_are_refused(question):
    with opened() as session:
        with pytest.raises(dp.QueryError, match="two columns of one SELECT have one name"):
            session.sql(question, epsilon=20)
        assert session.remaining["clinic"].releases == 0


def test_one_question_with_names_typed_otherwise_is_answered_again_under_its_own_names():
    with opened() as session:
        one = session.sql("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", epsilon=20)
        two = session.sql("SELECT Ward, COUNT(*) AS N FROM VISITS GROUP BY WARD", epsilon=20)
        swapped = session.sql("SELECT COUNT(*) AS ward, ward AS n FROM visits GROUP BY 2", rho=1)
    assert two.repeated
    assert two.columns == ("Ward", "N")
    assert list(two.data.values()) == list(one.data.values())
    assert not swapped.repeated
    assert swapped["n"] == ["A", "B", "C"]


@pytest.mark.parametrize("second", ["n_low", "N_High"])
def test_ends_of_intervals_do_not_take_the_place_of_columns(second):
    """A column of the answer's own that is called as the end of another one's interval."""
    question = (
        f"SELECT ward AS n_high_, COUNT(*) AS n, SUM(cost) AS {second} FROM visits GROUP BY 1"
    )
    answer = asked(question)
    shown = answer.intervals().to_pydict()
    for name in answer.columns:
        assert shown[name] == answer.data[name]
    ends = [end.tolist() for each in answer.numbers for end in answer.interval_of(each)]
    assert [column for name, column in shown.items() if name not in answer.columns] == ends
    assert len({name.lower() for name in shown}) == len(shown) == 7
    assert answer.to_csv().splitlines()[0].split(",") == list(shown)


def open_answer():
    """Two wards, of which one has no upper end."""
    values, ends = np.array([100.0, 50.0]), (np.array([90.0, 45.0]), np.array([np.inf, 80.0]))
    return dp.Answer(
        data={"ward": ["A", "B"], "n": values.tolist()},
        noise={"n": Normal(values, np.array([4.0, 4.0]))},
        truth={"n": Fixed(*ends)},
        cost=dp.Price(None, Fraction(1), Fraction(0)),
        number=1,
        head="",
    )


@dataclasses.dataclass(frozen=True, eq=False)
class Fixed:
    low: np.ndarray
    high: np.ndarray

    def at(self, confidence):
        assert 0 < confidence < 1
        return self.low, self.high


def test_parts_that_sum_to_their_total_keep_what_is_known_of_the_truth():
    parts = open_answer()
    total = dataclasses.replace(
        parts,
        data={"n": [170.0]},
        noise={"n": Normal(np.array([170.0]), np.array([4.0]))},
        truth={"n": Fixed(np.array([160.0]), np.array([np.inf]))},
    )
    made, whole = parts.summing_to(total)
    assert sum(made["n"]) == pytest.approx(whole["n"][0])
    low, high = made.interval_of("n")
    assert low.tolist() == [90.0, 45.0]
    assert high.tolist() == [np.inf, 80.0]
    narrow, wide = (each.interval_of("n", kind="noise") for each in (made, parts))
    assert (narrow[1] - narrow[0] < wide[1] - wide[0]).all()
    far, _ = parts.summing_to(dataclasses.replace(total, data={"n": [900.0]}))
    assert far.interval_of("n")[1].tolist() == [np.inf, far["n"][1]]  # it holds the number shown


def test_open_ends_are_drawn_to_the_edge_of_the_picture(tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(plots, "_save", lambda figure, path: drawn.append(figure) or path)
    open_answer().plot(tmp_path / "a.png")
    (axes,) = drawn[0].axes
    bars = axes.containers[0].lines[2][0].get_segments()
    (low, high), (lower, higher) = ([y for _, y in bar] for bar in bars)
    assert (low, lower, higher) == (90, 45, 80)
    assert high == pytest.approx(axes.get_ylim()[1])
