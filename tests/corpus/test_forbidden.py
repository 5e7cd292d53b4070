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
DEFECTS = {
    "private_subquery_in_a_public_select": _LEAK,
    "private_subquery_in_a_public_having": _LEAK,
    "private_subquery_in_a_public_order": _LEAK,
    "private_subquery_in_a_public_limit": _LEAK,
    "private_exists_in_a_public_select": _LEAK,
    "private_subquery_in_a_frame": _LEAK,
    "frame_by_a_private_column": "frames are not checked; a negative one ends in an error",
    "random_order_of_public_rows": _SAME,
    "current_time_of_the_answer": _SAME,
    "uuid_of_the_answer": _SAME,
    "local_timestamp_of_the_answer": _SAME,
    "unit_in_an_inner_having": _UNIT,
    "unit_in_an_inner_aggregate": _UNIT,
    "private_join_of_a_unit_with_itself": "ON a.unit = a.unit is answered as ON a.unit = b.unit",
    "ambiguous_column": "an ambiguous column is said not to be there",
    "count_of_nothing_within_a_unit": "COUNT() within a unit ends in an AttributeError",
    "number_beyond_any_double": _NUMBERS,
    "number_of_five_thousand_digits": _NUMBERS,
    "text_as_a_condition": _BOUND,
    "function_of_the_wrong_type": _BOUND,
    "sum_of_a_date_and_text": _BOUND,
    "text_compared_with_a_number_by_case": _BOUND,
    "ungrouped_column_beside_an_inner_aggregate": _BOUND,
}


def marked(question):
    known = DEFECTS.get(question.name)
    marks = [pytest.mark.xfail(strict=True, reason=known)] if known else []
    return pytest.param(question, marks=marks, id=question.name)


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


def opened(guarantee):
    staff = dp.PrivateTable(
        pa.table({"staff_id": pa.array([1, 2], pa.int64()), "age": pa.array([30, 40], pa.int64())}),
        unit="staff_id",
        population="hospital/staff",
        bounds={"age": (0, 120)},
        max_rows=1,
    )
    return hospital.session(budget=guarantee, more={"staff": staff})


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
    assert set(DEFECTS) <= names


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
