"""MIN and MAX: a rank, the answer says which; groups with few people have none."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
from scipy.stats import binom

import deniable as dp
from chance import FALSE_ALARM
from deniable.privacy.amount import Amount, Kind
from deniable.privacy.units import Relation
from deniable.query.plan.plan import SCALE
from deniable.query.price.price import price
from deniable.query.read.catalogue import Options
from deniable.query.read.compile import compile_sql

MANY, FEW = 3_000, 40


def session():
    rng = np.random.default_rng(2)
    data = {"g": ["many"] * MANY + ["few"] * FEW, "x": rng.uniform(0, 100, MANY + FEW)}
    table = dp.PrivateTable(
        pa.table(data),
        unit=dp.ROW,
        population="p",
        bounds={"x": (0, 200)},
        keys={"g": ["many", "few"]},
    )
    return dp.Session({"t": table}, budget=dp.ApproxDP(1e6, 1e-6), ledger=dp.Ledger())


def test_few_people_have_no_least_or_most():
    with session() as asked:
        answer = asked.sql("SELECT g, MIN(x) AS a, MAX(x) AS b FROM t GROUP BY g", epsilon=2)
        again = asked.sql("SELECT g, MIN(x) AS a, MAX(x) AS b FROM t GROUP BY g", epsilon=2)
    many, few = answer.intervals().to_pylist()
    assert 0 <= many["a"] < many["b"] <= 200
    assert math.isnan(few["a"])
    assert math.isnan(few["b"])
    assert (few["a_low"], few["a_high"], few["b_low"], few["b_high"]) == (0, 200, 0, 200)
    assert "?" in str(answer)
    labels = [label for label in answer.labels if "people lie beyond" in label]
    assert [label[:3] for label in labels] == ["a: ", "b: "]
    assert all("not told of fewer than about" in label for label in labels)
    assert again.labels == answer.labels


def test_without_few_people_labels_say_the_rank_alone():
    with session() as asked:
        answer = asked.sql("SELECT MAX(x) AS b FROM t", epsilon=2)
    (label,) = answer.labels
    assert label.startswith("b: up to about ")
    assert label.endswith(" people lie beyond")
    low, high = (answer.intervals()[f"b_{end}"][0].as_py() for end in ("low", "high"))
    assert low <= 100
    assert high == 200


def beyond(offset):
    """How many of 300 draws have more people beyond than is said, with the aim moved."""
    with session() as asked:
        catalogue = asked.parts.catalogue
        plan = compile_sql("SELECT MAX(x) AS b FROM t", catalogue, Options())
    law = price(plan, Amount(Kind.RHO, Fraction(1, 50), Relation.ADD_REMOVE)).ranks[0]
    rng = np.random.default_rng(3)
    cells = np.sort(np.floor(rng.uniform(0, 100, MANY) / 200 * law.value.cells)).astype(int)
    weights = (np.bincount(cells, minlength=law.value.cells) * SCALE).tolist()
    moved = replace(law.value, offset=law.value.offset - offset, ends=False)
    drawn = [moved.release([weights])[0] for _ in range(300)]
    return sum(int((cells > cell).sum()) > law.beyond / SCALE for cell in drawn)


def test_no_more_people_lie_beyond_than_is_said():
    assert binom.sf(beyond(0) - 1, 300, 0.025) > FALSE_ALARM
    assert binom.sf(beyond(200 * SCALE) - 1, 300, 0.025) < FALSE_ALARM  # planted
