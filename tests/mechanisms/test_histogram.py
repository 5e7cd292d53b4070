import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

import deniable as dp
from chance import follows, laplace_pmf, plausible_share
from deniable.mechanisms.laws import tail_threshold
from deniable.randomness.noise import LaplaceLaw

F = Fraction


@pytest.mark.parametrize(("relation", "scale"), [("add_remove", 2), ("replace", 4)])
def test_a_histogram_costs_the_same_however_many_cells(relation, scale):
    histogram = dp.Histogram(epsilon=0.5, cells=range(1000), relation=relation)
    assert histogram.loss.pure == F(1, 2)
    assert histogram.loss.scale == scale
    noisy = np.array([list(histogram.release({3: 500}).values()) for _ in range(100)])
    noisy[:, 3] -= 500
    assert follows(noisy.ravel(), laplace_pmf(scale), 60)
    assert not follows(noisy.ravel(), laplace_pmf(1.2 * scale), 60)


def test_every_known_cell_is_released_and_no_other():
    histogram = dp.Histogram(epsilon=100, cells=["a", "b"])
    assert histogram.release({"b": 7, "z": 9}) == {"a": 0, "b": 7}
    assert histogram.error(confidence=0.95) == 0
    assert dp.Histogram(epsilon=0.5, cells="ab").error(confidence=0.95) == 6


@pytest.mark.parametrize("scale", ["0.5", "1", "7.3", "40"])
@pytest.mark.parametrize("chance", ["0.1", "1e-6", "1e-12"])
def test_the_threshold_is_the_least_one_by_the_exact_tail(scale, chance):
    s, rare = F(scale), F(chance)
    t = tail_threshold(LaplaceLaw(s), rare)
    with mpmath.workdps(50):
        q = mpmath.exp(-mpmath.mpf(s.denominator) / s.numerator)
        assert q**t / (1 + q) <= mpmath.mpf(chance)
        assert t == 1 or q ** (t - 1) / (1 + q) > mpmath.mpf(chance)


@pytest.mark.parametrize("max_cells", [1, 3])
def test_a_single_unit_shows_with_at_most_delta(max_cells):
    mechanism = dp.StabilityHistogram(epsilon=1, delta=0.02, max_cells=max_cells)
    n = 40_000
    shown = sum(len(mechanism.release(dict.fromkeys(range(max_cells), 1))) > 0 for _ in range(n))
    assert shown <= n * 0.02 + 6.2 * math.sqrt(n * 0.02)
    assert shown > n * 0.003
    assert mechanism.loss == dp.losses.ApproxLoss(bound=1, slack=0.02)


def test_large_cells_show_with_the_stated_noise():
    mechanism = dp.StabilityHistogram(epsilon=1, delta=1e-6, max_cells=2)
    noise = np.array([mechanism.release({"x": 1000})["x"] - 1000 for _ in range(40_000)])
    assert follows(noise, laplace_pmf(2), 40)
    assert plausible_share(
        (np.abs(noise) <= mechanism.error(confidence=0.9)).sum(),
        40_000,
        float((laplace_pmf(2)(np.arange(-5, 6))).sum()),
    )


def test_the_order_of_the_data_does_not_show():
    mechanism = dp.StabilityHistogram(epsilon=10, delta=1e-6)
    forward = mechanism.release({"a": 500, "b": 400, "c": 300})
    backward = mechanism.release({"c": 300, "b": 400, "a": 500})
    assert list(forward) == list(backward) == ["a", "b", "c"]
    assert mechanism.release({}) == {}
    assert mechanism.release({"a": 0}) == {}


def test_the_stability_histogram_is_private_by_its_exact_law():
    """δ at ε of one cell with k units against k + 1, from the exact probability of each output."""
    epsilon, delta = 1.0, 1e-3
    mechanism = dp.StabilityHistogram(epsilon=epsilon, delta=delta)
    q, reach = math.exp(-epsilon), 200

    def law(count):
        if count == 0:
            return {None: 1.0}
        out = {z + count: (1 - q) / (1 + q) * q ** abs(z) for z in range(-reach, reach)}
        shown = {v: p for v, p in out.items() if v - 1 >= mechanism.threshold}
        return {**shown, None: 1 - sum(shown.values())}

    for k in range(12):
        for a, b in ((law(k), law(k + 1)), (law(k + 1), law(k))):
            gap = sum(max(p - math.exp(epsilon) * b.get(v, 0.0), 0) for v, p in a.items())
            assert gap <= delta * (1 + 1e-9)
    assert law(1).get(mechanism.threshold + 1, 0) > 0


@pytest.mark.parametrize(
    "bad", [None, [1, 2], {"a": 1.5}, {"a": -1}, {"a": "x"}, {"a": True}, {"a": 2**70}]
)
def test_bad_counts_are_refused(bad):
    for mechanism in (
        dp.Histogram(epsilon=1, cells="ab"),
        dp.StabilityHistogram(epsilon=1, delta=0.1),
    ):
        with pytest.raises(dp.errors.PrivateValueError):
            mechanism.release(bad)


@pytest.mark.parametrize(
    "make",
    [
        lambda: dp.Histogram(epsilon=0, cells="ab"),
        lambda: dp.Histogram(epsilon=1, cells=""),
        lambda: dp.Histogram(epsilon=1, cells="aa"),
        lambda: dp.Histogram(epsilon=1, cells="ab", relation="swap"),
        lambda: dp.StabilityHistogram(epsilon=1, delta=0),
        lambda: dp.StabilityHistogram(epsilon=1, delta=1),
        lambda: dp.StabilityHistogram(epsilon=1, delta=0.1, max_cells=0),
        lambda: dp.StabilityHistogram(epsilon=1e-20, delta=0.1),
    ],
)
def test_bad_parameters_are_refused(make):
    with pytest.raises(dp.ParameterError):
        make()


def test_labels_carry_no_history():
    """1 and 1.0 are one cell; which of them was there first must not show."""
    mechanism = dp.StabilityHistogram(epsilon=10, delta=1e-6)
    for bad in ({1.0: 500}, {True: 500}, {float("nan"): 500}, {frozenset([1]): 500}, {None: 9}):
        with pytest.raises(dp.errors.PrivateValueError, match="text"):
            mechanism.release(bad)
    shown = mechanism.release({np.int64(3): 500, ("a", 2): 400, np.str_("x"): 300})
    assert [type(cell) for cell in shown] == [str, tuple, int]
