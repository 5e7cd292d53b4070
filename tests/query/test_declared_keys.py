"""Declared keys that are found by a join: the same whole numbers as of keys compared one by one."""

import random
from collections import Counter

import pyarrow as pa
import pytest
from pyarrow import parquet

from amounts import epsilon, rho
from deniable.engines.duckdb import DuckDB
from deniable.query.price.price import price
from deniable.query.price.profile import least_row
from deniable.query.price.rows import RowsAbove
from deniable.query.read.catalogue import Catalogue, Options
from deniable.query.read.compile import compile_sql
from deniable.query.run.emit import heavy_step
from deniable.query.run.emit_profile import levels_step, upper_step
from deniable.tables import PrivateTable

TEXTS = [
    "",
    "a",
    "A",
    "a ",
    "é",
    "e\u0301",
    "ß",
    "ss",
    "İ",
    "i",
    "a\0",
    "x" * 70_000,
    "%",
    "?",
    None,
]
KEYS = {
    "g": ["a", "A", "é", "ß", "", "nobody has this", "i"],
    "h": ["a", "ss", "%", "?", "??", "e\u0301", "a "],
}
QUESTIONS = [
    "SELECT g, COUNT(*) AS n, SUM(x) AS s, AVG(x) AS a FROM t GROUP BY g",
    "SELECT g, h, COUNT(*) AS n, COUNT(DISTINCT u) AS people FROM t GROUP BY g, h",
    "SELECT b, g, SUM(x) AS s FROM t GROUP BY b, g",
    "SELECT g, h, COUNT(*) AS n FROM t GROUP BY ROLLUP (g, h)",
    "SELECT LEFT(g, 1) AS k, COUNT(*) AS n, COUNT(DISTINCT x) AS d FROM t GROUP BY k",
    "SELECT g, COUNT(*) AS n, MEDIAN(x) AS m FROM t GROUP BY g",
    "SELECT k, COUNT(*) AS n FROM (SELECT u, MAX(g) AS k FROM t GROUP BY u, x) GROUP BY k",
]


def rows_at_random(rng):
    """People with few rows, and some with very many, in few groups and in many."""
    rows = []
    for unit in range(40):
        own = rng.sample(TEXTS, rng.choice([1, 2, len(TEXTS)]))
        for _ in range(rng.choice([1, 2, 3, 30, 200])):
            rows.append((unit, rng.choice(own), rng.choice(TEXTS), rng.randint(-9, 9)))
    rng.shuffle(rows)
    who, g, h, x = (list(column) for column in zip(*rows, strict=True))
    b = [None if each % 3 == 0 else each > 0 for each in x]
    return pa.table(
        {"u": who, "g": pa.array(g, pa.string()), "h": pa.array(h, pa.string()), "x": x, "b": b}
    )


def found(place, data, question, amount):
    """The rows of all steps of a question: on the answer, on what is above, and on norms."""
    table = PrivateTable(
        data,
        unit="u",
        population="p",
        bounds={"x": (-5, 5)},
        keys={**KEYS, "b": [True, False, None]},
        max_rows=4,
    )
    engine = DuckDB()
    schema = engine.add("t", place, None, "u")
    options = Options(keys={"k": tuple(KEYS["g"])} if " AS k" in question else {})
    plan = compile_sql(question, Catalogue({"t": schema}, {"t": table}), options)
    l2 = not amount.pure
    steps = price(plan, amount).steps("secret")
    for number, each in enumerate(RowsAbove.of(plan, amount).steps()):
        steps[f"above {number}"] = each
    if plan.counted.statistics and len(plan.counted.sets) == 1:
        least = least_row(plan, l2=l2)
        bought = plan.with_rows(1).with_norm(5 * least, floor=2 * least)
        steps |= {
            "heavy": heavy_step(plan, l2=l2),
            "heavy from a floor": heavy_step(bought, l2=l2),
            "upper": upper_step(bought, least, l2=l2),
            "levels": levels_step(bought, least, l2=l2),
        }
    engine.check(list(steps.values()))
    with engine.snapshot(list(steps.values())) as taken:
        rows = {name: Counter(map(tuple, taken.run(step))) for name, step in steps.items()}
    engine.close()
    return steps, rows


ASKED = [
    *((question, rho(1000)) for question in QUESTIONS),
    *((question, epsilon(1000)) for question in QUESTIONS if "ROLLUP" not in question),
]


@pytest.mark.parametrize(("question", "amount"), ASKED)
def test_a_join_finds_what_comparing_finds(question, amount, monkeypatch, tmp_path):
    data = rows_at_random(random.Random(question))
    parquet.write_table(data, tmp_path / "t.parquet")
    joined, rows = found(str(tmp_path / "t.parquet"), data, question, amount)
    assert any("VALUES" in step.select for step in joined.values())
    monkeypatch.setattr("deniable.query.plan.keys._MOST_COMPARED", 1_000)
    compared, others = found(data, data, question, amount)
    assert not any("VALUES" in step.select for step in compared.values())
    assert rows == others


def test_a_key_that_is_left_out_of_the_list_would_be_seen(monkeypatch):
    """A planted error: the join has one key less."""
    data = rows_at_random(random.Random(1))
    _, rows = found(data, data, QUESTIONS[0], rho(1000))
    monkeypatch.setattr(
        "deniable.query.plan.keys.in_places",
        lambda keys, key, place: f"SELECT k, p FROM (VALUES ('a', 0)) AS listed({key}, {place})",
    )
    _, fewer = found(data, data, QUESTIONS[0], rho(1000))
    assert rows != fewer
