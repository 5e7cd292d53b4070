"""A declared `max_rows`: intervals hold what it cuts off, or say that nothing is known of it."""

import math
import random
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

import deniable as dp
from chance import FALSE_ALARM
from deniable.engines.base import LazySnapshot
from deniable.query.plan.tail import Above, edges_about
from deniable.query.price.rows import RowsAbove
from deniable.query.read.build import Spend
from deniable.query.read.catalogue import Options
from deniable.query.read.resolve import parse

COUNT = "SELECT COUNT(*) AS n FROM t"
BY_GROUP = "SELECT g, COUNT(*) AS n, SUM(x) AS s, AVG(x) AS m FROM t GROUP BY g"
LIGHT = [1 + n % 6 for n in range(3_000)]
HEAVY = [3] * 3_000 + [60] * 200
FEW = [1 + n % 6 for n in range(60)]


def table(rows):
    who = [person for person, many in enumerate(rows) for _ in range(many)]
    return pa.table({"who": who, "g": [n % 2 for n in range(len(who))], "x": [5.0] * len(who)})


def session(rows, budget=None, **declared):
    given = {"max_rows": 8, "bounds": {"x": (0, 10)}, "keys": {"g": [0, 1]}, **declared}
    private = dp.PrivateTable(table(rows), unit="who", population="p", **given)
    return dp.Session(
        {"t": private}, budget=budget or dp.ApproxDP(1e9, 1e-6), ledger=dp.Ledger(key=bytes(32))
    )


def ends(answer, name="n", **given):
    return [tuple(float(end[0]) for end in answer.interval_of(name, **given))][0]


def entries(asked):
    return len(asked.history["p"])


def test_where_nobody_is_beyond_the_interval_is_that_of_noise_nearly():
    with session(LIGHT) as asked:
        answer = asked.sql(COUNT, epsilon=10_000)
        low, high = ends(answer, confidence=1 - FALSE_ALARM)
        assert low <= sum(LIGHT) <= high
        noisy = ends(answer, kind="noise", confidence=1 - FALSE_ALARM)
        assert high - low < 1.5 * (noisy[1] - noisy[0])
        assert "people have more than 8 rows" in answer.labels[0] or "nobody" in answer.labels[0]


def test_what_is_cut_off_is_within_the_interval():
    """200 of 3,200 people have 60 rows, of which 8 count: 10,400 rows are lost."""
    with session(HEAVY) as asked:
        answer = asked.sql(COUNT, epsilon=10_000)
        low, high = ends(answer, confidence=1 - FALSE_ALARM)
        assert low <= sum(HEAVY) <= high
        assert ends(answer, kind="noise")[1] < sum(HEAVY) - 9_000
        assert any("clipped and put back" in label for label in answer.labels)
        assert any("people have more than 8 rows" in label for label in answer.labels)


def test_groups_sums_and_means_of_cut_rows():
    with session(HEAVY) as asked:
        answer = asked.sql(BY_GROUP, epsilon=10_000)
    assert ends(answer)[1] >= sum(HEAVY) / 2
    assert ends(answer, "s")[1] >= 5 * sum(HEAVY) / 2
    assert ends(answer, "m") == (-math.inf, math.inf)  # 6 % of the people
    assert "± ?" in str(answer)
    assert any("of rows cut at 8 per person" in label for label in answer.labels)
    with session(LIGHT) as asked:
        light = asked.sql(BY_GROUP, epsilon=10_000)
    assert all(map(math.isfinite, ends(light, "m")))


def test_too_few_people_have_a_lower_end_alone():
    with session(FEW) as asked:
        answer = asked.sql(COUNT, epsilon=1)
    low, high = ends(answer)
    assert math.isfinite(low)
    assert high == math.inf
    assert "≥" in str(answer)
    assert any("at least" in label and "cap_rows" in label for label in answer.labels)


@pytest.mark.parametrize(
    "declared",
    [{"cap_rows": 8}, {"cap_rows": 3}, {"max_rows": 1, "cap_rows": 1}],
    ids=["cap", "lower cap", "one row"],
)
def test_where_nothing_can_be_cut_off_nothing_is_asked(declared):
    with session(LIGHT, **declared) as asked:
        before = entries(asked)
        answer = asked.sql(COUNT, epsilon=1)
        assert entries(asked) == before + 2  # a reservation and its answer
        assert ends(answer) == ends(answer, kind="noise")
        assert not answer.labels


def test_rows_that_are_units_ask_nothing():
    private = dp.PrivateTable(pa.table({"g": [0] * 50}), unit=dp.ROW, population="p")
    ledger = dp.Ledger(key=bytes(32))
    with dp.Session({"t": private}, budget=dp.PureDP(9), ledger=ledger) as asked:
        asked.sql(COUNT, epsilon=1)
        assert entries(asked) == 3


def test_it_is_kept_for_other_questions_about_the_same_groups():
    with session(LIGHT) as asked:
        asked.sql("SELECT g, COUNT(*) AS n FROM t GROUP BY g", epsilon=1)
        before = entries(asked)
        other = "SELECT COUNT(*) + 1 AS more, g FROM t GROUP BY g ORDER BY more"
        second = asked.sql(other, epsilon=1)
        assert entries(asked) == before + 2
        assert float(second.cost.rho) < 0.98 * float(asked.parts.budget.rho_for(1))
        assert asked.sql(other, epsilon=1).repeated


def test_a_profile_sets_the_declared_bound_aside():
    with session(LIGHT) as asked:
        answer = asked.sql(COUNT, epsilon=10, profile=True)
        assert "each person counts with at most" in answer.labels[0]
        built = asked.table("t").agg(n=dp.count()).profile().release(epsilon=10)
        assert built.repeated
        told = asked.explain(COUNT, epsilon=20, profile=True)
        assert "estimated privately" in told.contributions


def test_explain_knows_the_noise_beforehand():
    with session(LIGHT) as asked:
        told = asked.explain(COUNT, epsilon=1)
        answer = asked.sql(COUNT, epsilon=1)
        low, high = ends(answer, kind="noise")
        assert told.columns[0].half_width == pytest.approx((high - low) / 2, rel=1e-6)
        assert told.cost.rho == answer.cost.rho
        assert "how many have more is estimated first" in told.contributions
        assert "of noise, and what is clipped" in told.columns[0].condition


def test_explain_knows_what_is_clipped_once_it_is_estimated():
    """Thousands of rows are clipped, noise is less than fifty: that is no ± 50."""
    with session(HEAVY) as asked:
        answer = asked.sql(COUNT, epsilon=1)
        (told,) = asked.explain(COUNT, epsilon=1).columns
    low, high = ends(answer)
    shown = max(high - answer["n"][0], answer["n"][0] - low)
    assert told.condition == "about the truth"
    assert told.half_width == pytest.approx(shown, rel=0.05)
    least, most = ends(answer, kind="noise")
    assert told.half_width > most - least


@pytest.mark.parametrize("keys", [{"g": [0, 1]}, {}])
def test_a_price_for_an_error_pays_for_what_comes_first(keys):
    with session(LIGHT, keys=keys) as asked:
        answer = asked.sql("SELECT g, COUNT(*) AS n FROM t GROUP BY g", error={"n": 20})
        low, high = ends(answer, kind="noise")
        assert 17 < (high - low) / 2 <= 20


def test_a_union_of_bins_is_everybody():
    for rows, cap in ((1, None), (1, 2), (2, None), (8, 20), (20, None), (1_000, None), (7, 8)):
        edges = edges_about(rows, cap)
        assert rows + 1 in edges
        assert list(edges) == sorted(set(edges))
        assert edges[0] >= 1
        assert cap is None or edges[-1] <= cap


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize("budget", [dp.ApproxDP(9, 1e-6), dp.PureDP(9)])
def test_one_unit_moves_one_bin_by_one(relation, budget):
    """Exact bins of neighbours, and the sensitivity that their noise is for."""
    rng = random.Random(5)
    rows = [rng.choice([1, 2, 8, 9, 40, 300]) for _ in range(40)]
    others = rows[1:] if relation == "add_remove" else [rng.choice([9, 500]), *rows[1:]]
    made = [bins(each, relation, budget) for each in (rows, others)]
    (first, noise), (second, _) = made
    moves = [a - b for a, b in zip(first, second, strict=True) if a != b]
    changed = 1 if relation == "add_remove" else 2
    assert sum(map(abs, moves)) <= changed
    assert all(abs(move) == 1 for move in moves)
    assert noise.bound == changed
    # Planted: a unit that is in every bin up to its own would move more.
    suffix = [abs(a - b) for a, b in zip(np.cumsum(first), np.cumsum(second), strict=True)]
    assert sum(suffix) > changed


class _Heard:
    def draw(self, mechanism, read):
        self.mechanism, self.value = mechanism, read()
        return self.value


def bins(rows, relation, budget):
    private = dp.PrivateTable(
        table(rows), unit="who", population="p", max_rows=8, relation=relation
    )
    given = dp.Budget(budget, relation=relation)
    with dp.Session({"t": private}, budget=given, ledger=dp.Ledger(key=bytes(32))) as asked:
        planner = asked._answering.planner
        question = planner.asked(parse(COUNT), Options(), Spend(1))
        (estimate,) = question.estimates
        assert isinstance(estimate, RowsAbove)
        heard = _Heard()
        with LazySnapshot(planner.engine, estimate.steps(), {"t"}) as snapshot:
            estimate.draw(heard, snapshot, "")
    return [row[0] for row in heard.value], heard.mechanism


def test_draws_hold_what_is_lost():
    """Bins as they are under hardly any noise: what is lost lies between its two ends."""
    for rows, bound in ((HEAVY, 8), (LIGHT, 8), ([1] * 5_000 + [7] * 90, 3)):
        edges = [0, *edges_about(bound, None), 10**9]
        counts = [sum(low <= each < high for each in rows) for low, high in pairwise(edges)]
        lost = Above(bound, None, tuple(counts), 0.5).lost
        truth = sum(max(0, each - bound) for each in rows)
        assert np.quantile(lost.least, 0.05) <= truth + 1
        assert truth <= np.quantile(lost.most, 0.95) + 1


def test_public_tables_multiply_what_was_declared():
    """Three rows each, five of a public table for each of them: 15,000, and none is scaled."""
    who = [person for person in range(1_000) for _ in range(3)]
    visits = pa.table({"who": who, "w": [0, 1, 2] * 1_000})
    public = pa.table({"w": [n // 5 for n in range(15)], "z": list(range(15))})
    private = dp.PrivateTable(visits, unit="who", population="p", max_rows=3, cap_rows=3)
    tables = {"t": private, "p": dp.PublicTable(public)}
    with dp.Session(
        tables, budget=dp.ApproxDP(1e9, 1e-6), ledger=dp.Ledger(key=bytes(32))
    ) as asked:
        for question in (
            "SELECT COUNT(*) AS n FROM t JOIN p ON t.w = p.w",
            "SELECT COUNT(*) AS n FROM t, p WHERE p.w = t.w",
            "SELECT COUNT(*) AS n FROM (SELECT t.who AS who FROM t JOIN p ON t.w = p.w) AS j",
        ):
            answer = asked.sql(question, epsilon=1_000)
            low, high = ends(answer)
            assert abs(answer["n"][0] - 15_000) < 30
            assert high - low < 40


@pytest.mark.parametrize("sql", [COUNT, BY_GROUP])
def test_a_budget_of_gaussian_laws_pays_for_what_is_above_and_for_the_answer(sql):
    """Both are Gaussian: what is held has its μ, and what is charged is what was held."""
    groups = 1 if sql == COUNT else 2
    with session(LIGHT, budget=dp.GDP(2)) as asked:
        answer = asked.sql(sql, rho=0.1)
        spent = 4 - asked.remaining["p"].remaining["mu_squared"]
        assert 0.2 <= spent <= 0.2 * 1.02  # 2ρ, but for what whole numbers add
        low, high = ends(answer, confidence=1 - FALSE_ALARM)
    assert low <= sum(LIGHT) / groups <= high


def test_a_budget_of_gaussian_laws_is_not_overspent_by_two_parts():
    with session(LIGHT, budget=dp.GDP(0.5)) as asked:
        with pytest.raises(dp.BudgetError):
            asked.sql(COUNT, rho=0.125)
        assert asked.remaining["p"].remaining["mu_squared"] == 0.25
        asked.sql(COUNT, rho=0.12)
