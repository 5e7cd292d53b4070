"""Prices, sensitivities in whole numbers, and behaviour on neighbours."""

import math
import warnings
from datetime import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

import deniable as dp
from deniable.learning.projected import Objective, Slopes
from deniable.learning.rows import (
    GRID,
    SQUARE_GRID,
    Ranges,
    Rows,
    on_grid,
    plain_labels,
    read_features,
    read_labels,
    read_target,
)
from deniable.learning.sums import CellCounts, Gradients, GroupSums, Moments, nearest
from deniable.privacy.accountants import gdp
from deniable.privacy.units import Relation
from learning.models import BUDGET, DRAWN, MODELS, fitted, made_up
from replayed import each_replayed

BUDGETS = [dp.ApproxDP(1.0, 1e-6), dp.ApproxDP(0.1, 1e-9), dp.ZCDP(0.02), dp.GDP(0.3)]
RELATIONS = ["add_remove", "replace"]


@pytest.mark.parametrize(("epsilon", "mu"), [(0.1, 0.0275), (1, 0.2367), (10, 1.848)])
def test_the_largest_mu_at_a_millionth(epsilon, mu):
    assert gdp.largest_mu(epsilon, 1e-6) == pytest.approx(mu, rel=2e-3)


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", MODELS)
def test_the_price_keeps_the_budget_and_hardly_less(name, relation, budget):
    cost = MODELS[name].make(guarantee=budget, relation=relation).loss
    assert cost.relation == relation
    assert cost.satisfies(budget)
    tighter = {
        dp.ApproxDP: lambda b: dp.ApproxDP(b.epsilon * 999 / 1000, b.delta),
        dp.ZCDP: lambda b: dp.ZCDP(b.rho * 999 / 1000),
        dp.GDP: lambda b: dp.GDP(b.mu * 999 / 1000),
    }[type(budget)](budget)
    assert not cost.satisfies(tighter)


@pytest.mark.parametrize("name", ["LinearRegression", "GaussianNB", "KMeans", "PCA"])
def test_a_pure_budget_costs_its_epsilon(name):
    example = MODELS[name]
    assert example.make(guarantee=dp.PureDP(1.5)).loss.pure == dp.PureDP(1.5).epsilon
    rows, target = made_up(300)
    fitted(example, rows, target[example.target], guarantee=dp.PureDP(1.5))


class _Listener:
    """Adds up the losses of what is drawn."""

    def __init__(self):
        self.losses = []

    def release(self, subject, *given):
        self.losses.append(subject.loss)
        return given[-1]()

    def noise(self, law):
        del law

    def fact(self, *said):
        del said


@pytest.mark.parametrize("name", MODELS)
def test_the_price_charged_is_the_price_stated(name):
    from deniable.trace import LISTENER

    listener, example = _Listener(), MODELS[name]
    rows, target = made_up(100)
    token = LISTENER.set(listener)
    try:
        model = fitted(example, rows, target[example.target])
    finally:
        LISTENER.reset(token)
    drawn = listener.losses
    assert (drawn[0] if len(drawn) == 1 else dp.compose(*drawn)) == model.loss


HOSTILE = np.array(
    [
        [math.nan, 0, 0],
        [math.inf, -math.inf, 1],
        [1e308, -1e308, 1e308],
        [5e-324, -0.0, 0],
        [1, 1, 1],
        [-1, -1, -1],
        [1, -1, 1],
        [0.3, 0.9999999999, -1.0000000001],
        [1 / 3, 2 / 3, 1e-17],
        [1e17, 0, 0],
    ]
)


def contributions(sums, rows):
    """What each row alone adds."""
    return [sums.totals(each).astype(object) for each in rows]


def single_rows(ranges):
    units, present = ranges.units(HOSTILE)
    for at in range(len(HOSTILE)):
        for label in (0, 1, 2):
            for t in (-1.0, 0.1, 1.0):
                yield Rows(units[[at]], np.array([t]), np.array([label]), np.array([present[at]]))


def released(rng, shape):
    return rng.normal(0, 3, shape)


def every_sum(columns=3):
    rng = np.random.default_rng(0)
    yield Moments(0.6**0.5, 0.1**0.5, 0.3**0.5)
    yield Moments(0.9**0.5, 0.1**0.5)
    yield GroupSums(3, 0.2**0.5, 0.4**0.5, 0.4**0.5)
    centres = tuple(map(tuple, released(rng, (3, columns)).tolist()))
    yield GroupSums(3, 0.15**0.5, 0.85**0.5, centres=centres)
    for directions in (1, 3):
        for scale in (1.0, 1e6, 1e150):
            transform = scale * released(rng, (columns + 1, columns + 1))
            yield Gradients(transform, released(rng, (directions, columns + 1)))
    axes = np.linalg.qr(released(rng, (columns, columns)))[0][:2]
    yield CellCounts(np.zeros(columns), axes, np.full(2, 0.1), 8)


@pytest.mark.parametrize("sums", list(every_sum()), ids=lambda s: type(s).__name__)
@pytest.mark.parametrize("norm", [0.1, 3**0.5])
def test_no_row_moves_a_sum_further_than_is_charged(sums, norm):
    alone = contributions(sums, single_rows(Ranges((-1.0,) * 3, (1.0,) * 3, norm)))
    lengths = [int((each**2).sum()) for each in alone]
    assert max(lengths) <= sums.moved(Relation.ADD_REMOVE) ** 2
    assert max(lengths) > 0.5 * sums.moved(Relation.ADD_REMOVE) ** 2, "the bound is near"
    assert max(abs(each).sum() for each in alone) <= sums.moved_l1(Relation.ADD_REMOVE, 3)
    apart = max(int(((a - b) ** 2).sum()) for a in alone for b in alone)
    assert apart <= sums.moved(Relation.REPLACE) ** 2
    far = max(abs(a - b).sum() for a in alone for b in alone)
    assert far <= sums.moved_l1(Relation.REPLACE, 3)


def test_sums_are_exact_in_any_order():
    rows, target = made_up(5000)
    units, present = Ranges((-1.0,) * 3, (1.0,) * 3, 3**0.5).units(rows)
    order = np.random.default_rng(2).permutation(5000)
    label = np.digitize(target["number"], [-0.2, 0.2])
    one = Rows(units, target["number"], label, present)
    other = Rows(units[order], target["number"][order], label[order], present[order])
    for sums in every_sum():
        assert (sums.totals(one) == sums.totals(other)).all()
        parts = [
            sums.totals(Rows(units[s], target["number"][s], label[s], present[s]))
            for s in (slice(0, 1234), slice(1234, None))
        ]
        assert (parts[0] + parts[1] == sums.totals(one)).all()


def whole_numbers(sums, rows):
    """What each row adds, among the others."""
    if isinstance(sums, Gradients | Slopes):
        return sums.each(rows)
    label = rows.label
    if isinstance(sums, CellCounts):
        label = sums.cells(rows.units)
    elif isinstance(sums, GroupSums) and sums.centres:
        label = nearest(rows.units, np.array(sums.centres))
    return np.column_stack([rows.units, label])


def sums_of(columns):
    """Each sum, with rows that lie on its borders as nearly as doubles can."""
    rng = np.random.default_rng(columns)
    for _ in range(20):
        (axis,) = axes = np.linalg.qr(rng.normal(size=(columns, 1)))[0].T
        across = rng.normal(0, 0.05, columns)
        across -= (across @ axis) * axis
        origin = rng.normal(0, 0.1, columns)
        cells = CellCounts(origin, axes, np.array([0.05]), 32)
        yield cells, origin + across + 0.05 * axis
        two = (tuple(origin + 0.2 * axis), tuple(origin - 0.2 * axis))
        yield GroupSums(2, 0.15**0.5, 0.85**0.5, centres=two), origin + across
        row = rng.uniform(-1, 1, columns)
        for directions in (1, 3):
            released = rng.normal(0, 2, (columns + 1, columns + 1))
            yield Gradients(released, rng.normal(0, 2, (directions, columns + 1))), row
        yield Slopes(Objective.LOGISTIC, rng.normal(0, 2, columns)), row
        yield Slopes(Objective.ABSOLUTE, axis), axis * (0.3 / (axis @ axis)) + across


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("columns", [3, 9, 17])
def test_what_becomes_of_a_row_does_not_depend_on_the_others(columns, order):
    """Not in the last bit: else one row more could move others over a border."""
    rng = np.random.default_rng(1)
    ranges = Ranges((-1.0,) * columns, (1.0,) * columns, 0.7)
    for sums, row in sums_of(columns):
        found = set()
        for others in range(10):
            for at in {0, others // 2, others}:
                rows = np.insert(rng.uniform(-1, 1, (others, columns)), at, row, axis=0)
                units, present = ranges.units(np.asarray(rows, order=order))
                if not isinstance(sums, Gradients):
                    units = np.asarray(rows, order=order)
                every = len(rows)
                given = Rows(units, np.full(every, 0.3), np.zeros(every, int), present)
                found.add(whole_numbers(sums, given)[at].tobytes())
                assert np.array_equal(ranges.units(rows)[0][at], ranges.units(rows[[at]])[0][0])
        assert len(found) == 1, sums


def test_sizes_of_whole_numbers_are_checked_too():
    rows = np.array([[0.6, 0.6], [0.9, 0.1]])
    whole = on_grid(rows, np.ones(2, bool), GRID, most=int(1.1 * GRID))
    assert not whole[0].any()
    assert whole[1].any()


@pytest.mark.parametrize("sums", list(every_sum()), ids=lambda s: type(s).__name__)
def test_full_rows_are_not_dropped(sums):
    """Rows of the greatest length and the greatest sum of sizes still count."""
    corner = np.full((8, 3), 1.0) * np.array(np.meshgrid(*[[-1, 1]] * 3)).reshape(3, -1).T
    units, present = Ranges((-1.0,) * 3, (1.0,) * 3, 3**0.5).units(corner)
    for label in (0, 1, 2):
        rows = Rows(units, np.ones(8), np.full(8, label), present)
        assert sums.totals(rows).any()
        for at in range(8):
            alone = Rows(units[[at]], np.ones(1), np.array([label]), present[[at]])
            assert sums.totals(alone).any()


@pytest.mark.parametrize("grid", [GRID, SQUARE_GRID])
def test_rows_that_lie_are_dropped_not_trusted(grid):
    long = np.array([[1.0, 1.0], [0.6, 0.8], [math.nan, 0], [1e300, 0], [math.inf, 0]])
    whole = on_grid(long, np.ones(5, bool), grid)
    squares = [sum(int(v) ** 2 for v in row) for row in whole]
    assert max(squares) <= grid**2
    assert squares[1] > 0.99 * grid**2
    assert squares[0] == squares[2] == squares[3] == squares[4] == 0


def read(table):
    return (
        [[row["x0"], row["x1"], row["x2"]] for row in table] or np.empty((0, 3)),
        {"number": [row["x0"] for row in table], "label": [row["c"] for row in table], "": None},
    )


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", MODELS)
def test_replay_finds_nothing_on_nasty_neighbours(name, relation):
    example = MODELS[name]
    few = {"max_iter": 3} if name.startswith("Logistic") else {}

    def pipeline(table):
        rows, target = read(table)
        model = fitted(example, rows, target[example.target], relation=relation, **few)
        return [getattr(model, each) for each in example.learned]

    pairs = list(
        dp.auditing.nasty_neighbours(
            bounds={"x0": (-1, 1), "x1": (-1, 1), "x2": (-1, 1)},
            keys={"c": ["a", "b"]},
            relation=relation,
        )
    )
    assert len(pairs) > 50
    chosen = pairs[:: 2 if name in ("LinearRegression", "LogisticRegression") else 4]
    for pair, found in each_replayed(pipeline, chosen):
        assert found.ok, f"{pair.name}\n{found}"
        assert found.releases >= 1


def test_replay_would_notice_a_row_that_is_not_clipped(monkeypatch):
    monkeypatch.setattr(Moments, "moved", lambda self, relation: 1000)

    def pipeline(rows):
        return MODELS["PCA"].make(guarantee=BUDGET).fit(rows).components_

    data = [[0.0, 0.1, 0.2]] * 5
    found = dp.replay(pipeline, data, [*data, [1.0, 1.0, 1.0]], time_limit=None)
    assert not found.sensitivity_ok


FAULTS = {
    "NaN": (math.nan, 0.5, 0.5),
    "infinity": (math.inf, 0.5, 0.5),
    "text": ("much", 0.5, 0.5),
    "None": (None, 0.5, 0.5),
    "beyond any double": (10**400, 0.5, 0.5),
    "constant": (0.0, 0.0, 0.0),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("count", [0, 1, 30])
@pytest.mark.parametrize("name", MODELS | DRAWN)
def test_private_faults_look_like_anything_else(name, count, fault):
    """Same shapes, same price, no word."""
    example = (MODELS | DRAWN)[name]
    rows = [list(FAULTS[fault]) for _ in range(count)] or np.empty((0, 3))
    target = {"number": [math.nan] * count, "label": ["never declared"] * count, "": None}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = fitted(example, rows, target[example.target])
    usual, usual_target = made_up(30)
    other = fitted(example, usual, usual_target[example.target])
    for each in example.learned:
        assert np.shape(getattr(model, each)) == np.shape(getattr(other, each))
        assert np.isfinite(getattr(model, each)).all()
    assert model.loss == other.loss


class _Raising:
    """A cell that raises whatever is done with it."""

    def __float__(self):
        raise KeyError("private")

    def __array__(self, *given, **named):
        raise RuntimeError("private")

    def __eq__(self, other):
        raise RuntimeError("private")

    def __hash__(self):
        return hash("a")


class _Unhashable:
    def __hash__(self):
        raise RuntimeError("private")


class _Warning:
    def __float__(self):
        warnings.warn("private", UserWarning, stacklevel=1)
        return 0.5

    def __hash__(self):
        warnings.warn("private", UserWarning, stacklevel=1)
        return 1


CELLS = {
    "raising": _Raising(),
    "unhashable": _Unhashable(),
    "warning": _Warning(),
    "complex": np.complex64(1 + 2j),
    "masked": np.ma.masked,
    "array": np.array([3.0, 4.0]),
    "list": [1, 2],
    "date": np.datetime64("2020"),
    "series": pd.Series([1.0]),
    "tiny": 5e-324,
    "no number": Decimal("sNaN"),
}


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("name", ["LinearRegression", "GaussianNB"])
def test_no_cell_and_no_label_is_told_of(name, cell):
    example, odd = MODELS[name], CELLS[cell]
    rows, target = made_up(6)
    listed, wanted = rows.tolist(), target[example.target].tolist()
    listed[2][1] = odd
    objects = np.empty((6, 3), object)
    labels = np.empty(6, object)
    for i in range(6):
        labels[i] = wanted[i]
        for j in range(3):
            objects[i, j] = listed[i][j]
    labels[3] = odd
    answers = [*wanted[:3], odd, *wanted[4:]]
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        for features in (listed, objects):
            for given in (wanted, labels, answers):
                assert fitted(example, features, given).n_features_in_ == 3


def test_what_is_masked_counts_as_nothing():
    values = np.ma.array([[0.1]] * 2000 + [[0.9]] * 2000, mask=[[False]] * 2000 + [[True]] * 2000)
    model = dp.learning.StandardScaler(guarantee=dp.GDP(100), bounds=(0, 1)).fit(values)
    assert model.mean_ == pytest.approx([0.1], abs=0.01)
    assert model.n_rows_ == pytest.approx(2000, abs=10)
    label = np.ma.array([0, 1] * 2000, mask=[True, False] * 2000)
    counted = dp.learning.LogisticRegression(guarantee=dp.GDP(100), bounds=(0, 1), classes=[0, 1])
    assert counted.fit(np.zeros((4000, 1)), label).n_rows_ == pytest.approx(2000, abs=10)


@pytest.mark.parametrize("bounds", [(0, 1e-281), (0, 5e-324), (-1e-320, 1e-320)], ids=str)
def test_spans_that_doubles_hardly_hold_are_refused(bounds):
    with pytest.raises(dp.ParameterError, match="too close"):
        MODELS["PCA"].make(guarantee=BUDGET, bounds=bounds).fit([[0.0, 0.0]])
    least = MODELS["PCA"].make(guarantee=BUDGET, bounds=(0, 1e-280), norm=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for value in (5e-324, 1e-281, 1e308, -1e308):
            least.fit([[value, value]])


@pytest.mark.parametrize(
    "rows",
    [
        [1.0, 2.0],
        np.zeros((2, 2, 2)),
        np.zeros((3, 0)),
        np.zeros((3, 2), complex),
        np.array([["2020-01-01"]], "datetime64[D]"),
        [[1, 2], [3]],
    ],
    ids=["flat", "cube", "no columns", "complex", "dates", "ragged"],
)
def test_public_faults_are_refused(rows):
    with pytest.raises(dp.ParameterError):
        MODELS["PCA"].make(guarantee=BUDGET).fit(rows)


def test_sparse_matrices_are_refused():
    from scipy.sparse import csr_array

    with pytest.raises(dp.errors.ParameterTypeError, match="toarray"):
        read_features(csr_array(np.eye(3)))


@pytest.mark.parametrize(
    "wrong",
    [
        {"guarantee": 1.0},
        {"guarantee": None},
        {"bounds": None},
        {"bounds": (1, -1)},
        {"bounds": (0, math.inf)},
        {"bounds": ([0, 0], [1, 1])},
        {"bounds": ("a", "b")},
        {"relation": "swap"},
        {"norm": 0},
        {"norm": "long"},
        {"y_bounds": None},
        {"y_bounds": (0, [1, 2])},
    ],
    ids=str,
)
def test_what_must_be_declared_is_asked_for(wrong):
    rows, target = made_up(10)
    given = {"guarantee": BUDGET, "bounds": (-1, 1), "y_bounds": (-1, 1), **wrong}
    with pytest.raises(dp.ParameterError):
        dp.learning.LinearRegression(**given).fit(rows, target["number"])


@pytest.mark.parametrize("classes", [None, "ab", ["a"], ["a", "a"]], ids=str)
def test_classes_are_declared(classes):
    with pytest.raises(dp.ParameterError):
        dp.learning.GaussianNB(guarantee=BUDGET, bounds=(-1, 1), classes=classes).cost()


DATES = [datetime(2020, 1, 1), datetime(2020, 1, 2)]
PANDAS_CELLS = {
    "complex": 1 + 2j,
    "complex, but real": 1 + 0j,
    "a text": "much",
    "missing": None,
    "no number": pd.NA,
    "no time": pd.NaT,
    "a time": pd.Timestamp("2020-01-01 00:00:00.000000001"),
    "a time with a zone": pd.Timestamp("2020-01-01", tz="Europe/Berlin"),
    "a day": DATES[0].date(),
    "a span": pd.Timedelta(1),
    "a long double": np.longdouble(1) / 3,
    "huge": 10**400,
    "a truth": True,
    "a list": [1],
    "raising": _Raising(),
    "warning": _Warning(),
}
HELD = {
    "numbers": [0.5, 1.0, 2.0],
    "whole": [0, 1, 2],
    "truths": [True, False, True],
    "times": [*DATES, DATES[0]],
    "texts": ["0.5", "a", "1"],
}


def in_one(cells):
    return pd.Series(cells)


def put_together(cells):
    return pd.concat([pd.Series(cells[:3]), pd.Series(cells[3:], dtype=object)])


def of_these(cells, makes):
    try:
        return makes(cells)
    except Exception:
        return None


def made_by_pandas():
    """What pandas makes at all of these values and that cell."""
    with warnings.catch_warnings(action="ignore"):
        return [
            pytest.param(held, cell, makes, id=f"{held}-{cell}-{makes.__name__}")
            for held, others in HELD.items()
            for cell, value in PANDAS_CELLS.items()
            for makes in (in_one, put_together, pd.Index, pd.Categorical)
            if of_these(others, makes) is not None and of_these([*others, value], makes) is not None
        ]


@pytest.mark.parametrize(("held", "cell", "made"), made_by_pandas())
def test_one_cell_of_pandas_decides_nothing_about_others(held, cell, made):
    """The type of a column follows one cell, and how all others are held follows that type."""
    others, labels = HELD[held], (0, 1, 0.5, "a", *DATES)
    with warnings.catch_warnings(action="ignore"):  # of pandas, while it makes them
        usual, more = made(others), made([*others, PANDAS_CELLS[cell]])
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        assert np.array_equal(read_target(more, 4)[:3], read_target(usual, 3), equal_nan=True)
        assert (read_labels(more, 4, labels)[:3] == read_labels(usual, 3, labels)).all()
        assert list(map(repr, plain_labels(more, 4)))[:3] == list(map(repr, plain_labels(usual, 3)))
        for beside in ([0, 1, 2, 3], ["a"] * 4):
            tables = [pd.DataFrame({"a": list(each), "b": beside[: len(each)]}) for each in
                      (usual, more)]  # fmt: skip
            before, after = map(read_features, tables)
            assert np.array_equal(after[:3], before, equal_nan=True)


def test_one_complex_cell_wipes_nobody_out():
    rows = np.linspace(0, 10, 5000)
    table = pd.DataFrame({"x": [*rows, 1 + 2j], "name": "nobody"})[["x"]]
    model = dp.learning.LinearRegression(guarantee=dp.GDP(50), bounds=(0, 10), y_bounds=(0, 40))
    for target in ([*(3 * rows), 0], pd.Series([*(3 * rows), 1j])):
        assert model.fit(table, target).coef_ == pytest.approx([3], abs=0.1)
