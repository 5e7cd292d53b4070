"""Every method replayed on nasty neighbours: nothing but released values may tell them apart."""

import numpy as np
import pyarrow as pa
import pytest

import deniable as dp
from deniable.auditing.replay.findings import FindingKind
from deniable.synthesis.measure import Draws
from replayed import each_replayed
from synthesis.doors import opened, related
from synthesis.test_methods import METHODS, ON_SMALL, PAIRS as PAIRWISE, QUERIES, SIZES, SMALL
from synthesis.test_synthesize import private

USUAL = related(60, SIZES)
CODED = {
    "empty against one record": (USUAL[:0], USUAL[:1]),
    "one more": (USUAL, np.vstack([USUAL, [[2, 3, 1, 4]]])),
    "outside of the domain": (USUAL, np.vstack([USUAL, [[99, -3, 1, 4]]])),
    "one value only": (np.zeros((40, 4), int), np.zeros((41, 4), int)),
    "a value that appears": (
        np.zeros((40, 4), int),
        np.vstack([np.zeros((40, 4), int), [[2, 3, 1, 4]]]),
    ),
}


BRIEF = {
    "boosting": dp.synthesis.Boosting(queries=QUERIES, rounds=3, sample=2),
    "mwem": dp.synthesis.MWEM(workload=PAIRWISE, rounds=4, passes=20),
}


def coded(method, sizes):
    def pipeline(draws):
        model = method.run(draws)
        columns = list(sizes)[:2]
        return model.marginal(columns).tolist(), model.total, str(draws.spent)

    return pipeline


def door(sizes):
    return lambda rows, ledger: opened(rows[:, : len(sizes)], sizes, ledger=ledger, rho=0.5)


@pytest.mark.parametrize("pair", CODED)
@pytest.mark.parametrize("name", [*METHODS, *ON_SMALL])
def test_methods_on_rows_of_codes(name, pair):
    method = {**METHODS, **ON_SMALL, **BRIEF}[name]
    sizes = SMALL if name in ON_SMALL else SIZES
    found = dp.replay(coded(method, sizes), *CODED[pair], factory=door(sizes))
    assert found.ok, str(found)
    assert found.releases >= 2


@pytest.mark.parametrize("pair", CODED)
def test_online_answers(pair):
    domain = dp.synthesis.Domain(SIZES)
    queries = [dp.synthesis.Counting(domain, {"a": a, "b": b}) for a in range(3) for b in range(4)]

    def pipeline(draws):
        online = dp.synthesis.PrivateMultiplicativeWeights(draws, queries=12, updates=3)
        return [online.answer(query) for query in queries], online.exhausted

    found = dp.replay(pipeline, *CODED[pair], factory=door(SIZES))
    assert found.ok, str(found)


def test_replay_finds_a_method_that_looks_at_exact_counts():
    def peeking(draws):
        model = dp.synthesis.Independent().run(draws)
        return model.total, int(draws._data.exact(()).sum())

    found = dp.replay(peeking, *CODED["one more"], factory=door(SIZES))
    assert {finding.kind for finding in found.findings} == {FindingKind.OUTPUT}


def test_replay_finds_a_source_whose_bound_is_too_small():
    class Doubled:
        bound, steps, relation = 1, 1, dp.Relation.ADD_REMOVE

        def __init__(self, inner):
            self._inner, self.domain = inner, inner.domain

        def exact(self, clique):
            return 2 * self._inner.exact(clique)

    def pipeline(draws):
        twice = Draws(draws._door, Doubled(draws._data), draws.amount)
        return dp.synthesis.Independent().run(twice).total

    found = dp.replay(pipeline, *CODED["one more"], factory=door(SIZES))
    assert FindingKind.SENSITIVITY in {finding.kind for finding in found.findings}


PAIRS = {
    pair.name: pair
    for pair in dp.auditing.nasty_neighbours(
        bounds={"cost": (0, 1000)},
        keys={"ward": ["A", "B", "C"]},
        unit="patient",
        rows_per_unit=200,
    )
}
SCHEMA = pa.schema([("patient", pa.string()), ("ward", pa.string()), ("cost", pa.float64())])


def arrow(rows):
    """Rows as a file would hold them: what does not fit a type is not there."""
    fixed = []
    for row in rows:
        new = dict(row)
        value = row["cost"]
        try:
            new["cost"] = None if value is None or isinstance(value, str) else float(value)
        except OverflowError:
            new["cost"] = float("inf")
        ward = row["ward"]
        new["ward"] = None if ward is None else str(ward)
        fixed.append(new)
    return pa.Table.from_pylist(fixed, schema=SCHEMA)


def visits(rows, ledger):
    table = private(arrow(rows), bounds={"cost": (0, 1000)}, keys={"ward": ["A", "B", "C"]})
    return dp.Session({"visits": table}, budget=dp.ApproxDP(30, 1e-6), ledger=ledger)


def synthesized(method):
    def pipeline(session):
        with session:
            table = dp.synthesize(
                session,
                "visits",
                epsilon=1,
                method=method,
                bins={"cost": 3},
                missing=["cost"],
            )
            return table.marginal(["ward", "cost"]).values.tolist(), table.rows, str(table.cost)

    return pipeline


def check(method, pairs):
    for pair, found in each_replayed(synthesized(method), pairs, visits):
        assert found.ok, f"{pair.name}: {found}"
        assert found.releases >= 2


def test_a_table_with_nasty_rows():
    check("independent", PAIRS.values())


@pytest.mark.soak
@pytest.mark.parametrize("method", ["aim", "mst", "mwem", "fixed"])
def test_every_method_on_every_table_with_nasty_rows(method):
    check(method, PAIRS.values())


@pytest.mark.parametrize("method", ["aim", "mst", "mwem"])
@pytest.mark.parametrize("name", ["empty against one record", "a unit with 200 rows"])
def test_methods_on_a_table_with_nasty_rows(method, name):
    check(method, [PAIRS[name]])
