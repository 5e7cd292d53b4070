"""Samplers over convex sets, against exact marginals."""

import math

import numpy as np
import pytest
from scipy import stats

import deniable as dp
from chance import follows_continuous
from deniable.learning.exponential import BallExponential, Label, LineExponential, cap_height
from deniable.learning.proximal import Exponent, RegularisedExponential, _Oracle
from deniable.learning.reals import uniforms
from deniable.learning.rejection import LEAST_ACCEPTANCE, PerfectExponential
from deniable.learning.rows import Rows


def distribution(log_density, low, high, points=20_001):
    """The distribution function of a density on a line, by sums."""
    x = np.linspace(low, high, points)
    logs = log_density(x)
    mass = np.cumsum(np.exp(logs - logs.max()))
    return lambda at: np.interp(at, x, mass / mass[-1])


@pytest.mark.parametrize("width", [1, 2, 5, 40])
@pytest.mark.parametrize("kappa", [0.0, 3.0, 300.0])
def test_heights_follow_their_density(width, kappa):
    drawn = np.array([cap_height(kappa, width) for _ in range(1500)])

    def density(k):
        return lambda t: k * t + (width - 1) / 2 * np.log(np.maximum(1 - t * t, 1e-300))

    assert follows_continuous(drawn, distribution(density(kappa), -1, 1))
    wrong = kappa * 1.5 + math.sqrt(8 * (width + 2))
    assert not follows_continuous(drawn, distribution(density(wrong), -1, 1))


def test_a_point_of_the_ball_has_the_right_marginals():
    """In the plane: along the sum, and across it."""
    mechanism = BallExponential(epsilon=2.0, radius=1.5)
    drawn = np.array([mechanism.draw(np.array([0.0, 4.0])) for _ in range(3000)])
    assert (np.linalg.norm(drawn, axis=1) <= 1.5 + 1e-9).all()
    rate = mechanism.rate * 4.0
    across = distribution(
        lambda x: np.log(np.maximum(np.sinh(rate * np.sqrt(np.maximum(2.25 - x * x, 0))), 1e-300)),
        -1.5,
        1.5,
    )
    along = distribution(
        lambda y: -rate * y + 0.5 * np.log(np.maximum(2.25 - y * y, 1e-300)), -1.5, 1.5
    )
    assert follows_continuous(drawn[:, 0], across)
    assert follows_continuous(drawn[:, 1], along)
    assert not follows_continuous(drawn[:, 1], across)


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_the_density_on_the_ball_moves_by_epsilon_at_most(relation):
    """k·<z, w> oscillates by k·diameter; twice that where a record is exchanged."""
    mechanism = BallExponential(1.0, 2.0, dp.Relation(relation))
    moved = 2 if relation == "replace" else 1
    assert mechanism.rate * moved * 2 * mechanism.radius == pytest.approx(1.0)
    assert mechanism.label == Label.PURE_REAL
    assert mechanism.loss.pure == 1
    assert mechanism.release(np.array([[3.0, 4.0], [0.0, 0.1]])).shape == (2,)
    hostile = np.array([[math.nan, 0.0], [math.inf, 1.0], [1e200, 1e200]])
    assert np.isfinite(mechanism.release(hostile)).all()


def test_the_line_is_exact_and_pure():
    mechanism = LineExponential(epsilon=1.0, bounds=(0, 10), cells=11)
    values = np.array([2.0, 3.0, 3.0, 99.0, math.nan])
    clean = np.array([2.0, 3.0, 3.0, 10.0])
    points = mechanism.points()
    weights = np.exp(-np.abs(points[:, None] - clean).sum(axis=1) / 20)
    drawn = np.array([mechanism.release(values) for _ in range(1500)])
    seen = np.array([(drawn == p).sum() for p in points])
    assert stats.chisquare(seen, weights / weights.sum() * 1500).pvalue > 1e-9
    far = np.exp(-np.abs(points[:, None] - clean).sum(axis=1) / 4)
    assert stats.chisquare(seen, far / far.sum() * 1500).pvalue < 1e-9
    assert mechanism.label == Label.PURE
    assert mechanism.loss.pure == 1
    assert 0 <= mechanism.release([]) <= 10


def test_replay_of_the_line_finds_nothing():
    def pipeline(values):
        return LineExponential(epsilon=1, bounds=(0, 1), cells=64).release(values)

    base = [0.1, 0.5, 0.9]
    for added in (0.0, 1.0, 1e300, math.nan, -math.inf, "much", None):
        assert dp.replay(pipeline, base, [*base, added], time_limit=None).ok
    assert dp.replay(pipeline, [], [1.0], time_limit=None).ok


SIGNED = np.array([[0.8, 0.1], [0.3, -0.7], [-0.5, 0.5], [0.9, 0.3]] * 5)


def marginal(weight, curvature, radius=math.inf, signed=SIGNED):
    """The first coordinate of exp(-g) in the plane, by a grid."""
    x = np.linspace(-8, 8, 801)
    both = np.stack(np.meshgrid(x, x, indexing="ij"), axis=-1)
    losses = np.logaddexp(0, -(both @ signed.T)).sum(axis=-1)
    logs = -weight * losses - curvature / 2 * np.square(both).sum(axis=-1)
    logs[np.square(both).sum(axis=-1) > radius**2] = -math.inf
    mass = np.cumsum(np.exp(logs - logs.max()).sum(axis=1))
    return lambda at: np.interp(at, x, (mass - mass[0]) / (mass[-1] - mass[0]))


PERFECT = PerfectExponential(epsilon=8.0, size=len(SIGNED), width=2, radius=3.0, penalty=12.0)


def test_perfect_draws_have_the_exact_marginal():
    drawn = np.array([PERFECT.draw(SIGNED) for _ in range(1000)])
    assert (np.linalg.norm(drawn, axis=1) <= 3).all()
    assert follows_continuous(drawn[:, 0], marginal(PERFECT.rate, 12.0, 3.0))
    assert not follows_continuous(drawn[:, 0], marginal(PERFECT.rate / 8, 12.0, 3.0))
    assert PERFECT.label == Label.PURE_REAL
    assert PERFECT.loss.pure == 8


def test_a_small_ball_cuts_perfect_draws_off():
    tight = PerfectExponential(epsilon=0.5, size=len(SIGNED), width=2, radius=1.0, penalty=15.0)
    drawn = np.array([tight.draw(SIGNED)[0] for _ in range(800)])
    assert follows_continuous(drawn, marginal(tight.rate, 15.0, 1.0))
    assert not follows_continuous(drawn, marginal(tight.rate, 1.0, 1.0))


def test_the_density_of_perfect_draws_moves_by_epsilon_at_most():
    """Exactly, on a grid of the plane: the worst exchange of one row comes near."""
    x = np.linspace(-3, 3, 301)
    both = np.stack(np.meshgrid(x, x, indexing="ij"), axis=-1)
    inside = np.square(both).sum(axis=-1) <= 9

    def log_density(signed):
        losses = np.logaddexp(0, -(both @ signed.T)).sum(axis=-1)
        logs = (-PERFECT.rate * losses - 6.0 * np.square(both).sum(axis=-1))[inside]
        return logs - np.log(np.exp(logs - logs.max()).sum()) - logs.max()

    one, other = SIGNED.copy(), SIGNED.copy()
    one[0], other[0] = [1.0, 0.0], [-1.0, 0.0]
    worst = np.abs(log_density(one) - log_density(other)).max()
    assert 0.4 * PERFECT.epsilon < worst <= PERFECT.epsilon


def test_acceptance_is_known_in_advance_or_refused():
    with pytest.raises(dp.ParameterError, match="RegularisedExponential"):
        PerfectExponential(epsilon=1.0, size=1000, width=30, radius=5.0, penalty=0.1)
    assert PerfectExponential(1.0, 100, 10, 4.0, 8.0).acceptance > LEAST_ACCEPTANCE
    with pytest.raises(dp.ParameterError, match="number of rows"):
        PERFECT.release(Rows(np.zeros((3, 1)), None, np.zeros(3, np.int64), np.ones(3, bool)))


def test_proposals_are_accepted_as_often_as_foreseen(monkeypatch):
    """Counted for hard rows, which all pull one way: never below the foreseen share."""
    proposed = 0

    def counted(count):
        nonlocal proposed
        proposed += count
        return uniforms(count)

    monkeypatch.setattr("deniable.learning.rejection.uniforms", counted)
    monkeypatch.setattr("deniable.learning.rejection._BATCH", 1)
    signed = np.tile([1.0, 0.0], (len(SIGNED), 1))
    for _ in range(500):
        PERFECT.draw(signed)
    assert stats.binom(proposed, PERFECT.acceptance).cdf(500) > 1e-9


def test_the_proximal_sampler_has_the_exact_marginal():
    mechanism = RegularisedExponential(dp.ApproxDP(8.0, 1e-3), len(SIGNED), 2, 2.0)
    drawn = np.array([mechanism.draw(SIGNED)[0] for _ in range(100)])
    assert follows_continuous(drawn, marginal(mechanism.weight, mechanism.curvature))
    assert not follows_continuous(drawn, marginal(20 * mechanism.weight, mechanism.curvature))


def test_the_oracle_is_exact():
    target, step, y = Exponent(SIGNED, 0.8, 1.0), 0.5, np.array([1.0, -1.0])
    oracle = _Oracle(target, step, 2)
    drawn = np.array([oracle.draw(y)[0] for _ in range(2000)])
    x = np.linspace(-8, 8, 401)
    both = np.stack(np.meshgrid(x, x, indexing="ij"), axis=-1)
    losses = np.logaddexp(0, -(both @ SIGNED.T)).sum(axis=-1)
    logs = -0.8 * losses - 0.5 * np.square(both).sum(-1) - np.square(both - y).sum(-1) / (2 * step)
    mass = np.cumsum(np.exp(logs - logs.max()).sum(axis=1))
    assert follows_continuous(drawn, lambda at: np.interp(at, x, mass / mass[-1]))
    assert not follows_continuous(drawn + 0.2, lambda at: np.interp(at, x, mass / mass[-1]))


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0])
def test_turns_are_known_in_advance_and_certify_the_sampling(epsilon):
    mechanism = RegularisedExponential(dp.ApproxDP(epsilon, 1e-6), 455, 31, 20.0)
    assert mechanism.sampling_delta == 5e-7
    shrink = (1 + mechanism.step * mechanism.curvature) ** (-2 * mechanism.turns)
    start = 31 / 2 * math.log(2 * mechanism.smoothness / mechanism.curvature) + 1e-3
    distance = math.sqrt(start * shrink / 2)
    assert (1 + math.exp(epsilon)) * distance <= mechanism.sampling_delta * (1 + 1e-3)
    gaussian = 2 * mechanism.weight / math.sqrt(mechanism.curvature)
    assert dp.GDP(gaussian) <= dp.ApproxDP(epsilon, 5e-7)
    if epsilon == 1:
        assert mechanism.turns == pytest.approx(19_000, rel=0.05)


def test_a_regularised_draw_is_a_model_and_says_what_it_rests_on():
    rng = np.random.default_rng(4)
    units = rng.uniform(-0.5, 0.5, (40, 2))
    rows = Rows(units, None, (units[:, 0] > 0).astype(np.int64), np.ones(40, bool))
    mechanism = RegularisedExponential(dp.ApproxDP(5.0, 1e-4), 40, 3, 5.0)
    drawn = np.mean([mechanism.release(rows) for _ in range(20)], axis=0)
    assert drawn[0] > 0.2
    assert mechanism.label == Label.SAMPLED
    assert mechanism.loss.relation == "replace"
    assert mechanism.loss.satisfies(dp.ApproxDP(5.0, 1e-4))
    with pytest.raises(dp.ParameterError, match="number of rows"):
        mechanism.release(Rows(units[1:], None, rows.label[1:], rows.present[1:]))


@pytest.mark.parametrize("kappa", [1e8, 1e17, 1e300])
def test_narrow_laws_are_drawn_at_the_edge(kappa):
    """1 - t has mean (width + 1)/2κ where κ is large."""
    depths = [1 - cap_height(kappa, 3) for _ in range(200)]
    assert 0 <= np.mean(depths) <= 8 / kappa + 1e-16
    if kappa < 1e10:
        assert np.mean(depths) == pytest.approx(2 / kappa, rel=0.35)
    far = BallExponential(kappa, 1.0).draw(np.array([1e9, 0.0]))
    assert far == pytest.approx([-1.0, 0.0], abs=1e-4)


@pytest.mark.parametrize(
    "wrong",
    [{"epsilon": 0.0}, {"epsilon": float("nan")}, {"radius": -1.0}, {"relation": "swap"}],
    ids=str,
)
def test_a_ball_is_refused_when_it_is_made(wrong):
    with pytest.raises(dp.ParameterError):
        BallExponential(**{"epsilon": 1.0, "radius": 1.0, **wrong})
    assert BallExponential(1.0, 1.0, "replace").rate == BallExponential(0.5, 1.0).rate
