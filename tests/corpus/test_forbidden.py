"""What cannot be answered privately is refused with a sentence, before anything is spent."""

import pyarrow as pa
import pytest

import deniable as dp
from corpus import hospital

QUESTIONS = hospital.read_questions("forbidden.sql")

_LEAK = "a subquery inside a public SELECT or a frame reads private tables exactly"
_SAME = "functions that differ each time are refused by a list that lacks some"
_BOUND = "what the engine cannot bind is found after the charge only"
_UNIT = "the unit column passes through inner aggregates and HAVING"
_NUMBERS = "numbers beyond doubles end in errors of Python's own"


def marked(question):
    return pytest.param(question, id=question.name)


def subqueries(depth):
    made = "visits"
    for _ in range(depth):
        made = f"(SELECT age FROM {made}) AS v"
    return made


LONG = {
    "brackets": lambda: "(" * 500 + "age > 1" + ")" * 500,
    "functions": lambda: "ABS(" * 300 + "age" + ")" * 300,
    "subqueries": lambda: subqueries(100),
    "sums": lambda: " + ".join(["age"] * 2_000),
    "long": lambda: "x" * 10_000_000,
}


def text_of(question):
    text = question.sql
    for name, made in LONG.items():
        if f"{{{name}}}" in text:
            text = text.replace(f"{{{name}}}", made())
    return text


def opened(guarantee, **rows):
    staff = dp.PrivateTable(
        pa.table({"staff_id": pa.array([1, 2], pa.int64()), "age": pa.array([30, 40], pa.int64())}),
        unit="staff_id",
        population="hospital/staff",
        bounds={"age": (0, 120)},
        max_rows=1,
    )
    return hospital.session(budget=guarantee, more={"staff": staff}, **rows)


@pytest.fixture(scope="module")
def sessions():
    with opened(dp.ApproxDP(3, 1e-6)) as approximate, opened(dp.PureDP(3)) as pure:
        yield {"approximate": approximate, "pure": pure}


@pytest.mark.parametrize("verb", ["sql", "explain"])
@pytest.mark.parametrize("question", [marked(each) for each in QUESTIONS])
def test_a_forbidden_question_is_refused_with_its_sentence_and_costs_nothing(
    question, verb, sessions
):
    session = sessions[question.notes.get("budget", "approximate")]
    before = session.remaining, session.spent, session.history
    with pytest.raises(dp.DeniableError) as refusal:
        getattr(session, verb)(text_of(question), epsilon=0.01, **question.options)
    assert isinstance(refusal.value, dp.QueryError | dp.ParameterError)
    assert question.notes["says"] in str(refusal.value)
    assert len(str(refusal.value)) < 500
    assert (session.remaining, session.spent, session.history) == before


def test_there_are_thirty_forbidden_questions_with_names_of_their_own():
    names = {question.name for question in QUESTIONS}
    assert len(QUESTIONS) == len(names) >= 30


@pytest.mark.parametrize("given", [None, 7, b"SELECT 1", "", "   ", "\0", "\ud800", "-- nothing"])
def test_what_is_no_text_of_a_question_is_refused(given, sessions):
    with pytest.raises(dp.DeniableError):
        sessions["approximate"].sql(given, epsilon=0.01)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"epsilon": 0},
        {"epsilon": -1},
        {"epsilon": float("nan")},
        {"epsilon": 1, "rho": 1},
        {"epsilon": 1, "max_rows": 0},
        {"epsilon": 1, "max_rows": 1.5},
        {"epsilon": 1, "bounds": {"cost": (5, 1)}},
        {"epsilon": 1, "bounds": {"cost": 5}},
        {"epsilon": 1, "keys": {"ward": "surgery"}},
        {"epsilon": 1, "keys": {"ward": [0.5]}},
        {"epsilon": 1, "keys": {"ward": []}},
        {"error": {}},
        {"error": {"m": 5}},
        {"error": {"n": 5}, "epsilon": 1},
        {"error": {"n": -5}},
    ],
    ids=repr,
)
def test_options_out_of_range_are_refused_and_cost_nothing(options, sessions):
    session = sessions["approximate"]
    before = session.spent
    with pytest.raises(dp.DeniableError):
        session.sql("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", **options)
    assert session.spent == before


def test_a_question_dearer_than_what_is_left_is_refused_and_costs_nothing(sessions):
    session = sessions["approximate"]
    before = session.spent
    with pytest.raises(dp.BudgetError):
        session.sql("SELECT COUNT(*) AS n FROM visits", epsilon=4)
    assert session.spent == before
