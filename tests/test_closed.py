"""What callers hand to the gate is believed by its exact type, read once, and copied."""

import inspect
import sys
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from decimal import Decimal
from fractions import Fraction
from numbers import Rational

import numpy as np
import pyarrow as pa
import pytest

import deniable as dp
from deniable.closed import MECHANISMS, frozen, is_mechanism
from deniable.learning.exponential import BallExponential
from deniable.ledger.filters import charge
from deniable.mechanisms.joint import JointNoise
from deniable.privacy.losses.base import Loss
from deniable.query.read.build import Question
from deniable.release import Door
from deniable.synthesis.online import answer_online

PEOPLE = "clinic/patient"
KEY = bytes(32)
COUNT = dp.Geometric(epsilon=0.1, sensitivity=1)
SQL = "SELECT COUNT(*) AS n FROM visits"


class Float(float):
    """A number that is cheap when it is priced, and dear when it draws."""

    reads = 0

    def _now(self):
        self.reads += 1
        return 1e-6 if self.reads < 3 else 1e3

    __float__ = _now

    def __str__(self):
        return repr(self._now())


class Whole(int):
    def __int__(self):
        return 10**6

    __index__ = __int__


class Ratio(Fraction):
    @property
    def numerator(self):
        return 1


class Tenth(Decimal):
    def is_finite(self):
        return True


class Single(np.float64):
    pass


class Text(str):
    def lower(self):
        return "other"


class Looks:
    """Says that it is something else."""

    def __init__(self, kind):
        self._kind = kind

    @property
    def __class__(self):
        return self._kind


class Own(Rational):
    """A number by protocol alone."""

    numerator, denominator = 1, 10

    def _no(self, *_):
        raise NotImplementedError

    for _name in Rational.__abstractmethods__ - {"numerator", "denominator"}:
        locals()[_name] = _no


class Digits(int):
    """A whole number that is another one whenever it is asked again."""

    numerator = property(lambda self: self)
    denominator = property(lambda self: 1)
    asked = 0

    def _now(self, *_):
        Digits.asked += 1
        return 1 if Digits.asked % 2 else 10**6

    __int__ = __index__ = __abs__ = __mul__ = __rmul__ = __floordiv__ = _now


class Made(Own):
    """By which `Fraction` itself takes such a number over: what comes out is a Fraction."""

    numerator, denominator = Digits(1), 1


def fractions_of_objects():
    """Genuine fractions, whose parts are not genuine."""
    spoilt, flat, upside_down, other = (Fraction(1, 10) for _ in range(4))
    spoilt._denominator = Whole(10)
    flat._denominator = 0
    upside_down._denominator = -10
    other._numerator = Decimal(1)
    return [Fraction(Made()), spoilt, flat, upside_down, other]


def below(kind, value):
    """The same object, of a subclass that overrides nothing."""
    made = object.__new__(type(kind.__name__, (kind,), {}))
    made.__dict__.update(vars(value))
    return made


def numbers():
    own = [Float(0.1), Whole(1), Ratio(1, 10), Tenth("0.1"), Single(0.1), Own()]
    return [*own, Looks(float), "1", *fractions_of_objects()]


def wholes():
    return [Whole(1), Digits(1), Looks(int), True, 1.0, "1"]


def texts():
    return [Text("visits"), Looks(str), 5, b"visits", None]


def names():
    return [[Text("cost")], Looks(list), 5, "cost"]


def guarantees():
    return [
        *(below(kind, made) for kind, made in ((dp.PureDP, dp.PureDP(1)), (dp.ZCDP, dp.ZCDP(1)))),
        *(Looks(kind) for kind in (dp.PureDP, dp.ApproxDP, dp.ZCDP, dp.GDP, dp.Budget)),
        below(dp.Budget, dp.Budget(dp.PureDP(1))),
    ]


def methods():
    class Mine:
        def check(self, domain):
            pass

        def run(self, *_given):
            raise AssertionError("it ran")

    loud, spoilt, wild = (
        below(dp.synthesis.MST, dp.synthesis.MST()),
        dp.synthesis.MST(),
        dp.synthesis.Independent(),
    )
    object.__setattr__(spoilt, "iterations", Whole(5))
    object.__setattr__(wild, "iterations", "5")
    named = type("MST", (Mine,), {"__module__": dp.synthesis.MST.__module__})()
    return [
        Mine(),
        loud,
        spoilt,
        wild,
        named,
        Looks(dp.synthesis.MST),
        dp.synthesis.MST,
        dp.synthesis.AIM(workload=2),
    ]


def losses():
    cheap = below(dp.losses.LaplaceLoss, dp.Laplace(epsilon=5, sensitivity=1).loss)
    type(cheap).price = dp.Laplace(epsilon=1e-9, sensitivity=1).loss.price
    hidden = dp.repeat(COUNT.loss, 2)
    object.__setattr__(hidden.parts[0], "loss", cheap)
    return [cheap, hidden, Looks(dp.losses.LaplaceLoss), COUNT, None]


def mechanisms():
    class Mine:
        loss = COUNT.loss

        def release(self, value):
            return value

    loud = below(dp.Geometric, COUNT)
    type(loud).release = lambda self, value: value
    wrapped = dp.post_process(COUNT, abs)
    object.__setattr__(wrapped, "mechanism", Mine())
    spoilt = dp.Geometric(epsilon=0.1, sensitivity=1)
    object.__setattr__(spoilt, "scale", Float(10.0))
    sly = dp.Geometric(epsilon=0.1, sensitivity=1)
    object.__setattr__(sly, "scale", fractions_of_objects()[0])
    unlisted = dp.post_process(BallExponential(1.0, 1.0), abs)
    deeper = dp.post_process(dp.post_process(unlisted, abs), abs)
    round_about = dp.post_process(COUNT, abs)
    object.__setattr__(round_about, "mechanism", round_about)
    inside = [dp.TopK(dp.Exponential(epsilon=1, sensitivity=1), 2) for _ in range(2)]
    object.__setattr__(inside[0], "selector", COUNT)
    object.__setattr__(inside[1], "selector", below(dp.Exponential, inside[1].selector))
    named = type("Geometric", (Mine,), {"__module__": dp.Geometric.__module__})()
    others = [sly, unlisted, deeper, round_about, *inside, dp.post_process(inside[0], abs)]
    own = [Mine(), loud, wrapped, spoilt, named, Looks(dp.Geometric), dp.SubsampleAggregate, None]
    return [*own, *others]


def estimators():
    def train(self, rows, _ranges):
        self.kept = rows

    plain = dp.learning.LogisticRegression(
        guarantee=dp.ApproxDP(1e-6, 1e-6), bounds=None, classes=None
    )
    perturbed = dp.learning.PerturbedLogisticRegression(
        guarantee=dp.ApproxDP(1e-6, 1e-6), bounds=None, classes=None, penalty=1.0
    )
    made = [below(type(each), each) for each in (plain, perturbed)]
    for each in made:
        type(each)._train = type(each)._learn = train
    return [*made, Looks(dp.learning.LogisticRegression), dp.learning.LogisticRegression, None]


def tables():
    return [below(dp.PrivateTable, private()), Looks(dp.PrivateTable), pa.table({"a": [1]})]


class Once(Mapping):
    """A mapping that says something else the second time."""

    def __init__(self, first, later):
        self.first, self.later, self.reads = first, later, 0

    def items(self):
        self.reads += 1
        return (self.first if self.reads == 1 else self.later).items()

    def __iter__(self):
        return iter(self.first)

    def __len__(self):
        return 1

    def __getitem__(self, name):
        return dict(self.items())[name]

    def __bool__(self):
        return True


def private():
    rows = pa.table({"who": [1, 2, 3], "cost": [1.0, 2.0, 3.0], "ill": [True, False, True]})
    return dp.PrivateTable(
        rows, unit="who", population=PEOPLE, bounds={"cost": (0, 10)}, max_rows=1, max_groups=1
    )


@pytest.fixture
def ledger():
    with dp.Ledger(key=KEY) as made:
        yield made


@pytest.fixture
def session(ledger):
    with dp.Session({"visits": private()}, budget=dp.ApproxDP(3, 1e-6), ledger=ledger) as made:
        yield made


@pytest.fixture(scope="module")
def walked():
    with opened(tables={"visits": private()}, budget=dp.ApproxDP(100, 1e-6)) as made:
        yield made


def sessions():
    class Mine(dp.Session):
        pass

    return [object.__new__(Mine), Looks(dp.Session), None]


def ledgers():
    class Mine(dp.Ledger):
        def reserve(self, *_given, **_named):
            return None

    return [Mine(key=KEY), Looks(dp.Ledger), 5]


def fitted(session, model=None, table="visits", x=("cost",), y="ill"):
    known = dp.learning.LogisticRegression(
        guarantee=dp.ApproxDP(0.1, 1e-7), bounds=None, classes=[False, True]
    )
    return dp.fit(session, known if model is None else model, table, x=x, y=y)


def door(session):
    return dp.Gate(session.parts.ledger, PEOPLE, "ana").open(COUNT.loss, purpose="x")


def gate(session):
    return dp.Gate(session.parts.ledger, PEOPLE, "ana")


def unread():
    raise AssertionError("data were read")


FREE = "free"  # what it is decides nothing: a folder, a function that is told released numbers

# Every public way to private data, with every argument: who adds one says what it may be.
ENTRIES = {
    dp.Session.__init__: {
        "tables": (tables, lambda s, v: opened(tables={"t": v})),
        "budget": (guarantees, lambda s, v: opened(budget=v)),
        "ledger": (ledgers, lambda s, v: opened(ledger=v)),
        "who": (texts, lambda s, v: opened(who=v)),
        "untested_engine": FREE,
        "allow_real_arithmetic": FREE,
    },
    dp.Session.sql: {
        "question": (texts, lambda s, v: s.sql(v, epsilon=1)),
        "epsilon": (numbers, lambda s, v: s.sql(SQL, epsilon=v)),
        "rho": (numbers, lambda s, v: s.sql(SQL, rho=v)),
        "guarantee": (guarantees, lambda s, v: s.sql(SQL, guarantee=v)),
        "error": (numbers, lambda s, v: s.sql(SQL, error={"n": v})),
        "keys": (names, lambda s, v: s.sql(SQL, epsilon=1, keys=v)),
        "bounds": (numbers, lambda s, v: s.sql(SQL, epsilon=1, bounds={"cost": (v, 10)})),
        "max_rows": (wholes, lambda s, v: s.sql(SQL, epsilon=1, max_rows=v)),
        "max_groups": (wholes, lambda s, v: s.sql(SQL, epsilon=1, max_groups=v)),
        "profile": FREE,
    },
    dp.Session.explain: {
        "question": (texts, lambda s, v: s.explain(v, epsilon=1)),
        "epsilon": (numbers, lambda s, v: s.explain(SQL, epsilon=v)),
        "rho": (numbers, lambda s, v: s.explain(SQL, rho=v)),
        "guarantee": (guarantees, lambda s, v: s.explain(SQL, guarantee=v)),
        "error": (numbers, lambda s, v: s.explain(SQL, error={"n": v})),
        "keys": (names, lambda s, v: s.explain(SQL, epsilon=1, keys=v)),
        "bounds": (numbers, lambda s, v: s.explain(SQL, epsilon=1, bounds={"cost": (v, 10)})),
        "max_rows": (wholes, lambda s, v: s.explain(SQL, epsilon=1, max_rows=v)),
        "max_groups": (wholes, lambda s, v: s.explain(SQL, epsilon=1, max_groups=v)),
        "profile": FREE,
    },
    dp.Session.unpaid: {
        "question": (texts, lambda s, v: s.unpaid(v, epsilon=1)),
        "epsilon": (numbers, lambda s, v: s.unpaid(SQL, epsilon=v)),
        "rho": (numbers, lambda s, v: s.unpaid(SQL, rho=v)),
        "guarantee": (guarantees, lambda s, v: s.unpaid(SQL, guarantee=v)),
        "keys": (names, lambda s, v: s.unpaid(SQL, epsilon=1, keys=v)),
    },
    dp.Session.table: {"name": (texts, lambda s, v: s.table(v))},
    Question.release: {
        "epsilon": (numbers, lambda s, v: asked(s).release(epsilon=v)),
        "rho": (numbers, lambda s, v: asked(s).release(rho=v)),
        "guarantee": (guarantees, lambda s, v: asked(s).release(guarantee=v)),
        "error": (numbers, lambda s, v: asked(s).release(error={"n": v})),
    },
    Question.agg: {
        "aggregates": (
            lambda: [below(type(dp.count()), dp.count()), Looks(type(dp.count())), "COUNT(*)"],
            lambda s, v: s.table("visits").agg(n=v),
        ),
        "named": FREE,
    },
    Question.bounds: {"pairs": (numbers, lambda s, v: asked(s).bounds(cost=(v, 10)))},
    Question.limit: {"most": (wholes, lambda s, v: asked(s).limit(v))},
    dp.fit: {
        "session": (sessions, lambda s, v: dp.fit(v, None, "visits", x=["cost"])),
        "estimator": (estimators, lambda s, v: fitted(s, 0 if v is None else v)),
        "table": (texts, lambda s, v: fitted(s, table=v)),
        "x": (names, lambda s, v: fitted(s, x=v)),
        "y": (lambda: [*texts()[:-1]], lambda s, v: fitted(s, y=v)),
    },
    dp.synthesize: {
        "session": (sessions, lambda s, v: dp.synthesize(v, "visits", epsilon=1)),
        "table": (texts, lambda s, v: dp.synthesize(s, v, epsilon=1)),
        "epsilon": (numbers, lambda s, v: dp.synthesize(s, "visits", epsilon=v)),
        "rho": (numbers, lambda s, v: dp.synthesize(s, "visits", rho=v)),
        "guarantee": (guarantees, lambda s, v: dp.synthesize(s, "visits", guarantee=v)),
        "method": (
            lambda: [*texts(), *methods()],
            lambda s, v: synthesized(s, method=v),
        ),
        "columns": (names, lambda s, v: synthesized(s, columns=v)),
        "bins": (lambda: wholes()[:-2], lambda s, v: synthesized(s, bins={"cost": v})),
        "keys": (names, lambda s, v: synthesized(s, keys={"cost": Looks(list)})),
        "missing": (names, lambda s, v: synthesized(s, missing=v)),
        "discover": (names, lambda s, v: synthesized(s, discover=v)),
        "workload": (
            lambda: [Whole(1), Looks(int), [[Text("cost")]], 1.5],
            lambda s, v: synthesized(s, workload=v),
        ),
        "max_megabytes": (numbers, lambda s, v: synthesized(s, max_megabytes=v)),
        "max_rows": (wholes, lambda s, v: synthesized(s, max_rows=v)),
        "journal": FREE,
        "progress": FREE,
    },
    answer_online: {
        "session": (sessions, lambda s, v: answer_online(v, "visits", epsilon=1, queries=5)),
        "table": (texts, lambda s, v: answer_online(s, v, epsilon=1, queries=5)),
        "queries": (wholes, lambda s, v: online(s, queries=v)),
        "epsilon": (numbers, lambda s, v: answer_online(s, "visits", epsilon=v, queries=5)),
        "rho": (numbers, lambda s, v: answer_online(s, "visits", rho=v, queries=5)),
        "guarantee": (guarantees, lambda s, v: answer_online(s, "visits", guarantee=v, queries=5)),
        "columns": (names, lambda s, v: online(s, columns=v)),
        "bins": (lambda: wholes()[:-2], lambda s, v: online(s, bins={"cost": v})),
        "keys": (names, lambda s, v: online(s, keys={"cost": Looks(list)})),
        "missing": (names, lambda s, v: online(s, missing=v)),
        "max_rows": (wholes, lambda s, v: online(s, max_rows=v)),
        "updates": (wholes, lambda s, v: online(s, updates=v)),
    },
    dp.Gate.open: {
        "loss": (losses, lambda s, v: gate(s).open(v, purpose="x")),
        "purpose": (texts, lambda s, v: gate(s).open(COUNT.loss, purpose=v)),
        "question": (
            lambda: [{"q": Looks(int)}, Looks(dict)],
            lambda s, v: gate(s).open(COUNT.loss, purpose="x", question=v),
        ),
        "resumable": FREE,
    },
    dp.Gate.release: {
        "mechanism": (mechanisms, lambda s, v: gate(s).release(v, unread, purpose="x")),
        "read": (lambda: [None, 5], lambda s, v: gate(s).release(COUNT, v, purpose="x")),
        "purpose": (texts, lambda s, v: gate(s).release(COUNT, unread, purpose=v)),
        "question": (
            lambda: [{"q": Looks(int)}],
            lambda s, v: gate(s).release(COUNT, unread, purpose="x", question=v),
        ),
    },
    dp.Gate.resume: {"number": (wholes, lambda s, v: gate(s).resume(v))},
    dp.Gate.__init__: {
        "ledger": (ledgers, lambda s, v: dp.Gate(v, PEOPLE, "ana")),
        "population": (
            texts,
            lambda s, v: dp.Gate(s.parts.ledger, v, "ana").open(COUNT.loss, purpose="x"),
        ),
        "who": (
            texts,
            lambda s, v: dp.Gate(s.parts.ledger, PEOPLE, v).open(COUNT.loss, purpose="x"),
        ),
    },
    dp.Ledger.open: {
        "population": (
            texts,
            lambda s, v: s.parts.ledger.open(v, dp.Budget(dp.PureDP(1)), who="x"),
        ),
        "budget": (guarantees, lambda s, v: s.parts.ledger.open("others", v, who="x")),
        "who": (texts, lambda s, v: s.parts.ledger.open("others", dp.Budget(dp.PureDP(1)), who=v)),
    },
    dp.Ledger.top_up: {
        "population": (texts, lambda s, v: more(s, population=v)),
        "budget": (guarantees, lambda s, v: more(s, budget=v)),
        "who": (texts, lambda s, v: more(s, who=v)),
        "reason": (texts, lambda s, v: more(s, reason=v)),
    },
    dp.Budget.__init__: {
        "guarantee": (guarantees, lambda s, v: dp.Budget(v)),
        "relation": FREE,
        "keys_delta": (numbers, lambda s, v: dp.Budget(dp.ApproxDP(1, 0.5), keys_delta=v)),
    },
    dp.Budget.charge: {"loss": (losses, lambda s, v: dp.Budget(dp.PureDP(1)).charge(v))},
    dp.PureDP.__init__: {"epsilon": (numbers, lambda s, v: dp.PureDP(v))},
    dp.ApproxDP.__init__: {
        "epsilon": (numbers, lambda s, v: dp.ApproxDP(v, 0.1)),
        "delta": (numbers, lambda s, v: dp.ApproxDP(1, v)),
    },
    dp.PrivateTable.__init__: {
        "source": FREE,
        "unit": (texts, lambda s, v: declared(unit=v)),
        "population": (texts, lambda s, v: declared(population=v)),
        "columns": FREE,
        "bounds": (numbers, lambda s, v: declared(bounds={"a": (v, 10)})),
        "keys": (names, lambda s, v: declared(keys={"a": Looks(list)})),
        "max_rows": (wholes, lambda s, v: declared(max_rows=v)),
        "max_groups": (wholes, lambda s, v: declared(max_groups=v)),
        "cap_rows": (wholes, lambda s, v: declared(cap_rows=v)),
        "most_rows": (wholes, lambda s, v: declared(most_rows=v)),
        "grid": (numbers, lambda s, v: declared(grid={"a": v})),
        "size": (wholes, lambda s, v: declared(size=v)),
        "version": (texts, lambda s, v: declared(version=v)),
        "relation": FREE,
        "row_by_row": FREE,
        "looked": FREE,
    },
    dp.SubsampleAggregate.__init__: {
        "epsilon": (numbers, lambda s, v: aggregate(epsilon=v)),
        "blocks": (wholes, lambda s, v: aggregate(blocks=v)),
        "aggregate": FREE,
        "bounds": (numbers, lambda s, v: aggregate(bounds=(v, 10))),
        "default": (numbers, lambda s, v: aggregate(default=v)),
        "function": (lambda: [None, 5, "max"], lambda s, v: aggregate(function=v)),
        "reach": (wholes, lambda s, v: aggregate(reach=v)),
        "timeout": (numbers, lambda s, v: aggregate(timeout=v)),
        "relation": FREE,
    },
    Door.draw: {
        "mechanism": (mechanisms, lambda s, v: door(s).draw(v, unread)),
        "read": (lambda: [None, 5], lambda s, v: door(s).draw(COUNT, v)),
    },
    Door.ask: {
        "stream": (
            lambda: [stream(), Looks(type(stream())), None],
            lambda s, v: door(s).ask(v, unread),
        ),
        "read": FREE,
    },
}


def aggregate(**changed):
    given = {"epsilon": 1, "blocks": 3, "aggregate": "mean", "bounds": (0, 10), "default": 1}
    given["function"] = max
    return dp.SubsampleAggregate(**{**given, **changed})


def declared(**changed):
    given = {"unit": "who", "population": PEOPLE}
    return dp.PrivateTable("a.parquet", **{**given, **changed})


def opened(**changed):
    given = {"tables": {"t": private()}, "budget": dp.PureDP(1), "ledger": dp.Ledger(key=KEY)}
    return dp.Session(**{**given, **changed})


def synthesized(session, **given):
    return dp.synthesize(session, "visits", epsilon=1, **given)


def online(session, **changed):
    return answer_online(session, "visits", **{"epsilon": 1, "queries": 5, **changed})


def more(session, **changed):
    given = {"population": PEOPLE, "budget": dp.Budget(dp.PureDP(1)), "who": "x", "reason": "y"}
    return session.parts.ledger.top_up(**{**given, **changed})


def asked(session):
    return session.table("visits").agg(n=dp.count())


def stream():
    return dp.SparseVector(epsilon=1000, threshold=1, sensitivity=1).open()


def test_every_argument_of_every_entry_is_listed():
    for entry, arguments in ENTRIES.items():
        assert set(inspect.signature(entry).parameters) - {"self"} == set(arguments), entry


CASES = [
    pytest.param(*case, id=f"{entry.__qualname__}-{name}")
    for entry, arguments in ENTRIES.items()
    for name, case in arguments.items()
    if case is not FREE
]


@pytest.mark.parametrize(("hostile", "call"), CASES)
def test_subclasses_and_look_alikes_are_refused_and_cost_nothing(walked, hostile, call):
    session = walked
    for value in hostile():
        before = session.parts.ledger.balance(PEOPLE)
        with pytest.raises(dp.DeniableError):
            call(session, value)
        after = session.parts.ledger.balance(PEOPLE)
        spent = 1 if call in _OPENS_A_DOOR else 0
        assert after.releases - before.releases == spent


_OPENS_A_DOOR = {
    each[1]
    for entry in (Door.draw, Door.ask)
    for each in ENTRIES[entry].values()
    if each is not FREE
}


@pytest.mark.parametrize("ask", [dp.Session.sql, dp.Session.explain])
def test_mappings_are_read_once(session, ask):
    keys = Once({"ill": [True]}, {"ill": [False, True]})
    bounds = Once({"cost": (0, 1)}, {"cost": (0, 10**9)})
    error = Once({"n": 50}, {"n": 1e-9})
    text = "SELECT ill, COUNT(*) AS n, SUM(cost) AS c FROM visits GROUP BY ill"
    ask(session, text, epsilon=0.1, keys=keys, bounds=bounds)
    ask(session, SQL, error=error)
    assert (keys.reads, bounds.reads, error.reads) == (1, 1, 1)


def test_what_tables_declare_is_copied(ledger):
    table = private()
    with dp.Session({"visits": table}, budget=dp.PureDP(1e6), ledger=ledger) as session:
        table.bounds["cost"] = (Fraction(0), Fraction(10**12))
        object.__setattr__(table, "max_rows", 1000)
        known = session.parts.catalogue.private["visits"]
        assert known.bounds["cost"] == (0, 10)
        assert known.max_rows == 1


def test_budgets_are_copied(ledger):
    budget = dp.Budget(dp.PureDP(1))
    with dp.Session({"visits": private()}, budget=budget, ledger=ledger) as session:
        object.__setattr__(budget.guarantee, "epsilon", Fraction(1000))
        assert session.parts.budget.guarantee == dp.PureDP(1)


def test_what_draws_is_what_was_charged(ledger):
    """A mechanism whose kept loss, or whose scale, was exchanged after it was made."""
    ledger.open(PEOPLE, dp.Budget(dp.PureDP(10**6)), who="owner")
    loud = dp.Geometric(epsilon=100, sensitivity=1)
    loud.__dict__["loss"] = dp.Geometric(epsilon=1e-6, sensitivity=1).loss
    dp.Gate(ledger, PEOPLE, "ana").release(loud, lambda: 5, purpose="x")
    assert ledger.balance(PEOPLE).totals[0].epsilon == 100 * 10**18
    exchanged = dp.Geometric(epsilon=1e-6, sensitivity=1)
    _ = exchanged.loss
    object.__setattr__(exchanged, "scale", Fraction(1, 100))
    dp.Gate(ledger, PEOPLE, "ana").release(exchanged, lambda: 5, purpose="x")
    assert ledger.balance(PEOPLE).totals[0].epsilon == 200 * 10**18


def test_a_door_holds_the_loss_that_was_charged(ledger):
    ledger.open(PEOPLE, dp.Budget(dp.PureDP(1)), who="owner")
    loss = dp.losses.PureLoss(bound=Fraction(1, 10))
    opened = dp.Gate(ledger, PEOPLE, "ana").open(loss, purpose="x")
    object.__setattr__(loss, "bound", Fraction(1000))
    loss.__dict__.pop("price", None)
    assert opened.cost.epsilon == Fraction(1, 10)
    with pytest.raises(dp.BudgetError):
        opened.draw(dp.Geometric(epsilon=1, sensitivity=1), unread)


def test_prices_are_not_remembered_for_a_look_alike():
    """A subclass that is equal to a dear loss and cheap itself does not stand in its place."""
    dear = dp.losses.PureLoss(bound=Fraction(777))

    class Cheap(dp.losses.PureLoss):
        price = dp.losses.PureLoss(bound=Fraction(1, 10**9)).price
        __hash__ = lambda self: hash(dear)  # noqa: E731
        __eq__ = lambda self, other: True  # noqa: E731

    with pytest.raises(dp.errors.ParameterTypeError):
        charge(Cheap(bound=Fraction(777)))
    assert charge(dear).epsilon == 777 * 10**18


def test_a_door_asks_only_its_own_streams(ledger):
    ledger.open(PEOPLE, dp.Budget(dp.PureDP(10)), who="owner")
    here = dp.Gate(ledger, PEOPLE, "ana")
    vector = dp.SparseVector(epsilon=1, threshold=1, sensitivity=1)
    mine, other = (here.open(vector.loss, purpose="x") for _ in range(2))
    drawn = mine.draw(vector, list)
    assert mine.ask(drawn, lambda: 10**9)
    for stranger in (drawn, stream()):
        with pytest.raises(dp.errors.DoorError, match="its own draws"):
            other.ask(stranger, unread)


@pytest.mark.parametrize(
    "override", ["_train", "_learn", "get_params", "_kept", "_charged", "cost"]
)
def test_what_hangs_on_an_estimator_is_left_behind(session, override):
    seen = []
    model = dp.learning.PerturbedLogisticRegression(
        guarantee=dp.ApproxDP(0.1, 1e-7), bounds=None, classes=[False, True], penalty=1.0
    )
    setattr(model, override, lambda *given, **named: seen.append(given))
    learned = fitted(session, model)
    assert not seen
    assert type(learned) is dp.learning.PerturbedLogisticRegression
    assert learned.label_ is not None
    assert session.parts.ledger.balance(PEOPLE).releases == 1


def test_a_budget_that_changes_is_read_once(session):
    """ε of 1e-6 for the price, and 1000 for the noise, from the third read on."""
    budget = dp.ApproxDP(1, 1e-7)
    object.__setattr__(budget, "epsilon", Float(1e-6))
    model = dp.learning.LogisticRegression(guarantee=budget, bounds=None, classes=[False, True])
    with pytest.raises(dp.errors.ParameterTypeError, match="guarantee"):
        fitted(session, model)
    assert session.parts.ledger.balance(PEOPLE).releases == 0


@pytest.mark.parametrize("word", ["epsilon", "rho", "guarantee"])
def test_prices_of_estimators_are_of_listed_types(session, word):
    for wrong in guarantees() if word == "guarantee" else numbers():
        model = dp.learning.LogisticRegression(bounds=None, classes=[False, True], **{word: wrong})
        with pytest.raises(dp.errors.ParameterTypeError, match=word):
            fitted(session, model)
        with pytest.raises(dp.errors.ParameterTypeError, match=word):
            model.cost()
    assert session.parts.ledger.balance(PEOPLE).releases == 0


def test_parameters_of_estimators_are_copied(session):
    bounds = ([0.0], [1.0])
    model = dp.learning.LogisticRegression(
        guarantee=dp.ApproxDP(0.1, 1e-7), bounds=bounds, classes=[False, True]
    )
    learned = fitted(session, model)
    bounds[1][0] = 1e9
    object.__setattr__(model.guarantee, "epsilon", Fraction(1000))
    assert learned.bounds == ([0.0], [1.0])
    assert learned.guarantee == dp.ApproxDP(0.1, 1e-7)


def test_the_list_of_mechanisms_is_of_classes_that_exist_and_are_copied():
    for name in MECHANISMS:
        module, _, kind = name.partition(":")
        found = getattr(sys.modules.get(module) or __import__(module, fromlist=[kind]), kind)
        assert is_dataclass(found)
        assert hasattr(found, "release")
    noise = JointNoise(epsilon=1, bound=3, weights=[1, 2])
    assert is_mechanism(noise)
    copied = frozen(noise, "noise")
    assert copied is not noise
    assert all(getattr(copied, f.name) == getattr(noise, f.name) for f in fields(noise))
    assert isinstance(copied.loss, Loss)


@pytest.mark.parametrize(
    "given", [1, 1.5, Fraction(1, 3), Decimal("0.1"), *map(np.dtype, "bhilqBHILQefdg")]
)
def test_numbers_of_listed_types_are_read(given):
    number = given.type(1) if isinstance(given, np.dtype) else given
    assert dp.PureDP(number).epsilon > 0
