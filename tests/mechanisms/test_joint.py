"""Joint noise on tables of statistics, and the private choice of groups."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import deniable as dp
from chance import FALSE_ALARM, follows, gaussian_pmf, laplace_pmf
from deniable.mechanisms.joint import JointNoise
from deniable.mechanisms.keys import WEIGHT, KeySelection, weight
from deniable.mechanisms.laws import tail_threshold
from deniable.randomness.noise import GaussianLaw

ZEROS = [[0, 0]] * 20_000


def test_each_column_has_gaussian_noise_by_its_weight():
    mechanism = JointNoise(rho=0.5, bound=12, weights=(3, 1))
    noisy = mechanism.release(ZEROS).astype(int)
    for column, sigma in ((0, 4.0), (1, 12.0)):  # bound/(weight sqrt(2 rho))
        assert mechanism.deviation(column) == pytest.approx(sigma)
        assert follows(noisy[:, column], gaussian_pmf(sigma), 200)
        assert not follows(noisy[:, column], gaussian_pmf(0.8 * sigma), 200)


def test_each_column_has_laplace_noise_by_its_weight():
    mechanism = JointNoise(epsilon=2, bound=12, weights=(3, 1))
    noisy = mechanism.release(ZEROS).astype(int)
    for column, scale in ((0, 2.0), (1, 6.0)):  # bound/(ε weight)
        assert follows(noisy[:, column], laplace_pmf(scale), 300)
        assert not follows(noisy[:, column], laplace_pmf(0.8 * scale), 300)


def test_the_price_is_what_was_paid():
    assert JointNoise(epsilon=0.3, bound=7, weights=(1,)).loss.pure == Fraction(3, 10)
    loss = JointNoise(rho=0.02, bound=7, weights=(1, 5)).loss
    assert loss.pure is None
    assert Fraction(2, 100) * (1 - Fraction(1, 10**20)) < loss.price.rho <= Fraction(2, 100)


@pytest.mark.parametrize("seed", range(50))
def test_the_privacy_loss_of_any_move_within_the_bound_is_within_the_price(seed):
    """Σ D²/2σ² for "l2" and Σ |D|/scale for "l1", for moves that just fit the bound."""
    rng = np.random.default_rng(seed)
    weights = tuple(int(w) for w in rng.integers(1, 50, 3))
    bound = int(rng.integers(100, 10**6))
    moves = rng.normal(size=(4, 3))
    for pure in (False, True):
        size = np.abs(weights * moves).sum() if pure else np.sqrt(((weights * moves) ** 2).sum())
        whole = np.trunc(moves * bound / size).astype(int)
        amount = {"epsilon": 1} if pure else {"rho": 1}
        mechanism = JointNoise(bound=bound, weights=weights, **amount)
        laws = [mechanism.law(column) for column in range(3)]
        if pure:
            spent = sum(abs(int(d)) / laws[c].scale for row in whole for c, d in enumerate(row))
        else:
            spent = sum(
                int(d) ** 2 / (2 * laws[c].variance) for row in whole for c, d in enumerate(row)
            )
        assert spent <= 1
        assert spent > 0.5


def test_sums_of_any_size_stay_exact():
    noisy = JointNoise(rho=0.5, bound=1, weights=(1,)).release([[10**40], [-(10**40)]])
    assert abs(noisy[0, 0] - 10**40) < 100
    assert type(noisy[1, 0]) is int


@pytest.mark.parametrize(
    "bad", [[], [[1]], [[1, 2, 3]], [[1.5, 2]], [[True, 2]], [["a", 2]], None, 7]
)
def test_what_is_no_table_of_integers_is_refused(bad):
    with pytest.raises(dp.errors.PrivateValueError):
        JointNoise(rho=1, bound=1, weights=(1, 1)).release(bad)


@pytest.mark.parametrize(
    "bad",
    [
        {"rho": 0, "bound": 1, "weights": (1,)},
        {"rho": 1, "epsilon": 1, "bound": 1, "weights": (1,)},
        {"rho": 1, "bound": 0, "weights": (1,)},
        {"rho": 1, "bound": 1, "weights": ()},
        {"rho": 1, "bound": 1, "weights": (0,)},
        {"rho": 1e-30, "bound": 10**17, "weights": (1,)},
    ],
)
def test_bad_parameters_are_refused(bad):
    with pytest.raises(dp.ParameterError):
        JointNoise(**bad)


@pytest.mark.parametrize("variance", [Fraction(1, 4), Fraction(1), Fraction(25), Fraction(10**4)])
@pytest.mark.parametrize("delta", [Fraction(1, 10), Fraction(1, 10**6), Fraction(1, 10**12)])
def test_the_threshold_hides_single_units_and_is_nearly_the_least(variance, delta):
    t = tail_threshold(GaussianLaw(variance), delta)
    x = np.arange(0, t + 40 * math.ceil(math.sqrt(variance)) + 40, dtype=float)
    weights = np.exp(-(x**2) / (2 * float(variance)))
    total = 2 * weights.sum() - 1
    assert weights[t:].sum() / total <= float(delta) * (1 + 1e-12)
    assert weights[max(0, t - 2 - t // 4) :].sum() / total > float(delta)


def test_groups_with_a_single_unit_show_as_rarely_as_is_said():
    mechanism = KeySelection(rho=0.5, delta=0.05, max_groups=1)
    shown = sum(len(mechanism.release(dict.fromkeys(range(200), WEIGHT))) for _ in range(200))
    exact = 1 - stats.norm.cdf(mechanism.threshold / WEIGHT - 1)
    assert stats.binomtest(shown, 40_000, 0.05, alternative="greater").pvalue > FALSE_ALARM
    assert shown > 40_000 * exact / 2  # the check has power: rarely is not never


def test_a_unit_of_several_groups_weighs_no_more_than_one_of_one():
    for groups in [*range(1, 300), 2**16, 2**20]:
        assert groups * weight(groups) ** 2 <= WEIGHT**2 < groups * (weight(groups) + 1) ** 2


def shown_alone(selection, runs):
    """How often any group of one unit is named, which has as many as 64."""
    alone = dict.fromkeys(range(64), weight(64))
    return sum(bool(selection.release(alone)) for _ in range(runs))


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_all_groups_of_one_unit_together_show_as_rarely_as_is_said(relation):
    given = {"rho": 0.5, "delta": 0.05, "relation": relation}
    rarely = shown_alone(KeySelection(max_groups=64, **given), 2_000)
    assert stats.binomtest(rarely, 2_000, 0.05, alternative="greater").pvalue > FALSE_ALARM
    # Planted: the threshold of units that have one group each.
    often = shown_alone(KeySelection(max_groups=1, **given), 2_000)
    assert stats.binomtest(often, 2_000, 0.05, alternative="greater").pvalue < FALSE_ALARM


def test_every_number_of_groups_is_below_the_threshold():
    for rho, most in ((0.004, 64), (0.5, 64), (20, 64), (400, 1_000)):
        found = KeySelection(rho=rho, delta=1e-6, max_groups=most)
        variance = Fraction(WEIGHT**2) / (2 * found.rho)
        for groups in range(1, most + 1, 7):
            needed = weight(groups) + tail_threshold(GaussianLaw(variance), found.delta / groups)
            assert needed <= found.threshold


@pytest.mark.parametrize(
    ("k", "units"), [(1, 56.8), (10, 59.1), (11, 59.3), (100, 65.1), (1_000, 72.1), (10_000, 78.7)]
)
def test_thresholds_of_later_selections_grow_slowly(k, units):
    """ε = 1 of (3, 1e-6), a fifth of its ρ, one group a unit."""
    rho = dp.Budget(dp.ApproxDP(3, 1e-6)).rho_for(Fraction(1)) / 5
    delta = Fraction(5, 10**7) * 10 / ((k + 9) * (k + 10))
    found = KeySelection(rho=rho, delta=delta, max_groups=1).threshold / WEIGHT
    assert found == pytest.approx(units, abs=0.2)


def test_large_groups_show_in_an_order_of_their_own():
    mechanism = KeySelection(rho=1, delta=1e-6, max_groups=2)
    counts = {("b",): 1000 * WEIGHT, ("a",): 1000 * WEIGHT, ("c",): 0}
    assert mechanism.release(counts) == [("a",), ("b",)]
    assert mechanism.loss.price.delta == Fraction(1, 10**6)
    assert float(mechanism.loss.price.rho) == pytest.approx(1, rel=1e-9)


@pytest.mark.parametrize(
    ("rho", "bound", "weights"),
    [(2, 1000, (1000,)), (2, 1000, (1000, 1)), (2, 10, (3, 10)), (Fraction(1, 200), 90, (9, 2))],
)
def test_mu_is_that_of_the_narrowest_noise_on_the_integers(rho, bound, weights):
    """Exactly: of every test "y >= k" between a column's law and itself moved, errors add up."""
    noise = JointNoise(rho=rho, bound=bound, weights=weights)
    assert noise.loss.concentrated.rho <= rho
    for column, own in enumerate(weights):
        sigma, moved = noise.deviation(column), bound // own
        y = np.arange(-math.ceil(12 * sigma) - moved, math.ceil(12 * sigma) + 2 * moved + 1)
        mass = np.exp(-(y**2) / (2 * sigma**2))
        shifted = np.exp(-((y - moved) ** 2) / (2 * sigma**2))
        false_alarm = np.cumsum(mass[::-1])[::-1] / mass.sum()
        missed = 1 - np.cumsum(shifted[::-1])[::-1] / shifted.sum()
        told = (false_alarm > 1e-6) & (missed > 1e-6)  # where doubles tell
        least = stats.norm.isf(false_alarm[told]) + stats.norm.isf(missed[told])
        assert noise.loss.mu >= least.max() * (1 - 1e-9)


def test_a_gdp_budget_takes_joint_noise_at_a_mu_that_is_proved():
    with dp.Ledger(key=bytes(32)) as ledger:
        ledger.open("people", dp.Budget(dp.GDP(100)), who="owner")
        gate = dp.Gate(ledger, "people", "ana")
        narrow = JointNoise(rho=2, bound=1000, weights=(1000,))
        with pytest.raises(dp.BudgetError):  # its plain Δ/σ is 2, and one count shows 2.48
            gate.release(narrow, lambda: [[5]], purpose="a count")
        wide = JointNoise(rho=2, bound=1 << 16, weights=(1,))
        gate.release(wide, lambda: [[5 << 16]], purpose="a count in steps")
