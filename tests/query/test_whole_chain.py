"""The whole of a question that estimates first: keys, profile, answer, what was clipped.

An oracle of exact whole numbers, replay of analysts who go by what they were told, and an audit of
what is seen from outside; both relations, pure and concentrated budgets.
"""

import math
import random
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import deniable as dp
from chance import FALSE_ALARM
from deniable.mechanisms.grid_quantile import GridQuantile
from deniable.mechanisms.joint import JointNoise
from deniable.mechanisms.keys import KeySelection
from deniable.query.price import needed, profile
from deniable.query.price.profile import ProfileOfUnits
from values.oracle import Breach, ask, moved

KINDS = [
    ("add_remove", dp.ApproxDP(1e6, 1e-6)),
    ("add_remove", dp.PureDP(1e6)),
    ("replace", dp.ApproxDP(1e6, 1e-6)),
    ("replace", dp.PureDP(1e6)),
]
NAMES = ["add or remove, zCDP", "add or remove, pure", "replace, zCDP", "replace, pure"]
TOTAL = "SELECT COUNT(*) AS n FROM t"
BY_GROUP = "SELECT g, COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY g"


def table_of(rows):
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    types = {"who": pa.int64(), "g": pa.string(), "x": pa.float64()}
    return pa.table(
        {
            name: pa.array(given, type=types[name])
            for name, given in zip(types, columns, strict=True)
        }
    )


def session(rows, kind, ledger=None, *, keys=True, **declared):
    relation, budget = kind
    private = dp.PrivateTable(
        table_of(rows),
        unit="who",
        population="p",
        relation=relation,
        bounds={"x": (0, 10)},
        keys={"g": ["a", "b"]} if keys else {},
        **declared,
    )
    return dp.Session(
        {"t": private},
        budget=dp.Budget(budget, relation=relation),
        ledger=dp.Ledger(key=bytes(32)) if ledger is None else ledger,
    )


# The oracle: exact numbers of every draw, for neighbours.


def neighbours(rng, relation):
    """Some people, and one who has anything from nothing to very many rows; or another instead."""

    def person(who, most):
        rows = rng.randrange(most)
        return [(who, rng.choice("aab"), rng.choice([0.0, 3.5, 10.0, 1e9])) for _ in range(rows)]

    others = [row for who in range(1, rng.randrange(3, 40)) for row in person(who, 4)]
    one, two = person(0, 300), person(0, 300) if relation == "replace" else []
    return others + one, others + two


def oracle(question, kind, pairs, seed, **declared):
    """Mechanisms that were heard, and the worst movement over what is charged."""
    rng, worst, heard = random.Random(seed), 0.0, set()
    for _ in range(pairs):
        one, two = neighbours(rng, kind[0])
        with session(one, kind, **declared) as here, session(two, kind, **declared) as there:
            asked = ask(here, question, {}, {"epsilon": 8.0})
            before, after = asked.exact(here), asked.exact(there)
            worst = max(worst, moved(before, after, 1))
            heard |= {type(each.mechanism) for each in before}
    return heard, worst


@pytest.fixture
def everybody_is_seen(monkeypatch):
    """Small tables are answered, too: it is what is read that is looked at."""
    monkeypatch.setattr(needed, "unseen", lambda plan: False)


@pytest.mark.usefixtures("everybody_is_seen")
@pytest.mark.parametrize("kind", KINDS, ids=NAMES)
def test_neighbours_move_no_draw_by_more_than_is_charged(kind):
    chains = [(TOTAL, {}), (BY_GROUP, {}), (BY_GROUP, {"max_rows": 3})]
    if isinstance(kind[1], dp.ApproxDP):
        chains.append((BY_GROUP, {"keys": False}))
    every, most = set(), 0.0
    for seed, (question, declared) in enumerate(chains):
        heard, worst = oracle(question, kind, 3, seed, **declared)
        assert worst <= 1
        every, most = every | heard, max(most, worst)
    assert {GridQuantile, JointNoise} <= every
    assert (KeySelection in every) == isinstance(kind[1], dp.ApproxDP)
    assert most > 0.4


@pytest.mark.usefixtures("everybody_is_seen")
def test_a_profile_that_counts_rows_is_found(monkeypatch):
    """Power: a bin that holds a person for each of their levels."""
    right = profile.binned
    monkeypatch.setattr(
        profile, "binned", lambda counts, place: [3 * each for each in right(counts, place)]
    )
    with pytest.raises(Breach, match="times what is charged"):
        oracle(TOTAL, KINDS[0], 6, 1)


# Replay: analysts who ask by what they were told.

PEOPLE = [(who, "ab"[who % 2], float(who % 10)) for who in range(40) for _ in range(1 + who % 3)]
HEAVY = [(99, "b", 10.0)] * 400


def worlds(relation):
    return PEOPLE + HEAVY, PEOPLE + ([(99, "a", 0.0)] if relation == "replace" else [])


def by_what_was_told(asked):
    """Which question comes next, at which price, of which rows: all by numbers that were shown."""
    with asked:
        first = asked.sql(BY_GROUP, epsilon=40)
        (low, high) = (float(end[0]) for end in first.interval_of("n"))
        larger = "a" if first["n"][0] > first["n"][1] else "b"
        epsilon = 30 if high - low > first["n"][0] else 20
        seen = [repr(first.intervals().to_pylist()), str(first.cost)]
        for question in (f"{TOTAL} WHERE g = '{larger}'", "SELECT AVG(x) AS m FROM t"):
            foreseen = str(asked.explain(question, epsilon=epsilon))
            try:
                answer = asked.sql(question, epsilon=epsilon)
                seen += [foreseen, repr(answer.intervals().to_pylist()), str(answer.cost)]
            except dp.NotAnsweredError as refused:
                seen += [foreseen, str(refused)]
        return seen


def replayed(kind):
    return dp.replay(
        by_what_was_told,
        *worlds(kind[0]),
        factory=lambda rows, ledger: session(rows, kind, ledger),
        time_limit=None,
    )


@pytest.mark.parametrize("kind", KINDS, ids=NAMES)
def test_nothing_but_noise_tells_an_analyst_who_goes_by_answers(kind):
    found = replayed(kind)
    assert found.ok, str(found)
    assert found.releases >= 3


def test_a_place_that_is_not_drawn_is_found(monkeypatch):
    """Power: bins about the place where the heaviest person is."""
    right = ProfileOfUnits.draw

    def planted(estimate, door, snapshot, secret):
        drawn = right(estimate, door, snapshot, secret)
        step = estimate.steps()[-2]
        return drawn | {"place": max(int(row[0]) for row in snapshot.run(step))}

    monkeypatch.setattr(ProfileOfUnits, "draw", planted)
    assert not replayed(KINDS[0]).ok


# An audit: what an onlooker sees of many runs, and how surely it tells neighbours apart.

MANY = [(who, "ab"[who % 2], float(who % 10)) for who in range(1_000) for _ in range(1 + who % 3)]


def shown(kind, rows, runs, questions, epsilon):
    """The last number of each answer and its interval, of so many runs."""
    found = []
    for _ in range(runs):
        with session(rows, kind) as asked:
            told = []
            for question in questions:
                try:
                    answer = asked.sql(question, epsilon=epsilon / len(questions))
                    low, high = (float(end[-1]) for end in answer.interval_of("n"))
                    told += [float(answer["n"][-1]), low, high if math.isfinite(high) else 1e9]
                except dp.NotAnsweredError:
                    told += [-1e9] * 3
        found.append(told)
    return np.array(found)


def surely(one, two, edges, delta=2e-6):
    """An ε that is surely exceeded: half-lines of each number that were chosen beforehand."""
    risk, best = FALSE_ALARM / (4 * 2 * one.shape[1]), 0.0
    for first, second in ((one, two), (two, one)):
        for above in (True, False):
            for place in range(one.shape[1]):
                p, q = ((each[:, place] >= edges[place]) == above for each in (first, second))
                low = stats.beta.ppf(risk, p.sum(), len(p) - p.sum() + 1) if p.any() else 0.0
                high = stats.beta.isf(risk, q.sum() + 1, len(q) - q.sum()) if not q.all() else 1.0
                best = max(best, math.log((low - delta) / high) if low > delta else 0.0)
    return best


def audited(kind, runs, question):
    """Of the question alone at ε = 1: half-lines from halfway between what five runs told."""
    here, there = MANY + HEAVY, MANY
    first = [np.median(shown(kind, rows, 5, [question], 1.0), axis=0) for rows in (here, there)]
    seen = [shown(kind, rows, runs, [question], 1.0) for rows in (here, there)]
    return surely(*seen, (first[0] + first[1]) / 2)


@pytest.mark.soak
@pytest.mark.parametrize("question", [TOTAL, BY_GROUP])
@pytest.mark.parametrize("kind", KINDS, ids=NAMES)
def test_no_onlooker_tells_neighbours_apart_beyond_the_price(kind, question):
    assert audited(kind, 400, question) <= 1.0


@pytest.mark.slow
def test_an_onlooker_of_noise_for_a_small_part_of_the_bound_is_told_apart(monkeypatch):
    """Power: noise is for a few rows, whatever a person adds."""
    right = ProfileOfUnits.applied

    def planted(estimate, stored):
        plan = right(estimate, stored)
        return replace(plan, contribution=replace(plan.contribution, norm=4))

    monkeypatch.setattr(ProfileOfUnits, "applied", planted)
    monkeypatch.setattr("deniable.query.run.emit._limit", lambda _plan, *, l2: 10**30)
    assert audited(KINDS[0], 90, TOTAL) > 1.0
