"""Learning from private tables: through the gate, with sums where the data are."""

import contextlib
import math
import tempfile
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from sklearn.base import clone

import deniable as dp
from deniable.engines.duckdb import DuckDB
from deniable.learning.pushed import LearningSource, pushed
from deniable.learning.rows import Ranges, Rows
from deniable.learning.sums import CellCounts, Gradients, GroupSums, Moments
from deniable.ledger.filters import charge
from deniable.privacy.units import Relation
from engines.loading import to_postgres
from engines.spark_session import local_spark
from learning.models import made_up
from learning.sources import chosen
from postgres import Postgres
from replayed import each_replayed

WIDE = dp.ApproxDP(50.0, 1e-5)
ENDS = {"x0": (-1, 1), "x1": (-1, 1), "x2": (-1, 1), "score": (-1, 1)}


def people(count=3000, hostile=True):
    rows, target = made_up(count)
    columns = {f"x{i}": rows[:, i].tolist() for i in range(3)}
    made = pa.table(
        {
            **columns,
            "ok": pa.array((rows[:, 0] > 0).tolist()),
            "score": target["number"].tolist(),
            "ward": target["label"].tolist(),
            "who": [i // 2 for i in range(count)],
        }
    )
    if not hostile:
        return made
    bad = [math.nan, math.inf, -math.inf, 1e308, -1e308, None, 5e-324, -0.0]
    odd = pa.table(
        {
            **{f"x{i}": pa.array(bad[i:] + bad[:i], pa.float64()) for i in range(3)},
            "ok": pa.array([None, True, False, None] * 2),
            "score": pa.array(bad, pa.float64()),
            "ward": pa.array(["a", None, "never declared", "", "a", "b", "c", "A"]),
            "who": pa.array([None, 1, 1, 1, 1, 2, 3, 10**6]),
        }
    )
    return pa.concat_tables([made, odd, extreme()])


EXTREMES = [1e-200, 5e-324, -0.0, 1e300, -5e-324, -1e300, 1e-160, 0.5]


def extreme():
    """Rows that are whole, of doubles whose products leave the doubles."""
    every = len(EXTREMES)
    turns = [
        [EXTREMES[(i * by + i // every) % every] for i in range(2 * every)] for by in (1, 3, 5)
    ]
    return pa.table(
        {
            **{f"x{i}": pa.array(turns[i], pa.float64()) for i in range(3)},
            "ok": pa.array([True, False] * every),
            "score": pa.array(EXTREMES * 2, pa.float64()),
            "ward": pa.array((["a", "b", "c"] * every)[: 2 * every]),
            "who": pa.array([10**7 + i for i in range(2 * every)]),
        }
    )


def source(**changes):
    made = LearningSource(
        selected=None,
        x=("x0", "x1", "x2"),
        y="ward",
        ranges=Ranges((-1.0,) * 3, (1.0,) * 3, 0.9),
        classes=("a", "b", "c"),
        y_ends=None,
    )
    return replace(made, **changes)


def every_sum():
    rng = np.random.default_rng(0)
    numbers = source(y="score", classes=(), y_ends=(-1.0, 1.0))
    yield Moments(0.6**0.5, 0.1**0.5, 0.3**0.5), numbers
    box = source(ranges=Ranges((-1.0,) * 3, (1.0,) * 3, 3**0.5))
    yield GroupSums(3, 0.2**0.5, 0.4**0.5, 0.4**0.5), box
    centres = tuple(map(tuple, rng.normal(0, 0.3, (4, 3)).tolist()))
    yield GroupSums(4, 0.15**0.5, 0.85**0.5, centres=centres), source(y=None, classes=())
    axes = np.linalg.qr(rng.normal(size=(3, 3)))[0][:2]
    yield CellCounts(rng.normal(0, 0.1, 3), axes, np.array([0.2, 0.1]), 8), source()
    for directions in (1, 3):
        transform = rng.normal(0, 3, (4, 4))
        yield Gradients(transform, rng.normal(0, 2, (directions, 4))), source()


def rows_of(table, given):
    values = np.array(
        [[math.nan if v is None else v for v in table[c].to_pylist()] for c in given.x]
    )
    units, present = given.ranges.units(values.T.astype(float))
    places = {label: place for place, label in enumerate(given.classes)}
    label = np.array([places.get(v, -1) for v in table["ward"].to_pylist()])
    score = np.array([math.nan if v is None else v for v in table["score"].to_pylist()], float)
    if given.classes:
        present = present & (label >= 0)
    if given.y_ends:
        present = present & np.isfinite(score)
    clipped = np.clip(np.where(np.isfinite(score), score, 0), -1, 1)
    return Rows(units, clipped, label, present)


@contextlib.contextmanager
def duckdb_engine():
    with contextlib.closing(DuckDB()) as engine:
        yield engine, engine.add("people", people(), None)


@contextlib.contextmanager
def postgres_engine():
    server = Postgres()
    try:
        to_postgres(server.url, "people", people())
        database = dp.postgres(server.url)
        with contextlib.closing(database.table("people").engine()) as engine:
            yield engine, engine.add("people", database.table("people"), None)
    finally:
        server.remove()


@contextlib.contextmanager
def spark_engine():
    with local_spark() as session, tempfile.TemporaryDirectory() as folder:
        parquet.write_table(people(), f"{folder}/people.parquet")
        session.read.parquet(f"{folder}/people.parquet").createOrReplaceTempView("people")
        tables = dp.spark(session)
        with contextlib.closing(tables.table("people").engine()) as engine:
            yield engine, engine.add("people", tables.table("people"), None)


def totals(engine, sums, given):
    statement = pushed(sums, given)
    engine.check([statement.step])
    with engine.snapshot() as snapshot:
        return statement.totals(snapshot.run(statement.step))


@pytest.mark.parametrize(
    ("make", "few"),
    [
        (duckdb_engine, 6),
        (postgres_engine, 6),
        pytest.param(spark_engine, 6, marks=pytest.mark.soak),
    ],
)
def test_every_engine_finds_the_sums_of_arrays(make, few):
    """The same whole numbers but for rounding in the last place, which is one step for each row."""
    table = people()
    with make() as (engine, schema):
        for sums, given in list(every_sum())[:few]:
            found = totals(engine, sums, replace(given, selected=chosen(schema)))
            wanted = sums.totals(rows_of(table, given))
            assert found.shape == wanted.shape
            apart = np.abs(found - wanted).max()
            scale = sums.moved(Relation.ADD_REMOVE)
            assert apart <= scale * (2 if isinstance(sums, CellCounts | GroupSums) else 1e-3), sums
            assert np.abs(wanted).max() > 10 * scale


@pytest.mark.parametrize(
    "make", [postgres_engine, pytest.param(spark_engine, marks=pytest.mark.soak)]
)
def test_every_engine_scales_units_with_many_rows_alike(make):
    """Each of these has two rows or more, of which one counts in full."""

    def scaled(engine, schema):
        selected = chosen(schema, unit="who", rows=1)
        return [totals(engine, sums, replace(given, selected=selected)) for sums, given in asked]

    asked = [(sums, given) for place, (sums, given) in enumerate(every_sum()) if place != 4]
    with duckdb_engine() as known, make() as other:
        for (sums, _), wanted, found in zip(asked, scaled(*known), scaled(*other), strict=True):
            assert np.abs(found - wanted).max() <= sums.moved(Relation.ADD_REMOVE) / 1000
            assert np.abs(wanted).max() > 10 * sums.moved(Relation.ADD_REMOVE)


@pytest.fixture(scope="module")
def in_postgres():
    """A table of extremes, of each alone, in a server."""
    server = Postgres()
    try:
        to_postgres(server.url, "people", pa.concat_tables([people(40, hostile=False), extreme()]))
        yield dp.postgres(server.url).table("people")
    finally:
        server.remove()


FAR = {"x0": (-1e100, 1e100), "x1": (0, 1e-200), "x2": (-1, 1), "score": (-1e90, 1e90)}


@pytest.mark.parametrize(
    ("kind", "ends"),
    [("arrow", ENDS), ("postgres", ENDS), ("postgres", FAR)],
    ids=["arrow", "postgres", "far"],
)
@pytest.mark.parametrize("name", ["linear", "logistic", "two", "bayes", "pca", "kmeans", "sgd"])
def test_no_row_makes_an_engine_raise(name, kind, ends, in_postgres):
    """Postgres raises where a product of doubles becomes 0, and the error would tell of a row."""
    model, y = MODELS[name]
    table = in_postgres if kind == "postgres" else pa.concat_tables([people(40), extreme()])
    with session(table, bounds=ends) as opened:
        for budget in (dp.ZCDP(1), dp.ZCDP(Fraction(1, 10**9))):
            asked = model if name == "sgd" else clone(model).set_params(guarantee=budget)
            fitted = dp.fit(opened, asked, "people", x=X, y=y)
            assert fitted.n_features_in_ == 3


@pytest.mark.parametrize("guarantee", [dp.ZCDP(1), dp.PureDP(1)], ids=str)
@pytest.mark.parametrize("name", ["linear", "logistic", "bayes", "kmeans"])
def test_a_select_is_learned_from_where_the_table_is(name, guarantee, in_postgres):
    model, y = MODELS[name]
    budget = dp.PureDP(9) if isinstance(guarantee, dp.PureDP) else WIDE
    asked = clone(model).set_params(guarantee=guarantee)
    with session(in_postgres, budget, unit="who", max_rows=1) as opened:
        for sql in (
            "SELECT x0, ABS(x1) AS x1, x2, score, ward FROM people WHERE x0 > -0.5 OR NOT ok",
            "SELECT who, MAX(x0) AS x0, AVG(x1) AS x1, MIN(x2) AS x2, SUM(score) AS score, "
            "MIN(ward) AS ward FROM people GROUP BY who",
        ):
            ends = {} if name != "linear" else {"y_bounds": (-2, 2)}
            fitted = dp.fit(opened, clone(asked).set_params(**ends), sql, x=X, y=y)
            assert fitted.n_features_in_ == 3


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_no_released_number_makes_an_engine_raise(in_postgres, scale):
    rng = np.random.default_rng(2)
    made = [
        GroupSums(
            2, 0.15**0.5, 0.85**0.5, centres=tuple(map(tuple, scale * rng.normal(0, 1, (2, 3))))
        ),
        *(
            Gradients(scale * rng.normal(0, 1, (4, 4)), factor * rng.normal(0, 1, (k, 4)))
            for k in (1, 3)
            for factor in (1.0, scale, 1 / scale)
        ),
    ]
    with contextlib.closing(in_postgres.engine()) as engine:
        selected = chosen(engine.add("people", in_postgres, None))
        for sums in made:
            totals(engine, sums, source(selected=selected))


def session(table=None, budget=WIDE, ledger=None, **options):
    given = {"unit": dp.ROW, "bounds": ENDS, "keys": {"ward": ["a", "b", "c"]}, **options}
    private = dp.PrivateTable(people() if table is None else table, population="p", **given)
    own = dp.Ledger() if ledger is None else ledger
    relation = private.relation
    return dp.Session({"people": private}, budget=dp.Budget(budget, relation=relation), ledger=own)


X = ["x0", "x1", "x2"]
MODELS = {
    "linear": (
        dp.learning.LinearRegression(guarantee=dp.ZCDP(1), bounds=None, y_bounds=None),
        "score",
    ),
    "ridge": (dp.learning.Ridge(guarantee=dp.ZCDP(1), bounds=None, y_bounds=None), "score"),
    "logistic": (
        dp.learning.LogisticRegression(guarantee=dp.ZCDP(1), bounds=None, classes=None, max_iter=3),
        "ward",
    ),
    "two": (
        dp.learning.LogisticRegression(
            guarantee=dp.ZCDP(1), bounds=None, classes=["a", "b"], max_iter=3
        ),
        "ward",
    ),
    "bayes": (dp.learning.GaussianNB(guarantee=dp.ZCDP(1), bounds=None, classes=None), "ward"),
    "pca": (dp.learning.PCA(2, guarantee=dp.ZCDP(1), bounds=None), None),
    "kmeans": (dp.learning.KMeans(3, guarantee=dp.ZCDP(1), bounds=None), None),
    "scaler": (dp.learning.StandardScaler(guarantee=dp.ZCDP(1), bounds=None), None),
    "sgd": (
        dp.learning.SGDClassifier(
            guarantee=dp.ApproxDP(1, 1e-6), bounds=None, classes=None, size=3000, max_iter=20
        ),
        "ward",
    ),
    "perturbed": (
        dp.learning.PerturbedLogisticRegression(
            guarantee=dp.PureDP(1), bounds=None, classes=["a", "c"], penalty=3.0
        ),
        "ward",
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_fit_is_charged_what_it_states_and_given_again_for_free(name):
    model, y = MODELS[name]
    with session() as opened:
        before = opened.remaining["p"].remaining
        fitted = dp.fit(opened, model, "people", x=X, y=y)
        after = opened.remaining["p"]
        assert after.releases == 1
        sampled = dp.losses.ApproxLoss(bound=1, slack=1e-6)
        stated = charge(sampled if name == "sgd" else fitted.loss)
        assert before["rho"] - after.remaining["rho"] == Fraction(stated.rho, 10**18)
        assert before["delta"] - after.remaining["delta"] == Fraction(stated.delta, 10**18)
        again = dp.fit(opened, model, "people", x=X, y=y)
        assert opened.remaining["p"].remaining == after.remaining
        for each in vars(fitted):
            if each.endswith("_") and each not in ("n_iter_", "label_", "n_features_in_"):
                assert np.array_equal(getattr(fitted, each), getattr(again, each)), each
    rows = np.zeros((2, 3))
    predict = fitted.predict if hasattr(fitted, "predict") else fitted.transform
    assert len(predict(rows)) == 2
    assert not [each for each in vars(model) if each.endswith("_")]


@pytest.mark.parametrize("name", ["linear", "kmeans", "logistic"])
def test_pure_fits_are_charged_their_epsilon(name):
    model, y = MODELS[name]
    pure = clone(model).set_params(guarantee=dp.PureDP(0.7))
    with session(budget=dp.PureDP(2)) as opened:
        before = opened.remaining["p"].remaining["epsilon"]
        stated = dp.fit(opened, pure, "people", x=X, y=y).loss.pure
        left = opened.remaining["p"].remaining["epsilon"]
        assert before - left == stated  # each part is on the grid of prices: nothing is rounded up
        assert Fraction(7, 10) - Fraction(1, 10**16) < stated <= Fraction(7, 10)


def test_a_table_teaches_what_arrays_teach():
    table = people(hostile=False)
    rows = np.array([table[c].to_pylist() for c in X]).T
    with session(table) as opened:
        rich = dp.learning.LinearRegression(
            guarantee=dp.ZCDP(400), bounds=(-1, 1), y_bounds=(-1, 1)
        )
        with pytest.raises(dp.BudgetError):
            dp.fit(opened, rich, "people", x=X, y="score")
    with session(table, dp.ZCDP(1000)) as opened:
        pushed_down = dp.fit(opened, rich, "people", x=X, y="score")
    in_memory = rich.fit(rows, np.array(table["score"].to_pylist()))
    assert pushed_down.coef_ == pytest.approx(in_memory.coef_, abs=0.02)
    assert pushed_down.predict(rows[:5]) == pytest.approx(in_memory.predict(rows[:5]), abs=0.02)


def test_rows_of_one_unit_are_charged_together():
    with session(unit="who", max_rows=2, budget=dp.ZCDP(5)) as opened:
        model = dp.fit(opened, MODELS["linear"][0], "people", x=X, y="score")
        assert model.rows_per_unit == clone(model).rows_per_unit == 2
        assert model.loss.rho == pytest.approx(1)
    with session(unit="who", max_rows=2) as opened, pytest.raises(dp.ParameterError, match="1 row"):
        dp.fit(opened, MODELS["sgd"][0], "people", x=X, y="ward")
    with session(unit="who") as opened, pytest.raises(dp.ParameterError, match="max_rows"):
        dp.fit(opened, MODELS["linear"][0], "people", x=X, y="score")


def test_booleans_are_numbers_and_the_relation_is_the_tables():
    with session(relation="replace") as opened:
        model = dp.fit(opened, MODELS["logistic"][0], "people", x=["x0", "ok"], y="ward")
        assert model.relation == "replace"
        assert model.loss.relation == "replace"
        assert model.coef_.shape == (3, 2)


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        ({"x": []}, "x"),
        ({"x": "x0"}, "x"),
        ({"x": ["x0", "X0"]}, "x"),
        ({"x": ["x0", "score"]}, "x"),
        ({"x": ["nothing"]}, "column"),
        ({"x": ["ward"]}, "x"),
        ({"x": ["who"]}, "bounds"),
        ({"y": None}, "y"),
        ({"y": "ward"}, "y"),
        ({"table": "elsewhere"}, "table"),
        ({"estimator": "logistic"}, "estimator"),
        ({"session": None}, "session"),
    ],
    ids=str,
)
def test_wrong_questions_cost_nothing(given, wrong):
    with session() as opened:
        asked = {"session": opened, "estimator": MODELS["linear"][0], "table": "people"}
        with pytest.raises(dp.ParameterError) as told:
            dp.fit(**{**asked, "x": X, "y": "score", **given})
        assert told.value.argument == wrong
        assert opened.remaining["p"].releases == 0


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("ridge", {"alpha": -1}),
        ("linear", {"guarantee": dp.PureDP(Fraction(1, 10**12))}),
        ("linear", {"guarantee": dp.ZCDP(Fraction(1, 10**12))}),
        ("linear", {"fit_intercept": "no"}),
        ("sgd", {"eta0": -3}),
        ("sgd", {"size": -20}),
        ("kmeans", {"n_clusters": 100_000}),
        ("pca", {"n_components": 4}),
        ("logistic", {"classes": {"a", "b"}}),
        ("bayes", {"classes": [0, "a"]}),
    ],
    ids=lambda given: given if isinstance(given, str) else next(iter(given)),
)
def test_wrong_parameters_cost_nothing(name, wrong):
    model, y = MODELS[name]
    with session() as opened:
        with pytest.raises(dp.ParameterError) as told:
            dp.fit(opened, clone(model).set_params(**wrong), "people", x=X, y=y)
        assert told.value.argument == next(iter(wrong))
        assert opened.remaining["p"].releases == 0


def test_labels_are_asked_for_where_the_table_has_none():
    with session(keys={}) as opened, pytest.raises(dp.ParameterError, match="declare the labels"):
        dp.fit(opened, MODELS["bayes"][0], "people", x=X, y="ward")


@pytest.mark.parametrize("name", ["linear", "logistic", "kmeans", "bayes"])
def test_replay_of_the_gate_finds_nothing(name):
    model, y = MODELS[name]
    ends = {"x0": (-1, 1), "x1": (-1, 1), "score": (-1, 1)}
    keys = {"ward": ["a", "b", "c"]}

    def as_table(rows):
        def numbers(column):
            return [v if isinstance(v, float) else None for v in (r[column] for r in rows)]

        return pa.table(
            {
                **{c: pa.array(numbers(c), pa.float64()) for c in ends},
                "ward": pa.array(
                    [r["ward"] if isinstance(r["ward"], str) else None for r in rows], pa.string()
                ),
            }
        )

    def factory(rows, ledger):
        return session(as_table(rows), ledger=ledger, bounds=ends)

    def pipeline(opened):
        fitted = dp.fit(opened, model, "people", x=["x0", "x1"], y=y)
        return [getattr(fitted, each) for each in sorted(vars(fitted)) if each.endswith("_")]

    pairs = list(dp.auditing.nasty_neighbours(bounds=ends, keys=keys))[::14]
    for pair, found in each_replayed(pipeline, pairs, factory):
        assert found.ok, f"{pair.name}\n{found}"
        assert found.releases >= 1


@pytest.mark.parametrize("method", ["objective", "approximate"])
def test_noise_in_floats_is_for_the_owner_to_allow(method):
    """Its last bits tell neighbours apart, whatever was charged."""
    model = dp.learning.PerturbedLogisticRegression(
        guarantee=dp.ApproxDP(1, 1e-6),
        bounds=None,
        classes=["a", "c"],
        penalty=4,
        method=method,
        allow_real_arithmetic=True,
    )
    with session() as opened:
        with pytest.raises(dp.ParameterError, match="for the owner to say"):
            dp.fit(opened, model, "people", x=X, y="ward")
        assert opened.remaining["p"].releases == 0
