"""Noisy projected descent: its price, its gradients in whole numbers, and where it ends."""

import math
import warnings

import numpy as np
import pytest

import deniable as dp
from deniable.learning.projected import Objective, Slopes
from deniable.learning.rows import Rows
from deniable.privacy.units import Relation
from replayed import each_replayed

OBJECTIVES = [each.value for each in Objective]
PUBLIC = {"width": 3, "radius": 2, "size": 2_000}
LOSSES = {
    "logistic": lambda m, y: np.logaddexp(0, -y * m),
    "hinge": lambda m, y: np.maximum(0, 1 - y * m),
    "absolute": lambda m, y: np.abs(m - y),
    "linear": lambda m, y: y * m,
}


def descent(objective="logistic", **more):
    return dp.learning.ProjectedDescent(
        objective, **{"guarantee": dp.ApproxDP(1, 1e-6), **PUBLIC, **more}
    )


def made_up(count=2_000):
    rng = np.random.default_rng(7)
    rows = rng.normal(size=(count, 3))
    rows /= np.linalg.norm(rows, axis=1)[:, None]
    signs = np.where(rng.random(count) < 1 / (1 + np.exp(-4 * rows @ [1, -1, 0.5])), 1.0, -1.0)
    return rows, signs


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize(
    "budget", [dp.PureDP(1), dp.ApproxDP(1, 1e-6), dp.ZCDP(0.1), dp.GDP(1)], ids=str
)
def test_the_price_keeps_the_budget_and_is_what_is_drawn(budget, relation):
    from deniable.trace import LISTENER

    class Listener:
        def __init__(self):
            self.losses = []

        def release(self, subject, *given):
            self.losses.append(subject.loss)
            return given[-1]()

        def noise(self, _law):
            pass

        def fact(self, *_said):
            pass

    made, listener = descent(guarantee=budget, relation=relation, steps=4), Listener()
    assert made.loss.satisfies(budget)
    token = LISTENER.set(listener)
    try:
        made.release(made_up(50))
    finally:
        LISTENER.reset(token)
    assert len(listener.losses) == 4
    if isinstance(budget, dp.PureDP):
        assert sum(each.pure for each in listener.losses) == budget.epsilon == made.loss.pure
    else:
        assert dp.compose(*listener.losses) == made.loss


def test_samples_are_composed_numerically():
    made = descent(rate=0.1, steps=20)
    assert made.loss.satisfies(dp.ApproxDP(1, 1e-6))
    assert not made.loss.satisfies(dp.ApproxDP(0.99, 1e-6))
    with pytest.raises(dp.ParameterError, match="samples are priced in"):
        descent(rate=0.1, guarantee=dp.ZCDP(1))


NASTY = [
    [math.nan, 0, 0],
    [math.inf, 1, 1],
    [1e308, -1e308, 1e308],
    [5e-324, -0.0, 0],
    [1, 1, 1],
    [-1, 1, -1],
    [0.6, 0.8, 0],
    [1 / 3, 2 / 3, 2 / 3],
]


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("scale", [0.0, 1.0, 1e6])
def test_no_row_moves_a_gradient_further_than_is_charged(objective, scale):
    made = descent(objective)
    sums = Slopes(Objective(objective), scale * np.array([0.3, -2.0, 1.0]))
    alone = []
    for target in (-1.0, 0.2, 1.0, 1e9, math.nan):
        rows = made._rows(NASTY, [target] * len(NASTY))
        for at in range(len(NASTY)):
            one = Rows(rows.units[[at]], rows.target[[at]], None, rows.present[[at]])
            alone.append(sums.totals(one).astype(object))
    assert max(int((each**2).sum()) for each in alone) <= sums.moved(Relation.ADD_REMOVE) ** 2
    assert max(int((each**2).sum()) for each in alone) > 0.2 * sums.moved(Relation.ADD_REMOVE) ** 2
    assert max(abs(each).sum() for each in alone) <= sums.moved_l1(Relation.ADD_REMOVE, 3)
    apart = max(int(((a - b) ** 2).sum()) for a in alone for b in alone)
    assert apart <= sums.moved(Relation.REPLACE) ** 2


@pytest.mark.parametrize("rate", [None, 0.2])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_mean_loss_is_within_the_risk_of_its_least(objective, rate):
    """At a budget where noise is faint: what is left is the theorem's bound on the descent."""
    rows, signs = made_up()
    made = descent(objective, guarantee=dp.ApproxDP(100, 1e-6), rate=rate, steps=200)
    found = made.release((rows, signs))
    assert np.linalg.norm(found) <= 2 + 1e-9
    loss = LOSSES[objective]
    tried = np.random.default_rng(1).normal(size=(4_000, 3))
    tried *= 2 * np.minimum(1, 1 / np.linalg.norm(tried, axis=1))[:, None]
    least = min(loss(rows @ w, signs).mean() for w in tried)
    above = loss(rows @ found, signs).mean() - least
    assert above <= made.risk
    assert loss(0 * signs, signs).mean() - least > made.risk, "standing still would be noticed"


def test_places_stay_on_the_ball_whatever_is_heard():
    made = descent("linear", guarantee=dp.ApproxDP(0.01, 1e-9), size=1, steps=5)
    rows, signs = made_up(100)
    for _ in range(20):
        assert np.linalg.norm(made.release((rows, signs))) <= 2 + 1e-9


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_replay_finds_nothing_on_nasty_neighbours(relation):
    made = descent("hinge", relation=relation, steps=2)

    def pipeline(table):
        rows = [[row["x0"], row["x1"], row["x2"]] for row in table] or np.empty((0, 3))
        return made.release((rows, [row["x0"] for row in table]))

    names = ("x0", "x1", "x2")
    pairs = dp.auditing.nasty_neighbours(bounds=dict.fromkeys(names, (-1, 1)), relation=relation)
    for pair, found in each_replayed(pipeline, list(pairs)[::4]):
        assert found.ok, f"{pair.name}\n{found}"
        assert found.releases == 2


@pytest.mark.parametrize("rate", [None, 0.5])
@pytest.mark.parametrize("cell", [math.nan, math.inf, "much", None, 10**400, 1e308])
def test_private_faults_look_like_anything_else(cell, rate):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = descent(rate=rate, steps=3).release(([[cell, 0.5, 0.5]] * 5, [cell] * 5))
    assert found.shape == (3,)
    assert np.isfinite(found).all()


def test_a_gate_releases_it():
    with dp.Ledger(None) as ledger:
        ledger.open("p", dp.Budget(dp.ZCDP(1)), who="owner")
        made = descent(guarantee=dp.ZCDP(0.25), steps=4)
        answer = dp.Gate(ledger, "p", "ana").release(made, made_up, purpose="descent")
        assert len(answer.value) == 3
        assert float(ledger.balance("p").remaining["rho"]) == pytest.approx(0.75, abs=1e-9)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"objective": "cubic"}, "must be 'logistic', 'hinge'"),
        ({"radius": 0}, "radius"),
        ({"width": 0}, "width"),
        ({"size": 1.5}, "size"),
        ({"steps": 0}, "steps"),
        ({"rate": 2}, "rate"),
        ({"guarantee": 1}, "guarantee"),
        ({"relation": "any"}, "relation"),
    ],
)
def test_parameters_are_read_before_data(wrong, said):
    with pytest.raises(dp.DeniableError, match=said):
        descent(**wrong)


def test_shapes_are_public():
    with pytest.raises(dp.ParameterError, match="must have 3"):
        descent().release(([[1, 2]], [1]))
    with pytest.raises(dp.ParameterError, match=r"pair \(X, y\)"):
        descent().release([[1, 2, 3]])
