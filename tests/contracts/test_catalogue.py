"""The battery that every mechanism passes. A new one adds one line to CATALOGUE."""

import copy
import dataclasses
import math
import pickle
import traceback
import warnings
from dataclasses import dataclass
from decimal import Inexact, localcontext
from typing import Any

import numpy as np
import pytest

import deniable as dp
from deniable.auditing.gaps import gap, plain_subject, view
from deniable.auditing.sampled.targets import default_pairs
from deniable.randomness import noise as noise_module
from deniable.randomness.source import SecureSource


@dataclass(frozen=True)
class Entry:
    """A mechanism, a private value that it releases, and values that it must refuse."""

    mechanism: Any
    value: Any
    refused: tuple[Any, ...]

    def use(self, mechanism: Any) -> Any:
        """What is told; of a stream, its answers."""
        released = mechanism.release(self.value)
        return released.answers if isinstance(mechanism, dp.SparseVector) else released


LINE = [[0, 1, 2], [1, 0, 1], [2, 1, 0]]
MANY = list(range(200))


def scored(scores: Any) -> dp.Scores:
    return dp.Scores("abc", scores)


BAD_SCORES = tuple(scored(s) for s in ([math.nan, 1.0, 2.0], [], ["x", "y", "z"], None))
BAD_INTEGERS = (math.nan, 2.5, "5", None, [], [None])
BAD_REALS = (math.nan, math.inf, "5", None, [], [None])
BAD_COUNTS = (None, [1], {"a": -1}, {"a": 1.5})

CATALOGUE = {
    "Laplace": Entry(dp.Laplace(epsilon=1, sensitivity=1), 5.0, BAD_REALS),
    "Geometric": Entry(dp.Geometric(epsilon=0.01, sensitivity=1), 5, BAD_INTEGERS),
    "Gaussian": Entry(dp.Gaussian(rho=0.1, sensitivity=1), 5.0, BAD_REALS),
    "DiscreteGaussian": Entry(dp.DiscreteGaussian(sigma=100, sensitivity=1), 5, BAD_INTEGERS),
    "TruncatedGeometric": Entry(
        dp.TruncatedGeometric(epsilon=0.01, sensitivity=1, lower=0, upper=10**6), 5000, BAD_INTEGERS
    ),
    "PlanarLaplace": Entry(dp.PlanarLaplace(epsilon=1, sensitivity=1), [1.0, 2.0], BAD_REALS),
    "MetricExponential": Entry(
        dp.MetricExponential(epsilon=0.1, points="abc", distances=LINE), "a", ("z",)
    ),
    "RandomizedResponse": Entry(dp.RandomizedResponse(epsilon=0.1), [True] * 50, ("maybe", [])),
    "Exponential": Entry(dp.Exponential(epsilon=1, sensitivity=1), scored([1, 2, 3]), BAD_SCORES),
    "PermuteAndFlip": Entry(
        dp.PermuteAndFlip(epsilon=1, sensitivity=1), scored([1, 2, 3]), BAD_SCORES
    ),
    "ReportNoisyMax": Entry(
        dp.ReportNoisyMax(epsilon=1, sensitivity=1), scored([1, 2, 3]), BAD_SCORES
    ),
    "TopK": Entry(
        dp.TopK(dp.Exponential(epsilon=1, sensitivity=1), 2), scored([1, 2, 3]), BAD_SCORES
    ),
    "Quantile": Entry(dp.Quantile(epsilon=1, share=0.5, bounds=(0, 200)), MANY, BAD_REALS[:4]),
    "Histogram": Entry(dp.Histogram(epsilon=0.01, cells="ab"), {"a": 5}, BAD_COUNTS),
    "StabilityHistogram": Entry(
        dp.StabilityHistogram(epsilon=0.01, delta=0.001), {"a": 10**6}, BAD_COUNTS
    ),
    "SparseVector": Entry(
        dp.SparseVector(epsilon=1, threshold=0, sensitivity=1, numeric=True),
        [10**6, 5],
        (None, 5, [math.nan], ["x"]),
    ),
    "ProposeTestRelease": Entry(
        dp.ProposeTestRelease(epsilon=1, delta=0.001, bound=1),
        (5.0, 10**6),
        ((math.nan, 5), (5.0, -1), 5.0, None),
    ),
    "SubsampleAggregate": Entry(
        dp.SubsampleAggregate(
            epsilon=1, blocks=2, aggregate="mean", bounds=(0, 200), default=0, function=np.mean
        ),
        MANY,
        (None, 5),
    ),
    "ProjectedDescent": Entry(
        dp.learning.ProjectedDescent(
            "linear", guarantee=dp.PureDP(1), width=2, radius=1, size=100, steps=2
        ),
        ([[0.6, 0.8]] * 100, [1] * 100),
        (),  # private values are never refused; shapes are public (tests/learning)
    ),
}


@pytest.fixture(params=CATALOGUE, ids=str)
def entry(request) -> Entry:
    return CATALOGUE[request.param]


def test_every_exported_mechanism_is_here():
    exported = {
        name
        for space in (dp, dp.learning)
        for name in space.__all__
        if isinstance(getattr(space, name), type) and hasattr(getattr(space, name), "release")
    }
    assert exported - {"Gate"} == set(CATALOGUE)


def test_parameters_are_frozen(entry):
    for field in dataclasses.fields(entry.mechanism):
        with pytest.raises(AttributeError):
            setattr(entry.mechanism, field.name, 1)


def test_mechanisms_with_equal_parameters_are_equal(entry):
    assert copy.deepcopy(entry.mechanism) == entry.mechanism
    assert hash(copy.deepcopy(entry.mechanism)) == hash(entry.mechanism)


def test_the_docstring_states_the_guarantee(entry):
    text = type(entry.mechanism).__doc__
    assert "Formal guarantee" in text
    assert "unledgered" in text


def test_the_loss_is_data_and_survives_storage(entry):
    loss = entry.mechanism.loss
    assert isinstance(loss, dp.Loss)
    assert dp.losses.loss_from_json(dp.losses.loss_to_json(loss)) == loss
    assert loss.price.rho > 0


def test_the_representation_is_short_and_names_the_class(entry):
    assert repr(entry.mechanism).startswith(type(entry.mechanism).__name__)
    assert len(repr(entry.mechanism)) < 300
    if hasattr(entry.mechanism, "relation"):
        replaced = dataclasses.replace(entry.mechanism, relation="replace")
        assert "replace" in repr(replaced)


def test_uses_differ_and_so_do_those_of_copies(entry):
    made = [
        entry.mechanism,
        copy.deepcopy(entry.mechanism),
        pickle.loads(pickle.dumps(entry.mechanism)),
    ]
    outputs = [repr(entry.use(mechanism)) for _ in range(20) for mechanism in made]
    assert len(set(outputs)) > 1
    thirds = [tuple(outputs[i::3]) for i in range(3)]
    assert len(set(thirds)) == 3


def test_bad_values_are_refused_before_any_randomness(entry, monkeypatch):
    def touched(*args: object) -> None:
        raise AssertionError("randomness was drawn for a value that must be refused")

    monkeypatch.setattr(noise_module.Noise, "one", touched)
    monkeypatch.setattr(noise_module.Noise, "many", touched)
    monkeypatch.setattr(SecureSource, "draw", touched)
    for refused in entry.refused:
        with pytest.raises(dp.errors.PrivateValueError) as caught:
            entry.mechanism.release(refused)
        assert caught.value.__cause__ is None


class Marked:
    """What no mechanism takes."""

    def __repr__(self) -> str:
        return "a row"


def test_no_error_carries_a_value_in_its_frames(entry):
    for private in (Marked(), {"a": Marked()}, scored([1, 2, Marked()])):
        with pytest.raises(dp.DeniableError) as caught:
            entry.mechanism.release(private)
        told = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
        frames = [frame.locals for frame in told.stack if "/deniable/" in frame.filename]
        assert "a row" not in str(caught.value) + repr(frames)


EXTREMES = [0, 1, -1, 5e-324, -5e-324, 1e-310, 1e-160, 1.7976931348623157e308, -1e308, 2**53 + 1]
EXTREMES += [2**62, 2**63 - 1, -(2**63), 2**64, 10**30, -0.0]


def with_extreme(value: Any, extreme: float) -> Any:
    """The value with the extreme in one place."""
    if isinstance(value, dp.Scores):
        return scored([extreme, 0, 0])
    if isinstance(value, dict):
        return {name: abs(int(extreme)) % 2**63 for name in value}
    if isinstance(value, tuple):
        return (with_extreme(value[0], extreme), *value[1:])
    if isinstance(value, list):
        return [with_extreme(value[0], extreme), *value[1:]]
    return int(extreme) if isinstance(value, int) else extreme


def outcome(release: Any, value: Any) -> str:
    try:
        release(value)
    except Exception as error:
        return type(error).__name__
    return "released"


@pytest.mark.parametrize("extreme", EXTREMES, ids=repr)
def test_what_numpy_and_python_were_told_decides_no_failure(entry, extreme):
    value = with_extreme(entry.value, extreme)
    usual = outcome(entry.mechanism.release, value)
    with np.errstate(all="raise"), warnings.catch_warnings(), localcontext() as context:
        warnings.simplefilter("error")
        context.prec, context.traps[Inexact] = 3, True
        assert outcome(entry.mechanism.release, value) == usual


@pytest.fixture
def gate(entry):
    """A gate of a large budget, under the relation of the mechanism."""
    with dp.Ledger(key=bytes(32)) as ledger:
        budget = dp.Budget(dp.ApproxDP(1000, 0.5), relation=entry.mechanism.loss.relation)
        ledger.open("people", budget, who="owner")
        yield dp.Gate(ledger, "people", "ana")


def test_the_gate_releases_it_at_its_price(entry, gate):
    answer = gate.release(entry.mechanism, lambda: entry.value, purpose="x", question={"q": 1})
    assert answer.cost == entry.mechanism.loss.price
    assert answer.value is not None
    again = gate.release(entry.mechanism, unread, purpose="x", question={"q": 1})
    assert (again.value, again.repeated) == (answer.value, True)
    assert gate.ledger.balance("people").releases == 1


def test_a_bad_value_at_the_gate_is_charged_and_told_in_one_sentence(entry, gate):
    for turn, refused in enumerate(entry.refused, start=1):
        with pytest.raises(dp.ReleaseFailedError, match="failed after it was charged") as caught:
            gate.release(entry.mechanism, lambda refused=refused: refused, purpose="x")
        assert caught.value.__cause__ is caught.value.__context__ is None
        assert gate.ledger.balance("people").releases == turn


def test_what_can_only_fail_costs_nothing(entry, gate):
    """No mechanism, no function to read with, another relation than the budget's."""
    other = "add_remove" if entry.mechanism.loss.relation == "replace" else "replace"
    for mechanism, read in (
        (type(entry.mechanism), unread),
        (entry.mechanism.loss, unread),
        (entry.mechanism, entry.value),
    ):
        with pytest.raises(dp.errors.ParameterTypeError, match=r"mechanism|read"):
            gate.release(mechanism, read, purpose="x")
    if hasattr(entry.mechanism, "relation"):
        replaced = dataclasses.replace(entry.mechanism, relation=other)
        with pytest.raises(dp.errors.RelationError):
            gate.release(replaced, unread, purpose="x")
    assert gate.ledger.balance("people").releases == 0


def test_replay_and_audit_are_told_how_values_are_compared(entry):
    """A value lies at no distance from itself, and suggested neighbours within the charge."""
    if entry.mechanism is CATALOGUE["ProjectedDescent"].mechanism:
        return  # whose sums are compared as they are drawn
    subject = plain_subject(entry.mechanism)
    seen = view(entry.mechanism, (entry.value,))
    same = gap(subject, seen, seen)
    assert same is not None
    assert same.ok
    assert same.moved == 0
    for pair in default_pairs(entry.mechanism) or ():
        apart = gap(subject, *(view(entry.mechanism, (value,)) for value in pair))
        assert apart is not None
        assert apart.ok, pair


def unread():
    raise AssertionError("data were read")
