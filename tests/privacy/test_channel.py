import contextlib
import math
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest

import deniable as dp
from deniable.privacy.channel import Channel, read_rows
from deniable.privacy.semantics import name_and_shame

F = Fraction


def random_rows(generator, inputs, outputs):
    raw = generator.integers(1, 50, size=(inputs, outputs))
    return tuple(tuple(F(int(v), int(row.sum())) for v in row) for row in raw)


def test_channels_are_exact():
    channel = Channel(
        ("a", "b"), (0, 1, 2), ((F(1, 2), F(1, 4), F(1, 4)), (F(1, 4), F(1, 4), F(1, 2)))
    )
    assert channel.ratio("a", "b") == 2
    assert channel.epsilon() == math.log(2)
    assert channel.delta(0) == 0.25
    assert channel.probability(1, "a") == F(1, 4)
    assert channel.delta(math.log(2)) == pytest.approx(0, abs=1e-13)


def test_channel_losses_are_never_below_brute_force():
    generator = np.random.default_rng(8)
    for _ in range(60):
        rows = random_rows(generator, int(generator.integers(2, 5)), int(generator.integers(2, 6)))
        loss = dp.losses.ChannelLoss(rows=rows)
        worst = max(max(p / q for p, q in zip(a, b, strict=True)) for a, b in permutations(rows, 2))
        assert loss.epsilon(delta=0) == pytest.approx(math.log(worst), rel=1e-15)
        for epsilon in (0.0, 0.1, 0.7):
            true = max(
                math.fsum(
                    max(float(p) - math.exp(epsilon) * float(q), 0)
                    for p, q in zip(a, b, strict=True)
                )
                for a, b in permutations(rows, 2)
            )
            assert true <= loss.delta(epsilon=epsilon) + 1e-15
            assert loss.delta(epsilon=epsilon) == pytest.approx(true, rel=1e-9, abs=1e-12)
        for order in (1.0, 1.5, 3.0, 50.0):
            found = [
                math.fsum(float(p) * math.log(p / q) for p, q in zip(a, b, strict=True))
                if order == 1
                else math.log(
                    math.fsum(
                        float(p) ** order * float(q) ** (1 - order)
                        for p, q in zip(a, b, strict=True)
                    )
                )
                / (order - 1)
                for a, b in permutations(rows, 2)
            ]
            assert loss.renyi(order) == pytest.approx(max(found), rel=1e-8)
            assert loss.renyi(order) <= order * loss.rho * (1 + 1e-8)
        assert dp.losses.loss_from_json(dp.losses.loss_to_json(loss)) == loss
        assert loss.group(3).pure == 3 * loss.pure


def channel_of(function, inputs):
    """The channel of a deterministic function."""
    values = [function(value) for value in inputs]
    outputs = tuple(dict.fromkeys(values))
    rows = tuple(tuple(Fraction(value == output) for output in outputs) for value in values)
    return Channel(tuple(inputs), outputs, rows)


def test_a_deterministic_mechanism_that_says_anything_has_no_epsilon():
    """The determinism theorem."""
    assert channel_of(lambda x: x > 3, range(6)).epsilon() == math.inf
    assert channel_of(lambda x: "same", range(6)).epsilon() == 0
    assert channel_of(lambda x: x, range(3)).delta(5) == 1
    with pytest.raises(dp.ParameterError):
        dp.losses.ChannelLoss(rows=channel_of(lambda x: x, range(3)).rows)


@pytest.mark.parametrize(
    "matrix",
    [
        [],
        [[]],
        [[1, 0], [1]],
        [[0.5, 0.6], [0.5, 0.5]],
        [[-0.5, 1.5], [0.5, 0.5]],
        [[math.nan, 1]],
        [["a", "b"]],
        [None],
        5,
        None,
        [[True, False]],
        [[0.1] * 3],
    ],
)
def test_what_is_no_channel_is_refused(matrix):
    with pytest.raises(dp.ParameterError):
        read_rows(matrix)


def test_labels_must_fit():
    with pytest.raises(dp.ParameterError):
        Channel(("a",), (0, 1), ((F(1, 2), F(1, 2)), (F(1, 2), F(1, 2))))


@pytest.mark.parametrize(
    "rows",
    ["x", [["1/2", "1/2"], "y"], [["1/2", "1/3"]], [[0.5, 0.5]], [], [["1", "0"], ["0", "1"]]],
)
def test_stored_channels_are_checked(rows):
    import json

    text = json.dumps({"version": 1, "kind": "channel", "relation": "replace", "rows": rows})
    with pytest.raises(dp.errors.LossFormatError):
        dp.losses.loss_from_json(text)


def test_parallel_parts_cost_the_worst():
    a, b, g = (
        dp.losses.PureLoss(bound=1),
        dp.losses.PureLoss(bound=0.3),
        dp.losses.GaussianLoss(sigma=2, sensitivity=1),
    )
    assert dp.parallel(a, a) == a
    both = dp.parallel(a, b)
    assert both.pure == 1
    assert both.delta(epsilon=0.2) == a.delta(epsilon=0.2)
    assert both == dp.parallel(b, a)
    mixed = dp.parallel(a, g)
    assert mixed.pure is None
    for epsilon in (0.0, 0.3, 0.9, 2.0):
        assert mixed.delta(epsilon=epsilon) == max(
            a.delta(epsilon=epsilon), g.delta(epsilon=epsilon)
        )
    assert mixed.rho == max(a.rho, g.rho)
    assert mixed.renyi(2) == max(a.renyi(2), g.renyi(2))
    assert mixed.tradeoff(0.1) == min(a.tradeoff(0.1), g.tradeoff(0.1))
    assert mixed.mu == max(a.mu, g.mu)
    assert both.group(3).pure == 3
    with pytest.raises(dp.ParameterError, match="group"):
        mixed.group(2)
    assert dp.losses.loss_from_json(dp.losses.loss_to_json(mixed)) == mixed
    together = dp.compose(mixed, b)
    assert dp.losses.loss_from_json(dp.losses.loss_to_json(together)) == together
    with pytest.raises(dp.errors.RelationError, match="disjoint"):
        dp.parallel(dp.losses.PureLoss(bound=1, relation="replace"), a)
    with pytest.raises(dp.ParameterError):
        dp.parallel()
    with pytest.raises(dp.errors.ParameterTypeError):
        dp.parallel(3)


def test_parallel_composition_is_exact_on_disjoint_parts():
    """Two noisy counts of disjoint parts, a unit added to either: the ratio is one count's."""
    q = F(1, 2)
    outputs = range(-3, 4)

    def row(count):
        return {z: q ** abs(z - count) for z in outputs}

    worst = F(0)
    for a, b in ((1, 0), (0, 1)):
        here = {(x, y): row(0)[x] * row(0)[y] for x in outputs for y in outputs}
        there = {(x, y): row(a)[x] * row(b)[y] for x in outputs for y in outputs}
        worst = max(worst, *(here[k] / there[k] for k in here))
    assert worst == 2


def test_nested_texts_do_not_exhaust_the_reader():
    inner = '{"kind":"pure","relation":"add_remove","bound":"1"}'
    for _ in range(300):
        inner = (
            '{"kind":"parallel","losses":[{"kind":"composed","parts":[{"count":2,"loss":'
            + inner
            + "}]}]}"
        )
    with contextlib.suppress(dp.errors.LossFormatError):
        dp.losses.loss_from_json('{"version":1,' + inner[1:])


def test_delta_is_never_rounded_down_nor_loose():
    rows = ((F(2, 3), F(1, 3)), (F(1, 3), F(2, 3)))
    below = F("0.6931471805599453")  # ln 2 is 0.693147180559945309...
    assert 0 < dp.losses.ChannelLoss(rows=rows).delta(epsilon=below) < 1e-14
    assert Channel((0, 1), (0, 1), rows).delta(below) > 0
    assert Channel((0, 1), (0, 1), rows).delta(0.7) == 0
    shame = name_and_shame((0, 1), 1, F(1, 100))
    for epsilon in (1, 30, 35, 1000):
        assert shame.delta(epsilon) == pytest.approx(0.01, rel=1e-9)
    with pytest.raises(dp.ParameterError, match="cannot give"):
        dp.losses.ChannelLoss(rows=((1, 0), (0, 1)))
    with pytest.raises(dp.ParameterError, match="tells nothing"):
        dp.losses.ChannelLoss(rows=((F(1, 2), F(1, 2)), (F(1, 2), F(1, 2))))


def test_labels_differ_and_rows_are_made_exact():
    with pytest.raises(dp.ParameterError, match="differ"):
        Channel((0, 0), (0, 1), ((F(1, 2), F(1, 2)), (F(1, 4), F(3, 4))))
    assert Channel((0, 1), (0, 1), ((0.1, 0.9), (0.5, 0.5))).rows[0][0] == F(1, 10)


def test_orders_next_to_one_are_not_understated():
    rows = ((F(8, 10), F(2, 10)), (F(1, 2), F(1, 2)))
    loss = dp.losses.ChannelLoss(rows=rows)
    assert loss.renyi(1 + 1e-9) >= loss.renyi(1) * (1 - 1e-9)
    assert F(loss.delta(epsilon=0)) >= F(3, 10)


def test_large_channels_are_read_column_by_column():
    """Going through all pairs of rows in fractions would take minutes."""
    rr = dp.RandomizedResponse(epsilon=1, categories=range(200))
    assert rr.channel().epsilon() == pytest.approx(1, rel=1e-14)
    lopsided = dp.RandomizedResponse.from_channel(
        [[F(1, 2) if i == j else F(1, 198) for j in range(100)] for i in range(99)]
        + [[F(1, 100)] * 100],
        range(100),
    )
    assert lopsided.loss.epsilon(delta=0) == pytest.approx(math.log(99), rel=1e-14)
    assert 0 < lopsided.loss.delta(epsilon=0.5) < 1
