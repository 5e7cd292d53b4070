import json
from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

import deniable as dp
from deniable.privacy.losses.generic import ConcentratedLoss
from deniable.privacy.wire import KINDS

LOSSES = [
    dp.losses.LaplaceLoss(scale=Fraction(1, 3), sensitivity=0.1),
    dp.losses.DiscreteLaplaceLoss(scale=2**40, sensitivity=2**40),
    dp.losses.GaussianLoss(sigma=3.7, sensitivity=1, relation="replace"),
    dp.losses.DiscreteGaussianLoss(variance=2, sensitivity=1),
    dp.losses.RandomizedResponseLoss(truth=0.75, categories=3),
    dp.losses.ExponentialLoss(bound=0.5),
    dp.losses.PureLoss(bound=0.1),
    dp.losses.ApproxLoss(bound=0.1, slack=1e-9),
    ConcentratedLoss(bound=0.2),
    dp.losses.ChannelLoss(
        rows=((Fraction(1, 3), Fraction(2, 3)), (Fraction(1, 2), Fraction(1, 2)))
    ),
    dp.parallel(dp.losses.PureLoss(bound=0.1), dp.losses.GaussianLoss(sigma=3, sensitivity=1)),
    dp.losses.poisson_sampled(
        dp.losses.GaussianLoss(sigma=2, sensitivity=1), rate=0.01, relation="replace"
    ),
    dp.compose(dp.losses.PureLoss(bound=0.1), dp.repeat(dp.losses.ExponentialLoss(bound=0.5), 7)),
]


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.kind)
def test_losses_survive_the_way_there_and_back(loss):
    text = dp.losses.loss_to_json(loss)
    assert dp.losses.loss_from_json(text) == loss
    assert dp.losses.loss_from_json(text.encode()) == loss
    assert dp.losses.loss_to_json(dp.losses.loss_from_json(text)) == text


def test_every_kind_is_known():
    assert {loss.kind for loss in LOSSES} == {*KINDS, "composed", "parallel"}


def test_the_text_is_pinned():
    """A stored loss is read for ever: this text must never change."""
    assert dp.losses.loss_to_json(dp.losses.PureLoss(bound=0.1)) == (
        '{"bound":"1/10","kind":"pure","relation":"add_remove","version":1}'
    )
    assert dp.losses.loss_to_json(LOSSES[-2]) == (
        '{"base":{"kind":"gaussian","relation":"add_remove","sensitivity":"1","sigma":"2"},'
        '"kind":"sampled","rate":"1/100","relation":"replace","version":1}'
    )
    assert dp.losses.loss_to_json(LOSSES[-1]) == (
        '{"kind":"composed","parts":['
        '{"count":7,"loss":{"bound":"1/2","kind":"exponential","relation":"add_remove"}},'
        '{"count":1,"loss":{"bound":"1/10","kind":"pure","relation":"add_remove"}}],"version":1}'
    )


def test_the_text_is_canonical():
    loss = dp.losses.LaplaceLoss(scale=1, sensitivity=1)
    spaced = json.dumps(dict(reversed(json.loads(dp.losses.loss_to_json(loss)).items())), indent=3)
    assert dp.losses.loss_to_json(dp.losses.loss_from_json(spaced)) == dp.losses.loss_to_json(loss)


GOOD = {"version": 1, "kind": "pure", "relation": "add_remove", "bound": "1/10"}
PART = {"kind": "pure", "relation": "add_remove", "bound": "1/10"}


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"version": None},
        {"version": "1"},
        {"version": True},
        {"version": 1.5},
        {"version": 1.0},
        {"kind": "unheard"},
        {"kind": None},
        {"kind": ["pure"]},
        {"kind": "os.system"},
        {"relation": "swap"},
        {"relation": 3},
        {"relation": None},
        {"bound": 0.1},
        {"bound": 1},
        {"bound": "0.1"},
        {"bound": "1/0"},
        {"bound": "-1/2"},
        {"bound": "0"},
        {"bound": "1e5"},
        {"bound": "١"},
        {"bound": " 1"},
        {"bound": "nan"},
        {"bound": "9" * 6000},
        {"bound": "9" * 4350},
        {"bound": None},
        {"bound": True},
        {"bound": ["1"]},
        {"extra": 1},
        {"__class__": "os.system"},
    ],
)
def test_nonsense_is_refused(change):
    with pytest.raises(dp.errors.LossFormatError):
        dp.losses.loss_from_json(json.dumps({**GOOD, **change}))


@pytest.mark.parametrize("missing", sorted(GOOD))
def test_missing_fields_are_refused(missing):
    with pytest.raises(dp.errors.LossFormatError):
        dp.losses.loss_from_json(json.dumps({k: v for k, v in GOOD.items() if k != missing}))


@pytest.mark.parametrize(
    "parts",
    [
        [],
        None,
        {},
        [1],
        [{"count": 0, "loss": PART}],
        [{"count": -1, "loss": PART}],
        [{"count": 1.0, "loss": PART}],
        [{"count": True, "loss": PART}],
        [{"loss": PART}],
        [{"count": 1, "loss": PART, "more": 1}],
        [{"count": 10**30, "loss": PART}],
        [{"count": 1, "loss": None}],
        [{"count": 1, "loss": {"kind": "composed", "parts": [{"count": 1, "loss": PART}]}}],
        [{"count": 1, "loss": PART}, {"count": 1, "loss": {**PART, "relation": "replace"}}],
    ],
)
def test_composed_nonsense_is_refused(parts):
    with pytest.raises(dp.errors.LossFormatError):
        dp.losses.loss_from_json(json.dumps({"version": 1, "kind": "composed", "parts": parts}))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "null",
        "1",
        '"x"',
        "{",
        "{}",
        "[" * 100_000,
        b"\xff\xfe",
        '{"version": 1' * 3,
        '{"version":1,"kind":"pure","kind":"pure","relation":"add_remove","bound":"1"}',
        '{"version":NaN,"kind":"pure","relation":"add_remove","bound":"1"}',
    ],
    ids=range(12),
)
def test_broken_text_is_refused(text):
    with pytest.raises(dp.errors.LossFormatError):
        dp.losses.loss_from_json(text)


@pytest.mark.parametrize("thing", [None, 3, {"version": 1}, dp.losses.PureLoss(bound=1)])
def test_only_text_is_read(thing):
    with pytest.raises(dp.errors.LossFormatError, match="text"):
        dp.losses.loss_from_json(thing)


@given(st.text() | st.binary())
def test_noise_is_refused(text):
    with pytest.raises(dp.errors.LossFormatError):
        dp.losses.loss_from_json(text)


@pytest.mark.parametrize("thing", [3, None, "x", dp.Laplace(epsilon=1, sensitivity=1)])
def test_only_losses_are_written(thing):
    with pytest.raises(dp.errors.ParameterTypeError, match="loss"):
        dp.losses.loss_to_json(thing)


def test_messages_can_be_printed_whatever_the_text_held():
    text = json.dumps({**GOOD, "\ud800": 1})
    with pytest.raises(dp.errors.LossFormatError) as caught:
        dp.losses.loss_from_json(text)
    assert str(caught.value).encode()
