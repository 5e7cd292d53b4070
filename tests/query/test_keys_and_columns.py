"""Groups that are not declared and a column without bounds, in one question: keys come first."""

from __future__ import annotations

import pyarrow as pa

import deniable as dp
from deniable.ledger.verify import verify
from deniable.query.plan.planner import Planner
from deniable.query.price.estimate import Keys
from deniable.query.price.values import ValuesAgain, ValuesOfColumn
from deniable.query.read.build import Spend
from deniable.query.read.catalogue import Options
from deniable.query.read.resolve import parse

_PEOPLE = 3000
_QUESTION = "SELECT city, SUM(cost) AS s FROM v GROUP BY city"


def test_keys_are_selected_before_a_column_is_looked_at_and_stay_selected() -> None:
    rows = {
        "city": ["North" if each % 3 else "South" for each in range(_PEOPLE)],
        "cost": [float(each % 97) for each in range(_PEOPLE)],
    }
    ledger = dp.Ledger()
    table = dp.PrivateTable(pa.table(rows), unit=dp.ROW, population="clinic/patient")
    with dp.Session({"v": table}, budget=dp.ApproxDP(50, 1e-6), ledger=ledger) as session:
        parts = session.parts
        planner = Planner(parts.catalogue, parts.engine, parts.budget)
        asked = planner.asked(parse(_QUESTION), Options(), Spend(epsilon=20))
        assert [type(each) for each in asked.estimates] == [Keys, ValuesOfColumn, ValuesAgain]
        assert asked.assumed.counted.selected is not None
        found = session.sql(_QUESTION, epsilon=20).to_arrow().to_pydict()
    assert sorted(found["city"]) == ["North", "South"]
    assert ledger.balance("clinic/patient").holds == 0
    verify(ledger, "clinic/patient")
