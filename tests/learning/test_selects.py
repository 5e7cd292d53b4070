"""Learning from a SELECT: the rows of questions, and the same bounds on what one unit adds."""

import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
import sqlglot

import deniable as dp
from deniable.engines.translate import rewritten
from deniable.learning.pushed import LearningSource, pushed
from deniable.learning.rows import Ranges, Rows
from deniable.learning.sums import CellCounts, Gradients, GroupSums, Moments
from deniable.privacy.units import Relation
from deniable.query.read.compile import compile_rows, table_rows
from deniable.query.read.resolve import parse
from deniable.tables import ColumnType, Schema
from learning.sources import chosen
from replayed import each_replayed

SUMS = {
    "moments": Moments(0.6**0.5, 0.1**0.5, 0.3**0.5),
    "groups": GroupSums(2, 0.2**0.5, 0.4**0.5, 0.4**0.5),
    "cells": CellCounts(np.zeros(2), np.eye(2), np.array([0.2, 0.2]), 8),
    "gradients": Gradients(np.eye(3), np.array([[1.0, -2.0, 0.5]])),
}
BOX = Ranges((0.0, -1.0), (10.0, 1.0), 2**0.5)


def people(count=200, seed=0):
    """Two rows of each unit, and some that are hostile."""
    rng = np.random.default_rng(seed)
    bad = [math.nan, math.inf, None, 1e308, -1e308, 5e-324]
    return {
        "who": [at // 2 for at in range(count)] + [7] * len(bad),
        "age": [*rng.uniform(0, 12, count), *bad],
        "bmi": [*rng.uniform(-1, 1, count), *bad[::-1]],
        "ill": [*(rng.uniform(size=count) > 0.5).tolist(), *[True, None] * 3],
        "cost": [*rng.uniform(-1, 1, count), *bad],
        "ward": [*rng.choice(["a", "b", "z"], count), *"abzabz"],
    }


def opened(rows, *, ledger=None, budget=None, unit="who", wards=None, **declared):
    names = ["who", "age", "bmi", "ill", "cost", "ward"]
    kinds = [pa.int64(), *[pa.float64()] * 2, pa.bool_(), pa.float64(), pa.string()]
    table = pa.table({n: pa.array(rows[n], k) for n, k in zip(names, kinds, strict=True)})
    given = {"max_rows": 2} if unit == "who" else {}
    private = dp.PrivateTable(
        table,
        unit=unit,
        population="p",
        bounds={"age": (0, 10), "bmi": (-1, 1), "cost": (-1, 1)},
        keys={"ward": ["a", "b"]},
        **{**given, **declared},
    )
    public = pa.table(wards or {"ward": ["a", "a", "b", "b"], "beds": [1.0, 2.0, 3.0, None]})
    return dp.Session(
        {"people": private, "wards": dp.PublicTable(public)},
        budget=budget or dp.Budget(dp.ZCDP(1000), relation=private.relation),
        ledger=ledger or dp.Ledger(),
    )


def exact(session, sums, sql=None, *, x=("age", "bmi"), l2=True):
    """The exact sums of a SELECT, and how many rows of one unit count in full."""
    catalogue, engine = session.parts.catalogue, session.parts.engine
    name = next(iter(catalogue.private))
    found = table_rows(name, catalogue) if sql is None else compile_rows(parse(sql), catalogue)
    labels = isinstance(sums, Gradients) or (isinstance(sums, GroupSums) and sums.groups > 1)
    y = {"y": "ward", "classes": ("a", "b"), "y_ends": None}
    if not labels:
        target = (-1.0, 1.0) if isinstance(sums, Moments) else None
        y = {"y": "cost" if target else None, "classes": (), "y_ends": target}
    made = pushed(sums, LearningSource(found, tuple(x), ranges=BOX, l2=l2, **y))
    engine.check([made.step])
    with engine.snapshot([made.step]) as snapshot:
        return made.totals(snapshot.run(made.step)).astype(object), found.relation.rows


def apart(one, other, l2=True):
    sizes = [abs(int(v)) for v in one - other]
    return math.sqrt(sum(v**2 for v in sizes)) if l2 else sum(sizes)


def charged(sums, rows, l2=True, relation=Relation.ADD_REMOVE):
    return rows * (sums.moved(relation) if l2 else sums.moved_l1(relation, 2))


SAME = [
    "SELECT * FROM people",
    "select P.* from PEOPLE as P",
    "SELECT ward, cost, bmi, age FROM people",
    "WITH q AS (SELECT * FROM people) SELECT * FROM q WHERE TRUE",
    "SELECT age + 0 AS age, bmi, cost, ward FROM people",
    "SELECT * FROM people WHERE age < 5 UNION ALL SELECT * FROM people WHERE NOT age < 5",
]


@pytest.mark.parametrize("unit", ["who", dp.ROW])
@pytest.mark.parametrize("name", SUMS)
def test_a_table_and_a_select_of_it_have_the_same_exact_sums(name, unit):
    with opened(people(), unit=unit, **({} if unit is dp.ROW else {"max_rows": 8})) as session:
        wanted, _ = exact(session, SUMS[name])
        assert np.abs(wanted).max() > 5 * SUMS[name].moved(Relation.ADD_REMOVE)
        for sql in SAME if unit == "who" else SAME[:-1]:
            found, _ = exact(session, SUMS[name], sql)
            assert (found == wanted).all(), sql


@pytest.mark.parametrize("name", SUMS)
def test_where_leaves_rows_out(name):
    rows = people()
    kept = [
        at
        for at, (age, ill) in enumerate(zip(rows["age"], rows["ill"], strict=True))
        if age is not None and math.isfinite(age) and age > 3 and ill
    ]
    few = {column: [values[at] for at in kept] for column, values in rows.items()}
    with opened(rows, max_rows=8) as session, opened(few, max_rows=8) as part:
        found, _ = exact(session, SUMS[name], "SELECT * FROM people WHERE age > 3 AND ill")
        wanted, _ = exact(part, SUMS[name])
    assert 0 < len(kept) < 150
    assert (found == wanted).all()


SELECTS = {
    "all": ("SELECT * FROM people", 1),
    "where": ("SELECT * FROM people WHERE bmi * age > -3 OR cost IS NULL", 1),
    "computed": ("SELECT age / 2 AS age, ABS(bmi) AS bmi, cost, ward FROM people", 1),
    "joined": ("SELECT people.* FROM people JOIN wards ON people.ward = wards.ward", 2),
    "left": ("SELECT p.*, beds FROM people AS p LEFT JOIN wards AS w ON p.ward = w.ward", 2),
    "twice": (
        "SELECT a.age, b.bmi, a.cost, b.ward FROM people AS a JOIN people AS b ON a.who = b.who",
        None,
    ),
    "by unit": (
        "SELECT AVG(age) AS age, MAX(bmi) AS bmi, SUM(cost) AS cost, MIN(ward) AS ward "
        "FROM people GROUP BY who",
        0,
    ),
}


@pytest.mark.parametrize("l2", [True, False], ids=["l2", "l1"])
@pytest.mark.parametrize("select", SELECTS)
@pytest.mark.parametrize("name", SUMS)
def test_one_unit_moves_the_sums_of_a_select_by_no_more_than_is_charged(name, select, l2):
    """One with many rows, all alike or hostile, whose sums are scaled down to that, nearly."""
    sql, times = SELECTS[select]
    without = people()
    heavy = {
        "who": [-1] * 40,
        "age": [10.0] * 34 + [math.nan, None, 1e308, -1e308, 5e-324, math.inf],
        "bmi": [1.0] * 40,
        "ill": [True] * 40,
        "cost": [1.0] * 40,
        "ward": ["a"] * 40,
    }
    both = {column: values + heavy[column] for column, values in without.items()}
    with opened(without) as one, opened(both) as other:
        less, rows = exact(one, SUMS[name], sql, l2=l2)
        more, _ = exact(other, SUMS[name], sql, l2=l2)
    assert rows == {None: 4, 0: 1}.get(times, 2 * (times or 0))
    moved, most = apart(less, more, l2), charged(SUMS[name], rows, l2)
    assert moved <= most
    if l2 and name in ("moments", "cells") and select != "by unit":
        assert moved > 0.99 * most


@pytest.mark.parametrize("name", SUMS)
def test_units_with_few_rows_are_never_changed(name):
    rows = people()
    rows = {column: values[:200] for column, values in rows.items()}
    with opened(rows, max_rows=2) as few, opened(rows, max_rows=50) as many:
        assert (exact(few, SUMS[name])[0] == exact(many, SUMS[name])[0]).all()
        alone = {column: values[:1] for column, values in rows.items()}
    with opened(alone, max_rows=2) as few, opened(alone, unit=dp.ROW) as single:
        assert (exact(few, SUMS[name])[0] == exact(single, SUMS[name])[0]).all()


@pytest.mark.parametrize("count", [3, 1000, 200_000])
@pytest.mark.parametrize("max_rows", [1, 7])
def test_a_unit_of_any_size_is_scaled_to_the_norm_of_its_rows(count, max_rows):
    """Squares of its sums would have more bits than an engine has; they are taken coarsely."""
    rng = np.random.default_rng(count)
    rows = {
        "who": [1] * count,
        "age": rng.uniform(9, 10, count).tolist(),
        "bmi": [1.0] * count,
        "ill": [True] * count,
        "cost": [1.0] * count,
        "ward": ["a"] * count,
    }
    with opened(rows, max_rows=max_rows) as session:
        for sums in SUMS.values():
            found, _ = exact(session, sums)
            size, most = apart(found, 0 * found), charged(sums, max_rows)
            assert size <= most
            if isinstance(sums, Moments | CellCounts) and count > max_rows:
                assert size > 0.95 * most


@pytest.mark.parametrize("name", ["moments", "cells"])
@pytest.mark.parametrize("size", [1, 2, 300])
def test_a_unit_exchanged_for_another_moves_them_by_the_root_of_two(name, size):
    """Both scaled down, and of opposite rows: farther apart than one alone, nearer than twice."""
    sums = SUMS[name]
    if name == "moments":
        sums = Moments(1.0, 0.0)
    found = []
    for age, bmi in ((10.0, 0.0), (5.0, 1.0)):
        rows = {
            "who": [0] * size,
            "age": [age] * size,
            "bmi": [bmi] * size,
            "ill": [True] * size,
            "cost": [0.0] * size,
            "ward": ["a"] * size,
        }
        with opened(rows, max_rows=2, relation="replace") as session:
            found.append(exact(session, sums)[0])
    moved = apart(*found)
    one, both = charged(sums, 2), charged(sums, 2, relation=Relation.REPLACE)
    assert moved <= both < 1.4143 * one
    if size > 2:
        assert moved > (1.41 if name == "cells" else 0.7) * one


def test_scaled_moments_are_no_farther_apart_than_is_said():
    """Of pairs of units at random, in whole numbers, rounded toward zero as the engine does."""
    rng = np.random.default_rng(3)
    sums = SUMS["moments"]
    bound, worst = sums.moved(Relation.ADD_REMOVE), 0.0
    for _ in range(300):
        pair = []
        for _ in range(2):
            units = rng.normal(size=(rng.integers(1, 5), 2)) * rng.choice([0.01, 1, 100])
            units /= np.maximum(np.linalg.norm(units, axis=1, keepdims=True), 1)
            target = rng.choice([-1.0, 0.0, 1.0], len(units))
            flat = sums.totals(Rows(units, target, None, np.ones(len(units), bool))).astype(object)
            root = math.isqrt(sum(int(v) ** 2 for v in flat)) + 2
            factor = min(1 << 32, (bound << 32) // root)
            pair.append([int(math.copysign(1, v)) * (abs(v) * factor >> 32) for v in flat])
        moved = math.sqrt(sum((a - b) ** 2 for a, b in zip(*pair, strict=True)))
        assert moved <= sums.moved(Relation.REPLACE)
        worst = max(worst, moved / bound)
    assert worst > 1.2


X = ["age", "bmi"]
LINEAR = dp.learning.LinearRegression(guarantee=dp.ZCDP(1), bounds=None, y_bounds=None)
LOGISTIC = dp.learning.LogisticRegression(
    guarantee=dp.ZCDP(1), bounds=None, classes=None, max_iter=2
)
SGD = dp.learning.SGDClassifier(
    guarantee=dp.ApproxDP(1, 1e-6), bounds=None, classes=None, size=100, max_iter=5
)


def test_columns_are_those_of_the_select_but_the_target():
    with opened(people()) as session:
        sql = "SELECT who, age, bmi, ill, cost FROM people WHERE ill"
        model = dp.fit(session, LINEAR, sql, y="cost")
        assert model.coef_.shape == (3,)
        assert model.bounds == ([0.0, -1.0, 0.0], [10.0, 1.0, 1.0])
        assert model.rows_per_unit == 2
        assert dp.fit(session, LINEAR, sql, x=["Age"], y="COST").coef_.shape == (1,)


def test_bounds_and_classes_follow_from_those_of_the_table():
    with opened(people()) as session:
        sql = "SELECT age / 10 AS share, bmi + 1 AS more, UPPER(ward) AS w, ward FROM people"
        model = dp.fit(session, LOGISTIC, sql, x=["share", "more"], y="ward")
        assert model.bounds == ([0.0, 0.0], [1.0, 2.0])
        assert list(model.classes_) == ["a", "b"]
        with pytest.raises(dp.ParameterError, match="labels"):
            dp.fit(session, LOGISTIC, sql, x=["share", "more"], y="w")


def test_a_select_is_recorded_and_free_again_and_another_one_is_not():
    with opened(people()) as session:
        ask = "SELECT age, bmi, cost FROM people WHERE age > {}"
        first = dp.fit(session, LINEAR, ask.format(3), y="cost")
        again = dp.fit(session, LINEAR, ask.format("3  -- once more"), y="cost")
        assert np.array_equal(first.coef_, again.coef_)
        assert session.remaining["p"].releases == 1
        dp.fit(session, LINEAR, ask.format(4), y="cost")
        dp.fit(session, LINEAR, "people", x=X, y="cost")
        assert session.remaining["p"].releases == 3


def test_rows_that_a_public_table_multiplies_are_charged():
    sql = "SELECT age, bmi, cost FROM people JOIN wards ON people.ward = wards.ward"
    with opened(people()) as session:
        model = dp.fit(session, LINEAR, sql, y="cost")
        assert model.rows_per_unit == 4
        assert model.loss.rho == pytest.approx(1)


def test_a_model_of_whole_rows_learns_from_one_row_a_unit():
    by_unit = "SELECT AVG(age) AS age, MAX(bmi) AS bmi, MIN(ward) AS ward FROM people GROUP BY who"
    budget = dp.ApproxDP(50, 1e-5)
    with opened(people(), budget=budget) as session:
        assert dp.fit(session, SGD, by_unit, y="ward").coef_.shape == (1, 2)
        with pytest.raises(dp.ParameterError, match="units of 1 row"):
            dp.fit(session, SGD, "SELECT age, bmi, ward FROM people", y="ward")
        assert session.remaining["p"].releases == 1


def test_what_a_select_teaches_is_what_its_rows_teach():
    rows = people(4000)
    rich = dp.learning.LinearRegression(
        guarantee=dp.ZCDP(400), bounds=([0, -1], [10, 1]), y_bounds=(-1, 1)
    )
    with opened(rows) as session:
        sql = "SELECT age, bmi, -bmi / 2 AS cost FROM people WHERE age < 8"
        found = dp.fit(session, rich, sql, y="cost")
    assert found.coef_ == pytest.approx([0, -0.5], abs=0.02)


@pytest.mark.parametrize(
    ("asked", "wrong"),
    [
        ({"table": "SELECT nothing FROM people"}, "no column nothing"),
        ({"table": "SELECT age, bmi, cost FROM nowhere"}, "no table nowhere"),
        ({"table": "SELECT AVG(age) AS age, COUNT(*) AS cost FROM people"}, "not aggregates"),
        (
            {"table": "SELECT ward, SUM(age) AS age, SUM(cost) AS cost FROM people GROUP BY ward"},
            "not aggregates",
        ),
        ({"table": "SELECT beds AS age, beds AS cost FROM wards"}, "no private table"),
        ({"table": "SELECT * FROM wards"}, "no private table"),
        ({"table": "wards"}, "private tables are people"),
        ({"table": "SELECT age, bmi, cost FROM people LIMIT 5"}, "LIMIT of private rows"),
        ({"table": "SELECT age, bmi, cost FROM people ORDER BY age"}, "ORDER of private rows"),
        ({"table": "SELECT DISTINCT age, bmi, cost FROM people"}, "DISTINCT of private rows"),
        ({"table": "SELECT age, bmi, cost FROM people WHERE who = 7"}, "unit column who"),
        ({"table": "SELECT age, bmi, cost FROM people WHERE age > 3; SELECT 1"}, "one SELECT"),
        ({"table": "DROP TABLE people"}, "SELECT"),
        ({"table": "SELECT * EXCLUDE (who) FROM people"}, r"SELECT \*"),
        ({"table": "SELECT p.*, w.* FROM people p JOIN wards w ON p.ward = w.ward"}, "one name"),
        ({"table": "SELECT age, bmi FROM people", "y": "cost"}, "cost.*unknown"),
        ({"table": "SELECT age, bmi, cost FROM people", "y": None}, "is needed"),
        ({"table": "SELECT age, ward, cost FROM people"}, "ward.*holds text"),
        ({"table": "SELECT age, cost, who FROM people", "x": ["age", "who"]}, "is the unit"),
        ({"table": "SELECT age, who AS cost FROM people", "x": ["age"]}, "is the unit"),
        ({"table": "SELECT cost FROM people"}, "list of columns"),
        ({"table": "SELECT EXP(age) AS age, cost / 0 AS cost FROM people"}, "declare them"),
        ({"table": "SELECT beds, cost FROM people p JOIN wards w ON p.ward = w.ward"}, "declare"),
        ({"table": "SELECT age, cost FROM people WHERE age > "}, "broken"),
        ({"table": ""}, "SELECT"),
        ({"table": 7}, "text"),
    ],
    ids=lambda each: str(each)[:70],
)
def test_what_cannot_be_learned_is_refused_before_anything_is_charged(asked, wrong):
    told = []
    for rows in (people(), people(100, seed=5)):
        with opened(rows) as session:
            with pytest.raises(dp.DeniableError, match=wrong) as refused:
                dp.fit(**{"session": session, "estimator": LINEAR, "y": "cost", **asked})
            assert session.remaining["p"].releases == 0
            told.append((type(refused.value), str(refused.value)))
    assert told[0] == told[1]


def test_tables_of_two_populations_or_relations_are_not_learned_from_together():
    table = pa.table({"who": [1, 2], "age": [1.0, 2.0]})
    given = {"unit": "who", "max_rows": 1, "bounds": {"age": (0, 10)}}
    one, two = (dp.PrivateTable(table, population=name, **given) for name in "pq")
    with dp.Session({"one": one, "two": two}, budget=dp.ZCDP(9), ledger=dp.Ledger()) as session:
        sql = "SELECT one.age, two.age AS y FROM one JOIN two ON one.who = two.who"
        with pytest.raises(dp.QueryError, match="populations"):
            dp.fit(session, LINEAR, sql, y="y")


def test_a_public_table_that_grows_after_it_was_counted_fails_the_fit(tmp_path):
    """What a row becomes was bounded by the number that was known."""
    place = tmp_path / "wards.csv"
    place.write_text("ward,beds\na,1\nb,2\n")
    private = dp.PrivateTable(
        pa.table({"who": [1, 2], "age": [1.0, 2.0], "ward": ["a", "b"], "cost": [0.0, 1.0]}),
        unit="who",
        population="p",
        max_rows=1,
        bounds={"age": (0, 10), "cost": (-1, 1)},
    )
    wards = dp.PublicTable(str(place), columns={"ward": "text", "beds": "number"})
    tables = {"people": private, "wards": wards}
    sql = "SELECT age, cost FROM people JOIN wards ON people.ward = wards.ward"
    with dp.Session(tables, budget=dp.ZCDP(9), ledger=dp.Ledger()) as session:
        assert dp.fit(session, LINEAR, sql, y="cost").rows_per_unit == 1
        place.write_text("ward,beds\na,1\nb,2\n" * 3)
        other = "SELECT age, cost FROM people JOIN wards ON people.ward = wards.ward WHERE age > 0"
        with pytest.raises(dp.ReleaseFailedError):
            dp.fit(session, LINEAR, other, y="cost")


def test_a_table_of_any_width_is_learned_from_by_its_name():
    """The limits on what an analyst writes do not hold for what the library writes."""
    wide = {f"c{place}": [0.5, 0.25] for place in range(2_500)}
    private = dp.PrivateTable(
        pa.table(wide), unit=dp.ROW, population="p", bounds={"c0": (0, 1), "c2499": (0, 1)}
    )
    with dp.Session({"wide": private}, budget=dp.ZCDP(9), ledger=dp.Ledger()) as session:
        assert dp.fit(session, LINEAR, "wide", x=["c0"], y="c2499").coef_.shape == (1,)


def test_sums_of_many_columns_are_written_for_every_engine():
    """Many numbers of one unit are added up; what is nested deeply is refused."""
    width = 45
    kinds = dict.fromkeys([*(f"x{place}" for place in range(width)), "y"], ColumnType.NUMBER)
    schema = Schema({**kinds, "who": ColumnType.INTEGER})
    ranges = Ranges((0.0,) * width, (1.0,) * width, 1.0)
    selected = chosen(schema, unit="who", rows=2)
    x = tuple(kinds)[:width]
    made = pushed(SUMS["moments"], LearningSource(selected, x, "y", ranges, (), (0.0, 1.0)))
    assert len(made.plan.counted.statistics) == (width + 2) * (width + 3) // 2
    norms = made.step.select[: made.step.select.index("deniable_cut")]
    for text in (
        norms[: norms.rindex(",")] + " SELECT 1 AS n",
        *made.plan.counted.staged.tables.values(),
    ):
        rewritten(sqlglot.parse_one(text, read="duckdb"), lambda node: node)


def test_rows_of_a_select_are_counted_against_what_an_engine_can_hold():
    promised = {"max_rows": 2, "most_rows": 10**13}
    with opened(people(), **promised) as session:
        with pytest.raises(dp.QueryError, match="most_rows"):
            dp.fit(session, LINEAR, "people", x=X, y="cost")
        assert session.remaining["p"].releases == 0


def test_replay_of_a_fit_from_a_select_finds_nothing():
    ends = {"age": (0, 10), "bmi": (-1, 1), "cost": (-1, 1)}

    def factory(rows, ledger):
        made = {name: [row.get(name) for row in rows] for name in (*ends, "ward")}
        clean = {
            name: [v if isinstance(v, float) else None for v in made[name]] for name in ends
        } | {"ward": [v if isinstance(v, str) else None for v in made["ward"]]}
        filled = {**clean, "who": list(range(len(rows))), "ill": [None] * len(rows)}
        return opened(filled, ledger=ledger, unit=dp.ROW)

    def pipeline(session):
        sql = "SELECT age, bmi * 2 AS twice, cost FROM people WHERE cost < 0.5 OR ward = 'a'"
        fitted = dp.fit(session, LINEAR, sql, y="cost")
        return [fitted.coef_, fitted.intercept_]

    pairs = list(dp.auditing.nasty_neighbours(bounds=ends, keys={"ward": ["a", "b"]}))[::12]
    for pair, found in each_replayed(pipeline, pairs, factory):
        assert found.ok, f"{pair.name}\n{found}"
        assert found.releases >= 1


def test_the_noise_covers_all_rows_that_count():
    """The same sums: what `replace` exchanges, and how many rows of a unit there are."""
    with opened(people(), max_rows=3, relation="replace") as session:
        model = dp.fit(session, LINEAR, "SELECT age, cost FROM people", y="cost")
        assert (model.relation, model.rows_per_unit) == ("replace", 3)
        assert model.loss.relation == "replace"
    assert replace(SUMS["moments"], target=0.0).moved(Relation.REPLACE) > 2**0.5 * SUMS[
        "moments"
    ].moved(Relation.ADD_REMOVE)
