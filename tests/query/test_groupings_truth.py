"""ROLLUP and its like where bounds are estimated: one factor for each unit, two-sided intervals."""

import dataclasses
import random
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import deniable as dp
from deniable.query.plan.levels import Norms
from deniable.query.plan.plan import SCALE
from deniable.query.plan.tail import Profile
from deniable.query.read.catalogue import Options
from deniable.query.read.compile import compile_sql
from deniable.query.run.emit import totals_step
from query.test_bounding import engine_with, moved, rows_at_random
from snapshots import run

QUESTIONS = [
    "SELECT g, COUNT(*) AS n FROM t GROUP BY ROLLUP (g)",
    "SELECT g, COUNT(*) AS n, SUM(x) AS s, COUNT(DISTINCT u) AS p FROM t GROUP BY ROLLUP (g)",
    "SELECT g, i, SUM(x * i) AS s FROM t GROUP BY CUBE (g, i)",
]
SOMEBODY = Profile(Norms.WHOLE, 0, 0, (1000, *[0] * 13), 1.0, 1, 1)


def exact(rows, question, norm):
    """The plans of all groupings, and the bounded sums of each, by its groups."""
    engine, catalogue = engine_with(rows)
    plan = compile_sql(question, catalogue, Options(keys={"i": (0, 1, 5, -3)}))
    unit = dataclasses.replace(plan.contribution, rows=1, floor=norm, norm=norm, profile=SOMEBODY)
    plan = dataclasses.replace(plan, contribution=unit)
    found = []
    for each in plan.groupings:
        width = len(each.counted.groups)
        listed = run(engine, totals_step(each, l2=True))
        found.append((each, {row[:width]: [int(v or 0) for v in row[width:]] for row in listed}))
    engine.close()
    return found


@pytest.mark.parametrize("question", QUESTIONS)
def test_no_unit_moves_any_grouping_by_more_than_the_norm(question):
    rng, nearest = random.Random(question), Fraction(0)
    for _ in range(5):
        rows, norm = rows_at_random(rng), rng.choice([40, 300, 3000])
        unit = rng.choice([row[0] for row in rows])
        whole = exact(rows, question, norm)
        without = exact([row for row in rows if row[0] != unit], question, norm)
        for (plan, one), (_, other) in zip(whole, without, strict=True):
            move = moved(plan, one, other, l2=True)
            assert move <= (SCALE * norm) ** 2
            nearest = max(nearest, move / (SCALE * norm) ** 2)
    assert nearest > Fraction(1, 10)  # some unit comes near: the bound is not idle


def test_parts_of_what_is_kept_add_up_to_its_totals():
    """But for rounding: a step for each unit and group."""
    rng = random.Random(3)
    for _ in range(5):
        rows = rows_at_random(rng)
        (_, parts), (_, total) = exact(rows, QUESTIONS[0], 40)
        ((kept,),) = total.values()
        assert abs(kept - sum(part for (part,) in parts.values())) <= 4 * len(rows)
        assert kept < SCALE * len(rows)  # something is cut


def opened(data):
    table = dp.PrivateTable(
        data, unit="who", population="p", keys={"g": [*"abc"]}, bounds={"x": (0, 10)}
    )
    return dp.Session({"t": table}, budget=dp.ApproxDP(1e6, 1e-6), ledger=dp.Ledger())


def test_intervals_have_two_ends_that_hold():
    """Heavy people in one small group: whatever it loses is within the upper end."""
    rng, missed, asked = np.random.default_rng(5), 0, 0
    for _ in range(5):
        rows = np.floor(2 * (rng.pareto(1.6, 3_000) + 1)).astype(int) - 1
        who = np.repeat(np.arange(3_000), rows)
        group = np.where(rows[who] > 30, "c", rng.choice(["a", "b"], len(who)))
        data = pa.table({"who": who, "g": group, "x": rng.uniform(0, 10, len(who))})
        with opened(data) as session:
            answer = session.sql("SELECT g, COUNT(*) AS n FROM t GROUP BY ROLLUP (g)", epsilon=3)
        assert not any("groupings" in label for label in answer.labels)
        for row in answer.intervals(0.999).to_pylist():
            truth = len(who) if row["g"] is None else (group == row["g"]).sum()
            missed += not row["n_low"] <= truth <= row["n_high"]
            asked += row["n_high"] < np.inf
    assert missed <= 2  # of twenty, each one in a thousand
    assert asked >= 10
