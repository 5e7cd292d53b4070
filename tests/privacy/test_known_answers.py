"""Figures computed elsewhere in two independent ways, to their tolerance."""

import math
from fractions import Fraction

import pytest

import deniable as dp
from deniable.privacy.accountants import zcdp


@pytest.mark.parametrize(
    ("epsilon", "delta", "sigma"),
    [
        (1, 1e-5, 3.73063163481594),
        (0.1, 1e-6, 36.3046904261958),
        (2, 1e-6, 2.23047627118642),
        (0.01, 1e-8, 412.356942079715),
    ],
)
def test_least_gaussian_noise(epsilon, delta, sigma):
    found = dp.Gaussian(epsilon=epsilon, delta=delta, sensitivity=1).sigma
    assert float(found) == pytest.approx(sigma, rel=1e-9)


@pytest.mark.parametrize(
    ("loss", "epsilon", "delta", "tolerance"),
    [
        (dp.losses.GaussianLoss(sigma=10, sensitivity=1), 0.1, 0.00875176814580959, 1e-8),
        (dp.losses.GaussianLoss(sigma=2, sensitivity=1), 0.25, 0.110298393748528, 1e-8),
        (dp.losses.LaplaceLoss(scale=2, sensitivity=1), 0.1, 0.181269246922018, 1e-8),
        (dp.losses.LaplaceLoss(scale=10, sensitivity=1), 0.05, 0.0246900879716673, 1e-8),
        (dp.losses.PureLoss(bound=1), 0.5, 0.287649136644968, 1e-9),
        (dp.losses.DiscreteLaplaceLoss(scale=2, sensitivity=1), 0.25, 0.137687516631747, 1e-9),
        (dp.losses.DiscreteLaplaceLoss(scale=10, sensitivity=1), 0.05, 0.0256035370984955, 1e-9),
        (
            dp.losses.DiscreteGaussianLoss(variance=100, sensitivity=1),
            0.3,
            4.45647579095095e-05,
            1e-9,
        ),
    ],
)
def test_delta(loss, epsilon, delta, tolerance):
    assert loss.delta(epsilon=epsilon) == pytest.approx(delta, rel=tolerance)


@pytest.mark.parametrize(
    ("loss", "delta", "epsilon", "tolerance"),
    [
        (
            dp.repeat(dp.losses.GaussianLoss(sigma=10, sensitivity=1), 100),
            1e-6,
            4.88655411746221,
            1e-8,
        ),
        (
            dp.repeat(dp.losses.GaussianLoss(sigma=10, sensitivity=1), 10_000),
            1e-6,
            96.7172719638677,
            1e-8,
        ),
        (dp.losses.GaussianLoss(sigma=10, sensitivity=1).group(3), 1e-6, 1.29170993728062, 1e-8),
        (
            dp.repeat(dp.losses.LaplaceLoss(scale=10, sensitivity=1), 100),
            1e-6,
            4.69266741281215,
            1e-6,
        ),
        (dp.repeat(dp.losses.PureLoss(bound=0.1), 1000), 1e-6, 19.344671447993, 1e-7),
        (
            dp.repeat(
                dp.losses.poisson_sampled(
                    dp.losses.GaussianLoss(sigma=1, sensitivity=1), rate=0.01
                ),
                10_000,
            ),
            1e-6,
            6.9073845,
            1e-6,
        ),
        (
            dp.losses.DiscreteGaussianLoss(variance=100, sensitivity=1),
            1e-6,
            0.396790092695192,
            1e-9,
        ),
        (
            dp.losses.RandomizedResponseLoss(truth=Fraction(5, 8), categories=4),
            0,
            1.6094379124341,
            1e-9,
        ),
    ],
)
def test_epsilon(loss, delta, epsilon, tolerance):
    assert loss.epsilon(delta=delta) == pytest.approx(epsilon, rel=tolerance)


def test_advantage():
    assert dp.losses.ApproxLoss(bound=1, slack=1e-5).advantage == pytest.approx(
        0.462122536088437, rel=1e-9
    )


def test_trade_off_of_a_gaussian():
    loss = dp.losses.GaussianLoss(sigma=1, sensitivity=1)
    assert loss.tradeoff(0.05) == pytest.approx(0.740488977158556, rel=1e-9)


def test_zcdp_conversions():
    assert zcdp.epsilon_bun_steinke(0.5, 1e-6) == pytest.approx(5.75652176975693, rel=1e-10)
    assert zcdp.epsilon(0.1, 1e-9) == pytest.approx(2.7154818867305, rel=1e-6)
    assert zcdp.delta(0.1, 2) == pytest.approx(4.32521086909256e-06, rel=1e-6)


def test_renyi():
    assert dp.losses.PureLoss(bound=1).renyi(3) == pytest.approx(0.846726830485448, rel=1e-9)


def test_randomised_response_three_quarters_is_log_three_to_the_last_bit():
    loss = dp.losses.RandomizedResponseLoss(truth=0.75)
    assert loss.epsilon(delta=0) == math.log(3)
    assert loss.delta(epsilon=0) == 0.5
