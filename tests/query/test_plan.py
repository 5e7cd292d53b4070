"""Plans: the split of the price, and what two front ends have in common."""

import dataclasses
import math
import random

import pyarrow as pa
import pytest
from sqlglot import exp

import deniable as dp
from deniable.query.plan.counted import Statistic
from deniable.query.plan.plan import Plan
from deniable.query.read.catalogue import Options
from deniable.query.read.compile import compile_sql
from query.test_bounding import engine_with


def plan_with(statistics):
    engine, catalogue = engine_with([(1, "a", 1.0, 1)])
    engine.close()
    plan = compile_sql("SELECT COUNT(*) AS n FROM t", catalogue, Options())
    return dataclasses.replace(
        plan, counted=dataclasses.replace(plan.counted, statistics=tuple(statistics))
    )


def shown_error(plan: Plan, weights) -> float:
    """The sum of squared errors, each relative to its own size, weighted by importance."""
    parts = list(zip(weights, plan.counted.statistics, strict=True))
    joint = sum((w * s.size) ** 2 for w, s in parts)
    return sum(s.importance * joint / (w * s.size) ** 2 for w, s in parts)


@pytest.mark.parametrize("seed", range(20))
def test_the_split_of_the_price_minimises_the_error_that_is_shown(seed):
    rng = random.Random(seed)
    plan = plan_with(
        Statistic(exp.Literal.number(1), rng.choice([1, 50, 10**6]), False, rng.uniform(0.1, 3))
        for _ in range(rng.randint(2, 4))
    )
    best = shown_error(plan, plan.weights)
    for place in range(len(plan.weights)):
        for factor in (0.5, 0.8, 1.25, 2):
            other = [w * (factor if i == place else 1) for i, w in enumerate(plan.weights)]
            assert shown_error(plan, other) > best * (1 - 0.01)
    even = shown_error(plan, [1 / s.size for s in plan.counted.statistics])
    assert best <= even * 1.01


@pytest.mark.parametrize("rows", [1, 4, 100])
def test_the_bound_is_the_largest_norm_that_so_many_rows_can_reach(rows):
    by_row = Statistic(exp.Literal.number(1), 3)
    by_unit = Statistic(exp.Literal.number(1), 1, per_unit=True)
    plan = plan_with([by_row, by_unit]).with_rows(rows)
    w, v = plan.weights
    reached = 0
    for groups in range(1, rows + 1):
        sizes = [rows - groups + 1] + [1] * (groups - 1)
        reached = max(reached, sum((3 * w * n) ** 2 + v**2 for n in sizes))
    one_group = by(plan)
    assert one_group.bound(l2=True) ** 2 >= (3 * w * rows) ** 2 + v**2
    many = by(plan, dataclasses.replace(_group(), keys=tuple(range(rows))))
    assert many.bound(l2=True) == math.isqrt(reached - 1) + 1
    assert many.bound(l2=False) == rows * 3 * w + rows * v


def by(plan, *groups):
    counted = dataclasses.replace(plan.counted, groups=groups, sets=(tuple(range(len(groups))),))
    return dataclasses.replace(plan, counted=counted)


def _group():
    from deniable.query.plan.counted import Group

    return Group("g", exp.column("g"), None, None)


def test_a_question_is_compiled_once_while_all_that_it_depends_on_is_the_same():
    rows = pa.table({"u": [1, 2], "g": ["a", "b"], "x": [1, 2]})
    private = dp.PrivateTable(rows, unit="u", population="p", bounds={"x": (0, 9)}, max_rows=1)
    question = "SELECT SUM(x) AS s FROM t"
    made = []
    for tables in ({"t": private}, {"t": private, "w": dp.PublicTable(rows)}):
        with dp.Session(tables, budget=dp.PureDP(1), ledger=dp.Ledger()) as session:
            catalogue = session.parts.catalogue
            plan = compile_sql(question, catalogue, Options())
            others = (
                compile_sql(question, catalogue, Options()),
                compile_sql(question.replace("s ", "S "), catalogue, Options()),
                compile_sql(question, catalogue, Options(max_rows=3)),
                compile_sql(question, catalogue, Options(bounds={"x": (0, 5)})),
            )
            made.append([other is plan for other in others])
    assert made == [[True, False, False, False], [False] * 4]  # a public table may grow
