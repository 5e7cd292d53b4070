"""A norm that was bought bounds every person in every grouping, as exact whole numbers."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import deniable as dp
from deniable.engines.base import LazySnapshot
from deniable.query.plan.planner import Planner
from deniable.query.price.price import Priced, price
from deniable.query.read.build import Spend
from deniable.query.read.catalogue import Options
from deniable.query.read.resolve import parse

_KINDS = 6
_DISTINCT = ", ".join(
    f"COUNT(DISTINCT pid) FILTER (WHERE x = {kind}) AS c{kind}" for kind in range(_KINDS)
)
_ROWS = [(person, "AB"[person % 2], person % _KINDS) for person in range(1, 13)]
_HEAVY = [(0, "A", kind) for kind in range(_KINDS)]

CASES = [
    # The grand total counts people alone; one of them is in all of its columns.
    (f"SELECT ward, {_DISTINCT} FROM v GROUP BY ROLLUP (ward)", "pid", _HEAVY),
    # Each row is a person, and one is far from where the norm was found.
    ("SELECT ward, SUM(x) AS s FROM v GROUP BY ROLLUP (ward)", dp.ROW, [(0, "A", 1000)]),
    ("SELECT ward, SUM(x) AS s FROM v GROUP BY ward", dp.ROW, [(0, "A", 1000)]),
]


def _session(rows: list[tuple[int, str, int]], unit: Any) -> dp.Session:
    columns = zip(("pid", "ward", "x"), zip(*rows, strict=True), strict=True)
    table = dp.PrivateTable(
        pa.table({name: list(values) for name, values in columns}),
        unit=unit,
        population="clinic/patient",
        keys={"ward": ["A", "B"]},
        bounds={"x": (0, 1000)},
    )
    return dp.Session({"v": table}, budget=dp.ApproxDP(3, 1e-6), ledger=dp.Ledger())


def _priced(session: dp.Session, question: str) -> Priced:
    """The question with the least norm that could be bought."""
    parts = session.parts
    planner = Planner(parts.catalogue, parts.engine, parts.budget)
    asked = planner.asked(parse(question), Options(profile=True), Spend(epsilon=1))
    assert asked.assumed.contribution.norm is not None
    return price(asked.assumed, asked.left)


def _totals(session: dp.Session, priced: Priced) -> list[dict[Any, list[int]]]:
    with LazySnapshot(session.parts.engine, priced.totals, priced.plan.tables) as snapshot:
        found = [snapshot.run(step) for step in priced.totals]
    widths = [len(one.counted.groups) for one in priced.plan.groupings]
    return [
        {row[:width]: [int(value or 0) for value in row[width:]] for row in rows}
        for rows, width in zip(found, widths, strict=True)
    ]


@pytest.mark.parametrize(("question", "unit", "heavy"), CASES)
def test_nobody_moves_a_grouping_by_more_than_its_noise_is_for(
    question: str, unit: Any, heavy: list[tuple[int, str, int]]
) -> None:
    with _session([*_ROWS, *heavy], unit) as session:
        priced = _priced(session, question)
        there = _totals(session, priced)
    with _session(_ROWS, unit) as session:
        gone = _totals(session, priced)
    assert priced.joint is not None
    for one, other in zip(there, gone, strict=True):
        nothing = [0] * len(priced.plan.weights)
        moved = sum(
            (weight * (a - b)) ** 2
            for key in one | other
            for weight, a, b in zip(
                priced.plan.weights, one.get(key, nothing), other.get(key, nothing), strict=True
            )
        )
        assert 0 < moved <= priced.joint.bound**2
