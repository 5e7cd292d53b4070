"""The battery that every mechanism passes. A new one adds one line to CATALOGUE."""

import copy
import dataclasses
import math
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import deniable as dp
from deniable.randomness import noise as noise_module
from deniable.randomness.source import SecureSource


@dataclass(frozen=True)
class Entry:
    """A mechanism, a way to use it on private data, and uses it must refuse."""

    mechanism: Any
    use: Callable[[Any], Any]
    refused: tuple[Callable[[Any], Any], ...]


LINE = [[0, 1, 2], [1, 0, 1], [2, 1, 0]]
MANY = list(range(200))


def releases(value: Any) -> Callable[[Any], Any]:
    return lambda mechanism: mechanism.release(value)


def chooses(scores: Any) -> Callable[[Any], Any]:
    return lambda mechanism: mechanism.choose("abc", scores)


BAD_SCORES = tuple(chooses(s) for s in ([math.nan, 1.0, 2.0], [], ["x", "y", "z"], None))
BAD_INTEGERS = tuple(releases(v) for v in (math.nan, 2.5, "5", None, [], [None]))
BAD_REALS = tuple(releases(v) for v in (math.nan, math.inf, "5", None, [], [None]))
BAD_COUNTS = tuple(releases(v) for v in (None, [1], {"a": -1}, {"a": 1.5}))

CATALOGUE = {
    "Laplace": Entry(dp.Laplace(epsilon=1, sensitivity=1), releases(5.0), BAD_REALS),
    "Geometric": Entry(dp.Geometric(epsilon=0.01, sensitivity=1), releases(5), BAD_INTEGERS),
    "Gaussian": Entry(dp.Gaussian(rho=0.1, sensitivity=1), releases(5.0), BAD_REALS),
    "DiscreteGaussian": Entry(
        dp.DiscreteGaussian(sigma=100, sensitivity=1), releases(5), BAD_INTEGERS
    ),
    "TruncatedGeometric": Entry(
        dp.TruncatedGeometric(epsilon=0.01, sensitivity=1, lower=0, upper=10**6),
        releases(5000),
        BAD_INTEGERS,
    ),
    "PlanarLaplace": Entry(
        dp.PlanarLaplace(epsilon=1, sensitivity=1), releases([1.0, 2.0]), BAD_REALS
    ),
    "MetricExponential": Entry(
        dp.MetricExponential(epsilon=0.1, points="abc", distances=LINE),
        releases("a"),
        (releases("z"),),
    ),
    "RandomizedResponse": Entry(
        dp.RandomizedResponse(epsilon=0.1), releases([True] * 50), (releases("maybe"), releases([]))
    ),
    "Exponential": Entry(dp.Exponential(epsilon=1, sensitivity=1), chooses([1, 2, 3]), BAD_SCORES),
    "PermuteAndFlip": Entry(
        dp.PermuteAndFlip(epsilon=1, sensitivity=1), chooses([1, 2, 3]), BAD_SCORES
    ),
    "ReportNoisyMax": Entry(
        dp.ReportNoisyMax(epsilon=1, sensitivity=1), chooses([1, 2, 3]), BAD_SCORES
    ),
    "TopK": Entry(
        dp.TopK(dp.Exponential(epsilon=1, sensitivity=1), 2), chooses([1, 2, 3]), BAD_SCORES
    ),
    "Quantile": Entry(
        dp.Quantile(epsilon=1, share=0.5, bounds=(0, 200)), releases(MANY), BAD_REALS[:4]
    ),
    "Histogram": Entry(dp.Histogram(epsilon=0.01, cells="ab"), releases({"a": 5}), BAD_COUNTS),
    "StabilityHistogram": Entry(
        dp.StabilityHistogram(epsilon=0.01, delta=0.1), releases({"a": 10**6}), BAD_COUNTS
    ),
    "SparseVector": Entry(
        dp.SparseVector(epsilon=1, threshold=0, sensitivity=1, numeric=True),
        lambda m: m.open().ask(10**6),
        (lambda m: m.open().ask(math.nan), lambda m: m.open().ask("x")),
    ),
    "ProposeTestRelease": Entry(
        dp.ProposeTestRelease(epsilon=1, delta=0.1, bound=1),
        lambda m: m.release(5.0, 10**6),
        (lambda m: m.release(math.nan, 5), lambda m: m.release(5.0, -1)),
    ),
    "SubsampleAggregate": Entry(
        dp.SubsampleAggregate(epsilon=1, blocks=2, aggregate="mean", bounds=(0, 200), default=0),
        lambda m: m.release(MANY, np.mean),
        (lambda m: m.release(None, np.mean), lambda m: m.release([1], np.mean)),
    ),
    "ProjectedDescent": Entry(
        dp.learning.ProjectedDescent(
            "linear", guarantee=dp.PureDP(1), width=2, radius=1, size=100, steps=2
        ),
        lambda m: m.release(([[0.6, 0.8]] * 100, [1] * 100)),
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
        if isinstance(getattr(space, name), type)
        and any(hasattr(getattr(space, name), verb) for verb in ("release", "choose", "open"))
    }
    assert exported - {"Gate", "Ledger"} == set(CATALOGUE)


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

    if not isinstance(entry.mechanism, dp.SparseVector):  # whose threshold is drawn on opening
        monkeypatch.setattr(noise_module.Noise, "one", touched)
        monkeypatch.setattr(noise_module.Noise, "many", touched)
        monkeypatch.setattr(SecureSource, "draw", touched)
    for refused in entry.refused:
        with pytest.raises(dp.errors.PrivateValueError) as caught:
            refused(entry.mechanism)
        assert caught.value.__cause__ is None
