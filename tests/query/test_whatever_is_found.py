"""Whatever is estimated first, what follows has room and noise: nothing fails once it is charged.

Bounds are told at random, the farthest and the smallest among them, as no data would.
"""

import random

import pyarrow as pa
import pytest

import deniable as dp
from deniable.engines.base import LazySnapshot
from deniable.mechanisms.grid_quantile import GridQuantile
from deniable.query.price.needed import needed, unseen
from deniable.query.price.price import price
from values.oracle import SECRET, ask

QUESTIONS = (
    "SELECT g, STDDEV(i) AS a, VARIANCE(j) AS b, COUNT(*) AS c FROM t GROUP BY g",
    "SELECT VARIANCE(i) AS a, VARIANCE(x) AS b, CORR(i, j) AS c, SUM(x * 1000) AS d FROM t",
    "SELECT SUM(i) AS a, AVG(j) AS b, COVAR_POP(x, j) AS c, COUNT(DISTINCT who) AS d FROM t",
    "SELECT g, MIN(i) AS a, MEDIAN(x) AS b, COUNT(DISTINCT j) AS c FROM t GROUP BY g",
    "SELECT g, SUM(i) AS a, VAR_POP(j) AS b FROM t GROUP BY ROLLUP (g)",
)
BUDGETS = {"pure": dp.PureDP(10**6), "concentrated": dp.ZCDP(10**6)}
SPENDS = {"pure": ({"epsilon": 1}, {"epsilon": 1e-4}), "concentrated": ({"rho": 1}, {"rho": 1e-7})}
TOLD = 2


def session(kind, **declared):
    many = 60
    data = {
        "who": [n % 20 for n in range(many)],
        "g": [n % 2 for n in range(many)],
        "i": [n % 4 for n in range(many)],
        "j": [2**62 + n for n in range(many)],
        "x": [n / 7 for n in range(many)],
    }
    table = dp.PrivateTable(
        pa.table(data), unit="who", population="p", keys={"g": [0, 1]}, **declared
    )
    return dp.Session({"t": table}, budget=BUDGETS[kind], ledger=dp.Ledger(key=bytes(32)))


class Anything:
    """A door that tells whatever could be told, and the snapshot behind it."""

    def __init__(self, snapshot, luck):
        self.run, self._luck = snapshot.run, luck

    def draw(self, mechanism, read):
        value, luck = read(), self._luck
        if isinstance(mechanism, GridQuantile):
            last = mechanism.cells - 1
            return [luck.choice((0, last, luck.randint(0, last))) for _ in value]
        return [[luck.choice((0, -5, 3_000, 10**6)) for _ in row] for row in value]


@pytest.mark.parametrize("declared", [{}, {"max_rows": 3}])
@pytest.mark.parametrize("kind", BUDGETS)
def test_whatever_is_found_is_followed_by_an_answer(kind, declared):
    luck, priced = random.Random(f"{kind} {declared}"), 0
    with session(kind, **declared) as opened:
        engine, names = opened.parts.engine, opened.parts.catalogue.schemas
        for sql in QUESTIONS:
            if kind == "pure" and "ROLLUP" in sql:
                continue
            for spend in SPENDS[kind]:
                question = ask(opened, sql, {}, spend)
                for _ in range(TOLD):
                    plan, left = question.asked.plan, question.asked.amount
                    with LazySnapshot(engine, (), names) as snapshot:
                        door = Anything(snapshot, luck)
                        while one := needed(plan, left, question.budget):
                            plan, left = one.applied(one.draw(door, door, SECRET)), one.left
                        if not unseen(plan):
                            assert price(plan, left).loss
                            priced += 1
    assert priced > 5
