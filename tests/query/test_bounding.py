"""No unit moves the exact totals by more than is charged, whatever its rows hold."""

import math
import random
from dataclasses import dataclass
from fractions import Fraction

import pyarrow as pa
import pytest

import deniable as dp
from deniable.engines.base import Step
from deniable.engines.duckdb import DuckDB
from deniable.query.plan.plan import SCALE, Plan
from deniable.query.read.catalogue import Catalogue, Options
from deniable.query.read.compile import compile_sql
from deniable.query.run.emit import distinct_step, totals_step, units_step
from deniable.tables import PrivateTable
from snapshots import run

QUESTIONS = [
    "SELECT g, COUNT(*) AS n FROM t GROUP BY g",
    "SELECT g, COUNT(*) AS n, SUM(x) AS s, AVG(x) AS a FROM t GROUP BY g",
    "SELECT g, SUM(i) AS s, COUNT(DISTINCT u) AS people FROM t GROUP BY g",
    "SELECT COUNT(x) AS n, VAR_POP(x) AS v FROM t",
    "SELECT g, SUM(x * i) AS s, COUNT(*) FILTER (WHERE x > 0) AS n FROM t GROUP BY g",
    "SELECT SUM(CASE WHEN x > 1 THEN x END) AS s, STDDEV(i) AS d FROM t WHERE g <> 'c'",
    "SELECT a.g, SUM(a.x) AS s FROM t AS a JOIN t AS b ON a.u = b.u GROUP BY a.g",
    "SELECT g, COUNT(*) AS n FROM (SELECT u, g FROM t UNION ALL SELECT u, g FROM t) GROUP BY g",
    "SELECT k, COUNT(*) AS n FROM (SELECT u, COUNT(*) AS k FROM t GROUP BY u) GROUP BY k",
]
NASTY = [0.0, 1.0, -7.0, 3.5, 10.0, math.nan, math.inf, -math.inf, None, 1e300, 5e-324, -0.0]


def rows_at_random(rng: random.Random) -> list[tuple]:
    """A few light units, and some with very many rows."""
    rows = []
    for unit in range(rng.randint(2, 6)):
        name = None if rng.random() < 0.1 else unit
        for _ in range(rng.choice([1, 2, 3, 4, 30, 200])):
            rows.append(
                (name, rng.choice("abc"), rng.choice(NASTY), rng.choice([0, 1, 5, -3, None]))
            )
    rng.shuffle(rows)
    return rows


def engine_with(rows: list[tuple]) -> tuple[DuckDB, Catalogue]:
    columns = [list(column) for column in zip(*rows, strict=True)] if rows else [[], [], [], []]
    types = (pa.int64(), pa.string(), pa.float64(), pa.int64())
    data = pa.table(
        {n: pa.array(c, type=t) for n, c, t in zip("ugxi", columns, types, strict=True)}
    )
    table = PrivateTable(
        data,
        unit="u",
        population="p",
        bounds={"x": (-5, 10), "i": (-3, 5)},
        keys={"g": ["a", "b", "c"]},
        max_rows=4,
        max_groups=2,
        grid={"x": 0.5},
    )
    engine = DuckDB()
    schema = engine.add("t", data, None)
    return engine, Catalogue({"t": schema}, {"t": table})


@dataclass(frozen=True)
class World:
    """Rows, and for each of their units what is left without it."""

    rows: list[tuple]
    catalogue: Catalogue
    whole: DuckDB
    without: dict[int | None, DuckDB]

    @staticmethod
    def of(rows: list[tuple]) -> "World":
        engine, catalogue = engine_with(rows)
        units = {row[0] for row in rows}
        left = {unit: engine_with([r for r in rows if r[0] != unit])[0] for unit in units}
        return World(rows, catalogue, engine, left)

    def close(self) -> None:
        for engine in (self.whole, *self.without.values()):
            engine.close()


def compiled(question: str, catalogue: Catalogue, centres: dict | None = None) -> Plan:
    keys = {"k": tuple(range(300))} if " AS k" in question else {}
    return compile_sql(question, catalogue, Options(keys=keys, centres=centres or {}))


def totals(engine: DuckDB, plan: Plan, *, l2: bool) -> dict:
    width = len(plan.counted.groups)
    found = run(engine, totals_step(plan, l2=l2))
    return {row[:width]: [int(v or 0) for v in row[width:]] for row in found}


def moved(plan: Plan, one: dict, other: dict, *, l2: bool) -> Fraction:
    """The joint norm of the difference, squared for l2."""
    empty = [0] * len(plan.counted.statistics)
    parts = [
        weight * (a - b)
        for key in {*one, *other}
        for weight, a, b in zip(
            plan.weights, one.get(key, empty), other.get(key, empty), strict=True
        )
    ]
    return Fraction(sum(p * p for p in parts) if l2 else sum(map(abs, parts)))


@pytest.mark.parametrize("l2", [True, False], ids=["l2", "l1"])
@pytest.mark.parametrize("question", QUESTIONS)
def test_removing_any_unit_moves_the_totals_by_the_bound_at_most(question, l2, worlds):
    nearest = Fraction(0)
    for world in worlds:
        plan = compiled(question, world.catalogue)
        limit = (SCALE * plan.bound(l2=l2)) ** (2 if l2 else 1)
        whole = totals(world.whole, plan, l2=l2)
        for unit, engine in world.without.items():
            found = moved(plan, whole, totals(engine, plan, l2=l2), l2=l2)
            assert found <= limit
            nearest = max(nearest, found / limit)
            if unit is None:
                assert found == 0  # rows of nobody count nowhere
    assert nearest > Fraction(1, 4)  # some unit comes near: the bound is not idle


def test_a_bound_that_is_too_small_would_be_seen(monkeypatch, worlds):
    # A planted error: sums in other steps than are charged for.
    monkeypatch.setattr("deniable.query.plan.plan.SCALE_BITS", SCALE.bit_length())
    exceeded = False
    for world in worlds:
        plan = compiled(QUESTIONS[1], world.catalogue)
        limit = (SCALE * plan.bound(l2=True)) ** 2
        whole = totals(world.whole, plan, l2=True)
        for engine in world.without.values():
            without = totals(engine, plan, l2=True)
            exceeded = exceeded or moved(plan, whole, without, l2=True) > limit
    assert exceeded


@pytest.mark.parametrize("question", QUESTIONS[:6])
def test_units_with_few_rows_are_never_changed(question):
    rng = random.Random(5)
    rows = [r for r in rows_at_random(rng) if r[0] is not None]
    few = [row for n, row in enumerate(rows) if [r[0] for r in rows[:n]].count(row[0]) < 4]
    engine, catalogue = engine_with(few)
    plan = compiled(question, catalogue)
    found = totals(engine, plan, l2=True)
    sums = []
    for statistic in plan.counted.statistics:
        text = statistic.sql.sql("duckdb")
        if statistic.per_unit:
            sums.append('COUNT(DISTINCT "t"."u")')
        else:
            sums.append(f"COUNT({text})" if statistic.counts else f"SUM({text})")
    keys = [group.sql.sql("duckdb") for group in plan.counted.groups]
    source = plan.counted.source.sql("duckdb").removeprefix("SELECT *").removeprefix("SELECT")
    grouped = f" GROUP BY {', '.join(keys)}" if keys else ""
    exact_rows = run(engine, Step(f"SELECT {', '.join(keys + sums)} {source}{grouped}", ""))
    engine.close()
    for row in exact_rows:
        exact = [SCALE * int(value or 0) for value in row[len(keys) :]]
        assert found[row[: len(keys)]] == exact


def test_a_unit_counts_in_as_many_groups_as_is_said_while_they_are_chosen():
    rows = [(unit, g, 1.0, 1) for unit in range(10) for g in "abcdefgh"]
    engine, catalogue = engine_with(rows)
    plan = compile_sql(
        "SELECT g || 'x' AS h, COUNT(*) AS n FROM t GROUP BY h", catalogue, Options()
    )
    first = run(engine, units_step(plan, 2, "secret"))
    weight = math.isqrt(2**32 // 2)  # 2^16/√2: one that counts in two groups
    assert sum(weights for _, weights in first) == 20 * weight
    assert sorted(run(engine, units_step(plan, 2, "secret"))) == sorted(first)
    assert sorted(run(engine, units_step(plan, 2, "another"))) != sorted(first)
    engine.close()


def test_distinct_values_of_one_unit_are_as_many_as_is_said():
    rows = [(0, "a", float(v), 1) for v in range(100)] + [(1, "b", 1.0, 1)]
    engine, catalogue = engine_with(rows)
    plan = compile_sql("SELECT g, COUNT(DISTINCT x) AS n FROM t GROUP BY g", catalogue, Options())
    found = run(engine, distinct_step(plan, 0, "secret"))
    assert dict(found) == {"a": 4, "b": 1}
    engine.close()


def test_bounds_too_wide_for_exact_sums_are_refused():
    engine, _ = engine_with([(1, "a", 1.0, 1)])
    engine.close()
    table = PrivateTable(
        pa.table({"u": [1], "x": [1]}),
        unit="u",
        population="p",
        bounds={"x": (0, 10**15)},
        max_rows=10,
    )
    session = dp.Session({"t": table}, budget=dp.PureDP(1), ledger=dp.Ledger(key=bytes(32)))
    with pytest.raises(dp.QueryError, match="grid"):
        session.sql("SELECT SUM(x) AS s FROM t", epsilon=1)
    session.close()
