"""The whole SQL path as a black box: nothing that is seen tells neighbours apart beyond ε and δ.

Every group is a world of its own: its units have rows nowhere else, and its noise is its own. So
one question about a thousand groups is a thousand independent releases. An event is chosen on one
half of them and judged on the other, by exact binomial bounds.
"""

import math

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import deniable as dp
from chance import FALSE_ALARM
from deniable.query.plan.plan import Plan

GROUPS, EPSILON, ROWS = 1_000, 1.0, 3
DELTA = 1e-6
_ABSENT = -1e9
NAMES = [f"g{number:04d}" for number in range(GROUPS)]
QUESTIONS = {
    "count": "SELECT g, COUNT(*) AS y FROM t GROUP BY g",
    "sum": "SELECT g, SUM(x) AS y FROM t GROUP BY g",
    "mean": "SELECT g, AVG(x) AS y FROM t GROUP BY g",
    "median": "SELECT g, MEDIAN(x) AS y FROM t GROUP BY g",
    "bought": "SELECT g, SUM(x) AS y FROM t GROUP BY g",
    "unknown keys": "SELECT g, COUNT(*) AS y FROM t GROUP BY g",
}


def world(kind: str, *, more: bool) -> dp.Session:
    """A few units in each group, and one more with as much as counts."""
    units = 12 if kind == "unknown keys" else 4
    rows = [(f"{g}/{u}", g, 2.0 + u) for g in NAMES for u in range(units) for _ in range(2)]
    if more:
        rows += [(f"{g}/more", g, 10.0) for g in NAMES for _ in range(2 * ROWS)]
    who, group, x = (list(column) for column in zip(*rows, strict=True))
    table = dp.PrivateTable(
        pa.table({"who": who, "g": group, "x": x}),
        unit="who",
        population="p",
        bounds={"x": (0, 10)},
        keys={} if kind == "unknown keys" else {"g": NAMES},
        max_rows=None if kind == "bought" else ROWS,
        max_groups=1,
    )
    return dp.Session(
        {"t": table}, budget=dp.ApproxDP(1e6, 2 * DELTA), ledger=dp.Ledger(key=bytes(32))
    )


def seen(kind: str, *, more: bool, asks: int) -> np.ndarray:
    """What an onlooker sees of each group: its number, or that it is not there."""
    found = []
    for _ in range(asks):
        with world(kind, more=more) as session:
            answer = session.sql(QUESTIONS[kind], epsilon=EPSILON)
        shown = dict(zip(answer["g"], answer["y"], strict=True))
        found += [float(shown.get(name, _ABSENT)) for name in NAMES]
    return np.array(found)


def lower_bound(with_: np.ndarray, without: np.ndarray) -> float:
    """An ε that the mechanism surely exceeds, over events of one threshold and both directions."""
    best = 0.0
    half = len(with_) // 2
    tests = 4
    for sign in (1, -1):
        for first, second in ((with_, without), (without, with_)):
            p, q = sign * first, sign * second
            edges = np.quantile(np.concatenate([p[:half], q[:half]]), np.linspace(0.02, 0.98, 49))
            scores = [
                math.log(((p[:half] >= edge).mean() + 1e-3) / ((q[:half] >= edge).mean() + 1e-3))
                for edge in edges
            ]
            edge = edges[int(np.argmax(scores))]
            best = max(best, _certain(p[half:] >= edge, q[half:] >= edge, FALSE_ALARM / tests))
    return best


def _certain(hits: np.ndarray, others: np.ndarray, alpha: float) -> float:
    n = len(hits)
    k, m = int(hits.sum()), int(others.sum())
    low = stats.beta.ppf(alpha / 2, k, n - k + 1) if k else 0.0
    high = stats.beta.ppf(1 - alpha / 2, m + 1, n - m) if m < n else 1.0
    return math.log((low - DELTA) / high) if low > DELTA else 0.0


@pytest.mark.parametrize("kind", ["count", "mean"])
def test_two_thousand_releases_on_each_side(kind):
    assert lower_bound(seen(kind, more=True, asks=2), seen(kind, more=False, asks=2)) <= EPSILON


@pytest.mark.soak
@pytest.mark.parametrize("kind", QUESTIONS)
def test_twenty_thousand_releases_on_each_side(kind):
    assert lower_bound(seen(kind, more=True, asks=20), seen(kind, more=False, asks=20)) <= EPSILON


def test_a_bound_that_is_too_small_is_caught(monkeypatch):
    right = Plan.bound
    monkeypatch.setattr(Plan, "bound", lambda self, *, l2: max(1, right(self, l2=l2) // 8))
    monkeypatch.setattr(Plan, "cuts", lambda _, l2: False)
    monkeypatch.setattr("deniable.query.run.emit._limit", lambda _plan, *, l2: 10**30)
    assert (
        lower_bound(seen("count", more=True, asks=2), seen("count", more=False, asks=2)) > EPSILON
    )
