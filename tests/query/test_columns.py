"""Columns without bounds: intervals about the truth, what is charged, what is refused."""

import math
from dataclasses import replace
from fractions import Fraction

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from sqlglot import exp

import deniable as dp
from corpus import hospital
from deniable.auditing.replay.replays import replays
from deniable.query.plan.distances import Distances, levels_about
from deniable.query.plan.levels import FAR_LEVELS, LEAST
from deniable.query.plan.planner import Planner
from deniable.query.plan.reach import Unbounded, found as reach_found, supposed
from deniable.query.price import needed
from deniable.query.price.values import ValuesAgain
from deniable.query.read.build import Spend
from deniable.query.read.catalogue import Options
from deniable.query.read.resolve import parse
from deniable.query.run import emit_profile
from deniable.query.show import columns
from query.test_truth import too_few
from values.oracle import Breach, ask, moved

ROWS = 20_000
QUESTION = "SELECT COUNT(*) AS n, SUM(x) AS s, AVG(y) AS m FROM t"
LAWS = {
    "normal": lambda rng, n: rng.normal(2.6, 8, n),
    "lognormal": lambda rng, n: rng.lognormal(3, 1, n),
    "many zeros": lambda rng, n: np.where(rng.random(n) < 0.6, 0.0, rng.gamma(2, 500, n)),
    "years": lambda rng, n: rng.integers(1990, 2021, n).astype(float),
    "below zero": lambda rng, n: -rng.lognormal(0, 1, n),
}


def table(seed=3):
    rng = np.random.default_rng(seed)
    return {
        "who": rng.integers(0, 8_000, ROWS),
        "x": rng.uniform(40, 50, ROWS),
        "y": rng.integers(-700, -300, ROWS),
    }


def session(data=None, *, unit="who", budget=None, ledger=None, **declared):
    private = dp.PrivateTable(
        pa.table(table() if data is None else data), unit=unit, population="people", **declared
    )
    return dp.Session(
        {"t": private},
        budget=budget or dp.ApproxDP(1e6, 1e-6),
        ledger=dp.Ledger(key=bytes(32)) if ledger is None else ledger,
    )


def held(law, unit, runs, budget=None, sql="SELECT AVG(x) AS v, SUM(x) AS s FROM t"):
    """How many intervals hold the truth, of how many."""
    rng, hits, asked = np.random.default_rng(11), 0, 0
    while asked < 2 * runs:
        rows = rng.geometric(0.3, 1_500) if unit == "who" else np.ones(1_500, dtype=int)
        who = np.repeat(np.arange(len(rows)), rows)
        x = LAWS[law](rng, len(who))
        with session({"who": who, "x": x}, unit=unit, budget=budget) as opened:
            (row,) = opened.sql(sql, epsilon=1).intervals().to_pylist()
        for name, truth in (("v", x.mean()), ("s", x.sum())):
            hits += row[f"{name}_low"] <= truth <= row[f"{name}_high"]
            asked += 1
    return hits, asked


@pytest.mark.parametrize("unit", [dp.ROW, "who"])
def test_intervals_hold_the_truth(unit):
    counted = [held(law, unit, 2) for law in LAWS]
    hits, asked = (sum(each) for each in zip(*counted, strict=True))
    assert not too_few(hits, asked, 0.9), (hits, asked)


def test_intervals_that_forget_what_is_clipped_are_found(monkeypatch):
    """Power: the same test fails where what lies beyond bounds is taken for nothing."""
    monkeypatch.setattr(
        columns, "_lost", lambda clips, plan, sides: (np.zeros((1, 800)), np.zeros((1, 800)))
    )
    monkeypatch.setattr(
        "deniable.query.plan.distances._radius", lambda far, *_: FAR_LEVELS[far.place - 6]
    )
    hits, asked = held("lognormal", dp.ROW, 20)
    assert too_few(hits, asked, 0.9), (hits, asked)


def test_a_mean_is_not_far_from_where_it_seems_to_be():
    """A likeness of weights of people: -40 to 48, most about 2; not 4.66 ± 0.07 for 1.98."""
    rng = np.random.default_rng(12)
    x = np.where(rng.random(1_163) < 0.03, rng.normal(-12, 14, 1_163), rng.normal(2.3, 6.5, 1_163))
    widths = []
    for _ in range(3):
        with session({"x": x}, unit=dp.ROW) as asked:
            (row,) = asked.sql("SELECT AVG(x) AS m FROM t", epsilon=1).intervals().to_pylist()
        widths.append(row["m_high"] - row["m_low"])
    assert np.median(widths) < 4


@pytest.mark.parametrize("unit", [dp.ROW, "who"])
def test_variance_and_correlation_of_columns_without_bounds(unit):
    """Also where people have several rows, whose coarse steps are corrected for."""
    rng = np.random.default_rng(13)
    x = rng.gamma(2, 10, 6_000)
    y = 0.5 * x + rng.normal(0, 5, len(x))
    data = {"who": np.arange(len(x)) // 2, "x": x, "y": y}
    truths = {"v": x.var(ddof=1), "r": np.corrcoef(x, y)[0, 1]}
    with session(data, unit=unit) as asked:
        answer = asked.sql("SELECT VARIANCE(x) AS v, CORR(x, y) AS r FROM t", epsilon=100)
    (row,) = answer.intervals(0.999999).to_pylist()
    for name, truth in truths.items():
        assert row[f"{name}_low"] <= truth <= row[f"{name}_high"]
        assert answer[name][0] == pytest.approx(truth, rel=0.2)


def test_groups_hold_what_is_clipped_in_them():
    rng, hits, asked = np.random.default_rng(14), 0, 0
    for _ in range(4):
        g = rng.choice(5, 8_000, p=[0.4, 0.3, 0.1, 0.1, 0.1])
        x = rng.lognormal(3, 1, 8_000) * (1 + g)
        keys = {"g": range(5)}
        with session({"g": g, "x": x}, unit=dp.ROW, keys=keys) as opened:
            answer = opened.sql("SELECT g, AVG(x) AS m FROM t GROUP BY g", epsilon=2)
        for row in answer.intervals().to_pylist():
            hits += row["m_low"] <= x[g == row["g"]].mean() <= row["m_high"]
            asked += 1
    assert not too_few(hits, asked, 0.85), (hits, asked)


@pytest.mark.parametrize("unit", ["who", dp.ROW])
@pytest.mark.parametrize("budget", [dp.PureDP(1e6), dp.ZCDP(1e6)])
def test_labels_say_what_was_estimated(unit, budget):
    price = {"rho": 99.0} if isinstance(budget, dp.ZCDP) else {"epsilon": 600.0}
    with session(unit=unit, budget=budget) as asked:
        answer = asked.sql(QUESTION, **price)
    labels = [label for label in answer.labels if label.startswith(("x: ", "y: "))]
    assert [label[0] for label in labels] == ["x", "y"]
    assert all("(estimated privately)" in label for label in labels)
    assert "declare bounds={'x': (low, high)}" in labels[0]
    data = table()
    assert answer["s"][0] == pytest.approx(data["x"].sum(), rel=0.05)
    assert answer["m"][0] == pytest.approx(data["y"].mean(), rel=0.05)


@pytest.mark.parametrize("unit", ["who", dp.ROW])
def test_the_whole_costs_what_was_asked_for_and_is_remembered(unit):
    with session(unit=unit) as asked:
        foreseen = asked.explain(QUESTION, epsilon=2)
        first = asked.sql(QUESTION, epsilon=2)
        again = asked.sql(QUESTION, epsilon=2)
        price = asked.explain(QUESTION, epsilon=2)
        questions = [row.question for row in asked.history["people"] if row.kind == "reserve"]
    assert first.cost.rho == foreseen.cost.rho
    assert first.cost.asked == foreseen.cost.asked == 2
    assert "values of x" in foreseen.contributions
    assert "values of y" in foreseen.contributions
    assert again.repeated
    assert again.data == first.data
    assert len(set(questions)) == len(questions)
    # What was estimated is known now: it costs nothing more, and errors can be told.
    assert price.cost.rho < first.cost.rho
    assert price.columns[0].half_width is not None


def test_the_same_column_is_estimated_once():
    with session(unit=dp.ROW) as asked:
        first = asked.sql("SELECT AVG(x) AS m FROM t", epsilon=2)
        second = asked.sql("SELECT SUM(x) AS s FROM t", epsilon=2)
        other = asked.sql("SELECT SUM(x) AS s FROM t WHERE y < -400", epsilon=2)
    assert second.cost.rho < 0.9 * first.cost.rho
    assert other.cost.rho > second.cost.rho


def test_small_tables_are_looked_at_twice_and_large_ones_once():
    """From 400 times the noise of a bin on, about 4,700 at ε = 1, a second look tells no more."""
    looks = {}
    for many in (1_500, ROWS):
        data = {name: column[:many] for name, column in table().items()}
        with session(data, unit=dp.ROW) as asked:
            first = asked.sql("SELECT AVG(x) AS m, AVG(y) AS n FROM t", epsilon=1)
            again = asked.sql("SELECT SUM(x) AS m, AVG(y) AS n FROM t", epsilon=1)
            looks[many] = sum(
                "the farthest values of" in row.body for row in asked.history["people"]
            )
        assert first.cost.rho == dp.Budget(dp.ApproxDP(1e6, 1e-6)).rho_for(Fraction(1))
        assert again.cost.rho < 0.8 * first.cost.rho
    assert list(looks.values()) == [2, 0]


def test_who_paid_for_a_second_look_is_answered():
    """The first look told that there are enough people; that the second sees fewer is chance."""
    rows = {"x": table()["x"][:150]}
    with session(rows, unit=dp.ROW, budget=dp.ZCDP(1000)) as asked:
        planner = Planner(asked.parts.catalogue, asked.parts.engine, asked.parts.budget)
        question = parse("SELECT SUM(x) AS s FROM t")
        (first, _) = planner.asked(question, Options(), Spend(rho=Fraction(1, 50))).estimates
    bins = [0] * 28
    many = math.ceil(10 * first.levels.deviation(0))
    plan = first.applied({"centre": 263, "place": 69, "bins": [many, *bins[1:]]})
    assert next(iter(plan.contribution.reaches.values())).seen
    again = ValuesAgain.of(plan, first.left)
    (after,) = again.applied(bins).contribution.reaches.values()
    assert after.seen
    assert not replace(after, twice=False).seen
    (after,) = again.applied([-50, *bins[1:]]).contribution.reaches.values()
    assert after.seen
    assert after.few


def test_two_looks_have_less_noise_than_either():
    rng, first, second = np.random.default_rng(4), 10.0, 7.0
    truth = np.array([900, 400, 30, 0])
    errors = []
    for _ in range(2_000):
        noisy = [tuple(np.rint(truth + rng.normal(0, sd, 4)).astype(int)) for sd in (first, second)]
        both = Distances(40, noisy[0], first).with_more(noisy[1], second)
        errors += list(np.array(both.counts) - truth)
    # A normal mean of 8,000 misses by 7 deviations once in 1e11.
    assert both.deviation == pytest.approx(first * second / math.hypot(first, second))
    assert abs(np.mean(errors)) < 7 * both.deviation / math.sqrt(len(errors))
    assert np.std(errors) == pytest.approx(both.deviation, rel=0.06)


def test_the_total_is_the_price():
    with session(budget=dp.ZCDP(1000)) as asked:
        before = asked.remaining["people"].remaining["rho"]
        answer = asked.sql(QUESTION, rho=Fraction(1, 2))
        after = asked.remaining["people"].remaining["rho"]
    assert answer.cost.rho == before - after == Fraction(1, 2)


@pytest.mark.parametrize("budget", [dp.PureDP(5), dp.ApproxDP(5, 1e-6)])
def test_what_is_typed_is_spent_to_the_last_digit(budget):
    """In parts that cannot be written in as many digits: centre, place, bins, and the answer."""
    with session(budget=budget) as asked:
        before = asked.remaining["people"].remaining
        asked.sql(
            "SELECT COUNT(*) AS n, COUNT(DISTINCT who) AS u, MEDIAN(x) AS m FROM t", epsilon=1
        )
        after = asked.remaining["people"].remaining
    if isinstance(budget, dp.PureDP):
        assert before["epsilon"] - after["epsilon"] == 1
    else:
        assert before["rho"] - after["rho"] == dp.Budget(budget).rho_for(Fraction(1))


def test_people_are_counted_beside_rows_as_well_as_alone():
    rng = np.random.default_rng(15)
    who = np.repeat(np.arange(2_000), rng.geometric(0.1, 2_000))
    with session({"who": who}) as asked:
        sql = "SELECT COUNT(*) AS n, COUNT(DISTINCT who) AS u FROM t"
        (row,) = asked.sql(sql, epsilon=1).intervals(0.999999).to_pylist()
    assert row["u_low"] <= 2_000 <= row["u_high"]
    assert row["u_high"] - row["u_low"] < 200
    assert row["n_low"] <= len(who) <= row["n_high"]


def test_names_that_need_quotes():
    data = table()
    odd = {'a "unit"': data["who"], "select": data["x"], "deniable": data["y"]}
    with session(odd, unit='a "unit"') as asked:
        answer = asked.sql('SELECT SUM("select") AS s FROM t', epsilon=2)
    assert any("'\"select\"'" in label or "'select'" in label for label in answer.labels)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT SUM(2 * x) AS s FROM t",
        "SELECT SUM(1 / x) AS s FROM t",
        "SELECT SUM(z) AS s FROM (SELECT who, x + 1 AS z FROM t) AS u",
        "SELECT SUM(z) AS s FROM (SELECT who, SUM(x) AS z FROM t GROUP BY who) AS u",
        "SELECT SUM(x) AS s FROM (SELECT who, x FROM t UNION ALL SELECT who, x FROM t) AS u",
        "SELECT SUM(x) FILTER (WHERE y < -500) AS s FROM t",
        "SELECT AVG(LENGTH(CAST(y AS VARCHAR))) AS s FROM t",
    ],
)
def test_through_subqueries_unions_and_expressions(sql):
    t = pa.table(table())
    ((truth,),) = duckdb.sql(sql).fetchall()
    with session(t) as asked:
        answer = asked.sql(sql, epsilon=20)
    assert any("(estimated privately)" in label for label in answer.labels)
    (row,) = answer.intervals(0.999999).to_pylist()
    assert t.num_rows == ROWS
    assert row["s_low"] <= truth <= row["s_high"]


def test_an_error_cannot_be_named_before_bounds_are_known():
    with session(max_rows=10) as asked, pytest.raises(dp.ParameterError, match="the bounds of x"):
        asked.sql("SELECT SUM(x) AS s FROM t", error={"s": 100})


def test_budgets_of_another_kind_are_refused_for_nothing():
    with session(budget=dp.GDP(3), unit=dp.ROW) as asked:
        with pytest.raises(dp.QueryError, match=r"no proved μ; declare bounds=\{'x'"):
            asked.sql("SELECT SUM(x) AS s FROM t", rho=Fraction(1, 10))
        assert [row.kind for row in asked.history["people"]] == ["open"]


@pytest.mark.parametrize("unit", ["who", dp.ROW])
@pytest.mark.parametrize("price", ["rho", "epsilon"])
def test_too_few_people_are_not_answered_and_a_quarter_was_charged(unit, price):
    """Noise alone looks like somebody once in a few hundred times, and not four times in a row."""
    few = {name: column[:3] for name, column in table().items()}
    budget = dp.ZCDP(1000) if price == "rho" else dp.PureDP(1000)
    refused = None
    for _ in range(4):
        with session(few, unit=unit, budget=budget) as asked:
            before = asked.remaining["people"].remaining[price]
            try:
                asked.sql("SELECT SUM(x) AS s FROM t", **{price: Fraction(1, 10)})
            except dp.NotAnsweredError as error:
                refused = str(error)
                after = asked.remaining["people"].remaining[price]
                break
    assert refused is not None
    assert "not answered" in refused
    assert " Charged: " in refused
    assert "bounds={'x': (low, high)}" in refused
    assert Fraction(1, 10) < (before - after) * 10 <= Fraction(1, 4)


def test_declared_bounds_are_taken_instead():
    with session(max_rows=10) as asked:
        answer = asked.sql("SELECT SUM(x) AS s FROM t", epsilon=2, bounds={"x": (0, 100)})
    assert not any("estimated" in label for label in answer.labels)


HOSTILE = (math.nan, math.inf, -math.inf, 1.8e308, 5e-324, -0.0, None, 1e300, -1e300, 2.0**62)


@pytest.mark.parametrize("unit", ["who", dp.ROW])
def test_one_persons_value_shows_through_noise_alone(unit):
    """Replaying finds nothing on such neighbours."""
    rng = np.random.default_rng(1)
    rows = [(n // 3, float(x)) for n, x in enumerate(rng.uniform(1, 9, 60))]
    hers = [[(77, value)] if unit is dp.ROW else [(77, value), (77, 3.0)] for value in HOSTILE]

    def factory(given, ledger):
        columns = {"who": [row[0] for row in given], "x": [row[1] for row in given]}
        return session(pa.table(columns), unit=unit, ledger=ledger)

    def pipeline(asked):
        return asked.sql("SELECT SUM(x) AS s FROM t", epsilon=400).data

    neighbours = [[*rows, *more] for more in hers]
    found = replays(pipeline, rows, neighbours, factory=factory, time_limit=None)
    for value, replayed in zip(HOSTILE, found, strict=True):
        assert replayed.ok, f"{value}: {replayed.report}"
        assert replayed.releases >= 2


ODD = [
    math.nan,
    math.inf,
    -math.inf,
    1e300,
    -1e300,
    0.0,
    -0.0,
    1e-40,
    7.5,
    7.5,
    2.0**61,
    -3e9,
    None,
]
QUESTIONS = (
    "SELECT AVG(x) AS m, VARIANCE(x) AS v FROM t",
    "SELECT g, SUM(x) AS s, COUNT(*) AS n FROM t GROUP BY g",
    "SELECT CORR(x, y) AS r, MEDIAN(y) AS q FROM t",
    "SELECT g, MAX(x) AS a, MIN(y) AS b FROM t GROUP BY g",
    "SELECT COUNT(DISTINCT who) AS n, SUM(x) AS s FROM t",
)


def neighbours(rng, relation):
    """Two tables that differ in one unit, as rows."""
    people = rng.integers(3, 9)
    rows = [
        (who, int(rng.integers(3)), rng.choice(len(ODD)), rng.choice(len(ODD)))
        for who in range(people)
        for _ in range(rng.integers(1, 4))
    ]
    less = [row for row in rows if row[0] != 0]
    if relation == "replace":
        less += [(0, int(rng.integers(3)), rng.choice(len(ODD)), rng.choice(len(ODD)))]
    return rows, less


def as_table(rows):
    names = ("who", "g", "x", "y")
    columns = dict(zip(names, zip(*rows, strict=True), strict=True)) if rows else {}
    return pa.table(
        {
            "who": pa.array(columns.get("who", ()), pa.int64()),
            "g": pa.array(columns.get("g", ()), pa.int64()),
            **{
                name: pa.array([ODD[each] for each in columns.get(name, ())], pa.float64())
                for name in ("x", "y")
            },
        }
    )


def breaches(pairs, relation, unit, budget):
    """What moves farther than is charged between neighbours; and how far what does not."""
    rng, worst, found = np.random.default_rng(5), 0.0, list[str]()
    for number in range(pairs):
        one, two = neighbours(rng, relation)
        if unit is dp.ROW:
            two = [*one[1:], *([two[-1]] if relation == "replace" else [])]
        owed = dp.Budget(budget, relation=relation)
        given = {"keys": {"g": [0, 1, 2]}, "unit": unit, "relation": relation, "budget": owed}
        with session(as_table(one), **given) as a, session(as_table(two), **given) as b:
            question = ask(a, QUESTIONS[number % len(QUESTIONS)], {}, {"epsilon": 50.0})
            try:
                worst = max(worst, moved(question.exact(a), question.exact(b), 1))
            except Breach as breach:
                found.append(str(breach))
    return found, worst


@pytest.fixture
def everybody_is_seen(monkeypatch):
    """Small tables are answered, too: it is what is read that is looked at."""
    monkeypatch.setattr(needed, "unseen", lambda plan: False)


@pytest.mark.usefixtures("everybody_is_seen")
@pytest.mark.parametrize(
    ("unit", "relation", "budget"),
    [
        ("who", "add_remove", dp.ApproxDP(1e6, 1e-6)),
        ("who", "replace", dp.PureDP(1e6)),
        (dp.ROW, "replace", dp.ApproxDP(1e6, 1e-6)),
        (dp.ROW, "add_remove", dp.PureDP(1e6)),
    ],
)
def test_neighbours_move_no_more_than_is_charged(unit, relation, budget):
    found, worst = breaches(5, relation, unit, budget)
    assert not found
    assert worst > 0


@pytest.mark.usefixtures("everybody_is_seen")
def test_a_unit_that_counts_in_several_cells_is_found(monkeypatch):
    """Power: rows instead of units."""
    right = emit_profile._by_unit

    def planted(plan, column, cell, of_unit):
        return right(plan, column, cell, "UNNEST(LIST(c))" if of_unit else "")

    monkeypatch.setattr(emit_profile, "_by_unit", planted)
    assert breaches(4, "add_remove", "who", dp.ApproxDP(1e6, 1e-6))[0]


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("place", [0, 3, 64, 150, 188])
def test_bounds_fit_whatever_was_released(whole, place):
    """Found ones are no wider in steps than those that were foreseen, and no finer than doubles."""
    column = Unbounded(exp.column("x"), "x", whole=whole, ranked=False)
    bins = np.linspace(900, 0, len(levels_about(place))).astype(int).tolist()
    profile = Distances(place, (3, *bins), 5.0)
    for cell in (0, 5, 64, 100, 183):
        for sides in (None, (profile, profile)):
            centre = Fraction(FAR_LEVELS[cell]) * LEAST
            centre = Fraction(round(centre)) if whole else centre
            reach = reach_found(column, centre, place, sides, noise=7.0, share=1.0)
            widest = supposed(column, several=sides is None)
            steps, most = (
                (high - low) / r.step for r in (reach, widest) for low, high in [r.bounds]
            )
            assert steps <= most
            assert reach.bounds[0] < reach.bounds[1]
            assert max(map(abs, reach.bounds)) / reach.step < 1 << 50 or (whole and reach.step == 1)


def test_the_corpus_columns_can_be_estimated_too():
    """The hospital's tables without their bounds: close to the answer with them."""
    sql = "SELECT ward, AVG(cost) AS mean FROM visits GROUP BY ward"
    budget = dp.ApproxDP(10**5, 1e-6)
    visits = dp.PrivateTable(
        hospital.visits(),
        unit="patient_id",
        population="p",
        keys={"ward": hospital.WARDS},
        max_rows=40,
    )
    with dp.Session({"visits": visits}, budget=budget, ledger=dp.Ledger()) as asked:
        answer = asked.sql(sql, epsilon=10_000)
    exact = hospital.visits().group_by("ward").aggregate([("cost", "mean")]).to_pylist()
    means = {row["ward"]: row["cost_mean"] for row in exact}
    for ward, mean in zip(answer["ward"], answer["mean"], strict=True):
        assert mean == pytest.approx(means[ward], rel=0.02)


def test_what_is_no_number_does_not_count():
    data = table()
    data["x"] = np.where(np.arange(ROWS) % 20 == 0, math.nan, data["x"])
    with session(data, unit=dp.ROW) as asked:
        answer = asked.sql("SELECT AVG(x) AS m FROM t", epsilon=2)
    (row,) = answer.intervals(0.999999).to_pylist()
    assert row["m_low"] <= np.nanmean(data["x"]) <= row["m_high"]


@pytest.mark.parametrize("declared", [{}, {"max_rows": 10}])
def test_a_question_that_cannot_be_paid_in_full_is_not_charged_for_its_bounds(declared):
    with session(budget=dp.ZCDP(1), **declared) as asked:
        for sql in ("SELECT AVG(x) AS m FROM t", "SELECT COUNT(*) AS n FROM t"):
            with pytest.raises(dp.BudgetError, match="nothing was spent"):
                asked.sql(sql, rho=2)
        assert [row.kind for row in asked.history["people"]] == ["open"]


@pytest.mark.parametrize("error", [5, "s", [1], {"s": 4}])
def test_an_error_that_is_none_is_refused_as_one(error):
    with session() as asked, pytest.raises(dp.ParameterError):
        asked.sql("SELECT SUM(x) AS s FROM t", error=error)


def test_a_price_beyond_all_sense_is_refused_as_too_large():
    with session() as asked, pytest.raises(dp.ParameterError, match="or less"):
        asked.sql("SELECT COUNT(*) AS n FROM t", epsilon=1e300)
