"""What a door draws with is made again by its constructor, whatever became of its fields since."""

import importlib
import math
from collections import Counter
from dataclasses import fields, is_dataclass
from fractions import Fraction
from functools import partial

import pytest

import deniable as dp
from deniable.closed import MECHANISMS, frozen
from deniable.learning.exponential import LineExponential
from deniable.learning.fit import _Whole
from deniable.learning.rows import Ranges
from deniable.mechanisms.grid_quantile import GridQuantile
from deniable.mechanisms.joint import JointNoise, Norm
from deniable.mechanisms.keys import KeySelection
from deniable.mechanisms.sampled_sum import SampledSum
from deniable.privacy.losses.base import Loss
from deniable.release import _read_draw
from deniable.shield import shielded
from test_closed import fractions_of_objects

LINE = ((0, 1, 2), (1, 0, 1), (2, 1, 0))
CHOICE = {"epsilon": 1, "sensitivity": 1}
STREAM = {"epsilon": 1, "threshold": 5, "sensitivity": 1, "positives": 2}
PROPOSAL = {"epsilon": 1, "delta": 0.1, "bound": 1}
LEARNED = (
    ("guarantee", dp.ApproxDP(1, 1e-6)),
    ("bounds", ((0.0,), (1.0,))),
    ("classes", (False, True)),
    ("penalty", 1.0),
)

# Every mechanism of the closed list, by arguments of its constructor.
GIVEN = {
    LineExponential: [{"epsilon": 1, "bounds": (0, 10), "cells": 16}],
    dp.learning.ProjectedDescent: [
        {"objective": "linear", "epsilon": 1, "width": 2, "radius": 1, "size": 9},
        {
            "objective": "hinge",
            "guarantee": dp.ApproxDP(1, 1e-6),
            "width": 2,
            "radius": Fraction(1, 3),
            "size": 9,
            "steps": 2,
            "rate": 0.5,
        },
    ],
    dp.DiscreteGaussian: [{"sigma": 7, "sensitivity": 1}, {"rho": 0.1, "sensitivity": 2}],
    dp.Gaussian: [{"sigma": 7, "sensitivity": 1}, {"epsilon": 1, "delta": 1e-6, "sensitivity": 1}],
    GridQuantile: [
        {"epsilon": 1, "share": 0.5, "bound": 3, "cells": 5},
        {"epsilon": 1, "share": 1, "bound": 3, "cells": 3, "prior": (4, 2, 1)},
        {"rho": 1, "share": 0.25, "offset": -2, "bound": 3, "cells": 5, "ends": True},
    ],
    dp.Histogram: [{"epsilon": 1, "cells": ("a", "b")}],
    dp.StabilityHistogram: [{"epsilon": 1, "delta": 1e-6, "max_cells": 2}],
    JointNoise: [
        {"epsilon": 1, "bound": 3, "weights": (1, 2)},
        {"rho": 1, "bound": 3, "weights": (1, 2), "relation": "replace"},
    ],
    KeySelection: [{"rho": 1, "delta": 1e-6, "max_groups": 2}],
    dp.Geometric: [{"epsilon": 0.3, "sensitivity": 2}],
    dp.Laplace: [{"epsilon": 0.3, "sensitivity": 0.7}],
    dp.MetricExponential: [{"epsilon": 0.1, "points": ("a", "b", "c"), "distances": LINE}],
    dp.PlanarLaplace: [{"epsilon": 0.3, "sensitivity": 0.7}],
    dp.Quantile: [{"epsilon": 1, "share": 0.5, "bounds": (0, 10), "reach": 2}],
    dp.RandomizedResponse: [{"epsilon": 0.1, "categories": ("a", "b", "c")}],
    dp.Exponential: [CHOICE, {**CHOICE, "monotone": True}],
    dp.PermuteAndFlip: [CHOICE],
    dp.ReportNoisyMax: [CHOICE, {**CHOICE, "noise": "gumbel"}],
    dp.SparseVector: [STREAM],
    dp.ProposeTestRelease: [
        PROPOSAL,
        {**PROPOSAL, "function": len},
        {**PROPOSAL, "function": "median", "bounds": (0, 10)},
    ],
    dp.SubsampleAggregate: [
        {
            "epsilon": 1,
            "blocks": 3,
            "aggregate": "median",
            "bounds": (0, 10),
            "default": 5,
            "function": max,
            "reach": 2,
        }
    ],
    SampledSum: [{"rate": 0.5, "bound": 10, "sigma": 30}],
    dp.TruncatedGeometric: [{"epsilon": 0.3, "sensitivity": 2, "lower": -4, "upper": 90}],
}

_AMOUNTS = {Norm.L1: "epsilon", Norm.L2: "rho"}


# Those that draw with another one, and one whose parameters are an estimator's.
WRAPPED = [
    lambda: dp.post_process(dp.Geometric(epsilon=0.3, sensitivity=2), abs),
    lambda: dp.post_process(dp.post_process(dp.Laplace(epsilon=1, sensitivity=1), abs), abs),
    lambda: dp.TopK(dp.PermuteAndFlip(**CHOICE), 3),
    lambda: _Whole("PerturbedLogisticRegression", LEARNED, Ranges((0.0,), (1.0,), 1.0)),
]
EXAMPLES = [partial(kind, **given) for kind, many in GIVEN.items() for given in many] + WRAPPED


def made_anew(value):
    """Of the same fields, by the constructor: what it refuses, a door refuses."""
    kind = type(value)
    held = {each.name: getattr(value, each.name) for each in fields(value)}
    held = {name: made_anew(each) if is_dataclass(each) else each for name, each in held.items()}
    if kind is dp.RandomizedResponse:
        return kind.from_channel(held["rows"], held["categories"], held["predicate"])
    if "norm" in held and "amount" in held:
        if held["norm"] not in _AMOUNTS:
            raise dp.ParameterError("norm", held["norm"], "unknown")
        held[_AMOUNTS[held.pop("norm")]] = held.pop("amount")
    return kind(**held)


MINUS = Fraction(-(10**6))
HOSTILE = [
    *(MINUS, Fraction(0), Fraction(10**9), 0, -5, 10**6, -0.5, math.nan, math.inf, None, "x", ()),
    *((MINUS, MINUS), (Fraction(10), Fraction(0)), ((MINUS, 1, 1),) * 3, ("a", "a", "a")),
    *(((Fraction(2),) * 3,) * 3, ((Fraction(1), Fraction(0)),) * 2, True, dp.PureDP(1e-9)),
    *(Norm.L1, Norm.L2, dp.GDP(1), dp.Geometric(epsilon=1e-9, sensitivity=1)),
]


def places(value):
    """Every field, of what stands inside too, by who holds it and its name."""
    for each in fields(value):
        yield value, each.name
        held = getattr(value, each.name)
        if is_dataclass(held):
            yield from places(held)


def unread():
    raise AssertionError("data were read")


@shielded
def drawn_with(mechanism):
    """What a door draws with, of which the price is known; that of many steps takes long."""
    made = _read_draw(mechanism, unread)
    assert type(made) is dp.learning.ProjectedDescent or isinstance(made.loss, Loss)
    return made


def test_every_listed_mechanism_is_here():
    named = {
        f"{type(each).__module__}:{type(each).__qualname__}"
        for each in (make() for make in EXAMPLES)
    }
    assert named == MECHANISMS
    for name in MECHANISMS:
        assert hasattr(importlib.import_module(name.partition(":")[0]), name.partition(":")[2])


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_a_copy_is_the_same_mechanism(number):
    made = EXAMPLES[number]()
    copied = _read_draw(made, unread)
    assert copied is not made
    assert type(copied) is type(made)
    assert all(getattr(copied, each.name) == getattr(made, each.name) for each in fields(made))
    assert copied.loss == made.loss


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_what_the_constructor_refuses_no_door_draws_with(number):
    """Every field of every mechanism, changed after it was made."""
    refusals = 0
    for at in range(len(list(places(EXAMPLES[number]())))):
        for hostile in HOSTILE:
            made = EXAMPLES[number]()
            holder, name = list(places(made))[at]
            object.__setattr__(holder, name, hostile)
            try:
                wanted = made_anew(made)
                loss = None if type(wanted) is dp.learning.ProjectedDescent else wanted.loss
            except Exception:
                with pytest.raises(dp.DeniableError):
                    drawn_with(made)
                refusals += 1
                continue
            try:
                drawn = drawn_with(made)
            except dp.DeniableError:
                continue  # stricter than the constructor: what stands inside is listed too
            assert loss is None or drawn.loss == loss
            assert drawn == wanted or type(drawn) is _Whole  # which says nothing of equality
    assert refusals > len(HOSTILE)


def test_distances_below_zero_are_refused_before_they_draw():
    """Priced by the largest distance, and drawn by all of them: the truth, for next to nothing."""
    ledger = dp.Ledger(key=bytes(32))
    ledger.open("p", dp.Budget(dp.PureDP(100), relation="replace"), who="owner")
    gate = dp.Gate(ledger, "p", "ana")
    given = {"epsilon": Fraction(1, 1000), "points": ("a", "b"), "distances": ((0, 1), (1, 0))}
    told = Counter(
        gate.release(dp.MetricExponential(**given), lambda: "a", purpose=str(each)).value
        for each in range(200)
    )
    assert 0 < told["a"] < 200
    loud = dp.MetricExponential(**given)
    object.__setattr__(loud, "distances", ((MINUS, Fraction(1)), (Fraction(1), MINUS)))
    with pytest.raises(dp.ParameterError):
        gate.release(loud, lambda: "a", purpose="x")
    assert ledger.balance("p").releases == 200


@pytest.mark.parametrize(
    "loss",
    [
        dp.losses.PureLoss(bound=Fraction(1)),
        dp.repeat(dp.Laplace(epsilon=1, sensitivity=1).loss, 3),
        dp.Gaussian(sigma=3, sensitivity=1).loss,
        dp.RandomizedResponse.two_coins().loss,
    ],
    ids=lambda each: type(each).__name__,
)
def test_losses_that_were_changed_are_refused(loss):
    budget = dp.Budget(dp.ApproxDP(10, 1e-6), relation=loss.relation)
    for each in fields(loss):
        if each.name == "relation":
            continue
        for hostile in (MINUS, None, "x", (), math.nan):
            copied = frozen(loss, "loss")
            object.__setattr__(copied, each.name, hostile)
            with pytest.raises(dp.DeniableError):
                budget.charge(copied)


@pytest.mark.parametrize("count", [-1000, 0, 0.5, Fraction(1), None])
def test_no_part_of_a_loss_is_refunded(count):
    loss = dp.repeat(dp.losses.PureLoss(bound=Fraction(1)), 3)
    object.__setattr__(loss.parts[0], "count", count)
    ledger = dp.Ledger(key=bytes(32))
    ledger.open("p", dp.Budget(dp.PureDP(1)), who="owner")
    with pytest.raises(dp.DeniableError):
        dp.Gate(ledger, "p", "ana").open(loss, purpose="x")
    assert ledger.balance("p").remaining["epsilon"] == 1


ARGUMENTS = [
    pytest.param(kind, given, name, id=f"{kind.__name__}-{name}")
    for kind, many in {
        **GIVEN,
        dp.PureDP: [{"epsilon": 1}],
        dp.ApproxDP: [{"epsilon": 1, "delta": 0.1}],
        dp.ZCDP: [{"rho": 1}],
        dp.GDP: [{"mu": 1}],
        dp.losses.PureLoss: [{"bound": 1}],
    }.items()
    for given in many
    for name, value in given.items()
    if type(value) in (int, float, Fraction, tuple) and name not in ("points", "categories")
]


def spoilt(value, hostile):
    """An argument, with a number of it exchanged."""
    if type(value) is not tuple:
        return hostile
    return (spoilt(value[0], hostile), *value[1:])


@pytest.mark.parametrize(("kind", "given", "name"), ARGUMENTS)
def test_fractions_of_a_callers_objects_are_refused(kind, given, name):
    """A Fraction of the exact type, whose numerator says something else each time it is read."""
    for hostile in fractions_of_objects():
        if kind is dp.Histogram and name == "cells":
            made = kind(**{**given, name: spoilt(given[name], hostile)})
            with pytest.raises(dp.DeniableError):  # labels are any values, until a door reads them
                _read_draw(made, unread)
            continue
        with pytest.raises(dp.DeniableError):
            kind(**{**given, name: spoilt(given[name], hostile)})


@pytest.mark.parametrize("spoils", range(len(fractions_of_objects())))
def test_fractions_in_fields_are_refused(spoils):
    made = dp.Geometric(epsilon=0.3, sensitivity=2)
    object.__setattr__(made, "scale", fractions_of_objects()[spoils])
    with pytest.raises(dp.DeniableError):
        _read_draw(made, unread)
