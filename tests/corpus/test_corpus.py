"""At a price that buys almost exact answers, every question agrees with plain DuckDB."""

import math
import re

import duckdb
import pytest

import deniable as dp
from chance import FALSE_ALARM
from corpus import hospital

QUESTIONS = hospital.read_questions("queries.sql")
NEARLY_ALL = 1_040_000  # ε
CELL = 2000 / 1024  # of the widest grid

_NULLS = "SUM and AVG of fractions within a unit take NULL for 2^42"
_FILTER = "FILTER of SUM and AVG within a unit is written outside the aggregate"


def marked(question):
    return pytest.param(question, id=question.name)


@pytest.fixture(scope="module")
def plain():
    with duckdb.connect() as connection:
        for name in ("visits", "prescriptions", "wards"):
            connection.register(name, getattr(hospital, name)())
        yield connection


@pytest.fixture(scope="module")
def session():
    with hospital.session(budget=dp.ApproxDP(len(QUESTIONS) * 1.5e6, 1e-6)) as opened:
        yield opened


def check(name, row, right):
    """One per mille, or what noise takes with a probability of FALSE_ALARM, if that is little."""
    exact = float(right[name])
    if name.startswith("q_"):
        assert abs(row[name] - exact) <= CELL, f"{name}: {row[name]} is answered, {exact} is right"
        return
    noise = max(row[f"{name}_high"] - row[name], row[name] - row[f"{name}_low"])
    most = max(0.03 * abs(exact), 2.5 if name.startswith("n") else 0.01)
    assert noise <= most, f"{name}: ± {noise} about {exact} shows nothing"
    allowed = max(1e-3 * abs(exact), noise)
    assert math.isclose(row[name], exact, rel_tol=0, abs_tol=allowed), (
        f"{name}: {row[name]} is answered, {exact} is right, in {right}"
    )


def by_key(rows, keys):
    return {tuple(row[key] for key in keys): row for row in rows}


@pytest.mark.parametrize("question", [marked(each) for each in QUESTIONS])
def test_an_answer_at_a_huge_price_is_the_exact_one(question, plain, session):
    answer = session.sql(question.sql, epsilon=NEARLY_ALL, **question.options)
    exact = plain.sql(question.sql).to_arrow_table()
    assert list(answer.columns) == exact.column_names
    shown = answer.intervals(1 - FALSE_ALARM).to_pylist()
    if "LIMIT" in question.sql or "ORDER BY SUM" in question.sql or "ORDER BY n" in question.sql:
        pairs = list(zip(shown, exact.to_pylist(), strict=True))
    else:
        pairs = paired(shown, exact.to_pylist(), answer, question)
    assert pairs
    for row, right in pairs:
        for name in answer.columns:
            if name not in answer.numbers:
                assert row[name] == right[name]
            else:
                check(name, row, right)


def paired(shown, exact, answer, question):
    """Rows of one group. Undeclared NULL groups are not shown; groups nobody is in count 0."""
    keys = [name for name in answer.columns if name not in answer.numbers]
    released, right = by_key(shown, keys), by_key(exact, keys)
    assert len(released) == len(shown)
    for key, row in released.items():
        if key not in right:
            assert all(abs(row[n]) < 0.25 for n in answer.numbers if n.startswith("n")), row
    missing = [key for key in right if key not in released]
    assert all(None in key for key in missing), f"groups are missing: {missing}"
    return [(row, right[key]) for key, row in released.items() if key in right]


FEATURES = {
    "COUNT(*)": r"COUNT\(\*\)",
    "COUNT(col)": r"COUNT\((?!\*|DISTINCT)",
    "COUNT(DISTINCT unit)": r"COUNT\(DISTINCT (\w+\.)?patient_id\)",
    "COUNT(DISTINCT col)": r"COUNT\(DISTINCT (?!(\w+\.)?patient_id)",
    "SUM": r"SUM\(",
    "AVG": r"AVG\(",
    "VARIANCE": r"VARIANCE\(|VAR_SAMP\(",
    "VAR_POP": r"VAR_POP\(",
    "STDDEV": r"STDDEV(_SAMP)?\(",
    "STDDEV_POP": r"STDDEV_POP\(",
    "ratios of aggregates": r"\) / (COUNT|SUM|AVG)\(",
    "arithmetic on aggregates": r"\) [*+-] |\* (COUNT|SUM)|ROUND\(SUM|SQRT\(VAR",
    "FILTER": r"FILTER \(WHERE",
    "CASE inside aggregates": r"(SUM|AVG|COUNT)\(CASE",
    "expressions inside aggregates": r"(SUM|AVG)\((\w+ [*/+-]|ABS|COALESCE|GREATEST|CAST)",
    "GROUP BY CASE": r"END AS class",
    "GROUP BY date_trunc": r"DATE_TRUNC",
    "GROUP BY extract": r"SELECT (EXTRACT|YEAR|MONTH)\(",
    "GROUP BY string functions": r"SELECT (UPPER|LEFT|LENGTH)\(",
    "GROUP BY integer bins": r"age // 10 AS|FLOOR\(.* AS bin|age % 7 AS",
    "GROUP BY several columns": r"GROUP BY \w+(\.\w+)?, \w+",
    "IN": r" IN \(",
    "BETWEEN": r"BETWEEN",
    "LIKE": r"LIKE",
    "NULL logic": r"IS (NOT )?NULL",
    "COALESCE": r"COALESCE",
    "casts": r"CAST\(",
    "arithmetic in WHERE": r"WHERE cost / \(",
    "dates in WHERE": r"WHERE (\w+\.)?visited|WHERE DATE_DIFF",
    "strings in WHERE": r"LENGTH\(TRIM|\|\||WHERE ward LIKE",
    "CTE": r"^WITH ",
    "subquery": r"FROM \(SELECT",
    "pre-aggregation by unit": r"FROM visits\s+(WHERE .*)?GROUP BY patient_id",
    "private JOIN public": r"JOIN wards( AS w)? ON",
    "private LEFT JOIN public": r"LEFT JOIN wards",
    "JOIN USING": r"USING \(",
    "private JOIN private": r"JOIN prescriptions",
    "UNION ALL": r"UNION ALL",
    "window within a unit": r"OVER \(PARTITION BY patient_id",
    "HAVING": r"HAVING",
    "ORDER BY": r"ORDER BY",
    "LIMIT": r"LIMIT",
    "MEDIAN": r"MEDIAN\(",
    "PERCENTILE": r"PERCENTILE_(CONT|DISC)",
    "QUANTILE": r"QUANTILE_(CONT|DISC)",
    "MIN": r"SELECT.* MIN\(",
    "MAX": r"SELECT.* MAX\(",
    "CORR and COVAR": r"CORR\(|COVAR_",
    "ROLLUP, CUBE, GROUPING SETS": r"ROLLUP|CUBE|GROUPING SETS",
}


@pytest.mark.parametrize("feature", FEATURES)
def test_each_feature_occurs_in_two_questions_at_least(feature):
    found = [q.name for q in QUESTIONS if re.search(FEATURES[feature], q.sql)]
    assert len(found) >= 2, found


def test_questions_without_groups_and_of_many_features_are_there():
    assert sum("GROUP BY" not in question.sql for question in QUESTIONS) >= 2
    counts = [sum(bool(re.search(p, q.sql)) for p in FEATURES.values()) for q in QUESTIONS]
    assert sum(count >= 6 for count in counts) >= 8


def test_there_are_ninety_questions_with_names_of_their_own():
    names = {question.name for question in QUESTIONS}
    assert len(QUESTIONS) == len(names) >= 90
