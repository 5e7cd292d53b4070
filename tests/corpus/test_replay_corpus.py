"""Questions replayed on nasty neighbours: nothing but noisy numbers may tell the two apart."""

import sys
from datetime import date

import pyarrow as pa
import pytest

import deniable as dp
from corpus import hospital
from deniable.auditing.replay.findings import FindingKind
from deniable.auditing.replay.replays import replays
from deniable.query.plan.plan import Plan
from replayed import each_replayed

QUESTIONS = hospital.read_questions("queries.sql")
PAIRS = {
    pair.name: pair
    for pair in dp.auditing.nasty_neighbours(
        bounds={"cost": (0, 2000), "age": (0, 120)},
        keys={"ward": hospital.WARDS, "diagnosis": hospital.DIAGNOSES},
        unit="patient_id",
    )
}
HEAVY = "a unit with 1,000 rows"
THREE = (HEAVY, "cost: NaN", "ward: the group 'nobody declared this' appears")
FIVE = (
    "SELECT ward, COUNT(*) AS n, SUM(cost) AS total, AVG(age) AS years FROM visits GROUP BY ward",
    "SELECT COUNT(DISTINCT patient_id) AS n, VARIANCE(cost) AS v FROM visits WHERE age / cost < 9",
    "SELECT diagnosis, COUNT(DISTINCT ward) AS n FROM visits GROUP BY diagnosis",
    "SELECT city, COUNT(*) AS n FROM visits LEFT JOIN wards USING (ward) GROUP BY city",
    "SELECT AVG(k) AS mean FROM (SELECT COUNT(*) AS k FROM visits GROUP BY patient_id) AS each",
)


def options_of(sql):
    """Bounds of k and keys of g, where a question has such; groups of cities are chosen."""
    options = {"bounds": {"k": (0, 24)}} if " AS k " in sql else {}
    if " AS g," in sql:
        options["keys"] = {"g": [0, 5]}
    return options | ({"max_groups": 2} if "city" in sql else {})


def prescribed(rows):
    """One drug for each unit that has visits: one that goes takes all its rows along."""
    ids = dict.fromkeys(row["patient_id"] for row in rows)
    rows = [
        {"patient_id": name, "drug": "insulin", "price": 20.0, "day": date(2024, 5, 5)}
        for name in ids
    ]
    return hospital.table_of(rows, hospital.PRESCRIPTION_TYPES)


def opened(rows, ledger, budget=None):
    filled = [{"visited": date(2024, 5, 5), "urgent": True, **row} for row in rows]
    return hospital.session(
        budget=dp.ApproxDP(30, 1e-6) if budget is None else budget,
        ledger=ledger,
        seen=hospital.table_of(filled, hospital.VISIT_TYPES),
        given=prescribed(rows),
    )


def asked(sql, options):
    """A pipeline: everything about the answer that an analyst sees."""

    def pipeline(session):
        with session:
            return asked_of(session, sql, options)

    return pipeline


def asked_of(session, sql, options):
    answer = session.sql(sql, epsilon=1, **options)
    return answer.intervals().to_pylist(), answer.columns, str(answer.cost)


def played(pipeline, data, neighbour, factory=opened):
    return dp.replay(pipeline, data, neighbour, factory=factory, time_limit=None)


@pytest.mark.parametrize(
    ("first", "name"),
    [
        # One of three in turn; the others in long runs.
        pytest.param(first, name, marks=() if name == THREE[turn % 3] else pytest.mark.soak)
        for turn, first in enumerate(range(0, len(QUESTIONS), 8))
        for name in THREE
    ],
)
def test_no_question_of_the_corpus_tells_three_nasty_neighbours_apart(first, name):
    """Eight questions to a session; what is refused, or fails, must do so on both sides."""

    def pipeline(session):
        shown = []
        with session:
            for question in QUESTIONS[first : first + 8]:
                try:
                    shown.append(asked_of(session, question.sql, question.options))
                except dp.DeniableError as error:
                    shown.append(type(error).__name__)
        return shown

    found = played(pipeline, PAIRS[name].data, PAIRS[name].neighbour)
    assert found.ok, str(found)
    assert found.releases


def all_of(pairs, questions):
    def pipeline(session):
        with session:
            return [
                session.sql(sql, epsilon=1, **options_of(sql)).intervals().to_pylist()
                for sql in questions
            ]

    for pair, found in each_replayed(pipeline, pairs, opened):
        assert found.ok, f"{pair.name}: {found}"
        assert found.releases >= len(questions)
        assert found.ended == "with an output"


@pytest.mark.parametrize("turn", range(5))
def test_two_of_five_questions_in_turn_tell_no_nasty_neighbours_apart(turn):
    all_of(list(PAIRS.values())[turn::5], [FIVE[turn], FIVE[(turn + 2) % 5]])


@pytest.mark.soak
def test_five_questions_tell_no_nasty_neighbours_apart():
    all_of(PAIRS.values(), FIVE)


@pytest.mark.parametrize("sql", FIVE[:1] + FIVE[4:])
def test_pure_budgets_tell_no_heavy_unit_apart(sql):
    def factory(rows, ledger):
        return opened(rows, ledger, dp.PureDP(10))

    pair = PAIRS[HEAVY]
    assert played(asked(sql, options_of(sql)), pair.data, pair.neighbour, factory).ok


def test_noise_for_half_the_bound_is_found_on_a_unit_with_many_rows(monkeypatch):
    pair, right = PAIRS[HEAVY], Plan.bound

    def half_in_the_price(plan, *, l2):
        """The engine cuts units at the right bound, the noise is made for half of it."""
        priced = sys._getframe(1).f_globals["__name__"] == "deniable.query.price.price"
        return right(plan, l2=l2) // (2 if priced else 1)

    monkeypatch.setattr(Plan, "bound", half_in_the_price)
    found = played(asked(FIVE[0], {}), pair.data, pair.neighbour)
    assert FindingKind.SENSITIVITY in {finding.kind for finding in found.findings}, str(found)


@pytest.mark.parametrize("planted", [False, True])
def test_half_the_bound_everywhere_is_found_on_a_unit_with_as_many_rows_as_count(
    planted, monkeypatch
):
    """Units with more rows are cut to whatever the bound is: those below it show that it is low."""
    right = Plan.bound
    if planted:
        monkeypatch.setattr(Plan, "bound", lambda plan, *, l2: right(plan, l2=l2) // 2)
    pairs = dp.auditing.nasty_neighbours(
        bounds={"cost": (0, 2000), "age": (0, 120)},
        keys={"ward": hospital.WARDS},
        unit="patient_id",
        rows_per_unit=24,
    )
    (pair,) = [pair for pair in pairs if pair.name == "a unit with 24 rows"]
    found = played(asked(FIVE[0], {}), pair.data, pair.neighbour)
    assert {finding.kind for finding in found.findings} == (
        {FindingKind.SENSITIVITY} if planted else set()
    )


HARMLESS = [
    {
        "patient_id": f"u{number}",
        "ward": "5",
        "cost": 10.0,
        "age": 4,
        "diagnosis": "1",
        "visited": date(2024, 5, 5),
        "urgent": True,
    }
    for number in range(5)
]
HOSTILE = {
    "text": {"ward": "O'Neill; DROP TABLE visits --", "diagnosis": "\N{SNOWMAN}" * 50},
    "NaN": {"cost": float("nan")},
    "infinity": {"cost": float("inf")},
    "minus infinity": {"cost": float("-inf")},
    "zeros": {"cost": 0.0, "age": 0, "ward": "0", "diagnosis": "0"},
    "negatives": {"cost": -1e308, "age": -(2**63), "ward": "-1"},
    "overflow": {"cost": 1e308, "age": 2**63 - 1, "ward": "9" * 400},
    "NULL everywhere": {
        "cost": None,
        "age": None,
        "ward": None,
        "diagnosis": None,
        "visited": None,
        "urgent": None,
    },
    "no unit": {"patient_id": None, "cost": float("nan")},
    "far dates": {"visited": date(9999, 12, 31)},
    "early dates": {"visited": date(1, 1, 1)},
    "nobody urgent": {"urgent": False},
}
ON_HOSTILE = {
    "casts": "SELECT COUNT(CAST(ward AS INTEGER)) AS n, COUNT(ward::DATE) AS d FROM visits",
    "cast in where": "SELECT COUNT(*) AS n FROM visits WHERE CAST(ward AS INTEGER) > 3",
    "cast of fractions": "SELECT SUM(CAST(cost AS INTEGER)) AS t FROM visits",
    "text against number": "SELECT COUNT(*) AS n FROM visits WHERE ward = 5 OR ward IN (1, 2)",
    "division": "SELECT COUNT(100 / age) AS t, COUNT(1 / (age - 4)) AS n FROM visits",
    "whole division": "SELECT COUNT(100 // age) AS n, COUNT(100 % age) AS m FROM visits",
    "products": "SELECT COUNT(age * age) AS n, COUNT(-age) AS m, COUNT(cost * cost) AS c "
    "FROM visits",
    "sum of products": "SELECT SUM(age * age) AS t FROM visits",
    "logarithms": "SELECT COUNT(LN(cost)) AS n, COUNT(LOG(age)) AS m FROM visits WHERE LN(age) > 0",
    "roots and powers": "SELECT COUNT(SQRT(cost)) AS n, COUNT(POW(cost, age)) AS m FROM visits",
    "exponentials": "SELECT COUNT(EXP(cost)) AS n, COUNT(ROUND(EXP(age))) AS m FROM visits",
    "absolute values": "SELECT SUM(ABS(age)) AS t, COUNT(ABS(cost)) AS n FROM visits",
    "dates": "SELECT COUNT(visited + INTERVAL 10 YEAR) AS n "
    "FROM visits WHERE visited > '2024-01-01'",
    "parts of dates": "SELECT EXTRACT(month FROM visited) AS m, COUNT(*) AS n "
    "FROM visits GROUP BY m",
    "days between": "SELECT COUNT(DATE_DIFF('day', DATE '2024-01-01', visited)) AS n FROM visits",
    "substrings": "SELECT COUNT(SUBSTRING(ward, age, age)) AS n, COUNT(LEFT(ward, age)) AS m "
    "FROM visits",
    "patterns": "SELECT COUNT(*) AS n FROM visits WHERE diagnosis LIKE ward OR ward LIKE '%\\\\'",
    "regular expressions": "SELECT COUNT(*) AS n FROM visits WHERE REGEXP_MATCHES('a', diagnosis)",
    "case of text and number": "SELECT SUM(CASE ward WHEN 5 THEN 1 ELSE 0 END) AS n FROM visits",
    "nullif of text and number": "SELECT COUNT(NULLIF(ward, 5)) AS n FROM visits",
    "text as a condition": "SELECT COUNT(*) AS n FROM visits WHERE diagnosis",
    "text as a negated condition": "SELECT COUNT(*) AS n "
    "FROM visits WHERE NOT diagnosis AND urgent",
    "text as a case": "SELECT SUM(CASE WHEN diagnosis THEN 1 ELSE 0 END) AS n FROM visits",
    "moments": "SELECT AVG(cost) AS a, STDDEV(cost) AS s, VARIANCE(age) AS v FROM visits",
    "per unit sums": "SELECT AVG(k) AS a FROM (SELECT SUM(age) + SUM(age) AS k FROM visits "
    "GROUP BY patient_id) AS t",
    "per unit logarithms": "SELECT AVG(k) AS a FROM (SELECT LN(COUNT(*) FILTER (WHERE urgent)) "
    "AS k "
    "FROM visits GROUP BY patient_id) AS t",
    "per unit roots": "SELECT AVG(k) AS a FROM (SELECT SQRT(SUM(cost)) AS k FROM visits "
    "GROUP BY patient_id) AS t",
    "per unit casts": "SELECT AVG(k) AS a FROM (SELECT CAST(MAX(ward) AS INTEGER) AS k FROM visits "
    "GROUP BY patient_id) AS t",
    "per unit having": "SELECT COUNT(*) AS n FROM (SELECT COUNT(*) AS c FROM visits "
    "GROUP BY patient_id HAVING MAX(age) * MAX(age) > 9) AS t",
    "windows": "SELECT SUM(k) AS t FROM (SELECT SUM(age) OVER (PARTITION BY patient_id) AS k "
    "FROM visits) AS t",
    "joins on casts": "SELECT COUNT(*) AS n FROM visits AS v JOIN wards AS w ON v.ward = w.beds",
    "groups of casts": "SELECT CAST(ward AS INTEGER) AS g, COUNT(*) AS n FROM visits GROUP BY g",
}
REFUSED = {
    *("text against number", "substrings", "patterns", "regular expressions"),
    *("case of text and number", "nullif of text and number", "text as a condition"),
    *("text as a negated condition", "text as a case", "joins on casts"),
}
"""Questions that an engine would have to cast for, or whose patterns or places are cells."""

_CASTS = "the engine's own cast of text to a number or truth is not guarded, and ends in an error"
_WITHIN = "arithmetic on aggregates within a unit is not guarded against overflow"


def hostile(name):
    return pytest.param(ON_HOSTILE[name], id=name)


@pytest.mark.parametrize("sql", [hostile(name) for name in ON_HOSTILE])
def test_bad_private_data_are_answered_like_good_ones(sql):
    rows = {name: {**HARMLESS[0], "patient_id": "new", **each} for name, each in HOSTILE.items()}
    units = {name: [rows[name]] for name in ("text", "negatives", "overflow", "NULL everywhere")}
    units["several rows"] = [
        rows["zeros"],
        rows["infinity"],
        rows["nobody urgent"],
        rows["no unit"],
    ]
    if "patient_id" not in sql:  # within rows one bad one does not hide another
        units = {"all at once": list(rows.values())}
    neighbours = [HARMLESS + added for added in units.values()]
    pipeline = asked(sql, options_of(sql))
    all_found = replays(pipeline, HARMLESS, neighbours, factory=opened, time_limit=None)
    for name, found in zip(units, all_found, strict=True):
        if sql in {ON_HOSTILE[each] for each in REFUSED}:
            assert found.ended == "with deniable.errors.QueryError", name
            continue
        assert found.ok, f"{name}: {found}"
        assert found.ended == "with an output", name


def test_rows_of_two_united_tables_are_units_of_their_own():
    fan = dp.PublicTable(pa.table({"x": pa.array([1] * 50, pa.int64())}))

    def factory(rows, ledger):
        tables = {
            name: dp.PrivateTable(
                pa.table({"x": pa.array(values, pa.int64())}), unit=dp.ROW, population="rows"
            )
            for name, values in zip("ab", rows, strict=True)
        }
        return dp.Session({**tables, "fan": fan}, budget=dp.ApproxDP(30, 1e-6), ledger=ledger)

    sql = (
        "SELECT COUNT(*) AS n FROM (SELECT x FROM a UNION ALL SELECT x FROM b) AS t "
        "JOIN fan ON t.x = fan.x"
    )
    first = [1, 2] * 20
    found = played(asked(sql, {}), (first, first), (first[1:], first), factory)
    assert found.ok, str(found)
