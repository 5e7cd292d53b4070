"""Several groupings at once: which they are, and totals that agree."""

import itertools

import numpy as np
import pytest
import sqlglot

import deniable as dp
from corpus import hospital
from deniable.query.read.grouping import agreeing, grouped_by


def sets_of(text):
    group = sqlglot.parse_one(f"SELECT 1 FROM t GROUP BY {text}", read="duckdb").args["group"]
    columns, sets = grouped_by(group, lambda node: node.sql("duckdb"))
    names = [column.sql("duckdb") for column in columns]
    return ["".join(names[place] for place in each) for each in sets]


@pytest.mark.parametrize(
    ("text", "sets"),
    [
        ("a, b", ["ab"]),
        ("ROLLUP (a, b)", ["ab", "a", ""]),
        ("ROLLUP (a, (b, c))", ["abc", "a", ""]),
        ("CUBE (a, b)", ["ab", "a", "b", ""]),
        ("GROUPING SETS ((a, b), a, ())", ["ab", "a", ""]),
        ("c, ROLLUP (a)", ["ca", "c"]),
        ("GROUPING SETS (ROLLUP (a, b), c)", ["ab", "a", "", "c"]),
    ],
)
def test_groupings_are_those_of_sql(text, sets):
    assert ["".join(sorted(each)) for each in sets_of(text)] == ["".join(sorted(s)) for s in sets]


@pytest.mark.parametrize("text", ["GROUPING SETS (a, a)", "CUBE (a, b, c, d, e, f, g)"])
def test_groupings_that_repeat_or_are_many_are_refused(text):
    with pytest.raises(dp.QueryError):
        sets_of(text)


def test_tables_that_agree_are_those_of_least_squares():
    rng = np.random.default_rng(3)
    sizes, sets = (3, 4, 2), [(0, 1), (0,), (), (1, 2), (0, 1, 2)]
    noisy = {each: rng.normal(20, 5, [sizes[axis] for axis in each]) for each in sets}
    cells = list(itertools.product(*map(range, sizes)))
    rows, right = [], []
    for each in sets:
        for place in itertools.product(*(range(sizes[axis]) for axis in each)):
            rows.append(
                [
                    float(all(cell[a] == p for a, p in zip(each, place, strict=True)))
                    for cell in cells
                ]
            )
            right.append(noisy[each][place])
    best = np.linalg.lstsq(np.array(rows), np.array(right), rcond=None)[0].reshape(sizes)
    for each, found in agreeing(noisy).items():
        summed = best.sum(axis=tuple(axis for axis in range(3) if axis not in each))
        np.testing.assert_allclose(found, summed, atol=1e-9)


def test_parts_add_up_to_their_totals():
    with hospital.session() as session:
        answer = session.sql(
            "SELECT ward, urgent, COUNT(*) AS n, SUM(cost) AS total, GROUPING(urgent) AS both "
            "FROM visits GROUP BY ROLLUP (ward, urgent)",
            epsilon=1,
        )
    rows = list(zip(*(answer[name] for name in answer.columns), strict=True))
    assert len(rows) == 5 * 2 + 5 + 1
    whole = [row for row in rows if row[0] is None]
    wards = [row for row in rows if row[0] is not None and row[1] is None]
    parts = [row for row in rows if row[1] is not None]
    for place in (2, 3):
        assert sum(row[place] for row in wards) == pytest.approx(whole[0][place])
        assert sum(row[place] for row in parts) == pytest.approx(whole[0][place])
    assert {row[4] for row in parts} == {0}
    assert {row[4] for row in wards} == {1}
    assert "both" not in answer.numbers


def test_every_grouping_is_charged():
    with hospital.session() as session:
        told = session.explain(
            "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ROLLUP (ward)", rho=1
        )
        one = session.explain("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", rho=1)
    assert told.cost.rho == one.cost.rho
    assert told.columns[0].half_width == pytest.approx(2**0.5 * one.columns[0].half_width, rel=1e-6)


@pytest.mark.parametrize("listed", ["(NULLIF(ward, 'A')) AS k, ", ""], ids=["named", "unnamed"])
def test_a_group_in_brackets_has_the_name_of_its_column_and_else_its_text(listed):
    asked = f"SELECT {listed}COUNT(*) AS n FROM visits GROUP BY ROLLUP ((NULLIF(ward, 'A')))"
    told = []
    for _ in range(2):
        with hospital.session() as session, pytest.raises(dp.QueryError) as refused:
            session.explain(asked, rho=1)
        told.append(str(refused.value))
    assert told[0] == told[1]
    assert ("keys={'k'" if listed else "keys={'NULLIF(") in told[0]
