"""A fit is paid for in the words of a question: epsilon=, rho= or guarantee=."""

import pickle
from fractions import Fraction
from inspect import Parameter, signature

import numpy as np
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.linear_model import Lasso

import deniable as dp
from deniable.learning.fit import ESTIMATORS
from learning.models import DRAWN, MODELS, made_up

WORDS = ("epsilon", "rho", "guarantee")
SENTENCE = "say what it may cost, in one way: epsilon=, rho= or guarantee="
SEVERAL = [
    {"epsilon": 1, "rho": 1},
    {"epsilon": 1, "guarantee": dp.PureDP(1)},
    {"rho": 1, "guarantee": dp.ZCDP(1)},
    {"epsilon": 1, "rho": 1, "guarantee": dp.GDP(1)},
]


def blocks(**given):
    shapes = {"coef_": (3,), "intercept_": ()}
    return dp.learning.SubsampledEstimator(
        Lasso(), learned=shapes, bounds=(-2, 2), blocks=5, **given
    )


def descent(**given):
    return dp.learning.ProjectedDescent("hinge", width=3, radius=1, size=100, steps=3, **given)


SUMS = {**{name: each.make for name, each in MODELS.items()}, "blocks": blocks, "descent": descent}
ROWS = {name: each.make for name, each in DRAWN.items()}
EVERY = {**SUMS, **ROWS}


class Unread:
    """Rows that nobody may look at."""

    def __array__(self, *_given, **_named):
        raise AssertionError("rows were read")

    __len__ = __iter__ = __getitem__ = __array__


def told(ask):
    with pytest.raises(dp.ParameterError) as caught:
        ask()
    return str(caught.value)


@pytest.mark.parametrize("name", SUMS)
@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ({"epsilon": 0.7}, dp.PureDP(0.7)),
        ({"epsilon": Fraction(7, 10)}, dp.PureDP(0.7)),
        ({"rho": 0.02}, dp.ZCDP(0.02)),
    ],
    ids=str,
)
def test_by_itself_a_word_means_a_guarantee(name, said, meant):
    spoken, same = SUMS[name](**said), SUMS[name](guarantee=meant)
    assert spoken.loss == same.loss
    assert spoken.loss.satisfies(meant)
    other = type(meant)(next(iter(vars(meant).values())) * Fraction(99, 100))
    assert not spoken.loss.satisfies(other)
    if name != "descent":
        assert spoken.cost() == same.cost() == spoken.loss.price
        assert spoken.cost().asked == (0.7 if "epsilon" in said else None)


def test_what_is_pure_or_sampled_alone_says_so():
    """Those that are fitted to rows are priced in ε, or in (ε, δ)."""
    perturbed, sampled = (ROWS[n] for n in ("PerturbedLogisticRegression", "SGDClassifier"))
    assert perturbed(epsilon=0.7).loss == perturbed(guarantee=dp.PureDP(0.7)).loss
    assert perturbed(epsilon=0.7).cost().asked == 0.7
    assert "guarantee=dp.PureDP" in told(perturbed(rho=1).cost)
    for said in ({"epsilon": 1}, {"rho": 1}):
        assert "guarantee=dp.ApproxDP" in told(sampled(**said).cost)
        assert "guarantee=dp.ApproxDP" in told(lambda said=said: descent(rate=0.1, **said))


@pytest.mark.parametrize("name", ["PCA", "blocks"])
def test_the_epsilon_that_was_typed_is_shown(name):
    make = SUMS[name]
    assert str(make(guarantee=dp.ApproxDP(1, 1e-6)).cost()).startswith("ε = 1 (ρ = 0.0")
    assert str(make(epsilon=0.25).cost()).startswith("ε = 0.25 (ρ = 0.0")
    assert str(make(rho=0.25).cost()) == "ρ = 0.25"
    assert make(guarantee=dp.GDP(1)).cost().asked is None


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("said", [{}, *SEVERAL], ids=str)
def test_one_word_must_be_given(name, said):
    """In the sentence that questions have; and before any row is read."""
    if name == "descent":
        assert SENTENCE in told(lambda: descent(**said))
        return
    model = EVERY[name](**said)
    assert SENTENCE in told(model.cost)
    assert SENTENCE in told(lambda: model.loss)
    assert SENTENCE in told(lambda: model.fit(Unread(), Unread()))


@pytest.mark.parametrize(
    "said",
    [{"epsilon": 0}, {"epsilon": -1}, {"rho": float("nan")}, {"guarantee": 1}, {"epsilon": "1"}],
    ids=str,
)
@pytest.mark.parametrize("name", ["LinearRegression", "PerturbedLogisticRegression", "blocks"])
def test_wrong_prices_are_found_before_rows_are_read(name, said):
    (word,) = said
    model = EVERY[name](**said)
    for ask in (model.cost, lambda: model.fit(Unread(), Unread())):
        with pytest.raises((dp.ParameterError, dp.errors.ParameterTypeError), match=word):
            ask()


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("said", [{"epsilon": 1e-19}, {"rho": 1e-19}], ids=str)
def test_prices_below_the_grid_are_refused(name, said):
    """Nothing of them would be left for a draw, and a price of nothing is none."""
    model = EVERY[name](**said)
    assert "beyond what exact noise is drawn for" in told(model.cost)
    assert "beyond what exact noise is drawn for" in told(lambda: model.fit(Unread(), Unread()))


@pytest.mark.parametrize("name", EVERY)
def test_constructors_take_the_words_and_store_them(name):
    with pytest.raises(TypeError, match="budget"):
        EVERY[name](budget=dp.ZCDP(1))
    if name == "descent":
        assert descent(rho=0.5).guarantee == dp.ZCDP(0.5)
        return
    things = {word: object() for word in WORDS}
    model = EVERY[name](**things)
    assert all(getattr(model, word) is thing for word, thing in things.items())
    assert all(model.get_params(deep=False)[word] is thing for word, thing in things.items())
    copied = clone(EVERY[name](epsilon=1)).set_params(epsilon=None, guarantee=dp.ApproxDP(1, 1e-6))
    assert copied.loss.satisfies(dp.ApproxDP(1, 1e-6))


def test_every_estimator_has_the_words():
    for kind in (*ESTIMATORS.values(), dp.learning.SubsampledEstimator):
        taken = signature(kind.__init__).parameters
        assert "budget" not in taken
        for word in WORDS:
            assert taken[word].default is None
            assert taken[word].kind == Parameter.KEYWORD_ONLY


ENDS = {"a": (-1, 1), "b": (-1, 1), "c": (-1, 1), "y": (-1, 1)}
X = ["a", "b", "c"]
NARROW = dp.ApproxDP(2, 1e-6)


def session(budget=NARROW):
    rows, target = made_up(400)
    columns = dict(zip("abc", rows.T, strict=True))
    table = pa.table({**columns, "y": target["number"], "label": target["label"]})
    private = dp.PrivateTable(
        table, unit=dp.ROW, population="p", bounds=ENDS, keys={"label": ["a", "b", "c"]}
    )
    return dp.Session({"people": private}, budget=budget, ledger=dp.Ledger())


def linear(**said):
    return dp.learning.LinearRegression(bounds=None, y_bounds=None, **said)


def learned(opened, model, y="y"):
    return dp.fit(opened, model, "people", x=X, y=y)


def spent(opened):
    return opened.remaining["p"].releases


def test_in_a_session_epsilon_is_that_of_a_question():
    """The ρ that converts to (ε, δ_c), and the noise that it buys, not pure noise."""
    with session() as opened:
        asked = opened.explain("SELECT COUNT(*) AS n FROM people", epsilon=0.5).cost
        fitted = learned(opened, linear(epsilon=0.5))
        rho = opened.parts.budget.rho_for(Fraction(1, 2))
        assert fitted.guarantee == dp.ZCDP(rho)
        assert float(fitted.cost().rho) == pytest.approx(float(asked.rho), rel=1e-9)
        assert fitted.cost().rho <= rho
        assert fitted.cost().asked == asked.asked == 0.5
        assert str(fitted.cost()) == str(asked)
        before = opened.remaining["p"].remaining["rho"]
        other = learned(opened, linear(epsilon=0.25))
        assert before - opened.remaining["p"].remaining["rho"] == other.cost().rho


def test_under_a_pure_budget_epsilon_is_pure():
    with session(dp.PureDP(2)) as opened:
        fitted = learned(opened, linear(epsilon=0.5))
        assert fitted.guarantee == dp.PureDP(0.5)
        assert fitted.cost().epsilon == Fraction(1, 2)
        assert fitted.cost().asked == 0.5
        assert opened.remaining["p"].remaining["epsilon"] == Fraction(3, 2)
        assert "a PureDP budget is spent in epsilon=" in told(
            lambda: learned(opened, linear(rho=0.1))
        )
        assert spent(opened) == 1


def test_a_budget_without_delta_is_spent_in_rho():
    with session(dp.ZCDP(1)) as opened:
        assert "a budget without δ is spent in rho=" in told(
            lambda: learned(opened, linear(epsilon=0.5))
        )
        assert spent(opened) == 0
        assert learned(opened, linear(rho=0.25)).cost().asked is None
        assert opened.remaining["p"].remaining["rho"] == pytest.approx(Fraction(3, 4), abs=1e-15)


@pytest.mark.parametrize("said", [{}, *SEVERAL], ids=str)
def test_a_session_has_the_same_sentence(said):
    with session() as opened:
        question = told(lambda: opened.sql("SELECT COUNT(*) AS n FROM people", **said))
        assert question == told(lambda: learned(opened, linear(**said)))
        assert SENTENCE in question
        assert spent(opened) == 0


@pytest.mark.parametrize("first", [0, 1, 2])
def test_one_price_said_otherwise_is_one_record(first):
    with session() as opened:
        rho = opened.parts.budget.rho_for(Fraction(1, 2))
        ways = [{"epsilon": 0.5}, {"rho": rho}, {"guarantee": dp.ZCDP(rho)}]
        one = learned(opened, linear(**ways.pop(first)))
        for said in (*ways, {"epsilon": Fraction(1, 2)}):
            again = learned(opened, linear(**said))
            assert np.array_equal(one.coef_, again.coef_)
            assert again.cost() == one.cost()
            assert again.cost().asked == one.cost().asked == 0.5
        assert spent(opened) == 1
        learned(opened, linear(epsilon=0.500001))
        assert spent(opened) == 2


def test_one_pure_price_is_one_record():
    with session(dp.PureDP(1)) as opened:
        one = learned(opened, linear(epsilon=0.5))
        again = learned(opened, linear(guarantee=dp.PureDP(0.5)))
        assert np.array_equal(one.coef_, again.coef_)
        assert spent(opened) == 1


def test_a_guarantee_is_itself_in_a_session():
    """One of (ε, δ) is no ρ: it is calibrated by its own curve, and samples need it."""
    kept = dp.ApproxDP(0.1, 1e-7)
    sampled = dp.learning.SGDClassifier(
        bounds=None, classes=None, size=400, rate=0.1, max_iter=5, guarantee=kept
    )
    with session() as opened:
        assert learned(opened, linear(guarantee=kept)).guarantee == kept
        left = opened.remaining["p"].remaining
        fitted = learned(opened, sampled, "label")
        after = opened.remaining["p"].remaining
        assert fitted.cost().rho == left["rho"] - after["rho"]
        assert fitted.cost().delta == left["delta"] - after["delta"] > 0
        wrong = clone(sampled).set_params(guarantee=None, epsilon=0.1)
        assert "guarantee=dp.ApproxDP" in told(lambda: learned(opened, wrong, "label"))
        assert spent(opened) == 2


@pytest.mark.parametrize(
    ("model", "y"),
    [
        (linear(), "y"),
        (dp.learning.KMeans(3, bounds=None), None),
        (dp.learning.LogisticRegression(bounds=None, classes=None, max_iter=7), "label"),
    ],
    ids=["linear", "kmeans", "logistic"],
)
@pytest.mark.parametrize("budget", [NARROW, dp.PureDP(0.3)], ids=str)
def test_the_largest_epsilon_that_is_told_buys_a_fit(model, y, budget):
    with session(budget) as opened:
        opened.sql("SELECT COUNT(*) AS n FROM people", epsilon=0.1)
        largest = opened.remaining["p"].largest_epsilon
        fitted = learned(opened, clone(model).set_params(epsilon=largest), y)
        assert fitted.cost().asked == pytest.approx(largest, rel=1e-5)
        with pytest.raises(dp.BudgetError):
            learned(opened, clone(model).set_params(epsilon=largest * 0.01), y)


def test_a_fitted_model_keeps_its_words_and_a_clone_has_none_paid():
    with session() as opened:
        given = linear(epsilon=0.5)
        fitted = learned(opened, given)
    assert given.get_params()["epsilon"] == 0.5
    assert given.set_params(y_bounds=(-1, 1)).cost().epsilon == Fraction(1, 2)
    again = pickle.loads(pickle.dumps(fitted))
    assert again.cost() == fitted.cost()
    assert again.cost().asked == 0.5
    assert clone(fitted).cost().asked is None
    assert clone(fitted).loss == fitted.loss
