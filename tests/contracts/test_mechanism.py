"""The battery for mechanisms that add noise to numbers, on top of `test_catalogue.py`."""

import copy
import dataclasses
import math
import pickle
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import deniable as dp
from chance import plausible_share
from deniable.randomness import noise as noise_module
from deniable.randomness.source import SecureSource

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Example:
    """A mechanism beside two values that neighbours may have, and what it must refuse."""

    mechanism: Any
    value: Any
    neighbour: Any
    refused: tuple[Any, ...]


NOT_NUMBERS = (
    "5",
    b"5",
    None,
    object(),
    1j,
    True,
    np.bool_(True),
    {},
    {1},
    [],
    np.array([]),
    np.array(["a"]),
    np.array([None]),
    np.array([1.0, None]),
    np.array([1j]),
    [[1], [1, 2]],
    np.array([True]),
    np.array(["2020-01-01"], dtype="datetime64[D]"),
    np.ma.masked_array([1, 2], mask=[0, 1]),
)
NOT_INTEGERS = (*NOT_NUMBERS, 5.0, 5.5, Fraction(1, 2), np.array([1.0]), math.nan, math.inf)
NOT_REALS = (
    *NOT_NUMBERS,
    math.nan,
    math.inf,
    -math.inf,
    np.float32("nan"),
    np.array([1.0, math.nan]),
    np.array([math.inf]),
    np.longdouble(1),
    np.array([1], dtype=np.longdouble),
)

MECHANISMS = {
    "Geometric": Example(dp.Geometric(epsilon=0.5, sensitivity=1), 40, 41, NOT_INTEGERS),
    "Laplace": Example(dp.Laplace(epsilon=0.5, sensitivity=2.5), 40.0, 42.5, NOT_REALS),
    "DiscreteGaussian": Example(
        dp.DiscreteGaussian(epsilon=0.5, delta=1e-3, sensitivity=1), 40, 41, NOT_INTEGERS
    ),
    "Gaussian": Example(
        dp.Gaussian(epsilon=0.5, delta=1e-3, sensitivity=2.5), 40.0, 42.5, NOT_REALS
    ),
}


@pytest.fixture(params=MECHANISMS, ids=str)
def example(request) -> Example:
    return MECHANISMS[request.param]


def test_parameters_are_frozen_and_hashable(example):
    mechanism = example.mechanism
    for field in dataclasses.fields(mechanism):
        with pytest.raises(AttributeError):
            setattr(mechanism, field.name, 1)
    assert mechanism == dataclasses.replace(mechanism)
    assert hash(mechanism) == hash(dataclasses.replace(mechanism))


def test_the_docstring_states_the_guarantee(example):
    text = type(example.mechanism).__doc__
    assert "Formal guarantee." in text
    assert "unledgered" in text


def test_the_loss_is_data_and_survives_storage(example):
    loss = example.mechanism.loss
    assert isinstance(loss, dp.Loss)
    assert loss.relation == dp.Relation.ADD_REMOVE
    assert dp.losses.loss_from_json(dp.losses.loss_to_json(loss)) == loss
    swapped = dataclasses.replace(example.mechanism, relation="replace")
    assert swapped.loss.relation == dp.Relation.REPLACE


def test_the_representation_makes_the_mechanism_again(example):
    made = eval(repr(example.mechanism), vars(dp))
    assert made.loss.epsilon(delta=1e-3) == pytest.approx(
        example.mechanism.loss.epsilon(delta=1e-3)
    )


@pytest.mark.parametrize(
    "make", [copy.copy, copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))]
)
def test_copies_draw_their_own_noise(make):
    mechanism = dp.Laplace(epsilon=1e-3, sensitivity=1)
    mechanism.release(0.0)
    copied = make(mechanism)
    assert copied == mechanism
    drawn = [m.release(0.0) for m in (mechanism, copied) for _ in range(300)]
    assert len(set(drawn)) == 600


def test_shapes_and_types_are_kept(example):
    single = example.mechanism.release(example.value)
    assert type(single) is type(example.value)
    for shape in [(1,), (7,), (2, 3), (2, 1, 2)]:
        many = example.mechanism.release(np.full(shape, example.value))
        assert many.shape == shape
        assert many.dtype == np.array(example.value).dtype
    listed = example.mechanism.release([example.value, example.value])
    assert listed.shape == (2,)


def test_coordinates_get_noise_of_their_own(example):
    wide = dataclasses.replace(
        example.mechanism, **_ten_thousand_times_the_noise(example.mechanism)
    )
    released = wide.release(np.full(500, example.value))
    assert len(set(released.tolist())) > 450


def _ten_thousand_times_the_noise(mechanism) -> dict[str, Fraction]:
    name = "scale" if hasattr(mechanism, "scale") else "sigma"
    return {name: getattr(mechanism, name) * 10_000}


def test_the_caller_s_array_is_left_alone(example):
    values = np.full(5, example.value)
    example.mechanism.release(values)
    assert (values == example.value).all()


def test_bad_values_are_refused_unquoted_before_any_randomness(example, monkeypatch):
    def touched(*args: object) -> None:
        raise AssertionError("randomness was drawn for a value that must be refused")

    monkeypatch.setattr(noise_module.Noise, "one", touched)
    monkeypatch.setattr(noise_module.Noise, "many", touched)
    monkeypatch.setattr(SecureSource, "draw", touched)
    for bad in example.refused:
        with pytest.raises(dp.errors.PrivateValueError) as caught:
            example.mechanism.release(bad)
        assert caught.value.__cause__ is None
    secret = 987654321.25
    with pytest.raises(dp.errors.PrivateValueError) as caught:
        example.mechanism.release(np.array([secret, math.nan]))
    assert "98765" not in str(caught.value)


@pytest.mark.parametrize("confidence", [0.001, 0.5, 0.95, 0.999])
def test_error_bars_cover(example, confidence):
    """Coverage is never below nominal (false alarm 1e-9), and a slightly narrower bar fails."""
    trials = 200_000
    mechanism, width = example.mechanism, example.mechanism.error(confidence=confidence)
    noise = np.abs(mechanism.release(np.full(trials, example.value)) - example.value)
    hits = int((noise <= width).sum())
    expected = trials * confidence
    assert hits >= expected - 6.2 * math.sqrt(expected * (1 - confidence) + 1)
    if isinstance(width, int):
        if width > 0:
            below = int((noise <= width - 1).sum())
            assert below <= expected + 6.2 * math.sqrt(expected * (1 - confidence) + 1)
    else:
        assert plausible_share(hits, trials, confidence)


@pytest.mark.parametrize("bad", [0, 1, -0.5, 1.5, math.nan, "0.95", None, True])
def test_bad_confidences_are_refused(example, bad):
    with pytest.raises(dp.ParameterError, match="confidence"):
        example.mechanism.error(confidence=bad)


def test_the_privacy_loss_of_an_output_is_its_log_ratio(example):
    mechanism, x, y = example.mechanism, example.value, example.neighbour
    for _ in range(200):
        output = mechanism.release(x)
        ratio = mechanism.privacy_loss(output, x, y)
        assert ratio == -mechanism.privacy_loss(output, y, x)
        assert mechanism.privacy_loss(output, x, x) == 0
        if mechanism.loss.pure is not None:
            assert abs(ratio) <= float(mechanism.loss.pure)


def test_privacy_losses_add_up_to_the_profile(example):
    """E[(1 - e^(ε - L))_+] over outputs is δ(ε): the loss describes what is really drawn."""
    mechanism, trials = example.mechanism, 20_000
    loss = mechanism.loss
    outputs = [mechanism.release(example.value) for _ in range(trials)]
    ratios = np.array(
        [mechanism.privacy_loss(o, example.value, example.neighbour) for o in outputs]
    )
    for epsilon in (0.0, 0.2):
        samples = np.maximum(0, -np.expm1(epsilon - ratios))
        delta = loss.delta(epsilon=epsilon)
        margin = 6.2 * samples.std() / math.sqrt(trials)
        assert abs(samples.mean() - delta) <= margin
        assert abs(samples.mean() - 1.3 * delta) > margin  # power


def test_a_quick_audit_finds_nothing(example):
    """Events {noise <= t} on neighbours never contradict the loss (Clopper-Pearson, 1e-9)."""
    from scipy import stats

    trials, thresholds = 100_000, np.linspace(-3, 3, 25)
    mechanism, loss = example.mechanism, example.mechanism.loss
    spread = mechanism.error(confidence=0.7)
    here = mechanism.release(np.full(trials, example.value)) - example.value
    there = mechanism.release(np.full(trials, example.neighbour)) - example.value
    alpha = 1e-9 / (4 * thresholds.size)

    def violated(epsilon: float, delta: float) -> bool:
        for t in thresholds * spread:
            for p_hits, q_hits in ((here <= t, there <= t), (there > t, here > t)):
                low = stats.beta.ppf(alpha, p_hits.sum(), trials - p_hits.sum() + 1)
                high = stats.beta.isf(alpha, q_hits.sum() + 1, trials - q_hits.sum())
                if low > math.exp(epsilon) * high + delta:
                    return True
        return False

    for epsilon in (0.0, 0.25, 0.5):
        assert not violated(epsilon, loss.delta(epsilon=epsilon))
    assert violated(0.0, loss.delta(epsilon=0.0) / 2), "the audit has power"
