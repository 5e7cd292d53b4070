"""Bounds that are estimated: what a unit can move, what is charged and remembered, what is said."""

import dataclasses
import math
import random

import numpy as np
import pyarrow as pa
import pytest

import deniable as dp
from deniable.query.plan.plan import SCALE
from deniable.query.price.profile import ProfileOfUnits, least_row
from deniable.query.read.catalogue import Options
from deniable.query.read.compile import compile_sql
from deniable.query.run.emit import heavy_step, totals_step
from deniable.query.run.emit_profile import levels_step, upper_step
from query.test_bounding import QUESTIONS, compiled, engine_with
from snapshots import run

UNITS, GROUPS = 4_000, ("a", "b", "c", "d")


def people(units=UNITS, seed=1, heavy=40):
    """Units with a few rows, and some with very many in one group."""
    rng = np.random.default_rng(seed)
    rows = rng.poisson(6, units) + 1
    rows[:heavy] = 400
    who = np.repeat(np.arange(units), rows)
    group = rng.integers(0, 4, len(who))
    group[who < heavy] = 0
    x = np.clip(rng.normal(30, 5, len(who)), 0, 200).round(2)
    x[rng.random(len(who)) < 0.05] = math.nan
    return pa.table({"who": who, "g": [GROUPS[n] for n in group], "x": x})


def opened(data=None, ledger=None, budget=None, **declared):
    given = {"bounds": {"x": (0, 200)}, "keys": {"g": GROUPS}, **declared}
    table = dp.PrivateTable(
        people() if data is None else data, unit="who", population="people", **given
    )
    return dp.Session(
        {"t": table},
        budget=dp.ApproxDP(1e6, 1e-6) if budget is None else budget,
        ledger=dp.Ledger(key=bytes(32)) if ledger is None else ledger,
    )


QUESTION = "SELECT g, COUNT(*) AS n, SUM(x) AS s, AVG(x) AS m FROM t GROUP BY g"


@pytest.mark.parametrize("l2", [True, False], ids=["l2", "l1"])
@pytest.mark.parametrize("question", QUESTIONS)
def test_no_unit_moves_totals_by_more_than_the_norm_that_was_estimated(question, l2, worlds):
    """With any floor, and any norm above it, and centres anywhere; so do its parts if heavy."""
    rng = random.Random(question)
    for world in worlds:
        centre, floor, more = rng.choice([-8, 0, 3]), rng.choice([1, 40, 3000]), rng.choice([1, 7])
        made = compiled(question, world.catalogue)
        marked = {s.column: (centre, 0.2) for s in made.counted.statistics if s.marks is not None}
        made = compiled(question, world.catalogue, marked)
        unit = dataclasses.replace(made.contribution, rows=1, floor=floor, norm=floor * more)
        plan = dataclasses.replace(made, contribution=unit)
        if unit.one_row:
            return
        steps = totals_step(plan, l2=l2), heavy_step(plan, l2=l2)
        removed = rng.choice(list(world.without))
        found = [
            [by_key(plan, run(engine, step)) for step in steps]
            for engine in (world.whole, world.without[removed])
        ]
        for one, two in zip(*found, strict=True):
            moves = [
                (a - b) * w
                for key in one.keys() | two.keys()
                for a, b, w in zip(
                    one.get(key, [0] * 99), two.get(key, [0] * 99), plan.weights, strict=False
                )
            ]
            bound = unit.norm * SCALE
            moved = sum(m * m for m in moves) if l2 else sum(map(abs, moves))
            assert moved <= (bound**2 if l2 else bound), (centre, floor, more)


def by_key(plan, rows):
    width = len(plan.counted.groups)
    return {row[:width]: [int(v or 0) for v in row[width:]] for row in rows}


@pytest.mark.parametrize("l2", [True, False], ids=["l2", "l1"])
def test_a_unit_is_on_one_level_by_its_own_rows(l2, worlds):
    """Removing it takes one from one level of each histogram, whatever the others have."""
    rng, seen = random.Random(5), 0
    for world in worlds:
        named = [unit for unit in world.without if unit is not None]
        before = histograms(world.whole, world.catalogue, l2=l2)
        for removed in rng.sample(named, min(2, len(named))):
            after = histograms(world.without[removed], world.catalogue, l2=l2)
            for one, two in zip(before, after, strict=True):
                moves = [one.get(level, 0) - two.get(level, 0) for level in one.keys() | two.keys()]
                assert sum(map(abs, moves)) <= 1
                seen += sum(map(abs, moves))
    assert seen > 20


def histograms(engine, catalogue, *, l2):
    found = []
    for question in QUESTIONS[:5]:
        made = compiled(question, catalogue)
        least = least_row(made, l2=l2)
        plan = made.with_rows(1).with_norm(2 * least)
        for step in (upper_step(plan, least, l2=l2), levels_step(plan, least, l2=l2)):
            found.append({level: int(units) for level, units in run(engine, step)})
    return found


def test_levels_are_those_of_the_norms():
    """Of units with 1 to 40 rows each, in one group and over two."""
    rows = [(who, "ab"[n % 2], 1.0, 0) for who in range(1, 41) for n in range(who)]
    engine, catalogue = engine_with(rows)
    levels = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48]
    for question, norm in (
        ("SELECT COUNT(*) AS n FROM t", lambda n: n),
        ("SELECT g, COUNT(*) AS n FROM t GROUP BY g", lambda n: math.hypot(n // 2, n - n // 2)),
    ):
        made = compile_sql(question, catalogue, Options())
        least = least_row(made, l2=True)
        plan = made.with_rows(1).with_norm(least)
        found = dict(run(engine, levels_step(plan, least, l2=True)))
        wanted = [sum(level <= norm(n) + 1e-9 for level in levels) - 1 for n in range(1, 41)]
        assert found == {level: wanted.count(level) for level in set(wanted)}
    engine.close()


def test_bounds_are_bought_once_and_paid_for_once():
    ledger = dp.Ledger(key=bytes(32))
    with opened(ledger=ledger) as session:
        before = session.explain(QUESTION, epsilon=2)
        assert "estimated privately" in before.contributions
        assert [column.half_width for column in before.columns] == [None] * 3
        assert session.remaining["people"].releases == 0
        first = session.sql(QUESTION, epsilon=2)
        assert float(first.cost.rho) == pytest.approx(float(before.cost.rho), rel=1e-9)
        after = session.explain(QUESTION, epsilon=2)
        assert after.columns[0].half_width is not None
        again = session.sql(QUESTION, epsilon=2)
        assert again.repeated
        assert again["n"] == first["n"]
        near = session.sql(QUESTION, epsilon=2.1)  # the same bounds, without their price
        assert not near.repeated
        assert near.cost.rho < session.explain(QUESTION, epsilon=2.1).cost.rho * 1.000001
    assert "estimates means and contributions" in str([*ledger.history("people")])


@pytest.mark.parametrize(
    ("declared", "missing"),
    [
        ({}, "estimated privately first"),
        ({"max_rows": 50}, "how many have more is estimated first"),
    ],
)
def test_what_is_known_of_a_count_serves_no_sum(declared, missing):
    """Norms are of what is counted and summed, by its weights: others have other bounds."""
    count, other = (f"SELECT g, {what} AS n FROM t GROUP BY g" for what in ("COUNT(*)", "SUM(x)"))
    with opened(**declared) as session:
        session.sql(count, epsilon=2)
        assert missing not in session.explain(f"{count} ORDER BY n", epsilon=2).contributions
        assert missing in session.explain(other, epsilon=2).contributions
        assert (
            missing
            in session.explain(
                count.replace("t GROUP", "t WHERE x > 1 GROUP"), epsilon=2
            ).contributions
        )


@pytest.mark.parametrize(
    "question",
    [
        "SELECT COUNT(DISTINCT x) AS n FROM t",
        "SELECT g, MEDIAN(x) AS m FROM t GROUP BY g",
        "SELECT COUNT(*) AS n FROM (SELECT who, MAX(x) AS k FROM t GROUP BY who) AS q WHERE k > 1",
        "SELECT g, COUNT(DISTINCT who) AS n FROM t GROUP BY g",
        "SELECT g, COUNT(*) AS n FROM t GROUP BY ROLLUP (g)",
    ],
)
@pytest.mark.parametrize("budget", [dp.ApproxDP(1e6, 1e-6), dp.PureDP(1e6), dp.ZCDP(1e6)])
def test_every_kind_of_question_can_buy_its_bounds(question, budget):
    spend = {"rho": 5} if isinstance(budget, dp.ZCDP) else {"epsilon": 5}
    with opened(budget=budget) as session:
        if "ROLLUP" in question and isinstance(budget, dp.PureDP):
            with pytest.raises(dp.QueryError, match="ROLLUP"):
                session.sql(question, **spend)
            return
        answer = session.sql(question, **spend)
        assert answer.numbers
        assert session.sql(question, **spend).repeated


def test_groups_that_are_selected_buy_how_many_a_unit_counts_in():
    with opened(keys={}) as session:
        answer = session.sql("SELECT g, COUNT(*) AS n FROM t GROUP BY g", epsilon=5)
    assert answer["g"] == list(GROUPS)


def test_an_error_cannot_be_asked_for_while_bounds_are_not_known():
    with opened() as session, pytest.raises(dp.ParameterError, match="max_rows="):
        session.sql(QUESTION, error={"n": 50})


def neighbour_of(data, ledger):
    """Thirty people; in one world one of them has 500 rows of the largest value."""
    rows = {
        "who": list(range(30)) * 3,
        "g": ["a", "b", "c"] * 30,
        "x": [float(n) for n in range(90)],
    }
    if data == "with":
        rows = {
            "who": rows["who"] + [99] * 500,
            "g": rows["g"] + ["d"] * 500,
            "x": rows["x"] + [200.0] * 499 + [math.nan],
        }
    return opened(pa.table(rows), ledger, dp.ApproxDP(30, 1e-6))


@pytest.mark.parametrize(
    "question",
    [
        QUESTION,
        "SELECT g, MEDIAN(x) AS m, COUNT(DISTINCT x) AS d FROM t GROUP BY g",
        "SELECT VARIANCE(x) AS v, CORR(x, x * 2) AS r FROM t",
        "SELECT g, SUM(x) FILTER (WHERE x > 5) AS s, COUNT(*) AS n FROM t GROUP BY CUBE (g)",
    ],
)
def test_nothing_but_noise_tells_neighbours_apart(question):
    def pipeline(session):
        with session:
            answer = session.sql(question, epsilon=20)
            return repr(answer.intervals().to_pylist()), str(answer.cost)

    found = dp.replay(pipeline, "without", "with", factory=neighbour_of)
    assert found.ok, found


def test_a_floor_above_the_norm_is_found(monkeypatch):
    """Power: units below a floor that is above the norm are not looked at."""
    right = ProfileOfUnits.applied

    def planted(estimate, stored):
        plan = right(estimate, stored)
        unit = dataclasses.replace(plan.contribution, floor=10**15, norm=1)
        return dataclasses.replace(plan, contribution=unit)

    monkeypatch.setattr(ProfileOfUnits, "applied", planted)

    def pipeline(session):
        with session:
            return str(session.sql(QUESTION, epsilon=20))

    found = dp.replay(pipeline, "without", "with", factory=neighbour_of)
    assert not found.ok


@pytest.mark.parametrize("declared", [{}, {"max_rows": 50}, {"max_rows": 600}])
def test_total_intervals_hold_what_was_cut_off(declared):
    """240 intervals of each number; fewer than 195 hold with a probability below FALSE_ALARM."""
    data = people(heavy=300)
    groups, x = np.array(data["g"].to_pylist()), np.array(data["x"].to_pylist())
    hits, asked = dict.fromkeys("nsm", 0), 0
    with opened(data, cap_rows=500, **declared) as session:
        for number in range(60):
            answer = session.sql(QUESTION, epsilon=2 + number / 1000)
            for row in answer.intervals(kind="total").to_pylist():
                mine = x[groups == row["g"]]
                exact = {"n": len(mine), "s": np.nansum(mine), "m": np.nanmean(mine)}
                for name, value in exact.items():
                    hits[name] += row[f"{name}_low"] <= value <= row[f"{name}_high"]
                asked += 1
    assert asked == 240
    assert min(hits.values()) >= 195, hits


@pytest.mark.parametrize("budget", [dp.PureDP(1000), dp.ApproxDP(1000, 1e-6)])
def test_total_intervals_hold_where_several_sums_share_a_bought_bound(budget):
    """Heavy units in one group, all of their rows within the promise; each norm is of its kind."""
    rng = np.random.default_rng(5)
    rows = np.concatenate([np.full(40, 40), np.full(4_000, 24)])
    where = np.concatenate([np.zeros(40, int), rng.integers(0, 20, 4_000)])
    values = {name: 100 * rng.integers(0, 2, len(rows)) for name in "abc"}
    data = pa.table(
        {
            "who": np.repeat(np.arange(len(rows)), rows),
            "g": np.repeat(where, rows),
            **{name: np.repeat(column, rows) for name, column in values.items()},
        }
    )
    exact = int(rows[where == 0].sum())
    sql = "SELECT g, COUNT(*) AS n, SUM(a) AS a, SUM(b) AS b, SUM(c) AS c FROM t GROUP BY g"
    missed = 0
    for _ in range(12):
        declared = {"bounds": dict.fromkeys("abc", (0, 100)), "keys": {"g": list(range(20))}}
        with opened(data, budget=budget, cap_rows=40, **declared) as session:
            row = session.sql(sql, epsilon=5).intervals(kind="total").to_pylist()[0]
        missed += not row["n_low"] <= exact <= row["n_high"]
    # Twelve intervals at 95 %: more than eight misses have a chance below 1e-9.
    assert missed <= 8


def test_total_intervals_are_unknown_without_a_promise():
    with opened() as session:
        answer = session.sql(QUESTION, epsilon=2)
        row = answer.intervals(kind="total").to_pylist()[0]
        assert (row["n_low"], row["n_high"]) == (-math.inf, math.inf)
        with pytest.raises(dp.ParameterError, match="noise"):
            answer.intervals(kind="both")
        one_each = session.sql("SELECT COUNT(DISTINCT who) AS n FROM t", epsilon=2)
        assert one_each.intervals(kind="total").to_pylist()[0]["n_low"] == -math.inf
